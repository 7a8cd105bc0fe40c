"""A private synthesis that has spent delivers, whatever floating point does."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.dp.budget import Pure
from halfmask.dp.views import NoisyCounts
from halfmask.errors import BudgetExceededError, InternalError, ParameterError
from halfmask.synthesize import marginals, private
from halfmask.synthesize.fallback import DEFECT, FELL_BACK, learn_and_draw

DOMAINS = {"a": ["x", "y"], "b": ["u", "v", "w"], "c": list(range(40))}


def people():
    """4,000 people; nine in ten hold x, one half u."""
    random = np.random.default_rng(0)
    return hm.read(
        pa.table(
            {
                "a": np.where(random.random(4000) < 0.9, "x", "y"),
                "b": random.choice(["u", "v", "w"], 4000, p=[0.5, 0.3, 0.2]),
                "c": random.integers(0, 40, 4000),
            }
        )
    )


class Broken:
    """A model that cannot draw."""

    rows = 4000

    def __init__(self, kind):
        self.kind = kind

    def draw(self, rows, random):
        if self.kind == "error":
            raise FloatingPointError("nan")
        if self.kind == "floats":
            return {name: np.full(rows, np.nan) for name in DOMAINS}
        return {name: np.full(rows, -(2**31), np.int64) for name in DOMAINS}


@pytest.mark.parametrize("kind", ["error", "floats", "codes"])
@pytest.mark.parametrize("method", ["marginals", "privbayes"])
def test_a_broken_model_falls_back_on_what_was_paid_for(method, kind, monkeypatch):
    learn = private.PRIVATE[method]

    def broken(views, *, ordered=()):
        learn(views, ordered=ordered)
        return Broken(kind)

    monkeypatch.setitem(private.PRIVATE, method, broken)
    keeper = hm.Accountant(Pure(10))
    made = hm.synthesize(people(), method, epsilon=10, domains=DOMAINS, accountant=keeper)
    assert made.notes[0] == FELL_BACK
    assert keeper.remaining == Pure(0)
    rows = made.to_arrow()
    assert rows.num_rows == pytest.approx(4000, abs=40)
    assert np.mean(np.array(rows["a"]) == "x") == pytest.approx(0.9, abs=0.03)
    assert np.mean(np.array(rows["b"]) == "u") == pytest.approx(0.5, abs=0.04)
    made.receipt.verify()


@pytest.mark.filterwarnings("ignore")
def test_beliefs_that_are_no_numbers_do_not_stop_a_release(monkeypatch):
    fit = marginals.fit_beliefs

    def spoiled(*given, **more):
        found = fit(*given, **more)
        for table in found.tables:
            table[...] = np.nan
        return found

    monkeypatch.setattr(marginals, "fit_beliefs", spoiled)
    rows = hm.synthesize(people(), "marginals", epsilon=10, domains=DOMAINS).to_arrow()
    assert np.mean(np.array(rows["a"]) == "x") == pytest.approx(0.9, abs=0.05)


def test_a_method_that_works_is_not_replaced():
    made = hm.synthesize(people(), "marginals", epsilon=1, domains=DOMAINS)
    assert FELL_BACK not in made.notes


class OneAnswer:
    """Views that answer as they were told."""

    def __init__(self):
        self.sizes = {"a": 2, "b": 3}
        self.limit = Pure(1)

    def count(self, columns, cost):
        del cost
        return NoisyCounts(tuple(columns), np.array([[90, -3, 0], [5, 5, 0]]), 1.0)


def fails_after_a_look(views, **_):
    views.count(("a", "b"), Pure(1))
    raise FloatingPointError


def test_columns_are_summed_from_larger_tables():
    random = np.random.default_rng(0)
    codes, notes = learn_and_draw(fails_after_a_look, OneAnswer(), lambda _: 970, random)
    assert notes == (FELL_BACK,)
    assert np.bincount(codes["a"]).tolist() == [870, 100]  # 87 and 10 of 97
    assert np.bincount(codes["b"], minlength=3).tolist() == [950, 20, 0]


DEFECTS = [ValueError, IndexError, KeyError, TypeError, AttributeError, AssertionError]


@pytest.mark.parametrize("kind", DEFECTS)
def test_a_defect_is_told_as_one_and_what_was_paid_for_leaves(kind):
    def defective(views, **_):
        views.count(("a", "b"), Pure(1))
        raise kind("the canary 8731")

    random = np.random.default_rng(0)
    with pytest.warns(RuntimeWarning, match=kind.__name__) as told:
        codes, notes = learn_and_draw(defective, OneAnswer(), lambda _: 970, random)
    assert notes == (DEFECT.format(kind.__name__),)
    assert "8731" not in notes[0] + str(told[0].message)
    assert np.bincount(codes["a"]).tolist() == [870, 100]


def test_a_matrix_without_an_inverse_is_trouble_with_numbers():
    def singular(views, **_):
        views.count(("a", "b"), Pure(1))
        np.linalg.inv(np.zeros((2, 2)))

    found = learn_and_draw(singular, OneAnswer(), lambda _: 10, np.random.default_rng(0))
    assert found[1] == (FELL_BACK,)


@pytest.mark.parametrize(
    "error", [InternalError("x"), BudgetExceededError(Pure(2), Pure(1), Pure(1))]
)
def test_views_that_refuse_let_nothing_leave(error):
    def refused(views, **_):
        views.count(("a", "b"), Pure(1))
        raise error

    with pytest.raises(type(error)):
        learn_and_draw(refused, OneAnswer(), lambda _: 10, np.random.default_rng(0))


def test_a_release_says_first_that_a_method_is_wrong(monkeypatch):
    def wrong(views, *, ordered=()):
        marginals.learn(views, ordered=ordered)
        return {}["nowhere"]

    monkeypatch.setitem(private.PRIVATE, "marginals", wrong)
    with pytest.warns(RuntimeWarning, match="KeyError"):
        made = hm.synthesize(people(), "marginals", epsilon=10, domains=DOMAINS)
    assert made.notes[0] == DEFECT.format("KeyError")
    assert np.mean(np.array(made.to_arrow()["a"]) == "x") == pytest.approx(0.9, abs=0.03)


def test_what_is_no_number_trouble_is_told():
    def wrong(views, **_):
        del views
        raise ParameterError("cells", 1, "more")

    def early(views, **_):
        del views
        raise FloatingPointError

    random = np.random.default_rng(0)
    with pytest.raises(ParameterError):
        learn_and_draw(wrong, OneAnswer(), lambda _: 1, random)
    with pytest.raises(InternalError, match="before it had counted"):
        learn_and_draw(early, OneAnswer(), lambda _: 1, random)
