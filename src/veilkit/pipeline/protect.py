"""Protect a folder: what is asked is checked first, and only then is anything heavy imported."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilkit.display import counted, html_table
from veilkit.options import takes
from veilkit.pipeline.options import ProtectOptions

if TYPE_CHECKING:
    from veilkit.methods.base import Method


@dataclass(frozen=True, slots=True)
class Outcome:
    """What a run did. `refused` counts pictures by reason; `refusals` is the private list that names them.

    synthetic: the pictures belong to no original; `passed_over` then counts what shows nobody whom the method knows.
    missed: protected pictures for which the method missed the limit that it sets itself.
    told: what the method reports that the owner must know (a face that was hidden, a picture without any), and of how
    many pictures; `told_list` is the private list that names them.
    faces: of a method on faces, how many were `found`, of these `changed` and `hidden`, and how many `doubtful`
    regions were hidden besides; `faces_list` is the private list of these counts of each picture.
    videos: how many of the protected are videos; of these, faces are counted once for each track.
    parts: what was looked for, `faces` or `people`; `faces` then counts people.
    review: the private page that shows them before and after, of a method on faces or people.
    sealed: the folder of sealed originals, if any, and `recipients`, how many keys can open them.
    """

    destination: Path
    key_file: Path | None
    new_key: bool
    ledger: Path
    protected: int
    passed_over: int
    gone: int
    refused: Mapping[str, int]
    refusals: Path | None
    synthetic: bool = False
    missed: int = 0
    sealed: Path | None = None
    recipients: int = 0
    told: Mapping[str, int] = field(default_factory=dict)
    told_list: Path | None = None
    faces: Mapping[str, int] = field(default_factory=dict)
    faces_list: Path | None = None
    videos: int = 0
    review: Path | None = None
    parts: str = "faces"

    def __repr__(self) -> str:
        refused = f", {sum(self.refused.values()):,} refused" if self.refused else ""
        return f"Outcome({counted(self.protected, 'picture', 'pictures')} in {str(self.destination)!r}{refused})"

    def _repr_html_(self) -> str:
        rows = [("pictures", f"{self.protected:,}"), ("release", str(self.destination))]
        rows += [("key", str(self.key_file))] * (self.key_file is not None)
        rows += [(f"refused: {reason}", f"{count:,}") for reason, count in self.refused.items()]
        rows += [(text, f"{count:,}") for text, count in self.told.items()]
        return html_table(("outcome", ""), rows)


@takes(ProtectOptions)
def protect(source: str | Path, destination: str | Path, method: str | Method[Any], **options: Any) -> Outcome:
    """Protect every picture below `source` and write the release to `destination`.

    method: a name of the table of methods (with `preset`, `settings` and `model`), or a method of your own.

    A run that was stopped goes on when it is called again; what is done and unchanged is not done again. Pictures
    that cannot be read are refused one by one, and the rest is done.
    """
    return make_release(ProtectOptions.of(source, destination, method, **options))


def make_release(options: ProtectOptions) -> Outcome:
    """What `protect` does, for options as one object."""
    options.check()
    from veilkit.pipeline.run import run_protect

    return run_protect(options)
