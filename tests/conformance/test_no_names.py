"""Audit, pipeline, command line and perception know no method and no attack by its name."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import veilkit
from veilkit.attacks import ATTACKS, UNPAIRED_ATTACKS
from veilkit.methods import METHODS

ROOT = Path(veilkit.__file__).parent
FOLDERS = ("audit", "pipeline", "cli", "perception")
NAMES = frozenset({*METHODS, *ATTACKS, *UNPAIRED_ATTACKS})
SYSTEMS = frozenset(".".join(method.__module__.split(".")[:3]) for method in METHODS.values())
ATTACK_MODULES = frozenset(attack.__module__ for attack in (*ATTACKS.values(), *UNPAIRED_ATTACKS.values()))

ALLOWED_NAMES = {
    ("cli/demo.py", "*"),  # the table of what the demo runs
    ("audit/alarms/__init__.py", "noise"),  # a purpose of random values
    ("pipeline/pairing.py", "blur"),  # words that other tools add to the names of files
    ("pipeline/pairing.py", "mask"),
}
ALLOWED_IMPORTS = {("cli/train.py", "veilkit.methods.fro")}  # a command of its own for students of that system


def sources() -> Iterator[tuple[str, ast.Module]]:
    for folder in FOLDERS:
        for file in sorted((ROOT / folder).rglob("*.py")):
            yield str(file.relative_to(ROOT)), ast.parse(file.read_text())


def quoted(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield node.value


def imported(tree: ast.Module) -> Iterator[str]:
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (each.name for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module:
            yield node.module
            yield from (f"{node.module}.{each.name}" for each in node.names)


def system_of(module: str) -> str | None:
    return next((each for each in SYSTEMS if module == each or module.startswith(f"{each}.")), None)


def names_in(file: str, tree: ast.Module) -> list[str]:
    allowed = {name for where, name in ALLOWED_NAMES if where == file}
    return [] if "*" in allowed else sorted({text for text in quoted(tree) if text in NAMES - allowed})


def imports_in(file: str, tree: ast.Module) -> list[str]:
    classes = {f"veilkit.attacks.{attack.__name__}" for attack in (*ATTACKS.values(), *UNPAIRED_ATTACKS.values())}
    classes |= {f"veilkit.methods.{method.__name__}" for method in METHODS.values()}
    found = []
    for module in imported(tree):
        system = system_of(module)
        of_system = system is not None and (file, system) not in ALLOWED_IMPORTS
        if of_system or module in ATTACK_MODULES | classes:
            found.append(module)
    return sorted(set(found))


def test_no_method_and_no_attack_is_named() -> None:
    assert {file: names for file, tree in sources() if (names := names_in(file, tree))} == {}


def test_no_single_method_and_no_single_attack_is_imported() -> None:
    assert {file: modules for file, tree in sources() if (modules := imports_in(file, tree))} == {}


def test_no_template_names_one() -> None:
    spoken = re.compile(rf"<code>({'|'.join(map(re.escape, sorted(NAMES)))})</code>")
    templates = [file for folder in FOLDERS for file in (ROOT / folder).rglob("*.html")]
    assert templates
    assert [
        (file.name, spoken.findall(file.read_text())) for file in templates if spoken.search(file.read_text())
    ] == []


def test_what_is_allowed_is_still_there() -> None:
    trees = dict(sources())
    for file, name in ALLOWED_NAMES:
        assert name == "*" or name in set(quoted(trees[file])), (file, name)
    for file, system in ALLOWED_IMPORTS:
        assert any(system_of(module) == system for module in imported(trees[file])), (file, system)


@pytest.mark.parametrize(
    "code",
    ["wanted = ['jigsaw']", "from veilkit.methods.disguise.method import Disguise",
     "import veilkit.attacks.person_search", "from veilkit.attacks.learned.recovery import RecoveryConfig"],
)  # fmt: skip
def test_a_name_would_be_found(code: str) -> None:
    tree = ast.parse(code)
    assert names_in("audit/new.py", tree) or imports_in("audit/new.py", tree)
