"""What a gallery says of itself: gallery.json, for everybody who may search it."""

from __future__ import annotations

import math
import os
from pathlib import Path
from typing import Annotated, Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from veilkit.errors import DataError, DestinationError, VeilkitError
from veilkit.gallery.milvus import check_url
from veilkit.lookup import Lookup
from veilkit.privacy import MECHANISMS, Budget, DisguisePaper, Mechanism, PeprPaper, affordable

FACTS = "gallery.json"
VECTORS = "vectors.db"
LARGEST_DIMENSION = 32_768  # Milvus' own limit
_KINDS: Lookup[type[Mechanism]] = Lookup(
    "mechanism", [*MECHANISMS.items(), *((kind.name, kind) for kind in (PeprPaper, DisguisePaper))]
)


class Facts(BaseModel):
    """The public facts, fixed when a gallery is made; a promise once made is not changed.

    gallery: a random name of its own. expert, expert_fingerprint: who makes features of pictures, if anybody.
    epsilon_claimed, epsilon_proved: of each released vector by itself (infinite where nothing is proved).
    budget_epsilon, budget_delta: the most that one record, or one person, may lose over all releases. url: of the
    Milvus server; None where the vectors lie beside this file.
    """

    model_config = ConfigDict(frozen=True, extra="forbid", ser_json_inf_nan="strings")

    format: Literal["veilkit gallery 1"] = "veilkit gallery 1"
    veilkit: str
    gallery: Annotated[str, Field(pattern=r"^[0-9a-f]{32}$")]
    dimension: Annotated[int, Field(ge=1, le=LARGEST_DIMENSION)]
    expert: str | None = None
    expert_fingerprint: str | None = None
    mechanism: dict[str, Any]
    guarantee: str
    epsilon_claimed: float
    epsilon_proved: float
    delta: float
    per: Literal["record", "person"]
    budget_epsilon: float
    budget_delta: float
    key_commitment: str
    url: str | None = None
    collection: Annotated[str, Field(pattern=r"^[A-Za-z0-9_]{1,255}$")]

    @property
    def budget(self) -> Budget:
        """The budget of each record or person."""
        return Budget(epsilon=self.budget_epsilon, delta=self.budget_delta)

    def make_mechanism(self) -> Mechanism:
        """The mechanism that every vector of this gallery goes through."""
        parameters = dict(self.mechanism)
        return _KINDS[parameters.pop("mechanism")](**parameters)

    def uri(self, folder: Path) -> str:
        """Where the vectors are: a server's URL, or a file in the gallery's folder."""
        return self.url or str(folder / VECTORS)


def read_facts(folder: Path) -> Facts:
    """The facts of the gallery in `folder`."""
    file = folder / FACTS
    try:
        facts = Facts.model_validate_json(file.read_bytes())
    except (FileNotFoundError, NotADirectoryError):
        raise DataError(
            f"there is no gallery at {folder}, since it holds no {FACTS}: make one with `veilkit gallery create`"
        ) from None
    except OSError as error:
        raise DataError(f"the gallery {folder} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        why = f"{error.error_count()} wrong fields"
    else:
        if not (why := contradiction(facts)):
            return facts
    raise DataError(
        f"{file} is not a gallery that this version reads ({why}): restore it from a copy, since what a gallery "
        "promises is never changed"
    )


def contradiction(facts: Facts) -> str:
    """What in `facts` cannot be; empty if nothing."""
    try:
        mechanism, budget = facts.make_mechanism(), facts.budget
        if facts.url is not None:
            check_url(facts.url)
        wanted = (mechanism.dimension, mechanism.epsilon, mechanism.cost.epsilon, mechanism.cost.delta)
    except (VeilkitError, TypeError, KeyError, ValueError, ArithmeticError) as error:
        return f"its mechanism, budget or server is of no use: {type(error).__name__}"
    stated = (facts.dimension, facts.epsilon_claimed, facts.epsilon_proved, facts.delta)
    if any(not math.isclose(one, other, rel_tol=1e-9) for one, other in zip(stated, wanted, strict=True)):
        return "it states other numbers than those of its mechanism"
    return "" if affordable(mechanism.cost, budget) >= 1 else "its budget allows no release"


def write_facts(folder: Path, facts: Facts) -> None:
    """Write gallery.json, whole or not at all; from then on there is a gallery."""
    write_whole(folder / FACTS, (facts.model_dump_json(indent=2) + "\n").encode())


def write_whole(file: Path, data: bytes) -> None:
    """Write a file that is seen under its name only when it is complete and on the disk."""
    draft = file.with_name(f".{file.name}.part")
    try:
        with draft.open("wb") as out:
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        draft.replace(file)
    except OSError as error:
        raise DestinationError(f"{file} cannot be written: {error.strerror}") from None
