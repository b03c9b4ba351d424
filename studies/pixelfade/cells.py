"""PixelFade's comparison in small: releases of one set of pictures, what they keep, and what attackers get."""

from __future__ import annotations

from dataclasses import replace
from functools import cached_property
from itertools import pairwise
from pathlib import Path
from typing import Any

from studies.controls.sizes import likeness_by_size
from studies.pixelfade.attacks import outline, stronger
from studies.pixelfade.plan import (
    FLOOR,
    OURS,
    RELEASES,
    PixelFadeStudyConfig,
    Variant,
    cell_names,
    configured,
    expert_name,
    grid_variants,
)
from studies.pixelfade.tables import draw_figures
from studies.shared.attacks import paired, recovery
from studies.shared.cells import Cell, CellStore
from studies.shared.figures import sheet
from studies.shared.measures import ledger_summary, likeness_and_chaos, matching
from studies.shared.originals import Originals, Released
from studies.shared.people_data import chosen_people, laid_out
from studies.shared.study import by_kind
from veilkit.attacks import AttackTarget, Budget, Masks
from veilkit.attacks.learned.foreground import foreground
from veilkit.attacks.learned.recovery import Recovery, RecoveryConfig
from veilkit.attacks.learned.silhouette import SilhouetteConfig
from veilkit.attacks.people_split import attack_size
from veilkit.attacks.pictures import NoisePictures
from veilkit.audit.inputs.cache import Cache
from veilkit.datasets.market1501 import Market1501
from veilkit.experts import Embedder, load_expert
from veilkit.methods.expert_guided.method import spread_of_split
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness
from veilkit.types import Role

_PAPER_SIZE = (256, 128)
_COLUMNS = 10  # pictures on a sheet
_GRID_PICTURES = (1, 2)  # queries and gallery pictures of each person


class PixelFadeCells:
    """The cells of the study. Nothing is computed before it is asked for, and nothing twice.

    expert: the authorised one, a name or a file; releases are made for it, and it judges utility. judge: independent
    of it; what it recognises is what a stranger gets.
    """

    def __init__(
        self,
        data: Market1501,
        folder: Path,
        config: PixelFadeStudyConfig,
        cells: CellStore,
        *,
        expert: str,
        judge: Embedder,
        cache: Cache,
        workers: int,
    ) -> None:
        self.config, self.folder, self.data, self.judge = config, folder, data, judge
        self._expert, self._cells, self._cache, self._workers = expert, cells, cache, workers
        self._rng = Randomness.from_seed(config.seed).child("pixelfade study")
        self._read: dict[str, Released] = {}

    def cell(self, name: str) -> Cell:
        """A cell by its name."""
        alone = {
            "order": self.order, "preset recovery": self.preset_recovery, "sizes": self.sizes, "spread": self.spread,
            "outlines": self.outlines, "energies": self.energies,
        }  # fmt: skip
        several = {
            "release": self.release, "recovery": self.recovery, "outline": self.outline, "attack": self.attack,
            "grid": self.grid, "backbone": self.backbone,
        }  # fmt: skip
        return by_kind(name, {**alone, **several})

    def draw(self) -> None:
        """The figures, and a sheet of pictures of each release that could be recovered."""
        draw_figures(self.folder, self.config, {name: self.cell(name) for name in cell_names(self.config)})
        for name in self.config.releases:
            file = self.folder / "sheets" / f"{name}.png"
            if self.recovery(name)["applicable"] and not file.exists():
                sheet(file, Recovery(self._unet).recovered_pictures(self._target(name), _COLUMNS).rows())

    # What is kept, and how much is seen (Tables 1 and 7; Tables 3 and 4, Figures 4 and 5)

    def spread(self) -> dict[str, Any]:
        """The mean squared distance between different public people's features, in which ours measures."""
        return self._cells.get("spread", lambda: {"spread": self._spread_of(self.expert)})

    def release(self, name: str) -> dict[str, Any]:
        """Four settings by the expert and by the judge, similarity, chaos, and what the ledger says."""

        def compute() -> dict[str, Any]:
            release = self.released(name)
            return {
                **self._measured(self.originals, release, self.expert),
                "judge": matching(self.originals, release, self.judge, Role.PRIVACY, self._rng),
            }

        return self._cells.get(f"release/{name}", compute)

    def grid(self, name: str) -> dict[str, Any]:
        """One point of the grids, on the first `grid_people`."""

        def compute() -> dict[str, Any]:
            made = self._protected(f"grid-{name}", grid_variants(self.config)[name], self._small)
            return self._measured(self._small, made, self.expert)

        return self._cells.get(f"grid/{name}", compute)

    def backbone(self, name: str) -> dict[str, Any]:
        """Ours under another expert, which also judges (Table 7)."""

        def compute() -> dict[str, Any]:
            expert = next(expert for expert in self.config.experts if expert_name(expert) == name)
            embedder = load_expert(expert)
            spread = self._spread_of(embedder)
            variant = replace(RELEASES[OURS], settings={"expert": expert, "spread": spread})
            made = self._protected(f"backbone-{name}", variant, self._tested)
            return {"spread": spread, **self._measured(self._tested, made, embedder)}

        return self._cells.get(f"backbone/{name}", compute)

    # What attackers get (Table 2 and Figure 1a, and beyond)

    def recovery(self, name: str) -> dict[str, Any]:
        """The paper's attacker: a U-Net that learned on protected pictures of the public people."""
        return self._cells.get(f"recovery/{name}", lambda: recovery(self._target(name), self._unet))

    def order(self) -> dict[str, Any]:
        """How much more is recovered of each release than of the one before it: paired differences of SSIM."""

        def compute() -> dict[str, Any]:
            names = pairwise(self.config.ordered)
            cells = {f"{more} - {less}": (self.recovery(more), self.recovery(less)) for less, more in names}
            return paired(cells, "SSIM each", self._rng)

        return self._cells.get("order", compute)

    def preset_recovery(self) -> dict[str, Any]:
        """Paired differences of recovery SSIM: ours minus its preset `released`, where that was asked for."""

        def compute() -> dict[str, Any]:
            others = [name for name in ("released",) if name in self.config.methods]
            cells = {f"{OURS} - {name}": (self.recovery(OURS), self.recovery(name)) for name in others}
            return paired(cells, "SSIM each", Randomness.from_seed(self.config.seed))

        return self._cells.get("preset recovery", compute)

    def sizes(self) -> dict[str, Any]:
        """How like their originals the controls' pictures are as they stand, and at the paper's size: mean SSIM.

        Enlarged crops are smooth, so that blur and mosaic leave more of them: by that much the paper's figures of
        recovery are higher whatever the attacker.
        """

        def compute() -> dict[str, Any]:
            names = [name for name in ("pixelate", "blur") if name in self.config.methods]
            own = attack_size(AttackTarget(rng=self._rng, originals=self.originals.tested))
            return dict(likeness_by_size(self.originals.tested, names, (own, _PAPER_SIZE), self._rng))

        return self._cells.get("sizes", compute)

    def attack(self, name: str) -> dict[str, Any]:
        """A stronger attacker on ours."""

        def compute() -> dict[str, Any]:
            target = self._target(OURS, authorised=self.expert)
            return stronger(name, target, self.config, configured(self._bound(RELEASES[OURS])))

        return self._cells.get(f"attack/{name}", compute)

    def outline(self, name: str) -> dict[str, Any]:
        """How well it can be told where the person stands, in a release or in noise alone (`FLOOR`)."""

        def compute() -> dict[str, Any]:
            marker = SilhouetteConfig(width=self.config.width)
            if name != FLOOR:
                return outline(self._target(name, masked=True), marker)
            parts = {"tested": self.originals.tested, "public": self.originals.public}
            noise = [NoisePictures(part, self._rng.child(FLOOR, side)) for side, part in parts.items()]
            return outline(self._target(Released(noise[0], noise[1], ()), masked=True), marker, gated=False)

        return self._cells.get(f"outline/{name}", compute)

    def outlines(self) -> dict[str, Any]:
        """Paired differences of the AUC beyond place: ours minus each other release, and minus the floor."""
        return self._cells.get("outlines", lambda: self._apart("AUC each"))

    def energies(self) -> dict[str, Any]:
        """The same of the AUC by local energy alone."""
        return self._cells.get("energies", lambda: self._apart("energy each"))

    def _apart(self, metric: str) -> dict[str, Any]:
        others = (*self.config.outlined[1:], FLOOR)
        cells = {f"{OURS} - {name}": (self.outline(OURS), self.outline(name)) for name in others}
        return paired(cells, metric, self._rng)

    # What the cells are computed of

    @cached_property
    def expert(self) -> Embedder:
        """The authorised expert."""
        return load_expert(self._expert)

    @cached_property
    def originals(self) -> Originals:
        """The pictures that all releases but the grids' are made of, copied into the study's folder."""
        config = self.config
        some = chosen_people(
            self.data, config.people, config.queries, config.gallery, config.public_people, config.public_pictures
        )
        return Originals(laid_out(some, self.folder / "originals"), self._cache)

    @cached_property
    def _tested(self) -> Originals:
        """The tested pictures alone: nothing is learned of them."""
        config = self.config
        some = chosen_people(self.data, config.people, config.queries, config.gallery, 0, 0)
        return Originals(laid_out(some, self.folder / "tested-originals"), self._cache)

    @cached_property
    def _small(self) -> Originals:
        some = chosen_people(self.data, self.config.grid_people, *_GRID_PICTURES, 0, 0)
        return Originals(laid_out(some, self.folder / "grid-originals"), self._cache)

    @cached_property
    def _masks(self) -> tuple[Masks, Masks]:
        size = attack_size(AttackTarget(rng=self._rng, originals=self.originals.tested))
        return foreground(self.originals.tested, size), foreground(self.originals.public, size)

    @property
    def _unet(self) -> RecoveryConfig:
        return RecoveryConfig(width=self.config.width)

    @property
    def _budget(self) -> Budget:
        everybody = max(len(self.originals.tested), len(self.originals.public))
        return Budget(self.config.updates, everybody, self.config.batch, self.config.seed)

    def released(self, name: str) -> Released:
        """A release of `RELEASES`, made if it is not there yet, and read back."""
        if name not in self._read:
            self._read[name] = self._protected(name, self._bound(RELEASES[name]), self.originals)
        return self._read[name]

    def _bound(self, variant: Variant) -> Variant:
        """The variant for the study's expert, calibrated on public people; the controls as they are."""
        if not variant.bound:
            return variant
        own = variant.method == RELEASES[OURS].method and variant.preset == RELEASES[OURS].preset
        steps = self.config.own_steps if own else self.config.steps
        common: dict[str, object] = {"expert": self._expert, "steps": steps}
        return replace(variant, settings={**common, "spread": self.spread()["spread"], **variant.settings})

    def _protected(self, name: str, variant: Variant, originals: Originals) -> Released:
        outcome = protect(
            originals.root, self.folder / "releases" / name, variant.method, preset=variant.preset,
            settings=self._bound(variant).settings, seed=self.config.seed, names="kept", labels="market",
            workers=self._workers,
        )  # fmt: skip
        return originals.released(outcome)

    def _target(self, release: str | Released, *, masked: bool = False, **means: Any) -> AttackTarget:
        made = self.released(release) if isinstance(release, str) else release
        target = self.originals.target(
            made, self.judge, self._rng, work=self.folder / "work", budget=self._budget, **means
        )
        if not masked:
            return target
        assert target.pairs is not None
        tested, public = self._masks
        return replace(target, masks=tested, pairs=replace(target.pairs, masks=public))

    def _spread_of(self, expert: Embedder) -> float:
        return spread_of_split(expert, self.originals.public_split)

    def _measured(self, originals: Originals, release: Released, expert: Embedder) -> dict[str, Any]:
        return {
            "expert": matching(originals, release, expert, Role.UTILITY, self._rng),
            "pictures": likeness_and_chaos(originals, release, self._cache, self._rng),
            "ledger": ledger_summary(release.reports),
        }
