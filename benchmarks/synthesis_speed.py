"""FRO's synthesis against a plain loop at equal batch, steps and start; and how its time and memory grow.

The plain loop is the textbook's: weights that take gradients, maps in the usual layout, hooks that keep what enters
each batch normalisation, mean and variance each by itself. Our measures are switched on one after the other, each way
in a process of its own (malloc cannot be told to forget), one torch thread; the ways take turns and medians count.
Seconds are those of the CPU, which other programs disturb least; those of two workers are by the clock.

`--quick` is a trial in small that records nothing.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from dataclasses import asdict, dataclass, replace
from pathlib import Path
from statistics import median
from typing import Any

import torch
import torch.nn.functional as F
from torch import Tensor, nn

from claims import record
from veilkit.methods.base import bind
from veilkit.methods.fro.assembly import AssemblyConfig, Statistics, assemble
from veilkit.methods.fro.method import Fro, FroConfig
from veilkit.methods.fro.pool import Pool
from veilkit.networks.reid import ReidNetwork, ReidNetworkConfig
from veilkit.rng import Randomness
from veilkit.training.loop import keep_memory

SEED, COMMAND, BACKBONE = 0, "python benchmarks/synthesis_speed.py", "mobilenetv2"
WAYS = {
    "plain": "plain loop",
    "frozen": "+ frozen weights",
    "moments": "+ statistics by short sums",
    "layout": "+ channels last (assemble)",
    "malloc": "+ malloc keeps its blocks (as fro does)",
}


@dataclass(frozen=True, slots=True)
class Setting:
    """One way, and at which size. groups: as many of `group` pictures by the whole method; 0 is one by its loop."""

    way: str = "malloc"
    classes: int = 300
    group: int = 64
    groups: int = 0
    steps: int = 12
    size: tuple[int, int] = (128, 64)


FULL, QUICK = Setting(), Setting(classes=30, group=8, steps=2, size=(64, 32))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--quick", action="store_true", help="a trial in small; nothing is recorded")
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        child(Setting(**{**json.loads(arguments.child), "size": tuple(json.loads(arguments.child)["size"])}))
        return
    base, rounds = (QUICK, 1) if arguments.quick else (FULL, 3)
    scale = f"{base.group} pictures at {base.size[0]}x{base.size[1]}, {base.steps} steps, {base.classes} classes"
    about = {"data": f"{BACKBONE} with random weights", "seed": SEED, "command": COMMAND}
    for row in (*compare(base, rounds), *growth(base, rounds)):
        if arguments.quick:
            print(row)
        else:
            record(**{"scale": f"{scale}, median of {rounds}", **about, **row})


# What is measured


def compare(base: Setting, rounds: int) -> list[dict[str, Any]]:
    """Every way in turn, `rounds` times; then two workers against one."""
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    pairs: list[float] = []
    for number in range(1, rounds + 1):
        for way in WAYS:
            found[way] += run(replace(base, way=way))
            print(f"round {number}, {WAYS[way]}: {found[way][-1]['cpu']:.2f} s", flush=True)
        pairs.append(max(each["clock"] for each in run(base, workers=2)))
    seconds = {way: median(each["cpu"] for each in found[way]) for way in WAYS}
    factors = {way: seconds["plain"] / seconds[way] for way in WAYS}
    for way, name in WAYS.items():
        print(f"{name:<42}{seconds[way]:>8.2f} s  {factors[way]:.2f}x")
    two = 2 * median(each["clock"] for each in found["malloc"]) / median(pairs)
    print(f"two workers against one, per machine: {two:.2f}x")
    plain = found["plain"][0]["losses"]
    apart = max(
        abs(loss - true) / abs(true)
        for way in WAYS
        for each in found[way]
        for loss, true in zip(each["losses"], plain, strict=True)
    )
    note = "; ".join(f"{WAYS[way]} {factors[way]:.2f}x" for way in WAYS if way != "plain")
    return [
        {
            "id": "fro-speed", "claim": "Synthesis against a plain loop, per core", "bar": ">= 1.5", "unit": "x",
            "figure": round(factors["malloc"], 2),
            "note": f"{note}; two workers make {two:.2f} times as many as one on the whole machine",
        },
        {
            "id": "fro-speed-same", "claim": "Synthesis and the plain loop: largest relative difference of a loss",
            "bar": "<= 0.001", "unit": "", "figure": float(f"{apart:.2g}"),
            "note": f"every step of every way; the plain loop's loss goes from {plain[0]:.2f} to {plain[-1]:.2f}",
        },
    ]  # fmt: skip


def growth(base: Setting, rounds: int) -> list[dict[str, Any]]:
    """Time per picture of four times as many pictures, and time and memory of ten times as many classes."""
    settings = {groups: replace(base, groups=groups) for groups in (1, 2, 4)}
    settings[0] = replace(base, groups=1, classes=10 * base.classes)
    found: dict[int, list[dict[str, Any]]] = {name: [] for name in settings}
    for _ in range(rounds):
        for name, setting in settings.items():
            found[name] += run(setting)
    each = {name: median(one["cpu"] for one in found[name]) / settings[name].groups for name in settings}
    peak = {name: median(one["megabytes"] for one in found[name]) for name in settings}
    print("seconds per group and peak MB:", {name: (round(each[name], 2), round(peak[name])) for name in settings})
    slower, larger = each[0] / each[1], peak[0] / peak[1]
    return [
        {
            "id": "fro-linear", "claim": "Synthesis: time per picture of 4n pictures against that of n",
            "figure": round(each[4] / each[1], 2), "bar": "<= 1.15", "unit": "x",
            "note": f"2n: {each[2] / each[1]:.2f}x; peak memory {peak[1]:.0f}, {peak[2]:.0f} and "
            f"{peak[4]:.0f} MB for n, 2n and 4n",
        },
        {
            "id": "fro-flat", "claim": "Synthesis: time and peak memory with ten times as many classes, the larger "
            "ratio", "figure": round(max(slower, larger), 2), "bar": "<= 1.15", "unit": "x",
            "note": f"{10 * base.classes:,} against {base.classes} classes: time {slower:.2f}x, peak memory "
            f"{larger:.2f}x ({peak[1]:.0f} to {peak[0]:.0f} MB)",
        },
    ]  # fmt: skip


def run(setting: Setting, workers: int = 1) -> list[dict[str, Any]]:
    """Time a way in processes of its own, which begin together once all have warmed up."""
    started = [
        subprocess.Popen(
            [sys.executable, __file__, "--child", json.dumps(asdict(setting))],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True,
        )
        for _ in range(workers)
    ]  # fmt: skip
    for process in started:
        assert process.stdout is not None
        if process.stdout.readline() != "ready\n":
            raise SystemExit(f"{setting} failed")
    for process in started:
        assert process.stdin is not None
        process.stdin.write("go\n")
        process.stdin.flush()
    answers = [process.communicate()[0] for process in started]
    if any(process.returncode for process in started):
        raise SystemExit(f"{setting} failed")
    return [json.loads(answer) for answer in answers]


def child(setting: Setting) -> None:
    """Warm up, wait for a word, work, and tell seconds, losses and the peak of memory."""
    torch.set_num_threads(1)
    if setting.way == "malloc":
        keep_memory()
    network, work = pool(setting), many_groups if setting.groups else one_group
    one_group(network, replace(setting, steps=2))
    print("ready", flush=True)
    sys.stdin.readline()
    cpu, clock = time.process_time(), time.perf_counter()
    losses = work(network, setting)
    cpu, clock = time.process_time() - cpu, time.perf_counter() - clock
    print(json.dumps({"cpu": cpu, "clock": clock, "losses": losses, "megabytes": peak_megabytes()}))


def peak_megabytes() -> float:
    """The most memory this process has held; unlike getrusage's, without that of the process it came from."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return next(int(line.split()[1]) for line in lines if line.startswith("VmHWM")) / 1024


# What is compared


def pool(setting: Setting) -> Pool:
    """Random weights, and the running statistics of smooth random pictures."""
    torch.manual_seed(SEED)
    network = ReidNetwork(ReidNetworkConfig(BACKBONE, setting.size, identities=setting.classes))
    batch = network.train().requires_grad_(False)
    for head in network.heads:
        head.classifier.weight.normal_(std=0.1)
    for _ in range(5):
        coarse = torch.rand(32, 3, *(side // 8 for side in setting.size))
        batch(F.interpolate(coarse, size=setting.size, mode="bilinear", align_corners=False))
    people = [f"person {number:05}" for number in range(setting.classes)]
    return Pool.of(network.eval(), people, [setting.group] * setting.classes)


def one_group(known: Pool, setting: Setting) -> list[float]:
    """The losses of one group, made in the way that is asked for."""
    classes = torch.arange(setting.group) % setting.classes
    items = tuple(f"picture {number}" for number in range(setting.group))
    config, rng = AssemblyConfig(steps=setting.steps), Randomness.from_seed(SEED)
    if setting.way in ("layout", "malloc"):
        return assemble(
            known.classifier, classes, setting.classes, setting.size, mean=known.mean, std=known.std, config=config,
            rng=rng, items=items,
        )[1]  # fmt: skip
    start = torch.stack([rng.child("start", item).normal(3, *setting.size) for item in items])
    return plain_loop(known, classes, start, config, setting.way)


def many_groups(known: Pool, setting: Setting) -> list[float]:
    """As many groups as asked for, planned and made as `veilkit protect` does."""
    method = Fro(FroConfig(group=setting.group, assembly=AssemblyConfig(steps=setting.steps)), known)
    rng = bind(Randomness.from_seed(SEED), method)
    wanted = setting.groups * setting.group
    counts = {person: wanted // setting.classes + (place < wanted % setting.classes)
              for place, person in enumerate(known.people)}  # fmt: skip
    for number, people in enumerate(method.plan(counts, rng=rng)):
        method.synthesise([f"{number}/{place}" for place in range(len(people))], people, rng=rng)
    return []


class Contiguous(nn.Module):
    """The Re-ID classifier in the usual layout: the network itself would turn its input to channels last."""

    def __init__(self, network: ReidNetwork) -> None:
        super().__init__()
        self.network = network.to(memory_format=torch.contiguous_format)

    def forward(self, images: Tensor) -> Tensor:
        maps = self.network.backbone(((images - self.network.mean) / self.network.std).contiguous())
        (head,) = self.network.heads
        return head.classifier(head(maps)[1])


class Kept:
    """The textbook's hooks: they keep what enters each layer, for mean and variance to be taken afterwards."""

    def __init__(self, classifier: nn.Module) -> None:
        self.layers = [m for m in classifier.modules() if isinstance(m, nn.BatchNorm1d | nn.BatchNorm2d)]
        self.inputs: list[Tensor] = []

    def __enter__(self) -> Kept:
        def keep(module: nn.Module, inputs: tuple[Tensor, ...], output: Tensor) -> None:
            self.inputs.append(inputs[0])

        self.hooks = [layer.register_forward_hook(keep) for layer in self.layers]
        return self

    def __exit__(self, *_: object) -> None:
        for hook in self.hooks:
            hook.remove()

    def distance(self) -> Tensor:
        total = torch.zeros(())
        for layer, inputs in zip(self.layers, self.inputs, strict=True):
            over = (0, 2, 3) if inputs.ndim == 4 else (0,)
            total = total + (inputs.mean(over) - layer.running_mean).norm()
            total = total + (inputs.var(over, correction=0) - layer.running_var).norm()
        self.inputs.clear()
        return total


def plain_loop(known: Pool, classes: Tensor, start: Tensor, config: AssemblyConfig, way: str) -> list[float]:
    """Eq. 3 to 6 as one would write them down; `way` says which measures are on."""
    assert known.network is not None
    classifier = Contiguous(known.network).requires_grad_(way == "plain")
    pixels = start.clone().requires_grad_()
    adam = torch.optim.Adam([pixels], lr=config.rate, betas=config.betas)
    losses = []
    with Statistics(classifier) if way == "moments" else Kept(classifier) as statistics:
        for _ in range(config.steps):
            logits = classifier(pixels * known.std + known.mean)
            loss = F.cross_entropy(logits / config.temperature, classes) + config.alpha * statistics.distance()
            adam.zero_grad()
            classifier.zero_grad()
            loss.backward()
            adam.step()
            losses.append(loss.item())
    return losses


if __name__ == "__main__":
    main()
