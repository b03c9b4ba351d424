from __future__ import annotations

from pathlib import Path

import pytest
from typer.testing import CliRunner

from veilkit.cli import app, demo


def test_the_demo_protects_and_attacks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(demo, "METHODS", ("pixelate",))
    monkeypatch.setattr(demo, "PEOPLE", 4)
    monkeypatch.setattr(demo, "HEIGHT", 64)
    done = CliRunner().invoke(app, ["demo", str(tmp_path / "demo")])
    assert done.exit_code == 0, done.output
    assert "16 pictures protected with pixelate" in done.output
    for wanted in ("sheet.png", "pixelate.audit/report.html"):
        assert str(tmp_path / "demo" / wanted) in done.output
        assert (tmp_path / "demo" / wanted).is_file()
