"""What the page can start: the commands of the command line, with the options that they have there.

A request names a verb and its options; what comes out are the words of the command. Whatever names a file or folder
is a place below the server's folders (`roots`).
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from dataclasses import MISSING, dataclass, fields
from pathlib import Path
from typing import Any, Literal, TypeAlias

from veilkit.audit.options import AuditOptions
from veilkit.errors import UsageError
from veilkit.lookup import Lookup, unknown_name
from veilkit.options import Options, flag_of, word_of
from veilkit.pipeline.options import ProtectOptions, RecoverOptions
from veilkit.web.roots import Roots, refuse_links

Sort: TypeAlias = Literal[
    "text", "number", "flag", "folder", "file", "any", "new", "made", "named", "labels", "settings", "recipient"
]
"""What an option is. any: a file or folder; new: may be made; made: a file that is made if absent; named: a name or a
file; labels, settings, recipient: text that may hold a place."""


@dataclass(frozen=True, slots=True)
class Field:
    """One option of a verb. flag: as it is written; "" for a word without one."""

    name: str
    sort: Sort = "text"
    flag: str = ""
    required: bool = False
    many: bool = False
    choices: tuple[str, ...] = ()
    help: str = ""
    default: Any = None


@dataclass(frozen=True, slots=True)
class Verb:
    """A command. fixed: words that the page adds, so that it can read the answer.

    again: whether the same command may run a second time after it was stopped. quick: whether it need not wait for
    long work. as_json: its standard output is JSON.
    """

    name: str
    command: tuple[str, ...]
    fields: tuple[Field, ...]
    fixed: tuple[str, ...] = ()
    again: bool = True
    quick: bool = True
    as_json: bool = False

    def words(self, options: Mapping[str, Any], roots: Roots) -> list[str]:
        """The words of the command, without the fixed ones; raises for what is wrong with an option."""
        known = {each.name: each for each in self.fields}
        for name in options:
            if name not in known:
                raise UsageError(unknown_name(f"option of {self.name}", str(name)[:80], known))
        plain: list[str] = []
        flagged: list[str] = []
        for each in self.fields:
            value = options.get(each.name)
            if value is None or value == "" or value == [] or value == {} or value is False:
                if each.required:
                    raise UsageError(f"{self.name} needs {each.name}: {each.help or 'it is missing'}")
                continue
            for word in _words(each, value, roots):
                if each.flag:
                    flagged.append(each.flag if each.sort == "flag" else f"{each.flag}={word}")
                else:
                    plain.append(word)
        guarded = ["--", *plain] if any(word.startswith("-") for word in plain) else plain
        return [*self.command, *flagged, *guarded] if guarded is not plain else [*self.command, *plain, *flagged]


def shown(words: Sequence[str]) -> str:
    """The command as somebody would type it."""
    return shlex.join(["veilkit", *words])


def _words(each: Field, value: Any, roots: Roots) -> list[str]:
    """The words of one option, checked."""
    if each.sort == "flag":
        if value is not True:
            raise UsageError(f"{each.name} is true or false")
        return [""]
    if each.sort == "settings" and isinstance(value, Mapping):
        value = [f"{name}={_plain(name, part)}" for name, part in value.items()]
    values = value if isinstance(value, list) else [value]
    if len(values) > 1 and not each.many:
        raise UsageError(f"{each.name} takes one value")
    return [_word(each, part, roots) for part in values]


def _plain(name: str, value: Any) -> str:
    if isinstance(value, bool):
        return "true" if value else "false"
    if not isinstance(value, str | int | float):
        raise UsageError(f"{name} must be text or a number")
    return str(value)


def _word(each: Field, value: Any, roots: Roots) -> str:
    text = _plain(each.name, value)
    if len(text) > 4_000 or "\0" in text or "\n" in text:
        raise UsageError(f"{each.name} is too long, or has more than one line")
    if each.choices and text not in each.choices:
        raise UsageError(f"{each.name} must be {' or '.join(each.choices)}, but got {text[:80]!r}")
    match each.sort:
        case "folder" | "file" | "any":
            return str(roots.existing(text, folder={"folder": True, "file": False}.get(each.sort)))
        case "new":
            return str(roots.new(text))
        case "made":
            return str(roots.new(text))
        case "labels":
            kind, colon, rest = text.partition(":")
            return f"csv:{roots.existing(rest, folder=False)}" if kind == "csv" and colon else text
        case "settings":
            name, equals, rest = text.partition("=")
            return f"{name}{equals}{_file_or_name(rest, roots)}"
        case "named" | "recipient":
            return _file_or_name(text, roots)
        case "number":
            if not re.fullmatch(r"-?[0-9]+(\.[0-9]+)?(e-?[0-9]+)?", text):
                raise UsageError(f"{each.name} must be a number, but got {text[:80]!r}")
    return text


def _file_or_name(text: str, roots: Roots) -> str:
    """A file below the folders, where the text looks like a path; else the text itself."""
    if "/" in text or "\\" in text or text.startswith((".", "~")) or Path(text).suffix in (".safetensors", ".onnx"):
        return str(roots.existing(text))
    return text


_SORTS: dict[str, Sort] = {
    "source": "any", "destination": "new", "key": "made", "out": "new", "log": "new", "expert": "named",
    "judge": "named", "student": "named", "labels": "labels", "settings": "settings", "seal_to": "recipient",
    "originals": "folder", "protected": "folder", "sealed": "folder", "unseen": "folder", "held_out": "folder",
}  # fmt: skip


def _fields(kind: type[Options]) -> tuple[Field, ...]:
    """The options of a verb that has an object of options, by their own words."""
    found = []
    for each in fields(kind):
        word = word_of(each)
        if word is None:
            continue
        sort: Sort = "file" if word.kind is Path else "flag" if word.kind is bool else "text"
        default = None if each.default in (MISSING, ()) else each.default
        found.append(
            Field(
                each.name, _SORTS.get(each.name, "number" if word.kind in (int, float) else sort),
                "" if word.positional else flag_of(each.name, word), each.default is MISSING, word.many,
                word.choices, word.help, default,
            )
        )  # fmt: skip
    return tuple(found)


_RELEASE = Field("release", "folder", required=True)
_KEY = Field("key", "file", "--key")
_GALLERY = Field("gallery", "folder", required=True)
_GALLERY_KEY = Field("key", "file", "--key")

VERBS: Lookup[Verb] = Lookup(
    "verb",
    [
        (each.name, each)
        for each in (
            Verb("protect", ("protect",), _fields(ProtectOptions), quick=False),
            Verb("audit", ("audit",), _fields(AuditOptions), ("--json",), quick=False, as_json=True),
            Verb("recover", ("recover",), _fields(RecoverOptions), quick=False),
            Verb("check", ("check",), (Field("source", "any", required=True), Field("labels", "labels", "--labels"),
                 Field("faces", "number", "--faces")), ("--json", "--names"), as_json=True),
            Verb("withdraw", ("withdraw",), (_RELEASE, Field("only", "text", "--only", many=True), _KEY,
                 Field("sealed", "folder", "--sealed"), Field("gallery", "folder", "--gallery"),
                 Field("gallery_key", "file", "--gallery-key")), quick=False),
            Verb("ledger-show", ("ledger", "show"), (_RELEASE, _KEY), ("--json",), as_json=True),
            Verb("ledger-lookup", ("ledger", "lookup"), (_RELEASE, Field("names", required=True, many=True), _KEY),
                 ("--json",), as_json=True),
            Verb("ledger-export", ("ledger", "export"), (_RELEASE, Field("out", "new", required=True), _KEY,
                 Field("names", "flag", "--names")), again=False),
            Verb("compare", ("compare",), (Field("audits", "folder", required=True, many=True),
                 Field("out", "new", "--out", required=True), Field("thresholds", "file", "--thresholds"))),
            Verb("keygen", ("keygen",), (Field("out", "new", required=True),), again=False),
            Verb("study-make", ("study", "make"), (Field("originals", "folder", required=True),
                 Field("protected", "folder", required=True, many=True), Field("destination", "new", required=True),
                 Field("kind", "text", "--kind", choices=("pair", "choice", "both"), default="both"),
                 Field("questions", "number", "--questions", default=20),
                 Field("checks", "number", "--checks", default=6), Field("participants", "number", "--participants"),
                 Field("labels", "labels", "--labels"), Field("key", "file", "--key", many=True)), again=False),
            Verb("study-score", ("study", "score"), (Field("answers", "file", required=True, many=True),
                 Field("key", "file", "--key", required=True))),
            Verb("gallery-create", ("gallery", "create"), (Field("gallery", "new", required=True),
                 Field("expert", "named", "--expert"), Field("dimension", "number", "--dimension"),
                 Field("mechanism", "text", "--mechanism", required=True,
                       choices=("privunit", "gaussian", "laplace")),
                 Field("epsilon", "number", "--epsilon", required=True), Field("delta", "number", "--delta"),
                 Field("budget_epsilon", "number", "--budget-epsilon"),
                 Field("per", "text", "--per", required=True, choices=("record", "person"))), again=False),
            Verb("gallery-add", ("gallery", "add"), (_GALLERY, Field("source", "any", required=True),
                 Field("labels", "labels", "--labels"), Field("times", "labels", "--times"), _GALLERY_KEY),
                 quick=False),
            Verb("gallery-search", ("gallery", "search"), (_GALLERY, Field("query", "any", required=True),
                 Field("top", "number", "--top"), _GALLERY_KEY), ("--json",), as_json=True),
            Verb("gallery-budget", ("gallery", "budget"), (_GALLERY, _GALLERY_KEY), ("--json",), as_json=True),
        )
    ],
)  # fmt: skip


def command(verb: str, options: Mapping[str, Any], roots: Roots) -> tuple[Verb, list[str]]:
    """The verb and the words of its command; sources are searched for links, which commands follow."""
    chosen = VERBS[verb]
    words = chosen.words(options, roots)
    for each in chosen.fields:
        value = options.get(each.name)
        if each.sort in ("folder", "any") and isinstance(value, str) and value:
            path = roots.existing(value)
            if path.is_dir():
                refuse_links(path)
    return chosen, words
