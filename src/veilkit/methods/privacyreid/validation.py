"""A check of an anonymiser on its validation people: likeness to the originals, retrieval, recovery; and a sheet."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import torch
from PIL import Image
from torch import Tensor

from veilkit.errors import DataError
from veilkit.methods.privacyreid.supervision import Desensitiser
from veilkit.metrics.image import psnr, ssim
from veilkit.networks.pix2pix import Pix2PixUNet
from veilkit.networks.reid import ReidNetwork
from veilkit.rng import Randomness
from veilkit.training.pixels import read_pixels
from veilkit.training.retrieval import Holdout, evaluate_reid
from veilkit.types import Record, Split

_BATCH = 32
_SHOWN = 8  # pictures on a sheet
_EQUAL = 100.0  # dB that equal pictures count as: a mean with an infinite one says nothing


def set_aside(split: Split, share: float, rng: Randomness) -> Holdout:
    """Training people, and `share` of all people as others, of whose pictures `share` are queries (Section 4.2).

    At least one picture of a person is a query and one is in the gallery; who has only one picture is in the gallery.
    """
    if any(record.identity is None for record in split.records):
        raise DataError(f"expected an identity for each image of the {split.name!r} split, but some have none")
    people = split.identities
    count = max(1, round(share * len(people)))
    if count >= len(people):
        raise DataError(f"{share:.0%} of {len(people)} people leaves no training people")
    held = [people[place] for place in rng.child("people").permutation(len(people))[:count]]
    query: list[Record] = []
    gallery: list[Record] = []
    for person in sorted(held):
        own = [record for record in split.records if record.identity == person]
        asked = min(max(1, round(share * len(own))), len(own) - 1)
        drawn = set(rng.child("queries", person).permutation(len(own))[:asked].tolist())
        for place, record in enumerate(own):
            (query if place in drawn else gallery).append(record)
    if not query:
        raise DataError("none of the people set aside has two pictures: bring more pictures, or another seed")
    chosen = set(held)
    kept = tuple(record for record in split.records if record.identity not in chosen)
    return Holdout(
        Split(split.name, split.root, kept),
        Split("query", split.root, tuple(query)),
        Split("gallery", split.root, tuple(gallery)),
    )


@dataclass(frozen=True, slots=True)
class Check:
    """psnr, ssim: of anonymised pictures to their originals. recovered_*: of what the decoder makes of them.

    rank1: share of raw queries found in the anonymised gallery. All pictures are taken as their 8-bit files hold
    them.
    """

    psnr: float
    ssim: float
    rank1: float
    recovered_psnr: float
    recovered_ssim: float


class ValidationPeople:
    """Pictures of the people set aside: raw and desensitised, 8-bit (N, 3, H, W), queries first."""

    def __init__(self, people: Holdout, size: tuple[int, int], desensitiser: Desensitiser) -> None:
        self._query, self._gallery = people.query, people.gallery
        self._raw = torch.cat([read_pixels(people.query, size), read_pixels(people.gallery, size)])
        names = [f"validation/{record.path}" for record in (*people.query.records, *people.gallery.records)]
        self._desensitised = torch.cat(
            [
                _eight_bit(
                    desensitiser.apply(_unit(self._raw[start : start + _BATCH]), names[start : start + _BATCH])
                )
                for start in range(0, len(self._raw), _BATCH)
            ]
        )

    def desensitised_likeness(self) -> tuple[float, float]:
        """Mean PSNR and SSIM of the desensitised pictures."""
        return _likeness(self._desensitised, self._raw)

    def desensitised_rank1(self, network: ReidNetwork) -> float:
        """Share of raw queries found in the desensitised gallery."""
        return self._rank1(network, self._desensitised)

    def check(self, anonymise: Pix2PixUNet, recover: Pix2PixUNet, network: ReidNetwork) -> Check:
        """Measure the networks as they are, in evaluation mode."""
        made = generated(anonymise, self._raw)
        likeness, recovery = _likeness(made, self._raw), _likeness(generated(recover, made), self._raw)
        return Check(*likeness, self._rank1(network, made), *recovery)

    def sheet(self, file: Path, anonymise: Pix2PixUNet, recover: Pix2PixUNet) -> None:
        """Write a picture of some originals, and below each its desensitised, anonymised and recovered one."""
        chosen = slice(None, None, max(1, len(self._raw) // _SHOWN))
        raw, plain = self._raw[chosen][:_SHOWN], self._desensitised[chosen][:_SHOWN]
        made = generated(anonymise, raw)
        rows = [torch.cat(list(row), 2) for row in (raw, plain, made, generated(recover, made))]
        file.parent.mkdir(parents=True, exist_ok=True)
        Image.fromarray(torch.cat(rows, 1).permute(1, 2, 0).contiguous().numpy()).save(file)

    def _rank1(self, network: ReidNetwork, pictures: Tensor) -> float:
        count = len(self._query)
        found = evaluate_reid(network, self._query, self._gallery, self._raw[:count], pictures[count:])
        return float(found.rank(1))


@torch.no_grad()
def generated(generator: Pix2PixUNet, pixels: Tensor) -> Tensor:
    """What a generator makes of 8-bit pictures (N, 3, H, W), in evaluation mode, as 8 bits again."""
    generator.eval()
    return torch.cat([_eight_bit(generator(_unit(part))) for part in torch.split(pixels, _BATCH)])


def _likeness(pictures: Tensor, originals: Tensor) -> tuple[float, float]:
    parts = zip(torch.split(pictures, _BATCH), torch.split(originals, _BATCH), strict=True)
    each = [(psnr(_unit(a), _unit(b)).clamp(max=_EQUAL), ssim(_unit(a), _unit(b))) for a, b in parts]
    return torch.cat([p for p, _ in each]).mean().item(), torch.cat([s for _, s in each]).mean().item()


def _unit(pixels: Tensor) -> Tensor:
    return pixels.float().div_(255)


def _eight_bit(images: Tensor) -> Tensor:
    return images.mul(255).round_().clamp_(0, 255).to(torch.uint8)
