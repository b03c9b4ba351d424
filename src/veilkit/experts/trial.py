"""The trial of an embedder before it is trusted: does it answer, and does the answer depend on the image alone?

An ONNX network is tried in a process of its own, with a limit of time and of memory: it may hold a loop without an
end, or ask for more memory than there is, and its file does not show that. The process that tries it can be ended;
this one could not.
"""

from __future__ import annotations

import importlib
import json
import signal
import subprocess
import sys
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit import errors
from veilkit.errors import CheckpointError, ConfigError, VeilkitError
from veilkit.experts.base import Embedder
from veilkit.experts.onnx import OnnxEmbedder, check_runtime, check_size, open_onnx
from veilkit.experts.preprocessing import Normalisation, Order, Preprocessing
from veilkit.rng import Randomness

_SIZE = (160, 80)
_TOLERANCE = 1e-3  # of the largest value: rounding that differs between batch sizes stays far below
_SAME = 1e-5  # of the largest value: features that differ by less do not see the image


def trial_images() -> Tensor:
    """Two random images, (2, 3, 160, 80) in [0, 1]: fine noise, and broad patches of colour."""
    rng = Randomness.from_seed(0).child("trial")
    noise = rng.child("noise").uniform(1, 3, *_SIZE)
    patches = F.interpolate(
        rng.child("patches").uniform(1, 3, 5, 3), size=_SIZE, mode="bilinear", align_corners=False
    )
    return torch.cat([noise, patches])


@torch.no_grad()
def try_embedder(embedder: Embedder) -> None:
    """Embed two images together and one by one; raises CheckpointError that says what is wrong with the answer."""
    images = trial_images()
    together = embedder.embed(images)
    alone = [embedder.embed(image[None]) for image in images]
    for features, count in ((together, 2), (alone[0], 1), (alone[1], 1)):
        _check_answer(embedder, features, count)
    scale = max(together.abs().max().item(), 1e-12)
    if (together - torch.cat(alone)).abs().max().item() > _TOLERANCE * scale:
        raise CheckpointError(
            f"{embedder.name}: an image's features change with the other images of its batch; "
            "export the network in evaluation mode"
        )
    if (together[0] - together[1]).abs().max().item() <= _SAME * scale:
        raise CheckpointError(
            f"{embedder.name}: two different images get the same features; "
            "are the weights loaded and the normalisation right?"
        )


def _check_answer(embedder: Embedder, features: Tensor, count: int) -> None:
    if features.ndim != 2 or tuple(features.shape) != (count, embedder.dim):
        raise CheckpointError(
            f"{embedder.name}: expected features of shape ({count}, {embedder.dim}) for {count} images, "
            f"but got {tuple(features.shape)}"
        )
    if embedder.dim < 2:
        raise CheckpointError(f"{embedder.name}: expected at least 2 numbers per image, but got {embedder.dim}")
    if not features.isfinite().all():
        raise CheckpointError(
            f"{embedder.name}: the features of a test image hold NaN or infinite values; is the normalisation right?"
        )


_START = (
    "import json, sys; request = json.load(sys.stdin); sys.path[:] = request.pop('path'); "
    "from veilkit.experts.trial import main; main(request)"
)
_OUT_OF_TIME = int(getattr(signal, "SIGPROF", 0))
_ANSWER = "veilkit-trial:"  # what the line with the answer begins with


@dataclass(frozen=True, slots=True)
class Limits:
    """seconds: of computing, once the process has started. wait: seconds in all, where much else is going on.

    memory: bytes beyond what it has then. per_byte: further ones, for each of the file's.
    """

    seconds: float = 30.0
    wait: float = 120.0
    memory: int = 2**30
    per_byte: int = 4


LIMITS = Limits()


@dataclass(frozen=True, slots=True)
class Tried:
    """What the trial has found out. sha256: of the file that was tried."""

    dim: int
    sha256: str
    preprocessing: Preprocessing


def try_onnx(
    file: Path,
    normalisation: Normalisation,
    *,
    name: str,
    size: tuple[int, int] | None,
    order: Order,
    flip: bool,
    limits: Limits | None = None,
) -> Tried:
    """Open the network, embed the test images and say what came out; raises CheckpointError for what does not fit."""
    check_runtime()
    limits = limits or LIMITS
    request = {
        "path": sys.path, "file": str(Path(file).resolve()), "mean": normalisation.mean, "std": normalisation.std,
        "name": name, "size": size, "order": order, "flip": flip, "limits": asdict(limits),
    }  # fmt: skip
    try:
        done = subprocess.run(  # noqa: S603 - this interpreter, and a program of our own
            [sys.executable, "-c", _START], input=json.dumps(request), capture_output=True, text=True,
            timeout=limits.wait, check=False, errors="replace",
        )  # fmt: skip
    except subprocess.TimeoutExpired:
        raise _too_slow(file, limits) from None
    if done.returncode == -_OUT_OF_TIME:
        raise _too_slow(file, limits)
    answers = [line.removeprefix(_ANSWER) for line in done.stdout.splitlines() if line.startswith(_ANSWER)]
    if not answers:
        raise CheckpointError(
            f"{Path(file).name}: the trial of the network ended without an answer (exit code {done.returncode}); "
            "it is damaged, or needs more memory than a network of its size should"
        )
    answer: dict[str, Any] = json.loads(answers[-1])
    if "error" in answer:
        raise _error(answer["error"], answer["message"])
    height, width = answer["size"]
    return Tried(answer["dim"], answer["sha256"], Preprocessing((height, width), *normalisation, order))


def main(request: dict[str, Any]) -> None:
    """What the child does: one trial, and one line of JSON about it."""
    file, limits = Path(request["file"]), Limits(**request["limits"])
    check_runtime()  # importing it is part of the start
    if (
        _OUT_OF_TIME
    ):  # ends the process wherever it is; who request waits for longer only where there is no such signal
        signal.signal(signal.SIGPROF, signal.SIG_DFL)
        signal.setitimer(signal.ITIMER_PROF, limits.seconds)
    _limit_memory(limits.memory + limits.per_byte * file.stat().st_size)
    try:
        answer = _trial(file, request)
    except VeilkitError as error:
        answer = {"error": type(error).__name__, "message": str(error)}
    except MemoryError:
        answer = {"error": "CheckpointError", "message": f"{file.name}: the network needs too much memory"}
    sys.stdout.write(f"\n{_ANSWER}{json.dumps(answer)}\n")


def _trial(file: Path, request: dict[str, Any]) -> dict[str, Any]:
    bound = open_onnx(file).size
    size = tuple(request["size"]) if request["size"] else bound
    if size is None:
        raise ConfigError(f"{file.name} takes images of any size; give the one it was trained with, like 256x128")
    height, width = size
    check_size(file, bound, (height, width))
    preprocessing = Preprocessing((height, width), tuple(request["mean"]), tuple(request["std"]), request["order"])
    embedder = OnnxEmbedder.load(file, preprocessing, name=request["name"], flip=request["flip"])
    try_embedder(embedder)
    return {"dim": embedder.dim, "sha256": embedder.sha256, "size": size}


def _limit_memory(more: int) -> None:
    """From here on at most `more` bytes beyond what this process has already; only where the system can."""
    try:
        resource: Any = importlib.import_module("resource")
        pages = int(Path("/proc/self/statm").read_text(encoding="ascii").split()[0])
    except (ImportError, OSError, ValueError):
        return
    most = pages * resource.getpagesize() + more
    hard = resource.getrlimit(resource.RLIMIT_AS)[1]
    if hard == resource.RLIM_INFINITY or most < hard:
        resource.setrlimit(resource.RLIMIT_AS, (most, hard))


def _too_slow(file: Path, limits: Limits) -> CheckpointError:
    return CheckpointError(
        f"{Path(file).name}: the network gave no answer to two test images within {limits.seconds:g} seconds of "
        "computing; does it hold a loop that does not end?"
    )


def _error(name: str, message: str) -> VeilkitError:
    kind = getattr(errors, name, None)
    known = kind in (CheckpointError, ConfigError, errors.DataError)
    return kind(message) if known and kind is not None else CheckpointError(message)
