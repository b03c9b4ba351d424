"""Text for people: counts, tables that print well in a terminal and in a notebook, safe cells of CSV files."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from html import escape

from veilkit.lookup import Lookup


def counted(count: int, one: str, many: str) -> str:
    """A number of things.

    >>> counted(1, "person", "people"), counted(2000, "person", "people")
    ('1 person', '2,000 people')
    """
    return f"{count:,} {one if count == 1 else many}"


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


class Table:
    """Rows by name. Printing shows them all; `table["name"]` is one row, by column.

    >>> Table("colour", ("name", "meaning"), [("red", "stop"), ("green", "go")])
    name   meaning
    red    stop
    green  go
    """

    def __init__(self, kind: str, columns: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
        self.columns = tuple(columns)
        self._rows = Lookup(kind, [(row[0], dict(zip(columns, row, strict=True))) for row in rows])

    def __getitem__(self, name: str) -> Mapping[str, str]:
        return self._rows[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._rows)

    def __len__(self) -> int:
        return len(self._rows)

    def __contains__(self, name: object) -> bool:
        return name in self._rows

    @property
    def rows(self) -> list[tuple[str, ...]]:
        """All rows, cell by cell."""
        return [tuple(row.values()) for row in self._rows.values()]

    def __repr__(self) -> str:
        rows = [self.columns, *self.rows]
        widths = [max(map(len, cells)) for cells in zip(*rows, strict=True)]
        lines = ["  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)) for row in rows]
        return "\n".join(line.rstrip() for line in lines)

    def _repr_html_(self) -> str:
        return html_table(self.columns, self.rows)


def html_table(columns: Sequence[str], rows: Sequence[Sequence[str]], *, caption: str = "") -> str:
    """An HTML table of plain text, all of it escaped.

    >>> html_table(["name"], [["<b>"]])
    '<table><thead><tr><th>name</th></tr></thead><tbody><tr><td>&lt;b&gt;</td></tr></tbody></table>'
    """
    head = "".join(f"<th>{escape(column)}</th>" for column in columns)
    body = "".join("<tr>" + "".join(f"<td>{escape(cell)}</td>" for cell in row) + "</tr>" for row in rows)
    titled = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{titled}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
