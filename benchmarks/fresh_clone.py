"""What a stranger does first: clone, `make demo`, `make lint`, `make test`, with nothing but Python and pip."""

from __future__ import annotations

import os
import subprocess
import tempfile
import time
from pathlib import Path

from claims import ROOT, record

COMMAND = "python benchmarks/fresh_clone.py"


def timed_make(target: str, clone: Path) -> float:
    """Minutes that a make target takes in the clone; its failure ends the benchmark, with its last lines."""
    environment = {
        name: value for name, value in os.environ.items() if not name.startswith(("VIRTUAL_ENV", "VEILKIT"))
    }
    start = time.monotonic()
    done = subprocess.run(
        ["make", target],
        cwd=clone,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
    )
    minutes = (time.monotonic() - start) / 60
    print(f"make {target}: exit code {done.returncode}, {minutes:.1f} min")
    print("\n".join(done.stdout.splitlines()[-12:]), flush=True)
    if done.returncode:
        raise SystemExit(f"make {target} failed in a fresh clone")
    return minutes


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        clone = Path(folder, "veilkit")
        subprocess.run(["git", "clone", "--quiet", str(ROOT), str(clone)], check=True)
        minutes = {target: timed_make(target, clone) for target in ("demo", "lint", "test")}
    about = {"data": "a fresh clone and a new virtual environment", "scale": "all", "seed": None, "command": COMMAND}
    record(
        id="fresh-demo", claim="`make demo` on a fresh clone, set-up included", figure=round(minutes["demo"], 2),
        bar="<= 10", unit="min", **about,
    )  # fmt: skip
    record(
        id="fresh-test", claim="`make test` on a fresh clone, after set-up", figure=round(minutes["test"], 2),
        bar="< 10", unit="min", note="`make lint` was clean in the same clone", **about,
    )  # fmt: skip


if __name__ == "__main__":
    main()
