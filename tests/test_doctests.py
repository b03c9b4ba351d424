"""The examples in docstrings are true, and metrics have some."""

from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import veilkit

MODULES = [name for _, name, _ in pkgutil.walk_packages(veilkit.__path__, "veilkit.") if not name.endswith(".child")]


@pytest.mark.parametrize("name", MODULES)
def test_examples(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name)).failed == 0


@pytest.mark.parametrize("name", ["image", "ratings", "retrieval", "uncertainty", "verification"])
def test_metrics_show_how_they_are_used(name: str) -> None:
    module = importlib.import_module(f"veilkit.metrics.{name}")
    assert any(test.examples for test in doctest.DocTestFinder(exclude_empty=True).find(module))
