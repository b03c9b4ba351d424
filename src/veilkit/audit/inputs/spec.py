"""A matrix of audits from a TOML file: datasets x releases or methods x experts x seeds, each with all its attacks.

docs/audit.md describes the format with an example.
"""

from __future__ import annotations

import re
import tomllib
from collections import Counter
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError

from veilkit.audit.options import seconds_of, wanted_attacks
from veilkit.bounded_files import check_plain
from veilkit.errors import ConfigError, DataError, UsageError
from veilkit.methods import METHODS, Learns
from veilkit.methods.base import WorksUnfitted

_NAME = re.compile(r"[\w-]+")
_MOST_BYTES = 2**20  # of a spec
_MOST_DOTS = 200  # in a line: what tomllib does with a name grows with the square of its parts
_MOST_DEPTH = 8  # settings of a method have two levels of their own
_MOST_ROWS = 1000  # of a table, and seeds
_MOST_PROBLEMS = 6  # named in a message
_LONGEST_AUDIT = 366 * 24 * 3600.0  # seconds
_LONGEST = 4096  # characters of a text; a path has no more


def _name(value: str) -> str:
    if not _NAME.fullmatch(value) or len(value) > 100:
        raise ValueError("a name has up to 100 letters, digits, '-' and '_', for it becomes part of file names")
    return value


def _method(value: str) -> str:
    if value not in METHODS:
        raise ValueError(f"there is no method {value[:80]!r}; there are {', '.join(sorted(METHODS))}")
    return value


def _time(value: str) -> str:
    try:
        seconds = seconds_of(value)
    except UsageError as error:
        raise ValueError(str(error)) from None
    if seconds > _LONGEST_AUDIT:
        raise ValueError(f"a budget is at most a year, but got {value[:40]!r}")
    return value


Name = Annotated[str, AfterValidator(_name)]


class _Part(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid")


class DatasetSpec(_Part):
    """Originals, and who is in them. unseen, held_out: for synthetic releases.

    attacks, start: on these pictures, in place of the spec's. kind: what they are judged by, as `--kind`.
    """

    name: Name
    originals: Path
    kind: Literal["auto", "faces", "people"] | None = None
    labels: str = "auto"
    boxes: Path | None = None
    unseen: Path | None = None
    held_out: Path | None = None
    attacks: tuple[str, ...] | None = None
    start: Path | None = None


class _SourceSpec(_Part):
    """Where a release comes from. dataset: which originals, where the spec has several.

    expert, judge: of this release alone, in place of those of [[experts]]. model: that it was, or is, made with.
    """

    name: Name
    dataset: Name | None = None
    model: Path | None = None
    decoder: Path | None = None
    student: Path | None = None
    expert: str | None = None
    judge: str | None = None


class ReleaseSpec(_SourceSpec):
    """A folder of protected pictures that is there."""

    protected: Path
    key: Path | None = None
    seed: int | None = None


class MethodSpec(_SourceSpec):
    """A method that is run under each seed on its dataset, or on every one, and its release audited."""

    method: Annotated[str, AfterValidator(_method)]
    preset: str | None = None
    settings: dict[str, Any] = Field(default_factory=dict)


class ExpertSpec(_Part):
    """An authorised expert and an independent judge; None for the built-in ones."""

    name: Name = "default"
    expert: str | None = None
    judge: str | None = None


class AuditSpec(_Part):
    """The whole matrix. attacks: all by default. learn, budget: as in `run_audit`, for each audit; one of them.

    start: as in `run_audit`.
    """

    datasets: tuple[DatasetSpec, ...] = Field(min_length=1, max_length=_MOST_ROWS)
    releases: tuple[ReleaseSpec, ...] = Field(default=(), max_length=_MOST_ROWS)
    methods: tuple[MethodSpec, ...] = Field(default=(), max_length=_MOST_ROWS)
    experts: tuple[ExpertSpec, ...] = Field(default=(ExpertSpec(),), max_length=_MOST_ROWS)
    attacks: tuple[str, ...] | None = None
    seeds: tuple[int, ...] = Field(default=(0,), min_length=1, max_length=_MOST_ROWS)
    learn: int | None = Field(default=None, ge=1, le=10**9)
    budget: Annotated[str, AfterValidator(_time)] | None = None
    start: Path | None = None

    def dataset_of(self, release: ReleaseSpec) -> DatasetSpec:
        """The originals that a release belongs to."""
        name = release.dataset or self.datasets[0].name
        return next(dataset for dataset in self.datasets if dataset.name == name)


def read_spec(file: Path) -> AuditSpec:
    """Read and check a spec; paths in it are taken from the folder that the file lies in."""
    values = _toml(file)
    try:
        spec = AuditSpec.model_validate(values)
    except ValidationError as error:
        wrong = [f"{_place(each['loc'])}: {each['msg'].removeprefix('Value error, ')}" for each in error.errors()]
        raise _no_spec(file, wrong) from None
    _check(spec, file)
    return _resolved(spec, file.resolve().parent)


def _toml(file: Path) -> dict[str, Any]:
    """The values of a TOML file, of which nothing is too long, too deep, or a text that no system takes."""
    try:
        with file.open("rb") as opened:
            data = opened.read(_MOST_BYTES + 1)
    except OSError as error:
        raise DataError(f"the spec {file} cannot be read: {error.strerror}") from None
    if len(data) > _MOST_BYTES:
        raise ConfigError(f"{file.name} is larger than {_MOST_BYTES:,} bytes; no audit spec is")
    for number, line in enumerate(data.splitlines(), start=1):
        if line.count(b".") > _MOST_DOTS:
            raise ConfigError(f"{file.name}, line {number}: expected at most {_MOST_DOTS} dots in a line")
    try:
        values = tomllib.loads(data.decode("utf-8"))
        check_plain(values, _MOST_DEPTH)
        _check_texts(values)
    except RecursionError:
        raise ConfigError(f"{file.name}: it is nested more than {_MOST_DEPTH} levels deep") from None
    except tomllib.TOMLDecodeError as error:
        raise ConfigError(f"{file.name} is not TOML: {error}") from None
    except UnicodeDecodeError as error:
        raise ConfigError(f"{file.name} is not TOML: expected UTF-8, but got other bytes ({error.reason})") from None
    except ValueError as error:
        raise ConfigError(f"{file.name} is no audit spec: {error}. See docs/audit.md") from None
    return values


def _check_texts(value: object) -> None:
    """Raise ValueError for text that can be no name and no path."""
    if isinstance(value, dict):
        for key, each in value.items():
            _check_texts(key)
            _check_texts(each)
    elif isinstance(value, list):
        for each in value:
            _check_texts(each)
    elif isinstance(value, str):
        shown = f"{value[:40]!r}{'...' if len(value) > 40 else ''}"
        if "\0" in value:
            raise ValueError(f"{shown} holds the character NUL")
        if len(value) > _LONGEST or any(len(part.encode()) > 255 for part in value.split("/")):
            raise ValueError(f"{shown} is longer than a name or a path can be")


def _no_spec(file: Path, wrong: list[str]) -> ConfigError:
    more = f"; and {len(wrong) - _MOST_PROBLEMS} more" if len(wrong) > _MOST_PROBLEMS else ""
    named = "; ".join(each[:500] for each in wrong[:_MOST_PROBLEMS])
    return ConfigError(f"{file.name} is no audit spec: {named}{more}. See docs/audit.md")


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
        if twice := sorted(name for name, count in Counter(names).items() if count > 1):
            wrong.append(f"{what}: {', '.join(twice[:_MOST_PROBLEMS])} occurs twice")
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
            if issubclass(kind, WorksUnfitted) and method.model is None:
                unfitted = kind.unfitted(method.preset, method.settings)
            else:
                unfitted = None
            if issubclass(kind, Learns) and method.model is None and unfitted is None:
                wrong.append(f"method {method.name}: {method.method} must learn before it protects; give its `model`")
            elif not issubclass(kind, Learns):
                kind.configured(method.preset, method.settings)
        except UsageError as error:
            wrong.append(f"method {method.name}: {error}")
    if wrong:
        raise _no_spec(file, wrong)
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
