"""Jigsaw reassembly: patch recombination (PRO) put back together, and the people in it recognised (L1)."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Self

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.headline import undoing_headline
from veilkit.attacks.intervals import mean_score
from veilkit.attacks.jigsaw.assembly import Puzzle, assemble
from veilkit.attacks.jigsaw.grid import Grid, Indices, Patches, Seams, find_grid
from veilkit.attacks.jigsaw.groups import Links, groups_of_pictures, with_partners
from veilkit.attacks.jigsaw.same_source import Lessons, describe, generated_people
from veilkit.attacks.jigsaw.truth import Truth
from veilkit.attacks.pictures import HeldPictures, Pictures, resized
from veilkit.attacks.recovered import one_size, recognised
from veilkit.attacks.target import given
from veilkit.rng import Randomness
from veilkit.types import Evidence, Level, Reason, ReasonCode

NO_GRID = Reason(ReasonCode.NOTHING_TO_UNDO, "no patch grid found in the pictures")
_PUBLIC = 24  # public pictures are enough: what is learned has few parameters
_PATCHES = 16_384  # that are compared with each other; beyond, some pictures are attacked with their partners
_PIXELS = 12_000_000  # that are held at a time
_GROUP = 2048  # patches of one puzzle
_TRIAL = 32  # pictures are enough for a gate: each is a puzzle of its own
_MATCHED = 0.9  # of the patches; else pieces were dealt to or from pictures that are not among those audited
_CLEAN = 0.95  # of the neighbours must be found where every patch lies in its place


class Jigsaw(Attack):
    """Cuts the release along its grid, finds which pictures exchanged patches, and puts the sources together.

    The adversary knows that patches were dealt out, but not the key: neither groups nor places. It finds the grid in
    the pictures, takes groups from seams that fit across pictures, and reassembles each group by seams, by where
    patches usually lie and by what patches of one picture have in common, all learned from generated people. A patch
    is an original's where it equals one of its patches, which only the score uses.

    Gates: neither originals nor noise show a grid, so both are cut along the one found in the release. On the
    originals every patch lies in its place and must be left there; in noise no original's neighbours may be found.
    """

    name = "jigsaw"
    summary = "puts pictures together again whose patches were dealt out among several people"
    level = Level.L1
    headline = undoing_headline(
        "Patches put back together",
        "who knows how pictures were mixed, but not the key,",
        "puts the pictures' patches back together",
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS})

    def __init__(self) -> None:
        self._shape: tuple[int, int] | None = None

    def informed_by(self, evidence: Evidence) -> Self:
        """Take the number of rows and columns as known."""
        rows, columns = evidence.details["grid"]
        self._shape = int(rows), int(columns)
        return self

    def run(self, target: AttackTarget) -> Evidence:
        """Neighbours put back, patches back with their source, and Rank-1 of the reassembled pictures."""
        part, others = one_size(target, None if self._shape is None else _TRIAL)
        protected = given(part.protected)
        size = (int(protected.sizes[0][0]), int(protected.sizes[0][1]))
        grid = self._grid(protected, size)
        if grid is None:
            return self.not_applicable(NO_GRID)
        cells = int(np.prod(grid.shape(size)))
        most = max(2, min(_PATCHES // cells, _PIXELS // (size[0] * size[1])))
        chosen, whole = with_partners(protected, grid, most, target.rng.child(self.name, "pictures"))
        part = part.only(chosen)
        lessons = Lessons.learn(generated_people(size, _PUBLIC), grid)
        patches = grid.cut(_images(given(part.protected), size))
        solved = reassemble(patches, grid.shape(size), lessons, target.rng.child(self.name))
        details = {
            "grid": list(grid.shape(size)),
            "pictures attacked": len(chosen),
            "pictures of other sizes": others,
            "pictures scored": len(whole),
            "group sizes": {
                str(k): int(v) for k, v in zip(*np.unique(solved.sizes, return_counts=True), strict=True)
            },
            "places kept": solved.kept,
            "public pictures": "generated people",
        }
        return _scored(self, part, patches, grid, size, solved.order, np.searchsorted(chosen, whole), details)

    def _grid(self, pictures: Pictures, size: tuple[int, int]) -> Grid | None:
        if self._shape is not None:
            return Grid(max(2, -(-size[0] // self._shape[0])), max(2, -(-size[1] // self._shape[1])))
        return find_grid(pictures) if len(pictures) > 1 else None

    def clean_bound(self, target: AttackTarget) -> float | None:
        """Nearly all neighbours: there is nothing to undo, and little may be lost."""
        return _CLEAN


@dataclass(frozen=True, slots=True, eq=False)
class Solved:
    """order (P,): the patch in each slot of the reassembled pictures. sizes: of the groups. kept: places were."""

    order: Indices
    sizes: list[int]
    kept: bool


def reassemble(patches: Patches, shape: tuple[int, int], lessons: Lessons, rng: Randomness) -> Solved:
    """Put the patches (P, h, w, 3) of pictures with a grid of (rows, columns) together again."""
    cells = shape[0] * shape[1]
    right, below = Seams.right_of(patches), Seams.below(patches)
    links = Links.of(right, below)
    kept = links.keep_places(shape)
    groups = groups_of_pictures(links, len(patches) // cells, cells, _GROUP)
    described = describe(patches)
    order = np.empty(len(patches), dtype=np.int64)
    for number, group in enumerate(groups):
        members = (group[:, None] * cells + np.arange(cells)).ravel()
        puzzle = Puzzle(
            lessons.neighbours(right.costs(members, members)),
            lessons.neighbours(below.costs(members, members)),
            lessons.same_source(described[members]),
            lessons.places(described[members], shape),
            shape,
            kept,
        )
        order[members] = members[assemble(puzzle, rng.child("group", number))]
    return Solved(order, [len(group) for group in groups], kept)


def _images(pictures: Pictures, size: tuple[int, int]) -> Tensor:
    """(N, 3, H, W) of all pictures, resized where they have another size."""
    return torch.cat([resized(pictures.load(index)[None], size) for index in range(len(pictures))])


def _scored(
    attack: Attack,
    part: AttackTarget,
    patches: Patches,
    grid: Grid,
    size: tuple[int, int],
    order: Indices,
    scored: Indices,
    details: dict[str, object],
) -> Evidence:
    truth = Truth.of(patches, grid.cut(_images(given(part.originals), size)), grid, size)
    before = np.arange(len(order))
    chance = {"neighbours": chance_of_neighbours(len(part.clusters), grid.shape(size))}
    scores, released = [], {}
    matched = float((truth.released >= 0).mean())
    warning = "" if matched > _MATCHED else f"; {1 - matched:.0%} of the patches are of no original here: too low"
    for metric, values, then in (
        ("neighbours", truth.neighbours(order), truth.neighbours(before)),
        ("own source", truth.gathered(order)[0], truth.gathered(before)[0]),
    ):
        released[metric] = float(then[scored].mean())
        known = f"chance {chance[metric]:.2%}; " if metric in chance else ""
        note = f"{known}as released {released[metric]:.2%}{warning}"
        scores.append(mean_score(metric, values[scored], part.clusters[scored], rng=part.rng, note=note))
    if part.recogniser is not None and len(scored) > 1:
        joined = HeldPictures(grid.join(patches[order], size)).features(part.recogniser)
        as_released = HeldPictures(grid.join(patches, size)).features(part.recogniser)
        ranks, ranks_chance, ranks_then = recognised(
            part.only(scored), joined[_holder(truth, order, scored)], as_released[_holder(truth, before, scored)]
        )
        scores += ranks
        chance |= ranks_chance
        released |= ranks_then
        details["recogniser"] = part.recogniser.name
    details |= {"chance": chance, "as released": released, "patches matched": matched}
    return Evidence(attack.name, attack.level, tuple(scores), details=details)


def _holder(truth: Truth, order: Indices, scored: Indices) -> Indices:
    """For each scored original the picture that holds most of its patches; the one of its name where none does."""
    picture = truth.gathered(order)[1][scored]
    return np.where(picture >= 0, picture, scored)


def chance_of_neighbours(pictures: int, shape: tuple[int, int]) -> float:
    """The share of pairs who are neighbours again after all patches of all pictures are laid out at random."""
    rows, columns = shape
    patches = pictures * rows * columns
    kinds: NDArray[np.float64] = pictures * np.array([rows * (columns - 1), (rows - 1) * columns], dtype=np.float64)
    return float(np.square(kinds).sum() / (kinds.sum() * patches * (patches - 1)))
