"""The experts that come with veilkit, free of research-only terms."""

from __future__ import annotations

from importlib import resources
from typing import Protocol

from veilkit.errors import CheckpointError, ConfigError
from veilkit.experts.base import Embedder
from veilkit.experts.dlib_identity import DlibIdentity
from veilkit.experts.histogram import HistogramEmbedder
from veilkit.experts.torch_embedder import TorchEmbedder
from veilkit.lookup import Lookup


class BuiltIn(Protocol):
    """How a built-in expert is made; `flip` as `load_expert` takes it."""

    def __call__(self, *, flip: bool = False) -> Embedder:
        """The expert."""


def load_people(*, flip: bool = False) -> TorchEmbedder:
    """The packaged Re-ID embedder, trained on generated people."""
    folder = resources.files("veilkit.experts") / "weights"
    weights, card = folder / "people.safetensors", folder / "people.md"
    if not weights.is_file():
        raise CheckpointError("this installation lacks the weights of the expert 'people'; install veilkit again")
    with resources.as_file(weights) as path:
        return TorchEmbedder.load(
            path,
            name="people",
            licence="Apache-2.0",
            source="trained by veilkit on generated people",
            origin="built-in",
            card=card.read_text(encoding="utf-8") if card.is_file() else "",
            flip=flip,
        )


def load_histogram(*, flip: bool = False) -> HistogramEmbedder:
    """The colour histogram."""
    if flip:
        raise ConfigError("a picture and its mirror image have the same colour histogram; load it without flip")
    return HistogramEmbedder()


def load_dlib(*, flip: bool = False) -> DlibIdentity:
    """dlib's face identity network, where the extra faces is installed."""
    return DlibIdentity.load(flip=flip)


BUILT_IN: Lookup[BuiltIn] = Lookup(
    "expert", [("people", load_people), ("histogram", load_histogram), ("dlib", load_dlib)]
)
