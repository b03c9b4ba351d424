"""How quick the package starts and how large it is: start-up in processor time, modules loaded, lines and files.

    python benchmarks/house.py

Processor time is user and system time of a fresh process, the median of five. Files are those that git tracks.
"""

from __future__ import annotations

import ast
import resource
import statistics
import subprocess
import sys
import tempfile
from collections import Counter
from pathlib import Path

from claims import ROOT, record
from pictures import write_folder
from process import command

RUNS = 5
BEFORE = 392_684  # tracked lines outside of models/ before the studies' results shrank to their headline figures
MODULES = """
import sys
from veilkit.cli import main
try:
    main()
except SystemExit:
    pass
print("loaded", len([name for name in sys.modules if name.partition(".")[0] == "veilkit"]))
print("heavy", [name for name in ("sklearn", "torchmetrics", "veilkit.methods.disguise") if name in sys.modules])
"""


def processor_time(*words: str) -> float:
    """The median of a few runs, in seconds."""
    taken = []
    for _ in range(RUNS):
        before = resource.getrusage(resource.RUSAGE_CHILDREN)
        subprocess.run(words, capture_output=True, check=False)
        after = resource.getrusage(resource.RUSAGE_CHILDREN)
        taken.append(after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime)
    return statistics.median(taken)


def mistakes(folder: Path) -> dict[str, list[str]]:
    """Commands with a wrong path or name."""
    photos, nowhere, out = str(folder / "photos"), str(folder / "nowhere"), str(folder / "out")
    return {
        "protect: no such folder": command("protect", nowhere, out, "--method", "blur"),
        "protect: no such method": command("protect", photos, out, "--method", "blurr"),
        "audit: no such folder": command("audit", nowhere, photos),
        "recover: no such folder": command("recover", nowhere, out),
    }


def loaded(folder: Path) -> tuple[int, str]:
    """Modules of veilkit at the end of `protect --method pixelate` of one picture, and heavy ones among all."""
    words = ["protect", str(folder / "photos"), str(folder / "release"), "--method", "pixelate", "--workers", "0"]
    done = subprocess.run([sys.executable, "-c", MODULES, *words], capture_output=True, text=True, check=True)
    lines = dict(line.split(" ", 1) for line in done.stdout.splitlines() if line.startswith(("loaded ", "heavy ")))
    return int(lines["loaded"]), lines["heavy"]


def tracked() -> list[Path]:
    listed = subprocess.run(["git", "ls-files"], cwd=ROOT, capture_output=True, text=True, check=True).stdout
    return [ROOT / name for name in listed.splitlines()]


def lines(files: list[Path]) -> int:
    return sum(file.read_bytes().count(b"\n") for file in files)


def no_code(files: list[Path]) -> dict[str, int]:
    """How many lines are blank, and how many belong to docstrings and imports."""
    found = Counter(blank=0, docstrings=0, imports=0)
    for file in files:
        text = file.read_text(encoding="utf-8")
        found["blank"] += sum(not line.strip() for line in text.splitlines())
        for node in ast.walk(ast.parse(text)):
            if isinstance(node, ast.Import | ast.ImportFrom):
                found["imports"] += _lines_of(node)
            elif isinstance(node, ast.Module | ast.ClassDef | ast.FunctionDef) and ast.get_docstring(node):
                found["docstrings"] += _lines_of(node.body[0])
    return dict(found)


def _lines_of(node: ast.stmt) -> int:
    return (node.end_lineno or node.lineno) - node.lineno + 1


def main() -> None:
    start = {
        "data": "none",
        "scale": f"median of {RUNS} processes",
        "seed": None,
        "command": "python benchmarks/house.py",
    }
    with tempfile.TemporaryDirectory() as temporary:
        folder = Path(temporary)
        write_folder(folder / "photos", 1, people=1, height=64, width=32)
        imported = processor_time(sys.executable, "-c", "import veilkit")
        helped = processor_time(*command("--help"))
        answered = {name: processor_time(*words) for name, words in mistakes(folder).items()}
        modules, heavy = loaded(folder)
    print(f"import {imported:.3f} s, --help {helped:.3f} s, {answered}, {modules} modules, heavy: {heavy}")
    record(
        id="start-import", claim="Processor time of `import veilkit`", figure=round(imported, 3), bar="< 0.1",
        unit="s", **start,
    )  # fmt: skip
    record(
        id="start-help", claim="Processor time of `veilkit --help`", figure=round(helped, 2), bar="< 0.5", unit="s",
        **start,
    )  # fmt: skip
    record(
        id="start-mistake", claim="Processor time until a wrong path or name is answered, slowest of four commands",
        figure=round(max(answered.values()), 2), bar="< 0.6", unit="s",
        note=max(answered, key=answered.__getitem__), **start,
    )  # fmt: skip
    record(
        id="start-modules", claim="Modules of veilkit loaded by `protect --method pixelate`", figure=modules,
        bar="<= 90", unit="modules",
        note=f"of scikit-learn, torchmetrics and Disguise: {heavy}", **start,
    )  # fmt: skip
    files = tracked()
    size = {**start, "scale": "files that git tracks"}
    package = [file for file in files if file.suffix == ".py" and (ROOT / "src") in file.parents]
    outside = [file for file in files if (ROOT / "models") not in file.parents]
    total, other = lines(package), no_code(package)
    parts = ", ".join(f"{count} {name}" for name, count in other.items())
    record(
        id="size-package", claim="Lines of the installed package", figure=total, bar="<= 40000", unit="lines",
        note=f"of them {parts}; {total - sum(other.values())} are code. What is left over the bar is features",
        **size,
    )  # fmt: skip
    record(
        id="size-files",
        claim="Tracked files",
        figure=len(files),
        bar="<= 900",
        unit="files",
        note=f"{len(package)} of them modules of the package",
        **size,
    )
    record(
        id="size-lines", claim="Tracked lines outside of models/", figure=lines(outside),
        bar=f"<= {BEFORE // 2}", unit="lines", **size,
    )  # fmt: skip


if __name__ == "__main__":
    main()
