"""The packaged expert is found beside the code, with its card."""

from __future__ import annotations

import shutil
from importlib import resources
from pathlib import Path

import pytest

from veilkit.errors import CheckpointError
from veilkit.experts import load_expert


def test_people_is_read_from_the_package(reid_file: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(resources, "files", lambda package: tmp_path / package)
    weights = tmp_path / "veilkit.experts" / "weights"
    weights.mkdir(parents=True)
    with pytest.raises(CheckpointError, match="lacks the weights of the expert 'people'"):
        load_expert("people")
    shutil.copyfile(reid_file, weights / "people.safetensors")
    (weights / "people.md").write_text("# People\n")
    info = load_expert("people").info
    assert (info.name, info.origin, info.card, info.differentiable) == ("people", "built-in", "# People\n", True)
