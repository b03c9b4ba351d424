"""Which questions are asked, of whom, and what is right: drawn at random, before anything is blinded.

Right and wrong originals are drawn in one and the same way: people of the same condition, and of each a picture by
another camera than the one shown, where there is one. Otherwise the background would tell who is right.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal, TypeAlias, TypeVar

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import DataError
from veilkit.perception.material import Condition, Material, Picture
from veilkit.rng import Randomness

Kind: TypeAlias = Literal["pair", "choice"]
KINDS: tuple[Kind, ...] = ("pair", "choice")
T = TypeVar("T")
Look: TypeAlias = Callable[[Picture], NDArray[np.float32] | None]
CHECK = "check"
_CANDIDATES = 8  # people of whom the one who looks least alike is taken for a check


@dataclass(frozen=True, slots=True)
class Design:
    """questions: for each condition, over all kinds. choices: originals of a choice. checks: attention checks."""

    kinds: tuple[Kind, ...] = KINDS
    questions: int = 20
    choices: int = 4
    checks: int = 6

    def shares(self, count: int) -> list[tuple[Kind, int]]:
        """How many of `count` questions each kind gets."""
        first = count - count // 2 if len(self.kinds) == 2 else count
        return list(zip(self.kinds, (first, count - first), strict=False))


@dataclass(frozen=True, slots=True)
class Question:
    """A picture and the originals beside it. right: which of them is the person; None where it is another.

    own: the right original is the very one that the picture was made of, for want of another.
    """

    kind: Kind
    condition: str
    shown: Picture
    options: tuple[Picture, ...]
    right: int | None
    own: bool = False


class Planner:
    """Draws the questions of a study.

    look: a glance at a picture as a few colours, None where it cannot be read; asked only of pictures that are drawn.
    """

    def __init__(self, material: Material, design: Design, rng: Randomness, look: Look) -> None:
        self._design, self._rng, self._look, self._draws = design, rng, look, 0
        self._originals: dict[str, list[Picture]] = {}
        for picture in material.originals:
            self._originals.setdefault(picture.person, []).append(picture)
        self._conditions = material.conditions
        self._asked: Counter[str] = Counter()
        self._here: Counter[str] = Counter()  # of one condition and kind
        self._seen: set[Picture] = set()

    def questions(self) -> list[Question]:
        """All questions, condition by condition, and the attention checks at the end."""
        planned = []
        for condition in self._conditions:
            for kind, count in self._design.shares(self._design.questions):
                self._here.clear()
                same = self._halves(count) if kind == "pair" else [True] * count
                planned += [self._question(condition, kind, each) for each in same]
        everybody = Condition(CHECK, None, tuple(each for some in self._originals.values() for each in some))
        for kind, count in self._design.shares(self._design.checks):
            same = self._halves(count) if kind == "pair" else [True] * count
            planned += [self._check(everybody, kind, each) for each in same]
        return planned

    def _question(self, condition: Condition, kind: Kind, same: bool) -> Question:
        by_person = _by_person(condition)
        for person in self._least_asked(list(by_person)):
            for shown in self._fresh_first(by_person[person]):
                right = self._other(person, shown) if self._usable(shown) else None
                # A picture beside itself would ask nothing; that is what checks are for.
                if right is None or (condition.control and right.path == shown.path):
                    continue
                strangers = 1 if kind == "pair" else self._design.choices - 1
                wrong = self._strangers(list(by_person), person, shown, strangers)
                self._asked[person] += 1
                self._here[person] += 1
                self._seen.add(shown)
                own = same and right.path == shown.own
                if kind == "choice":
                    return Question(kind, condition.name, shown, (right, *wrong), 0, own)
                return Question(kind, condition.name, shown, (right if same else wrong[0],), 0 if same else None, own)
        raise DataError(
            f"no question can be asked about {condition.name}: "
            + (
                "nobody has two originals that can be read, so there is no control; leave it out (--no-control)"
                if condition.control
                else "none of its pictures can be read together with an original of the same person"
            )
        )

    def _check(self, everybody: Condition, kind: Kind, same: bool) -> Question:
        """An original beside itself, or beside that of somebody who looks quite different."""
        for shown in self._shuffled(list(everybody.pictures)):
            if self._usable(shown):
                if kind == "choice":
                    wrong = self._strangers(list(self._originals), shown.person, shown, self._design.choices - 1)
                    return Question(kind, CHECK, shown, (shown, *wrong), 0)
                other = shown if same else self._unlike(shown)
                return Question(kind, CHECK, shown, (other,), 0 if same else None)
        raise DataError("no attention check can be made: none of the originals can be read")

    def _unlike(self, shown: Picture) -> Picture:
        count = min(_CANDIDATES, len(self._originals) - 1)
        return max(
            self._strangers(list(self._originals), shown.person, shown, max(1, count), fewest=1),
            key=lambda other: float(np.abs(np.subtract(self._look(other), self._look(shown))).mean()),  # type: ignore[arg-type]
        )

    def _usable(self, picture: Picture) -> bool:
        return self._look(picture) is not None

    def _other(self, person: str, shown: Picture) -> Picture | None:
        """An original of the person: by another camera, else another one, else the shown picture's own."""
        everything = self._shuffled(self._originals[person])
        others = [picture for picture in everything if picture.path != shown.own]
        elsewhere = [picture for picture in others if _another_camera(picture, shown)]
        return next((each for each in (*elsewhere, *others, *everything) if self._usable(each)), None)

    def _strangers(
        self, people: list[str], person: str, shown: Picture, count: int, fewest: int | None = None
    ) -> list[Picture]:
        """Originals of `count` other people, or of at least `fewest`."""
        found: list[Picture] = []
        for stranger in self._shuffled(people):
            if stranger != person and (picture := self._other(stranger, shown)) is not None:
                found.append(picture)
                if len(found) == count:
                    return found
        if len(found) >= (count if fewest is None else fewest):
            return found
        there = "is 1" if not found else f"are {len(found) + 1}"
        raise DataError(
            f"this question needs {count + 1} people with originals that can be read, but there {there}: "
            + ("take more people, fewer --choices, or --kind pair" if count > 1 else "take more people")
        )

    def _least_asked(self, people: list[str]) -> list[str]:
        """In the order to ask about them: who was asked about seldom comes first, so that nobody is learned."""
        return sorted(self._shuffled(people), key=lambda person: (self._here[person], self._asked[person]))

    def _fresh_first(self, pictures: list[Picture]) -> list[Picture]:
        return sorted(self._shuffled(pictures), key=lambda picture: picture in self._seen)

    def _halves(self, count: int) -> list[bool]:
        """As many true as false ones; of an odd number one more of either, at random."""
        return self._shuffled([True, False])[: count % 2] + [True, False] * (count // 2)

    def _shuffled(self, items: list[T]) -> list[T]:
        self._draws += 1
        order = self._rng.child("order", self._draws).permutation(len(items))
        return [items[place] for place in order]


def _by_person(condition: Condition) -> dict[str, list[Picture]]:
    people: dict[str, list[Picture]] = {}
    for picture in condition.pictures:
        people.setdefault(picture.person, []).append(picture)
    return people


def _another_camera(picture: Picture, shown: Picture) -> bool:
    return picture.camera is not None and shown.camera is not None and picture.camera != shown.camera
