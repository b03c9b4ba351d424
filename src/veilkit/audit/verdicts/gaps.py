"""What an audit could not measure, and why: stated as plainly as what it could."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from pathlib import Path

from veilkit.attacks import UNPAIRED_ATTACKS, UnpairedNeed
from veilkit.audit.cells.images import TO_ORIGINAL
from veilkit.audit.cells.prepared import LEFT_OUT, SYNTHETIC
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.inputs.synthetic_subject import UnpairedSubject
from veilkit.audit.result import SAME_CLASS, Measurement, Unmeasured
from veilkit.audit.verdicts.remedies import wants_budget
from veilkit.datasets.folder import load_folder
from veilkit.display import counted
from veilkit.errors import DataError
from veilkit.media.reading import sha256
from veilkit.pipeline.manifest import SUMS, read_listing
from veilkit.types import Evidence, ReasonCode

_OPTIONS = {
    UnpairedNeed.UNSEEN: "--unseen",
    UnpairedNeed.HELD_OUT: "--held-out",
    UnpairedNeed.NON_MEMBERS: "--unseen or --held-out",
    UnpairedNeed.STUDENT: "--student",
}
_TOO_SMALL = "every picture is smaller than its window of 11 x 11 pixels"


def unmeasured(
    subject: Subject,
    unpaired: UnpairedSubject | None,
    images: tuple[Measurement, ...],
    attacks: tuple[Evidence, ...],
    no_budget: str = "",
) -> Iterator[Unmeasured]:
    """Everything that is missing. no_budget: why attackers who learn were left out although a budget was given."""
    if subject.search is None:
        yield Unmeasured("recognition of people in four settings", subject.no_search)
    if subject.originals is None and unpaired is None:
        why = "it is not known which original belongs to which protected picture"
        yield Unmeasured("recognition with raw queries or a raw gallery", why)
        yield Unmeasured("similarity to the originals", why)
    missing = [each for each in attacks if not each.applicable and not _not_asked(each)]
    if left := sum(map(_not_asked, attacks)):
        yield Unmeasured(counted(left, "other attack", "other attacks"), LEFT_OUT.text)
    measured = {(each.setting, each.score.metric) for each in images}
    for metric, why in (("PSNR", "every protected picture equals its original"), ("SSIM", _TOO_SMALL)):
        if subject.originals is not None and (TO_ORIGINAL, metric) not in measured:
            yield Unmeasured(metric, why)
    if ("protected", "AD") not in measured:
        yield Unmeasured("chaos (AD)", "every protected picture has one single colour value")
    if unpaired is not None:
        yield from _unpaired(unpaired, (SAME_CLASS, "SSIM") in measured, missing)
        return
    learners = [each.attack for each in missing if wants_budget(each.attack, each.missing)]
    for each in missing:
        if each.attack not in learners:
            yield Unmeasured(f"attack {each.attack}", each.why_missing)
    if learners:
        yield Unmeasured(
            f"attackers who learn from the protection or hold the expert ({', '.join(learners)})",
            no_budget
            or "they take minutes to hours, and none were asked for; give them a number of updates (--learn), or the "
            "audit a time (--budget)",
        )


def _not_asked(evidence: Evidence) -> bool:
    """Whether an attack was left out because others were asked for."""
    return any(reason.code is ReasonCode.NOT_ASKED for reason in evidence.missing)


def _unpaired(subject: UnpairedSubject, similarity: bool, missing: list[Evidence]) -> Iterator[Unmeasured]:
    """Attacks on a synthetic release that were not made, those of one reason together, and what else is missing."""
    by_reason: dict[str, list[str]] = {}
    for evidence in missing:
        by_reason.setdefault(evidence.why_missing + _hint(subject, evidence.attack), []).append(evidence.attack)
    for reason, names in by_reason.items():
        yield Unmeasured(f"attack{'s' if len(names) > 1 else ''} {', '.join(names)}", reason)
    if not similarity:
        yield Unmeasured("SSIM to originals of the same class", subject.why or _TOO_SMALL)
    pairs = "recognition with raw queries or a raw gallery, and similarity to a picture's original"
    yield Unmeasured(pairs, SYNTHETIC.text)
    use = "that is what a student learns of them: `veilkit train student`"
    yield Unmeasured("what the pictures are good for", use)
    holders = "attackers who hold the classifier that the pictures were made with (L3)"
    yield Unmeasured(holders, "it is never released")


def _hint(subject: UnpairedSubject, attack: str) -> str:
    """The options that would make up for what an attack lacks."""
    target = subject.target
    if target is None or attack not in UNPAIRED_ATTACKS:
        return ""
    needs = UNPAIRED_ATTACKS[attack].needs
    give = [option for need, option in _OPTIONS.items() if need in needs and target.lacks(need)]
    return f" (see {', '.join(give)})" if give else ""


def check_manifest(release: Path, subject: Subject) -> Iterator[Unmeasured]:
    """What the manifest and SHA256SUMS do not agree in with the files; nothing where they do or there is none.

    The pictures are measured as they are found. That the method which the manifest names made them is then not known.
    """
    manifest, sums = subject.manifest, release / SUMS
    if manifest is None:
        return
    wrong = []
    try:
        if not sums.is_file():
            wrong.append(f"there is no {SUMS}")
        elif sha256(sums.read_bytes()) != manifest.sums_sha256:
            wrong.append(f"{SUMS} is not the one that it was made with")
        else:
            wrong += _differences(release, subject, read_listing(release, manifest.names))
    except DataError:
        wrong.append(f"{SUMS} is not one that a release can have")
    except OSError as error:
        wrong.append(f"{SUMS} cannot be read ({error.strerror})")
    if wrong:
        yield Unmeasured(
            "whether the release is what its manifest says",
            f"the manifest does not match the files: {', '.join(wrong)}. The pictures that are there are measured as "
            f"they are; that they were made by the method {manifest.method!r} with these settings is only claimed",
        )


def _differences(release: Path, subject: Subject, listed: Mapping[str, str]) -> list[str]:
    present = {record.path for record in load_folder(release, "none").records}
    pictures = {path for path in listed if path in present or path.lower().endswith((".png", ".jpg", ".jpeg"))}
    known = {file.path: file.file_sha256 for file in subject.protected.files}
    other = sum(listed.get(path, digest) != digest for path, digest in known.items())
    counts = (
        (len(pictures - present), "listed picture is missing", "listed pictures are missing"),
        (len(present - listed.keys()), "picture is not listed", "pictures are not listed"),
        (other, "picture has other content", "pictures have other content"),
    )
    return [counted(*each) for each in counts if each[0]]
