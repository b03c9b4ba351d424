"""The silhouette: where in a protected picture does the person stand? (L1)"""

from __future__ import annotations

from dataclasses import asdict, dataclass, field
from pathlib import Path

import numpy as np
import torch
import torch.nn.functional as F
from numpy.typing import NDArray
from torch import Tensor

from veilkit.attacks.base import Attack, AttackTarget, Need
from veilkit.attacks.headline import Cost, Headline
from veilkit.attacks.intervals import mean_score
from veilkit.attacks.learned.learning import Learning, digest, learn, unfinished
from veilkit.attacks.people_split import divide, pixels
from veilkit.attacks.target import Budget, Masks, given
from veilkit.metrics import auc
from veilkit.networks.unet import UNet, UNetConfig
from veilkit.rng import Randomness
from veilkit.training.fitting import Fitted, seeded
from veilkit.types import Evidence, Level, Reason, ReasonCode

Values = NDArray[np.float32]
_CLEAN = 0.6  # AUC beyond place that must be reached on the originals themselves
_ENOUGH = 0.95  # AUC beyond place after which more training would show nothing new
_CHUNK = 64
_SMOOTHED = 5  # pixels a side over which energy is averaged
_EVEN = 0.5


@dataclass(frozen=True, slots=True)
class SilhouetteConfig:
    """The size of the network that marks people, and how it learns."""

    width: int = 16
    depth: int = 3
    learning: Learning = field(default_factory=Learning)


class Silhouette(Attack):
    """Says for each pixel of a protected picture whether the person is there; AUC of person against background.

    Two ways: local energy (how far values stray from the picture's mean, smoothed), which needs no learning but its
    sign, and a small network that learned from other people's masks. People stand in the middle, which a network
    learns from noise as well. The headline is therefore the AUC *beyond place*: a pixel's value is replaced by its
    rank among all pictures at the same place, so that noise scores 0.5. The plain AUC stands beside it, with that of
    the mean mask, which looks at no picture at all.

    The masks come with the target and must not be taken from the release: whoever draws pictures knows them, for
    others `foreground` estimates them from the originals. Gates: 0.6 beyond place on the originals, 0.5 on noise.
    """

    name = "silhouette"
    summary = "marks where the person stands in the protected picture"
    level = Level.L1
    cost = Cost.TRAINING
    tells_identity = False
    headline = Headline(
        "Outlines of people",
        "A network that learned from other people's outlines tells a pixel of the person from one of the background "
        "in {value} of such pairs{interval}, beyond what the place in the picture tells",
        "tells",
        metric="AUC beyond place",
    )
    needs = frozenset({Need.IMAGES, Need.PAIRS, Need.MASKS, Need.BUDGET})

    def __init__(self, config: SilhouetteConfig | None = None) -> None:
        self.config = config or SilhouetteConfig()

    def run(self, target: AttackTarget) -> Evidence:
        """AUC beyond place and AUC, learned and by energy, the mean over pictures."""
        division = divide(target)
        victims, public = division.victims, division.public
        if division.missing:
            return self.not_applicable(*division.missing)
        if public.masks is None:
            return self.not_applicable(Reason(ReasonCode.NO_MASKS, "the public pairs come without masks"))
        masks = given(victims.masks)
        truth, lessons = _resized(masks, division.size), _resized(public.masks, division.size)
        mixed = np.flatnonzero(_mixed(truth))
        if not len(mixed) or not _mixed(lessons).any():
            text = "no picture shows both a person and a background"
            return self.not_applicable(Reason(ReasonCode.NOT_MEASURABLE, text))
        images, shown = pixels(public.protected, division.size), pixels(given(victims.protected), division.size)
        network, fitted = train_marker(images, lessons, public.people, self.config, given(target.budget), target.work)
        marked = mark(network, shown)
        energies = strength(shown, images, lessons)
        mean = np.broadcast_to(lessons.mean(axis=0, dtype=np.float32), truth.shape)
        people = None if victims.people is None else victims.people[mixed]
        floor = float(areas(mean, truth)[mixed].mean())
        rows = {
            "AUC beyond place": (areas(beyond_place(marked), truth), f"chance {_EVEN:.0%}"),
            "AUC beyond place, energy": (areas(beyond_place(energies), truth), f"chance {_EVEN:.0%}"),
            "AUC": (areas(marked, truth), f"the mean mask of other people scores {floor:.3f}"),
            "AUC, energy": (areas(energies, truth), f"chance {_EVEN:.0%}"),
        }
        scores = tuple(
            mean_score(metric, values[mixed], people, rng=target.rng, note=note)
            for metric, (values, note) in rows.items()
        )
        details = {
            **division.details,
            "chance": {metric: _EVEN for metric in rows if metric != "AUC"},
            "mean mask": floor,
            "masks": masks.source,
            "pictures scored": len(mixed),
        }
        invalid = unfinished(fitted, scores[0].value, _ENOUGH)
        return Evidence(self.name, self.level, scores, invalid=invalid, details=details)

    def clean_bound(self, target: AttackTarget) -> float | None:
        """0.6: how well people can be told from their background in the originals is not known."""
        return _CLEAN


def energy(images: Tensor) -> Values:
    """(N, H, W): how far uint8 images (N, 3, H, W) stray from their mean colour, averaged over 5 x 5 pixels."""
    found = []
    for part in torch.split(images, _CHUNK):
        values = part.float() / 255
        strays = (values - values.mean(dim=(2, 3), keepdim=True)).abs().mean(dim=1, keepdim=True)
        smooth = F.avg_pool2d(strays, _SMOOTHED, 1, _SMOOTHED // 2, count_include_pad=False)
        found.append(smooth[:, 0])
    return torch.cat(found).numpy()


def strength(images: Tensor, lessons: Tensor, masks: NDArray[np.bool_]) -> Values:
    """(N, H, W): local energy of `images`, or minus it where people have less of it in `lessons` with `masks`."""
    return energy(images) * _sign(energy(lessons), masks)


def beyond_place(values: Values) -> Values:
    """(N, H, W) -> ranks in (0, 1] among the N values at the same place; ties share their mean rank."""
    from scipy.stats import rankdata  # half a second that only this attack has to pay for

    return np.asarray(rankdata(values, axis=0) / len(values), dtype=np.float32)


def areas(values: Values, masks: NDArray[np.bool_]) -> NDArray[np.float64]:
    """(N,): how often a pixel of the person has a greater value than one of the background; NaN if one lacks."""
    return np.array(
        [
            auc(value[mask], value[~mask]) if 0 < mask.sum() < mask.size else np.nan
            for value, mask in zip(values, masks, strict=True)
        ]
    )


def train_marker(
    images: Tensor,
    masks: NDArray[np.bool_],
    people: NDArray[np.int64],
    config: SilhouetteConfig,
    budget: Budget,
    work: Path | None = None,
) -> tuple[UNet, Fitted]:
    """A network that marks people, fitted by cross-entropy to uint8 images (N, 3, H, W) and masks (N, H, W)."""
    shape = UNetConfig(config.width, config.depth, outputs=1)
    network = seeded(lambda: UNet(shape), Randomness.from_seed(budget.seed).child(Silhouette.name))
    wanted = torch.from_numpy(masks)

    def loss(at: NDArray[np.int64]) -> Tensor:
        logits = network.logits(images[at].float() / 255)[:, 0]
        return F.binary_cross_entropy_with_logits(logits, wanted[at].float())

    facts = {"data": digest(images, masks), "network": asdict(shape)}
    fitted = learn(network, loss, people, config.learning, budget, name=Silhouette.name, facts=facts, work=work)
    return network, fitted


@torch.no_grad()
def mark(network: UNet, images: Tensor) -> Values:
    """(N, H, W): probability of a person being there, in whole per cents, for uint8 images (N, 3, H, W).

    Two pixels of which the network is sure are so equals, and their ranks say nothing that it does not.
    """
    found = [network(part.float() / 255)[:, 0].round(decimals=2) for part in torch.split(images, _CHUNK)]
    return torch.cat(found).numpy()


def _sign(values: Values, masks: NDArray[np.bool_]) -> int:
    """Whether people have more (1) or less (-1) energy than their background, as public pictures show."""
    return 1 if np.nanmean(areas(values, masks)) >= _EVEN else -1


def _mixed(masks: NDArray[np.bool_]) -> NDArray[np.bool_]:
    share = masks.mean(axis=(1, 2))
    found: NDArray[np.bool_] = (share > 0) & (share < 1)
    return found


def _resized(masks: Masks, size: tuple[int, int]) -> NDArray[np.bool_]:
    """Masks at another size, (N, H, W), the nearest value each."""
    if masks.values.shape[1:] == size:
        return masks.values
    values = torch.from_numpy(masks.values)[:, None].float()
    found: NDArray[np.bool_] = (F.interpolate(values, size=size, mode="nearest-exact")[:, 0] > _EVEN).numpy()
    return found
