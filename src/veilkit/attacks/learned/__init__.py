"""Attacks by networks that learn from other people's pictures."""
