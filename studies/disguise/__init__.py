"""Disguise's tables and figures in small."""
