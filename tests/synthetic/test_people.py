"""Generated people: the same numbers give the same pictures, and the layout is that of Market-1501."""

from __future__ import annotations

import io
import json
from pathlib import Path

import cv2
import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from sheets import contact_sheet
from tests.conftest import tree
from veilkit.datasets.labels import by_market_name
from veilkit.datasets.market1501 import JUNK
from veilkit.errors import ConfigError, DestinationError
from veilkit.synthetic.people import camera_jpeg_quality, generate_people, render_person
from veilkit.synthetic.people.generate import PeopleSpec
from veilkit.synthetic.people.render import person

FOLDERS = ("bounding_box_train", "query", "bounding_box_test")


def small(seed: int, identity: int, camera: int, shot: int) -> NDArray[np.uint8]:
    return render_person(seed, identity, camera, shot, height=64, width=32)


@pytest.fixture(scope="module")
def people(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("people") / "set"
    generate_people(root, identities=4, images=4, cameras=2, seed=3)
    return root


class TestRenderPerson:
    def test_is_8_bit_rgb_of_the_size_asked_for(self) -> None:
        assert render_person(1, 1, 1, 0).shape == (256, 128, 3)
        picture = render_person(1, 1, 1, 0, height=96, width=40)
        assert picture.shape == (96, 40, 3)
        assert picture.dtype == np.uint8

    def test_same_arguments_same_pixels_whatever_was_drawn_before(self) -> None:
        first = small(1, 2, 1, 0)
        small(1, 9, 3, 4)
        assert np.array_equal(first, small(1, 2, 1, 0))

    @pytest.mark.parametrize("other", [(2, 2, 1, 0), (1, 3, 1, 0), (1, 2, 2, 0), (1, 2, 1, 1)])
    def test_each_argument_changes_the_picture(self, other: tuple[int, int, int, int]) -> None:
        assert np.abs(small(1, 2, 1, 0).astype(int) - small(*other)).mean() > 2

    def test_pictures_use_the_range_of_tones(self) -> None:
        for identity in range(6):
            picture = small(5, identity, 1, 0)
            assert picture.std() > 15
            assert 30 < picture.mean() < 225

    def test_refuses_a_size_too_small_to_draw(self) -> None:
        with pytest.raises(ConfigError, match="32 x 16"):
            render_person(1, 1, 1, 0, height=16, width=8)


def test_an_identity_keeps_its_parameters_and_differs_from_others() -> None:
    known = [person(7, identity) for identity in range(50)]
    person.cache_clear()
    assert known == [person(7, identity) for identity in range(50)]
    assert len(set(known)) == 50
    assert len({someone.outfit.top for someone in known}) >= 6
    assert len({someone.hair.style for someone in known}) >= 6


def test_jpeg_quality_belongs_to_the_camera() -> None:
    qualities = [camera_jpeg_quality(1, camera) for camera in range(1, 9)]
    assert qualities == [camera_jpeg_quality(1, camera) for camera in range(1, 9)]
    assert all(50 <= quality <= 95 for quality in qualities)
    assert len(set(qualities)) > 2


class TestGeneratePeople:
    def test_layout_and_counts(self, people: Path) -> None:
        names = {folder: sorted(path.name for path in (people / folder).iterdir()) for folder in FOLDERS}
        assert [len(names[folder]) for folder in FOLDERS] == [8, 4, 4]
        assert names["bounding_box_train"][0] == "0001_c1s1_000001_00.jpg"
        assert {name[:4] for name in names["bounding_box_train"]} == {"0001", "0002"}
        assert {name[:4] for name in names["query"] + names["bounding_box_test"]} == {"0003", "0004"}
        assert not set(names["query"]) & set(names["bounding_box_test"])

    def test_every_file_opens_and_is_what_its_name_says(self, people: Path) -> None:
        for folder in FOLDERS:
            for path in (people / folder).iterdir():
                with Image.open(path) as picture:
                    picture.load()
                    assert (picture.format, picture.mode, picture.size) == ("JPEG", "RGB", (128, 256))
        path = people / "query" / "0003_c2s1_000001_00.jpg"
        stored = np.asarray(Image.open(path), dtype=float)
        drawn = render_person(3, 3, 2, 0).astype(float)
        assert np.abs(stored - drawn).mean() < 12

    def test_every_query_is_found_in_another_camera(self, people: Path) -> None:
        gallery = [by_market_name(path.name) for path in (people / "bounding_box_test").iterdir()]
        for path in (people / "query").iterdir():
            identity, camera = by_market_name(path.name)
            assert identity not in (None, JUNK)
            assert any(name == identity and seen != camera for name, seen in gallery)

    def test_describes_itself(self, people: Path) -> None:
        described = json.loads((people / "generated.json").read_text())
        assert described["real_people"] is False
        assert {key: described[key] for key in ("identities", "images", "cameras", "seed")} == {
            "identities": 4,
            "images": 4,
            "cameras": 2,
            "seed": 3,
        }
        assert "Nobody" in (people / "README.txt").read_text()

    def test_workers_do_not_change_a_byte(self, people: Path, tmp_path: Path) -> None:
        generate_people(tmp_path / "again", identities=4, images=4, cameras=2, seed=3, workers=2)
        assert tree(tmp_path / "again") == tree(people)

    def test_a_picture_does_not_depend_on_the_size_of_the_set(self, people: Path, tmp_path: Path) -> None:
        seen: list[tuple[int, int]] = []
        generate_people(
            tmp_path / "s", identities=2, images=2, cameras=2, seed=3, on_progress=lambda *step: seen.append(step)
        )
        name = "bounding_box_train/0001_c2s1_000001_00.jpg"
        assert (tmp_path / "s" / name).read_bytes() == (people / name).read_bytes()
        assert seen == [(2, 4), (4, 4)]

    @pytest.mark.parametrize(
        "wrong",
        [{"identities": 1}, {"images": 1}, {"cameras": 0}, {"workers": 0}],
        ids=lambda wrong: next(iter(wrong)),
    )
    def test_refuses_numbers_that_make_no_set(self, tmp_path: Path, wrong: dict[str, int]) -> None:
        asked = {"identities": 4, "images": 4, "cameras": 2, "seed": 0, **wrong}
        with pytest.raises(ConfigError, match=f"{next(iter(wrong))} must be at least"):
            generate_people(tmp_path / "x", **asked)
        assert not (tmp_path / "x").exists()

    def test_refuses_a_folder_with_something_in_it(self, tmp_path: Path) -> None:
        (tmp_path / "mine.txt").write_text("keep")
        with pytest.raises(DestinationError, match="absent or an empty folder"):
            generate_people(tmp_path, identities=2, images=2, cameras=1, seed=0)
        assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]

    def test_a_destination_that_cannot_be_made(self, tmp_path: Path) -> None:
        (tmp_path / "file").write_text("not a folder")
        with pytest.raises(DestinationError):
            generate_people(tmp_path / "file" / "below", identities=2, images=2, cameras=1, seed=0)


@pytest.mark.parametrize(("images", "cameras"), [(2, 2), (3, 2), (4, 2), (7, 3), (2, 6), (12, 6)])
def test_shots_are_even_and_every_question_has_an_answer(images: int, cameras: int) -> None:
    spec = PeopleSpec(identities=20, images=images, cameras=cameras, seed=0)
    for identity in range(1, 21):
        shots = list(spec.shots(identity))
        assert len({(camera, shot) for _, camera, shot in shots}) == images
        counts = [sum(seen == camera for _, seen, _ in shots) for camera in range(1, cameras + 1)]
        assert max(counts) - min(counts) <= 1
        if identity <= 10:
            assert {folder for folder, _, _ in shots} == {"bounding_box_train"}
            continue
        asking = [camera for folder, camera, _ in shots if folder == "query"]
        assert len(asking) == (cameras if images >= 2 * cameras else 1)
        for camera in asking:
            assert any(folder == "bounding_box_test" and seen != camera for folder, seen, _ in shots)


def ranked_first(features: dict[tuple[int, int], NDArray[np.float64]], people: int) -> float:
    query = np.stack([features[identity, 1] for identity in range(people)])
    gallery = np.stack([features[identity, 2] for identity in range(people)])
    query, gallery = (x / np.linalg.norm(x, axis=1, keepdims=True) for x in (query, gallery))
    return float(((query @ gallery.T).argmax(axis=1) == np.arange(people)).mean())


def test_colour_alone_does_not_give_people_away_but_place_and_colour_tell_much() -> None:
    number = 60
    views = {(i, c): render_person(11, i, c, 0, height=128, width=64) for i in range(number) for c in (1, 2)}
    histograms = {
        key: cv2.calcHist([view], [0, 1, 2], None, [8, 8, 8], [0, 256] * 3).ravel().astype(float)
        for key, view in views.items()
    }
    assert ranked_first(histograms, number) < 0.6
    # Colours of the middle of the picture, row by row, relative to what the camera shows on average.
    rows = {key: cv2.resize(view[10:, 22:42], (1, 12), interpolation=cv2.INTER_AREA) for key, view in views.items()}
    average = {camera: np.mean([rows[i, camera] for i in range(number)], axis=0) for camera in (1, 2)}
    relative = {(i, c): (rows[i, c] - average[c]).ravel().astype(float) for i, c in rows}
    assert ranked_first(relative, number) > 5 / number


def test_contact_sheet_places_pictures_in_rows() -> None:
    pictures = [np.full((4, 2, 3), value, np.uint8) for value in (10, 20, 30)]
    sheet = contact_sheet(pictures, columns=2, gap=1)
    assert sheet.shape == (9, 5, 3)
    assert sheet[0, 0, 0] == 10
    assert sheet[3, 3, 0] == 20
    assert sheet[5, 1, 0] == 30
    assert (sheet[4] == 255).all()
    assert (sheet[5:, 3:] == 255).all()
    with pytest.raises(ConfigError, match="expected images"):
        contact_sheet([], columns=2)


def test_pictures_survive_their_camera_compression() -> None:
    picture = small(1, 1, 1, 0)
    stored = io.BytesIO()
    Image.fromarray(picture).save(stored, "JPEG", quality=camera_jpeg_quality(1, 1))
    again = np.asarray(Image.open(stored), dtype=float)
    assert np.abs(again - picture).mean() < 12


def test_smaller_pictures_are_drawn_as_asked(tmp_path: Path) -> None:
    generate_people(tmp_path / "small", identities=2, images=2, cameras=1, seed=0, height=64)
    described = json.loads((tmp_path / "small" / "generated.json").read_text())
    assert (described["height"], described["width"]) == (64, 32)
    files = sorted((tmp_path / "small").rglob("*.jpg"))
    assert len(files) == 4
    for file in files:
        with Image.open(file) as picture:
            assert picture.size == (32, 64)
    with pytest.raises(ConfigError, match="height must be at least 64"):
        generate_people(tmp_path / "tiny", identities=2, images=2, cameras=1, seed=0, height=16)
