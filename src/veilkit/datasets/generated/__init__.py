"""Generated people."""
