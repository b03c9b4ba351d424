"""How often a sound attacker passes its gates, and whether one whose training was cut short ever passes for "safe".

    python benchmarks/audit_gates.py [--only quick|learners|short] [--attack NAME] [--rows]

Gates call an attack invalid that proves nothing; one that calls sound attacks invalid as well leaves a reader without
a verdict. So each attack runs on small sets of generated people, drawn anew for each seed: once where nothing is
protected and once where only noise is released. A run is valid if no gate fails. Cells are kept in
runs/audit_gates, and a stopped command goes on; --rows writes the claims of what there is, without computing.
"""

from __future__ import annotations

import argparse
import json
import tempfile
import time
from collections.abc import Callable
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import torch
from PIL import Image

from claims import ROOT, record
from veilkit.attacks import ATTACKS, Attack, AttackTarget, Budget, Trial, run_gated
from veilkit.attacks.headline import Cost
from veilkit.attacks.learned.foreground import foreground
from veilkit.attacks.pictures import HeldPictures
from veilkit.attacks.search import plan_search
from veilkit.audit.verdicts.verdict import Thresholds, grade
from veilkit.audit.verdicts.wording import found, unproven
from veilkit.experts import load_expert
from veilkit.methods import METHODS
from veilkit.rng import Randomness
from veilkit.synthetic.people import render_person
from veilkit.types import Evidence, ImageBatch

COMMAND = "python benchmarks/audit_gates.py"
CELLS = ROOT / "runs" / "audit_gates"
SEEDS = 20
POOL, PEOPLE, SHOTS, SIZE = 64, 20, 3, (32, 16)
UPDATES, CUT = 300, 6  # of a training, and of one that is cut short
ENOUGH = 0.9  # share of valid runs that a gate should leave
OWN = {"jigsaw": "patches", "unmix": "mixup"}  # attacks of one method alone, tried on it and not on the originals
NOT_ON_NOISE = {"jigsaw", "unmix", "stolen_decoder"}  # noise holds no grid, no blend and nothing to decode
NOT_HERE = {
    "feature_matching": "needs an expert that passes on gradients, and minutes a run",
    "attribute_path": "needs a method that injects identities",
    "identity_inversion": "needs a method that injects identities",
    "farthest_match": "finds only what was pushed away",
}


@cache
def pool() -> torch.Tensor:
    """(POOL, SHOTS, 3, H, W) in [0, 1]."""
    height, width = SIZE
    file = CELLS / "pool.npy"
    if not file.exists():
        drawn = [
            np.asarray(Image.fromarray(render_person(3, person, 1 + shot % 2, shot, height=96, width=48))
                       .resize((width, height), Image.Resampling.BOX))
            for person in range(POOL) for shot in range(SHOTS)
        ]  # fmt: skip
        CELLS.mkdir(parents=True, exist_ok=True)
        np.save(file, np.stack(drawn))
    return torch.from_numpy(np.load(file)).permute(0, 3, 1, 2).float().div(255).unflatten(0, (POOL, SHOTS))


def target_of(seed: int, updates: int, work: Path) -> AttackTarget:
    """People drawn at random, nothing of whom is protected."""
    some = np.random.default_rng([11, seed]).choice(POOL, PEOPLE, replace=False)
    images = pool()[some].flatten(0, 1)
    people = np.arange(len(images)) // SHOTS
    everything = range(len(images))
    search, _ = plan_search([f"p{code}" for code in people], [None] * len(images), everything, everything)
    raw, expert = HeldPictures(images), load_expert("histogram")
    return AttackTarget(
        rng=Randomness.from_seed(seed), protected=raw, originals=raw, people=people, search=search,
        recogniser=load_expert("stripes"), authorised=expert, masks=foreground(raw, SIZE), work=work,
        budget=Budget(updates=updates, seed=seed), decoder=lambda images: images,
        protector=lambda images, draw: images, features=raw.features(expert), clean_features=raw.features(expert),
    )  # fmt: skip


def released(target: AttackTarget, attack: str, kind: str) -> AttackTarget:
    """The target where nothing is protected, where there is only noise, or under the method that an attack undoes."""
    target = replace(target, features=None, clean_features=None) if attack != "feature_reconstruction" else target
    if attack == "stolen_expert":  # which searches as its user does, and must find people itself
        target = replace(target, authorised=target.recogniser)
    if kind == "noise":
        trial = Trial.of(target)
        assert trial is not None
        noise = trial.noise  # the very noise of the gates: one training is enough
        return replace(target, protected=noise.protected, features=noise.features, protector=noise.protector)
    if attack in OWN:
        return replace(target, protected=_mixed(target, OWN[attack]))
    return target


def _mixed(target: AttackTarget, method: str) -> HeldPictures:
    made = METHODS[method]()
    images = torch.stack([target.originals.load(index) for index in range(len(target.originals))])
    release, size, order = images.clone(), made.config.people, target.rng.child("groups").permutation(len(images))
    for start in range(0, len(order) - size + 1, size):
        group = order[start : start + size].tolist()
        batch = ImageBatch(images[group], tuple(map(str, group)))
        release[group] = made.protect(batch, rng=target.rng.child("mix", start)).images
    return HeldPictures((release * 255).round() / 255)


def learns(attack: type[Attack]) -> bool:
    """Whether it has a training that can be cut short."""
    return attack.cost is not Cost.SECONDS


def cell(attack: str, seed: int, kind: str, updates: int) -> dict[str, Any]:
    """One run through its gates, kept as JSON."""
    file = CELLS / f"{attack}.{kind}.{updates}.{seed}.json"
    if file.exists():
        kept: dict[str, Any] = json.loads(file.read_text())
        return kept
    begun = time.process_time()
    with tempfile.TemporaryDirectory() as scratch:
        work = CELLS / "work" / f"{seed}.{updates}" if learns(ATTACKS[attack]) else Path(scratch)
        work.mkdir(parents=True, exist_ok=True)
        evidence = run_gated(ATTACKS[attack], released(target_of(seed, updates, work), attack, kind))
    result = {
        "applicable": evidence.applicable,
        "why": evidence.why_missing if not evidence.applicable else "",
        "failed": [f"{reason.code}: {reason}" for reason in evidence.invalid],
        "grade": _grade(evidence),
        "seconds": round(time.process_time() - begun, 1),
    }
    file.write_text(json.dumps(result, indent=1) + "\n")
    return result


def _grade(evidence: Evidence) -> str:
    """What an audit would make of the attack's headline."""
    scored = found(evidence) if evidence.applicable else None
    if scored is None or scored[1] is None:
        return ""
    if unproven(evidence):
        return "no verdict"
    score, chance = scored
    return str(grade(score.value, score.low, score.high, chance, Thresholds()))


def names() -> list[str]:
    """Attacks that have gates and can be made here."""
    return [name for name in ATTACKS if not ATTACKS[name].baseline and name not in NOT_HERE]


def table() -> dict[str, dict[str, Any]]:
    """Of each attack the share of valid runs by what was released, over the cells that there are."""
    rows: dict[str, dict[str, Any]] = {}
    for name in names():
        row: dict[str, Any] = {"learns": learns(ATTACKS[name]), "level": str(ATTACKS[name].level)}
        failed: dict[str, int] = {}
        for kind in ("identity", "noise"):
            kept = [
                cell(name, seed, kind, UPDATES) for seed in range(SEEDS)
                if (CELLS / f"{name}.{kind}.{UPDATES}.{seed}.json").exists()
            ]  # fmt: skip
            tried = [] if kind == "noise" and name in NOT_ON_NOISE else [each for each in kept if each["applicable"]]
            row[kind] = (sum(not each["failed"] for each in tried), len(tried))
            for each in tried:
                for reason in each["failed"]:
                    failed[reason.partition(":")[0]] = failed.get(reason.partition(":")[0], 0) + 1
        rows[name] = row | {"failed": failed}
    return rows


def markdown(rows: dict[str, dict[str, Any]]) -> str:
    lines = [
        "| attack | level | valid where nothing is protected | valid on noise | gates that failed |",
        "|---|---|---|---|---|",
    ]
    for name, row in rows.items():
        why = ", ".join(f"{reason} ({count})" for reason, count in row["failed"].items()) or "none"
        shares = (f"{row[kind][0]} of {row[kind][1]}" for kind in ("identity", "noise"))
        lines.append(f"| `{name}` | {row['level']} | {' | '.join(shares)} | {why} |")
    return "\n".join(lines)


def short_runs() -> list[dict[str, Any]]:
    """Runs whose training was cut short, on pictures where all is to be found and on noise."""
    return [
        {"attack": name, "kind": kind, "seed": seed} | json.loads(file.read_text())
        for name in names() if learns(ATTACKS[name])
        for kind in ("identity", "noise") for seed in range(SEEDS)
        if (file := CELLS / f"{name}.{kind}.{CUT}.{seed}.json").exists()
    ]  # fmt: skip


def passes_for_safe(run: dict[str, Any]) -> bool:
    """Whether a low number of the run would count: neither invalid nor a leak."""
    return bool(run["applicable"]) and run["grade"] in ("nothing found", "too few to tell")


def rows() -> None:
    found_rows = table()
    print(markdown(found_rows))
    for learner, what in ((False, "quick"), (True, "learners")):
        tried = {name: row for name, row in found_rows.items() if row["learns"] is learner and row["identity"][1]}
        some = {name: row for name, row in tried.items() if row["identity"][1] >= min(SEEDS, _most(tried))}
        if not some:
            continue
        fewer = ", ".join(f"{name} {row['identity'][1]}" for name, row in tried.items() if name not in some)
        shares = {name: _share(row) for name, row in some.items()}
        below = ", ".join(f"{name} {share:.2f}" for name, share in shares.items() if share < ENOUGH)
        seeds = min(row["identity"][1] for row in some.values())
        record(
            id=f"gates-power-{what}",
            claim=f"Attacks that {'learn' if learner else 'do not learn'}: the smallest share of valid runs, where "
            "nothing is protected and on noise",
            figure=round(min(shares.values()), 2), bar=f">= {ENOUGH}", unit="share", data="generated people",
            scale=f"{len(some)} attacks, at least {seeds} seeds, {PEOPLE} people, {PEOPLE * SHOTS} pictures"
            + (f", {UPDATES} updates" if learner else ""),
            seed=0, command=COMMAND,
            note="; ".join(filter(None, [
                f"of fewer seeds, and left out: {fewer}" if fewer else "",
                f"of {seeds} seeds instead of {SEEDS}" if seeds < SEEDS else "",
                f"below {ENOUGH}: {below}" if below else "",
                "docs/audit-attacks.md has each attack; not tried: "
                + ", ".join(f"{name} ({why})" for name, why in NOT_HERE.items()),
            ])),
        )  # fmt: skip
    if short := short_runs():
        safe = [run for run in short if passes_for_safe(run)]
        record(
            id="gates-cut-short",
            claim=f"Runs of attackers whose training was cut short after {CUT} updates and whose low number counts",
            figure=len(safe), bar="== 0", unit="runs", data="generated people",
            scale=f"{len(short)} runs of {len({run['attack'] for run in short})} attacks, where nothing is "
            "protected and on noise",
            seed=0, command=COMMAND,
            note=", ".join(sorted({f"{run['attack']} on {run['kind']}" for run in safe})),
        )  # fmt: skip


def _most(tried: dict[str, dict[str, Any]]) -> int:
    return max((row["identity"][1] for row in tried.values()), default=0)


def _share(row: dict[str, Any]) -> float:
    return min(row[kind][0] / row[kind][1] for kind in ("identity", "noise") if row[kind][1])


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--only", choices=("quick", "learners", "short"), action="append")
    parser.add_argument("--attack", action="append", choices=names())
    parser.add_argument("--seeds", type=int, default=SEEDS, help="fewer, to look; rows tell how many there were")
    parser.add_argument("--rows", action="store_true", help="compute nothing, write the rows of what there is")
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    parts: dict[str, Callable[[str], tuple[int, ...]]] = {
        "quick": lambda name: () if learns(ATTACKS[name]) else (UPDATES,),
        "learners": lambda name: (UPDATES,) if learns(ATTACKS[name]) else (),
        "short": lambda name: (CUT,) if learns(ATTACKS[name]) else (),
    }
    for part in () if wanted.rows else wanted.only or tuple(parts):
        for seed in range(wanted.seeds):
            for name in wanted.attack or names():
                for updates in parts[part](name):
                    for kind in ("identity", "noise"):
                        if kind == "noise" and name in NOT_ON_NOISE:
                            continue
                        result = cell(name, seed, kind, updates)
                        said = result["failed"] or result["why"] or "valid"
                        print(name, kind, seed, updates, result["grade"], said, result["seconds"], flush=True)
    if not wanted.attack:
        rows()


if __name__ == "__main__":
    main()
