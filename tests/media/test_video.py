import hashlib
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from veilkit.errors import ConfigError, RefusedImage
from veilkit.media.video import (
    Clip,
    Frame,
    VideoFormat,
    VideoLimits,
    join_parts,
    open_clip,
    read_frames,
    write_part,
)

av = pytest.importorskip("av", reason="PyAV is not installed (extra: video)")
LIMITS = VideoLimits()
HEIGHT, WIDTH = 48, 64


def picture(number: int, height: int = HEIGHT, width: int = WIDTH) -> np.ndarray:
    pixels = np.full((height, width, 3), (number * 6 % 256, 100, 200), np.uint8)
    pixels[10:20, number % 40 : number % 40 + 10] = 255
    return pixels


def write_clip(file: Path, *, frames: int = 40, sound: bool = True, even: bool = False, **options: Any) -> list[int]:
    """A clip whose frames do not come at one rate; returns their times in milliseconds."""
    height, width = options.get("height", HEIGHT), options.get("width", WIDTH)
    times = [0]
    with av.open(str(file), "w") as container:
        container.metadata["title"] = "Mrs Canary"
        stream = container.add_stream(options.get("codec", "libx264"), rate=25)
        stream.width, stream.height, stream.pix_fmt = width, height, options.get("pix_fmt", "yuv420p")
        stream.codec_context.time_base = Fraction(1, 1000)
        heard = container.add_stream("aac", rate=16000) if sound else None
        if heard is not None:
            heard.layout = "mono"
        for number in range(frames):
            frame = av.VideoFrame.from_ndarray(picture(number, height, width), format="rgb24")
            frame.pts, frame.time_base = times[-1], Fraction(1, 1000)
            container.mux(stream.encode(frame))
            times.append(times[-1] + (40 if even or number % 3 else 57))
        container.mux(stream.encode(None))
        if heard is not None:
            for number in range(24):
                wave = (np.sin(np.arange(1024)[None] * 0.1) * 8000).astype(np.int16)
                sounding = av.AudioFrame.from_ndarray(wave, format="s16", layout="mono")
                sounding.rate, sounding.pts, sounding.time_base = 16000, number * 1024, Fraction(1, 16000)
                container.mux(heard.encode(sounding))
            container.mux(heard.encode(None))
    return times[:-1]


def seconds(clip: Clip, frames: list[Frame]) -> list[float]:
    return [float(frame.time * clip.time_base) for frame in frames]


@pytest.fixture
def source(tmp_path: Path) -> Path:
    write_clip(tmp_path / "in.mp4")
    return tmp_path / "in.mp4"


def rewritten(source: Path, out: Path, look: VideoFormat, part: int = 15) -> None:
    clip = open_clip(source, LIMITS)
    frames, parts = list(read_frames(clip, LIMITS)), []
    for start in range(0, len(frames), part):
        parts.append(out.with_name(f"{out.stem}-{start}.nut"))
        assert write_part(parts[-1], frames[start : start + part], clip, look) == len(frames[start : start + part])
    join_parts(parts, out, clip, look)


def test_frames_keep_their_times_and_colours(source: Path, tmp_path: Path) -> None:
    rewritten(source, tmp_path / "out.mp4", VideoFormat(quality=4))
    before, after = open_clip(source, LIMITS), open_clip(tmp_path / "out.mp4", LIMITS)
    old, new = list(read_frames(before, LIMITS)), list(read_frames(after, LIMITS))
    assert seconds(before, old) == seconds(after, new)
    for one, other in zip(old, new, strict=True):
        assert np.abs(one.pixels.astype(int) - other.pixels).mean() < 4


def test_same_frames_same_bytes(source: Path, tmp_path: Path) -> None:
    for name in ("one.mp4", "two.mp4"):
        rewritten(source, tmp_path / name, VideoFormat(sound="keep"))
    one, two = (hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("one.mp4", "two.mp4"))
    assert one == two


@pytest.mark.parametrize(("sound", "streams", "loud"), [("drop", 0, False), ("mute", 1, False), ("keep", 1, True)])
def test_sound_is_dropped_silenced_or_kept(
    source: Path, tmp_path: Path, sound: Any, streams: int, loud: bool
) -> None:
    rewritten(source, tmp_path / "out.mp4", VideoFormat(sound=sound))
    with av.open(str(tmp_path / "out.mp4")) as container:
        assert len(container.streams.audio) == streams
        heard = [frame.to_ndarray() for frame in container.decode(audio=0)] if streams else []
    assert bool(heard and max(np.abs(part).max() for part in heard) > 0.01) == loud


def test_nothing_is_left_of_the_metadata(source: Path, tmp_path: Path) -> None:
    assert b"Mrs Canary" in source.read_bytes()
    rewritten(source, tmp_path / "out.mp4", VideoFormat(sound="keep"))
    assert b"Canary" not in (tmp_path / "out.mp4").read_bytes()


def test_odd_sides_get_one_line_more(tmp_path: Path) -> None:
    write_clip(tmp_path / "in.mkv", frames=4, sound=False, codec="ffv1", pix_fmt="bgr0", height=47, width=63)
    rewritten(tmp_path / "in.mkv", tmp_path / "out.mp4", VideoFormat())
    clip = open_clip(tmp_path / "out.mp4", LIMITS)
    assert (clip.height, clip.width) == (48, 64)


@pytest.mark.parametrize("content", [b"", b"no video at all", b"#EXTM3U\n#EXTINF:1,\nfile:///etc/passwd\n"])
def test_what_is_no_video_is_refused(tmp_path: Path, content: bytes) -> None:
    (tmp_path / "in.mp4").write_bytes(content)
    with pytest.raises(RefusedImage):
        open_clip(tmp_path / "in.mp4", LIMITS)


def test_damage_in_the_midst_is_told_with_its_time_and_the_rest_is_read(source: Path) -> None:
    data = bytearray(source.read_bytes())
    middle = data.index(b"mdat") + (len(data) - data.index(b"mdat")) // 3
    data[middle : middle + 400] = bytes(400)
    source.write_bytes(data)
    clip = open_clip(source, LIMITS)
    frames = list(read_frames(clip, LIMITS))
    assert len(frames) > 5
    assert clip.damaged
    assert all(0 <= second <= 2 for second in clip.damaged)


def test_limits_are_kept(source: Path) -> None:
    for limits in (VideoLimits(file_bytes=10), VideoLimits(pixels=100)):
        with pytest.raises(RefusedImage, match="too large"):
            open_clip(source, limits)
    few = VideoLimits(frames=10)
    with pytest.raises(RefusedImage, match="more than 10 frames"):
        list(read_frames(open_clip(source, few), few))


def test_settings_are_checked() -> None:
    with pytest.raises(ConfigError, match="quality"):
        VideoFormat(quality=52)
    with pytest.raises(ConfigError, match="sound"):
        VideoFormat(sound="loud")  # type: ignore[arg-type]
