"""PEPR-Net as a method: its pictures, its features under each noise, its files, and what is refused."""

from __future__ import annotations

import math
from dataclasses import replace
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.methods.tiny import TINY_PEPRNET as TINY
from tests.methods.tiny import tiny_peprnet, tiny_peprnet_file
from tests.training.test_reid import write_people
from veilkit.errors import BudgetError, ConfigError, DataError
from veilkit.experts import load_expert
from veilkit.methods.controls import Pixelate
from veilkit.methods.learned import expert_beside
from veilkit.methods.peprnet.config import PAPER, SMALL, Deid
from veilkit.methods.peprnet.deid_decoder import DeidDecoder, DeidDecoderConfig, levelled
from veilkit.methods.peprnet.method import PeprNet
from veilkit.methods.peprnet.training import deid_target
from veilkit.privacy import Budget, Ledger
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

RNG = Randomness.from_seed(0)


def pictures(height: int = 32, width: int = 16, count: int = 4) -> ImageBatch:
    images = torch.rand(count, 3, height, width, generator=torch.Generator().manual_seed(0))
    return ImageBatch(images, tuple(f"a/{i}\0hash" for i in range(count)), tuple(f"p{i // 2}" for i in range(count)))


def drawn(method: PeprNet, batch: ImageBatch) -> torch.Tensor:
    images = method.protect(batch, rng=RNG).images
    assert images is not None
    return images


def test_fit_leaves_a_model_and_an_expert_with_the_same_features(tmp_path: Path) -> None:
    split = write_people(tmp_path, people=4, per_camera=2)
    fitted = PeprNet(replace(TINY, epochs=1)).fit(split, work_dir=tmp_path / "work")
    out = tmp_path / "model.safetensors"
    fitted.save(out)
    loaded, batch = PeprNet.load(out), pictures()
    assert torch.equal(drawn(loaded, batch), drawn(fitted, batch))
    assert loaded.fingerprint() == fitted.fingerprint()
    expert = load_expert(expert_beside(out))
    assert expert.dim == 16
    torch.testing.assert_close(expert.embed(batch.images), loaded.raw_features(batch.images), atol=1e-4, rtol=1e-4)
    small = tmp_path / "small.safetensors"
    fitted.save(small, half=True)
    assert small.stat().st_size < 0.7 * out.stat().st_size
    halved, beside = PeprNet.load(small), load_expert(expert_beside(small))
    torch.testing.assert_close(beside.embed(batch.images), halved.raw_features(batch.images), atol=1e-4, rtol=1e-4)
    torch.testing.assert_close(drawn(halved, batch), drawn(fitted, batch), atol=0.02, rtol=0)
    told = fitted.after_fit(out)
    assert str(expert_beside(out)) in told[1]
    assert "Warning" not in " ".join(told)
    clean = PeprNet(replace(TINY, deid="clean"), fitted.encoder, fitted.decoder)
    assert "protect nobody" in clean.after_fit(out)[-1]


def test_pictures_are_what_the_decoder_draws_of_the_features() -> None:
    method, batch = tiny_peprnet(), pictures()
    by_hand = method.decoder(levelled(method.raw_features(batch.images))).clamp(0, 1)
    torch.testing.assert_close(drawn(method, batch), by_hand, atol=1e-5, rtol=1e-4)
    assert drawn(method, pictures(50, 30)).shape == (4, 3, 50, 30)
    working = method.reconfigured(settings={"own_size": "false"})
    assert drawn(working, pictures(50, 30)).shape == (4, 3, 32, 16)
    assert working.fingerprint() != method.fingerprint()


@pytest.mark.parametrize(("noise", "delta"), [("privunit", 0.0), ("laplace", 0.0), ("gaussian", 1e-6)])
def test_features_are_released_with_proof_and_fresh_noise(noise: str, delta: float) -> None:
    method, batch = tiny_peprnet(), pictures()
    first, second = (method.protect_features(batch, epsilon=8.0, delta=delta, noise=noise) for _ in range(2))  # type: ignore[arg-type]
    assert first.features is not None
    assert second.features is not None
    assert first.features.shape == (4, 16)
    assert not torch.equal(first.features, second.features)
    assert first.source_index == (0, 1, 2, 3)
    assert first.guarantee is not None
    assert (first.guarantee.epsilon_claimed, first.guarantee.epsilon_proved, first.guarantee.delta) == (
        8.0,
        8.0,
        delta,
    )


def test_releases_are_unbiased_about_the_unit_features() -> None:
    method = tiny_peprnet()
    batch = pictures(count=1)
    many = ImageBatch(batch.images.expand(600, -1, -1, -1), tuple(map(str, range(600))))
    released = method.protect_features(many, epsilon=12.0).features
    assert released is not None
    clean = method.features(batch.images)[0]
    assert float(clean.norm()) == pytest.approx(1.0, abs=1e-5)
    spread = float(released.std(0).mean()) / math.sqrt(600)
    assert float((released.mean(0) - clean).abs().max()) < 5 * spread


def test_the_papers_noise_has_no_guarantee() -> None:
    release = tiny_peprnet().protect_features(pictures(), epsilon=0.5, delta=0.01, noise="paper")
    assert release.guarantee is not None
    assert release.guarantee.epsilon_proved == math.inf
    assert "no formal guarantee" in release.guarantee.text


def test_a_ledger_charges_refuses_and_repeats(tmp_path: Path) -> None:
    method, batch = tiny_peprnet(), pictures()
    with Ledger(tmp_path / "ledger", budget=Budget(epsilon=16.0, delta=0.0), per="person") as ledger:
        first = method.protect_features(batch, epsilon=8.0, ledger=ledger).features
        again = method.protect_features(batch, epsilon=8.0, ledger=ledger).features
        assert first is not None
        assert again is not None
        assert torch.equal(first, again)
        assert ledger.spent("p0").epsilon == pytest.approx(16.0)  # two pictures of one person
        more = ImageBatch(batch.images[:1], ("another",), ("p0",))
        with pytest.raises(BudgetError):
            method.protect_features(more, epsilon=8.0, ledger=ledger)
        nobody = ImageBatch(batch.images[:1], ("third",))
        with pytest.raises(DataError, match="somebody unknown"):
            method.protect_features(nobody, epsilon=8.0, ledger=ledger)
        other = tiny_peprnet(1)  # another model's features of the picture are another record
        with pytest.raises(BudgetError):
            other.protect_features(batch, epsilon=8.0, ledger=ledger)


def test_what_decoders_must_draw() -> None:
    batch = pictures()
    wanted = {kind: deid_target(replace(TINY, deid=kind)) for kind in ("pixelate", "blur", "obfuscate", "clean")}
    made = {kind: target.apply(batch.images) for kind, target in wanted.items() if target is not None}
    assert torch.equal(made["clean"], batch.images)
    cells = Pixelate().protect(batch, rng=RNG).images
    assert cells is not None
    assert torch.equal(made["pixelate"], cells)
    mean = batch.images.mean((2, 3), keepdim=True).expand_as(batch.images)
    torch.testing.assert_close(made["obfuscate"], mean)  # one colour, that of the picture as a whole
    assert made["blur"].std() < batch.images.std()
    assert deid_target(replace(TINY, deid="none")) is None
    kinds: set[Deid] = {"pixelate", "blur", "obfuscate", "clean", "none"}
    assert len({target.name for target in wanted.values() if target is not None}) == len(kinds) - 1


def test_without_a_decoder_there_are_features_and_no_pictures() -> None:
    full = tiny_peprnet()
    method = PeprNet(replace(TINY, deid="none"), full.encoder)
    assert torch.equal(method.features(pictures().images), full.features(pictures().images))
    with pytest.raises(ConfigError, match="trained without a decoder"):
        method.check()


def test_mistakes_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="veilkit fit peprnet"):
        PeprNet().check()
    with pytest.raises(ConfigError, match="work folder"):
        PeprNet(TINY).fit(write_people(tmp_path, people=2, per_camera=1))
    method = PeprNet.load(Path(tiny_peprnet_file()))
    with pytest.raises(ConfigError, match="only own_size"):
        method.reconfigured(settings={"deid": "blur"})
    with pytest.raises(TypeError, match="epsilon"):
        method.protect_features(pictures())  # type: ignore[call-arg]
    with pytest.raises(ConfigError, match="one of privunit, gaussian, laplace, paper"):
        method.protect_features(pictures(), epsilon=1.0, noise="none")  # type: ignore[arg-type]
    with pytest.raises(ConfigError, match="delta"):
        method.protect_features(pictures(), epsilon=1.0, noise="gaussian")


def test_the_default_is_the_small_one() -> None:
    assert PeprNet.default == SMALL
    assert PAPER.backbone == "resnet50"
    for setting in ("reid_weight", "deid_weight", "adversary_weight", "identities", "images", "rate", "adversary"):
        assert getattr(SMALL, setting) == getattr(PAPER, setting)


@pytest.mark.parametrize(("features", "size"), [(128, (256, 128)), (128, (128, 64)), (512, (33, 20)), (8, (5, 4))])
def test_features_become_pictures_of_the_size(features: int, size: tuple[int, int]) -> None:
    network = DeidDecoder(DeidDecoderConfig(features, size, 4))
    assert network(torch.randn(2, features)).shape == (2, 3, *size)
    assert sum(isinstance(part, nn.Conv2d) for part in network.modules()) == 3  # as the paper counts them


def test_each_picture_depends_on_its_own_features() -> None:
    network = DeidDecoder(DeidDecoderConfig(16, (16, 8), 4))
    features = torch.randn(3, 16)
    together = network(features)
    assert not torch.allclose(together[0], together[1])
    torch.testing.assert_close(network(features[1:2])[0], together[1])


def test_levelled_features_keep_their_direction_alone() -> None:
    features = torch.randn(4, 16)
    found = levelled(features)
    torch.testing.assert_close(found.norm(dim=1), torch.full((4,), 4.0))
    torch.testing.assert_close(levelled(7 * features), found)
    assert math.isclose(float((found[0] @ features[0]) / (4 * features[0].norm())), 1.0, rel_tol=1e-5)


def test_a_length_that_cannot_be_reshaped_is_refused() -> None:
    with pytest.raises(ConfigError, match="multiple of 8, but got 100"):
        DeidDecoderConfig(100, (16, 8))
    with pytest.raises(ConfigError, match="size must be between 4 and 1024"):
        DeidDecoderConfig(16, (2, 8))
