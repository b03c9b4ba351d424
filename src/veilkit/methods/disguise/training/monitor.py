"""How Disguise does on people it does not train on: cosines of identities, reconstruction, and a sheet."""

from __future__ import annotations

import json
from pathlib import Path

import torch
import torch.nn.functional as F
from PIL import Image
from torch import Tensor

from veilkit.methods.disguise.identity import IdentityEncoder
from veilkit.methods.disguise.identity_transforms import Transform, TransformConfig, standard_laplace, transformed
from veilkit.methods.disguise.swapper import Swapper
from veilkit.methods.disguise.training.config import DisguiseTrainingConfig
from veilkit.rng import Randomness
from veilkit.training.pixels import read_pixels
from veilkit.types import Split

WATCHED = "watched.jsonl"
"""Lines of JSON: mean cosines of faces kept to their originals, of disguised ones to theirs (`original`) and to what
was injected (`synthetic`), of strangers to each other, and the L1 of faces kept."""
_MOST = 64  # faces that are watched
_SHOWN = 8  # faces on a sheet
_BATCH = 16


def inference_noise(config: TransformConfig, *nodes: Randomness) -> Tensor | None:
    """(N, L) Laplace noise of the configured scale, a row for each node; None where the transform takes none."""
    if not config.noise_length or not config.noise:
        return None
    rows = [config.noise * standard_laplace(node.uniform(config.noise_length)) for node in nodes]
    return torch.stack(rows) if rows else torch.empty(0, config.noise_length)


class Monitor:
    """Crops of the people set aside, evenly taken. Nothing is decided upon by what is found."""

    def __init__(self, people: Split, size: int, encoder: IdentityEncoder, config: DisguiseTrainingConfig) -> None:
        step = max(1, len(people) // _MOST)
        some = Split(people.name, people.root, people.records[::step][:_MOST])
        self._pixels = read_pixels(some, (size, size))
        self._people = [record.identity for record in some.records]
        self._encoder, self._transform = encoder, config.transform
        self._rng = Randomness.from_seed(config.seed).child("disguise", "watch")

    @torch.no_grad()
    def measure(self, done: int, swapper: Swapper, transform: Transform, work_dir: Path) -> str:
        """Measure, note in `watched.jsonl`, write a sheet; returns a line that tells it."""
        swapper.eval()
        transform.eval()
        rows: list[Tensor] = []
        identities: list[Tensor] = []
        sums = torch.zeros(4, dtype=torch.float64)
        for start in range(0, len(self._pixels), _BATCH):
            crops = self._pixels[start : start + _BATCH].float().div(255)
            own = self._encoder(crops)
            identities.append(own)
            nodes = [self._rng.child(start + place) for place in range(len(crops))]
            synthetic = transformed(transform, own, inference_noise(self._transform, *nodes)).vectors
            kept, made = swapper(crops, own), swapper(crops, synthetic)
            seen = self._encoder(made)
            sums += torch.stack(
                [
                    F.cosine_similarity(own, self._encoder(kept)).sum(),
                    F.cosine_similarity(own, seen).sum(),
                    F.cosine_similarity(synthetic, seen).sum(),
                    (kept - crops).abs().mean((1, 2, 3)).sum(),
                ]
            ).double()
            if start == 0:
                rows = [crops, kept, made]
        _sheet(work_dir / "samples" / f"step-{done:07}.png", rows)
        found = dict(zip(("kept", "original", "synthetic", "l1"), (sums / len(self._pixels)).tolist(), strict=True))
        _note(work_dir / WATCHED, {"step": done, **found, "strangers": self._strangers(torch.cat(identities))})
        return (
            f"step {done}: cosine to the original of faces kept {found['kept']:.3f}, of disguised ones "
            f"{found['original']:.3f}, of disguised ones to what was injected {found['synthetic']:.3f}; "
            f"reconstruction L1 {found['l1']:.3f}"
        )

    def _strangers(self, identities: Tensor) -> float:
        """The mean cosine of two faces of different people; 0 where all are of one."""
        apart = torch.tensor([[one != other for other in self._people] for one in self._people])
        return float((identities @ identities.T)[apart].mean()) if apart.any() else 0.0


def last_watched(work_dir: Path) -> dict[str, float]:
    """What was noted last in a work folder; nothing where nobody has looked."""
    file = work_dir / WATCHED
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    found: dict[str, float] = json.loads(lines[-1]) if lines else {}
    return found


def _sheet(file: Path, rows: list[Tensor]) -> None:
    """Originals, and below them what the swapper makes with their own and with the synthetic identities."""
    lines = [torch.cat(list(row[:_SHOWN]), 2) for row in rows]
    pixels = (torch.cat(lines, 1) * 255).round().clamp(0, 255).byte().permute(1, 2, 0).contiguous().numpy()
    file.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(pixels).save(file)


def _note(file: Path, found: dict[str, float]) -> None:
    """Add a line; what a killed run had noted of later steps is dropped, as it makes them again."""
    lines = file.read_text(encoding="utf-8").splitlines() if file.exists() else []
    kept = [line for line in lines if json.loads(line)["step"] < found["step"]]
    draft = file.with_suffix(".part")
    draft.write_text("".join(f"{line}\n" for line in [*kept, json.dumps(found)]), encoding="utf-8")
    draft.replace(file)
