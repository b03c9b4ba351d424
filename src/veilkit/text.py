"""Words and numbers as people read them."""

from __future__ import annotations


def counted(count: int, one: str, many: str) -> str:
    """A number of things.

    >>> counted(1, "person", "people"), counted(2000, "person", "people")
    ('1 person', '2,000 people')
    """
    return f"{count:,} {one if count == 1 else many}"
