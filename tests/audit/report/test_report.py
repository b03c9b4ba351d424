"""The report as a document: its structure, its colours, and what it shows of whom."""

from __future__ import annotations

import html
import re
from dataclasses import replace
from importlib.resources import files
from pathlib import Path

import pytest
import torch

from tests.audit.folders import blur, changed, plain, same
from tests.audit.pages import check_page
from tests.audit.results import attacked, result_of
from veilkit.attacks.recovered import RecoveredPictures
from veilkit.audit import run_audit
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.subject import load_subject
from veilkit.audit.report.html import write_report
from veilkit.audit.report.model import report_of, risk_rows
from veilkit.audit.report.pictures import Recovered
from veilkit.audit.report.terminal import lines
from veilkit.audit.result import read_audit
from veilkit.audit.verdicts.levels import level_verdicts
from veilkit.audit.verdicts.verdict import Grade, Thresholds
from veilkit.audit.verdicts.wording import described
from veilkit.media.reading import Limits
from veilkit.types import Level

CSS = files("veilkit.audit.report").joinpath("templates/report.css").read_text()


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    root = tmp_path_factory.mktemp("report")
    originals = plain(root / "o", people=6)
    run_audit(originals, changed(originals, root / "p", blur), expert="histogram", judge="histogram")
    return root


def test_it_is_a_document_for_everybody(folder: Path) -> None:
    page = check_page((folder / "p.audit" / "report.html").read_text())
    assert len([svg for svg in page.all("svg") if svg.get("role") == "img"]) == 6  # plane, 2 CMC, ROC, 2 histograms
    assert len(page.all("img")) == 8


def test_the_markdown_holds_the_same(folder: Path) -> None:
    text = (folder / "p.audit" / "audit.md").read_text()
    page = (folder / "p.audit" / "report.html").read_text()
    for heading in ("In short", "Findings", "Privacy and utility", "Attack by attack", "How verdicts are made"):
        assert f"## {heading}" in text
        assert heading in page
    for row in re.findall(r"^\|.*\|$", text, re.M):
        assert row.count("|") - row.count("\\|") >= 3
    for block in re.split(r"\n\n", text):
        rows = [line for line in block.splitlines() if line.startswith("|")]
        assert len({len(re.findall(r"(?<!\\)\|", row)) for row in rows}) <= 1  # as many cells in each row
    assert str(folder) not in text


def test_all_three_outputs_say_what_the_model_says(folder: Path) -> None:
    result = read_audit(folder / "p.audit" / "audit.json")
    report = report_of(result)
    page = html.unescape((folder / "p.audit" / "report.html").read_text()).replace("\u00a0", " ")
    text, printed = (folder / "p.audit" / "audit.md").read_text(), "\n".join(lines(result))
    assert report.cautions  # judge and expert are one model here
    assert report.needed
    for said in (*(verdict.text for verdict in report.verdicts), report.needed):
        assert said in page
        assert said in text
        assert said in printed
    everywhere = (
        *(verdict.aside for verdict in report.verdicts), report.utility_text, *report.rests_on.values(),
        *report.cautions, *(row.finding.text for row in report.findings), *report.grades.values(), report.command,
        *(row.gates for row in report.made), *(row.evidence.why_missing for row in report.not_made),
    )  # fmt: skip
    assert [said for said in everywhere if said not in page] == []
    assert [said for said in everywhere if said not in text] == []
    assert [row for row in report.findings if not row.repeated and row.finding.text not in printed] == []


def test_recovered_pictures_are_shown_only_beside_originals(folder: Path) -> None:
    result = run_audit(folder / "o", folder / "p", expert="histogram", judge="histogram")
    picture = torch.zeros(2, 3, 8, 8, dtype=torch.uint8)
    with Cache(folder / "c" / "features.sqlite") as cache:
        subject = load_subject(
            folder / "o", folder / "p", key=None, seed=None, labels="auto", limits=Limits(), cache=cache
        )
        pages = [
            write_report(
                result,
                subject,
                show_originals=show,
                recovered=Recovered("recovery", RecoveredPictures(picture, picture, picture)),
            )
            for show in (False, True)
        ]
    assert 'alt="Recovered' not in pages[0]
    assert 'alt="Original' not in pages[0]
    assert "left out as well" not in pages[0]  # the attack was not made in this audit
    assert pages[1].count('alt="Recovered') == pages[1].count('alt="Original') == 2
    for page in pages:
        check_page(page)


def test_thresholds_of_a_file_are_used_and_told(folder: Path, tmp_path: Path) -> None:
    bars = tmp_path / "bars.toml"
    bars.write_text("serious = 0.001\nbroken = 0.002\n")
    release = changed(folder / "o", tmp_path / "q", same)
    result = run_audit(folder / "o", release, expert="histogram", judge="histogram", thresholds=bars)
    assert result.config["thresholds"] == {"serious": 0.001, "broken": 0.002, "ruled_out": 0.05}
    page = (tmp_path / "q.audit" / "report.html").read_text()
    assert "at least 0.2\u00a0% of the way from chance" in page
    assert "--thresholds THRESHOLDS" in page


def palettes() -> dict[str, dict[str, str]]:
    light, dark = (dict(re.findall(r"--([\w-]+): (#[0-9a-f]{3,6})", block)) for block in
                   re.findall(r":root \{(.*?)\}", CSS, re.S)[:2])  # fmt: skip
    return {"light": light, "dark": light | dark}


def luminance(colour: str) -> float:
    digits = colour[1:] if len(colour) == 7 else "".join(2 * digit for digit in colour[1:])
    parts = [int(digits[place : place + 2], 16) / 255 for place in (0, 2, 4)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    high, low = sorted((luminance(one), luminance(other)), reverse=True)
    return (high + 0.05) / (low + 0.05)


def test_contrast_is_computed_as_the_guidelines_say() -> None:
    assert contrast("#000", "#ffffff") == pytest.approx(21.0)
    assert contrast("#777777", "#fff") == pytest.approx(4.48, abs=0.01)


def test_lines_and_their_legend_differ_in_more_than_colour() -> None:
    for name in ("raw-raw", "raw-protected", "protected-raw"):
        assert re.search(rf"\.line\.{name} \{{ stroke-dasharray", CSS), name
    assert ".area.different { stroke-dasharray" in CSS
    patterns = dict(re.findall(r"\.legend \.([\w-]+)::before \{ background: (repeating-linear-gradient.*?); \}", CSS))
    assert set(patterns) == {"raw-raw", "raw-protected", "protected-raw", "different"}
    assert len(set(patterns.values())) == 4


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_text_and_lines_stand_out(scheme: str) -> None:
    colours = palettes()[scheme]
    texts = [(ink, ground) for ink in ("ink", "soft", "bad", "protected") for ground in ("paper", "card")]
    texts += [(name, f"{name}-soft") for name in ("privacy", "utility", "bad")]
    texts += [("soft", "track"), ("focus", "track")]
    for ink, ground in texts:
        assert contrast(colours[ink], colours[ground]) >= 4.5, (ink, ground)
    for line in ("raw", "mixed-a", "mixed-b", "protected", "utility", "privacy", "focus"):
        assert contrast(colours[line], colours["card"]) >= 3.0, line


def test_the_three_risks_are_told_by_their_worst_attacks() -> None:
    gates = {"gates": {"metric": "rank-1", "on originals": 0.9, "on noise": 0.01, "chance": 0.05}}
    found = attacked("own_original", Level.L0, 0.4, 0.3, 0.5)
    noted = replace(found, details={**found.details, **gates})
    linked = attacked("linkage", Level.L0, 0.9, 0.85, 0.95)
    result = result_of(noted, linked, attacked("stock_recogniser", Level.L0, 0.1, 0.0, 0.2))
    result = replace(result, verdicts=level_verdicts(result, Thresholds()))
    singling, linking, inferring = risk_rows(result)
    assert (singling.attack, singling.grade, singling.control) == ("own_original", Grade.SERIOUS, "1.0 %")
    assert (singling.figure, singling.naive) == ("rank-1 40.0 % (30.0–50.0)", "5.0 %")
    assert (linking.attack, linking.grade, linking.control) == ("linkage", Grade.BROKEN, "–")
    assert (inferring.attack, inferring.grade) == ("–", Grade.NOT_ATTACKED)


@pytest.mark.parametrize(
    ("attack", "risk"),
    [("own_original", "singling out"), ("discriminant", "linkability"), ("silhouette", "inference"),
     ("class_linkage", "linkability"), ("membership_set_person", "inference"), ("of others", "singling out")],
)  # fmt: skip
def test_each_attack_says_which_risk_it_shows(attack: str, risk: str) -> None:
    assert described(attack).risk() == risk
