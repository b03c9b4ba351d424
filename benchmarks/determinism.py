"""The same key gives the same bytes, however the work is cut up; another key gives others where a method draws."""

from __future__ import annotations

import random
import shutil
import tempfile
from collections.abc import Sequence
from pathlib import Path

from claims import record
from pictures import write_folder
from veilkit.methods import METHODS, Learns
from veilkit.methods.expert_guided.method import ExpertBound
from veilkit.pipeline.protect import protect

SEED, COUNT, PEOPLE = 0, 64, 10


def contents(release: Path) -> dict[str, bytes]:
    return {str(file.relative_to(release)): file.read_bytes() for file in release.rglob("*") if file.is_file()}


def shuffled_copy(source: Path, copy: Path, seed: int) -> None:
    """The same files in another folder, made in another order, so that a listing gives them in another order."""
    files = sorted(file for file in source.rglob("*") if file.is_file())
    random.Random(seed).shuffle(files)
    for file in files:
        target = copy / file.relative_to(source)
        target.parent.mkdir(parents=True, exist_ok=True)
        shutil.copyfile(file, target)


PRESETS = {"faceblur": "crops", "facereplace": "crops"}  # generated pictures show no face to be found


def differing(source: Path, work: Path, method: str, workers: Sequence[int], *, seed: int = SEED) -> set[str]:
    """Files that are not the same in-process, with each number of workers, and from a shuffled copy of the source."""
    key, copy, preset = work / "key" / "key", work / "copy", PRESETS.get(method)
    shuffled_copy(source, copy, seed)
    protect(source, work / "first", method, preset=preset, key=key)
    protect(copy, work / "shuffled", method, preset=preset, key=key)
    others = [work / "shuffled"]
    for number in workers:
        others.append(work / f"workers{number}")
        protect(source, others[-1], method, preset=preset, key=key, workers=number)
    first = contents(work / "first")
    return {
        name
        for other in map(contents, others)
        for name in first.keys() | other.keys()
        if first.get(name) != other.get(name)
    }


def changed_by_key(source: Path, work: Path, method: str) -> float:
    """The share of pictures that differ under another key. Names differ too: pictures are compared by their source.

    Mix-up draws nothing but partners, and now and then a picture gets the same one again.
    """
    releases = []
    for name in ("one", "two"):
        key = work / f"{name}.private" / "key"
        protect(source, work / name, method, preset=PRESETS.get(method), key=key, names="kept")
        releases.append(
            {path: data for path, data in contents(work / name).items() if path.endswith((".png", ".jpg"))}
        )
    one, two = releases
    if one.keys() != two.keys():
        raise SystemExit(f"{method} released other pictures under another key")
    return sum(one[path] != two[path] for path in one) / len(one)


def quick_methods() -> list[str]:
    """Methods that need neither a model nor an expert, of which some thousand pictures are done in seconds."""
    return [
        name for name, method in METHODS.items() if not issubclass(method, Learns | ExpertBound)
    ]  # fmt: skip


def main() -> None:
    methods = quick_methods()
    random_methods = [name for name in methods if METHODS[name].random]
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        write_folder(source, COUNT, people=PEOPLE)
        different = {method: differing(source, Path(folder, method), method, workers=(1, 2)) for method in methods}
        keyed = {name: changed_by_key(source, Path(folder, f"{name}-keys"), name) for name in random_methods}
    print(different, keyed)
    about = {
        "data": f"generated pictures of {PEOPLE} people",
        "seed": SEED,
        "command": "python benchmarks/determinism.py",
    }
    record(
        id="same-bytes",
        claim="Files that differ between 1 and 2 workers, in-process, and shuffled input order, over all methods",
        figure=sum(map(len, different.values())),
        bar="== 0",
        unit="files",
        scale=f"{COUNT} pictures, methods: {', '.join(methods)}",
        **about,
    )
    record(
        id="other-key-differs",
        claim="Share of pictures that another key changes, lowest of the randomised methods",
        figure=round(min(keyed.values()), 3),
        bar=">= 0.9",
        unit="",
        scale=f"{COUNT} pictures, methods: {', '.join(random_methods)}",
        note=", ".join(f"{name} {share:.0%}" for name, share in keyed.items())
        + "; mix-up draws nothing but partners, and chance may give a picture the same one again",
        **about,
    )


if __name__ == "__main__":
    main()
