"""A matrix of audits from a TOML file: datasets x releases or methods x experts x seeds, each with all its attacks.

docs/audit.md describes the format with an example.
"""

from __future__ import annotations

import re
import tomllib
from pathlib import Path
from typing import Annotated, Any

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from veilkit.audit.cells.budget import seconds_of
from veilkit.audit.inputs.plan import wanted_attacks
from veilkit.errors import ConfigError, DataError, UsageError
from veilkit.methods import METHODS

_NAME = re.compile(r"[\w-]+")


def _name(value: str) -> str:
    if not _NAME.fullmatch(value):
        raise ValueError("a name has letters, digits, '-' and '_' only, for it becomes part of file names")
    return value


def _method(value: str) -> str:
    if value not in METHODS:
        raise ValueError(f"there is no method {value!r}; there are {', '.join(sorted(METHODS))}")
    return value


def _time(value: str) -> str:
    try:
        seconds_of(value)
    except UsageError as error:
        raise ValueError(str(error)) from None
    return value


Name = Annotated[str, AfterValidator(_name)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DatasetSpec(_Part):
    """Originals, and who is in them. unseen, held_out: for synthetic releases.

    attacks, start: on these pictures, in place of the spec's.
    """

    name: Name
    originals: Path
    labels: str = "auto"
    boxes: Path | None = None
    unseen: Path | None = None
    held_out: Path | None = None
    attacks: tuple[str, ...] | None = None
    start: Path | None = None


class ReleaseSpec(_Part):
    """A folder of protected pictures that is there. dataset: which originals, where the spec has several.

    expert, judge: of this release alone, in place of those of [[experts]]. model: that it was made with.
    """

    name: Name
    protected: Path
    dataset: Name | None = None
    key: Path | None = None
    seed: int | None = None
    model: Path | None = None
    decoder: Path | None = None
    student: Path | None = None
    expert: str | None = None
    judge: str | None = None


class MethodSpec(_Part):
    """A method that is run on every dataset, under each seed, and its release audited.

    dataset: the one that it is run on, where not on all. expert, judge, student: as of a release.
    """

    name: Name
    method: Annotated[str, AfterValidator(_method)]
    preset: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)
    model: Path | None = None
    decoder: Path | None = None
    student: Path | None = None
    dataset: Name | None = None
    expert: str | None = None
    judge: str | None = None


class ExpertSpec(_Part):
    """An authorised expert and an independent judge; None for the built-in ones."""

    name: Name = "default"
    expert: str | None = None
    judge: str | None = None


class AuditSpec(_Part):
    """The whole matrix. attacks: all by default. learn, budget: as in `run_audit`, for each audit; one of them.

    start: as in `run_audit`.
    """

    datasets: tuple[DatasetSpec, ...] = Field(min_length=1)
    releases: tuple[ReleaseSpec, ...] = ()
    methods: tuple[MethodSpec, ...] = ()
    experts: tuple[ExpertSpec, ...] = (ExpertSpec(),)
    attacks: tuple[str, ...] | None = None
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1)
    learn: int | None = Field(default=None, ge=1)
    budget: Annotated[str, AfterValidator(_time)] | None = None
    start: Path | None = None

    def dataset_of(self, release: ReleaseSpec) -> DatasetSpec:
        """The originals that a release belongs to."""
        name = release.dataset or self.datasets[0].name
        return next(dataset for dataset in self.datasets if dataset.name == name)


def read_spec(file: Path) -> AuditSpec:
    """Read and check a spec; paths in it are taken from the folder that the file lies in."""
    try:
        values = tomllib.loads(file.read_text(encoding="utf-8"))
    except OSError as error:
        raise DataError(f"the spec {file} cannot be read: {error.strerror}") from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise ConfigError(f"{file.name} is not TOML: {error}") from None
    try:
        spec = AuditSpec.model_validate(values)
    except ValidationError as error:
        wrong = [f"{_place(each['loc'])}: {each['msg'].removeprefix('Value error, ')}" for each in error.errors()]
        raise ConfigError(f"{file.name} is no audit spec: {'; '.join(wrong)}. See docs/audit.md") from None
    _check(spec, file)
    return _resolved(spec, file.resolve().parent)


def _check(spec: AuditSpec, file: Path) -> None:
    """What single fields do not show."""
    wrong = []
    if not spec.releases and not spec.methods:
        wrong.append("expected [[releases]] to audit or [[methods]] to run, but got neither")
    if spec.learn is not None and spec.budget is not None:
        wrong.append("give learn or budget, not both")
    for what, names in (
        ("datasets", [each.name for each in spec.datasets]),
        ("releases and methods", [*(each.name for each in spec.releases), *(each.name for each in spec.methods)]),
        ("experts", [each.name for each in spec.experts]),
        ("seeds", [str(seed) for seed in spec.seeds]),
    ):
        if twice := sorted({name for name in names if names.count(name) > 1}):
            wrong.append(f"{what}: {', '.join(twice)} occurs twice")
    known = [dataset.name for dataset in spec.datasets]
    if len(known) > 1:
        wrong += [
            f"release {release.name}: which of the datasets {', '.join(known)}? Give its `dataset`"
            for release in spec.releases
            if release.dataset is None
        ]
    sources: list[ReleaseSpec | MethodSpec] = [*spec.releases, *spec.methods]
    for source in sources:
        if source.dataset is not None and source.dataset not in known:
            what = "release" if isinstance(source, ReleaseSpec) else "method"
            wrong.append(
                f"{what} {source.name}: there is no dataset {source.dataset!r}; there are {', '.join(known)}"
            )
    for method in spec.methods:
        kind = METHODS[method.method]
        try:
            if kind.learns and method.model is None:
                wrong.append(f"method {method.name}: {method.method} must learn before it protects; give its `model`")
            elif not kind.learns:
                kind.configured(method.preset, method.settings)
        except UsageError as error:
            wrong.append(f"method {method.name}: {error}")
    if wrong:
        raise ConfigError(f"{file.name} is no audit spec: {'; '.join(wrong)}. See docs/audit.md")
    for attacks in (spec.attacks, *(dataset.attacks for dataset in spec.datasets)):
        wanted_attacks(attacks)
        if attacks == ():
            raise ConfigError(f"{file.name} is no audit spec: attacks is empty; leave it out for all attacks")


def _resolved(spec: AuditSpec, root: Path) -> AuditSpec:
    """The spec with whole paths. An expert that ends in .safetensors or .onnx is a file, too."""

    def part(each: _Part) -> dict[str, Any]:
        values: dict[str, Any] = {
            name: root / value if isinstance(value, Path) else value for name, value in dict(each).items()
        }
        for name in ("expert", "judge"):
            if isinstance(values.get(name), str) and values[name].endswith((".safetensors", ".onnx")):
                values[name] = str(root / values[name])
        return values

    changes: dict[str, Any] = {
        kind: tuple(each.model_copy(update=part(each)) for each in getattr(spec, kind))
        for kind in ("datasets", "releases", "methods", "experts")
    }
    changes["start"] = None if spec.start is None else root / spec.start
    return spec.model_copy(update=changes)


def _place(location: tuple[int | str, ...]) -> str:
    """Where in the file: releases[1].key."""
    text = "".join(f"[{part}]" if isinstance(part, int) else f".{part}" for part in location)
    return text.removeprefix(".") or "the file"
