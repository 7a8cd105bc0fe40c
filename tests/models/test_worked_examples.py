"""The worked examples of the source that concern models: footballers T2 and T6, and example 8."""

from __future__ import annotations

import math

import numpy as np
import pytest

from halfmask.models import (
    AverageRisk,
    DeltaDisclosure,
    KAnonymity,
    LDiversity,
    SampleUniques,
    TCloseness,
)
from halfmask.models.check import check

T2 = [("[30;39]", 1160), ("[30;39]", 1500), ("[20;29]", 1730), ("[20;29]", 3060)]
T6 = [*T2, ("32, OM", 500), ("32, OM", 500)]


def columns(rows):
    return {"q": [q for q, _ in rows], "s": [s for _, s in rows]}


def test_t2_is_2_anonymous_and_2_diverse(table):
    k, distinct = check(table(**columns(T2)), KAnonymity(2), LDiversity(2, "s"))
    assert (k.holds, k.required, k.achieved) == (True, 2, 2)
    assert (distinct.holds, distinct.required, distinct.achieved) == (True, 2, 2)
    assert (k.classes, k.rows, k.failing_classes, k.failing_rows) == (2, 4, 0, 0)


def test_t2_has_a_marketer_risk_of_one_half_and_no_unique_row(table):
    average, unique = check(table(**columns(T2)), AverageRisk(0.5), SampleUniques(0))
    assert (average.holds, average.achieved) == (True, 0.5)
    assert (unique.holds, unique.achieved) == (True, 0.0)


def test_t6_is_2_anonymous_but_homogeneous(table):
    k, distinct = check(table(**columns(T6)), KAnonymity(2), LDiversity(2, "s"))
    assert (k.holds, k.achieved) == (True, 2)
    assert (distinct.holds, distinct.achieved) == (False, 1)
    assert (distinct.failing_classes, distinct.failing_rows) == (1, 2)


def test_delta_disclosure_holds_although_a_value_is_certain_and_says_so(table):
    # p = 0.5 in all rows, q = 1 in the class: log10(2) = 0.301 < 0.5.
    people = table(q=["a", "a", "b", "b"], s=["x", "x", "y", "y"])
    relaxed, original = check(
        people,
        DeltaDisclosure(0.5, "s", base=10, absent="ignored"),
        DeltaDisclosure(0.5, "s", base=10),
    )
    assert relaxed.holds
    assert relaxed.achieved == pytest.approx(0.30103, abs=1e-6)
    assert "bounds nothing here" in relaxed.note
    assert relaxed.model == "relaxed delta-disclosure"
    assert (original.model, original.holds) == ("delta-disclosure", False)
    assert original.achieved == math.inf
    assert original.to_dict()["achieved"] is None


def test_the_note_is_empty_where_delta_bounds_every_value(table):
    (verdict,) = check(
        table(q=["a", "a", "b", "b"], s=["x", "y", "x", "y"]), DeltaDisclosure(0.5, "s")
    )
    assert verdict.holds
    assert verdict.note == ""


def test_salaries_of_the_first_t_closeness_example(table):
    # Li et al.: salaries 3k to 11k; {3, 4, 5} is 0.375 away in order, {6, 8, 11} 0.167.
    q = ["a"] * 3 + ["b"] * 3 + ["c"] * 3
    s = [3, 4, 5, 6, 8, 11, 7, 9, 10]
    (verdict,) = check(table(q=q, s=s), TCloseness(0.375, "s", "ordered"))
    assert verdict.holds
    assert verdict.achieved == 0.375
    (verdict,) = check(table(q=q, s=s), TCloseness(0.3749999999999999, "s", "ordered"))
    assert (verdict.holds, verdict.failing_classes) == (False, 1)


def test_ordered_and_equal_distances_are_those_of_scipy(table):
    stats = pytest.importorskip("scipy.stats")
    for seed in range(20):
        random = np.random.default_rng(seed)
        q, s = random.integers(0, 3, 30), random.integers(0, 6, 30)
        ordered, equal = check(
            table(q=q.tolist(), s=s.tolist()),
            TCloseness(1, "s", "ordered"),
            TCloseness(1, "s", "equal"),
        )
        values = np.unique(s)
        ranks = np.searchsorted(values, s)
        moved = [stats.wasserstein_distance(ranks[q == one], ranks) for one in np.unique(q)]
        assert ordered.achieved == pytest.approx(max(moved) / (len(values) - 1))
        shares = [[(s[q == one] == v).mean() for v in values] for one in np.unique(q)]
        whole = np.array([(s == v).mean() for v in values])
        # Every value is one step from every other: half of the mass that differs.
        assert equal.achieved == pytest.approx(max(np.abs(p - whole).sum() / 2 for p in shares))
