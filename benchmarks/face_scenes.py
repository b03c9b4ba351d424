"""300 photographs with 3,000 faces: which of them methods on faces find, and which leave recognisable.

    python benchmarks/face_scenes.py [--deface COMMAND] [--only FIRST,LAST] [--so-far] [--train]

LFW is looked for in VEILKIT_DATA, YuNet and MobileFaceNet in VEILKIT_WEIGHTS.

Ten faces of LFW's test people on each background (`composed_scenes.py`), 12 to 400 pixels high, turned by any angle;
some in profile, with glasses or a mask, half covered, cut off or dark. Measured are
- the faces that leave recognisable: to MobileFaceNet, which finds no faces, the released face matches its own
  portrait at a threshold that accepts one of a thousand pairs of strangers, aligned by points that are known;
- the faces left untouched, most pixels between eyes and mouth as before, and those of them in pictures of which
  nothing was told;
- the share of the background that was changed, farther from a face than its own half;
- recall by size and turn, precision and time of each detector, on the first 30 scenes.
deface protects the same scenes; search=quick and the former default, dlib, the first 30. A picture in which the
default has doubts is looked at once more as `--on-doubt pixelate-picture` releases it. Work on a scene is kept in
runs/face-scenes, so that a run that was stopped goes on; --only works on some scenes, and several such runs may share
the work. --train takes other people and other scenes, on which thresholds may be chosen, and records nothing.
"""

from __future__ import annotations

import argparse
import json
import os
import shutil
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from PIL import Image

from claims import record
from composed_scenes import FACES, Placed, Portrait, Scene, compose
from face_composites import lfw_files
from veilkit.experts.alignment import ARCFACE
from veilkit.experts.base import Detector
from veilkit.experts.dlib_faces import DlibDetector
from veilkit.experts.faces import load_face_embedder
from veilkit.experts.finders import load_finder, load_second
from veilkit.experts.pixel_detector import ask
from veilkit.experts.yunet import YuNet
from veilkit.methods.faces.controls import FaceBlur, FaceBlurConfig
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

COMMAND = "python benchmarks/face_scenes.py"
SCENES, COMPARED, SEED, TRAIN_SEED = 300, 30, 37, 1037
FPR = 1e-3
SIZES = ((12, 16), (16, 24), (24, 48), (48, 100), (100, 200), (200, 401))
TURNS = ((0, 22.5), (22.5, 67.5), (67.5, 112.5), (112.5, 157.5), (157.5, 180.1))
WORK = Path("runs/face-scenes")
WHY = {  # rows fall short, where that is known
    "face-scenes-background-default": "the second look hides what may be a face, and what is as sure to be one as a "
    "cat's: that is what finding nine faces of ten costs",
    "face-scenes-background-dlib": "pictures in which dlib found no face were pixelated as a whole",
    "face-scenes-silent-quick": "search=quick does not look a second time; it is not the default",
}
_FOUND, _TOO_LARGE = 0.6, 4.0  # of a face's inner box that a detection covers; times its box that it may be large
_CHANGED, _CHANGED_JPEG = 1.5, 24  # of 255
_BETWEEN = 22.5  # degrees

METHODS: dict[str, Callable[[], FaceBlur]] = {
    "default": lambda: FaceBlur(FaceBlurConfig(bodies="none")),
    "quick": lambda: FaceBlur(FaceBlurConfig(bodies="none", search="quick")),
    "dlib": lambda: FaceBlur(FaceBlurConfig(finder="dlib", second="dlib", bodies="none")),
}
DETECTORS: dict[str, Callable[[], Detector]] = {
    "dlib": lambda: DlibDetector(5),
    "YuNet, whole size": lambda: YuNet.load(longest=100_000),
    "CenterFace": lambda: load_finder("centerface"),
    "MTCNN": lambda: load_finder("mtcnn"),
    "RetinaFace": lambda: load_finder("retinaface"),
    "quick": lambda: _both("quick"),
    "default (thorough)": lambda: _both("thorough"),
}


def _both(search: str) -> Detector:
    found = load_second("auto", "centerface", search)
    assert found is not None
    return found


def data_folder() -> Path:
    folder = os.environ.get("VEILKIT_DATA")
    if not folder or not (Path(folder) / "lfw").is_dir():
        sys.exit("this needs research data: VEILKIT_DATA names no folder with lfw")
    return Path(folder) / "lfw"


@cache
def portraits(train: bool) -> tuple[Portrait, ...]:
    """One picture of each person, with the box and the points that YuNet sees in it."""
    finder, found = YuNet.load(), []
    for file in lfw_files(data_folder(), test=not train)[: SCENES * FACES]:
        pixels = np.asarray(Image.open(file).convert("RGB"))
        seen = finder.find(pixels)
        middles = (seen.boxes[:, :2] + seen.boxes[:, 2:]) / 2
        apart = (middles - pixels.shape[0] / 2).norm(dim=1)
        if len(apart) and apart.min() < 25:  # the person whom the picture is of
            face = int(apart.argmin())
            box = tuple(seen.boxes[face].tolist())
            found.append(Portrait(pixels, box, seen.points[face].double().numpy(), file.parent.name))
    return tuple(found)


def scene(number: int, train: bool) -> Scene:
    """Ten people on a background."""
    people, seed = portraits(train), TRAIN_SEED if train else SEED
    order = Randomness.from_seed(seed).child("cast").numpy().permutation(len(people))
    start = number * FACES
    cast = [int(order[(start + place) % len(order)]) for place in range(FACES)]
    return compose(people, cast, number, seed)


def features(pixels: np.ndarray, five: Sequence[np.ndarray]) -> np.ndarray:
    """(K, 128), unit vectors of the faces whose points are given."""
    image = torch.from_numpy(pixels.copy()).permute(2, 0, 1).float().div(255)
    points = torch.from_numpy(np.stack(five)).float()
    crops = torch.cat([ARCFACE.align(image[None], each[None]) for each in points])
    return torch.nn.functional.normalize(_judge().embed(crops)).numpy()


@cache
def _judge() -> Any:
    return load_face_embedder("mobilefacenet")


def inner(face: Placed, pixels: np.ndarray) -> tuple[slice, slice]:
    """Rows and columns between eyes and mouth, as far as they are in the picture."""
    left, top, right, bottom = (round(edge) for edge in face.inner)
    height, width = pixels.shape[:2]
    return slice(min(max(0, top), height - 1), max(1, min(bottom, height))), slice(
        min(max(0, left), width - 1), max(1, min(right, width))
    )


def judged(made: Scene, released: np.ndarray, told: bool, least: float) -> dict[str, Any]:
    """What became of a scene: of each face whether it is as before, and what its features are; the background."""
    apart = np.abs(released.astype(int) - made.pixels).max(2) > least
    left = [bool(apart[inner(face, made.pixels)].mean() <= 0.5) for face in made.faces]
    beyond = np.ones(apart.shape, bool)
    for face in made.faces:
        x, y = (face.box[0] + face.box[2]) / 2, (face.box[1] + face.box[3]) / 2
        reach = max(face.box[2] - face.box[0], face.box[3] - face.box[1])
        rows = slice(max(0, round(y - reach)), max(0, round(y + reach)))
        beyond[rows, max(0, round(x - reach)) : max(0, round(x + reach))] = False
    seen = features(released, [face.five for face in made.faces])
    return {
        "untouched": left,
        "told": told,
        "beyond": int(beyond.sum()),
        "changed beyond": int((apart & beyond).sum()),
        "features": np.round(seen, 4).tolist(),
    }


def protected(method: FaceBlur, made: Scene) -> dict[str, Any]:
    """The scene protected by a method, and the processor time of that."""
    image = torch.from_numpy(made.pixels.copy()).permute(2, 0, 1).float().div(255)[None]
    begun = time.process_time()
    release = method.protect(ImageBatch(image, ("scene",)), rng=Randomness.from_seed(SEED))
    spent = time.process_time() - begun
    assert release.images is not None
    assert release.reports is not None
    pixels = release.images[0].mul(255).round().byte().permute(1, 2, 0).numpy()
    report = release.reports[0]
    result, counts = judged(made, pixels, bool(report.notes), _CHANGED), report.details["counts"]
    if counts["doubtful"] and method.config.on_doubt == "hide" and method.config.search == "thorough":
        whole = FaceBlur.pixelated_frame(made.pixels)
        result["whole"] = judged(made, whole, True, _CHANGED)
    return {**result, "seconds": spent, "counts": counts}


def detected(detector: Detector, made: Scene) -> dict[str, Any]:
    """Which faces a detector finds, how many other things, and the processor time."""
    begun = time.process_time()
    found = ask(detector, made.pixels)
    spent = time.process_time() - begun
    boxes = found.boxes.numpy()
    hits = []
    for face in made.faces:
        rows, columns = inner(face, made.pixels)
        wide = np.minimum(boxes[:, 2], columns.stop) - np.maximum(boxes[:, 0], columns.start)
        high = np.minimum(boxes[:, 3], rows.stop) - np.maximum(boxes[:, 1], rows.start)
        shared = wide.clip(0) * high.clip(0) / ((columns.stop - columns.start) * (rows.stop - rows.start))
        sides = np.array(face.box[2:]) - face.box[:2]
        fits = (boxes[:, 2:] - boxes[:, :2]).prod(1) < _TOO_LARGE * sides.prod()
        hits.append(bool((shared * fits >= _FOUND).any()))
    height, width = made.heads.shape
    x = ((boxes[:, 0] + boxes[:, 2]) / 2).astype(int).clip(0, width - 1)
    y = ((boxes[:, 1] + boxes[:, 3]) / 2).astype(int).clip(0, height - 1)
    return {"hits": hits, "boxes": len(boxes), "on heads": int(made.heads[y, x].sum()), "seconds": spent}


def work_on(numbers: Sequence[int], work: Path, train: bool) -> None:
    """Everything of some scenes that is not there yet: by the default of all of them, and then the comparison."""
    (work / "scenes").mkdir(exist_ok=True)
    methods = {name: make() for name, make in METHODS.items()}
    for number in numbers:
        _kept(number, work, train, {"default": methods["default"]}, {})
    detectors = {name: make() for name, make in DETECTORS.items()}
    blank = np.zeros((160, 160, 3), np.uint8)
    for each in detectors.values():  # what is loaded at first use is not part of anybody's time
        ask(each, blank)
    for number in numbers:
        if number < COMPARED:
            _kept(number, work, train, methods, detectors)


def _kept(
    number: int, work: Path, train: bool, methods: Mapping[str, FaceBlur], detectors: Mapping[str, Detector]
) -> None:
    """A scene's facts, on disk, with what is asked for of it."""
    file = work / f"{number:03d}.json"
    facts: dict[str, Any] = json.loads(file.read_text()) if file.exists() else {}
    if facts and facts["methods"].keys() >= methods.keys() and facts["detectors"].keys() >= detectors.keys():
        return
    made = scene(number, train)
    (work / "scenes" / f"{number:03d}.jpg").write_bytes(made.file)
    facts = facts or {
        "pixels": made.pixels.shape[0] * made.pixels.shape[1],
        "faces": [{"size": f.size, "turn": abs(f.angle), "kind": f.kind, "who": f.source} for f in made.faces],
        "before": np.round(features(made.pixels, [face.five for face in made.faces]), 4).tolist(),
        "methods": {}, "detectors": {},
    }  # fmt: skip
    facts["methods"] |= {n: protected(m, made) for n, m in methods.items() if n not in facts["methods"]}
    facts["detectors"] |= {n: detected(d, made) for n, d in detectors.items() if n not in facts["detectors"]}
    draft = file.with_suffix(f".{os.getpid()}")
    draft.write_text(json.dumps(facts))
    draft.replace(file)


def defaced(command: str, work: Path, numbers: Sequence[int], train: bool) -> dict[int, dict[str, Any]]:
    """deface's releases of all scenes, judged; kept as well."""
    kept = work / "deface.json"
    found = {int(number): facts for number, facts in json.loads(kept.read_text()).items()} if kept.exists() else {}
    missing = [number for number in numbers if number not in found]
    if not missing:
        return found
    with tempfile.TemporaryDirectory() as folder:
        photos = Path(folder) / "photos"
        photos.mkdir()
        for number in missing:
            shutil.copy(work / "scenes" / f"{number:03d}.jpg", photos)
        done = subprocess.run([command, str(photos)], capture_output=True, text=True, check=False)
        if done.returncode:
            sys.exit(f"deface ended with {done.returncode}: {done.stderr[-500:]}")
        for number in missing:
            made = scene(number, train)
            released = np.asarray(Image.open(photos / f"{number:03d}_anonymized.jpg").convert("RGB"))
            found[number] = judged(made, released, False, _CHANGED_JPEG)
    kept.write_text(json.dumps(found))
    return found


class Summary:
    """The facts of all scenes, together."""

    def __init__(self, facts: Mapping[int, Mapping[str, Any]], train: bool) -> None:
        self.facts = facts
        self.own = features_of_portraits(train)
        self.who = np.array([face["who"] for each in facts.values() for face in each["faces"]])
        before = np.array([row for each in facts.values() for row in each["before"]])
        scores = before @ self.own.T
        strangers = np.sort(scores[np.arange(len(self.own))[None] != self.who[:, None]])[::-1]
        self.threshold = float(strangers[int(FPR * len(strangers))])
        self.before = self.recognised(before, self.who)
        self.between_turns = 0

    def recognised(self, released: np.ndarray, who: np.ndarray) -> np.ndarray:
        """Which released faces match their own portraits."""
        return np.asarray((released * self.own[who]).sum(1) > self.threshold)

    def of(self, outcomes: Sequence[Mapping[str, Any]], scenes: Sequence[int]) -> dict[str, float]:
        """The shares of one method's outcomes on some scenes."""
        who = np.array([face["who"] for number in scenes for face in self.facts[number]["faces"]])
        known = self.recognised(np.array([row for each in outcomes for row in each["features"]]), who)
        left = np.array([face for each in outcomes for face in each["untouched"]])
        silent = np.array([face and not each["told"] for each in outcomes for face in each["untouched"]])
        return {
            "faces": len(who), "untouched": int(left.sum()), "silent": int(silent.sum()),
            "recognised": int((known & left).sum()), "recognised, changed": int((known & ~left).sum()),
            "background": sum(e["changed beyond"] for e in outcomes) / sum(e["beyond"] for e in outcomes),
        }  # fmt: skip

    def left(self, scenes: Sequence[int]) -> list[str]:
        """The faces that the default leaves recognisable, as somebody looks for the reason."""
        found = []
        for number in scenes:
            facts = self.facts[number]
            outcome = facts["methods"]["default"]
            known = self.recognised(np.array(outcome["features"]), np.array([face["who"] for face in facts["faces"]]))
            for face, each, untouched in zip(facts["faces"], known, outcome["untouched"], strict=True):
                if each:
                    self.between_turns += abs(face["turn"] % 90 - 45) < _BETWEEN
                    how = "untouched" if untouched else "changed"
                    size = f"{face['size']:.0f} pixels, {face['turn']:.0f} degrees"
                    found.append(f"scene {number}: {how}, {face['kind']}, {size}")
        return found


@cache
def features_of_portraits(train: bool) -> np.ndarray:
    return np.concatenate([features(each.pixels, [each.five]) for each in portraits(train)])


def bins(summary: Summary, name: str) -> dict[str, Any]:
    """One row of the table of detectors."""
    some = [facts for facts in summary.facts.values() if name in facts["detectors"]]
    pairs = [pair for facts in some for pair in zip(facts["faces"], facts["detectors"][name]["hits"], strict=True)]

    def recall(key: str, low: float, high: float) -> float:
        hits = [
            hit
            for face, hit in pairs
            if low <= face[key] < high or (key == "size" and face[key] < low == SIZES[0][0])
        ]
        return float(np.mean(hits)) if hits else float("nan")

    boxes = sum(facts["detectors"][name]["boxes"] for facts in some)
    return {
        "faces": len(pairs),
        "all": float(np.mean([hit for _, hit in pairs])),
        "sizes": [recall("size", *each) for each in SIZES],
        "turns": [recall("turn", *each) for each in TURNS],
        "precision": sum(facts["detectors"][name]["on heads"] for facts in some) / max(1, boxes),
        "seconds": sum(facts["detectors"][name]["seconds"] for facts in some) / sum(f["pixels"] for f in some) * 1e6,
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--deface", default=shutil.which("deface"), help="the command of deface")
    parser.add_argument("--only", help="numbers of the first and behind the last scene to work on, and no summary")
    parser.add_argument("--so-far", action="store_true", help="no more work: what there is, and how many that are")
    parser.add_argument("--train", action="store_true", help="other people; nothing is recorded")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    cv2.setNumThreads(1)
    work = WORK / ("train" if arguments.train else "test")
    work.mkdir(parents=True, exist_ok=True)
    first, last = map(int, arguments.only.split(",")) if arguments.only else (0, SCENES)
    if not arguments.so_far:
        work_on(range(first, last), work, arguments.train)
    if arguments.only:
        return
    every = [number for number in range(SCENES) if (work / f"{number:03d}.json").exists()]
    facts = {number: json.loads((work / f"{number:03d}.json").read_text()) for number in every}
    summary = Summary(facts, arguments.train)
    print(f"threshold {summary.threshold:.3f}; recognised before: {summary.before.mean():.3f}")
    results = {}
    for name in METHODS:
        which = [number for number in every if name in facts[number]["methods"]]
        if len(which) >= min(COMPARED, len(every)):  # else the comparison was stopped
            results[name] = summary.of([facts[number]["methods"][name] for number in which], which)
            results[name]["seconds"] = sum(facts[n]["methods"][name]["seconds"] for n in which) / sum(
                facts[n]["pixels"] / 1e6 for n in which
            )
    outcomes = [facts[number]["methods"]["default"] for number in every]
    results["whole"] = summary.of([each.get("whole", each) for each in outcomes], every)
    results["whole"]["pictures"] = float(np.mean(["whole" in each for each in outcomes]))
    if arguments.deface:
        released = defaced(arguments.deface, work, every, arguments.train)
        results["deface"] = summary.of([released[number] for number in every], every)
    for name, result in results.items():
        print(name, json.dumps(result))
    asked = [name for name in DETECTORS if sum(name in f["detectors"] for f in facts.values()) >= COMPARED]
    table = {name: bins(summary, name) for name in asked}
    for name, row in table.items():
        print(name, json.dumps(row))
    for left in summary.left(every):
        print("left, and recognised:", left)
    if not arguments.train:
        recorded(summary, results, table)


def recorded(summary: Summary, results: Mapping[str, Mapping[str, float]], table: Mapping[str, Any]) -> None:
    """The rows of the claims."""
    data, about = "LFW, test people, on generated backgrounds and photographs of scikit-image", {"seed": SEED}
    named = {
        "default": "the default",
        "whole": "the default with --on-doubt pixelate-picture",
        "quick": "search=quick",
        "dlib": "the former default (dlib)",
        "deface": "deface",
    }
    for key, name in named.items():
        if key not in results:
            continue
        found = results[key]
        faces, bar = found["faces"], " (for comparison)" if key in ("dlib", "deface") else ""
        common: dict[str, Any] = {**about, "data": data, "command": COMMAND, "scale": f"{faces} faces"}
        note = (
            f"{found['untouched']} of {faces} faces untouched, {found['recognised']} of them recognised; "
            f"{found['recognised, changed']} that were changed match all the same; {summary.before.mean():.1%} of "
            f"the faces are recognised before; threshold {summary.threshold:.3f}"
        )
        if key == "default":
            note += (
                f"; {summary.between_turns} of those left are turned by about an odd eighth, at which nobody looks; "
            )
            note += f"{FPR * faces:.0f} would match by chance, were all replaced by strangers"
        if key == "whole":
            note = f"{found['pictures']:.0%} of the pictures are in doubt, and pixelated as a whole; {note}"
        known = found["recognised"] + found["recognised, changed"]
        record(
            id=f"face-scenes-recognisable-{key}",
            claim=f"composed scenes, {name}: faces that leave recognisable{bar}",
            figure=round(100 * known / faces, 2), bar="<= 0.1", unit="%", note=note, **common,
        )  # fmt: skip
        if key == "whole":
            continue
        record(
            id=f"face-scenes-background-{key}", claim=f"composed scenes, {name}: background changed{bar}",
            figure=round(100 * found["background"], 3), bar="<= 1", unit="%",
            note=WHY.get(f"face-scenes-background-{key}", ""), **common,
        )  # fmt: skip
        if key != "deface":
            record(
                id=f"face-scenes-silent-{key}", claim=f"composed scenes, {name}: faces untouched, and the picture "
                f"not named{bar}", figure=found["silent"], bar="== 0", unit="faces",
                note=WHY.get(f"face-scenes-silent-{key}", ""), **common,
            )  # fmt: skip
    best = max((row["all"] for name, row in table.items() if name not in ("quick", "default (thorough)")), default=0)
    for name, row in table.items():
        sizes = ", ".join(
            f"{low}-{high - high % 2}: {v:.2f}" for (low, high), v in zip(SIZES, row["sizes"], strict=True)
        )
        turns = ", ".join(f"{low}-{high:.0f}: {v:.2f}" for (low, high), v in zip(TURNS, row["turns"], strict=True))
        slug = name.split()[0].rstrip(",").lower()
        record(
            id=f"face-scenes-recall-{slug}", claim=f"composed scenes: faces that {name} finds", unit="%",
            figure=round(100 * row["all"], 1), bar=f">= {100 * best:.1f}" if slug == "default" else ">= 0",
            note=f"by height in pixels {sizes}; by degrees turned {turns}; precision {row['precision']:.3f}; "
            f"{row['seconds']:.2f} s of processor time a megapixel", data=data, command=COMMAND,
            scale=f"{row['faces']} faces", **about,
        )  # fmt: skip


if __name__ == "__main__":
    main()
