"""The rows of claims of Disguise's study."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from benchmarks.claims import reaches
from studies.disguise.plan import CONTROLS, JUDGE, ORIGINAL, RATES, DisguiseStudyConfig, rows_of
from studies.disguise.tables import by_release, name_of
from studies.disguise.utility import BETTER_HIGH, KINDS
from studies.shared.tables import claim_row, percents, with_interval

_LEAST = "lower end of its interval"
# Claims of an order, and how the pairs begin that each is of.
_ORDERS = {
    "transforms": (f"inverted TPR ved < mlp < opp: least sure difference, {_LEAST}", ("opp - mlp", "mlp - ved")),
    "noise": (f"more noise, less inversion of ved: from least to most noise, {_LEAST}", ("ved@",)),
    "noise-mlp": (f"more noise, less inversion of mlp: from least to most noise, {_LEAST}", ("mlp@",)),
}
# A word on why a claim falls short, where it does.
_WHY = {
    "inverted-noise-mlp": "its noise drowns its input at each of these scales, so that what is inverted are the "
    "face's other attributes, which noise on the identity does not touch",
    "kept-expression": "more than by each control, but over pixelation not surely so with as many people; in no "
    "pixelated face is a face seen, and the judge's commonest answer stands in",
}
UNITS = {"landmarks": "% of the eyes' distance", "gaze": "degrees", "expression": "points"}


def rows(cells: Mapping[str, Any], config: DisguiseStudyConfig) -> list[dict[str, Any]]:
    """The rows of claims that these cells allow; what rests on an invalid attack is not claimed."""
    return [
        *_recognised(cells, config),
        *_inverted(cells, config),
        *_kept(cells, config),
        *_taught(cells, config),
        *_guaranteed(cells),
    ]


def _recognised(cells: Mapping[str, Any], config: DisguiseStudyConfig) -> list[dict[str, Any]]:
    """TPR of the main release as multiples of the FPR, with everything beside it in the note."""
    verified = by_release(cells, "verified", rows_of(config))
    if not {config.main, ORIGINAL} <= set(verified):
        return []
    found = []
    for rate in RATES:
        key = f"{rate:g}"
        note = "; ".join(f"{name_of(name)} {percents(cell['TPR'][key], 2)}" for name, cell in verified.items())
        value = verified[config.main]["TPR"][key][0] / rate
        found.append(
            _row(f"tpr-{key}", f"TPR at FPR {key} by {JUDGE}, which took no part in training, as a multiple of the "
                 f"FPR ({config.main})", value, "<= 3", "x FPR", 3,
                 f"the judge had a say in the training (see the page); TPR in %: {note}")
        )  # fmt: skip
    key, far = f"{RATES[0]:g}", verified[config.main]["farthest"]
    found.append(
        _row("farthest", f"farthest match: pairs of one person less alike than all but {key} of strangers, as a "
             f"multiple of that share ({config.main})", far[key][0] / RATES[0], "<= 3", "x", 3,
             "; ".join(f"{name_of(name)} {percents(cell['farthest'][key], 2)} %" for name, cell in verified.items()))
    )  # fmt: skip
    return found


def _inverted(cells: Mapping[str, Any], config: DisguiseStudyConfig) -> list[dict[str, Any]]:
    """The order of transforms, and of noise, by the lower ends of paired differences."""
    order = cells.get(f"order/{JUDGE}")
    if not order:
        return []
    failed = _failed(cells, config)
    inverted = by_release(cells, "inverted", config.inverted)
    key = f"{RATES[0]:g}"
    beside = "; ".join(
        f"{name_of(name)} {percents(cell['scores'][f'TPR at FPR {key}'], 2)}"
        for name, cell in inverted.items()
        if f"TPR at FPR {key}" in cell["scores"]
    )
    found = []
    for name, (claim, chosen) in _ORDERS.items():
        there = {pair: order[pair][key] for pair in order if pair.startswith(chosen)}
        sides = {side for pair in there for side in pair.split(" - ")}
        if there and not any(_unsure(pair, order, failed) for pair in there):
            note = "; ".join(f"{pair} {percents(value, 2)}" for pair, value in there.items())
            weak = "".join(
                f" {each}: INVALID ({failed[each]}), so at least that much." for each in sorted(sides & set(failed))
            )
            worst = min(value[1] for value in there.values())
            found.append(
                _row(f"inverted-{name}", f"{claim}, at FPR {key}", 100 * worst, "> 0", "points", 2,
                     f"differences: {note}. Inverted TPR in %: {beside}.{weak}")
            )  # fmt: skip
    return found


def _kept(cells: Mapping[str, Any], config: DisguiseStudyConfig) -> list[dict[str, Any]]:
    """Utility against blur, pixelation and random replacement: the least sure advantage's lower end."""
    order, utility = cells.get("utility order"), by_release(cells, "utility", rows_of(config), judge=None)
    if not order or config.main not in utility:
        return []
    found = []
    for kind in KINDS:
        there = {name: order[kind].get(f"{config.main} - {name}") for name in CONTROLS}
        if None in there.values() or not there:
            continue
        factor = 100 if kind == "expression" else 1
        better = 1 if kind in BETTER_HIGH else -1
        worst = min(factor * min(better * value[1], better * value[2]) for value in there.values())
        beside = "; ".join(
            f"{name_of(name)} {with_interval([factor * part for part in cell[kind]['mean']], 2)}"
            for name, cell in utility.items()
            if "mean" in cell[kind]
        )
        found.append(
            _row(f"kept-{kind}", f"{kind} kept better than by blur, pixelation and random replacement: the least "
                 f"sure advantage, lower end of its interval, by {utility[config.main][kind]['judge']}", worst, "> 0",
                 UNITS[kind], 3, beside)
        )  # fmt: skip
    return found


def _taught(cells: Mapping[str, Any], config: DisguiseStudyConfig) -> list[dict[str, Any]]:
    """A landmark network of disguised faces against those of originals and of blurred faces."""
    taught = {name: cells.get(f"landmarks/{name}", {}) for name in (ORIGINAL, config.main, "blur")}
    if not all("mean" in cell for cell in taught.values()) or _untaught(cells):
        return []
    note = "; ".join(f"{name_of(name)} {with_interval(cell['mean'], 2)} %" for name, cell in taught.items())
    truth = f"the truth are landmarks of {taught[config.main]['truth']} on the originals; {note}"
    return [
        _row("taught-original", "a landmark network trained on disguised faces alone: error as a multiple of that of "
             "one trained on originals", taught[config.main]["ratio"][0], "<= 1.35", "x", 3,
             f"{with_interval(taught[config.main]['ratio'], 2)}; {truth}"),
        _row("taught-blur", "the same as a share of the error of one trained on blurred faces",
             taught[config.main]["mean"][0] / taught["blur"]["mean"][0], "< 1", "x", 3, truth),
    ]  # fmt: skip


def _guaranteed(cells: Mapping[str, Any]) -> list[dict[str, Any]]:
    """Whether the paper's calibration is called no guarantee, and the sound channel's three numbers agree."""
    found = cells.get("guarantee")
    if not found:
        return []
    paper, sound = found["paper"], found["privunit"]
    plain = "no formal guarantee" in paper["text"] and paper["epsilon proved"] is None
    return [
        _row("paper-guarantee", "the paper's calibration prints no formal guarantee, and nothing proved", int(plain),
             "== 1", "", 0, paper["text"]),
        _row("sound-guarantee", "the sound channel's measured epsilon, as a share of what is proved",
             sound["epsilon measured"] / sound["epsilon proved"], "<= 1", "of proved", 3,
             f"claimed {sound['epsilon claimed']:g}, proved {sound['epsilon proved']:g}, measured at least "
             f"{sound['epsilon measured']:.2f} in {sound['draws']} draws"),
    ]  # fmt: skip


def withheld(cells: Mapping[str, Any], config: DisguiseStudyConfig) -> list[str]:
    """Why rows are missing although their cells are there: attacks that failed their gates prove nothing.

    What an invalid attack found is a leak all the same, and could only be more. So an order holds where the attack on
    its greater side is invalid; where that on its lesser side is, it can fail but not hold.
    """
    order, failed = cells.get(f"order/{JUDGE}", {}), _failed(cells, config)
    less = dict.fromkeys(_less(pair) for pair in order if _unsure(pair, order, failed))
    reasons = [f"inverted/{name}/{JUDGE} is INVALID: {failed[name]}" for name in less]
    if _untaught(cells):
        reasons.append("a landmark network of originals does no better than their mean face: it has learned nothing")
    return reasons


def _untaught(cells: Mapping[str, Any]) -> bool:
    """Whether even originals teach a landmark network nothing; then others have nothing to be compared with."""
    original = cells.get(f"landmarks/{ORIGINAL}", {})
    return "mean" in original and original["mean"][2] >= original["mean face"]


def _failed(cells: Mapping[str, Any], config: DisguiseStudyConfig) -> dict[str, str]:
    """Releases whose inversion failed its gates, and why."""
    found = by_release(cells, "inverted", config.inverted)
    reasons = {name: "; ".join(filter(None, (*cell["invalid"], cell["reason"]))) for name, cell in found.items()}
    return {name: why for name, why in reasons.items() if why}


def _unsure(pair: str, order: Mapping[str, Any], failed: Mapping[str, str]) -> bool:
    """Whether an order seems to hold only because an attack may have learned too little."""
    return _less(pair) in failed and order[pair][f"{RATES[0]:g}"][1] > 0


def _less(pair: str) -> str:
    """The release of which less should be found."""
    return pair.split(" - ")[1]


def _row(name: str, claim: str, figure: float, bar: str, unit: str, digits: int, note: str) -> dict[str, Any]:
    if name in _WHY and not reaches(figure, bar):
        note = f"Falls short: {_WHY[name]}. {note}"
    return claim_row(f"disguise-{name}", f"Disguise: {claim}", figure, bar, unit, digits, note)
