"""Feature assembling against the paper's equations, and FRO's promises beyond those of every synthesiser."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image
from torch import nn

from tests.methods.tiny import TINY_FRO as TINY
from tests.methods.tiny import tiny_fro
from veilkit.errors import CheckpointError, ConfigError
from veilkit.methods.fro.assembly import AssemblyConfig, Statistics, assemble, divergence, soft_labels
from veilkit.methods.fro.canvas import PrincipalComponents
from veilkit.methods.fro.method import DEEP_INVERSION, KINDS, PRINCIPAL, SPECTRAL, Fro
from veilkit.methods.fro.pool import Pool
from veilkit.rng import Randomness
from veilkit.types import Record, Split

PEOPLE = ("ann", "bob", "cy")


def small_pool() -> Pool:
    """A plain little network that knows the statistics of some noise."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        network = nn.Sequential(
            nn.Conv2d(3, 8, 3, 2), nn.BatchNorm2d(8, momentum=None), nn.ReLU(),
            nn.Conv2d(8, 16, 3, 2), nn.BatchNorm2d(16, momentum=None), nn.ReLU(),
            nn.AdaptiveAvgPool2d(2), nn.Flatten(), nn.Linear(64, 3),
        )  # fmt: skip
        with torch.no_grad():
            network[-1].weight.mul_(10)
            network.train()(torch.rand(64, 3, 32, 16))
    return Pool(network, PEOPLE, [2, 2, 2], (32, 16), torch.full((3, 1, 1), 0.5), torch.full((3, 1, 1), 0.25))


def made(config: AssemblyConfig, pool: Pool | None = None, seed: int = 0) -> tuple[torch.Tensor, list[float]]:
    pool = pool or small_pool()
    return assemble(
        pool.classifier, torch.tensor([0, 1, 2, 0]), 3, (32, 16), mean=pool.mean, std=pool.std, config=config,
        rng=Randomness.from_seed(seed), items=("a", "b", "c", "d"), components=pool.components,
    )  # fmt: skip


def known_components(count: int = 64) -> PrincipalComponents:
    return PrincipalComponents.of(
        (255 * torch.rand(count, 3, 32, 16, generator=torch.Generator().manual_seed(5))).byte()
    )


def test_softened_labels_are_a_distribution_with_its_peak_at_the_class() -> None:
    labels = soft_labels(torch.tensor([2, 0]), 4, 0.2)
    torch.testing.assert_close(labels, torch.tensor([[0.05, 0.05, 0.85, 0.05], [0.85, 0.05, 0.05, 0.05]]))


def test_the_forward_divergence_is_cross_entropy_up_to_a_constant() -> None:
    logits, classes = torch.randn(5, 7, generator=torch.Generator().manual_seed(0)), torch.arange(5)
    config = AssemblyConfig(temperature=2.0)
    expected = nn.functional.cross_entropy(logits / 2, classes)
    torch.testing.assert_close(divergence(logits, soft_labels(classes, 7, 0.0), config), expected)


def test_the_printed_divergence_is_equation_4_written_out() -> None:
    logits, classes = torch.randn(5, 7, generator=torch.Generator().manual_seed(0)), torch.arange(5)
    config = AssemblyConfig(temperature=0.5, softening=0.3, divergence="printed")
    q = soft_labels(classes, 7, 0.3).numpy().astype(np.float64)
    z = np.exp(2 * logits.numpy().astype(np.float64))
    p = z / z.sum(1, keepdims=True)
    expected = (p * np.log(p / q)).sum(1).mean()
    assert divergence(logits, soft_labels(classes, 7, 0.3), config).item() == pytest.approx(expected, rel=1e-5)


def test_the_printed_divergence_needs_soft_labels() -> None:
    with pytest.raises(ConfigError, match="softening"):
        AssemblyConfig(divergence="printed")


def test_a_spectrum_and_coarse_steps_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="exclude each other"):
        replace(SPECTRAL, coarse=0.5)


def test_looks_and_coarse_steps_exclude_each_other() -> None:
    with pytest.raises(ConfigError, match="exclude each other"):
        replace(DEEP_INVERSION, start="looks")


@pytest.mark.parametrize("spectrum", [0.0, 1.0])
def test_pictures_begin_with_the_components_of_the_originals(spectrum: float) -> None:
    pool = small_pool()
    pool.components = known_components()
    config = replace(PRINCIPAL, spectrum=spectrum, steps=1, rate=1e-6)
    images, _ = made(config, pool)
    weights = [Randomness.from_seed(0).child("looks", item).normal(len(pool.components.axes)) for item in "abcd"]
    torch.testing.assert_close(images, pool.components.mixed(torch.stack(weights), (32, 16)), atol=0.1, rtol=0)
    others, _ = made(config, pool, seed=1)
    assert not torch.allclose(images, others, atol=0.1)


def test_a_group_is_of_one_kind_which_the_key_draws() -> None:
    fro = tiny_fro(PEOPLE)
    fro.pool.components = known_components()
    kinds = fro.reconfigured(settings={"kinds": "noise,looks,leaves,sure-leaves,figures", "assembly.steps": 2})
    singles = {kind: fro.reconfigured(settings={"kinds": kind, "assembly.steps": 2}) for kind in kinds.config.kinds}
    drawn = set()
    for group in range(15):
        items = [f"{group}-{index}" for index in range(2)]
        images = [
            method.synthesise(items, PEOPLE[:2], rng=Randomness.from_seed(0)).images
            for method in (kinds, *singles.values())
        ]
        same = [kind for kind, each in zip(singles, images[1:], strict=True) if torch.equal(images[0], each)]
        assert len(same) == 1
        drawn.update(same)
    assert len(drawn) >= 4


def test_settings_of_the_assembly_rule_what_a_kind_leaves_open() -> None:
    varied = Fro.preset_table()["varied"]
    for kind in varied.kinds:
        assembly = replace(varied.assembly, temperature=7.0, **KINDS[kind])
        assert (assembly.temperature, assembly.spectrum) == (7.0, 1.0)
    with pytest.raises(ConfigError, match="kinds must be one of noise, looks"):
        tiny_fro(PEOPLE).reconfigured(settings={"kinds": "nose"})


def test_a_classifier_without_components_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="preset that begins with noise"):
        made(PRINCIPAL)


def test_components_are_part_of_the_pool_and_of_its_file(tmp_path: Path) -> None:
    fro, plain = tiny_fro(PEOPLE), tiny_fro(PEOPLE)
    fro.pool.components = known_components()
    assert fro.fingerprint() != plain.fingerprint()
    for method, name in ((fro, "with"), (plain, "without")):
        method.save(tmp_path / f"{name}.safetensors")
    found = Fro.load(tmp_path / "with.safetensors").pool.components
    assert found is not None
    torch.testing.assert_close(found.axes, fro.pool.components.axes, atol=1e-3, rtol=1e-3)
    torch.testing.assert_close(found.mean, fro.pool.components.mean, atol=1e-3, rtol=1e-3)
    assert Fro.load(tmp_path / "without.safetensors").pool.components is None


def test_statistics_are_equation_5_written_out() -> None:
    pool = small_pool()
    images = torch.rand(6, 3, 32, 16, generator=torch.Generator().manual_seed(1))
    seen: dict[nn.Module, np.ndarray] = {}
    layers = [m for m in pool.classifier.modules() if isinstance(m, (nn.BatchNorm1d, nn.BatchNorm2d))]
    handles = [
        layer.register_forward_pre_hook(lambda module, inputs: seen.__setitem__(module, inputs[0].double().numpy()))
        for layer in layers
    ]
    with torch.no_grad():
        pool.classifier(images)
    for handle in handles:
        handle.remove()
    expected = 0.0
    for layer in layers:
        values = np.moveaxis(seen[layer], 1, 0).reshape(seen[layer].shape[1], -1)
        expected += np.linalg.norm(values.mean(1) - layer.running_mean.numpy())
        expected += np.linalg.norm(values.var(1) - layer.running_var.numpy())
    with Statistics(pool.classifier) as statistics, torch.no_grad():
        pool.classifier(images)
        assert statistics.distance().item() == pytest.approx(expected, rel=1e-4)


def test_hooks_are_gone_afterwards() -> None:
    pool = small_pool()
    made(AssemblyConfig(steps=1), pool)
    assert all(not module._forward_pre_hooks for module in pool.classifier.modules())


@pytest.mark.parametrize("config", [AssemblyConfig(steps=25), replace(DEEP_INVERSION, steps=40, roll=1), SPECTRAL])
def test_the_loss_falls_and_the_class_is_found(config: AssemblyConfig) -> None:
    pool = small_pool()
    images, losses = made(replace(config, alpha=0.0, temperature=1.0), pool)
    assert losses[-1] < 0.5 * losses[0]
    assert pool.logits(images).argmax(1).tolist() == [0, 1, 2, 0]


def test_statistics_draw_the_group_nearer_to_the_training_set() -> None:
    pool = small_pool()

    def distance(images: torch.Tensor) -> float:
        with Statistics(pool.classifier) as statistics, torch.no_grad():
            pool.classifier(images)
            return statistics.distance().item()

    without, _ = made(AssemblyConfig(steps=25, alpha=0.0), pool)
    with_them, _ = made(AssemblyConfig(steps=25, alpha=1.0), pool)
    assert distance(with_them) < 0.8 * distance(without)


def test_the_pool_is_untouched() -> None:
    pool = small_pool()
    before = {name: value.clone() for name, value in pool.classifier.state_dict().items()}
    made(AssemblyConfig(steps=2), pool)
    assert all(torch.equal(value, before[name]) for name, value in pool.classifier.state_dict().items())
    assert all(parameter.grad is None for parameter in pool.classifier.parameters())


def test_a_network_without_batch_normalisation_is_refused() -> None:
    plain = nn.Sequential(nn.Conv2d(3, 4, 3), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3))
    pool = Pool(plain, PEOPLE, [1, 1, 1], (32, 16), torch.zeros(3, 1, 1), torch.ones(3, 1, 1))
    with pytest.raises(ConfigError, match="batch normalisation"):
        Fro(TINY, pool).synthesise(["a"], ["ann"], rng=Randomness.from_seed(0))


def test_any_classifier_with_batch_normalisation_will_do_but_cannot_be_written(tmp_path: Path) -> None:
    own = nn.Sequential(
        nn.Conv2d(3, 4, 3), nn.BatchNorm2d(4), nn.ReLU(), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(4, 3)
    )
    method = Fro(TINY, Pool(own, PEOPLE, [1, 1, 1], (32, 16), torch.zeros(3, 1, 1), torch.ones(3, 1, 1)))
    images = method.synthesise(["a", "b"], ["ann", "cy"], rng=Randomness.from_seed(0)).images
    assert images is not None
    assert images.shape == (2, 3, 32, 16)
    with pytest.raises(CheckpointError, match="own file"):
        method.save(tmp_path / "model.safetensors")


def test_how_the_pool_was_trained_cannot_change_any_more() -> None:
    with pytest.raises(ConfigError, match="trained already"):
        tiny_fro(PEOPLE).reconfigured(settings={"pool.epochs": 9})


def test_without_a_pool_it_says_what_to_do() -> None:
    with pytest.raises(ConfigError, match="veilkit fit fro"):
        Fro().synthesise(["a"], ["ann"], rng=Randomness.from_seed(0))


def test_fit_trains_a_pool_of_the_people_and_writes_it(tmp_path: Path) -> None:
    records, generator = [], np.random.default_rng(0)
    for person, name in enumerate(PEOPLE):
        for shot in range(8):
            pixels = np.full((32, 16, 3), 40, np.uint8)
            pixels[..., person] = generator.integers(180, 250)
            Image.fromarray(pixels).save(tmp_path / f"{name}{shot}.png")
            records.append(Record(f"{name}{shot}.png", name))
    split = Split("train", tmp_path, tuple(records))
    method = Fro(TINY).fit(split, work_dir=tmp_path / "work")
    assert method.classes == PEOPLE
    assert method.pool.counts == (8, 8, 8)
    method.save(tmp_path / "pool.safetensors")
    images = torch.rand(4, 3, 32, 16)
    torch.testing.assert_close(
        Fro.load(tmp_path / "pool.safetensors").soft_labels(images), method.soft_labels(images), atol=0.05, rtol=0.05
    )
