"""What may be given to the audit of a synthetic release, beside originals and release."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from veilkit.datasets.folder import check_folder
from veilkit.errors import UsageError
from veilkit.experts import Embedder, load_expert
from veilkit.pipeline.manifest import known_manifest
from veilkit.pipeline.synthesis import is_synthetic


@dataclass(frozen=True, slots=True)
class SyntheticInputs:
    """unseen: folder of other pictures of the training people, not trained on. student: trained on the release.

    held_out: folder of pictures of other people, in place of those among the originals.
    """

    unseen: Path | None = None
    held_out: Path | None = None
    student: Embedder | None = None

    @property
    def facts(self) -> dict[str, str]:
        """What was given, without paths of this machine."""
        given = {
            "unseen": self.unseen and self.unseen.name,
            "held_out": self.held_out and self.held_out.name,
            "student_sha256": self.student and self.student.sha256,
        }
        return {name: str(value) for name, value in given.items() if value is not None}


def synthetic_inputs(
    protected: Path, unseen: str | Path | None, held_out: str | Path | None, student: str | Path | Embedder | None
) -> SyntheticInputs:
    """The folders and the student that were named; raises where one is not there, or the release is not synthetic."""
    named = {"--unseen": unseen, "--held-out": held_out, "--student": student}
    options = ", ".join(name for name, value in named.items() if value is not None)
    if options and not is_synthetic(known_manifest(protected)[0]):
        raise UsageError(
            f"{options} belongs to a release whose pictures have no originals, but the manifest of {protected.name} "
            "does not say that it is one; leave it out"
        )
    folders = [None if each is None else Path(each).resolve() for each in (unseen, held_out)]
    for folder in folders:
        if folder is not None:
            check_folder(folder)
    return SyntheticInputs(
        folders[0], folders[1], load_expert(Path(student)) if isinstance(student, str | Path) else student
    )
