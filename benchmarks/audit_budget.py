"""Whether `veilkit audit --budget` keeps to the clock: a small folder audited under two budgets, each from scratch.

    python benchmarks/audit_budget.py

takes about six minutes. Run it alone: on a machine that does other work the time goes to that, and where it is too
slow for anybody to learn in the smaller budget, nothing is recorded.
"""

from __future__ import annotations

import json
import tempfile
from pathlib import Path
from typing import Any

from claims import record
from process import completed
from veilkit.audit.options import seconds_of
from veilkit.pipeline.protect import protect
from veilkit.synthetic.people import generate_people

COMMAND = "python benchmarks/audit_budget.py"
BUDGETS = ("2m", "4m")
ATTACKS = ("stock_recogniser", "linkage", "own_original", "recovery")
PEOPLE = {"identities": 48, "images": 4, "cameras": 2, "seed": 3, "height": 64}


def spent(root: Path, budget: str) -> tuple[float, dict[str, Any]]:
    """Seconds that an audit took under a budget, starting up included, and what it chose."""
    out = root / f"audit-{budget}"
    words = [word for attack in ATTACKS for word in ("--attack", attack)]
    done = completed(
        "audit", root / "people", root / "release", "--seed", "1", "--out", out, "--budget", budget, *words,
        OMP_NUM_THREADS="1",
    )  # fmt: skip
    return done.seconds, json.loads((out / "audit.json").read_text())["config"]["budget"]


def main() -> None:
    ratios, told = [], []
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        generate_people(root / "people", workers=1, **PEOPLE)
        protect(root / "people", root / "release", "pixelate", seed=1)
        for budget in BUDGETS:
            seconds, choice = spent(root, budget)
            if not choice["updates"]:
                raise SystemExit(f"nobody could learn within {budget}, which would be no test: {choice['why']}")
            ratios.append(seconds / seconds_of(budget))
            told.append(f"{budget}: {seconds:.0f} s, {choice['updates']} updates")
    record(
        id="audit-budget",
        claim="Time that `veilkit audit --budget` takes, against the budget: the larger of two",
        figure=round(max(ratios), 2),
        bar="<= 1.2",
        unit="x",
        data="generated people",
        scale=f"{PEOPLE['identities'] // 2} test people, {len(ATTACKS)} attacks, one of whom learns; one thread",
        seed=PEOPLE["seed"],
        command=COMMAND,
        note="; ".join(told),
    )


if __name__ == "__main__":
    main()
