"""Files made to mislead: model files, lists of hashes, manifests and audit specs, 200 of each kind.

    python benchmarks/crafted_files.py

Each must be read or refused in words; any other error is a traceback that a user would see. The time of the slowest
and the peak memory of the process are recorded. The generators are those of the tests.
"""

from __future__ import annotations

import resource
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable
from pathlib import Path

from claims import ROOT, record

sys.path.insert(0, str(ROOT))

from tests.audit.inputs.test_spec import crafted_specs
from tests.crafted_models import crafted
from tests.pipeline.test_crafted_releases import Release, crafted_manifests, crafted_sums
from tests.test_crafted_models import VALID
from veilkit.audit.inputs.spec import read_spec
from veilkit.errors import VeilkitError
from veilkit.pipeline.manifest import MANIFEST, SUMS

COUNT, SEED = 200, 7
Counts = Counter[str]


class Tally:
    """How many files of a kind were read and refused, which ended otherwise, and the slowest."""

    def __init__(self) -> None:
        self.counts: dict[str, Counts] = {}
        self.tracebacks: list[str] = []
        self.slowest = 0.0

    def try_one(self, kind: str, action: Callable[[], object]) -> None:
        begun = time.perf_counter()
        try:
            action()
            ended = "read"
        except VeilkitError:
            ended = "refused"
        except Exception as error:
            ended = "traceback"
            self.tracebacks.append(f"{kind}: {type(error).__name__}: {error}"[:200])
        self.slowest = max(self.slowest, time.perf_counter() - begun)
        self.counts.setdefault(kind, Counter())[ended] += 1


def try_models(tally: Tally, folder: Path) -> None:
    for name, (make, load) in VALID.items():
        valid, file = folder / "valid.safetensors", folder / "crafted.safetensors"
        make(valid)
        for _, data in crafted(valid, COUNT, SEED):
            file.write_bytes(data)
            tally.try_one(f"model: {name}", lambda load=load, file=file: load(file))  # type: ignore[misc]


def try_releases(tally: Tally, folder: Path) -> None:
    release = Release(folder)
    for data in crafted_sums(release.files[SUMS]):
        release.put_sums(data)
        for action in (release.recover, release.audit):
            tally.try_one(f"SHA256SUMS: {action.__name__}", action)
    for data in crafted_manifests(release.files[MANIFEST]):
        release.put(MANIFEST, data)
        release.put(SUMS, release.files[SUMS])
        for action in (release.recover, release.audit):
            tally.try_one(f"manifest: {action.__name__}", action)


def try_specs(tally: Tally, folder: Path) -> None:
    file = folder / "audit.toml"
    for _, data in crafted_specs(COUNT):
        file.write_bytes(data)
        tally.try_one("spec", lambda: read_spec(file))


def main() -> None:
    tally = Tally()
    for attempt in (try_models, try_releases, try_specs):
        with tempfile.TemporaryDirectory() as folder:
            attempt(tally, Path(folder))
    megabytes = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    for kind, counts in tally.counts.items():
        print(f"{kind:28} {dict(counts)}")
    print(*tally.tracebacks, sep="\n")
    facts = {
        "data": "files crafted from tiny valid ones",
        "scale": f"{COUNT} files of each of {len(tally.counts)} kinds",
        "seed": SEED,
        "command": "python benchmarks/crafted_files.py",
    }
    record(
        id="crafted-tracebacks",
        claim="Crafted models, lists of hashes, manifests and specs that end in anything but a result or a "
        "clear error",
        figure=len(tally.tracebacks), bar="== 0", unit="files", **facts,
    )  # fmt: skip
    record(
        id="crafted-memory", claim="Peak memory of the process that reads all of them", figure=round(megabytes),
        bar="<= 1500", unit="MB", **facts,
    )  # fmt: skip
    record(
        id="crafted-slowest", claim="Time of the slowest of them", figure=round(tally.slowest, 2), bar="<= 60",
        unit="s", **facts,
    )  # fmt: skip


if __name__ == "__main__":
    main()
