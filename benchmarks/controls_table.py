"""Each control on CUHK03-NP's whole test part: recognition in four settings by expert and judge, SSIM and AD.

    VEILKIT_DATA=... python benchmarks/controls_table.py [--expert models/cuhk03_....safetensors]

Needs the research data: $VEILKIT_DATA/cuhk03-np, and the judge osnet_x0_25_msmt17.onnx in $VEILKIT_WEIGHTS (by
default the folder weights beside $VEILKIT_DATA). Releases, features and reports go to runs/controls; a run that was
stopped goes on from there. The table goes to benchmarks/results/controls.md and controls.json, and onto
docs/methods/controls.md.
"""

from __future__ import annotations

import argparse
import json
import os
import sys
import time
from pathlib import Path
from typing import Any

import torch

from claims import record
from veilkit.audit import AuditResult, run_audit
from veilkit.audit.result import SETTINGS
from veilkit.experts import Embedder, load_expert
from veilkit.experts.onnx import OnnxEmbedder
from veilkit.experts.preprocessing import NORMALISATIONS, Preprocessing
from veilkit.methods import METHODS
from veilkit.pipeline.protect import protect
from veilkit.types import Score

ROOT = Path(__file__).resolve().parents[1]
CONTROLS = ("blur", "pixelate", "noise", "mask", "mixup", "patches")
JUDGE = "osnet_x0_25_msmt17.onnx"
EXPERT = ROOT / "models" / "cuhk03_mobilenetv2.safetensors"
TEST_FOLDERS = ("query", "bounding_box_test")
SEED = 0
CHAOS = "chaos (AD)"
UNDEFINED = "chaos (AD) of masked pictures, which have one colour, is not defined"
BEGIN, END = "<!-- controls table -->", "<!-- /controls table -->"


def main() -> None:
    arguments = _arguments()
    if arguments.broken:
        _record_broken(json.loads((arguments.results / "controls.json").read_text(encoding="utf-8")))
        return
    torch.set_num_threads(1)
    data, judge_file = sources()
    expert, judge = load_expert(_expert(arguments.expert), flip=True), independent_judge(judge_file)
    work: Path = arguments.work
    originals = _test_part(data / "cuhk03-np", work / "originals")
    results = {}
    for method in arguments.methods:
        started = time.monotonic()
        release = work / method
        protect(originals, release, method, seed=SEED, workers=arguments.workers)
        protected = time.monotonic()
        results[method] = run_audit(
            originals, release, expert=expert, judge=judge, cache=work / "cache", out=work / f"{method}.audit"
        )
        done = time.monotonic()
        print(f"{method}: protected in {protected - started:.0f} s, audited in {done - protected:.0f} s", flush=True)
    _write(results, arguments.results)


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--expert", help="the authorised expert; default: models/cuhk03_mobilenetv2.safetensors")
    parser.add_argument("--methods", nargs="+", default=CONTROLS, choices=sorted(METHODS))
    parser.add_argument("--work", type=Path, default=ROOT / "runs" / "controls")
    parser.add_argument("--results", type=Path, default=ROOT / "benchmarks" / "results")
    parser.add_argument("--workers", type=int, default=0, help="processes that protect; 0 works in this one")
    parser.add_argument("--broken", action="store_true", help="only record, of the last results, who was undone")
    return parser.parse_args()


def sources() -> tuple[Path, Path]:
    if "VEILKIT_DATA" not in os.environ:
        sys.exit("This needs research data: set VEILKIT_DATA to the folder that holds cuhk03-np.")
    data = Path(os.environ["VEILKIT_DATA"]).resolve()
    weights = Path(os.environ.get("VEILKIT_WEIGHTS", data.parent / "weights"))
    for needed in (*(data / "cuhk03-np" / folder for folder in TEST_FOLDERS), weights / JUDGE):
        if not needed.exists():
            sys.exit(f"{needed} is not there: check VEILKIT_DATA and VEILKIT_WEIGHTS.")
    return data, weights / JUDGE


def _expert(given: str | None) -> str | Path:
    if given is not None:
        return given
    if not EXPERT.is_file():
        sys.exit(f"{EXPERT.name} is not in models/: name the authorised expert with --expert.")
    return EXPERT


def independent_judge(file: Path) -> Embedder:
    imagenet = NORMALISATIONS["imagenet"]
    return OnnxEmbedder.load(
        file, Preprocessing((256, 128), imagenet.mean, imagenet.std), source="OSNet x0.25, trained on MSMT17"
    )


def _test_part(source: Path, view: Path) -> Path:
    """A Market-1501 layout of links to the query and gallery pictures; its training part is empty."""
    (view / "bounding_box_train").mkdir(parents=True, exist_ok=True)
    for folder in TEST_FOLDERS:
        (view / folder).mkdir(exist_ok=True)
        for file in (source / folder).iterdir():
            link = view / folder / file.name
            if not link.is_symlink():
                link.symlink_to(file)
    return view


def table(results: dict[str, AuditResult]) -> str:
    """Markdown: one row for the originals, and one for each control."""
    first = next(iter(results.values()))
    lines = [
        f"CUHK03-NP (detected, 128x64), whole test part: {first.queries:,} queries, {first.gallery:,} in the "
        f"gallery, {first.people:,} people. Rank-1 / mAP in %, with 95 % intervals (bootstrap of people). "
        f"Chance: {_chance(first, 'rank-1'):.2f} / {_chance(first, 'mAP'):.2f}. "
        f"Controls at their default settings, seed {SEED}.",
        "",
    ]  # fmt: skip
    for by, title in (
        ("expert", f"Authorised expert ({first.expert.name}): utility, high is good"),
        ("judge", f"Independent judge ({first.judge.name}): privacy, low is good"),
    ):
        lines += [f"**{title}**", "", "| control | raw in protected | protected in raw | protected in protected |",
                  "|---|---|---|---|"]  # fmt: skip
        lines.append(f"| none (originals) | | | {_cell(first, by, 'raw-raw')} |")
        for method, result in results.items():
            cells = " | ".join(_cell(result, by, setting) for setting in SETTINGS[1:])
            lines.append(f"| {method} | {cells} |")
        lines.append("")
    lines += ["**Pictures**", "", "| control | SSIM to the original | chaos (AD) |", "|---|---|---|"]
    lines.append(f"| none (originals) | 1 | {_plain(first.score('images', 'originals', 'AD'), 0)} |")
    for method, result in results.items():
        ssim = _plain(result.score("images", "protected to original", "SSIM"), 3)
        lines.append(f"| {method} | {ssim} | {_plain(result.score('images', 'protected', 'AD'), 0)} |")
    invalid = [f"{method}: {attack} ({'; '.join(why)})" for method, result in results.items()
               for attack, why in result.invalid.items()]  # fmt: skip
    lines += ["", f"Invalid attacks: {', '.join(invalid) or 'none'}."]
    return "\n".join(lines) + "\n"


def _cell(result: AuditResult, by: str, setting: str) -> str:
    parts = []
    for metric in ("rank-1", "mAP"):
        score = result.score(by, setting, metric)  # type: ignore[arg-type]
        parts.append(_percent(score))
    return " / ".join(parts)


def _percent(score: Score | None) -> str:
    if score is None:
        return "not measured"
    interval = "" if score.low is None or score.high is None else f" ({100 * score.low:.1f}–{100 * score.high:.1f})"
    return f"{100 * score.value:.1f}{interval}"


def _plain(score: Score | None, digits: int) -> str:
    if score is None:
        return "not defined"
    interval = "" if score.low is None else f" ({score.low:.{digits}f}–{score.high:.{digits}f})"
    return f"{score.value:.{digits}f}{interval}"


def _chance(result: AuditResult, metric: str) -> float:
    return next(100 * m.chance for m in result.measurements if m.score.metric == metric and m.chance is not None)


def _write(results: dict[str, AuditResult], folder: Path) -> None:
    folder.mkdir(parents=True, exist_ok=True)
    text = table(results)
    (folder / "controls.md").write_text(text, encoding="utf-8")
    values = {
        method: {
            key: value for key, value in json.loads(result.to_json()).items() if key not in ("curves", "histograms")
        }
        for method, result in results.items()
    }
    (folder / "controls.json").write_text(json.dumps(values, indent=1) + "\n", encoding="utf-8")
    print(text)
    if tuple(results) == CONTROLS:  # a part of them is a trial
        page = ROOT / "docs" / "methods" / "controls.md"
        page.write_text(on_page(page.read_text(encoding="utf-8"), text), encoding="utf-8")
        _record(results)
        _record_broken(values)


def on_page(page: str, text: str) -> str:
    """The page with `text` between its marks."""
    head, begin, rest = page.partition(BEGIN)
    _, end, tail = rest.partition(END)
    if not begin or not end:
        sys.exit(f"the page of controls has no place for the table: expected {BEGIN} and {END}.")
    return f"{head}{begin}\n{text}{end}{tail}"


def _record(results: dict[str, AuditResult]) -> None:
    wanted = [
        (by, setting, metric) for by in ("expert", "judge") for setting in SETTINGS for metric in ("rank-1", "mAP")
    ]
    wanted += [("images", "protected to original", "SSIM"), ("images", "protected", "AD")]
    short = undefined = 0
    for result in results.values():
        flat = any(each.what == CHAOS for each in result.unmeasured)
        for each in wanted:
            score = result.score(*each)  # type: ignore[arg-type]
            if score is None and each[2] == "AD" and flat:
                undefined += 1
            else:
                short += score is None or score.low is None or score.high is None
    record(
        id="controls-table", claim="Defined figures of the table of controls without a value or an interval",
        figure=short, bar="== 0", note=f"{undefined} more: {UNDEFINED}" if undefined else "",
        unit="figures", data="CUHK03-NP, detected, 128x64, whole test part", seed=SEED,
        scale=f"{len(results)} controls, {len(results) * len(wanted)} figures",
        command="python benchmarks/controls_table.py",
    )  # fmt: skip


def _record_broken(values: dict[str, Any]) -> None:
    """The pixel-level relatives of FRO, each against the attack that undoes it."""
    for method, name, attack, metric, what in (
        ("patches", "PRO", "jigsaw", "neighbours", "neighbouring patches that are neighbours again"),
        ("mixup", "mix-up", "unmix", "links", "pictures linked to the one they were blended with"),
    ):
        found = next(each for each in values[method]["attacks"] if each["attack"] == attack)
        scores = {score["metric"]: score for score in found["scores"]}
        score, details = scores[metric], found["details"]
        again = scores["rank-1"]
        record(
            id=f"{method}-undone", claim=f"{name} undone without key or settings: {what}, times chance",
            figure=0 if found["invalid"] else round(score["value"] / details["chance"][metric]),
            bar=">= 100", unit="x", data="CUHK03-NP, detected, 128x64, test part", seed=SEED,
            scale=f"{details.get('pictures attacked', 1000)} pictures attacked",
            command="python benchmarks/controls_table.py",
            note=f"{_told(score)}; the judge then finds the very original of {_told(again)}",
        )  # fmt: skip


def _told(score: dict[str, Any]) -> str:
    interval = f"[{100 * score['low']:.1f}, {100 * score['high']:.1f}]"
    return f"{100 * score['value']:.1f} % {interval} ({score['note'].split(';')[0]})"


if __name__ == "__main__":
    main()
