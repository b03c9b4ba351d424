"""The fitted models that the comparison of all methods takes: given by name, or lying where `models` has them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from studies.comparison.plan import ENTRIES, Entry
from veilkit.errors import CheckpointError, UsageError
from veilkit.lookup import unknown_name
from veilkit.methods import METHODS, Learns

DEFAULTS: Mapping[str, str] = {
    "privacyreid": "cuhk03_privacyreid.safetensors",
    "fro": "cuhk03_fro.safetensors",
    "peprnet": "cuhk03_peprnet.safetensors",
    "disguise": "lfw_disguise.safetensors",
}
"""What the file of a method that learns is called in the folder of models."""


@dataclass(frozen=True, slots=True)
class Models:
    """Model files by method. folder: where the others are looked for."""

    folder: Path
    given: Mapping[str, Path] = field(default_factory=dict)

    @classmethod
    def of(cls, folder: Path, words: Sequence[str]) -> Models:
        """From words such as fro=pool.safetensors; raises for a method that takes none and for an absent file."""
        given = {}
        for word in words:
            name, equals, path = word.partition("=")
            if not equals or not path:
                raise UsageError(f"a model is given as METHOD=FILE, such as fro=pool.safetensors, but got {word!r}")
            if name not in DEFAULTS:
                raise UsageError(unknown_name("method with a model", name, dict.fromkeys(DEFAULTS)))
            if not Path(path).is_file():
                raise CheckpointError(f"there is no model of {name} at {path}")
            given[name] = Path(path).resolve()
        return cls(folder.resolve(), given)

    def file(self, method: str) -> Path | None:
        """The model of a method, or None where there is none."""
        found = self.given.get(method, self.folder / DEFAULTS[method])
        return found if found.is_file() else None

    def beside(self, method: str, kind: str) -> Path | None:
        """MODEL.KIND.safetensors beside a method's model: its expert, decoder or student; None where it is absent."""
        model = self.file(method)
        found = None if model is None else model.with_suffix(f".{kind}.safetensors")
        return found if found is not None and found.is_file() else None

    def lacking(self, entry: Entry) -> str:
        """What a row needs that is not there, and how to get it; or nothing."""
        method = entry.method
        if not issubclass(METHODS[method], Learns):
            return ""
        if self.file(method) is None:
            return (
                f"needs a fitted model, and no model is given: `veilkit fit {method} DATA --out FILE`, then "
                f"--model {method}=FILE"
            )
        if entry.own and self.beside(method, "expert") is None:
            return (
                f"needs the recogniser that was trained with it: FILE.expert.safetensors beside the model of {method}"
            )
        return ""

    def check(self, names: Sequence[str]) -> None:
        """Open the models of these rows: one that does not open is told before hours of work."""
        for name in names:
            entry = ENTRIES[name]
            if issubclass(METHODS[entry.method], Learns) and not self.lacking(entry):
                model = self.file(entry.method)
                assert model is not None
                METHODS[entry.method].load(model)
