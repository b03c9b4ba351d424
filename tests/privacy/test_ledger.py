from __future__ import annotations

import datetime
import json
import math
import sqlite3
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import torch
from dp_accounting import get_epsilon_gaussian

from tests.privacy import killed_releases as script
from veilkit.errors import BudgetError, ConfigError, DataError, DestinationError
from veilkit.privacy import AnalyticGaussian, Budget, DisguisePaper, Ledger, PrivUnit, SeededNoise, unit

PRIVUNIT = PrivUnit(dimension=8, epsilon=2.0)
BUDGET = Budget(epsilon=6.0, delta=0.0)


def some(count: int, seed: int = 0) -> torch.Tensor:
    return unit(torch.randn(count, 8, generator=torch.Generator().manual_seed(seed)))


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return tmp_path / "private" / "ledger"


def test_a_record_released_again_is_the_same_vector_at_no_further_cost(file: Path) -> None:
    with Ledger(file, budget=BUDGET, per="record") as ledger:
        first = ledger.release(PRIVUNIT, some(3), records=["a", "b", "c"])
        assert not torch.equal(first[0], first[1])
    with Ledger(file) as ledger:
        again = ledger.release(PRIVUNIT, some(4), records=["c", "a", "new", "a"])
        assert torch.equal(again[[0, 1, 3]], first[[2, 0, 0]])
        assert [ledger.spent(record).epsilon for record in ("a", "b", "c", "new", "unknown")] == [2, 2, 2, 2, 0]
        assert len(ledger) == 4


def test_one_record_twice_in_one_call_is_charged_once(file: Path) -> None:
    with Ledger(file, budget=BUDGET, per="record") as ledger:
        twice = ledger.release(PRIVUNIT, some(2), records=["a", "a"])
        assert torch.equal(twice[0], twice[1])
        assert ledger.spent("a").releases == 1


def test_pictures_of_one_person_compose_and_the_one_past_the_budget_is_refused_with_the_numbers(file: Path) -> None:
    with Ledger(file, budget=BUDGET, per="person") as ledger:
        ledger.release(PRIVUNIT, some(3), records=["1", "2", "3"], persons=["ann", "ann", "bob"])
        assert ledger.spent("ann").epsilon == 4.0
        assert ledger.spent("ann").left == 2.0
        assert ledger.spent("bob").releases == 1
        with pytest.raises(BudgetError) as refused:
            ledger.release(PRIVUNIT, some(3), records=["4", "5", "6"], persons=["ann", "bob", "ann"])
        message = str(refused.value)
        assert "budget is epsilon 6, delta 0 per person" in message
        assert "1 of 2 past it, the worst from epsilon 4 to 8, with 2 more at epsilon 2, delta 0" in message
        assert "ann" not in message
        assert refused.value.over == ("ann",)
        assert len(ledger) == 3  # bob's neither: all or none
        ledger.release(PRIVUNIT, some(2), records=["4", "5"], persons=["ann", "bob"])
        assert ledger.spent("ann").left == 0.0
        # What is known costs nothing, even at the end of the budget.
        ledger.release(PRIVUNIT, some(2), records=["1", "4"], persons=["ann", "ann"])


def test_another_mechanism_on_the_same_record_is_another_release(file: Path) -> None:
    gaussian = AnalyticGaussian(dimension=8, epsilon=1.0, delta=1e-6)
    with Ledger(file, budget=Budget(epsilon=4.0, delta=1e-5), per="record") as ledger:
        one = ledger.release(PRIVUNIT, some(1), records=["a"])
        other = ledger.release(gaussian, some(1), records=["a"])
        assert not torch.equal(one, other)
        assert 2.0 < ledger.spent("a").epsilon <= 3.0
        assert [json.loads(entry.mechanism)["mechanism"] for entry in ledger.entries("a")] == ["privunit", "gaussian"]
        with pytest.raises(BudgetError):
            ledger.release(PrivUnit(dimension=8, epsilon=2.5), some(1), records=["a"])


def test_gaussian_pictures_of_one_person_compose_to_what_dp_accounting_says(file: Path) -> None:
    gaussian = AnalyticGaussian(dimension=8, epsilon=0.5, delta=1e-6)
    assert gaussian.cost.multiplier is not None
    with Ledger(file, budget=Budget(epsilon=2.0, delta=1e-5), per="person") as ledger:
        ledger.release(gaussian, some(9), records=[str(shot) for shot in range(9)], persons=["ann"] * 9)
        expected = get_epsilon_gaussian(gaussian.cost.multiplier / 3.0, 1e-5)
        assert ledger.spent("ann").epsilon == pytest.approx(expected, rel=1e-9)
        worst = ledger.worst()
        assert worst is not None
        assert worst.key == "ann"
        guarantee = ledger.guarantee()
        assert guarantee.epsilon_proved == worst.epsilon
        assert (guarantee.epsilon_claimed, guarantee.delta) == (2.0, 1e-5)


def test_a_budget_of_one_release_allows_exactly_one(file: Path) -> None:
    gaussian = AnalyticGaussian(dimension=8, epsilon=1.1, delta=1e-6)
    with Ledger(file, budget=Budget(epsilon=1.1, delta=1e-6), per="person") as ledger:
        ledger.release(gaussian, some(1), records=["a"], persons=["ann"])
        with pytest.raises(BudgetError):
            ledger.release(gaussian, some(1), records=["b"], persons=["ann"])


def test_what_nothing_is_proved_of_fits_no_budget_but_an_infinite_one(file: Path, tmp_path: Path) -> None:
    paper = DisguisePaper(dimension=8, epsilon=1.0, sensitivity=1.0)
    with (
        Ledger(file, budget=BUDGET, per="record") as ledger,
        pytest.raises(BudgetError, match="to inf, with 1 more at an epsilon nothing bounds"),
    ):
        ledger.release(paper, some(1), records=["a"])
    with Ledger(tmp_path / "study", budget=Budget(epsilon=math.inf, delta=0.0), per="record") as ledger:
        ledger.release(paper, some(1), records=["a"])
        assert ledger.guarantee().epsilon_proved == math.inf


def test_seeded_noise_counts_as_no_proof(file: Path) -> None:
    with (
        Ledger(file, budget=BUDGET, per="record", noise=SeededNoise(0, insecure=True)) as ledger,
        pytest.raises(BudgetError, match="nothing bounds"),
    ):
        ledger.release(PRIVUNIT, some(1), records=["a"])


def test_entries_tell_what_was_released_when_and_at_what_cost(file: Path) -> None:
    with Ledger(file, budget=BUDGET, per="person") as ledger:
        ledger.release(PRIVUNIT, some(2), records=["x", "y"], persons=["ann", "bob"])
        (entry,) = ledger.entries("bob")
        assert (entry.record, entry.charged, entry.cost) == ("y", "bob", PRIVUNIT.cost)
        age = datetime.datetime.now(datetime.UTC) - datetime.datetime.fromisoformat(entry.at)
        assert abs(age.total_seconds()) < 60
        assert json.loads(entry.mechanism) == {"mechanism": "privunit", "dimension": 8, "epsilon": 2.0}
        assert len(list(ledger.entries())) == 2


def test_a_record_belongs_to_one_person(file: Path) -> None:
    with Ledger(file, budget=BUDGET, per="person") as ledger:
        with pytest.raises(DataError, match="two different persons"):
            ledger.release(PRIVUNIT, some(2), records=["a", "a"], persons=["ann", "bob"])
        ledger.release(PRIVUNIT, some(1), records=["a"], persons=["ann"])
        with pytest.raises(DataError, match="another person's"):
            ledger.release(PRIVUNIT, some(1), records=["a"], persons=["bob"])
        assert len(ledger) == 1


@pytest.mark.parametrize(
    ("records", "persons", "message"),
    [
        (["a"], None, "one record for each of 2 vectors, but got 1"),
        ("ab", None, "one record for each"),
        (["a", ""], None, "not empty"),
        (["a", "\udcff"], None, "printable text"),
        (["a", 7], None, "printable text"),
        (["a", "b"], ["x", "y"], "knows no persons"),
    ],
)
def test_names_that_do_not_fit_are_refused(
    file: Path, records: list[str], persons: list[str] | None, message: str
) -> None:
    with Ledger(file, budget=BUDGET, per="record") as ledger:
        with pytest.raises((DataError, ConfigError), match=message):
            ledger.release(PRIVUNIT, some(2), records=records, persons=persons)
        assert len(ledger) == 0


def test_a_ledger_per_person_needs_persons(file: Path) -> None:
    with Ledger(file, budget=BUDGET, per="person") as ledger, pytest.raises(ConfigError, match="per person"):
        ledger.release(PRIVUNIT, some(1), records=["a"])


def test_wrong_vectors_change_nothing(file: Path) -> None:
    with Ledger(file, budget=BUDGET, per="record") as ledger:
        for wrong in (3.0 * some(1), some(1)[:, :4], torch.full((1, 8), math.nan)):
            with pytest.raises(DataError):
                ledger.release(PRIVUNIT, wrong, records=["a"])
        assert len(ledger) == 0
        assert ledger.worst() is None
        assert ledger.guarantee().epsilon_proved == 0.0


def test_budget_and_unit_are_fixed_when_a_ledger_is_made(file: Path) -> None:
    with pytest.raises(ConfigError, match="is a new ledger"), Ledger(file):
        pass
    assert not file.exists()
    with Ledger(file, budget=BUDGET, per="record") as ledger:
        assert (ledger.budget, ledger.per) == (BUDGET, "record")
    with Ledger(file, budget=BUDGET, per="record"):
        pass
    with pytest.raises(ConfigError, match="epsilon 6, delta 0 per record, but was opened with epsilon 7"):
        Ledger(file, budget=Budget(epsilon=7.0, delta=0.0)).__enter__()
    with pytest.raises(ConfigError, match="per person"), Ledger(file, per="person"):
        pass
    with pytest.raises(ConfigError, match="per must be"):
        Ledger(file, per="image")  # type: ignore[arg-type]


def test_one_process_at_a_time(file: Path) -> None:
    with (
        Ledger(file, budget=BUDGET, per="record"),
        pytest.raises(DestinationError, match="another process"),
        Ledger(file),
    ):
        pass


def test_another_file_is_no_ledger(tmp_path: Path) -> None:
    text, database = tmp_path / "text", tmp_path / "database"
    text.write_text("a text of some length" * 100)
    with sqlite3.connect(database) as db:
        db.execute("CREATE TABLE about (name TEXT, value TEXT)")
    db.close()
    for file, message in ((text, "not a database"), (database, "other tables")):
        before = file.read_bytes()
        with pytest.raises(DataError, match=message), Ledger(file, budget=BUDGET, per="record"):
            pass
        if file is text:
            assert file.read_bytes() == before


def test_only_its_owner_may_read_it_and_it_holds_no_clean_vector(file: Path) -> None:
    vectors = some(1)
    with Ledger(file, budget=BUDGET, per="record") as ledger:
        ledger.release(PRIVUNIT, vectors, records=["a"])
    assert file.stat().st_mode & 0o077 == 0
    content = b"".join(part.read_bytes() for part in file.parent.iterdir())
    assert vectors.numpy().tobytes() not in content
    assert vectors.double().numpy().tobytes() not in content


def test_many_records_are_charged_in_one_go(file: Path) -> None:
    records = [str(number) for number in range(1200)]
    with Ledger(file, budget=BUDGET, per="record") as ledger:
        first = ledger.release(PRIVUNIT, some(1200), records=records)
        assert torch.equal(first, ledger.release(PRIVUNIT, some(1200), records=records))
        assert len(ledger) == 1200


def test_a_check_raises_what_a_release_would_and_charges_nothing(file: Path) -> None:
    with Ledger(file, budget=BUDGET, per="person") as ledger:
        first = ledger.release(PRIVUNIT, some(2), records=["1", "2"], persons=["ann", "ann"])
        ledger.check(PRIVUNIT, records=["1", "2", "3"], persons=["ann", "ann", "ann"])
        with pytest.raises(BudgetError, match="from epsilon 4 to 8"):
            ledger.check(PRIVUNIT, records=["1", "3", "4"], persons=["ann", "ann", "ann"])
        with pytest.raises(DataError, match="another person's"):
            ledger.check(PRIVUNIT, records=["1"], persons=["bob"])
        assert len(ledger) == 2
        paid = ledger.released(PRIVUNIT, ["2", "3", "1"])
        assert list(map(sorted, (paid, ["1", "2"]))) == [["1", "2"]] * 2
        assert torch.equal(torch.from_numpy(paid["2"].copy()), first[1])
        assert ledger.released(PrivUnit(dimension=8, epsilon=1.0), ["1"]) == {}


TIGHT = Budget(epsilon=4.0, delta=0.0)


def published_vectors(count: int) -> np.ndarray:
    return np.random.default_rng(0).standard_normal((count, 8)).astype(np.float32)


def test_adopted_vectors_are_charged_once_and_given_again(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger", budget=TIGHT, per="person") as ledger:
        found = published_vectors(2)
        for charged in (2, 0):
            assert ledger.adopt(PRIVUNIT, found, records=["1", "2"], persons=["ann", "ann"]) == charged
        assert ledger.spent("ann").epsilon == 4.0
        given = torch.zeros(2, 8)
        given[:, 0] = 1.0
        assert (ledger.release(PRIVUNIT, given, records=["1", "2"], persons=["ann", "ann"]).numpy() == found).all()
        with pytest.raises(BudgetError):
            ledger.release(PRIVUNIT, given[:1], records=["3"], persons=["ann"])


def test_what_is_out_is_charged_past_the_budget_and_another_vector_is_another_release(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger", budget=TIGHT, per="record") as ledger:
        found = published_vectors(3)
        charged = [ledger.adopt(PRIVUNIT, found[row : row + 1], records=["a"]) for row in (0, 1, 2, 1, 0)]
        assert charged == [1, 1, 1, 0, 0]
        assert (ledger.spent("a").epsilon, ledger.spent("a").left) == (6.0, 0.0)
        assert (ledger.released(PRIVUNIT, ["a"])["a"] == found[0]).all()
        assert ledger.only(PRIVUNIT)
        assert not ledger.only(PrivUnit(dimension=8, epsilon=1.0))


def test_what_is_no_vector_or_another_persons_is_not_adopted(tmp_path: Path) -> None:
    with Ledger(tmp_path / "ledger", budget=TIGHT, per="person") as ledger:
        ledger.adopt(PRIVUNIT, published_vectors(1), records=["1"], persons=["ann"])
        endless = published_vectors(1)
        endless[0, 3] = np.inf
        for wrong in (published_vectors(1)[:, :4], endless):
            with pytest.raises(DataError, match="finite vectors of 8"):
                ledger.adopt(PRIVUNIT, wrong, records=["2"], persons=["ann"])
        with pytest.raises(DataError, match="another person's"):
            ledger.adopt(PRIVUNIT, published_vectors(1), records=["1"], persons=["bob"])
        assert len(ledger) == 1


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("killed")
    subprocess.run([sys.executable, script.__file__, str(folder)], check=True, timeout=300)
    return folder


def published(folder: Path) -> dict[str, set[str]]:
    found: dict[str, set[str]] = {}
    for line in (folder / "published").read_text().splitlines():
        record, vector = line.split()
        if len(vector) == script.DIGITS:  # else it was killed in the middle of the line
            found.setdefault(record, set()).add(vector)
    return found


def test_killed_while_noise_is_drawn_nothing_is_charged_and_nothing_was_handed_out(folder: Path) -> None:
    assert not (folder / "before" / "published").exists()
    with Ledger(folder / "before" / "ledger") as ledger:
        assert len(ledger) == 0
        assert ledger.spent("0").epsilon == 0.0


def test_killed_after_the_charge_the_same_vectors_are_given_later_and_cost_nothing_more(folder: Path) -> None:
    assert not (folder / "after" / "published").exists()
    with Ledger(folder / "after" / "ledger") as ledger:
        assert ledger.spent("0").epsilon == script.EACH * script.EPSILON
        assert len(ledger) == script.EACH
    script.publish(folder / "after")
    assert len(published(folder / "after")) == script.PEOPLE * script.EACH
    with Ledger(folder / "after" / "ledger") as ledger:
        assert ledger.spent("0").releases == script.EACH


def test_killed_many_times_every_record_was_charged_once_and_published_as_one_vector(folder: Path) -> None:
    kills = [int(line) for line in (folder / "often" / "kills").read_text().split()]
    assert len(kills) == script.KILLS
    assert kills[0] < script.PEOPLE * script.EACH, "killed before all was published"
    found = published(folder / "often")
    assert len(found) == script.PEOPLE * script.EACH
    assert all(len(vectors) == 1 for vectors in found.values())
    with Ledger(folder / "often" / "ledger") as ledger:
        assert len(ledger) == script.PEOPLE * script.EACH
        worst = ledger.worst()
        assert worst is not None
        assert worst.epsilon == script.EACH * script.EPSILON
