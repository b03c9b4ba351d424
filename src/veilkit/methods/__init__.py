"""Originals to releases. One file per system; a new one is a line in this table."""

from __future__ import annotations

from typing import Any

from veilkit.lookup import Lookup
from veilkit.methods.avih.method import Avih
from veilkit.methods.base import Item, Method, Recoverable, Synthesiser, bind
from veilkit.methods.controls import Blur, Mask, Noise, Pixelate
from veilkit.methods.disguise.method import Disguise
from veilkit.methods.faces.controls import FaceBlur, FaceReplace
from veilkit.methods.fro.method import Fro
from veilkit.methods.mixing import MixUp, Patches
from veilkit.methods.peprnet.method import PeprNet
from veilkit.methods.pixelfade.method import PixelFade
from veilkit.methods.privacyreid.method import PrivacyReid

_ALL: tuple[type[Method[Any]], ...] = (
    Blur, Pixelate, Noise, Mask, MixUp, Patches, Fro, PixelFade, Avih, PrivacyReid, PeprNet, Disguise,
    FaceBlur, FaceReplace,
)  # fmt: skip
METHODS: Lookup[type[Method[Any]]] = Lookup("method", [(method.name, method) for method in _ALL])

__all__ = ["METHODS", "Item", "Method", "Recoverable", "Synthesiser", "bind"]
