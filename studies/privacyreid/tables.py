"""The tables of PrivacyReID's study as Markdown, from its cells."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

from studies.privacyreid.feature_distribution import draw_distributions
from studies.privacyreid.plan import (
    BASE,
    KIND,
    LEARNED,
    STAGES,
    STRANGER,
    WITH,
    WITHOUT,
    PrivacyReidStudyConfig,
    scale,
)
from studies.shared.measures import SETTINGS
from studies.shared.tables import (
    Row,
    attacks_table,
    differences,
    invalid_reasons,
    markdown,
    pair,
    percent,
    remark,
    with_interval,
)
from veilkit.attacks.learned.recovery import Recovery
from veilkit.attacks.own_original import OwnOriginal
from veilkit.attacks.stolen_decoder import StolenDecoder
from veilkit.media.writing import write_atomically
from veilkit.methods.privacyreid.config import Kind
from veilkit.methods.privacyreid.supervision import decision_figure

NAMES = {
    BASE: "base (desensitised)", WITHOUT: "ours, without upgradation", WITH: "ours, with upgradation",
    STRANGER: "stranger, of desensitised pictures",
}  # fmt: skip
_CROSSED = ("protected-protected", "raw-protected", "protected-raw", "raw-raw")
_GOT = ("PSNR, dB", "SSIM", "very original", "person")
_INFORMED = {
    "stock_recogniser": "the release",
    "linkage": "the release, and raw pictures of the people",
    "own_original": "the release, and the originals among others",
    "recovery": "pictures of their own, anonymised (pairs)",
    "retrained": "people of their own, anonymised, to train a recogniser on",
    "stolen_decoder": "the secret decoder",
}


def stranger_table(releases: Mapping[str, Row]) -> str:
    """Table 1: an independent recogniser on protected pictures, raw beside it."""
    first = next(iter(releases.values()))["judge"]["settings"]["raw-raw"]
    rows = [("raw", pair(first), "", "")]
    for name, cell in releases.items():
        settings = cell["judge"]["settings"]
        share = settings["protected-protected"]["rank-1"][0] / max(settings["raw-raw"]["rank-1"][0], 1e-9)
        rows.append(
            (NAMES[name], pair(settings["protected-protected"]), pair(settings["protected-raw"]), f"{share:.2f}")
        )
    return markdown(
        ("pictures", "among themselves: Rank-1 / mAP", "in raw: Rank-1 / mAP", "share of raw Rank-1"), rows
    )


def likeness_table(releases: Mapping[str, Row], recovered: Mapping[str, Row]) -> str:
    """Privacy and Table 3: how near protected and recovered pictures are to the originals."""
    rows = []
    for name, cell in releases.items():
        back = recovered[name]["pictures"] if name in recovered else {}
        rows.append(
            (
                NAMES[name],
                *(with_interval(cell["pictures"][metric], digits) for metric, digits in (("PSNR", 2), ("SSIM", 3))),
                *(
                    with_interval(back[metric], digits) if back else ""
                    for metric, digits in (("PSNR", 2), ("SSIM", 3))
                ),
            )
        )
    return markdown(("pictures", "PSNR, dB", "SSIM", "recovered: PSNR, dB", "recovered: SSIM"), rows)


def recovered_table(recovered: Mapping[str, Row]) -> str:
    """Table 4: retrieval in recovered pictures, by the judge and by the recogniser trained with them."""
    rows = []
    for name, cell in recovered.items():
        for by, who in (("judge", f"stranger ({cell['judge']['recogniser']})"), ("own", "trained with it")):
            settings = cell[by]["settings"]
            rows.append((NAMES[name], who, pair(settings["raw-raw"]), pair(settings["protected-protected"])))
    return markdown(("training", "recogniser", "originals: Rank-1 / mAP", "recovered: Rank-1 / mAP"), rows)


def settings_table(releases: Mapping[str, Row]) -> str:
    """Table 5: four settings, each release by the recogniser trained with it."""
    head = ("training", *(f"{setting.replace('-', ' to ')}: Rank-1 / mAP" for setting in reversed(SETTINGS)))
    rows = [
        (NAMES[name], *(pair(cell["own"]["settings"][setting]) for setting in reversed(SETTINGS)))
        for name, cell in releases.items()
    ]
    return markdown(head, rows)


def order_table(order: Row) -> str:
    """Paired differences of Rank-1, in points."""
    rows = [
        (name, *(percent(found[setting]["rank-1"]) for setting in _CROSSED)) for name, found in order.items()
    ]  # fmt: skip
    return markdown(("difference of Rank-1", *(setting.replace("-", " to ") for setting in _CROSSED)), rows)


def checks_table(checks: Sequence[Row]) -> str:
    """The upgrade log: what each check found, what it was held to, and what followed."""
    rows = [
        (
            f"{check['epoch']}",
            f"{check['psnr']:.2f} (< {check['psnr_limit']:.2f})",
            f"{check['ssim']:.3f} (< {check['ssim_limit']:.3f})",
            f"{100 * check['rank1']:.1f}"
            + ("" if check["rank1_to_beat"] is None else f" (> {100 * check['rank1_to_beat']:.1f})"),
            f"{check['recovered_psnr']:.2f}",
            f"{check['recovered_ssim']:.3f}",
            check["action"],
            why(check),
            check["supervision"],
        )
        for check in checks
    ]
    head = ("epoch", "PSNR, dB", "SSIM", "Rank-1, raw in anonymised, %", "recovered: PSNR", "SSIM", "decision", "why")
    return markdown((*head, "supervision from then on"), rows)


def why(check: Row) -> str:
    """Why a check was decided as it was."""
    if check["action"] == "off":
        return "no upgradation"
    if not check["private"]:
        over = [name for name, key in (("PSNR", "psnr"), ("SSIM", "ssim")) if check[key] >= check[f"{key}_limit"]]
        return f"{' and '.join(over)} over the limit"
    better = check["rank1"] > check["rank1_to_beat"]
    return "private, and Rank-1 better than before" if better else "private, but Rank-1 no better than before"


def features_table(found: Mapping[str, Row]) -> str:
    """Figure 9 in numbers: mean cosine distances and Silhouettes."""
    rows = [
        (
            NAMES[name],
            f"{cell['own']:.3f}",
            *(f"{cell[kind][0]:.3f} / {cell[kind][1]:.3f}" for kind in ("raw", "protected", "crossed")),
            *(f"{cell['silhouette'][kind]:.3f}" for kind in ("raw", "protected")),
        )
        for name, cell in found.items()
    ]
    head = ("recogniser", "picture to its protected self")
    sides = tuple(f"{kind}: one person / different people" for kind in ("raw", "protected", "crossed"))
    return markdown((*head, *sides, "Silhouette, raw", "protected"), rows)


def informed_table(attacks: Mapping[str, Row], compared: Mapping[str, Row], recovered: Row | None) -> str:
    """What the owner of the decoder and attackers get, by what they hold; the plain desensitiser beside it.

    Likeness of recovered pictures, and how often the very original is found, and the person, in %. attacks: on the
    release with upgradation, compared: on the desensitised one, by the attacks' names. recovered: what the authorised
    decoder made.
    """
    rows = []
    if recovered is not None:
        pictures = recovered["pictures"]
        rows.append(
            ("the decoder, with authority", with_interval(pictures["PSNR"], 2), with_interval(pictures["SSIM"], 3),
             "", "", "", "")
        )  # fmt: skip
    for name, cell in attacks.items():
        holds = f"{_INFORMED.get(name, '')} (`{name}`, {cell['level']})"
        other = _in_one_line(name, compared[name]) if name in compared else ""
        rows.append((holds, *_gets(name, cell), other, remark(cell)))
    return markdown(("who holds", *_GOT, "of desensitised pictures", "remark"), rows)


def _in_one_line(name: str, cell: Row) -> str:
    """The same in one line."""
    got = (f"{what} {value}" for what, value in zip(_GOT, _gets(name, cell), strict=True) if value)
    return "; ".join(filter(None, [", ".join(got), remark(cell)]))


def _gets(name: str, cell: Row) -> tuple[str, str, str, str]:
    """What an attack got, as `_GOT` names it; nothing for what it does not try."""
    scores = cell["scores"]
    undoes = name in (Recovery.name, StolenDecoder.name)
    return (
        with_interval(scores["PSNR"], 2) if undoes and "PSNR" in scores else "",
        with_interval(scores["SSIM"], 3) if undoes and "SSIM" in scores else "",
        percent(scores.get("rank-1")) if undoes or name == OwnOriginal.name else "",
        percent(scores.get("person rank-1") if undoes or name == OwnOriginal.name else scores.get("rank-1")),
    )


def page_tables(cells: Mapping[str, Any], config: PrivacyReidStudyConfig) -> str:
    """What stands on PrivacyReID's page, as far as it is computed."""
    sections = [
        f"CUHK03-NP (detected, 128x64): {scale(config)}; seed {config.seed}, on a CPU. "
        "PNG files read back; rates in %, with 95 % intervals over people who were not trained on."
    ]
    releases, recovered = (cells_by_stage(cells, kind) for kind in ("release", "recovered"))
    if releases:
        sections += ["Table 5, each release searched by the recogniser trained with it:", settings_table(releases)]
    if order := cells.get(f"order/{KIND}"):
        sections += ["Paired differences on the same queries, in points:", order_table(order)]
    if releases:
        sections += ["Table 1, a stranger's OSNet, trained on MSMT17:", stranger_table(releases)]
        sections += ["Likeness to the originals, and Table 3:", likeness_table(releases, recovered)]
    if recovered:
        sections += ["Table 4, retrieval in recovered pictures:", recovered_table(recovered)]
    for stage in LEARNED:
        if checks := cells.get(f"training/{KIND}/{stage}"):
            sections += [
                f"The checks {stage} upgradation, on validation people of the training part:",
                checks_table(checks["checks"]),
            ]
    if features := cells_by_stage(cells, "features"):
        sections += ["Figure 9 in numbers, mean cosine distances:", features_table(features)]
    if attacks := attack_cells(cells, WITH, config):
        sections += ["Attacks on the release with upgradation:", attacks_table(attacks)]
    return "\n\n".join(sections)


def informed(cells: Mapping[str, Any], config: PrivacyReidStudyConfig) -> str:
    """What stands on the page about recovery: what everybody gets by what they hold."""
    attacks = attack_cells(cells, WITH, config)
    if not attacks:
        return "Not measured yet."
    recovered = cells.get(f"recovered/{KIND}/{WITH}")
    sections = [f"CUHK03-NP, {scale(config)}. Rates in %, with 95 % intervals over people."]
    sections.append(informed_table(attacks, attack_cells(cells, BASE, config), recovered))
    lock = cells.get(f"lock/{KIND}")
    if lock and not invalid_reasons({"recovery": attacks.get("recovery")}):
        sections += [differences(found, metric) for metric, found in lock.items()]
    return "\n\n".join(sections)


def cells_by_stage(cells: Mapping[str, Any], kind: str) -> dict[str, Any]:
    """The cells of one kind, by stage, in the study's order."""
    names = {stage: f"{kind}/{KIND}/{stage}" for stage in (STRANGER, *STAGES)}
    return {stage: cells[name] for stage, name in names.items() if name in cells}


def attack_cells(cells: Mapping[str, Any], stage: str, config: PrivacyReidStudyConfig) -> dict[str, Any]:
    """The attacks on the release of a stage, by their names."""
    names = {name: f"attack/{KIND}/{stage}/{name}" for name in config.attacks}
    return {name: cells[cell] for name, cell in names.items() if cell in cells}


def draw_figures(
    folder: Path, kind: Kind, checks: Mapping[str, Any], features: Mapping[str, Mapping[str, Any]]
) -> None:
    """The checks of each training by stage, and Figure 9, a to d, of the features of each recogniser."""
    for stage, decisions in checks.items():
        write_atomically(folder / f"checks-{kind}-{stage}.svg", decision_figure(decisions).encode(), folder)
    panels = {
        f"({letter}) {NAMES[name]}": cell for letter, (name, cell) in zip("abcd", features.items(), strict=True)
    }
    draw_distributions(folder / f"figure-9-{kind}.svg", f"Features, {kind} (paper: Figure 9)", panels)
