"""`veilkit fit` and `veilkit train`: methods and experts that learn from labelled pictures."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

if TYPE_CHECKING:
    from torch import Tensor

    from veilkit.datasets.soft_labels import Views
    from veilkit.types import Split


app = typer.Typer(help="Train an expert.", no_args_is_help=True)

Data = Annotated[
    Path, typer.Argument(metavar="DATA", help="Pictures of labelled people: the Market-1501 layout, or any folder.")
]
Out = Annotated[Path, typer.Option(help="The model file to write (safetensors). It is as private as the pictures.")]
Recipe = Annotated[
    str, typer.Option(help="agw (the published recipe), plain (cross-entropy only), small (ours) or faces.")
]
Backbone = Annotated[str | None, typer.Option(help="The network, such as mobilenetv2, osnet-x1.0 or resnet50-agw.")]
Init = Annotated[Path | None, typer.Option(help="Weights that a backbone starts from (safetensors).")]
Settings = Annotated[
    list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting; may be repeated.")
]
Validation = Annotated[float, typer.Option(min=0, max=0.9, help="Share of the people set aside to watch progress.")]
Labels = Annotated[str, typer.Option(help="Who is in a picture: auto, folder, market, pattern:REGEX or csv:FILE.")]
Seed = Annotated[int, typer.Option(help="The same seed gives the same weights on the same machine.")]
WorkDir = Annotated[
    Path | None, typer.Option(help="Where the state is kept for resuming.", show_default="runs/OUT's name")
]
Threads = Annotated[int, typer.Option(min=1, help="torch threads; weights depend on their number in the last bits.")]


@app.callback()
def group() -> None:
    """Train an expert."""


def _start(settings: list[str] | None, threads: int, **changes: object) -> dict[str, object]:
    """Set torch's threads; returns the settings, with those of `changes` that are not None."""
    import torch

    from veilkit.configs import parse_settings

    torch.set_num_threads(threads)
    return {**parse_settings(settings or []), **{name: value for name, value in changes.items() if value is not None}}


@app.command()
def reid(
    data: Data,
    out: Out,
    recipe: Recipe = "small",
    backbone: Backbone = None,
    init: Init = None,
    settings: Settings = None,
    validation: Validation = 0.0,
    labels: Labels = "auto",
    seed: Seed = 0,
    work_dir: WorkDir = None,
    threads: Threads = 1,
) -> None:
    """Train a person re-identification embedder. A stopped run goes on when the same command is given again."""
    from veilkit.configs import with_settings
    from veilkit.datasets.labelled import load_training_part
    from veilkit.training.reid import train_reid
    from veilkit.training.reid_config import RECIPES

    changes = _start(settings, threads, seed=seed, backbone=backbone)
    config = with_settings(RECIPES[recipe], changes)
    split = load_training_part(data, labels)
    trained = train_reid(
        split, config, out, init=init, validation=validation, work_dir=work_dir or Path("runs") / out.stem
    )
    typer.echo(f"{len(split.identities)} people learned; the expert is {out} (SHA-256 {trained.sha256})")


Synthetic = Annotated[
    Path,
    typer.Argument(metavar="SYNTHETIC", help="A folder with soft labels, or with --teacher any labelled folder."),
]
Teacher = Annotated[
    Path | None, typer.Option(help="A pool of `veilkit fit fro`, whose logits on the pictures are matched.")
]


@app.command()
def student(
    synthetic: Synthetic,
    out: Out,
    teacher: Teacher = None,
    backbone: Backbone = None,
    init: Init = None,
    settings: Settings = None,
    labels: Labels = "auto",
    seed: Seed = 0,
    work_dir: WorkDir = None,
    threads: Threads = 1,
) -> None:
    """Train a student on synthetic pictures by their soft labels; it becomes an expert like any other.

    A stopped run goes on when the same command is given again.
    """
    from veilkit.configs import with_settings
    from veilkit.datasets.soft_labels import Views
    from veilkit.errors import ConfigError
    from veilkit.methods.fro.pool import STUDENT, load_synthetic, views_of
    from veilkit.training.reid import train_reid

    changes = _start(settings, threads, seed=seed, backbone=backbone)
    config = with_settings(STUDENT, changes)
    targets: Tensor | Views
    if teacher is None:
        split, logits = load_synthetic(synthetic)
        targets = views_of(split, logits)
    else:
        split, targets = _teacher_views(synthetic, teacher, labels)
    if isinstance(targets, Views) and (idle := sorted(name for name in changes if name.startswith("augment."))):
        raise ConfigError(
            f"{', '.join(idle)} would have no effect, since the student sees the {len(targets.moves)} views on which "
            "the teacher was asked, and no others; leave it out"
        )
    classes = targets.logits.shape[2] if isinstance(targets, Views) else targets.shape[1]
    trained = train_reid(split, config, out, work_dir=work_dir or Path("runs") / out.stem, init=init, targets=targets)
    typer.echo(f"A student of {len(split)} pictures and {classes} classes is {out} (SHA-256 {trained.sha256})")


def _teacher_views(folder: Path, teacher: Path, labels: str) -> tuple[Split, Views]:
    """Any labelled folder, and the logits of a pool on views of its pictures."""
    from veilkit.datasets.labelled import load_training_part
    from veilkit.datasets.soft_labels import Views
    from veilkit.methods.fro.method import Fro
    from veilkit.training.pixels import read_pixels

    pool = Fro.load(teacher).pool
    split = load_training_part(folder, labels)
    return split, Views.seen_by(pool.logits, read_pixels(split, pool.size))


Faces = Annotated[
    Path, typer.Argument(metavar="DATA", help="Pictures of labelled people: LFW with its pairs.txt, or any folder.")
]
Folds = Annotated[str, typer.Option(help="Folds of LFW (a folder with pairs.txt) whose people are for tests alone.")]
Fewest = Annotated[int, typer.Option(min=2, help="People with fewer pictures are left out.")]
Shots = Annotated[int, typer.Option(min=2, help="Most pictures of one person.")]


@app.command()
def faces(
    data: Faces,
    out: Out,
    folds: Folds = "8,9,10",
    fewest: Fewest = 3,
    shots: Shots = 12,
    backbone: Backbone = None,
    init: Init = None,
    settings: Settings = None,
    seed: Seed = 0,
    work_dir: WorkDir = None,
    threads: Threads = 1,
) -> None:
    """Train a face identity embedder of aligned faces. A stopped run goes on when the same command is given again."""
    from veilkit.configs import with_settings
    from veilkit.datasets.lfw import parse_folds
    from veilkit.training.faces import load_training_faces, train_face_identity
    from veilkit.training.reid_config import FACES

    changes = _start(settings, threads, seed=seed, backbone=backbone)
    split = load_training_faces(data, parse_folds(folds), fewest=fewest, shots=shots)
    trained, unseen = train_face_identity(
        split, with_settings(FACES, changes), out, init=init, work_dir=work_dir or Path("runs") / out.stem
    )
    if unseen:
        typer.echo(f"{unseen} of {len(split)} pictures were left out: no face was found in them", err=True)
    typer.echo(f"{len(split.identities)} people learned; the expert is {out} (SHA-256 {trained.sha256})")


FaceSets = Annotated[
    list[Path],
    typer.Argument(metavar="DATA...", help="Folders of generated faces; of other faces, dlib gives the landmarks."),
]


@app.command("face-attributes")
def face_attributes(
    data: FaceSets,
    out: Out,
    folds: Folds = "8,9,10",
    settings: Settings = None,
    seed: Seed = 0,
    work_dir: WorkDir = None,
    threads: Threads = 1,
) -> None:
    """Train a network for landmarks, gaze and expression. A stopped run goes on with the same command."""
    from veilkit.configs import with_settings
    from veilkit.datasets.lfw import parse_folds
    from veilkit.training.face_attributes import FaceAttributesTraining, train_face_attributes
    from veilkit.training.face_examples import load_examples

    config = with_settings(FaceAttributesTraining(), _start(settings, threads, seed=seed))
    work_dir = work_dir or Path("runs") / out.stem
    examples = load_examples(data, config.stored, work_dir, folds=parse_folds(folds))
    trained = train_face_attributes(examples, config, out, work_dir=work_dir)
    for head, teacher in examples.taught.items():
        typer.echo(f"{head}: {teacher or 'nothing to learn from; do not use it'}")
    typer.echo(f"The expert is {out} (SHA-256 {trained.sha256})")


MethodName = Annotated[
    str, typer.Argument(metavar="METHOD", help="A method that learns: see `veilkit methods list`.")
]
Preset = Annotated[str | None, typer.Option(help="A named configuration: see `veilkit methods show`.")]
People = Annotated[int | None, typer.Option(min=2, help="Learn from only this many people, the first by name.")]


def fit(
    method: MethodName,
    data: Data,
    out: Out,
    preset: Preset = None,
    init: Init = None,
    settings: Settings = None,
    labels: Labels = "auto",
    people: People = None,
    folds: Folds = "8,9,10",
    work_dir: WorkDir = None,
    threads: Threads = 1,
) -> None:
    """Let a method learn. A stopped run goes on when the same command is given again.

    Of the Market-1501 layout only the training part is used, of LFW only people outside of the test folds.
    """
    from veilkit.datasets.labelled import load_training_part
    from veilkit.datasets.lfw import parse_folds
    from veilkit.errors import UsageError
    from veilkit.methods import METHODS, Calibrates, Learns

    kind = METHODS[method]
    if not issubclass(kind, Learns | Calibrates):
        raise UsageError(f"{method} learns nothing: use it as it is, with `veilkit protect --method {method}`")
    split = load_training_part(data, labels, people, parse_folds(folds))
    fitted = kind.configured(preset, _start(settings, threads))
    notes: tuple[str, ...] = ()
    if isinstance(fitted, Learns):
        fitted.fit(split, work_dir=work_dir or Path("runs") / out.stem, init=init).save(out)
        notes = fitted.after_fit(out)
    elif isinstance(fitted, Calibrates):
        fitted.calibrate(split).save(out)
    typer.echo(f"{method} has learned from {len(split)} pictures of {len(split.identities)} people: {out}")
    for line in notes:
        typer.echo(line)
