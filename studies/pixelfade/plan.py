"""What PixelFade's study computes: its options, the releases that it compares, and the points of its grids."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Literal

from veilkit.attacks import ATTACKS
from veilkit.attacks.people_split import FEWEST
from veilkit.errors import ConfigError
from veilkit.experts import Embedder
from veilkit.lookup import Lookup
from veilkit.methods.pixelfade.method import PixelFade

OURS = "pixelfade"
FLOOR = "floor"  # of the outline: independent noise in place of a release
OUTLINED = (OURS, "paper", "released")
_CHOICES = (
    "attacks", "experts", "noise_weights", "objectives", "amplitudes", "l1_weights", "grid_steps", "step_sizes",
    "thresholds", "masks", "own_thresholds",
)  # fmt: skip # each entry of these has a cell of its own
AVIH, AVIH_RELEASED = "avih", "avih-released"
# The paper's Table 2, from the least that is recovered to the most; AVIH as its authors released it, as there.
ORDER = (OURS, AVIH_RELEASED, "pixelate", "blur")


@dataclass(frozen=True, slots=True)
class Variant:
    """A method as the study runs it. bound: to an authorised expert."""

    method: str
    preset: str | None = None
    settings: Mapping[str, object] = field(default_factory=dict)
    bound: bool = True


RELEASES: Lookup[Variant] = Lookup(
    "release",
    [
        (OURS, Variant("pixelfade")),
        ("paper", Variant("pixelfade", "paper")),
        ("released", Variant("pixelfade", "released")),
        (AVIH, Variant("avih")),
        (AVIH_RELEASED, Variant("avih", "released")),
        *((name, Variant(name, bound=False)) for name in ("pixelate", "blur", "noise")),
    ],
)


@dataclass(frozen=True, slots=True)
class PixelFadeStudyConfig:
    """people: of the test part, the first by name, whose pictures are searched for and attacked.

    queries, gallery: pictures of each of them, cameras in turn. public_people, public_pictures: of the training part,
    the first by name and pictures of each; attackers may protect these and learn from them, and the expert's spread
    is measured on them. methods: names of `RELEASES`. steps: of AVIH and of PixelFade as printed and as released;
    own_steps: of ours, at most, since it stops where the constraint holds.

    updates, batch: of every attacker who trains a network. width: of recovery networks and of those that mark people.
    attacks: on ours, beside recovery and outline. averaged: so many pictures are protected again, as often as the
    largest of `counts`. experts: further backbones, names or files (Table 7).

    grid_people: of the people, whose first query and gallery pictures make the grids; grid_preset: in which the grids
    of Tables 3 and 4 and Figures 4 and 5 change one setting each. own_thresholds: of ours, as shares of the spread.
    """

    people: int = 200
    queries: int = 2
    gallery: int = 2
    public_people: int = 100
    public_pictures: int = 4
    methods: tuple[str, ...] = (OURS, "paper", "released", "avih", "pixelate", "blur", "noise")
    steps: int = 100
    own_steps: int = 600
    updates: int = 800
    batch: int = 16
    width: int = 16
    attacks: tuple[str, ...] = ("recovery_features", "feature_decoder", "averaging", "retrained")
    averaged: int = 16
    counts: tuple[int, ...] = (1, 4, 16, 64)
    experts: tuple[str, ...] = ()
    grid_people: int = 40
    grid_preset: Literal["paper", "released"] = "released"
    noise_weights: tuple[float, ...] = (0.2, 0.6, 1.0)
    objectives: tuple[str, ...] = ("noise", "other", "zero", "contrast")
    amplitudes: tuple[float, ...] = (0.1, 0.5)
    l1_weights: tuple[float, ...] = (1e3, 1e5)
    grid_steps: tuple[int, ...] = (25, 50, 100)
    step_sizes: tuple[float, ...] = (0.005, 0.01, 0.02)
    thresholds: tuple[float, ...] = (0.03, 0.1, 0.3, 1.0)
    masks: tuple[int, ...] = (2, 5, 8)
    own_thresholds: tuple[float, ...] = (0.02, 0.05, 0.1)
    seed: int = 0

    def __post_init__(self) -> None:
        if OURS not in self.methods:
            raise ConfigError(f"methods must hold {OURS}, with which the others are compared")
        for name in self.methods:
            _ = RELEASES[name]
        for name in self.attacks:
            _ = ATTACKS[name]
        if min(self.people, self.public_people) < FEWEST:
            raise ConfigError(
                f"people and public_people must be at least {FEWEST}, for an attacker to learn from some and to be "
                f"scored on others, but got {self.people} and {self.public_people}"
            )
        if min(self.queries, self.gallery, self.public_pictures, self.averaged) < 1:
            raise ConfigError("queries, gallery, public_pictures and averaged must be at least 1")
        if not 2 <= self.grid_people <= self.people:
            raise ConfigError(
                f"grid_people must be at least 2 and at most people, but got {self.grid_people} and {self.people}"
            )
        names = [expert_name(expert) for expert in self.experts]
        if len(set(names)) < len(names):
            raise ConfigError(f"experts must have different names, but got {', '.join(names)}")
        for variant in grid_variants(self).values():  # a setting that does not go is told before hours of work
            configured(variant)

    @property
    def releases(self) -> tuple[str, ...]:
        """The names of all releases: the methods', and beside AVIH what its authors' plain sum makes."""
        return tuple(
            name for method in self.methods for name in ((method, AVIH_RELEASED) if method == AVIH else (method,))
        )

    @property
    def outlined(self) -> tuple[str, ...]:
        """The releases in which the outline is looked for."""
        return tuple(name for name in OUTLINED if name in self.methods)

    @property
    def ordered(self) -> tuple[str, ...]:
        """The releases whose recovery is compared, in the order that the paper finds."""
        return tuple(name for name in ORDER if name in self.releases)


@dataclass(frozen=True, slots=True)
class GridPoint:
    """One value on an axis; `cell` names the variant, which several axes share where they change nothing."""

    axis: str
    value: str
    cell: str


def grid_points(config: PixelFadeStudyConfig) -> list[GridPoint]:
    """The points of all grids, axis by axis."""
    return [GridPoint(axis, value, cell) for axis, value, cell, _ in _points(config)]


def grid_variants(config: PixelFadeStudyConfig) -> dict[str, Variant]:
    """The distinct variants of all grids, by their cells' names."""
    return {cell: variant for _, _, cell, variant in _points(config)}


def configured(variant: Variant) -> PixelFade:
    """PixelFade in a variant; its expert is loaded at first use."""
    return PixelFade.configured(variant.preset, variant.settings)


def expert_name(expert: str) -> str:
    """The name of an expert that is given by name or file."""
    return Path(expert).stem


def cell_names(config: PixelFadeStudyConfig) -> tuple[str, ...]:
    """All cells, in the order in which they are computed."""
    return (
        "spread",
        *(f"release/{name}" for name in config.releases),
        *(f"recovery/{name}" for name in config.releases),
        "order", "preset recovery", "sizes",
        *(f"outline/{name}" for name in (*config.outlined, FLOOR)),
        "outlines", "energies",
        *(f"attack/{name}" for name in config.attacks),
        *(f"grid/{name}" for name in grid_variants(config)),
        *(f"backbone/{expert_name(expert)}" for expert in config.experts),
    )  # fmt: skip


def people(config: PixelFadeStudyConfig) -> str:
    """Who is searched for, in words."""
    return f"{config.people} test people, {config.queries} query and {config.gallery} gallery pictures each"


def scale(config: PixelFadeStudyConfig) -> str:
    """What the figures are of."""
    return (
        f"{people(config)}; attackers: {config.public_people} training people, {config.updates} updates; MobileNetV2"
    )


def study_settings(config: PixelFadeStudyConfig, expert: Embedder, judge: Embedder) -> dict[str, Any]:
    """All that the cells of a study depend on, besides the pictures. More attacks, experts or points may be added."""
    shared = {name: value for name, value in asdict(config).items() if name not in _CHOICES}
    return {**shared, "expert": expert.info.fingerprint, "judge": judge.info.fingerprint}


def _points(config: PixelFadeStudyConfig) -> list[tuple[str, str, str, Variant]]:
    preset, common = config.grid_preset, {"steps": config.steps}
    base = configured(Variant("pixelfade", preset, common)).config
    rows: list[tuple[str, str, dict[str, object]]] = []
    rows += [("noise weight", f"{value:g}", {"noise_weight": value}) for value in config.noise_weights]
    rows += [("objective", value, {"objective": value}) for value in config.objectives]
    rows += [
        ("perturb", f"{value:g}", {"optimisation": "perturb", "amplitude": value}) for value in config.amplitudes
    ]
    rows += [("l1", f"{value:g}", {"optimisation": "l1", "l1_weight": value}) for value in config.l1_weights]
    rows += [("steps", f"{value}", {"steps": value}) for value in config.grid_steps]
    rows += [("step", f"{value:g}", _step(value, base.step, base.unmet_step)) for value in config.step_sizes]
    rows += [("threshold", f"{value:g}", {"threshold": value}) for value in config.thresholds]
    rows += [
        ("masks", f"{value}", {"masks": value, "startup": max(base.startup, value)}) for value in config.masks
    ]  # every value must be replaced once
    found = []
    for axis, value, settings in rows:
        variant = Variant("pixelfade", preset, {**common, **settings})
        same = configured(variant).config == base
        found.append((axis, value, "base" if same else f"{axis.replace(' ', '-')}-{value}", variant))
    found += [
        ("own threshold", f"{value:g}", f"own-threshold-{value:g}",
         Variant("pixelfade", None, {"steps": config.own_steps, "threshold": value}))
        for value in config.own_thresholds
    ]  # fmt: skip
    return found


def _step(value: float, step: float, unmet: float | None) -> dict[str, object]:
    """The step size, and in proportion the one where the constraint does not hold."""
    return {"step": value} if unmet is None else {"step": value, "unmet_step": value * unmet / step}
