"""What looks like a picture or a video and is not read: its owner is told, it is never passed over in silence."""

from __future__ import annotations

import os
import re
import stat
from pathlib import Path
from typing import Any

from veilkit.datasets.folder import is_image_name
from veilkit.errors import MissingExtraError
from veilkit.media.video import check_reader
from veilkit.media.writing import too_long
from veilkit.methods import Method

_HEAD = 4_096  # bytes in which a format says what it is
_PART = 2**20  # bytes of a PDF that are searched at once
_CONVERT = "convert it to PNG or JPEG first"
_STEPS = {
    "a raw picture of a camera": "develop it to PNG or JPEG first",
    "a drawing of shapes": "draw it as PNG first",
    "a PDF with pictures": "take its pictures out as PNG or JPEG first",
}
_NAMES = {
    "a JPEG 2000, JPEG XL or JPEG XR picture": "jp2 j2k jpf jpx jpm jpc j2c jxl jxr wdp hdp",
    "an animation": "mng flif",
    "a raw picture of a camera": (
        "3fr ari arw bay cap cr2 cr3 crw dcr dcs dng erf fff gpr iiq k25 kdc mef mos mrw nef nrw orf pef ptx pxn raf "
        "raw rw2 rwl sr2 srf srw x3f"
    ),
    "a picture of a drawing program": "psd psb xcf kra clip procreate afphoto ora",
    "a drawing of shapes": "svg svgz eps ai wmf emf cdr",
    "a picture": (
        "ico icns cur tga dds exr hdr pcx ppm pgm pbm pnm pam pfm sgi qoi bpg xbm xpm ras djvu djv fits dib mpo"
    ),
    "a video": (
        "mp4 m4v mov qt avi mkv webm wmv asf mpg mpeg mpe m1v m2v m2ts mts 3gp 3g2 flv f4v ogv ogm vob mxf insv insp "
        "lrv rm rmvb dv divx y4m"
    ),
}
_BY_SUFFIX = {"." + suffix: kind for kind, suffixes in _NAMES.items() for suffix in suffixes.split()}
_SOUND = (b"M4A ", b"M4B ", b"M4P ")  # brands of files that only sound
_STILL = (b"heic", b"heix", b"heim", b"heis", b"hevc", b"hevx", b"mif1", b"msf1", b"avif", b"avis", b"miaf")
_MAGIC: tuple[tuple[str, str], ...] = (
    ("a JPEG picture whose name does not say so", r"\xff\xd8\xff"),
    ("a PNG picture whose name does not say so", r"\x89PNG\r\n\x1a\n"),
    ("a WebP picture whose name does not say so", r"RIFF.{4}WEBP"),
    ("a BMP picture whose name does not say so", r"BM.{4}\0\0\0\0.{4}[\x0c\x28\x34\x38\x40\x6c\x7c]\0\0\0"),
    ("a TIFF or raw picture whose name does not say so", r"II[*+]\0|MM\0[*+]|IIU\0|IIR[OS]"),
    ("a GIF whose name does not say so", r"GIF8[79]a"),
    ("an animation", r"\x8aMNG"),
    ("a raw picture of a camera", r".{4}ftypcrx |FUJIFILMCCD-RAW|\0MRM|FOVb"),
    ("a JPEG 2000, JPEG XL or JPEG XR picture", r"\0\0\0\x0c(jP  |JXL )|\xff\x4f\xff\x51|\xff\x0a|II\xbc"),
    ("a picture of a drawing program", r"8BPS|gimp xcf"),
    ("a drawing of shapes", r"\s*(<\?xml[^>]*>\s*)?(<!--.*?-->\s*|<!DOCTYPE svg.*?>\s*)*<svg|%!PS-Adobe-\S+ EPSF"),
    ("a DICOM picture whose name does not say so (.dcm)", r".{128}DICM"),
    ("a picture", r"qoif|BPG\xfb|v/1\x01|#\?RADIANCE|DDS |icns|P[1-7]\s+(#[^\n]*\n)*\d+\s+\d+\s|AT&TFORM"),
    ("a video", r"RIFF.{4}AVI |\x1aE\xdf\xa3|\0\0\x01[\xb3\xba]|FLV\x01|0&\xb2u\x8ef\xcf\x11|.{4}(moov|mdat|wide)"),
    ("a video", r"OggS.{24,60}theora|\.RMF|YUV4MPEG2|\x06\x0e\x2b\x34\x02\x05\x01\x01\x0d\x01\x02|G.{187}G.{187}G"),
)
_PATTERNS = [(kind, re.compile(pattern.encode("latin-1"), re.DOTALL)) for kind, pattern in _MAGIC]
_PDF_PICTURE = re.compile(rb"/Subtype\s*/Image\b")


def foreign_kind(name: str, head: bytes) -> str | None:
    """What a file is that looks like a picture or a video, by its name or its first bytes; None for anything else."""
    by_name = _BY_SUFFIX.get(os.path.splitext(name)[1].lower())  # noqa: PTH122 - paths may hold bytes that are not text
    return by_name or _by_brand(head) or next((kind for kind, pattern in _PATTERNS if pattern.match(head)), None)


def is_video(file: Path) -> bool:
    """Whether a file is taken for a video, by its suffix or its first bytes."""
    return not is_image_name(str(file)) and foreign_kind(str(file), _head(file)) == "a video"


def why_refused(root: Path, path: str, method: Method[Any]) -> str | None:
    """Why something below `root` is refused before it is read; None for what can be, and for other files."""
    file = root / path
    if too_long(file):
        return "its path is too long for the system: move it up, or shorten the names of the folders above it"
    if os.path.isdir(file):  # noqa: PTH112 - Path.is_dir raises on a link to itself
        return "a link to a folder, which is not followed: put the folder itself there, or protect it by itself"
    if is_image_name(path):
        return None
    kind = foreign_kind(path, _head(file)) or ("a PDF with pictures" if _pdf_with_pictures(file) else None)
    if kind is None:
        return None
    if kind == "a video":
        return why_no_video(method)
    step = "give it the suffix of its format" if "does not say so" in kind else _STEPS.get(kind, _CONVERT)
    return f"{kind}, which is not read: {step}"


def why_no_video(method: Method[Any]) -> str | None:
    """Why the method's run refuses videos; None where it takes them."""
    if not method.videos:
        return f"a video, which {method.name} does not protect: see `veilkit methods list` for those that do"
    try:
        check_reader()
    except MissingExtraError as error:
        return f"a video, which is not read: {error}"
    return None


def _by_brand(head: bytes) -> str | None:
    """What a file of the ISO family is: HEIC and AVIF pictures, raw pictures and most videos share it."""
    if head[4:8] != b"ftyp" or head[8:12] in (*_SOUND, b"crx "):
        return None
    return "a HEIC or AVIF picture whose name does not say so" if head[8:12] in _STILL else "a video"


def _open(file: Path) -> int | None:
    """A regular file opened to be read, if it is one that may be; a pipe must not block the run."""
    try:
        descriptor = os.open(file, os.O_RDONLY | os.O_NONBLOCK | os.O_CLOEXEC)
    except OSError:
        return None
    if stat.S_ISREG(os.fstat(descriptor).st_mode):
        return descriptor
    os.close(descriptor)
    return None


def _head(file: Path) -> bytes:
    descriptor = _open(file)
    if descriptor is None:
        return b""
    try:
        return os.read(descriptor, _HEAD)
    except OSError:
        return b""
    finally:
        os.close(descriptor)


def _pdf_with_pictures(file: Path) -> bool:
    """Whether a PDF holds a picture, as scans do: its dictionary is plain text, also where all else is packed."""
    descriptor = _open(file)
    if descriptor is None:
        return False
    with os.fdopen(descriptor, "rb") as opened:
        try:
            part = opened.read(_PART)
            if b"%PDF-" not in part[:1_024]:
                return False
            while part:
                if _PDF_PICTURE.search(part):
                    return True
                more = opened.read(_PART)
                part = part[-64:] + more if more else b""
        except OSError:
            return True  # it cannot be ruled out
    return False
