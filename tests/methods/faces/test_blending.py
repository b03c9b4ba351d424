"""A drawn face in a photograph: what is touched, where it lies, and in which colours."""

from __future__ import annotations

import numpy as np
import pytest

from veilkit.errors import ConfigError
from veilkit.methods.faces.blending import BlendConfig, blended, nearest_similarity, outline


def landmarks(side: float) -> np.ndarray:
    """68 points of a plain upright face in a square."""
    around = np.linspace(np.pi, 0, 17)
    jaw = np.stack([0.5 + 0.28 * np.cos(around), 0.48 + 0.38 * np.sin(around)], 1)

    def row(x: float, y: float, count: int, wide: float) -> np.ndarray:
        return np.stack([np.linspace(x - wide, x + wide, count), np.full(count, y)], 1)

    def ring(x: float, y: float, count: int, wide: float, high: float) -> np.ndarray:
        at = np.linspace(np.pi, 3 * np.pi, count, endpoint=False)
        return np.stack([x + wide * np.cos(at), y + high * np.sin(at)], 1)

    parts = (
        jaw,
        row(0.36, 0.38, 5, 0.08),
        row(0.64, 0.38, 5, 0.08),
        np.stack([np.full(4, 0.5), np.linspace(0.44, 0.58, 4)], 1),
        row(0.5, 0.61, 5, 0.06),
        ring(0.37, 0.45, 6, 0.05, 0.02),
        ring(0.63, 0.45, 6, 0.05, 0.02),
        ring(0.5, 0.71, 12, 0.1, 0.04),
        ring(0.5, 0.71, 8, 0.07, 0.02),
    )
    points = np.concatenate(parts) * side
    assert points.shape == (68, 2)
    return points


def noisy(side: int, colour: tuple[float, float, float], seed: int) -> np.ndarray:
    noise = np.random.default_rng(seed).normal(0, 0.02, (side, side, 3))
    return np.clip(np.array(colour) + noise, 0, 1).astype(np.float32)


def laid(photo: np.ndarray, face: np.ndarray, config: BlendConfig, shift: tuple[float, float] = (0, 0)) -> np.ndarray:
    points = landmarks(100) + shift
    return blended(photo, points, face, landmarks(face.shape[0]), config, np.random.default_rng(0))


def test_what_lies_outside_of_the_outline_keeps_its_values_to_the_bit() -> None:
    photo, face = noisy(140, (0.7, 0.5, 0.4), 0), noisy(200, (0.3, 0.3, 0.5), 1)
    made = laid(photo, face, BlendConfig(), (20, 20))
    changed = (made != photo).any(2)
    rows, columns = np.nonzero(changed)
    config = BlendConfig()
    polygon = outline(landmarks(100) + 20, config.forehead, -config.beyond)
    assert changed.sum() > 1000
    assert rows.min() >= polygon[:, 1].min() - 1
    assert rows.max() <= polygon[:, 1].max() + 1
    assert columns.min() >= polygon[:, 0].min() - 1
    assert columns.max() <= polygon[:, 0].max() + 1


def test_the_new_face_gets_the_skin_colour_of_the_old_one_and_the_middle_is_new() -> None:
    photo, face = noisy(140, (0.7, 0.5, 0.4), 0), noisy(200, (0.4, 0.35, 0.3), 1)
    made = laid(photo, face, BlendConfig(), (20, 20))
    middle = np.s_[70:90, 60:80]
    assert np.abs(made[middle].mean((0, 1)) - photo[middle].mean((0, 1))).max() < 0.04
    assert not np.allclose(made[middle], photo[middle], atol=1e-3)


def test_without_tone_light_and_seam_the_drawn_colours_stay() -> None:
    photo, face = noisy(140, (0.7, 0.5, 0.4), 0), noisy(200, (0.4, 0.35, 0.3), 1)
    made = laid(photo, face, BlendConfig(tone=0, light=0, seam=0), (20, 20))
    assert np.abs(made[70:90, 60:80].mean((0, 1)) - (0.4, 0.35, 0.3)).max() < 0.02


def test_a_sharp_drawing_becomes_as_soft_as_the_photo() -> None:
    checks = np.indices((200, 200)).sum(0)[..., None] // 2 % 2 * 0.3 + 0.35
    face = np.repeat(checks, 3, 2).astype(np.float32)
    smooth = np.full((140, 140, 3), 0.5, np.float32) + np.linspace(0, 0.01, 140, dtype=np.float32)[:, None, None]
    made = laid(smooth, face, BlendConfig(), (20, 20))[70:90, 60:80].mean(2)
    assert np.abs(np.diff(made, axis=1)).mean() < 0.02


def test_a_smooth_drawing_gets_the_grain_of_the_photo() -> None:
    photo = noisy(140, (0.6, 0.5, 0.4), 3)
    made = laid(photo, np.full((200, 200, 3), 0.5, np.float32), BlendConfig(), (20, 20))
    assert 0.3 < made[70:90, 60:80, 0].std() / photo[70:90, 60:80, 0].std() < 1.5


def test_a_face_cut_by_the_edge_of_the_picture_is_replaced_as_far_as_it_is_there() -> None:
    photo, face = noisy(100, (0.7, 0.5, 0.4), 0), noisy(200, (0.4, 0.35, 0.3), 1)
    made = laid(photo, face, BlendConfig(), (-40, 0))
    assert (made[:, 0] != photo[:, 0]).any()
    assert (laid(photo, face, BlendConfig(), (500, 0)) == photo).all()


def test_the_similarity_is_found_again() -> None:
    points = landmarks(100)
    turn = np.array([[1.2, -0.5], [0.5, 1.2]])
    matrix = nearest_similarity(points, points @ turn.T + (7, -3))
    np.testing.assert_allclose(matrix, [[1.2, -0.5, 7], [0.5, 1.2, -3]], atol=1e-9)


@pytest.mark.parametrize("settings", [{"brows": -1}, {"tone": 2}, {"light": 99}])
def test_settings_beyond_their_range_are_refused(settings: dict[str, float]) -> None:
    with pytest.raises(ConfigError, match="must be between"):
        BlendConfig(**settings)  # type: ignore[arg-type]


def test_the_seam_keeps_away_from_where_the_two_pictures_differ() -> None:
    photo, face = noisy(140, (0.7, 0.5, 0.4), 0), noisy(200, (0.7, 0.5, 0.4), 1)
    face[:36] = (0.1, 0.9, 0.1)  # a hat, high above the brows
    plain, config = laid(photo, face, BlendConfig(reach=0), (20, 20)), BlendConfig(light=0, seam=0)
    made = laid(photo, face, config, (20, 20))
    assert np.abs(made - photo).max() < 0.3  # no green of it
    assert (made != photo).any(2).sum() > (plain != photo).any(2).sum()
    all_of_it = laid(photo, face, BlendConfig(light=0, seam=0, reach=200), (20, 20))
    assert np.abs(all_of_it - photo).max() > 0.3
    alone = laid(photo, face, BlendConfig(forehead=0, beyond=0, brows=0.1), (20, 20))
    assert (alone != photo).any(2).sum() < (plain != photo).any(2).sum() * 1.2
