"""Studies in the smallest: data of nobody, tiny options for each study, and runs that all tests share."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch
from PIL import Image

from studies.comparison.plan import ComparisonConfig
from studies.controls.plan import ControlsConfig
from studies.disguise.plan import DisguiseStudyConfig
from studies.fro.plan import FroStudyConfig
from studies.fro.shadows import ShadowStudyConfig
from studies.fro_faces.cells import FaceStudyConfig
from studies.peprnet.plan import BASELINE, STAGE1, WIDE, PeprStudyConfig
from studies.pixelfade.plan import OURS, PixelFadeStudyConfig
from studies.privacyreid.plan import PrivacyReidStudyConfig
from studies.shared.publishing import write_report
from studies.shared.runner import load_study
from studies.shared.study import FACES, PEOPLE, Computation, Run, Study
from tests.audit.folders import person
from tests.conftest import random_picture
from tests.methods.disguises import tiny_disguise_file
from tests.methods.experts import tiny_expert_file
from tests.methods.tiny import TINY_PEPRNET as PEPRNET
from tests.methods.tiny import TINY_PRIVACYREID as ANONYMISER
from veilkit.audit.inputs.cache import Cache
from veilkit.checkpoint import save_checkpoint
from veilkit.networks.backbones import BACKBONE_KIND, build_backbone
from veilkit.progress import Progress
from veilkit.synthetic.faces import render_face
from veilkit.training.face_attributes import FaceAttributesTraining

TRAINED, TESTED = range(12), range(12, 21)
_FRO = {"backbone": "osnet-x0.25", "epochs": 1, "preset": "paper"}


@dataclass(frozen=True)
class Tiny:
    """A study in the smallest. lfw: faces in LFW's layout; people are the same for all. other: options of another."""

    config: Any
    other: Mapping[str, Any]
    inputs: Callable[[], Mapping[str, Any]] = dict
    lfw: Callable[[Path], None] | None = None
    needs: str = ""
    words: tuple[str, ...] = ()  # that the report has
    computed: str = ""  # the folder below the run's that a second run must leave alone


def people(root: Path) -> None:
    """Twelve people to train on, four pictures each, and nine others to test on, by two cameras."""
    for folder, who, shots in (
        ("bounding_box_train", TRAINED, range(4)),
        ("query", TESTED, range(1)),
        ("bounding_box_test", TESTED, range(1, 5)),
    ):  # fmt: skip
        (root / folder).mkdir(parents=True)
        for each in who:
            for shot in shots:
                name = f"{each + 1:04}_c{1 + shot % 2}_{shot}.png"
                Image.fromarray(person(each, shot)).save(root / folder / name)


def faces(
    root: Path, shots: Mapping[str, int], pairs: str, draw: Callable[[int, int], np.ndarray], quality: int = 95
) -> None:
    """LFW's layout: so many pictures of each person, drawn by person and shot, and pairs.txt."""
    for number, (name, count) in enumerate(shots.items()):
        (root / name).mkdir(parents=True)
        for shot in range(1, count + 1):
            Image.fromarray(draw(number, shot)).save(root / name / f"{name}_{shot:04d}.jpg", quality=quality)
    (root / "pairs.txt").write_text(pairs)


def three_folds() -> str:
    """Six people in pairs of three folds."""
    return "3 1\n" + "".join(f"{one} 1 2\n{one} 1 {other} 2\n" for one, other in ("ab", "cd", "ef"))


def generated_faces(root: Path) -> None:
    """Eight generated people, six of them in pairs; beside them another set of four."""
    shots = {"a": 2, "b": 2, "c": 3, "d": 2, "e": 4, "f": 2, "g": 2, "h": 2}
    faces(root, shots, three_folds(), lambda number, shot: render_face(5, number, shot, size=64)[0])
    for number in range(4):
        (root.parent / "others" / f"{number}").mkdir(parents=True)
        Image.fromarray(render_face(6, number, 1, size=64)[0]).save(root.parent / "others" / f"{number}" / "1.png")


def random_faces(root: Path) -> None:
    """Nine people of random pictures; g, h and i are in no pair."""
    shots = {"a": 6, "b": 3, "c": 9, "d": 2, "e": 3, "f": 2, "g": 4, "h": 3, "i": 2}
    faces(root, shots, three_folds(), lambda number, shot: random_picture(100 * number + shot, 32, 32), quality=75)


def flat_faces(root: Path) -> None:
    """Ten "faces" of one fold, three pictures each, the last person of whom has one only."""
    names = [f"N{number}" for number in range(10)]
    pairs = [f"{name} 1 2" for name in names[:9]] + [f"{names[n]} 1 {names[n + 1]} 1" for n in range(9)]
    shots = {name: 1 if name == "N9" else 3 for name in names}
    faces(root, shots, "\n".join(["1 9", *pairs]) + "\n", lambda number, shot: person(number, shot, (48, 48)), 75)


@cache
def backbone_file(folder: Path) -> str:
    """Random weights of a backbone to start from."""
    file = folder / "backbone.safetensors"
    with torch.random.fork_rng():
        torch.manual_seed(0)
        backbone = build_backbone(PEPRNET.backbone, size=PEPRNET.size)
    assert isinstance(backbone, torch.nn.Module)
    save_checkpoint(file, backbone.state_dict(), {"backbone": PEPRNET.backbone}, BACKBONE_KIND)
    return str(file)


TINY_STUDIES: dict[str, Tiny] = {
    "pixelfade": Tiny(
        PixelFadeStudyConfig(
            people=5, queries=1, gallery=2, public_people=5, public_pictures=2,
            methods=(OURS, "released", "avih", "blur"), steps=10, own_steps=10, updates=6, batch=4, width=4,
            attacks=("averaging", "feature_decoder"), averaged=6, counts=(1, 2), grid_people=4, noise_weights=(1.0,),
            objectives=("noise",), amplitudes=(0.1,), l1_weights=(10.0,), grid_steps=(10,), step_sizes=(0.01,),
            thresholds=(0.03,), masks=(5,), own_thresholds=(0.5,), experts=(tiny_expert_file(),),
        ),
        {"steps": 12},
        lambda: {"expert": tiny_expert_file(), "judge": "histogram"},
        words=("Recovered by a U-Net", "Where the person stands", "Ours for other experts"),
    ),
    "fro": Tiny(
        FroStudyConfig(
            people=8, size=(32, 16), batch=4, steps=2, scales=(0.5, 1.0), temperatures=(5.0,), softenings=(0.2,),
            ratios=(0.7,), clusters=4, pairs=8, grid_people=4,
            shadows=ShadowStudyConfig(people=2, pictures=2, size=(32, 16), batch=2, steps=1, **_FRO), **_FRO,
        ),
        {"steps": 3},
        lambda: {"init": None, "judge": "histogram"},
        words=("student of FRO, scale 0.5", "student of PRO", "epsilon 0.2", "Mean SSIM", "class_linkage"),
    ),
    "fro-faces": Tiny(
        FaceStudyConfig(
            people=4, fewest=3, shots=4, folds=(2, 3), middle=24, size=(16, 16), batch=2, steps=2, pairs=6, **_FRO
        ),
        {"steps": 3},
        lambda: {"init": None},
        random_faces,
        words=("| student of FRO | 14 |", "4 official pairs of 4 people"),
    ),
    "disguise": Tiny(
        DisguiseStudyConfig(
            folds=(2, 3), shots=3, public_people=4, public_shots=2, side=32, noises=(0.5, 4.0), alone=(1.0,), steps=3,
            finder="whole", landmarks="landmarks", gaze="gaze", expression="expression", quality="whole",
            attacks=("linkage", "farthest_match", "averaging", "attribute_path"), compared=("linkage",), updates=4,
            inversion_updates=4, batch=4, counts=(1, 2), averaged=4, trained=("original", "ved"), truth="landmarks",
            landmark_training=FaceAttributesTraining(stored=32, cut=32, side=32, epochs=1, batch=8), draws=200,
            shown=2,
        ),
        {"updates": 7},
        lambda: {"model": (tiny_disguise_file(),), "judge": ("histogram",), "start": None, "elsewhere": "others"},
        generated_faces,
        words=("Tables 1 and 6, by histogram", "The farthest match", "Tables 4, 5, 8 and 9", "Figure 5e",
               "no formal guarantee", "| Disguise, ved, noise 4 |", "| noise alone, noise 1 |",
               "opp, mlp fitted to the swapper of ved"),
    ),
    "privacyreid": Tiny(
        PrivacyReidStudyConfig(
            people=5, queries=1, gallery=2, public_people=5, public_pictures=2, training_people=7,
            method=replace(ANONYMISER, psnr_slack=100, ssim_slack=100, rank1_slack=1), updates=6, batch=4, width=4,
            attacks=("stock_recogniser", "recovery", "stolen_decoder"), compared=("stock_recogniser",), shown=4,
        ),
        {"updates": 7},
        lambda: {"init": None, "judge": "histogram"},
        words=("Table 1", "Table 3", "Table 4", "Table 5", "Figure 9", "INVALID"),
    ),
    "pepr": Tiny(
        PeprStudyConfig(
            people=8, training_people=6, method=replace(PEPRNET, epochs=1), models=(BASELINE, "clean", STAGE1, WIDE),
            noisy=(STAGE1,), epsilons=(2.0, 16.0), paper_epsilons=(1.0,), mechanisms=("privunit", "gaussian"),
            curve_epsilons=(2.0, 16.0), draws=2, averaged=("privunit",), reconstructed=(STAGE1,), attacked=30,
            updates=6, batch=4, width=4, drawn=3, dp_epochs=1,
        ),
        {"draws": 3},
        lambda: {"init": "backbone", "public-init": "backbone", "judge": "histogram"},
        needs="opacus",
        words=("Table 1", "Tables 2 to 4", "Rank-1 against epsilon", "averaged", "told from others", "Rivals"),
    ),
    "controls": Tiny(
        ControlsConfig(methods=("blur", "mask")), {"seed": 1},
        lambda: {"expert": tiny_expert_file(), "judge": "histogram"},
        words=("| mask |", "| blur |", "not defined"),
    ),
    "comparison": Tiny(
        ComparisonConfig(
            people=8, queries=1, gallery=2, updates=5, faces=8, shots=2, folds=(1,), finder="whole", side=32,
            attacks=("linkage", "own_original", "jigsaw", "class_linkage"), public_people=4, public_pictures=2,
            methods=("blur", "patches", "privacyreid", "face-pixelate"), face_attacks=("linkage", "own_original"),
        ),
        {"updates": 6},
        lambda: {"expert": "histogram", "judge": "histogram", "face-judge": "histogram@whole", "models": "nowhere",
                 "model": (), "start": None, "face-start": None},
        flat_faces,
        computed="matrix/cells",  # rows are written anew from these
        words=("| blur |", "| PrivacyReID | not run:", "`jigsaw` not made: no patch grid"),
    ),
}  # fmt: skip


@dataclass(frozen=True)
class Done:
    """A finished run of a study."""

    name: str
    folder: Path
    data: Path

    @property
    def study(self) -> Study[Any]:
        return load_study(self.name)

    @property
    def report(self) -> str:
        return (self.folder / "report.md").read_text(encoding="utf-8")

    def cell(self, name: str) -> dict[str, Any]:
        result: dict[str, Any] = json.loads(self._file(name).read_text())["result"]
        return result

    def _file(self, name: str) -> Path:
        return self.folder / "cells" / f"{name.replace('/', '.')}.json"

    def cells(self) -> set[str]:
        return {json.loads(file.read_text())["cell"] for file in (self.folder / "cells").glob("*.json")}

    def times(self) -> dict[Path, int]:
        """When each file was last written, but for what every run writes."""
        return {
            file: file.stat().st_mtime_ns
            for file in (self.folder / TINY_STUDIES[self.name].computed).rglob("*")
            if file.is_file() and file.suffix not in (".svg", ".md", ".toml") and "sqlite" not in file.name
        }

    def inputs(self) -> dict[str, Any]:
        """The tiny inputs, with the files that lie beside the data."""
        places = {
            "others": str(self.data / "others"), "backbone": str(self.data.parent / "backbone.safetensors"),
            "nowhere": str(self.data / "nowhere"),
        }  # fmt: skip
        return {name: places.get(value, value) if isinstance(value, str) else value
                for name, value in TINY_STUDIES[self.name].inputs().items()}  # fmt: skip

    @contextmanager
    def run(
        self, folder: Path | None = None, inputs: Mapping[str, Any] | None = None, **changes: Any
    ) -> Iterator[Run[Any]]:
        """A run on the same data, in the same folder unless another is given; changes: of the options."""
        config, given = replace(TINY_STUDIES[self.name].config, **changes), {**self.inputs(), **(inputs or {})}
        where = folder or self.folder
        total = len(self.study.cells(config, given))
        with Progress(total, "cells") as progress, Cache(where / "features.sqlite") as kept:
            yield Run(config, where, self.data, given, kept, progress, 0, 1)

    @contextmanager
    def open(
        self, folder: Path | None = None, inputs: Mapping[str, Any] | None = None, **changes: Any
    ) -> Iterator[Any]:
        """What computes the cells of such a run."""
        with self.run(folder, inputs, **changes) as run:
            computation: Computation = self.study.open(run)
            yield computation


def finished(name: str, factory: pytest.TempPathFactory) -> Done:
    """The tiny run of a study, computed once for all tests of a session, whatever process they are in."""
    if TINY_STUDIES[name].needs:
        pytest.importorskip(TINY_STUDIES[name].needs)
    root = factory.getbasetemp()
    root = (root.parent if os.environ.get("PYTEST_XDIST_WORKER") else root) / "studies"
    root.mkdir(exist_ok=True)
    done = Done(name, root / name, root / f"{name}.data")
    with (root / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not (done.folder / "report.md").exists():
            _prepare(done)
            with done.run() as run:
                done.study.compute(run)
            write_report(done.study, done.folder, TINY_STUDIES[name].config)
    return done


def _prepare(done: Done) -> None:
    for leftover in (done.folder, done.data):  # of a run that failed
        shutil.rmtree(leftover, ignore_errors=True)
    done.folder.mkdir()
    done.data.mkdir()
    lfw = TINY_STUDIES[done.name].lfw
    people(done.data / PEOPLE)
    if lfw is not None:
        lfw(done.data / FACES)
    if "backbone" in TINY_STUDIES[done.name].inputs().values():
        backbone_file(done.data.parent)
