"""Run every benchmark, one after the other; a failure does not stop the rest.

`python benchmarks/run_all.py [NAME ...]` runs all of them, or those named. Those that need research data look for it
in the folder that VEILKIT_DATA names, and are skipped where it is not set. One that takes hours runs only by name.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

FOLDER = Path(__file__).resolve().parent
DATA = "VEILKIT_DATA"
_NOT_ALONE = {"claims", "run_all"}
_BY_NAME = {"expert_rerun"}


def scripts(folder: Path = FOLDER) -> list[Path]:
    """The benchmarks: the files of `folder` that run by themselves and record claims."""
    return sorted(
        file
        for file in folder.glob("*.py")
        if file.stem not in _NOT_ALONE and re.search(r"^if __name__ ==", file.read_text(), re.M)
    )


def needs_data(script: Path) -> bool:
    return DATA in script.read_text()


def main() -> int:
    wanted = sys.argv[1:]
    chosen = [script for script in scripts() if script.stem in (wanted or {s.stem for s in scripts()} - _BY_NAME)]
    if unknown := set(wanted) - {script.stem for script in chosen}:
        print(f"no such benchmark: {', '.join(sorted(unknown))}; there are {', '.join(s.stem for s in scripts())}")
        return 2
    ended: dict[str, str] = {}
    for number, script in enumerate(chosen, 1):
        print(f"[{number}/{len(chosen)}] {script.stem}", flush=True)
        if needs_data(script) and not os.environ.get(DATA):
            ended[script.stem] = f"skipped: needs research data, and {DATA} is not set"
        else:
            begun = time.perf_counter()
            code = subprocess.run([sys.executable, str(script)], check=False).returncode
            took = f"{time.perf_counter() - begun:.0f} s"
            ended[script.stem] = f"FAILED with exit code {code} after {took}" if code else f"done in {took}"
        print(f"    {ended[script.stem]}", flush=True)
    print("\nSummary")
    for name, end in ended.items():
        print(f"  {name:<24}{end}")
    return int(any(end.startswith("FAILED") for end in ended.values()))


if __name__ == "__main__":
    sys.exit(main())
