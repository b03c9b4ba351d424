from __future__ import annotations

import doctest
import importlib
import pkgutil

import pytest

import veilkit.metrics

MODULES = [f"veilkit.metrics.{module.name}" for module in pkgutil.iter_modules(veilkit.metrics.__path__)]
WITH_EXAMPLES = {"image", "ratings", "retrieval", "uncertainty", "verification"}


@pytest.mark.parametrize("name", MODULES)
def test_examples_in_docstrings_hold(name):
    result = doctest.testmod(importlib.import_module(name))
    assert result.failed == 0
    assert (result.attempted > 0) == (name.rpartition(".")[2] in WITH_EXAMPLES)


def test_everything_exported_is_listed_once():
    assert sorted(set(veilkit.metrics.__all__)) == sorted(veilkit.metrics.__all__)
    assert all(hasattr(veilkit.metrics, name) for name in veilkit.metrics.__all__)
