"""Recover a release by the decoder that was trained with its anonymiser: what comes out is like the originals.

Every picture is checked against SHA256SUMS before the first is decoded, and the access log gets a line for each.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path, PurePosixPath

import torch

from veilkit.errors import CheckpointError, DataError, DestinationError, RefusedImage, SealError
from veilkit.media.reading import Limits, decode, read_bytes, sha256
from veilkit.media.writing import encode, to_pixels, write_atomically
from veilkit.methods.learned import Decoder
from veilkit.pipeline.manifest import Manifest
from veilkit.pipeline.recovery.access_log import AccessLog
from veilkit.pipeline.recovery.target import (
    SCRATCH,
    Recovered,
    check_place,
    check_places,
    check_together,
    finished_manifest,
    is_restored,
    scratch_folder,
    wanted_pictures,
)
from veilkit.progress import Progress

_LIMITS = Limits()


def recover_by_decoder(folder: Path, target: Path, model: Path, only: Sequence[str], log: Path) -> Recovered:
    """Write what the decoder in the file `model` makes of each picture of a release, as PNG under its name there.

    What is there already is made again and compared: equal files count as restored, others are never overwritten. So
    a recovery that was stopped goes on.
    """
    check_places((folder,), target, log)
    manifest = finished_manifest(folder)
    wanted = wanted_pictures(folder, manifest, only)
    decoder = decoder_for(manifest, model)
    restored = 0
    with AccessLog(log, manifest.sums_sha256) as access:
        _check_all(folder, wanted, access, _holder(decoder))
        with scratch_folder(target) as scratch, Progress(len(wanted), "recovering") as progress:
            for picture, digest in wanted.items():
                restored += _recover(decoder, folder, picture, digest, target, scratch, access)
                progress.advance()
    return Recovered(target, restored, len(wanted) - restored, log)


def decoder_for(manifest: Manifest, model: Path) -> Decoder:
    """The decoder in the file `model`; raises unless it was trained with the anonymiser that made the release."""
    decoder = Decoder.load(model)
    if manifest.method != decoder.method:
        raise DataError(
            f"{model.name} undoes {decoder.method}, but this release was made by {manifest.method}: "
            "sealed originals, if there are any, come back with an identity"
        )
    if manifest.parts is not None:
        raise DataError(
            f"only {manifest.parts} are protected in this release, and a decoder undoes whole pictures: sealed "
            "originals come back with an identity"
        )
    if manifest.config.get("model") != decoder.model:
        raise CheckpointError(
            f"{model.name} is the decoder of another model: it was trained with the anonymiser {decoder.model[:12]}, "
            f"but the release was made by {str(manifest.config.get('model'))[:12]}; take the one written beside that"
        )
    return decoder


def _check_all(folder: Path, wanted: Mapping[str, str], access: AccessLog, holder: str) -> None:
    """Raise where a picture is not the one that was released, or two would get one name; note each."""
    clashing = check_together([_name(picture) for picture in wanted])
    refused = []
    with Progress(len(wanted), "checking") as progress:
        for picture, digest in wanted.items():
            try:
                _read(folder, picture, digest)
                if reason := clashing.get(_name(picture)):
                    raise SealError(reason)
            except SealError as error:
                refused.append((picture, error.reason))
                access.add(picture, holder, "refused", reason=error.reason)
            progress.advance()
    if refused:
        raise SealError(
            f"nothing was restored, as {len(refused)} of {len(wanted)} pictures cannot be: "
            f"{refused[0][0]!r}: {refused[0][1]}. {access.file} names them all; "
            "others can be restored by name (--only)"
        )


def _recover(
    decoder: Decoder, folder: Path, picture: str, digest: str, target: Path, scratch: Path, access: AccessLog
) -> bool:
    """Write one picture unless it is there; returns whether it was written."""
    holder, name = _holder(decoder), _name(picture)
    try:
        pixels = decode(_read(folder, picture, digest), _LIMITS)
        images = torch.from_numpy(pixels).permute(2, 0, 1)[None].float().div_(255)
        data = encode(to_pixels(decoder.recover(images)[0]), "png")
        check_place(target, name, sha256(data), scratch=SCRATCH)
    except (SealError, RefusedImage) as error:
        access.add(picture, holder, "refused", reason=error.reason)
        raise SealError(f"{picture!r}: {error.reason}") from None
    about = {"original": name, "sha256": sha256(data)}
    if is_restored(target / name, about["sha256"]):
        access.add(picture, holder, "already there", **about)
        return False
    access.add(picture, holder, "restored", **about)
    try:
        write_atomically(target / name, data, scratch)
    except DestinationError as error:
        access.add(picture, holder, "failed", **about, reason=str(error))
        raise
    return True


def _read(folder: Path, picture: str, digest: str) -> bytes:
    try:
        data = read_bytes(folder / picture, _LIMITS)
    except RefusedImage as refusal:
        raise SealError(f"its protected picture cannot be read ({refusal.reason}): fetch it again") from None
    if sha256(data) != digest:
        raise SealError("its protected picture is not the one that SHA256SUMS names: fetch the release again")
    return data


def _holder(decoder: Decoder) -> str:
    """Who recovers, as far as can be told: the holder of this decoder."""
    return f"decoder {decoder.sha256}"


def _name(picture: str) -> str:
    return str(PurePosixPath(picture).with_suffix(".png"))
