"""The figures of singling out and linkability against independent implementations of the same definitions."""

from __future__ import annotations

import numpy as np
import pytest

from veilkit.attacks.search import plan_search
from veilkit.audit.verdicts.verdict import over_chance
from veilkit.metrics import clopper_pearson


@pytest.mark.parametrize(("found", "control"), [(900, 50), (120, 100), (50, 80), (1000, 0), (330, 329)])
def test_residual_risk_is_that_of_anonymeter(found: int, control: int) -> None:
    reference = pytest.importorskip("anonymeter.stats.confidence", reason="pip install --no-deps anonymeter")
    exact = [reference.SuccessRate(value=hits / 1000, error=0.0) for hits in (found, control)]
    risk = reference.residual_success(*exact).to_risk()
    assert over_chance(found / 1000, control / 1000) == pytest.approx(risk.value, abs=1e-12)
    whole = reference.EvaluationResults(n_attacks=1000, n_success=found, n_baseline=1, n_control=control).risk()
    assert over_chance(found / 1000, control / 1000) == pytest.approx(whole.value, abs=0.01)  # Wilson's centre
    exactly = clopper_pearson(found, 1000)
    wilson = reference.success_rate(1000, found, 0.95)
    ends = wilson.value - wilson.error, wilson.value + wilson.error
    assert (exactly.low, exactly.high) == pytest.approx(ends, abs=0.005)


@pytest.mark.parametrize("noise", [0.1, 0.6, 3.0])
def test_linkability_is_that_of_the_legal_evaluation_of_voices(noise: float) -> None:
    reference = pytest.importorskip("legal_eval.io", reason="pip install --no-deps voice-anonymization-legal-eval")
    people, random = 50, np.random.default_rng(0)
    raw = random.normal(size=(people, 8)).astype(np.float32)
    protected = raw + noise * random.normal(size=raw.shape).astype(np.float32)
    pictures = np.concatenate([raw, protected])
    names = [f"p{place}" for place in range(people)]
    search, _ = plan_search([*names, *names], [None] * 2 * people, range(people, 2 * people), range(people))
    assert search is not None
    found = search.find(pictures, pictures)
    unit = pictures / np.linalg.norm(pictures, axis=1, keepdims=True)
    scores = reference.ScoreMatrix(unit[:people] @ unit[people:].T, names, names, {})
    linkability = pytest.importorskip("legal_eval.metrics").linkability
    (expected,) = linkability(scores, people, estimator="exact")
    assert (found.first_match_rank == 1).mean() == pytest.approx(expected)
    assert search.chance((1,))["rank-1"] == pytest.approx(1 / people)
