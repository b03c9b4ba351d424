"""Frames of a video that were left as they were while those before and after them were changed."""

from __future__ import annotations

from collections import deque
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray

from veilkit.audit.result import Alarm
from veilkit.display import counted
from veilkit.media.video import Frame, VideoLimits, open_clip, read_frames

_SIDES = (160, 160)  # pixels at which frames are compared
_CELLS = (20, 20)
_CHANGED, _BARE = 12.0, 0.35  # levels of 255 by which a place is changed, and the share of it that is left of that
_STILL = 12.0  # levels by which the original's place may differ between the frames
_MOST = 0.8  # of the places changed before and after
_LONGEST = 3  # frames left in a row
_FRAMES = 20_000  # of a video, that are looked at


def bare_frames(original: Path, protected: Path, limits: VideoLimits) -> int:
    """How many frames are bare between frames that are not, at the places that were changed there."""
    clips = [open_clip(file, limits) for file in (original, protected)]
    kept: deque[tuple[NDArray[np.float32], NDArray[np.float32]]] = deque(maxlen=_LONGEST + 2)
    bare = 0
    for number, (one, other) in enumerate(zip(*(read_frames(clip, limits) for clip in clips), strict=False)):
        if number >= _FRAMES or one.pixels.shape != other.pixels.shape:
            break
        raw, made = _small(one), _small(other)
        kept.append((_cells(raw), _cells(np.abs(raw - made))))
        for length in range(1, min(_LONGEST, len(kept) - 2) + 1):
            if _is_gap([kept[place] for place in range(len(kept) - 2 - length, len(kept))]):
                bare += length
                break
    return bare


def frames_alarm(bare: int, videos: int) -> tuple[Alarm, ...]:
    """The alarm, where any frame was left in so many videos."""
    if not bare:
        return ()
    text = (
        f"{counted(bare, 'frame', 'frames')} of {counted(videos, 'video', 'videos')} show the original where the "
        "frames before and after are changed: one frame is enough to be known by"
    )
    return (Alarm("left unprotected", text),)


def _small(frame: Frame) -> NDArray[np.float32]:
    grey = cv2.cvtColor(frame.pixels, cv2.COLOR_RGB2GRAY)
    return np.asarray(cv2.resize(grey, _SIDES, interpolation=cv2.INTER_AREA), dtype=np.float32)


def _cells(values: NDArray[np.float32]) -> NDArray[np.float32]:
    return np.asarray(cv2.resize(values, _CELLS, interpolation=cv2.INTER_AREA), dtype=np.float32)


def _is_gap(frames: list[tuple[NDArray[np.float32], NDArray[np.float32]]]) -> bool:
    """Whether all frames but the first and the last are bare, of (original, change) at the cells."""
    (before, first), *inside, (after, last) = frames
    around = np.minimum(first, last)
    moved = [np.abs(end - middle) for end in (before, after) for middle, _ in inside]
    still = np.max(moved, axis=0) < _STILL
    places = (around >= _CHANGED) & still
    if not places.any():
        return False
    return all(float((change[places] <= _BARE * around[places]).mean()) >= _MOST for _, change in inside)
