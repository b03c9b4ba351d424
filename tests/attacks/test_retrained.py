from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import torch

from tests.attacks.learned import BUDGET, JUDGE, drawn, learned_target, people
from veilkit.attacks import Budget, Pairs, run_gated
from veilkit.attacks.division import divide
from veilkit.attacks.pictures import HeldPictures
from veilkit.attacks.retrained import RECIPE, Retrained, RetrainedConfig, train_on
from veilkit.datasets.augment import AugmentConfig


class Recorder:
    """In place of training: keeps what it was given."""

    def __init__(self) -> None:
        self.lessons: list[tuple] = []

    def __call__(self, *lessons):
        self.lessons.append(lessons)
        return JUDGE


def test_it_is_taught_other_peoples_protected_pictures() -> None:
    recorder, release = Recorder(), 1 - drawn()[0]
    target = learned_target(release)
    evidence = Retrained(train=recorder).run(target)
    images, codes = recorder.lessons[0][:2]
    public = divide(target, None, None).public.people
    np.testing.assert_array_equal(codes[0], public)
    assert torch.equal(images[0], (release[np.isin(people(), public)] * 255).round().to(torch.uint8))
    assert len(images) == 1
    names = [score.metric for score in evidence.scores]
    assert names[0] == "rank-1"
    assert "raw to protected rank-1" in names
    Retrained(RetrainedConfig(raw=True), recorder).run(target)
    assert len(recorder.lessons[1][0]) == 2


def test_raw_queries_find_negatives_less_often_than_negatives_do() -> None:
    evidence = Retrained(train=Recorder()).run(learned_target(1 - drawn()[0]))
    values = {score.metric: score.value for score in evidence.scores}
    assert values["rank-1"] > values["raw to protected rank-1"]


def test_people_seen_once_teach_nobody() -> None:
    images = drawn()[0]
    once = Pairs(HeldPictures(images[:8]), HeldPictures(images[:8]), 1000 + np.arange(8))
    evidence = run_gated(Retrained, learned_target(pairs=once))
    assert not evidence.applicable
    assert "have two pictures" in evidence.reason


def test_training_gives_a_recogniser_and_keeps_no_pictures(tmp_path: Path) -> None:
    images, codes = (drawn()[0][:16] * 255).to(torch.uint8), people()[:16]
    recipe = replace(RECIPE, backbone="mobilenetv2-x0.5", augment=AugmentConfig(erase=0.0))
    lessons = ([images], [codes], RetrainedConfig(recipe), Budget(updates=4, batch=8), tmp_path)
    first = train_on(*lessons)
    kept = sorted(file.suffix for file in tmp_path.rglob("*") if file.is_file())
    assert set(kept) == {".safetensors"}
    features = first.embed(drawn()[0][:3])
    assert features.shape == (3, first.dim)
    again = train_on(*lessons)
    assert torch.equal(again.embed(drawn()[0][:3]), features)
    assert again.sha256 == first.sha256


def test_no_budget_no_attack() -> None:
    assert "no budget" in run_gated(Retrained, learned_target(budget=None)).reason
    assert Retrained().clean_bound(learned_target(budget=BUDGET)) > 0.3
