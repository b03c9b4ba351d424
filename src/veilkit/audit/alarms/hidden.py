"""Originals hidden in protected pictures, in whatever form: shrunk, turned, in low bits, in an order of their own.

A protection can only take away. So each protected picture is looked at in many ways (bit planes, windows of all
sizes, the eight symmetries and their negatives, shifts), and so is its untouched original, in the same ways. Where
a view of the protected picture shows the original much better than that view of the original itself does, and better
than a plain look at it, the original was put there. Views that keep who resembles whom, though nothing is to be seen,
hold the originals in another order of pixels or bits.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import TypeAlias

import cv2
import numpy as np
from numpy.typing import NDArray

from veilkit.audit.alarms.relations import (
    Rows,
    centred,
    distances,
    own_likeness,
    same_structure,
    sign_test,
    unlike,
)
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Alarm
from veilkit.rng import Randomness

Pixels = NDArray[np.uint8]

_PICTURES, _FEWEST = 48, 12
_BUDGET = 12_000_000  # pixels that are looked at in all, which bounds the time for large pictures
_SIDE = 8  # of the thumbnails that are compared
_MORE = 0.2  # of likeness, by which a view of a protected picture must beat the original's own
_MUCH_MORE = 0.3  # of likeness, by which a component that was kept must beat a plain look
_LARGEST, _WAVES = 128, 32  # pixels a side that are looked at for detail and waves, and waves that are compared
_OWN, _RANK = 0.5, 0.9  # likeness to the own original, and the share of strangers' below it
_SURE = 0.005  # chance of all questions about the whole together, and of all about its parts
_STRUCTURE, _DEVIATIONS = 0.35, 4.0  # of a view that keeps who resembles whom
_PLAIN = 0.35  # mean likeness above which a plain look shows the originals anyway
_TAKEN = (512, 1536)  # values of each picture whose distances are compared
_TURNS = tuple((quarter, mirrored, negative) for quarter in range(4) for mirrored in (0, 1) for negative in (0, 1))


View: TypeAlias = Callable[[Pixels], Rows]
"""(8, 8) of what is seen of a picture."""


def check_hidden(subject: Subject, rng: Randomness) -> Iterator[Alarm]:
    """Look for originals in the pictures of a release, some of them drawn at random."""
    if subject.originals is None:
        return
    subject = subject.whole
    assert subject.originals is not None
    places = _some(subject, rng)
    if len(places) < _FEWEST:
        return
    made = [subject.protected.pixels(int(place)) for place in places]
    raw = [subject.originals.pixels(int(place)) for place in places]
    strangers = _strangers(subject, places)
    if found := _copies(made, raw, strangers):
        name, likeness = found
        yield Alarm(
            "hidden copy",
            f"{name} of protected pictures shows their originals (correlation {likeness:.2f} at {_SIDE} x {_SIDE} "
            "pixels), more than a plain look does, and more than it does in the originals themselves: they were put "
            "there",
        )
    elif name := _structure(made, raw, strangers, rng):
        yield Alarm(
            "hidden copy",
            f"{name} of protected pictures resemble each other as their originals do, though a plain look does not "
            "show it: the originals, or much of them, are there in another form",
        )


def _some(subject: Subject, rng: Randomness) -> NDArray[np.int64]:
    count = len(subject.protected)
    order = rng.child("pictures").permutation(count)
    sizes = np.maximum(1, subject.protected.sizes.prod(axis=1)[order])
    affordable = max(_FEWEST, int((np.cumsum(sizes) <= _BUDGET).sum()))
    return np.asarray(order[: min(_PICTURES, affordable)], dtype=np.int64)


def _strangers(subject: Subject, places: NDArray[np.int64]) -> NDArray[np.bool_]:
    assert subject.originals is not None
    files = np.array([subject.originals.files[place].sha256 for place in places])
    apart = files[:, None] != files[None, :]
    if subject.people is not None and len(np.unique(subject.people[places])) > 1:
        people = subject.people[places]
        apart &= people[:, None] != people[None, :]
    return np.asarray(apart)


def _copies(made: list[Pixels], raw: list[Pixels], strangers: NDArray[np.bool_]) -> tuple[str, float] | None:
    """The view that shows the originals best, where one surely does, and how well."""
    truth = np.stack([_thumbnail(picture) for picture in raw])
    turned = np.stack([centred(_turned(truth, *turn).reshape(len(raw), -1)) for turn in _TURNS])
    plain = (centred(truth.reshape(len(raw), -1)) * _seen(_thumbnail, made)).sum(axis=1)
    views = dict(_views())
    best: tuple[str, float] | None = None
    for name, view in views.items():
        shown, natural = _seen(view, made), _seen(view, raw)
        if not shown.any():
            continue
        own, rank = own_likeness(shown, turned, strangers)
        beaten = (natural * turned).sum(axis=-1)
        for at, turn in enumerate(_TURNS):
            if not name:  # the whole picture, which must show more turned than it plainly does
                beaten[at] = np.maximum(beaten[at], plain) if turn != _TURNS[0] else np.inf
            likeness = float(own[at].mean())
            if likeness < max(_OWN, best[1] if best else 0.0) or rank[at].mean() < _RANK:
                continue
            wins = int((own[at] > beaten[at] + _MORE).sum())
            if sign_test(wins, len(made)) * len(_TURNS) * (len(views) if name else 1) < _SURE:
                best = " ".join(filter(None, (name or "the whole", _turn_name(*turn)))), likeness
    return best or _kept_alone(made, raw, strangers, plain)


def _kept_alone(
    made: list[Pixels], raw: list[Pixels], strangers: NDArray[np.bool_], plain: Rows
) -> tuple[str, float] | None:
    """A component of the pictures that was kept where a plain look, at brightness from afar, shows much less."""
    side = tuple(min(_LARGEST, *(picture.shape[axis] for picture in (*made, *raw))) for axis in (0, 1))
    for name, part in (("the colour", _colour), ("the fine detail", _detail), ("the signs of waves", _signs)):
        kept, truth = (
            centred(np.stack([part(picture[: side[0], : side[1]]) for picture in each])) for each in (made, raw)
        )
        own, rank = own_likeness(kept, truth, strangers)
        wins = int((own > plain + _MUCH_MORE).sum())
        if own.mean() >= _OWN and rank.mean() >= _RANK and sign_test(wins, len(made)) < _SURE:
            return name, float(own.mean())
    return None


def _colour(picture: Pixels) -> Rows:
    return _shrunk(np.asarray(cv2.cvtColor(picture, cv2.COLOR_RGB2YCrCb)))[..., 1:].ravel()


def _detail(picture: Pixels) -> Rows:
    values = picture.mean(axis=2)
    return np.asarray(values - cv2.GaussianBlur(values, (0, 0), 1.5), dtype=np.float64).ravel()


def _signs(picture: Pixels) -> Rows:
    """Of the slow waves of a picture (discrete cosine transform), which way each one goes."""
    even = picture[: picture.shape[0] // 2 * 2, : picture.shape[1] // 2 * 2]
    return np.asarray(np.sign(cv2.dct(even.mean(axis=2) - 128))[:_WAVES, :_WAVES], dtype=np.float64).ravel()


def _views() -> Iterator[tuple[str, View]]:
    """All ways to look: the whole, its lowest bits, and windows of both."""
    yield "", _thumbnail
    for bits, taken in (("", None), ("the lowest bits of ", 0), ("the second lowest bits of ", 1)):
        if taken is not None:
            yield f"{bits}the whole", partial(_part, taken, None)
        for share in (2, 3, 4):
            for place in range(share * share):
                yield f"{bits}tile {place + 1} of {share} x {share}", partial(_part, taken, (share, place))
        for side in (8, 12, 16, 24, 32, 48):
            for corner, where in enumerate(("upper left", "upper right", "lower left", "lower right")):
                yield f"{bits}the {where} {side} x {side} pixels", partial(_part, taken, (-side, corner))


def _part(bit: int | None, window: tuple[int, int] | None, picture: Pixels) -> Rows:
    """A window of a picture, or one of its bit planes there; nothing where the picture is too small."""
    height, width = picture.shape[:2]
    if window is not None:
        size, place = window
        if size > 0:
            top, left = height * (place // size) // size, width * (place % size) // size
            picture = picture[top : top + height // size, left : left + width // size]
        elif -size * 4 > 3 * min(height, width):
            return np.zeros((_SIDE, _SIDE))
        else:
            rows = slice(0, -size) if place < 2 else slice(height + size, height)
            picture = picture[rows, slice(0, -size) if place % 2 == 0 else slice(width + size, width)]
    if min(picture.shape[:2]) < _SIDE // 2:
        return np.zeros((_SIDE, _SIDE))
    return _thumbnail(picture if bit is None else _plane(picture, bit))


def _plane(picture: Pixels, bit: int) -> Pixels:
    """0 or 255 by one bit; between them where a value was cut off, as its bits then tell how bright it is."""
    cut_off = (picture == 0) | (picture == 255)
    return np.where(cut_off, 128, (picture >> bit & 1) * 255).astype(np.uint8)


def _thumbnail(picture: Pixels) -> Rows:
    return np.asarray(_shrunk(picture).mean(axis=2))


def _shrunk(picture: Pixels) -> Rows:
    """(8, 8, 3)."""
    return np.asarray(cv2.resize(picture, (_SIDE, _SIDE), interpolation=cv2.INTER_AREA), dtype=np.float64)


def _seen(view: View, pictures: list[Pixels]) -> Rows:
    return centred(np.stack([view(picture).ravel() for picture in pictures]))


def _turned(thumbnails: Rows, quarters: int, mirrored: int, negative: int) -> Rows:
    turned = np.rot90(thumbnails[:, :, ::-1] if mirrored else thumbnails, quarters, axes=(1, 2))
    return -turned if negative else turned


def _turn_name(quarters: int, mirrored: int, negative: int) -> str:
    words = (
        "mirrored" * mirrored,
        f"turned by {90 * quarters} degrees" if quarters else "",
        "as a negative" * negative,
    )
    return " ".join(filter(None, words))


def _structure(made: list[Pixels], raw: list[Pixels], strangers: NDArray[np.bool_], rng: Randomness) -> str:
    """The values that keep who resembles whom where nothing is to be seen; "" for none."""
    truth = np.stack([_shrunk(picture).ravel() for picture in raw])
    whole = distances(truth)
    pairs = unlike(whole, strangers)
    height, width = (min(picture.shape[axis] for picture in (*made, *raw)) for axis in (0, 1))
    flat = [np.stack([picture[:height, :width].ravel() for picture in side]) for side in (made, raw)]
    generator = rng.child("structure").numpy()
    order = generator.permutation(flat[0].shape[1])
    chosen_bits = [("the first lowest bits", np.arange(min(count, len(order)))) for count in _TAKEN]
    for name, chosen in (*chosen_bits, ("the lowest bits", order[: _TAKEN[-1]])):
        bits = [_plane(side[:, chosen], 0).astype(np.float64) for side in flat]
        found, deviations = same_structure(distances(bits[0]), whole, pairs, generator)
        natural, _ = same_structure(distances(bits[1]), whole, pairs, generator, 2)
        if found > max(_STRUCTURE, natural + _MORE) and deviations > _DEVIATIONS:
            return name
    plain = float((centred(truth) * centred(np.stack([_shrunk(picture).ravel() for picture in made]))).sum(1).mean())
    pixels = flat[0][:, order[: _TAKEN[-1]]].astype(np.float64)
    found, deviations = same_structure(distances(pixels), whole, pairs, generator)
    return "the pixels" if plain < _PLAIN and found > 2 * _STRUCTURE and deviations > _DEVIATIONS else ""
