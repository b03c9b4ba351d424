"""Attacks from feature vectors back to pictures."""
