"""While somebody else's file is decoded, libraries say nothing: what they say holds values of the file."""

from __future__ import annotations

import logging
import os
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def silent_libraries() -> Iterator[None]:
    """Keep all loggers and warnings of this process quiet.

    All loggers, and not Pillow's alone: a decoder may use another library, and the caller may log everything.
    """
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


@contextmanager
def silent_terminal() -> Iterator[None]:
    """Keep libtiff from writing values of a damaged file to the terminal, which it does past Python."""
    kept = os.dup(2)
    with Path(os.devnull).open("wb") as nowhere:
        os.dup2(nowhere.fileno(), 2)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)
