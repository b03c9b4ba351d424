"""When learned pictures become the supervision: every branch of the rule, and the figure that shows it."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from veilkit.methods.privacyreid.supervision import Limits, Supervision, decide, write_decisions

LIMITS = Limits(psnr=20.0, ssim=0.5, rank1=0.40)
PRIVATE, LIKE, ALIKE = (
    (20.9, 0.54),
    (21.1, 0.54),
    (20.9, 0.56),
)  # PSNR and SSIM: within both, over one, over the other
FIRST = Supervision(0.35)
UPGRADED = Supervision(0.45, upgraded=True)


def test_the_first_mark_lies_below_what_desensitised_pictures_reach() -> None:
    assert LIMITS.first_rank1 == pytest.approx(0.35)
    assert Limits(20, 0.5, None).first_rank1 is None


@pytest.mark.parametrize(
    ("likeness", "rank1", "before", "action", "after"),
    [
        (PRIVATE, 0.36, FIRST, "upgrade", Supervision(0.36, upgraded=True)),
        (PRIVATE, 0.35, FIRST, "keep", FIRST),  # as good is not better
        (LIKE, 0.90, FIRST, "keep", FIRST),
        (ALIKE, 0.90, FIRST, "keep", FIRST),
        (PRIVATE, 0.46, UPGRADED, "upgrade", Supervision(0.46, upgraded=True)),
        (PRIVATE, 0.44, UPGRADED, "keep", UPGRADED),
        (LIKE, 0.90, UPGRADED, "revert", Supervision(0.45)),  # what is not private sets no mark
        (ALIKE, 0.10, UPGRADED, "revert", Supervision(0.45)),
        (PRIVATE, 0.44, Supervision(0.45), "keep", Supervision(0.45)),  # after a revert the old mark is to be beaten
    ],
)
def test_each_branch(
    likeness: tuple[float, float], rank1: float, before: Supervision, action: str, after: Supervision
) -> None:
    assert decide(*likeness, rank1, limits=LIMITS, before=before) == (action, after)


def test_limits_are_strict() -> None:
    assert not LIMITS.private(21.0, 0.1)
    assert not LIMITS.private(1.0, 0.55)
    assert LIMITS.private(20.999, 0.549)


def test_the_log_holds_every_number_and_the_figure_every_check(tmp_path: Path) -> None:
    decisions = [
        {"epoch": 5 * place, "action": action, "psnr": 20.0 + place, "ssim": 0.5, "rank1": 0.1 * place,
         "psnr_limit": 21.0, "ssim_limit": 0.55, "rank1_to_beat": None if action == "off" else 0.3}
        for place, action in enumerate(("keep", "upgrade", "revert", "off"), 1)
    ]  # fmt: skip
    write_decisions(tmp_path, decisions)
    assert [json.loads(line) for line in (tmp_path / "decisions.jsonl").read_text().splitlines()] == decisions
    root = ET.fromstring((tmp_path / "decisions.svg").read_text())
    marks = [mark for mark in root if mark.get("class") == "check"]
    assert len(marks) == 3 * len(decisions) + 3  # and three in the legend
    assert len({mark.get("fill") for mark in marks}) == 3
    write_decisions(tmp_path, [])
    assert (tmp_path / "decisions.jsonl").read_text() == ""
