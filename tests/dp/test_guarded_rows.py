from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from noise import repeatable

from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import Concentrated, Pure
from halfmask.dp.domain import public_domains
from halfmask.dp.views import Guess, bounded_rows, choice, guarded_rows, noise
from halfmask.errors import BudgetExceededError, InternalError, ParameterError
from halfmask.table.schema import Schema
from halfmask.table.table import Table

DOMAINS = {"p": ["a", "b"], "q": ["x", "y", "z"]}


def make(promise=None, rows_per_person: int = 1, schema: Schema | None = None, **columns):
    columns = columns or {"p": ["a", "a", "b"], "q": ["x", "y", "z"]}
    table = Table(pa.table(columns), schema or Schema())
    promise = promise or Pure(1)
    allowance = Accountant(promise).allow(promise, "test", rows_per_person=rows_per_person)
    known = public_domains(["p", "q"], DOMAINS)
    return guarded_rows(table, known, allowance, sampler=repeatable(1))


def test_a_count_is_charged_before_it_is_read() -> None:
    locked = make()
    locked.count(("p",), Pure("0.6"))
    with pytest.raises(BudgetExceededError):
        locked.count(("q",), Pure("0.6"))
    assert [entry.view for entry in locked.allowance.entries] == ["p"]


def test_noise_is_added_to_empty_cells_too() -> None:
    locked = make(Pure(10**6))
    noisy = [locked.count(("p", "q"), Pure("0.1")).counts for _ in range(300)]
    assert np.std([one[1, 0] for one in noisy]) == pytest.approx(14.1, rel=0.25)
    exact = locked.count(("p", "q"), Pure(1000)).counts
    assert exact.tolist() == [[1, 1, 0], [0, 0, 1]]


def test_nothing_of_the_rows_shows_in_text() -> None:
    assert "array" not in repr(make())


def test_the_number_of_rows_is_noisy() -> None:
    assert make(Pure(100)).count((), Pure(100)).counts.shape == ()
    assert int(make(Pure(100)).count((), Pure(100)).counts) == 3


def test_worst_guess() -> None:
    locked = make(Pure(1000))
    right = Guess(("p",), np.array([2, 1]))
    wrong = Guess(("q",), np.array([9, 9, 9]))
    assert locked.worst([right, wrong], Pure(50)) == 1
    assert locked.worst([right, Guess(("q",), np.array([9, 9, 9]), penalty=100)], Pure(50)) == 0


@pytest.mark.parametrize(
    "counts",
    [
        np.zeros((1000, 2), np.int64),
        np.zeros(1, np.int64),
        np.array([np.nan, 1.0]),
        np.array([np.iinfo(np.int64).min, 1]),
        np.array([1, (1 << 40) + 1]),
    ],
    ids=["broadcast", "short", "nan", "least", "large"],
)
def test_a_guess_that_one_row_moves_too_far_is_refused_before_it_is_charged(counts) -> None:
    locked = make(Pure(1000))
    with pytest.raises(InternalError, match="A guess is no table"):
        locked.worst([Guess(("p",), np.array([2, 1])), Guess(("p",), counts)], Pure(50))
    assert locked.allowance.entries == []


def test_beliefs_that_are_no_numbers_are_no_guess() -> None:
    for wrong in (np.nan, np.inf, 2.0**41):
        with pytest.raises(FloatingPointError):
            Guess.of(("p",), np.array([1.0, wrong]), 0)
    assert Guess.of(("p",), np.array([1.6, -0.2]), 3).counts.tolist() == [2, 0]


@pytest.mark.parametrize(("rows_per_person", "chance"), [(1, 0.881), (2, 0.731)])
def test_choices_are_as_noisy_as_their_scores_are_sensitive(rows_per_person, chance) -> None:
    """Scores are 4 apart: e^2 / (e^2 + 1) where a person moves them by 1 (3 for dependence)."""
    locked = make(Pure(10**6), rows_per_person, p=["a", "b"] * 4, q=["x", "y"] * 4)
    guesses = [Guess(("p",), np.array([4, 4])), Guess(("p",), np.array([4, 8]))]
    worst = np.mean([locked.worst(guesses, Pure(1)) for _ in range(250)])
    families = [((), "p"), (("p",), "q")]
    dependent = np.mean([locked.dependent(families, Pure(3)) for _ in range(250)])
    assert [worst, dependent] == pytest.approx([chance, chance], abs=0.1)


def test_most_dependent_family() -> None:
    rows = 200
    locked = make(Pure(1000), p=["a", "b"] * (rows // 2), q=["x", "y"] * (rows // 2))
    assert locked.dependent([((), "p"), (("p",), "q")], Pure(50)) == 1


def test_sensitivity_of_the_dependence_score_on_all_small_tables() -> None:
    """Adding any row to any 2 x 2 table of up to 4 rows changes the score by at most 2."""
    from itertools import product

    def score(table: np.ndarray) -> float:
        total = max(table.sum(), 1)
        return np.abs(table - table.sum(1, keepdims=True) * table.sum(0) / total).sum() / 2

    for cells in product(range(5), repeat=4):
        table = np.array(cells, float).reshape(2, 2)
        for extra in range(4):
            more = table.copy()
            more.flat[extra] += 1
            assert abs(score(more) - score(table)) <= 2


def test_several_rows_of_a_person_are_cut_to_the_bound() -> None:
    schema = Schema(person="who")
    table = Table(pa.table({"who": [1, 1, 1, 2, None, None]}), schema)
    kept = bounded_rows(table, 2, repeatable(3))
    assert kept is not None
    people = np.array([1, 1, 1, 2, 0, 0])[kept]
    assert (people == 1).sum() == 2
    assert (people == 2).sum() == 1
    assert bounded_rows(Table(pa.table({"who": [1, 2]}), schema), 1, repeatable(1)) is None
    assert bounded_rows(Table(pa.table({"x": [1, 2]}), Schema()), 1, repeatable(1)) is None


def test_the_bound_on_rows_scales_the_noise() -> None:
    one = make(Pure(10)).count(("p",), Pure(1)).variance
    five = make(Pure(10), rows_per_person=5).count(("p",), Pure(1)).variance
    assert five == pytest.approx(25 * one, rel=0.15)
    rho = make(Concentrated(1), rows_per_person=5).count(("p",), Concentrated("0.5")).variance
    assert rho == pytest.approx(25)


def test_grouped_views_share_the_allowance() -> None:
    locked = make(Pure(2000))
    coarse = locked.recode({"p": np.array([0, 1]), "q": np.array([0, 0, 1])})
    assert coarse.sizes == {"p": 2, "q": 2}
    assert coarse.count(("q",), Pure(1000)).counts.tolist() == [2, 1]
    assert locked.allowance.remaining == Pure(1000)
    assert locked.within(Pure(5)).limit == Pure(5)


def test_costs_of_choices_fit_rho() -> None:
    mechanism = choice(Concentrated("1/50"), 1)
    assert mechanism.concentrated <= Concentrated("1/50")
    assert float(mechanism.epsilon) == pytest.approx(0.4, rel=1e-6)
    for bad in (noise, choice):
        with pytest.raises(InternalError):
            bad(Pure(1).__class__.__mro__[1](), 1)


def test_tables_too_large_to_list_are_refused() -> None:
    locked = make()
    locked.sizes = {"p": 1 << 20, "q": 1 << 20}
    with pytest.raises(ParameterError, match="cells"):
        locked.count(("p", "q"), Pure(1))
