"""Reading and writing video (extra: video): frames and their times; nothing else of the file survives.

A clip is written in parts, so that a run that was killed goes on at the next part, and then joined without encoding
anything twice. Parts and clip are the same bytes for the same frames.
"""

from __future__ import annotations

import heapq
import importlib
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import Any, Literal, TypeAlias, get_args

import cv2
import numpy as np
from numpy.typing import NDArray

from veilkit.errors import ConfigError, MissingExtraError, RefusedImage

VIDEO_SUFFIX = ".mp4"
"""Of every protected video."""
Sound: TypeAlias = Literal["drop", "keep", "mute"]
Codec: TypeAlias = Literal["h264", "hevc"]
_DEMUXERS = "mov,matroska,avi,asf,mpeg,mpegts,mpegvideo,flv,ogg,mxf,mxf_opatom,dv,yuv4mpegpipe,h264,hevc"
_SAFE = {"protocol_whitelist": "file", "format_whitelist": _DEMUXERS}  # no playlist may name another file or host
_ENCODERS: dict[
    Codec, tuple[str, dict[str, str]]
] = {  # each in one thread, so that the same frames are the same bytes
    "h264": ("libx264", {"preset": "veryfast"}),
    "hevc": ("libx265", {"preset": "veryfast", "x265-params": "log-level=none:info=0:pools=none:frame-threads=1"}),
}
# x264 was seen to code what lies beyond a frame's edge, in its last block, from memory nobody had written to: the
# same frames then were not always the same bytes. It is given whole blocks, and told what of them is shown.
_BLOCK: dict[Codec, int] = {"h264": 16, "hevc": 2}
_COPIED = frozenset(("aac", "mp3", "ac3", "eac3", "alac", "opus"))  # sound that an MP4 holds as it is
_GLOBAL_HEADER, _BITEXACT = 1 << 22, 1 << 23  # of a codec's flags
_BT709 = 1  # colour primaries, transfer, matrix
_LIMITED = 1  # colour range


@dataclass(frozen=True, slots=True)
class VideoLimits:
    """file_bytes: the largest clip that is read. pixels: the largest frame. frames: the longest clip."""

    file_bytes: int = 64 * 2**30
    pixels: int = 16_000_000
    frames: int = 2_000_000


@dataclass(frozen=True, slots=True)
class VideoFormat:
    """quality: the codec's constant rate factor, 0 (best) to 51; sound: whether it is dropped, kept or silenced."""

    quality: int = 20
    sound: Sound = "drop"
    codec: Codec = "h264"

    def __post_init__(self) -> None:
        if not 0 <= self.quality <= 51:
            raise ConfigError(f"the quality of video must be from 0 (best) to 51, but is {self.quality}")
        if self.sound not in get_args(Sound):
            raise ConfigError(f"sound must be one of {', '.join(get_args(Sound))}, but is {self.sound}")
        if self.codec not in get_args(Codec):
            raise ConfigError(f"the codec must be one of {', '.join(get_args(Codec))}, but is {self.codec}")

    def __str__(self) -> str:
        """What tells two formats apart; nothing for the default."""
        return "" if self == VideoFormat() else f" {self.codec} {self.quality} sound {self.sound}"


@dataclass(frozen=True, slots=True, eq=False)
class Frame:
    """One picture of a clip. time: in units of the clip's time base. pixels: HWC uint8 RGB, upright.

    whole: whether it, and all that it was decoded from, could be read. What is not is black.
    """

    number: int
    time: int
    duration: int
    pixels: NDArray[np.uint8]
    whole: bool = True


@dataclass(slots=True)
class Clip:
    """What a file says of its pictures. width, height: upright. frames: as many as it claims to have, or 0.

    damaged: the seconds at which it could not be read.
    """

    file: Path
    width: int
    height: int
    time_base: Fraction
    rate: Fraction
    aspect: Fraction
    frames: int
    has_sound: bool
    damaged: list[float] = field(default_factory=list)


def check_reader() -> None:
    """Raise MissingExtraError where there is nothing to read videos with."""
    _av()


def open_clip(file: Path, limits: VideoLimits) -> Clip:
    """Look at a clip's head and first picture. Raises RefusedImage for what cannot be read, or is past the limits."""
    size = file.stat().st_size
    if size > limits.file_bytes:
        raise RefusedImage(f"file too large: {size} bytes, at most {limits.file_bytes} are read")
    with _opened(file) as container:
        if not container.streams.video:
            raise RefusedImage("a video without pictures")
        stream = container.streams.video[0]
        if stream.width * stream.height > limits.pixels:
            raise RefusedImage(f"frames too large: {stream.width}x{stream.height}, at most {limits.pixels} pixels")
        first, _ = next(_decoded(container, []), (None, False))
        if first is None:
            raise RefusedImage("a video of which no frame can be read")
        turned = first.rotation % 180 == 90
        width, height = (first.height, first.width) if turned else (first.width, first.height)
        rate = stream.average_rate or stream.guessed_rate or Fraction(25)
        aspect = Fraction(stream.sample_aspect_ratio or 1)
        return Clip(
            file, width, height, stream.time_base, rate, 1 / aspect if turned else aspect, stream.frames,
            bool(container.streams.audio),
        )  # fmt: skip


def read_frames(clip: Clip, limits: VideoLimits, *, start: int = 0) -> Iterator[Frame]:
    """The clip's frames in the order in which they are shown, from the one with number `start` on.

    What is damaged is noted in `clip.damaged`; from there to the next key frame all frames are black.
    """
    clip.damaged.clear()
    with _opened(clip.file) as container:
        step = max(1, round(1 / (clip.rate * clip.time_base)))
        time = -step
        for number, (frame, whole) in enumerate(_decoded(container, clip.damaged)):
            if number >= limits.frames:
                raise RefusedImage(f"a video of more than {limits.frames} frames")
            turned = frame.rotation % 180 == 90
            if ((frame.height, frame.width) if turned else (frame.width, frame.height)) != (clip.width, clip.height):
                raise RefusedImage("a video whose frames change their size: convert it first")
            time = max(time + 1, frame.pts) if frame.pts is not None else time + step
            if number < start:
                continue
            if whole:
                pixels = np.rot90(frame.to_ndarray(format="rgb24"), frame.rotation // 90 % 4)
            else:
                pixels = np.zeros((clip.height, clip.width, 3), np.uint8)
            yield Frame(number, time, frame.duration or step, pixels, whole)


def thumbnail(pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """A frame in 32 x 18 pixels of grey, by which shots are told apart."""
    grey = cv2.cvtColor(np.ascontiguousarray(pixels), cv2.COLOR_RGB2GRAY)
    return np.asarray(cv2.resize(grey, (32, 18), interpolation=cv2.INTER_AREA), np.uint8)


def write_part(file: Path, frames: Iterable[Frame], clip: Clip, look: VideoFormat) -> int:
    """Encode frames as one part of a clip; returns how many there were."""
    av, count = _av(), 0
    with av.open(str(file), "w", format="nut") as container:
        encoder, options = _ENCODERS[look.codec]
        stream = container.add_stream(encoder, rate=clip.rate)
        shown, coded = _sides(clip, 2), _sides(clip, _BLOCK[look.codec])
        stream.width, stream.height = coded
        if look.codec == "h264":
            options = {**options, "x264-params": f"crop-rect=0,0,{coded[0] - shown[0]},{coded[1] - shown[1]}"}
        context = stream.codec_context
        context.pix_fmt, context.time_base, stream.time_base = "yuv420p", clip.time_base, clip.time_base
        context.sample_aspect_ratio = clip.aspect
        context.thread_count, context.max_b_frames = 1, 0
        context.flags |= _GLOBAL_HEADER | _BITEXACT
        context.colorspace = context.color_primaries = context.color_trc = _BT709
        context.color_range = _LIMITED
        context.options = {"crf": str(look.quality), **options}
        for frame in frames:
            container.mux(stream.encode(_encodable(av, frame, clip, coded)))
            count += 1
        container.mux(stream.encode(None))
    return count


def join_parts(parts: Sequence[Path], out: Path, clip: Clip, look: VideoFormat) -> None:
    """Join parts to an MP4 file, with the clip's sound where it is kept. Nothing of them is encoded again."""
    av = _av()
    options = {"movflags": "+faststart", "fflags": "+bitexact"}
    with av.open(str(out), "w", format="mp4", options=options) as container:
        with av.open(str(parts[0])) as first:
            pictures = container.add_stream_from_template(first.streams.video[0])
            pictures.time_base = clip.time_base
        sources = [_joined(av, parts, pictures)]
        opened = None
        try:
            if clip.has_sound and look.sound != "drop":
                opened = av.open(str(clip.file), options=_SAFE)
                sources.append(_sound(av, opened, container, look.sound))
            for _, _, packet in heapq.merge(*sources, key=lambda timed: timed[:2]):
                container.mux(packet)
        finally:
            if opened is not None:
                opened.close()


def _sides(clip: Clip, multiple: int) -> tuple[int, int]:
    """Width and height, each the next multiple of a number."""
    return -(-clip.width // multiple) * multiple, -(-clip.height // multiple) * multiple


def _encodable(av: Any, frame: Frame, clip: Clip, coded: tuple[int, int]) -> Any:
    pixels = frame.pixels
    if coded != (clip.width, clip.height):
        beyond = (0, coded[1] - clip.height), (0, coded[0] - clip.width), (0, 0)
        pixels = np.pad(pixels, beyond, mode="edge")
    encodable = av.VideoFrame.from_ndarray(np.ascontiguousarray(pixels), format="rgb24")
    encodable = encodable.reformat(format="yuv420p", dst_colorspace=_BT709, dst_color_range=_LIMITED)
    encodable.pts, encodable.duration, encodable.time_base = frame.time, frame.duration, clip.time_base
    return encodable


def _joined(av: Any, parts: Sequence[Path], stream: Any) -> Iterator[tuple[float, int, Any]]:
    for part in parts:
        with av.open(str(part)) as container:
            for packet in container.demux(video=0):
                if packet.dts is not None:
                    packet.stream = stream
                    yield float(packet.dts * packet.time_base), 0, packet


def _sound(av: Any, source: Any, container: Any, sound: Sound) -> Iterator[tuple[float, int, Any]]:
    """Packets of the sound: as they are where an MP4 can hold them, else encoded as AAC; silent if asked for."""
    heard = source.streams.audio[0]
    if sound == "keep" and heard.codec_context.name in _COPIED:
        stream = container.add_stream_from_template(heard)
        return _timed(stream, (packet for packet in _packets(av, source, heard) if packet.dts is not None))
    stream = container.add_stream("aac", rate=heard.rate)
    stream.codec_context.layout = heard.layout
    stream.codec_context.flags |= _BITEXACT
    return _timed(stream, _encoded(av, source, heard, stream, silent=sound == "mute"))


def _packets(av: Any, source: Any, stream: Any) -> Iterator[Any]:
    """Packets up to the first that cannot be read."""
    with suppress(av.FFmpegError):
        yield from source.demux(stream)


def _encoded(av: Any, source: Any, heard: Any, stream: Any, *, silent: bool) -> Iterator[Any]:
    resampler = av.AudioResampler(format="fltp", layout=heard.layout, rate=heard.rate)
    for packet in _packets(av, source, heard):
        try:
            frames = packet.decode()
        except av.FFmpegError:
            continue
        for frame in frames:
            for each in resampler.resample(frame):
                if silent:
                    for plane in each.planes:
                        plane.update(bytes(plane.buffer_size))
                yield from stream.encode(each)
    yield from stream.encode(None)


def _timed(stream: Any, packets: Iterable[Any]) -> Iterator[tuple[float, int, Any]]:
    for packet in packets:
        packet.stream = stream
        yield float((packet.dts or 0) * packet.time_base), 1, packet


def _decoded(container: Any, damaged: list[float]) -> Iterator[tuple[Any, bool]]:
    """Frames of the first video stream, and whether each is whole; seconds of what is damaged go to `damaged`.

    In one thread: where a decoder in several notices damage is not the same every time.
    """
    av, stream = _av(), container.streams.video[0]
    stream.codec_context.thread_count = 1
    packets = container.demux(stream)
    whole = True
    while True:
        try:
            packet = next(packets)
        except StopIteration:
            return
        except av.FFmpegError:
            damaged.append(damaged[-1] if damaged else 0.0)
            return
        if packet.is_corrupt:
            whole = _note(damaged, packet.pts, packet.time_base)
        try:
            frames = packet.decode()
        except av.FFmpegError:
            whole = _note(damaged, packet.pts, packet.time_base)
            continue
        for frame in frames:
            if frame.is_corrupt:
                whole = _note(damaged, frame.pts, frame.time_base)
            elif frame.key_frame:
                whole = True
            yield frame, whole


def _note(damaged: list[float], time: int | None, base: Any) -> bool:
    """Note the seconds of some damage; what follows is not whole."""
    damaged.append(float((time or 0) * (base or 0)))
    return False


@contextmanager
def _opened(file: Path) -> Iterator[Any]:
    av = _av()
    try:
        with av.open(str(file), options=_SAFE) as container:
            yield container
    except av.FFmpegError:
        raise RefusedImage("damaged, or not a video in a format that is read") from None


def _av() -> Any:
    try:
        av = importlib.import_module("av")
    except ImportError:
        raise MissingExtraError("PyAV", "video") from None
    av.logging.set_level(None)  # what a decoder says of a damaged file may hold values of it
    return av
