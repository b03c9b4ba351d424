"""The private key of a study: what is right, and which protection each question was about.

Codes come from the study's secret and from nothing else, and questions and options are sorted by them: neither code
nor order depends on who is shown, how, or what is right.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, ValidationError

from veilkit.errors import KeyFileError
from veilkit.perception.material import Picture
from veilkit.perception.plan import CHECK, Kind, Question
from veilkit.rng import Randomness
from veilkit.secret_file import check_private, read_secret

SAME, DIFFERENT = "same", "different"
_SHARE_OF_CHECKS = 0.8
_BYTES = 9  # of a code


class KeyQuestion(BaseModel):
    """One question. options: the answers to choose from. person: a number for who is shown. own: see `Question`."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    kind: Kind
    condition: str
    options: tuple[str, ...]
    answer: str
    person: int
    own: bool

    @property
    def is_check(self) -> bool:
        """Whether it asks for attention only."""
        return self.condition == CHECK


class KeyCondition(BaseModel):
    """A protected folder by its name, with the method that its manifest names; or the control."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    name: str
    method: str | None
    control: bool


class StudyKey(BaseModel):
    """Everything that the page must not tell.

    checks_needed: how many attention checks must be right for a participant to count, fixed before anybody answers.
    participants: the only codes that may take part; None where anybody may. seed: draws the same study again.
    """

    model_config = ConfigDict(frozen=True, extra="forbid")

    format: Literal["veilkit-study-key-1"] = "veilkit-study-key-1"
    veilkit: str
    study: str
    page_sha256: str
    seed: int | None
    choices: int
    conditions: tuple[KeyCondition, ...]
    checks_needed: int
    participants: tuple[str, ...] | None
    questions: dict[str, KeyQuestion]


def checks_needed(checks: int) -> int:
    """At least four of five.

    >>> [checks_needed(count) for count in (0, 1, 4, 6)]
    [0, 1, 4, 5]
    """
    return math.ceil(_SHARE_OF_CHECKS * checks)


@dataclass(frozen=True, slots=True)
class Blinded:
    """page: the questions as the page holds them. key: the same by their codes."""

    page: list[dict[str, Any]]
    key: dict[str, KeyQuestion]


def blind(questions: Sequence[Question], rng: Randomness, address: Callable[[Picture], str]) -> Blinded:
    """Give every question and option a random code. address: the bytes of a picture as a data address."""
    numbers = {person: n for n, person in enumerate(sorted({question.shown.person for question in questions}))}
    page, key = {}, {}
    for place, question in enumerate(questions):
        code = rng.child("question", place).bytes(_BYTES).hex()
        codes = [rng.child("option", place, n).bytes(_BYTES).hex() for n in range(len(question.options))]
        options = dict(sorted(zip(codes, question.options, strict=True)))
        page[code] = {
            "code": code,
            "kind": question.kind,
            "shown": address(question.shown),
            "options": [{"code": each, "image": address(picture)} for each, picture in options.items()],
        }
        pair = question.kind == "pair"
        key[code] = KeyQuestion(
            kind=question.kind,
            condition=question.condition,
            options=(SAME, DIFFERENT) if pair else tuple(options),
            answer=(DIFFERENT if question.right is None else SAME) if pair else codes[question.right or 0],
            person=numbers[question.shown.person],
            own=question.own,
        )
    return Blinded([page[code] for code in sorted(page)], {code: key[code] for code in sorted(key)})


def read_study_key(file: Path) -> StudyKey:
    """Read a key file."""
    try:
        data, status = read_secret(file)
        key = StudyKey.model_validate_json(data)
    except FileNotFoundError:
        raise KeyFileError(f"there is no key {file}: name the one that `veilkit study make` wrote") from None
    except OSError as error:
        raise KeyFileError(f"the key {file} cannot be read: {error.strerror}") from None
    except ValidationError as error:
        raise KeyFileError(
            f"{file} is not the key of a study ({error.error_count()} wrong fields): "
            "name the key.json that `veilkit study make` wrote"
        ) from None
    check_private(file, status)
    return key
