"""How features cluster by person."""

from __future__ import annotations

from typing import Any

import numpy as np

from studies.shared.clustering import kmeans_ari, silhouette


def clustering(features: np.ndarray, people: np.ndarray, seed: int) -> dict[str, Any]:
    """Silhouette and ARI of features (N, D) of people (N,)."""
    return {
        "pictures": len(people),
        "people": len(np.unique(people)),
        "silhouette": silhouette(features, people),
        "ari": kmeans_ari(features, people, seed=seed),
    }
