"""Photoreal faces of people who do not exist, drawn by a network whose weights an installed package holds."""

from veilkit.synthetic.photoreal.generator import PhotorealFaces
from veilkit.synthetic.photoreal.weights import INSTALL, TERMS

__all__ = ["INSTALL", "TERMS", "PhotorealFaces"]
