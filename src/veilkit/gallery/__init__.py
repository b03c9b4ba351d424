"""A protected feature gallery: noisy vectors with pseudonyms, cameras, times; never a picture or a clean vector."""

from __future__ import annotations

from veilkit.gallery.export import Exported
from veilkit.gallery.facts import Facts, read_facts
from veilkit.gallery.gallery import Gallery
from veilkit.gallery.inputs import Features, milliseconds, read_features, time_text
from veilkit.gallery.milvus import Hit
from veilkit.gallery.reconciling import Reconciled
from veilkit.gallery.statement import Added, Level, Statement

__all__ = [
    "Added",
    "Exported",
    "Facts",
    "Features",
    "Gallery",
    "Hit",
    "Level",
    "Reconciled",
    "Statement",
    "milliseconds",
    "read_facts",
    "read_features",
    "time_text",
]
