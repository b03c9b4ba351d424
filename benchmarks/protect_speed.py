"""Pixelation of a folder against bare decoding and encoding of the same files on the same cores.

Bare is two processes that open each file with Pillow, convert it to RGB and save it as PNG; ours is the command line
from start to end with two workers. The two take turns, and the medians are compared.
"""

from __future__ import annotations

import shutil
import statistics
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

from claims import record
from pictures import write_folder
from process import completed

COUNT, REPEATS, WORKERS = 2_000, 3, 2
_BARE = """
import sys
from pathlib import Path
from PIL import Image
source, target, part, parts = Path(sys.argv[1]), Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
files = sorted(file for file in source.rglob("*") if file.suffix in (".jpg", ".png"))
for index in range(part, len(files), parts):
    with Image.open(files[index]) as image:
        image.convert("RGB").save(target / f"{index}.png")
"""


@dataclass(frozen=True, slots=True)
class Times:
    """Seconds of each repeat: ours, bare on the originals, bare on pixelated pictures (quick to encode)."""

    ours: tuple[float, ...]
    bare: tuple[float, ...]
    bare_pixelated: tuple[float, ...]

    @property
    def ratio(self) -> float:
        return statistics.median(self.ours) / statistics.median(self.bare)

    @property
    def hard_ratio(self) -> float:
        return statistics.median(self.ours) / statistics.median(self.bare_pixelated)


def bare(source: Path, target: Path, workers: int) -> float:
    """Seconds that plain decoding and encoding takes."""
    target.mkdir()
    begun = time.perf_counter()
    arguments = [sys.executable, "-c", _BARE, str(source), str(target)]
    children = [subprocess.Popen([*arguments, str(part), str(workers)]) for part in range(workers)]
    codes = [child.wait() for child in children]
    if any(codes):
        raise SystemExit("bare decoding and encoding failed")
    seconds = time.perf_counter() - begun
    shutil.rmtree(target)
    return seconds


def measure(
    work: Path, count: int, *, height: int, width: int, repeats: int = REPEATS, workers: int = WORKERS
) -> Times:
    source = work / "source"
    write_folder(source, count, height=height, width=width)
    ours, plain, pixelated = [], [], []
    for number in range(repeats):
        release = work / f"release{number}"
        ended = completed("protect", source, release, "--method", "pixelate", "--workers", str(workers))
        ours.append(ended.seconds)
        plain.append(bare(source, work / "bare", workers))
        pixelated.append(bare(release, work / "bare", workers))
    return Times(tuple(ours), tuple(plain), tuple(pixelated))


def main() -> None:
    times = {}
    for height, width in ((256, 128), (128, 64)):
        with tempfile.TemporaryDirectory() as folder:
            times[height] = measure(Path(folder), COUNT, height=height, width=width)
        print(height, width, times[height], flush=True)
    why = "start-up (importing torch) takes about two seconds, which small crops are too quick to make up for"
    for identifier, size, height in (("speed-pixelate", "256x128", 256), ("speed-pixelate-small", "128x64", 128)):
        found = times[height]
        record(
            id=identifier,
            claim=f"Pixelation of {COUNT:,} crops of {size} against bare decode + encode on the same cores",
            figure=round(found.ratio, 2),
            bar="<= 1.5",
            unit="x",
            data=f"generated pictures, {size}, JPEG",
            scale=f"{COUNT} pictures, {WORKERS} processes, median of {REPEATS}",
            seed=None,
            command="python benchmarks/protect_speed.py",
            note=f"start-up included: {statistics.median(found.ours):.1f} s against "
            f"{statistics.median(found.bare):.1f} s; against decode + encode of the pixelated pictures, which are "
            f"quicker to encode: {found.hard_ratio:.1f}x" + ("" if found.ratio <= 1.5 else f". Falls short: {why}"),
        )


if __name__ == "__main__":
    main()
