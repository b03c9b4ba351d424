"""The three trainings of PrivacyReID's study: base, without and with upgradation, none of whose parts is done twice.

Base is the recogniser that the training with upgradation starts from, so it is trained once for both. Until the first
upgrade, the trainings with and without it are the same: what the one without has done so far is taken over.
"""

from __future__ import annotations

import json
import shutil
import sys
from collections.abc import Mapping, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from multiprocessing import get_context
from pathlib import Path
from typing import Any, TextIO, cast

import torch

from studies.privacyreid.plan import BASE, STAGES, WITH, WITHOUT
from veilkit.methods.learned import expert_beside
from veilkit.methods.privacyreid.config import PrivacyReidConfig
from veilkit.methods.privacyreid.method import PrivacyReid
from veilkit.methods.privacyreid.supervision import desensitiser
from veilkit.networks.reid import save_reid
from veilkit.types import Split


@dataclass(frozen=True, slots=True)
class Trainings:
    """All that the trainings of one desensitiser need. folder: for states and models. configs: by stage.

    threads: of torch, which two processes share.
    """

    split: Split
    configs: Mapping[str, PrivacyReidConfig]
    folder: Path
    init: Path | None
    threads: int = 1

    def model(self, stage: str) -> Path:
        """The model file of a stage; base has none, but an expert beside it as the others."""
        return self.folder / f"{stage}.safetensors"

    def expert(self, stage: str) -> Path:
        """The recogniser of a stage. It is written last, so a stage that has one is done."""
        return expert_beside(self.model(stage))

    def work(self, stage: str) -> Path:
        """The folder of a stage's states, checks and samples."""
        return self.folder / (WITH if stage == BASE else stage)

    def decisions(self, stage: str) -> list[dict[str, Any]]:
        """What was measured and decided at each check."""
        return [json.loads(line) for line in (self.work(stage) / "decisions.jsonl").read_text().splitlines()]

    def run(self, workers: int) -> None:
        """Train what is not trained yet; with 2 workers or more in two processes, to the same bits."""
        left = [stage for stage in STAGES if not self.expert(stage).exists()]
        lanes = [[stage for stage in left if stage != WITHOUT], [stage for stage in left if stage == WITHOUT]]
        if workers < 2 or not all(lanes):
            _train(self, left)
        else:
            with ProcessPoolExecutor(len(lanes), mp_context=get_context("spawn")) as pool:
                for done in [pool.submit(_train_apart, self, lane) for lane in lanes]:
                    done.result()
        shutil.rmtree(self.work(WITHOUT) / "checks", ignore_errors=True)  # nobody goes on from them any more


class _Lines:
    """Standard error, as a stream for lines that say of which training they tell."""

    def __init__(self, name: str) -> None:
        self._name = name

    def write(self, text: str) -> int:
        return sys.stderr.write(f"{self._name}, {text}")

    def flush(self) -> None:
        sys.stderr.flush()

    def isatty(self) -> bool:
        return False  # bars of two processes would be drawn over each other


def _train(trainings: Trainings, stages: Sequence[str]) -> None:
    from veilkit.methods.privacyreid.training import train_anonymiser, train_desensitised

    for stage in stages:
        config, work = trainings.configs[stage], trainings.work(stage)
        supervision, stream = desensitiser(config), cast(TextIO, _Lines(stage))
        if stage == BASE:
            network = train_desensitised(
                trainings.split, config, supervision, work_dir=work, init=trainings.init, stream=stream
            )
            save_reid(trainings.expert(stage), network, half=True)
            continue
        trained = train_anonymiser(
            trainings.split, config, supervision, work_dir=work, init=trainings.init, keep_checks=stage == WITHOUT,
            shared=trainings.work(WITHOUT) if stage == WITH else None, stream=stream,
        )  # fmt: skip
        PrivacyReid(config).take(trained).save(trainings.model(stage))


def _train_apart(trainings: Trainings, stages: Sequence[str]) -> None:
    torch.set_num_threads(max(1, trainings.threads // 2))
    _train(trainings, stages)
