"""Which recognisers take part: the authorised expert, and a judge that is independent of it.

A name such as dlib@dlib is an identity expert of faces that is shown a view of wide crops (`experts.faces`).
"""

from __future__ import annotations

from pathlib import Path

from veilkit.audit.result import Recogniser
from veilkit.errors import CheckpointError
from veilkit.experts import Embedder, load_expert
from veilkit.experts.faces import load_viewed, names_view

BUILT_IN = ("people", "stripes", "histogram")  # in the order of preference


def choose_expert(wanted: str | Path | Embedder | None) -> tuple[Embedder, tuple[str, ...]]:
    """The authorised expert; "people" unless told otherwise, and "stripes" where its weights are not installed."""
    if wanted is not None:
        return _loaded(wanted), ()
    expert = _first(BUILT_IN, other_than="")
    assert expert is not None  # stripes need no weights
    if expert.name == BUILT_IN[0]:
        return expert, ()
    return expert, (
        f"the expert {BUILT_IN[0]!r} is not installed: {expert.name!r} stands in for it, a weak recogniser",
    )


def choose_judge(wanted: str | Path | Embedder | None, expert: Embedder) -> tuple[Embedder, tuple[str, ...]]:
    """The judge: the built-in recogniser that is not the expert, unless told otherwise."""
    judge = _loaded(wanted) if wanted is not None else _first(BUILT_IN, other_than=expert.sha256) or expert
    if judge.sha256 != expert.sha256:
        return judge, ()
    return judge, (
        "judge and expert are one and the same model: the judge's numbers are not independent. "
        "Name another judge with --judge",
    )


def describe(embedder: Embedder) -> Recogniser:
    """What the report says of a recogniser."""
    info = embedder.info
    return Recogniser(info.name, info.sha256, info.dim, info.licence, info.source, info.flip)


def _loaded(wanted: str | Path | Embedder) -> Embedder:
    if isinstance(wanted, str) and names_view(wanted):
        return load_viewed(wanted)
    return load_expert(wanted) if isinstance(wanted, str | Path) else wanted


def _first(names: tuple[str, ...], *, other_than: str) -> Embedder | None:
    for name in names:
        try:
            expert = load_expert(name)
        except CheckpointError:
            continue
        if expert.sha256 != other_than:
            return expert
    return None
