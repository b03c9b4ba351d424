"""The face experts by name: who it is, where faces are, what they show. Each is made when it is asked for."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

from veilkit.experts.base import Detector, Embedder, Predictor
from veilkit.experts.dlib_faces import DlibDetector, DlibLandmarks
from veilkit.experts.dlib_identity import DlibIdentity
from veilkit.experts.face_attributes import load_packaged
from veilkit.experts.fer_expression import FerExpression
from veilkit.experts.onnx import OnnxEmbedder
from veilkit.experts.openvino_faces import OpenVinoFace
from veilkit.experts.preprocessing import NORMALISATIONS, Preprocessing
from veilkit.experts.weights_files import weights_file
from veilkit.experts.yunet import YuNet
from veilkit.lookup import Lookup


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
    "detector", [("dlib", partial(DlibDetector, 5)), ("dlib-68", partial(DlibDetector, 68)), ("yunet", YuNet.load)]
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
