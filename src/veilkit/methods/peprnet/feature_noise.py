"""PEPR-Net's second stage: noise on features, by a mechanism with a proof, or as the paper prints it."""

from __future__ import annotations

import hashlib
from typing import Literal, TypeAlias, get_args

from torch import Tensor

from veilkit.errors import ConfigError, DataError
from veilkit.privacy import Ledger, Mechanism, PeprPaper, make_mechanism, unit
from veilkit.types import ImageBatch, Release

NoiseKind: TypeAlias = Literal["privunit", "gaussian", "laplace", "paper"]
KINDS: tuple[NoiseKind, ...] = get_args(NoiseKind)


def noise_mechanism(kind: NoiseKind, features: Tensor, *, epsilon: float, delta: float) -> Mechanism:
    """The mechanism for features (N, D); `paper` is calibrated to these very features, and proves nothing."""
    if kind not in KINDS:
        raise ConfigError(f"the noise must be one of {', '.join(KINDS)}, but got {kind!r}")
    if kind == "paper":
        return PeprPaper.measured(features, epsilon=epsilon, delta=delta)
    return make_mechanism(kind, dimension=features.shape[1], epsilon=epsilon, delta=delta)


def noisy_release(
    features: Tensor, batch: ImageBatch, mechanism: Mechanism, model: str, ledger: Ledger | None
) -> Release:
    """Features (N, D) of a batch, of any length, with noise. model: the fingerprint of what made them.

    Sound mechanisms see unit vectors; the paper's sees features as they are. Noise is the operating system's and
    fresh for each call, which costs again; with a ledger it is charged, and a picture gets the same vector again.
    """
    vectors = features if isinstance(mechanism, PeprPaper) else unit(features)
    if ledger is None:
        released = mechanism.release(vectors)
    else:
        records = [
            hashlib.sha256(f"{model}\0{item}".encode("utf-8", "surrogateescape")).hexdigest() for item in batch.items
        ]
        released = ledger.release(mechanism, vectors, records=records, persons=_persons(batch, ledger))
    return Release(features=released, source_index=tuple(range(len(batch))), guarantee=mechanism.guarantee())


def _persons(batch: ImageBatch, ledger: Ledger) -> list[str] | None:
    if ledger.per == "record":
        return None
    known = [person for person in batch.identities if person is not None]
    if len(known) < len(batch):
        raise DataError(
            "this ledger counts per person, but some pictures show somebody unknown: give the batch identities"
        )
    return known
