"""The four settings of protected retrieval: raw or protected queries, searched in a raw or protected gallery."""

from __future__ import annotations

from typing import TypeAlias

from veilkit.metrics.inputs import Values
from veilkit.metrics.retrieval import RetrievalResult, retrieval

FourSettings: TypeAlias = dict[str, RetrievalResult]


def four_settings(
    raw_query: Values,
    protected_query: Values,
    raw_gallery: Values,
    protected_gallery: Values,
    query_identities: Values,
    gallery_identities: Values,
    query_cameras: Values | None = None,
    gallery_cameras: Values | None = None,
    *,
    own_index: Values | None = None,
    chunk: int = 256,
) -> FourSettings:
    """Retrieval under "raw-raw", "raw-protected", "protected-raw" and "protected-protected" (query-gallery).

    Features are raw (Q, D) and (G, D) of one embedder; the protected ones stand in the order of their originals. The
    two mixed settings are linkage: for a method that promises unlinkability, high is bad. For one that serves
    protected search, "protected-protected" is its utility.
    """
    queries = {"raw": raw_query, "protected": protected_query}
    galleries = {"raw": raw_gallery, "protected": protected_gallery}
    return {
        f"{query}-{gallery}": retrieval(
            queries[query],
            galleries[gallery],
            query_identities,
            gallery_identities,
            query_cameras,
            gallery_cameras,
            own_index=own_index,
            chunk=chunk,
        )
        for query in queries
        for gallery in galleries
    }
