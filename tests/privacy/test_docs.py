"""The example of docs/privacy.md runs as it stands, and everything exported is listed."""

from __future__ import annotations

import re
import subprocess
import sys
from pathlib import Path

import veilkit.privacy

ROOT = Path(__file__).resolve().parent.parent.parent


def test_the_example_of_the_page_runs(tmp_path: Path) -> None:
    code = re.search(r"<!-- example -->\n```python\n(.*?)```", (ROOT / "docs" / "privacy.md").read_text(), re.S)
    assert code
    done = subprocess.run([sys.executable, "-c", code[1]], cwd=tmp_path, capture_output=True, text=True, check=True)
    spent, refused, audit = done.stdout.splitlines()
    assert "epsilon=16.0" in spent
    assert "from epsilon 16 to 24" in refused
    assert "privunit: epsilon claimed 8, proved 8, lower bound" in audit


def test_everything_exported_is_there_once() -> None:
    assert len(set(veilkit.privacy.__all__)) == len(veilkit.privacy.__all__)
    assert all(hasattr(veilkit.privacy, name) for name in veilkit.privacy.__all__)
