"""Commands bound to the options of their verbs: words, help and defaults come from the options' own fields."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import MISSING, Field, fields
from enum import Enum
from typing import Annotated, Any, Literal, get_type_hints

import typer

from veilkit.options import Options, Word, flag_of, word_of


def bound(kind: type[Options], *, optional: bool = False) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """A command that has a word for each option of `kind`, beside the function's own ones.

    The function is given, as its first argument, the values that were asked for on the command line, by the names of
    their fields. optional: nothing is required, since one of the function's own words may stand in its place.
    """

    def decorated(function: Callable[..., None]) -> Callable[..., None]:
        own = list(inspect.signature(function).parameters.values())[1:]
        hints = get_type_hints(function, include_extras=True)
        words = {each.name: (each, word) for each in fields(kind) if (word := word_of(each)) is not None}

        def run(ctx: typer.Context, **values: Any) -> None:
            given = {name: _value(words[name][1], values.pop(name), ctx.get_parameter_source(name)) for name in words}
            function({name: value for name, value in given.items() if value is not MISSING}, **values)

        parameters = [_parameter(each, word, optional) for each, word in words.values()]
        parameters += [each.replace(annotation=hints[each.name], kind=each.KEYWORD_ONLY) for each in own]
        context = inspect.Parameter("ctx", inspect.Parameter.KEYWORD_ONLY, annotation=typer.Context)
        run.__name__, run.__doc__ = function.__name__, function.__doc__
        run.__signature__ = inspect.Signature([context, *parameters])  # type: ignore[attr-defined]
        run.__annotations__ = {each.name: each.annotation for each in (context, *parameters)}
        return run

    return decorated


def flags(kind: type[Options], given: Mapping[str, Any]) -> list[str]:
    """The options that were given, as they are written on the command line."""
    return [flag_of(each.name, word) for each in fields(kind)
            if each.name in given and (word := word_of(each)) is not None]  # fmt: skip


def _value(word: Word, value: Any, source: Enum | None) -> Any:
    """What was asked for; MISSING leaves it to the default of the options."""
    if source is None or source.name in ("DEFAULT", "DEFAULT_MAP"):
        return MISSING if word.unasked is None else word.unasked
    if word.read is not None:
        return word.read(value)
    return tuple(value) if word.many else value


def _parameter(each: Field[Any], word: Word, optional: bool) -> inspect.Parameter:
    required = each.default is MISSING and not optional
    default: Any = inspect.Parameter.empty if required else None if each.default in (MISSING, ()) else each.default
    if word.unasked is not None:
        default = word.unasked
    annotation: Any = Literal[word.choices] if word.choices else word.kind
    if word.many:
        annotation = list[annotation]
    if default is None:
        annotation = annotation | None
    how: dict[str, Any] = {"help": word.help, "metavar": word.metavar}
    if word.shown is not None:
        how["show_default"] = word.shown
    if word.positional:
        info = typer.Argument(**how | {"metavar": flag_of(each.name, word), "show_default": False})
        return _keyword(each.name, Annotated[annotation, info], default)
    info = typer.Option(flag_of(each.name, word), min=word.least, **how)
    return _keyword(each.name, Annotated[annotation, info], default)


def _keyword(name: str, annotation: Any, default: Any) -> inspect.Parameter:
    return inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=annotation, default=default)
