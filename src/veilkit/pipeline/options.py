"""What `protect` and `recover` may be asked for, checked before anything is read, computed or made on disk."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from veilkit.configs import parse_settings
from veilkit.errors import DataError, KeyFileError, UsageError
from veilkit.options import Options, check_model_file, option

if TYPE_CHECKING:
    from veilkit.media.reading import Limits
    from veilkit.media.shape import Shape
    from veilkit.media.video import VideoFormat, VideoLimits
    from veilkit.media.writing import Files
    from veilkit.methods.base import Method
    from veilkit.pipeline.names import Names

_MEGABYTE = 2**20
LABELS = "auto, none, folder, market, pattern:REGEX or csv:FILE"


def source_of(word: str) -> str | tuple[str, ...]:
    """The source that a word of the command line names: `-` stands for the paths on standard input."""
    if word != "-":
        return word
    data = sys.stdin.buffer.read()
    lines = data.split(b"\0" if b"\0" in data else b"\n")  # find -print0, for names with newlines
    return tuple(os.fsdecode(line) for line in lines if line)


@dataclass(frozen=True)
class ProtectOptions(Options):
    """One run of `protect`.

    method: a name of the table of methods, with `preset`, `settings` and `model`, or a configured method of one's
    own.
    """

    source: str | Path | Sequence[str | Path] = option(
        MISSING, "A folder of pictures with its subfolders, one file, a quoted pattern, or - for paths from "
        "standard input, one per line. Never changed.", positional=True, metavar="SRC", read=source_of,
    )  # fmt: skip
    destination: str | Path = option(
        MISSING, "Folder for the release: new, empty, or to resume.", kind=Path, positional=True, metavar="DST"
    )
    method: str | Method[Any] = option(MISSING, "How to protect: see `veilkit methods list`.")
    model: str | Path | None = option(None, "The file that `veilkit fit` wrote, for methods that learn.", kind=Path)
    preset: str | None = option(None, "A named configuration: see `veilkit methods show`.")
    settings: Mapping[str, object] | None = option(
        None, "One setting of the method; may be repeated.", flag="--set", metavar="KEY=VALUE", many=True,
        read=parse_settings,
    )  # fmt: skip
    on_doubt: Literal["hide", "pixelate-picture", "refuse"] | None = option(
        None, "For methods on faces and --parts: what to do where something may be a face or a person. "
        "hide hides that part.",
        choices=("hide", "pixelate-picture", "refuse"), also=(None,), shown="hide",
    )  # fmt: skip
    parts: Literal["people"] | None = option(
        None, "Protect only people in whole pictures, given (--boxes) or found, by a method for crops of "
        "people; " "the rest stays as it is.", choices=("people",), also=(None,), shown="the whole picture",
    )  # fmt: skip
    key: str | Path | None = option(None, "Key file, made if absent.", kind=Path, shown="DST.private/key")
    seed: int | None = option(None, "A public seed instead of a key, for research only.", kind=int)
    workers: int = option(
        0, "Worker processes; 0 works in this one.", kind=int, least=-1, unasked=-1, shown="one per core"
    )
    names: Literal["pseudonyms", "folders", "keep", "kept"] = option(
        "pseudonyms",
        "Names in the release: keyed pseudonyms, pseudonyms in folders with pseudonyms, or the pictures' own.",
        choices=("pseudonyms", "folders", "keep"),
        also=("kept",),
    )
    labels: str = option("auto", f"Who is in a picture: {LABELS}.")
    image_format: Literal["auto", "png", "jpeg"] = option(
        "auto", "Format of the release. auto is PNG, but methods on faces make JPEG files of JPEG files.",
        flag="--format", choices=("auto", "png", "jpeg"),
    )  # fmt: skip
    quality: int = option(95, "Quality of JPEG files, up to 100.", kind=int, least=1)
    sound: Literal["drop", "keep", "mute"] = option(
        "drop", "What becomes of the sound of videos. Voices tell who somebody is.", choices=("drop", "keep", "mute")
    )
    video_codec: Literal["h264", "hevc"] = option("h264", "Codec of videos.", choices=("h264", "hevc"))
    video_quality: int = option(20, "Quality of videos, from 0 (best) to 51.", kind=int, least=0)
    max_frames: int = option(2_000_000, "Longer videos are refused.", kind=int, least=1)
    max_pixels: int = option(50_000_000, "Larger pictures are refused.", kind=int, least=1)
    max_side: int = option(32_767, "Pictures with a longer side are refused.", kind=int, least=1)
    max_aspect: int = option(
        100, "Pictures are refused if one side is more than this many times the other.", kind=int, least=1
    )
    max_seconds: int = option(
        1_800,
        "Most seconds of processor time for a picture, or 100 frames of a video; beyond that it is refused.",
        kind=int,
        least=1,
    )
    max_memory: int | None = option(
        None,
        "Most memory of a worker process, in megabytes.",
        kind=int,
        least=1_024,
        shown="80 % of the machine's memory",
    )
    size: str | None = option(
        None, "One size in pixels for all pictures, with black bars where needed.", metavar="WxH"
    )
    stretch: bool = option(False, "With --size: no bars; proportions are lost.", kind=bool)
    pad_files: bool = option(
        False, "Write PNG without compression, so that a file's size tells only its number of pixels.", kind=bool
    )
    seal_to: Sequence[str | Path] = option(
        (), "Also seal originals to an age recipient (age1..., or a file of them), in DST.sealed; may be repeated.",
        metavar="RECIPIENT", many=True,
    )  # fmt: skip

    boxes: str | Path | None = option(
        None, "Boxes drawn by hand, to hide, protect or spare: CSV, COCO or a folder of YOLO files. They are "
        "kept for later runs; only pictures with new boxes are protected again.", kind=Path, metavar="FILE",
    )  # fmt: skip
    spare: Sequence[str | Path] = option(
        (), "A picture with one face, whose person's faces are left as they are; may be repeated (extra faces).",
        kind=Path, metavar="PICTURE", many=True,
    )  # fmt: skip
    only_person: Sequence[str | Path] = option(
        (), "A picture with one face: protect only faces that may be this person's; may be repeated.",
        kind=Path, metavar="PICTURE", many=True,
    )  # fmt: skip

    def check(self) -> ProtectOptions:
        """Raise for a folder, name or value that is wrong; the method's own settings are checked when it is made."""
        from veilkit.datasets.labels import labeller
        from veilkit.pipeline.sources import Source

        Source.of(self.source)
        self._check_method()
        from veilkit.pipeline.places import find_places  # which takes torch: a wrong name must not wait for it

        places = find_places(self.source, Path(self.destination), self.key, self.seed, sealing=bool(self.seal_to))
        super().check()
        labeller(self.labels, places.source)
        self._check_faces()
        if self.quality > 100:
            raise UsageError(f"quality must be at most 100, but got {self.quality}")
        if self.image_format == "jpeg" and self.pad_files:
            raise UsageError("only PNG files can be made alike in size: leave that out, or choose png")
        if self.size is not None or self.stretch:
            _ = self.shape
        _ = self.video
        if self.seal_to:
            from veilkit.pipeline.sealing.age import read_recipients

            if isinstance(self.seal_to, str | Path):
                raise UsageError("seal_to is a list of recipients or files: give [recipient], not one alone")
            read_recipients(self.seal_to)
        return self

    def _check_faces(self) -> None:
        """Raise for parts, boxes or people that do not go with the method."""
        if not (self.boxes or self.spare or self.only_person or self.parts):
            return
        from veilkit.methods import METHODS, ChangesFaces, Mixes, Synthesiser

        def takes(method: type[Method[Any]]) -> bool:
            return issubclass(method, ChangesFaces) and not issubclass(method, Mixes)

        method = METHODS[self.method] if isinstance(self.method, str) else type(self.method)
        if self.parts is not None and issubclass(method, ChangesFaces | Mixes | Synthesiser):
            raise UsageError(
                f"parts are for methods that protect a crop of one person by itself, not for {method.name}"
            )
        if self.parts is not None and self.size is not None:
            raise UsageError("parts belong to pictures in their own size: leave size out")
        if not takes(method) and (self.parts is None or self.spare or self.only_person):
            named = ", ".join(name for name, each in METHODS.items() if takes(each))
            raise UsageError(
                f"boxes, spare and only_person are for methods that change the faces of one picture ({named}), not "
                f"for {method.name}; boxes also for people (parts)"
            )
        if self.boxes is not None:
            from veilkit.media.boxes import read_boxes

            if self.size is not None:
                raise UsageError("boxes belong to pictures in their own size: leave size out")
            read_boxes(Path(self.boxes))
        for each in (*self.spare, *self.only_person):
            if not Path(each).is_file():
                raise UsageError(f"there is no example picture {each}: expected a picture with one face")

    def _check_method(self) -> None:
        from veilkit.methods import METHODS

        if not isinstance(self.method, str):
            if self.preset is not None or self.settings or self.model is not None:
                raise UsageError(
                    "preset, settings and model go with a method's name; configure your own method before"
                )
        elif self.method not in METHODS:
            METHODS[self.method]  # raises, and names the nearest
        check_model_file(self.model)

    @property
    def processes(self) -> int:
        """Worker processes; 0 for none."""
        return self.workers if self.workers >= 0 else len(os.sched_getaffinity(0))

    @property
    def kept_names(self) -> bool:
        """Whether pictures keep their own names."""
        return self.names in ("keep", "kept")

    @property
    def form_of_names(self) -> Names:
        """What names in the release are."""
        return "kept" if self.kept_names else "folders" if self.names == "folders" else "pseudonyms"

    def files(self, method: Method[Any]) -> Files:
        """How the method's pictures are written."""
        from veilkit.media.writing import Files
        from veilkit.methods import ChangesFaces

        alike = self.image_format == "auto" and (self.pad_files or not isinstance(method, ChangesFaces))
        return Files("png" if alike else self.image_format, self.quality)

    @property
    def limits(self) -> Limits:
        """What is read, and what may be spent on it."""
        from veilkit.media.reading import Limits

        memory = None if self.max_memory is None else self.max_memory * _MEGABYTE
        return Limits(
            pixels=self.max_pixels,
            side=self.max_side,
            aspect=self.max_aspect,
            seconds=self.max_seconds,
            memory=memory,
        )

    @property
    def video(self) -> VideoFormat:
        """How videos are written."""
        from veilkit.media.video import VideoFormat

        return VideoFormat(self.video_quality, self.sound, self.video_codec)

    @property
    def video_limits(self) -> VideoLimits:
        """What is read of videos."""
        from veilkit.media.video import VideoLimits

        return VideoLimits(pixels=self.max_pixels, frames=self.max_frames)

    @property
    def shape(self) -> Shape:
        """The size that pictures, and the files they are in, have in common."""
        from veilkit.media.shape import Shape

        return Shape.parse(self.size, stretch=self.stretch, even_files=self.pad_files)


@dataclass(frozen=True)
class RecoverOptions(Options):
    """One run of `recover`: by an identity, for sealed originals, or by the decoder that a method has learned."""

    protected: str | Path = option(MISSING, "The release, as `veilkit protect` wrote it.", kind=Path, positional=True)
    destination: str | Path = option(
        MISSING, "Folder for the originals; nothing is overwritten.", kind=Path, positional=True, metavar="DST"
    )
    identity: str | Path | None = option(
        None, "Secret key of a recipient: see `veilkit keygen`.", kind=Path, metavar="KEYFILE"
    )
    model: str | Path | None = option(
        None,
        "In place of a key: the decoder that `veilkit fit` wrote beside the model.",
        kind=Path,
        metavar="DECODER",
    )
    sealed: str | Path | None = option(None, "Folder of the sealed originals.", kind=Path, shown="PROTECTED.sealed")
    only: Sequence[str] = option(
        (), "Restore only these: a name in the release or, if its private folder is there, an original's path "
        "or a pattern such as 'patient 003/*'; may be repeated.",
        metavar="NAME", many=True,
    )  # fmt: skip
    log: str | Path | None = option(
        None, "Where every access is noted, as JSON lines.", kind=Path, shown="DST.access.jsonl"
    )
    key: str | Path | None = option(
        None, "The release's key, to refuse sealed files that were not made under it.", kind=Path
    )

    def check(self) -> RecoverOptions:
        """Raise for what is missing, or does not go together."""
        if (self.identity is None) == (self.model is None):
            raise UsageError(
                "expected either an identity (--identity), for sealed originals, or a decoder (--model), for a "
                f"method that learned one, but got {'neither' if self.identity is None else 'both'}"
            )
        if self.model is not None and (self.sealed is not None or self.key is not None):
            raise UsageError("sealed and key belong to sealed originals: leave them out with a model")
        if not Path(self.protected).is_dir():
            raise DataError(f"expected a release, but {self.protected} is not a folder")
        check_model_file(self.model)
        if self.identity is not None and not Path(self.identity).exists():
            raise KeyFileError(f"there is no file {self.identity}: expected one with age keys, one a line")
        return self
