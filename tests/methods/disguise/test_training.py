"""Disguise's training: aligned crops, an update against one written out by hand, and exact resume."""

from __future__ import annotations

import copy
import io
import json
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from scipy import stats

from tests.conftest import random_picture
from tests.methods.disguises import TINY, KnownFaces, group_picture, tiny_identity
from veilkit.checkpoint import load_checkpoint
from veilkit.datasets.folder import load_folder
from veilkit.errors import ConfigError, DataError
from veilkit.experts.alignment import WIDE
from veilkit.experts.finders import load_finder
from veilkit.methods.disguise.identity import IdentityEncoder
from veilkit.methods.disguise.identity_transforms import TransformConfig, unnatural_loss
from veilkit.methods.disguise.method import PAPER, Disguise, DisguiseConfig
from veilkit.methods.disguise.training.data import DisguiseData, jittered
from veilkit.methods.disguise.training.monitor import inference_noise
from veilkit.methods.disguise.training.run import STATE_KIND, DisguiseRun
from veilkit.methods.disguise.training.train import TrainedDisguise, train_disguise
from veilkit.rng import Randomness
from veilkit.training.faces import align_faces, read_upright
from veilkit.training.state import of_prefix
from veilkit.types import Split


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Split:
    root = tmp_path_factory.mktemp("people")
    for person in range(5):
        (root / f"p{person}").mkdir()
        for shot in range(3):
            Image.fromarray(random_picture(7 * person + shot, 40, 40)).save(root / f"p{person}" / f"{shot}.png")
    return load_folder(root)


def train(people: Split, config: DisguiseConfig, folder: Path, identity: int = 1) -> TrainedDisguise:
    experts = [tiny_identity(12, seed) for seed in range(identity)]
    return train_disguise(
        people, config, identity=experts, utility=[tiny_identity(5, 9)], finder=load_finder("whole"),
        work_dir=folder, stream=io.StringIO(),
    )  # fmt: skip


def make_run(people: Split, config: DisguiseConfig, *, utility: int = 1) -> DisguiseRun:
    data = DisguiseData(people, config.swapper.size, config.batch, config.seed)
    encoder = IdentityEncoder([tiny_identity(config.transform.dim)], config.transform.dim)
    data.identities = encoder.joined(encoder.features_of_pixels(data.pixels))
    return DisguiseRun(data, config, encoder, [tiny_identity(5, 9)] * utility, {})


def bits(trained: TrainedDisguise) -> dict[str, torch.Tensor]:
    return {**trained.swapper.state_dict(), **{f"t {k}": v for k, v in trained.transform.state_dict().items()}}


def hinge(judge: torch.nn.Module, real: torch.Tensor, made: torch.Tensor) -> torch.Tensor:
    pairs = zip(judge(real), judge(made), strict=True)
    return sum((1 - r.logits).clamp(min=0).mean() + (1 + m.logits).clamp(min=0).mean() for r, m in pairs)


def unlike(one: torch.Tensor, other: torch.Tensor) -> torch.Tensor:
    return (1 - (one * other).sum(1) / one.norm(dim=1) / other.norm(dim=1)).mean()


@pytest.mark.parametrize("number", [4, 5])  # of the second phase: with and without reconstruction
def test_a_joint_update_against_one_written_out_by_hand(people: Split, number: int) -> None:
    run = make_run(people, TINY)
    run.done = number
    swapper, transform, critics = (copy.deepcopy(n).train() for n in (run.swapper, run.transform, run.critics))
    positions = run.data.positions(number)
    x, z = run.data.crops(positions), run.data.identities[positions]
    noise = Randomness.from_seed(0).child("disguise").child("noise", number).normal(4, 8)
    found = run.step()

    answer = transform(z, noise)
    both = swapper(torch.cat([x, x]), torch.cat([z, answer.vectors]))
    kept, made = both[:4], both[4:]
    adam = torch.optim.Adam(critics.parameters(), 1e-3, betas=(0.0, 0.999))
    judged = hinge(critics, x, made.detach())
    judged.backward()
    adam.step()
    identity = unlike(z, run.encoder(kept)) + unlike(answer.vectors, run.encoder(made))
    deid = 2 - unlike(z, answer.vectors)
    mix = (made - kept).abs().mean()
    expert = tiny_identity(5, 9)
    utility = 2 * (expert.embed(x) - expert.embed(made)).abs().mean()
    kld = -0.5 * (1 + answer.log_variance - answer.mean**2 - answer.log_variance.exp()).sum(1).mean()
    gan = -sum(each.logits.mean() for each in critics(made))
    matching = sum(  # of the three layers of each critic, the last
        (a.features[2] - b.features[2]).abs().mean() for a, b in zip(critics(x), critics(made), strict=True)
    )
    total = 30 * identity + 30 * deid + 10 * mix + utility + 0.2 * kld + gan + 10 * matching
    if number == 4:
        total = total + 10 * (kept - x).abs().mean()
    both_adam = torch.optim.Adam([*swapper.parameters(), *transform.parameters()], 1e-3, betas=(0.0, 0.999))
    total.backward()
    both_adam.step()

    assert found.critics == pytest.approx(judged.item(), rel=1e-4)
    for name, value in (("identity", identity), ("deid", deid), ("mix", mix), ("utility", utility), ("kld", kld)):
        assert getattr(found, name) == pytest.approx(value.item(), rel=1e-3, abs=1e-6), name
    assert (found.gan, found.matching) == pytest.approx((gan.item(), matching.item()), rel=1e-3)
    assert found.total == pytest.approx(total.item(), rel=1e-4)
    for mine, theirs in ((swapper, run.swapper), (transform, run.transform), (critics, run.critics)):
        compared = 0
        for expected, learned in zip(mine.parameters(), theirs.parameters(), strict=True):
            # Adam's first step is the gradient's sign; before a norm a bias has none, and its sign is rounding.
            assert expected.grad is not None
            clear = expected.grad.abs() > 1e-4
            torch.testing.assert_close(expected[clear], learned[clear], atol=1e-5, rtol=0)
            compared += int(clear.sum())
        assert compared > 0.5 * sum(parameter.numel() for parameter in mine.parameters())


def test_the_first_phase_leaves_the_transform_alone_and_swaps_people_in_turns(people: Split) -> None:
    run = make_run(people, TINY)
    before = copy.deepcopy(run.transform.state_dict())
    first, second = run.step(), run.step()
    assert first.reconstruction > 0
    assert second.reconstruction == 0
    assert first.deid == first.utility == first.kld == 0
    assert all(torch.equal(a, b) for a, b in zip(before.values(), run.transform.state_dict().values(), strict=True))
    labels, positions = run.data._labels, run.data.positions(0)
    for step in range(5):
        same, other = (run.data.partners(positions, step, each) for each in (True, False))
        assert (labels[same] == labels[positions]).all()
        assert (same != positions).all()
        assert (labels[other] != labels[positions]).all()


def test_an_epoch_shows_every_crop_at_most_once(people: Split) -> None:
    data = DisguiseData(people, 16, 4, 0)
    seen = np.concatenate([data.positions(step) for step in range(3)])
    assert len(set(seen.tolist())) == 12
    assert not np.array_equal(data.positions(0), data.positions(3))


@pytest.mark.parametrize("kind", ["mlp", "opp", "noise"])
def test_other_transforms_train_as_well(people: Split, kind: str) -> None:
    transform = replace(TINY.transform, kind=kind)
    run = make_run(people, replace(TINY, transform=transform, swapper_steps=0, gan="log"), utility=0)
    losses = [run.step() for _ in range(3)]
    assert all(np.isfinite(each.total) for each in losses)
    assert losses[0].kld == losses[0].utility == 0
    assert losses[0].deid == pytest.approx(0, abs=1e-6) if kind == "opp" else losses[0].deid > 0


def test_a_stopped_run_reaches_the_same_bits(people: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Two experts, so that an ensemble is fitted too; stopped in each phase, between two saves."""
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    whole = train(people, TINY, straight, identity=2)
    assert whole.ensemble is not None
    step = DisguiseRun.step
    for at in (3, 7):

        def stop(self: DisguiseRun, at: int = at) -> object:
            if self.done == at:
                raise KeyboardInterrupt
            return step(self)

        with monkeypatch.context() as patched:
            patched.setattr(DisguiseRun, "step", stop)
            with pytest.raises(KeyboardInterrupt):
                train(people, TINY, broken, identity=2)
    again = train(people, TINY, broken, identity=2)
    for name in ("state.safetensors", "ensemble.safetensors", "watched.jsonl"):
        assert (straight / name).read_bytes() == (broken / name).read_bytes(), name
    assert all(torch.equal(a, b) for a, b in zip(bits(whole).values(), bits(again).values(), strict=True))
    assert whole.sensitivity == again.sensitivity > 0
    noted = [json.loads(line) for line in (straight / "watched.jsonl").read_text().splitlines()]
    assert [each["step"] for each in noted] == [4, 8]
    with Image.open(straight / "samples" / "step-0000008.png") as sheet:
        assert sheet.height == 3 * 32
    with pytest.raises(ConfigError, match="belongs to another run"):
        train(people, replace(TINY, id_weight=1.0), broken, identity=2)
    train(people, replace(TINY, hide="pixelate", consistent=True), broken, identity=2)  # that is not of the training


def test_a_run_may_be_made_longer_but_a_phase_that_is_over_stays_as_it_was(people: Split, tmp_path: Path) -> None:
    longer = replace(TINY, swapper_steps=TINY.swapper_steps + 2, joint_steps=1)
    straight = train(people, longer, tmp_path / "straight")
    train(people, replace(TINY, joint_steps=0), tmp_path / "grown")
    grown = train(people, longer, tmp_path / "grown")
    assert all(torch.equal(a, b) for a, b in zip(bits(straight).values(), bits(grown).values(), strict=True))
    with pytest.raises(ConfigError, match=f"swapper_steps cannot become {TINY.swapper_steps}"):
        train(people, TINY, tmp_path / "grown")
    train(people, replace(longer, joint_steps=2), tmp_path / "grown")


def test_a_training_can_begin_with_an_earlier_model(people: Split, tmp_path: Path) -> None:
    def fitted(folder: str, config: DisguiseConfig = TINY, seed: int = 0, init: Path | None = None) -> Disguise:
        experts = [tiny_identity(12, seed), tiny_identity(12, 1)]
        method = Disguise(config, identity=experts, utility=[tiny_identity(5, 9)], finder=load_finder("whole"))
        return method.fit(people, work_dir=tmp_path / folder, init=init)

    file = tmp_path / "model.safetensors"
    first = fitted("first")
    first.save(file)
    none = replace(TINY, swapper_steps=0, joint_steps=0)
    same, new = fitted("same", none, init=file), fitted("new", none)
    for part in ("swapper", "transform", "ensemble"):
        before, after, other = (getattr(each.model, part).state_dict() for each in (first, same, new))
        assert all(torch.equal(before[name], after[name]) for name in before), part
        assert any(not torch.equal(before[name], other[name]) for name in before) or part == "ensemble"
    on = fitted("on", init=file)
    learned = on.model.tensors()
    assert any(not torch.equal(tensor, learned[name]) for name, tensor in first.model.tensors().items())
    with pytest.raises(ConfigError, match="start differ"):
        fitted("first", init=file)
    with pytest.raises(ConfigError, match="other identity experts"):
        fitted("others", seed=3, init=file)
    with pytest.raises(ConfigError, match="another setting of swapper than this training"):
        fitted("shape", replace(TINY, swapper=replace(TINY.swapper, blocks=3)), init=file)


def test_a_transform_is_fitted_before_both_are_trained_together(people: Split, tmp_path: Path) -> None:
    first = replace(TINY, transform_steps=3, natural_weight=50.0, joint_steps=0)
    apart = train(people, first, tmp_path / "apart")
    state = of_prefix("transform", load_checkpoint(tmp_path / "apart" / "state.safetensors", STATE_KIND).tensors)
    assert not (tmp_path / "apart" / "transform.safetensors").exists()
    whole = train(people, replace(first, joint_steps=2), tmp_path / "whole")
    assert (tmp_path / "whole" / "transform.safetensors").exists()
    names = apart.transform.state_dict()
    assert all(torch.equal(names[name], state[name]) for name in names)
    assert any(not torch.equal(names[name], tensor) for name, tensor in whole.transform.state_dict().items())
    again = train(people, replace(first, joint_steps=2), tmp_path / "apart")  # goes on where the first phase ended
    assert all(torch.equal(a, b) for a, b in zip(bits(whole).values(), bits(again).values(), strict=True))


def test_unnatural_identities_cost(people: Split) -> None:
    run = make_run(people, replace(TINY, swapper_steps=0, natural_weight=7.0))
    run.done = 1
    order = Randomness.from_seed(0).child("disguise").child("natural", 1)
    places = order.permutation(len(run.data.identities))
    noise, transform = order.child("noise").normal(7, 8), copy.deepcopy(run.transform)
    some, others = run.data.identities[places[:7]], run.data.identities[places[7:14]]
    wanted = unnatural_loss(transform(some, noise).vectors, others)
    found = run.step()
    assert found.unnatural == pytest.approx(wanted.item(), abs=1e-6)
    plain = make_run(people, replace(TINY, swapper_steps=0))
    plain.done = 1
    assert found.total - plain.step().total == pytest.approx(7 * found.unnatural, abs=1e-3)


def test_identities_about_their_centre_are_kept_with_the_model(people: Split, tmp_path: Path) -> None:
    centred = replace(TINY, centred=True)
    experts, file = [tiny_identity(12, 0), tiny_identity(12, 1)], tmp_path / "model.safetensors"

    def method(config: DisguiseConfig) -> Disguise:
        return Disguise(config, identity=experts, utility=[tiny_identity(5, 9)], finder=load_finder("whole"))

    fitted = method(centred).fit(people, work_dir=tmp_path / "work")
    crops = load_folder(tmp_path / "work" / "crops", "folder")
    pixels = torch.cat([read_upright(crops.file(place))[None] for place in range(len(crops))])
    fitted.save(file)
    known = Disguise.load(file)
    assert len(known.model.centres) == 2
    plain = IdentityEncoder(experts, TINY.transform.dim, fitted.model.ensemble)
    raw, about = plain.features(pixels), fitted.encoder.features(pixels)
    for expert, centre in enumerate(known.model.centres):
        torch.testing.assert_close(about[expert], raw[expert] - centre)
        # Nearly the mean of all: some of the people are only watched.
        assert (about[expert].mean(0).abs() < raw[expert].std(0)).all()
    on = method(replace(centred, joint_steps=0, swapper_steps=0)).fit(people, work_dir=tmp_path / "on", init=file)
    assert all(torch.equal(a, b) for a, b in zip(on.model.centres, known.model.centres, strict=True))
    with pytest.raises(ConfigError, match="another setting of centred"):
        method(TINY).fit(people, work_dir=tmp_path / "other", init=file)


def test_people_who_are_watched_are_not_trained_on(
    people: Split, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    seen: list[Split] = []
    first = DisguiseData.__init__

    def note(self: DisguiseData, crops: Split, *rest: int) -> None:
        seen.append(crops)
        first(self, crops, *rest)

    monkeypatch.setattr(DisguiseData, "__init__", note)
    train(people, replace(TINY, swapper_steps=1, joint_steps=0), tmp_path)
    assert len(seen[0].identities) == 4
    with pytest.raises(DataError, match="fewer than 2"):
        train(Split("few", people.root, people.records[:6]), TINY, tmp_path / "few")


def test_crops_are_aligned_by_the_finder_and_kept(tmp_path: Path) -> None:
    picture, boxes, points = group_picture()
    source = tmp_path / "source" / "somebody"
    source.mkdir(parents=True)
    Image.fromarray((picture * 255).byte().permute(1, 2, 0).numpy()).save(source / "a.png")
    split = load_folder(tmp_path / "source")
    made = align_faces(split, KnownFaces(boxes, points), 64, tmp_path / "crops", stream=io.StringIO())
    assert (len(made.crops), made.without, made.crops.identities) == (1, 0, ("somebody",))
    crop = read_upright(made.crops.file(0))
    assert crop.shape == (3, 64, 64)
    # Where the template has the tip of the nose, the crop has the picture's colour there.
    biggest = max(range(3), key=lambda i: (boxes[i][2] - boxes[i][0]) * (boxes[i][3] - boxes[i][1]))
    x, y = points[biggest, 2].tolist()
    u, v = (64 / WIDE["five"].side * place for place in WIDE["five"].points[2])
    here = picture[:, int(y) - 2 : int(y) + 3, int(x) - 2 : int(x) + 3].mean((1, 2))
    there = crop[:, int(v) - 2 : int(v) + 3, int(u) - 2 : int(u) + 3].mean((1, 2))
    torch.testing.assert_close(here, there, atol=0.08, rtol=0)
    times = made.crops.file(0).stat().st_mtime_ns
    again = align_faces(split, KnownFaces(boxes, points), 64, tmp_path / "crops", stream=io.StringIO())
    assert again == made
    assert made.crops.file(0).stat().st_mtime_ns == times
    with pytest.raises(DataError, match="no face was found in any of 1 pictures"):
        align_faces(split, KnownFaces([]), 48, tmp_path / "crops", stream=io.StringIO())


def test_noise_at_inference_is_laplace_of_the_configured_scale() -> None:
    config = TransformConfig(dim=64, latent=4000, noise=3.0)
    noise = inference_noise(config, Randomness.from_seed(0), Randomness.from_seed(1))
    assert noise is not None
    assert noise.shape == (2, 4000)
    assert stats.kstest(noise[0].double().numpy(), stats.laplace(scale=3.0).cdf).pvalue > 0.01
    assert inference_noise(replace(config, kind="opp"), Randomness.from_seed(0)) is None


@pytest.mark.slow
def test_the_papers_preset_makes_a_step_of_each_phase(people: Split) -> None:
    """At 224 pixels with all nine blocks; only the batch is smaller."""
    run = make_run(people, replace(PAPER, batch=2, finder="whole"))
    before = [parameter.clone() for parameter in run.swapper.parameters()]
    assert np.isfinite(run.step().total)
    run.done = PAPER.swapper_steps
    losses = run.step()
    assert np.isfinite(losses.total)
    assert losses.kld > 0
    assert any(not torch.equal(a, b) for a, b in zip(before, run.swapper.parameters(), strict=True))


def test_shaken_crops_are_moved_by_no_more_than_asked_and_pass_gradients() -> None:
    crops = torch.full((64, 3, 40, 40), 0.5)
    crops[:, :, 19:21, 19:21] = 1.0
    crops.requires_grad_(True)
    assert jittered(crops, 0.0, Randomness.from_seed(1)) is crops
    found = jittered(crops, 0.1, Randomness.from_seed(1))
    assert torch.equal(found, jittered(crops, 0.1, Randomness.from_seed(1)))
    assert float(found.detach().min()) >= 0
    assert float(found.detach().max()) <= 1
    spot = jittered(crops, 0.1, Randomness.from_seed(2)).detach().mean(1)
    brightest = spot.flatten(1).argmax(1)
    away = torch.stack([brightest // 40, brightest % 40], 1).float() + 0.5 - 20
    assert float(away.abs().max()) <= 0.1 * 40 + 2
    assert float(away.std(0).min()) > 1.5
    found.mean().backward()  # type: ignore[no-untyped-call]
    assert crops.grad is not None
    assert float(crops.grad.abs().sum()) > 0.5


def test_mirrored_or_not_a_shaken_crop_keeps_its_shape() -> None:
    crops = torch.zeros(1, 3, 40, 40)
    crops[:, :, 10:30, 8:14] = 1.0  # a bar on the left
    sides = set()
    for seed in range(12):
        columns = jittered(crops, 0.02, Randomness.from_seed(seed)).mean((0, 1, 2))
        middle = float((columns * torch.arange(40)).sum() / columns.sum())
        sides.add(middle < 20)
        assert abs(abs(middle - 19.5) - 9) < 3  # the grain draws the middle inwards a little
    assert sides == {True, False}


def test_experts_see_shaken_crops_where_the_configuration_says_so(people: Split) -> None:
    still, moved = (make_run(people, replace(TINY, shaken=most)) for most in (0.0, 0.1))
    assert moved.step().identity != still.step().identity
