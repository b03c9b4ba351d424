"""The experts that come with veilkit, free of research-only terms."""

from __future__ import annotations

from collections.abc import Callable
from importlib import resources

from veilkit.errors import CheckpointError
from veilkit.experts.base import Embedder
from veilkit.experts.histogram import HistogramEmbedder
from veilkit.experts.torch_embedder import TorchEmbedder
from veilkit.lookup import Lookup


def load_people() -> TorchEmbedder:
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
        )


BUILT_IN: Lookup[Callable[[], Embedder]] = Lookup(
    "expert", [("people", load_people), ("histogram", HistogramEmbedder)]
)
