"""Makes `release_hashes.json`, by which `test_release_bytes.py` knows that the same key gives the same bytes.

    OMP_NUM_THREADS=1 python -m tests.conformance.make_release_hashes [--add | --check]

Make it again only for a change that is meant to give other bytes, and say which in the changelog; --add makes only
releases that the table does not hold yet; --check writes nothing and names what differs. From the root of the
repository, with the package installed (or PYTHONPATH=src).
"""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Collection
from pathlib import Path
from typing import Any

import torch

from tests.conformance.numerics import arithmetic, encoding
from tests.conformance.releases import CASES, SOURCES, make_release, make_sources, picture_hashes

TABLE = Path(__file__).with_name("release_hashes.json")


def measure(folder: Path, known: Collection[str] = ()) -> dict[str, Any]:
    """What the table holds, made in an empty folder. known: releases that are not to be made again."""
    make_sources(folder)
    return {
        "arithmetic": arithmetic(),
        "encoding": encoding(),
        "sources": {name: picture_hashes(folder / name) for name in (*SOURCES, "two", "odd")},
        "releases": {
            case.name: make_release(case, folder, folder / str(number))
            for number, case in enumerate(CASES)
            if case.name not in known
        },
    }


def differences(old: dict[str, Any], new: dict[str, Any]) -> list[str]:
    """The names of sources and releases that are new, gone or different, a line each."""
    lines = [
        f"{probe}: {old[probe]} became {new[probe]}"
        for probe in ("arithmetic", "encoding")
        if old[probe] != new[probe]
    ]
    for part in ("sources", "releases"):
        for name in sorted(old[part].keys() | new[part].keys()):
            was, now = old[part].get(name, {}), new[part].get(name, {})
            changed = [file for file in sorted(was.keys() | now.keys()) if was.get(file) != now.get(file)]
            if changed:
                lines.append(f"{part}: {name}: {len(changed)} of {len(now)} files differ: {', '.join(changed[:3])}")
    return lines


def main() -> int:
    """Write the table, or compare with it; exit code 1 where --check finds a difference."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--check", action="store_true", help="write nothing; name what differs")
    parser.add_argument("--add", action="store_true", help="make only releases that the table does not hold yet")
    wanted = parser.parse_args()
    torch.set_num_threads(1)
    old = json.loads(TABLE.read_text()) if wanted.add else {"releases": {}}
    with tempfile.TemporaryDirectory() as folder:
        table = measure(Path(folder), old["releases"])
    if wanted.add:
        made = {**old["releases"], **table["releases"]}
        table = {**old, "releases": {case.name: made[case.name] for case in CASES}}
    found = differences(json.loads(TABLE.read_text()), table) if TABLE.exists() else ["there was no table"]
    sys.stdout.write("\n".join(found or ["nothing differs"]) + "\n")
    if wanted.check:
        return 1 if found else 0
    TABLE.write_text(json.dumps(table, indent=1) + "\n")
    return 0


if __name__ == "__main__":
    raise SystemExit(main())
