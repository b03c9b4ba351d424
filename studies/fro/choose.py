"""Scores settings of FRO's study on training people whom neither pool nor student knows; test people are not seen.

    VEILKIT_DATA=... python -m studies.fro.choose preset=spectral replay=4 ... --work DIR

trains as the study does, prints pool and student at the largest scale, and publishes nothing. Its cells lie in
DIR/choice, since they must never be taken for the study's own.
"""

from __future__ import annotations

import argparse
import os
from dataclasses import asdict
from pathlib import Path

import torch

from studies.fro.cells import FroCells
from studies.fro.plan import FroStudyConfig
from studies.fro.tables import METRICS, interval_of
from studies.shared.cells import CellStore
from studies.shared.recognisers import IMAGENET, JUDGE, load_judge
from veilkit.configs import parse_settings, with_settings
from veilkit.datasets.market1501 import Market1501, load_market1501
from veilkit.progress import Progress
from veilkit.rng import Randomness
from veilkit.training.retrieval import hold_out
from veilkit.types import Split

CHOSEN_BY = 200  # training people on whom settings are scored


def main() -> None:
    """Train and score."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("settings", nargs="*", metavar="FIELD=VALUE")
    parser.add_argument("--data", type=Path, default=os.environ.get("VEILKIT_DATA"))
    parser.add_argument("--work", type=Path, required=True)
    parser.add_argument("--workers", type=int, default=1)
    parser.add_argument("--threads", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.data is None:
        parser.error("give --data, or set VEILKIT_DATA to the folder that holds cuhk03-np")
    torch.set_num_threads(arguments.threads)
    config = with_settings(FroStudyConfig(), parse_settings(arguments.settings))
    data, work = Path(arguments.data), arguments.work / "choice"
    people = among_training_people(load_market1501(data / "cuhk03-np"), config.people, CHOSEN_BY, config.seed)
    with Progress(2, "cells") as progress:
        study = FroCells(
            people, work, config, CellStore(work, asdict(config), progress), judge=load_judge(JUDGE, data),
            init=Path(IMAGENET), workers=arguments.workers,
        )  # fmt: skip
        found = {"pool": study.pool(), f"student, scale {max(config.scales):g}": study.student(max(config.scales))}
    for name, cell in found.items():
        print(f"{name}: " + ", ".join(f"{metric} {interval_of(cell, metric)}" for metric in METRICS))


def among_training_people(data: Market1501, people: int, count: int, seed: int) -> Market1501:
    """The data with another query and gallery: of the `count` training people who follow the first `people`."""
    others = set(data.train.identities[people : people + count + 1])
    records = tuple(record for record in data.train.records if record.identity in others)
    held = hold_out(Split("others", data.train.root, records), count / (count + 1), Randomness.from_seed(seed))
    return Market1501(data.train, held.query, held.gallery)


if __name__ == "__main__":
    main()
