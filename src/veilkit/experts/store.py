"""The user's own experts on disk: one folder each, holding the weights, expert.json and perhaps card.md.

A folder appears under its name only when complete, and disappears as a whole.
"""

from __future__ import annotations

import json
import os
import shutil
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Literal

from pydantic import TypeAdapter, ValidationError

from veilkit.errors import CheckpointError, ConfigError, DestinationError, UnknownNameError
from veilkit.experts.names import NAME, SUFFIXES, added_names, data_home, file_sha256
from veilkit.experts.preprocessing import Preprocessing
from veilkit.lookup import unknown_name

_RECORD, _CARD = "expert.json", "card.md"


@dataclass(frozen=True, slots=True)
class Entry:
    """What expert.json holds. file: name of the weights in the same folder; sha256: of that file.

    flip: whether features are averaged with those of the mirror image.
    """

    name: str
    file: Literal["weights.onnx", "weights.safetensors"]
    sha256: str
    licence: str
    source: str
    dim: int
    preprocessing: Preprocessing
    flip: bool = False
    kind: Literal["embedder"] = "embedder"
    format: Literal["veilkit-expert-1"] = "veilkit-expert-1"


_ENTRY = TypeAdapter(Entry)


def check_name(name: str) -> None:
    """Raise unless `name` can be a folder everywhere and is never mistaken for a file."""
    if not NAME.fullmatch(name) or name.endswith((".", *SUFFIXES)):
        raise ConfigError(
            "an expert's name must be 1 to 64 lower-case letters, digits, '.', '_' or '-', beginning with a letter "
            f"or digit and not ending like a file ({', '.join(SUFFIXES)}), but got {name!r}"
        )


class ExpertStore:
    """The experts below `root`."""

    def __init__(self, root: Path | None = None) -> None:
        self.root = data_home() / "experts" if root is None else root

    def names(self) -> tuple[str, ...]:
        """The names in use, sorted, whether or not their folders are in order."""
        return added_names(self.root)

    def read(self, name: str) -> Entry:
        """What is known of an expert; its weights are not touched."""
        self._known(name)
        try:
            entry = _ENTRY.validate_json((self.root / name / _RECORD).read_bytes())
        except (OSError, ValidationError, ConfigError) as error:
            raise CheckpointError(
                f"the expert {name!r} is damaged: {_RECORD} cannot be understood; remove and add it again"
            ) from error
        if entry.name != name:
            raise CheckpointError(f"the folder {name!r} holds the expert {entry.name!r}; remove and add it again")
        return entry

    def card(self, name: str) -> str:
        """The text of the model card, or nothing."""
        self._known(name)
        card = self.root / name / _CARD
        return card.read_text(encoding="utf-8", errors="replace") if card.is_file() else ""

    def verified_weights(self, entry: Entry) -> Path:
        """The weights file, whose SHA-256 is the one that was recorded."""
        path = self.root / entry.name / entry.file
        found = file_sha256(path)
        if found != entry.sha256:
            raise CheckpointError(
                f"the weights of {entry.name!r} were altered since they were added: expected SHA-256 {entry.sha256}, "
                f"but got {found}; remove and add the expert again"
            )
        return path

    def put(self, entry: Entry, weights: Path, card: str = "") -> None:
        """Copy the weights and write the record; raises ConfigError if the name is taken by then."""
        check_name(entry.name)
        try:
            self.root.mkdir(parents=True, exist_ok=True)
            with tempfile.TemporaryDirectory(prefix=".adding-", dir=self.root) as made:
                folder = Path(made) / entry.name
                folder.mkdir()
                shutil.copyfile(weights, folder / entry.file)
                if file_sha256(folder / entry.file) != entry.sha256:
                    raise CheckpointError(f"{weights} changed while it was added; add it again")
                if card:
                    (folder / _CARD).write_text(card, encoding="utf-8")
                _write_synced(folder / _RECORD, asdict(entry))
                try:
                    folder.rename(self.root / entry.name)  # fails where a folder of that name holds something
                except FileExistsError:
                    raise _taken(entry.name) from None
                except OSError as error:
                    raise (_taken(entry.name) if (self.root / entry.name).exists() else error) from None
        except OSError as error:
            raise DestinationError(f"cannot write below {self.root}: {error.strerror or error}") from None

    def remove(self, name: str) -> None:
        """Delete an expert's folder; a damaged one can be removed as well."""
        self._known(name)
        try:
            with tempfile.TemporaryDirectory(prefix=".removing-", dir=self.root) as made:
                (self.root / name).rename(Path(made) / name)
        except OSError as error:
            raise DestinationError(f"cannot remove {name!r} below {self.root}: {error.strerror or error}") from None

    def _known(self, name: str) -> None:
        names = self.names()
        if name not in names:
            raise UnknownNameError(unknown_name("expert", name, dict.fromkeys(names)))


def _taken(name: str) -> ConfigError:
    return ConfigError(f"the name {name!r} is taken; choose another, or first: veilkit experts remove {name}")


def _write_synced(path: Path, values: Mapping[str, object]) -> None:
    with path.open("w", encoding="utf-8") as file:
        json.dump(values, file, indent=2)
        file.write("\n")
        file.flush()
        os.fsync(file.fileno())
