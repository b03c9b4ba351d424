"""Withdrawn consent: some pictures leave a release, its sealed originals, its ledger and a gallery.

What is to go is written down first, beside the ledger; each step can be done twice. So a withdrawal that was killed
is finished by the same command, and until then the release has no manifest and no run goes on with it.
"""

from __future__ import annotations

import datetime
import json
import secrets
import shutil
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from veilkit.errors import DataError, DestinationError, UsageError
from veilkit.key import Key, read_key
from veilkit.media.writing import write_atomically
from veilkit.methods import METHODS, Mixes
from veilkit.pipeline.enrolment import withdrawn_tag
from veilkit.pipeline.ledger import Ledger
from veilkit.pipeline.ledger_queries import selected
from veilkit.pipeline.manifest import MANIFEST, SUMS, Manifest, listed_pictures, read_manifest, write_sums
from veilkit.pipeline.names import SCRATCH, name_fault
from veilkit.pipeline.places import Places, private_beside, sealed_beside
from veilkit.pipeline.release import journal_of, remove_file
from veilkit.pipeline.release_lock import release_lock
from veilkit.pipeline.review.page import review_run
from veilkit.pipeline.sealing.files import SEALED_SUFFIX
from veilkit.pipeline.synthesis import is_synthetic

FromGallery = Callable[[Sequence[str]], int]
"""Takes the names of originals out of a gallery; returns how many were in it."""


@dataclass(frozen=True, slots=True)
class Withdrawn:
    """What went: how many pictures, of these from sealed originals and gallery; what is left, and the log of it."""

    pictures: int
    sealed: int
    gallery: int
    left: int
    log: Path


def withdraw(
    release: str | Path,
    *,
    only: Sequence[str] = (),
    key: str | Path | None = None,
    sealed: str | Path | None = None,
    from_gallery: FromGallery | None = None,
) -> Withdrawn:
    """Take the pictures that `only` names (as for `recover`) out of a release, for good.

    key: the release's key, beside which its ledger lies. sealed: where its sealed originals are, if not beside it.
    A withdrawal that was stopped is finished first; `only` may then be left out. Originals elsewhere are not touched.
    """
    folder = Path(release).resolve()
    key_file = (private_beside(folder) / "key" if key is None else Path(key)).resolve()
    sealed_folder = sealed_beside(folder) if sealed is None else Path(sealed).resolve()
    if not folder.is_dir():
        raise DataError(f"expected a release, but {folder} is not a folder")
    manifest = read_manifest(folder)
    if manifest is not None and manifest.seed is not None:
        secret, places = Key.from_seed(manifest.seed), Places(folder, folder, key_file.parent, sealed_folder, None)
    else:
        secret, places = read_key(key_file), Places(folder, folder, key_file.parent, sealed_folder, key_file)
    ledger_file = places.ledger_file(secret)
    if not ledger_file.is_file():
        raise DataError(
            f"expected this release's ledger in {key_file.parent}, but it is not there: give its key (--key), and "
            "put the release back where it was made if it was moved"
        )
    with Ledger(ledger_file) as ledger, release_lock(folder / SCRATCH):
        places = replace(places, source=Path(ledger.about().get("source", str(folder))))
        going = _Going(ledger, places, secret, from_gallery)
        done = going.finish() if going.journal.is_file() else None
        if only:
            done = going.begin(only)
    if done is None:
        raise UsageError("say which pictures: names in the release or of originals, or patterns of them (--only)")
    return done


class _Going:
    """One withdrawal, held by the ledger's and the release's locks."""

    def __init__(self, ledger: Ledger, places: Places, secret: Key, from_gallery: FromGallery | None) -> None:
        self.ledger, self.places, self.secret, self.from_gallery = ledger, places, secret, from_gallery
        self.journal = journal_of(ledger)
        self.log = ledger.file.with_suffix(".withdrawals.jsonl")

    def begin(self, only: Sequence[str]) -> Withdrawn:
        """Choose the pictures, write down what is to go, and take it out."""
        folder = self.places.destination
        manifest = read_manifest(folder)
        if manifest is None:
            raise DataError(
                f"{folder} has no {MANIFEST}, so it is no finished release: finish it by `veilkit protect`"
            )
        if is_synthetic(manifest):
            raise UsageError(
                "these pictures belong to no original, so none can be withdrawn: make the release anew without that "
                "person's originals"
            )
        if manifest.method in METHODS and issubclass(METHODS[manifest.method], Mixes):
            raise UsageError(
                f"{manifest.method} mixes pictures: parts of a person's are in others too. Make the release anew "
                "without that person's originals"
            )
        for _ in self.ledger.entries("done", present=False):  # an altered one is told before anything is begun
            pass
        chosen = selected(only, listed_pictures(folder, manifest), self.places.private)
        plan = {
            "id": secrets.token_hex(8),
            "time": datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"),
            "manifest": manifest.model_dump(),
            "pictures": chosen,
            "gallery": self.from_gallery is not None,
        }
        data = json.dumps(plan).encode("ascii")
        write_atomically(self.journal, data, self.places.private, durable=True)
        self.journal.chmod(0o600)
        return self.finish()

    def finish(self) -> Withdrawn:
        """Take out what is written down; whatever of it is gone already is passed over."""
        plan = self._planned()
        if plan["gallery"] and self.from_gallery is None:
            raise UsageError("this withdrawal was begun with a gallery: name it again (--gallery)")
        names: list[str] = plan["pictures"]
        folder, sealed_folder = self.places.destination, self.places.sealed
        (folder / MANIFEST).unlink(missing_ok=True)
        (sealed_folder / SUMS).unlink(missing_ok=True)
        known = {entry.output: entry for entry in self.ledger.entries("done", present=False)}
        sources = [known[name].source for name in names if name in known]
        in_gallery = self.from_gallery(sources) if self.from_gallery is not None and sources else 0
        shown = self.ledger.file.with_suffix(".shown")
        for name in names:
            for root, path in ((folder, name), (sealed_folder, name + SEALED_SUFFIX)):
                with suppress(FileNotFoundError):
                    remove_file(root, path)
            for side in ("before", "after"):
                (shown / f"{name}.{side}.jpg").unlink(missing_ok=True)
        shutil.rmtree(self.places.private / "preview", ignore_errors=True)
        (self.places.private / "preview.html").unlink(missing_ok=True)
        was_sealed = plan["manifest"]["sealed_recipients"] is not None
        self._note(plan, [name for name in names if name in known], sealed=was_sealed)
        tags = [(withdrawn_tag(self.secret, known[name].source), plan["time"]) for name in names if name in known]
        self.ledger.withdraw([name for name in names if name in known], tags)
        self._close(Manifest.model_validate(plan["manifest"]), sealed=was_sealed)
        self.journal.unlink()
        return Withdrawn(len(names), len(names) if was_sealed else 0, in_gallery, self.ledger.count("done"), self.log)

    def _planned(self) -> dict[str, Any]:
        """What was written down; whoever altered it must not choose what is removed."""
        try:
            plan: dict[str, Any] = json.loads(self.journal.read_bytes())
            Manifest.model_validate(plan["manifest"])
            texts = [plan["id"], plan["time"], *plan["pictures"]]
            fits = isinstance(plan["gallery"], bool) and all(isinstance(each, str) for each in texts)
            if fits and not any(name_fault(name, "kept") for name in plan["pictures"]):
                return plan
        except (ValueError, TypeError, KeyError, RecursionError):
            pass
        raise DestinationError(
            f"{self.journal}, which says what is to be withdrawn, was altered by somebody: move it away and begin "
            "anew"
        )

    def _note(self, plan: dict[str, Any], names: Sequence[str], *, sealed: bool) -> None:
        """Append a line for each picture, by its name in the release; once, however often it is tried."""
        before = self.log.read_text() if self.log.exists() else ""
        if f'"{plan["id"]}"' in before:
            return
        places = ["release", *["sealed"] * sealed, *["gallery"] * bool(plan["gallery"])]
        lines = [
            {"time": plan["time"], "withdrawal": plan["id"], "picture": name, "removed_from": places}
            for name in names
        ]
        data = before + "".join(json.dumps(line) + "\n" for line in lines)
        write_atomically(self.log, data.encode(), self.places.private, durable=True)
        self.log.chmod(0o600)

    def _close(self, manifest: Manifest, *, sealed: bool) -> None:
        """Hashes, manifest and private lists of what is left."""
        folder, ledger, scratch = self.places.destination, self.ledger, self.places.scratch
        left = [(entry.output, entry) for entry in ledger.entries("done", present=False)]
        if sealed and self.places.sealed.is_dir():
            draft = self.places.sealed / f".{SUMS}.part"
            write_sums(draft, ((name + SEALED_SUFFIX, entry.sealed_sha256 or "") for name, entry in left))
            draft.replace(self.places.sealed / SUMS)
        for name, rows, write in (
            (".told.csv", ledger.told(), ledger.write_told),
            (".faces.csv", ledger.faces(), ledger.write_faces),
        ):
            file = ledger.file.with_suffix(name)
            write(file) if rows else file.unlink(missing_ok=True)
        page = ledger.file.with_suffix(".review.html")
        if page.exists():
            review_run(page, ledger, self.places, ledger.file.with_suffix(".shown"), manifest.method)
        draft = scratch / SUMS
        sums = write_sums(draft, ((name, entry.output_sha256 or "") for name, entry in left))
        draft.replace(folder / SUMS)
        made = manifest.model_copy(update={"files": len(left), "sums_sha256": sums})
        write_atomically(folder / MANIFEST, made.text().encode(), scratch, durable=True)
