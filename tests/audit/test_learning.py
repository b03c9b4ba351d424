"""Attackers who learn are part of an audit when they are asked for, and what they learned is kept."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from veilkit.audit.run import run_audit
from veilkit.pipeline.protect import protect

LEARNERS = {"recovery", "recovery_features", "embedding_inversion", "feature_decoder", "retrained", "silhouette"}


@pytest.fixture
def pictures(tmp_path: Path) -> tuple[Path, Path]:
    """Ten people of three pictures each, told apart by their colours, and their pixelated release."""
    generator = np.random.default_rng(0)
    for person in range(10):
        colours = np.kron(generator.integers(0, 255, (4, 2, 3)), np.ones((8, 8, 1)))
        (tmp_path / "originals" / f"{person:02}").mkdir(parents=True)
        for shot in range(3):
            noisy = np.clip(colours + generator.normal(0, 10, colours.shape), 0, 255).astype(np.uint8)
            Image.fromarray(noisy).save(tmp_path / "originals" / f"{person:02}" / f"{shot}.png")
    protect(tmp_path / "originals", tmp_path / "release", "pixelate", seed=1, labels="folder")
    return tmp_path / "originals", tmp_path / "release"


@pytest.mark.slow
def test_attackers_learn_when_they_may(pictures: tuple[Path, Path], tmp_path: Path) -> None:
    options = {"seed": 1, "labels": "folder", "expert": "histogram", "judge": "people", "out": tmp_path / "out"}
    result = run_audit(*pictures, learn=2, **options)
    found = {evidence.attack: evidence for evidence in result.attacks}
    assert {name for name in LEARNERS if found[name].applicable} == LEARNERS
    # Two updates teach nothing, and the gates say so.
    assert all(found[name].invalid for name in LEARNERS - {"retrained"})
    assert result.config["learn"] == 2
    assert not any(each.what.startswith("attackers who learn") for each in result.unmeasured)
    kept = sorted((tmp_path / "out" / "cache" / "learned").rglob("*.safetensors"))
    assert kept
    made = [file.stat().st_mtime_ns for file in kept]
    assert run_audit(*pictures, learn=2, **options).to_json() == result.to_json()
    assert [file.stat().st_mtime_ns for file in kept] == made
    report = tmp_path / "out" / "report.html"
    hidden = report.read_text()
    assert 'alt="Recovered picture' not in hidden  # attempts may have succeeded
    assert "where an attack succeeds, that shows real people" in hidden
    run_audit(*pictures, learn=2, attacks=["recovery"], show_originals=True, **options)
    shown = report.read_text()
    assert shown.count('alt="Recovered picture') == 8


def test_they_are_named_where_nobody_asked_for_them(pictures: tuple[Path, Path], tmp_path: Path) -> None:
    result = run_audit(*pictures, seed=1, labels="folder", expert="histogram", out=tmp_path / "out")
    missing = next(each for each in result.unmeasured if each.what.startswith("attackers who learn"))
    assert all(name in missing.what for name in LEARNERS)
    assert "--learn" in missing.why
    assert "learn" not in result.config
