"""What a search is narrowed down to, in Milvus' language."""

from __future__ import annotations

import json
from collections.abc import Sequence

from veilkit.errors import ConfigError


def expression(*, cameras: Sequence[str] = (), since: int | None = None, until: int | None = None) -> str:
    """A filter: one of `cameras`, and times (milliseconds) from `since` on and before `until`; empty for all.

    Vectors without a camera or time are left out where one is asked for.

    >>> expression(cameras=["c1"], since=0, until=1000)
    'camera in ["c1"] and time >= 0 and time < 1000'
    """
    if since is not None and until is not None and since >= until:
        raise ConfigError(f"expected a time window that ends after it begins, but got {since} to {until} ms")
    parts = []
    if cameras:
        # JSON's escapes are Milvus' too: a quote in a camera's name ends nothing.
        parts.append(f"camera in {json.dumps(list(cameras), ensure_ascii=False)}")
    if since is not None:
        parts.append(f"time >= {since}")
    if until is not None:
        parts.append(f"time < {until}")
    return " and ".join(parts)
