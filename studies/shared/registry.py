"""The studies there are. Their modules are imported only when one of them is asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

from veilkit.errors import UnknownNameError
from veilkit.lookup import unknown_name

if TYPE_CHECKING:
    from studies.shared.study import Study

# Name: its package below `studies`, and what it measures.
STUDIES = {
    "comparison": ("comparison", "every method on the same people, under the same attackers"),
    "controls": ("controls", "blur, pixelation, noise, masks, mix-up and PRO on the whole test part"),
    "disguise": ("disguise", "who is recognised in swapped faces, inversion, utility, landmark networks, guarantees"),
    "fro": ("fro", "pool and students of FRO, PRO, mix-up and noise, attacks on the release, clusters, data scale"),
    "fro-faces": ("fro_faces", "verification on LFW by FRO's pool and students"),
    "pepr": ("peprnet", "encoders with and without De-ID and adversaries, noise on their features, attacks on them"),
    "pixelfade": ("pixelfade", "PixelFade, AVIH and controls: four settings, recovery, outlines, ablations"),
    "privacyreid": ("privacyreid", "base, without and with upgradation trained and compared, recovery, attacks"),
}


def load_study(name: str) -> Study[Any]:
    """A study by its name; raises UnknownNameError where there is none of that name."""
    if name not in STUDIES:
        raise UnknownNameError(unknown_name("study", name, STUDIES))
    study: Study[Any] = import_module(f"studies.{STUDIES[name][0]}.study").STUDY
    return study
