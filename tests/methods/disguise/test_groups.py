"""Group photos with planted misses: the check itself must be able to fail."""

from __future__ import annotations

from dataclasses import replace

import pytest
import torch

from disguise_groups import Group, Truth, groups, measured, with_finders
from tests.methods.disguises import TINY, tiny_disguise
from veilkit.methods.disguise.method import Disguise


@pytest.fixture(scope="module")
def some() -> list[Group]:
    made = groups(3, size=64, misses=0.5)
    return [replace(group, planted=(True, *group.planted[1:])) if place == 1 else group
            for place, group in enumerate(made)]  # fmt: skip


def method(config=TINY) -> Disguise:
    return tiny_disguise(config)


def test_every_face_is_dealt_with_and_reports_name_the_planted_ones(some: list[Group]) -> None:
    found = measured(with_finders(method(), Truth(some, misses=True), Truth(some, misses=False)), some)
    assert found["faces"] == found["dealt with"] == sum(len(group.truths) for group in some)
    assert found["told missed"] == found["planted"] > 0
    assert found["right reports"] == found["pictures"] == 3
    assert found["swapped"] > 0


def test_without_a_second_finder_missed_faces_are_left_and_no_report_is_right(some: list[Group]) -> None:
    planted = [group for group in some if any(group.planted) and not all(group.planted)]
    found = measured(with_finders(method(), Truth(planted, misses=True), None), planted)
    assert found["dealt with"] < found["faces"]
    assert found["right reports"] == found["told missed"] == 0


def test_a_second_finder_that_misses_the_same_faces_is_found_out(some: list[Group]) -> None:
    planted = [group for group in some if any(group.planted) and not all(group.planted)]
    found = measured(with_finders(method(), Truth(planted, misses=True), Truth(planted, misses=True)), planted)
    assert found["right reports"] == 0


def test_a_face_too_small_is_covered_and_not_called_missed(some: list[Group]) -> None:
    large = method(replace(TINY, least_side=10_000))
    found = measured(with_finders(large, Truth(some, misses=False), None), [replace_planted(g) for g in some])
    assert found["swapped"] == found["told missed"] == 0
    assert found["faces"] == found["dealt with"]
    assert torch.is_tensor(some[0].picture)


def replace_planted(group: Group) -> Group:
    return replace(group, planted=(False,) * len(group.truths))
