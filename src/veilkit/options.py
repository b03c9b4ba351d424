"""The options of a verb: one frozen dataclass, read by the command line, Python, specs and reports.

Each field says everything of its option once: its default, its help and how it is written on the command line.
Nothing heavy is imported here, so that a wrong option is answered at once.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import Field, dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

from veilkit.errors import CheckpointError, ConfigError
from veilkit.lookup import unknown_name

T = TypeVar("T")
O = TypeVar("O", bound="Options")  # noqa: E741 - an options class
_WORD = "word"


@dataclass(frozen=True, slots=True)
class Word:
    """How an option is written on the command line.

    kind: the type that a word is read as. flag: where it is not the field's name. least: the smallest number.
    choices: the words that are allowed; also: others that Python takes. many: it may be repeated. positional: a
    word without a flag. shown: the default as help shows it. unasked: the value on the command line where nothing
    is given, if another than in Python. read: makes the field's value of the words. fact: the name under which a
    report notes that it was given; stands: what the report's command has in place of its value, which may name
    people or folders.
    """

    help: str
    kind: type = str
    flag: str = ""
    metavar: str | None = None
    least: int | None = None
    choices: tuple[str, ...] = ()
    also: tuple[str | None, ...] = ()
    many: bool = False
    positional: bool = False
    shown: str | None = None
    unasked: Any = None
    read: Callable[[Any], Any] | None = None
    fact: str = ""
    stands: str = ""


def option(default: Any, help_text: str, **how: Any) -> Any:
    """A field that is an option. MISSING as its default makes it required; how: further fields of `Word`."""
    return field(default=default, metadata={_WORD: Word(help_text, **how)})


def word_of(each: Field[Any]) -> Word | None:
    """How a field is written on the command line; None for what only Python can give."""
    return each.metadata.get(_WORD)


def words_of(kind: type[Options]) -> dict[str, Word]:
    """All options of a verb that the command line has, by the names of their fields."""
    return {each.name: word for each in fields(kind) if (word := word_of(each)) is not None}


def flag_of(name: str, word: Word) -> str:
    """`--held-out` of `held_out`, or the flag that the option names itself."""
    return word.metavar or name.upper() if word.positional else word.flag or "--" + name.replace("_", "-")


def as_words(kind: type[Options], facts: Mapping[str, Any]) -> list[str]:
    """The words that give what a report has noted of a verb's options, where that is not the default."""
    words: list[str] = []
    for each in fields(kind):
        word = word_of(each)
        if word is None or not word.fact or facts.get(word.fact) in (None, each.default):
            continue
        noted = facts[word.fact]
        for value in noted if word.many else [noted]:
            words += [flag_of(each.name, word), word.stands or str(value)]
    return words


@dataclass(frozen=True)
class Options:
    """Base of the options of a verb: `check` raises for whatever can be known to be wrong before any work."""

    @classmethod
    def of(cls: type[O], *values: Any, **named: Any) -> O:
        """The options from values as Python gives them; an unknown name is answered with the nearest one."""
        known = {each.name: None for each in fields(cls)}
        for name in named:
            if name not in known:
                raise ConfigError(unknown_name("option", name, known))
        return cls(*values, **named)

    def check(self: O) -> O:
        """Raise a veilkit error for what is wrong; returns the options themselves."""
        for name, word in words_of(type(self)).items():
            value = getattr(self, name)
            if word.least is not None and value is not None and value < word.least:
                raise ConfigError(f"{name} must be at least {word.least}, but got {value}")
            if word.choices and value not in (*word.choices, *word.also):
                raise ConfigError(f"{name} must be {' or '.join(word.choices)}, but got {value!r}")
        return self


def takes(kind: type[Options]) -> Callable[[Callable[..., T]], Callable[..., T]]:
    """Let `help()` and editors show the options of a function that takes those of `kind` by name."""

    def decorated(function: Callable[..., T]) -> Callable[..., T]:
        own = [each for each in inspect.signature(function).parameters.values() if each.kind is not each.VAR_KEYWORD]
        names = {each.name for each in own}
        more = [
            inspect.Parameter(each.name, inspect.Parameter.KEYWORD_ONLY, default=each.default, annotation=each.type)
            for each in fields(kind)
            if each.name not in names
        ]
        returned = inspect.signature(function).return_annotation
        function.__signature__ = inspect.Signature([*own, *more], return_annotation=returned)  # type: ignore[attr-defined]
        texts = [f"{name}: {word.help}" for name, word in words_of(kind).items() if name not in names]
        function.__doc__ = inspect.cleandoc(function.__doc__ or "") + "\n\n" + "\n".join(texts)
        return function

    return decorated


def check_model_file(file: str | Path | None) -> None:
    """Raise unless the file is there, where one is named; what is in it is checked when it is loaded."""
    if file is not None and not Path(file).is_file():
        raise CheckpointError(f"{file}: no such model file")
