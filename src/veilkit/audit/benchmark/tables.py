"""The table of a benchmark as Markdown, CSV and LaTeX: a row for each method, a column for each level."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from veilkit.audit.report.markdown import table
from veilkit.audit.report.model import faces_kept, utility
from veilkit.audit.report.terminal import as_json
from veilkit.audit.result import AuditResult
from veilkit.audit.verdicts.verdict import LevelVerdict
from veilkit.audit.verdicts.wording import percent, shown, span
from veilkit.display import safe_cell
from veilkit.types import Level

HEAD = ("method", "kept", *Level)
_COLUMNS = ("method", "level", "grade", "attack", "metric", "found", "low", "high", "chance", "at least", "kept",
            "kept low", "kept high", "kept among originals")  # fmt: skip
_TOLD = ("pictures", "people", "expert", "judge", "faces", "surroundings", "levels", "alarms", "not measured")
_WIDE = r"p{0.16\linewidth}"
_LATEX = {"\\": r"\textbackslash{}", "~": r"\textasciitilde{}", "^": r"\textasciicircum{}", "–": "--", "≥": r"$\geq$",
          **{letter: f"\\{letter}" for letter in "&%_#${}"}}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Row:
    """A method of a benchmark. label: as it was asked for. audit: the name of its folder. report: where it lies."""

    label: str
    method: str
    audit: str
    result: AuditResult
    report: str

    @property
    def kept(self) -> str:
        """What is kept of use, with its interval and what the originals allow."""
        use, faces = utility(self.result), "; ".join(faces_kept(self.result))
        if use is None:
            return faces or "not measured"
        of = "" if use.originals is None else f" of {percent(use.originals.value)}"
        ends = f" ({span(use.score)})" if span(use.score) else ""
        return f"{shown(use.score)}{ends}{of}{f'; {faces}' if faces else ''}"

    def values(self, model_sha256: str | None) -> dict[str, Any]:
        """For results.json."""
        release = self.result.release or {}
        told = as_json(self.result)
        use = utility(self.result)
        return {
            "asked for": self.label,
            "method": self.method,
            "config": release.get("config"),
            "model_sha256": model_sha256,
            "protected_sha256": self.result.protected.sha256,
            "kept": None if use is None else {"value": use.score.value, "low": use.score.low, "high": use.score.high,
                                              "originals": use.originals and use.originals.value},
            **{name: told[name] for name in _TOLD},
            "report": self.report,
        }  # fmt: skip


def found(verdict: LevelVerdict) -> str:
    """What the worst attack of a level found, beside what blind guessing finds; empty where nothing is graded."""
    if (worst := verdict.worst) is None:
        return ""
    rate = worst.decisive
    ends = "" if rate.low is None or rate.high is None else f" ({100 * rate.low:.1f}–{100 * rate.high:.1f})"
    chance = "" if rate.chance is None else f", chance {percent(rate.chance)}"
    return f"{'≥ ' if worst.invalid else ''}{percent(rate.value)}{ends}{chance}"


def cells(row: Row) -> tuple[str, ...]:
    """A row in words."""
    levels = (f"{each.grade}{f': {found(each)}' if found(each) else ''}" for each in row.result.verdicts)
    return (row.label, row.kept, *levels)


def as_markdown(rows: Sequence[Row], values: Mapping[str, Any]) -> str:
    """table.md, with what must be known of it."""
    lines = ["# Methods compared", "", *table(HEAD, map(cells, rows)), about(values), ""]
    lines += [f"- {note}" for note in values["notes"]]
    lines += [f"- {name} was not audited: {why}" for name, why in values["not audited"].items()]
    return "\n".join(lines).rstrip() + "\n"


def about(values: Mapping[str, Any]) -> str:
    """How to cite the figures, in a sentence."""
    data, versions = values["data"], ", ".join(f"{name} {text}" for name, text in values["versions"].items())
    people = "" if data["people"] is None else f" of {data['people']} people"
    return (
        f"Kept: how often the expert {values['expert']['name']} finds the right person among protected ones. Found: "
        f"the worst attack of a level by the judge {values['judge']['name']}, 95 % interval, beside blind guessing. "
        f"{data['pictures']} pictures{people} ({data['name']}, SHA-256 {data['sha256'][:16]}), seed "
        f"{values['settings']['seed']}, budget {values['settings']['budget']}; veilkit {values['veilkit']}, "
        f"{versions}; {values['date']}."
    )


def as_csv(rows: Sequence[Row]) -> str:
    """table.csv: a line for each method and level, numbers as they are."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(_COLUMNS)
    writer.writerows(_lines(rows))
    return text.getvalue()


def _lines(rows: Sequence[Row]) -> Iterator[list[Any]]:
    for row in rows:
        use = utility(row.result)
        kept = [None] * 4 if use is None else [use.score.value, use.score.low, use.score.high,
                                               use.originals and use.originals.value]  # fmt: skip
        for each in row.result.verdicts:
            worst = each.worst
            what: list[Any] = [None] * 7
            if worst is not None:
                rate = worst.decisive
                what = [worst.attack, rate.metric, rate.value, rate.low, rate.high, rate.chance, bool(worst.invalid)]
            yield [safe_cell(row.label), str(each.level), str(each.grade), *what, *kept]


def as_latex(rows: Sequence[Row], values: Mapping[str, Any]) -> str:
    r"""table.tex: a table for \input, which needs no package."""
    body = [r" & ".join(map(_latex, each)) + r" \\" for each in (HEAD, *map(cells, rows))]
    return "\n".join([
        r"\begin{table}", rf"\begin{{tabular}}{{l{_WIDE * (len(HEAD) - 1)}}}", r"\hline", body[0], r"\hline",
        *body[1:], r"\hline", r"\end{tabular}", rf"\caption{{{_latex(about(values))}}}", r"\end{table}", "",
    ])  # fmt: skip


def _latex(text: str) -> str:
    return "".join(_LATEX.get(letter, letter) for letter in text)
