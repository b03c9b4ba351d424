"""Cloning learns what a protection did to other people's pictures; transfer picks the network that sees most."""

from __future__ import annotations

from functools import partial
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F

from tests.attacks.learners import TinyCloning, drawn, learned_target, noise_like
from veilkit.attacks import Budget, run_gated
from veilkit.attacks.family_transfer import FamilyTransfer, TransferConfig
from veilkit.attacks.learned.cloning import CloningConfig, contrast, opened
from veilkit.attacks.learned.learning import Learning
from veilkit.attacks.pictures import HeldPictures
from veilkit.attacks.quick.clothes import Clothes
from veilkit.attacks.quick.pooled import PooledLinkage
from veilkit.attacks.search import plan_search
from veilkit.checkpoint import save_checkpoint
from veilkit.experts import load_expert
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, save_reid


def turned(images: torch.Tensor) -> torch.Tensor:
    """Another colour for each, and upside down: one thing for all pictures, which pairs of others give away."""
    return images[:, [1, 2, 0]].flip(2)


def test_a_clone_finds_people_where_the_network_it_started_from_does_not() -> None:
    make = partial(TinyCloning, CloningConfig(company=1, learning=Learning(1e-2, 0.2)))
    found = run_gated(make, learned_target(turned(drawn()[0]), budget=Budget(60, 200, 16)))
    brief = make().run(learned_target(turned(drawn()[0]), budget=Budget(1, 200, 16)))
    assert found.invalid == ()
    assert found.scores[0].low is not None
    assert found.scores[0].low > 0.7 > brief.scores[0].value
    among = {score.metric: score.value for score in found.scores}
    assert among["protected to protected paired choice"] > 0.8
    assert found.details["people on both sides"] == 0


def test_the_contrast_is_least_where_features_are_those_of_the_same_person() -> None:
    people = torch.tensor([0, 0, 1, 2])
    wanted = F.normalize(torch.eye(3)[people])
    right, wrong = (contrast(found, wanted, people, 0.1) for found in (wanted, wanted.roll(1, 1)))
    assert right < wrong
    # Both pictures of the first person are right answers for each other: half a bit is left for the two of them.
    assert right.item() == pytest.approx(np.log(2) / 2, abs=1e-3)


def test_a_clone_starts_from_a_network_or_from_a_backbone_alone(tmp_path: Path) -> None:
    network = ReidNetwork(ReidNetworkConfig("osnet-x0.25", (32, 16))).eval()
    save_reid(tmp_path / "whole.safetensors", network)
    weights = network.backbone.state_dict()  # type: ignore[attr-defined]
    save_checkpoint(tmp_path / "backbone.safetensors", weights, {"backbone": "osnet-x0.25"}, "backbone")
    whole, backbone = (opened(tmp_path / f"{name}.safetensors", (12, 20)) for name in ("whole", "backbone"))
    assert (whole.config.size, backbone.config.size) == ((32, 16), (16, 20))
    assert all(torch.equal(backbone.backbone.state_dict()[name], weights[name]) for name in weights)  # type: ignore[attr-defined]
    assert backbone.embed(torch.rand(2, 3, 12, 20)).shape == (2, 128)


def test_transfer_takes_the_network_that_sees_most_and_never_the_expert_itself(tmp_path: Path) -> None:
    files = []
    for name in ("one", "two"):
        torch.manual_seed(len(name) + len(files))
        files.append(tmp_path / f"{name}.safetensors")
        save_reid(files[-1], ReidNetwork(ReidNetworkConfig("osnet-x0.25", (32, 16))).eval())
    attack = FamilyTransfer(TransferConfig(tuple(files)))
    found = attack.run(learned_target())
    told = found.details["told of other people's originals"]
    assert set(told) == {"one", "two"}
    assert found.details["recogniser"] == max(told, key=lambda name: told[name])
    again = FamilyTransfer(TransferConfig(tuple(files))).informed_by(found)
    assert set(again.run(learned_target()).details["told of other people's originals"]) == {
        found.details["recogniser"]
    }
    left = attack.networks(learned_target(authorised=load_expert(files[0])))
    assert set(left) == {"two"}


def test_pictures_of_a_track_together_tell_more_than_one_by_one() -> None:
    images = drawn()[0].repeat_interleave(4, 0)
    torch.manual_seed(0)
    noisy = (images + 1.5 * torch.randn_like(images)).clamp(0, 1)
    people = np.repeat(np.arange(24), 8)
    search, _ = plan_search([str(code) for code in people], [None] * len(images), *[range(len(images))] * 2)
    target = learned_target(noisy, originals=HeldPictures(images), people=people, search=search)
    pooled = PooledLinkage().run(target)
    assert pooled.details["pictures in a track"] == {"mean": 4.0, "most": 4}
    single = search.find(target.protected_features(), target.original_features()).rank(1)  # type: ignore[union-attr]
    assert pooled.scores[1].value > single
    assert not PooledLinkage().run(learned_target(noise_like(drawn()[0]))).applicable


def test_clothes_are_told_from_what_shows_colours_and_not_from_noise() -> None:
    told, noise = (Clothes().run(learned_target(release)).scores[0] for release in (None, noise_like(drawn()[0])))
    assert told.low is not None
    assert told.low > 0.7
    assert noise.low is not None
    assert noise.low < 0.5 < (noise.high or 0.0) + 0.1
