from __future__ import annotations

import numpy as np
import pytest
import torch
from sklearn.metrics import roc_auc_score

from tests.attacks.targets import Blind
from tests.attacks.unpaired_targets import fitted, innocent, members, pictures, public, shadows, target
from veilkit.attacks.membership_scores import Judged, membership_scores
from veilkit.attacks.pictures import HeldPictures
from veilkit.attacks.synthetic_release.base import LabelledPictures, UnpairedRelease, UnpairedTarget
from veilkit.attacks.synthetic_release.gated import (
    NearestStudent,
    RememberedLook,
    UnpairedTrial,
    open_release,
    run_unpaired,
)
from veilkit.attacks.synthetic_release.membership import (
    PersonByShadows,
    PersonInSet,
    PictureByShadows,
    PictureInSet,
    PictureInStudent,
)
from veilkit.attacks.synthetic_release.shadows import (
    Shadows,
    log_likelihood_ratio,
    measure_shift,
    offline_score,
    plan_shadows,
)
from veilkit.attacks.synthetic_release.signals import answers, certainty, label_statistics
from veilkit.errors import ConfigError, DataError
from veilkit.experts import load_expert
from veilkit.rng import Randomness

RNG = Randomness.from_seed(0)


def value(evidence, metric: str = "AUC") -> float:
    return next(score.value for score in evidence.scores if score.metric == metric)


# Scores


def judged(seed: int = 0, gap: float = 1.0, people: int = 30) -> Judged:
    random = np.random.default_rng(seed)
    member = np.arange(4 * people) < 2 * people
    return Judged(random.normal(size=4 * people) + gap * member, member, np.arange(4 * people) // 2)


def test_auc_is_that_of_scikit_learn() -> None:
    candidates = judged()
    expected = roc_auc_score(candidates.member, candidates.score)
    auc = membership_scores(candidates, RNG)[0]
    assert auc.value == pytest.approx(expected)
    assert auc.low < expected < auc.high


def test_draws_of_people_give_the_spread_of_fresh_people() -> None:
    """The interval's width against the spread of the AUC over new populations, which needs no bootstrap."""
    fresh = [roc_auc_score(judged(seed).member, judged(seed).score) for seed in range(100)]
    auc = membership_scores(judged(), RNG)[0]
    assert (auc.high - auc.low) / (2 * 1.96) == pytest.approx(np.std(fresh), rel=0.3)


def test_copies_of_a_persons_pictures_add_nothing() -> None:
    once = judged()
    often = Judged(once.score.repeat(5), once.member.repeat(5), once.people.repeat(5))
    for few, many in zip(membership_scores(once, RNG), membership_scores(often, RNG), strict=True):
        if few.metric == "AUC":
            assert (many.value, many.low, many.high) == pytest.approx((few.value, few.low, few.high))


def test_a_person_counts_once_by_their_mean() -> None:
    score = np.array([1.0, 3.0, 0.0, 5.0])
    people = Judged(score, np.array([True, True, False, False]), np.array([7, 7, 2, 2])).by_person()
    assert people.people.tolist() == [2, 7]
    assert people.score.tolist() == [2.5, 2.0]
    assert people.member.tolist() == [False, True]


def test_scores_without_meaning_are_worth_chance_on_average() -> None:
    """Also the accuracy, whose threshold is not chosen on the people it is judged on."""
    found = [[s.value for s in membership_scores(judged(seed, 0.0, 20), RNG)] for seed in range(40)]
    chance = list(judged(0, 0.0, 20).chance.values())
    spread = np.std(found, axis=0) / np.sqrt(40)
    assert (np.abs(np.mean(found, axis=0) - chance) < 3.5 * spread).all()


def test_perfect_scores_have_the_exact_interval_of_so_many_people() -> None:
    for score in membership_scores(judged(gap=100.0, people=10), RNG):
        assert (score.value, score.high) == (1.0, 1.0)
        assert score.low == pytest.approx(0.025 ** (1 / 10))


def test_scores_that_are_not_numbers_are_refused() -> None:
    with pytest.raises(DataError, match="finite"):
        Judged(np.array([np.nan]), np.array([True]), np.array([0]))


# Statistics


def test_certainty_is_log_odds_entropy_and_energy() -> None:
    found = certainty(np.log(np.array([[0.7, 0.2, 0.1]])) + 2.0)
    assert found["confidence"] == pytest.approx([np.log(0.7 / 0.3)])
    assert found["entropy"] == pytest.approx([0.7 * np.log(0.7) + 0.2 * np.log(0.2) + 0.1 * np.log(0.1)])
    assert found["energy"] == pytest.approx([2.0])


def test_a_model_of_the_labels_is_sure_near_the_release_only() -> None:
    release, expert = open_release(members()), load_expert("histogram")
    near = label_statistics(release, members().pictures, expert)["confidence"]
    far = label_statistics(release, pictures(range(100, 110), [0]).pictures, expert)["confidence"]
    assert near.min() > far.max()


def test_a_student_that_answers_nonsense_is_refused() -> None:
    with pytest.raises(DataError, match="NaN"):
        answers(lambda images: torch.full((len(images), 3), torch.nan), members().pictures)
    with pytest.raises(DataError, match="at least 2 classes"):
        certainty(np.zeros((4, 1)))


# Attacks


def unlike() -> tuple[LabelledPictures, LabelledPictures]:
    """Pictures of which no two are alike, not even of one person: only memory can tell them apart."""
    generator = torch.Generator().manual_seed(0)
    drawn = torch.rand(80, 3, 16, 12, generator=generator)
    people = np.arange(80) // 4
    inside = np.arange(80) % 4 < 2
    return tuple(LabelledPictures(HeldPictures(drawn[part]), people[part]) for part in (inside, ~inside))  # type: ignore[return-value]


def test_an_overfitted_student_gives_its_pictures_away() -> None:
    trained, unseen = unlike()
    noise = HeldPictures(torch.rand(20, 3, 16, 12, generator=torch.Generator().manual_seed(1)))
    release = UnpairedRelease(noise, np.arange(20), student=fitted(trained))
    assert value(PictureInStudent().run(UnpairedTarget(RNG, release, trained, unseen))) > 0.99


def test_a_student_of_other_pictures_gives_nothing_away() -> None:
    trained, unseen = unlike()
    generator = torch.Generator().manual_seed(1)
    others = LabelledPictures(HeldPictures(torch.rand(40, 3, 16, 12, generator=generator)), np.arange(40) // 2)
    release = UnpairedRelease(others.pictures, others.people, student=fitted(others))
    score = PictureInStudent().run(UnpairedTarget(RNG, release, trained, unseen)).scores[0]
    assert score.low < 0.5 < score.high


def test_a_release_that_shows_people_but_copies_no_picture_answers_the_first_question_only() -> None:
    """Further pictures of the training people, neither trained on nor candidates."""
    shown = pictures(range(14), [7, 8])
    attacked = target(UnpairedRelease(shown.pictures, shown.people))
    assert value(PersonInSet().run(attacked)) > 0.95
    score = PictureInSet().run(attacked).scores[0]
    assert score.low < 0.5 < score.high


def test_without_unseen_pictures_the_easier_question_is_named() -> None:
    evidence = PictureInSet().run(target(unseen=None))
    assert "may be the person" in evidence.scores[0].note
    assert not run_unpaired(PersonInSet, target(unseen=None)).applicable


def test_a_blind_recogniser_is_invalid_and_not_good_news() -> None:
    evidence = run_unpaired(PersonInSet, target(innocent(), recogniser=Blind(), shadows=None))
    assert any("not surely better than chance" in str(reason) for reason in evidence.invalid)


def test_two_people_are_needed_on_each_side() -> None:
    evidence = PersonInSet().run(target(held_out=pictures([70], [0, 1])))
    assert "two people" in evidence.why_missing


# Shadows


def test_each_person_is_in_half_of_the_shadows_and_shares_of_their_pictures_are_trained_on() -> None:
    people = np.repeat(np.arange(11), 4)
    plan = plan_shadows(people, 8, 0.5, RNG)
    assert (plan.known.sum(axis=0) == 4).all()
    assert (plan.trained <= plan.known).all()
    for shadow in range(8):
        inside = np.unique(people[plan.known[shadow]])
        assert len(inside) in (5, 6)
        assert np.isin(people, inside).tolist() == plan.known[shadow].tolist()  # whole people
        assert (np.bincount(people[plan.trained[shadow]], minlength=11)[inside] == 2).all()
    assert len(np.unique(plan.known, axis=0)) == 8
    assert np.array_equal(plan.trained, plan_shadows(people, 8, 0.5, RNG).trained)
    assert not np.array_equal(plan.trained, plan_shadows(people, 8, 0.5, Randomness.from_seed(1)).trained)


def test_the_recipe_gets_exactly_the_planned_pictures_once() -> None:
    asked: list[np.ndarray] = []

    def recipe(indices: np.ndarray) -> UnpairedRelease:
        asked.append(indices)
        return open_release(public().only(indices))

    made = shadows(recipe)
    assert made.releases is made.releases
    assert [indices.tolist() for indices in asked] == [np.flatnonzero(row).tolist() for row in made.plan.trained]


@pytest.mark.parametrize(
    ("changes", "said"),
    [({"count": 6}, "at least 8"), ({"count": 9}, "even"), ({"share": 0.0}, r"\(0, 1\]"), ({"share": 1.5}, "1.5")],
)
def test_bad_plans_are_refused(changes: dict[str, float], said: str) -> None:
    with pytest.raises(ConfigError, match=said):
        Shadows(public().pictures, public().people, open_release, rng=RNG, **changes)  # type: ignore[arg-type]


def test_a_public_population_must_be_large_enough_and_labelled() -> None:
    with pytest.raises(DataError, match="4 people"):
        plan_shadows(np.array([0, 0, 1, 2]), 8, 1.0, RNG)
    with pytest.raises(DataError, match="one person's code"):
        Shadows(public().pictures, np.arange(3), open_release, rng=RNG)


def test_people_of_the_shadows_are_never_tested() -> None:
    with pytest.raises(DataError, match="must not be tested"):
        target(held_out=public())


def test_the_likelihood_ratio_is_that_of_two_normal_densities() -> None:
    from scipy.stats import norm

    between = np.linspace(0.0, 2.0, 9)
    expected = norm.logpdf(between, 2.0, 0.5) - norm.logpdf(between, 0.0, 1.0)
    assert log_likelihood_ratio(between, (2.0, 0.5), (0.0, 1.0)) == pytest.approx(expected)


@pytest.mark.parametrize("inside", [(2.0, 0.5), (2.0, 3.0), (-2.0, 0.5), (-2.0, 3.0), (2.0, 1.0)])
def test_the_likelihood_ratio_never_turns_back(inside: tuple[float, float]) -> None:
    ratio = log_likelihood_ratio(np.linspace(-50, 50, 501), inside, (0.0, 1.0))
    assert (np.diff(ratio) * np.sign(inside[0]) >= -1e-9).all()
    assert ratio.max() > 0 > ratio.min()


def test_the_shift_of_planted_members_is_found() -> None:
    random = np.random.default_rng(0)
    plan = plan_shadows(np.repeat(np.arange(200), 4), 8, 0.5, RNG)
    level = 5 * random.normal(size=800) + 1.0  # how sure any model is of each picture
    values = level + 0.5 * random.normal(size=(8, 800)) + 1.0 * plan.unseen + 3.0 * plan.trained
    shift = measure_shift(values, ~plan.known, plan.trained, plan.unseen)
    unit = 0.5 * np.sqrt(1 + 1 / 3)  # an entry against the mean of the three others without the person
    assert shift.unknown == pytest.approx((0.0, unit), abs=0.03)
    assert shift.inside[0] * unit == pytest.approx(3.0, abs=0.05)
    assert shift.outside[0] * unit == pytest.approx(1.0, abs=0.05)


def test_offline_scores_compare_a_picture_with_itself() -> None:
    shadow = np.array([[0.0, 10.0], [2.0, 12.0], [1.0, 11.0]])
    assert offline_score(np.array([2.0, 11.0]), shadow) == pytest.approx([1.0, 0.0])


def tagged(people: range, shots: range) -> LabelledPictures:
    """Pictures that carry their number and how easy they are to any model."""
    numbers = np.array([10 * person + shot for person in people for shot in shots])
    ease = np.random.default_rng(7).random(1000)[numbers]
    drawn = torch.zeros(len(numbers), 3, 12, 12)
    drawn[:, 0], drawn[:, 1] = torch.tensor(numbers / 1000)[:, None, None], torch.tensor(ease)[:, None, None]
    return LabelledPictures(HeldPictures(drawn), numbers // 10)


def slightly_surer(trained: LabelledPictures, offset: float = 0.0) -> UnpairedRelease:
    """A release whose student is a little surer of pictures and people that it was trained on."""
    numbers = torch.tensor([round(1000 * float(trained.pictures.load(i)[0, 0, 0])) for i in range(len(trained))])

    def student(images: torch.Tensor) -> torch.Tensor:
        number = (1000 * images[:, 0, 0, 0]).round().long()
        knows = torch.isin(number, numbers) * 0.5 + torch.isin(number // 10, numbers // 10) * 0.5
        luck = torch.sin(number * (1.0 + len(numbers) + float(numbers.sum() % 89))) * 0.2
        sure = 10 * images[:, 1, 0, 0] + knows + luck + offset
        return torch.stack([sure, torch.zeros_like(sure)], dim=1)

    return UnpairedRelease(trained.pictures, trained.people, student=student)


@pytest.mark.parametrize("offset", [0.0, 4.0])
@pytest.mark.parametrize("attack", [PersonByShadows, PictureByShadows])
def test_shadows_find_what_one_threshold_cannot(attack: type[PersonByShadows], offset: float) -> None:
    """Pictures differ in ease twenty times more than membership changes; the target may be surer of everybody."""
    population, trained = tagged(range(60, 90), range(4)), tagged(range(20), range(2))
    attacked = UnpairedTarget(
        RNG,
        slightly_surer(trained, offset),
        trained,
        tagged(range(20), range(2, 4)),
        tagged(range(20, 40), range(2)),
        load_expert("histogram"),
        Shadows(
            population.pictures, population.people, lambda indices: slightly_surer(population.only(indices)), rng=RNG
        ),
    )
    evidence = attack().run(attacked)
    assert value(evidence) > 0.9
    assert value(evidence, "AUC (student, LiRA offline)") > 0.9
    assert value(evidence, "AUC (student, one threshold)") < 0.75


def test_the_gates_train_no_shadow_of_the_real_recipe() -> None:
    def refuse(indices: np.ndarray) -> UnpairedRelease:
        raise AssertionError("the gates must use their own recipes")

    trial = UnpairedTrial.of(target(shadows=shadows(refuse)))
    assert trial.clean.shadows is not None
    assert len(trial.clean.shadows.releases) == 8


def test_the_trial_makes_unseen_pictures_where_there_are_none() -> None:
    trial = UnpairedTrial.of(target(unseen=None)).clean
    assert trial.unseen is not None
    assert (len(trial.members), len(trial.unseen)) == (14, 14)
    assert trial.members.people.tolist() == trial.unseen.people.tolist()


def test_a_student_that_knows_by_heart_is_sure_of_its_pictures() -> None:
    held = members()
    _, place = np.unique(held.people, return_inverse=True)
    logits = answers(NearestStudent(held.pictures, place), held.pictures)
    assert logits.argmax(axis=1).tolist() == place.tolist()
    assert logits.max(axis=1) == pytest.approx(np.full(len(held), -np.log(1e-3)))


def test_a_remembered_look_is_the_recognisers_own() -> None:
    held, expert = members().pictures, load_expert("histogram")
    images = torch.stack([held.load(i) for i in (0, 1, 0, 5)])
    look = RememberedLook(expert)
    for part in (images, images.flip(0), images[1:3]):
        assert look(part) == pytest.approx(expert.embed(part).numpy(), abs=1e-6)


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"unseen": pictures([77], [0])}, "training people"),
        ({"held_out": pictures([0], [5])}, "must not be in the training set"),
        ({"release": UnpairedRelease(members().pictures, np.full(28, 99))}, "each class"),
    ],
)
def test_sets_that_contradict_each_other_are_refused(changes: dict[str, object], said: str) -> None:
    with pytest.raises(DataError, match=said):
        target(**changes)


def test_releases_that_do_not_fit_together_are_refused() -> None:
    held = members().pictures
    with pytest.raises(DataError, match="one class each"):
        UnpairedRelease(held, np.arange(3))
    with pytest.raises(DataError, match="soft labels"):
        UnpairedRelease(held, np.arange(28), np.zeros((28, 1), np.float32))
    with pytest.raises(DataError, match="finite logits"):
        UnpairedRelease(held, np.arange(28), np.full((28, 2), -np.inf, np.float32))
    with pytest.raises(DataError, match="one person's code each"):
        LabelledPictures(held, np.arange(3))
