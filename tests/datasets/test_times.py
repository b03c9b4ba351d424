from __future__ import annotations

from pathlib import Path

import pytest

from veilkit.datasets.times import time_teller
from veilkit.errors import ConfigError, DataError


def test_times_come_from_a_list_a_pattern_or_nowhere(tmp_path: Path) -> None:
    (tmp_path / "times.csv").write_text("path,time\na.jpg,2024-05-01\nb.jpg,\n")
    listed = time_teller(f"csv:{tmp_path / 'times.csv'}")
    assert [listed(path) for path in ("a.jpg", "b.jpg", "c.jpg")] == ["2024-05-01", None, None]
    assert time_teller("pattern:_(?P<time>[0-9]+)s")("cam/x_12s.jpg") == "12"
    assert time_teller("pattern:_(?P<time>[0-9]+)s")("cam/x.jpg") is None
    assert time_teller("none")("a.jpg") is None


def test_what_tells_no_time_is_told(tmp_path: Path) -> None:
    (tmp_path / "wrong.csv").write_text("file,when\n")
    for spec, error in (
        ("exif", ConfigError),
        ("pattern:(", ConfigError),
        ("pattern:(?P<when>.)", ConfigError),
        (f"csv:{tmp_path / 'wrong.csv'}", DataError),
        (f"csv:{tmp_path / 'none.csv'}", DataError),
    ):
        with pytest.raises(error):
            time_teller(spec)
