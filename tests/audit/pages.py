"""What every page must be: readable by all, and alone in the world."""

from __future__ import annotations

from html.parser import HTMLParser

_VOID = {"meta", "link", "img", "br", "line", "rect", "circle", "path", "polyline", "input", "hr"}


class Page(HTMLParser):
    """Collects what a page is made of."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.headings: list[int] = []
        self.open: list[str] = []
        self.tables = self.captions = 0
        self.feed(text)
        self.close()

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))
        if tag not in _VOID:
            self.open.append(tag)
        if tag[0] == "h" and tag[1:].isdigit():
            self.headings.append(int(tag[1:]))
        self.tables += tag == "table"
        self.captions += tag == "caption"

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_endtag(self, tag: str) -> None:
        assert self.open, f"</{tag}> closes nothing"
        assert self.open.pop() == tag, f"</{tag}> closes something else"

    def all(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def check_page(text: str) -> Page:
    page = Page(text)
    assert page.open == []
    assert page.headings[0] == 1
    assert page.headings.count(1) == 1
    assert all(after <= before + 1 for before, after in zip(page.headings, page.headings[1:], strict=False))
    assert page.tables == page.captions > 0
    assert {"header", "main", "footer"} <= {tag for tag, _ in page.tags}
    assert not page.all("script")
    assert all(image.get("alt") for image in page.all("img"))
    figures = [svg for svg in page.all("svg") if svg.get("role") == "img"]
    assert all(svg.get("aria-hidden") == "true" for svg in page.all("svg") if svg.get("role") != "img")
    assert len(page.all("desc")) == len(figures)
    ids = [attributes["id"] for _, attributes in page.tags if "id" in attributes]
    assert len(ids) == len(set(ids))
    for _, attributes in page.tags:
        for name in ("aria-labelledby", "aria-describedby"):
            assert set((attributes.get(name) or "").split()) <= set(ids)
        for name in ("src", "href", "xlink:href", "srcset", "action", "poster"):
            address = attributes.get(name)
            assert address is None or address.startswith(("data:", "#")), address
    assert "url(" not in text
    assert "@import" not in text
    assert len(text.encode()) < 15_000_000
    for _, attributes in page.tags:  # what can be scrolled can be reached with the keyboard
        if attributes.get("class") in ("scroll", "strip"):
            assert attributes.get("tabindex") == "0"
            assert attributes.get("aria-label")
    for cell in page.all("th"):
        assert cell.get("scope") in ("col", "row", "rowgroup")
    return page
