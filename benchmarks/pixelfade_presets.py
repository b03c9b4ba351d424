"""PixelFade's own preset against a plain loop of as many steps as the released code takes, under a trained expert.

One core, the same expert and pictures. Ours may stop as soon as the constraint holds; the released algorithm takes
every step. What each costs in matching and gives away to recovery is in the rows of `python -m studies pixelfade`.
"""

from __future__ import annotations

import argparse
import json
import subprocess
import sys
import time
from statistics import median
from typing import Any

import torch

from claims import ROOT, record
from pixelfade_speed import plain_loop
from veilkit.methods.pixelfade.config import RELEASED
from veilkit.methods.pixelfade.method import PixelFade
from veilkit.networks.reid import load_reid
from veilkit.rng import Randomness
from veilkit.synthetic.people.render import render_person
from veilkit.training.loop import keep_memory
from veilkit.types import ImageBatch

SEED, ROUNDS = 0, 3
PLAIN_PICTURES, PICTURES = 16, 64  # ours keeps its slots filled: a few pictures alone would wait for the slowest one
EXPERT = ROOT / "models" / "cuhk03_mobilenetv2.safetensors"
WAYS = ("released, plain loop", "released, by pixelfade", "ours")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--child", help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.child:
        print(json.dumps(child(arguments.child)))
        return
    found: dict[str, list[dict[str, Any]]] = {way: [] for way in WAYS}
    for number in range(1, ROUNDS + 1):
        for way in WAYS:
            found[way].append(run(way))
            print(f"round {number}, {way}: {found[way][-1]}", flush=True)
    seconds = {way: median(each["seconds"] for each in each_way) for way, each_way in found.items()}
    plain = seconds[WAYS[0]]
    ours = found["ours"][0]
    record(
        id="pixelfade-preset-speed",
        claim="PixelFade's own preset against a plain loop of the released algorithm, per core",
        figure=round(plain / seconds["ours"], 2), bar=">= 4", unit="x",
        data="generated people, models/cuhk03_mobilenetv2",
        scale=f"{PICTURES} pictures at 160x80 ({PLAIN_PICTURES} by the plain loop), {RELEASED.steps} steps as "
        f"released; CPU seconds per picture, median of {ROUNDS}",
        seed=SEED, command="python benchmarks/pixelfade_presets.py",
        note=f"released by pixelfade {plain / seconds[WAYS[1]]:.2f}x; ours took {ours['steps']:.0f} steps on average "
        f"and kept its constraint in {ours['held']:.0%} of the pictures",
    )  # fmt: skip


def run(way: str) -> dict[str, Any]:
    """Time a way in a process of its own: malloc cannot be told to forget."""
    command = [sys.executable, __file__, "--child", way]
    ended = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    answer: dict[str, Any] = json.loads(ended.stdout)
    return answer


def child(way: str) -> dict[str, Any]:
    """CPU seconds for each picture; where the method reports them, steps and the share that held."""
    torch.set_num_threads(1)
    network = load_reid(EXPERT)
    height, width = network.config.size
    count = PLAIN_PICTURES if way == WAYS[0] else PICTURES
    drawn = [render_person(SEED, 1 + index, 1 + index % 4, 0, height=height, width=width) for index in range(count)]
    images = torch.stack([torch.from_numpy(each.copy()) for each in drawn]).permute(0, 3, 1, 2).float().div(255)
    items = tuple(f"picture {index}" for index in range(count))
    rng = Randomness.from_seed(SEED)
    if way == WAYS[0]:
        own = [rng.child("picture", item) for item in items]
        limit = RELEASED.threshold * network.embed(images[:2]).shape[1]
        network.requires_grad_(True)
        begun = time.process_time()
        for start in range(0, count, RELEASED.batch):
            part = slice(start, start + RELEASED.batch)
            plain_loop(network, images[part], own[part], RELEASED, limit)
        return {"seconds": (time.process_time() - begun) / count}
    keep_memory()
    method = PixelFade.configured("released" if way == WAYS[1] else None, {"expert": str(EXPERT)})
    method.check()  # loads and tries the expert, and finds the spread
    begun = time.process_time()
    made = method.protect(ImageBatch(images, items), rng=rng)
    spent = time.process_time() - begun
    assert made.reports is not None
    return {
        "seconds": spent / count,
        "steps": sum(report.details["steps"] for report in made.reports) / count,
        "held": sum(bool(report.within_limit) for report in made.reports) / count,
    }


if __name__ == "__main__":
    main()
