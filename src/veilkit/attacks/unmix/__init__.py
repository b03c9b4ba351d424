"""Unmixing: blended pictures taken apart again."""
