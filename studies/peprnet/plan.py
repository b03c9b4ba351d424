"""What PEPR-Net's study computes: its options, the encoders that it compares, and the noise on their features."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field, replace
from pathlib import Path
from typing import Any

from veilkit.attacks.people_split import FEWEST
from veilkit.configs import with_settings
from veilkit.errors import ConfigError
from veilkit.experts import Embedder
from veilkit.experts.names import file_sha256
from veilkit.lookup import Lookup
from veilkit.methods.peprnet.config import SMALL, PeprNetConfig
from veilkit.methods.peprnet.feature_noise import KINDS, NoiseKind

BASELINE, STAGE1, ALTERNATING, STRONG, WIDE = "baseline", "stage1", "alternating", "alternating-strong", "stage1-512"
FROZEN, DPSGD, HEADLESS = "frozen", "dpsgd", "head-blur"
NOISY = "stage1-noisy"  # features of stage 1 with noise, beside those without
CURVE, TRADE, PLANE = "rank-1-epsilon.svg", "privacy-utility.svg", "t-sne.svg"
RIVALS = (FROZEN, DPSGD, HEADLESS)
PAPERS_NOISE = "paper"
_ONLY = {"adversary": "none"}

# Tables 1 to 4, and what they leave open: the alternating adversary, at the paper's weight and at one that is felt;
# Eq. 2 as printed; and an encoder of 512 features, for the curve.
MODELS: Lookup[Mapping[str, object]] = Lookup(
    "encoder",
    [
        (BASELINE, {"deid": "none", **_ONLY}),
        ("clean", {"deid": "clean", **_ONLY}),
        ("blur", {"deid": "blur", **_ONLY}),
        ("obfuscate", {"deid": "obfuscate", **_ONLY}),
        ("pixelate", {"deid": "pixelate", **_ONLY}),
        ("adversary", {"deid": "none", "adversary": "uniform"}),
        (STAGE1, {"deid": "pixelate", "adversary": "uniform"}),
        (ALTERNATING, {"deid": "pixelate", "adversary": "alternating"}),
        (STRONG, {"deid": "pixelate", "adversary": "alternating", "adversary_weight": 1.0}),
        ("printed", {"deid": "pixelate", "adversary": "uniform", "deid_sum": True}),
        (WIDE, {"deid": "pixelate", "adversary": "uniform", "features": 512}),
    ],
)
# Eleven encoders are trained, so that each has fewer epochs than the preset: about six minutes of one core.
METHOD = replace(SMALL, epochs=6)
_CHOICES = (
    "models", "rivals", "noisy", "mechanisms", "epsilons", "paper_epsilons", "curve_epsilons", "averaged",
    "reconstructed", "drawn",
)  # fmt: skip # each entry of these has a cell of its own


@dataclass(frozen=True, slots=True)
class PeprStudyConfig:
    """people: of the test part, the first by name; None is everybody. training_people: the same of the training part.

    method: of all trainings, but for what tells the encoders apart (`MODELS`). models, rivals: those compared.
    noisy: encoders whose features get noise (Tables 2 to 4), by `mechanisms` at `epsilons`, and by the paper's at
    `paper_epsilons`. delta, paper_delta: of Gaussian noise, sound and as in the paper.
    curve_epsilons, draws: of the curve of Rank-1 at 128 and 512 features, and releases that it averages over.
    averaged: mechanisms whose releases are averaged, at `averaging_epsilon`.
    reconstructed: encoders whose features are decoded to pictures, by an attacker of `updates` x `batch` and `width`
    channels, on at most `attacked` pictures. drawn: people in the t-SNE. dp_epsilon: of DP-SGD's training.
    """

    people: int | None = None
    training_people: int | None = None
    method: PeprNetConfig = field(default_factory=lambda: METHOD)
    models: tuple[str, ...] = tuple(MODELS)
    rivals: tuple[str, ...] = RIVALS
    noisy: tuple[str, ...] = (BASELINE, STAGE1)
    mechanisms: tuple[str, ...] = ("privunit", "gaussian", "laplace")
    epsilons: tuple[float, ...] = (1.0, 4.0, 16.0, 64.0)
    paper_epsilons: tuple[float, ...] = (0.1, 0.5, 1.0)
    delta: float = 1e-6
    paper_delta: float = 0.01
    curve_epsilons: tuple[float, ...] = (1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0)
    draws: int = 10
    averaged: tuple[str, ...] = ("privunit", "gaussian")
    averaging_epsilon: float = 4.0
    reconstructed: tuple[str, ...] = (BASELINE, "clean", "pixelate", STAGE1, STRONG)
    attacked: int = 2000
    updates: int = 2000
    batch: int = 16
    width: int = 16
    drawn: int = 10
    dp_epsilon: float = 8.0
    dp_epochs: int = 30
    seed: int = 0

    def __post_init__(self) -> None:
        for name in (*self.models, *self.noisy, *self.reconstructed):
            _ = MODELS[name]
        if not {BASELINE, *self.noisy, *self.reconstructed} <= set(self.models):
            raise ConfigError(
                f"models must hold {BASELINE}, and all of noisy and reconstructed, but got {self.models}"
            )
        for kind in (*self.mechanisms, *self.averaged):
            if kind not in KINDS or kind == PAPERS_NOISE:
                raise ConfigError(f"mechanisms must be sound ones, privunit, gaussian or laplace, but got {kind!r}")
        if unknown := set(self.rivals) - set(RIVALS):
            raise ConfigError(f"rivals must be some of {', '.join(RIVALS)}, but got {', '.join(sorted(unknown))}")
        if self.people is not None and self.people < 2 * FEWEST:
            raise ConfigError(f"people must be at least {2 * FEWEST}, half of whom teach, but got {self.people}")
        if min(self.draws, self.drawn, self.updates, self.attacked) < 1:
            raise ConfigError("draws, drawn, updates and attacked must be at least 1")
        for name in self.models:  # a setting that does not go is told before hours of work
            self.trained(name)

    def trained(self, name: str) -> PeprNetConfig:
        """The configuration of one encoder's training."""
        return with_settings(self.method, MODELS[name])

    def deltas(self, kind: NoiseKind) -> float:
        """The delta that goes with a kind of noise."""
        return {"gaussian": self.delta, "paper": self.paper_delta}.get(kind, 0.0)

    def noises(self) -> list[tuple[NoiseKind, float]]:
        """Kinds of noise and their epsilons, in the tables' order."""
        sound = [(kind, epsilon) for kind in KINDS if kind in self.mechanisms for epsilon in self.epsilons]
        return [*sound, *(("paper", epsilon) for epsilon in self.paper_epsilons)]

    @property
    def dimensions(self) -> dict[int, str]:
        """For each length of features the encoder whose Rank-1 is drawn against epsilon."""
        return {self.trained(name).features: name for name in (STAGE1, WIDE) if name in self.models}

    def curves(self) -> list[tuple[int, NoiseKind]]:
        """The lines of that figure."""
        kinds = [kind for kind in KINDS if kind in (*self.mechanisms, PAPERS_NOISE)]
        return [(dimension, kind) for dimension in self.dimensions for kind in kinds]

    @property
    def changed(self) -> tuple[str, ...]:
        """The encoders that are compared with the baseline."""
        return tuple(name for name in self.models if name not in (BASELINE, WIDE))

    @property
    def pictured(self) -> tuple[str, ...]:
        """The encoders whose decoder's pictures are released and attacked."""
        return tuple(name for name in ("clean", STAGE1) if name in self.models)

    @property
    def plotted(self) -> tuple[str, ...]:
        """The encoders whose features are drawn in the plane."""
        return tuple(name for name in (BASELINE, STAGE1, STRONG) if name in self.models)

    @property
    def decoded(self) -> tuple[str, ...]:
        """Whose features are decoded: the encoders of `reconstructed`, and stage 1 with noise."""
        return (*self.reconstructed, NOISY) if STAGE1 in self.reconstructed else self.reconstructed


def cell_names(config: PeprStudyConfig) -> tuple[str, ...]:
    """All cells, in the order in which they are computed."""
    return (
        *(f"training/{name}" for name in config.models),
        *(f"model/{name}" for name in config.models),
        *(f"rival/{name}" for name in config.rivals),
        *(f"change/{name}" for name in config.changed),
        *(f"stage2/{name}/{kind}/{epsilon:g}" for name in config.noisy for kind, epsilon in config.noises()),
        *(f"curve/{dimension}/{kind}" for dimension, kind in config.curves()),
        *(f"averaging/{kind}" for kind in config.averaged),
        *(f"reconstruction/{name}" for name in config.decoded),
        *(f"membership/{name}" for name in config.models),
        *(f"plane/{name}" for name in config.plotted),
        *(f"pictures/{name}" for name in config.pictured),
    )


def scale(config: PeprStudyConfig) -> str:
    """What the figures are of."""
    training, tested = ("all" if people is None else people for people in (config.training_people, config.people))
    return (
        f"{training} training and {tested} test people, {config.method.backbone} that begins as "
        f"models/cuhk03_mobilenetv2, {config.method.epochs} epochs at {config.method.size[0]}x{config.method.size[1]}"
    )


def study_settings(
    config: PeprStudyConfig, judge: Embedder, init: Path | None, public_init: Path | None = None
) -> dict[str, Any]:
    """All that the cells of a study depend on, besides the pictures. More encoders, noise or points may be added."""
    shared = {name: value for name, value in asdict(config).items() if name not in _CHOICES}
    starts = {"init": init, "public init": public_init or init}
    return {
        **shared, "judge": judge.info.fingerprint,
        **{name: None if file is None else file_sha256(file) for name, file in starts.items()},
    }  # fmt: skip
