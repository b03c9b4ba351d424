"""The ledger of a privacy budget: what was released, when and at what cost, and the vector itself.

A record's noisy vector is kept and given again: a second release of the same record by the same mechanism is the same
vector and costs nothing, while fresh noise would average out. Charge and vector are committed together, before the
vector is handed out, so that a crash can neither lose a charge nor charge twice.
"""

from __future__ import annotations

import datetime
import re
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Literal, Self, TypeAlias, get_args

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from veilkit.errors import BudgetError, ConfigError, DataError, DestinationError
from veilkit.privacy.cost import UNPROVED, Budget, Cost, composed_epsilon
from veilkit.privacy.mechanism import Mechanism
from veilkit.privacy.noise import Noise, SystemNoise
from veilkit.privacy.store import Entry, Store
from veilkit.types import Guarantee, Level

Per: TypeAlias = Literal["record", "person"]
_FORMAT = "veilkit privacy ledger 1"
_REPEAT = re.compile(r"^again \d+: ")


@dataclass(frozen=True, slots=True)
class Spent:
    """What one record or person has lost over all releases: `epsilon` at the budget's delta."""

    key: str
    epsilon: float
    budget: Budget
    releases: int

    @property
    def left(self) -> float:
        """The budget's epsilon less what is spent. Costs compose to less than their sum, so a little more may fit."""
        return max(self.budget.epsilon - self.epsilon, 0.0)


class Ledger:
    """The budget file of one gallery or data set; one process at a time may hold it open.

    per: what a budget belongs to. "record": one picture, whoever is on it. "person": all that is released of one
    person together, for which every release must name its person.

    A new ledger needs `budget` and `per`; an old one knows them, and refuses others. It holds names and protected
    vectors, never a clean one, and must be kept private all the same: it tells who is in the gallery.
    """

    def __init__(
        self, file: Path | str, *, budget: Budget | None = None, per: Per | None = None, noise: Noise | None = None
    ) -> None:
        if per not in (None, "record", "person"):
            raise ConfigError(f"per must be 'record' or 'person', but got {per!r}")
        self.file = Path(file)
        self._noise: Noise = SystemNoise() if noise is None else noise
        self._asked = (budget, per)

    def __enter__(self) -> Self:
        budget, per = self._asked
        facts = None
        if budget is not None and per is not None:
            facts = {"format": _FORMAT, "epsilon": repr(budget.epsilon), "delta": repr(budget.delta), "per": per}
        self._store = Store(self.file, facts=facts)
        try:
            held = self._store.about
            if held.get("format") != _FORMAT:
                raise DestinationError(f"{self.file} is no privacy ledger of this version: choose another file")
            self.budget, self.per = self._promise(held)
            if (budget or self.budget) != self.budget or (per or self.per) != self.per:
                raise ConfigError(
                    f"this ledger has a budget of {_pair(self.budget)} per {self.per}, but was opened with "
                    f"{_pair(budget or self.budget)} per {per or self.per}: a promise once made is not changed"
                )
        except BaseException:
            self._store.close()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._store.close()

    def release(
        self,
        mechanism: Mechanism,
        vectors: Tensor,
        *,
        records: Sequence[str],
        persons: Sequence[str] | None = None,
    ) -> Tensor:
        """What may be published of unit vectors (N, D): float32 (N, D), charged once for each new record.

        records: for each vector the name of its record, which stands for one picture under one model: a known name
        gets its old vector, whatever the vector is now. persons: for each vector whose it is, in a ledger per person.
        All are released or, past the budget of any of them, none (BudgetError).
        """
        mechanism.checked(vectors)
        owners = self._owners(len(vectors), records, persons)
        rows = {record: row for row, record in reversed(list(enumerate(records)))}  # of each record the first
        with self._store.transaction():
            number, held = self._known(mechanism, owners)
            if new := [record for record in rows if record not in held]:
                self._check(Counter(owners[record] for record in new), self._cost(mechanism))
                fresh = mechanism.release(vectors[[rows[record] for record in new]], noise=self._noise)
                blobs = [row.tobytes() for row in fresh.numpy().astype("<f4")]
                now = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds")
                made = list(zip(new, (owners[record] for record in new), blobs, strict=True))
                self._store.add(number, now, made)
                held |= {record: blob for record, _, blob in made}
        return torch.from_numpy(np.stack([np.frombuffer(held[record], dtype="<f4") for record in records]))

    def adopt(
        self,
        mechanism: Mechanism,
        vectors: NDArray[np.float32],
        *,
        records: Sequence[str],
        persons: Sequence[str] | None = None,
    ) -> int:
        """Charge for vectors (N, D) that are out already, as found where they were published; returns how many.

        For a ledger restored from an older copy. Vectors that it knows of cost nothing; another vector of a known
        record is another release. They are charged past the budget too: what is out cannot be taken back.
        """
        if vectors.shape != (len(vectors), mechanism.dimension) or not np.isfinite(vectors).all():
            raise DataError(f"expected finite vectors of {mechanism.dimension}, but what was found published is not")
        owners = self._owners(len(vectors), records, persons)
        wanted = dict(zip(records, np.ascontiguousarray(vectors, dtype="<f4"), strict=True))
        now, charged, times = datetime.datetime.now(datetime.UTC).isoformat(timespec="seconds"), 0, 0
        with self._store.transaction():
            self._known(mechanism, owners)
            while wanted:
                number = self._store.number(_repeat_name(self._description(mechanism), times), self._cost(mechanism))
                held = self._store.vectors(number, list(wanted))
                new = [(name, owners[name], row.tobytes()) for name, row in wanted.items() if name not in held]
                self._store.add(number, now, new)
                charged, times = charged + len(new), times + 1
                wanted = {
                    name: row for name, row in wanted.items() if held.get(name, b"") not in (b"", row.tobytes())
                }
        return charged

    def check(self, mechanism: Mechanism, *, records: Sequence[str], persons: Sequence[str] | None = None) -> None:
        """Raise what `release` would raise of these records, BudgetError above all; nothing is released or charged.

        For work in parts that must be done whole or not at all: as long as this ledger is held, no other release can
        come between.
        """
        owners = self._owners(len(records), records, persons)
        with self._store.transaction():
            _, held = self._known(mechanism, owners)
            self._check(
                Counter(owner for record, owner in owners.items() if record not in held), self._cost(mechanism)
            )

    def released(self, mechanism: Mechanism, records: Sequence[str]) -> dict[str, NDArray[np.float32]]:
        """The vectors (D,) of those of `records` that this mechanism has released: paid for, so they cost nothing."""
        with self._store.transaction():
            number = self._store.number(self._description(mechanism), self._cost(mechanism))
            held = self._vectors(mechanism, number, records)
        return {record: np.frombuffer(blob, dtype="<f4") for record, blob in held.items()}

    def blank(self, records: Sequence[str]) -> None:
        """Forget what was released of records; what it cost stays charged, since it was out."""
        with self._store.transaction():
            self._store.blank(records)

    def owners(self, records: Sequence[str]) -> dict[str, str]:
        """Who was charged for those of `records` that were released."""
        return self._store.owners(records)

    def only(self, mechanism: Mechanism) -> bool:
        """Whether nothing was released by any other mechanism."""
        own = self._description(mechanism)
        return all(_REPEAT.sub("", description) == own for description in self._store.descriptions())

    def spent(self, key: str) -> Spent:
        """What one record or person has lost so far: nothing for one that is not known."""
        costs = self._store.costs([key])[key]
        return Spent(key, composed_epsilon(costs, delta=self.budget.delta), self.budget, costs.total())

    def worst(self) -> Spent | None:
        """Of the record or person who has lost most; None in an empty ledger."""
        return max(map(self.spent, self._store.histories().values()), key=lambda spent: spent.epsilon, default=None)

    def guarantee(self) -> Guarantee:
        """What holds now of everything that was ever released through this ledger."""
        worst = self.worst()
        return Guarantee(
            text=f"local differential privacy per {self.per}, all releases through this ledger composed",
            level=Level.L3,
            epsilon_claimed=self.budget.epsilon,
            epsilon_proved=0.0 if worst is None else worst.epsilon,
            delta=self.budget.delta,
        )

    def entries(self, key: str | None = None) -> Iterator[Entry]:
        """What was released (of one record or person), in the order of records' names."""
        return self._store.entries(key)

    def __len__(self) -> int:
        return self._store.count()

    def _cost(self, mechanism: Mechanism) -> Cost:
        return mechanism.cost if self._noise.secure else UNPROVED

    def _description(self, mechanism: Mechanism) -> str:
        return mechanism.describe() if self._noise.secure else f"insecure noise: {mechanism.describe()}"

    def _known(self, mechanism: Mechanism, owners: dict[str, str]) -> tuple[int, dict[str, bytes]]:
        """The mechanism's number, and the vectors of those records that it has released, each to its own person."""
        names = list(owners)
        for record, owner in self._store.owners(names).items():
            if owner != owners[record]:
                raise DataError("a record was released before as another person's: a record belongs to one")
        number = self._store.number(self._description(mechanism), self._cost(mechanism))
        return number, self._vectors(mechanism, number, names)

    def _vectors(self, mechanism: Mechanism, number: int, records: Sequence[str]) -> dict[str, bytes]:
        held = self._store.vectors(number, records)
        if any(len(blob) != 4 * mechanism.dimension for blob in held.values()):
            raise self._store.damaged(f"it holds vectors that are not of {mechanism.dimension} numbers")
        return held

    def _promise(self, held: Mapping[str, str]) -> tuple[Budget, Per]:
        """The budget of a ledger, and what it belongs to."""
        try:
            budget = Budget(epsilon=float(held["epsilon"]), delta=float(held["delta"]))
        except (KeyError, ValueError, ConfigError):
            raise self._store.damaged("it holds no budget") from None
        for per in get_args(Per):
            if held.get("per") == per:
                return budget, per
        raise self._store.damaged("it does not say what its budget belongs to")

    def _owners(self, count: int, records: Sequence[str], persons: Sequence[str] | None) -> dict[str, str]:
        """For each record whose budget it is charged to."""
        if self.per == "record" and persons is not None:
            raise ConfigError("this ledger counts per record and knows no persons: leave persons out")
        if self.per == "person" and persons is None:
            raise ConfigError("this ledger counts per person: name with persons= whose each vector is")
        for what, names in (("record", records), ("person", persons)):
            if names is None:
                continue
            if isinstance(names, str) or len(names) != count:
                raise DataError(f"expected one {what} for each of {count} vectors, but got {len(names)}")
            if not all(isinstance(name, str) and name and name.isprintable() for name in names):
                raise DataError(f"expected the name of each {what} as printable text, not empty, but got another")
        owners: dict[str, str] = {}
        for record, owner in zip(records, records if persons is None else persons, strict=True):
            if owners.setdefault(record, owner) != owner:
                raise DataError("one record was given with two different persons: a record belongs to one")
        return owners

    def _check(self, wanted: Counter[str], cost: Cost) -> None:
        """Refuse what would take anybody past the budget."""
        over: list[tuple[float, float, str]] = []
        for key, costs in self._store.costs(list(wanted)).items():
            after = composed_epsilon(costs + Counter({cost: wanted[key]}), delta=self.budget.delta)
            if not self.budget.covers(after):
                over.append((after, composed_epsilon(costs, delta=self.budget.delta), key))
        if over:
            over.sort(reverse=True)
            after, before, key = over[0]
            each = f"epsilon {cost.epsilon:g}, delta {cost.delta:g}" if cost.proved else "an epsilon nothing bounds"
            raise BudgetError(
                f"the budget is {_pair(self.budget)} per {self.per}, but this release would take {len(over)} of "
                f"{len(wanted)} past it, the worst from epsilon {before:.6g} to {after:.6g}, with {wanted[key]} more "
                f"at {each}; nothing was released: release fewer, or under a smaller epsilon",
                tuple(key for _, _, key in over),
            )


def _repeat_name(description: str, times: int) -> str:
    """A mechanism as the ledger names it where it has released another vector of a record before, so many times.

    >>> _repeat_name("privunit", 0), _repeat_name("privunit", 1)
    ('privunit', 'again 1: privunit')
    """
    return f"again {times}: {description}" if times else description


def _pair(budget: Budget) -> str:
    return f"epsilon {budget.epsilon:g}, delta {budget.delta:g}"
