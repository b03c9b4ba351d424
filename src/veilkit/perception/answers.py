"""The answers that participants hand in: files that anybody may have changed, so everything in them is checked."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Annotated, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from veilkit.errors import DataError
from veilkit.perception.key import StudyKey

_LARGEST = 10_000_000  # bytes of a file
_A_DAY = 86_400_000  # milliseconds


class Answer(BaseModel):
    """One answer, and the milliseconds between the sight of the pictures and it."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    question: str
    answer: str
    ms: Annotated[int, Field(ge=0)]


class Sheet(BaseModel):
    """All answers of one participant."""

    model_config = ConfigDict(frozen=True, extra="forbid", strict=True)

    format: Literal["veilkit-study-answers-1"]
    study: str
    participant: Annotated[str, Field(pattern=r"^[A-Za-z0-9_\-]{1,32}$")]
    answers: list[Answer]

    @property
    def given(self) -> dict[str, Answer]:
        """The answers by the codes of their questions."""
        return {answer.question: answer for answer in self.answers}


def read_answers(files: Sequence[Path], key: StudyKey) -> list[Sheet]:
    """Read and check files of answers to the study of `key`, one for each participant, in order of their codes."""
    if not files:
        raise DataError("expected files of answers, but got none: the page lets each participant save one at the end")
    sheets: dict[str, Sheet] = {}
    whose: dict[str, Path] = {}
    for file in files:
        sheet = _read(file)
        _check(file, sheet, key)
        if sheet.participant in sheets:
            raise DataError(
                f"{whose[sheet.participant]} and {file} are both of participant {sheet.participant}: "
                "keep one of them, and decide which without looking at the score"
            )
        sheets[sheet.participant], whose[sheet.participant] = sheet, file
    _distinct(sheets, whose)
    return [sheets[participant] for participant in sorted(sheets)]


def _read(file: Path) -> Sheet:
    try:
        with file.open("rb") as opened:
            data = opened.read(_LARGEST + 1)
    except OSError as error:
        raise DataError(f"the answers {file} cannot be read: {error.strerror}") from None
    if len(data) > _LARGEST:
        raise DataError(f"{file} is no file of answers: expected at most {_LARGEST} bytes, but it has more")
    try:
        return Sheet.model_validate_json(data)
    except ValidationError as error:
        first = error.errors(include_url=False, include_input=False)[0]
        where = ".".join(str(part) for part in first["loc"]) or "the file"
        raise DataError(
            f"{file} is no file of answers as the page saves it: {where}: {first['msg']}. Ask the participant for it "
            "again; it may have been changed"
        ) from None


def _check(file: Path, sheet: Sheet, key: StudyKey) -> None:
    if sheet.study != key.study:
        raise DataError(f"{file} answers another study: expected {key.study}, but got {sheet.study[:32]!r}")
    if key.participants is not None and sheet.participant not in key.participants:
        raise DataError(f"{file} is of participant {sheet.participant}, who is none of the codes that were given out")
    if len(sheet.given) != len(sheet.answers):
        raise DataError(f"{file} answers a question twice, which the page does not do: it was changed")
    asked = set(key.questions)
    if set(sheet.given) - asked:
        raise DataError(f"{file} answers questions that the study does not ask: it was changed")
    if missing := len(asked - set(sheet.given)):
        raise DataError(
            f"{file} lacks {missing} of {len(asked)} answers: the page saves them only when all are given. "
            "Leave the file out, or ask the participant to finish"
        )
    for answer in sheet.answers:
        if answer.answer not in key.questions[answer.question].options:
            raise DataError(f"{file} holds an answer that its question does not offer: it was changed")
        if answer.ms > _A_DAY:
            raise DataError(f"{file} holds an answer that took more than a day: it was changed")


def _distinct(sheets: dict[str, Sheet], whose: dict[str, Path]) -> None:
    """Two people never need the same milliseconds for everything."""
    seen: dict[frozenset[tuple[str, str, int]], str] = {}
    for participant, sheet in sheets.items():
        content = frozenset((answer.question, answer.answer, answer.ms) for answer in sheet.answers)
        if content in seen:
            raise DataError(
                f"{whose[seen[content]]} and {whose[participant]} hold the same answers after the same times: "
                "one is a copy under another code; leave it out"
            )
        seen[content] = participant
