"""A picture of 16x100,000 pixels and one of 1x50,000,000, each a few kilobytes, under every method.

    python benchmarks/extreme_pictures.py

Each method protects a folder with both and four ordinary pictures, by the command. The two must be refused or done,
and the ordinary ones done. Memory is that of all processes of the command; so is time, which is that of processors,
since a clock tells how busy the machine is as well. There are no worker processes, which could be ended: what is not
refused by its header is worked on to the end. Left out is fro, which protects by pictures of its own and reads
none of the folder's.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from claims import ROOT, record
from pictures import write_folder
from process import Finished, run

sys.path.insert(0, str(ROOT))

from tests.pipeline.test_promises import flat

ORDINARY, SHAPES = 4, ((16, 100_000), (1, 50_000_000))
REFUSED = 3  # exit code of a run in which pictures were refused
MODELS = ROOT / "models"
SETTINGS: dict[str, tuple[str, ...]] = {
    "blur": (), "pixelate": (), "noise": (), "mask": (), "faceblur": (), "facereplace": (),
    "mixup": ("--set", "people=2", "--labels", "folder"),
    "patches": ("--set", "people=2", "--labels", "folder"),
    "pixelfade": ("--set", "spread=1", "--set", "steps=2"),
    "avih": ("--set", "spread=1", "--set", "steps=2"),
    "privacyreid": ("--model", str(MODELS / "cuhk03_privacyreid.safetensors")),
    "peprnet": ("--model", str(MODELS / "cuhk03_peprnet.safetensors")),
    "disguise": ("--model", str(MODELS / "lfw_disguise.safetensors")),
    "disguise photoreal": (), "facereplace photoreal": ("--preset", "photoreal"),
    "ksame": ("--set", "people=2", "--labels", "folder"),
}  # fmt: skip


def protect(method: str, folder: Path) -> Finished:
    source = folder / "source"
    write_folder(source, ORDINARY, people=2, height=64, width=32)
    person = next(path for path in sorted(source.iterdir()) if path.is_dir())
    for width, height in SHAPES:
        (person / f"{width}.png").write_bytes(flat(width, height))
    return run(
        "protect", source, folder / "release", "--method", method.split()[0], *SETTINGS[method], "--workers", "0",
        watch_memory=True,
    )  # fmt: skip


def tried(method: str) -> tuple[Finished, int]:
    """How the command ended, and how many pictures it released."""
    with tempfile.TemporaryDirectory() as folder:
        done = protect(method, Path(folder))
        sums = Path(folder) / "release" / "SHA256SUMS"
        return done, len(sums.read_text().splitlines()) if sums.is_file() else 0


def accounted(done: Finished, released: int) -> bool:
    """Whether every picture was done, or those two, and only those, were refused."""
    if done.code == REFUSED:
        return released == ORDINARY and f"{len(SHAPES)} picture too long" in " ".join(done.output.split())
    return done.code == 0 and released == ORDINARY + len(SHAPES)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="*", default=sorted(SETTINGS), help="methods to try; nothing is recorded then"
    )
    parser.add_argument("--together", type=int, default=1, help="commands that run at the same time")
    arguments = parser.parse_args()
    unaccounted, slowest, largest = 0, 0.0, 0.0
    with ThreadPoolExecutor(arguments.together) as pool:
        for method, (done, released) in zip(arguments.only, pool.map(tried, arguments.only), strict=True):
            print(
                f"{method:21} exit {done.code}, {released} released, {done.processors:.1f} s of processors, "
                f"{done.seconds:.1f} s by the clock, {done.megabytes:.0f} MB",
                flush=True,
            )
            if not accounted(done, released) or "Traceback" in done.output:
                unaccounted += 1
                print(done.output)
            slowest, largest = max(slowest, done.processors), max(largest, done.megabytes)
    if arguments.only != sorted(SETTINGS):
        return
    facts = {
        "data": "two PNG files of 16x100,000 and 1x50,000,000 pixels beside generated people",
        "scale": f"{len(SETTINGS)} methods, without worker processes",
        "seed": None,
        "command": "python benchmarks/extreme_pictures.py",
    }
    record(
        id="extreme-unaccounted", claim="Methods under which very long pictures are neither refused nor done",
        figure=unaccounted, bar="== 0", unit="methods", **facts,
    )  # fmt: skip
    record(
        id="extreme-seconds", claim="Longest processor time of the whole command with such pictures",
        figure=round(slowest, 1), bar="<= 30", unit="s", **facts,
    )  # fmt: skip
    record(
        id="extreme-memory", claim="Largest memory of the whole command with such pictures", figure=round(largest),
        bar="<= 2000", unit="MB", **facts,
    )  # fmt: skip


if __name__ == "__main__":
    main()
