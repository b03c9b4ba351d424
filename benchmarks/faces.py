"""Generated faces: how fast they are made, whether a detector finds them and a recogniser tells them apart.

    VEILKIT_DATA=... python benchmarks/faces.py [--draw]

--draw writes the pictures in docs/images. Needs the judges yunet.onnx and mobilefacenet.onnx in $VEILKIT_WEIGHTS (by
default the folder weights beside $VEILKIT_DATA) and onnxruntime; without them only the speed is measured.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path

import cv2
import numpy as np
from numpy.typing import NDArray
from PIL import Image
from sklearn.metrics import roc_auc_score

from claims import ROOT, record
from sheets import faces_sheet, group_sheet
from veilkit.synthetic.faces import generate_faces
from veilkit.synthetic.faces.truth import five_points
from veilkit.training.face_examples import GeneratedFaces, load_generated_faces

PEOPLE, IMAGES, SIZE, SEED = 60, 8, 128, 7
IMAGES_FOLDER = ROOT / "docs" / "images"
COMMAND = "python benchmarks/faces.py"
DETECTOR, RECOGNISER = "yunet.onnx", "mobilefacenet.onnx"
MODERATE = 30  # degrees of yaw
# Where the recogniser wants eyes, tip of the nose and corners of the mouth, in 112x112.
PLACES = np.array([(38.3, 51.7), (73.5, 51.5), (56.0, 71.7), (41.5, 92.4), (70.7, 92.2)], np.float32)


def weights() -> Path | None:
    """The folder of the judges, where they are."""
    beside = Path(os.environ["VEILKIT_DATA"]).resolve().parent / "weights" if "VEILKIT_DATA" in os.environ else None
    folder = Path(os.environ["VEILKIT_WEIGHTS"]) if "VEILKIT_WEIGHTS" in os.environ else beside
    return folder if folder and all((folder / name).exists() for name in (DETECTOR, RECOGNISER)) else None


def pictures(faces: GeneratedFaces) -> list[NDArray[np.uint8]]:
    return [np.asarray(Image.open(faces.split.file(index))) for index in range(len(faces.split))]


def detected(images: list[NDArray[np.uint8]], faces: GeneratedFaces, model: Path) -> NDArray[np.bool_]:
    """Whether the detector puts a box over the middle of each face."""
    detector = cv2.FaceDetectorYN_create(str(model), "", (SIZE, SIZE), 0.6)
    found = np.zeros(len(images), bool)
    for index, image in enumerate(images):
        _, boxes = detector.detect(np.ascontiguousarray(image[..., ::-1]))
        x, y = faces.landmarks[index, 27:31].mean(axis=0)
        found[index] = boxes is not None and any(b[0] < x < b[0] + b[2] and b[1] < y < b[1] + b[3] for b in boxes)
    return found


def separation(images: list[NDArray[np.uint8]], faces: GeneratedFaces, model: Path) -> float:
    """Area under the ROC curve of cosine similarity: pairs of one person against pairs of two, all pairs."""
    import onnxruntime

    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = 1
    session = onnxruntime.InferenceSession(str(model), options)
    name, features = session.get_inputs()[0].name, []
    for image, points in zip(images, five_points(faces.landmarks), strict=True):
        matrix, _ = cv2.estimateAffinePartial2D(points, PLACES, method=cv2.LMEDS)
        crop = (cv2.warpAffine(image, matrix, (112, 112)).astype(np.float32) - 127.5) / 127.5
        feature = session.run(None, {name: crop.transpose(2, 0, 1)[None]})[0][0]
        features.append(feature / np.linalg.norm(feature))
    similar = np.stack(features) @ np.stack(features).T
    people = np.array(faces.people)
    pairs = np.triu_indices(len(people), 1)
    return float(roc_auc_score((people[:, None] == people[None])[pairs], similar[pairs]))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--draw", action="store_true", help="write the pictures in docs/images")
    if parser.parse_args().draw:
        Image.fromarray(faces_sheet()).save(IMAGES_FOLDER / "faces.png", optimize=True)
        Image.fromarray(group_sheet()).save(IMAGES_FOLDER / "faces-group.png", optimize=True)
    cv2.setNumThreads(1)
    scale = f"{PEOPLE * IMAGES} pictures of {PEOPLE} people at {SIZE}x{SIZE}"
    with tempfile.TemporaryDirectory() as folder:
        start = time.process_time()
        generate_faces(Path(folder, "faces"), people=PEOPLE, images=IMAGES, seed=SEED, size=SIZE)
        rate = PEOPLE * IMAGES / (time.process_time() - start) * 60
        faces = load_generated_faces(Path(folder, "faces"))
        images = pictures(faces)
    record(
        id="faces-per-minute", claim="Generated faces per minute of one core", figure=round(rate), bar=">= 300",
        unit="/min", data="generated faces", scale=f"{scale}, 1 process, processor time", seed=SEED, command=COMMAND,
    )  # fmt: skip
    judges = weights()
    if judges is None:
        print(f"No {DETECTOR} and {RECOGNISER}: set VEILKIT_WEIGHTS to measure detection and separation.")
        return
    found = detected(images, faces, judges / DETECTOR)
    moderate = np.abs(faces.pose[:, 0]) <= MODERATE
    record(
        id="faces-detected", claim=f"Generated faces turned by at most {MODERATE} degrees that YuNet finds",
        figure=round(100 * float(found[moderate].mean()), 1), bar=">= 95", unit="%", data="generated faces",
        scale=scale, seed=SEED, command=COMMAND, note=f"of all poses {100 * found.mean():.1f} %",
    )  # fmt: skip
    record(
        id="faces-separated", claim="Generated people told apart by MobileFaceNet, AUC over all pairs of faces",
        figure=round(separation(images, faces, judges / RECOGNISER), 3), bar=">= 0.9", unit="AUC",
        data="generated faces", scale=scale, seed=SEED, command=COMMAND, note="aligned by the true five points",
    )  # fmt: skip


if __name__ == "__main__":
    main()
