"""Finished tiny runs of studies, which tests only read, and what follows from cells under the published options."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

from studies.shared.runner import load_study
from tests.studies.harness import Done, finished


@pytest.fixture(scope="session")
def done(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Done]:
    """The run of a study by its name."""
    return lambda name: finished(name, tmp_path_factory)


class Published:
    """The rows of claims and the tables of a study. prefix: of its claims' ids, which `by_id` leaves out."""

    def __init__(self, name: str, *, place: str | None = None, prefix: str = "") -> None:
        self.study, self._place, self._prefix = load_study(name), place or name, prefix
        self.config = self.study.published

    def rows(self, cells: dict[str, Any]) -> list[dict[str, Any]]:
        return self.study.claims(cells, self.config)

    def by_id(self, cells: dict[str, Any]) -> dict[str, dict[str, Any]]:
        return {row["id"].removeprefix(self._prefix): row for row in self.rows(cells)}

    def withheld(self, cells: dict[str, Any]) -> list[str]:
        return self.study.withheld(cells, self.config)

    def tables(self, cells: dict[str, Any], place: str | None = None) -> str:
        return self.study.tables(cells, self.config)[place or self._place]


def around(value: float, width: float = 0.01) -> list[float]:
    """A value and its interval, as cells hold them."""
    return [value, value - width, value + width]
