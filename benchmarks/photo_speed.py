"""Processor time for photographs of 2 megapixels: faces found, hidden and saved, against deface on the same files.

    VEILKIT_DATA=... VEILKIT_WEIGHTS=... python benchmarks/photo_speed.py [--deface COMMAND] [--photos N]

The photographs are composed scenes of LFW's training people (`face_scenes.py`), enlarged; JPEG in, JPEG out.
`faceblur` protects them in one worker, as it is and with `--set search=quick`, and so does deface.
Counted is the processor time of all processes from start to end, once for one photograph and once for all: the
difference is what a photograph takes in a folder, the first is mostly the start. Nobody looks for bodies, for which
no package has weights. deface lives in an environment of its own, as it brings a second OpenCV.
"""

from __future__ import annotations

import argparse
import os
import resource
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Sequence
from pathlib import Path

import cv2
from PIL import Image

from claims import record
from face_scenes import scene
from process import command

COMMAND = "python benchmarks/photo_speed.py"
SIZE, QUALITY = (1632, 1224), 92
_WHY = (
    "the second look searches each picture in twelve more ways; search=quick is for those who can look through the "
    "release themselves"
)
_QUICK_WHY = "its first look is the whole of deface's work, and it looks at turned pictures besides"


def processor_seconds(arguments: Sequence[str]) -> float:
    """Of a command and all that it starts."""
    plain = {name: value for name, value in os.environ.items() if not name.startswith("VEILKIT_")}
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    subprocess.run(arguments, check=True, capture_output=True, env=plain)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def per_photo(files: Sequence[Path], work: Path, arguments: Callable[[Path], list[str]]) -> tuple[float, float]:
    """Seconds for one photograph alone, and for each further one."""
    spent = []
    for count in (1, len(files)):
        folder = work / f"photos{count}"
        folder.mkdir(parents=True)
        for file in files[:count]:
            shutil.copy(file, folder)
        spent.append(processor_seconds(arguments(folder)))
    return spent[0], (spent[1] - spent[0]) / (len(files) - 1)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deface", default=shutil.which("deface"), help="its command, where it is not on the path")
    parser.add_argument("--photos", type=int, default=12)
    options = parser.parse_args()
    if options.deface is None or shutil.which(options.deface) is None:
        sys.exit("deface is not installed: pip install deface, in an environment of its own, and name it by --deface")
    with tempfile.TemporaryDirectory() as name:
        root = Path(name)
        files = [root / f"{number:02}.jpg" for number in range(options.photos)]
        for number, file in enumerate(files):
            large = cv2.resize(scene(number, train=True).pixels, SIZE, interpolation=cv2.INTER_CUBIC)
            Image.fromarray(large).save(file, quality=QUALITY)

        def ours(*settings: str) -> Callable[[Path], list[str]]:
            return lambda folder: command(
                "protect", folder, folder.with_name(f"{folder.name}-out"), "--method", "faceblur", "--seed", "1",
                "--workers", "1", *settings,
            )  # fmt: skip

        theirs = per_photo(files, root / "deface", lambda folder: [options.deface, str(folder)])
        print(f"deface: {theirs[0]:.2f} s for one, {theirs[1]:.3f} s for each more", flush=True)
        for key, label, settings, why in (
            ("quick", "search=quick", ("--set", "search=quick"), _QUICK_WHY),
            ("default", "the default", (), _WHY),
        ):
            found = per_photo(files, root / key, ours(*settings))
            print(f"{label}: {found[0]:.2f} s for one, {found[1]:.3f} s for each more", flush=True)
            ratio = found[1] / theirs[1]
            record(
                id=f"photo-speed-{key}",
                claim=f"processor time for a photograph of 2 megapixels, {label}, against deface",
                figure=round(ratio, 2), bar="<= 1", unit="x", data="composed scenes of LFW's training people, JPEG",
                scale=f"{options.photos} photographs of {SIZE[0]}x{SIZE[1]}", seed=1, command=COMMAND,
                note=f"{found[1]:.2f} s against {theirs[1]:.2f} s for each further photograph, and {found[0]:.1f} s "
                f"against {theirs[0]:.1f} s for one alone, start included; {why}",
            )  # fmt: skip


if __name__ == "__main__":
    main()
