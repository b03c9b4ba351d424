"""Disguise on pictures: several faces, what cannot be swapped or was missed, consistency, channels, files."""

from __future__ import annotations

import csv
import json
import math
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
import torch.nn.functional as F
from PIL import Image

from tests.methods.disguises import TINY, KnownFaces, group_picture, tiny_disguise, tiny_disguise_file, tiny_identity
from veilkit.datasets.folder import load_folder
from veilkit.errors import CheckpointError, ConfigError
from veilkit.media.writing import to_pixels
from veilkit.methods.base import bind
from veilkit.methods.disguise.identity import cluster_people, known_person
from veilkit.methods.disguise.identity_channel import OUTSIDE, PaperChannel, make_channel
from veilkit.methods.disguise.identity_transforms import Opposite, TransformConfig, make_transform
from veilkit.methods.disguise.method import NOBODY, NOT_DRAWN, PAPER, SMALL, Disguise, _beside
from veilkit.methods.faces.method import MISSED, NO_FACE
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness
from veilkit.types import ImageBatch, Release

RNG = Randomness.from_seed(0)


def run(method: Disguise, image: torch.Tensor, item: str = "a", person: str | None = None) -> tuple[Any, Any]:
    release = method.protect(ImageBatch(image[None], (item,), (person,)), rng=RNG)
    assert release.images is not None
    assert release.reports is not None
    return release.images[0], release.reports[0]


def truth() -> KnownFaces:
    _, boxes, points = group_picture()
    return KnownFaces(boxes, points)


def test_every_face_of_a_group_is_swapped_and_the_rest_is_untouched() -> None:
    image, boxes, _ = group_picture()
    made, report = run(tiny_disguise(finder=truth()), image)
    assert [face["outcome"] for face in report.details["faces"]] == ["swapped"] * 3
    assert report.notes == ()
    before, after = to_pixels(image).astype(int), to_pixels(made).astype(int)
    outside = np.ones(before.shape[:2], bool)
    for left, top, right, bottom in boxes:
        wide, high = 0.5 * (right - left), 0.5 * (bottom - top)
        x, y = (left + right) / 2, (top + bottom) / 2
        assert np.abs(after - before)[int(y) - 4 : int(y) + 5, int(x) - 4 : int(x) + 5].mean() > 2
        outside[
            max(0, int(top - high)) : int(bottom + high) + 1, max(0, int(left - wide)) : int(right + wide) + 1
        ] = 0
    assert outside.any()
    assert (before[outside] == after[outside]).all()


def test_faces_that_cannot_be_swapped_are_hidden_and_told() -> None:
    image, boxes, points = group_picture()
    sides = sorted(min(box[2] - box[0], box[3] - box[1]) for box in boxes)
    small = replace(TINY, least_side=math.ceil(sides[0]) + 1)
    made, report = run(tiny_disguise(small, finder=truth()), image)
    hidden = [face for face in report.details["faces"] if face["outcome"] != "swapped"]
    assert hidden
    assert all(face["outcome"] == "a face too small to be swapped: hidden" for face in hidden)
    assert report.notes == ("a face too small to be swapped: hidden",)
    for left, top, right, bottom in (face["box"] for face in hidden):
        assert (made[:, top:bottom, left:right] == 0).all()
    bent = points.clone()
    bent[0, [0, 2]] = bent[0, [2, 0]]  # a nose for an eye: no face looks like that
    made, report = run(tiny_disguise(finder=KnownFaces(boxes, bent)), image)
    assert report.notes == ("a face that did not align: hidden",)
    coarse = tiny_disguise(replace(TINY, hide="pixelate"), finder=KnownFaces(boxes))  # a finder without points
    made, report = run(coarse, image)
    assert len(report.details["faces"]) == 3
    left, top, right, bottom = (int(value) for value in boxes[0])
    assert 1 < len({tuple(c) for c in made[:, top:bottom, left:right].flatten(1).T.tolist()}) <= 3 * 16


def test_a_planted_face_that_the_first_finder_misses_is_told_and_hidden() -> None:
    image, boxes, points = group_picture()
    blind = KnownFaces(boxes[1:], points[1:])
    made, report = run(tiny_disguise(finder=blind, second=truth()), image)
    assert report.notes == (MISSED,)
    assert [face["outcome"] for face in report.details["faces"]] == ["swapped", "swapped", MISSED]
    left, top, right, bottom = report.details["faces"][-1]["box"]
    np.testing.assert_allclose([left, top, right, bottom], boxes[0], atol=1)
    assert (made[:, max(0, top) : bottom, max(0, left) : right] == 0).all()
    _, report = run(tiny_disguise(finder=truth(), second=truth()), image)
    assert report.notes == ()
    _, report = run(tiny_disguise(finder=KnownFaces([]), second=truth()), image)
    assert [face["outcome"] for face in report.details["faces"]] == [MISSED] * 3


def test_a_face_at_the_corner_of_a_known_one_is_another_face() -> None:
    """A head behind somebody's shoulder: its middle lies in the known box, and no swapped face covers it."""
    image = torch.rand(3, 100, 100, generator=torch.Generator().manual_seed(0))
    known, behind, nose = (10.0, 30.0, 70.0, 90.0), (50.0, 15.0, 80.0, 49.0), (34.0, 50.0, 46.0, 65.0)
    _, (box, *_), points = group_picture()
    scale = 60 / (torch.tensor(box[2:]) - torch.tensor(box[:2]))
    placed = (points[:1] - torch.tensor(box[:2])) * scale + torch.tensor(known[:2])
    first = KnownFaces([known], placed)
    made, report = run(tiny_disguise(finder=first, second=KnownFaces([known, behind, nose])), image)
    assert [face["outcome"] for face in report.details["faces"]] == ["swapped", MISSED]
    assert (made[:, 15:49, 50:80] == 0).all()


def test_a_picture_without_any_face_found_is_told() -> None:
    image, _, _ = group_picture()
    made, report = run(tiny_disguise(finder=KnownFaces([])), image)
    counts = {"found": 0, "changed": 0, "hidden": 0, "doubtful": 0}
    assert report.details == {"faces": [], "counts": counts}
    assert report.notes == (NO_FACE["pixelate"],)
    assert len({tuple(colour) for colour in made.flatten(1).T.tolist()}) <= 8 * 40
    kept, report = run(tiny_disguise(replace(TINY, unfound="keep"), finder=KnownFaces([])), image)
    assert report.notes == (NO_FACE["keep"],)
    assert torch.equal(kept, image)


@pytest.mark.parametrize("value", [math.nan, math.inf, 0.5])
def test_a_face_for_which_nothing_was_drawn_is_hidden_and_not_swapped(
    value: float, monkeypatch: pytest.MonkeyPatch
) -> None:
    image, _, _ = group_picture()
    method = tiny_disguise(finder=truth())
    monkeypatch.setattr(method.model.swapper, "forward", lambda crops, identity: torch.full_like(crops, value))
    made, report = run(method, image)
    assert report.notes == (f"{NOT_DRAWN}: hidden",)
    assert report.details["counts"] == {"found": 3, "changed": 0, "hidden": 3, "doubtful": 0}
    assert bool(made.isfinite().all())


@pytest.mark.parametrize("value", [math.nan, -math.inf])
def test_a_model_whose_weights_are_no_numbers_is_refused(value: float, tmp_path: Path) -> None:
    broken = tiny_disguise()
    next(iter(broken.model.swapper.parameters())).data[0] = value
    broken.save(tmp_path / "model.safetensors")
    with pytest.raises(CheckpointError, match=r"model.safetensors: swapper/.* holds NaN or infinite values"):
        Disguise.load(tmp_path / "model.safetensors")


def test_a_model_that_was_trained_without_a_second_finder_looks_twice_all_the_same(tmp_path: Path) -> None:
    tiny_disguise(replace(TINY, finder="dlib", second="none")).save(tmp_path / "model.safetensors")
    assert Disguise.load(tmp_path / "model.safetensors").config.second == "auto"


class Injected:
    """Notes the identities that a swapper is given."""

    def __init__(self, method: Disguise, monkeypatch: pytest.MonkeyPatch) -> None:
        self.given: list[torch.Tensor] = []
        swapper = method.model.swapper
        forward = swapper.forward

        def note(crops: torch.Tensor, identity: torch.Tensor) -> torch.Tensor:
            self.given.append(identity[0].clone())
            return forward(crops, identity)

        monkeypatch.setattr(swapper, "forward", note)


def test_the_same_person_gets_the_same_identity_only_where_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    torch.manual_seed(0)
    first, second = torch.rand(3, 40, 40), torch.rand(3, 40, 40)
    for consistent in (True, False):
        method = tiny_disguise(replace(TINY, consistent=consistent))
        with monkeypatch.context() as patched:
            injected = Injected(method, patched)
            for image, item, person in (
                (first, "a", "ann"),
                (second, "b", "ann"),
                (first, "a", "bob"),
                (first, "c", None),
            ):
                run(method, image, item, person)
        ann, again, bob, nobody = injected.given
        assert torch.equal(ann, again) is consistent
        assert torch.equal(ann, bob) is not consistent  # without consistency the item alone decides, not the label
        assert not torch.equal(ann, nobody)
    assert "links their pictures" in tiny_disguise(replace(TINY, consistent=True)).guarantee().text


def test_people_known_by_their_faces_need_no_labels(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = torch.Generator().manual_seed(0)
    for person in range(2):
        look = torch.rand(3, 4, 4, generator=generator)
        for shot in range(2):
            face = F.interpolate(look[None], (40, 40), mode="nearest")[0] * (1 - 0.02 * shot)
            Image.fromarray(to_pixels(face)).save(tmp_path / f"{person}{shot}.png")
    config = replace(TINY, consistent=True, same_person=0.95)
    method = tiny_disguise(config).enrolled(load_folder(tmp_path, "none"))
    assert len(method.model.people) == 2
    assert method.fingerprint() != tiny_disguise(config).fingerprint()
    injected = Injected(method, monkeypatch)
    for name in ("00", "01", "10", "11"):
        pixels = np.array(Image.open(tmp_path / f"{name}.png"))
        run(method, torch.from_numpy(pixels).permute(2, 0, 1).float() / 255, name)
    a, b, c, d = injected.given
    assert torch.equal(a, b)
    assert torch.equal(c, d)
    assert not torch.equal(a, c)
    # Which of these identities a face gets depends on the face without any noise: no epsilon is proved.
    sound = method.reconfigured(settings={"channel": "privunit", "epsilon": 8.0})
    assert (sound.guarantee().epsilon_claimed, sound.guarantee().epsilon_proved) == (8.0, math.inf)
    assert "no formal guarantee" in sound.guarantee().text
    assert sound.public_config()["guarantee"]["epsilon_proved"] == "infinite"
    apart = sound.reconfigured(settings={"consistent": False})
    assert apart.guarantee().epsilon_proved == 8.0


def test_a_picture_of_nobody_known_is_told_where_identities_should_be_consistent() -> None:
    image, _, _ = group_picture()
    method = tiny_disguise(replace(TINY, consistent=True), finder=truth())
    _, report = run(method, image)
    assert report.notes == (NOBODY,)
    assert [face["outcome"] for face in report.details["faces"]] == ["swapped"] * 3
    assert run(method, image, person="ann")[1].notes == ()
    assert run(tiny_disguise(finder=truth()), image)[1].notes == ()


def test_clusters_of_planted_people() -> None:
    generator = torch.Generator().manual_seed(0)
    middles = F.normalize(torch.randn(3, 32, generator=generator))
    faces = F.normalize(middles.repeat(4, 1) + 0.05 * torch.randn(12, 32, generator=generator))
    found = cluster_people(faces, 0.6)
    torch.testing.assert_close((found * middles).sum(1), torch.ones(3), atol=0.05, rtol=0)
    assert [known_person(face, found, 0.6) for face in faces] == [0, 1, 2] * 4
    assert known_person(-faces[0], found, 0.6) is None
    assert known_person(faces[0], torch.zeros(0, 32), 0.6) is None


def test_the_papers_channel_has_no_formal_guarantee() -> None:
    said = tiny_disguise().guarantee()
    assert "no formal guarantee" in said.text
    assert said.epsilon_proved == math.inf
    assert said.epsilon_claimed == pytest.approx(5.0 / 1.0)  # the sensitivity measured, over the noise's scale
    for kind in ("opp", "ved"):
        quiet = TransformConfig(kind=kind, dim=4, ved=(4,), latent=4, noise=0.0)  # type: ignore[arg-type]
        said = PaperChannel(quiet, make_transform(quiet), 3.0).guarantee()
        assert (said.epsilon_claimed, said.epsilon_proved) == (None, math.inf)
        assert "no formal guarantee" in said.text


@pytest.mark.parametrize(("kind", "delta"), [("privunit", 0.0), ("gaussian", 1e-6)])
def test_the_sound_channel_says_what_is_proved_and_what_is_outside(kind: str, delta: float) -> None:
    method = tiny_disguise(replace(TINY, channel=kind, epsilon=8.0, delta=delta))  # type: ignore[arg-type]
    image = torch.rand(3, 40, 40, generator=torch.Generator().manual_seed(1))
    release: Release = method.protect(ImageBatch(image[None], ("a",)), rng=RNG)
    said = release.guarantee
    assert said is not None
    assert (said.epsilon_claimed, said.epsilon_proved, said.delta) == (8.0, 8.0, delta)
    assert OUTSIDE in said.text
    again = method.protect(ImageBatch(image[None], ("a",)), rng=RNG).images
    assert release.images is not None
    assert again is not None
    assert not torch.equal(release.images, again)  # noise of the operating system is never drawn again
    assert method.public_config()["guarantee"]["epsilon_proved"] == 8.0
    json.dumps(method.public_config(), allow_nan=False)
    assert tiny_disguise().public_config()["guarantee"]["epsilon_proved"] == "infinite"


def test_the_sound_channel_keeps_directions_as_its_mechanism_does() -> None:
    """With a large epsilon PrivUnit stays close: through -z the answer is near the opposite, and of length 1."""
    config = TransformConfig(kind="opp", dim=16)
    channel = make_channel("privunit", config, Opposite(), sensitivity=1.0, epsilon=16.0, delta=0.0)
    vector = F.normalize(torch.ones(1, 16))
    drawn = torch.cat([channel.synthetic(vector, RNG) for _ in range(50)])
    torch.testing.assert_close(drawn.norm(dim=1), torch.ones(50))
    assert (drawn @ vector[0]).mean() < -0.7
    assert len({tuple(row) for row in drawn.tolist()}) == 50


def test_an_epsilon_goes_with_a_sound_channel_only() -> None:
    with pytest.raises(ConfigError, match="privunit needs an epsilon"):
        replace(TINY, channel="privunit")
    with pytest.raises(ConfigError, match="proves no epsilon"):
        replace(TINY, epsilon=3.0)
    with pytest.raises(ConfigError, match="has no delta"):
        replace(TINY, delta=1e-6)


def test_presets() -> None:
    assert (PAPER.swapper.size, PAPER.swapper.blocks, PAPER.transform.dim, PAPER.batch) == (224, 9, 512, 4)
    weights = (PAPER.id_weight, PAPER.deid_weight, PAPER.mix_weight, PAPER.kld_weight, *PAPER.utility_weights)
    assert weights == (30, 30, 10, 0.2, 2, 2)
    assert (PAPER.rate, PAPER.swapper_steps, PAPER.joint_steps) == (1e-4, 1_000_000, 100_000)
    assert SMALL.swapper.size == 112


def test_fit_save_load_and_what_can_still_be_set(tmp_path: Path) -> None:
    generator = torch.Generator().manual_seed(0)
    for person in range(5):
        (tmp_path / "data" / f"p{person}").mkdir(parents=True)
        for shot in range(2):
            face = to_pixels(torch.rand(3, 36, 36, generator=generator))
            Image.fromarray(face).save(tmp_path / "data" / f"p{person}" / f"{shot}.png")
    split = load_folder(tmp_path / "data")
    few = replace(TINY, swapper_steps=1, joint_steps=1)
    with pytest.raises(ConfigError, match="needs identity experts"):
        Disguise(few).fit(split, work_dir=tmp_path / "none")
    fitted = Disguise(few, identity=(tiny_identity(),)).fit(split, work_dir=tmp_path / "work")
    fitted.save(tmp_path / "model.safetensors")
    loaded = Disguise.load(tmp_path / "model.safetensors")
    assert loaded.config == fitted.config
    with pytest.raises(ConfigError, match="needs identity experts"):
        loaded.check()
    own = Disguise(loaded.config, loaded.model, identity=(tiny_identity(),))
    image = torch.rand(3, 40, 40, generator=generator)
    assert torch.equal(run(own, image)[0], run(fitted, image)[0])
    other = Disguise(loaded.config, loaded.model, identity=(tiny_identity(12, 5),))
    with pytest.raises(ConfigError, match="trained with other identity experts than face5"):
        other.check()
    changed = own.reconfigured(settings={"consistent": "true", "hide": "pixelate", "transform.noise": "0.5"})
    assert changed.config.transform.noise == 0.5
    assert changed.fingerprint() != own.fingerprint()
    with pytest.raises(ConfigError, match="trained already"):
        own.reconfigured(settings={"id_weight": 3})
    with pytest.raises(ConfigError, match="needs its swapper"):
        Disguise(TINY).check()
    private, warning = fitted.after_fit(tmp_path / "model.safetensors")
    assert "keep it private" in private
    assert "protects nobody yet" in warning  # after two steps
    assert fitted._trained is not None
    well = replace(fitted._trained, watched={"original": 0.1, "strangers": 0.1}, without_face=3)
    assert fitted.take(well, (tiny_identity(),)).after_fit(tmp_path)[1].startswith("3 pictures were left out")
    assert len(fitted.after_fit(tmp_path)) == 2


def test_a_folder_is_protected_and_its_owner_is_told(folder: Path, tmp_path: Path) -> None:
    settings = {"least_side": 26}  # half of the pictures are 24 pixels wide
    outcome = protect(
        folder, tmp_path / "release", "disguise", model=tiny_disguise_file(), settings=settings, seed=1, names="kept"
    )
    assert outcome.protected == 12
    assert dict(outcome.told) == {"a face too small to be swapped: hidden": 6}
    assert outcome.told_list is not None
    with outcome.told_list.open(newline="") as lines:
        rows = list(csv.reader(lines))
    assert rows[0] == ["source", "told"]
    assert len(rows) == 7
    assert all("person" in source for source, _ in rows[1:])
    manifest = json.loads((tmp_path / "release" / "manifest.json").read_text())
    assert "no formal guarantee" in manifest["config"]["guarantee"]["text"]
    assert "/" not in json.dumps(manifest["config"]["identity"])


def test_a_photograph_of_any_size_gives_the_same_result_alone_and_beside_others() -> None:
    method = tiny_disguise()
    images = torch.rand(2, 3, 61, 200, generator=torch.Generator().manual_seed(3))
    rng = bind(RNG, method)
    both = method.protect(ImageBatch(images, ("a", "b")), rng=rng).images
    alone = method.protect(ImageBatch(images[1:], ("b",)), rng=rng).images
    assert both is not None
    assert alone is not None
    assert torch.equal(both[1], alone[0])


def test_an_expert_whose_file_moved_along_with_the_model_is_found(tmp_path: Path) -> None:
    model, expert = tmp_path / "model.safetensors", tmp_path / "faces.safetensors"
    expert.write_bytes(b"")
    assert _beside("gone/faces.safetensors", model) == str(expert)
    assert _beside("gone/others.safetensors", model) == "gone/others.safetensors"
    assert _beside(str(expert), Path("elsewhere") / "model.safetensors") == str(expert)
    assert _beside("dlib", model) == "dlib"
