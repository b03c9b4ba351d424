"""A picture as a file of the release: known again where it is there, else written, and its original sealed."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from dataclasses import replace
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from veilkit.errors import RefusedImage
from veilkit.media.reading import read_bytes, sha256
from veilkit.media.shape import resized
from veilkit.media.writing import SUFFIX, Format, encode, to_pixels, too_long, write_atomically
from veilkit.methods import Mixes, Synthesiser
from veilkit.pipeline.job import Job, item_name, refused_entry
from veilkit.pipeline.ledger import Entry
from veilkit.pipeline.sealing.files import SEALED_SUFFIX

_COPIED = 1_600  # pixels of the longer side of a copy


class Results:
    """The files of one job's release."""

    def __init__(self, job: Job) -> None:
        self.job = job

    def recipes(self, entries: list[Entry]) -> list[str]:
        """For each picture a hash of all that its result depends on, except for the key."""
        names = [item_name(entry.source, entry.source_sha256 or "") for entry in entries]
        together = isinstance(self.job.method, Mixes | Synthesiser)
        sources = ["\0\0".join(names)] * len(names) if together else names
        head = f"{self.job.method.fingerprint()} {self.job.files}{self.job.shape}\0\0"
        drawn = [self.job.boxes.get(entry.source) for entry in entries]  # only pictures with boxes are done anew
        heads = [head if boxes is None else f"{head}{boxes}\0\0" for boxes in drawn]
        return [
            sha256((head + source).encode("utf-8", "surrogateescape"))
            for head, source in zip(heads, sources, strict=True)
        ]

    def is_kept(self, entry: Entry, recipe: str) -> bool:
        """Whether the release already holds the result, whole."""
        if entry.state != "done" or entry.recipe != recipe:
            return False
        try:
            return sha256((self.job.destination / entry.output).read_bytes()) == entry.output_sha256
        except OSError:
            return False

    def kept(self, entry: Entry, original: bytes) -> Entry:
        """The entry of a picture that the release holds; its original is sealed where that is still to be done."""
        if self.job.sealed is None or self.job.sealed.holds(entry):
            return entry
        return self.job.sealed.add(entry, original, self.job.randomness)

    def encoded(self, image: torch.Tensor, output: str) -> bytes:
        """The file of a picture (3, H, W), in the format that its name says."""
        form: Format = "jpeg" if output.endswith(SUFFIX["jpeg"]) else "png"
        even = self.job.shape.even_files
        return encode(to_pixels(image), form, compressed=not even, quality=self.job.files.quality)

    def saved(
        self, entry: Entry, encoded: Callable[[], bytes], report: Mapping[str, Any] | None, recipe: str
    ) -> Entry:
        """Write what became of a picture, and seal its original where that is wanted."""
        try:
            self.check_reach(entry)
            original = self._original(entry) if self.job.sealed is not None else b""
        except RefusedImage as refusal:
            return refused_entry(entry, refusal.reason)
        data = encoded()
        write_atomically(self.job.destination / entry.output, data, self.job.scratch, undated=True)
        entry = replace(
            entry,
            state="done",
            recipe=recipe,
            output_sha256=sha256(data),
            reason=None,
            report=None if report is None else json.dumps(report, sort_keys=True),
            sealed_sha256=None,
        )
        return entry if self.job.sealed is None else self.job.sealed.add(entry, original, self.job.randomness)

    def check_reach(self, entry: Entry) -> None:
        """Raise where a kept name makes a path that is longer below the release than the system can open."""
        sealed = [] if self.job.sealed is None else [self.job.sealed.folder / (entry.output + SEALED_SUFFIX)]
        if any(too_long(file) for file in (self.job.destination / entry.output, *sealed)):
            raise RefusedImage(
                "its path would be too long in the release: choose a shorter folder, or names that are pseudonyms"
            )

    def _original(self, entry: Entry) -> bytes:
        """The bytes that were protected, read again: to hold those of all pictures at work would take memory."""
        data = read_bytes(self.job.source / entry.source, self.job.limits)
        if sha256(data) != entry.source_sha256:
            raise RefusedImage("it changed while it was being protected: run the same command again")
        return data

    def copy(self, pixels: NDArray[np.uint8], name: str) -> None:
        """A small copy for the private review page, of what a browser could not show."""
        assert self.job.shown is not None
        scale = min(1.0, _COPIED / max(pixels.shape[:2]))
        small = resized(pixels, max(1, round(scale * pixels.shape[0])), max(1, round(scale * pixels.shape[1])))
        (self.job.shown / name).parent.mkdir(parents=True, exist_ok=True, mode=0o700)
        write_atomically(self.job.shown / name, encode(small, "jpeg"), self.job.shown)
