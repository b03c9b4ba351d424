"""The training of PEPR-Net: its losses by hand, the two adversaries, and exact resume."""

from __future__ import annotations

import copy
import io
import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
import torch.nn.functional as F

from tests.methods.tiny import TINY_PEPRNET as TINY
from tests.networks.test_losses import direct_hinge
from tests.training.test_reid import write_people
from veilkit.errors import ConfigError, DataError
from veilkit.methods.peprnet.config import PAPER, PeprNetConfig
from veilkit.methods.peprnet.training import PeprRun, TrainedPepr, train_peprnet
from veilkit.training.loop import Decay, Schedule
from veilkit.types import Record, Split


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return write_people(tmp_path_factory.mktemp("people"), people=6, per_camera=2)


def train(people: Split, config: PeprNetConfig, folder: Path) -> TrainedPepr:
    return train_peprnet(people, config, work_dir=folder, stream=io.StringIO())


def make(people: Split, **changes: object) -> PeprRun:
    config = replace(TINY, **changes)  # type: ignore[arg-type]
    return PeprRun(people, config)


def length(run: PeprRun) -> float:
    return float(run.head.weight.detach().norm())


@pytest.mark.parametrize("unit", [True, False])
def test_an_update_against_one_written_out_by_hand(people: Split, unit: bool) -> None:
    """Eq. 1 to 4 in torch's own losses, on copies of the networks: the same losses, and the same next weights."""
    run = make(people, unit=unit)
    encoder, decoder, head = (copy.deepcopy(part).train() for part in (run.encoder, run.decoder, run.head))
    assert decoder is not None
    positions = run.batches(0)[0]
    images, labels = run.data.varied(positions, 0, 0)
    cells = F.interpolate(F.avg_pool2d(images, 3, ceil_mode=True), scale_factor=3.0)[:, :, :32, :16]  # 24 at 256
    found = run.step(0, positions, 0.0)

    raw = encoder.embed(images)
    shown = 4 * F.normalize(raw) if unit else raw  # 4 is the root of 16 features
    compared = F.normalize(raw) if unit else raw
    expected = direct_hinge(compared.detach().double(), labels.tolist(), TINY.margin, "hard")
    assert found.reid == pytest.approx(expected, rel=1e-3, abs=1e-5)
    deid = F.mse_loss(decoder(shown), cells)
    present = sorted(set(labels.tolist()))
    assert len(present) == 3
    uniform = torch.full((len(labels), 3), 1 / 3)  # K counts the identities of the batch
    adversary = F.cross_entropy(head(shown)[:, present], uniform)
    assert found.deid == pytest.approx(deid.item(), rel=1e-4)
    assert found.adversary == pytest.approx(adversary.item(), rel=1e-4)
    adam = torch.optim.Adam([*decoder.parameters(), *head.parameters()], TINY.rate)
    (0.1 * deid + 0.001 * adversary).backward()
    adam.step()
    for mine, theirs in ((decoder, run.decoder), (head, run.head)):
        for one, other in zip(mine.parameters(), theirs.parameters(), strict=True):
            assert torch.allclose(one, other, atol=1e-5)


def test_the_sum_of_eq_2_is_the_mean_times_all_values(people: Split) -> None:
    mean, total = make(people), make(people, deid_sum=True)
    positions = mean.batches(0)[0]
    values = len(positions) * 3 * 32 * 16
    first, second = (run.step(0, positions, 0.0).deid for run in (mean, total))
    assert second == pytest.approx(values * first, rel=1e-4)


def test_the_papers_adversary_gives_up_and_the_alternating_one_learns(people: Split) -> None:
    """Driven to uniform, a head of shrinking weights is an answer; one that learns people is none."""
    runs = {kind: make(people, adversary=kind, adversary_weight=10.0, deid="none", rate=3e-3, reid_weight=0.0)
            for kind in ("uniform", "alternating")}  # fmt: skip
    before = {kind: length(run) for kind, run in runs.items()}
    positions = runs["uniform"].batches(0)[0]
    losses = {kind: [run.step(0, positions, 0.0) for _ in range(25)] for kind, run in runs.items()}
    assert losses["uniform"][-1].adversary == pytest.approx(math.log(3), abs=0.02)
    assert length(runs["uniform"]) < before["uniform"]
    assert losses["uniform"][-1].head == 0.0
    assert length(runs["alternating"]) > before["alternating"]
    assert losses["alternating"][0].head == pytest.approx(math.log(6), abs=1.0)


def test_the_encoder_does_not_teach_an_alternating_head(people: Split) -> None:
    """Its loss goes to the encoder alone: without a rate of its own, the head stays."""
    run = make(people, adversary="alternating", head_rate=1e-6, adversary_weight=100.0)
    before = run.head.weight.detach().clone()
    run.step(0, run.batches(0)[0], 0.0)
    assert torch.allclose(run.head.weight, before, atol=1e-7)


@pytest.mark.parametrize("adversary", ["uniform", "alternating"])
def test_a_stopped_run_reaches_the_same_bits(
    people: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, adversary: str
) -> None:
    config = replace(TINY, adversary=adversary)  # type: ignore[arg-type]
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    trained = train(people, config, straight)
    step = PeprRun.step

    def stop(self: PeprRun, number: int, *rest: object) -> object:
        if (self.epoch, number) == (1, 1):
            raise KeyboardInterrupt
        return step(self, number, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(PeprRun, "step", stop)
        with pytest.raises(KeyboardInterrupt):
            train(people, config, broken)
    again = train(people, config, broken)
    assert (straight / "state.safetensors").read_bytes() == (broken / "state.safetensors").read_bytes()
    for one, other in zip(
        trained.encoder.state_dict().values(), again.encoder.state_dict().values(), strict=True
    ):  # fmt: skip
        assert torch.equal(one, other)
    assert [entry["epoch"] for entry in trained.history] == [1, 2]
    assert trained.history == again.history
    with pytest.raises(ConfigError, match="another run: margin differ"):
        train(people, replace(config, margin=0.5), broken)


def test_training_brings_people_together(people: Split, tmp_path: Path) -> None:
    config = replace(TINY, epochs=6, rate=3e-3, deid="none", adversary="none", mining="all", validation=0.34)
    told = io.StringIO()
    trained = train_peprnet(people, config, work_dir=tmp_path, stream=told)
    assert trained.decoder is None
    assert trained.history[-1]["reid"] < trained.history[0]["reid"]
    assert trained.history[-1]["deid"] == trained.history[-1]["adversary"] == 0.0
    assert "epoch 6: validation Rank-1" in told.getvalue()


def test_the_papers_recipe() -> None:
    assert (PAPER.identities, PAPER.images, PAPER.rate, PAPER.features) == (32, 4, 3e-4, 128)
    assert (PAPER.reid_weight, PAPER.deid_weight, PAPER.adversary_weight) == (1, 0.1, 0.001)
    assert (PAPER.backbone, PAPER.size, PAPER.deid, PAPER.adversary) == (
        "resnet50",
        (256, 128),
        "pixelate",
        "uniform",
    )
    assert (PAPER.augment.flip, PAPER.augment.erase) == (0.5, 0.0)
    assert Schedule(10, 0, Decay.EXPONENTIAL).factor(5) == pytest.approx(0.1)


def test_mistakes_are_told(people: Split, tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="needs weights to start from"):
        make(people, frozen=2)
    with pytest.raises(ConfigError, match="multiple of 8"):
        replace(TINY, features=12)
    with pytest.raises(ConfigError, match="adversary_weight must be between"):
        replace(TINY, adversary_weight=-1.0)
    unknown = Split("train", people.root, (*people.records, Record("x.png")))
    with pytest.raises(DataError, match="expected an identity for each image"):
        PeprRun(unknown, TINY)
