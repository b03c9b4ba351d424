"""Videos: faces covered in one frame and not in the next, speed against deface, memory, and runs that are killed.

    python benchmarks/video.py [--quick] [--only faces|speed|memory|kills] [--deface PATH]

Ten clips of `moving_faces`: five faces in each of two shots, who cross, pass behind pillars, come and go. `faceblur`
protects them, painting black in place of blurring, and so does deface (solid boxes). A face counts as
covered where eight tenths of what is seen of eyes, nose and mouth turned black, and counts at all where at least half
of that is seen. A gap is a face that is not covered in a frame, but was in the one before or after, of the same shot.
deface lives in an environment of its own, as it brings a second OpenCV. --quick is a trial, without a record.
"""

from __future__ import annotations

import argparse
import math
import random
import resource
import subprocess
import tempfile
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise
from pathlib import Path
from typing import Any

import numpy as np
from torch import Tensor

import moving_faces
import process
import veilkit
from claims import record
from moving_faces import Picture, Pixels
from veilkit.media.tracks import Box, Seen, overlap
from veilkit.media.video import VideoLimits, open_clip, read_frames
from veilkit.methods.base import FrameLook
from veilkit.methods.faces.controls import FaceBlur
from veilkit.methods.faces.method import Changed, FoundFace
from veilkit.rng import Randomness

_FIRST_ALONE = ("--set", "second=none", "--set", "bodies=none")  # ten minutes would take an hour otherwise
SEED, CLIPS, FRAMES = 26, 10, 60
COMMAND = "python benchmarks/video.py"
_BLACK, _SEEN = 40, 60  # levels: painted at most, and at least so much lighter before
_COVERED, _VISIBLE, _SMALLEST = 0.8, 0.5, 12


@dataclass(slots=True)
class Counts:
    """Faces in frames, those that are not covered, and those of them that are covered in a neighbouring frame."""

    faces: int = 0
    uncovered: int = 0
    gaps: int = 0

    def __iadd__(self, other: Counts) -> Counts:
        self.faces, self.uncovered, self.gaps = (
            self.faces + other.faces, self.uncovered + other.uncovered, self.gaps + other.gaps,
        )  # fmt: skip
        return self


class Black(FaceBlur):
    """Paints the box of each face black where FaceBlur blurs it, and notes the boxes seen and those covered."""

    def __init__(self) -> None:
        super().__init__()
        self.seen: list[list[Box]] = []
        self.covered: list[list[tuple[int, Box]]] = []

    def change(self, picture: Tensor, face: FoundFace, item: str, *, rng: Randomness) -> Changed:
        """Black where the box is."""
        left, top, right, bottom = face.box
        wide, high = 0.1 * (right - left), 0.1 * (bottom - top)
        painted = picture.clone()
        rows = slice(max(0, math.floor(top - high)), math.ceil(bottom + high))
        painted[:, rows, max(0, math.floor(left - wide)) : math.ceil(right + wide)] = 0
        return Changed(painted, "black")

    def seen_in(self, pixels: Pixels, look: FrameLook) -> list[Seen]:
        seen = super().seen_in(pixels, look)
        self.seen.append([each.box for each in seen if each.certainty == 2])
        return seen

    def treated(
        self, pixels: Pixels, tracks: Sequence[tuple[int, Seen]], item: str, *, rng: Randomness
    ) -> tuple[Pixels, dict[int, str]]:
        self.covered.append([(number, seen.box) for number, seen in tracks if seen.certainty == 2])
        return super().treated(pixels, tracks, item, rng=rng)


def covered(before: Path, after: Path, truth: Sequence[Picture]) -> list[dict[int, bool]]:
    """For each frame, whether each face that is seen well enough is covered."""
    limits, result = VideoLimits(), []
    pair = zip(
        read_frames(open_clip(before, limits), limits),
        read_frames(open_clip(after, limits), limits),
        truth,
        strict=True,
    )
    for one, other, picture in pair:
        light, painted = one.pixels.max(2).astype(int), other.pixels.max(2).astype(int)
        known = {}
        for face in picture.faces:
            if face.visible < _VISIBLE or face.height < _SMALLEST or not len(face.region):
                continue
            rows, columns = face.region.T
            shown = light[rows, columns] >= _SEEN
            if shown.any():
                known[face.who] = bool((painted[rows, columns][shown] <= _BLACK).mean() >= _COVERED)
        result.append(known)
    return result


def count(frames: Sequence[dict[int, bool]], truth: Sequence[Picture]) -> Counts:
    counts = Counts()
    for number, known in enumerate(frames):
        near = [
            frames[other]
            for other in (number - 1, number + 1)
            if 0 <= other < len(frames) and truth[other].shot == truth[number].shot
        ]
        for who, is_covered in known.items():
            counts.faces += 1
            counts.uncovered += not is_covered
            counts.gaps += not is_covered and any(each.get(who, False) for each in near)
    return counts


def flicker(pairs: Sequence[tuple[Box, Box]]) -> float:
    """By how much of its area a box is another size in the next frame, on average."""
    areas = [[(each[2] - each[0]) * (each[3] - each[1]) for each in pair] for pair in pairs]
    return float(np.mean([1 - min(pair) / max(pair) for pair in areas])) if areas else 0.0


def neighbours(seen: Sequence[Sequence[Box]]) -> list[tuple[Box, Box]]:
    """Boxes of neighbouring frames that are one face."""
    return [
        (one, other) for now, then in pairwise(seen) for one in now for other in then if overlap(one, other) > 0.5
    ]


def faces(folder: Path, deface: Path, clips: int, frames: int, *, kept: bool) -> None:
    """Faces covered, by veilkit and by deface; flicker."""
    ours, theirs = Counts(), Counts()
    seen: list[tuple[Box, Box]] = []
    tracked: list[tuple[Box, Box]] = []
    for number in range(clips):
        source = folder / f"clip{number}"
        source.mkdir()
        truth = moving_faces.write(source / "clip.mp4", moving_faces.clip(number, frames, SEED))
        method = Black()
        veilkit.protect(source, folder / f"out{number}", method, workers=0, seed=SEED)
        (made,) = (folder / f"out{number}").glob("*.mp4")
        ours += count(covered(source / "clip.mp4", made, truth), truth)
        seen += neighbours(method.seen)
        for now, then in pairwise(method.covered):
            after = dict(then)
            tracked += [(box, after[track]) for track, box in now if track in after]
        other = folder / f"deface{number}.mp4"
        run_deface(deface, source / "clip.mp4", other, "--replacewith", "solid", "--boxes")
        theirs += count(covered(source / "clip.mp4", other, truth), truth)
        print(f"clip {number}: {ours}, deface {theirs}", flush=True)
    raw, steady = flicker(seen), flicker(tracked)
    print(f"flicker {raw:.4f} seen, {steady:.4f} covered")
    if not kept:
        return
    whose = moving_faces.portraits()[1]
    data = f"{clips} clips of {frames} frames, 854x480, two shots of five moving faces ({whose}), crossings, pillars"
    common: dict[str, Any] = {"data": data, "scale": "small", "seed": SEED, "command": f"{COMMAND} --only faces"}
    record(
        id="video-gaps",
        claim="Videos: faces not covered in a frame, but covered in the one before or after",
        figure=ours.gaps, bar="== 0", unit="faces in frames",
        note=f"of {ours.faces:,} faces in frames; deface 1.5.0 on the same clips: {theirs.gaps}", **common,
    )  # fmt: skip
    record(
        id="video-uncovered",
        claim="Videos: faces not covered, of all in all frames",
        figure=round(100 * ours.uncovered / ours.faces, 3), bar="<= 0.1", unit="%",
        note=f"{ours.uncovered} of {ours.faces:,}; deface 1.5.0: {theirs.uncovered} of {theirs.faces:,}", **common,
    )  # fmt: skip
    record(
        id="video-flicker",
        claim="Videos: how much of its area a covered box changes from frame to frame, against detected ones",
        figure=round(steady / raw, 3), bar="<= 1", unit="x",
        note=f"{100 * steady:.2f} % and {100 * raw:.2f} %; the faces' own changes are in both", **common,
    )  # fmt: skip


def run_deface(deface: Path, source: Path, out: Path, *options: str) -> tuple[float, float]:
    """Seconds, and those of processors, that deface takes."""
    before, begun = resource.getrusage(resource.RUSAGE_CHILDREN), time.perf_counter()
    subprocess.run([deface, source, "-o", out, *options], check=True, capture_output=True)
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.perf_counter() - begun, after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def speed(folder: Path, deface: Path, frames: int, *, kept: bool) -> None:
    """Frames a second against deface on one clip, in processor time: others may use the machine too."""
    source = folder / "speed"
    source.mkdir()
    moving_faces.write(source / "clip.mp4", moving_faces.clip(0, frames, SEED, 1280, 720))
    theirs, spent = run_deface(deface, source / "clip.mp4", folder / "speed.mp4")
    print(f"deface {theirs:.1f} s, {spent:.1f} s of processors", flush=True)
    done = process.completed(
        "protect", source, folder / "speed-out", "--method", "faceblur", "--seed", SEED, watch_memory=True,
        VEILKIT_WEIGHTS=str(folder),
    )  # fmt: skip
    print(f"veilkit {done.seconds:.1f} s, {done.processors:.1f} s of processors", flush=True)
    if kept:
        record(
            id="video-speed",
            claim="Videos: frames a second under faceblur against deface on the same clip",
            figure=round(spent / done.processors, 2), bar=">= 1", unit="x",
            data=f"one clip of {frames} frames, 1280x720, 5 faces", scale="small", seed=SEED,
            command=f"{COMMAND} --only speed",
            note=f"in processor time, start included: {frames / done.processors:.1f} frames a second of a "
            f"processor, deface {frames / spent:.1f}; nobody looks for bodies",
        )  # fmt: skip


def memory(folder: Path, seconds: tuple[int, int], *, kept: bool) -> None:
    """The largest memory of a run on a short clip and on a long one."""
    peaks = []
    for each in seconds:
        source = folder / f"memory{each}"
        source.mkdir()
        moving_faces.write(source / "clip.mp4", repeated(each * moving_faces.RATE))
        done = process.run(
            "protect",
            source,
            folder / f"flat{each}",
            "--method",
            "faceblur",
            "--seed",
            SEED,
            "--workers",
            0,
            *_FIRST_ALONE,
            watch_memory=True,
        )
        if done.code:
            raise SystemExit(done.output)
        peaks.append(done.megabytes)
        print(f"{each} s of video: {done.megabytes:.0f} MB in {done.seconds:.0f} s", flush=True)
    if kept:
        record(
            id="video-memory",
            claim="Videos: peak memory for 10 minutes against 10 seconds of the same",
            figure=round(peaks[1] / peaks[0], 3), bar="<= 1.05", unit="x", data="214x120 pixels, one finder",
            scale="small", seed=SEED, command=f"{COMMAND} --only memory",
            note=f"{peaks[0]:.0f} MB and {peaks[1]:.0f} MB, start included",
        )  # fmt: skip


def repeated(frames: int) -> Iterator[Picture]:
    """A short clip, again and again."""
    some = list(moving_faces.clip(3, 100, SEED, 214, 120))
    return (some[number % len(some)] for number in range(frames))


def kills(folder: Path, times: int, frames: int, *, kept: bool) -> None:
    """Kill runs at random moments; each is then ended by the same command."""
    source, whole = folder / "kills", folder / "whole"
    source.mkdir()
    moving_faces.write(source / "clip.mp4", moving_faces.clip(4, frames, SEED, 428, 240))
    options = ("--method", "faceblur", "--seed", SEED, "--workers", 1)
    done = process.run("protect", source, whole, *options)
    (made,) = whole.glob("*.mp4")
    wanted, same, resumed = made.read_bytes(), 0, 0
    rng = random.Random(SEED)
    for number in range(times):
        out, at = folder / f"killed{number}", (number + 0.5) / times * done.seconds
        process.run_and_kill(
            "protect", source, out, *options, until=lambda: False, latest=at, alone=number % 2 == 0, rng=rng
        )
        resumed += any(out.with_name(out.name + ".private").rglob("part-*.nut"))
        finished = process.run("protect", source, out, *options)
        (file,) = out.glob("*.mp4")
        limits = VideoLimits()
        same += finished.code == 0 and file.read_bytes() == wanted
        played = sum(1 for _ in read_frames(open_clip(file, limits), limits))
        print(
            f"killed after {at:.1f} s: {'same' if file.read_bytes() == wanted else 'other'} bytes, {played} frames",
            flush=True,
        )
        if played != frames:
            raise SystemExit(f"{played} frames in place of {frames}")
    if kept:
        record(
            id="video-kills",
            claim="Videos: runs killed by `kill -9` and gone on with that end in other bytes than an unbroken one",
            figure=times - same, bar="== 0", unit="runs", data=f"{frames} frames, 428x240, {times} kills",
            scale="small", seed=SEED, command=f"{COMMAND} --only kills",
            note=f"{resumed} of them when some parts were done; all play, with all frames",
        )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--quick", action="store_true")
    parser.add_argument("--only", choices=("faces", "speed", "memory", "kills"), action="append")
    parser.add_argument("--deface", type=Path, default=Path("deface"), help="the command, in its own environment")
    asked = parser.parse_args()
    quick, wanted = asked.quick, asked.only or ("faces", "speed", "memory", "kills")
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        if "faces" in wanted:
            faces(folder, asked.deface, *((1, 30) if quick else (CLIPS, FRAMES)), kept=not quick)
        if "speed" in wanted:
            speed(folder, asked.deface, 25 if quick else 250, kept=not quick)
        if "memory" in wanted:
            memory(folder, (2, 8) if quick else (10, 600), kept=not quick)
        if "kills" in wanted:
            kills(folder, 2 if quick else 10, 120 if quick else 300, kept=not quick)


if __name__ == "__main__":
    main()
