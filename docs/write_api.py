"""Writes docs/api.md from the docstrings of what `import veilkit` offers.

python docs/write_api.py
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import veilkit

PAGE = Path(__file__).with_name("api.md")
SECTIONS = {
    "Folders": ("protect", "audit", "recover"),
    "Pictures in memory": ("load_method", "LoadedMethod", "Protected", "Key"),
    "What there is": ("methods", "attacks", "experts"),
    "Recognisers": ("load_expert", "add_expert", "Addition"),
    "What comes back": ("Outcome", "AuditResult", "read_audit", "Recovered"),
    "Options as objects": ("ProtectOptions", "AuditOptions", "RecoverOptions"),
    "Errors": ("VeilkitError",),
}
LEFT_OUT = {"__version__": "a text", "run_audit": "audit by its other name"}
HEAD = """# Python API

Written by `python docs/write_api.py` from docstrings. Options have the names that they have on the command line.
Short programs that use all of this are in [examples](../examples/README.md).
"""
_WIDTH = 100


def render() -> str:
    """The whole page."""
    parts = [HEAD]
    for title, names in SECTIONS.items():
        parts.append(f"## {title}\n")
        for name in names:
            parts += _entry(name, getattr(veilkit, name))
    return "\n".join(parts)


def _entry(name: str, thing: Any) -> Iterator[str]:
    yield f"### veilkit.{name}\n"
    if inspect.ismodule(thing):
        thing = thing._function
    if isinstance(thing, type) and issubclass(thing, Exception):
        yield _text(thing)
        return
    yield f"```python\n{_signature(f'veilkit.{name}', thing)}\n```\n"
    yield _text(thing)
    if isinstance(thing, type):
        yield from _members(thing)


def _members(kind: type) -> Iterator[str]:
    for name, member in vars(kind).items():
        function = member.__func__ if isinstance(member, classmethod | staticmethod) else member
        function = function.fget if isinstance(function, property) else function
        public = not name.startswith("_") or name == "__call__"
        if not public or not inspect.isfunction(function) or not function.__doc__ or name == "check":
            continue
        shown = f"`.{name}`" if isinstance(member, property) else f"`{_plain(name, function)}`"
        yield f"- {shown}: {' '.join(inspect.cleandoc(function.__doc__).split())}"
    yield ""


def _plain(name: str, function: Any) -> str:
    parameters = [each.name for each in inspect.signature(function).parameters.values()]
    return f"{'method' if name == '__call__' else '.' + name}({', '.join(parameters[1:])})"


def _signature(name: str, thing: Any) -> str:
    signature = inspect.signature(thing)
    words: list[str] = []
    starred = False
    for each in signature.parameters.values():
        if each.kind is each.KEYWORD_ONLY and not starred:
            words.append("*")
            starred = True
        prefix = {each.VAR_POSITIONAL: "*", each.VAR_KEYWORD: "**"}.get(each.kind, "")
        kind = "" if each.annotation is each.empty else f": {_type(each.annotation)}"
        default = "" if repr(each.default).startswith("<") else f" = {each.default!r}"
        words.append(f"{prefix}{each.name}{kind}{default if each.default is not each.empty else ''}")
    returned = "" if inspect.isclass(thing) else f" -> {_type(signature.return_annotation)}"
    line = f"{name}({', '.join(words)}){returned}"
    return line if len(line) <= _WIDTH else f"{name}(\n    " + ",\n    ".join(words) + f",\n){returned}"


def _type(annotation: Any) -> str:
    return annotation if isinstance(annotation, str) else getattr(annotation, "__name__", str(annotation))


def _text(thing: Any) -> str:
    """A docstring as Markdown: lines that begin with a parameter become a list."""
    shown: list[str] = []
    inside = False  # of a list
    for line in inspect.cleandoc(thing.__doc__ or "").splitlines():
        named = re.sub(r"^((?:\w+, )*\w+): ", r"- **\1**: ", line)
        if named != line and not inside and shown and shown[-1]:
            shown.append("")
        inside = bool(line) and (inside or named != line)
        shown.append(f"  {line}" if inside and named == line else named)
    return "\n".join(shown) + "\n"


if __name__ == "__main__":
    PAGE.write_text(render())
    print(PAGE)
