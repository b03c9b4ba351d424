"""Which pictures a run has to make, noted in its ledger."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from veilkit.datasets.folder import Kind
from veilkit.datasets.labels import labeller
from veilkit.errors import DataError
from veilkit.key import Key
from veilkit.media.reading import has_pages
from veilkit.media.video import VIDEO_SUFFIX
from veilkit.media.writing import Files
from veilkit.methods import Synthesiser, bind
from veilkit.pipeline.formats import is_video, why_refused
from veilkit.pipeline.ledger import NEVER_WRITTEN, Entry, Ledger
from veilkit.pipeline.names import PAGES, Names, folder_pseudonyms, kept_names, pseudonyms
from veilkit.pipeline.places import Places
from veilkit.pipeline.release import Wanted
from veilkit.pipeline.sealing.folder import check_sealed_name


def enrol(wanted: Wanted, places: Places, ledger: Ledger, secret: Key) -> int:
    """Note every picture that is to be made; returns how many files of the source were passed over."""
    if isinstance(wanted.method, Synthesiser):
        return _enrol_synthetic(wanted.method, wanted, places, ledger, secret)
    return _enrol_source(wanted, places, ledger, secret)


def _enrol_source(wanted: Wanted, places: Places, ledger: Ledger, secret: Key) -> int:
    label, passed_over = labeller(wanted.labels, places.source), 0
    name = release_names(wanted.names, places, secret, wanted.files)
    check = check_sealed_name if wanted.recipients else str

    gone = ledger.withdrawn()
    back: list[Entry] = []

    def entries() -> Iterator[Entry]:
        nonlocal passed_over
        for path, kind in places.survey():
            if gone and (when := gone.get(withdrawn_tag(secret, path))):
                reason = f"its person's consent was withdrawn: take it out of the source ({when[:10]})"
                back.append(Entry(path, secret.pseudonym(path) + NEVER_WRITTEN, state="refused", reason=reason))
                yield back[-1]
                continue
            refused = None if kind is Kind.picture else why_refused(places.source, path, wanted.method)
            if kind is Kind.picture or (not refused and is_video(places.source / path)):
                yield Entry(path, check(name(path)), *label(path))
            elif refused:  # a worker will say so, in its turn
                yield Entry(path, secret.pseudonym(path) + NEVER_WRITTEN)
            else:
                passed_over += 1

    ledger.enrol(entries())
    ledger.record(back)
    if not ledger.count():
        raise DataError(f"there are no pictures below {places.source}")
    return passed_over


def withdrawn_tag(secret: Key, source: str) -> str:
    """By which an original that was withdrawn is known again; who has no key learns nothing from it."""
    return secret.randomness.tag("withdrawn", source).hex()


def release_names(names: Names, places: Places, secret: Key, files: Files) -> Callable[[str], str]:
    """The name in the release of each picture of the source, which may be a TIFF of several pages."""

    def suffix_of(path: str) -> str:
        file = places.source / path
        return PAGES if has_pages(file) else VIDEO_SUFFIX if is_video(file) else files.suffix(path)

    if names == "kept":
        named = (path for path, kind in places.survey() if kind is Kind.picture or is_video(places.source / path))
        return kept_names(named, suffix_of)
    return (pseudonyms if names == "pseudonyms" else folder_pseudonyms)(secret, suffix_of)


def _enrol_synthetic(method: Synthesiser[Any], wanted: Wanted, places: Places, ledger: Ledger, secret: Key) -> int:
    from veilkit.pipeline.synthesis import count_people, planned

    counts, unknown, others = count_people(places, wanted.labels)
    if not counts:
        raise DataError(
            f"{method.name} makes pictures of people, but nobody is labelled below {places.source}: "
            "say who is in a picture with labels"
        )
    rng = bind(secret.randomness, method)
    ledger.enrol(planned(method, counts, secret, rng, wanted.names, wanted.files.suffix("")))
    known = set(method.classes)
    strangers = sum(count for person, count in counts.items() if person not in known)
    return unknown + others + strangers
