"""FRO: synthetic pictures assembled from what a classifier knows of many people (papers: see docs/methods/fro.md).

Knowledge pooling trains a classifier on the originals, or takes one that is brought. Feature assembling makes new
pictures from noise, each for one person's softened label. Knowledge replay, in `training.student`, trains a student
on them. No picture of the release belongs to an original.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Literal, Self, TypeAlias

import torch
from torch import Tensor

from veilkit.checkpoint import half_precision, load_checkpoint, save_checkpoint, understood
from veilkit.configs import as_dict, check_range, digest, from_json, read_facts, with_settings
from veilkit.errors import CheckpointError, ConfigError, DataError
from veilkit.methods.base import Synthesiser
from veilkit.methods.fro.assembly import AssemblyConfig, Statistics, assemble
from veilkit.methods.fro.canvas import FEWEST, PrincipalComponents
from veilkit.methods.fro.pool import Pool
from veilkit.rng import Randomness
from veilkit.training.loop import keep_memory
from veilkit.training.reid_config import PLAIN, ReidConfig
from veilkit.types import Release, Split

POOL = replace(PLAIN, backbone="mobilenetv2", epochs=30)
Kind: TypeAlias = Literal["noise", "looks", "leaves", "sure-leaves", "figures", "sure-figures"]
KINDS: Mapping[Kind, Mapping[str, Any]] = {
    "noise": {"start": "noise", "alpha": 0.2, "rate": 0.05},
    "looks": {"start": "looks", "alpha": 3.0, "rate": 0.02},
    "leaves": {"start": "leaves", "alpha": 3.0, "rate": 0.02},
    "sure-leaves": {"start": "leaves", "alpha": 0.2, "rate": 0.02},
    "figures": {"start": "figures", "alpha": 3.0, "rate": 0.02},
    "sure-figures": {"start": "figures", "alpha": 0.2, "rate": 0.02},
}


@dataclass(frozen=True, slots=True)
class FroConfig:
    """scale: synthetic pictures per original (the paper's beta). group: pictures whose statistics are taken together.

    assembly: how a group is made. kinds: ours; where any are named, each group is of one of them, drawn by the key,
    and begins and is weighed as `KINDS` says. pool: how the classifier is trained (cross-entropy alone, as in the
    paper).
    """

    scale: float = 1.0
    group: int = 64
    assembly: AssemblyConfig = field(default_factory=AssemblyConfig)
    kinds: tuple[Kind, ...] = ()
    pool: ReidConfig = POOL

    def __post_init__(self) -> None:
        check_range("scale", self.scale, 0.001, 1000)
        check_range("group", self.group, 2, 4096)


PAPER = FroConfig()
DEEP_INVERSION = AssemblyConfig(
    rate=0.2, betas=(0.5, 0.9), decay="cosine", first_layer=10.0, variation=1e-4, energy=1e-5, roll=4, flip=True,
    coarse=0.25, clip=True, best=True,
)  # fmt: skip
# Ours, for a CPU: a spectrum needs few steps, and holds plain colours as of clothes, which steps on pixels leave out.
SPECTRAL = AssemblyConfig(
    temperature=1.0, alpha=0.2, steps=40, rate=0.05, betas=(0.5, 0.9), decay="cosine", flip=True, clip=True,
    spectrum=1.0,
)  # fmt: skip
# Started where a body or a face already stands, in smaller steps, and bound to the statistics far more than to a
# label: such a picture resembles many people and stands for nobody, and its soft label tells whom it resembles how
# much.
PRINCIPAL = replace(SPECTRAL, **KINDS["looks"])
# A student learns most from pictures that are unlike each other: several kinds, none of which need be the best alone.
VARIED: tuple[Kind, ...] = ("noise", "looks", "leaves", "noise", "looks", "sure-leaves")
VARIED_PEOPLE: tuple[Kind, ...] = ("noise", "looks", "figures", "noise", "looks", "sure-figures")
_COMPONENTS = "looks."  # what the file's tensors of them begin with


class Fro(Synthesiser[FroConfig]):
    """Feature recombining for obfuscation."""

    name = "fro"
    summary = "synthetic pictures reassembled from a classifier's knowledge of many people"
    default = FroConfig()
    presets = {  # noqa: RUF012
        "paper": PAPER,
        "paper-soft": replace(PAPER, assembly=replace(PAPER.assembly, temperature=0.5, softening=0.2)),
        "deepinversion": replace(PAPER, assembly=DEEP_INVERSION),
        "spectral": replace(PAPER, assembly=SPECTRAL),
        "looks": replace(PAPER, assembly=PRINCIPAL),
        "varied": replace(PAPER, assembly=SPECTRAL, kinds=VARIED),
        "varied-people": replace(PAPER, assembly=SPECTRAL, kinds=VARIED_PEOPLE),
    }

    def __init__(self, config: FroConfig | None = None, pool: Pool | None = None) -> None:
        super().__init__(config)
        self._pool = pool

    @property
    def pool(self) -> Pool:
        """The classifier; raises where none has been trained or brought."""
        if self._pool is None:
            raise ConfigError("fro needs a classifier: train one with `veilkit fit fro`, and name it with --model")
        return self._pool

    def fit(self, split: Split, *, work_dir: Path | None = None, init: Path | None = None) -> Self:
        """Knowledge pooling: train the classifier on the labelled people of `split`."""
        if work_dir is None:
            raise ConfigError("fro trains a classifier, which needs a work folder for its state")
        from veilkit.training.pixels import read_pixels  # only who trains pays for these imports
        from veilkit.training.reid import train_network

        network, _ = train_network(split, self.config.pool, work_dir=work_dir, init=init)
        Statistics(network)  # refuses a network without batch normalisation
        counts = [0] * len(split.identities)
        places = {name: index for index, name in enumerate(split.identities)}
        for record in split.records:
            counts[places[str(record.identity)]] += 1
        self._pool = Pool.of(network, split.identities, counts)
        if len(split) >= FEWEST:
            self._pool.components = PrincipalComponents.of(read_pixels(split, self.config.pool.size))
        return self

    def after_fit(self, out: Path) -> tuple[str, ...]:
        """Who may have the file."""
        return ("Keep that file as private as the pictures: it names the people, and it knows them.",)

    def plan(self, counts: Mapping[str, int], *, rng: Randomness) -> list[tuple[str, ...]]:
        """Whom each picture stands for, group by group.

        counts: originals of each person. A person's share is `scale` times that, rounded so that the whole fits.
        Every group is drawn from all people alike, since its statistics must look like those of the whole set.
        """
        people = sorted(person for person in counts if person in self.pool.place)
        if not people:
            raise DataError(
                "none of the people in these pictures is known to the classifier; give the pictures that it was "
                "trained on, with the same labels"
            )
        shares: list[str] = []
        owed = 0.0
        for person in people:
            owed += self.config.scale * counts[person]
            made = round(owed) - len(shares)
            shares += [person] * made
        order = rng.child("plan").permutation(len(shares))
        drawn = [shares[index] for index in order]
        size = self.config.group
        groups = [drawn[start : start + size] for start in range(0, len(drawn), size)]
        if len(groups) > 1 and len(groups[-1]) < size // 2:  # too few for statistics of their own
            last = groups.pop()
            groups[-1] += last
        return [tuple(group) for group in groups]

    def synthesise(self, items: Sequence[str], people: Sequence[str], *, rng: Randomness) -> Release:
        """Feature assembling: one picture for each of `people`, whose statistics are taken together."""
        keep_memory()
        pool = self.pool
        unknown = sorted({person for person in people if person not in pool.place})
        if unknown:
            raise DataError(f"the classifier does not know {len(unknown)} of the people asked for")
        classes = torch.tensor([pool.place[person] for person in people])
        assembly = self.config.assembly
        if self.config.kinds:
            kind = self.config.kinds[rng.child("kind", *items).integer(0, len(self.config.kinds))]
            assembly = replace(assembly, **KINDS[kind])
        images, _ = assemble(
            pool.classifier, classes, len(pool.people), pool.size, mean=pool.mean, std=pool.std,
            config=assembly, rng=rng, items=tuple(items), components=pool.components,
        )  # fmt: skip
        return Release(images=images)

    @property
    def classes(self) -> tuple[str, ...]:
        """The people of the classifier."""
        return self.pool.people

    def soft_labels(self, images: Tensor) -> Tensor:
        """The classifier's logits (N, C) on images (N, 3, H, W): what a student learns from."""
        return self.pool.logits(images)

    def fingerprint(self) -> str:
        """A hash of the configuration and of the classifier."""
        return f"{self.name}:{digest(self.config)}:{self._pool.sha256 if self._pool else 'no pool'}"

    def reconfigured(self, preset: str | None = None, settings: Mapping[str, object] | None = None) -> Self:
        """The same classifier under other settings of the synthesis; how it was trained cannot change any more."""
        base = self.config if preset is None else replace(self.preset_table()[preset], pool=self.config.pool)
        config = with_settings(base, settings or {})
        if config.pool != self.config.pool:
            raise ConfigError("the classifier is trained already: settings of pool belong to `veilkit fit fro`")
        return type(self)(config, self._pool)

    def save(self, path: Path) -> None:
        """Write configuration and classifier. The file names the training people: it is as private as they are."""
        pool = self.pool
        if pool.network is None:
            raise CheckpointError(
                "only classifiers that veilkit trained can be written; keep your own in its own file"
            )
        config = {"method": as_dict(self.config), "pool": pool.describe()}
        tensors = dict(pool.network.state_dict())
        if pool.components is not None:
            tensors.update({f"{_COMPONENTS}mean": pool.components.mean, f"{_COMPONENTS}axes": pool.components.axes})
        save_checkpoint(path, half_precision(tensors), config, f"method/{self.name}")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote."""
        checkpoint, source = load_checkpoint(path, f"method/{cls.name}"), Path(path).name
        tensors = dict(checkpoint.tensors)
        with understood(source):
            facts = read_facts(checkpoint.config, {"method": dict, "pool": dict})
            config = from_json(cls.default, facts["method"])
            components = _read_components(tensors)
        pool = Pool.read(facts["pool"], tensors, source)
        pool.components = components
        return cls(config, pool)


def _read_components(tensors: dict[str, Tensor]) -> PrincipalComponents | None:
    """Take the looks out of a file's tensors; None where it has none."""
    mean, axes = (tensors.pop(f"{_COMPONENTS}{name}", None) for name in ("mean", "axes"))
    if mean is None and axes is None:
        return None
    if mean is None or axes is None or mean.ndim != 3 or len(mean) != 3 or axes.shape[1:] != mean.shape:
        raise ConfigError("the principal components must be a mean (3, h, w) and axes (K, 3, h, w)")
    if not mean.numel() or not mean.is_floating_point() or not axes.is_floating_point():
        raise ConfigError(
            f"the principal components must be fractions of pictures, but got {mean.dtype} and {axes.dtype}"
        )
    return PrincipalComponents(mean.float(), axes.float())
