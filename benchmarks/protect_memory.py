"""Peak memory of a run over many pictures against one over a tenth of them."""

from __future__ import annotations

import tempfile
from pathlib import Path

from claims import record
from pictures import write_folder
from process import completed

SMALL, LARGE, WORKERS = 2_000, 20_000, 2


def peak(work: Path, count: int, *, workers: int = WORKERS) -> float:
    """Peak megabytes of all processes of a run over `count` small pictures."""
    write_folder(work / "source", count, people=50, height=64, width=32)
    ended = completed(
        "protect", work / "source", work / "release", "--method", "pixelate", "--workers", str(workers),
        watch_memory=True,
    )  # fmt: skip
    return ended.megabytes


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        small, large = (peak(Path(folder, str(count)), count) for count in (SMALL, LARGE))
    record(
        id="memory-constant",
        claim=f"Peak memory at {LARGE:,} images against {SMALL:,}",
        figure=round(large / small, 3),
        bar="<= 1.2",
        unit="x",
        data="generated pictures, 64x32, method pixelate",
        scale=f"{SMALL} and {LARGE} pictures, {WORKERS} workers",
        seed=None,
        command="python benchmarks/protect_memory.py",
        note=f"proportional set size of all processes: {small:.0f} MB and {large:.0f} MB",
    )


if __name__ == "__main__":
    main()
