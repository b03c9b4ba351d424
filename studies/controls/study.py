"""The usual controls on CUHK03-NP's whole test part: the study as the runner sees it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from studies.controls.plan import METRICS, RECOGNISERS, ControlsConfig, audited
from studies.shared.cells import Cell
from studies.shared.recognisers import JUDGE, load_judge
from studies.shared.study import PEOPLE, Cells, ClaimRow, Input, Run, Study
from studies.shared.tables import named_cells
from veilkit.audit import run_audit
from veilkit.audit.result import SETTINGS
from veilkit.experts import load_expert
from veilkit.pipeline.protect import protect

Value = Sequence[float | None] | None


def page_tables(found: Mapping[str, Any], config: ControlsConfig) -> str:
    """A row for the originals, and one for each control. found: cells by control."""
    if not found:
        return "Not measured yet."
    first = next(iter(found.values()))
    chance = " / ".join(f"{100 * first['chance'][metric]:.2f}" for metric in METRICS)
    lines = [
        f"CUHK03-NP (detected, 128x64), whole test part: {first['queries']:,} queries, {first['gallery']:,} in the "
        f"gallery, {first['people']:,} people. Rank-1 / mAP in %, with 95 % intervals (bootstrap of people). "
        f"Chance: {chance}. Controls at their default settings, seed {config.seed}.",
        "",
    ]
    for by, title in (
        ("expert", "Authorised expert ({}): utility, high is good"),
        ("judge", "Independent judge ({}): privacy, low is good"),
    ):
        lines += [f"**{title.format(first['recognisers'][by])}**", ""]
        lines += ["| control | raw in protected | protected in raw | protected in protected |", "|---|---|---|---|"]
        lines.append(f"| none (originals) | | | {_rates(first['settings'][by]['raw-raw'])} |")
        for method, cell in found.items():
            rates = " | ".join(_rates(cell["settings"][by][setting]) for setting in SETTINGS[1:])
            lines.append(f"| {method} | {rates} |")
        lines.append("")
    lines += ["**Pictures**", "", "| control | SSIM to the original | chaos (AD) |", "|---|---|---|"]
    lines.append(f"| none (originals) | 1 | {_plain(first['AD of originals'], 0)} |")
    lines += [f"| {method} | {_plain(cell['SSIM'], 3)} | {_plain(cell['AD'], 0)} |" for method, cell in found.items()]
    invalid = [
        f"{method}: {attack} ({'; '.join(why)})"
        for method, cell in found.items()
        for attack, why in cell["invalid"].items()
    ]
    lines += ["", f"Invalid attacks: {', '.join(invalid) or 'none'}."]
    return "\n".join(lines)


def _rates(scores: Mapping[str, Value]) -> str:
    return " / ".join(_percent(scores[metric]) for metric in METRICS)


def _percent(value: Value) -> str:
    return "not measured" if value is None else _plain([None if v is None else 100 * v for v in value], 1)


def _plain(value: Value, digits: int) -> str:
    if value is None:
        return "not defined"
    middle, low, high = value
    return f"{middle:.{digits}f}" + ("" if low is None or high is None else f" ({low:.{digits}f}–{high:.{digits}f})")


_FOLDERS = ("query", "bounding_box_test")
_UNDONE = (
    ("patches", "PRO", "jigsaw", "neighbours", "neighbouring patches that are neighbours again"),
    ("mixup", "mix-up", "unmix", "links", "pictures linked to the one they were blended with"),
)


class ControlCells:
    """Each control protects the whole test part and is audited, by expert and judge."""

    def __init__(self, run: Run[ControlsConfig]) -> None:
        self._run = run
        self._expert = load_expert(run.inputs["expert"], flip=True)
        self._judge = load_judge(run.inputs["judge"], run.data)
        prints = {"expert": self._expert.info.fingerprint, "judge": self._judge.info.fingerprint}
        self._cells = run.store({"seed": run.config.seed, **prints})

    def cell(self, name: str) -> Cell:
        """A control's cell, `control/NAME`."""
        return self._cells.get(name, lambda: self._audited(name.removeprefix("control/")))

    def draw(self) -> None:
        """There are no figures; the audits' own reports lie beside the releases."""

    def _audited(self, method: str) -> Cell:
        run, release = self._run, self._run.folder / method
        originals = _test_part(run.dataset(PEOPLE), run.folder / "originals")
        protect(originals, release, method, seed=run.config.seed, workers=run.workers)
        result = run_audit(
            originals, release, expert=self._expert, judge=self._judge, cache=run.folder / "cache",
            out=run.folder / f"{method}.audit",
        )  # fmt: skip
        return audited(result)


class ControlsStudy(Study[ControlsConfig]):
    """Recognition in four settings by expert and judge, SSIM and AD, and the attacks that undo two of them."""

    name = "controls"
    title = "The usual controls"
    data = "CUHK03-NP, detected, 128x64, whole test part"
    folder = Path(__file__).parent
    threads = 1
    inputs = (
        Input("expert", "authorised recogniser, a name or a file", "models/cuhk03_mobilenetv2.safetensors"),
        Input("judge", "independent recogniser to attack with, a name or a file", JUDGE),
    )
    published = ControlsConfig()

    def cells(self, config: ControlsConfig, inputs: Mapping[str, Any]) -> tuple[str, ...]:
        """One for each control."""
        return tuple(f"control/{name}" for name in config.methods)

    def open(self, run: Run[ControlsConfig]) -> ControlCells:
        """Expert and judge are loaded."""
        return ControlCells(run)

    def settings(self, config: ControlsConfig) -> dict[str, Any]:
        """But for the controls that are wanted."""
        return {"seed": asdict(config)["seed"]}

    def tables(self, cells: Cells, config: ControlsConfig) -> dict[str, str]:
        """Of the controls that are there."""
        return {"controls": page_tables(named_cells(cells, "control", config.methods), config)}

    def scale(self, cells: Cells, config: ControlsConfig) -> str:
        """How many controls and figures."""
        found = named_cells(cells, "control", config.methods)
        return f"{len(found)} controls, {len(found) * _figures()} figures"

    def claims(self, cells: Cells, config: ControlsConfig) -> list[ClaimRow]:
        """That nothing is missing, once all controls are there, and that two of them are undone."""
        found = named_cells(cells, "control", config.methods)
        complete = [_table_row(found)] if len(found) == len(config.methods) else []
        return [*complete, *(row for each in _UNDONE if each[0] in found for row in _undone_rows(found, *each))]


def _figures() -> int:
    return len(RECOGNISERS) * len(SETTINGS) * len(METRICS) + 2


def _table_row(found: Mapping[str, Any]) -> ClaimRow:
    short = undefined = 0
    for cell in found.values():
        rates = [cell["settings"][by][each][metric] for by in RECOGNISERS for each in SETTINGS for metric in METRICS]
        undefined += cell["AD"] is None and cell["AD undefined"]
        figures = [*rates, cell["SSIM"], *([] if cell["AD"] is None and cell["AD undefined"] else [cell["AD"]])]
        short += sum(value is None or None in value for value in figures)
    note = f"{undefined} more: chaos (AD) of masked pictures, which have one colour, is not defined"
    return {
        "id": "controls-table", "claim": "Defined figures of the table of controls without a value or an interval",
        "figure": short, "bar": "== 0", "unit": "figures", "note": note if undefined else "",
    }  # fmt: skip


def _undone_rows(
    found: Mapping[str, Any], method: str, name: str, attack: str, metric: str, what: str
) -> list[ClaimRow]:
    """The pixel-level relatives of FRO, each against the attack that undoes it."""
    cell = found[method]["undone"].get(attack)
    if cell is None:
        return []
    again = _in_words(cell, "rank-1")
    return [
        {
            "id": f"{method}-undone", "claim": f"{name} undone without key or settings: {what}, times chance",
            "figure": 0 if cell["invalid"] else round(cell["scores"][metric][0] / cell["chance"][metric]),
            "bar": ">= 100", "unit": "x", "data": "CUHK03-NP, detected, 128x64, test part",
            "scale": f"{cell['pictures']} pictures attacked",
            "note": f"{_in_words(cell, metric)}; the judge then finds the very original of {again}",
        }
    ]  # fmt: skip


def _in_words(cell: Mapping[str, Any], metric: str) -> str:
    value, low, high = (100 * each for each in cell["scores"][metric])
    return f"{value:.1f} % [{low:.1f}, {high:.1f}] ({cell['notes'][metric]})"


def _test_part(source: Path, view: Path) -> Path:
    """A Market-1501 layout of links to the query and gallery pictures; its training part is empty."""
    (view / "bounding_box_train").mkdir(parents=True, exist_ok=True)
    for folder in _FOLDERS:
        (view / folder).mkdir(exist_ok=True)
        for file in (source / folder).resolve().iterdir():
            link = view / folder / file.name
            if not link.is_symlink():
                link.symlink_to(file)
    return view


STUDY = ControlsStudy()
