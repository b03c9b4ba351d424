"""The code of the guides in docs/extend/, put where the guide says, as somebody who follows it would."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType

import pytest

import veilkit.attacks
import veilkit.methods

GUIDES = Path(__file__).parents[2] / "docs" / "extend"


def guide_code(page: str) -> tuple[str, str]:
    """The file that a guide writes (its first line names it), relative to src/, and its code."""
    block = re.search(r"```python\n# src/(\S+)\n(.*?)```", (GUIDES / page).read_text(), re.S)
    assert block
    return block[1], block[2]


def guide_attack(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of add-an-attack.md, imported by the name that it has in the package; its file is in `folder`."""
    return _imported("add-an-attack.md", veilkit.attacks, folder, monkeypatch)


def guide_method(folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    """The module of add-a-method.md, likewise."""
    return _imported("add-a-method.md", veilkit.methods, folder, monkeypatch)


def _imported(page: str, package: ModuleType, folder: Path, monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    file, code = guide_code(page)
    place, module = file.removesuffix(".py").rsplit("/", 1)
    assert place.replace("/", ".") == package.__name__
    (folder / f"{module}.py").write_text(code)
    monkeypatch.setattr(package, "__path__", [*package.__path__, str(folder)])
    found = importlib.import_module(f"{package.__name__}.{module}")
    del sys.modules[found.__name__]
    monkeypatch.setitem(sys.modules, found.__name__, found)  # the next test writes it anew
    return found
