"""Files that nobody should have to open: each must be protected or refused with a reason, in bounded memory.

Runs the command line with two workers over every kind of damaged, lying, odd or oversized picture that we know of,
once for each of three methods, and accounts for every file by its pseudonym and the list of refusals.
"""

from __future__ import annotations

import csv
import io
import os
import struct
import tempfile
import zlib
from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from PIL import Image, PngImagePlugin

from claims import record
from pictures import picture
from process import run
from veilkit.datasets.folder import IMAGE_SUFFIXES
from veilkit.key import read_key

SEED, COUNT = 0, 300
METHODS = ("pixelate", "blur", "patches")
FORMATS = {"JPEG": ".jpg", "PNG": ".png", "WEBP": ".webp", "BMP": ".bmp", "TIFF": ".tif"}
ORIENTATION = 0x0112


@dataclass(frozen=True, slots=True)
class Report:
    """One run: pictures protected, refused by reason, and neither; whether it crashed; peak megabytes."""

    method: str
    protected: int
    refused: dict[str, int]
    unaccounted: tuple[str, ...]
    crashed: bool
    megabytes: float
    output: str


def encoded(image: Image.Image, form: str, **options: object) -> bytes:
    buffer = io.BytesIO()
    image.save(buffer, form, **options)
    return buffer.getvalue()


def photo(index: int, height: int = 96, width: int = 48) -> Image.Image:
    return Image.fromarray(picture(index, height, width))


def png_chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, pixels: bytes, *chunks: bytes, depth: int = 8, colour: int = 2) -> bytes:
    """A PNG file with that header, whatever `pixels` holds; `chunks` stand before the pixels."""
    header = png_chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, depth, colour, 0, 0, 0))
    return b"\x89PNG\r\n\x1a\n" + header + b"".join(chunks) + png_chunk(b"IDAT", pixels) + png_chunk(b"IEND", b"")


def zeros(megabytes: int) -> bytes:
    """A deflated stream of zeros, a thousandth of what it unpacks to."""
    squeezer = zlib.compressobj(9)
    return b"".join(squeezer.compress(bytes(2**20)) for _ in range(megabytes)) + squeezer.flush()


def oriented(orientation: int) -> bytes:
    """A JPEG that is stored turned and says so: red above blue, portrait, once it is upright."""
    upright = Image.new("RGB", (40, 80), "blue")
    upright.paste("red", (0, 0, 40, 40))
    upright.paste("lime", (0, 0, 20, 40))
    inverse = {2: 0, 3: 3, 4: 1, 5: 5, 6: 2, 7: 6, 8: 4}  # PIL transpose operations that undo each orientation
    stored = upright.transpose(Image.Transpose(inverse[orientation])) if orientation in inverse else upright
    exif = Image.Exif()
    exif[ORIENTATION] = orientation
    return encoded(stored, "JPEG", exif=exif.tobytes(), quality=95, subsampling=0)


def bombs() -> Iterator[tuple[str, bytes]]:
    """Small files that claim, or unpack to, something huge."""
    yield "zeros50000.png", png(50_000, 50_000, zeros(64))
    yield "zeros12000.png", png(12_000, 12_000, zeros(64))
    yield "header2g.png", png(2**31 - 1, 2**31 - 1, zlib.compress(b"0"))
    yield "header0.png", png(0, 0, zlib.compress(b""))
    for width, height in ((60_000, 60_000), (2**31 - 1, 1), (1, 2**31 - 1), (-5, 7)):
        bitmap = struct.pack("<2sIHHIIiiHHIIiiII", b"BM", 200, 0, 0, 54, 40, width, height, 1, 24, 0, 0, 0, 0, 0, 0)
        yield f"lying{width}x{height}.bmp", bitmap + bytes(146)
    lying = bytearray(encoded(photo(1), "BMP"))
    lying[18:26] = struct.pack("<ii", 6_000, 6_000)
    yield "short.bmp", bytes(lying)
    for size in (5_000, 65_535, 2**31 - 1):
        tags = ((256, size), (257, size), (258, 8), (259, 1), (262, 1), (273, 8), (277, 1), (278, size), (279, 2**31))
        entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
        yield f"lying{size}.tif", struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + entries + bytes(4)
    yield "loop.tif", struct.pack("<2sHIH", b"II", 42, 8, 0) + struct.pack("<I", 8)
    for side in (5_000, 16_384):
        small = encoded(photo(2), "WEBP", lossless=True)[12:]
        canvas = (side - 1).to_bytes(3, "little") * 2
        body = b"WEBP" + b"VP8X" + struct.pack("<I", 10) + bytes(4) + canvas + small
        yield f"canvas{side}.webp", b"RIFF" + struct.pack("<I", len(body)) + body
    jpeg = bytearray(encoded(photo(3), "JPEG"))
    place = jpeg.index(b"\xff\xc0") + 5
    for size in (65_500, 5_000):
        jpeg[place : place + 4] = struct.pack(">HH", size, size)
        yield f"lying{size}.jpg", bytes(jpeg)
    bomb, row = zeros(200), zlib.compress(bytes(3 * 4 + 1) * 4)
    yield "ztxt.png", png(4, 4, row, png_chunk(b"zTXt", b"Comment\0\0" + bomb))
    yield "itxt.png", png(4, 4, row, png_chunk(b"iTXt", b"Comment\0\1\0\0\0" + bomb))
    yield "iccp.png", png(4, 4, row, png_chunk(b"iCCP", b"profile\0\0" + bomb))
    almost = png_chunk(b"zTXt", b"Comment\0\0" + zlib.compress(bytes(1_000_000), 9))
    yield "manyztxt.png", png(4, 4, row, *[almost] * 400)
    yield "moredata.png", png(4, 4, bomb)


def odd() -> Iterator[tuple[str, bytes]]:
    """Pictures that are whole, in modes and containers that are seldom met."""
    image, rng = photo(4), np.random.default_rng(SEED)
    yield "cmyk.jpg", encoded(image.convert("CMYK"), "JPEG", quality=95)
    yield "cmyk.tif", encoded(image.convert("CMYK"), "TIFF")
    for form, suffix in (("PNG", ".png"), ("TIFF", ".tif")):
        yield f"grey16{suffix}", encoded(Image.fromarray(rng.integers(0, 2**16, (40, 20), dtype=np.uint16)), form)
    rows = b"".join(b"\0" + rng.bytes(6 * 20) for _ in range(40))
    yield "rgb16.png", png(20, 40, zlib.compress(rows), depth=16)
    yield "float.tif", encoded(Image.fromarray(rng.normal(size=(40, 20)).astype(np.float32)), "TIFF")
    yield "int32.tif", encoded(Image.fromarray(rng.integers(0, 99_999, (40, 20), dtype=np.int32)), "TIFF")
    yield "nan.tif", encoded(Image.fromarray(np.full((40, 20), np.nan, np.float32)), "TIFF")
    for mode in ("1", "L", "LA", "P", "RGBA"):
        yield f"mode{mode}.png", encoded(image.convert(mode), "PNG")
    yield "palette.png", encoded(image.convert("P", palette=Image.Palette.ADAPTIVE), "PNG", transparency=bytes(256))
    yield "keyed.png", encoded(image, "PNG", transparency=(1, 2, 3))
    yield "ycbcr.tif", encoded(image.convert("YCbCr"), "TIFF")
    yield "lab.tif", encoded(image.convert("LAB"), "TIFF")
    yield "alpha.webp", encoded(image.convert("RGBA"), "WEBP", lossless=True)
    yield "progressive.jpg", encoded(image, "JPEG", progressive=True)
    frames = [photo(index) for index in range(5, 8)]
    for name, form in (("moving.webp", "WEBP"), ("moving.png", "PNG"), ("pages.tif", "TIFF")):
        yield name, encoded(frames[0], form, save_all=True, append_images=frames[1:])
    for name, form in (("gif.png", "GIF"), ("ppm.jpg", "PPM"), ("png.jpg", "PNG"), ("ico.bmp", "ICO")):
        yield name, encoded(image, form)
    yield "icc.jpg", encoded(image, "JPEG", icc_profile=b"no profile at all" * 9)
    yield "exif.jpg", encoded(image, "JPEG", exif=b"Exif\0\0" + rng.bytes(400))
    text = PngImagePlugin.PngInfo()
    text.add_itxt("XML:com.adobe.xmp", "<x" * 5_000)
    yield "xmp.png", encoded(image, "PNG", pnginfo=text)
    for width, height in ((1, 1), (1, 5000), (5000, 1), (2, 2), (3, 700)):
        yield f"thin{width}x{height}.png", encoded(photo(8, height, width), "PNG")
    for orientation in (*range(1, 9), 0, 9, 65_535):
        yield f"turned{orientation}.jpg", oriented(orientation)


def not_pictures() -> Iterator[tuple[str, bytes]]:
    texts = {
        "text": b"not a picture\n" * 50,
        "html": b"<!doctype html><html><img src=x></html>",
        "pdf": b"%PDF-1.7\n1 0 obj\n<< /Type /Catalog >>\nendobj\n%%EOF\n",
        "zip": b"PK\x03\x04" + bytes(60),
        "svg": b'<svg xmlns="http://www.w3.org/2000/svg" width="9" height="9"/>',
        "eps": b"%!PS-Adobe-3.0 EPSF-3.0\n%%BoundingBox: 0 0 9 9\nshowpage\n",
        "zeros": bytes(4_096),
        "noise": np.random.default_rng(SEED).bytes(4_096),
        "magic": b"\x89PNG\r\n\x1a\n",
        "nul": b"\0",
    }
    for name, data in texts.items():
        for suffix in (".jpg", ".png"):
            yield name + suffix, data
    for suffix in sorted(IMAGE_SUFFIXES):
        yield f"empty{suffix}", b""


def damaged(seed: int) -> Iterator[tuple[str, bytes]]:
    """Without end: pictures of all formats, cut off somewhere or with some bytes changed."""
    rng, index = np.random.default_rng(seed), 0
    while True:
        for form, suffix in FORMATS.items():
            whole = encoded(photo(100 + index), form)
            yield f"cut{index}{suffix}", whole[: int(rng.integers(1, len(whole)))]
            data = np.frombuffer(whole, np.uint8).copy()
            places = rng.integers(
                0, min(len(data), int(rng.choice((64, 1_000, len(data))))), int(rng.integers(1, 40))
            )
            data[places] ^= rng.integers(1, 256, len(places), dtype=np.uint8)
            yield f"changed{index}{suffix}", data.tobytes()
            index += 1


def names() -> Iterator[bytes]:
    """Names that break careless programs."""
    yield from (b"new\nline.jpg", b"carriage\rreturn.jpg", b"tab\t.jpg", b"--method=noise.jpg", b"-rf.jpg", b" .jpg")
    yield from (b"\xff\xfe\x80.jpg", b"caf\xe9.png", "\u202egpj.png".encode(), "\U0001f9d1.jpg".encode())
    yield from (b"a" * 251 + b".jpg", b"back\\slash.jpg", b'quo"te,comma;.jpg', b"$(reboot).jpg", b"%s%n.jpg")
    yield from (b"UPPER.JPG", b"[bold]markup[/].png", b"\x1b[31mred.png", b"..png", b"\xf0\x28\x8c\x28/x.jpg")


def special(root: bytes) -> None:
    """What is not a regular file, or lies where a program gets lost."""
    place = lambda name: os.path.join(root, name)  # noqa: E731, PTH118 - bytes
    os.mkfifo(place(b"pipe.jpg"))
    os.mkdir(place(b"folder.png"))  # noqa: PTH102
    os.symlink(b"/dev/zero", place(b"zero.jpg"))  # noqa: PTH211
    os.symlink(b"nowhere", place(b"broken.jpg"))  # noqa: PTH211
    os.symlink(b"itself.jpg", place(b"itself.jpg"))  # noqa: PTH211
    os.symlink(b"..", place(b"loop"))  # noqa: PTH211
    os.symlink(b".", place(b"loop.png"))  # noqa: PTH211
    os.symlink(b"cmyk.jpg", place(b"link.jpg"))  # noqa: PTH211
    for name, mode in ((b"secret.jpg", 0), (b"sparse.bmp", 0o644)):
        with open(place(name), "wb") as file:  # noqa: PTH123
            file.write(encoded(photo(9), "JPEG"))
            if name == b"sparse.bmp":
                file.truncate(2**30)
        os.chmod(place(name), mode)  # noqa: PTH101
    deep = os.path.join(root, *[b"deep"] * 200)  # noqa: PTH118
    os.makedirs(deep)  # noqa: PTH103
    with open(os.path.join(deep, b"low.jpg"), "wb") as file:  # noqa: PTH118, PTH123
        file.write(encoded(photo(10), "JPEG"))


def build(root: Path, count: int = COUNT, *, seed: int = SEED, huge: int = 4_000) -> None:
    """`count` hostile files; one of them a whole picture of `huge` pixels a side."""
    root.mkdir(parents=True)
    for folder in (bombs, odd, not_pictures):
        (root / folder.__name__).mkdir()
        for name, data in folder():
            (root / folder.__name__ / name).write_bytes(data)
    (root / "huge.png").write_bytes(encoded(Image.new("RGB", (huge, huge), "teal"), "PNG"))
    for index, name in enumerate(names()):
        file = os.path.join(os.fsencode(root), b"names", name)  # noqa: PTH118
        os.makedirs(os.path.dirname(file), exist_ok=True)  # noqa: PTH103, PTH120
        with open(file, "wb") as out:  # noqa: PTH123
            out.write(encoded(photo(200 + index), "JPEG"))
    special(os.fsencode(root))
    (root / "damaged").mkdir()
    missing = count - len(listed(root))
    for (name, data), _ in zip(damaged(seed), range(missing), strict=False):
        (root / "damaged" / name).write_bytes(data)


def listed(root: Path) -> list[str]:
    """All that is named like a picture and is no folder, found without veilkit."""
    return [
        os.path.relpath(os.path.join(folder, name), root)  # noqa: PTH118
        for folder, _, files in os.walk(root)
        for name in files
        if os.path.splitext(name)[1].lower() in IMAGE_SUFFIXES  # noqa: PTH122
    ]


def measure(source: Path, work: Path, method: str, *, workers: int = 2) -> Report:
    """Protect `source` from the command line and account for every file."""
    release, key = work / method, work / f"{method}.private" / "key"
    words = ("protect", source, release, "--method", method, "--labels", "none", "--workers", str(workers))
    ended = run(*words, watch_memory=True)
    lists = list(key.parent.glob("*.refused.csv"))
    refused: dict[str, str] = {}
    for file in lists:
        with file.open(newline="", encoding="utf-8", errors="surrogateescape") as lines:
            refused |= {row["source"]: row["reason"] for row in csv.DictReader(lines) if row["reason"]}
    pseudonym = read_key(key).pseudonym
    paths = listed(source)
    protected = [path for path in paths if any(is_whole(release / f"{pseudonym(path)}{end}") for end in SUFFIXES)]
    return Report(
        method,
        len(protected),
        dict(Counter(refused[path].partition(":")[0] for path in paths if path in refused)),
        tuple(path for path in paths if (path in refused) == (path in set(protected))),
        ended.code not in (0, 3) or "Traceback" in ended.output,
        ended.megabytes,
        ended.output,
    )


SUFFIXES = (".png", ".tif")  # of a picture of several pages


def is_whole(file: Path) -> bool:
    """Whether a file is a picture that decodes to its last row."""
    try:
        with Image.open(file) as image:
            image.load()
    except OSError:
        return False
    return True


def summary(reports: Sequence[Report]) -> str:
    lines = []
    for report in reports:
        verdict = "CRASHED" if report.crashed else "ended well"
        lines.append(f"{report.method}: {verdict}, {report.protected} protected, peak {report.megabytes:.0f} MB")
        lines += [f"  {count:>4}  {reason}" for reason, count in report.refused.items()]
        lines += [f"  UNACCOUNTED {path!r}" for path in report.unaccounted[:10]]
        if report.crashed:
            lines += [f"  | {line}" for line in report.output.splitlines()[-10:]]
    return "\n".join(lines)


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        source = Path(folder, "source")
        build(source)
        scale = f"{len(listed(source))} files, {len(METHODS)} methods, 2 workers"
        reports = [measure(source, Path(folder, "work"), method) for method in METHODS]
    print(summary(reports))
    about = {
        "data": "generated hostile files",
        "scale": scale,
        "seed": SEED,
        "command": "python benchmarks/hostile.py",
    }
    record(
        id="hostile-accounted",
        claim=f"{COUNT} hostile files: those neither protected nor refused with a reason",
        figure=sum(len(report.unaccounted) for report in reports),
        bar="== 0",
        unit="files",
        note="; ".join(f"{r.method}: {r.protected} protected, {sum(r.refused.values())} refused" for r in reports),
        **about,
    )
    record(
        id="hostile-crashes",
        claim=f"Runs over {COUNT} hostile files that crashed",
        figure=sum(report.crashed for report in reports),
        bar="== 0",
        unit="runs",
        **about,
    )
    record(
        id="hostile-memory",
        claim=f"Peak memory of all processes of a run over {COUNT} hostile files",
        figure=round(max(report.megabytes for report in reports)),
        bar="< 1000",
        unit="MB",
        note="proportional set size; among the files a whole picture of 16 million pixels",
        **about,
    )


if __name__ == "__main__":
    main()
