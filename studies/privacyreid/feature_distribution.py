"""How features of raw and protected pictures of the same people lie to each other (PrivacyReID, Figure 9)."""

from __future__ import annotations

from collections.abc import Mapping
from html import escape
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from sklearn.manifold import TSNE

from studies.shared.clustering import silhouette
from veilkit.media.writing import write_atomically
from veilkit.metrics.inputs import l2_normalised

Vectors = NDArray[np.float32]
_DIGITS = 4  # of places in the plane
_PANEL, _GAP, _TITLE = 260, 16, 24


def distribution(
    raw: Vectors, protected: Vectors, people: NDArray[np.int64], *, shown: int, seed: int
) -> dict[str, Any]:
    """Mean cosine distances (0 to 2) and Silhouettes of features (N, D) of pictures before and after protection.

    own: of a picture to itself protected. For raw, protected and crossed pairs (raw to protected, of different
    pictures): [of one person, of different people]. places: in the plane by t-SNE, both kinds together, of the first
    `shown` people; x and y in [0, 1].
    """
    one, other = l2_normalised(raw), l2_normalised(protected)
    few = np.flatnonzero(np.isin(people, np.unique(people)[:shown]))
    together = _flattened(np.concatenate([one[few], other[few]]), seed)
    return {
        "own": float(np.mean(1 - (one * other).sum(axis=1))),
        "raw": _distances(one, one, people),
        "protected": _distances(other, other, people),
        "crossed": _distances(one, other, people),
        "silhouette": {"raw": silhouette(one, people), "protected": silhouette(other, people)},
        "places": {
            "people": people[few].tolist(),
            "raw": together[: len(few)].tolist(),
            "protected": together[len(few) :].tolist(),
        },
    }


def draw_distributions(
    file: Path,
    title: str,
    panels: Mapping[str, Mapping[str, Any]],
    kinds: tuple[str, str] = ("raw picture", "protected picture"),
) -> None:
    """An SVG of the places, a panel beside the other: a colour for each person, raw as dots, protected as rings.

    kinds: what dots and rings stand for.
    """
    width, height = len(panels) * (_PANEL + _GAP) + _GAP, _PANEL + 2 * _TITLE + _GAP
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" role="img" font-size="12" '
        f'font-family="sans-serif"><title>{escape(title)}</title><rect width="{width}" height="{height}" '
        'fill="#fff"/>'
    ]
    for place, (name, cell) in enumerate(panels.items()):
        left, places = _GAP + place * (_PANEL + _GAP), cell["places"]
        parts.append(f'<text x="{left}" y="{_TITLE - 8}">{escape(name)}</text>')
        parts.append(f'<rect x="{left}" y="{_TITLE}" width="{_PANEL}" height="{_PANEL}" fill="none" stroke="#bbb"/>')
        known = sorted(set(places["people"]))
        for kind in ("raw", "protected"):
            for (x, y), person in zip(places[kind], places["people"], strict=True):
                colour = f"hsl({360 * known.index(person) / len(known):.0f} 65% 45%)"
                paint = f'fill="{colour}"' if kind == "raw" else f'fill="none" stroke="{colour}" stroke-width="1.5"'
                at = (left + 8 + x * (_PANEL - 16), _TITLE + 8 + y * (_PANEL - 16))
                parts.append(f'<circle cx="{at[0]:.1f}" cy="{at[1]:.1f}" r="4" {paint}/>')
    parts.append(
        f'<text x="{_GAP}" y="{height - 10}">dot: {escape(kinds[0])}, ring: {escape(kinds[1])}, colour: person; '
        "t-SNE</text>"
    )
    write_atomically(file, ("".join(parts) + "</svg>\n").encode(), file.parent)


def _distances(one: Vectors, other: Vectors, people: NDArray[np.int64]) -> list[float]:
    """Means over pairs of different pictures: of one person, and of different people."""
    apart = 1 - one @ other.T
    same = people[:, None] == people[None]
    different = ~same
    np.fill_diagonal(same, False)
    return [float(apart[same].mean()), float(apart[different].mean())]


def _flattened(vectors: Vectors, seed: int) -> NDArray[np.float64]:
    """Places (N, 2) in [0, 1]."""
    near = min(30.0, (len(vectors) - 1) / 3)
    places = TSNE(perplexity=near, init="pca", random_state=seed).fit_transform(vectors)
    scaled = (places - places.min(0)) / np.maximum(np.ptp(places, axis=0), 1e-9)
    return np.asarray(scaled.astype(np.float64).round(_DIGITS))
