"""The audit's report in a real browser, offline: it says nothing on the console and asks the network for nothing."""

from __future__ import annotations

import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from claims import ROOT, record
from process import completed
from veilkit.synthetic.people import generate_people

COMMAND = "python benchmarks/report_browser.py"
SCREENSHOT = ROOT / "runs" / "report.png"
PEOPLE = {"identities": 40, "images": 4, "cameras": 2, "seed": 5}  # the second half, 20 people, is the test part
METHOD = "pixelate"


class NoBrowserError(Exception):
    """There is nothing here to open a page with."""


@dataclass(frozen=True, slots=True)
class Visit:
    """A page that was opened. said: console messages and errors. asked: addresses beside its own, data: excepted."""

    page: Any
    said: list[str]
    asked: list[str]


@contextmanager
def chromium() -> Iterator[Any]:
    """A headless Chromium; raises NoBrowserError with the reason where there is none."""
    program = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome"))), None)
    if program is None:
        raise NoBrowserError("no Chromium found (chromium, chromium-browser, google-chrome)")
    try:
        from playwright.sync_api import sync_playwright
    except ImportError:
        raise NoBrowserError("playwright is not installed") from None
    with sync_playwright() as running:
        browser = running.chromium.launch(executable_path=program, args=["--no-sandbox", "--disable-gpu"])
        try:
            yield browser
        finally:
            browser.close()


def visit(browser: Any, file: Path, **options: Any) -> Visit:
    """Open a file without a network. options: of the browser's context, such as viewport or color_scheme."""
    page = browser.new_context(offline=True, **options).new_page()
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("request", lambda request: asked.append(request.url))
    page.goto(file.as_uri(), wait_until="load")
    return Visit(page, said, [url for url in asked if url != file.as_uri() and not url.startswith("data:")])


class NoAxeError(Exception):
    """axe-core is not here."""


def axe_source() -> str:
    """The script of axe-core (npm), from VEILKIT_AXE or node_modules; raises NoAxeError where it is in neither."""
    named = os.environ.get("VEILKIT_AXE")
    file = Path(named) if named else ROOT / "node_modules" / "axe-core" / "axe.min.js"
    if not file.is_file():
        raise NoAxeError("axe-core is not here: npm install axe-core, or name its axe.min.js in VEILKIT_AXE")
    return file.read_text(encoding="utf-8")


def violations(page: Any, axe: str) -> list[str]:
    """What axe-core finds wrong with an open page: the rule, and where."""
    page.evaluate(axe)
    found = page.evaluate("axe.run().then(found => found.violations)")
    return [f"{each['id']}: {each['nodes'][0]['html'][:160]} {each['nodes'][0]['failureSummary']}" for each in found]


def write_report(work: Path) -> Path:
    """An audit of generated people as the command line makes it, originals shown."""
    generate_people(work / "people", workers=1, **PEOPLE)
    for words in (
        ("protect", work / "people", work / "release", "--method", METHOD, "--seed", "0", "--workers", "0"),
        ("audit", work / "people", work / "release", "--show-originals", "--budget", "none", "--out", work / "audit"),
    ):
        completed(*words, OMP_NUM_THREADS="1")
    return work / "audit" / "report.html"


def main() -> None:
    try:
        with chromium() as browser, tempfile.TemporaryDirectory() as folder:
            file = write_report(Path(folder))
            SCREENSHOT.parent.mkdir(exist_ok=True)
            seen = visit(browser, file, viewport={"width": 1100, "height": 1400})
            seen.page.screenshot(path=SCREENSHOT, full_page=True)
            dark = visit(browser, file, viewport={"width": 1100, "height": 1400}, color_scheme="dark")
            dark.page.screenshot(path=SCREENSHOT.with_name("report-dark.png"), full_page=True)
            dark.page.emulate_media(media="print")
            dark.page.screenshot(path=SCREENSHOT.with_name("report-print.png"), full_page=True)
            seen.said.extend(dark.said)
            seen.asked.extend(dark.asked)
            size = file.stat().st_size
    except NoBrowserError as error:
        print(f"nothing is recorded: {error}")
        return
    for what, lines in (("console", seen.said), ("asked for", seen.asked)):
        for line in lines:
            print(f"{what}: {line}")
    print(f"the report has {size / 1e6:.1f} MB; see {SCREENSHOT.relative_to(ROOT)}")
    record(
        id="report-offline",
        claim="The audit's report opened in Chromium without a network: console messages and requests",
        figure=len(seen.said) + len(seen.asked),
        bar="<= 0",
        unit="messages",
        data=f"generated people, method {METHOD}",
        scale=f"{PEOPLE['identities'] // 2} people, originals shown",
        seed=PEOPLE["seed"],
        command=COMMAND,
    )


if __name__ == "__main__":
    main()
