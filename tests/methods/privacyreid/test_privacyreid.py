"""PrivacyReID as a method: its files, what is refused, and when learned pictures become the supervision."""

from __future__ import annotations

import json
import xml.etree.ElementTree as ET
from dataclasses import replace
from pathlib import Path

import pytest
import torch

from tests.methods.tiny import TINY_PRIVACYREID as TINY
from tests.methods.tiny import tiny_generator, tiny_model_file
from tests.training.test_reid import write_people
from veilkit.checkpoint import load_checkpoint
from veilkit.errors import CheckpointError, ConfigError
from veilkit.experts import load_expert
from veilkit.methods import Recoverable
from veilkit.methods.learned import Decoder, decoder_beside, expert_beside, generate_each
from veilkit.methods.privacyreid.method import PrivacyReid
from veilkit.methods.privacyreid.supervision import Limits, Supervision, decide, write_decisions
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

RNG = Randomness.from_seed(0)


def pictures(height: int = 32, width: int = 16, count: int = 3) -> ImageBatch:
    images = torch.rand(count, 3, height, width, generator=torch.Generator().manual_seed(0))
    return ImageBatch(images, tuple(map(str, range(count))))


def released(method: PrivacyReid, batch: ImageBatch) -> torch.Tensor:
    images = method.protect(batch, rng=RNG).images
    assert images is not None
    return images


def test_fit_leaves_three_files_that_work_apart(tmp_path: Path) -> None:
    """The protecting machine's file holds no decoder; decoder and recogniser need no other file."""
    split = write_people(tmp_path, people=6, per_camera=2)
    config = replace(TINY, upgrade=False, reid=replace(TINY.reid, epochs=1))
    fitted = PrivacyReid(config).fit(split, work_dir=tmp_path / "work")
    out = tmp_path / "model.safetensors"
    fitted.save(out)
    assert isinstance(fitted, Recoverable)
    loaded, decoder = PrivacyReid.load(out), Decoder.load(decoder_beside(out))
    batch = pictures()
    assert torch.equal(released(loaded, batch), released(fitted, batch))
    assert torch.equal(decoder.recover(batch.images), fitted.recover(batch.images, rng=RNG))
    assert decoder.model == loaded.model_sha256 == loaded.public_config()["model"]
    assert load_expert(expert_beside(out)).embed(batch.images).shape[0] == 3
    assert set(load_checkpoint(out, "method/privacyreid").tensors) == set(fitted.generator.state_dict())
    with pytest.raises(ConfigError, match=r"OUT\.decoder\.safetensors"):
        loaded.recover(batch.images, rng=RNG)
    told = fitted.after_fit(out)
    assert str(decoder_beside(out)) in told[1]
    assert "undoes the protection" in told[1]


def test_a_model_that_missed_its_own_limits_says_so() -> None:
    method = PrivacyReid(TINY, tiny_generator(0))
    assert not any("Warning" in line for line in method.after_fit(Path("out.safetensors")))
    method._private = False
    assert "closer to the originals than the limits allow" in method.after_fit(Path("out.safetensors"))[-1]


def test_pictures_of_the_working_size_are_not_resampled() -> None:
    method, batch = PrivacyReid.load(Path(tiny_model_file())), pictures()
    alone = torch.cat([method.generator(image[None]) for image in batch.images])
    assert torch.equal(released(method, batch), alone)


def test_the_release_has_its_own_or_the_working_size() -> None:
    method, batch = PrivacyReid.load(Path(tiny_model_file())), pictures(50, 30)
    assert released(method, batch).shape == (3, 3, 50, 30)
    working = method.reconfigured(settings={"own_size": "false"})
    assert released(working, batch).shape == (3, 3, 32, 16)
    assert working.fingerprint() != method.fingerprint()
    assert generate_each(method.generator, batch.images[:0], (32, 16)).shape == (0, 3, 50, 30)


def test_what_was_learned_cannot_be_set_any_more() -> None:
    method = PrivacyReid.load(Path(tiny_model_file()))
    assert method.reconfigured(settings={"own_size": True}).config == method.config
    with pytest.raises(ConfigError, match="only own_size"):
        method.reconfigured(settings={"desensitise": "blur"})
    with pytest.raises(ConfigError, match="only own_size"):
        method.reconfigured("paper")


def test_mistakes_are_told(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match="veilkit fit privacyreid"):
        PrivacyReid().check()
    with pytest.raises(ConfigError, match="work folder"):
        PrivacyReid(TINY).fit(write_people(tmp_path, people=2, per_camera=1))
    with pytest.raises(CheckpointError, match=r"kind 'decoder', but got 'method/privacyreid'.*OUT\.decoder"):
        Decoder.load(Path(tiny_model_file()))
    with pytest.raises(CheckpointError, match="no such model file"):
        Decoder.load(tmp_path / "nothing.safetensors")
    with pytest.raises(CheckpointError, match="kind 'method/privacyreid', but got 'decoder'"):
        PrivacyReid.load(decoder_beside(Path(tiny_model_file())))


LIMITS = Limits(psnr=20.0, ssim=0.5, rank1=0.40)
PRIVATE, LIKE, ALIKE = (
    (20.9, 0.54),
    (21.1, 0.54),
    (20.9, 0.56),
)  # PSNR and SSIM: within both, over one, over the other
FIRST = Supervision(0.35)
UPGRADED = Supervision(0.45, upgraded=True)


def test_the_first_mark_lies_below_what_desensitised_pictures_reach() -> None:
    assert LIMITS.first_rank1 == pytest.approx(0.35)
    assert Limits(20, 0.5, None).first_rank1 is None


@pytest.mark.parametrize(
    ("likeness", "rank1", "before", "action", "after"),
    [
        (PRIVATE, 0.36, FIRST, "upgrade", Supervision(0.36, upgraded=True)),
        (PRIVATE, 0.35, FIRST, "keep", FIRST),  # as good is not better
        (LIKE, 0.90, FIRST, "keep", FIRST),
        (ALIKE, 0.90, FIRST, "keep", FIRST),
        (PRIVATE, 0.46, UPGRADED, "upgrade", Supervision(0.46, upgraded=True)),
        (PRIVATE, 0.44, UPGRADED, "keep", UPGRADED),
        (LIKE, 0.90, UPGRADED, "revert", Supervision(0.45)),  # what is not private sets no mark
        (ALIKE, 0.10, UPGRADED, "revert", Supervision(0.45)),
        (PRIVATE, 0.44, Supervision(0.45), "keep", Supervision(0.45)),  # after a revert the old mark is to be beaten
    ],
)
def test_each_branch(
    likeness: tuple[float, float], rank1: float, before: Supervision, action: str, after: Supervision
) -> None:
    assert decide(*likeness, rank1, limits=LIMITS, before=before) == (action, after)


def test_limits_are_strict() -> None:
    assert not LIMITS.private(21.0, 0.1)
    assert not LIMITS.private(1.0, 0.55)
    assert LIMITS.private(20.999, 0.549)


def test_the_log_holds_every_number_and_the_figure_every_check(tmp_path: Path) -> None:
    decisions = [
        {"epoch": 5 * place, "action": action, "psnr": 20.0 + place, "ssim": 0.5, "rank1": 0.1 * place,
         "psnr_limit": 21.0, "ssim_limit": 0.55, "rank1_to_beat": None if action == "off" else 0.3}
        for place, action in enumerate(("keep", "upgrade", "revert", "off"), 1)
    ]  # fmt: skip
    write_decisions(tmp_path, decisions)
    assert [json.loads(line) for line in (tmp_path / "decisions.jsonl").read_text().splitlines()] == decisions
    root = ET.fromstring((tmp_path / "decisions.svg").read_text())
    marks = [mark for mark in root if mark.get("class") == "check"]
    assert len(marks) == 3 * len(decisions) + 3  # and three in the legend
    assert len({mark.get("fill") for mark in marks}) == 3
    write_decisions(tmp_path, [])
    assert (tmp_path / "decisions.jsonl").read_text() == ""
