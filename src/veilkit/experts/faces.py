"""The face experts by name: who it is, where faces are, what they show; and those that supervise a training."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import replace
from functools import partial
from pathlib import Path

from torch import Tensor

from veilkit.errors import ConfigError, MissingExtraError, UnknownNameError
from veilkit.experts.alignment import VIEWS, view
from veilkit.experts.base import Detector, Embedder, ExpertInfo, Predictor, check_images
from veilkit.experts.centerface import CenterFace
from veilkit.experts.dlib_faces import DlibDetector, DlibLandmarks
from veilkit.experts.dlib_identity import DlibIdentity
from veilkit.experts.face_attributes import FaceAttributePredictor, load_packaged
from veilkit.experts.fer_expression import FerExpression
from veilkit.experts.mtcnn import MTCNN
from veilkit.experts.names import SUFFIXES, VIEW_SIGN, expert_names, weights_file
from veilkit.experts.onnx import OnnxEmbedder
from veilkit.experts.openvino_faces import OpenVinoFace
from veilkit.experts.preprocessing import NORMALISATIONS, Preprocessing
from veilkit.experts.registry import load_expert
from veilkit.experts.retinaface import RetinaFace
from veilkit.experts.yunet import YuNet
from veilkit.lookup import Lookup, unknown_name
from veilkit.networks.face_attributes import HEADS


def load_mobilefacenet() -> OnnxEmbedder:
    """MobileFaceNet (Chen et al. 2018), 128 numbers per face; faces are to be cut by `alignment.ARCFACE`."""
    return OnnxEmbedder.load(
        weights_file("mobilefacenet.onnx"),
        Preprocessing((112, 112), *NORMALISATIONS["signed"]),
        name="mobilefacenet",
        source="public weights, MobileFaceNet",
    )


FACE_EMBEDDERS: Lookup[Callable[[], Embedder]] = Lookup(
    "face embedder", [("dlib", DlibIdentity.load), ("mobilefacenet", load_mobilefacenet)]
)
DETECTORS: Lookup[Callable[[], Detector]] = Lookup(
    "detector",
    [
        ("centerface", CenterFace.load),
        ("dlib", partial(DlibDetector, 5)),
        ("dlib-68", partial(DlibDetector, 68)),
        ("mtcnn", MTCNN.load),
        ("retinaface", RetinaFace.load),
        ("yunet", YuNet.load),
    ],
)
PREDICTORS: Lookup[Callable[[], Predictor]] = Lookup(
    "predictor",
    [
        ("landmarks", partial(load_packaged, "landmarks")),
        ("gaze", partial(load_packaged, "gaze")),
        ("expression", partial(load_packaged, "expression")),
        ("dlib-landmarks-5", partial(DlibLandmarks, 5)),
        ("dlib-landmarks-68", partial(DlibLandmarks, 68)),
        ("openvino-gaze", partial(OpenVinoFace.load, "gaze")),
        ("openvino-head-pose", partial(OpenVinoFace.load, "head-pose")),
        ("openvino-landmarks", partial(OpenVinoFace.load, "landmarks")),
        ("fer-expression", FerExpression.load),
    ],
)


def load_face_embedder(name: str) -> Embedder:
    """An identity expert for aligned faces."""
    return FACE_EMBEDDERS[name]()


def load_detector(name: str) -> Detector:
    """A face detector."""
    return DETECTORS[name]()


def load_predictor(name: str) -> Predictor:
    """Landmarks, gaze, expression or head pose."""
    return PREDICTORS[name]()


class PredictorFeatures(Embedder):
    """The last features before the answer of a network of ours; of other predictors the answer, one row per image.

    Such an answer must be that of the last layer before any softmax, with as many numbers for each image as the
    predictor's info says, and gradients must reach the images through it.
    """

    def __init__(self, predictor: Predictor) -> None:
        if not predictor.differentiable:
            raise ConfigError(f"the predictor {predictor.name!r} can judge, but not supervise: take a torch one")
        self._predictor = predictor

    @property
    def info(self) -> ExpertInfo:
        """Who the predictor is."""
        info = replace(self._predictor.info, kind="embedder")
        if isinstance(self._predictor, FaceAttributePredictor):
            return replace(info, dim=self._predictor.feature_dim)
        return info

    def embed(self, images: Tensor) -> Tensor:
        """(N, 3, H, W) -> (N, D)."""
        if isinstance(self._predictor, FaceAttributePredictor):
            return self._predictor.features(images)
        return self._predictor.predict(images).flatten(1)


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


class Viewed(Embedder):
    """An embedder of the view `name` (of `alignment.VIEWS`) of wide crops; square pictures only."""

    def __init__(self, embedder: Embedder, name: str) -> None:
        _ = VIEWS[name]  # an unknown name is refused now
        self._embedder, self._view = embedder, name

    @property
    def info(self) -> ExpertInfo:
        """The embedder's, with the view in name and hash: what it sees belongs to what its features depend on."""
        info = self._embedder.info
        digest = hashlib.sha256(f"{info.sha256} {VIEWS[self._view]}".encode()).hexdigest()
        return replace(info, name=f"{info.name}{VIEW_SIGN}{self._view}", sha256=digest)

    def embed(self, images: Tensor) -> Tensor:
        """(N, 3, S, S) -> (N, D)."""
        check_images(images)
        return self._embedder.embed(view(images, self._view))


def names_view(name: str) -> bool:
    """Whether a name is one of `load_viewed`: dlib@dlib, mobilefacenet@arcface."""
    return name.rpartition(VIEW_SIGN)[2] in VIEWS and VIEW_SIGN in name


def load_viewed(name: str) -> Viewed:
    """The identity expert that stands before the @, and the view behind it."""
    expert, _, shown = name.rpartition(VIEW_SIGN)
    return Viewed(load_identity(expert), shown)
