"""PixelFade against a plain loop at equal pictures, steps and decisions; and how its time grows.

The plain loop is in the manner of published code: weights that take gradients, batch norms as they are, maps in the
usual layout, the originals' features computed anew in each step. Our measures are switched on one after the other,
each way in a process of its own (malloc cannot be told to forget), one torch thread; the ways take turns and medians
count. Seconds are those of the CPU, which other programs disturb least.

`--quick` is a trial in small that records nothing.
"""

from __future__ import annotations

import argparse
import json
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor

from claims import record
from veilkit.experts.torch_embedder import TorchEmbedder
from veilkit.methods.expert_guided.feature_loss import AuthorisedExpert
from veilkit.methods.expert_guided.scheduler import optimise_side_by_side
from veilkit.methods.pixelfade.algorithm1 import fade
from veilkit.methods.pixelfade.config import RELEASED, PixelFadeConfig
from veilkit.methods.pixelfade.noise import Space
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig, save_reid
from veilkit.rng import Randomness
from veilkit.training.loop import keep_memory

SEED, COMMAND = 0, "python benchmarks/pixelfade_speed.py"
BARS = {"mobilenetv2": ">= 2.2", "resnet50": ">= 1.6"}
WAYS = {
    "single": "plain loop, one picture at a time",
    "plain": "plain loop",
    "once": "+ originals' features once",
    "frozen": "+ frozen weights",
    "expert": "+ folded and channels last (pixelfade)",
    "malloc": "+ malloc keeps its blocks (as pixelfade does)",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One way, and at which size. mixed: every picture has a size of its own, near `size`."""

    way: str = "malloc"
    backbone: str = "mobilenetv2"
    pictures: int = 16
    slots: int = 16
    steps: int = 12
    size: tuple[int, int] = (128, 64)
    mixed: bool = False


FULL, QUICK = Setting(), Setting(pictures=4, slots=4, steps=10, size=(64, 32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a trial in small; nothing is recorded")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(Setting(**{**json.loads(arguments.child), "size": tuple(json.loads(arguments.child)["size"])}))
        return
    base, rounds = (QUICK, 1) if arguments.quick else (FULL, 3)
    scale = f"{base.pictures} pictures at {base.size[0]}x{base.size[1]}, {base.steps} steps, median of {rounds}"
    about = {"scale": scale, "data": "random weights", "seed": SEED, "command": COMMAND}
    found = [row for backbone in BARS for row in compare(replace(base, backbone=backbone), rounds)]
    for row in (*found, *growth(base, rounds)):
        if arguments.quick:
            print(row)
        else:
            record(**about, **row)


# What is measured


def compare(base: Setting, rounds: int) -> list[dict[str, Any]]:
    """Every way in turn, `rounds` times."""
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for number in range(1, rounds + 1):
        for way, name in WAYS.items():
            found[way].append(run(replace(base, way=way)))
            print(f"round {number}, {name}: {found[way][-1]['cpu']:.2f} s", flush=True)
    seconds = {way: median(each["cpu"] for each in found[way]) for way in WAYS}
    factors = {way: seconds["plain"] / seconds[way] for way in WAYS}
    for way, name in WAYS.items():
        print(f"{name:<48}{seconds[way]:>8.2f} s  {factors[way]:.2f}x")
    plain = found["plain"][0]["distances"]
    apart = max(
        abs(one - true) / true
        for way in WAYS
        for each in found[way]
        for one, true in zip(each["distances"], plain, strict=True)
    )
    note = "; ".join(f"{WAYS[way]} {factors[way]:.2f}x" for way in WAYS if way != "plain")
    name = base.backbone
    return [
        {
            "id": f"pixelfade-speed-{name}", "claim": f"PixelFade against a plain loop, per core, {name}",
            "bar": BARS[name], "unit": "x", "figure": round(factors["malloc"], 2), "note": note,
        },
        {
            "id": f"pixelfade-same-{name}", "claim": "PixelFade and the plain loop: largest relative difference of a "
            f"feature distance in the first two steps, {name}", "bar": "<= 0.01", "unit": "",
            "figure": float(f"{apart:.2g}"),
            "note": "later steps amplify the last bits of the first, in any two ways of computing them",
        },
    ]  # fmt: skip


def growth(base: Setting, rounds: int) -> list[dict[str, Any]]:
    """Time per picture and memory of four times as many, and of pictures that all have sizes of their own."""
    settings = {
        "n": base,
        "4n": replace(base, pictures=4 * base.pictures),
        "mixed": replace(base, mixed=True),
    }
    found: dict[str, list[float]] = {name: [] for name in settings}
    memory: dict[str, list[float]] = {name: [] for name in settings}
    for _ in range(rounds):
        for name, setting in settings.items():
            made = run(setting)
            found[name].append(made["cpu"] / setting.pictures)
            memory[name].append(made["memory"])
    each = {name: median(values) for name, values in found.items()}
    peak = {name: median(values) for name, values in memory.items()}
    print("seconds per picture:", {name: round(value, 3) for name, value in each.items()})
    return [
        {
            "id": "pixelfade-linear", "claim": "PixelFade: time per picture of 4n pictures against that of n",
            "figure": round(each["4n"] / each["n"], 2), "bar": "<= 1.15", "unit": "x",
        },
        {
            "id": "pixelfade-flat", "claim": "PixelFade: peak memory of 4n pictures against that of n",
            "figure": round(peak["4n"] / peak["n"], 2), "bar": "<= 1.15", "unit": "x",
            "note": f"{peak['n']:.0f} and {peak['4n']:.0f} MB, pictures and network included",
        },
        {
            "id": "pixelfade-mixed", "claim": "PixelFade: time per picture where every picture has another size, "
            "against that of one size", "figure": round(each["mixed"] / each["n"], 2), "bar": "<= 1.3", "unit": "x",
        },
    ]  # fmt: skip


def run(setting: Setting) -> dict[str, Any]:
    """Time a way in a process of its own."""
    ended = subprocess.run(
        [sys.executable, __file__, "--child", json.dumps(asdict(setting))],
        stdout=subprocess.PIPE,
        text=True,
        check=True,
    )
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def child(setting: Setting) -> None:
    """Warm up, work, and tell seconds and the feature distances after two steps."""
    torch.set_num_threads(1)
    if setting.way == "malloc":
        keep_memory()
    work = Work(setting)
    distances = work(2)
    begun = time.process_time()
    work(setting.steps)
    spent = time.process_time() - begun
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024  # of kilobytes
    print(json.dumps({"cpu": spent, "memory": peak, "distances": distances}))


# What is compared


class Work:
    """Some pictures and a network, to be worked on in the way that is asked for."""

    def __init__(self, setting: Setting) -> None:
        self.setting = setting
        torch.manual_seed(SEED)
        self.network = ReidNetwork(ReidNetworkConfig(setting.backbone, setting.size)).train().requires_grad_(False)
        for module in self.network.modules():
            if isinstance(module, torch.nn.BatchNorm1d | torch.nn.BatchNorm2d):
                module.momentum = None  # plain means: a few passes give the statistics of smooth random pictures
        for _ in range(3):
            self.network(_smooth(32, setting.size))
        self.network.eval()
        self.images = [_smooth(1, self._size(index))[0] for index in range(setting.pictures)]
        self.items = tuple(f"picture {index}" for index in range(setting.pictures))
        self.rng = Randomness.from_seed(SEED)
        with tempfile.TemporaryDirectory() as folder:
            save_reid(Path(folder) / "expert.safetensors", self.network)
            self.expert = TorchEmbedder.load(Path(folder) / "expert.safetensors")
        self.authorised = AuthorisedExpert(self.expert, setting.slots)

    def _size(self, index: int) -> tuple[int, int]:
        height, width = self.setting.size
        return (height + index, width + index // 2) if self.setting.mixed else (height, width)

    def __call__(self, steps: int) -> list[float]:
        """The squared feature distances after so many steps."""
        config = replace(RELEASED, steps=steps, masks=1, startup=1, rest=0, finish=0, batch=self.setting.slots)
        if self.setting.way in ("expert", "malloc"):
            return self._ours(config)
        network, limit, way = self.network, config.threshold * self.expert.dim, self.setting.way
        single = way == "single"
        network.requires_grad_(way in ("single", "plain", "once"))
        size = 1 if single else len(self.images)
        loops = (
            plain_loop(
                network, torch.stack(self.images[start : start + size]),
                [self.rng.child("picture", item) for item in self.items[start : start + size]],
                config, limit, anew=way in ("single", "plain"),
            )
            for start in range(0, len(self.images), size)
        )  # fmt: skip
        return [distance for loop in loops for distance in loop]

    def _ours(self, config: PixelFadeConfig) -> list[float]:
        limit, space, lanes = config.threshold * self.expert.dim, Space.of_expert(self.expert), self.authorised.lanes
        optimisations = (
            (
                index % len(lanes),
                fade(image, limit=limit, space=space, config=config, rng=self.rng.child("picture", item)),
            )
            for index, (image, item) in enumerate(zip(self.images, self.items, strict=True))
        )
        return [
            made.report.details["feature_distance"] for made in optimise_side_by_side(optimisations, self.authorised)
        ]


def plain_loop(
    network: ReidNetwork,
    images: Tensor,
    own: Sequence[Randomness],
    config: PixelFadeConfig,
    limit: float,
    *,
    anew: bool = True,
) -> list[float]:
    """The released algorithm with one mask, each picture deciding for itself; the squared feature distances.

    images: (N, 3, H, W) of the network's own size. anew: their features are computed in each step.
    """
    network.to(memory_format=torch.contiguous_format)  # type: ignore[call-overload]
    mean, std = network.mean, network.std
    start = (images - mean) / std
    noise = torch.stack([each.child("noise", 0).normal(*start.shape[1:]) for each in own])
    low, high = start.amin((1, 2, 3), keepdim=True), start.amax((1, 2, 3), keepdim=True)
    noise = torch.minimum(torch.maximum(noise, low), high)
    values, velocity = start.clone(), torch.zeros_like(start)
    wanted = _features(network, start).detach()
    for step in range(config.steps):
        leaf = values.clone().requires_grad_()
        if anew:
            wanted = _features(network, start).detach()
        loss = (_features(network, leaf) - wanted).square().sum(1)
        network.zero_grad()
        loss.sum().backward()
        assert leaf.grad is not None
        met = (loss < limit)[:, None, None, None]
        if step:  # at the original itself the gradient is zero
            size = leaf.grad.abs().mean((1, 2, 3), keepdim=True)
            velocity = config.decay * velocity + leaf.grad / size
            values = values - torch.where(met, config.step, config.unmet_step or config.step) * velocity
        values = torch.where(met | (step < config.startup), noise, values)
        values = torch.minimum(torch.maximum(values, (0 - mean) / std), (1 - mean) / std)
    shown = (values * std + mean).mul(255).round().div(255)
    distances = (_features(network, (shown - mean) / std) - wanted).square().sum(1)
    return [float(each) for each in distances.detach()]


def _features(network: ReidNetwork, values: Tensor) -> Tensor:
    """Of normalised pictures, in the usual layout: the network's own `embed` would turn them to channels last."""
    (head,) = network.heads
    pooled, neck = head(network.backbone(values.contiguous()))
    made: Tensor = network.projection(neck if network.config.feature == "neck" else pooled)
    return made


def _smooth(count: int, size: tuple[int, int]) -> Tensor:
    coarse = torch.rand(count, 3, size[0] // 8, size[1] // 8)
    return F.interpolate(coarse, size=size, mode="bilinear", align_corners=False)


if __name__ == "__main__":
    main()
