"""Releases to evidence. One file per attack."""
