"""What libraries say of a damaged file holds its values: none of it reaches logs or the terminal."""

from __future__ import annotations

import logging
import struct
import warnings
from pathlib import Path

import pytest

from veilkit.errors import RefusedImage
from veilkit.media.reading import Limits, decode
from veilkit.pipeline.protect import protect

VALUE = 47_113


def telling_tiff() -> bytes:
    """A TIFF that claims so many samples a pixel that Pillow logs the number as an error."""
    tags = ((256, 4), (257, 4), (258, 8), (259, 1), (262, 1), (273, 8), (277, VALUE), (278, 4), (279, 16))
    entries = b"".join(struct.pack("<HHII", tag, 4, 1, value) for tag, value in tags)
    return struct.pack("<2sHIH", b"II", 42, 8, len(tags)) + entries + bytes(20)


def test_loggers_and_warnings_say_nothing_of_a_damaged_tiff(
    caplog: pytest.LogCaptureFixture, capfd: pytest.CaptureFixture[str]
) -> None:
    with caplog.at_level(logging.DEBUG), warnings.catch_warnings(record=True) as warned:
        warnings.simplefilter("always")
        with pytest.raises(RefusedImage) as refusal:
            decode(telling_tiff(), Limits())
        logging.getLogger("PIL").error("heard again")
    assert [record.message for record in caplog.records] == ["heard again"]
    assert not warned
    assert str(VALUE) not in refusal.value.reason + "".join(capfd.readouterr())


@pytest.mark.parametrize("workers", [0, 1])
def test_a_run_says_nothing_of_a_damaged_tiff(
    tmp_path: Path, workers: int, capfd: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "source").mkdir()
    (tmp_path / "source" / "a.tif").write_bytes(telling_tiff())
    outcome = protect(tmp_path / "source", tmp_path / "release", "mask", workers=workers)
    assert sum(outcome.refused.values()) == 1
    assert str(VALUE) not in "".join(capfd.readouterr())
