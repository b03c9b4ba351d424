"""The vectors in Milvus: a file through milvus-lite or a server by URL, one code path. All of Milvus is in this file.

It gets what was released and nothing else. What was upserted survives a kill of this process; what a power cut may
take, the next add puts back from the ledger.
"""

from __future__ import annotations

import json
import logging
import os
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import numpy as np
from numpy.typing import NDArray

from veilkit.errors import ConfigError, DataError, DestinationError, MissingExtraError
from veilkit.locks import take_lock

TOKEN = "VEILKIT_MILVUS_TOKEN"  # noqa: S105 - the name of an environment variable; a gallery never holds the token
_PSEUDONYM, _VECTOR, _CAMERA, _TIME = "pseudonym", "vector", "camera", "time"
_CONNECT, _PATIENCE = 10.0, 120.0  # seconds until a server must answer at all, and a request be done
_PAGE = 1000  # rows asked for at once; Milvus allows 16,384
_QUERIES = 64  # searched at once: milvus-lite holds a distance to every vector for each
# Calls of minutes (an index is built) are no reason to ask milvus-lite, in this very process, whether it is alive.
_FILE_OPTIONS = {"grpc.keepalive_time_ms": 3_600_000}
# A gRPC server that says nothing else closes connections that ask more often than every five minutes while a call
# takes its time; pymilvus would ask every ten seconds, which Milvus allows and milvus-lite's server does not.
_SERVER_OPTIONS = {"grpc.keepalive_time_ms": 330_000}


def check_url(url: str) -> None:
    """Refuse what is no URL of a server, and one with a secret in it, since gallery.json is public."""
    parts = urlsplit(url)
    if parts.scheme not in ("http", "https") or not parts.hostname:
        raise ConfigError(f"expected a server's URL such as http://localhost:19530, but got {url!r}")
    if parts.username or parts.password or parts.query:
        raise ConfigError(f"a gallery is no place for a password: leave it out of the URL, and set {TOKEN}")


@dataclass(frozen=True, slots=True)
class Hit:
    """One answer: whose (a pseudonym), how near (cosine of query and noisy vector), which camera, when (ms)."""

    pseudonym: str
    score: float
    camera: str | None
    time: int | None


class VectorStore:
    """One collection of noisy vectors. uri: a path ending in .db, or a server's URL."""

    def __init__(self, uri: str, collection: str, *, dimension: int) -> None:
        self._uri, self._collection = uri, collection
        self._dimension = dimension
        self._file = None if "://" in uri else Path(uri)
        self._loaded = False

    def __enter__(self) -> Self:
        pymilvus = _pymilvus(local=self._file is not None)
        self._lock: int | None = None
        if self._file is not None:
            busy = "another process has this gallery open: wait for it, or use a Milvus server for many at once"
            unwritable = f"the gallery {self._file.parent} cannot be written"
            self._lock = take_lock(self._file.with_suffix(".lock"), busy=busy, unwritable=unwritable)
        try:
            with self._translated("opening it"):
                remote = {} if self._file else {"token": os.environ.get(TOKEN, ""), "timeout": _CONNECT}
                calls = _FILE_OPTIONS if self._file else _SERVER_OPTIONS
                self._client: Any = pymilvus.MilvusClient(self._uri, grpc_options=calls, **remote)
        except BaseException:
            self._release()
            raise
        return self

    def __exit__(self, *_: object) -> None:
        self._client.close()
        self._release()

    def exists(self) -> bool:
        """Whether the collection is there."""
        with self._translated("looking for its collection"):
            return bool(self._client.has_collection(self._collection, timeout=_PATIENCE))

    def make(self) -> None:
        """Make the collection where it is not there."""
        if self.exists():
            return
        kind = _pymilvus(local=False).DataType
        with self._translated("making its collection"):
            schema = self._client.create_schema(auto_id=False, enable_dynamic_field=False)
            schema.add_field(_PSEUDONYM, kind.VARCHAR, is_primary=True, max_length=32)
            schema.add_field(_VECTOR, kind.FLOAT_VECTOR, dim=self._dimension)
            schema.add_field(_CAMERA, kind.VARCHAR, max_length=128, nullable=True)
            schema.add_field(_TIME, kind.INT64, nullable=True)
            # Exact: noise leaves nothing for a graph to follow (docs/decisions.md, 7).
            index = self._client.prepare_index_params()
            index.add_index(_VECTOR, index_type="FLAT", metric_type="COSINE")
            self._client.create_collection(
                self._collection, schema=schema, index_params=index, consistency_level="Strong"
            )

    def drop(self) -> None:
        """Take the collection away."""
        with self._translated("dropping its collection"):
            self._client.drop_collection(self._collection)

    def upsert(
        self,
        pseudonyms: Sequence[str],
        vectors: NDArray[np.float32],
        cameras: Sequence[str | None],
        times: Sequence[int | None],
    ) -> None:
        """Store rows under their pseudonyms, in place of older ones: doing it twice does nothing more."""
        rows = [
            {_PSEUDONYM: name, _VECTOR: vector, _CAMERA: camera, _TIME: time}
            for name, vector, camera, time in zip(pseudonyms, vectors, cameras, times, strict=True)
        ]
        with self._translated("storing vectors"):
            for start in range(0, len(rows), _PAGE):
                self._client.upsert(self._collection, rows[start : start + _PAGE], timeout=_PATIENCE)

    def delete(self, pseudonyms: Sequence[str]) -> None:
        """Take rows away; those that are not there are passed over."""
        self._load()
        with self._translated("removing vectors"):
            for start in range(0, len(pseudonyms), _PAGE):
                page = list(pseudonyms[start : start + _PAGE])
                self._client.delete(self._collection, ids=page, timeout=_PATIENCE)

    def settle(self) -> None:
        """Let the store put in order what was added; nothing depends on it but speed."""
        with self._translated("settling"):
            self._client.flush(self._collection)

    def count(self) -> int:
        """How many vectors there are."""
        self._load()
        with self._translated("counting"):
            found = self._client.query(self._collection, output_fields=["count(*)"], timeout=_PATIENCE)
        return int(found[0]["count(*)"])

    def names(self) -> list[str]:
        """The pseudonyms of all that is stored, in their order."""
        self._load()
        found: list[str] = []
        with self._translated("listing"):
            rows = self._client.query_iterator(self._collection, batch_size=_PAGE, output_fields=[_PSEUDONYM])
            while page := rows.next():
                found += [row[_PSEUDONYM] for row in page]
            rows.close()
        return sorted(found)

    def held(self, pseudonyms: Sequence[str]) -> set[str]:
        """Those of `pseudonyms` that are stored."""
        return {row[_PSEUDONYM] for row in self._rows(pseudonyms, [_PSEUDONYM])}

    def vectors(self, pseudonyms: Sequence[str]) -> dict[str, tuple[NDArray[np.float32], str | None, int | None]]:
        """Vector, camera and time of those of `pseudonyms` that are stored."""
        rows = self._rows(pseudonyms, [_PSEUDONYM, _VECTOR, _CAMERA, _TIME])
        return {
            row[_PSEUDONYM]: (np.asarray(row[_VECTOR], dtype=np.float32), row[_CAMERA], row[_TIME]) for row in rows
        }

    def search(self, queries: NDArray[np.float32], limit: int, expression: str) -> list[list[Hit]]:
        """The nearest `limit` of each query (Q, D) by cosine, nearest first."""
        self._load()
        found: list[list[Hit]] = []
        with self._translated("searching"):
            for start in range(0, len(queries), _QUERIES):
                answers = self._client.search(
                    self._collection,
                    data=list(queries[start : start + _QUERIES]),
                    filter=expression,
                    limit=limit,
                    output_fields=[_CAMERA, _TIME],
                    search_params={"metric_type": "COSINE"},
                    timeout=_PATIENCE,
                )
                found += [[_hit(hit) for hit in answer] for answer in answers]
        return found

    def _rows(self, pseudonyms: Sequence[str], fields: list[str]) -> Iterator[dict[str, Any]]:
        self._load()
        for start in range(0, len(pseudonyms), _PAGE):
            with self._translated("reading vectors"):
                page = list(pseudonyms[start : start + _PAGE])
                yield from self._client.get(self._collection, ids=page, output_fields=fields, timeout=_PATIENCE)

    def _load(self) -> None:
        if self._loaded:
            return
        if not self.exists():
            raise DataError(
                f"the vector store {self._uri} no longer holds this gallery: `veilkit gallery add` without a source "
                "stores again what the ledger has paid for"
            )
        with self._translated("loading"):
            self._client.load_collection(self._collection)
        self._loaded = True

    def _release(self) -> None:
        if self._file is not None:
            from milvus_lite.server_manager import server_manager_instance

            server_manager_instance.release_server(str(self._file))
        if self._lock is not None:
            os.close(self._lock)

    @contextmanager
    def _translated(self, doing: str) -> Iterator[None]:
        """Milvus' own errors in our words."""
        import grpc

        error_type = _pymilvus(local=False).MilvusException
        try:
            yield
        except (error_type, grpc.RpcError) as error:
            what = getattr(error, "message", "") or str(error) or type(error).__name__
            hint = "" if self._file else "; is the server running, and is the URL right?"
            raise DestinationError(f"the vector store {self._uri} failed while {doing}: {what}{hint}") from None


def _hit(found: Any) -> Hit:
    entity = found["entity"]
    return Hit(found[_PSEUDONYM], float(found["distance"]), entity.get(_CAMERA), entity.get(_TIME))


def _pymilvus(*, local: bool) -> Any:
    """pymilvus, and milvus-lite where the vectors are a file."""
    try:
        import pymilvus
    except ImportError:
        raise MissingExtraError("pymilvus", "gallery") from None
    if local:
        try:
            import milvus_lite  # noqa: F401
        except ImportError:
            raise MissingExtraError("milvus-lite", "gallery") from None
    logging.getLogger("pymilvus").setLevel(logging.CRITICAL)  # it logs what it raises as well, with a traceback
    return pymilvus


def expression(*, cameras: Sequence[str] = (), since: int | None = None, until: int | None = None) -> str:
    """A filter: one of `cameras`, and times (milliseconds) from `since` on and before `until`; empty for all.

    Vectors without a camera or time are left out where one is asked for.

    >>> expression(cameras=["c1"], since=0, until=1000)
    'camera in ["c1"] and time >= 0 and time < 1000'
    """
    if since is not None and until is not None and since >= until:
        raise ConfigError(f"expected a time window that ends after it begins, but got {since} to {until} ms")
    parts = []
    if cameras:
        # JSON's escapes are Milvus' too: a quote in a camera's name ends nothing.
        parts.append(f"camera in {json.dumps(list(cameras), ensure_ascii=False)}")
    if since is not None:
        parts.append(f"time >= {since}")
    if until is not None:
        parts.append(f"time < {until}")
    return " and ".join(parts)
