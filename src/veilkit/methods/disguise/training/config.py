"""What a training of Disguise is made of."""

from __future__ import annotations

from dataclasses import dataclass, field

from veilkit.configs import check_range
from veilkit.errors import ConfigError
from veilkit.experts.finders import FaceSettings
from veilkit.methods.disguise.critics import CriticsConfig, GanLoss
from veilkit.methods.disguise.identity_transforms import TransformConfig
from veilkit.methods.disguise.swapper import SwapperConfig

MOST_STEPS = 10**9
_MOST_EXPERTS = 64


@dataclass(frozen=True, slots=True)
class DisguiseTrainingConfig(FaceSettings):
    """The defaults are the paper's, and SimSwap's where it is silent (weights of reconstruction and matching).

    identity: experts (of `veilkit experts list`, `faces.FACE_EMBEDDERS` or a .safetensors file) that say who somebody
    is; gradients must pass through them. views: the part of a crop that each is used to: `arcface`, `dlib` or
    `whole`; one is for all. A single expert whose features have transform.dim numbers is the identity; otherwise an
    ensemble joins them. centred: each expert's features are taken about their mean over the training pictures.
    utility: experts (also of `faces.PREDICTORS`) whose features must stay, shown the whole crop; utility_weights: of
    each. finder, second, hide, unfound: see `FaceSettings`; the training needs only the finder.
    transform, swapper, critics: the networks. id_weight .. kld_weight: of the losses;
    natural_weight: of synthetic identities being distributed as real ones, which is ours. gan: `hinge`, or `log` as
    printed. shaken: share of the side by which crops are jittered before identity experts see them, which is ours.
    swapper_steps, joint_steps: of the two phases; ensemble_steps: before them, where experts are joined;
    transform_steps: between them, of the transform alone. batch, rate:
    Adam's, with betas (0, 0.999).
    validation: share of the people set aside to be watched. check_every, save_every: steps.
    """

    identity: tuple[str, ...] = ()
    views: tuple[str, ...] = ("arcface",)
    centred: bool = False
    utility: tuple[str, ...] = ()
    utility_weights: tuple[float, ...] = (2.0, 2.0)
    transform: TransformConfig = field(default_factory=TransformConfig)
    swapper: SwapperConfig = field(default_factory=SwapperConfig)
    critics: CriticsConfig = field(default_factory=CriticsConfig)
    id_weight: float = 30.0
    deid_weight: float = 30.0
    mix_weight: float = 10.0
    kld_weight: float = 0.2
    natural_weight: float = 0.0
    reconstruction_weight: float = 10.0
    matching_weight: float = 10.0
    gan_weight: float = 1.0
    gan: GanLoss = "hinge"
    shaken: float = 0.0
    ensemble_steps: int = 2000
    swapper_steps: int = 1_000_000
    transform_steps: int = 0
    joint_steps: int = 100_000
    batch: int = 4
    rate: float = 1e-4
    validation: float = 0.1
    check_every: int = 5000
    save_every: int = 1000
    seed: int = 0

    def __post_init__(self) -> None:
        if self.swapper.dim != self.transform.dim:
            raise ConfigError(
                f"swapper.dim and transform.dim are the length of one vector, but got {self.swapper.dim} and "
                f"{self.transform.dim}"
            )
        if len(self.utility) > len(self.utility_weights):
            raise ConfigError(
                f"expected a weight for each of {len(self.utility)} utility experts, "
                f"but got {len(self.utility_weights)}: set utility_weights"
            )
        for name in ("identity", "views", "utility", "utility_weights"):
            if len(getattr(self, name)) > _MOST_EXPERTS:
                raise ConfigError(f"{name} must name at most {_MOST_EXPERTS}, but got {len(getattr(self, name))}")
        for name in ("id", "deid", "mix", "kld", "natural", "reconstruction", "matching", "gan"):
            check_range(f"{name}_weight", getattr(self, f"{name}_weight"), 0.0, 1e6)
        for weight in self.utility_weights:
            check_range("utility_weights", weight, 0.0, 1e6)
        for name in ("swapper_steps", "transform_steps", "joint_steps"):
            check_range(name, getattr(self, name), 0, MOST_STEPS)
        for name in ("ensemble_steps", "check_every", "save_every"):
            check_range(name, getattr(self, name), 1, MOST_STEPS)
        check_range("batch", self.batch, 2, 4096)
        check_range("rate", self.rate, 1e-12, 1.0)
        check_range("shaken", self.shaken, 0.0, 0.2)
        check_range("validation", self.validation, 0.01, 0.9)

    @property
    def steps(self) -> int:
        """Of both phases."""
        return self.swapper_steps + self.joint_steps
