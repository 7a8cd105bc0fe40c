"""Figures exactly on the threshold, where floats go wrong."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfmask.errors import InternalError, SchemaError
from halfmask.models import (
    AlphaKAnonymity,
    AverageRisk,
    BetaLikeness,
    DeltaDisclosure,
    DeltaPresence,
    KMap,
    LDiversity,
    PersonalKAnonymity,
    SampleUniques,
    TCloseness,
    t_closeness,
)
from halfmask.models import statistics as entropy
from halfmask.models.check import check
from halfmask.models.requirements import statistics
from halfmask.table.classes import Classes, Histogram
from halfmask.table.columns import Column
from halfmask.table.demands import demand_key
from halfmask.table.hierarchy import from_levels
from halfmask.table.schema import Schema
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples


def holds(table, model):
    (verdict,) = check(table, model)
    return verdict.holds


def counted(*counts):
    """Classes with the given counts of values, no rows behind them."""
    starts = np.concatenate(([0], np.cumsum([sum(c > 0 for c in one) for one in counts])))
    values = [v for one in counts for v, c in enumerate(one) if c]
    flat = np.array([c for one in counts for c in one if c], dtype=np.int64)
    histogram = Histogram(starts.astype(np.int64), np.array(values, np.int32), flat, len(counts[0]))
    rows = np.array([sum(one) for one in counts], dtype=np.int64)
    return Classes(np.zeros((len(rows), 1), np.uint64), rows, rows, {"s": histogram})


@pytest.mark.parametrize("copies", [1, 3, 7, 1000, 99991])
def test_equal_counts_reach_their_entropy_exactly(copies):
    classes = counted((copies,) * 3, (copies,) * 5)
    assert LDiversity(3, "s", "entropy").passes(classes).tolist() == [True, True]
    assert LDiversity(5, "s", "entropy").passes(classes).tolist() == [False, True]
    assert LDiversity(3.0000000000000004, "s", "entropy").passes(classes).tolist() == [False, True]
    assert LDiversity(3, "s", "entropy").check(classes).achieved == 3


def test_uneven_counts_reach_two_bits_exactly():
    # Shares 1/2 and four times 1/8: H = 1/2 + 4 * 3/8 = 2 bits = ln 4.
    classes = counted((4, 1, 1, 1, 1), (400, 100, 100, 100, 100), (400, 100, 100, 100, 99))
    assert LDiversity(4, "s", "entropy").passes(classes).tolist() == [True, True, False]
    larger = counted((400_004, 100_001, 100_001, 100_001, 100_001))
    assert LDiversity(4, "s", "entropy").passes(larger).all()
    assert not LDiversity(Fraction(4 * 10**15 + 1, 10**15), "s", "entropy").passes(larger).any()


def test_huge_counts_that_only_digits_can_tell_apart():
    n = 10**12
    classes = counted((n, n), (n, n + 1), (n - 1, n + 1))
    assert LDiversity(2, "s", "entropy").passes(classes).tolist() == [True, False, False]


def test_three_tenths_is_three_tenths(table):
    people = table(q=["a"] * 10, s=[0] * 3 + [1] * 3 + [2] * 3 + [3])
    assert holds(people, AlphaKAnonymity(0.3, 2, "s"))
    assert holds(people, AlphaKAnonymity(0.1 + 0.2, 2, "s"))
    assert not holds(people, AlphaKAnonymity(0.29999999999999993, 2, "s"))


def test_t_reached_exactly(table):
    # a: 9 of 10, b: 3 of 10, all: 6 of 10; the distance is 0.3 for both, in floats a bit more.
    people = table(q=["a"] * 10 + ["b"] * 10, s=[0] * 9 + [1] + [0] * 3 + [1] * 7)
    for name in ("equal", "ordered"):
        assert holds(people, TCloseness(0.3, "s", name))
        assert not holds(people, TCloseness(0.29999999999999993, "s", name))


def test_beta_reached_exactly(table):
    # p = 0.3, q = 0.33: the gain is 0.1, in floats 0.10000000000000009.
    people = table(q=["a"] * 100 + ["b"] * 100, s=[0] * 33 + [1] * 67 + [0] * 27 + [1] * 73)
    assert holds(people, BetaLikeness(0.1, "s"))
    assert not holds(people, BetaLikeness(0.0999999999999999, "s"))


def test_delta_reached_exactly_fails_as_the_bound_is_strict(table):
    # q / p = 2 in class a.
    people = table(q=["a", "a", "b", "b"], s=[0, 0, 1, 1])
    for model in (
        DeltaDisclosure(1, "s", base=2, absent="ignored"),
        DeltaDisclosure(0.5, "s", base=4, absent="ignored"),
        DeltaDisclosure(0.6931471805599453, "s", absent="ignored"),
    ):
        assert not holds(people, model)
    assert holds(people, DeltaDisclosure(1.0000000000000002, "s", base=2, absent="ignored"))
    assert holds(people, DeltaDisclosure(0.6931471805599454, "s", absent="ignored"))


def test_recursive_reached_exactly_fails_as_the_bound_is_strict(table):
    people = table(q=["a"] * 4, s=[0, 0, 1, 2])  # 2 < c (1 + 1)
    assert not holds(people, LDiversity(2, "s", "recursive", c=1))
    assert holds(people, LDiversity(2, "s", "recursive", c=1.0000000000000002))


def test_enhanced_beta_when_everybody_has_the_value(table):
    # p = 1: -ln p = 0 and the gain is 0.
    (verdict,) = check(table(q=["a", "b"], s=[0, 0]), BetaLikeness(1, "s", kind="enhanced"))
    assert (verdict.holds, verdict.achieved) == (True, 0)


def test_whole_table_bounds_reached_exactly(table):
    people = table(q=["a"] * 9 + ["b"], s=[0] * 10)
    assert holds(people, SampleUniques(0.1))
    assert not holds(people, SampleUniques(0.09999999999999999))
    thirds = table(q=["a"] * 3 + ["b"] * 3 + ["c"] * 4, s=[0] * 10)
    assert holds(thirds, AverageRisk(0.3))
    assert not holds(thirds, AverageRisk(0.29999999999999993))


@pytest.mark.parametrize("name", ["equal", "ordered"])
def test_counts_beyond_machine_integers(name):
    # Nine tenths against three tenths, each of 10**10 rows.
    n = 10**9
    classes = counted((9 * n, n), (3 * n, 7 * n))
    assert TCloseness(0.3, "s", name).passes(classes).all()
    assert not TCloseness(0.29999999999999993, "s", name).passes(classes).any()
    more = counted((9 * n, n), (3 * n - 1, 7 * n + 1))
    assert TCloseness(0.3, "s", name).passes(more).tolist() == [False, False]
    assert BetaLikeness(0.5, "s").passes(classes).tolist() == [True, False]
    assert BetaLikeness(0.5, "s").passes(more).tolist() == [False, False]
    assert DeltaDisclosure(0.8, "s").passes(classes).tolist() == [False, True]


def test_missing_values_protect_nobody_unless_the_controller_says_so(table):
    people = table(q=["a", "a", None, None], s=["x", None, None, None])
    known, counted = check(people, LDiversity(2, "s"), LDiversity(2, "s", missing="value"))
    assert (known.achieved, known.failing_classes, known.classes) == (0, 2, 2)
    assert (counted.achieved, counted.failing_classes, counted.classes) == (1, 1, 2)
    assert "Missing values count" in counted.note


@given(st.lists(st.lists(st.integers(0, 3), min_size=40, max_size=40), min_size=1, max_size=4))
def test_sparse_classes_over_many_places_agree_with_the_definition(counts):
    # At most two of forty places are filled in the first class.
    sparse = [0] * 40
    for place, count in enumerate(counts[0][:2]):
        sparse[place * 17 + counts[0][2]] = count + 1
    counts = [sparse, *(one for one in counts[1:] if any(one))]
    values = counted(*counts).histograms["s"]
    moved, full = t_closeness.ordered_distance(values, values.totals(), "s")
    total = [sum(column) for column in zip(*counts, strict=True)]
    held = [i for i, c in enumerate(total) if c]
    size = sum(total)
    for i, one in enumerate(counts):
        away, running = Fraction(0), Fraction(0)
        for j in held:
            running += Fraction(one[j], sum(one)) - Fraction(total[j], size)
            away += abs(running)
        assert Fraction(int(moved[i]), int(full[i])) == away / max(len(held) - 1, 1)


@pytest.mark.parametrize("name", ["equal", "ordered", "hierarchical"])
def test_machine_and_python_integers_give_the_same(name):
    counts = [(5, 0, 2, 1), (0, 1, 1, 7), (3, 3, 0, 0)]
    tree = from_levels([[0, 1, 2, 3], ["a", "a", "b", "b"], ["*"] * 4], other_leaves=[[]] * 3)
    huge = 10**10
    found = []
    for factor in (1, huge):
        scaled = counted(*(tuple(c * factor for c in one) for one in counts)).histograms["s"]
        distance = getattr(t_closeness, name if name == "hierarchical" else f"{name}_distance")
        moved, full = distance(replace(scaled, hierarchy=tree), scaled.totals(), "s")
        found.append([Fraction(int(a), int(b)) for a, b in zip(moved, full, strict=True)])
    assert found[0] == found[1]


def test_a_hierarchy_without_one_root_gets_one():
    # Values 0 and 1 under a, 2 under b, nothing above: a third moves half way, a third all the way.
    tree = from_levels([[0, 1, 2], ["a", "a", "b"]], other_leaves=[[]] * 2)
    classes = counted((1, 0, 0), (0, 1, 0), (0, 0, 1))
    values = replace(classes.histograms["s"], hierarchy=tree)
    moved, full = t_closeness.hierarchical(values, values.totals(), "s")
    assert Fraction(int(moved[0]), int(full[0])) == Fraction(1, 2)
    assert Fraction(int(moved[2]), int(full[2])) == Fraction(2, 3)


def test_a_distance_without_hierarchy_is_refused():
    with pytest.raises(SchemaError, match="no hierarchy"):
        t_closeness.hierarchical(counted((1, 0)).histograms["s"], np.array([1, 0]), "s")


def test_missing_statistics_are_our_fault():
    bare = replace(counted((1, 1)), histograms={})
    with pytest.raises(InternalError, match="lack column 's'"):
        LDiversity(2, "s").passes(bare)
    people = Table(pa.table({"q": ["a"]}), Schema({"q": Column("quasi")}))
    for model in (KMap(2, people), DeltaPresence(0, 1, people)):
        with pytest.raises(InternalError, match="lack the population"):
            model.passes(bare)
    with pytest.raises(InternalError, match="lack the values"):
        AlphaKAnonymity(0.5, 2, "s", value="x").passes(counted((1, 1)))
    with pytest.raises(SchemaError, match="holds text"):
        PersonalKAnonymity().passes(
            replace(bare, histograms={demand_key("k"): counted((1, 1)).histograms["s"]})
        )


def test_no_rows_no_promise():
    nothing = counted((1, 1)).select(np.array([False]))
    for model in (
        LDiversity(2, "s"), LDiversity(2, "s", "recursive", c=1), TCloseness(0.5, "s"),
        BetaLikeness(1, "s"), DeltaDisclosure(1, "s"), AlphaKAnonymity(0.5, 2, "s"),
        AverageRisk(0.5), SampleUniques(0.5),
    ):  # fmt: skip
        assert not model.check(nothing).holds


def test_statistics_with_a_population_skip_classes_without_rows(table):
    people = Table(pa.table({"q": ["a", "a", "a", "z", "b", "b"]}), Schema({"q": Column("quasi")}))
    mine = table(q=["a", "a", "b", "b"], s=[0, 1, 0, 1], k=[1, 1, 2, 2])
    verdicts = check(
        mine,
        KMap(2, people),
        PersonalKAnonymity(),
        LDiversity(2, "s", "entropy"),
        LDiversity(2, "s", "recursive", c=2),
        AlphaKAnonymity(0.5, 2, "s"),
        TCloseness(0, "s"),
        TCloseness(0, "s", "ordered"),
        DeltaDisclosure(0.1, "s"),
        BetaLikeness(0.1, "s", kind="enhanced"),
        AverageRisk(0.5),
        SampleUniques(0),
    )
    assert [v.model for v in verdicts if not v.holds] == []
    assert {v.classes for v in verdicts} == {2}


def test_a_tie_too_large_to_write_out_fails_closed(monkeypatch):
    monkeypatch.setattr(entropy, "_INTEGERS_UP_TO", 7)
    entropy._decide.cache_clear()
    assert not LDiversity(4, "s", "entropy").passes(counted((4, 1, 1, 1, 1))).any()
    entropy._decide.cache_clear()


def test_a_share_of_one_bounds_nothing_but_k(table):
    model = AlphaKAnonymity(1, 2, "s")
    people = table(q=["a", "a", "b"], s=[0, 0, 0])
    (verdict,) = check(people, model)
    assert (verdict.achieved, verdict.failing_rows) == (1.0, 1)
    assert model.unavoidable(statistics(Tuples.of(people), [model])[0], 0).sum() == 1


def test_whole_numbers_of_the_population_match_fractions_of_the_table(table):
    people = Table(pa.table({"q": [1, 2, 2]}), Schema({"q": Column("quasi")}))
    (verdict,) = check(table(q=[2.0, 2.0]), KMap(2, people))
    assert (verdict.holds, verdict.achieved) == (True, 2)
