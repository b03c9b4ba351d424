"""The rows of claims of PEPR-Net's study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from studies.peprnet.plan import ALTERNATING, BASELINE, STAGE1, STRONG, PeprStudyConfig
from studies.shared.tables import claim_row, invalid_reasons, named_cells, percents
from veilkit.attacks.identify import CLASSIFIERS

FORMS = {STAGE1: "the paper's form", ALTERNATING: "the alternating form", STRONG: "the alternating form at weight 1"}
# Why identification stays, by the losses of the trainings.
REASONS = {
    STAGE1: "a head that is only driven to uniform never learns anybody, so that there is nothing to hide from it",
    ALTERNATING: "its weight is too small to be felt beside the Re-ID loss",
    STRONG: "the head is misled, but matching keeps a person's features together, which is enough to identify",
}
EPSILON, DIMENSION, TIMES = "16", 512, 5.0
SEARCHES = {"person": "the person, by another picture,", "record": "the very picture"}


def rows(cells: Mapping[str, Any], config: PeprStudyConfig) -> list[dict[str, Any]]:
    """The rows of claims that these cells allow; what rests on an invalid attack is not claimed."""
    found: list[dict[str, Any]] = []
    for name, words in FORMS.items():
        changed = cells.get(f"change/{name}")
        if changed and not _invalid(cells, name):
            found += _stage1(name, words, changed, cells)
    found += _noise(cells, config)
    return found


def _stage1(name: str, words: str, changed: Mapping[str, Any], cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The paper's claim is a large drop of identification for a small one of mAP: half as much of it is asked for.

    Of CUHK03-NP it reports 26.1 points of identification for 6.3 of mAP.
    """
    values = [f"mAP {percents(changed['mAP'])}, Rank-1 {percents(changed['rank-1'])}"]
    values += [f"{each} {percents(changed[each])}" for each in CLASSIFIERS]
    models = {each: cells.get(f"model/{each}") for each in (BASELINE, name)}
    values += [
        f"{each}: mAP {percents(cell['utility']['mAP'])} %, "
        + ", ".join(f"{by} {percents(cell['identification']['scores'][f'accuracy ({by})'])} %" for by in CLASSIFIERS)
        for each, cell in models.items() if cell
    ]  # fmt: skip
    note = f"{REASONS[name]}; change in points, paired, identities drawn: " + "; ".join(values)
    least = min(CLASSIFIERS, key=lambda by: -changed[by][0])
    return [
        _row(f"{name}-identification",
             f"Stage 1 in {words}: identification it takes away, by the classifier that loses least ({least})",
             -100 * changed[least][0], ">= 13", "points", 1, note),
        _row(f"{name}-map", f"Stage 1 in {words}: mAP that it costs", -100 * changed["mAP"][0], "<= 6.3", "points", 1,
             f"paired interval {percents([-part for part in _flipped(changed['mAP'])])}"),
    ]  # fmt: skip


def _noise(cells: Mapping[str, Any], config: PeprStudyConfig) -> list[dict[str, Any]]:
    found = []
    for dimension in config.dimensions:
        curves = named_cells(cells, f"curve/{dimension}", ("privunit", "gaussian"))
        points = {kind: curve[EPSILON] for kind, curve in curves.items() if curve.get(EPSILON)}
        if len(points) < 2:
            continue
        about = curves["privunit"]
        for by, words in SEARCHES.items():
            best, other = points["privunit"][by], points["gaussian"][by]
            found.append(
                _row(f"noise-{dimension}-{by}",
                     f"Rank-1 of {words} at epsilon {EPSILON}, {dimension} features: PrivUnit's over Gaussian's",
                     min(best / max(other, 1e-9), 9999.0), f">= {TIMES:g}" if dimension == DIMENSION else ">= 1", "x",
                     1,
                     f"PrivUnit {100 * best:.2f} %, Gaussian {100 * other:.2f} % (delta {config.delta:g}), without "
                     f"noise {100 * about['clean'][by]:.1f} %, chance {100 / about['people']:.2f} %; "
                     f"{about['people']} people, one noisy picture each, {config.draws} releases")
            )  # fmt: skip
    return found


def withheld(cells: Mapping[str, Any]) -> list[str]:
    """Why rows are missing although their cells are there: attacks that failed their gates prove nothing."""
    return list(dict.fromkeys(
        reason for name in FORMS if f"change/{name}" in cells for reason in _invalid(cells, name)
    ))  # fmt: skip


def _invalid(cells: Mapping[str, Any], name: str) -> list[str]:
    found = {each: cells.get(f"model/{each}") for each in (BASELINE, name)}
    return invalid_reasons(
        {f"identification of {each}": cell["identification"] for each, cell in found.items() if cell}
    )


def _row(name: str, claim: str, figure: float, bar: str, unit: str, digits: int, note: str) -> dict[str, Any]:
    return claim_row(f"pepr-{name}", f"PEPR-Net: {claim}", figure, bar, unit, digits, note)


def _flipped(value: Sequence[float]) -> list[float]:
    return [value[0], value[2], value[1]]
