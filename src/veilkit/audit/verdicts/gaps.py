"""What an audit could not measure, and why: told as plainly as what it could."""

from __future__ import annotations

from veilkit.audit.cells.image_scores import TO_ORIGINAL
from veilkit.audit.cells.synthetic_measures import LEFT_OUT, unpaired_gaps, was_not_asked
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.inputs.synthetic_subject import UnpairedSubject
from veilkit.audit.result import Measurement, Unmeasured
from veilkit.audit.verdicts.remedies import wants_budget
from veilkit.types import Evidence


def unmeasured(
    subject: Subject,
    unpaired: UnpairedSubject | None,
    images: tuple[Measurement, ...],
    attacks: tuple[Evidence, ...],
    no_budget: str = "",
) -> tuple[Unmeasured, ...]:
    """Everything that is missing. no_budget: why attackers who learn were left out although a budget was given."""
    missing = []
    if subject.search is None:
        missing.append(Unmeasured("recognition of people in four settings", subject.no_search))
    if subject.originals is None and unpaired is None:
        why = "it is not known which original belongs to which protected picture"
        missing.append(Unmeasured("recognition with raw queries or a raw gallery", why))
        missing.append(Unmeasured("similarity to the originals", why))
    if left := [each.attack for each in attacks if was_not_asked(each)]:
        others = "1 other attack" if len(left) == 1 else f"{len(left)} other attacks"
        missing.append(Unmeasured(others, LEFT_OUT.text))
    measured = {(each.setting, each.score.metric) for each in images}
    for metric, why in (
        ("PSNR", "every protected picture equals its original"),
        ("SSIM", "every picture is smaller than its window of 11 x 11 pixels"),
    ):
        if subject.originals is not None and (TO_ORIGINAL, metric) not in measured:
            missing.append(Unmeasured(metric, why))
    if ("protected", "AD") not in measured:
        missing.append(Unmeasured("chaos (AD)", "every protected picture has one single colour value"))
    if unpaired is not None:
        return (*missing, *unpaired_gaps(unpaired, images, attacks))
    learners = [e.attack for e in attacks if not e.applicable and wants_budget(e.attack, e.missing)]
    missing += [Unmeasured(f"attack {e.attack}", e.why_missing) for e in attacks
                if not e.applicable and e.attack not in learners and not was_not_asked(e)]  # fmt: skip
    if learners:
        missing.append(
            Unmeasured(
                f"attackers who learn from the protection or hold the expert ({', '.join(learners)})",
                no_budget
                or "they take minutes to hours, and none were asked for; give them a number of updates (--learn), or "
                "the audit a time (--budget)",
            )
        )
    return tuple(missing)
