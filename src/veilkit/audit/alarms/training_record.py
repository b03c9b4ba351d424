"""Which entries of a release's manifest tell how its model was trained: they make no release again."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from veilkit.configs import as_dict
from veilkit.methods import METHODS, Learns

Place = tuple[str, ...]
"""The names of an entry and of those that it lies in, outermost first."""

RECORDS = frozenset({"card", "model_card", "train", "trained", "training"})
"""Names of entries that hold a model's card, or tell how it was trained."""


def training_record(manifest: Any) -> frozenset[Place]:
    """Settings of a method that learns, which its model was trained with; nothing for any other method.

    A release is made from its key and the model. The seed of the model's training makes neither of them.
    """
    name = manifest.get("method") if isinstance(manifest, Mapping) else None
    if not isinstance(name, str) or name not in METHODS or not issubclass(METHODS[name], Learns):
        return frozenset()
    return frozenset(("config", *place) for place in _places(as_dict(METHODS[name].default)))


def _places(values: Mapping[str, Any]) -> Iterator[Place]:
    for name, value in values.items():
        if isinstance(value, Mapping):
            yield from ((name, *place) for place in _places(value))
        else:
            yield (name,)
