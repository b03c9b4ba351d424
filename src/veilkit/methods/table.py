"""The methods as a table for people: `veilkit.methods()`."""

from __future__ import annotations

from veilkit.display import Table
from veilkit.methods import METHODS, Learns
from veilkit.methods.base import WorksUnfitted


def methods() -> Table:
    """All protection methods: what each does, what it needs first, and whether an attack is known to undo it."""
    rows = [
        (
            name,
            "model" if issubclass(method, Learns) and not issubclass(method, WorksUnfitted) else "",
            f"by {method.undone_by}" if method.undone_by else "",
            method.summary,
        )
        for name, method in METHODS.items()
    ]
    return Table("method", ("name", "needs", "undone", "what it does"), rows)
