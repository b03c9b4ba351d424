"""The README's example runs as it stands."""

from __future__ import annotations

import re
import subprocess
import sys
import types
from pathlib import Path

import pytest
import torch

from tests.conftest import tree
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

ROOT = Path(__file__).resolve().parent.parent


def test_the_python_example_runs(folder: Path, tmp_path: Path) -> None:
    code = re.search(r"<!-- example -->\n```python\n(.*?)```", (ROOT / "README.md").read_text(), re.S)
    assert code
    folder.rename(tmp_path / "photos")
    script = tmp_path / "example.py"
    script.write_text(code[1])
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "12 protected, 0 refused" in done.stdout
    assert (tmp_path / "release" / "manifest.json").is_file()


def test_the_examples_of_the_recovery_page_run(folder: Path, tmp_path: Path) -> None:
    page = (ROOT / "docs" / "recovery.md").read_text()
    shell, python = re.search(r"```sh\n(.*?)```", page, re.S), re.search(r"```python\n(.*?)```", page, re.S)
    assert shell
    assert python
    folder.rename(tmp_path / "photos")
    start = f"set -e\nveilkit() {{ '{sys.executable}' -c 'from veilkit.cli import main; main()' \"$@\"; }}\n"
    subprocess.run(["bash", "-c", start + shell[1]], cwd=tmp_path, check=True)
    assert tree(tmp_path / "originals") == tree(tmp_path / "photos")
    (tmp_path / "example.py").write_text(python[1])
    done = subprocess.run([sys.executable, "example.py"], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert "opens with any one of 1 keys" in done.stdout
    assert "0 restored, 12 already there" in done.stdout


def test_links_in_the_docs_lead_somewhere() -> None:
    pages = [ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")]
    dead = [
        f"{page.relative_to(ROOT)}: {link}"
        for page in pages
        for link in re.findall(r"\]\((?!https?:|#)([^)#]+)", page.read_text())
        if not (page.parent / link).exists()
    ]
    assert not dead


def test_the_method_of_the_guide_works(monkeypatch: pytest.MonkeyPatch) -> None:
    guide = (ROOT / "docs" / "extend" / "add-a-method.md").read_text()
    code = re.search(r"```python\n(.*?)```", guide, re.S)
    assert code
    module = types.ModuleType("sepia")
    monkeypatch.setitem(sys.modules, "sepia", module)
    exec(compile(code[1], "sepia.py", "exec"), module.__dict__)
    images = torch.rand(2, 3, 8, 4)
    release = module.Sepia().protect(ImageBatch(images, ("a", "b")), rng=Randomness.from_seed(0))
    assert release.images.shape == images.shape
