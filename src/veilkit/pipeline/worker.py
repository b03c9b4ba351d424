"""The work of a run, cut into tasks that any process can do: read, protect, encode, write."""

from __future__ import annotations

import fcntl
import json
import math
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.errors import DataError, DestinationError, RefusedImage, VeilkitError
from veilkit.media.reading import Frames, decode, decode_frames, read_bytes, sha256
from veilkit.media.shape import resized
from veilkit.media.video import VIDEO_SUFFIX, open_clip
from veilkit.media.writing import SUFFIX, encode_frames, to_pixels, write_atomically
from veilkit.methods import ChangesFaces, Mixes, Synthesiser, bind
from veilkit.pipeline.formats import is_video, why_refused
from veilkit.pipeline.job import Job, Task, item_name, refused_entry
from veilkit.pipeline.ledger import NEVER_WRITTEN, Entry
from veilkit.pipeline.names import PAGES
from veilkit.pipeline.results import Results
from veilkit.progress import Say, silent
from veilkit.types import ImageBatch, PictureReport, Region, Release

if TYPE_CHECKING:
    from veilkit.pipeline.video import VideoWorker

_OTHER_PAGES = "it had one page when it was first seen, and now has several, or the reverse: give it a new name"
SHOWN_BY_BROWSERS = (".jpg", ".jpeg", ".jpe", ".jfif", ".png", ".apng", ".webp", ".bmp", ".gif", ".avif")
_LARGE = 2_000_000  # pixels of a task, each of which takes 40 bytes and more while it is worked on


class Worker:
    """Does the tasks of one job in this process. say: is told how far long work has come."""

    def __init__(self, job: Job, say: Say = silent) -> None:
        self.job = job
        self._rng = bind(job.randomness, job.method)
        self._results = Results(job)
        self._say = say

    def run(self, task: Task) -> tuple[Entry, ...]:
        """What became of each picture of the task. Only a destination that cannot be written raises."""
        if isinstance(self.job.method, Synthesiser):
            return self._synthesise(self.job.method, task.entries)
        if task.look:
            return tuple(self._looked_at(entry, faces=task.faces) for entry in task.entries)
        if task.apart:
            return tuple(self._each(task.entries))
        read: list[tuple[Entry, bytes]] = []
        refused: list[Entry] = []
        for entry in task.entries:
            try:
                data = self._bytes(entry)
                read.append((replace(entry, source_sha256=sha256(data), reason=None), data))
            except RefusedImage as refusal:
                refused.append(refused_entry(entry, refusal.reason))
        recipes = self._results.recipes([entry for entry, _ in read])
        kept: list[Entry] = []
        if not task.check and all(
            self._results.is_kept(entry, recipe) for (entry, _), recipe in zip(read, recipes, strict=True)
        ):
            kept, read = [self._results.kept(entry, data) for entry, data in read], []
        decoded: list[tuple[Entry, NDArray[np.uint8]]] = []
        for entry, data in read:
            try:
                if entry.output.endswith(PAGES):
                    raise RefusedImage("a picture of several pages, which cannot be mixed: split it")
                decoded.append((entry, self._pixels(data)))
            except RefusedImage as refusal:
                refused.append(refused_entry(entry, refusal.reason))
        if task.check:
            return (*(entry for entry, _ in decoded), *refused)
        if refused and isinstance(self.job.method, Mixes):
            reason = "a picture that it was to be mixed with has changed: run the same command again"
            return (*(refused_entry(entry, reason) for entry, _ in decoded), *refused)
        return (*kept, *(self._protect(decoded) if decoded else ()), *refused)

    def _each(self, entries: tuple[Entry, ...]) -> Iterator[Entry]:
        """What became of pictures that have nothing to do with each other; large ones are not held together."""
        held: list[tuple[Entry, NDArray[np.uint8]]] = []
        for entry in entries:
            if entry.output.endswith(VIDEO_SUFFIX):
                yield self._video(entry)
                continue
            known, shown = self._read(entry)
            if shown is None:
                yield known
            elif len(shown) > 1 or known.output.endswith(PAGES):
                yield self._protect_frames(known, shown)
            else:
                held.append((known, shown.pictures[0]))
            del shown
            if sum(pixels.shape[0] * pixels.shape[1] for _, pixels in held) > _LARGE:
                yield from self._protect_each(held)
        yield from self._protect_each(held)

    def _looked_at(self, entry: Entry, *, faces: bool) -> Entry:
        """The entry with a report on the picture as it is; nothing is written."""
        try:
            if is_video(self.job.source / entry.source):
                if reason := why_refused(self.job.source, entry.source, self.job.method):
                    raise RefusedImage(reason)
                clip = open_clip(self.job.source / entry.source, self.job.video_limits)
                about = {"size": [clip.width, clip.height], "frames": clip.frames}
                return replace(entry, report=json.dumps(about), reason=None)
            frames = decode_frames(self._bytes(entry), self.job.limits).pictures
        except RefusedImage as refusal:
            return refused_entry(entry, refusal.reason)
        height, width = frames[0].shape[:2]
        report: dict[str, Any] = {"size": [width, height], "frames": len(frames)}
        if faces and isinstance(self.job.method, ChangesFaces):
            report["counts"] = self.job.method.count_faces(_batch([(entry, frames[0])], height, width)[0])
        return replace(entry, report=json.dumps(report), reason=None)

    def _read(self, entry: Entry) -> tuple[Entry, Frames | None]:
        """The entry with its source's hash, and its frames; None where the release holds it, or it is refused."""
        try:
            data = self._bytes(entry)
            entry = replace(entry, source_sha256=sha256(data), reason=None)
            if self._results.is_kept(entry, self._results.recipes([entry])[0]):
                return self._results.kept(entry, data), None
            shown = decode_frames(data, self.job.limits)
            if self.job.shown is not None and not entry.source.lower().endswith(SHOWN_BY_BROWSERS):
                self._results.copy(shown.pictures[0], f"{entry.output}.before.jpg")
            return entry, replace(shown, pictures=tuple(map(self.job.shape.fitted, shown.pictures)))
        except RefusedImage as refusal:
            return refused_entry(entry, refusal.reason), None

    @cached_property
    def _videos(self) -> VideoWorker:
        from veilkit.pipeline.video import VideoWorker  # only who has videos pays for it

        return VideoWorker(self.job, self._rng, self._say)

    def _video(self, entry: Entry) -> Entry:
        """What became of a video."""
        try:
            self._results.check_reach(entry)
            return self._videos.protect(entry, item_name)
        except RefusedImage as refusal:
            return refused_entry(entry, refusal.reason)

    def _bytes(self, entry: Entry) -> bytes:
        """The picture's file; raises for what is enrolled only to be refused (see `enrolment`)."""
        if reason := why_refused(self.job.source, entry.source, self.job.method):
            raise RefusedImage(reason)
        if entry.output.endswith(NEVER_WRITTEN):
            raise RefusedImage(entry.reason or "it changed while it was being protected: run the same command again")
        return read_bytes(self.job.source / entry.source, self.job.limits)

    def _pixels(self, data: bytes) -> NDArray[np.uint8]:
        return self.job.shape.fitted(decode(data, self.job.limits))

    def _protect_each(self, held: list[tuple[Entry, NDArray[np.uint8]]]) -> list[Entry]:
        """Protect pictures by themselves, each in its own size. Empties `held`."""
        if not held:
            return []
        sizes: dict[tuple[int, int], list[tuple[Entry, NDArray[np.uint8]]]] = {}
        for entry, pixels in held:
            sizes.setdefault((pixels.shape[0], pixels.shape[1]), []).append((entry, pixels))
        held.clear()
        del pixels  # a large picture is not held twice
        groups = [[entry for entry, _ in group] for group in sizes.values()]
        total = sum(len(group) * math.prod(size) for size, group in sizes.items())
        with self._alone_if_large(total):
            batches = [self._image_batch(group, *size) for size, group in sizes.items()]
            try:
                releases = self.job.method.protect_many(batches, rng=self._rng)
            except VeilkitError as error:
                if not isinstance(error, RefusedImage):
                    raise
                return self._one_by_one(groups, batches, error.reason)
            except Exception as error:  # one picture that a method cannot take must not end the run
                height, width = batches[0].images.shape[-2:]
                return self._one_by_one(groups, batches, self._failure(error, width, height))
            del batches  # large pictures: what is not needed any more goes
            return [
                done
                for group, release in zip(groups, releases, strict=True)
                for done in self._written(group, release)
            ]

    def _protect_frames(self, entry: Entry, shown: Frames) -> Entry:
        """Protect the frames or pages of one file, each as a picture of its own, and write them as one file."""
        pages = entry.output.endswith(PAGES)
        if len(shown) > 1 and pages != (shown.durations is None):
            return refused_entry(entry, _OTHER_PAGES)
        if not pages and entry.output.endswith(SUFFIX["jpeg"]):
            return refused_entry(entry, "an animation, of which a JPEG holds one frame: choose PNG as the format")
        made: list[NDArray[np.uint8]] = []
        reports: list[PictureReport] = []
        with self._alone_if_large(sum(math.prod(pixels.shape[:2]) for pixels in shown.pictures)):
            for number, pixels in enumerate(shown.pictures):
                batch = self._image_batch([(entry, pixels)], *pixels.shape[:2])
                if number:  # the first has the values that it would have by itself
                    batch = replace(batch, items=(f"{batch.items[0]}\0frame {number}",))
                try:
                    release = self.job.method.protect(batch, rng=self._rng)
                except RefusedImage as refusal:
                    return refused_entry(entry, refusal.reason)
                except VeilkitError:
                    raise
                except Exception as error:  # one picture that a method cannot take must not end the run
                    return refused_entry(entry, self._failure(error, pixels.shape[1], pixels.shape[0]))
                made.append(to_pixels(self._images(release)[0]))
                reports += release.reports or ()
        whole = replace(shown, pictures=tuple(made))
        if pages and self.job.shown is not None:
            self._results.copy(made[0], f"{entry.output}.after.jpg")
        size = list(shown.pictures[0].shape[1::-1])
        report = {**_merged(reports), "size": size} if reports else None
        return self._results.saved(
            entry, lambda: encode_frames(whole, "tiff" if pages else "png"), report, self._results.recipes([entry])[0]
        )

    def _failure(self, error: Exception, width: int, height: int) -> str:
        return f"{self.job.method.name} failed on it ({type(error).__name__}, {width}x{height} pixels)"

    def _images(self, release: Release) -> torch.Tensor:
        if release.images is None or release.source_index is None:
            raise DataError(f"{self.job.method.name} gives no picture for each picture; it cannot protect a folder")
        return release.images

    def _one_by_one(self, groups: list[list[Entry]], batches: list[ImageBatch], reason: str) -> list[Entry]:
        """Find out which of some pictures the method failed on; a single one is refused for the reason given."""
        if sum(map(len, groups)) == 1:
            return [refused_entry(groups[0][0], reason)]
        done = []
        for group, batch in zip(groups, batches, strict=True):
            for entry, image in zip(group, batch.images, strict=True):
                pixels = to_pixels(image)
                done += self._protect_each([(entry, pixels)])
        return done

    def _synthesise(self, method: Synthesiser[Any], entries: tuple[Entry, ...]) -> tuple[Entry, ...]:
        """Make the pictures of one group, unless the release already holds them all."""
        recipes = self._results.recipes(list(entries))
        if all(self._results.is_kept(entry, recipe) for entry, recipe in zip(entries, recipes, strict=True)):
            return entries
        people = [entry.identity or "" for entry in entries]
        images = method.synthesise([entry.source for entry in entries], people, rng=self._rng).images
        assert images is not None
        done = []
        for entry, image, recipe in zip(entries, images, recipes, strict=True):
            data = self._results.encoded(image, entry.output)
            write_atomically(self.job.destination / entry.output, data, self.job.scratch, undated=True)
            done.append(replace(entry, state="done", recipe=recipe, output_sha256=sha256(data), reason=None))
        return tuple(done)

    def _protect(self, decoded: list[tuple[Entry, NDArray[np.uint8]]]) -> list[Entry]:
        entries = [entry for entry, _ in decoded]
        # The middle one by size: one tiny or huge picture must not decide for those that it is mixed with.
        height, width = sorted((pixels.shape[:2] for _, pixels in decoded), key=math.prod)[(len(decoded) - 1) // 2]
        with self._alone_if_large(len(decoded) * height * width):
            return self._protect_batch(entries, self._image_batch(decoded, height, width))

    def _image_batch(self, decoded: list[tuple[Entry, NDArray[np.uint8]]], height: int, width: int) -> ImageBatch:
        items = tuple(item_name(entry.source, entry.source_sha256 or "") for entry, _ in decoded)
        identities = tuple(entry.identity for entry, _ in decoded)
        boxes = [self.job.boxes.get(entry.source, ()) for entry, _ in decoded]
        regions = tuple(
            tuple(Region(box.corners(width, height), box.action, box.identity) for box in drawn) for drawn in boxes
        )
        return ImageBatch(_batch(decoded, height, width), items, identities, regions)

    @contextmanager
    def _alone_if_large(self, pixels: int) -> Iterator[None]:
        """Let one worker at a time work on large pictures, so that memory does not grow with the workers."""
        if pixels <= _LARGE:
            yield
            return
        try:
            turn = (self.job.scratch / "large").open("wb")
        except OSError as error:
            raise DestinationError(f"the release cannot be written: {error.strerror}") from None
        with turn:
            fcntl.flock(turn, fcntl.LOCK_EX)
            yield

    def _protect_batch(self, entries: list[Entry], batch: ImageBatch) -> list[Entry]:
        height, width = batch.images.shape[-2:]
        try:
            release = self.job.method.protect(batch, rng=self._rng)
        except VeilkitError:
            raise
        except Exception as error:  # one picture that a method cannot take must not end the run
            return [refused_entry(entry, self._failure(error, width, height)) for entry in entries]
        del batch  # large pictures: what is not needed any more goes
        return self._written(entries, release)

    def _written(self, entries: list[Entry], release: Release) -> list[Entry]:
        """Write the pictures of a release; what a method reports of one goes into its entry."""
        images, done = self._images(release), []
        recipes = self._results.recipes(entries)
        for place, (image, index) in enumerate(zip(images, release.source_index or (), strict=True)):
            report = None if release.reports is None else release.reports[place].as_json()
            if report and "faces" in report:
                report["size"] = [image.shape[2], image.shape[1]]
            encoded = partial(self._results.encoded, image, entries[index].output)
            done.append(self._results.saved(entries[index], encoded, report, recipes[index]))
        return done


def _merged(reports: Sequence[PictureReport]) -> dict[str, Any]:
    """What is to be known of a file, from the reports on its frames: counts are added, faces say their frame."""
    merged: dict[str, Any] = {"frames": len(reports)}
    for number, report in enumerate(each.as_json() for each in reports):
        for name, value in report.items():
            if name == "faces":
                merged.setdefault(name, []).extend({**face, "frame": number} for face in value)
            elif name == "counts":
                before = merged.setdefault(name, {})
                merged[name] = {each: before.get(each, 0) + count for each, count in value.items()}
            elif name == "told":
                merged[name] = sorted({*merged.get(name, ()), *value})
            elif name == "held":
                merged[name] = merged.get(name, True) and value
    return merged


def _batch(decoded: list[tuple[Entry, NDArray[np.uint8]]], height: int, width: int) -> torch.Tensor:
    """The pictures as float32 NCHW in [0, 1]. Empties `decoded`: a large picture is not held twice."""
    images = torch.empty(len(decoded), 3, height, width)
    for index in reversed(range(len(decoded))):
        pixels = torch.from_numpy(resized(decoded.pop()[1], height, width))
        for channel in range(3):  # all at once would need a copy
            images[index, channel].copy_(pixels[:, :, channel])
        del pixels
    return images.div_(255)
