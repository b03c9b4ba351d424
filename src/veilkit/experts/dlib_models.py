"""dlib and the models that face_recognition_models ships (extra: faces), found without importing that package."""

from __future__ import annotations

import importlib
from importlib import metadata
from pathlib import Path
from typing import Any

from veilkit.errors import MissingExtraError

_PACKAGE = "face_recognition_models"  # importing it would need pkg_resources
IDENTITY = "dlib_face_recognition_resnet_model_v1.dat"
POINTS_5 = "shape_predictor_5_face_landmarks.dat"
POINTS_68 = "shape_predictor_68_face_landmarks.dat"
LICENCES = {
    IDENTITY: "public domain (CC0)",
    POINTS_5: "public domain (CC0)",
    POINTS_68: "trained on iBUG 300-W, whose terms exclude commercial use",
}


def dlib_model(name: str) -> Path:
    """The file of a model, by one of the names above."""
    try:
        files = metadata.files(_PACKAGE) or []
    except metadata.PackageNotFoundError:
        raise MissingExtraError(_PACKAGE, "faces") from None
    for file in files:
        if file.name == name:
            path = Path(str(file.locate()))
            if path.is_file():
                return path
    raise MissingExtraError(f"{name} of {_PACKAGE}", "faces")


def import_dlib() -> Any:
    """The module dlib."""
    try:
        return importlib.import_module("dlib")
    except ImportError:
        raise MissingExtraError("dlib", "faces") from None
