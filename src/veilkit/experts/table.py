"""The experts as a table for people: `veilkit.experts()`."""

from __future__ import annotations

from veilkit.display import Table
from veilkit.errors import CheckpointError, MissingExtraError
from veilkit.experts.names import expert_names
from veilkit.experts.preprocessing import size_text
from veilkit.experts.registry import describe_expert


def experts() -> Table:
    """The recognisers that can judge or supervise: those that come with veilkit, then your own."""
    rows = []
    for name in expert_names():
        try:
            info = describe_expert(name)
        except (CheckpointError, MissingExtraError) as error:
            rows.append((name, "", "", "", "", f"not usable: {error}"))
            continue
        size = size_text(info.preprocessing.size) if info.preprocessing else "any size"
        supervises = "yes" if info.differentiable else "no"
        rows.append((name, str(info.dim), size, supervises, info.origin, info.licence))
    return Table("expert", ("name", "features", "input", "supervises", "origin", "licence"), rows)
