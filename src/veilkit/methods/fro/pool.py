"""A knowledge pool: a frozen classifier of people with batch normalisation, trained here or brought along."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import cached_property
from typing import Any, Self

import torch
from torch import Tensor, nn

from veilkit.checkpoint import built, understood
from veilkit.configs import read_facts
from veilkit.errors import ConfigError, DataError
from veilkit.methods.fro.start import PrincipalComponents
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, channels_last

_BATCH = 64
_FACTS = {"network": dict, "people": tuple[str, ...], "counts": tuple[int, ...]}


class ReidClassifier(nn.Module):
    """A Re-ID network as a plain classifier: images (N, 3, H, W) in [0, 1] to logits (N, people)."""

    def __init__(self, network: ReidNetwork) -> None:
        super().__init__()
        self.network = network

    def forward(self, images: Tensor) -> Tensor:
        """Logits (N, people), the mean over the bands; the images keep their size."""
        height, width = images.shape[2:]
        return torch.stack(self.network(images, (height, width)).logits).mean(0)


class Pool:
    """What FRO knows of its people.

    classifier: images (N, 3, H, W) in [0, 1] to logits (N, C), normalising inside with mean, std (3, 1, 1); it is
    frozen here. people: the C people in the order of the logits. counts: how many originals each had.
    network: set where veilkit itself can write the classifier to a file. components: of its originals, if known.
    """

    def __init__(
        self,
        classifier: nn.Module,
        people: Sequence[str],
        counts: Sequence[int],
        size: tuple[int, int],
        mean: Tensor,
        std: Tensor,
        network: ReidNetwork | None = None,
        components: PrincipalComponents | None = None,
    ) -> None:
        if len(people) != len(counts) or len(set(people)) != len(people) or not people:
            raise ConfigError(f"expected a name and a count for each person, but got {len(people)} and {len(counts)}")
        self.classifier = classifier.eval().requires_grad_(False)
        self.people, self.counts, self.size = tuple(people), tuple(counts), size
        self.mean, self.std, self.network, self.components = mean, std, network, components
        self.place: Mapping[str, int] = {name: index for index, name in enumerate(self.people)}

    @classmethod
    def of(cls, network: ReidNetwork, people: Sequence[str], counts: Sequence[int]) -> Self:
        """The pool of a Re-ID network that has kept its classifier."""
        if network.config.identities != len(people):
            raise DataError(
                f"expected a classifier of {len(people)} people, but got one of {network.config.identities}"
            )
        frozen = channels_last(network)
        return cls(
            ReidClassifier(frozen), people, counts, network.config.size, network.mean, network.std, network=network
        )

    @classmethod
    def read(cls, described: Mapping[str, Any], tensors: Mapping[str, Tensor], source: str) -> Self:
        """A pool from what `describe` said and the weights of the file `source`."""
        with understood(source):
            facts = read_facts(described, _FACTS)
        config = ReidNetworkConfig.from_dict(facts["network"], source)
        network = built(lambda: ReidNetwork(config), tensors, source)
        with understood(source):
            return cls.of(network, facts["people"], facts["counts"])

    def describe(self) -> dict[str, Any]:
        """All but the weights, as JSON values."""
        assert self.network is not None
        return {"network": asdict(self.network.config), "people": list(self.people), "counts": list(self.counts)}

    @cached_property
    def sha256(self) -> str:
        """A hash of weights, statistics, people and their principal components."""
        total = hashlib.sha256("\n".join(self.people).encode("utf-8", "surrogateescape"))
        for name, value in sorted(self.classifier.state_dict().items()):
            total.update(name.encode())
            total.update(value.detach().contiguous().cpu().numpy().tobytes())
        for value in (self.components.mean, self.components.axes) if self.components else ():
            total.update(value.numpy().tobytes())
        return total.hexdigest()

    @torch.no_grad()
    def logits(self, images: Tensor) -> Tensor:
        """Logits (N, C) of images (N, 3, H, W) in [0, 1], of the pool's size."""
        return torch.cat([self.classifier(images[start : start + _BATCH]) for start in range(0, len(images), _BATCH)])
