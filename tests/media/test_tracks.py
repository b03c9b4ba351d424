import numpy as np

from veilkit.media.tracks import Seen, cover, linked, overlap


def moving(frame: int, *, start: float = 0, speed: float = 4, side: float = 20, y: float = 50) -> Seen:
    left = start + speed * frame
    return Seen((left, y, left + side, y + side))


def inside(inner: tuple[float, ...], outer: tuple[float, ...]) -> bool:
    return outer[0] <= inner[0] and outer[1] <= inner[1] and outer[2] >= inner[2] and outer[3] >= inner[3]


def test_a_face_missed_in_some_frames_is_covered_between_its_neighbours() -> None:
    frames = [[moving(frame)] if frame not in (3, 4, 5, 9) else [] for frame in range(12)]
    tracks = linked(frames, [0] * 12, gap=10)
    assert len(tracks) == 1
    cover(tracks, [0] * 12, tail=0)
    for frame in range(12):
        assert inside(moving(frame).box, tracks[0].covered[frame].box)


def test_two_that_cross_keep_their_numbers() -> None:
    frames = [[moving(frame), moving(frame, start=120, speed=-4, y=58)] for frame in range(31)]
    tracks = linked(frames, [0] * 31, gap=5)
    assert len(tracks) == 2
    for frame in range(31):
        assert tracks[0].seen[frame] == frames[frame][0]


def test_a_track_goes_on_before_and_after_but_never_past_a_cut() -> None:
    frames = [[], [], [], [moving(0)], [moving(1)], [], [], []]
    shots = [0, 0, 1, 1, 1, 1, 2, 2]
    tracks = linked(frames, shots, gap=5)
    cover(tracks, shots, tail=4)
    assert sorted(tracks[0].covered) == [2, 3, 4, 5]


def test_what_stands_in_the_same_place_after_a_cut_is_another_track() -> None:
    frames = [[moving(0, speed=0)] for _ in range(6)]
    assert [sorted(track.seen) for track in linked(frames, [0, 0, 0, 1, 1, 1], gap=5)] == [[0, 1, 2], [3, 4, 5]]


def test_a_long_absence_ends_a_track() -> None:
    frames = [[moving(0)], *[[]] * 8, [moving(0)]]
    assert len(linked(frames, [0] * 10, gap=7)) == 2
    assert len(linked(frames, [0] * 10, gap=8)) == 1


def test_boxes_that_nobody_saw_grow_with_their_distance() -> None:
    frames = [[Seen((0, 0, 10, 10))], *[[]] * 9, [Seen((0, 0, 10, 10))]]
    tracks = linked(frames, [0] * 11, gap=9)
    cover(tracks, [0] * 11, tail=0, growth=0.1, around=0)
    widths = [tracks[0].covered[frame].box[2] - tracks[0].covered[frame].box[0] for frame in range(11)]
    np.testing.assert_allclose(widths, [10, 11, 12, 13, 14, 15, 14, 13, 12, 11, 10])


def test_points_between_two_sights_lie_between_theirs() -> None:
    eyes = np.array([[2.0, 3.0], [7.0, 3.0]])
    frames = [[Seen((0, 0, 10, 10), points=eyes)], [], [Seen((2, 0, 12, 10), points=eyes + np.array([2, 0]))]]
    tracks = linked(frames, [0] * 3, gap=2)
    cover(tracks, [0] * 3, tail=0)
    points = tracks[0].covered[1].points
    assert points is not None
    np.testing.assert_allclose(points, eyes + np.array([1, 0]))


def test_doubtful_is_what_nobody_was_ever_sure_of() -> None:
    frames = [[Seen((0, 0, 10, 10), doubtful=True), Seen((50, 0, 60, 10), doubtful=True)], [Seen((0, 0, 10, 10))]]
    assert [track.doubtful for track in linked(frames, [0, 0], gap=2)] == [False, True]


def test_overlap_is_intersection_over_union() -> None:
    assert overlap((0, 0, 10, 10), (5, 0, 15, 10)) == 50 / 150
    assert overlap((0, 0, 10, 10), (10, 0, 20, 10)) == 0
