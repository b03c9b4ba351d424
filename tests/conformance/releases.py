"""Tiny releases of every method, made through the command line alone, as a table of hashes describes them.

Nothing of the package is imported here but the command that pyproject.toml names, so that modules may move.
"""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import shutil
import signal
import sys
import tomllib
from base64 import b64encode
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from pathlib import Path
from unittest.mock import patch

import numpy as np
from PIL import Image

ROOT = Path(__file__).parents[2]
MODELS = ROOT / "models"  # the published ones
BEFORE = Path(__file__).parent / "models"  # small ones that were fitted for this table
KEY = "veilkit-key-1 " + "5eed" * 16 + "\n"
_SAMPLED = 199  # values of a released picture that the table holds, besides its hash
_PICTURES = (".png", ".jpg")

# The originals, each folder as `veilkit generate` makes it; beside them `two` pictures of `pair`, and `odd`.
SOURCES: dict[str, tuple[str, ...]] = {
    "people": ("people", "--people", "4", "--images", "2", "--height", "64", "--seed", "5", "--workers", "1"),
    "pair": ("people", "--people", "2", "--images", "2", "--height", "64", "--seed", "7", "--workers", "1"),
    "faces": ("faces", "--people", "2", "--images", "2", "--size", "96", "--seed", "5", "--workers", "1"),
    "groups": (
        "faces", "--people", "4", "--images", "1", "--size", "96", "--faces-per-picture", "2", "--seed", "6",
        "--workers", "1",
    ),
}  # fmt: skip


@dataclass(frozen=True, slots=True)
class Case:
    """A release: `veilkit protect SOURCE ... --method METHOD OPTIONS`, with a key file unless a seed is named.

    exact: no CPU may give other bytes, since what the method computes never lies near the edge between two of the
    256 values of a channel. needs: a module without which the method finds no faces. decoder: a model by which
    `veilkit recover` then undoes the release.
    """

    method: str
    options: str = ""
    source: str = "people"
    exact: bool = False
    needs: str | None = None
    decoder: str | None = None

    @property
    def name(self) -> str:
        """What the table calls it: what somebody would type."""
        return " ".join(part for part in (self.method, self.source, self.options) if part)

    def words(self) -> list[str]:
        """What is typed after the two folders; MODELS and BEFORE stand for folders of models."""
        options = self.options.replace("BEFORE", str(BEFORE)).replace("MODELS", str(MODELS)).split()
        return ["--method", self.method, "--workers", "0", *options]


_SEED = "--seed 3 --names keep"
_FRO = "--model MODELS/cuhk03_fro.safetensors"
_DISGUISE = "--model MODELS/lfw_disguise.safetensors"
_QUICK = "--set steps=2 --set spread=1 --set batch=2"
_SHORT = "--set steps=4 --set masks=2 --set startup=2 --set rest=1 --set finish=1 --set spread=1 --set batch=2"
_SMALL = " --set expert=MODELS/cuhk03_privacyreid.expert.safetensors"  # quicker than the default
CASES: tuple[Case, ...] = (
    Case("blur"),
    Case("blur", "--set sigma=5 " + _SEED),
    Case("blur", _SEED, source="odd"),
    Case("pixelate", exact=True),
    Case("pixelate", "--format jpeg --set cell=40 " + _SEED, exact=True),
    Case("pixelate", _SEED, source="odd", exact=True),
    Case("noise", exact=True),
    Case("noise", "--set sigma=0.2 " + _SEED, exact=True),
    Case("noise", _SEED, source="odd", exact=True),
    Case("mask", exact=True),
    Case("mask", "--preset head --set colour=mean " + _SEED, exact=True),
    Case("mask", "--preset head " + _SEED, source="odd", exact=True),
    Case("mixup", "--set people=4", exact=True),
    Case("mixup", "--preset r8 --set people=3 " + _SEED, exact=True),
    Case("patches", exact=True),
    Case("patches", "--preset kept --set rows=5 --set people=3 " + _SEED, exact=True),
    Case("fro", _FRO + " --set assembly.steps=2", source="pair"),
    Case("fro", _FRO + " --preset varied --set assembly.steps=2 --set scale=1.5 " + _SEED, source="pair"),
    Case("fro", _FRO + " --preset varied-people --set assembly.steps=2 " + _SEED, source="pair"),
    Case("fro", _FRO + " --preset looks --set assembly.steps=2 " + _SEED, source="pair"),
    Case("fro", _FRO + " --preset paper --set assembly.steps=2 " + _SEED, source="pair"),
    Case("fro", _FRO + " --preset deepinversion --set assembly.steps=2 " + _SEED, source="pair"),
    Case("pixelfade", "--set steps=2 --set batch=2", source="two"),
    Case("pixelfade", "--model BEFORE/pixelfade.safetensors --set steps=2 --set batch=2 " + _SEED, source="two"),
    Case("pixelfade", "--preset paper " + _SHORT + _SMALL + " " + _SEED, source="two"),
    Case("pixelfade", "--preset released " + _SHORT + _SMALL + " " + _SEED, source="two"),
    Case("avih", _QUICK, source="two"),
    Case("avih", "--preset released " + _QUICK + _SMALL + " " + _SEED, source="two"),
    Case(
        "avih",
        "--preset keyless " + _QUICK + " --set expert=MODELS/cuhk03_efficientnet.safetensors " + _SEED,
        source="two",
    ),
    Case(
        "avih",
        "--model BEFORE/avih.safetensors --set steps=2 --set batch=3 --set start=original " + _SEED,
        source="two",
    ),
    Case(
        "privacyreid",
        "--model MODELS/cuhk03_privacyreid.safetensors",
        decoder="cuhk03_privacyreid.decoder.safetensors",
    ),
    Case("privacyreid", "--model MODELS/cuhk03_privacyreid.safetensors --set own_size=false " + _SEED),
    Case("peprnet", "--model MODELS/cuhk03_peprnet.safetensors"),
    Case("peprnet", "--model MODELS/cuhk03_peprnet.safetensors --set own_size=false " + _SEED),
    Case("disguise", _DISGUISE, source="faces", needs="dlib"),
    Case("disguise", _DISGUISE + " --set consistent=true " + _SEED, source="groups", needs="dlib"),
    Case("disguise", _DISGUISE + " --set transform.noise=0.5 --set finder=whole " + _SEED, "faces", needs="dlib"),
    Case("faceblur", source="faces", needs="dlib"),
    Case("faceblur", "--set unfound=keep " + _SEED, source="groups", needs="dlib"),
    Case("faceblur", "--preset people " + _SEED),
    Case("facereplace", source="faces", needs="dlib"),
    Case("facereplace", _SEED, source="groups", needs="dlib"),
    Case("facereplace", "--preset people " + _SEED),
    Case("ksame", "--set finder=whole --set people=2", source="faces"),
    Case("ksame", "--set finder=whole --set people=2 --set size=24 " + _SEED, source="faces"),
)
BY_NAME: Mapping[str, Case] = {case.name: case for case in CASES}


def veilkit(*words: str | Path) -> str:
    """Run the command in this process, as pyproject.toml names it, and return what it prints."""
    scripts = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["scripts"]
    module, _, function = scripts["veilkit"].partition(":")
    handlers = {number: signal.getsignal(number) for number in (signal.SIGTERM, signal.SIGINT)}
    given, printed, told = sys.argv, io.StringIO(), io.StringIO()
    sys.argv = ["veilkit", *map(str, words)]
    code: object = 0
    try:
        with contextlib.redirect_stdout(printed), contextlib.redirect_stderr(told):
            getattr(import_module(module), function)()
    except SystemExit as end:
        code = end.code or 0
    finally:
        sys.argv = given
        for number, handler in handlers.items():
            signal.signal(number, handler)
    if code != 0:
        raise AssertionError(f"veilkit {' '.join(map(str, words))}: exit code {code}\n{told.getvalue()}")
    return printed.getvalue()


def make_sources(folder: Path) -> None:
    """All folders of originals, and the key file."""
    for name, words in SOURCES.items():
        veilkit("generate", words[0], folder / name, *words[1:])
    (folder / "two").mkdir()
    for picture in sorted((folder / "pair").rglob("*.jpg"))[1:3]:
        shutil.copy(picture, folder / "two")
    odd_pictures(folder / "odd")
    (folder / "key").write_text(KEY)
    (folder / "key").chmod(0o600)


def odd_pictures(folder: Path) -> None:
    """Pictures of nothing in the forms that files come in: grey, see-through, a palette, 16 bits, CMYK, turned."""
    folder.mkdir(parents=True)
    rows, columns = np.mgrid[0:40, 0:24]
    planes = [(rows * 6 + columns * step) % 256 for step in (3, 5, 7, 2)]
    pixels = np.stack(planes, axis=2).astype(np.uint8)
    colours = Image.fromarray(np.ascontiguousarray(pixels[:, :, :3]))
    Image.fromarray(pixels[:, :, 0]).save(folder / "grey.png")
    Image.fromarray(pixels).save(folder / "see-through.png")
    colours.quantize(16, dither=Image.Dither.NONE).save(folder / "palette.png")
    Image.fromarray((planes[0] * 257).astype(np.uint16)).save(folder / "sixteen.png")
    colours.convert("CMYK").save(folder / "cmyk.jpg", quality=95)
    turned = Image.Exif()
    turned[0x0112] = 6  # Orientation: a quarter to the right
    colours.save(folder / "turned.jpg", quality=95, exif=turned)


def make_release(case: Case, sources: Path, folder: Path) -> dict[str, str]:
    """The release of a case, and what its decoder makes of it, described; folder must be new."""
    release, recovered = folder / "release", folder / "recovered"
    folder.mkdir()
    words = case.words() if "--seed" in case.options else [*case.words(), "--key", str(sources / "key")]
    with patch.dict(os.environ, VEILKIT_WEIGHTS=str(folder)):  # a network of somebody's own is used where it is found
        veilkit("protect", sources / case.source, release, *words)
    described = describe(release)
    if case.decoder:
        veilkit("recover", release, recovered, "--model", MODELS / case.decoder)
        described |= {f"recovered/{name}": line for name, line in describe(recovered).items()}
    return described


def picture_hashes(folder: Path) -> dict[str, str]:
    """SHA-256 of each picture below a folder."""
    files = [file for file in sorted(folder.rglob("*")) if file.suffix in _PICTURES]
    return {str(file.relative_to(folder)): hashlib.sha256(file.read_bytes()).hexdigest() for file in files}


def describe(release: Path) -> dict[str, str]:
    """What the table holds of a release: of each file its hash and, of a picture, a sample of its values.

    Of the manifest, the hash without what is of a version, and without the hash of hashes, which SHA256SUMS shows.
    """
    described = {}
    for file in sorted(release.rglob("*")):
        if file.is_file():
            data = file.read_bytes()
            name = str(file.relative_to(release))
            if name == "manifest.json":
                manifest = json.loads(data)
                for field in ("veilkit", "sums_sha256"):
                    manifest.pop(field)
                data = json.dumps(manifest, sort_keys=True).encode()
            described[name] = hashlib.sha256(data).hexdigest()
            if file.suffix in _PICTURES:
                described[name] += " " + b64encode(sample(file).tobytes()).decode()
    return described


def sample(picture: Path) -> np.ndarray:
    """Values of a picture at even distances, over all three channels (uint8)."""
    values = np.asarray(Image.open(picture).convert("RGB")).reshape(-1)
    step = max(1, len(values) // _SAMPLED)
    return values[:: step + (step % 3 == 0)]
