"""Generated faces: heads of nobody, with known identity, landmarks, gaze, expression and pose, drawn from a seed."""

from veilkit.synthetic.faces.capture import Capture, Ranges
from veilkit.synthetic.faces.expression import ACTIONS, EMOTIONS, Actions, Expression, expression
from veilkit.synthetic.faces.generate import generate_faces
from veilkit.synthetic.faces.identity import Face
from veilkit.synthetic.faces.lens import Angles
from veilkit.synthetic.faces.pictures import capture, face, render_face, render_group, take
from veilkit.synthetic.faces.truth import FaceTruth

__all__ = [
    "ACTIONS",
    "EMOTIONS",
    "Actions",
    "Angles",
    "Capture",
    "Expression",
    "Face",
    "FaceTruth",
    "Ranges",
    "capture",
    "expression",
    "face",
    "generate_faces",
    "render_face",
    "render_group",
    "take",
]
