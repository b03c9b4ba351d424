"""Models that judge or supervise, each owning its resize and normalisation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from veilkit.lookup import lazy_names

if TYPE_CHECKING:
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

__getattr__ = lazy_names(
    __name__,
    {
        "base": "Detections Detector Embedder Expert ExpertInfo Predictor",
        "faces": "load_detector load_face_embedder load_predictor",
        "registry": "load_expert",
    },
)
