"""A picture of 16x100,000 pixels and one of 1x50,000,000, each a few kilobytes, under every method.

    python benchmarks/extreme_pictures.py

Each method protects a folder with both and four ordinary pictures, by the command. The two must be refused or done.
Time and memory are those of the whole command.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path

from claims import ROOT, record
from pictures import write_folder
from process import Finished, run

sys.path.insert(0, str(ROOT))

from tests.pipeline.test_limits import flat

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
}  # fmt: skip


def protect(method: str, folder: Path) -> Finished:
    source = folder / "source"
    write_folder(source, 4, people=2, height=64, width=32)
    person = next(path for path in sorted(source.iterdir()) if path.is_dir())
    for width, height in ((16, 100_000), (1, 50_000_000)):
        (person / f"{width}.png").write_bytes(flat(width, height))
    return run(
        "protect", source, folder / "release", "--method", method, *SETTINGS[method], "--workers", "2",
        watch_memory=True,
    )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "--only", nargs="*", default=sorted(SETTINGS), help="methods to try; nothing is recorded then"
    )
    chosen = parser.parse_args().only
    unaccounted, slowest, largest = 0, 0.0, 0.0
    for method in chosen:
        with tempfile.TemporaryDirectory() as folder:
            done = protect(method, Path(folder))
            released = len(list((Path(folder) / "release").rglob("*.png")))
        refused = done.output.count("picture too long")
        accounted = (done.code == 3 and "2 picture too long" in " ".join(done.output.split())) or refused >= 1
        print(f"{method:12} exit {done.code}, {released} released, {done.seconds:.1f} s, {done.megabytes:.0f} MB")
        if not accounted or "Traceback" in done.output:
            unaccounted += 1
            print(done.output)
        slowest, largest = max(slowest, done.seconds), max(largest, done.megabytes)
    if chosen != sorted(SETTINGS):
        return
    facts = {
        "data": "two PNG files of 16x100,000 and 1x50,000,000 pixels beside generated people",
        "scale": f"{len(SETTINGS)} methods, 2 workers",
        "seed": None,
        "command": "python benchmarks/extreme_pictures.py",
    }
    record(
        id="extreme-unaccounted", claim="Methods under which very long pictures are neither refused nor done",
        figure=unaccounted, bar="== 0", unit="methods", **facts,
    )  # fmt: skip
    record(
        id="extreme-seconds", claim="Longest time of the whole command with such pictures", figure=round(slowest, 1),
        bar="<= 30", unit="s", **facts,
    )  # fmt: skip
    record(
        id="extreme-memory", claim="Largest memory of the whole command with such pictures", figure=round(largest),
        bar="<= 2000", unit="MB", **facts,
    )  # fmt: skip


if __name__ == "__main__":
    main()
