"""The face experts: dlib's network in torch against dlib, and the packaged landmarks, gaze and expression.

    python benchmarks/face_experts.py [--model FILE]

The packaged network is judged on generated people whom it never saw and, where the data is there, on real people of
LFW's test folds, against judges that had no part in it: dlib's landmarks, and Intel's gaze and mini-XCEPTION's
expression where the folder of weights holds them. On real faces the bar is what saying the same of everybody would
reach. --model judges another file and records nothing.
"""

from __future__ import annotations

import argparse
import os
import tempfile
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from claims import record
from veilkit.datasets.lfw import load_lfw
from veilkit.errors import VeilkitError
from veilkit.experts import load_predictor
from veilkit.experts.alignment import CHIP, moved, warp
from veilkit.experts.dlib_files import IDENTITY, dlib_model, import_dlib
from veilkit.experts.dlib_identity import DlibIdentity
from veilkit.experts.face_attributes import FaceAttributePredictor, load_packaged
from veilkit.experts.names import DATA
from veilkit.networks.face_attributes import HEADS
from veilkit.synthetic.faces import generate_faces
from veilkit.training.face_attributes import crops, plain_matrix, turned_gaze
from veilkit.training.face_examples import FaceExamples, generated_examples, load_generated_faces
from veilkit.training.pixels import read_pixels
from veilkit.types import Split

PEOPLE, IMAGES, SIZE, SEED = 40, 8, 224, 2001
SIDE = 160  # of a crop, as a method may cut it
REAL = 300  # pictures
FOLDS = (8, 9, 10)
FRONTAL = 10  # degrees of yaw
COMMAND = "python benchmarks/face_experts.py"
Predictors = dict[str, FaceAttributePredictor]


def angle(one: Tensor, other: Tensor) -> Tensor:
    """Degrees between directions (N, 2) of yaw and pitch in degrees."""

    def direction(gaze: Tensor) -> Tensor:
        yaw, pitch = torch.deg2rad(gaze).unbind(1)
        return torch.stack([pitch.cos() * yaw.sin(), pitch.sin(), pitch.cos() * yaw.cos()], 1)

    return torch.rad2deg((direction(one) * direction(other)).sum(1).clamp(-1, 1).acos())


def eye_error(found: Tensor, truth: Tensor) -> Tensor:
    """(N, 68, 2) each -> (N,) mean distance, in % of the distance between the outer corners of the eyes."""
    between = (truth[:, 36] - truth[:, 45]).norm(dim=-1)
    return 100 * (found - truth).norm(dim=-1).mean(1) / between


def dlib_agreement(examples: FaceExamples, scale: str) -> None:
    chips = CHIP.align(examples.pixels[:64].float() / 255, examples.landmarks[:64]).mul(255).round()
    model = import_dlib().face_recognition_model_v1(str(dlib_model(IDENTITY)))
    pixels = chips.byte().permute(0, 2, 3, 1).contiguous().numpy()
    wanted = np.stack([np.array(model.compute_face_descriptor(each)) for each in pixels])
    difference = float(np.abs(DlibIdentity.load().embed(chips / 255).numpy() - wanted).max())
    record(
        id="dlib-in-torch", claim="Largest difference of a feature between dlib's face network and ours in torch",
        figure=float(f"{difference:.2g}"), bar="<= 0.001", unit="", data="generated faces",
        scale=f"{len(chips)} chips of {scale}; features span {wanted.min():.2f} to {wanted.max():.2f}", seed=SEED,
        command=COMMAND,
    )  # fmt: skip


def on_generated(examples: FaceExamples, frontal: Tensor, predictors: Predictors, scale: str, *, keep: bool) -> None:
    """frontal: (N,), whether a face is turned by at most FRONTAL degrees."""
    matrix = plain_matrix(examples.landmarks, SIDE)
    images = crops(examples.pixels, matrix, SIDE)
    landmarks, gaze = moved(examples.landmarks, matrix), turned_gaze(examples.gaze, matrix)
    found = {head: predictors[head].predict(images) for head in HEADS}
    nme = eye_error(found["landmarks"], landmarks)
    still = eye_error(landmarks.mean(0, keepdim=True).expand_as(landmarks), landmarks)
    front = landmarks[frontal]
    plain = eye_error(front.mean(0, keepdim=True).expand_as(front), front)
    turned, ahead = angle(found["gaze"], gaze), angle(gaze.mean(0, keepdim=True).expand_as(gaze), gaze)
    right = found["expression"].argmax(1) == examples.expression
    commonest = examples.expression.bincount().max() / len(examples)
    rows = [
        ("face-landmarks", "Landmarks of the packaged network: mean error, of the distance between the eyes' corners",
         nme.mean(), "<= 6", "%",
         f"the mean face for everybody: {still.mean():.1f} %; of the {len(front)} faces turned by at most {FRONTAL} "
         f"degrees {nme[frontal].mean():.1f} %, their mean face {plain.mean():.1f} %"),
        ("face-gaze", "Gaze of the packaged network: mean angle to the truth",
         turned.mean(), "<= 8", "degrees", f"the mean direction for everybody: {ahead.mean():.1f} degrees"),
        ("face-expression", "Expression of the packaged network: right among 7",
         100 * right.float().mean(), ">= 70", "%", f"the commonest for everybody: {100 * commonest:.1f} %"),
    ]  # fmt: skip
    for name, claim, figure, bar, unit, note in rows:
        print(f"{name}: {float(figure):.2f} {unit} ({note})", flush=True)
        if keep:
            record(
                id=name, claim=f"{claim}, unseen generated people", figure=round(float(figure), 2), bar=bar,
                unit=unit, data="generated faces", scale=scale, seed=SEED, command=COMMAND, note=note,
            )  # fmt: skip


def on_real(root: Path, predictors: Predictors, *, keep: bool) -> None:
    """Agreement with judges on people of the test folds; faces are cut by dlib's landmarks."""
    lfw = load_lfw(root)
    shown = sorted({path for pair in lfw.pairs if pair.fold in FOLDS for path in (pair.first, pair.second)})
    chosen = set(shown[:: max(1, len(shown) // REAL)][:REAL])
    split = Split("test", root, tuple(record for record in lfw.images.records if record.path in chosen))
    pixels = read_pixels(split, (192, 192)).float() / 255
    marks = load_predictor("dlib-landmarks-68").predict(pixels)
    seen = ~marks.isnan().any(-1).any(-1)
    pixels, marks = pixels[seen], marks[seen]
    matrix = plain_matrix(marks, SIDE)
    images = warp(pixels, matrix, (SIDE, SIDE))
    data, scale = "LFW, test folds", f"{len(images)} of {len(split)} pictures in which dlib finds a face"
    marks = moved(marks, matrix)
    nme = eye_error(predictors["landmarks"].predict(images), marks)
    still = eye_error(marks.mean(0, keepdim=True).expand_as(marks), marks)
    print(f"real faces, landmarks: {nme.mean():.2f} % (mean face {still.mean():.2f} %)", flush=True)
    if keep:
        record(
            id="face-landmarks-real", figure=round(float(nme.mean()), 1), bar=f"< {still.mean():.1f}", unit="%",
            data=data, scale=scale,
            claim="Landmarks of the packaged network on real faces: mean distance to dlib's, of the eyes' corners'",
            seed=None, command=COMMAND, note=f"the mean face for everybody: {still.mean():.1f} %; it learned from "
            "generated faces alone",
        )  # fmt: skip
    for name, head in (("openvino-gaze", "gaze"), ("fer-expression", "expression")):
        try:
            judged = load_predictor(name).predict(pixels)
        except VeilkitError as error:
            print(f"{head} on real faces is left out: {error}")
            continue
        known = ~judged.isnan().any(1)
        ours, theirs = predictors[head].predict(images)[known], judged[known]
        if head == "gaze":
            theirs = turned_gaze(theirs, matrix[known])
            constant = angle(theirs.mean(0, keepdim=True).expand_as(theirs), theirs).mean()
            figure, unit, bar = angle(ours, theirs).mean(), "degrees", f"< {constant:.1f}"
            plain = f"the judge's mean direction for everybody: {constant:.1f} degrees"
        else:
            told = theirs.argmax(1)
            commonest = 100 * told.bincount().max() / len(told)
            figure, unit, bar = 100 * (ours.argmax(1) == told).float().mean(), "%", f"> {commonest:.1f}"
            plain = f"the judge's commonest for everybody: {commonest:.1f} %"
        print(f"real faces, {head} against {name}: {float(figure):.2f} {unit} ({plain})", flush=True)
        if keep:
            record(
                id=f"face-{head}-real", figure=round(float(figure), 1), bar=bar, unit=unit, data=data, seed=None,
                claim=f"{head.capitalize()} of the packaged network on real faces: agreement with {name}",
                scale=f"{int(known.sum())} pictures", command=COMMAND, note=f"{plain}; neither is the truth",
            )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--model", type=Path, help="judge this file instead, and record nothing")
    parser.add_argument("--faces", type=Path, help="generated faces that are there already, of the same numbers")
    arguments = parser.parse_args()
    torch.set_num_threads(1)
    keep = arguments.model is None
    predictors = {
        head: load_packaged(head) if keep else FaceAttributePredictor.load(arguments.model, head) for head in HEADS
    }
    scale = f"{PEOPLE * IMAGES} pictures of {PEOPLE} people at {SIZE}x{SIZE}"
    with tempfile.TemporaryDirectory() as made:
        folder = arguments.faces or Path(made, "faces")
        generate_faces(folder, people=PEOPLE, images=IMAGES, seed=SEED, size=SIZE)  # keeps what is there
        examples = generated_examples(folder, SIZE)
        frontal = torch.from_numpy(np.abs(load_generated_faces(folder).pose[:, 0]) <= FRONTAL)
    on_generated(examples, frontal, predictors, scale, keep=keep)
    try:
        if keep:
            dlib_agreement(examples, scale)
        root = os.environ.get(DATA)
        if root and Path(root, "lfw").is_dir():
            on_real(Path(root, "lfw"), predictors, keep=keep)
        else:
            print(f"real faces are left out: point {DATA} at the folder that holds lfw/")
    except VeilkitError as error:
        print(f"left out: {error}")


if __name__ == "__main__":
    main()
