"""A synthetic release under audit: its pictures, its soft labels, a student of it, and who was trained on.

Classes of such a release are people under pseudonyms. The key, or kept names, tell which class is whom, and so which
of the originals were trained on.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from veilkit.attacks import LabelledPictures, UnpairedRelease, UnpairedTarget
from veilkit.attacks.synthetic_release.nearest import RememberedPictures
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.pictures import File, FilePictures, scan
from veilkit.audit.inputs.student import HOW, PrototypeStudent, RememberedModel
from veilkit.audit.inputs.subject import Subject, digest
from veilkit.audit.inputs.training_people import part_people, people_in
from veilkit.audit.options import AuditPlan
from veilkit.audit.result import Input
from veilkit.datasets.soft_labels import SOFT_LABELS, SoftLabels, read_soft_labels
from veilkit.errors import DataError
from veilkit.experts import Embedder
from veilkit.media.reading import Limits
from veilkit.pipeline.pairing import choose_key
from veilkit.pipeline.synthesis import class_name
from veilkit.rng import Randomness
from veilkit.types import Split


@dataclass(frozen=True, slots=True)
class LabelledFiles:
    """Files of one part that can be read, and who is in each."""

    root: Path
    files: tuple[File, ...] = ()
    people: tuple[str, ...] = ()

    def of(self, people: AbstractSet[str]) -> LabelledFiles:
        """The pictures of these people."""
        kept = [place for place, person in enumerate(self.people) if person in people]
        return self.at(kept)

    def at(self, places: Sequence[int] | NDArray[np.int64]) -> LabelledFiles:
        """The pictures at these places, which may repeat."""
        return LabelledFiles(self.root, tuple(self.files[p] for p in places), tuple(self.people[p] for p in places))


@dataclass(frozen=True, slots=True, eq=False)
class UnpairedSubject:
    """A synthetic release to attack; target is None where that cannot be done, for the reason `why`.

    members, synthetic: the files of the target's members and of its release, in its order. read: those of all parts.
    used: what of the originals takes part.
    """

    target: UnpairedTarget | None
    why: str = ""
    members: LabelledFiles = field(default_factory=lambda: LabelledFiles(Path()))
    synthetic: LabelledFiles = field(default_factory=lambda: LabelledFiles(Path()))
    read: tuple[LabelledFiles, ...] = ()
    used: Input | None = None
    notes: tuple[str, ...] = ()


def load_unpaired(
    plan: AuditPlan,
    subject: Subject,
    student: Embedder | None,
    *,
    cache: Cache,
    recogniser: Embedder,
    rng: Randomness,
) -> UnpairedSubject:
    """The target of a subject whose release is synthetic. It says what is missing, which is no error."""
    assert subject.manifest is not None
    names, limits = subject.manifest.names, plan.limits
    secret, key_notes = choose_key(plan.protected, subject.manifest, plan.key, plan.seed)
    if secret is None and names == "pseudonyms":
        return UnpairedSubject(None, f"nobody can tell whom its classes stand for: {'; '.join(key_notes)}")
    person_of = {
        person if secret is None else class_name(person, secret, names): person
        for person in people_in(plan.originals, plan.labels)
    }
    soft, notes = _read_labels(plan.protected)
    folders = [file.path.rpartition("/")[0] for file in subject.protected.files]
    # Who was trained on has a class among the soft labels, even where the share of pictures was rounded to none.
    trained = {person_of[name] for name in {*folders, *(soft.classes if soft else ())} if name in person_of}
    parts = part_people(plan.originals, plan.labels, trained, plan.unseen, plan.held_out)
    notes += parts.notes
    refused: Counter[str] = Counter()
    members = _read(parts.members, limits, cache, refused, notes)
    known = {*members.people}
    unseen = _read(parts.unseen, limits, cache, refused, notes, members).of(known)
    held_out = _read(parts.held_out, limits, cache, refused, notes, members)
    kept = [place for place, name in enumerate(folders) if person_of.get(name) in known]
    if not kept:
        why = (
            "none of its classes stands for anybody whose originals are here: "
            "give the originals that it was made of, and their --labels"
        )
        return UnpairedSubject(None, why)
    if lost := len(folders) - len(kept):
        notes.append(f"{lost} synthetic pictures stand for nobody in the originals and are left out")
    codes = {person: code for code, person in enumerate(sorted({*members.people, *held_out.people}))}
    synthetic = LabelledFiles(
        plan.protected,
        tuple(subject.protected.files[place] for place in kept),
        tuple(person_of[folders[place]] for place in kept),
    )
    made = _labelled(synthetic, codes, limits, cache, "synthetic pictures")
    target = UnpairedTarget(
        rng=rng,
        release=_release(made, synthetic, soft, student, notes),
        members=_labelled(members, codes, limits, cache, parts.members.name),
        unseen=_labelled(unseen, codes, limits, cache, parts.unseen.name) if unseen.files else None,
        held_out=_labelled(held_out, codes, limits, cache, parts.held_out.name) if held_out.files else None,
        recogniser=recogniser,
    )
    hashes = [file.sha256 for part in (members, held_out) if part.root == plan.originals for file in part.files]
    return UnpairedSubject(
        target,
        members=members,
        synthetic=synthetic,
        read=(members, unseen, held_out, synthetic),
        used=Input(plan.originals.name, len(hashes), digest(hashes), dict(refused.most_common())),
        notes=(_counted(members, unseen, held_out), *notes),
    )


def _read_labels(protected: Path) -> tuple[SoftLabels | None, list[str]]:
    try:
        return read_soft_labels(protected), []
    except DataError:
        return None, [f"{SOFT_LABELS} is damaged: the release is audited as if it had no soft labels"]


def _read(
    split: Split,
    limits: Limits,
    cache: Cache,
    refused: Counter[str],
    notes: list[str],
    members: LabelledFiles | None = None,
) -> LabelledFiles:
    """The pictures that can be read, without those that are among the members."""
    if not len(split):
        return LabelledFiles(split.root)
    files, unreadable = scan(split.root, [record.path for record in split.records], limits, cache, split.name)
    if count := sum(unreadable.values()):
        notes.append(f"{count} of the {split.name} could not be read and {'is' if count == 1 else 'are'} left out")
    refused += unreadable
    trained = set() if members is None else {file.sha256 for file in members.files}
    readable = [(files[r.path], str(r.identity)) for r in split.records if r.path in files]
    kept = [each for each in readable if each[0].sha256 not in trained]
    if copies := len(readable) - len(kept):
        notes.append(f"{copies} of the {split.name} are training pictures and are left out")
    return LabelledFiles(split.root, tuple(file for file, _ in kept), tuple(person for _, person in kept))


def _labelled(
    found: LabelledFiles, codes: dict[str, int], limits: Limits, cache: Cache, what: str
) -> LabelledPictures:
    pictures = RememberedPictures(FilePictures(found.root, found.files, limits, cache, what))
    return LabelledPictures(pictures, np.array([codes[person] for person in found.people], dtype=np.int64))


def _release(
    made: LabelledPictures,
    synthetic: LabelledFiles,
    soft: SoftLabels | None,
    student: Embedder | None,
    notes: list[str],
) -> UnpairedRelease:
    features = logits = None
    if student is not None and len(np.unique(made.people)) < 2:
        notes.append("the student is not used: with one class it cannot be certain or uncertain of anybody")
    elif student is not None:
        features = RememberedModel(student.embed)
        logits = PrototypeStudent(features, made.pictures, made.people)
        notes.append(HOW)
    labels = None if soft is None else _matching(soft, synthetic.files, notes)
    return UnpairedRelease(made.pictures, made.people, labels, logits, features)


def _matching(soft: SoftLabels, files: Sequence[File], notes: list[str]) -> NDArray[np.float32] | None:
    """The logits of these files, or None where they are not to be had."""
    try:
        logits = soft.of([file.path for file in files])
    except DataError as error:
        notes.append(f"the soft labels are not used: {error}")
        return None
    if len(soft.classes) < 2 or not np.isfinite(logits).all():
        notes.append("the soft labels are not used: they must be finite logits of at least two classes")
        return None
    return logits


def _counted(members: LabelledFiles, unseen: LabelledFiles, held_out: LabelledFiles) -> str:
    def people(part: LabelledFiles) -> int:
        return len(set(part.people))

    unseen_text = f"{len(unseen.files)} other pictures of {people(unseen)}" if unseen.files else "no other pictures"
    others = f"{len(held_out.files)} pictures of {people(held_out)}" if held_out.files else "no pictures of"
    return (
        f"{len(members.files)} originals of {people(members)} people were trained on; to compare with there are "
        f"{unseen_text} of them and {others} other people"
    )
