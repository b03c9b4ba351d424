"""Leaks that were planted after the alarms had been written, to see what these find of what nobody thought of.

    python benchmarks/unseen_leaks.py

Any alarm counts, as none is named for them. Of the FIRST, alarms found 5 of 14; then they were extended. The SECOND
were planted after that, and no alarm was changed for any of them since: what is missed there stays missed in the row.
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
from audit_mutants import audited
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


def between_noise(pixels: np.ndarray, number: int) -> np.ndarray:
    """Every third pixel is the original's, all others noise."""
    made = np.random.default_rng(number).integers(0, 256, pixels.shape, dtype=np.uint8)
    made[::3, ::3] = pixels[::3, ::3]
    return made


def under_a_pad(pixels: np.ndarray, number: int) -> np.ndarray:
    """The original's highest bits in the second lowest, turned over by one pad for all pictures."""
    pad = np.random.default_rng(5).integers(0, 2, pixels.shape, dtype=np.uint8)
    return blurred(pixels) & 253 | (pixels >> 7 ^ pad) << 1


def seeds_in_a_row(pixels: np.ndarray, number: int) -> np.ndarray:
    """Noise of numpy's generator, seeded by the number of the picture."""
    return np.clip(pixels + noise(pixels.shape, number, 60), 0, 255).astype(np.uint8)


def in_brightness(originals: Path, release: Path) -> Path:
    """Each person's pictures have one mean brightness."""

    def save(raw: np.ndarray, made: np.ndarray, person: int, file: Path) -> None:
        values = made.astype(np.float64)
        Image.fromarray(np.clip(values - values.mean() + 80 + person * 7, 0, 255).astype(np.uint8)).save(file)

    return _saved(originals, release, save)


def in_resolution(originals: Path, release: Path) -> Path:
    """The person's number as dots an inch."""

    def save(raw: np.ndarray, made: np.ndarray, person: int, file: Path) -> None:
        Image.fromarray(made).save(file, dpi=(72 + person, 72 + person))

    return _saved(originals, release, save)


def names_turned(originals: Path, release: Path) -> Path:
    """Names in which each letter and digit stands for another: anybody can turn them back."""
    release.mkdir()
    table = str.maketrans("0123456789abcdefghijklmnopqrstuvwxyz", "5678901234nopqrstuvwxyzabcdefghijklm")
    for file in pictures(originals):
        Image.fromarray(blurred(pixels_of(file))).save(release / f"{file.stem.lower().translate(table)}.png")
    return release


def one_on_its_head(originals: Path, release: Path) -> Path:
    """One picture is not protected, but on its head."""
    return changed(originals, release, lambda pixels, n: pixels[::-1, ::-1].copy() if n == 7 else blurred(pixels))


SECOND: dict[str, Make] = {
    "original between pixels of noise": by(between_noise),
    "low bits under one pad": by(under_a_pad),
    "noise of seeds in a row": by(seeds_in_a_row),
    "person in the brightness": in_brightness,
    "person in the resolution": in_resolution,
    "names turned letter by letter": names_turned,
    "one picture on its head": one_on_its_head,
}
FIRST: dict[str, Make] = {
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
    with tempfile.TemporaryDirectory() as folder:
        pool = audit_mutants.people(Path(folder), audit_mutants.SEED)
        originals = audit_mutants.some(pool, Path(folder, "some"), audit_mutants.SEED)
        _record("audit-mutants-first", FIRST, originals, Path(folder), "for which alarms were extended afterwards",
                "5 of 14 were caught before alarms were extended")  # fmt: skip
        _record("audit-mutants-unseen", SECOND, originals, Path(folder),
                "that were planted after all alarms had been written", "no alarm was changed for them")  # fmt: skip


def _record(name: str, leaks: dict[str, Make], originals: Path, folder: Path, which: str, note: str) -> None:
    missed = []
    for leak, make in leaks.items():
        work = folder / leak.replace(" ", "-")
        work.mkdir()
        release = make(originals, work / "release")
        labels = "folder" if any(release.glob("*/")) else "none"
        result = audited(originals, release, work / "audit", attacks=["own_original"], labels=labels)
        alarms = [alarm.name for alarm in result.alarms if alarm.name != "no pairs"]
        missed += [] if alarms else [leak]
        print(f"{'caught' if alarms else 'MISSED'}: {leak} (alarms: {', '.join(alarms) or 'none'})", flush=True)
    record(
        id=name, claim=f"planted leaks caught of {len(leaks)} others, {which}", figure=len(leaks) - len(missed),
        bar=f"== {len(leaks)}", unit="leaks", data="generated people",
        scale=f"{len(leaks)} leaks, {audit_mutants.PEOPLE} people; any alarm counts", seed=audit_mutants.SEED,
        command=COMMAND, note="; ".join([*(f"missed: {leak}" for leak in missed), note]),
    )  # fmt: skip


if __name__ == "__main__":
    main()
