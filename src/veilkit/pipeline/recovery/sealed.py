"""Restore the originals of a release from their sealed files: all are checked first, then written.

Nothing is written unless every original asked for opens, belongs to its picture as that is now, and has a safe place
to go to. Each file is opened twice for that, once to check and once to write, so that memory stays small.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from veilkit.errors import DataError, DestinationError, KeyFileError, RefusedImage, SealError
from veilkit.key import Key, read_key
from veilkit.media.reading import Limits, read_bytes, sha256
from veilkit.media.writing import write_atomically
from veilkit.pipeline.manifest import Manifest
from veilkit.pipeline.options import RecoverOptions
from veilkit.pipeline.places import sealed_beside
from veilkit.pipeline.recovery.access_log import AccessLog
from veilkit.pipeline.recovery.target import (
    SCRATCH,
    Recovered,
    check_place,
    check_places,
    check_sealed_listing,
    check_together,
    finished_manifest,
    is_restored,
    scratch_folder,
    wanted_pictures,
)
from veilkit.pipeline.sealing.age import Identity, read_identities
from veilkit.pipeline.sealing.files import SEALED_SUFFIX, Unsealed, check_path, unseal
from veilkit.progress import Progress

_TOLD = 3  # pictures that an error names


@dataclass(frozen=True, slots=True)
class _Release:
    """What originals are restored from."""

    folder: Path
    sealed: Path
    identities: tuple[Identity, ...]
    key: Key | None

    def open(self, picture: str, digest: str) -> Unsealed:
        """The original of a picture, whole and bound to it; SealError says what else came."""
        if sha256(_bytes_of(self.folder / picture, "protected picture")) != digest:
            raise SealError("its protected picture is not the one that SHA256SUMS names: fetch the release again")
        found = unseal(_bytes_of(self.sealed / (picture + SEALED_SUFFIX), "sealed file"), self.identities)
        found.binding.check(picture, digest)
        check_path(found.binding.original)
        if self.key is not None:
            found.binding.check_origin(self.key.randomness)
        return found

    @property
    def recipients(self) -> str:
        return " ".join(identity.recipient for identity in self.identities)


@dataclass(frozen=True, slots=True)
class _Step:
    """An original to restore: its picture and that one's hash; its own path and hash, and whose key opens it."""

    picture: str
    digest: str
    original: str
    original_sha256: str
    recipient: str


def run_recover(options: RecoverOptions) -> Recovered:
    """Restore what the options ask for, which have been checked; `recover` says how."""
    folder, target = Path(options.protected).resolve(), Path(options.destination).resolve()
    identity, model, key, only = options.identity, options.model, options.key, options.only
    sealed_folder = Path(options.sealed).resolve() if options.sealed is not None else sealed_beside(folder)
    log_file = (
        Path(options.log).resolve() if options.log is not None else target.with_name(target.name + ".access.jsonl")
    )
    if model is not None:
        from veilkit.pipeline.recovery.decoder import recover_by_decoder  # networks, for which a key need not wait

        return recover_by_decoder(folder, target, Path(model), only, log_file)
    assert identity is not None
    check_places((folder, sealed_folder), target, log_file)
    manifest = finished_manifest(folder)
    wanted = wanted_pictures(folder, manifest, only, None if key is None else Path(key).resolve().parent)
    if not sealed_folder.is_dir():
        told = "its manifest says that none were sealed" if not manifest.sealed_recipients else "name it (--sealed)"
        raise DataError(f"expected sealed originals in {sealed_folder}, but there is no such folder: {told}")
    if not only:
        check_sealed_listing(sealed_folder, wanted)
    release = _Release(folder, sealed_folder, read_identities(Path(identity)), _key(key, manifest))
    with AccessLog(log_file, manifest.sums_sha256) as access:
        steps = _checked(release, wanted, target, access)
        with scratch_folder(target) as scratch:
            restored = _restore(release, steps, target, scratch, access)
    return Recovered(target, restored, len(steps) - restored, log_file)


def _key(key: str | Path | None, manifest: Manifest) -> Key | None:
    if key is None:
        return None
    secret = read_key(Path(key))
    if manifest.key_commitment is None or not secret.matches(manifest.key_commitment):
        raise KeyFileError(f"{key} is not the key that this release was made with: name that one, or none")
    return secret


def _checked(release: _Release, wanted: dict[str, str], target: Path, access: AccessLog) -> list[_Step]:
    """What is to be restored. Every picture is looked at before the first that is wrong ends the run."""
    steps: list[_Step] = []
    refused: list[tuple[str, str]] = []
    with Progress(len(wanted), "checking") as progress:
        for picture, digest in wanted.items():
            try:
                found = release.open(picture, digest)
                binding = found.binding
                check_place(target, binding.original, binding.original_sha256, scratch=SCRATCH)
                steps.append(_Step(picture, digest, binding.original, binding.original_sha256, found.recipient))
            except SealError as error:
                refused.append((picture, error.reason))
            progress.advance()
    clashing = check_together([step.original for step in steps])
    refused += [(step.picture, reason) for step in steps if (reason := clashing.get(step.original))]
    for picture, reason in refused:
        access.add(picture, release.recipients, "refused", reason=reason)
    if refused:
        told = "; ".join(f"{picture!r}: {reason}" for picture, reason in refused[:_TOLD])
        more = f"; {len(refused) - _TOLD} more" if len(refused) > _TOLD else ""
        raise SealError(
            f"nothing was restored, as {len(refused)} of {len(wanted)} originals cannot be: {told}{more}. "
            f"{access.file} names them all; others can be restored by name (--only)"
        )
    return steps


def _restore(release: _Release, steps: list[_Step], target: Path, scratch: Path, access: AccessLog) -> int:
    """Write what is not yet there; returns how many."""
    restored = 0
    with Progress(len(steps), "restoring") as progress:
        for step in steps:
            about = {"original": step.original, "sha256": step.original_sha256}
            if is_restored(target / step.original, step.original_sha256):
                access.add(step.picture, step.recipient, "already there", **about)
            else:
                original = _reopened(release, step, target)
                access.add(step.picture, step.recipient, "restored", **about)
                try:
                    write_atomically(target / step.original, original, scratch)
                except DestinationError as error:
                    access.add(step.picture, step.recipient, "failed", **about, reason=str(error))
                    raise
                restored += 1
            progress.advance()
    return restored


def _reopened(release: _Release, step: _Step, target: Path) -> bytes:
    """The original once more, if nothing has changed since it was checked."""
    found = release.open(step.picture, step.digest)
    if (found.binding.original, found.binding.original_sha256) != (step.original, step.original_sha256):
        raise SealError("a sealed file was replaced while originals were being restored: run the same command again")
    check_place(target, step.original, step.original_sha256, scratch=SCRATCH)
    return found.original


def _bytes_of(file: Path, what: str) -> bytes:
    try:
        return read_bytes(file, Limits(file_bytes=max(file.stat().st_size, 1)))
    except FileNotFoundError:
        raise SealError(f"its {what} is missing: fetch it from where it is stored") from None
    except OSError as error:
        raise SealError(f"its {what} cannot be read: {error.strerror}") from None
    except RefusedImage as refusal:
        raise SealError(f"its {what} cannot be read ({refusal.reason}): fetch it again") from None
