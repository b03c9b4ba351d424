"""What a study declares, and the runner does for every study alike."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from functools import cached_property
from pathlib import Path
from typing import Any, ClassVar, Generic, Protocol, TypeVar

from studies.shared.cells import Cell, CellStore
from veilkit.audit.inputs.cache import Cache
from veilkit.datasets.lfw import Lfw, load_lfw
from veilkit.datasets.market1501 import Market1501, load_market1501
from veilkit.errors import UnknownNameError, UsageError
from veilkit.lookup import unknown_name
from veilkit.progress import Progress

ROOT = Path(__file__).resolve().parents[2]
PEOPLE, FACES = "cuhk03-np", "lfw"  # folders below VEILKIT_DATA
Cells = Mapping[str, Any]  # results by the cells' names
ClaimRow = dict[str, Any]
C = TypeVar("C")


@dataclass(frozen=True, slots=True)
class Input:
    """A model or a recogniser that a study takes: `--name`. default: what the published figures were made with.

    many: may be given again; its value is a tuple. file: a path that must be there; `none` stands for leaving it out.
    """

    name: str
    help: str
    default: str | None = None
    many: bool = False
    file: bool = False


@dataclass(frozen=True, eq=False)
class Run(Generic[C]):
    """One run of a study: its options, the folder that it works in, the data, and what was given.

    inputs: by their names, None where one was left out. data: the folder that holds `cuhk03-np` and `lfw`, or one
    dataset itself. threads: of torch; workers: processes.
    """

    config: C
    folder: Path
    data: Path | None
    inputs: Mapping[str, Any]
    cache: Cache
    progress: Progress
    workers: int
    threads: int

    def store(self, settings: Mapping[str, Any]) -> CellStore:
        """The cells of this run, which depend on these settings."""
        return CellStore(self.folder, settings, self.progress)

    def file(self, name: str) -> Path | None:
        """An input that is a file."""
        value = self.inputs[name]
        return None if value is None else Path(value)

    @cached_property
    def people(self) -> Market1501:
        """Pictures of people, in the layout of Market-1501."""
        return load_market1501(self.dataset(PEOPLE))

    @cached_property
    def faces(self) -> Lfw:
        """Labeled Faces in the Wild."""
        return load_lfw(self.dataset(FACES))

    def has(self, dataset: str) -> bool:
        """Whether the data holds a dataset of this name."""
        return self.data is not None and (self.data / dataset).is_dir()

    def dataset(self, name: str) -> Path:
        """The folder of a dataset: below the data, or the data itself."""
        if self.data is None:
            raise UsageError(
                f"the study needs data: give --data, or set VEILKIT_DATA to the folder that holds {name}"
            )
        return self.data / name if self.has(name) else self.data


class Computation(Protocol):
    """Computes the cells of one run."""

    def cell(self, name: str) -> Cell:
        """One cell by its name, found again where it was computed before."""

    def draw(self) -> None:
        """Figures and sheets of pictures, in the run's folder."""


class Study(ABC, Generic[C]):
    """A study: what it computes, and how its tables and claims follow from the cells.

    name: as the command has it. title: of its report. data: as claims name it. published: the options of the
    published figures. threads: of torch; None is one for each core. figures: those of `draw` that are published with
    the results. pages: beside its README, where its tables may have a place. extra: what `--only` takes besides
    cells. elsewhere: tables that have no place on its own page, and need none on another.
    """

    name: ClassVar[str]
    title: ClassVar[str]
    data: ClassVar[str]
    inputs: ClassVar[tuple[Input, ...]] = ()
    threads: ClassVar[int | None] = None
    figures: ClassVar[tuple[str, ...]] = ()
    pages: ClassVar[tuple[Path, ...]] = ()
    extra: ClassVar[tuple[str, ...]] = ()
    elsewhere: ClassVar[tuple[str, ...]] = ()
    folder: ClassVar[Path]
    published: C

    @abstractmethod
    def cells(self, config: C, inputs: Mapping[str, Any]) -> tuple[str, ...]:
        """The names of all cells, in the order in which they are computed."""

    @abstractmethod
    def open(self, run: Run[C]) -> Computation:
        """What computes the cells; nothing is computed yet."""

    @abstractmethod
    def tables(self, cells: Cells, config: C) -> dict[str, str]:
        """Markdown by the name of its place on a page, of the cells that are there."""

    @abstractmethod
    def claims(self, cells: Cells, config: C) -> list[ClaimRow]:
        """The rows of claims that the cells allow, without data, seed and command."""

    def scale(self, cells: Cells, config: C) -> str:
        """What the figures are of, in a line."""
        return ""

    def withheld(self, cells: Cells, config: C) -> list[str]:
        """Why rows of claims are missing although their cells are there."""
        return []

    def compute(self, run: Run[C], only: Sequence[str] = ()) -> None:
        """Compute all cells and draw the figures, or the cells that are named."""
        computation = self.open(run)
        for name in only or self.cells(run.config, run.inputs):
            computation.cell(name)
        if not only:
            computation.draw()

    def settings(self, config: C) -> dict[str, Any]:
        """The options as JSON values have them."""
        return asdict(config)  # type: ignore[call-overload, no-any-return]


def by_kind(name: str, kinds: Mapping[str, Callable[..., Cell]]) -> Cell:
    """The cell `kind/word/...` by the function of its kind, which takes the words."""
    kind, *words = name.split("/")
    if kind not in kinds:
        raise UnknownNameError(unknown_name("kind of cell", kind, kinds))
    return kinds[kind](*words)
