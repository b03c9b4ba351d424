from __future__ import annotations

import pytest
import torch

from tests.attacks.learned import JUDGE
from veilkit.errors import UnknownNameError
from veilkit.experts.viewed import Viewed


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
