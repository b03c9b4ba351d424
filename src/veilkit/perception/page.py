"""The page: one HTML file that needs no network, whose policy lets nothing run but its own script."""

from __future__ import annotations

import base64
import hashlib
import json
from importlib.resources import files
from typing import Any

from jinja2 import Environment, PackageLoader, StrictUndefined
from markupsafe import Markup


def write_page(study: str, questions: list[dict[str, Any]], choices: int) -> str:
    """The page's HTML. The policy names style and script by their hashes, so that nothing else can be slipped in."""
    environment = Environment(
        loader=PackageLoader("veilkit.perception", "templates"),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    folder = files("veilkit.perception") / "templates"
    style, script = (f"\n{(folder / name).read_text('utf-8')}" for name in ("study.css", "study.js"))
    data = json.dumps({"study": study, "questions": questions}, separators=(",", ":")).replace("<", "\\u003c")
    kinds = {question["kind"] for question in questions}
    return environment.get_template("study.html").render(
        style=Markup(style),  # noqa: S704 - our own file
        script=Markup(script),  # noqa: S704 - our own file
        style_hash=_hash(style),
        script_hash=_hash(script),
        data=Markup(data),  # noqa: S704 - codes and base64, "<" escaped
        count=len(questions),
        minutes=max(1, round(len(questions) * 6 / 60)),
        pair="pair" in kinds,
        choice="choice" in kinds,
        choices=choices,
    )


def _hash(text: str) -> str:
    return "sha256-" + base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()
