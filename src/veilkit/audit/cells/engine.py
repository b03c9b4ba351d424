"""An audit's cells: those that are there and still hold are read, the others computed, here or by workers."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from veilkit.audit.cells.prepared import ATTACK, IMAGES, Prepared
from veilkit.audit.cells.store import CellFiles, as_json
from veilkit.audit.cells.workers import WorkerPool
from veilkit.audit.inputs.plan import AuditPlan
from veilkit.progress import Progress

FORMAT = "veilkit-audit-cell-1"


@dataclass(frozen=True, slots=True)
class Place:
    """Where an audit's cells are kept, and what their names begin with."""

    files: CellFiles
    prefix: str = ""

    def name(self, cell: str) -> str:
        """The file's name of a cell."""
        return f"{self.prefix}{cell}"


def compute_cells(prepared: Prepared, place: Place, workers: int = 1) -> dict[str, dict[str, Any]]:
    """The results of all cells by name.

    A cell is computed again where its facts (inputs, versions, settings, seed) are others than those in its file.
    workers: processes that compute attacks; what all of them need is computed before, in this one. The results are
    the same for any number.
    """
    files = place.files.open()
    found: dict[str, dict[str, Any]] = {}
    missing = []
    for cell in prepared.cells:
        held = files.read(place.name(cell))
        if held is not None and holds(held, prepared.facts(cell)):
            found[cell] = held["result"]
        else:
            missing.append(cell)
    shared = [cell for cell in missing if workers < 2 or not cell.startswith(ATTACK)]
    for cell in shared:
        found[cell] = compute_cell(prepared, place, cell)
    if rest := [cell for cell in missing if cell not in found]:
        with Progress(len(rest), "attacking") as progress, WorkerPool(prepared.plan, place, workers) as pool:
            for cell in pool.run(rest):
                progress.advance(1, cell)
        for cell in rest:
            held = files.read(place.name(cell))
            # A worker that vanished, or a file that somebody took away: this process can do it as well.
            found[cell] = compute_cell(prepared, place, cell) if held is None else held["result"]
    return {cell: found[cell] for cell in prepared.cells}


def compute_cell(prepared: Prepared, place: Place, cell: str) -> dict[str, Any]:
    """Compute one cell and keep it."""
    facts = as_json(prepared.facts(cell))
    result = as_json(prepared.compute(cell))
    files = place.files
    files.write(place.name(cell), {"format": FORMAT, "cell": cell, **_labels(prepared.plan, cell), "facts": facts,
                                   "result": result})  # fmt: skip
    return dict(result)


def holds(held: Mapping[str, Any], facts: Mapping[str, Any]) -> bool:
    """Whether a cell that was read is one of this version, whole, and of these facts."""
    return (
        held.get("format") == FORMAT and held.get("facts") == as_json(facts) and isinstance(held.get("result"), dict)
    )


def _labels(plan: AuditPlan, cell: str) -> dict[str, Any]:
    """What a reader of the file wants to know, and the numbers do not depend on. No paths of this machine."""
    return {
        "release": plan.protected.name,
        "dataset": plan.originals.name,
        "attack": cell.removeprefix(ATTACK) if cell.startswith(ATTACK) else None,
        "measures": "pictures" if cell == IMAGES else None if cell.startswith(ATTACK) else "recognition",
        "seed": plan.draw_seed,
    }
