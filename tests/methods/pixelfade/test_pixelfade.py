"""PixelFade: the paper's algorithm against a plain one, the constraint on 8-bit files, and each picture by itself."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from torch import Tensor, nn

from tests.methods.experts import SIZE, Toy, pictures, tiny_expert_file, toy_expert
from veilkit.errors import ConfigError
from veilkit.media.writing import to_pixels
from veilkit.methods.expert_guided.feature_loss import AuthorisedExpert, Query
from veilkit.methods.expert_guided.method import spread
from veilkit.methods.pixelfade.config import PAPER, RELEASED, PixelFadeConfig
from veilkit.methods.pixelfade.method import PixelFade
from veilkit.methods.pixelfade.noise import Space, grained_noise, mask_numbers, objective
from veilkit.methods.pixelfade.solver import evened, local_energy
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

RNG = Randomness.from_seed(3)
SHORT = {"steps": 14, "startup": 3, "rest": 2, "masks": 3, "finish": 0}


def batch(images: Tensor, names: str = "picture") -> ImageBatch:
    return ImageBatch(images, tuple(f"{names}{index}" for index in range(len(images))))


def plain_algorithm(image: Tensor, item: str, config: PixelFadeConfig, limit: float) -> tuple[Tensor, int, int]:
    """Algorithm 1 for one picture, written down from the paper: the picture, replacements, gradient steps."""
    module, mean, std = Toy().eval(), torch.tensor([0.5, 0.4, 0.3]), torch.tensor([0.2, 0.25, 0.3])
    mean, std = mean.view(3, 1, 1), std.view(3, 1, 1)
    x0 = (image - mean) / std
    wanted = module(x0[None])[0].detach()
    own = RNG.child("picture", item)
    order = own.child("masks").permutation(image.numel()).reshape(image.shape)
    x, g, j, moves = x0.clone(), torch.zeros_like(x0), 0, 0
    for t in range(config.steps):
        leaf = x.clone().requires_grad_()
        loss = ((module(leaf[None])[0] - wanted) ** 2).sum()
        loss.backward()
        holds = t == 0 or loss.item() < limit
        begins = t < config.startup
        if (begins or config.every_step or not holds) and t > 0:  # at t = 0 the gradient is zero
            scale = (leaf.grad**2).sum() if config.normalise == "squared_l2" else leaf.grad.abs().mean()
            g = config.decay * g + leaf.grad / scale
            x = x - (config.step if holds or not config.unmet_step else config.unmet_step) * g
            moves += 1
        if (begins or holds) and t < config.steps - config.rest:
            eta = own.child("noise", j if config.noise == "afresh" else 0).normal(*image.shape)
            low, high = (x0.min(), x0.max()) if config.clamp == "image" else ((0 - mean) / std, (1 - mean) / std)
            eta = torch.minimum(torch.maximum(eta, low), high)
            chosen = torch.from_numpy(order % config.masks == j % config.masks)
            x = torch.where(chosen, eta, x)
            j += 1
        x = torch.minimum(torch.maximum(x, (0 - mean) / std), (1 - mean) / std)
    return x * std + mean, j, moves


@pytest.mark.parametrize(("preset", "limit", "step"), [(PAPER, 0.4, 0.05), (RELEASED, 0.4, 0.02)])
def test_algorithm_1_is_the_papers(preset: PixelFadeConfig, limit: float, step: float) -> None:
    config = replace(preset, threshold=limit, threshold_kind="sum", step=step, batch=2, **SHORT)
    images = pictures(3)
    release = PixelFade(config, toy_expert()).protect(batch(images), rng=RNG)
    assert release.images is not None
    assert release.reports is not None
    seen = set()
    for index in range(3):
        wanted, replaced, moves = plain_algorithm(images[index], f"picture{index}", config, limit)
        assert release.reports[index].details["replacements"] == replaced
        assert (release.images[index] - wanted).abs().max() <= 0.51 / 255 + 1e-4
        seen.add((replaced > config.startup, moves > config.startup))
    assert (True, True) in seen  # both operations took part beyond the start


class Scaled(nn.Module):
    """The toy's features, times a factor that changes no comparison between them."""

    def __init__(self, factor: float) -> None:
        super().__init__()
        self.toy, self.factor = Toy(), factor

    def forward(self, images: Tensor) -> Tensor:
        features: Tensor = self.toy(images)
        return features * self.factor


def test_the_printed_rule_is_that_of_features_of_unit_length() -> None:
    """The paper's threshold and steps are numbers without a unit; the scale of an expert's features is arbitrary."""
    images, config = pictures(3), replace(PAPER, steps=20, batch=2)
    one, many = (PixelFade(config, toy_expert(Scaled(factor))).protect(batch(images), rng=RNG) for factor in (1, 32))
    assert one.images is not None
    assert many.images is not None
    assert (one.images - many.images).abs().mean() < 0.01
    assert one.reports is not None
    features = [torch.nn.functional.normalize(toy_expert().embed(each)) for each in (one.images, images)]
    distances = (features[0] - features[1]).square().sum(1)
    assert [report.details["feature_distance"] for report in one.reports] == pytest.approx(
        distances.tolist(), rel=1e-3
    )
    assert {report.details["limit"] for report in one.reports} == {0.03}
    plain = PixelFade(replace(config, threshold_kind="sum"), toy_expert(Scaled(32))).protect(batch(images), rng=RNG)
    assert plain.images is not None
    assert (plain.images - many.images).abs().mean() > 0.01


def test_at_the_original_nothing_explodes() -> None:
    """The gradient there is zero, and Eq. 4 as printed is 0/0."""
    config = replace(PAPER, steps=1, startup=1, rest=0, masks=1, finish=0, batch=1)
    image = pictures(1)
    made = PixelFade(config, toy_expert()).protect(batch(image), rng=RNG).images
    assert made is not None
    space = Space.of_expert(toy_expert())
    noise = RNG.child("picture", "picture0").child("noise", 0).normal(3, *SIZE)
    assert (made[0] - space.outside(noise)).abs().max() <= 0.51 / 255


@pytest.mark.parametrize(("config", "most"), [
    (PixelFadeConfig(threshold=0.05, threshold_kind="sum", steps=80), 4),
    (replace(PAPER, threshold=0.05, threshold_kind="sum", step=0.002, finish=60), 1),  # long steps near the goal
    (replace(RELEASED, threshold=0.05, threshold_kind="sum", finish=60), 3),
])  # fmt: skip
def test_the_constraint_holds_in_the_8_bit_file(config: PixelFadeConfig, most: int) -> None:
    images, expert = pictures(4), toy_expert()
    release = PixelFade(replace(config, batch=4), expert).protect(batch(images), rng=RNG)
    assert release.images is not None
    assert release.reports is not None
    files = torch.stack(
        [torch.from_numpy(to_pixels(image)).permute(2, 0, 1).float() / 255 for image in release.images]
    )
    distances = (expert.embed(files) - expert.embed(images)).square().sum(1)
    for distance, report in zip(distances.tolist(), release.reports, strict=True):
        assert report.details["feature_distance"] == pytest.approx(distance, rel=1e-3, abs=1e-6)
        assert report.within_limit == (report.details["feature_distance"] < report.details["limit"] == 0.05)
    assert sum(report.within_limit for report in release.reports) >= most
    assert (files - images).abs().mean() > 0.15  # and it is another picture


def test_ours_knows_the_original_by_its_features_alone() -> None:
    """Two pictures that the expert cannot tell apart give the same release under one name."""

    class Blind(Toy):
        def forward(self, images: Tensor) -> Tensor:
            return super().forward(images * torch.tensor([1.0, 1.0, 0.0]).view(3, 1, 1))

    one = pictures(1)
    two = one.clone()
    two[:, 2] = 1 - two[:, 2]
    method = PixelFade(PixelFadeConfig(threshold=0.01, threshold_kind="sum", steps=6, batch=1), toy_expert(Blind()))
    first, second = (method.protect(batch(each), rng=RNG).images for each in (one, two))
    assert first is not None
    assert second is not None
    assert torch.equal(first, second)


def test_no_value_of_ours_leaves_the_reach_of_its_noise() -> None:
    config = PixelFadeConfig(threshold=0, threshold_kind="sum", steps=30, rate=0.1, reach=0.08, batch=2)
    made = PixelFade(config, toy_expert()).protect(batch(pictures(2)), rng=RNG).images
    assert made is not None
    for index in range(2):
        noise = RNG.child("picture", f"picture{index}").child("noise", 0).normal(3, *SIZE)
        assert (made[index] - (0.5 + 0.15 * noise).clamp(0, 1)).abs().max() <= 0.08 + 0.51 / 255


def test_energy_comes_to_lie_as_it_lay_over_the_noise() -> None:
    """A patch that is rougher than its surroundings is brought back; the roughness of the whole stays free."""
    noise = 0.5 + 0.15 * RNG.child("noise").normal(3, 40, 24)
    wanted, rough = local_energy(noise), noise.clone()
    rough[:, 10:20, 8:16] = 0.5 + 2 * (rough[:, 10:20, 8:16] - 0.5)
    values, spread = rough, []
    for _ in range(60):
        spread.append((local_energy(values) / wanted).log().std().item())
        values = evened(values, wanted, 0.15)
    assert spread[-1] < 0.4 * spread[0]  # its sharp edge stays the last
    assert max(spread[1:]) < spread[0]
    twice = 0.5 + 2 * (noise - 0.5)
    assert torch.allclose(evened(twice, wanted, 0.15), twice, atol=1e-6)


def test_local_energy_is_a_mean_over_the_pixels_that_are_there() -> None:
    values = pictures(1, 11, 13)[0]
    found = local_energy(values)
    for row, column in ((0, 0), (5, 6), (10, 12)):
        around = values[:, max(0, row - 4) : row + 5, max(0, column - 4) : column + 5]
        assert found[0, row, column].item() == pytest.approx((around - 0.5).square().mean().item(), rel=1e-4)


@pytest.mark.parametrize("preset", ["default", "released"])
def test_neither_mates_nor_order_nor_sizes_change_a_byte(preset: str) -> None:
    """On a network whose last bits do depend on the place in a batch."""
    few = {"steps": 4, "masks": 2, "startup": 2, "rest": 1, "finish": 1}
    settings = {"expert": tiny_expert_file(), "batch": 4, "spread": 30.0, **few}
    method = PixelFade.configured(preset, settings)
    batches = [batch(pictures(3, 40, 20), "tall"), batch(pictures(2, 16, 16), "square"), batch(pictures(1, 32, 16))]
    together = method.protect_many(batches, rng=RNG)
    for images, release in zip(batches, together, strict=True):
        backwards = ImageBatch(images.images.flip(0), images.items[::-1])
        again = method.protect(backwards, rng=RNG)
        assert torch.equal(again.images.flip(0), release.images)  # type: ignore[union-attr, arg-type]
        assert again.reports[::-1] == release.reports  # type: ignore[index]
        alone = PixelFade.configured(preset, settings).protect(
            ImageBatch(images.images[:1], images.items[:1]), rng=RNG
        )
        assert torch.equal(alone.images[0], release.images[0])  # type: ignore[index]


def test_every_slot_is_in_one_lane_and_lanes_have_the_same_bits() -> None:
    method = PixelFade.configured(settings={"expert": tiny_expert_file(), "batch": 5})
    known = method.authorised
    assert sorted(slot for lane in known.lanes for slot in lane) == list(range(known.slots))
    ask, other = (Query(picture, torch.zeros(known.expert.dim)) for picture in pictures(2, 50, 20))
    for lane in known.lanes:
        answers = [known.evaluate({slot: ask, (slot + 1) % known.slots: other})[slot] for slot in lane]
        assert all(torch.equal(answer.gradient, answers[0].gradient) for answer in answers)


def test_the_answer_is_the_derivative() -> None:
    """Through resizing: against differences of the feature distance itself."""
    known = AuthorisedExpert(toy_expert(), 3)
    picture, target = pictures(1, 13, 11)[0].clamp(0.1, 0.9), torch.zeros(7)
    answer = known.evaluate({1: Query(picture, target)})[1]
    assert answer.distance == pytest.approx(toy_expert().embed(picture[None]).square().sum().item(), rel=1e-5)
    towards = torch.randn(picture.shape, generator=torch.Generator().manual_seed(0)) * 1e-3
    up, down = (known.evaluate({0: Query(picture + sign * towards, target)})[0].distance for sign in (1, -1))
    assert (up - down) / 2 == pytest.approx((answer.gradient * towards).sum().item(), rel=0.02)


class _Nan(Toy):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images) / 0


class _Cut(Toy):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images.detach())


class _Mates(Toy):
    def forward(self, images: Tensor) -> Tensor:
        return super().forward(images - images.mean(0))


@pytest.mark.parametrize(("module", "reason"), [(_Nan, "NaN"), (_Cut, "not supervise"), (_Mates, "other images")])
def test_experts_that_cannot_supervise_are_refused(module: type[nn.Module], reason: str) -> None:
    with pytest.raises(ConfigError, match=reason):
        PixelFade(PixelFadeConfig(spread=1.0), toy_expert(module())).check()


def test_an_expert_of_other_images_is_refused() -> None:
    expert = toy_expert()
    expert._channels = 1  # type: ignore[assignment]  # it will give one channel to a network of three
    with pytest.raises(ConfigError, match="failed on two test images"):
        PixelFade(PixelFadeConfig(spread=1.0), expert).check()
    with pytest.raises(ConfigError, match="not supervise"):
        PixelFade.configured(settings={"expert": "histogram"}).check()


def test_an_infrared_expert_sees_the_luma() -> None:
    expert = toy_expert(channels=1)
    answer = AuthorisedExpert(expert, 2).evaluate({0: Query(pictures(1)[0], torch.zeros(7))})[0]
    red, green, blue = answer.gradient
    assert torch.allclose(red / 0.299, green / 0.587, rtol=1e-3, atol=1e-7)
    assert torch.allclose(red / 0.299, blue / 0.114, rtol=1e-3, atol=1e-7)


def test_masks_are_disjoint_of_equal_size_and_together_everything() -> None:
    numbers = mask_numbers(torch.Size((3, 7, 5)), PixelFadeConfig(masks=4), RNG)
    assert sorted(np.bincount(numbers.flatten().numpy())) == [26, 26, 26, 27]
    whole = mask_numbers(torch.Size((3, 7, 5)), PixelFadeConfig(masks=4, masks_per="pixel"), RNG)
    assert (whole == whole[:1]).all()
    assert not (numbers == numbers[:1]).all()


def test_objective_images() -> None:
    space, image = Space.of_pixels(0.25), pictures(1, 40, 20)[0]
    inside = space.inside(image)

    def picture(**settings: object) -> Tensor:
        return space.outside(objective(inside, 0, space, replace(PAPER, **settings), RNG))  # type: ignore[arg-type]

    assert torch.allclose(picture(noise_weight=0.0), image, atol=1e-6)
    assert torch.allclose(picture(objective="zero"), torch.full_like(image, 0.5))
    assert torch.allclose(picture(objective="contrast"), (image <= 0.5).float(), atol=1e-6)
    other = picture(objective="other")
    assert other.shape == image.shape
    assert (other - image).abs().mean() > 0.1
    half = picture(noise_weight=0.5)
    assert (half - image).abs().mean() < (picture() - image).abs().mean()


@pytest.mark.parametrize("settings", [{"optimisation": "perturb", "amplitude": 0.5}, {"optimisation": "l1"}])
def test_other_optimisations_of_figure_4(settings: dict[str, object]) -> None:
    method = PixelFade.configured("released", {**SHORT, **settings, "threshold": 1.0, "batch": 1})
    method = PixelFade(method.config, toy_expert())
    images = pictures(1)
    made = method.protect(batch(images), rng=RNG)
    assert made.images is not None
    assert (made.images - images).abs().mean() > 0.01
    assert made.reports is not None
    assert (made.reports[0].details["replacements"] == 0) == (settings["optimisation"] == "l1")


def test_noise_is_still_noise_after_the_experts_resize() -> None:
    noise = grained_noise(torch.Size((3, 256, 128)), (32, 16), RNG)
    assert noise.std().item() == pytest.approx(1, abs=0.05)
    small = torch.nn.functional.avg_pool2d(noise, 8)
    assert small.std().item() == pytest.approx(0.5**0.5, abs=0.1)  # of white noise it would be 1/8


def test_settings_that_would_leave_the_original_are_refused() -> None:
    with pytest.raises(ConfigError, match="startup must be at least masks"):
        replace(PAPER, masks=8)
    with pytest.raises(ConfigError, match="Algorithm 1"):
        PixelFadeConfig(objective="zero")


def test_calibration_is_bound_to_its_expert(tmp_path: Path) -> None:
    features = torch.randn(6, 4, generator=torch.Generator().manual_seed(0))
    people = ["a", "a", "b", "c", "c", "c"]
    pairs = [
        (features[i] - features[j]).square().sum().item()
        for i in range(6)
        for j in range(i)
        if people[i] != people[j]
    ]
    assert spread(features, people) == pytest.approx(float(np.mean(pairs)), rel=1e-5)

    method = PixelFade.configured(settings={"expert": tiny_expert_file(), "spread": 5.0, "threshold": 0.1})
    assert method.limit == pytest.approx(0.5)
    method._fitted_to = method.authorised.expert.info.fingerprint
    method.save(tmp_path / "m.safetensors")
    loaded = PixelFade.load(tmp_path / "m.safetensors")
    assert loaded.reconfigured("released").config == replace(RELEASED, expert=tiny_expert_file(), spread=5.0)
    loaded.check()
    other = PixelFade(loaded.config, toy_expert())
    other._fitted_to = loaded._fitted_to
    with pytest.raises(ConfigError, match="another expert"):
        other.check()
