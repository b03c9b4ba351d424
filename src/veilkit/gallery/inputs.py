"""Times as a gallery keeps them: whole milliseconds since 1970 in UTC."""

from __future__ import annotations

import datetime
import math
import zipfile
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from veilkit.errors import DataError

Time: TypeAlias = str | int | float | datetime.datetime
_LONGEST = 253_402_300_800_000  # the year 10000, where calendars of most programs end


def milliseconds(time: Time) -> int:
    """A time as ISO 8601 text, seconds since 1970 (a number, or its text) or a datetime; UTC where no zone is given.

    >>> milliseconds("2024-05-01T12:00:00+02:00") == milliseconds(1714557600) == milliseconds("2024-05-01 10:00")
    True
    """
    try:
        if isinstance(time, bool):
            raise TypeError
        if isinstance(time, str):
            time = _number_or_datetime(time.strip())
        if isinstance(time, datetime.datetime):
            aware = time if time.tzinfo else time.replace(tzinfo=datetime.UTC)
            found = round(aware.timestamp() * 1000)
        else:
            found = math.floor(float(time) * 1000 + 0.5)
        if not 0 <= found < _LONGEST:
            raise ValueError
    except (TypeError, ValueError, OverflowError):
        raise DataError(
            f"expected a time as ISO 8601 ('2024-05-01T12:00:00Z') or seconds since 1970, but got {time!r}"
        ) from None
    return found


def _number_or_datetime(text: str) -> float | datetime.datetime:
    try:
        return float(text)
    except ValueError:
        return datetime.datetime.fromisoformat(text)


def time_text(time: int | None) -> str | None:
    """Milliseconds since 1970 as ISO 8601 in UTC.

    >>> time_text(1714557600000)
    '2024-05-01T10:00:00Z'
    """
    if time is None:
        return None
    moment = datetime.datetime.fromtimestamp(time / 1000, datetime.UTC)
    return moment.isoformat(timespec="milliseconds" if time % 1000 else "seconds").replace("+00:00", "Z")


LONGEST_CAMERA = 128  # bytes
_PARTS = ("features", "records", "persons", "cameras", "times")


@dataclass(frozen=True, slots=True, eq=False)
class Features:
    """features: float (N, D). records: their names. persons, cameras, times (ISO 8601 or seconds): or None."""

    features: Tensor
    records: tuple[str, ...]
    persons: tuple[str, ...] | None = None
    cameras: tuple[str | None, ...] | None = None
    times: tuple[Time | None, ...] | None = None


def read_features(file: Path) -> Features:
    """A .npz file with features (N, D) and, by N each, records and if wanted persons, cameras, times.

    Without records (a file of queries) rows go by their number. Empty cameras and times are unknown ones.
    """
    try:
        with np.load(file, allow_pickle=False) as parts:
            found: dict[str, Any] = {name: parts[name] for name in parts.files}
    except FileNotFoundError:
        raise DataError(f"there is no features file {file}") from None
    except (OSError, ValueError, zipfile.BadZipFile, KeyError):
        raise DataError(f"{file} is no features file: expected an .npz file with an array 'features'") from None
    came = ", ".join(found) or "none"
    if "features" not in found or not set(found) <= set(_PARTS):
        raise DataError(f"expected the arrays {', '.join(_PARTS)} in {file} (features at least), but got {came}")
    features = np.atleast_1d(found["features"])
    if features.dtype.kind != "f":
        raise DataError(f"expected floating features in {file}, but got {features.dtype}")
    count = len(features)
    for name in set(found) - {"features"}:
        if found[name].shape != (count,):
            raise DataError(f"expected {count} {name} in {file}, one for each feature, but got {found[name].shape}")
    times = found.get("times")
    return Features(
        torch.from_numpy(features.astype(np.float32)),
        tuple(map(str, found["records"] if "records" in found else range(count))),
        tuple(map(str, found["persons"])) if "persons" in found else None,
        tuple(str(camera) or None for camera in found["cameras"]) if "cameras" in found else None,
        None if times is None else tuple(_time(time) for time in times.tolist()),
    )


def _time(time: Any) -> Time | None:
    return None if time == "" or time != time else time


def checked_cameras(cameras: Sequence[str | None] | None, count: int) -> list[str | None]:
    """A camera for each of `count` records, or None."""
    if cameras is None:
        return [None] * count
    _check_length("camera", cameras, count)
    for row, camera in enumerate(cameras):
        if camera is None:
            continue
        if not isinstance(camera, str) or not camera.isprintable() or not 0 < len(camera.encode()) <= LONGEST_CAMERA:
            raise DataError(
                f"expected a camera's name of up to {LONGEST_CAMERA} printable bytes, but row {row} has another"
            )
    return list(cameras)


def checked_times(times: Sequence[Time | None] | None, count: int) -> list[int | None]:
    """The time of each of `count` records in ms since 1970, or None."""
    if times is None:
        return [None] * count
    _check_length("time", times, count)
    return [None if time is None else milliseconds(time) for time in times]


def checked_names(
    what: str, names: Sequence[str | None], count: int, *, unknown: bool = False
) -> Sequence[str | None]:
    """Names of `count` records or persons: any text but none at all, unless they may be `unknown`."""
    _check_length(what, names, count)
    for row, name in enumerate(names):
        if not (isinstance(name, str) and name) and not (unknown and name is None):
            raise DataError(f"expected the name of a {what} as text in each row, but row {row} has none")
    return names


def _check_length(what: str, values: Sequence[Any], count: int) -> None:
    if isinstance(values, str) or len(values) != count:
        raise DataError(f"expected one {what} for each of {count} features, but got {len(values)}")
