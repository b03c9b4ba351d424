"""Alarms: cheap checks of a release and of the auditor itself, made at every audit whatever its scores are.

A score says how much an attacker finds. An alarm says that something is wrong which no score need show: originals
left in the files, secrets that were published, or an auditor that does not measure what it says.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path

from veilkit.audit.alarms.files import check_files, check_names
from veilkit.audit.alarms.guesses import check_guesses
from veilkit.audit.alarms.hidden import check_hidden
from veilkit.audit.alarms.kept import check_kept
from veilkit.audit.alarms.order import check_order
from veilkit.audit.alarms.pairs import NO_PAIRS, WRONG_PAIRS
from veilkit.audit.alarms.pixels import check_noise, check_pixels
from veilkit.audit.alarms.secrets import check_secrets
from veilkit.audit.alarms.selftest import check_auditor
from veilkit.audit.alarms.side_channels import check_side_channels
from veilkit.audit.alarms.side_files import check_side_files
from veilkit.audit.inputs.cache import Cache
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Alarm
from veilkit.media.reading import Limits
from veilkit.rng import Randomness
from veilkit.types import Evidence

ALARMS: dict[str, str] = {
    NO_PAIRS: "the release and the originals could not be brought together",
    WRONG_PAIRS: "the originals are not those that the release was made of",
    "unchanged": "protected pictures equal their originals, or nearly",
    "constant": "most protected pictures are one and the same, or of one single colour",
    "hidden channel": "protected files hold a transparency channel, which may show what the colours hide",
    "hidden copy": "protected pictures hold their originals in a form that a plain look does not show",
    "left unprotected": "some pictures, faces or frames were left as they were while the others were changed",
    "kept background": "one and the same part of all pictures was left as it was",
    "side channel": "sizes, times, headers or coding choices of files tell whose they are",
    "order": "the order of the files, by names or times, is that of their originals",
    "side file": "the release holds what may undo it, or packed data",
    "guessable key": "the key of the release can be guessed",
    "metadata": "protected files hold metadata, comments, a thumbnail or bytes after the picture",
    "hashed names": "names of protected pictures are hashes of their originals",
    "secret published": "the release holds a seed or a key",
    "repeated noise": "the same noise was added to different pictures",
    "people on both sides": "an attacker was trained on people whom it was scored on",
    "metric": "a metric does not give the answer that is known",
    "division": "the division into people who teach and people who are attacked does not keep them apart",
}
"""What each alarm means."""


def raise_alarms(
    subject: Subject, originals: Path, key: Path | None, limits: Limits, rng: Randomness, cache: Cache
) -> tuple[Alarm, ...]:
    """All checks of a release, and the auditor's own. key: the file of the release's key, where there is one.

    originals: their folder, also where nothing in it could be paired.
    """
    rng = rng.child("alarms")
    found = (
        *check_auditor(),
        *check_files(subject, limits),
        *check_names(subject, limits),
        *check_guesses(subject, originals),
        *check_secrets(subject.protected.root, key),
        *check_side_files(subject.protected.root),
        *check_side_channels(subject, limits, rng.child("side channels")),
        *check_order(subject, originals, limits, cache),
        *check_pixels(subject),
        *check_noise(subject, rng.child("noise")),
        *check_hidden(subject, rng.child("hidden")),
        *check_kept(subject, cache, limits, rng.child("kept")),
    )
    assert all(alarm.name in ALARMS for alarm in found)
    return found


def check_attacks(attacks: Iterable[Evidence]) -> Iterator[Alarm]:
    """Whether any attacker that learned was scored on people who had taught it, by what its division counted."""
    for evidence in attacks:
        if count := evidence.details.get("people on both sides", 0):
            yield Alarm(
                "people on both sides",
                f"{count} people both taught the attacker {evidence.attack} and were attacked by it: its scores say "
                "what it learned by heart, not what it finds",
            )
