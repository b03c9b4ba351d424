"""Randomness derived from a secret key or a public seed, a purpose and an item.

Every random value belongs to a path of labels (method, purpose, item ...), never to a position in a batch or to a
worker, so that batching, order and parallelism never change a result. Values come from SHAKE-256, a cryptographic
function: somebody who knows part of a picture, and so part of its noise, learns nothing of the rest. Statistical
generators (Mersenne Twister, Philox) do not promise that.
"""

from __future__ import annotations

import hashlib
import hmac
import math
from typing import TypeAlias

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

Label: TypeAlias = str | bytes | int
_MOST = np.float32(1 - 2.0**-24)  # the largest float32 below 1
_CHUNK = 2**20  # values worked on at once in double precision


def _encode(labels: tuple[Label, ...]) -> bytes:
    """An injective encoding: no two different label tuples give the same bytes."""
    parts = []
    for label in labels:
        if isinstance(label, bytes):
            kind, data = b"b", label
        elif isinstance(label, str):
            kind, data = b"s", label.encode("utf-8", "surrogateescape")
        else:
            kind, data = b"i", str(label).encode()
        parts.append(kind + len(data).to_bytes(8, "big") + data)
    return b"".join(parts)


class Randomness:
    """A node in a tree of secrets; `child` goes down, the other methods draw from this node.

    Drawing twice from one node gives the same values: take a child for each use.

    >>> root = Randomness.from_seed(7)
    >>> bool((root.child("noise", "a.jpg").normal(3) == root.child("noise", "a.jpg").normal(3)).all())
    True
    """

    __slots__ = ("_secret",)

    def __init__(self, secret: bytes) -> None:
        if len(secret) < 16:
            raise ValueError(f"a secret must have at least 16 bytes, but got {len(secret)}")
        self._secret = secret

    def __eq__(self, other: object) -> bool:
        """Whether it is the same node, so that what is made of one can be kept."""
        return isinstance(other, Randomness) and hmac.compare_digest(self._secret, other._secret)

    def __hash__(self) -> int:
        return hash(self._secret)

    @classmethod
    def from_seed(cls, seed: int) -> Randomness:
        """The tree of a public seed: reproducible by anyone."""
        return cls(hashlib.sha256(b"veilkit seed" + _encode((seed,))).digest())

    def child(self, *labels: Label) -> Randomness:
        """The node below this one under `labels`."""
        return Randomness(hmac.digest(self._secret, _encode(labels), "sha256"))

    def tag(self, *labels: Label) -> bytes:
        """32 bytes that name `labels` under this secret and reveal neither (HMAC-SHA-256)."""
        return hmac.digest(self._secret, b"tag" + _encode(labels), "sha256")

    def bytes(self, count: int) -> bytes:
        """`count` uniform bytes."""
        return hashlib.shake_256(b"stream" + self._secret).digest(count)

    def _words(self, count: int) -> NDArray[np.uint32]:
        return np.frombuffer(self.bytes(4 * count), dtype="<u4")

    def uniform(self, *shape: int) -> Tensor:
        """float32 values in the open interval (0, 1)."""
        words = self._words(math.prod(shape))
        values = ((words >> np.uint32(8)).astype(np.float32) + np.float32(0.5)) * np.float32(2.0**-24)
        np.minimum(values, _MOST, out=values)  # the last of them would be rounded to 1
        return torch.from_numpy(values).reshape(shape)

    def normal(self, *shape: int) -> Tensor:
        """float32 values of the standard normal distribution (by inversion)."""
        from scipy.special import ndtri  # half a second that only noise has to pay for

        words = self._words(math.prod(shape))
        values = np.empty(len(words), dtype=np.float32)
        for start in range(0, len(words), _CHUNK):
            part = slice(start, start + _CHUNK)
            values[part] = ndtri((words[part].astype(np.float64) + 0.5) * 2.0**-32)
        return torch.from_numpy(values).reshape(shape)

    def permutation(self, count: int) -> NDArray[np.int64]:
        """A uniform permutation of range(count): the order of `count` random 64-bit numbers."""
        keys = np.frombuffer(self.bytes(8 * count), dtype="<u8")
        return np.argsort(keys, kind="stable").astype(np.int64)

    def integer(self, low: int, high: int) -> int:
        """An integer in [low, high); the bias of the modulus is below 2**-64."""
        if high <= low:
            raise ValueError(f"expected low < high, but got {low} and {high}")
        return low + int.from_bytes(self.bytes(16), "big") % (high - low)

    def numpy(self) -> np.random.Generator:
        """A NumPy generator, for drawing pictures and for training. Not for noise that must stay secret."""
        return np.random.Generator(np.random.PCG64(int.from_bytes(self.bytes(32), "big")))

    def torch(self) -> torch.Generator:
        """A torch generator, for training. Not for noise that must stay secret."""
        return torch.Generator().manual_seed(int.from_bytes(self.bytes(8), "big") >> 1)
