"""What the page says: complete in both languages, and true of the methods, the commands and the measured figures."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

import pytest
import typer

import veilkit.web
from studies.comparison import page_figures
from veilkit.cli import app
from veilkit.configs import as_dict
from veilkit.methods import METHODS, Learns, Mixes, Synthesiser
from veilkit.methods.base import WorksUnfitted
from veilkit.web.verbs import VERBS

STATIC = Path(veilkit.web.__file__).parent / "static"
SCRIPTS = "\n".join(file.read_text() for file in sorted(STATIC.glob("*.js")))


def _words(language: str) -> dict[str, str]:
    found: dict[str, str] = json.loads((STATIC / f"{language}.json").read_text())
    return found


def test_german_is_complete() -> None:
    english, german = _words("en"), _words("de")
    assert english.keys() == german.keys()
    marks = re.compile(r"\{\w+\}")
    for key, text in english.items():
        assert sorted(marks.findall(text)) == sorted(marks.findall(german[key])), key
        assert bool(text) == bool(german[key]), key


def test_every_word_that_the_page_asks_for_is_there() -> None:
    words = _words("en")
    asked = set(re.findall(r"""\bt\(\s*["']([\w. -]+)["']\s*[,)]""", SCRIPTS))
    assert len(asked) > 100
    assert asked <= words.keys()
    for prefix in set(re.findall(r"""\bt\(\s*["']([\w.-]+\.)["']\s*\+""", SCRIPTS)):
        assert any(key.startswith(prefix) for key in words), prefix
    for verb in re.findall(r'\["([a-z-]+)", \["', SCRIPTS):
        assert {f"verb.{verb}", f"verb.{verb}.text", f"verb.{verb}.do"} <= words.keys()


def test_every_field_that_the_page_shows_is_an_option_with_a_label() -> None:
    words = _words("en")
    tools = re.findall(r'\["([a-z-]+)", \[([^\]]*)\], \[([^\]]*)\]\]', SCRIPTS)
    assert len(tools) >= 14
    shown = [(verb, name) for verb, *lists in tools for part in lists for name in re.findall(r'"(\w+)"', part)]
    more = re.search(r"const MORE = \[(.*?)\]", SCRIPTS)
    assert more is not None
    shown += [("protect", name) for name in re.findall(r'"(\w+)"', more[1])]
    for verb, name in shown:
        assert name in {each.name for each in VERBS[verb].fields}, (verb, name)
        assert f"field.{name}" in words


def test_the_page_knows_all_methods_as_they_are() -> None:
    listed: list[dict[str, Any]] = json.loads((STATIC / "methods.json").read_text())
    assert {each["name"] for each in listed} == set(METHODS)
    words = _words("en")
    for each in listed:
        method = METHODS[each["name"]]
        assert each["undone"] == method.undone_by
        for slider in each["sliders"]:
            assert as_dict(method.default)[slider["name"]] == slider["default"]
            assert slider["min"] <= slider["default"] <= slider["max"]
            assert f"setting.{each['name']}.{slider['name']}" in words
            for end in ("min", "max"):
                method.configured(None, {slider["name"]: slider[end]})
        needs_model = issubclass(method, Learns) and not issubclass(method, WorksUnfitted)
        expert = getattr(method.default, "expert", None) is not None
        assert each["needs"] == ("model" if needs_model else "expert" if expert else "")
        assert not (each["preview"] and (issubclass(method, Mixes | Synthesiser) or each["needs"]))
        assert {f"method.{each['name']}.{part}" for part in ("name", "what", "keeps", "gives")} <= words.keys()


def test_figures_are_those_of_the_study() -> None:
    assert page_figures.TARGET.read_text() == page_figures.rendered(), "run python -m studies.comparison.page_figures"


@pytest.mark.parametrize("name", list(VERBS))
def test_the_command_line_knows_every_word(name: str) -> None:
    verb = VERBS[name]
    command: Any = typer.main.get_command(app)
    for word in verb.command:
        command = command.get_command(None, word)
    flags = {flag for parameter in command.params for flag in parameter.opts}
    wanted = {each.flag for each in verb.fields if each.flag} | set(verb.fixed)
    assert wanted <= flags
    plain = [parameter for parameter in command.params if parameter.param_type_name == "argument"]
    assert len(plain) == sum(not each.flag for each in verb.fields)
    for parameter in command.params:
        if parameter.required and parameter.param_type_name == "option":
            assert any(each.flag in parameter.opts and each.required for each in verb.fields), parameter.name
