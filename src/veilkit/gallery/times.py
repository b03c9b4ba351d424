"""Times as a gallery keeps them: whole milliseconds since 1970 in UTC."""

from __future__ import annotations

import datetime
import math
from typing import TypeAlias

from veilkit.errors import DataError

Time: TypeAlias = str | int | float | datetime.datetime
_LONGEST = 253_402_300_800_000  # the year 10000, where calendars of most programs end


def milliseconds(time: Time) -> int:
    """A time as ISO 8601 text, seconds since 1970 (a number, or its text) or a datetime; UTC where no zone is told.

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
