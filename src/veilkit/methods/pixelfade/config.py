"""What PixelFade can be told, and the three ways of doing it: ours, as printed, as released."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

from veilkit.configs import check_ranges
from veilkit.errors import ConfigError
from veilkit.methods.expert_guided.method import ExpertSettings


@dataclass(frozen=True, slots=True)
class PixelFadeConfig(ExpertSettings):
    """Settings of PixelFade, beside those of the expert (expert, batch, spread).

    optimisation: "approach" is ours: begin with noise, and move only until the expert takes it for the original.
    "replace" is the paper's Algorithm 1; "perturb" and "l1" take the place of its replacements in Figure 4.
    steps: T, at most. finish: further steps at most, through the 8-bit quantiser, until the constraint holds.
    threshold, threshold_kind: epsilon of Eq. 1, as the sum of squared differences of one picture's features ("sum"),
    of its features brought to length 1, which are then also what is optimised ("unit", as AGW compares them), as the
    mean over the dimensions ("mean", as released), or as a fraction of the spread ("relative").
    space: where noise is N(0, 1) and steps are measured: "pixel" is (value - 0.5) / sigma, "expert" the expert's own
    normalised space. sigma: standard deviation of noise in "pixel", on the scale [0, 1].

    Of ours: rate, of Adam, on the scale [0, 1], falling to a tenth by a cosine; reach, how far a value may move from
    its noise.

    Of Algorithm 1: masks (I); decay (alpha, Eq. 3); step (beta, Eq. 5), and unmet_step in its place where the
    constraint does not hold; every_step, a gradient step in each iteration, as released, instead of only where the
    constraint does not hold; startup, first steps that always replace; rest, last steps that never do; normalise, by
    what a gradient is divided: its squared L2 norm (Eq. 3) or its mean magnitude (as released); masks_per, "value"
    (each channel by itself) or "pixel"; noise, drawn "once" or "afresh" for each replacement; clamp, of the noise, to
    the range of a picture ("valid") or of the original's own values ("image"; the released code takes the batch's).

    Ablations: noise_weight, share of noise in the objective image, the rest is the original (Table 3); objective,
    what pixels are replaced by (Table 4): "noise", a generated "other" person, "zero", or "contrast", the value
    farthest from the original; amplitude of "perturb"; l1_weight of "l1", on the mean absolute difference (Figure 4).
    """

    optimisation: Literal["approach", "replace", "perturb", "l1"] = "approach"
    steps: int = 600
    finish: int = 0
    threshold: float = 0.05
    threshold_kind: Literal["relative", "unit", "sum", "mean"] = "relative"
    space: Literal["pixel", "expert"] = "pixel"
    sigma: float = 0.15
    rate: float = 0.02
    reach: float = 0.25
    masks: int = 5
    decay: float = 0.6
    step: float = 0.01
    unmet_step: float | None = None
    every_step: bool = False
    startup: int = 5
    rest: int = 5
    normalise: Literal["squared_l2", "mean_abs"] = "squared_l2"
    masks_per: Literal["value", "pixel"] = "value"
    noise: Literal["once", "afresh"] = "once"
    clamp: Literal["valid", "image"] = "valid"
    noise_weight: float = 1.0
    objective: Literal["noise", "other", "zero", "contrast"] = "noise"
    amplitude: float = 0.1
    l1_weight: float = 1.0

    def __post_init__(self) -> None:
        ExpertSettings.__post_init__(self)
        check_ranges(self, {
            "steps": (1, 100_000), "finish startup rest": (0, 100_000), "threshold l1_weight": (0, 1e9),
            "sigma": (0.01, 10), "rate": (1e-6, 10), "reach": (1 / 255, 1), "masks": (1, 1000), "decay": (0, 0.9999),
            "step unmet_step": (1e-9, 1e9), "noise_weight": (0, 1), "amplitude": (0, 100),
        })  # fmt: skip
        if self.optimisation == "approach" and (self.objective != "noise" or self.noise_weight != 1):
            raise ConfigError(
                "objective and noise_weight belong to Algorithm 1: take --preset paper or released with them"
            )
        if self.optimisation == "replace" and not self.masks <= self.startup <= self.steps - self.rest:
            raise ConfigError(
                "startup must be at least masks and at most steps - rest, or values of the original would stay in "
                f"the picture, but got startup {self.startup}, masks {self.masks}, steps {self.steps} and rest "
                f"{self.rest}"
            )


PAPER = PixelFadeConfig(
    optimisation="replace", steps=100, threshold=0.03, threshold_kind="unit", space="expert", noise="afresh",
    finish=10,
)  # fmt: skip
RELEASED = PixelFadeConfig(
    optimisation="replace", steps=100, threshold=0.03, threshold_kind="mean", space="expert", noise="once",
    clamp="image", every_step=True, unmet_step=0.04, normalise="mean_abs", finish=10,
)  # fmt: skip
