"""Whether the names of protected pictures give their originals away."""

from __future__ import annotations

from veilkit.audit.inputs.hash_names import named_by_hash
from veilkit.audit.inputs.subject import Subject
from veilkit.audit.result import Alarm
from veilkit.media.reading import Limits

_SAMPLE = 50  # originals whose hashes are tried where the key has resolved the names


def check_names(subject: Subject, limits: Limits) -> tuple[Alarm, ...]:
    """Names that are hashes of originals, whether they were paired by them or through a key."""
    count = len(subject.pairing.pairs) if subject.pairing.how == "hash" else 0
    if subject.pairing.how == "key" and subject.originals is not None:
        some = subject.pairing.pairs[:_SAMPLE]
        found = named_by_hash(subject.originals.root, [raw for raw, _ in some], [made for _, made in some], limits)
        count = len(found)
    if not count:
        return ()
    return (
        Alarm(
            "hashed names",
            f"{count} protected pictures are named by a hash of their original or of its name, without a key: "
            "whoever holds an original, or guesses its name, finds it in the release. Names need a secret key",
        ),
    )
