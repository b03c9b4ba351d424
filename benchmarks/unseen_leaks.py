"""Leaks that were planted after all alarms had been written, to see what these find of what nobody thought of.

    python benchmarks/unseen_leaks.py

No alarm was changed for any of them since. Any alarm counts, as none is named for them. What is missed stays missed
in the row: once an alarm has been made for a leak, that leak belongs to `audit_mutants`.
"""

from __future__ import annotations

import io
import shutil
import tempfile
import zlib
from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
from PIL import Image, ImageCms

import audit_mutants
from claims import record
from planted_leaks import blurred, by, changed, noise, people_of, pictures, pixels_of, thumbnail

COMMAND = "python benchmarks/unseen_leaks.py"
Make = Callable[[Path, Path], Path]


def chroma_only(pixels: np.ndarray, number: int) -> np.ndarray:
    """Brightness is noise, colours are as they were."""
    made = cv2.cvtColor(pixels, cv2.COLOR_RGB2YCrCb)
    made[..., 0] = np.random.default_rng(number).integers(60, 196, made.shape[:2])
    return np.asarray(cv2.cvtColor(made, cv2.COLOR_YCrCb2RGB))


def small_negative(pixels: np.ndarray, number: int) -> np.ndarray:
    """A negative of the original, small, lying on its side, at an odd place of noise."""
    made = np.random.default_rng(number).integers(0, 256, pixels.shape, dtype=np.uint8)
    made[13:24, 3:20] = 255 - np.rot90(np.asarray(Image.fromarray(pixels).resize((11, 17), Image.Resampling.BOX)))
    return made


def blocks_moved(pixels: np.ndarray, number: int) -> np.ndarray:
    """Blocks of 4 x 4 pixels, in one order for all pictures."""
    height, width = pixels.shape[0] // 4, pixels.shape[1] // 4
    blocks = pixels[: height * 4, : width * 4].reshape(height, 4, width, 4, 3).swapaxes(1, 2).reshape(-1, 4, 4, 3)
    moved = blocks[np.random.default_rng(77).permutation(len(blocks))]
    return moved.reshape(height, width, 4, 4, 3).swapaxes(1, 2).reshape(height * 4, width * 4, 3)


def signs_of_waves(pixels: np.ndarray, number: int) -> np.ndarray:
    """Waves of random strength whose signs are those of the original's (discrete cosine transform)."""
    strength = np.abs(noise(pixels.shape[:2], number, 1.0))
    made = [cv2.idct(np.sign(cv2.dct(pixels[..., each].astype(np.float64) - 128)) * strength) for each in range(3)]
    return np.clip(128 + 40 * np.stack(made, axis=2), 0, 255).astype(np.uint8)


def detail_on_noise(pixels: np.ndarray, number: int) -> np.ndarray:
    """The fine detail of the original over slow waves of noise."""
    detail = pixels.astype(np.float64) - cv2.GaussianBlur(pixels.astype(np.float64), (0, 0), 2)
    waves = cv2.GaussianBlur(noise(pixels.shape, 900 + number, 400), (0, 0), 4)
    return np.clip(128 + waves + detail, 0, 255).astype(np.uint8)


def rolled(pixels: np.ndarray, number: int) -> np.ndarray:
    """Shifted by half its width and a third of its height, around its edges."""
    return np.roll(blurred(pixels, radius=1), (pixels.shape[0] // 3, pixels.shape[1] // 2), (0, 1))


def _saved(originals: Path, release: Path, save: Callable[[np.ndarray, np.ndarray, int, Path], None]) -> Path:
    """save: of the original, the blurred picture, the person's number and the file."""
    for file, person in people_of(originals).items():
        target = release / file.relative_to(originals)
        target.parent.mkdir(parents=True, exist_ok=True)
        save(pixels_of(file), blurred(pixels_of(file)), person, target)
    return release


def noise_of_person(originals: Path, release: Path) -> Path:
    people = list(people_of(originals).values())
    return changed(originals, release, lambda pixels, number: np.clip(
        pixels + noise(pixels.shape, 7000 + people[number], 60), 0, 255).astype(np.uint8))  # fmt: skip


def in_sides(originals: Path, release: Path) -> Path:
    """Each person's pictures are cut to a width and height of their own."""

    def save(raw: np.ndarray, made: np.ndarray, person: int, file: Path) -> None:
        Image.fromarray(made[: 40 + person * 3 % 8, : 16 + person * 5 % 8]).save(file)

    return _saved(originals, release, save)


def in_jpeg_tables(originals: Path, release: Path) -> Path:
    """The quality of JPEG files is the person's number."""

    def save(raw: np.ndarray, made: np.ndarray, person: int, file: Path) -> None:
        Image.fromarray(made).save(file.with_suffix(".jpg"), quality=60 + person * 3 % 37)

    return _saved(originals, release, save)


def in_profile(originals: Path, release: Path) -> Path:
    """The original after the end of the colour profile, which readers take for a part of it."""
    profile = ImageCms.ImageCmsProfile(ImageCms.createProfile("sRGB")).tobytes()

    def save(raw: np.ndarray, made: np.ndarray, person: int, file: Path) -> None:
        Image.fromarray(made).save(file, icc_profile=profile + zlib.compress(raw.tobytes()))

    return _saved(originals, release, save)


def in_own_chunk(originals: Path, release: Path) -> Path:
    """The original in a chunk of a PNG that no reader knows."""

    def save(raw: np.ndarray, made: np.ndarray, person: int, file: Path) -> None:
        target = io.BytesIO()
        Image.fromarray(made).save(target, "PNG")
        body = b"prIv" + zlib.compress(raw.tobytes())
        chunk = (len(body) - 4).to_bytes(4) + body + zlib.crc32(body).to_bytes(4)
        file.write_bytes(target.getvalue()[:33] + chunk + target.getvalue()[33:])

    return _saved(originals, release, save)


def in_palette(originals: Path, release: Path) -> Path:
    """Sixty-four colours, whose order in the palette is the person's."""

    def save(raw: np.ndarray, made: np.ndarray, person: int, file: Path) -> None:
        image = Image.fromarray(made).quantize(64, dither=Image.Dither.NONE)
        image.remap_palette(np.random.default_rng(person).permutation(64).tolist()).save(file)

    return _saved(originals, release, save)


def after_the_stream(originals: Path, release: Path) -> Path:
    """A thumbnail behind the packed pixels, within their chunk."""

    def save(raw: np.ndarray, made: np.ndarray, person: int, file: Path) -> None:
        target = io.BytesIO()
        Image.fromarray(made).save(target, "PNG")
        data = target.getvalue()
        at = data.index(b"IDAT")
        length = int.from_bytes(data[at - 4 : at])
        body = data[at : at + 4 + length] + thumbnail(raw).tobytes()
        chunk = (len(body) - 4).to_bytes(4) + body + zlib.crc32(body).to_bytes(4)
        file.write_bytes(data[: at - 4] + chunk + data[at + 8 + length :])

    return _saved(originals, release, save)


def beside(originals: Path, release: Path) -> Path:
    """All originals in a packed file that is called notes.md."""
    changed(originals, release, lambda pixels, _: blurred(pixels))
    packed = shutil.make_archive(str(release.with_name("packed")), "tar", originals)
    (release / "notes.md").write_bytes(zlib.compress(Path(packed).read_bytes()))
    return release


UNSEEN: dict[str, Make] = {
    "colours kept under noise": by(chroma_only),
    "small negative on its side": by(small_negative),
    "blocks in one other order": by(blocks_moved),
    "signs of waves": by(signs_of_waves),
    "detail over noise": by(detail_on_noise),
    "shifted copy": by(rolled),
    "noise of the person": noise_of_person,
    "person in the sides of pictures": in_sides,
    "person in JPEG's tables": in_jpeg_tables,
    "original after the colour profile": in_profile,
    "original in a chunk of its own": in_own_chunk,
    "person in the order of colours": in_palette,
    "thumbnail behind the packed pixels": after_the_stream,
    "originals packed in a text file": beside,
}


def main() -> None:
    missed = []
    with tempfile.TemporaryDirectory() as folder:
        pool = audit_mutants.people(Path(folder), audit_mutants.SEED)
        originals = audit_mutants.some(pool, Path(folder, "some"), audit_mutants.SEED)
        assert pictures(originals)
        for number, (name, make) in enumerate(UNSEEN.items()):
            work = Path(folder, f"unseen{number}")
            work.mkdir()
            result = audit_mutants.audited(
                originals, make(originals, work / "release"), work / "audit", attacks=["own_original"]
            )
            alarms = [alarm.name for alarm in result.alarms]
            missed += [] if alarms else [name]
            print(f"{'caught' if alarms else 'MISSED'}: {name} (alarms: {', '.join(alarms) or 'none'})", flush=True)
    record(
        id="audit-mutants-unseen",
        claim=f"planted leaks caught of {len(UNSEEN)} that were planted after all alarms had been written",
        figure=len(UNSEEN) - len(missed), bar=f"== {len(UNSEEN)}", unit="leaks", data="generated people",
        scale=f"{len(UNSEEN)} leaks, {audit_mutants.PEOPLE} people", seed=audit_mutants.SEED, command=COMMAND,
        note="; ".join([*(f"missed: {name}" for name in missed), "any alarm counts; no alarm was changed for them"]),
    )  # fmt: skip


if __name__ == "__main__":
    main()
