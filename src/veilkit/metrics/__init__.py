"""Tensors to numbers: pure functions."""
