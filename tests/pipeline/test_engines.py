"""Worker processes: one that dies takes one picture with it, not the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest
import torch

from pictures import write_folder
from veilkit.errors import UsageError, WorkerError
from veilkit.methods.controls import Pixelate
from veilkit.pipeline.engines import local
from veilkit.pipeline.job import Task
from veilkit.pipeline.ledger import Entry
from veilkit.pipeline.protect import protect
from veilkit.rng import Randomness
from veilkit.types import ImageBatch, Release


class Deadly(Pixelate):
    """Ends its process on one picture, as a decoder with a memory error would."""

    name = "deadly"

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Protect, or die."""
        if batch.items[0].startswith("person001/000001.jpg"):
            os.kill(os.getpid(), signal.SIGKILL)
        return super().protect(batch, rng=rng)


class AlwaysDeadly(Pixelate):
    """Ends its process on every picture."""

    name = "always-deadly"

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Die."""
        os._exit(7)


def test_a_picture_that_kills_workers_is_refused_and_the_rest_is_done(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 12, people=3, height=16, width=8)
    outcome = protect(tmp_path / "source", tmp_path / "release", Deadly(), workers=1)
    assert outcome.protected == 11
    assert dict(outcome.refused) == {"a worker process died on it twice (signal 9)": 1}
    assert len(list((tmp_path / "release").glob("*.png"))) == 11


def test_workers_that_keep_dying_end_the_run(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 12, people=3, height=16, width=8)
    with pytest.raises(WorkerError, match=r"died 20 times in a row \(exit code 7\)"):
        protect(tmp_path / "source", tmp_path / "release", AlwaysDeadly(), workers=1)


def test_a_script_without_a_main_guard_works(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 4, people=2, height=16, width=8)
    script = tmp_path / "script.py"
    script.write_text(
        "import veilkit\n"
        f"print(veilkit.protect({str(tmp_path / 'source')!r}, {str(tmp_path / 'release')!r}, 'pixelate', workers=2)"
        ".protected)\n"
    )
    ended = subprocess.run([sys.executable, str(script)], capture_output=True, text=True, check=False)
    assert (ended.returncode, ended.stdout) == (0, "4\n"), ended.stderr


class _Line:
    """Stands for a worker process: notes how many tasks, and of what length, wait for it at once."""

    def __init__(self) -> None:
        self.held: list[Task] = []

    def give(self, task: Task) -> None:
        self.held.append(task)


def test_no_two_long_messages_can_cross() -> None:
    """A long task is never sent to a worker whose answer will be long: both would wait in full sockets."""
    tasks = [Task(tuple(Entry(str(index), str(index)) for index in range(size))) for size in (1, 1, 500, 500, 1, 1)]
    pool = local._Pool([], iter(tasks), lambda entries: None)
    worker = _Line()
    while True:
        pool._feed(worker)  # type: ignore[arg-type]
        if not worker.held:
            break
        assert len(worker.held[0].entries) == 1 or len(worker.held) == 1
        worker.held.pop(0)


def test_the_folder_a_command_is_given_in_is_not_imported_from(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 2, people=2, height=16, width=8)
    (tmp_path / "source" / "torch.py").write_text("raise SystemExit('somebody else ran code')")
    command = [sys.executable, "-P", "-c", "from veilkit.cli import main; main()"]
    words = ["protect", ".", str(tmp_path / "release"), "--method", "pixelate", "--workers", "1"]
    ended = subprocess.run(
        [*command, *words], cwd=tmp_path / "source", capture_output=True, text=True, check=False, timeout=300
    )
    assert (ended.returncode, "2 pictures protected" in ended.stdout) == (0, True), ended.stderr


class Local:
    """A method that a worker cannot import stands for one that was defined in a script."""

    def __reduce__(self):
        return import_module, ("the_script_that_defines_it",)


def test_a_job_that_workers_cannot_take_is_told(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 2, people=2, height=16, width=8)
    method = Pixelate()
    method.config_of_a_script = Local()  # type: ignore[attr-defined]
    with pytest.raises(UsageError, match="define it in a module"):
        protect(tmp_path / "source", tmp_path / "release", method, workers=1)


class Endless(Pixelate):
    """Does not come to an end on one picture."""

    name = "endless"

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Protect, or go on for ever."""
        while batch.items[0].startswith("person001/000001.jpg"):
            pass
        return super().protect(batch, rng=rng)


class Greedy(Pixelate):
    """Asks for more memory on one picture than any machine has, as a decoder may that believes a header."""

    name = "greedy"

    def protect(self, batch: ImageBatch, *, rng: Randomness) -> Release:
        """Protect, or ask for 16 GB."""
        if batch.items[0].startswith("person001/000001.jpg"):
            torch.empty(2**34, dtype=torch.uint8)
        return super().protect(batch, rng=rng)


def test_a_picture_that_takes_too_long_is_refused_and_its_worker_replaced(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 12, people=3, height=16, width=8)
    limits = {"max_seconds": 1}
    outcome = protect(tmp_path / "source", tmp_path / "release", Endless(), workers=1, **limits)
    assert outcome.protected == 11
    assert dict(outcome.refused) == {"it took more than 1 seconds of processor time": 1}


def test_a_picture_that_takes_too_much_memory_is_refused_and_the_rest_is_done(tmp_path: Path) -> None:
    write_folder(tmp_path / "source", 12, people=3, height=16, width=8)
    limits = {"max_memory": 8 * 2**10}
    outcome = protect(tmp_path / "source", tmp_path / "release", Greedy(), workers=1, **limits)
    assert outcome.protected == 11
    assert dict(outcome.refused) == {"greedy failed on it (RuntimeError, 8x16 pixels)": 1}
