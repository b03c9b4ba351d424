"""All methods on the same people, under the same attackers: one spec, its audits, and a row for each method."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

from studies.comparison.faces import aligned_folder, chosen_faces
from studies.comparison.measures import faces_kept, features_attacked, searched
from studies.comparison.models import Models
from studies.comparison.plan import (
    ENTRIES,
    FACES,
    PEOPLE,
    POOL,
    ComparisonConfig,
    Entry,
    Starts,
    study_settings,
)
from studies.comparison.rows import Row, attacked_row, audited_row, missing_row
from studies.shared.cells import Cell, CellStore, refuse_others
from studies.shared.originals import Originals
from studies.shared.people_data import chosen_people, few_of_each, laid_out
from veilkit.attacks import Budget
from veilkit.audit.cells.store import CellFiles, as_json
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.spec import AuditSpec, DatasetSpec, ExpertSpec, MethodSpec, read_spec
from veilkit.audit.inputs.spec_text import spec_text
from veilkit.audit.inputs.subject import load_subject
from veilkit.audit.matrix import Audited, audits, combinations, released
from veilkit.datasets.labelled import first_people
from veilkit.datasets.lfw import Lfw
from veilkit.datasets.market1501 import Market1501
from veilkit.errors import DataError
from veilkit.experts import load_expert
from veilkit.experts.names import SUFFIXES
from veilkit.media.reading import Limits
from veilkit.media.writing import write_atomically
from veilkit.methods import METHODS, Learns
from veilkit.methods.expert_guided.method import spread_of_split
from veilkit.methods.fro.method import Fro
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.types import Level, Split

SPEC, MATRIX_FOLDER = "spec.toml", "matrix"
_LEFT_OUT = "not asked for (methods)"
_NO_FACES = "needs pictures of faces: --faces LFW"
_OPEN_FEATURES = {
    Level.L0: "features can be compared with each other by anybody, without a recogniser",
    Level.L3: "who holds the encoder searches for people by pictures of theirs, as the authorised user does",
}


@dataclass(frozen=True, slots=True)
class Judges:
    """expert: general, authorised for every release without an own one. judge, face: independent, to attack with.

    Names or files; that of faces with a view of wide crops, such as dlib@dlib.
    """

    expert: str
    judge: str
    face: str

    def resolved(self) -> Judges:
        """Files by their whole paths: in a spec, paths start from its folder."""
        return Judges(*(str(Path(each).resolve()) if each.endswith(SUFFIXES) else each
                        for each in (self.expert, self.judge, self.face)))  # fmt: skip


class ComparisonRows:
    """Rows of both tables. Nothing is computed before `run`, nor twice. faces: None where there are no pictures.

    starts: weights that attackers who train a recogniser start from.
    """

    def __init__(
        self,
        data: Market1501,
        faces: Lfw | None,
        folder: Path,
        config: ComparisonConfig,
        judges: Judges,
        models: Models,
        cache: Cache,
        *,
        workers: int = 1,
        starts: Starts | None = None,
    ) -> None:
        self.folder, self.config, self.judges, self.models = folder.resolve(), config, judges.resolved(), models
        self._data, self._faces, self._cache, self._workers = data, faces, cache, workers
        self._starts = (starts or Starts()).resolved()
        self._expert, self._judge = load_expert(judges.expert), load_expert(judges.judge)
        self._settings = as_json(study_settings(config, self._expert, self._judge, judges.face, self._starts))
        self._rng = Randomness.from_seed(config.seed).child("all methods")
        self._rows = CellFiles(self.folder / "cells")

    def run(self) -> dict[str, Row]:
        """Every row, by name; each is kept in the folder's cells as soon as it is known."""
        self._rows.open()
        known = self.rows()
        wanted = self.config.wanted
        self.models.check(wanted)
        for name in ENTRIES:
            why = self._lacking(ENTRIES[name]) or ("" if name in wanted else _LEFT_OUT)
            if why and "levels" not in known.get(name, ()):  # what was measured before, elsewhere perhaps, stays
                self._keep(name, missing_row(ENTRIES[name].label, why))
        audited = [name for name in self._runnable if not ENTRIES[name].features]
        with Progress(len(self._runnable), "methods") as progress:
            for each in audits(self.spec(), self.folder / MATRIX_FOLDER, workers=self._workers) if audited else ():
                self._keep(each.combination.source.name, self._row(each))
                progress.advance(1, each.combination.source.name)
            for name in set(self._runnable) - set(audited):
                self._keep(name, self._features(ENTRIES[name]))
                progress.advance(1, name)
        return self.rows()

    def cell(self, name: str) -> Cell:
        """A row by its cell's name; all rows are computed together, by `run`."""
        return self.rows()[name.rpartition("/")[2]]

    def draw(self) -> None:
        """There are no figures."""

    def protect(self) -> tuple[Path, ...]:
        """The releases of all rows, made and not attacked; `run` finds them there."""
        self.models.check(self.config.wanted)
        return tuple(
            released(each, self.folder / MATRIX_FOLDER, workers=self._workers) for each in combinations(self.spec())
        )

    def rows(self) -> dict[str, Row]:
        """The rows that are there, in the tables' order; raises where one belongs to another study."""
        found = {}
        for name in ENTRIES:
            held = self._rows.read(_cell(name))
            if held is None:
                continue
            refuse_others(self._rows.file(_cell(name)), held["settings"], self._settings[ENTRIES[name].table])
            found[name] = held["result"]
        return found

    def spec(self) -> AuditSpec:
        """The one spec of all audits, as it lies in the folder: `veilkit audit --spec` runs the same."""
        methods = tuple(self._method(name) for name in self._runnable if not ENTRIES[name].features)
        used = {method.dataset for method in methods}
        datasets = tuple(
            DatasetSpec(
                name=FACES,
                originals=self._originals(FACES),
                labels="folder",
                attacks=self.config.face_attacks,
                start=self._starts.faces,
            )
            if name == FACES
            else DatasetSpec(
                name=name,
                originals=self._originals(name),
                labels="market",
                attacks=self.config.attacks,
                start=self._starts.people,
            )
            for name in (PEOPLE, POOL, FACES)
            if name in used
        )
        spec = AuditSpec(
            datasets=datasets, methods=methods, learn=self.config.updates, seeds=(self.config.seed,),
            experts=(ExpertSpec(expert=self.judges.expert, judge=self.judges.judge),),
        )  # fmt: skip
        write_atomically(self.folder / SPEC, spec_text(spec, self.folder).encode(), self.folder)
        return read_spec(self.folder / SPEC)

    @cached_property
    def _runnable(self) -> tuple[str, ...]:
        return tuple(name for name in self.config.wanted if not self._lacking(ENTRIES[name]))

    def _lacking(self, entry: Entry) -> str:
        return self.models.lacking(entry) or (_NO_FACES if entry.data == FACES and self._faces is None else "")

    def _method(self, name: str) -> MethodSpec:
        entry, method = ENTRIES[name], ENTRIES[name].method
        settings: dict[str, Any] = dict(entry.settings)
        if entry.bound:
            settings |= {"expert": self.judges.expert, "spread": self._spread}
        learns = issubclass(METHODS[method], Learns)
        own = str(self.models.beside(method, "expert")) if entry.own else None
        return MethodSpec(
            name=name, method=method, preset=entry.preset, settings=settings, dataset=entry.data,
            model=self.models.file(method) if learns else None,
            decoder=self.models.beside(method, "decoder") if learns else None,
            student=self.models.beside(method, "student") if entry.data == POOL else None,
            expert=self.judges.face if entry.data == FACES else own,
            judge=self.judges.face if entry.data == FACES else None,
        )  # fmt: skip

    def _row(self, each: Audited) -> Row:
        name, entry = each.combination.source.name, ENTRIES[each.combination.source.name]
        if each.result is None:
            return missing_row(entry.label, each.why)
        kept: Mapping[str, Any] | None = None
        if entry.data == POOL:
            student = self.models.beside(entry.method, "student")
            kept = {"why": "needs a student: `veilkit train student` of the release, as FILE.student.safetensors"}
            if student is not None:
                kept = searched(self._tested_people, load_expert(student), self._rng)
        elif entry.data == FACES:
            kept = self._kept_of_faces(name)
        return audited_row(entry.label, each.result, kept)

    def _kept_of_faces(self, name: str) -> dict[str, Any]:
        release = self.folder / MATRIX_FOLDER / "releases" / f"{FACES}.{name}.seed{self.config.seed}"
        loaded = load_subject(
            self._originals(FACES), release, key=None, seed=self.config.seed, labels="folder", limits=Limits(),
            cache=self._cache,
        )  # fmt: skip
        assert loaded.originals is not None
        assert loaded.people is not None
        return faces_kept(loaded.originals, loaded.protected, loaded.people, self._rng)

    def _features(self, entry: Entry) -> Row:
        """A release of the encoder's features: attacked as such, and searched in by the encoder itself."""
        encoder = load_expert(str(self.models.beside(entry.method, "expert")))
        budget = Budget(updates=self.config.updates, seed=self.config.seed)
        found = features_attacked(
            self._tested_people, encoder, self._expert, self._judge, budget, self.folder / "work", self._rng
        )
        return attacked_row(
            entry.label, found, searched(self._tested_people, encoder, self._rng), _OPEN_FEATURES,
            judge=self._judge.name,
            people=self.config.people, pictures=len(self._tested_people.tested), alarms=[],
        )  # fmt: skip

    @cached_property
    def _tested_people(self) -> Originals:
        return Originals(self._people, self._cache)

    @cached_property
    def _people(self) -> Market1501:
        """The test people, copied into the study's folder; nothing else is protected or attacked but FRO's pool."""
        config = self.config
        some = chosen_people(self._data, config.people, config.queries, config.gallery, 0, 0)
        return laid_out(some, self.folder / "originals" / PEOPLE)

    def _originals(self, dataset: str) -> Path:
        folder, config = self.folder / "originals" / dataset, self.config
        if dataset == PEOPLE:
            _ = self._people
        elif dataset == POOL:
            laid_out(Market1501(self._pool, self._people.query, self._people.gallery), folder)
        else:
            assert self._faces is not None
            split = chosen_faces(self._faces, config.folds, config.faces, config.shots)
            aligned_folder(split, config.finder, config.side, self.folder / "aligned", folder)
        return folder

    @cached_property
    def _pool(self) -> Split:
        """The pictures of the people whom FRO's classifier knows."""
        model = self.models.file("fro")
        assert model is not None
        known, train = set(Fro.load(model).classes), self._data.train
        records = tuple(record for record in train.records if record.identity in known)
        if not records:
            raise DataError("fro's model knows nobody of the training part: give the model that was fitted to it")
        return Split(train.name, train.root, records)

    @cached_property
    def _spread(self) -> float:
        """What methods that are bound to the general expert are calibrated by, of people of the training part."""
        config = self.config
        public = few_of_each(first_people(self._data.train, config.public_people), config.public_pictures)
        with Progress(1, "calibrating") as progress:
            cells = CellStore(self.folder, self._settings[PEOPLE], progress)
            return float(cells.get("spread", lambda: {"spread": spread_of_split(self._expert, public)})["spread"])

    def _keep(self, name: str, row: Row) -> None:
        held = {"cell": _cell(name), "settings": self._settings[ENTRIES[name].table], "result": as_json(row)}
        self._rows.write(_cell(name), held)


def _cell(name: str) -> str:
    return f"{ENTRIES[name].table}/{name}"
