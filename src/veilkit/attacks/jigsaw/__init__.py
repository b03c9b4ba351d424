"""Jigsaw reassembly: patch recombination put back together."""
