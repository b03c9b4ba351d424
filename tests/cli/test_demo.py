from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from veilkit.cli import app, demo


def test_the_demo_protects_attacks_and_ends_in_one_page(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dlib")
    monkeypatch.setattr(demo, "METHODS", {"people": ("pixelate",), "faces": ("pixelate",)})
    monkeypatch.setattr(demo, "PEOPLE", 4)
    monkeypatch.setattr(demo, "FACES", 2)
    monkeypatch.setattr(demo, "SHOTS", 2)
    monkeypatch.setattr(demo, "HEIGHT", 64)
    done = CliRunner().invoke(app, ["demo", str(tmp_path / "demo")])
    assert done.exit_code == 0, done.output
    assert done.output.count("protected and attacked: pixelate") == 2
    page = tmp_path / "demo" / demo.PAGE
    assert str(page) in done.output
    text = page.read_text()
    assert text.count("<img") == 2
    assert "Faces" in text
    assert (tmp_path / "demo" / "people" / "results.json").is_file()
