"""Disguise with photoreal faces against somebody who can run it: an inverter from protected faces to their originals.

    VEILKIT_DATA=... VEILKIT_WEIGHTS=... python benchmarks/disguise_photoreal_inversion.py --work runs/photoreal

The attacker protects pictures of LFW's training people under a key of their own, learns from a recogniser's view of a
protected face its view of the original (by the paper's network), and guesses who the test people of
disguise_photoreal_test.py are, whose release it takes from the same work folder. Guesses are compared with another
picture of the person.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from claims import record
from disguise_photoreal import SEED, arguments, judges, kept, people, protected
from disguise_photoreal_test import ALONE, DATA, LOOKED, SHOTS
from studies.disguise.verification import verified
from veilkit.attacks.learned.embedding_inversion import InversionConfig, train_inverter
from veilkit.attacks.target import Budget
from veilkit.methods.disguise.photoreal import PhotorealDisguise
from veilkit.rng import Randomness

COMMAND = "python benchmarks/disguise_photoreal_inversion.py"
TAUGHT, JUDGES = 150, ("mobilefacenet", "faceplugin")
FORMER = 24.0  # %, of the former model


def main() -> None:
    args = arguments(__doc__, 200)
    work: Path = args.work / f"test-{args.people}-after-{LOOKED}"
    shown = people("test", args.people, SHOTS, args.work, LOOKED)
    public = people("training", TAUGHT, SHOTS, args.work)
    method = PhotorealDisguise.configured(None, ALONE)
    made = kept(args.work, f"inversion-{TAUGHT}", lambda: protected(method, public, SEED + 1)[0])
    release = kept(work, "photoreal", lambda: protected(method, shown))[0]
    rng = Randomness.from_seed(SEED)
    for name in JUDGES:
        embed = judges()[name]

        def seen(where: Path, what: str, x: Tensor, points: Tensor, embed: Any = embed) -> NDArray[np.float32]:
            return kept(where, what, lambda: torch.from_numpy(embed(x, points))).numpy()

        before = seen(args.work, f"inversion-before-{name}-{TAUGHT}", public.pictures, public.points)
        after = seen(args.work, f"inversion-after-{name}-{TAUGHT}", made, public.points)
        with torch.enable_grad():
            budget = Budget(updates=5000, pictures=len(public.who))
            inverter = train_inverter(after, before, public.who, budget, InversionConfig())
        raw = seen(work, f"originals {name}", shown.pictures, shown.points)
        shot = seen(work, f"photoreal {name}", release, shown.points)
        found = verified(inverter.invert(shot), raw, shown.who, (), rng)["TPR"]["0.01"]
        plain = verified(shot, raw, shown.who, (), rng)["TPR"]["0.01"]
        value, low, high = (100 * each for each in found)
        note = f"[{low:.2f}, {high:.2f}]; without an inverter {100 * plain[0]:.2f} %; taught by {len(public.who)} "
        note += f"pictures of {TAUGHT} training people; the former model's, in another test, {FORMER:.0f} %"
        print(f"{name}: {value:.2f} % {note}", flush=True)
        record(
            id=f"disguise-photoreal-inverted-{name}",
            claim=f"Disguise, photoreal: pairs accepted at FPR 1 % after inversion by who can run it, by {name}",
            figure=float(f"{value:.4g}"), bar=f"<= {FORMER / 2:g}", unit="%", data=DATA,
            scale=f"{len(shown.who)} pictures of {args.people} people", seed=SEED, command=COMMAND, note=note,
        )  # fmt: skip


if __name__ == "__main__":
    main()
