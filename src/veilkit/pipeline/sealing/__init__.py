"""Sealed originals: encrypted to those who may have them back, beside the release."""
