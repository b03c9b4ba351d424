"""The access log: appended, one JSON object a line, for its owner alone."""

from __future__ import annotations

import datetime
import json
import stat
from pathlib import Path

import pytest

from veilkit.errors import DestinationError
from veilkit.pipeline.recovery.access_log import AccessLog


def test_lines_are_appended_with_time_and_result(tmp_path: Path) -> None:
    file = tmp_path / "logs" / "access.jsonl"
    for result in ("restored", "already there"):
        with AccessLog(file, "release") as log:
            log.add("a.png", "age1x", result, original="ä\udcff\n.jpg", sha256="0" * 64)  # type: ignore[arg-type]
    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert [line["result"] for line in lines] == ["restored", "already there"]
    assert {(line["original"], line["release"], line["reason"]) for line in lines} == {
        ("ä\udcff\n.jpg", "release", None)
    }
    for line in lines:
        moment = datetime.datetime.fromisoformat(line["time"])
        assert moment.utcoffset() == datetime.timedelta(0)
        assert abs(datetime.datetime.now(datetime.UTC) - moment) < datetime.timedelta(minutes=5)
    assert stat.S_IMODE(file.stat().st_mode) == 0o600


def test_a_line_that_was_cut_off_does_not_spoil_the_next(tmp_path: Path) -> None:
    file = tmp_path / "access.jsonl"
    file.write_text('{"time": "20')
    with AccessLog(file, "release") as log:
        log.add("a.png", "age1x", "refused", reason="damaged")
    assert json.loads(file.read_text().splitlines()[1])["reason"] == "damaged"


def test_a_log_that_cannot_be_written_is_told(tmp_path: Path) -> None:
    with pytest.raises(DestinationError, match="without it nothing is restored"), AccessLog(tmp_path, "release"):
        pass
