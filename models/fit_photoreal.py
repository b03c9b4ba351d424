"""Fit src/veilkit/synthetic/photoreal/space.safetensors: what is known of the styles of the photoreal faces.

    VEILKIT_DATA=... python models/fit_photoreal.py --work runs/photoreal

Three steps, each kept in the work folder: small pictures off early blocks; faces drawn from random styles with their
landmarks and features; landmarks of LFW's training people, for which of them vary within a person. Then ridge
regressions; sex, age and glasses from labels of 240 drawn faces, given by eye. About ten minutes of one core.
"""

from __future__ import annotations

import argparse
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import cv2
import numpy as np
import torch
import torch.nn.functional as F
from scipy.linalg import eigh
from torch import Tensor

from veilkit.datasets.lfw import load_lfw, outside_folds
from veilkit.experts.alignment import CHIP
from veilkit.experts.dlib_faces import DlibDetector
from veilkit.experts.dlib_identity import DlibIdentity
from veilkit.experts.names import DATA
from veilkit.media.reading import Limits, decode
from veilkit.methods.faces.blending import hair_on_forehead, nearest_similarity, skin_lightness
from veilkit.methods.faces.photoreal import PhotorealConfig, Strangers
from veilkit.rng import Randomness
from veilkit.synthetic.photoreal.generator import PhotorealFaces
from veilkit.synthetic.photoreal.network import CHANNELS, EARLY, EarlyImage
from veilkit.synthetic.photoreal.space import TRAITS, StyleSpace

SEED, SPREAD = 77, 0.8
TAUGHT, STEPS, CROP, BATCH = 72, 900, 64, 2  # of the early pictures
SAMPLES, COMPONENTS, SIDE = 800, 100, 256
PEOPLE, SHOTS, FOLDS = 600, 4, (8, 9, 10)  # of LFW; the folds' people are left out
SHAPES, ROWS = 25, 29
FEATURES = 1600  # faces from which it is learned how styles change features
STRONG = 100.0
# Of the first samples: m and f are men and women of about 18 to 45, M and F older ones, c children; ? is unclear.
LABELS = (
    "mcffmmmmFMMfcmMFmfMFmmfmfcmfFmfmMmfFmcMmmcmMmffmmfmfmfcfcfffccFfMmmfFffmfffmfffmmfcffcmmfffccffcmmcmfMff?mfmmfmfFfMMm"
    "ffcfmMfm?mcmfmffffffccmfmcmcfcmmfcmFmmfmfmFmfmFccFfmMcmMfcmffcmmmmfmmcfmcmcMfmffmmFffffmfFMFMfFmMfcffmmmmfmFcFfccFmmM"
    "mfffmc"
)
GLASSES = (
    7, 10, 35, 44, 62, 66, 71, 79, 86, 89, 97, 101, 106, 112, 124, 133, 175, 184, 192, 195, 199, 217, 224, 227, 233,
)  # fmt: skip


def kept(file: Path, compute: Callable[[], dict[Any, Any]]) -> dict[Any, Any]:
    if not file.exists():
        torch.save(compute(), file)
    found: dict[Any, Any] = torch.load(file, weights_only=True)
    return found


@torch.no_grad()
def crops_of_maps(faces: PhotorealFaces) -> dict[Any, Any]:
    """By side: a square of an early map, of the last picture, shrunk, and the style."""
    synthesis, found = faces._synthesis, {side: [] for side in EARLY}
    for number, style in enumerate(faces.random_styles(TAUGHT, Randomness.from_seed(1), SPREAD)):
        styles = synthesis.per_layer(style[None])
        whole = synthesis(styles).clamp(-1.1, 1.1)
        for side, block in EARLY.items():
            maps, _ = synthesis.early(styles, block)
            wanted = F.interpolate(whole, size=(side, side), mode="area")
            place = torch.Generator().manual_seed(number)
            y, x = (int(torch.randint(0, side // 2 - CROP + 1, (1,), generator=place)) for _ in range(2))
            square = wanted[:, :, 2 * y : 2 * (y + CROP), 2 * x : 2 * (x + CROP)]
            found[side].append((maps[:, :, y : y + CROP, x : x + CROP].half(), square, style[None]))
    return found


def early(faces: PhotorealFaces, work: Path) -> dict[str, Any]:
    data, state = kept(work / "maps.pt", lambda: crops_of_maps(faces)), {}
    for side, block in EARLY.items():
        torch.manual_seed(0)
        network = EarlyImage(CHANNELS[block - 1])
        size = torch.cat([maps.float() for maps, _, _ in data[side][:12]]).square().mean((0, 2, 3)).sqrt()
        with torch.no_grad():
            for scale in (network.scale, network.to_image.scale):
                scale.weight.mul_(0.02)
                scale.bias.fill_(1)
            noise = torch.randn_like(network.enter.weight) / len(size) ** 0.5
            network.enter.weight.copy_(noise / size[None, :, None, None].clamp(min=1e-3))
            network.to_image.bands.weight.mul_(0.3)
        enter = list(network.enter.parameters())
        others = [each for name, each in network.named_parameters() if not name.startswith("enter")]
        rates = (3e-3 / float(size.mean()), 3e-3)
        optimizer = torch.optim.Adam([{"params": enter, "lr": rates[0]}, {"params": others, "lr": rates[1]}])
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, list(rates), STEPS, pct_start=0.05)
        for _ in range(STEPS):
            some = [data[side][place] for place in torch.randint(0, TAUGHT, (BATCH,)).tolist()]
            maps, wanted, styles = (torch.cat([each[part].float() for each in some]) for part in range(3))
            loss = (network(maps.contiguous(memory_format=torch.channels_last), styles) - wanted).abs().mean()
            optimizer.zero_grad()
            loss.backward()
            torch.nn.utils.clip_grad_norm_(network.parameters(), 1.0)
            optimizer.step()
            schedule.step()
        print(f"early pictures of {side}: mean difference {float(loss.detach()) / 2:.4f}", flush=True)
        state |= {f"{side}.{name}": value for name, value in network.state_dict().items()}
    return state


@torch.no_grad()
def samples(faces: PhotorealFaces, heads: dict[int, EarlyImage]) -> dict[str, Any]:
    detector, recogniser = DlibDetector(68, enlarged=0), DlibIdentity.load()
    found: dict[str, list[Tensor]] = {name: [] for name in ("style", "points", "box", "features", "pixels")}
    for style in faces.random_styles(SAMPLES, Randomness.from_seed(SEED), SPREAD):
        drawn = (heads[SIDE](*faces._synthesis.early(style[None], EARLY[SIDE])) + 1).div(2).clamp(0, 1)
        seen = detector.detect(drawn)[0]
        if (face := seen.largest()) is None:
            continue
        features = recogniser.embed(CHIP.align(drawn, seen.points[face][None]).clamp(0, 1))[0]
        row = (style, seen.points[face], seen.boxes[face], features, drawn[0].mul(255).byte())
        for values, value in zip(found.values(), row, strict=True):
            values.append(value)
    return {name: torch.stack(values) for name, values in found.items()}


def real_points() -> dict[str, Any]:
    lfw = load_lfw(Path(os.environ[DATA]) / "lfw")
    others = outside_folds(lfw, FOLDS, shots=SHOTS)
    counts: dict[str, int] = {}
    for record in lfw.images.records:
        counts[str(record.identity)] = counts.get(str(record.identity), 0) + 1
    chosen = set(sorted(others.identities, key=lambda name: (-counts[name], name))[:PEOPLE])
    detector, points, boxes, people = DlibDetector(68), [], [], []
    numbers = {name: number for number, name in enumerate(sorted(chosen))}
    for place, record in enumerate(others.records):
        if record.identity not in chosen:
            continue
        pixels = decode(others.file(place).read_bytes(), Limits())
        seen = detector.detect(torch.from_numpy(pixels).permute(2, 0, 1)[None].float() / 255)[0]
        if (face := seen.largest()) is not None:
            points.append(seen.points[face])
            boxes.append(seen.boxes[face])
            people.append(numbers[str(record.identity)])
    return {"points": torch.stack(points), "boxes": torch.stack(boxes), "people": torch.tensor(people)}


def upright(points: np.ndarray[Any, Any], mean: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    made = []
    for each in points:
        matrix = nearest_similarity(each, mean)
        made.append(each @ matrix[:, :2].T + matrix[:, 2])
    return np.stack(made)


def rows_of_shape(shapes: np.ndarray[Any, Any], people: np.ndarray[Any, Any]) -> tuple[Tensor, Tensor]:
    """Combinations of landmarks by how much more they vary within a person than in all, and that share."""
    centred = shapes.reshape(len(shapes), -1) - shapes.reshape(len(shapes), -1).mean(0)
    _, who, counts = np.unique(people, return_inverse=True, return_counts=True)
    means = np.stack([centred[who == person].mean(0) for person in range(len(counts))])
    several = counts[who] > 1
    apart = (centred - means[who])[several]
    within = apart.T @ apart / (several.sum() - (counts > 1).sum())
    whole = np.cov(means[counts > 1].T) + within * (1 - (1 / counts[counts > 1]).mean())
    main = np.linalg.eigh(whole)[1][:, ::-1][:, :SHAPES]
    shares, chosen = eigh(main.T @ within @ main, main.T @ whole @ main)
    # A smile is spread over many combinations: how wide and how open mouth and eyes are comes first.
    features = np.zeros((4, 68, 2))
    for row, (one, other, axis) in zip(features, ((54, 48, 0), (66, 62, 1), (41, 37, 1), (47, 43, 1)), strict=True):
        row[one, axis], row[other, axis] = 1, -1
    features = features.reshape(4, -1)
    features /= np.sqrt(np.einsum("ij,jk,ik->i", features, whole, features))[:, None]
    own = np.einsum("ij,jk,ik->i", features, within, features)
    rows = np.concatenate([features, (main @ chosen[:, ::-1]).T])[:ROWS]
    return torch.from_numpy(rows), torch.from_numpy(np.concatenate([own, shares[::-1]])[:ROWS])


def bridge_edges(drawn: Tensor, points: Tensor) -> np.ndarray[Any, Any]:
    """How much brightness changes from row to row between the eyes, where glasses have their bridge."""
    told = []
    for pixels, at in zip(drawn, points, strict=True):
        grey = pixels.float().mean(0).numpy()
        (x, y), eyes = at[27].tolist(), float((at[42] - at[39]).norm())
        rows, columns = (
            slice(max(0, round(c - r)), round(c + r) + 1) for c, r in ((y + 0.1 * eyes, 0.5 * eyes), (x, 0.2 * eyes))
        )
        told.append(float(np.abs(np.diff(cv2.GaussianBlur(grey, (0, 0), 1.0)[rows, columns], axis=0)).mean(1).max()))
    return np.array(told)


def skin_tone(drawn: Tensor, points: Tensor) -> Tensor:
    """(N,): the trait, as it is seen in drawn faces."""
    seen = (
        skin_lightness(np.ascontiguousarray(pixels.permute(1, 2, 0).float().div(255).numpy()), at.double().numpy())
        for pixels, at in zip(drawn, points, strict=True)
    )
    return torch.tensor([(each - 65) / 20 for each in seen], dtype=torch.float64)


def labels() -> tuple[tuple[Tensor, Tensor], ...]:
    """For sex, age and glasses: places of samples, and their labels."""
    sex = torch.tensor([{"m": 1.0, "f": -1.0}.get(each.lower(), 0.0) for each in LABELS])
    age = torch.tensor([-1.0 if each == "c" else float(each.isupper()) for each in LABELS])
    glasses = torch.zeros(len(LABELS))
    glasses[list(GLASSES)] = 1
    everybody = torch.arange(len(LABELS))
    adults = everybody[sex != 0]
    return (adults, sex[adults].double()), (everybody, age.double()), (everybody, glasses.double())


def strong_ridge(inputs: Tensor, wanted: Tensor) -> tuple[Tensor, Tensor]:
    """Weights (I,) and offset, of inputs (N, I) that vary by about 1."""
    x, y = inputs - inputs.mean(0), wanted - wanted.mean()
    weights = torch.linalg.solve(x.T @ x + STRONG * torch.eye(x.shape[1], dtype=x.dtype), x.T @ y)
    return weights, wanted.mean() - inputs.mean(0) @ weights


def ridge(inputs: Tensor, wanted: Tensor, strength: float) -> tuple[Tensor, float]:
    """Weights (O, I) of centred inputs, and R2 on the last fifth, which does not teach."""
    taught = len(inputs) * 4 // 5
    x, y = inputs[:taught].double(), wanted[:taught].double()
    gram = (x - x.mean(0)).T @ (x - x.mean(0))
    eye = torch.eye(len(gram), dtype=gram.dtype)
    weights = torch.linalg.solve(gram + strength * gram.diagonal().mean() * eye, (x - x.mean(0)).T @ (y - y.mean(0)))
    left = (wanted[taught:].double() - y.mean(0)) - (inputs[taught:].double() - x.mean(0)) @ weights
    apart = wanted[taught:].double() - wanted[taught:].double().mean(0)
    return weights.T, 1 - float(left.square().sum() / apart.square().sum())


def fit(sampled: dict[str, Any], real: dict[str, Any]) -> dict[str, Tensor]:
    points = sampled["points"].double().numpy() / SIDE
    mean = points.mean(0)
    for _ in range(3):
        mean = upright(points, mean).mean(0)
    shapes = torch.from_numpy(upright(points, mean)).flatten(1)
    styles = sampled["style"].double()
    centre = styles.mean(0)
    _, sizes, vectors = torch.linalg.svd(styles - centre, full_matrices=False)
    basis = vectors[:COMPONENTS] * (sizes[:COMPONENTS, None] / len(styles) ** 0.5)
    at = (styles - centre) @ (basis / basis.square().sum(1, keepdim=True)).T
    shape_by_style, told = ridge(at, shapes, 0.03)
    print(f"landmarks by style: R2 {told:.2f}")

    people = real["points"].double().numpy()
    rows, within = rows_of_shape(upright(people, mean), real["people"].numpy())
    matrices = [nearest_similarity(each, mean) for each in people]
    corners = real["boxes"].double().numpy().reshape(-1, 2, 2)
    box = np.stack([c @ m[:, :2].T + m[:, 2] for c, m in zip(corners, matrices, strict=True)]).mean(0).ravel()

    features = sampled["features"].double()
    middle, spread = features.mean(0), features.std(0)
    edges = torch.from_numpy(bridge_edges(sampled["pixels"], sampled["points"]))
    edges = 5 * ((edges - edges.mean()) / edges.std())[:, None]  # as strong as 25 features
    seen = (features - middle) / spread
    tone = skin_tone(sampled["pixels"], sampled["points"])
    inputs = (seen, seen, torch.cat([seen, edges], 1), 100 * tone[:, None])
    by_style, by_features, style_bias, feature_bias = [], [], [], []
    for name, given, (known, wanted) in zip(
        TRAITS, inputs, (*labels(), (torch.arange(len(tone)), tone)), strict=True
    ):
        weights, offset = strong_ridge(given[known], wanted)
        told = given @ weights + offset  # of all samples; those without a label by the others'
        weights_features, offset_features = strong_ridge(seen, told)
        weights_style, offset_style = strong_ridge(at, told)
        by_features.append(weights_features / spread)
        feature_bias.append(offset_features - (middle / spread) @ weights_features)
        in_styles = weights_style @ (basis / basis.square().sum(1, keepdim=True))
        by_style.append(in_styles)
        style_bias.append(offset_style - centre @ in_styles)
        found = at[known] @ weights_style
        print(f"{name}: correlation of style and label {np.corrcoef(found, wanted)[0, 1]:.2f}")
    print(f"share within a person: {within.numpy().round(2)}")
    return {
        "mean": centre, "basis": basis, "shape": torch.from_numpy(mean).flatten(),
        "shape_by_style": shape_by_style.T, "rows": rows, "within": within, "box": torch.from_numpy(box),
        "centre": features.mean(0), "traits": torch.stack(by_style), "trait_bias": torch.stack(style_bias),
        "told": torch.stack(by_features), "told_bias": torch.stack(feature_bias),
    }  # fmt: skip


@torch.no_grad()
def features(faces: PhotorealFaces, strangers: Strangers) -> dict[str, Any]:
    """Styles, dlib's features of the small pictures that they draw, and how much hair is above the brows."""
    found: dict[str, list[Any]] = {"style": [], "features": [], "fringe": []}
    for style in faces.random_styles(FEATURES, Randomness.from_seed(SEED + 1), SPREAD):
        drawn = faces.draw(style[None], 128, early=True)[0]
        points = strangers._points(drawn)
        chips = CHIP.align(drawn[None], torch.from_numpy(points).float()[None]).clamp(0, 1)
        hair = hair_on_forehead(np.ascontiguousarray(drawn.permute(1, 2, 0).numpy()), points)
        for values, value in zip(
            found.values(), (style, strangers.recogniser.embed(chips)[0], torch.tensor([hair])), strict=True
        ):
            values.append(value)
    return {name: torch.stack(values) for name, values in found.items()}


def features_by_style(space: StyleSpace, drawn: dict[str, Any]) -> dict[str, Tensor]:
    at, taught, made = space.coordinates(drawn["style"]), len(drawn["style"]) * 4 // 5, {}
    for name in ("features", "fringe"):
        wanted = drawn[name].float()
        weights, told = ridge(at, wanted, 0.1)
        by_style = weights.float().T
        offset = wanted[:taught].mean(0) - at[:taught].mean(0) @ by_style
        made |= {f"{name}_by_style": by_style.squeeze(1), name: offset.squeeze()}
        print(f"{name} by style: R2 {told:.2f}")
    centre, wanted = space.tensors["centre"], drawn["features"]
    ours, theirs = (
        F.normalize(rows[taught:] - centre, dim=1) @ F.normalize(wanted[:300] - centre, dim=1).T
        for rows in (made["features"] + at @ made["features_by_style"], wanted)
    )
    like = torch.corrcoef(torch.stack([ours.flatten(), theirs.flatten()]))[0, 1]
    print(f"likeness foretold and found: correlation {float(like):.2f}")
    return made


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--out", type=Path, default=Path("src/veilkit/synthetic/photoreal/space.safetensors"))
    args = parser.parse_args()
    args.work.mkdir(parents=True, exist_ok=True)
    torch.set_num_threads(1)
    faces = PhotorealFaces()
    state = kept(args.work / "early.pt", lambda: early(faces, args.work))
    heads = {}
    for side, block in EARLY.items():
        heads[side] = EarlyImage(CHANNELS[block - 1]).eval()
        heads[side].load_state_dict({n.partition(".")[2]: v for n, v in state.items() if n.startswith(f"{side}.")})
    sampled = kept(args.work / "samples.pt", lambda: samples(faces, heads))
    tensors = fit(sampled, kept(args.work / "people.pt", real_points))
    space = faces.__dict__["space"] = StyleSpace({name: t.float() for name, t in tensors.items()}, heads)
    strangers = Strangers(PhotorealConfig())
    strangers.__dict__["faces"] = faces
    drawn = kept(args.work / "features.pt", lambda: features(faces, strangers))
    space = StyleSpace({**space.tensors, **features_by_style(space, drawn)}, space.early)
    print(f"{args.out}: {space.save(args.out)}")


if __name__ == "__main__":
    main()
