"""Hooks of `make docs`: the site has the repository's pages under the paths that they have there.

So one and the same link works on a code host and on the site. A file of another kind that a page links to, such as a
module, becomes a page that shows it. A built page that would load anything from the network is an error.
"""

from __future__ import annotations

import posixpath
import re
from pathlib import Path

from mkdocs.config.defaults import MkDocsConfig
from mkdocs.exceptions import PluginError
from mkdocs.structure.files import File, Files, InclusionLevel
from mkdocs.structure.nav import Navigation
from mkdocs.structure.pages import Page

ROOT = Path(__file__).resolve().parent.parent
PAGES = ("*.md", "docs/**/*.md", "studies/*/README.md", "models/*.md")
PICTURES = (".png", ".jpg", ".svg")
_LINK = re.compile(r"(\]\()((?!https?:|#)[^)#\s]+)((?:#[^)]*)?\))")
_LOADED = re.compile(r"<(?:script|img|iframe|source)[^>]*\ssrc=\"?(?:https?:)?//|<link[^>]*rel=\"?"
                     r"(?:stylesheet|preconnect|icon|preload)[^>]*href=\"?(?:https?:)?//", re.I)  # fmt: skip


def on_files(files: Files, config: MkDocsConfig) -> Files:
    """The repository's pages, the pictures that they show and the other files that they link to."""
    found = [file for file in files if not file.src_uri.endswith((".md", ".py")) and file.src_dir != config.docs_dir]
    pages = sorted({path for pattern in PAGES for path in ROOT.glob(pattern)})
    linked = sorted({target for page in pages for target in _linked(page)} - set(pages))
    shown_as_they_are = [*pages, *(path for path in linked if path.suffix in PICTURES)]
    found += [File(_uri(path), str(ROOT), config.site_dir, config.use_directory_urls) for path in shown_as_they_are]
    for path in linked:
        if path.suffix not in PICTURES:
            shown = File.generated(config, _uri(path) + ".md", content=_listing(path))
            shown.inclusion = InclusionLevel.NOT_IN_NAV
            found.append(shown)
    return Files(found)


def on_page_markdown(markdown: str, page: Page, config: MkDocsConfig, files: Files) -> str:
    """Links to files that are no pages lead to the pages that show them."""
    folder = posixpath.dirname(page.file.src_uri)

    def shown(link: re.Match[str]) -> str:
        target = posixpath.normpath(posixpath.join(folder, link[2]))
        known = files.get_file_from_path(target) is None and files.get_file_from_path(target + ".md") is not None
        return f"{link[1]}{link[2].rstrip('/')}.md{link[3]}" if known else link[0]

    return _LINK.sub(shown, markdown)


def on_post_page(output: str, page: Page, config: MkDocsConfig) -> str:
    """Nothing is loaded from elsewhere."""
    if loaded := _LOADED.search(output):
        raise PluginError(f"{page.file.src_uri} would load something from the network: {loaded[0]}")
    return output


def on_nav(nav: Navigation, config: MkDocsConfig, files: Files) -> None:
    """The front page is the repository's own."""
    if nav.homepage is None or nav.homepage.file.src_uri != "README.md":
        raise PluginError("the first page of mkdocs.yml's nav must be README.md")


def _linked(page: Path) -> set[Path]:
    """Files of the repository that a page links to or shows."""
    targets = ((page.parent / link[2]).resolve() for link in _LINK.finditer(page.read_text(encoding="utf-8")))
    return {target for target in targets if target.exists() and target.is_relative_to(ROOT)}


def _uri(path: Path) -> str:
    return path.relative_to(ROOT).as_posix()


def _listing(path: Path) -> str:
    """A page that shows a file, or the names in a folder."""
    name = _uri(path)
    if path.is_dir():
        names = sorted(
            each.name + "/" * each.is_dir() for each in path.iterdir() if not each.name.startswith(("_", "."))
        )
        return f"# {name}\n\n" + "\n".join(f"- `{each}`" for each in names) + "\n"
    kind = {".py": "python", ".json": "json", ".toml": "toml", ".html": "html"}.get(path.suffix, "text")
    fence = "````"
    return f"# {name}\n\n{fence}{kind}\n{path.read_text(encoding='utf-8')}\n{fence}\n"
