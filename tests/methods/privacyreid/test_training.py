"""The joint training of an anonymiser: its losses, its validation people, and exact resume."""

from __future__ import annotations

import copy
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from tests.methods.tiny import TINY_PRIVACYREID as TINY
from tests.training.test_reid import write_people
from veilkit.errors import ConfigError, DataError
from veilkit.methods.privacyreid.config import PAPER, PrivacyReidConfig
from veilkit.methods.privacyreid.run import AnonymiserData, AnonymiserRun, JointReid
from veilkit.methods.privacyreid.supervision import Desensitiser, desensitiser
from veilkit.methods.privacyreid.training import TrainedAnonymiser, train_anonymiser, train_desensitised
from veilkit.methods.privacyreid.validation import ValidationPeople, set_aside
from veilkit.networks.losses import weighted_regularised_triplet
from veilkit.rng import Randomness
from veilkit.types import Record, Split

ALWAYS = replace(TINY, psnr_slack=100, ssim_slack=100, rank1_slack=100)  # the first check upgrades
NEVER = replace(TINY, upgrade=False, reid=replace(TINY.reid, epochs=1))


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Split:
    return write_people(tmp_path_factory.mktemp("people"), people=6, per_camera=2)


def train(people: Split, config: PrivacyReidConfig, folder: Path) -> TrainedAnonymiser:
    return train_anonymiser(people, config, desensitiser(TINY), work_dir=folder, stream=io.StringIO())


def make_run(people: Split, config: PrivacyReidConfig) -> AnonymiserRun:
    data = AnonymiserData(people, config, desensitiser(TINY))
    return AnonymiserRun(data, config, JointReid(config.reid, data.people, Randomness.from_seed(0)), {}, None)


def bce(logits: torch.Tensor, value: float) -> torch.Tensor:
    return F.binary_cross_entropy_with_logits(logits, torch.full_like(logits, value))


def test_an_update_against_one_written_out_by_hand(people: Split) -> None:
    """Eq. 1 to 8 in torch's own losses, on copies of the networks: the same losses, and the same next weights."""
    run = make_run(people, TINY)
    anonymise, recover = copy.deepcopy(run.anonymise).train(), copy.deepcopy(run.recover).train()
    d_y, d_x = copy.deepcopy(run._judge_anonymised).train(), copy.deepcopy(run._judge_recovered).train()
    reid, centres = copy.deepcopy(run.reid.network).train(), copy.deepcopy(run.reid.centres)
    positions = run.data.batches(0)[0]
    raw, labels = run.data.varied(positions, 0, 0)
    cells = F.interpolate(F.avg_pool2d(raw, 3, ceil_mode=True), scale_factor=3.0)[:, :, :32, :16]  # 24 of 256 pixels
    found = run.step(0, positions, 0.0)

    made = anonymise(raw)
    shown = made + ((made * 255).round() / 255 - made).detach()
    back = recover(shown)
    adam = torch.optim.Adam([*d_y.parameters(), *d_x.parameters()], 3.5e-4, betas=(0.5, 0.999), weight_decay=5e-4)
    judged = (bce(d_y(raw, cells), 1) + bce(d_y(raw, made.detach()), 0)) / 2
    judged = judged + (bce(d_x(shown.detach(), raw), 1) + bce(d_x(shown.detach(), back.detach()), 0)) / 2
    judged.backward()
    adam.step()
    ano = bce(d_y(raw, made), 1) + 100 * F.l1_loss(2 * made - 1, 2 * cells - 1)
    rec = bce(d_x(shown, back), 1) + 100 * F.l1_loss(2 * back - 1, 2 * raw - 1)
    output = reid(torch.cat([raw, shown]))
    agw = torch.zeros(())
    for half in range(2):
        pooled, logits = output.pooled[0].chunk(2)[half], output.logits[0].chunk(2)[half]
        agw = agw + F.cross_entropy(logits, labels, label_smoothing=0.1)
        agw = agw + weighted_regularised_triplet(pooled, labels) + 5e-4 * centres(pooled, labels)
    adam = torch.optim.Adam(
        [*anonymise.parameters(), *recover.parameters()], 3.5e-4, betas=(0.5, 0.999), weight_decay=5e-4
    )
    (ano + rec + agw).backward()
    adam.step()

    assert found.discriminators == pytest.approx(judged.item(), rel=1e-4)
    assert found.anonymisation == pytest.approx(ano.item(), rel=1e-4)
    assert found.recovery == pytest.approx(rec.item(), rel=1e-4)
    assert found.reid == pytest.approx(agw.item(), rel=1e-4)
    for mine, theirs in ((anonymise, run.anonymise), (recover, run.recover)):
        for expected, learned in zip(mine.parameters(), theirs.parameters(), strict=True):
            assert torch.allclose(expected, learned, atol=1e-5)


def test_the_supervision_is_a_frozen_copy_until_it_is_reverted(people: Split) -> None:
    run = make_run(people, TINY)
    positions = run.data.batches(0)[0]
    raw, _ = run.data.varied(positions, 0, 0)
    plain = run.supervise(raw, 0)
    run.upgrade()
    wanted = run.supervise(raw, 0)
    run.step(0, positions, 0.0)
    assert torch.equal(run.supervise(raw, 0), wanted)
    assert not torch.equal(wanted, plain)
    run.revert()
    assert torch.equal(run.supervise(raw, 0), plain)


def test_a_stopped_run_reaches_the_same_bits(people: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    trained = train(people, ALWAYS, straight)
    step = AnonymiserRun.step

    def stop(self: AnonymiserRun, number: int, *rest: object) -> object:
        if (self.epoch, number) == (1, 1):
            raise KeyboardInterrupt
        return step(self, number, *rest)  # type: ignore[arg-type]

    with monkeypatch.context() as patched:
        patched.setattr(AnonymiserRun, "step", stop)
        with pytest.raises(KeyboardInterrupt):
            train(people, ALWAYS, broken)
    again = train(people, ALWAYS, broken)
    for name in ("state.safetensors", "baseline.safetensors", "decisions.jsonl", "decisions.svg"):
        assert (straight / name).read_bytes() == (broken / name).read_bytes(), name
    for one, other in ((trained.anonymise, again.anonymise), (trained.recover, again.recover)):
        assert all(
            torch.equal(a, b) for a, b in zip(one.state_dict().values(), other.state_dict().values(), strict=True)
        )
    decisions = [json.loads(line) for line in (straight / "decisions.jsonl").read_text().splitlines()]
    assert [decision["epoch"] for decision in decisions] == [1, 2]
    assert decisions[0]["action"] == "upgrade"
    assert decisions[1]["rank1_to_beat"] == decisions[0]["rank1"]
    assert decisions[0]["psnr_limit"] == pytest.approx(decisions[0]["desensitised_psnr"] + 100)
    with Image.open(straight / "samples" / "epoch-0002.png") as sheet:
        assert sheet.height == 4 * 32
    with pytest.raises(ConfigError, match=r"another run: reid differ"):
        train(people, replace(ALWAYS, reid=replace(ALWAYS.reid, seed=1)), broken)


@pytest.mark.parametrize("action", ["upgrade", "keep"])
def test_checks_of_a_run_without_upgradation_are_taken_over_to_the_same_bits(
    people: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, action: str
) -> None:
    """Up to the first upgrade both runs are one; nothing of it is trained again, and all later steps are."""
    if action == "keep":
        monkeypatch.setattr(
            "veilkit.methods.privacyreid.training.decide", lambda *found, before, limits: ("keep", before)
        )
    whole, without, branched = (tmp_path / name for name in ("whole", "without", "branched"))
    alone = train(people, ALWAYS, whole)
    plain, quiet = replace(ALWAYS, upgrade=False), io.StringIO()
    train_anonymiser(people, plain, desensitiser(TINY), work_dir=without, keep_checks=True, stream=quiet)
    assert not train_desensitised(people, ALWAYS, desensitiser(TINY), work_dir=branched, stream=quiet).training
    step, steps = AnonymiserRun.step, []
    monkeypatch.setattr(AnonymiserRun, "step", lambda self, *rest: (steps.append(self.epoch), step(self, *rest))[1])
    trained = train_anonymiser(people, ALWAYS, desensitiser(TINY), work_dir=branched, shared=without, stream=quiet)
    for name in ("state.safetensors", "baseline.safetensors", "decisions.jsonl", "decisions.svg"):
        assert (whole / name).read_bytes() == (branched / name).read_bytes(), name
    assert trained.decisions == alone.decisions
    assert trained.decisions[0]["action"] == action
    assert set(steps) == ({1} if action == "upgrade" else set())
    other = replace(ALWAYS, l1=1.0)
    with pytest.raises(ConfigError, match="another run: l1 differ"):
        train_anonymiser(people, other, desensitiser(TINY), work_dir=tmp_path / "l1", shared=without, stream=quiet)


def test_without_upgradation_checks_only_measure(people: Split, tmp_path: Path) -> None:
    trained = train(people, NEVER, tmp_path)
    assert [decision["action"] for decision in trained.decisions] == ["off"]
    assert trained.decisions[0]["desensitised_rank1"] is None
    assert not (tmp_path / "baseline.safetensors").exists()


def test_validation_people_are_a_fifth_and_so_are_their_queries(people: Split) -> None:
    many = Split(
        "train", people.root, tuple(Record(f"{p}/{s}.png", f"p{p}", "1") for p in range(50) for s in range(10))
    )
    held = set_aside(many, 0.2, Randomness.from_seed(0))
    assert (len(held.train.identities), len(held.query), len(held.gallery)) == (40, 20, 80)
    assert not set(held.train.identities) & set(held.gallery.identities)
    assert held.query.identities == held.gallery.identities
    parts = (*held.train.records, *held.query.records, *held.gallery.records)
    assert sorted(record.path for record in parts) == sorted(record.path for record in many.records)
    with pytest.raises(DataError, match="leaves no training people"):
        set_aside(Split("one", people.root, (Record("a", "p"), Record("b", "p"))), 0.2, Randomness.from_seed(0))
    with pytest.raises(DataError, match="expected an identity"):
        set_aside(Split("none", people.root, (Record("a"),)), 0.2, Randomness.from_seed(0))


def test_equal_pictures_leave_finite_numbers(people: Split) -> None:
    """A blank picture may come back exactly; its infinite PSNR must neither hide the others' nor stop the run."""
    held = set_aside(people, 0.2, Randomness.from_seed(0))
    same = Desensitiser("nothing", lambda images, names: images)
    psnr, ssim = ValidationPeople(held, (32, 16), same).desensitised_likeness()
    assert psnr == 100
    assert ssim == pytest.approx(1)


@pytest.mark.parametrize("kind", ["blur", "pixelate", "noise"])
def test_desensitisers_halve_their_lengths_at_half_the_size(kind: str) -> None:
    apply = desensitiser(replace(TINY, desensitise=kind)).apply  # type: ignore[arg-type]
    images = torch.zeros(2, 3, 128, 64)
    images[:, :, 64:, 32:] = 1
    made = apply(images, ["a", "b"])
    assert made.shape == images.shape
    assert torch.equal(made, apply(images, ["a", "b"]))
    if kind == "pixelate":
        assert torch.equal(made[:, :, :12, :12], made[:, :, :1, :1].expand(-1, -1, 12, 12))
    elif kind == "blur":  # a step seen through a Gaussian: 16 % of it is left a standard deviation away
        profile = made[0, 0, :, 60] / made[0, 0, -1, 60]
        assert 64 - int(np.argmax(profile.numpy() > 0.1587)) == pytest.approx(6, abs=1)
    else:
        assert not torch.equal(made[0], made[1])


def test_recipes_that_cannot_be_are_told() -> None:
    assert (PAPER.reid.epochs, PAPER.reid.identities * PAPER.reid.images, PAPER.size) == (120, 64, (256, 128))
    assert (PAPER.l1, PAPER.rate, PAPER.beta, PAPER.check_every) == (100, 3.5e-4, 0.5, 5)
    with pytest.raises(ConfigError, match=r"multiples of 128, but got 128 x 64: lower generator\.depth"):
        replace(PAPER, reid=replace(PAPER.reid, size=(128, 64)))
    with pytest.raises(ConfigError, match=r"lower discriminator\.layers"):
        replace(TINY, discriminator=replace(TINY.discriminator, layers=3))
    with pytest.raises(ConfigError, match=r"reid\.average has no effect"):
        replace(TINY, reid=replace(TINY.reid, average=0.9))
