from collections.abc import Sequence

import numpy as np
import pytest

from veilkit.media.tracks import Seen, Shots, Tracker, TrackSettings, overlap


def moving(frame: int, *, start: float = 0, speed: float = 4, side: float = 20, y: float = 50) -> Seen:
    left = start + speed * frame
    return Seen((left, y, left + side, y + side))


def inside(inner: tuple[float, ...], outer: tuple[float, ...]) -> bool:
    return all(outer[at] <= inner[at] + 1e-9 for at in (0, 1)) and all(outer[at] >= inner[at] - 1e-9 for at in (2, 3))


def followed(
    frames: Sequence[Sequence[Seen]], shots: Sequence[int] | None = None, **settings: float
) -> list[dict[int, Seen]]:
    """What is covered in each frame, by the number of its track."""
    tracker = Tracker(TrackSettings(**settings))  # type: ignore[arg-type]
    covered = []
    for frame, seen in enumerate(frames):
        tracker.add(seen, shots[frame] if shots else 0)
        if frame >= tracker.settings.ahead:
            covered.append(dict(tracker.covered(frame - tracker.settings.ahead)))
    covered += [dict(tracker.covered(frame)) for frame in range(len(covered), len(frames))]
    return covered


def times(covered: list[dict[int, Seen]], number: int) -> list[int]:
    return [frame for frame, tracks in enumerate(covered) if number in tracks]


def test_a_face_missed_in_some_frames_is_covered_between_its_neighbours() -> None:
    frames = [[moving(frame)] if frame not in (3, 4, 5, 9) else [] for frame in range(120)]
    covered = followed(frames, gap=10, tail=0)
    for frame in range(120):
        assert list(covered[frame]) == [0]
        assert inside(moving(frame).box, covered[frame][0].box)


def test_two_that_cross_keep_their_numbers() -> None:
    frames = [[moving(frame), moving(frame, start=120, speed=-4, y=58)] for frame in range(31)]
    covered = followed(frames, gap=5, around=0)
    for frame in range(31):
        assert covered[frame][0].box == frames[frame][0].box
        assert covered[frame][1].box == frames[frame][1].box


def test_a_track_goes_on_before_and_after_but_never_past_a_cut() -> None:
    frames = [[], [], [], [moving(0)], [moving(1)], [], [], []]
    covered = followed(frames, [0, 0, 1, 1, 1, 1, 2, 2], gap=5, tail=4)
    assert times(covered, 0) == [2, 3, 4, 5]


def test_beyond_its_last_sight_a_track_goes_on_as_it_moved() -> None:
    frames = [[moving(frame)] for frame in range(8)] + [[] for _ in range(6)]
    covered = followed(frames, gap=3, tail=5)
    assert times(covered, 0) == list(range(13))
    for frame in range(13):
        assert inside(moving(frame).box, covered[frame][0].box)


def test_what_stands_in_the_same_place_after_a_cut_is_another_track() -> None:
    covered = followed([[moving(0, speed=0)] for _ in range(6)], [0, 0, 0, 1, 1, 1], gap=5)
    assert [list(tracks) for tracks in covered] == [[0]] * 3 + [[1]] * 3


@pytest.mark.parametrize(("gap", "tracks"), [(7, 2), (8, 1)])
def test_a_long_absence_ends_a_track(gap: int, tracks: int) -> None:
    frames = [[moving(0)], *[[]] * 8, [moving(0)]]
    assert len({number for each in followed(frames, gap=gap) for number in each}) == tracks


def test_boxes_that_nobody_saw_grow_with_their_distance() -> None:
    frames = [[Seen((0, 0, 10, 10))], *[[]] * 9, [Seen((0, 0, 10, 10))]]
    covered = followed(frames, gap=9, tail=0, growth=0.1, around=0)
    widths = [tracks[0].box[2] - tracks[0].box[0] for tracks in covered]
    np.testing.assert_allclose(widths, [10, 11, 12, 13, 14, 15, 14, 13, 12, 11, 10])


def test_points_between_two_sights_lie_between_theirs() -> None:
    eyes = np.array([[2.0, 3.0], [7.0, 3.0]])
    frames = [[Seen((0, 0, 10, 10), points=eyes)], [], [Seen((2, 0, 12, 10), points=eyes + np.array([2, 0]))]]
    points = followed(frames, gap=2)[1][0].points
    assert points is not None
    np.testing.assert_allclose(points, eyes + np.array([1, 0]))


def test_what_nobody_was_ever_sure_of_stays_doubtful_and_has_its_own_tail() -> None:
    sure, doubtful = (0.0, 0.0, 10.0, 10.0), (50.0, 0.0, 60.0, 10.0)
    frames = [[], [], [Seen(sure, 0), Seen(doubtful, 0)], [Seen(sure)], [], [], []]
    covered = followed(frames, gap=2, tail=4, doubtful_tail=1)
    assert {tracks[0].certainty for tracks in covered} == {2}
    assert times(covered, 1) == [1, 2, 3]
    assert covered[2][1].certainty == 0


def test_weak_sights_go_on_with_a_track_but_begin_none() -> None:
    weak = [Seen(moving(frame, speed=0).box, 0, weak=True) for frame in range(12)]
    elsewhere = Seen((200, 0, 220, 20), 0, weak=True)
    covered = followed([[moving(0)], *([each, elsewhere] for each in weak[1:])], gap=3, tail=0)
    assert times(covered, 0) == list(range(12))
    assert {number for tracks in covered for number in tracks} == {0}


def test_it_forgets_what_is_long_past() -> None:
    tracker = Tracker(TrackSettings(gap=3, tail=2))
    for frame in range(500):
        tracker.add([moving(frame), moving(frame % 10, start=900, y=400)], 0)
    (track, *_) = tracker._tracks
    assert len(tracker._tracks) < 50
    assert len(track.seen) < 50
    assert len(tracker._shots) < 50


def test_overlap_is_intersection_over_union() -> None:
    assert overlap((0, 0, 10, 10), (5, 0, 15, 10)) == 50 / 150
    assert overlap((0, 0, 10, 10), (10, 0, 20, 10)) == 0


def test_a_shot_ends_at_a_cut_but_not_at_a_flash_or_in_changing_light() -> None:
    rng = np.random.default_rng(0)
    one, other = (rng.integers(0, 200, (18, 32), dtype=np.uint8) for _ in range(2))
    flash, brighter = np.full((18, 32), 255, np.uint8), one + np.uint8(50)
    shots = Shots()
    numbers = [shots.number(frame) for frame in (one, one, flash, one, brighter, one, other, other)]
    assert numbers == [0, 0, 1, 0, 0, 0, 2, 2]
