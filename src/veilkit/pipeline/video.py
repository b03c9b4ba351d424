"""A video of the source to a protected one in the release, in blocks that a run which was killed goes on from."""

from __future__ import annotations

import errno
import fcntl
import hashlib
import json
import os
import shutil
import stat
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilkit.errors import DestinationError, RefusedImage, VeilkitError
from veilkit.media.reading import Limits, check_size, read_bytes, sha256
from veilkit.media.video import VIDEO_SUFFIX, join_parts, open_clip
from veilkit.media.writing import undate
from veilkit.methods import InjectsIdentity, Method
from veilkit.pipeline.ledger import Entry
from veilkit.pipeline.video_blocks import VideoBlocks
from veilkit.progress import Say
from veilkit.rng import Randomness
from veilkit.types import PictureReport

if TYPE_CHECKING:
    from veilkit.pipeline.job import Job

_VERSION = 1  # of what a video becomes under the same settings
_MOST_SEALED = 2**30  # bytes, as an original is sealed in memory


class VideoWorker:
    """Protects videos of one job. say: is told now and then how far a video has come."""

    def __init__(self, job: Job, rng: Randomness, say: Say) -> None:
        self.job, self.rng, self.say = job, rng, say

    @cached_property
    def _method(self) -> Method[Any]:
        """The method; a track that had another identity in each frame would let anyone average them."""
        method = self.job.method
        return method.with_one_identity() if isinstance(method, InjectsIdentity) else method

    def protect(self, entry: Entry, item_name: Callable[[str, str], str]) -> Entry:
        """Protect one video, unless the release holds it. Only a destination that cannot be written raises."""
        job = self.job
        source, target = job.source / entry.source, job.destination / entry.output
        if job.shape.even_files:
            raise RefusedImage("a video's size tells what it shows: leave --pad-files out, or the video")
        digest = _hash(source, job.video_limits.file_bytes)
        item = item_name(entry.source, digest)
        recipe = sha256(
            f"video {_VERSION} {job.method.fingerprint()}{job.video}{job.shape}\0\0{item}".encode(
                "utf-8", "surrogateescape"
            )
        )
        entry = replace(entry, source_sha256=digest, reason=None)
        if entry.state != "done" or entry.recipe != recipe or not _is(target, entry.output_sha256):
            assert job.parts is not None
            folder, draft = job.parts / recipe, job.scratch / f"{os.getpid()}{VIDEO_SUFFIX}"
            try:
                report = self._made(source, item, folder, draft)
                if _hash(source, job.video_limits.file_bytes) != digest:
                    raise RefusedImage("it changed while it was being protected: run the same command again")
                target.parent.mkdir(parents=True, exist_ok=True)
                protected = hash_file(draft)
                undate(draft)
                draft.replace(target)
            finally:
                draft.unlink(missing_ok=True)
            shutil.rmtree(folder, ignore_errors=True)
            entry = replace(
                entry, state="done", recipe=recipe, output_sha256=protected,
                report=json.dumps(report.as_json(), sort_keys=True), sealed_sha256=None,
            )  # fmt: skip
        if job.sealed is not None and not job.sealed.holds(entry):
            entry = job.sealed.add(entry, _to_be_sealed(source, digest), job.randomness)
        return entry

    def _made(self, source: Path, item: str, folder: Path, out: Path) -> PictureReport:
        """Write the protected video to `out`. folder: private, for what a run that is killed has done."""
        job = self.job
        clip = open_clip(source, job.video_limits)
        check_size(clip.width, clip.height, job.limits)
        try:
            with _held(folder):
                work = VideoBlocks(job, self._method, self.rng, item, folder, clip, self.say)
                report = work.make()
                join_parts(work.parts(), out, work.shown, job.video)
            return report
        except (VeilkitError, BrokenPipeError):  # the run that this worker belonged to is gone
            raise
        except OSError as error:
            if error.errno in (errno.ENOSPC, errno.EDQUOT):
                raise DestinationError(
                    "the disk is full: free some space and run the same command to go on"
                ) from None
            raise RefusedImage(f"it could not be written ({type(error).__name__})") from None
        except Exception as error:  # one video that a method cannot take must not end the run
            size = f"{clip.width}x{clip.height} pixels"
            raise RefusedImage(f"{job.method.name} failed on it ({type(error).__name__}, {size})") from None


@contextmanager
def _held(folder: Path) -> Iterator[None]:
    """Hold the folder of a video's parts: a worker whose run was killed may still be at its last frame."""
    folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    with (folder / "lock").open("wb") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def hash_file(file: Path) -> str:
    """SHA-256 of a file of any length."""
    try:
        with file.open("rb") as opened:
            return hashlib.file_digest(opened, "sha256").hexdigest()
    except OSError as error:
        raise RefusedImage(f"cannot be read: {error.strerror}") from None


def _hash(file: Path, most: int) -> str:
    """The hash of a regular file within the limit."""
    try:
        status = file.stat()
    except OSError as error:
        raise RefusedImage(f"cannot be opened: {error.strerror}") from None
    if not stat.S_ISREG(status.st_mode):
        raise RefusedImage("not a regular file")
    if status.st_size > most:
        raise RefusedImage(f"file too large: {status.st_size} bytes, at most {most} are read")
    return hash_file(file)


def _is(file: Path, digest: str | None) -> bool:
    """Whether a file is there with that hash."""
    try:
        return hash_file(file) == digest
    except RefusedImage:
        return False


def _to_be_sealed(source: Path, digest: str) -> bytes:
    data = read_bytes(source, Limits(file_bytes=_MOST_SEALED))
    if sha256(data) != digest:
        raise RefusedImage("it changed while it was being protected: run the same command again")
    return data
