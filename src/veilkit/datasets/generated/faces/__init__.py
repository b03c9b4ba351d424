"""Generated faces: heads of nobody, with known identity, landmarks, gaze, expression and pose, drawn from a seed."""

from veilkit.datasets.generated.faces.capture import Capture, Ranges
from veilkit.datasets.generated.faces.expression import ACTIONS, EMOTIONS, Actions, Expression, expression
from veilkit.datasets.generated.faces.generate import generate_faces
from veilkit.datasets.generated.faces.group import render_group
from veilkit.datasets.generated.faces.identity import Face
from veilkit.datasets.generated.faces.lens import Angles
from veilkit.datasets.generated.faces.load import LABELS, GeneratedFaces, load_generated_faces
from veilkit.datasets.generated.faces.portrait import capture, face, render_face, take
from veilkit.datasets.generated.faces.truth import FaceTruth

__all__ = [
    "ACTIONS",
    "EMOTIONS",
    "LABELS",
    "Actions",
    "Angles",
    "Capture",
    "Expression",
    "Face",
    "FaceTruth",
    "GeneratedFaces",
    "Ranges",
    "capture",
    "expression",
    "face",
    "generate_faces",
    "load_generated_faces",
    "render_face",
    "render_group",
    "take",
]
