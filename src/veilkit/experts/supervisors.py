"""The experts that supervise a training on faces, by name: who somebody is, and what must stay."""

from __future__ import annotations

from pathlib import Path

from veilkit.errors import MissingExtraError, UnknownNameError
from veilkit.experts.base import Embedder
from veilkit.experts.face_attributes import FaceAttributePredictor
from veilkit.experts.faces import FACE_EMBEDDERS, PREDICTORS
from veilkit.experts.predictor_features import PredictorFeatures
from veilkit.experts.registry import expert_names, load_expert
from veilkit.experts.store import SUFFIXES
from veilkit.lookup import unknown_name
from veilkit.networks.face_attributes import HEADS


def load_identity(name_or_path: str) -> Embedder:
    """An identity expert of faces, or any other that `load_expert` knows."""
    if name_or_path in FACE_EMBEDDERS:
        try:
            return FACE_EMBEDDERS[name_or_path]()
        except MissingExtraError as error:
            raise error.instead(
                "set identity to another expert through which gradients pass (`veilkit experts list`, or a "
                ".safetensors file), and views to the part of a face that it is used to"
            ) from None
    return _other("identity expert", name_or_path, tuple(FACE_EMBEDDERS))


def load_utility(name_or_path: str) -> Embedder:
    """A predictor through which gradients pass, as features; or any expert that `load_expert` knows.

    HEAD@FILE is one head (landmarks, gaze, expression) of a network of `veilkit train face-attributes`.
    """
    head, at, file = name_or_path.partition("@")
    if at:
        if head not in HEADS:
            known = unknown_name("head", head, dict.fromkeys(HEADS))
            raise UnknownNameError(f"{known}; of {name_or_path!r}, what stands before @")
        return PredictorFeatures(FaceAttributePredictor.load(Path(file), head))
    if name_or_path in PREDICTORS:
        return PredictorFeatures(PREDICTORS[name_or_path]())
    return _other("utility expert", name_or_path, tuple(PREDICTORS))


def _other(kind: str, name_or_path: str, faces: tuple[str, ...]) -> Embedder:
    names = (*faces, *expert_names())
    if name_or_path not in names and not name_or_path.endswith(SUFFIXES) and "/" not in name_or_path:
        known = unknown_name(kind, name_or_path, dict.fromkeys(names))
        raise UnknownNameError(f"{known}, or the path of a .safetensors file")
    return load_expert(name_or_path)
