"""Studies of nobody, and participants who answer as told."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

from tests.audit.folders import blur, changed, noise, plain
from veilkit.perception import Made, make_study
from veilkit.perception.key import KeyQuestion, StudyKey, read_study_key
from veilkit.perception.plan import Design

Answers = Callable[[str, KeyQuestion], str]


def folders(root: Path, people: int = 12, shots: int = 3) -> tuple[Path, Path, Path]:
    """Originals, and the same blurred and as noise, under kept names."""
    originals = plain(root / "originals", people=people, shots=shots)
    return originals, changed(originals, root / "blurred", blur), changed(originals, root / "noisy", noise)


def make(root: Path, target: str = "study", design: Design | None = None, **options: Any) -> Made:
    """A study of both protected folders in `root`."""
    return make_study(
        root / "originals", [root / "blurred", root / "noisy"], root / target, design=design, **options
    )  # fmt: skip


def page_data(made: Made) -> dict[str, Any]:
    """What the page's script reads."""
    text = made.page.read_text()
    start = text.index('id="data">') + len('id="data">')
    return json.loads(text[start : text.index("</script>", start)])


def truth(code: str, question: KeyQuestion) -> str:
    return question.answer


def wrong(code: str, question: KeyQuestion) -> str:
    return next(option for option in question.options if option != question.answer)


def attentive(other: Answers) -> Answers:
    """Right on attention checks, and `other` elsewhere."""
    return lambda code, question: question.answer if question.is_check else other(code, question)


def sheet(key: StudyKey, participant: str, answers: Answers, ms: int = 1000) -> dict[str, Any]:
    """What the page saves. ms: of the first question; each takes one more."""
    return {
        "format": "veilkit-study-answers-1",
        "study": key.study,
        "participant": participant,
        "answers": [
            {"question": code, "answer": answers(code, question), "ms": ms + place}
            for place, (code, question) in enumerate(key.questions.items())
        ],
    }


def hand_in(made: Made, participant: str, answers: Answers, ms: int = 1000) -> Path:
    """A file as a participant saves it."""
    file = made.page.parent / f"answers-{participant}.json"
    file.write_text(json.dumps(sheet(read_study_key(made.key), participant, answers, ms)))
    return file
