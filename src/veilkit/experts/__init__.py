"""Models that judge or supervise, each owning its resize and normalisation."""

from __future__ import annotations

from veilkit.experts.base import Detections, Detector, Embedder, Expert, ExpertInfo, Predictor
from veilkit.experts.faces import load_detector, load_face_embedder, load_predictor
from veilkit.experts.registry import load_expert

__all__ = [
    "Detections",
    "Detector",
    "Embedder",
    "Expert",
    "ExpertInfo",
    "Predictor",
    "load_detector",
    "load_expert",
    "load_face_embedder",
    "load_predictor",
]
