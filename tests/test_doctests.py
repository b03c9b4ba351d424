"""The examples in docstrings are true."""

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
