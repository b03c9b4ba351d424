"""Who plays which part in a study: a few pictures of some people, copied in the layout of Market-1501."""

from __future__ import annotations

import shutil
from collections import defaultdict
from itertools import chain, islice, zip_longest
from pathlib import Path

from veilkit.datasets.labelled import first_people
from veilkit.datasets.labels import MARKET_FOLDERS
from veilkit.datasets.market1501 import Market1501, load_market1501
from veilkit.errors import DataError
from veilkit.types import Record, Split

_DRAFT = ".draft"


def chosen_people(
    data: Market1501, people: int, queries: int, gallery: int, public_people: int, public_pictures: int
) -> Market1501:
    """The first `people` of the query part, with so many pictures of each, and some people of the training part."""
    asked = first_people(data.query, people)
    who = set(asked.identities)
    held = Split(
        data.gallery.name,
        data.gallery.root,
        tuple(record for record in data.gallery.records if record.identity in who),
    )
    public = first_people(data.train, public_people)
    return Market1501(few_of_each(public, public_pictures), few_of_each(asked, queries), few_of_each(held, gallery))


def few_of_each(split: Split, count: int) -> Split:
    """At most `count` pictures of each person, the first by path of each camera in turn; in the split's order."""
    seen: dict[str | None, dict[str | None, list[Record]]] = defaultdict(lambda: defaultdict(list))
    for record in sorted(split.records, key=lambda record: record.path):
        seen[record.identity][record.camera].append(record)
    kept: set[Record] = set()
    for cameras in seen.values():
        in_turn = chain.from_iterable(zip_longest(*(cameras[camera] for camera in sorted(cameras, key=str))))
        kept.update(islice((record for record in in_turn if record is not None), count))
    return Split(split.name, split.root, tuple(record for record in split.records if record in kept))


def laid_out(data: Market1501, folder: Path) -> Market1501:
    """The pictures copied below `folder`, so that any method can be given just these; what is there is kept.

    A folder with other pictures belongs to another study and is refused.
    """
    for name in MARKET_FOLDERS:
        (folder / name).mkdir(parents=True, exist_ok=True)
        for leftover in (folder / name).glob(f"*{_DRAFT}"):
            leftover.unlink()
    wanted = {record.path for split in (data.train, data.query, data.gallery) for record in split.records}
    there = load_market1501(folder)
    others = {record.path for split in (there.train, there.query, there.gallery) for record in split.records} - wanted
    if others:
        raise DataError(
            f"{folder} holds {len(others)} pictures that this study does not choose: give it a folder of its own"
        )
    for split in (data.train, data.query, data.gallery):
        for index, record in enumerate(split.records):
            target = folder / record.path
            if not target.exists():
                draft = target.with_name(target.name + _DRAFT)
                shutil.copyfile(split.file(index), draft)
                draft.replace(target)
    return load_market1501(folder)
