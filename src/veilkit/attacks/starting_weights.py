"""Weights that attackers may start from who train a recogniser, for the table of attacks as a whole."""

from __future__ import annotations

from pathlib import Path

from veilkit.attacks import ATTACKS


def weights_facts(start: Path | None) -> dict[str, str]:
    """What results depend on where attackers start from weights; raises where one cannot start from them."""
    return {name: value for attack in ATTACKS.values() for name, value in attack.weights_facts(start).items()}
