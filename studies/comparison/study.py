"""All methods on CUHK03-NP and LFW: the study as the runner sees it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from studies.comparison.matrix import ComparisonRows, Judges
from studies.comparison.models import Models
from studies.comparison.plan import ENTRIES, FACES, PEOPLE, ComparisonConfig, Starts
from studies.comparison.rows import missing_row
from studies.comparison.tables import about, purposes_table, remarks, table
from studies.shared.recognisers import JUDGE, JUDGE_NORMALISATION, JUDGE_SIZE, JUDGE_SOURCE, judge_file
from studies.shared.study import FACES as LFW
from studies.shared.study import Cells, ClaimRow, Input, Run, Study
from veilkit.experts.names import expert_names
from veilkit.experts.preprocessing import NORMALISATIONS
from veilkit.experts.registry import Addition, add_expert

DATA = {PEOPLE: "CUHK03-NP", FACES: "LFW"}
JUDGE_IN_SPEC = "osnet-x0.25-msmt17"
SHORT = "comparison short"  # of the front page
RELEASES = "releases"  # with --only: made and not attacked


class ComparisonStudy(Study[ComparisonConfig]):
    """Every method on the same people under the same attackers: what each keeps, and what leaks at L0 to L3."""

    name = "comparison"
    title = "All methods, the same people, the same attackers"
    data = "CUHK03-NP, LFW"
    folder = Path(__file__).parent
    threads = 1
    extra = (RELEASES,)
    elsewhere = (SHORT,)
    inputs = (
        Input(
            "expert",
            "general recogniser: who makes pictures for it, and what is kept",
            "models/cuhk03_mobilenetv2.safetensors",
        ),
        Input("judge", "independent recogniser of people to attack with", JUDGE),
        Input("face-judge", "recogniser of faces to attack with, and its view of a crop", "mobilefacenet@arcface"),
        Input("models", "folder of fitted models", "models"),
        Input("model", "METHOD=FILE, the fitted model of a method; may be repeated", many=True),
        Input(
            "start",
            "weights of attackers who train a recogniser; none for scratch",
            "models/cuhk03_efficientnet.safetensors",
            file=True,
        ),
        Input("face-start", "the same for faces", "models/lfw_faces.safetensors", file=True),
    )
    published = ComparisonConfig(updates=400, faces=200)

    def cells(self, config: ComparisonConfig, inputs: Mapping[str, Any]) -> tuple[str, ...]:
        """A row for each method that is wanted."""
        return tuple(f"{ENTRIES[name].table}/{name}" for name in config.wanted)

    def open(self, run: Run[ComparisonConfig]) -> ComparisonRows:
        """Faces are left out where the data has none."""
        inputs = run.inputs
        judge = named_judge(run.folder, run.data) if inputs["judge"] == JUDGE else inputs["judge"]
        run.folder.mkdir(parents=True, exist_ok=True)
        return ComparisonRows(
            run.people, run.faces if run.has(LFW) else None, run.folder, run.config,
            Judges(inputs["expert"], judge, inputs["face-judge"]), Models.of(Path(inputs["models"]), inputs["model"]),
            run.cache, workers=max(1, run.workers), starts=Starts(run.file("start"), run.file("face-start")),
        )  # fmt: skip

    def compute(self, run: Run[ComparisonConfig], only: Sequence[str] = ()) -> None:
        """One spec of audits computes all rows."""
        if RELEASES in only:
            self.open(run).protect()
            return
        chosen = tuple(name.rpartition("/")[2] for name in only) or run.config.methods
        self.open(replace(run, config=replace(run.config, methods=chosen))).run()

    def settings(self, config: ComparisonConfig) -> dict[str, Any]:
        """But for the rows that are wanted."""
        return {name: value for name, value in super().settings(config).items() if name != "methods"}

    def tables(self, cells: Cells, config: ComparisonConfig) -> dict[str, str]:
        """A table of people and one of faces, what was not made, and a short one for the front page."""
        rows = rows_of(cells)
        kinds = [kind for kind in (PEOPLE, FACES) if any("levels" in row for row in _of(rows, kind).values())]
        rows = {
            name: rows.get(name) or missing_row(entry.label, "not measured yet") for name, entry in ENTRIES.items()
        }
        full = [f"{DATA[kind]}: {about(rows, kind, config)}\n\n{table(rows, kind)}" for kind in kinds]
        left = [f"{DATA[kind]}:\n\n{text}" for kind in kinds if (text := remarks(rows, kind))]
        return {
            "comparison": "\n\n".join(full) or "Not measured yet.",
            "comparison remarks": "\n\n".join(left) or "Nothing.",
            SHORT: purposes_table(rows) if kinds else "Not measured yet.",
        }

    def claims(self, cells: Cells, config: ComparisonConfig) -> list[ClaimRow]:
        """That every row is there."""
        rows = rows_of(cells)
        missing = [name for name in ENTRIES if "levels" not in rows.get(name, ())]
        return [
            {
                "id": "headline-rows", "claim": "Rows of README's tables of all methods, for people and for faces, "
                "that were not measured", "figure": len(missing), "bar": "== 0", "unit": "rows",
                "note": f"not measured yet: {', '.join(missing)}" if missing else f"all {len(ENTRIES)} are there",
            }
        ]  # fmt: skip

    def scale(self, cells: Cells, config: ComparisonConfig) -> str:
        """People, faces and attackers."""
        return f"{config.people} people, {config.faces} people's faces; {config.updates} updates of each attacker"


def rows_of(cells: Cells) -> dict[str, Any]:
    """The rows that are there, by the methods' names, in the tables' order."""
    return {
        name: cells[f"{entry.table}/{name}"] for name, entry in ENTRIES.items() if f"{entry.table}/{name}" in cells
    }


def named_judge(folder: Path, data: Path | None) -> str:
    """The independent judge by a name that a spec can hold, known in this run's own folder of experts alone."""
    os.environ["VEILKIT_HOME"] = str((folder / "home").resolve())
    if JUDGE_IN_SPEC not in expert_names():
        add_expert(
            judge_file(data),
            Addition(
                name=JUDGE_IN_SPEC, licence="research only (MSMT17)", source=JUDGE_SOURCE, size=JUDGE_SIZE,
                normalisation=NORMALISATIONS[JUDGE_NORMALISATION],
            ),
        )  # fmt: skip
    return JUDGE_IN_SPEC


def _of(rows: Mapping[str, Any], kind: str) -> dict[str, Any]:
    return {name: row for name, row in rows.items() if ENTRIES[name].table == kind}


STUDY = ComparisonStudy()
