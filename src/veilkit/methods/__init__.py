"""Originals to releases. One file per system."""
