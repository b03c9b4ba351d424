from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch

from tests.attacks.learners import BUDGET, Recorder, drawn, learned_target, people
from tests.methods.experts import tiny_expert_file
from veilkit.attacks import Budget, Pairs, run_gated
from veilkit.attacks.learned.retrained import RECIPE, Retrained, RetrainedConfig, _started, start_facts, train_on
from veilkit.attacks.people_split import divide
from veilkit.attacks.pictures import HeldPictures
from veilkit.checkpoint import save_checkpoint
from veilkit.datasets.augment import AugmentConfig
from veilkit.errors import VeilkitError
from veilkit.experts.names import file_sha256
from veilkit.networks.backbones import BACKBONE_KIND, build_backbone


def test_it_is_taught_other_peoples_protected_pictures() -> None:
    recorder, release = Recorder(), 1 - drawn()[0]
    target = learned_target(release)
    evidence = Retrained(train=recorder).run(target)
    images, codes = recorder.lessons[0][:2]
    public = divide(target).public.people
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


def test_it_starts_from_the_targets_weights_and_so_do_its_gates() -> None:
    recorder, start = Recorder(), Path(tiny_expert_file("mobilenetv2"))
    target = learned_target(start=start)
    evidence = run_gated(lambda: Retrained(train=recorder), target)
    assert recorder.starts == [start] * 3  # the release, originals, noise
    assert evidence.details["started from"] == file_sha256(start)[:12]
    own = Path(tiny_expert_file())
    config = _started(RetrainedConfig(), own)
    assert (config.init, config.recipe) == (own, replace(RECIPE, backbone="osnet-x0.25"))
    Retrained(RetrainedConfig(init=own), recorder).run(target)
    assert recorder.starts[3:] == [own]
    evidence = Retrained(train=recorder).run(learned_target())
    assert recorder.starts[4:] == [None]
    assert evidence.details["started from"] == "scratch"


def test_weights_to_start_from_are_known_by_their_digest(tmp_path: Path) -> None:
    reid, backbone = Path(tiny_expert_file("mobilenetv2")), tmp_path / "backbone.safetensors"
    save_checkpoint(backbone, build_backbone("mobilenetv2").state_dict(), {"backbone": "mobilenetv2"}, BACKBONE_KIND)
    before = torch.random.get_rng_state()
    assert [start_facts(file) for file in (reid, backbone)] == [
        {"start": file_sha256(reid)}, {"start": file_sha256(backbone)},
    ]  # fmt: skip
    assert torch.equal(torch.random.get_rng_state(), before)
    assert start_facts(None) == {}


def test_what_nobody_can_start_from_is_refused(tmp_path: Path) -> None:
    state, few, unknown = (tmp_path / f"{name}.safetensors" for name in ("state", "few", "unknown"))
    save_checkpoint(unknown, {"a": torch.zeros(1)}, {"backbone": "none"}, BACKBONE_KIND)
    save_checkpoint(state, {"a": torch.zeros(1)}, {}, "reid-training")
    save_checkpoint(few, {"a": torch.zeros(1)}, {"backbone": "mobilenetv2"}, BACKBONE_KIND)
    for file, told in (
        (tmp_path / "nowhere", "no such model file"),
        (unknown, "unknown backbone 'none'"),
        (state, "'backbone' or 'reid', but got 'reid-training'"),
        (few, "do not fit"),
    ):
        with pytest.raises(VeilkitError, match=told):
            start_facts(file)


def test_people_seen_once_teach_nobody() -> None:
    images = drawn()[0]
    once = Pairs(HeldPictures(images[:8]), HeldPictures(images[:8]), 1000 + np.arange(8))
    evidence = run_gated(Retrained, learned_target(pairs=once))
    assert not evidence.applicable
    assert "have two pictures" in evidence.why_missing


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
    elsewhere = replace(lessons[2], init=Path(tiny_expert_file("mobilenetv2-x0.5")))
    assert train_on(*lessons[:2], elsewhere, *lessons[3:]).sha256 != first.sha256
    assert len(list(tmp_path.glob("retrained-*.safetensors"))) == 2


def test_no_budget_no_attack() -> None:
    assert "no budget" in run_gated(Retrained, learned_target(budget=None)).why_missing
    assert Retrained().clean_bound(learned_target(budget=BUDGET)) > 0.3
