"""What veilkit promises, as measured: the rows of claims.json.

A command that measures something calls `record`. `python benchmarks/claims.py` prints the table, and with `--render`
writes docs/claims.md and the figures in README.md that stand between claim marks.
"""

from __future__ import annotations

import argparse
import datetime
import fcntl
import json
import operator
import os
import platform
import re
import sys
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
FILE = ROOT / "benchmarks" / "claims.json"
PAGE = ROOT / "docs" / "claims.md"
README = ROOT / "README.md"
FIELDS = (
    "id",
    "claim",
    "figure",
    "bar",
    "unit",
    "holds",
    "data",
    "scale",
    "seed",
    "machine",
    "command",
    "date",
    "note",
)
_COMPARE = {"<=": operator.le, ">=": operator.ge, "==": operator.eq, "<": operator.lt, ">": operator.gt}
_MARK = re.compile(r"<!-- claim:([a-z0-9-]+)(?: (\S+))? -->(.*?)<!-- /claim -->", re.S)


def reaches(figure: float, bar: str) -> bool:
    """Whether a figure reaches a bar such as "<= 1.5".

    >>> reaches(1.2, "<= 1.5")
    True
    """
    sign, _, value = bar.partition(" ")
    if sign not in _COMPARE:
        raise ValueError(f"a bar looks like '<= 1.5', but got {bar!r}")
    return bool(_COMPARE[sign](figure, float(value)))


def machine() -> str:
    return f"{len(os.sched_getaffinity(0))} cores, {platform.machine()} CPU, no GPU"


def record(
    *,
    id: str,
    claim: str,
    figure: float,
    bar: str,
    unit: str,
    data: str,
    scale: str,
    seed: int | None,
    command: str,
    note: str = "",
) -> dict[str, Any]:
    """Write one row, in place of an older one of that id. Whether it holds follows from figure and bar."""
    row = {
        "id": id, "claim": claim, "figure": figure, "bar": bar, "unit": unit, "holds": reaches(figure, bar),
        "data": data, "scale": scale, "seed": seed, "machine": machine(), "command": command,
        "date": datetime.date.today().isoformat(), "note": note,
    }  # fmt: skip
    with (FILE.with_suffix(".lock")).open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        rows = {old["id"]: old for old in load()}
        rows[id] = row
        draft = FILE.with_suffix(".tmp")
        draft.write_text(json.dumps(sorted(rows.values(), key=lambda r: r["id"]), indent=2) + "\n")
        draft.replace(FILE)
    print(f"{'holds' if row['holds'] else 'FALLS SHORT'}: {claim}: {_number(figure)} {unit} (bar: {bar})")
    return row


def load() -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = json.loads(FILE.read_text()) if FILE.exists() else []
    return rows


def _number(figure: float) -> str:
    return f"{figure:,}" if isinstance(figure, int) else f"{figure:.4g}"


def page(rows: list[dict[str, Any]]) -> str:
    lines = [
        "# Appendix: everything that was measured",
        "",
        "Each row is written by the command that measures it; `make claims` prints the table and writes this page.",
        "",
        "| claim | figure | bar | holds | data, scale, seed | measured by |",
        "|---|---|---|---|---|---|",
    ]
    for row in rows:
        where = ", ".join(str(part) for part in (row["data"], row["scale"]) if part)
        seed = "" if row["seed"] is None else f", seed {row['seed']}"
        note = f"<br>{row['note']}" if row["note"] else ""
        lines.append(
            f"| {row['claim']}{note} | {_number(row['figure'])} {row['unit']} | {row['bar']} | "
            f"{'yes' if row['holds'] else '**no**'} | {where}{seed} | `{row['command']}`<br>{row['date']}, "
            f"{row['machine']} |"
        )
    return "\n".join(lines) + "\n"


def with_figures(text: str, rows: list[dict[str, Any]]) -> str:
    """`text` with every figure between claim marks replaced by the measured one.

    A mark is `<!-- claim:ID -->figure<!-- /claim -->`, with a format such as `.1f` after the id if wanted.
    """
    figures = {row["id"]: row["figure"] for row in rows}

    def fill(found: re.Match[str]) -> str:
        name, style, _ = found.groups()
        if name not in figures:
            raise SystemExit(f"README names the claim {name!r}, which is not in {FILE.name}")
        figure = format(figures[name], style) if style else _number(figures[name])
        return f"<!-- claim:{name}{f' {style}' if style else ''} -->{figure}<!-- /claim -->"

    return _MARK.sub(fill, text)


def put(page: Path, name: str, text: str) -> None:
    """Print `text`, and put it on a page between the marks `<!-- NAME tables -->` and `<!-- /NAME tables -->`."""
    print(text)
    opening, closing = f"<!-- {name} tables -->", f"<!-- /{name} tables -->"
    head, found, rest = page.read_text(encoding="utf-8").partition(opening)
    _, closed, tail = rest.partition(closing)
    if not found or not closed:
        sys.exit(f"{page.name} has no place between {opening} and {closing}")
    page.write_text(f"{head}{opening}\n{text}\n{closing}{tail}", encoding="utf-8")


def table(rows: list[dict[str, Any]]) -> str:
    lines = []
    for row in rows:
        verdict = "holds" if row["holds"] else "FALLS SHORT"
        lines.append(f"{verdict:<12}{row['id']:<28}{_number(row['figure']):>12} {row['unit']:<10} {row['bar']}")
        lines.append(f"{'':<12}{row['claim']} [{row['date']}]")
        if row["note"]:
            lines.append(f"{'':<12}{row['note']}")
    return "\n".join(lines)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--render", action="store_true", help="also write docs/claims.md and README's figures")
    arguments = parser.parse_args()
    rows = load()
    if arguments.render:
        PAGE.write_text(page(rows))
        README.write_text(with_figures(README.read_text(), rows))
    print(table(rows))
    short = sum(not row["holds"] for row in rows)
    print(f"{len(rows)} claims, {len(rows) - short} hold, {short} fall short")


if __name__ == "__main__":
    main()
