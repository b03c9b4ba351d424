"""Feature assembling: images optimised from noise until a classifier gives them softened labels (FRO, Eq. 3 to 6).

The classifier is frozen; the gradient flows to the pixels only. Its batch-normalisation layers are watched by hooks:
mean and variance of what enters them, over the whole group of images, are drawn to the running statistics.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, Literal, cast

import torch
import torch.nn.functional as F
from torch import Tensor, nn
from torch.autograd.function import once_differentiable
from torch.utils.hooks import RemovableHandle

from veilkit.configs import check_ranges
from veilkit.errors import ConfigError
from veilkit.methods.fro.canvas import Canvas, Limits, Pixels, PrincipalComponents, Spectrum, Start, start_pictures
from veilkit.rng import Randomness

BatchNorm = (nn.BatchNorm1d, nn.BatchNorm2d, nn.SyncBatchNorm)
_AT_ONCE = 4  # images whose moments are taken together


@dataclass(frozen=True, slots=True)
class AssemblyConfig:
    """How one group of images is made; the paper gives alpha and the grids of temperature and softening alone.

    temperature, softening: T of Eq. 3 and epsilon of the softened label. alpha: weight of the statistics (Eq. 6).
    divergence: "forward" is KL(label || prediction), finite for one-hot labels; "printed" is Eq. 4 as it stands,
    KL(prediction || label), which needs a softening above 0.
    steps, rate, betas, decay: of Adam on the pixels, which are normalised as the classifier's input is.
    The rest are the priors of DeepInversion (Yin et al., CVPR 2020), none of which the paper has: first_layer weighs
    the first layer's statistics; variation and energy weigh total variation and squared pixels; roll shifts the
    images at random by up to so many pixels in each step, flip mirrors them; coarse is the share of the steps that
    are taken at half the size; clip keeps pixels in range after each step; best keeps the step of least loss.
    spectrum: ours. Where positive, not pixels are moved but their Fourier coefficients, which count by their
    frequency to this negative power (see `canvas`). start: ours, too, but for "noise", with which the paper starts.
    "looks" are random mixtures of the originals' principal components, "leaves" are such mixtures under dead leaves
    of others, and "figures" are generated people, for pictures of people from head to foot (see `start_pictures`).
    """

    temperature: float = 5.0
    softening: float = 0.0
    alpha: float = 0.05
    divergence: Literal["forward", "printed"] = "forward"
    steps: int = 200
    rate: float = 0.1
    betas: tuple[float, float] = (0.9, 0.999)
    decay: Literal["none", "cosine"] = "none"
    first_layer: float = 1.0
    variation: float = 0.0
    energy: float = 0.0
    roll: int = 0
    flip: bool = False
    coarse: float = 0.0
    clip: bool = False
    best: bool = False
    spectrum: float = 0.0
    start: Start = "noise"

    def __post_init__(self) -> None:
        check_ranges(self, {
            "temperature": (0.01, 1000), "softening": (0, 0.999), "steps": (1, 1_000_000), "rate": (1e-6, 100),
            "coarse": (0, 1), "spectrum": (0, 4), "alpha first_layer variation energy roll": (0, 1e6),
        })  # fmt: skip
        if self.spectrum and self.coarse:
            raise ConfigError(
                "spectrum and coarse exclude each other: in a spectrum large shapes come first by themselves"
            )
        if self.start != "noise" and self.coarse:
            raise ConfigError(f"start={self.start} and coarse exclude each other: it begins with large shapes")
        if self.divergence == "printed" and self.softening == 0:
            raise ConfigError(
                "divergence=printed compares with a label that is zero almost everywhere, which is infinite; "
                "set softening above 0, or divergence=forward"
            )


class Statistics:
    """Watches the batch-normalisation layers of a classifier while it is open; `distance` speaks of the last pass."""

    def __init__(self, classifier: nn.Module, first_layer: float = 1.0) -> None:
        self._layers = [m for m in classifier.modules() if isinstance(m, BatchNorm) and m.running_mean is not None]
        if not self._layers:
            raise ConfigError(
                "FRO draws images to the statistics that batch-normalisation layers keep, but this classifier has "
                "none; take a network with batch normalisation (such as mobilenetv2, osnet or resnet)"
            )
        self._weights = [first_layer, *(1.0 for _ in self._layers[1:])]
        self._seen: list[Tensor] = []
        self._handles: list[RemovableHandle] = []

    def __enter__(self) -> Statistics:
        def watch(layer: nn.Module, weight: float) -> RemovableHandle:
            def hook(module: nn.Module, inputs: tuple[Tensor, ...]) -> Tensor:
                watched, mean, variance = _Moments.apply(inputs[0])  # type: ignore[no-untyped-call]
                self._seen.append(weight * _distance(mean, variance, module))
                return cast(Tensor, watched)

            return layer.register_forward_pre_hook(hook)

        self._handles = [watch(layer, weight) for layer, weight in zip(self._layers, self._weights, strict=True)]
        return self

    def __exit__(self, *_: object) -> None:
        for handle in self._handles:
            handle.remove()

    def distance(self) -> Tensor:
        """R_BN of Eq. 5 for the pass since the last call."""
        total = torch.stack(self._seen).sum()
        self._seen.clear()
        return total


class _Moments(torch.autograd.Function):
    """What passes through, with its mean and variance (C,) over all axes but the channels'.

    Autograd's own way, `torch.var_mean`, took 40 % of a step: on a CPU it is 20 times slower than the sums that batch
    normalisation itself is made of, and its gradient passes over the maps several times more than it must.
    """

    @staticmethod
    def forward(ctx: Any, inputs: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        mean, variance = moments(inputs)
        ctx.save_for_backward(inputs, mean)
        return inputs, mean, variance

    @staticmethod
    @once_differentiable
    def backward(ctx: Any, passed: Tensor, of_mean: Tensor, of_variance: Tensor) -> Tensor:
        """d mean / d x = 1 / n and d variance / d x = 2 (x - mean) / n, where n values share a channel."""
        inputs, mean = ctx.saved_tensors
        along = (1, -1) + (1,) * (inputs.ndim - 2)
        count = inputs.numel() // inputs.shape[1]
        slope = of_variance * (2 / count)
        level = of_mean / count - slope * mean
        return torch.addcmul(passed, inputs, slope.view(along)).add_(level.view(along))


def moments(inputs: Tensor) -> tuple[Tensor, Tensor]:
    """(N, C, ...) -> mean and variance (C,) of each channel, the variance without Bessel's correction.

    A few images at a time: they are still in the cache when their variance is taken, and sums stay short enough for
    single precision however large the group.
    """
    if not inputs.is_cpu:
        variance, mean = torch.var_mean(inputs, dim=[axis for axis in range(inputs.ndim) if axis != 1], correction=0)
        return mean, variance
    parts = torch.split(inputs, _AT_ONCE)
    means, variances = (
        torch.stack(each)
        for each in zip(*(torch.batch_norm_update_stats(part, None, None, 0.0) for part in parts), strict=True)
    )
    shares = torch.tensor([len(part) / len(inputs) for part in parts])[:, None]
    mean = (shares * means).sum(0)
    return mean, (shares * (variances + (means - mean).square())).sum(0)


def _distance(mean: Tensor, variance: Tensor, layer: nn.Module) -> Tensor:
    """||mean - running mean|| + ||variance - running variance||, norms not squared (Eq. 5)."""
    assert isinstance(layer, BatchNorm)
    assert layer.running_mean is not None
    assert layer.running_var is not None
    return _norm(mean - layer.running_mean) + _norm(variance - layer.running_var)


def _norm(values: Tensor) -> Tensor:
    return values.square().sum().clamp(min=1e-12).sqrt()  # the floor keeps the gradient finite at zero


def soft_labels(classes: Tensor, count: int, softening: float) -> Tensor:
    """(N,) classes -> (N, count): (1 - softening) onehot + softening / count."""
    return (1 - softening) * F.one_hot(classes, count).float() + softening / count


def divergence(logits: Tensor, labels: Tensor, config: AssemblyConfig) -> Tensor:
    """Eq. 4 at temperature T, summed over classes and averaged over images."""
    prediction = (logits / config.temperature).log_softmax(1)
    if config.divergence == "forward":
        return F.kl_div(prediction, labels, reduction="batchmean")
    return F.kl_div(labels.log(), prediction, reduction="batchmean", log_target=True)


def assemble(
    classifier: nn.Module,
    classes: Tensor,
    count: int,
    size: tuple[int, int],
    *,
    mean: Tensor,
    std: Tensor,
    config: AssemblyConfig,
    rng: Randomness,
    items: tuple[str, ...],
    components: PrincipalComponents | None = None,
) -> tuple[Tensor, list[float]]:
    """Make one image for each of `classes` (N,) of `count`: (N, 3, *size) in [0, 1], and the loss of each step.

    classifier: frozen, in evaluation mode, images in [0, 1] to logits (N, count); mean, std (3, 1, 1) are its
    input's. Each image starts from N(0, 1) drawn under its item's name; the group's statistics are taken together.
    components: of the originals, where the config starts from them.
    """
    start = torch.stack([rng.child("start", item).normal(3, *size) for item in items])
    labels = soft_labels(classes, count, config.softening)
    limits = ((0 - mean) / std, (1 - mean) / std) if config.clip else None
    begun = None
    if config.start != "noise":
        begun = (start_pictures(config.start, size, components, rng, items) - mean) / std
    coarse = round(config.coarse * config.steps)
    losses: list[float] = []
    best, least = start, math.inf
    with Statistics(classifier, config.first_layer) as statistics:
        small = F.avg_pool2d(start, 2) * 2 if coarse else start  # averaging four halves the standard deviation
        canvas = _canvas(small, config, limits, begun)
        for step in range(config.steps):
            if step == 0 or step == coarse:
                if step and coarse:
                    larger = F.interpolate(canvas.picture().detach(), size=size, mode="bilinear", align_corners=False)
                    canvas = _canvas(larger, config, limits)
                adam = torch.optim.Adam([canvas.values], lr=config.rate, betas=config.betas)
            for group in adam.param_groups:
                group["lr"] = config.rate * _factor(step, config)
            drawn = canvas.picture()
            view = _jittered(drawn, config, rng.child("step", step, *items))
            logits = classifier(view * std + mean)
            loss = divergence(logits, labels, config) + config.alpha * statistics.distance()
            loss = loss + _priors(view, config)
            losses.append(loss.item())
            if config.best and step >= coarse and losses[-1] < least:
                best, least = drawn.detach().clone(), losses[-1]
            (canvas.values.grad,) = torch.autograd.grad(loss, canvas.values)
            adam.step()
            canvas.keep()
        made = best if config.best else canvas.picture().detach()
    return (made * std + mean).clamp(0, 1).contiguous(), losses


def _canvas(start: Tensor, config: AssemblyConfig, limits: Limits | None, begun: Tensor | None = None) -> Canvas:
    if config.spectrum:
        return Spectrum(start, config.spectrum, limits, begun)
    return Pixels(start if begun is None else begun, limits)


def _factor(step: int, config: AssemblyConfig) -> float:
    return 0.5 * (1 + math.cos(math.pi * step / config.steps)) if config.decay == "cosine" else 1.0


def _jittered(pixels: Tensor, config: AssemblyConfig, rng: Randomness) -> Tensor:
    if not config.roll and not config.flip:
        return pixels
    draw = rng.numpy()
    down, across = (int(each) for each in draw.integers(-config.roll, config.roll + 1, 2))
    rolled = pixels.roll((down, across), (2, 3)) if config.roll else pixels
    return rolled.flip(3) if config.flip and draw.random() < 0.5 else rolled


def _priors(view: Tensor, config: AssemblyConfig) -> Tensor:
    total = view.new_zeros(())
    if config.variation:
        down, across = view.diff(dim=2), view.diff(dim=3)
        total = total + config.variation * (_norm(down) + _norm(across))
    if config.energy:
        total = total + config.energy * _norm(view)
    return total
