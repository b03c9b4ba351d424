"""What every method must keep, whoever wrote it: one table, one set of tests."""

from __future__ import annotations

import random
import shutil
import subprocess
import sys
from functools import cache
from pathlib import Path

import pytest
import torch

from tests.conftest import random_picture, tree
from tests.methods.disguises import tiny_disguise_file
from tests.methods.experts import tiny_expert_file
from tests.methods.tiny import tiny_model_file, tiny_peprnet_file
from veilkit.errors import ConfigError, UnknownNameError
from veilkit.media.writing import to_pixels
from veilkit.methods import METHODS, Item, Learns, Mixes, Synthesiser, bind
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

# The settings that let a method run on the few small pictures of these tests.
SMALL: dict[str, dict[str, object]] = {
    "mixup": {"people": 3},
    "patches": {"people": 3, "rows": 4, "columns": 3},
    "pixelfade": {"expert": tiny_expert_file("vit-small"), "batch": 3, "steps": 2, "spread": 1.0},
    "avih": {"expert": tiny_expert_file("vit-small"), "batch": 3, "steps": 2, "key": True},
    "faceblur": {"finder": "whole"},
    "facereplace": {"finder": "whole"},
    "ksame": {"finder": "whole", "people": 3, "size": 32, "least_side": 8},
}
# The model files of methods that must have learned something.
MODELS: dict[str, str] = {
    "privacyreid": tiny_model_file(),
    "peprnet": tiny_peprnet_file(),
    "disguise": tiny_disguise_file(),
}
ALL = sorted(
    name for name in METHODS if not issubclass(METHODS[name], Synthesiser)
)  # the others: test_synthesisers.py
SINGLE = [name for name in ALL if not issubclass(METHODS[name], Mixes)]
RANDOM = [name for name in ALL if METHODS[name].random]


@cache
def make(name: str):
    if issubclass(METHODS[name], Learns):
        return METHODS[name].load(Path(MODELS[name]))
    return METHODS[name].configured(settings=SMALL.get(name))


def batch(count: int = 4, height: int = 48, width: int = 25) -> ImageBatch:
    pictures = [torch.from_numpy(random_picture(seed, height, width)).permute(2, 0, 1) / 255 for seed in range(count)]
    return ImageBatch(torch.stack(pictures), tuple(f"item{seed}" for seed in range(count)))


def run(name: str, images: ImageBatch, seed: int = 0) -> torch.Tensor:
    method = make(name)
    released = method.protect(images, rng=bind(Randomness.from_seed(seed), method)).images
    assert released is not None
    return released


@pytest.mark.parametrize("name", list(METHODS))
def test_the_table_has_it_under_its_own_name(name: str) -> None:
    assert METHODS[name].name == name


def test_a_method_brings_no_other_with_it() -> None:
    code = (
        "import sys; from veilkit.methods import METHODS; METHODS['pixelate']; "
        "print(*(name for name in sys.modules if name.startswith('veilkit.methods.') or name == 'sklearn'))"
    )
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert set(loaded) == {f"veilkit.methods.{module}" for module in ("base", "controls")}


@pytest.mark.parametrize("name", ALL)
def test_shape_range_and_pairing(name: str) -> None:
    images = batch()
    method = make(name)
    release = method.protect(images, rng=Randomness.from_seed(0))
    assert release.images is not None
    assert release.images.shape == images.images.shape
    assert release.images.dtype == torch.float32
    assert release.images.min() >= 0
    assert release.images.max() <= 1
    assert release.source_index == (0, 1, 2, 3)
    assert not torch.equal(release.images, images.images)


@pytest.mark.parametrize("name", ALL)
def test_the_input_is_untouched(name: str) -> None:
    images = batch()
    before = images.images.clone()
    run(name, images)
    assert torch.equal(images.images, before)


@pytest.mark.parametrize("name", ALL)
def test_the_same_randomness_gives_the_same_result(name: str) -> None:
    assert torch.equal(run(name, batch()), run(name, batch()))


@pytest.mark.parametrize("name", SINGLE)
def test_batch_mates_do_not_matter(name: str) -> None:
    images = batch()
    together = run(name, images)
    for index in range(len(images)):
        alone = run(name, ImageBatch(images.images[index : index + 1], images.items[index : index + 1]))
        assert (to_pixels(alone[0]) == to_pixels(together[index])).all()


@pytest.mark.parametrize("name", ALL)
def test_one_pixel_and_odd_sizes(name: str) -> None:
    for height, width in ((1, 1), (1, 40), (33, 2)):
        assert run(name, batch(3, height, width)).shape == (3, 3, height, width)


@pytest.mark.parametrize("name", [name for name in ALL if name not in SINGLE])
def test_groups_hold_each_item_once_whatever_the_order(name: str) -> None:
    method = make(name)
    items = [Item(f"picture{index}", f"person{index % 5}") for index in range(23)]
    rng = bind(Randomness.from_seed(1), method)
    groups = list(method.groups(items, rng=rng))
    assert sorted(index for group in groups for index in group) == list(range(23))
    shuffled = items.copy()
    random.Random(3).shuffle(shuffled)
    named = {frozenset(items[index].name for index in group) for group in groups}
    again = {frozenset(shuffled[index].name for index in group) for group in method.groups(shuffled, rng=rng)}
    assert named == again


@pytest.mark.parametrize("name", ALL)
def test_save_and_load(name: str, tmp_path: Path) -> None:
    method = make(name)
    method.save(tmp_path / "method.safetensors")
    loaded = METHODS[name].load(tmp_path / "method.safetensors")
    assert loaded.config == method.config
    assert loaded.fingerprint() == method.fingerprint()


@pytest.mark.parametrize("name", ALL)
def test_presets_and_settings(name: str) -> None:
    cls = METHODS[name]
    assert cls.summary
    assert cls.preset_table()["default"] == cls.default
    with pytest.raises(UnknownNameError, match="Known:"):
        cls.configured("no such preset")
    with pytest.raises(ConfigError, match="Known:"):
        cls.configured(settings={"no such setting": 1})


@pytest.mark.parametrize("name", ALL)
def test_files_in_files_out_are_the_same_under_the_same_key(name: str, folder: Path, tmp_path: Path) -> None:
    """For no worker process, one and two, and for the same files created in another order elsewhere."""
    key = tmp_path / "secret" / "key"
    copy = tmp_path / "copy"
    files = [file for file in folder.rglob("*") if file.is_file()]
    random.Random(5).shuffle(files)
    for file in files:
        (copy / file.relative_to(folder)).parent.mkdir(parents=True, exist_ok=True)
        shutil.copy(file, copy / file.relative_to(folder))
    results = []
    for source, workers in ((folder, 0), (folder, 1), (copy, 2)):
        target = tmp_path / f"release-{workers}"
        outcome = protect(
            source, target, name, model=MODELS.get(name), settings=SMALL.get(name), key=key, workers=workers
        )
        assert (outcome.protected, outcome.refused) == (12, {})
        results.append(tree(target))
    assert results[0] == results[1] == results[2]
    assert len(results[0]) == 14


@pytest.mark.parametrize("name", RANDOM)
def test_another_key_gives_other_pictures(name: str, folder: Path, tmp_path: Path) -> None:
    releases = []
    for seed in (1, 2):
        target = tmp_path / f"release-{seed}"
        protect(folder, target, name, model=MODELS.get(name), settings=SMALL.get(name), seed=seed, names="kept")
        releases.append({path: data for path, data in tree(target).items() if path.endswith(".png")})
    assert releases[0].keys() == releases[1].keys()
    assert all(releases[0][path] != releases[1][path] for path in releases[0])


@pytest.mark.parametrize("name", RANDOM)
def test_another_configuration_never_shares_randomness(name: str) -> None:
    """Two releases of a picture under one key: from x + 0.1 n and x + 0.2 n anyone would find x."""
    first = make(name)
    second = first.reconfigured(settings=OTHER[name])
    root = Randomness.from_seed(0)
    assert bind(root, first).bytes(16) != bind(root, second).bytes(16)


# Another configuration of each randomised method, which must not share random values with the first.
OTHER: dict[str, dict[str, object]] = {
    "noise": {"sigma": 0.2},
    "mixup": {"ratio": 0.6},
    "patches": {"rows": 3},
    "pixelfade": {"rate": 0.03},
    "avih": {"step": 0.02},
    "disguise": {"transform.noise": 0.5},
    "facereplace": {"unfound": "keep"},
    "ksame": {"size": 24},
}
