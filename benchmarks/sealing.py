"""Sealed originals under attack and under `kill -9`: nothing altered is ever restored, nothing half sealed is taken.

Flips every byte of a sealed file's header and many of its body, and tries many wrong keys, each through a whole
recovery, after which not one file may be there. Then kills runs while they seal; between two runs a sealed file that
is already there is cut off, as a power cut would, which the next run must notice.
"""

from __future__ import annotations

import math
import random
import subprocess
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from claims import record
from process import completed, run_and_kill
from veilkit.datasets.folder import is_image_name
from veilkit.errors import SealError
from veilkit.media.reading import sha256
from veilkit.methods import METHODS
from veilkit.pipeline.protect import protect
from veilkit.pipeline.recovery import recover
from veilkit.pipeline.sealing.age import read_identities, write_identity
from veilkit.pipeline.sealing.files import unseal
from veilkit.synthetic.people import generate_people

SEED, FLIPS, WRONG_KEYS, KILLS, PEOPLE, SHOTS = 0, 500, 200, 30, 60, 4
QUICK = ("blur", "pixelate", "noise", "mask", "mixup", "patches")
METHOD = "noise"  # of the runs that are killed
WORKERS = (2, 0)


@dataclass(frozen=True, slots=True)
class Attacked:
    """header, body, keys: how often each was tried. opened: attempts that were not refused, or left a file."""

    header: int
    body: int
    keys: int
    opened: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Killed:
    """kills: (seconds after the start, files sealed then). cut: sealed files cut off between runs.

    half: sealed files seen under a final name that did not open to their picture's original. wrong: originals that
    are not restored byte for byte after the last run. left: unfinished files that stay behind.
    """

    kills: tuple[tuple[float, int], ...]
    cut: int
    half: tuple[str, ...]
    wrong: tuple[str, ...]
    left: tuple[str, ...]

    @property
    def failures(self) -> int:
        return len(self.half) + len(self.wrong) + len(self.left)


def files(root: Path) -> dict[str, bytes]:
    """Every file below a folder."""
    return {str(file.relative_to(root)): file.read_bytes() for file in root.rglob("*") if file.is_file()}


def differing(one: Path, two: Path) -> list[str]:
    """Files that the two folders do not share, byte for byte."""
    first, second = files(one), files(two)
    return sorted(name for name in first | second if first.get(name) != second.get(name))


def restored(source: Path, work: Path, method: str) -> list[str]:
    """Originals that protecting, sealing and restoring changed."""
    key = work / f"{method}.txt"
    recipient = write_identity(key)
    protect(source, work / method, method, seed=SEED, seal_to=[recipient])
    recover(work / method, work / f"{method}.back", identity=key)
    return differing(source, work / f"{method}.back")


def attack(source: Path, work: Path, *, flips: int, keys: int, seed: int = SEED) -> Attacked:
    """Alter one sealed file in many ways, and try to open it with other keys."""
    rng, key, opened = random.Random(seed), work / "attacked.txt", []
    release, back = work / "attacked", work / "attacked.back"
    protect(source, release, "pixelate", seed=SEED, seal_to=[write_identity(key)])
    file = min((work / "attacked.sealed").glob("*.age"))
    picture = file.name.removesuffix(".age")
    whole = file.read_bytes()
    header = whole.index(b"\n", whole.index(b"\n---") + 1) + 1

    def attempt(what: str, identity: Path) -> None:
        try:
            recover(release, back, identity=identity, only=[picture])
            opened.append(what)
        except SealError:
            if back.exists() and any(path.is_file() for path in back.rglob("*")):
                opened.append(what)

    for place in (*range(header), *rng.choices(range(header, len(whole)), k=flips)):
        altered = bytearray(whole)
        altered[place] ^= rng.randrange(1, 256)
        file.write_bytes(altered)
        attempt(f"byte {place} changed", key)
    file.write_bytes(whole)
    for number in range(keys):
        wrong = work / f"wrong{number}.txt"
        write_identity(wrong)
        attempt(f"wrong key {number}", wrong)
    if recover(release, back, identity=key, only=[picture]).restored != 1:
        raise SystemExit("the unaltered file does not open with its own key: the attempts above tell nothing")
    return Attacked(header, flips, keys, tuple(opened))


def kill(source: Path, work: Path, *, kills: int, seed: int = SEED, workers: tuple[int, ...] = WORKERS) -> Killed:
    """Kill a run that seals `kills` times, go on each time, and restore everything in the end."""
    rng, key, release = random.Random(seed), work / "killed.txt", work / "killed"
    sealed, originals = work / "killed.sealed", files(source)
    recipient = write_identity(key)
    words = ("protect", source, release, "--method", METHOD, "--key", work / "secret" / "key", "--seal-to", recipient)
    happened: list[tuple[float, int]] = []
    half: set[str] = set()
    spoilt: list[bytes] = []
    took = 0.0  # seconds until a run's first file, once known
    for number in range(kills):
        # A fifth of the kills come at any moment of start-up; the others wait for a share of what is left.
        early, before = number % 5 == 4, len(_sealed(sealed))
        share = rng.uniform(0, 2 * (len(originals) - before) / (kills - number))
        wanted = math.inf if early else before + share
        seconds = run_and_kill(
            *words, "--workers", str(workers[number % len(workers)]),
            until=lambda wanted=wanted: len(_sealed(sealed)) > wanted,
            latest=rng.uniform(0, took) if early else 300.0, alone=number % 2 == 0, rng=rng,
        )  # fmt: skip
        took = took or seconds
        seen = _sealed(sealed)
        happened.append((seconds, len(seen)))
        ours = {file for file in seen if file.read_bytes() in spoilt}  # cut off below, and not yet made again
        half |= {file.name for file in seen if file not in ours and not _is_whole(file, release, key, originals)}
        if seen and number % 3 == 0:
            time.sleep(0.5)  # orphans of the killed run write no more
            victim = rng.choice(_sealed(sealed))
            spoilt.append(victim.read_bytes()[: rng.randrange(victim.stat().st_size or 1)])
            victim.write_bytes(spoilt[-1])
    completed(*words, "--workers", str(workers[0]))
    left = [str(file) for file in sealed.rglob("*") if ".veilkit" in file.parts]
    recover(release, work / "killed.back", identity=key, key=work / "secret" / "key")
    sums = subprocess.run(["sha256sum", "--strict", "--quiet", "-c", "SHA256SUMS"], cwd=sealed, check=False)
    wrong = differing(source, work / "killed.back") + ["SHA256SUMS"] * (sums.returncode != 0)
    return Killed(tuple(happened), len(spoilt), tuple(sorted(half)), tuple(wrong), tuple(left))


def _sealed(folder: Path) -> list[Path]:
    return sorted(folder.glob("*.age")) if folder.exists() else []


def _is_whole(file: Path, release: Path, key: Path, originals: dict[str, bytes]) -> bool:
    """Whether a sealed file opens to the original of the picture that the release holds beside it."""
    try:
        found = unseal(file.read_bytes(), read_identities(key))
        found.binding.check(file.name.removesuffix(".age"), sha256((release / found.binding.protected).read_bytes()))
    except (SealError, OSError):
        return False
    return originals.get(found.binding.original) == found.original


def main() -> None:
    about = {"data": "generated people", "seed": SEED, "command": "python benchmarks/sealing.py"}
    with tempfile.TemporaryDirectory() as folder:
        work, source = Path(folder), Path(folder, "people")
        generate_people(source, identities=PEOPLE, images=SHOTS, cameras=2, seed=SEED, workers=1)
        for file in source.rglob("*"):
            if file.is_file() and not is_image_name(file.name):  # notes on how they were generated
                file.unlink()
        count = len(files(source))
        changed = {method: restored(source, work, method) for method in QUICK if method in METHODS}
        attacked = attack(source, work, flips=FLIPS, keys=WRONG_KEYS)
        killed = kill(source, work, kills=KILLS)
    for number, (seconds, visible) in enumerate(killed.kills, 1):
        print(f"kill {number:>2}: after {seconds:5.1f} s, {visible} of {count} originals sealed")
    record(
        id="sealed-bytes",
        claim="Originals that sealing and restoring changed, or did not bring back",
        figure=sum(map(len, changed.values())),
        bar="== 0",
        unit="files",
        scale=f"{count} pictures each by {', '.join(changed)}",
        **about,
    )
    record(
        id="sealed-flips",
        claim=f"Sealed file with a byte of its header or one of {attacked.body} of its body changed, or opened with "
        f"{attacked.keys} other keys: attempts that wrote any byte of the original",
        figure=len(attacked.opened),
        bar="== 0",
        unit="attempts",
        scale=f"{attacked.header + attacked.body + attacked.keys} attempts, all {attacked.header} header bytes",
        note="unaltered and with its own key the same file opens",
        **about,
    )
    inside = sum(0 < visible < count for _, visible in killed.kills)
    record(
        id="sealed-kills",
        claim=f"`kill -9` at {KILLS} random moments while originals are sealed, then resume: half-sealed files seen "
        "or kept, and originals not restored byte for byte",
        figure=killed.failures,
        bar="== 0",
        unit="files",
        scale=f"{count} pictures, {KILLS} kills, 2 workers and in-process in turn",
        note=f"{inside} of {KILLS} kills between the first and the last file; every other one takes the parent "
        f"alone; {killed.cut} sealed files cut off between runs were all made again",
        **about,
    )


if __name__ == "__main__":
    main()
