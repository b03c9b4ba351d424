"""Names that a package offers from its modules, each imported when it is first asked for."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from importlib import import_module
from typing import Any


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """`__getattr__` of a package. modules: below the package, and the names that each offers, with spaces between."""
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def found(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return found
