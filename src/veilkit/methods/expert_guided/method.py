"""Methods that bind a release to one authorised expert: each picture is optimised under it, by itself."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Self, TypeVar

import numpy as np
import torch
from torch import Tensor

from veilkit.checkpoint import load_checkpoint, refuse_tensors, save_checkpoint, understood
from veilkit.configs import as_dict, check_range, digest, from_json, read_facts, with_settings
from veilkit.errors import ConfigError, DataError
from veilkit.experts import Embedder, load_expert
from veilkit.methods.base import Method
from veilkit.methods.expert_guided.feature_loss import AuthorisedExpert
from veilkit.methods.expert_guided.scheduler import Optimisation, optimise_side_by_side
from veilkit.rng import Randomness
from veilkit.training.loop import keep_memory
from veilkit.training.pixels import read_pixels
from veilkit.types import ImageBatch, Release, Split

_MOST = 512  # pictures: 130 thousand pairs, of which one number is wanted
_PEOPLE = 32
_SIZE = (128, 64)
_BATCH = 32


def spread(features: Tensor, people: Sequence[object]) -> float:
    """The mean of ||f(a) - f(b)||^2 over all pairs of pictures (N, D) of different people."""
    number = {person: place for place, person in enumerate(dict.fromkeys(people))}
    who = torch.tensor([number[person] for person in people])
    exact = features.double()
    squares = exact.square().sum(1)
    apart = squares[:, None] + squares[None] - 2 * exact @ exact.T
    different = who[:, None] != who[None]
    if not different.any():
        raise DataError("calibration needs pictures of at least two different people; say who is in them with labels")
    return apart[different].mean().item()


@torch.no_grad()
def spread_of_split(expert: Embedder, split: Split) -> float:
    """The spread over pictures of known people, up to 512 of them taken evenly."""
    known = [record for record in split.records if record.identity is not None]
    chosen = [
        known[int(place)] for place in np.unique(np.linspace(0, len(known) - 1, min(_MOST, len(known))).astype(int))
    ]
    pixels = read_pixels(Split(split.name, split.root, tuple(chosen)), _input_size(expert))
    features = [expert.embed(part.float().div(255)) for part in torch.split(pixels, _BATCH)]
    return spread(torch.cat(features), [record.identity for record in chosen])


@torch.no_grad()
def spread_of_generated(expert: Embedder) -> float:
    """The spread over 32 generated people, where nobody gave pictures: the same for everyone."""
    from veilkit.synthetic.people.render import render_person  # only who has no pictures pays for its import

    height, width = (max(side, least) for side, least in zip(_input_size(expert), (32, 16), strict=True))
    pictures = [
        torch.from_numpy(render_person(0, person, 1 + person % 4, 0, height=height, width=width).copy())
        for person in range(1, _PEOPLE + 1)
    ]
    images = torch.stack(pictures).permute(0, 3, 1, 2).float().div(255).contiguous()
    return spread(expert.embed(images), range(_PEOPLE))


def _input_size(expert: Embedder) -> tuple[int, int]:
    prepared = expert.info.preprocessing
    return _SIZE if prepared is None else prepared.size


_WAVES = 2  # pictures given at once, in times the slots: few wait, and few are lost by a kill


@dataclass(frozen=True, slots=True)
class ExpertSettings:
    """What all such methods are told. expert: a name of `veilkit experts list`, or a .safetensors file.

    batch: slots, that is pictures that go through the expert together. Their number changes last bits and thereby
    results; who shares them does not.
    spread: mean squared distance between different people's features. `veilkit fit` measures it on your pictures;
    with none, it is measured on generated people.
    """

    expert: str = "people"
    batch: int = 16
    spread: float | None = None

    def __post_init__(self) -> None:
        check_range("batch", self.batch, 1, 1024)
        if self.spread is not None:
            check_range("spread", self.spread, 1e-12, 1e12)


C = TypeVar("C", bound=ExpertSettings)


class ExpertBound(Method[C]):
    """Writes `protect` for a subclass that gives `optimise`, the optimisation of one picture.

    expert: one of your own in place of the configuration's; any embedder through which gradients reach the image.
    """

    random = True

    def __init__(self, config: C | None = None, expert: Embedder | None = None) -> None:
        super().__init__(config)
        self._brought = expert
        self._authorised: AuthorisedExpert | None = None
        self._spread: float | None = None
        self._fitted_to: str | None = None

    @abstractmethod
    def optimise(self, picture: Tensor, item: str, *, rng: Randomness) -> Optimisation:
        """The optimisation of one picture (3, H, W) in [0, 1]; random values derive from `rng` and `item`."""

    @property
    def unit_features(self) -> bool:
        """Whether features are brought to length 1 before they are compared."""
        return False

    @property
    def needs_spread(self) -> bool:
        """Whether the configuration measures anything in units of the spread."""
        return False

    @property
    def authorised(self) -> AuthorisedExpert:
        """The expert, loaded and tried at first use; raises ConfigError where it cannot supervise."""
        if self._authorised is None:
            expert = self._brought or load_expert(self.config.expert)
            if self._fitted_to not in (None, expert.info.fingerprint):
                raise ConfigError(
                    f"this {self.name} was calibrated for another expert than {expert.name!r}: calibrate it again "
                    f"with `veilkit fit {self.name}`, or set spread yourself"
                )
            self._authorised = AuthorisedExpert(expert, self.config.batch, unit=self.unit_features)
        return self._authorised

    @property
    def spread(self) -> float:
        """The configuration's spread, or that of generated people."""
        if self.config.spread is not None:
            return self.config.spread
        if self._spread is None:
            self._spread = spread_of_generated(self.authorised.expert)
        return self._spread

    def check(self) -> None:
        """Load and try the expert, and measure what is missing."""
        if self.authorised and self.needs_spread and self.spread <= 0:
            raise ConfigError(f"{self.authorised.expert.name}: all people of the calibration have the same features")

    def calibrate(self, split: Split) -> Self:
        """Measure the spread on the labelled people of `split`; nothing else is learned."""
        self.config = replace(self.config, spread=spread_of_split(self.authorised.expert, split))
        self._fitted_to = self.authorised.expert.info.fingerprint
        return self

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Optimise each picture by itself."""
        return self.protect_many([batch], rng=rng)[0]

    def protect_many(self, batches: Sequence[ImageBatch], *, rng: Randomness) -> list[Release]:
        """Optimise the pictures of all batches side by side, whatever their sizes."""
        keep_memory()
        self.check()
        lanes = len(self.authorised.lanes)
        made = optimise_side_by_side(
            (
                (rng.child("lane", item).integer(0, lanes), self.optimise(picture, item, rng=rng))
                for batch in batches
                for picture, item in zip(batch.images, batch.items, strict=True)
            ),
            self.authorised,
        )
        releases = []
        for batch in batches:
            own, made = made[: len(batch)], made[len(batch) :]
            images = torch.stack([each.image for each in own]) if own else batch.images
            reports = tuple(each.report for each in own)
            releases.append(Release(images=images, source_index=tuple(range(len(batch))), reports=reports))
        return releases

    @property
    def at_once(self) -> int:
        """Twice the slots."""
        return _WAVES * self.config.batch

    @property
    def expert_sha256(self) -> str:
        """SHA-256 of the expert's weights."""
        return self.authorised.expert.sha256

    def public_config(self) -> dict[str, Any]:
        """The configuration with the expert's name in place of a path."""
        return {**as_dict(self.config), "expert": self.authorised.expert.name}

    def fingerprint(self) -> str:
        """A hash of the configuration and of what the expert is, wherever it lies."""
        expert = self.authorised.expert.info.fingerprint
        return f"{self.name}:{digest(replace(self.config, expert=expert))}"

    def reconfigured(self, preset: str | None = None, settings: Mapping[str, object] | None = None) -> Self:
        """The same expert and calibration under another preset or other settings."""
        base = self.config
        if preset is not None:
            base = replace(self.preset_table()[preset], expert=base.expert, spread=base.spread)
        changed = type(self)(with_settings(base, settings or {}), self._brought)
        changed._fitted_to = None if "spread" in (settings or {}) else self._fitted_to
        return changed

    def with_expert(self, expert: Embedder) -> Self:
        """The same settings and calibration, with an expert of one's own in place of the configuration's."""
        changed = type(self)(self.config, expert)
        changed._fitted_to = self._fitted_to
        return changed

    def save(self, path: Path) -> None:
        """Write the configuration, and for which expert it was calibrated. A brought expert is not written."""
        config = {"method": as_dict(self.config), "fitted_to": self._fitted_to}
        save_checkpoint(path, {}, config=config, kind=f"method/{self.name}")

    @classmethod
    def load(cls, path: Path) -> Self:
        """Read what `save` wrote; the expert is loaded at first use."""
        checkpoint, source = load_checkpoint(path, kind=f"method/{cls.name}"), Path(path).name
        refuse_tensors(checkpoint.tensors, source)
        with understood(source):
            facts = read_facts(checkpoint.config, {"method": dict, "fitted_to": str | None})
            loaded = cls(from_json(cls.default, facts["method"]))
        loaded._fitted_to = facts["fitted_to"]
        return loaded
