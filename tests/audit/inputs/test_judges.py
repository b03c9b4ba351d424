"""Who judges an audit that names nobody."""

from __future__ import annotations

from pathlib import Path

import pytest
import torch
from torch import Tensor, nn

from tests.audit.folders import changed, grey, plain
from veilkit.audit import run_audit
from veilkit.audit.inputs import judges
from veilkit.audit.inputs.judges import choose_judge
from veilkit.experts import Embedder, load_expert
from veilkit.experts.preprocessing import Preprocessing
from veilkit.experts.torch_embedder import ModuleEmbedder

HISTOGRAM, STRIPES, OUTFITS = map(load_expert, ("histogram", "stripes", "outfits"))


@pytest.fixture
def two_at_hand(monkeypatch: pytest.MonkeyPatch) -> None:
    at_hand = {"osnet-0.25": STRIPES, "outfits": OUTFITS}
    monkeypatch.setattr(judges, "_at_hand", at_hand.get)


@pytest.mark.usefixtures("two_at_hand")
@pytest.mark.parametrize("strongest", [STRIPES, OUTFITS])
def test_of_several_networks_the_one_that_finds_most_in_the_originals_judges(strongest: Embedder) -> None:
    judge, notes = choose_judge(None, HISTOGRAM, "pictures", lambda each: 0.8 if each is strongest else 0.3)
    assert judge is strongest
    assert f"{strongest.name} 0.80, " in notes[0]


@pytest.mark.usefixtures("two_at_hand")
def test_the_expert_is_not_compared_and_never_judges_itself() -> None:
    asked: list[str] = []

    def found(each: Embedder) -> float:
        asked.append(each.name)
        return 1.0

    assert choose_judge(None, OUTFITS, "pictures", found)[0] is STRIPES
    assert not asked  # one is left: nothing to compare


@pytest.mark.usefixtures("two_at_hand")
def test_a_judge_that_was_named_is_not_compared() -> None:
    judge, notes = choose_judge("histogram", OUTFITS, "pictures", lambda _: 1.0)
    assert (judge.name, notes) == ("histogram", ())


class TopRows(nn.Module):
    """Sees of a picture only what differs from shot to shot."""

    def forward(self, images: Tensor) -> Tensor:
        return images[:, :, :2].flatten(1)


def test_an_audit_compares_them_on_its_own_originals(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    blind = ModuleEmbedder(TopRows(), Preprocessing((32, 16), (0.5,) * 3, (0.5,) * 3), name="blind")
    assert blind.embed(torch.rand(2, 3, 32, 16)).shape == (2, 96)
    at_hand = {"retail-0277": blind, "outfits": STRIPES}  # the first of the fixed order is the one that sees nothing
    monkeypatch.setattr(judges, "_at_hand", at_hand.get)
    originals = plain(tmp_path / "originals")
    release = changed(originals, tmp_path / "release", grey)
    result = run_audit(originals, release, expert="histogram", attacks=("colour_layout",), kind="people")
    assert result.judge.name == "stripes"
    assert any("finds most in a sample of the originals" in note for note in result.notes)
