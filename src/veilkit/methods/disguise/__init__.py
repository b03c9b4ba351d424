"""Disguise: every face swapped for a synthetic identity."""
