"""Restore originals: what is asked is checked first, and only then is anything heavy imported."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from veilkit.options import takes
from veilkit.pipeline.options import RecoverOptions

if TYPE_CHECKING:
    from veilkit.pipeline.recovery.target import Recovered


@takes(RecoverOptions)
def recover(protected: str | Path, destination: str | Path, **options: Any) -> Recovered:
    """Restore the originals of the release `protected`, under their own paths in `destination`.

    With an identity, a file with a secret key of one of the recipients, sealed originals come back byte for byte.
    With a model, the decoder that was trained with the release's method, pictures like the originals come back, but
    not the same, under the names of the release.

    Where anything is wrong with one of them, nothing is written. A recovery that was stopped goes on when it is
    called again; files that are there are never overwritten.
    """
    return restore(RecoverOptions.of(protected, destination, **options))


def restore(options: RecoverOptions) -> Recovered:
    """What `recover` does, for options as one object."""
    options.check()
    from veilkit.pipeline.recovery.sealed import run_recover

    return run_recover(options)
