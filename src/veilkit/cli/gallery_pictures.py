"""Pictures on their way into a gallery, or to be searched for: a folder, a picture or a features file."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from veilkit.experts import Embedder
    from veilkit.gallery import Added, Features, Gallery, Reconciled

FEATURES = ".npz"


@dataclass
class Outcome:
    """What an add did, and how many pictures were refused for which reason."""

    added: int = 0
    kept: int = 0
    resumed: int = 0
    refused: Counter[str] = field(default_factory=Counter)

    def count(self, done: Added) -> None:
        """Take in what one call did."""
        self.added += done.added
        self.kept += done.kept
        self.resumed += done.resumed


def the_expert(gallery: Gallery, name: str | None) -> Embedder:
    """The expert of a gallery, by its own name unless told where it is, and the very same one."""
    from veilkit.errors import ConfigError
    from veilkit.experts import load_expert

    facts = gallery.facts
    if facts.expert is None:
        raise ConfigError(
            f"this gallery takes features ({FEATURES}) only: one that takes pictures is made with --expert"
        )
    expert = load_expert(name or facts.expert)
    if expert.info.fingerprint != facts.expert_fingerprint:
        raise ConfigError(
            f"this gallery's features are those of {facts.expert!r}, but got another expert, or other weights: "
            "features of two experts cannot be compared"
        )
    return expert


def add_features(gallery: Gallery, file: Path) -> Outcome:
    """Add what a features file holds."""
    from veilkit.gallery import read_features
    from veilkit.progress import Progress

    found, outcome = read_features(file), Outcome()
    with Progress(len(found.records), "adding") as progress:
        outcome.count(
            gallery.add(
                found.features,
                records=found.records,
                persons=found.persons,
                cameras=found.cameras,
                times=found.times,
                progress=progress,
            )
        )
    return outcome


def add_pictures(
    gallery: Gallery, folder: Path, expert: Embedder, *, labels: str, times: str, pixels: int
) -> Outcome:
    """Add the pictures below a folder. The budget is checked for all of them before the first is looked at."""
    from veilkit.datasets.folder import load_folder
    from veilkit.datasets.labels import time_reader
    from veilkit.errors import RefusedImage
    from veilkit.media.reading import Limits
    from veilkit.pipeline.embedding import embed_pictures
    from veilkit.progress import Progress

    tell, split, outcome = time_reader(times), load_folder(folder, labels), Outcome()
    people = {record.path: record.identity for record in split.records}
    cameras = {record.path: record.camera for record in split.records}
    _check_named(gallery, list(people.values()))

    def known(path: str, content: bytes) -> bool:
        before = gallery.known(path, content)
        if before is False:
            raise RefusedImage("it is not the picture that was released under its name: give it a new name")
        return before is True

    paths = list(people)
    outcome.resumed = gallery.resume()
    gallery.check(records=paths, persons=[people[path] for path in paths])
    # In the order of pseudonyms, which is that of the store: names next to each other are often of one person.
    order = [path for _, path in sorted(zip(gallery.pseudonyms(paths), paths, strict=True))]
    with Progress(len(order), "adding") as progress:
        for some in embed_pictures(folder, order, expert, limits=Limits(pixels=pixels), known=known):
            if some.paths:
                outcome.count(
                    gallery.add(
                        some.features,
                        records=some.paths,
                        persons=[people[path] for path in some.paths],
                        cameras=[cameras[path] for path in some.paths],
                        times=[tell(path) for path in some.paths],
                        contents=some.contents,
                    )
                )
            outcome.kept += some.kept
            outcome.refused.update(reason for _, reason in some.refused)
            progress.advance(len(some.paths) + some.kept + len(some.refused), kept=some.kept)
    return outcome


def reconcile_features(gallery: Gallery, file: Path) -> Reconciled:
    """Reconcile a gallery with what a features file holds."""
    from veilkit.gallery import read_features

    found = read_features(file)
    return gallery.reconcile(
        found.features, records=found.records, persons=found.persons, cameras=found.cameras, times=found.times
    )


def reconcile_pictures(gallery: Gallery, folder: Path, *, labels: str, pixels: int) -> tuple[Reconciled, int]:
    """Reconcile a gallery with the pictures below a folder; the number says how many could not be read."""
    from veilkit.datasets.folder import load_folder
    from veilkit.errors import RefusedImage
    from veilkit.media.reading import Limits, read_bytes, sha256

    people = {record.path: record.identity for record in load_folder(folder, labels).records}
    _check_named(gallery, list(people.values()))
    contents: dict[str, bytes] = {}
    for path in people:
        try:
            contents[path] = bytes.fromhex(sha256(read_bytes(folder / path, Limits(pixels=pixels))))
        except RefusedImage:
            continue
    done = gallery.reconcile(
        records=list(contents), persons=[people[path] for path in contents], contents=list(contents.values())
    )
    return done, len(people) - len(contents)


def _check_named(gallery: Gallery, people: Sequence[str | None]) -> None:
    from veilkit.errors import DataError

    unknown = sum(person is None for person in people)
    if gallery.facts.per == "person" and unknown:
        raise DataError(
            f"this gallery's budget is per person, but nobody is named for {unknown} of {len(people)} pictures: say "
            "who is in them with --labels, or leave them out"
        )


def read_queries(gallery: Gallery, source: Path, expert_name: str | None, pixels: int) -> Features:
    """The features to search for: of a features file, one picture or the pictures below a folder."""
    import torch

    from veilkit.errors import DataError
    from veilkit.gallery import Features, read_features
    from veilkit.media.reading import Limits
    from veilkit.pipeline.embedding import embed_pictures

    if source.suffix == FEATURES:
        return read_features(source)
    single = not source.is_dir()
    root, paths = (source.parent, [source.name]) if single else (source, _paths(source))
    parts = list(embed_pictures(root, paths, the_expert(gallery, expert_name), limits=Limits(pixels=pixels)))
    for part in parts:
        for path, reason in part.refused:
            raise DataError(f"the picture {path} cannot be searched for: {reason}")
    return Features(
        torch.cat([part.features for part in parts]), tuple(path for part in parts for path in part.paths)
    )


def _paths(folder: Path) -> list[str]:
    from veilkit.datasets.folder import load_folder

    return [record.path for record in load_folder(folder, "none").records]
