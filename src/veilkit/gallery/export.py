"""What was released, as files that others can audit without the gallery, its key or its owner."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from veilkit.errors import DestinationError
from veilkit.gallery.facts import Facts, write_whole
from veilkit.gallery.milvus import VectorStore
from veilkit.gallery.statement import Statement

FEATURES, MANIFEST = "features.npz", "manifest.json"


@dataclass(frozen=True, slots=True)
class Exported:
    """Where the files are, and how many vectors they hold."""

    destination: Path
    vectors: int


def write_export(
    destination: Path, facts: Facts, statement: Statement, pseudonyms: Sequence[str], store: VectorStore
) -> Exported:
    """features.npz: features (N, D) as released, and by N pseudonyms, cameras ("" unknown), times (ms, -1 unknown).

    manifest.json: gallery.json's facts without the server, with the three numbers and the hash of the features.
    """
    try:
        destination.mkdir(parents=True, exist_ok=True)
        if any(destination.iterdir()):
            raise DestinationError(f"expected a new or empty folder for the export, but {destination} holds files")
    except OSError as error:
        raise DestinationError(f"the export {destination} cannot be written: {error.strerror}") from None
    held = store.vectors(pseudonyms) if pseudonyms else {}
    rows = [held[name] for name in pseudonyms]
    buffer = io.BytesIO()
    np.savez(
        buffer,
        features=np.stack([row[0] for row in rows]) if rows else np.empty((0, facts.dimension), dtype=np.float32),
        pseudonyms=np.array(list(pseudonyms), dtype=np.str_),
        cameras=np.array([row[1] or "" for row in rows], dtype=np.str_),
        times=np.array([-1 if row[2] is None else row[2] for row in rows], dtype=np.int64),
    )
    data = buffer.getvalue()
    about = json.loads(facts.model_dump_json(exclude={"url", "collection"}))
    about |= {
        "epsilon_spent": statement.spent if np.isfinite(statement.spent) else "Infinity",
        "vectors": len(rows),
        "features_sha256": hashlib.sha256(data).hexdigest(),
    }
    write_whole(destination / FEATURES, data)
    write_whole(destination / MANIFEST, (json.dumps(about, indent=2) + "\n").encode())
    return Exported(destination, len(rows))
