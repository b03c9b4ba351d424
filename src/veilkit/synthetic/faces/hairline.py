"""Where hair begins on the template."""

from __future__ import annotations

import math

import numpy as np

from veilkit.synthetic.faces.forms import curve
from veilkit.synthetic.faces.identity import Coiffure
from veilkit.synthetic.view import Floats


def hairline(hair: Coiffure, angle: Floats) -> Floats:
    """v above which hair grows at an angle (radians) round the head."""
    turn = np.abs(angle) * np.float32(180 / math.pi)
    front, back = 63 + hair.line, 16 * hair.recede
    return curve(
        turn,
        (0, front + 0.5 * back),
        (24, front + 1 + 0.8 * back),
        (40, front + 1 + 1.2 * back),
        (52, 50 + 0.5 * hair.line + 0.7 * back),
        (62, 34),
        (70, 18),
        (75, -4),
        (78, -14),
        (82, -14),
        (86, 12),
        (96, 26),
        (108, 20),
        (120, -20),
        (135, -58),
        (180, -72),
    )
