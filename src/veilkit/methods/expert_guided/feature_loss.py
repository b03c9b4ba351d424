"""The authorised expert, as an optimisation of pictures needs it: feature distances and their gradients, in slots.

Pictures go through the network in micro-batches of a fixed number of slots, since the last bits of a gradient differ
between batch sizes. On a CPU they may differ between the places of a batch, too (some small matrix products do), so
that slots are sorted into lanes: places whose answers have the same bits. A picture is bound to a lane by its own
name, and may take any slot of it; what is in the other slots cannot change its answer.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import NamedTuple, TypeAlias

import torch
import torch.nn.functional as F
from torch import Tensor

from veilkit.errors import ConfigError, RefusedImage, VeilkitError
from veilkit.experts.base import Embedder
from veilkit.experts.trial import trial_images, try_embedder

Resize: TypeAlias = Callable[[Tensor, tuple[int, int]], Tensor]
_SIZE = (160, 80)  # of trial pictures, for experts that take any size


class Query(NamedTuple):
    """picture: (3, H, W) in [0, 1], any size. target: features (D,) to come near; None asks for its own."""

    picture: Tensor
    target: Tensor | None


class Answer(NamedTuple):
    """features (D,), distance = ||features - target||^2 (Eq. 2 of PixelFade), gradient (3, H, W) of it."""

    features: Tensor
    distance: float
    gradient: Tensor


class AuthorisedExpert:
    """An expert on trial: one that cannot supervise is refused here, before any picture is touched.

    slots: pictures at a time. Where the expert's way of resizing is not one that we know, pictures of different sizes
    cannot share a batch, and there is one slot. unit: features are brought to length 1 before they are compared.
    """

    def __init__(self, expert: Embedder, slots: int, *, unit: bool = False) -> None:
        _check(expert)
        self.expert, self._unit = expert, unit
        prepared = expert.info.preprocessing
        self.size = None if prepared is None else prepared.size
        self._resize = None if self.size is None else _known_resize(expert, self.size)
        self.slots = 1 if self._resize is None else slots
        self.lanes: tuple[tuple[int, ...], ...] = (tuple(range(self.slots)),)
        self._try_gradient()
        self.lanes = self._find_lanes()
        self.slots = max(slot for lane in self.lanes for slot in lane) + 1

    def evaluate(self, queries: Mapping[int, Query]) -> dict[int, Answer]:
        """The answer of each slot that asks; empty slots are filled with grey."""
        leaves = {slot: query.picture.detach().requires_grad_() for slot, query in queries.items()}
        with torch.enable_grad():
            views = [self._view(leaves.get(slot)) for slot in range(self.slots)]
            features = self.expert.embed(torch.cat(views) if len(views) > 1 else views[0])
            if self._unit:
                features = F.normalize(features)
            targets = features.detach().clone()
            for slot, query in queries.items():
                if query.target is not None:
                    targets[slot] = query.target
            loss = (features - targets).square().sum()
            gradients = torch.autograd.grad(loss, list(leaves.values()))
        apart = features.detach() - targets
        answers = {}
        for (slot, query), gradient in zip(queries.items(), gradients, strict=True):
            distance = apart[slot].double().square().sum().item()
            if not torch.isfinite(gradient).all() or distance != distance:
                raise RefusedImage(f"the expert {self.expert.name} gave no finite features or gradient for it")
            answers[slot] = Answer(
                targets[slot] if query.target is None else features[slot].detach(), distance, gradient
            )
        return answers

    def _view(self, picture: Tensor | None) -> Tensor:
        """(1, 3, h, w): the picture as the expert resizes it, by itself, so that no other can change its bits."""
        if picture is None:
            return torch.full((1, 3, *(self.size or _SIZE)), 0.5)
        if self._resize is None or self.size is None:
            return picture[None]
        return self._resize(picture[None], self.size)

    def _try_gradient(self) -> None:
        pictures = trial_images()
        target = torch.zeros(self.expert.dim)
        try:
            gradient = self.evaluate({0: Query(pictures[0], target)})[0].gradient
        except RefusedImage:
            raise ConfigError(f"{self.expert.name}: the gradient with respect to the image is not finite") from None
        except RuntimeError as error:
            raise _cannot_supervise(self.expert, str(error).partition("\n")[0]) from None
        if not gradient.any():
            raise _cannot_supervise(self.expert, "its gradient with respect to the image is zero")

    def _find_lanes(self) -> tuple[tuple[int, ...], ...]:
        """The slots whose answers have the same bits; one slot alone where those depend on the other slots."""
        if self.slots == 1:
            return ((0,),)
        same, other = (Query(picture, torch.zeros(self.expert.dim)) for picture in trial_images())
        alike = self.evaluate(dict.fromkeys(range(self.slots), same))
        lanes: list[list[int]] = []
        for slot, answer in alike.items():
            lane = next((lane for lane in lanes if _same_bits(alike[lane[0]], answer)), None)
            if lane is None:
                lanes.append([slot])
            else:
                lane.append(slot)
        first = {lane[0] for lane in lanes}
        mixed = self.evaluate({slot: same if slot in first else other for slot in range(self.slots)})
        if not all(_same_bits(alike[slot], mixed[slot]) for slot in first):
            return ((0,),)
        return tuple(map(tuple, lanes))


def _same_bits(one: Answer, two: Answer) -> bool:
    return torch.equal(one.features, two.features) and torch.equal(one.gradient, two.gradient)


def _check(expert: Embedder) -> None:
    if not expert.differentiable:
        raise _cannot_supervise(expert, "no gradient passes through it")
    try:
        try_embedder(expert)
    except VeilkitError as error:
        raise ConfigError(f"the authorised expert is refused: {error}") from None
    except Exception as error:  # whatever a module of one's own raises
        raise ConfigError(
            f"{expert.name}: expected an expert that takes images (N, 3, H, W) in [0, 1], but it failed on two test "
            f"images ({type(error).__name__}: {str(error).partition(chr(10))[0]}); ModuleEmbedder gives a network "
            "the size and channels that it needs"
        ) from None


def _cannot_supervise(expert: Embedder, reason: str) -> ConfigError:
    return ConfigError(
        f"the expert {expert.name!r} can judge, but not supervise: {reason}; take a torch expert: "
        "a .safetensors file, 'people', or a module of your own"
    )


def _by_height(images: Tensor, size: tuple[int, int]) -> Tensor:
    """As Re-ID networks resize: antialiased where the height shrinks."""
    if images.shape[2:] == torch.Size(size):
        return images
    shrinks = images.shape[2] > size[0]
    return F.interpolate(images, size=size, mode="bilinear", align_corners=False, antialias=shrinks)


def _antialiased(images: Tensor, size: tuple[int, int]) -> Tensor:
    """As `Preprocessing` resizes."""
    if images.shape[2:] == torch.Size(size):
        return images
    return F.interpolate(images, size=size, mode="bilinear", align_corners=False, antialias=True)


@torch.no_grad()
def _known_resize(expert: Embedder, size: tuple[int, int]) -> Resize | None:
    """The resize after which the expert answers as if it had resized itself, or None."""
    height, width = size
    probes = [
        F.interpolate(trial_images()[:1], size=each, mode="bilinear", align_corners=False)
        for each in ((2 * height + 3, width // 2 + 1), (height // 2 + 1, 2 * width + 3))
    ]
    wanted = [expert.embed(probe) for probe in probes]
    for resize in (_by_height, _antialiased):
        got = [expert.embed(resize(probe, size)) for probe in probes]
        if all(
            torch.allclose(each, true, rtol=1e-4, atol=1e-5 * true.abs().max().item())
            for each, true in zip(got, wanted, strict=True)
        ):
            return resize
    return None
