"""Releases that look protected and give originals away by other ways, each by a rule of its own.

`audit_mutants` audits them. A leak is a function of the originals' folder and a folder for the release; some need
other originals than small people, which they make first.
"""

from __future__ import annotations

import base64
import hashlib
import io
import json
import os
import struct
import zlib
from collections.abc import Callable
from fractions import Fraction
from pathlib import Path

import numpy as np
from PIL import Image, ImageFilter

from veilkit.pipeline.protect import protect

Change = Callable[[np.ndarray, int], np.ndarray]
SPREAD = 40.0
RATE, FRAMES = 25, 50


def pictures(originals: Path) -> list[Path]:
    return sorted(file for file in originals.rglob("*") if file.suffix in (".png", ".jpg"))


def pixels_of(file: Path) -> np.ndarray:
    with Image.open(file) as image:
        return np.asarray(image.convert("RGB"))


def blurred(pixels: np.ndarray, number: int = 0, radius: float = 3) -> np.ndarray:
    return np.asarray(Image.fromarray(pixels).filter(ImageFilter.GaussianBlur(radius)))


def changed(originals: Path, release: Path, change: Change, word: str = "", suffix: str = ".png") -> Path:
    """The same tree with every picture changed, as another tool would leave it."""
    for number, file in enumerate(pictures(originals)):
        target = release / file.parent.relative_to(originals) / f"{file.stem}{word}{suffix}"
        target.parent.mkdir(parents=True, exist_ok=True)
        options = {"quality": 90} if suffix == ".jpg" else {}
        Image.fromarray(change(pixels_of(file), number)).save(target, **options)
    return release


def by(change: Change) -> Callable[[Path, Path], Path]:
    return lambda originals, release: changed(originals, release, change)


def noise(shape: tuple[int, ...], seed: int, spread: float = SPREAD) -> np.ndarray:
    return np.random.default_rng(seed).normal(0, spread, shape)


def thumbnail(pixels: np.ndarray, side: int = 8) -> np.ndarray:
    return np.asarray(Image.fromarray(pixels).resize((side, side), Image.Resampling.BOX))


def in_corner(pixels: np.ndarray, number: int) -> np.ndarray:
    made = blurred(pixels).copy()
    made[-8:, -8:] = thumbnail(pixels)
    return made


def in_low_bits(pixels: np.ndarray, number: int) -> np.ndarray:
    """The bytes of a thumbnail, bit by bit, in the lowest bits of the first values."""
    made = blurred(pixels).copy().ravel()
    bits = np.unpackbits(thumbnail(pixels).ravel())
    made[: len(bits)] = made[: len(bits)] & 254 | bits
    return made.reshape(pixels.shape)


def in_every_low_bit(pixels: np.ndarray, number: int) -> np.ndarray:
    """The highest bit of each value of the original in the lowest of the release."""
    return blurred(pixels) & 254 | pixels >> 7


def mirrored(pixels: np.ndarray, number: int) -> np.ndarray:
    return blurred(pixels[:, ::-1].copy(), radius=1)


def few_noises(pixels: np.ndarray, number: int) -> np.ndarray:
    """Noise of three bits: eight patterns for all pictures."""
    return np.clip(pixels + noise(pixels.shape, 100 + number * 37 % 8), 0, 255).astype(np.uint8)


def behind_noise(pixels: np.ndarray, number: int) -> np.ndarray:
    """Noise in place of the person, the background as it was."""
    height, width = pixels.shape[:2]
    made = pixels.copy()
    inside = np.s_[height // 10 : -(height // 10), width // 6 : -(width // 6)]
    made[inside] = np.random.default_rng(number).integers(0, 256, made[inside].shape, dtype=np.uint8)
    return made


def people_of(originals: Path) -> dict[Path, int]:
    names = sorted({file.parent.name for file in pictures(originals)})
    return {file: names.index(file.parent.name) for file in pictures(originals)}


def in_file_size(originals: Path, release: Path) -> Path:
    """Zeros after the picture, which readers ignore: all files of a person have one size."""
    changed(originals, release, blurred)
    for file, person in people_of(release).items():
        data = file.read_bytes()
        file.write_bytes(data.ljust(8000 + 500 * (person * 7 % 64), b"\0"))
    return release


def in_order(originals: Path, release: Path) -> Path:
    release.mkdir()
    for number, file in enumerate(pictures(originals)):
        Image.fromarray(blurred(pixels_of(file))).save(release / f"{number:05}.png")
    return release


def in_times(originals: Path, release: Path) -> Path:
    """Pseudonyms, but each person's pictures are of one hour."""
    protect(originals, release, "blur", labels="folder")
    from veilkit.key import read_key

    key = read_key(release.with_name(release.name + ".private") / "key")
    made = {file.stem: file for file in pictures(release)}
    for file, person in people_of(originals).items():
        target = made[key.pseudonym(str(file.relative_to(originals)))]
        time = 1_700_000_000 + 3600 * (person * 13 % 97) + len(target.name + file.stem) % 50
        os.utime(target, (time, time))
    return release


def hashed_person(originals: Path, release: Path) -> Path:
    """Each name begins with a hash of the person's folder; the rest is random."""
    release.mkdir()
    for number, file in enumerate(pictures(originals)):
        person = hashlib.sha1(file.parent.name.encode()).hexdigest()[:12]
        random = np.random.default_rng(number).bytes(6).hex()
        Image.fromarray(blurred(pixels_of(file))).save(release / f"{person}_{random}.png")
    return release


def png_with_filters(pixels: np.ndarray, filters: np.ndarray) -> bytes:
    """A PNG of 8-bit colours whose rows are coded by the given filters, each of 0, 1 or 2."""
    height, width = pixels.shape[:2]
    rows = bytearray()
    above = np.zeros(width * 3, dtype=np.uint8)
    for row, kind in zip(pixels.reshape(height, -1), filters, strict=True):
        left = np.concatenate([np.zeros(3, dtype=np.uint8), row[:-3]])
        rows += bytes([kind]) + (row - {0: np.uint8(0) * row, 1: left, 2: above}[int(kind)]).tobytes()
        above = row

    def chunk(name: bytes, body: bytes) -> bytes:
        return struct.pack(">I", len(body)) + name + body + struct.pack(">I", zlib.crc32(name + body))

    header = struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)
    return (
        b"\x89PNG\r\n\x1a\n"
        + chunk(b"IHDR", header)
        + chunk(b"IDAT", zlib.compress(bytes(rows)))
        + chunk(b"IEND", b"")
    )


def in_filters(originals: Path, release: Path) -> Path:
    """The person's number, over and over, in the filters of the rows of PNG files."""
    for file, person in people_of(originals).items():
        target = release / file.relative_to(originals)
        target.parent.mkdir(parents=True, exist_ok=True)
        made = blurred(pixels_of(file))
        bits = np.random.default_rng(person).integers(1, 3, len(made))
        target.write_bytes(png_with_filters(made, bits))
    return release


def key_of_folder(originals: Path, release: Path) -> Path:
    key = release.with_name(f"{release.name}.private") / "key"
    key.parent.mkdir(mode=0o700)
    key.write_text(f"veilkit-key-1 {hashlib.sha256(originals.name.encode()).hexdigest()}\n")
    key.chmod(0o600)
    protect(originals, release, "blur", labels="folder", key=key)
    return release


def with_decoder(originals: Path, release: Path) -> Path:
    """Rows in one other order under noise, and the way back among the settings."""

    def change(pixels: np.ndarray, number: int) -> np.ndarray:
        shuffled = pixels[np.random.default_rng(9).permutation(len(pixels))]
        return np.clip(shuffled + noise(pixels.shape, 300 + number), 0, 255).astype(np.uint8)

    changed(originals, release, change)
    rows = len(pixels_of(pictures(originals)[0]))
    back = np.argsort(np.random.default_rng(9).permutation(rows)).astype(np.int64).tobytes()
    text = json.dumps({"tool": "other", "settings": {"strength": 3, "weights": base64.b64encode(back).decode()}})
    (release / "manifest.json").write_text(text)
    return release


def many(originals: Path, folder: Path, count: int) -> Path:
    """So many pictures: the originals cut a little otherwise each time."""
    known = pictures(originals)
    for number in range(count):
        file, shift = known[number % len(known)], number // len(known)
        made = np.roll(pixels_of(file), (shift % 7, shift // 7 % 5), (0, 1)).astype(np.int16)
        made += np.random.default_rng([8, number]).integers(-4, 5, made.shape, dtype=np.int16)
        target = folder / file.parent.name / f"{file.stem}-{shift:03}.png"
        target.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(made.clip(0, 255).astype(np.uint8)).save(target)
    return folder


def coded(pixels: np.ndarray, quality: int = 85) -> np.ndarray:
    """As a JPEG shows it: no byte is as it was, and all can be seen."""
    target = io.BytesIO()
    Image.fromarray(pixels).save(target, "JPEG", quality=quality)
    return pixels_of(target)  # type: ignore[arg-type]


def one_left(originals: Path, release: Path) -> Path:
    """One picture passed through unprotected, coded anew."""
    left = len(pictures(originals)) * 2 // 3
    return changed(originals, release, lambda pixels, number: coded(pixels) if number == left else blurred(pixels))


def groups(originals: Path, folder: Path, count: int = 8) -> Path:
    """Pictures of two generated faces each, of people who are in no other."""
    from veilkit.synthetic.faces.pictures import render_face

    folder.mkdir()
    for number in range(count):
        pair = [render_face(51, 2 * number + place, 0, size=160)[0] for place in (0, 1)]
        Image.fromarray(np.hstack(pair)).save(folder / f"group{number:02}.png")
    return folder


def one_face_left(originals: Path, release: Path) -> Path:
    def change(pixels: np.ndarray, number: int) -> np.ndarray:
        made, half = blurred(pixels, radius=8).copy(), pixels.shape[1] // 2
        if number == 5:
            made[:, half:] = coded(pixels)[:, half:]
        return made

    return changed(originals, release, change)


def clips(originals: Path, folder: Path) -> Path:
    """A clip of two generated faces that move."""
    from veilkit.synthetic.faces.pictures import render_face

    folder.mkdir()
    faces = [render_face(61, number, 0, size=120)[0] for number in (0, 1)]
    write_clip(folder / "a.mp4", [_frame(faces, number) for number in range(FRAMES)])
    return folder


def _frame(faces: list[np.ndarray], number: int) -> np.ndarray:
    made = np.full((200, 360, 3), (90, 110, 120), dtype=np.uint8)
    for face, (top, left) in zip(
        faces, ((10 + number // 4, 10 + number), (50 - number // 3, 220 - number // 2)), strict=True
    ):
        made[top : top + 120, left : left + 120] = face
    return made


def write_clip(file: Path, frames: list[np.ndarray]) -> None:
    import av

    with av.open(str(file), "w") as container:
        stream = container.add_stream("libx264", rate=RATE, options={"crf": "18", "preset": "veryfast"})
        stream.height, stream.width, stream.pix_fmt = *frames[0].shape[:2], "yuv420p"
        for number, pixels in enumerate(frames):
            frame = av.VideoFrame.from_ndarray(pixels, format="rgb24")
            frame.pts, frame.time_base = number, Fraction(1, RATE)
            container.mux(stream.encode(frame))
        container.mux(stream.encode(None))


def one_frame_left(originals: Path, release: Path) -> Path:
    import av

    release.mkdir()
    for file in sorted(originals.iterdir()):
        with av.open(str(file)) as container:
            shown = [frame.to_ndarray(format="rgb24") for frame in container.decode(video=0)]
        frames = [blurred(pixels, radius=10) for pixels in shown]
        frames[len(frames) // 2] = shown[len(frames) // 2]
        write_clip(release / file.name, frames)
    return release
