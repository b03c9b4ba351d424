from __future__ import annotations

import numpy as np
import pytest

from tests.attacks.targets import Blind
from tests.attacks.unpaired_targets import innocent, members, pictures, target
from veilkit.attacks.synthetic_release.base import UnpairedRelease
from veilkit.attacks.synthetic_release.class_linkage import ClassLinkage, person_means
from veilkit.attacks.synthetic_release.gated import run_unpaired
from veilkit.experts import load_expert


def scores(evidence) -> dict[str, float]:
    return {score.metric: score.value for score in evidence.scores}


def test_classes_that_show_their_people_are_found() -> None:
    shown = pictures(range(14), [7, 8])
    found = scores(ClassLinkage().run(target(UnpairedRelease(shown.pictures, shown.people))))
    assert found == {"rank-1": 1.0, "rank-5": 1.0, "mAP": 1.0}


def test_classes_that_show_the_next_person_are_not_found() -> None:
    shown = pictures(range(14), [7, 8])
    found = scores(ClassLinkage().run(target(UnpairedRelease(shown.pictures, (shown.people + 1) % 14))))
    assert found["rank-1"] == 0.0


def test_chance_is_one_in_so_many_candidates() -> None:
    evidence = ClassLinkage().run(target(innocent()))
    chance = evidence.details["chance"]
    assert chance["rank-1"] == pytest.approx(1 / 14)
    assert chance["rank-5"] == pytest.approx(5 / 14)
    orders = [1 / (1 + np.random.default_rng(seed).permutation(14)[0]) for seed in range(20000)]
    assert chance["mAP"] == pytest.approx(np.mean(orders), rel=0.02)
    assert evidence.scores[0].low <= 1 / 14 <= evidence.scores[0].high


def test_a_mean_is_over_unit_features_of_one_class() -> None:
    held, expert = members(), load_expert("histogram")
    people, means = person_means(held, expert)
    features = held.pictures.features(expert)
    features /= np.linalg.norm(features, axis=1, keepdims=True)
    assert people.tolist() == list(range(14))
    assert means == pytest.approx(features.reshape(14, 2, -1).mean(axis=1), abs=1e-6)


def test_a_blind_recogniser_is_invalid_even_where_only_training_pictures_are_at_hand() -> None:
    for unseen in ({}, {"unseen": None}):
        evidence = run_unpaired(ClassLinkage, target(innocent(), recogniser=Blind(), shadows=None, **unseen))
        assert any("not surely better than chance" in str(reason) for reason in evidence.invalid)


def test_without_unseen_pictures_the_training_pictures_are_the_gallery() -> None:
    evidence = ClassLinkage().run(target(unseen=None))
    assert "by the training pictures" in evidence.scores[0].note
    assert evidence.scores[0].value == 1.0


def test_classes_whose_people_are_not_at_hand_are_left_out() -> None:
    evidence = ClassLinkage().run(target(unseen=pictures(range(4), [5])))
    assert (evidence.details["people"], evidence.details["candidates"]) == (4, 4)
    assert "one candidate" in ClassLinkage().run(target(unseen=pictures([0], [5]))).why_missing
