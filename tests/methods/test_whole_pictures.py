"""People in whole pictures: who is protected, who is hidden, and that nothing else changes."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image
from torch import Tensor
from typer.testing import CliRunner

from tests.audit.folders import person
from tests.conftest import tree
from tests.methods.experts import tiny_expert_file
from tests.methods.tiny import tiny_model_file
from veilkit import protect
from veilkit.audit import run_audit
from veilkit.audit.inputs.items import read_boxes
from veilkit.cli import app
from veilkit.errors import DataError, RefusedImage, UsageError
from veilkit.experts import load_expert
from veilkit.experts.base import Detections, Detector, ExpertInfo
from veilkit.methods import ChangesFaces, ChangesParts, Method
from veilkit.methods.controls import Mask, MaskConfig, Noise, Pixelate
from veilkit.methods.learned import decoder_beside
from veilkit.methods.pixelfade.config import PixelFadeConfig
from veilkit.methods.pixelfade.method import PixelFade
from veilkit.methods.whole_pictures import (
    CROWDED,
    CUT,
    NOBODY,
    SMALL,
    UNSURE,
    PeopleInPictures,
    PeopleSettings,
    whole,
    wider,
)
from veilkit.pipeline.manifest import read_manifest
from veilkit.pipeline.recovery.decoder import decoder_for
from veilkit.rng import Randomness
from veilkit.types import ImageBatch, Region, Release

RNG = Randomness.from_seed(5)
HEIGHT, WIDTH = 160, 240


class Found(Detector):
    """A finder of people that says the same of every picture."""

    def __init__(self, *rows: tuple[float, float, float, float, float]) -> None:
        self.rows = torch.tensor(rows, dtype=torch.float32).reshape(-1, 5)

    @property
    def info(self) -> ExpertInfo:
        return ExpertInfo("found", "detector", 0, "0" * 64, False, "none", "tests", "built-in")

    def detect(self, images: Tensor) -> list[Detections]:
        return [Detections(self.rows[:, :4], self.rows[:, 4], torch.zeros(len(self.rows), 0, 2))] * len(images)


def picture(seed: int = 0) -> Tensor:
    return torch.randint(40, 216, (3, HEIGHT, WIDTH), generator=torch.Generator().manual_seed(seed)).float() / 255


def made(method: PeopleInPictures, *regions: Region, item: str = "a", seed: int = 0) -> tuple[Tensor, dict[str, Any]]:
    release = method.protect(ImageBatch(picture(seed)[None], (item,), regions=(regions,)), rng=RNG)
    assert release.images is not None
    assert release.reports is not None
    return release.images[0], release.reports[0].as_json()


def people(crops: Method[Any], *rows: tuple[float, float, float, float, float], **settings: Any) -> PeopleInPictures:
    return PeopleInPictures(crops, PeopleSettings(**settings), finder=Found(*rows))


def changed(image: Tensor, seed: int = 0) -> Tensor:
    """(H, W): where a picture is not its original."""
    return (image - picture(seed)).abs().amax(0) > 0


def test_the_sure_are_protected_the_doubtful_hidden_and_the_rest_stays() -> None:
    sure, unsure, cut, small = (
        (20, 20, 50, 90, 0.9),
        (100, 20, 130, 90, 0.2),
        (200, 60, 240, 150, 0.8),
        (100, 120, 120, 150, 0.8),
    )
    image, report = made(people(Noise(), sure, unsure, cut, small))
    assert report["counts"] == {"found": 3, "changed": 1, "hidden": 2, "doubtful": 1}
    assert report["told"] == sorted([SMALL, CUT, UNSURE])
    left, top, right, bottom = whole(wider(sure[:4]), HEIGHT, WIDTH) or (0, 0, 0, 0)
    assert changed(image)[top:bottom, left:right].float().mean() > 0.9
    expected = torch.zeros(HEIGHT, WIDTH, dtype=torch.bool)
    expected[top:bottom, left:right] = True
    for each in (unsure, cut, small):
        x, y, to_x, to_y = map(int, each[:4])
        assert not image[:, y:to_y, x:to_x].any()
        expected[max(0, y - 30) : to_y + 30, x - 20 : to_x + 20] = True  # hidden somewhat wider
    assert not changed(image)[~expected].any()


def test_a_result_depends_on_picture_and_box_alone() -> None:
    box = Region((20, 20, 50, 90), "protect")
    alone, _ = made(people(Noise()), box)
    among, _ = made(people(Noise(), (150, 30, 190, 130, 0.9)), Region((80, 30, 120, 130), "protect"), box)
    assert torch.equal(alone[:, 20:90, 20:50], among[:, 20:90, 20:50])
    assert changed(among)[40:120, 155:185].float().mean() > 0.9
    other, _ = made(people(Noise()), box, item="b")
    assert not torch.equal(alone[:, 20:90, 20:50], other[:, 20:90, 20:50])
    twins, _ = made(people(Noise()), box, Region((120, 20, 150, 90), "protect"))
    noise = (twins - picture())[:, 20:90]
    assert not torch.equal(noise[:, :, 20:50], noise[:, :, 120:150])
    batch = ImageBatch(torch.stack([picture(1), picture(0)]), ("z", "a"), regions=((), (box,)))
    both = people(Noise(), unfound="keep").protect(batch, rng=RNG).images
    assert both is not None
    assert torch.equal(both[1], alone)
    assert torch.equal(both[0], picture(1))


def test_no_crop_brings_back_what_another_hides() -> None:
    heads = Mask(MaskConfig(bottom=0.3))
    boxes = [(20, 20, 80, 120), (50, 10, 110, 110), (40, 30, 90, 150)]
    image, report = made(people(heads), *(Region(box, "protect") for box in boxes))
    for left, top, right, bottom in boxes:
        assert not image[:, top : top + int(0.3 * (bottom - top)), left:right].any()
    assert report["counts"]["changed"] == 3
    drawn, _ = made(people(Noise()), Region(boxes[0], "protect"), Region((60, 20, 110, 60), "hide"))
    assert not drawn[:, 20:60, 60:110].any()


def test_given_boxes_are_taken_as_they_are_and_not_found_again() -> None:
    again, torso, other = (22, 18, 52, 92, 0.9), (24, 30, 46, 60, 0.7), (150, 30, 190, 130, 0.9)
    method = people(Pixelate(), again, torso, other)
    image, report = made(method, Region((20, 20, 50, 90), "protect", "ann"), Region((140, 20, 200, 140), "spare"))
    assert [(each["box"], each["outcome"]) for each in report["faces"]] == [
        ([20, 20, 50, 90], "protected"),
        ([140, 20, 200, 140], "left as it is, as asked"),
    ]
    assert report["faces"][0]["identity"] == "ann"
    seen = changed(image)
    assert seen[20:90, 20:50].any()
    seen[20:90, 20:50] = False
    assert not seen.any()


def test_pictures_without_anybody_and_with_doubts() -> None:
    image, report = made(people(Noise()))
    assert report["told"] == [NOBODY["pixelate"]]
    assert len(torch.unique(image.flatten(1), dim=1).T) <= 8 * 12
    kept, report = made(people(Noise(), unfound="keep"))
    assert report["told"] == [NOBODY["keep"]]
    assert torch.equal(kept, picture())
    doubtful = (100, 20, 130, 90, 0.2)
    image, report = made(people(Noise(), doubtful, (20, 20, 50, 90, 0.9), on_doubt="pixelate-picture"))
    assert len(torch.unique(image.flatten(1), dim=1).T) <= 8 * 12
    with pytest.raises(RefusedImage, match="doubtful"):
        made(people(Noise(), doubtful, on_doubt="refuse"))


def test_who_finds_and_what_can_be_asked_for(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    for variable in ("VEILKIT_WEIGHTS", "VEILKIT_DATA"):
        monkeypatch.delenv(variable, raising=False)
    method = people(Noise())
    assert isinstance(method, ChangesParts)
    assert not isinstance(method, ChangesFaces)
    assert method.reconfigured(None, {"on_doubt": "refuse", "sigma": 0.3}).crops.config.sigma == 0.3
    assert len({people(Noise(), unfound=each).fingerprint() for each in ("keep", "pixelate")}) == 2
    PeopleInPictures(Noise(), boxed=True).check()
    with pytest.raises(UsageError, match=r"--boxes FILE.*yolox_nano\.onnx"):
        PeopleInPictures(Noise()).check()
    (tmp_path / "photos").mkdir()
    for name in ("faceblur", "patches"):
        with pytest.raises(UsageError, match="a crop of one person by itself, not for"):
            protect(tmp_path / "photos", tmp_path / "out", name, parts="people")
    with pytest.raises(UsageError, match="leave size out"):
        protect(tmp_path / "photos", tmp_path / "out", "blur", parts="people", size="20x20")


@pytest.fixture
def street(tmp_path: Path) -> Path:
    """Two streets with two people each, and a file of their boxes."""
    (tmp_path / "photos").mkdir()
    lines = ["path,x,y,w,h,identity"]
    for number in range(2):
        pixels = np.random.default_rng(number).integers(0, 60, (100, 140, 3)).astype(np.uint8)
        for place in range(2):
            left = 20 + 60 * place
            pixels[20:84, left : left + 32] = np.asarray(
                Image.fromarray(person(2 * number + place, number)).resize((32, 64))
            )
            lines.append(f"{number}.png,{left},20,32,64,someone{2 * number + place}")
        Image.fromarray(pixels).save(tmp_path / "photos" / f"{number}.png")
    (tmp_path / "boxes.csv").write_text("\n".join(lines) + "\n")
    return tmp_path


SETTINGS = {"expert": tiny_expert_file(), "steps": 60, "threshold": 0.5, "batch": 2, "bodies": "none"}


def test_the_expert_matches_crops_of_the_released_picture(street: Path) -> None:
    given = {"parts": "people", "boxes": street / "boxes.csv", "names": "keep", "settings": SETTINGS}
    outcome = protect(street / "photos", street / "out", "pixelfade", **given)  # type: ignore[arg-type]
    assert (outcome.protected, outcome.missed, outcome.faces["changed"], outcome.parts) == (2, 0, 4, "people")
    manifest = read_manifest(street / "out")
    assert manifest is not None
    assert (manifest.method, manifest.parts) == ("pixelfade", "people")
    expert = load_expert(tiny_expert_file())
    settings = {name: value for name, value in SETTINGS.items() if name != "bodies"}
    limit = PixelFade(PixelFadeConfig(**settings)).limit  # type: ignore[arg-type]
    done = CliRunner().invoke(app, ["ledger", "boxes", str(street / "out"), str(street / "people.csv")])
    assert done.exit_code == 0, done.output
    boxes = read_boxes(street / "people.csv")
    assert sorted(boxes, key=str) == sorted(read_boxes(street / "boxes.csv"), key=str)  # what an audit is given
    for each in boxes:
        pixels = [np.asarray(Image.open(street / side / each.path)) for side in ("photos", "out")]
        left, top, width, height = each.box
        crops = [
            torch.from_numpy(side[top : top + height, left : left + width].copy()).permute(2, 0, 1).float() / 255
            for side in pixels
        ]
        features = expert.embed(torch.stack(crops))
        assert (features[0] - features[1]).square().sum() < limit
        assert (crops[0] - crops[1]).abs().mean() > 0.1
        outside = np.ones(pixels[0].shape[:2], bool)
        for other in boxes:
            if other.path == each.path:
                x, y, wide, high = other.box
                outside[y : y + high, x : x + wide] = False
        assert np.array_equal(pixels[0][outside], pixels[1][outside])


def test_an_audit_takes_the_people_and_says_so(street: Path) -> None:
    given: dict[str, Any] = {"parts": "people", "boxes": street / "boxes.csv", "names": "keep"}
    protect(street / "photos", street / "out", "pixelate", settings={"bodies": "none"}, **given)
    judged: dict[str, Any] = {"expert": "histogram", "judge": "histogram", "attacks": ["own_original"]}
    boxed = run_audit(street / "photos", street / "out", boxes=street / "boxes.csv", out=street / "a", **judged)
    assert (boxed.pictures, boxed.people) == (4, 4)
    pictures = run_audit(street / "photos", street / "out", out=street / "b", **judged)
    assert pictures.pictures == 2
    said = ["only people are protected" in " ".join(result.notes) for result in (boxed, pictures)]
    assert said == [False, True]


def test_one_key_gives_one_result_for_any_number_of_workers(street: Path) -> None:
    given: dict[str, Any] = {"parts": "people", "boxes": street / "boxes.csv", "key": street / "key"}
    given["settings"] = {"bodies": "none"}
    for name, workers in (("one", 0), ("two", 2)):
        protect(street / "photos", street / name, "noise", workers=workers, **given)
    assert tree(street / "one") == tree(street / "two")
    (street / "one" / "manifest.json").unlink()
    next((street / "one").glob("*.png")).unlink()
    protect(street / "photos", street / "one", "noise", **given)  # goes on
    assert tree(street / "one") == tree(street / "two")
    whole_pictures = protect(street / "photos", street / "whole", "noise", key=street / "key")
    manifest = read_manifest(whole_pictures.destination)
    assert manifest is not None
    assert manifest.parts is None
    assert "parts" not in json.loads((street / "whole" / "manifest.json").read_text())


def test_who_is_too_small_and_what_is_doubtful_go_as_asked(street: Path) -> None:
    (street / "small.csv").write_text("path,x,y,w,h\n0.png,20,20,32,64\n0.png,100,20,8,12\n1.png,20,20,32,64\n")
    given: dict[str, Any] = {"parts": "people", "boxes": street / "small.csv", "settings": {"bodies": "none"}}
    outcome = protect(street / "photos", street / "out", "mask", on_doubt="refuse", **given)
    assert sum(outcome.refused.values()) == 1
    assert (outcome.faces["found"], outcome.faces["changed"]) == (1, 1)
    hidden = protect(street / "photos", street / "hidden", "mask", **given)
    assert hidden.told == {SMALL: 1}


def test_a_decoder_undoes_no_picture_of_which_only_parts_are_protected(street: Path) -> None:
    model = Path(tiny_model_file())
    given: dict[str, Any] = {"parts": "people", "boxes": street / "boxes.csv", "settings": {"bodies": "none"}}
    protect(street / "photos", street / "out", "privacyreid", model=model, **given)
    manifest = read_manifest(street / "out")
    assert manifest is not None
    with pytest.raises(DataError, match="only people are protected"):
        decoder_for(manifest, decoder_beside(model))


def test_neighbours_who_overlap_are_told() -> None:
    method = people(PixelFade(PixelFadeConfig(expert=tiny_expert_file(), steps=60, threshold=0.5, batch=2)))
    image, report = made(method, Region((20, 20, 60, 100), "protect"), Region((50, 20, 90, 100), "protect"))
    assert report["told"] == [CROWDED]
    assert report["held"] is False
    assert changed(image)[20:100, 20:90].float().mean() > 0.95


def test_a_method_that_gives_another_size_is_an_error() -> None:
    class Halved(Pixelate):
        def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
            return Release(images=batch.images[:, :, ::2, ::2], source_index=tuple(range(len(batch))))

    with pytest.raises(UsageError, match="another size"):
        made(people(Halved()), Region((20, 20, 50, 90), "protect"))
