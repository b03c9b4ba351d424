"""Which protected picture came from which original: through the key, or by name for folders of any origin."""

from __future__ import annotations

import os
import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal, TypeAlias

from veilkit.errors import UsageError
from veilkit.key import Key, read_key
from veilkit.pipeline.manifest import Manifest

How: TypeAlias = Literal["key", "name", "stem", "affix", "hash", "nothing"]
HOW_TEXT: dict[How, str] = {
    "key": "through the key",
    "name": "by their paths",
    "stem": "by their file names",
    "affix": "by their names, to which one and the same word was added",
    "hash": "by their names, which are hashes of the originals",
    "nothing": "not at all",
}


@dataclass(frozen=True, slots=True)
class Pairing:
    """pairs: (path of the original, of the protected picture), sorted; how they were found; what is to be told.

    left: protected pictures without an original.
    """

    pairs: tuple[tuple[str, str], ...]
    how: How
    notes: tuple[str, ...] = field(default=())
    left: int = 0


KNOWN_WORDS = frozenset(
    {"anonymized", "anonymised", "anonymous", "anon", "blurred", "blur", "pixelated", "pixelized", "masked", "mask"}
    | {"protected", "redacted", "defaced", "deface", "deid", "deidentified", "obfuscated", "out", "output", "result"}
)
"""What tools are known to add to a name; any other word must be found on two names."""


def pair(
    originals: Sequence[str],
    protected: Sequence[str],
    key: Key | None,
    notes: Sequence[str] = (),
    hashes: Callable[[], dict[str, str]] = dict,
) -> Pairing:
    """Pair relative paths.

    A key is tried first, then whole paths up to the suffix, then unique file names, then either with one and the same
    word added to every protected name, as `deface` adds "_anonymized". hashes: originals whose hash is the name of a
    protected picture, tried last.
    """
    found: dict[str, str] = {}
    how: How = "nothing"
    if key is not None:
        found, how = _unique(((key.pseudonym(path), path) for path in originals), _by(_stem, protected)), "key"
    if not found:
        found, how = _by_path(originals, protected), "name"
    if not found:
        found, how = _unique(((_stem(path), path) for path in originals), _by(_stem, protected)), "stem"
    if not found:
        found, how = _by_word(originals, protected), "affix"
    if not found:
        found, how = hashes(), "hash"
    told = list(notes)
    if not found:
        return Pairing((), "nothing", tuple(told), len(protected))
    if lonely := len(originals) - len(found):
        have = "has no protected picture and is" if lonely == 1 else "have no protected picture and are"
        told.append(f"{lonely} of {len(originals)} originals {have} left out")
    if extra := len(protected) - len(set(found.values())):
        belong = "belongs to no original and is" if extra == 1 else "belong to no original and are"
        told.append(f"{extra} of {len(protected)} protected pictures {belong} left out")
    return Pairing(tuple(sorted(found.items(), key=lambda each: os.fsencode(each[0]))), how, tuple(told), extra)


def swapped(originals: Sequence[str], protected: Sequence[str]) -> bool:
    """Whether the names of the originals are those of the protected pictures with a word added, not the reverse."""
    return bool(_by_word(protected, originals))


def choose_key(
    protected: Path, manifest: Manifest | None, key: Path | None, seed: int | None
) -> tuple[Key | None, tuple[str, ...]]:
    """The key to pair with, and what is to be told of it; None where the release's names are no pseudonyms of it.

    Without a key or seed, the public seed in the manifest is taken, or the key where `protect` puts it by default.
    """
    if key is not None and seed is not None:
        raise UsageError("give a key or a seed, not both")
    beside = protected.with_name(protected.name + ".private") / "key"
    if key is not None:
        chosen: Key | None = read_key(key)
    elif seed is not None:
        chosen = Key.from_seed(seed)
    elif manifest is not None and manifest.seed is not None:
        chosen = Key.from_seed(manifest.seed)
    elif manifest is not None and manifest.names != "kept" and beside.is_file():
        chosen = read_key(beside)
    else:
        chosen = None
    if manifest is None:
        return chosen, ()
    kept = manifest.names == "kept"
    if chosen is None:
        return None, () if kept else ("the release has pseudonyms for names, and no key was given (see --key)",)
    if _fits(chosen, manifest):
        return (None if kept else chosen), ()
    given = "seed" if chosen.seed is not None else "key"
    follows = "pairs are found all the same, as names were kept" if kept else "so its pseudonyms cannot be resolved"
    return None, (
        f"the {given} is not the one that this release was made with: its manifest names another, {follows}",
    )


def _fits(key: Key, manifest: Manifest) -> bool:
    """Whether the release was made with this key or seed."""
    if manifest.seed is not None:
        return key.seed == manifest.seed
    said = manifest.key_commitment
    return said is not None and said.isascii() and key.matches(said)


def _by_path(originals: Sequence[str], protected: Sequence[str]) -> dict[str, str]:
    """Same path up to the suffix; a.jpg.png belongs to a.jpg rather than to a.bmp."""
    files = _by(_without_suffix, protected)
    whole = _unique(((path, path) for path in originals), files)
    taken = set(whole.values())
    rest = {name: path for name, path in files.items() if path not in taken}
    return whole | _unique(((_without_suffix(path), path) for path in originals if path not in whole), rest)


def _by_word(originals: Sequence[str], protected: Sequence[str]) -> dict[str, str]:
    """Same path, or else same file name, but for one word at the end or the beginning of every protected name.

    The word is set off by a character that is no letter or digit, and is the one that pairs most pictures, at least
    half of them. A word that tools are not known for must pair two.
    """
    for name in (_without_suffix, _stem):
        by_name = _by(name, originals)
        words: dict[tuple[str, bool], dict[str, str]] = {}
        for path, made in _by(name, protected).items():
            folder, _, stem = path.rpartition("/")
            for word, rest, at_end in _words(stem):
                original = by_name.get(f"{folder}/{rest}" if folder else rest)
                if original is not None:
                    words.setdefault((word, at_end), {})[original] = made
        if words:
            (word, _), best = max(words.items(), key=lambda each: (len(each[1]), -len(each[0][0]), each[0]))
            known = re.sub(r"\W|_", "", word).lower() in KNOWN_WORDS
            if len(best) * 2 >= len(protected) and (known or len(best) >= 2):
                return best
    return {}


def _words(stem: str) -> Iterator[tuple[str, str, bool]]:
    """Words that may have been added to a name: each with what sets it off, the rest, whether it ends the name."""
    for place, character in enumerate(stem):
        if not character.isalnum():
            if place:
                yield stem[place:], stem[:place], True
            if place + 1 < len(stem):
                yield stem[: place + 1], stem[place + 1 :], False


def _unique(named: Iterable[tuple[str, str]], files: dict[str, str]) -> dict[str, str]:
    """Originals whose name is a file's; names that several originals share are left out."""
    listed = list(named)
    times = Counter(name for name, _ in listed)
    return {path: files[name] for name, path in listed if times[name] == 1 and name in files}


def _by(name: Callable[[str], str], paths: Sequence[str]) -> dict[str, str]:
    """Paths by their names, where only one has that name."""
    times = Counter(name(path) for path in paths)
    return {name(path): path for path in paths if times[name(path)] == 1}


def _without_suffix(path: str) -> str:
    return os.path.splitext(path)[0]  # noqa: PTH122 - paths may hold bytes that are not text


def _stem(path: str) -> str:
    return _without_suffix(path).rpartition("/")[2]
