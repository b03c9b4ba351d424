"""`veilkit train`: experts from labelled pictures."""

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
Out = Annotated[Path, typer.Option(help="The model file to write (safetensors).")]
Recipe = Annotated[
    str, typer.Option(help="agw (the published recipe), plain (cross-entropy only), small (ours) or faces.")
]
Backbone = Annotated[str | None, typer.Option(help="The network, such as mobilenetv2, osnet-x1.0 or resnet50-agw.")]
Init = Annotated[Path | None, typer.Option(help="Weights that the backbone starts from (safetensors).")]
Settings = Annotated[list[str] | None, typer.Option("--set", metavar="KEY=VALUE", help="One setting of the recipe.")]
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
    import torch

    from veilkit.configs import parse_settings, with_settings
    from veilkit.datasets.labelled import load_training_part
    from veilkit.training.reid import train_reid
    from veilkit.training.reid_config import RECIPES

    torch.set_num_threads(threads)
    changes = {**parse_settings(settings or []), "seed": seed} | ({"backbone": backbone} if backbone else {})
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
    import torch

    from veilkit.configs import parse_settings, with_settings
    from veilkit.datasets.soft_labels import Views
    from veilkit.errors import ConfigError
    from veilkit.methods.fro.pool import STUDENT, load_synthetic, views_of
    from veilkit.training.reid import train_reid

    torch.set_num_threads(threads)
    changes = {**parse_settings(settings or []), "seed": seed} | ({"backbone": backbone} if backbone else {})
    config = with_settings(STUDENT, changes)
    targets: Tensor | Views
    if teacher is None:
        split, logits = load_synthetic(synthetic)
        targets = views_of(split, logits)
    else:
        split, targets = _taught(synthetic, teacher, labels)
    if isinstance(targets, Views) and (idle := sorted(name for name in changes if name.startswith("augment."))):
        raise ConfigError(
            f"{', '.join(idle)} would have no effect, since the student sees the {len(targets.moves)} views on which "
            "the teacher was asked, and no others; leave it out"
        )
    classes = targets.logits.shape[2] if isinstance(targets, Views) else targets.shape[1]
    trained = train_reid(split, config, out, work_dir=work_dir or Path("runs") / out.stem, init=init, targets=targets)
    typer.echo(f"A student of {len(split)} pictures and {classes} classes is {out} (SHA-256 {trained.sha256})")


def _taught(folder: Path, teacher: Path, labels: str) -> tuple[Split, Views]:
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
Folds = Annotated[str, typer.Option(help="Folds of LFW whose people are for tests alone.")]
Fewest = Annotated[int, typer.Option(min=2, help="People with less pictures are left out.")]
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
    import torch

    from veilkit.configs import parse_settings, with_settings
    from veilkit.datasets.lfw import parse_folds
    from veilkit.training.faces import load_training_faces, train_face_identity
    from veilkit.training.reid_config import FACES

    torch.set_num_threads(threads)
    changes = {**parse_settings(settings or []), "seed": seed} | ({"backbone": backbone} if backbone else {})
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
    import torch

    from veilkit.configs import parse_settings, with_settings
    from veilkit.datasets.lfw import parse_folds
    from veilkit.training.face_attributes import FaceAttributesTraining, train_face_attributes
    from veilkit.training.face_examples import load_examples

    torch.set_num_threads(threads)
    config = with_settings(FaceAttributesTraining(), {**parse_settings(settings or []), "seed": seed})
    work_dir = work_dir or Path("runs") / out.stem
    examples = load_examples(data, config.stored, work_dir, folds=parse_folds(folds))
    trained = train_face_attributes(examples, config, out, work_dir=work_dir)
    for head, teacher in examples.taught.items():
        typer.echo(f"{head}: {teacher or 'nothing to learn from; do not use it'}")
    typer.echo(f"The expert is {out} (SHA-256 {trained.sha256})")
