"""Which pictures a run has to make, noted in its ledger."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from veilkit.datasets.folder import Kind, survey, walk
from veilkit.datasets.labels import labeller
from veilkit.errors import DataError
from veilkit.key import Key
from veilkit.media.writing import SUFFIX
from veilkit.methods import Synthesiser, bind
from veilkit.pipeline.foreign import why_refused
from veilkit.pipeline.ledger import NEVER_WRITTEN, Entry, Ledger
from veilkit.pipeline.naming import kept_names, pseudonyms
from veilkit.pipeline.places import Places
from veilkit.pipeline.release import Wanted
from veilkit.pipeline.sealed import check_sealed_name
from veilkit.pipeline.synthesis import count_people, planned


def enrol(wanted: Wanted, places: Places, ledger: Ledger, secret: Key) -> int:
    """Note every picture that is to be made; returns how many files of the source were passed over."""
    if isinstance(wanted.method, Synthesiser):
        return _enrol_synthetic(wanted.method, wanted, places, ledger, secret)
    return _enrol_source(wanted, places, ledger, secret)


def _enrol_source(wanted: Wanted, places: Places, ledger: Ledger, secret: Key) -> int:
    label, suffix, passed_over = labeller(wanted.labels, places.source), SUFFIX[wanted.image_format], 0
    pictures = (path for path, is_image in walk(places.source) if is_image)
    name = pseudonyms(secret, suffix) if wanted.names == "pseudonyms" else kept_names(pictures, suffix)
    check = check_sealed_name if wanted.recipients else str

    def entries() -> Iterator[Entry]:
        nonlocal passed_over
        for path, kind in survey(places.source):
            if kind is Kind.picture:
                yield Entry(path, check(name(path)), *label(path))
            elif why_refused(places.source, path):  # a worker will say so, in its turn
                yield Entry(path, secret.pseudonym(path) + NEVER_WRITTEN)
            else:
                passed_over += 1

    ledger.enrol(entries())
    if not ledger.count():
        raise DataError(f"there are no pictures below {places.source}")
    return passed_over


def _enrol_synthetic(method: Synthesiser[Any], wanted: Wanted, places: Places, ledger: Ledger, secret: Key) -> int:
    counts, unknown, others = count_people(places.source, wanted.labels)
    if not counts:
        raise DataError(
            f"{method.name} makes pictures of people, but nobody is labelled below {places.source}: "
            "say who is in a picture with labels"
        )
    rng = bind(secret.randomness, method)
    ledger.enrol(planned(method, counts, secret, rng, wanted.names, SUFFIX[wanted.image_format]))
    known = set(method.classes)
    strangers = sum(count for person, count in counts.items() if person not in known)
    return unknown + others + strangers
