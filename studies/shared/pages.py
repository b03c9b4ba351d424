"""Tables on pages: text between `<!-- NAME tables -->` and `<!-- /NAME tables -->`."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from pathlib import Path

from veilkit.errors import DestinationError


def render(tables: Mapping[str, str], pages: Iterable[Path], optional: Collection[str] = ()) -> list[Path]:
    """Put each table between its marks, on every page that has them; returns the pages that were written.

    Raises DestinationError for a table that has a place on none of them, unless it is optional.
    """
    texts = {page: page.read_text(encoding="utf-8") for page in dict.fromkeys(pages) if page.is_file()}
    before = dict(texts)
    for name, table in tables.items():
        places = [page for page, text in texts.items() if _marks(name)[0] in text]
        if not places and name not in optional:
            raise DestinationError(f"no page has a place for the table between {' and '.join(_marks(name))}")
        for page in places:
            texts[page] = placed(texts[page], name, table, page.name)
    changed = [page for page, text in texts.items() if text != before[page]]
    for page in changed:
        page.write_text(texts[page], encoding="utf-8")
    return changed


def placed(text: str, name: str, table: str, page: str = "the page") -> str:
    """`text` with `table` between the marks of `name`."""
    opening, closing = _marks(name)
    head, found, rest = text.partition(opening)
    _, closed, tail = rest.partition(closing)
    if not found or not closed:
        raise DestinationError(f"{page} has no place between {opening} and {closing}")
    return f"{head}{opening}\n{table}\n{closing}{tail}"


def _marks(name: str) -> tuple[str, str]:
    return f"<!-- {name} tables -->", f"<!-- /{name} tables -->"
