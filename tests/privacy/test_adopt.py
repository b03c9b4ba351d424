"""Vectors found published are charged, whatever the ledger has forgotten."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
import torch

from veilkit.errors import BudgetError, DataError
from veilkit.privacy import Budget, Ledger, PrivUnit

PRIVUNIT = PrivUnit(dimension=8, epsilon=2.0)
BUDGET = Budget(epsilon=4.0, delta=0.0)


def some(count: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((count, 8)).astype(np.float32)


def test_adopted_vectors_are_charged_once_and_given_again(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger", budget=BUDGET, per="person") as ledger:
        found = some(2)
        for charged in (2, 0):
            assert ledger.adopt(PRIVUNIT, found, records=["1", "2"], persons=["ann", "ann"]) == charged
        assert ledger.spent("ann").epsilon == 4.0
        given = torch.zeros(2, 8)
        given[:, 0] = 1.0
        assert (ledger.release(PRIVUNIT, given, records=["1", "2"], persons=["ann", "ann"]).numpy() == found).all()
        with pytest.raises(BudgetError):
            ledger.release(PRIVUNIT, given[:1], records=["3"], persons=["ann"])


def test_what_is_out_is_charged_past_the_budget_and_another_vector_is_another_release(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger", budget=BUDGET, per="record") as ledger:
        found = some(3)
        charged = [ledger.adopt(PRIVUNIT, found[row : row + 1], records=["a"]) for row in (0, 1, 2, 1, 0)]
        assert charged == [1, 1, 1, 0, 0]
        assert (ledger.spent("a").epsilon, ledger.spent("a").left) == (6.0, 0.0)
        assert (ledger.released(PRIVUNIT, ["a"])["a"] == found[0]).all()
        assert ledger.only(PRIVUNIT)
        assert not ledger.only(PrivUnit(dimension=8, epsilon=1.0))


def test_what_is_no_vector_or_another_persons_is_not_adopted(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger", budget=BUDGET, per="person") as ledger:
        ledger.adopt(PRIVUNIT, some(1), records=["1"], persons=["ann"])
        endless = some(1)
        endless[0, 3] = np.inf
        for wrong in (some(1)[:, :4], endless):
            with pytest.raises(DataError, match="finite vectors of 8"):
                ledger.adopt(PRIVUNIT, wrong, records=["2"], persons=["ann"])
        with pytest.raises(DataError, match="another person's"):
            ledger.adopt(PRIVUNIT, some(1), records=["1"], persons=["bob"])
        assert len(ledger) == 1
