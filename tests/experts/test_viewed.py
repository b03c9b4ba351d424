"""Experts that are shown a part of wide crops of faces, by name."""

from __future__ import annotations

import pytest
import torch

from tests.attacks.learners import JUDGE
from tests.methods.experts import pictures, toy_expert
from veilkit.audit.inputs.judges import choose_expert, choose_judge
from veilkit.errors import UnknownNameError
from veilkit.experts.alignment import view
from veilkit.experts.supervisors import Viewed, load_viewed, names_view


def test_a_viewed_expert_embeds_the_view_and_is_another_expert_than_the_one_it_asks() -> None:
    crops, toy = pictures(2, 16, 16), toy_expert()
    seen = Viewed(toy, "arcface")
    assert torch.equal(seen.embed(crops), toy.embed(view(crops, "arcface")))
    assert not torch.equal(seen.embed(crops), toy.embed(crops))
    prints = {toy.info.fingerprint, seen.info.fingerprint, Viewed(toy, "dlib").info.fingerprint}
    assert len(prints) == 3  # features that are kept never belong to another view
    assert seen.name == "toy@arcface"
    assert seen.dim == toy.dim


def test_names_with_a_view_are_told_from_names_without() -> None:
    assert names_view("dlib@dlib")
    assert not any(names_view(name) for name in ("dlib", "me@home.safetensors", "@"))
    assert load_viewed("histogram@whole").name == "histogram@whole"
    with pytest.raises(UnknownNameError, match="identity expert"):
        load_viewed("histogrm@whole")


def test_audits_take_them_as_expert_and_as_judge() -> None:
    expert, _ = choose_expert("histogram@whole")
    judge, notes = choose_judge("histogram@arcface", expert)
    assert (expert.name, judge.name, notes) == ("histogram@whole", "histogram@arcface", ())


def test_an_expert_sees_the_middle_of_a_wide_crop_and_nothing_around_it() -> None:
    crops = torch.rand(2, 3, 160, 160, generator=torch.Generator().manual_seed(0))
    framed = crops.clone()
    framed[:, :, :18] = framed[:, :, 142:] = framed[:, :, :, :18] = framed[:, :, :, 142:] = 0
    seen = Viewed(JUDGE, "arcface")
    torch.testing.assert_close(seen.embed(framed), JUDGE.embed(crops[:, :, 20:140, 20:140]), atol=1e-5, rtol=0)
    assert torch.equal(Viewed(JUDGE, "whole").embed(crops), JUDGE.embed(crops))


def test_features_of_another_view_are_of_another_expert() -> None:
    prints = {Viewed(JUDGE, view).info.fingerprint for view in ("whole", "arcface", "dlib")}
    assert len(prints | {JUDGE.info.fingerprint}) == 4
    assert Viewed(JUDGE, "arcface").dim == JUDGE.dim
    with pytest.raises(UnknownNameError, match="view"):
        Viewed(JUDGE, "wide")
