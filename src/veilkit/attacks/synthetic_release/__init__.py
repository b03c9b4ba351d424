"""Attacks on releases whose pictures belong to no original."""
