"""What `benchmark` may be asked for, checked before anything is read or computed."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import Any

from veilkit.audit.options import NO_BUDGET, seconds_of
from veilkit.configs import parse_settings
from veilkit.datasets.folder import check_folder
from veilkit.errors import UsageError
from veilkit.experts.names import check_expert_name
from veilkit.lookup import unknown_name
from veilkit.options import Options, check_model_file, option

MODELS = "models"


@dataclass(frozen=True, slots=True)
class Asked:
    """A method as it was asked for: pixelate:cell=16, disguise:photoreal. text: those words."""

    text: str
    method: str
    preset: str | None
    settings: Mapping[str, Any]

    @classmethod
    def read(cls, text: str) -> Asked:
        """From METHOD[:PRESET][:KEY=VALUE]...

        >>> Asked.read("pixelate:cell=16").slug
        'pixelate-cell-16'
        """
        method, *more = (part.strip() for part in text.split(":"))
        presets = [part for part in more if "=" not in part]
        if len(presets) > 1 or not all((method, *more)):
            raise UsageError(
                f"a method is given as METHOD, METHOD:PRESET or METHOD:KEY=VALUE, such as pixelate:cell=16, but got "
                f"{text!r}"
            )
        settings = parse_settings([part for part in more if "=" in part])
        return cls(":".join((method, *more)), method, presets[0] if presets else None, settings)

    @property
    def slug(self) -> str:
        """The same as a part of file names."""
        return re.sub(r"[^\w-]+", "-", self.text).strip("-")[:100]


def _asked(text: str) -> tuple[str, ...]:
    return tuple(part.strip() for part in text.split(",") if part.strip())


@dataclass(frozen=True)
class BenchmarkOptions(Options):
    """One benchmark. methods: as `Asked.read` takes them. out: where all of it is kept; a stopped run goes on."""

    data: str | Path = option(MISSING, "Folder of pictures of people, labelled as for `audit`.", kind=Path,
                              positional=True)  # fmt: skip
    methods: Sequence[str] = option(
        MISSING, "Methods by comma, each with a preset or settings if wanted: blur,pixelate:cell=16,disguise.",
        metavar="NAMES", read=_asked,
    )  # fmt: skip
    expert: str | None = option(
        None, "The recogniser that pictures must stay useful for: a name, a .safetensors or an .onnx file. An ONNX "
        "file is added to your experts.", metavar="NAME|FILE", shown="the packaged one",
    )  # fmt: skip
    normalisation: str | None = option(
        None, "Of an ONNX file: see `veilkit experts add`.", shown="the one by which it tells most originals apart"
    )
    input_size: str | None = option(None, "Of an ONNX file that takes any size.", metavar="HxW")
    judge: str | None = option(
        None, "An independent recogniser to attack with.", metavar="NAME|FILE", shown="the strongest at hand"
    )
    model: Sequence[str] = option(
        (), "METHOD=FILE, the model of a method that learns; may be repeated.", metavar="METHOD=FILE", many=True,
        shown=f"*METHOD.safetensors in the folder {MODELS}",
    )  # fmt: skip
    labels: str = option("auto", "Who is in a picture: auto, none, folder, market, pattern:REGEX or csv:FILE.")
    kind: str = option("auto", "What pictures are judged by.", choices=("auto", "faces", "people"))
    people: int | None = option(
        None,
        "Only so many people, drawn by the seed.",
        kind=int,
        least=2,
        shown="everybody; of Market's layout the test part",
    )
    budget: str = option(
        "3m", "Of each audit, as `audit --budget`; none leaves attackers who learn out.", metavar="TIME"
    )
    seed: int = option(0, "Of the draw, the methods and the attackers.", kind=int, least=0)
    out: str | Path | None = option(None, "Folder for everything.", kind=Path, shown="DATA.benchmark")
    show_originals: bool = option(False, "Show originals beside protected pictures on the page.", kind=bool)
    workers: int = option(1, "Processes that protect and attack.", kind=int, least=1)

    def check(self) -> BenchmarkOptions:
        """Raise for a folder, name or number that is wrong."""
        check_folder(Path(self.data).resolve())
        super().check()
        from veilkit.methods import METHODS

        if not self.methods:
            raise UsageError("expected the methods to compare, such as --methods blur,pixelate, but got none")
        asked = self.asked
        for each in asked:
            _ = METHODS[each.method]
        if len({each.slug for each in asked}) < len(asked):
            raise UsageError(f"a method is given twice: {', '.join(each.text for each in asked)}")
        if self.budget != NO_BUDGET:
            seconds_of(self.budget)
        check_expert_name(self.expert)
        check_expert_name(self.judge)
        for name, file in self.models.items():
            if name not in METHODS:
                raise UsageError(unknown_name("method", name, dict.fromkeys(METHODS)))
            check_model_file(file)
        if Path(self.data).resolve() in (self.destination, *self.destination.parents):
            raise UsageError(f"the benchmark must lie apart from the pictures, but {self.destination} is among them")
        return self

    @property
    def asked(self) -> tuple[Asked, ...]:
        """The methods."""
        return tuple(map(Asked.read, self.methods))

    @property
    def models(self) -> dict[str, Path]:
        """The model files that were given, by method."""
        found = {}
        for word in self.model:
            name, equals, path = word.partition("=")
            if not equals or not path:
                raise UsageError(
                    f"a model is given as METHOD=FILE, such as privacyreid=m.safetensors, but got {word!r}"
                )
            found[name] = Path(path).resolve()
        return found

    @property
    def destination(self) -> Path:
        """Where everything is kept."""
        data = Path(self.data).resolve()
        return data.with_name(data.name + ".benchmark") if self.out is None else Path(self.out).resolve()
