"""What Disguise's channels claim, what is proved of that, and what an auditor measures."""

from __future__ import annotations

import math
from dataclasses import replace
from typing import Any

from torch import Tensor

from veilkit.methods.disguise.identity_channel import ChannelKind
from veilkit.methods.disguise.method import Disguise
from veilkit.privacy import make_mechanism, unit
from veilkit.privacy.auditor import antipodal, identification
from veilkit.rng import Randomness
from veilkit.types import Guarantee

_CANDIDATES = 64
_SOUND: ChannelKind = "privunit"


def guarantees(method: Disguise, identities: Tensor, *, epsilon: float, draws: int, seed: int) -> dict[str, Any]:
    """By channel: the text that a release prints, epsilon claimed and proved; None stands for infinite or none.

    For the sound channel also the lower bounds on epsilon that two attacks on the injected vector show in `draws`
    releases: naming one of the given people's identities (N, D), and telling a vector from its opposite.
    """
    sound = _under(method, _SOUND, epsilon)
    dimension = method.config.transform.dim
    mechanism = make_mechanism(_SOUND, dimension=dimension, epsilon=epsilon, delta=0.0)
    named = identification(
        mechanism.release, unit(identities[:_CANDIDATES]), delta=0.0, trials=draws,
        generator=Randomness.from_seed(seed).child("audit").numpy(),
    )  # fmt: skip
    apart = antipodal(mechanism.release, dimension=dimension, delta=0.0, draws=draws)
    return {
        "paper": _told(_under(method, "paper", None).guarantee()),
        _SOUND: {
            **_told(sound.guarantee()),
            "epsilon measured": max(named.epsilon, apart.epsilon),
            "by": {finding.attack: finding.epsilon for finding in (named, apart)},
            "draws": draws,
        },
    }


def _under(method: Disguise, channel: ChannelKind, epsilon: float | None) -> Disguise:
    return Disguise(replace(method.config, channel=channel, epsilon=epsilon, delta=0.0), method.model)


def _told(said: Guarantee) -> dict[str, Any]:
    proved = said.epsilon_proved
    return {
        "text": said.text,
        "epsilon claimed": said.epsilon_claimed,
        "epsilon proved": None if proved is None or math.isinf(proved) else proved,
    }
