"""Fixed tiles of noise that skin and hair are looked up in."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from veilkit.synthetic.faces.forms import Reals
from veilkit.synthetic.view import Floats

_SIZE = 512


@lru_cache(maxsize=8)
def tile(kind: str) -> Floats:
    """A tileable noise (512, 512) of zero mean and unit deviation. Cached and shared: read only.

    soft: blotches. fine: pores. strands: fibres along the rows' direction. curls: round tufts.
    """
    rng = np.random.Generator(np.random.PCG64([ord(letter) for letter in kind]))
    fy = np.fft.fftfreq(_SIZE)[:, None] * _SIZE
    fx = np.fft.fftfreq(_SIZE)[None, :] * _SIZE
    radius = np.hypot(fx, fy) + 1e-6
    spectrum = {
        "soft": np.exp(-np.square(radius / 24)) / radius**0.8,
        "fine": np.exp(-np.square(radius / 150)) * (radius > 20),
        "strands": np.exp(-np.square(fy / 5) - np.square(fx / 130)) / (1 + np.abs(fx) / 30),
        "curls": np.exp(-np.square((radius - 45) / 22)),
    }[kind] * (radius > 0.5)
    noise = np.fft.ifft2(spectrum * np.exp(2j * np.pi * rng.random((_SIZE, _SIZE)))).real
    result = np.asarray(noise / noise.std(), np.float32)
    result.setflags(write=False)
    return result


def look_up(kind: str, down: Reals, across: Reals, seed: int) -> Floats:
    """The tile at places in tile pixels, moved by `seed`."""
    i = (down + (seed & 511)).astype(np.int32) & 511
    j = (across + (seed >> 9 & 511)).astype(np.int32) & 511
    return np.asarray(tile(kind)[i, j], np.float32)
