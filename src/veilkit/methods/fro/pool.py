"""Who learns in FRO: the knowledge pool, a classifier with batch normalisation, and students of it (Eq. 7).

The pool is trained here or brought along, and frozen. A student learns from pictures and the pool's logits on them,
never from labels.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from functools import cached_property
from pathlib import Path
from typing import Any, Self

import torch
from torch import Tensor, nn

from veilkit.checkpoint import built, understood
from veilkit.configs import read_facts
from veilkit.datasets.augment import AugmentConfig
from veilkit.datasets.folder import load_folder
from veilkit.datasets.soft_labels import SOFT_LABELS, Views, read_soft_labels
from veilkit.errors import ConfigError, DataError
from veilkit.methods.fro.canvas import PrincipalComponents
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, channels_last
from veilkit.training.reid_config import PLAIN, ReidConfig
from veilkit.types import Split

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


# The pool's own recipe, with soft targets. A pool is nearly sure of most pictures; at a higher temperature a student
# learns from its small logits as well: who looks like whom (measured in docs/methods/fro.md).
STUDENT: ReidConfig = replace(
    PLAIN, backbone="mobilenetv2", epochs=30, temperature=4.0, augment=AugmentConfig(erase=0.0)
)


def load_synthetic(folder: Path) -> tuple[Split, Tensor]:
    """A synthetic folder: its pictures, each labelled by its own folder, and the logits (N, C) that go with them."""
    labels = read_soft_labels(folder)
    if labels is None:
        raise DataError(f"{folder} holds no {SOFT_LABELS}; give a teacher whose logits on the pictures are matched")
    split = load_folder(folder, "folder", "synthetic")
    return split, torch.from_numpy(labels.of([record.path for record in split.records]))


def views_of(split: Split, targets: Tensor) -> Tensor | Views:
    """What a student of some pictures of a synthetic folder learns: its views of them, or else just `targets`."""
    labels = read_soft_labels(split.root)
    views = None if labels is None else labels.views_of([record.path for record in split.records])
    return targets if views is None else views
