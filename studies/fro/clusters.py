"""How features of people cluster, in numbers and as a figure in the plane."""

from __future__ import annotations

from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from sklearn.manifold import TSNE

from studies.shared.clustering import kmeans_ari, silhouette
from veilkit.media.writing import write_atomically


def clustering(features: np.ndarray, people: np.ndarray, seed: int) -> dict[str, Any]:
    """Silhouette and ARI of features (N, D) of people (N,)."""
    return {
        "pictures": len(people),
        "people": len(np.unique(people)),
        "silhouette": silhouette(features, people),
        "ari": kmeans_ari(features, people, seed=seed),
    }


def draw_plane(file: Path, what: str, features: np.ndarray, people: np.ndarray, *, seed: int) -> None:
    """Features (N, D) by t-SNE, one colour for each person."""
    unit = features / np.maximum(np.linalg.norm(features, axis=1, keepdims=True), 1e-12)
    near = min(30.0, (len(unit) - 1) / 3)
    places = TSNE(perplexity=near, init="pca", random_state=seed).fit_transform(unit)
    places = (places - places.min(0)) / np.maximum(np.ptp(places, axis=0), 1e-9)
    count = len(np.unique(people))
    dots = "".join(
        f'<circle cx="{10 + 380 * x:.1f}" cy="{10 + 380 * y:.1f}" r="2.6" fill="hsl({hue:.0f} 65% 45%)"/>'
        for (x, y), hue in zip(places.tolist(), (360 * people / count).tolist(), strict=True)
    )
    title = escape(f"t-SNE of {what}, {count} people")
    svg = (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 400 400" role="img"><title>{title}</title>'
        f'<rect width="400" height="400" fill="#fff"/>{dots}</svg>\n'
    )
    write_atomically(file, svg.encode(), file.parent)
