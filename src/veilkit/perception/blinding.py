"""From questions to what the page may show and what only the key knows.

Codes come from the study's secret and from nothing else, and questions and options are sorted by them: neither code
nor order depends on who is shown, how, or what is right.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from veilkit.perception.key import DIFFERENT, SAME, KeyQuestion
from veilkit.perception.material import Picture
from veilkit.perception.plan import Question
from veilkit.rng import Randomness

_BYTES = 9  # of a code


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
        told = DIFFERENT if question.right is None else SAME
        key[code] = KeyQuestion(
            kind=question.kind,
            condition=question.condition,
            options=(SAME, DIFFERENT) if pair else tuple(options),
            answer=told if pair else codes[question.right or 0],
            person=numbers[question.shown.person],
            own=question.own,
        )
    return Blinded([page[code] for code in sorted(page)], {code: key[code] for code in sorted(key)})
