"""The layout of Market-1501, which CUHK03-NP, MSMT17 and generated people share.

Three folders (bounding_box_train, query, bounding_box_test) with names PPPP_cC...: person PPPP seen by camera C.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from veilkit.datasets.folder import is_image_name
from veilkit.datasets.labels import MARKET_FOLDERS, by_market_name
from veilkit.errors import LayoutError
from veilkit.types import Record, Split

JUNK = "-1"  # Market-1501's mark for detections that count neither as right nor as wrong


@dataclass(frozen=True, slots=True)
class Market1501:
    """A dataset in the Market-1501 layout, in its official parts. All paths are relative to its one root."""

    train: Split
    query: Split
    gallery: Split


def load_market1501(root: Path) -> Market1501:
    """Read the layout below `root`; junk detections are left out, distractors (person 0000) stay."""
    missing = [folder for folder in MARKET_FOLDERS if not (root / folder).is_dir()]
    if missing:
        raise LayoutError(
            f"expected the folders {', '.join(MARKET_FOLDERS)} in {root}, but {', '.join(missing)} "
            f"{'is' if len(missing) == 1 else 'are'} missing"
        )
    train, query, gallery = (
        _read(root, folder, name) for folder, name in zip(MARKET_FOLDERS, ("train", "query", "gallery"), strict=True)
    )
    return Market1501(train, query, gallery)


def _read(root: Path, folder: str, name: str) -> Split:
    records = []
    for file in sorted((entry.name for entry in (root / folder).iterdir()), key=os.fsencode):
        if not is_image_name(file):
            continue
        identity, camera = by_market_name(file)
        if identity is None:
            raise LayoutError(
                f"expected names such as 0002_c1s1_000451_03.jpg in {root / folder}, but got {file!r}; "
                "for other names use a plain folder with --labels"
            )
        if identity != JUNK:
            records.append(Record(f"{folder}/{file}", identity, camera))
    return Split(name, root, tuple(records))
