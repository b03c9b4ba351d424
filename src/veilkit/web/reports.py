"""What an audit has found so far, and finished reports, which are shown without any right of their own."""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from starlette.responses import Response

from veilkit.errors import DataError
from veilkit.web.roots import Place, Roots, open_below

_LARGEST = 256 * 2**20
_PAGES = ("report.html", "compare.html", "study.html")
_SILENT = "sandbox; default-src 'none'; img-src data:; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"


def growth(words: Sequence[str]) -> list[dict[str, Any]]:
    """The attacks that an audit with these words has made, from its cells."""
    out = next((Path(word.partition("=")[2]) for word in words if word.startswith("--out=")), None)
    protected = Path(words[2]) if len(words) > 2 else Path()
    cells = (protected.with_name(protected.name + ".audit") if out is None else out) / "cells"
    found = []
    for file in sorted(cells.glob("*.json"), key=lambda each: each.name):
        try:
            cell = json.loads(file.read_text())
            result = cell["result"]
            if cell.get("attack") is None or "level" not in result:
                continue
            scores = result.get("scores") or []
            first = {name: scores[0].get(name) for name in ("metric", "value", "low", "high")} if scores else None
            found.append(
                {"attack": result["attack"], "level": result["level"], "score": first,
                 "invalid": bool(result.get("invalid")), "applies": not result.get("missing")}
            )  # fmt: skip
        except (OSError, ValueError, KeyError, TypeError, AttributeError):
            continue  # half written, or of another version
    return found


def page_of(roots: Roots, text: str) -> Response:
    """A page that a command has written. It gets a sandbox: no scripts, no forms, no way to ask this server.

    A study's page needs its script: it runs only where it is, byte for byte, the one that the study's private key
    names, in a sandbox that cannot reach this server either.
    """
    place = roots.place(text)
    if not place.parts or place.parts[-1] not in _PAGES:
        raise DataError(f"expected one of {', '.join(_PAGES)}")
    data = _read(place)
    policy = _SILENT
    if place.parts[-1] == "study.html":
        _check_study(place, data)
        policy = (
            "sandbox allow-scripts allow-downloads; default-src 'none'; img-src data: blob:; style-src "
            "'unsafe-inline'; script-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
        )
    return Response(data, media_type="text/html", headers={"content-security-policy": policy})


def _check_study(place: Place, page: bytes) -> None:
    above = place.parts[:-1]
    key = Place(place.root, (*above[:-1], above[-1] + ".private", "key.json")) if above else place
    try:
        told = json.loads(_read(key))["page_sha256"]
    except (DataError, ValueError, KeyError, TypeError):
        told = None
    if told != hashlib.sha256(page).hexdigest():
        raise DataError("this page is not the one that `veilkit study make` wrote: its key does not name it")


def _read(place: Place) -> bytes:
    with os.fdopen(open_below(place), "rb") as opened:
        data = opened.read(_LARGEST + 1)
    if len(data) > _LARGEST:
        raise DataError("this page is too large")
    return data
