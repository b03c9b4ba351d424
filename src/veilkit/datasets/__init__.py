"""Disk to splits: folders, the Market-1501 layout, LFW, generated people and faces."""
