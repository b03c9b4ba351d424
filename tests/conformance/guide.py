"""The code of the guides in docs/extend/, as somebody who follows them would write it."""

from __future__ import annotations

import re
import types
from pathlib import Path

from veilkit.attacks import Attack

GUIDES = Path(__file__).parents[2] / "docs" / "extend"


def guide_module(page: str) -> types.ModuleType:
    """The module of a guide's first block of code."""
    code = re.search(r"```python\n(.*?)```", (GUIDES / page).read_text(), re.S)
    assert code
    module = types.ModuleType(page.removesuffix(".md"))
    exec(compile(code[1], page, "exec"), module.__dict__)
    return module


def guide_attack() -> type[Attack]:
    """The attack of docs/extend/add-an-attack.md."""
    found: type[Attack] = guide_module("add-an-attack.md").Thumbnails
    return found
