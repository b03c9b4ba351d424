"""Finished tiny runs of studies, which tests only read."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tests.studies.harness import Done, finished


@pytest.fixture(scope="session")
def done(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Done]:
    """The run of a study by its name."""
    return lambda name: finished(name, tmp_path_factory)
