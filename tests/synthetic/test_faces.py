"""Generated faces: the truth beside a picture is true of it, and who is shown does not depend on how."""

from __future__ import annotations

import json
from dataclasses import astuple, replace
from itertools import chain
from pathlib import Path

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image

from tests.conftest import tree
from veilkit.errors import ConfigError, DestinationError, LayoutError
from veilkit.synthetic.faces import (
    ACTIONS,
    EMOTIONS,
    Actions,
    Angles,
    Capture,
    Expression,
    FaceTruth,
    Ranges,
    capture,
    expression,
    face,
    generate_faces,
    render_face,
    render_group,
    take,
)
from veilkit.synthetic.faces.capture import Light
from veilkit.synthetic.faces.generate import FacesSpec
from veilkit.synthetic.faces.identity import Face
from veilkit.synthetic.faces.lens import angles_of
from veilkit.synthetic.faces.sculpt import sculpt
from veilkit.synthetic.faces.template import template
from veilkit.training.face_examples import LABELS, load_generated_faces

STILL = Ranges(0, 0, 0, 0, 0)
AHEAD = Angles(0, 0)
# Which point is where each one is, in the mirror.
MIRROR = np.array(
    [
        *(*range(16, -1, -1), *range(26, 16, -1), 27, 28, 29, 30, 35, 34, 33, 32, 31),
        *(45, 44, 43, 42, 47, 46, 39, 38, 37, 36, 41, 40),
        *(54, 53, 52, 51, 50, 49, 48, 59, 58, 57, 56, 55, 64, 63, 62, 61, 60, 67, 66, 65),
    ]
)


def plain_face(identity: int = 1) -> Face:
    """Bare of what covers a face: no glasses, beard or hair over the eyes."""
    who = face(3, identity)
    return replace(
        who,
        attributes=replace(who.attributes, frame="none", beard="none"),
        hair=replace(who.hair, style="short"),
        complexion=replace(who.complexion, iris=(0.2, 0.12, 0.08)),
    )


def moment(pose: Angles = AHEAD, gaze: Angles = AHEAD, shown: Expression | Actions | None = None) -> Capture:
    """A sharp, evenly lit picture."""
    calm = capture(3, 1, 1, STILL)
    if isinstance(shown, Actions):
        shown = Expression("neutral", 1.0, shown)
    camera = replace(calm.camera, noise=0.0, blur=0.2, resolution=1.0, exposure=1.0, contrast=1.0, haze=0.0)
    light = Light(50.0, 40.0, 0.4, 0.8, 0.0)
    return replace(
        calm,
        pose=pose,
        gaze=gaze,
        expression=shown or expression("neutral"),
        camera=camera,
        light=light,
        shift=(0, 0),
    )


def shot(who: Face, at: Capture, size: int = 128) -> tuple[NDArray[np.uint8], FaceTruth]:
    return take(who, at, np.random.default_rng(0), size=size)


def opening(truth: FaceTruth) -> float:
    """Height of the gap between the lips."""
    return float((truth.landmarks[[65, 66, 67], 1] - truth.landmarks[[63, 62, 61], 1]).mean())


class TestPicture:
    @pytest.mark.parametrize("size", [64, 128, 200])
    def test_is_8_bit_rgb_of_the_size_asked_for(self, size: int) -> None:
        picture, truth = render_face(1, 1, 1, size=size)
        assert picture.shape == (size, size, 3)
        assert picture.dtype == np.uint8
        assert truth.landmarks.shape == (68, 2)
        assert truth.visible.shape == (68,)
        assert truth.five.shape == (5, 2)

    def test_a_larger_picture_shows_the_same_face_larger(self) -> None:
        small, large = render_face(1, 2, 1, size=96)[1], render_face(1, 2, 1, size=192)[1]
        assert np.allclose(2 * small.landmarks, large.landmarks, atol=1e-2)

    def test_same_arguments_same_pixels_whatever_was_drawn_before(self) -> None:
        first, _ = render_face(1, 2, 1, size=64)
        render_face(1, 9, 4, size=64)
        assert np.array_equal(first, render_face(1, 2, 1, size=64)[0])

    @pytest.mark.parametrize("other", [(2, 2, 1), (1, 3, 1), (1, 2, 2)])
    def test_each_argument_changes_the_picture(self, other: tuple[int, int, int]) -> None:
        first, second = render_face(1, 2, 1, size=64)[0], render_face(*other, size=64)[0]
        assert np.abs(first.astype(int) - second).mean() > 4

    def test_refuses_a_size_too_small_to_draw(self) -> None:
        with pytest.raises(ConfigError, match="64 pixels"):
            render_face(1, 1, 1, size=32)


class TestIndependence:
    def test_an_identity_is_the_same_in_every_shot_and_differs_from_others(self) -> None:
        known = [face(7, identity) for identity in range(40)]
        face.cache_clear()
        assert known == [face(7, identity) for identity in range(40)]
        vectors = np.array([astuple(who.shape) for who in known])
        apart = np.linalg.norm(vectors[:, None] - vectors[None], axis=2) + 1e3 * np.eye(40)
        assert apart.min() > 3

    def test_expression_gaze_and_pose_do_not_follow_each_other_or_the_person(self) -> None:
        shots = [capture(5, identity, number) for identity in range(40) for number in range(10)]
        table = np.array(
            [
                (each.pose.yaw, each.pose.pitch, each.pose.roll, each.gaze.yaw, each.gaze.pitch,
                 LABELS.index(each.expression.label), index // 10)
                for index, each in enumerate(shots)
            ]
        )  # fmt: skip
        related = np.corrcoef(table.T) - np.eye(7)
        assert np.abs(related).max() < 0.2
        counts = np.bincount(table[:, 5].astype(int), minlength=len(EMOTIONS))
        assert counts.min() > len(shots) / len(EMOTIONS) / 2

    def test_ranges_bound_pose_and_gaze(self) -> None:
        for number in range(60):
            seen = capture(5, 1, number, Ranges(10, 5, 3, 8, 2))
            assert abs(seen.pose.yaw) <= 10
            assert abs(seen.pose.pitch) <= 5
            assert abs(seen.pose.roll) <= 3
            assert abs(seen.gaze.yaw) <= 8
            assert abs(seen.gaze.pitch) <= 2
        with pytest.raises(ConfigError, match="yaw must be between 0 and 75"):
            Ranges(yaw=80)

    def test_gaze_moves_neither_brows_nor_mouth(self) -> None:
        who = plain_face()
        ahead, aside = (shot(who, moment(gaze=Angles(yaw, 0)))[1] for yaw in (0, 20))
        assert np.allclose(ahead.landmarks, aside.landmarks, atol=1e-3)
        assert not np.allclose(ahead.irises, aside.irises, atol=0.5)


class TestLandmarks:
    def test_a_face_that_looks_ahead_is_symmetric(self) -> None:
        truth = shot(plain_face(), moment())[1]
        middle = truth.landmarks[27, 0]
        mirrored = truth.landmarks[MIRROR] * [-1, 1] + [2 * middle, 0]
        assert np.abs(mirrored - truth.landmarks).max() < 0.05

    def test_order_is_that_of_ibug(self) -> None:
        points = shot(plain_face(), moment())[1].landmarks
        assert (np.diff(points[2:15, 0]) > 0).all()
        assert (np.diff(points[:9, 1]) > 0).all()
        assert points[:17, 1].argmax() == 8
        assert (np.diff(points[17:27, 0]) > 0).all()
        assert (np.diff(points[27:31, 1]) > 0).all()
        assert (np.diff(points[31:36, 0]) > 0).all()
        for first in (36, 42):
            eye = points[first : first + 6]
            assert eye[:, 0].argmin() == 0
            assert eye[:, 0].argmax() == 3
            assert eye[1:3, 1].max() < eye[4:6, 1].min()
        assert (np.diff(points[48:55, 0]) > 0).all()
        assert points[57, 1] > points[66, 1] >= points[62, 1] > points[51, 1]
        assert points[[19, 24], 1].max() < points[36:48, 1].min() < points[33, 1] < points[51, 1] < points[8, 1]

    @pytest.mark.parametrize("identity", [1, 4, 6])
    def test_eyes_surround_the_dark_of_the_iris(self, identity: int) -> None:
        who = plain_face(identity)
        picture, truth = shot(who, moment(), 256)
        grey = picture.astype(float).mean(axis=2)
        for first, iris in ((36, truth.irises[0]), (42, truth.irises[1])):
            eye = truth.landmarks[first : first + 6]
            assert eye[:, 0].min() < iris[0] < eye[:, 0].max()
            assert eye[:, 1].min() < iris[1] < eye[:, 1].max()
            x, y = np.round(iris - 0.5).astype(int)
            pupil = grey[y - 1 : y + 2, x - 1 : x + 2].mean()
            inner, outer = np.round(0.75 * eye[[0, 3]] + 0.25 * iris - 0.5).astype(int)
            whites = [grey[at[1] - 1 : at[1] + 2, at[0] - 1 : at[0] + 2].mean() for at in (inner, outer)]
            assert pupil + 25 < min(whites)

    def test_hidden_points_are_on_the_far_side(self) -> None:
        truth = shot(plain_face(), moment(Angles(45, 0)))[1]
        assert truth.visible[:6].all()
        assert not truth.visible[13:17].any()
        ahead = shot(plain_face(), moment())[1]
        assert ahead.visible[17:].all()

    def test_five_points_come_from_the_68(self) -> None:
        truth = render_face(1, 1, 1, size=64)[1]
        assert np.allclose(truth.five[0], truth.landmarks[36:42].mean(axis=0))
        assert np.allclose(truth.five[[2, 3, 4]], truth.landmarks[[30, 48, 54]])

    def test_box_holds_the_face(self) -> None:
        for number in range(4):
            truth = render_face(4, number, number, size=64)[1]
            left, top, right, bottom = truth.box
            inner = truth.landmarks[17:]
            assert (inner > [left - 1, top - 1]).all()
            assert (inner < [right + 1, bottom + 1]).all()


class TestPoseAndGaze:
    def test_turning_moves_the_nose_to_that_side(self) -> None:
        who = plain_face()
        for yaw in (-30, 30):
            points = shot(who, moment(Angles(yaw, 0)))[1].landmarks
            between = points[[36, 45], 0].mean()
            assert np.sign(points[30, 0] - between) == np.sign(yaw)
        up, down = (shot(who, moment(Angles(0, pitch)))[1].landmarks for pitch in (20, -20))

        def nose_below_eyes(points: NDArray[np.float32]) -> float:
            eyes = points[36:48, 1].mean()
            return float((points[30, 1] - eyes) / (points[8, 1] - eyes))

        assert nose_below_eyes(up) < nose_below_eyes(down)

    def test_roll_leans_the_line_of_the_eyes(self) -> None:
        points = shot(plain_face(), moment(Angles(0, 0, 12)))[1].landmarks
        across = points[42:48].mean(axis=0) - points[36:42].mean(axis=0)
        assert np.degrees(np.arctan2(across[1], across[0])) == pytest.approx(12, abs=1)

    def test_gaze_moves_the_irises_that_way(self) -> None:
        who = plain_face()
        still = shot(who, moment())[1].irises
        right, up = (shot(who, moment(gaze=Angles(*gaze)))[1].irises for gaze in ((20, 0), (0, 12)))
        assert (right[:, 0] > still[:, 0] + 1).all()
        assert (up[:, 1] < still[:, 1] - 0.5).all()

    def test_the_picture_follows_the_gaze(self) -> None:
        who = plain_face()
        darkest = []
        for yaw in (-20, 20):
            picture, truth = shot(who, moment(gaze=Angles(yaw, 0)), 256)
            left, right = truth.landmarks[36], truth.landmarks[39]
            row = picture[round(float(truth.irises[0, 1])), :, :].astype(float).mean(axis=1)
            inside = row[round(float(left[0])) + 3 : round(float(right[0])) - 3]
            darkest.append(np.average(np.arange(len(inside)), weights=(inside.max() - inside) ** 2))
        assert darkest[1] > darkest[0] + 2

    def test_gaze_in_the_camera_adds_the_turn_of_the_head(self) -> None:
        truth = shot(plain_face(), moment(Angles(25, 0), Angles(-10, 0)))[1]
        assert truth.gaze == (-10, 0)
        assert truth.camera_gaze == pytest.approx((15, 0), abs=1e-3)
        assert shot(plain_face(), moment(Angles(0, 8), Angles(0, 5)))[1].camera_gaze == pytest.approx(
            (0, 13), abs=1e-3
        )

    def test_rotations_are_rotations(self) -> None:
        matrix = Angles(33, -12, 7).matrix()
        assert np.allclose(matrix @ matrix.T, np.eye(3), atol=1e-6)
        assert np.linalg.det(matrix) == pytest.approx(1)
        assert angles_of(Angles(33, 0).direction()) == pytest.approx((33, 0), abs=1e-4)


class TestExpression:
    def test_an_open_jaw_opens_the_mouth_ever_more(self) -> None:
        gaps = [opening(shot(plain_face(), moment(shown=Actions(jaw_drop=drop)))[1]) for drop in (0, 0.3, 0.6, 1)]
        assert (np.diff(gaps) > 1).all()

    @pytest.mark.parametrize(
        ("actions", "points", "axis", "sign"),
        [
            (Actions(corner_pull=1), (48, 54), 1, -1),
            (Actions(corner_drop=1), (48, 54), 1, 1),
            (Actions(inner_brow_raise=1), (21, 22), 1, -1),
            (Actions(outer_brow_raise=1), (18, 25), 1, -1),
            (Actions(brow_lower=1), (21, 22), 1, 1),
            (Actions(lid_raise=1), (37, 44), 1, -1),
            (Actions(lid_close=1), (37, 44), 1, 1),
            (Actions(lip_stretch=1), (54,), 0, 1),
            (Actions(upper_lip_raise=1), (51,), 1, -1),
        ],
    )
    def test_a_unit_moves_what_it_is_named_for(
        self, actions: Actions, points: tuple[int, ...], axis: int, sign: int
    ) -> None:
        rest, moved = (shot(plain_face(), moment(shown=shown))[1].landmarks for shown in (Actions(), actions))
        assert (sign * (moved - rest)[list(points), axis] > 0.5).all()

    def test_closed_eyes_show_no_iris(self) -> None:
        points = shot(plain_face(), moment(shown=Actions(lid_close=1)))[1].landmarks
        assert np.abs(points[[37, 38]] - points[[41, 40]]).max() < 0.3

    def test_emotions_are_told_apart_by_their_units(self) -> None:
        table = np.array([[getattr(actions, name) for name in ACTIONS] for actions in EMOTIONS.values()])
        apart = np.linalg.norm(table[:, None] - table[None], axis=2) + 9 * np.eye(len(table))
        assert set(LABELS) == {"neutral", "happy", "sad", "surprised", "angry", "disgusted", "fearful"}
        assert apart.min() > 0.6
        assert table.min() >= 0
        assert table.max() <= 1

    def test_refuses_what_is_no_expression(self) -> None:
        with pytest.raises(ConfigError, match="must be one of neutral, happy"):
            expression("bored")
        with pytest.raises(ConfigError, match="between 0 and 1"):
            expression("happy", 2)


@pytest.mark.parametrize(
    ("name", "first", "second", "axis"),
    [
        ("eye_distance", 39, 42, 0),
        ("nose_width", 31, 35, 0),
        ("mouth_width", 48, 54, 0),
        ("nose_length", 27, 33, 1),
        ("chin_length", 57, 8, 1),
        ("jaw_width", 4, 12, 0),
        ("lower_lip", 66, 57, 1),
    ],
)
def test_a_shape_parameter_does_what_it_is_named_for(name: str, first: int, second: int, axis: int) -> None:
    who = plain_face()
    spans = []
    for value in (-2.0, 0.0, 2.0):
        changed = replace(who, shape=replace(who.shape, **{name: value}))
        points = shot(changed, moment())[1].landmarks
        spans.append(float(points[second, axis] - points[first, axis]))
    assert (np.diff(spans) > 0.2).all()


def test_every_head_is_in_proportion() -> None:
    front = np.abs(template().angle[0]) < 1.2
    for identity in range(30):
        head = sculpt(face(9, identity).shape)
        assert np.isfinite(head.points).all()
        wide, high = np.ptp(head.points[..., 0]), np.ptp(head.points[template().v[:, 0] > -112][..., 1])
        assert 1.2 < high / wide < 1.9
        rows = head.points[:, front, 0]
        assert (np.diff(rows[(template().v[:, 0] < 100) & (template().v[:, 0] > -110)], axis=1) > 0).all()
        assert (head.points[:, np.abs(template().angle[0]) > 1.8, 2] < -60).all()
        assert np.allclose(head.eyes[0] * [-1, 1, 1], head.eyes[1], atol=1e-2)


class TestGroups:
    def test_faces_are_apart_and_in_the_picture(self) -> None:
        picture, truths = render_group(1, [3, 1, 2, 5, 4], 1, size=64)
        boxes = np.array([truth.box for truth in truths])
        assert len(truths) == 5
        assert (boxes[:, :2] > 0).all()
        assert (boxes[:, 2] < picture.shape[1]).all()
        assert (boxes[:, 3] < picture.shape[0]).all()
        middles = (boxes[:, :2] + boxes[:, 2:]) / 2
        apart = np.linalg.norm(middles[:, None] - middles[None], axis=2) + 1e3 * np.eye(5)
        assert apart.min() > 0.8 * (boxes[:, 2] - boxes[:, 0]).mean()
        assert np.mean([truth.visible.mean() for truth in truths]) > 0.75

    @pytest.mark.parametrize(("people", "faces"), [(7, 3), (12, 4), (5, 5)])
    def test_everybody_is_shown_once_per_round(self, people: int, faces: int) -> None:
        spec = FacesSpec(people, 3, 0, faces_per_picture=faces)
        per_round = spec.pictures // 3
        for turn in range(3):
            groups = [spec.group(1 + turn * per_round + place) for place in range(per_round)]
            assert sorted(chain.from_iterable(groups)) == list(range(1, people + 1))
            assert max(map(len, groups)) <= faces
        assert spec.group(1) != spec.group(1 + per_round) or people == faces


@pytest.fixture(scope="module")
def faces(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("faces") / "set"
    generate_faces(root, people=3, images=2, seed=3, size=64)
    return root


class TestGenerateFaces:
    def test_layout(self, faces: Path) -> None:
        names = sorted(path.relative_to(faces).as_posix() for path in faces.rglob("*.png"))
        assert names == [f"{person:04d}/{person:04d}_{number:06d}.png" for person in (1, 2, 3) for number in (1, 2)]
        assert all((faces / name).with_suffix(".json").exists() for name in names)
        with Image.open(faces / names[0]) as picture:
            assert (picture.format, picture.mode, picture.size) == ("PNG", "RGB", (64, 64))
            assert np.array_equal(np.asarray(picture), render_face(3, 1, 1, size=64)[0])
        described = json.loads((faces / "generated.json").read_text())
        assert described["real_people"] is False
        assert described["complete"] is True
        assert sorted(json.loads((faces / "people.json").read_text())) == ["0001", "0002", "0003"]
        assert "Nobody" in (faces / "README.txt").read_text()

    def test_workers_do_not_change_a_byte(self, faces: Path, tmp_path: Path) -> None:
        generate_faces(tmp_path / "again", people=3, images=2, seed=3, size=64, workers=2)
        assert tree(tmp_path / "again") == tree(faces)

    def test_a_stopped_run_goes_on(self, faces: Path, tmp_path: Path) -> None:
        def stop(done: int, total: int) -> None:
            raise KeyboardInterrupt

        with pytest.raises(KeyboardInterrupt):
            generate_faces(tmp_path / "s", people=3, images=2, seed=3, size=64, on_progress=stop)
        with pytest.raises(LayoutError, match="unfinished"):
            load_generated_faces(tmp_path / "s")
        kept = (tmp_path / "s" / "0001" / "0001_000001.png").stat().st_mtime_ns
        seen: list[tuple[int, int]] = []
        generate_faces(
            tmp_path / "s", people=3, images=2, seed=3, size=64, on_progress=lambda *step: seen.append(step)
        )
        assert seen == [(2, 6), (4, 6), (6, 6)]
        assert tree(tmp_path / "s") == tree(faces)
        assert (tmp_path / "s" / "0001" / "0001_000001.png").stat().st_mtime_ns == kept

    def test_refuses_a_folder_of_something_else(self, faces: Path, tmp_path: Path) -> None:
        with pytest.raises(DestinationError, match="unfinished set of the same numbers"):
            generate_faces(faces, people=4, images=2, seed=3, size=64)
        (tmp_path / "mine.txt").write_text("keep")
        with pytest.raises(DestinationError):
            generate_faces(tmp_path, people=2, images=1, seed=0)
        assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]

    @pytest.mark.parametrize(
        ("wrong", "message"),
        [
            ({"people": 0}, "people must be at least 1"),
            ({"images": 0}, "images must be at least 1"),
            ({"size": 20}, "size must be at least 64"),
            ({"workers": 0}, "workers must be at least 1"),
            ({"faces_per_picture": 5}, "at most the number of people"),
        ],
    )
    def test_refuses_numbers_that_make_no_set(self, tmp_path: Path, wrong: dict[str, int], message: str) -> None:
        with pytest.raises(ConfigError, match=message):
            generate_faces(tmp_path / "x", **{"people": 2, "images": 1, "seed": 0, **wrong})
        assert not (tmp_path / "x").exists()


class TestLoading:
    def test_arrays_hold_what_was_drawn(self, faces: Path) -> None:
        loaded = load_generated_faces(faces)
        assert len(loaded) == len(loaded.split) == 6
        assert [record.identity for record in loaded.split.records] == list(loaded.people)
        assert loaded.landmarks.shape == (6, 68, 2)
        truth = render_face(3, 2, 1, size=64)[1]
        assert loaded.split.records[2].path == "0002/0002_000001.png"
        assert np.allclose(loaded.landmarks[2], truth.landmarks, atol=0.01)
        assert np.allclose(loaded.pose[2], truth.pose, atol=0.001)
        assert LABELS[loaded.expression[2]] == truth.expression

    def test_groups_have_several_faces_in_a_picture(self, tmp_path: Path) -> None:
        generate_faces(tmp_path / "g", people=5, images=1, seed=1, size=64, faces_per_picture=3)
        loaded = load_generated_faces(tmp_path / "g")
        assert len(loaded.split) == 2
        assert sorted(loaded.people) == ["0001", "0002", "0003", "0004", "0005"]
        assert np.bincount(loaded.picture).tolist() == [3, 2]
        assert {record.identity for record in loaded.split.records} == {None}

    def test_tells_what_is_wrong(self, faces: Path, tmp_path: Path) -> None:
        with pytest.raises(LayoutError, match=r"generated\.json"):
            load_generated_faces(tmp_path)
        (tmp_path / "generated.json").write_text('{"kind": "generated people"}')
        with pytest.raises(LayoutError, match="got generated people"):
            load_generated_faces(tmp_path)
