"""Counts under differential privacy: paid for, consistent, with a receipt."""

from __future__ import annotations

import numpy as np
import pytest

import halfmask as hm
from halfmask.dp import Pure
from halfmask.errors import BudgetExceededError, ParameterError, PrivacyError, SchemaError
from halfmask.tabulate.noise import _whole

DOMAINS = {"city": ["a", "b", "c", "d", "e"], "sex": ["f", "m"]}


def private(table, by=("city", "sex"), **more):
    settings = {"epsilon": 1, "domains": {n: DOMAINS[n] for n in by}, **more}
    return hm.tabulate(table, list(by), method="dp", **settings)


def test_margins_are_sums_and_categories_are_public(town):
    release = private(town)
    shown = {(r["city"], r["sex"]): r["count"] for r in release.to_arrow().to_pylist()}
    assert len(shown) == 18
    for city in DOMAINS["city"]:
        assert shown[city, "Total"] == shown[city, "f"] + shown[city, "m"]
    assert shown["Total", "Total"] == sum(shown[c, "Total"] for c in DOMAINS["city"])
    assert min(shown.values()) >= 0
    assert abs(shown["Total", "Total"] - 400) < 120


def test_the_receipt_names_every_view(town):
    receipt = private(town).receipt
    receipt.verify()
    assert [e.view for e in receipt.entries] == ["city x sex", "city", "sex", "number of rows"]
    assert private(town, ("sex",)).receipt.entries[0].view == "sex"


def test_the_budget_is_kept(town):
    accountant = hm.Accountant(private(town).receipt.promise)
    private(town, accountant=accountant)
    with pytest.raises(BudgetExceededError):
        private(town, accountant=accountant)


def test_delta_and_margins(town):
    release = private(town, delta="1e-6", margins=False)
    assert len(release) == 10


@pytest.mark.parametrize(
    "more",
    [{"threshold": 3}, {"sum": "income"}, {"epsilon": None}, {"epsilon": "personal"}],
    ids=str,
)
def test_what_noise_does_not_take(town, more):
    with pytest.raises((ParameterError, TypeError, ValueError)):
        private(town, **more)


def test_a_budget_and_domains_must_be_given(town):
    with pytest.raises(ParameterError, match="the budget to spend"):
        hm.tabulate(town, "city", method="dp")
    with pytest.raises(SchemaError, match="no public domain"):
        hm.tabulate(town, "city", method="dp", epsilon=1)


def test_nearly_exact_noise_is_refused_where_people_state_k(town):
    with pytest.raises(PrivacyError, match="noise keeps them up to epsilon"):
        private(town, epsilon=5)
    assert not private(town, epsilon=5, demands="ignore").demands.kept


def test_people_who_allow_less_are_left_out():
    rows = {"g": ["x"] * 600 + ["y"] * 600, "own": [5.0] * 600 + [0.1] * 600}
    table = hm.read(rows, schema={"policy": {"epsilon": "own"}, "columns": {"g": "quasi"}})
    release = hm.tabulate(table, "g", method="dp", epsilon=2, domains={"g": ["x", "y"]})
    shown = {r["g"]: r["count"] for r in release.to_arrow().to_pylist()}
    assert shown["x"] > 500
    assert shown["y"] < 100
    assert any("left out" in note for note in release.notes)


def test_whole_counts_keep_the_total():
    found = _whole(np.array([[3.4, -2.0], [1.3, 4.5]]))
    assert found.sum() == 7
    assert (found >= 0).all()
    assert not _whole(np.array([-3.0, 1.0])).any()


def test_an_epsilon_whose_noise_fits_no_number_costs_nothing(town):
    for by in (("city", "sex"), ("sex",)):
        accountant = hm.Accountant(Pure(1))
        with pytest.raises(ParameterError, match="give more: the noise would exceed any count"):
            private(town, by, epsilon=1e-30, accountant=accountant)
        assert accountant.remaining == Pure(1)


def test_domains_of_columns_that_are_not_shown_do_no_harm(town):
    made = private(town, ("sex",), domains=DOMAINS)
    assert made.to_arrow().column_names == ["sex", "count"]
    with pytest.raises(SchemaError, match="Domain 'size' is no column of the table"):
        private(town, ("sex",), domains={**DOMAINS, "size": [1, 2]})
