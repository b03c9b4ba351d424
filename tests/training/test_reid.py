"""Re-ID training learns, refuses what does not fit, and after kill -9 reaches the same bits as an unbroken run."""

import io
import os
import signal
import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import torch
from PIL import Image

from veilkit.checkpoint import load_checkpoint, save_checkpoint
from veilkit.datasets.augment import AugmentConfig
from veilkit.errors import CheckpointError, ConfigError, DataError
from veilkit.networks.backbones import BACKBONE_KIND, build_backbone
from veilkit.networks.reid import load_reid
from veilkit.rng import Randomness
from veilkit.training.loop import Decay
from veilkit.training.pixels import read_pixels
from veilkit.training.reid import train_reid
from veilkit.training.reid_config import AGW, RECIPES, ReidConfig
from veilkit.training.retrieval import evaluate_reid, hold_out
from veilkit.types import Record, Split

TINY = ReidConfig(
    backbone="osnet-x0.25",
    size=(32, 16),
    epochs=3,
    identities=4,
    images=2,
    warmup=0,
    decay=Decay.COSINE,
    average=0.9,
    centre=5e-4,
    augment=AugmentConfig(jitter=0.1),
)


def write_people(root, people=10, per_camera=4):
    """Each person is a shirt and a trouser colour; cameras differ in brightness, pictures in noise."""
    generator = np.random.default_rng(0)
    records = []
    for person in range(people):
        colours = generator.integers(60, 200, (2, 3))
        for camera in range(2):
            for shot in range(per_camera):
                pixels = np.repeat(colours, 16, axis=0)[:, None, :].repeat(16, axis=1) * (1 - 0.15 * camera)
                pixels = np.clip(pixels + generator.normal(0, 12, pixels.shape), 0, 255).astype(np.uint8)
                name = f"{person:04}_c{camera + 1}_{shot}.png"
                Image.fromarray(pixels).save(root / name)
                records.append(Record(name, f"{person:04}", str(camera + 1)))
    return Split("train", root, tuple(records))


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    return write_people(tmp_path_factory.mktemp("people"))


@pytest.fixture(scope="module", autouse=True)
def one_thread():
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)


def train(people, config, folder, **options):
    return train_reid(people, config, folder / "out.safetensors", work_dir=folder, stream=io.StringIO(), **options)


def test_training_beats_the_start(people, tmp_path):
    held = hold_out(people, 0.4, Randomness.from_seed(1))
    query, gallery = read_pixels(held.query, (32, 16)), read_pixels(held.gallery, (32, 16))
    config = replace(TINY, rate=2e-3, average=0.0)
    found = []
    for epochs, rate in ((1, 1e-9), (4, config.rate)):
        folder = tmp_path / str(epochs)
        train(held.train, replace(config, epochs=epochs, rate=rate), folder)
        network = load_reid(folder / "out.safetensors")
        found.append(evaluate_reid(network, held.query, held.gallery, query, gallery).mean_ap)
    assert found[1] > found[0]
    assert found[1] > 0.6


def test_validation_people_are_reported(people, tmp_path):
    result = train(people, replace(TINY, epochs=2), tmp_path, validation=0.4, validate_every=1)
    assert [found.epoch for found in result.validations] == [1, 2]
    assert all(0 <= found.rank1 <= 1 and 0 <= found.mean_ap <= 1 for found in result.validations)


def test_hold_out_shares_no_person(people):
    held = hold_out(people, 0.3, Randomness.from_seed(0))
    assert len(held.query.identities) == 3
    assert not set(held.train.identities) & set(held.gallery.identities)
    assert set(held.query.identities) == set(held.gallery.identities)
    parts = (*held.train.records, *held.query.records, *held.gallery.records)
    assert sorted(record.path for record in parts) == sorted(record.path for record in people.records)


KILLED = """
import sys
from pathlib import Path
import torch
from tests.training.test_reid import TINY, train
from veilkit.types import Record, Split
torch.set_num_threads(1)
root, folder = Path(sys.argv[1]), Path(sys.argv[2])
names = sorted(path.name for path in root.glob("*.png"))
split = Split("train", root, tuple(Record(n, n[:4], n[6]) for n in names))
from veilkit.training.reid_run import ReidRun
step = ReidRun.step
def announced(self, number, positions, progress):
    loss = step(self, number, positions, progress)
    print(self.epoch, number, flush=True)
    return loss
ReidRun.step = announced
train(split, TINY, folder)
"""


def test_killed_run_resumes_to_the_same_bits(people, tmp_path):
    straight, broken = tmp_path / "straight", tmp_path / "broken"
    train(people, TINY, straight)
    command = [sys.executable, "-c", KILLED, str(people.root), str(broken)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True, cwd=Path(__file__).parents[2]) as process:
        for line in process.stdout:
            if line.split() == ["1", "3"]:  # in the middle of the second epoch
                os.kill(process.pid, signal.SIGKILL)
                break
    assert process.returncode == -signal.SIGKILL
    assert load_checkpoint(broken / "state.safetensors", "reid-training").config["epoch"] == 1
    train(people, TINY, broken)
    for name in ("out.safetensors", "state.safetensors"):
        assert (straight / name).read_bytes() == (broken / name).read_bytes()


def test_finished_run_is_not_repeated(people, tmp_path, monkeypatch):
    config = replace(TINY, epochs=1)
    first = train(people, config, tmp_path)

    def fail(*arguments):
        pytest.fail("a finished run took another step")

    monkeypatch.setattr("veilkit.training.reid_run.ReidRun.step", fail)
    assert train(people, config, tmp_path).sha256 == first.sha256


def test_state_of_another_run_is_refused(people, tmp_path):
    train(people, replace(TINY, epochs=1), tmp_path)
    with pytest.raises(ConfigError, match="another run: seed differ"):
        train(people, replace(TINY, epochs=1, seed=5), tmp_path)


def test_seeds_differ(people, tmp_path):
    config = replace(TINY, epochs=1)
    assert (
        train(people, config, tmp_path / "a").sha256 != train(people, replace(config, seed=1), tmp_path / "b").sha256
    )


def test_init_fills_the_backbone_and_frozen_parts_stay(people, tmp_path):
    torch.manual_seed(5)
    start = build_backbone(TINY.backbone).state_dict()
    init = tmp_path / "init.safetensors"
    save_checkpoint(init, start, {"backbone": TINY.backbone}, BACKBONE_KIND)
    train(people, replace(TINY, epochs=1, frozen=2), tmp_path, init=init, half=False)
    trained = load_reid(tmp_path / "out.safetensors").backbone.state_dict()
    changed = {name for name in start if not torch.equal(start[name], trained[name])}
    assert not any(name.startswith(("stem.", "blocks.0.")) for name in changed)
    assert any(name.startswith("blocks.1.") for name in changed)


def test_a_trained_network_is_gone_on_from(people, tmp_path):
    (tmp_path / "first").mkdir()
    train(people, replace(TINY, epochs=1), tmp_path / "first", half=False)
    first = load_reid(tmp_path / "first" / "out.safetensors")
    going_on = replace(TINY, epochs=1, size=(48, 24), frozen=2)
    train(people, going_on, tmp_path, init=tmp_path / "first" / "out.safetensors", half=False)
    second = load_reid(tmp_path / "out.safetensors")
    for before, after in zip(first.backbone.parts()[:2], second.backbone.parts()[:2], strict=True):
        for name, tensor in before.state_dict().items():
            assert torch.equal(after.state_dict()[name], tensor)


def test_a_state_is_nothing_to_start_from(people, tmp_path):
    save_checkpoint(tmp_path / "state.safetensors", {"a": torch.zeros(1)}, {}, "reid-training")
    with pytest.raises(CheckpointError, match="'backbone' or 'reid', but got 'reid-training'"):
        train(people, TINY, tmp_path / "work", init=tmp_path / "state.safetensors")


def test_init_of_another_backbone_is_refused(people, tmp_path):
    init = tmp_path / "init.safetensors"
    save_checkpoint(init, {"a": torch.zeros(1)}, {"backbone": "mobilenetv2"}, BACKBONE_KIND)
    with pytest.raises(CheckpointError, match=r"osnet-x0\.25"):
        train(people, TINY, tmp_path, init=init)


def test_frozen_parts_need_a_start(people, tmp_path):
    with pytest.raises(ConfigError, match="set frozen to 0"):
        train(people, replace(TINY, frozen=2), tmp_path)


def test_unlabelled_images_are_refused(people, tmp_path):
    split = Split("train", people.root, (*people.records, Record(people.records[0].path)))
    with pytest.raises(DataError, match="identity for each image"):
        train(split, TINY, tmp_path)


def test_progressive_size_grows():
    config = replace(TINY, epochs=4, small_size=(24, 16), small_share=0.5)
    assert [config.size_at(epoch) for epoch in range(4)] == [(24, 16), (24, 16), (32, 16), (32, 16)]
    with pytest.raises(ConfigError, match="belong together"):
        replace(TINY, small_size=(24, 16))


def test_agw_recipe_is_the_papers():
    assert RECIPES["agw"] is AGW
    assert (AGW.identities, AGW.images, AGW.rate, AGW.warmup, AGW.epochs) == (16, 4, 3.5e-4, 10, 120)
    assert (AGW.smoothing, AGW.triplet, AGW.centre, AGW.augment.erase) == (0.1, 1.0, 5e-4, 0.5)
