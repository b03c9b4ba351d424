"""Explicit lookup tables: a duplicate is rejected, an unknown name is answered with the known ones; lazy names."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Iterator, Mapping
from importlib import import_module
from typing import Any, Generic, TypeVar

from veilkit.errors import UnknownNameError

T = TypeVar("T")


class Lookup(Mapping[str, T], Generic[T]):
    """A read-only table from names to things of one kind.

    >>> Lookup("colour", [("red", 1), ("green", 2)])["gren"]
    Traceback (most recent call last):
    ...
    veilkit.errors.UnknownNameError: unknown colour 'gren'; did you mean 'green'? Known: green, red
    """

    def __init__(self, kind: str, entries: list[tuple[str, T]]) -> None:
        self.kind = kind
        self._entries: dict[str, T] = {}
        for name, entry in entries:
            if name in self._entries:
                raise ValueError(f"the {kind} {name!r} is listed twice")
            self._entries[name] = entry

    def __getitem__(self, name: str) -> T:
        try:
            return self._entries[name]
        except KeyError:
            raise UnknownNameError(unknown_name(self.kind, name, self._entries)) from None

    def find(self, name: str) -> T | None:
        """The thing of this name, or None: for names that may come from another version."""
        return self._entries.get(name)

    def __iter__(self) -> Iterator[str]:
        return iter(self._entries)

    def __len__(self) -> int:
        return len(self._entries)

    def __contains__(self, name: object) -> bool:
        return name in self._entries


class LazyLookup(Lookup[T]):
    """A table whose things are imported when they are first asked for; names alone import nothing.

    >>> LazyLookup("number", [("pi", "math:pi")])["pi"] > 3
    True
    """

    def __init__(self, kind: str, places: list[tuple[str, str]]) -> None:
        super().__init__(kind, [])
        self._places = Lookup(kind, places)

    def __getitem__(self, name: str) -> T:
        module, _, attribute = self._places[name].partition(":")
        found: T = getattr(import_module(module), attribute)
        return found

    def find(self, name: str) -> T | None:
        """The thing of this name, or None: for names that may come from another version."""
        return self[name] if name in self._places else None

    def __iter__(self) -> Iterator[str]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def __contains__(self, name: object) -> bool:
        return name in self._places


def unknown_name(kind: str, name: str, known: Mapping[str, object]) -> str:
    """The message that answers an unknown name with the nearest and all known ones."""
    near = difflib.get_close_matches(name, known, n=1)
    hint = f"; did you mean {near[0]!r}?" if near else "."
    return f"unknown {kind} {name!r}{hint} Known: {', '.join(sorted(known))}"


def lazy_names(package: str, modules: Mapping[str, str]) -> Callable[[str], Any]:
    """`__getattr__` of a package. modules: below the package, and the names that each offers, with spaces between."""
    homes = {name: module for module, names in modules.items() for name in names.split()}

    def found(name: str) -> Any:
        if name not in homes:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        return getattr(import_module(f"{package}.{homes[name]}"), name)

    return found
