"""Cells of CSV files that people open in a spreadsheet, which must not take a name for a formula."""

from __future__ import annotations

_FORMULA = frozenset("=+-@\uff1d\uff0b\uff0d\uff20")  # also full-width, which some spreadsheets take as well
_CONTROL = frozenset("\t\r\n")
_MARK = "'"


def safe_cell(text: str) -> str:
    """`text`, with an apostrophe before it where a spreadsheet could take it for a formula.

    An apostrophe of its own is doubled, so that `cell_text` always gives the text back.

    >>> [safe_cell(text) for text in ("=HYPERLINK(1)", "a=b.jpg", "'quoted'", " @x")]
    ["'=HYPERLINK(1)", 'a=b.jpg', "''quoted'", "' @x"]
    """
    risky = text[:1] in _CONTROL or text[:1] == _MARK or text.lstrip()[:1] in _FORMULA
    return _MARK + text if risky else text


def cell_text(cell: str) -> str:
    """The text that `safe_cell` made a cell of."""
    return cell.removeprefix(_MARK)
