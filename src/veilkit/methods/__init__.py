"""Originals to releases. One folder or file per system; a new one is a line in this table."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from veilkit.lookup import LazyLookup, lazy_names

if TYPE_CHECKING:
    from veilkit.methods.base import (
        Calibrates,
        ChangesFaces,
        ChangesParts,
        ChangesPlace,
        FollowsFaces,
        InjectsIdentity,
        Item,
        Learns,
        Method,
        Mixes,
        Recoverable,
        Synthesiser,
        bind,
    )

__getattr__ = lazy_names(
    __name__,
    {
        "base": "Calibrates ChangesFaces ChangesParts ChangesPlace FollowsFaces InjectsIdentity Item Learns Method "
        "Mixes Recoverable Synthesiser bind"
    },
)

# A method is imported when it is first asked for: pixelation must not wait for networks that it never uses.
METHODS: LazyLookup[type[Method[Any]]] = LazyLookup(
    "method",
    [
        ("blur", "veilkit.methods.controls:Blur"),
        ("pixelate", "veilkit.methods.controls:Pixelate"),
        ("noise", "veilkit.methods.controls:Noise"),
        ("mask", "veilkit.methods.controls:Mask"),
        ("mixup", "veilkit.methods.mixing:MixUp"),
        ("patches", "veilkit.methods.mixing:Patches"),
        ("fro", "veilkit.methods.fro.method:Fro"),
        ("pixelfade", "veilkit.methods.pixelfade.method:PixelFade"),
        ("avih", "veilkit.methods.avih.method:Avih"),
        ("privacyreid", "veilkit.methods.privacyreid.method:PrivacyReid"),
        ("peprnet", "veilkit.methods.peprnet.method:PeprNet"),
        ("disguise", "veilkit.methods.disguise.method:Disguise"),
        ("faceblur", "veilkit.methods.faces.controls:FaceBlur"),
        ("facereplace", "veilkit.methods.faces.controls:FaceReplace"),
        ("ksame", "veilkit.methods.faces.ksame:KSame"),
    ],
)

LOOKS_FOR_FACES, READS_ALONE = "faceblur", "pixelate"
"""The plain methods by which a folder is looked at before anybody has chosen one: with faces, and without."""

__all__ = [
    "LOOKS_FOR_FACES",
    "METHODS",
    "READS_ALONE",
    "Calibrates",
    "ChangesFaces",
    "ChangesParts",
    "ChangesPlace",
    "FollowsFaces",
    "InjectsIdentity",
    "Item",
    "Learns",
    "Method",
    "Mixes",
    "Recoverable",
    "Synthesiser",
    "bind",
]
