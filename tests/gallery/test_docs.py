"""The examples of docs/gallery.md run as they stand."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

PAGE = Path(__file__).resolve().parent.parent.parent / "docs" / "gallery.md"


def test_the_python_example_runs(tmp_path: Path) -> None:
    code = re.search(r"<!-- example -->\n```python\n(.*?)```", PAGE.read_text(), re.S)
    assert code
    done = subprocess.run([sys.executable, "-c", code[1]], cwd=tmp_path, capture_output=True, text=True, check=True)
    added, best, budget, refused = done.stdout.splitlines()
    assert added == "Added(added=6, kept=0, resumed=0)"
    assert re.fullmatch(r"[a-z2-7]{26} is (ann|bob|cleo)/\d\.jpg", best)
    assert budget == "16.0 spent, 6 paid for, 6 stored, they agree: True"
    assert "from epsilon 16 to 24" in refused


def test_the_commands_run(folder: Path, tmp_path: Path) -> None:
    shell = re.search(r"<!-- commands -->\n```sh\n(.*?)```", PAGE.read_text(), re.S)
    assert shell
    folder.rename(tmp_path / "photos")
    start = f"set -e\nveilkit() {{ '{sys.executable}' -c 'from veilkit.cli import main; main()' \"$@\"; }}\n"
    done = subprocess.run(["bash", "-c", start + shell[1]], cwd=tmp_path, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "12 vectors released and stored" in done.stdout
    assert "they agree" in done.stdout
    assert (tmp_path / "released" / "manifest.json").is_file()
