from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Literal

import pytest

from studies.privacyreid.plan import PrivacyReidStudyConfig
from veilkit.configs import as_dict, check_range, digest, parse_settings, with_settings
from veilkit.errors import ConfigError, UnknownNameError
from veilkit.lookup import Lookup


class Pace(StrEnum):
    SLOW = "slow"
    FAST = "fast"


@dataclass(frozen=True)
class Inner:
    depth: int = 1
    pace: Pace = Pace.SLOW


@dataclass(frozen=True)
class Outer:
    inner: Inner = Inner()
    width: int = 2


@dataclass(frozen=True)
class Example:
    steps: int = 3
    rate: float = 0.5
    on: bool = False
    kind: Literal["a", "b"] = "a"
    size: tuple[int, int] = (2, 1)
    many: tuple[float, ...] = ()
    limit: int | None = None


def test_text_is_read_as_the_type_of_the_field() -> None:
    settings = parse_settings(["steps=5", "rate=1e-3", "on=yes", "kind=b", "size=4,2", "many=1,2.5", "limit=7"])
    assert with_settings(Example(), settings) == Example(5, 1e-3, True, "b", (4, 2), (1.0, 2.5), 7)
    assert with_settings(Example(limit=3), {"limit": "none"}).limit is None


def test_what_as_dict_writes_with_settings_reads() -> None:
    config = Example(9, 0.25, True, "b", (8, 4), (1.0,), 2)
    assert with_settings(Example(), as_dict(config)) == config


@pytest.mark.parametrize(
    ("setting", "message"),
    [
        ("stps=5", "did you mean 'steps'"),
        ("steps=five", "steps must be of type int"),
        ("steps=1.5", "steps must be of type int"),
        ("on=perhaps", "on must be of type bool"),
        ("kind=c", "kind must be one of a, b"),
        ("size=1,2,3", "size must be 2 values"),
        ("steps=none", "steps must be of type int"),
        ("rate", "must look like key=value"),
    ],
)
def test_wrong_settings_are_told(setting: str, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        with_settings(Example(), parse_settings([setting]))


def test_values_of_the_wrong_type_are_told() -> None:
    for value in (1.5, True, [1]):
        with pytest.raises(ConfigError):
            with_settings(Example(), {"steps": value})


def test_the_digest_changes_with_any_field() -> None:
    variants = [Example(), Example(4), Example(rate=0.6), Example(on=True), Example(kind="b"), Example(size=(1, 1))]
    assert len({digest(variant) for variant in variants}) == len(variants)
    assert digest(Example()) == digest(Example())


def test_ranges_include_their_ends_and_exclude_nan() -> None:
    check_range("x", 0, 0, 1)
    check_range("x", 1, 0, 1)
    for value in (-0.1, 1.1, float("nan")):
        with pytest.raises(ConfigError, match="between 0 and 1"):
            check_range("x", value, 0, 1)


def test_lookup_tables_answer_unknown_names_and_reject_duplicates() -> None:
    table = Lookup("thing", [("one", 1), ("two", 2)])
    assert dict(table) == {"one": 1, "two": 2}
    assert "three" not in table
    with pytest.raises(UnknownNameError, match="Known: one, two"):
        table["three"]
    with pytest.raises(ValueError, match="listed twice"):
        Lookup("thing", [("one", 1), ("one", 2)])


def test_parts_of_a_configuration_are_set_by_a_dot() -> None:
    changed = with_settings(Outer(), parse_settings(["inner.depth=3", "inner.pace=fast", "width=1"]))
    assert changed == Outer(Inner(3, Pace.FAST), 1)
    assert with_settings(Outer(), as_dict(changed)) == changed
    with pytest.raises(ConfigError, match="did you mean 'depth'"):
        with_settings(Outer(), {"inner.dept": 1})
    with pytest.raises(ConfigError, match="one of slow, fast"):
        with_settings(Outer(), {"inner.pace": "quick"})
    with pytest.raises(ConfigError, match="width has no parts"):
        with_settings(Outer(), {"width.x": 1})


def test_parts_are_checked_when_all_of_their_fields_are_known() -> None:
    """A smaller size does not go with the preset's depth: neither order of the two settings may be refused."""
    size, depth = ("method.reid.size", "32,16"), ("method.generator.depth", "3")
    first, second = (with_settings(PrivacyReidStudyConfig(), dict(order)) for order in ((size, depth), (depth, size)))
    assert first == second
    assert (first.method.size, first.method.generator.depth) == ((32, 16), 3)
    with pytest.raises(ConfigError, match="multiples of 64"):
        with_settings(PrivacyReidStudyConfig(), dict([size]))
