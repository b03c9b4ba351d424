"""The pictures of a study before and after a protection, as files read back, and who is in them."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from studies.fro.attacks import person_codes
from veilkit.attacks import AttackTarget, Pairs
from veilkit.attacks.pictures import Pictures
from veilkit.attacks.search import Search, plan_search
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.pictures import FilePictures, scan
from veilkit.datasets.market1501 import Market1501
from veilkit.errors import DataError
from veilkit.experts import Embedder
from veilkit.media.reading import Limits
from veilkit.pipeline.ledger import Ledger
from veilkit.pipeline.protect import Outcome
from veilkit.rng import Randomness
from veilkit.types import Record


@dataclass(frozen=True, slots=True, eq=False)
class Released:
    """A release read back, in the order of a originals's originals. reports: of the tested ones, if any."""

    tested: Pictures
    public: Pictures
    reports: tuple[Mapping[str, Any], ...]


class Originals:
    """Test people, who are searched for and attacked (query, then gallery), and public ones, who teach attackers."""

    def __init__(self, data: Market1501, cache: Cache) -> None:
        self._cache = cache
        self.root = data.query.root
        self._tested: tuple[Record, ...] = (*data.query.records, *data.gallery.records)
        self._public = data.train.records
        self.public_split = data.train
        codes = person_codes(data.query, data.gallery, data.train)
        self.people, self.public_people = (_coded(part, codes) for part in (self._tested, self._public))
        count = len(data.query)
        search, notes = plan_search(
            [record.identity for record in self._tested], [record.camera for record in self._tested],
            range(count), range(count, len(self._tested)),
        )  # fmt: skip
        if search is None:
            raise DataError(f"the test part cannot be searched: {'; '.join(notes)}")
        self.search: Search = search
        self.notes = notes
        self.queries = count
        self.tested = self.read(self.root, [record.path for record in self._tested], "originals")
        self.public = self.read(self.root, [record.path for record in self._public], "public originals")

    def released(self, outcome: Outcome) -> Released:
        """The pictures of a finished release of these originals, and the ledger's reports."""
        if outcome.refused:
            raise DataError(f"{sum(outcome.refused.values())} pictures were refused; {outcome.refusals} names them")
        with Ledger(outcome.ledger) as ledger:
            entries = {entry.source: entry for entry in ledger.entries("done")}
        made = [entries[record.path] for record in self._tested]
        return Released(
            self.read(outcome.destination, [entry.output for entry in made], "protected pictures"),
            self.read(
                outcome.destination, [entries[record.path].output for record in self._public], "public pictures"
            ),
            tuple(json.loads(entry.report) for entry in made if entry.report is not None),
        )

    def target(
        self, release: Released, judge: Embedder, rng: Randomness, *, work: Path, **means: Any
    ) -> AttackTarget:
        """The release under attack: pairs of the public people teach, the test people are scored."""
        return AttackTarget(
            rng=rng,
            protected=release.tested,
            originals=self.tested,
            people=self.people,
            search=self.search,
            recogniser=judge,
            pairs=Pairs(self.public, release.public, self.public_people),
            work=work,
            **means,
        )

    def read(self, root: Path, paths: Sequence[str], what: str) -> FilePictures:
        """Picture files below a folder, in this order; what: names them in messages."""
        limits = Limits()
        files, refused = scan(root, paths, limits, self._cache, what)
        if refused:
            raise DataError(f"{sum(refused.values())} of the {what} cannot be read: {', '.join(refused)}")
        return FilePictures(root, [files[path] for path in paths], limits, self._cache, what)


def _coded(records: Sequence[Record], codes: Mapping[str, int]) -> NDArray[np.int64]:
    return np.array([codes[str(record.identity)] for record in records], dtype=np.int64)
