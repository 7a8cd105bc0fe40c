from __future__ import annotations

import importlib.util
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from written_hierarchy import WrittenHierarchy

from halfmask.anonymize import optimal
from halfmask.anonymize.problem import RecodingProblem
from halfmask.metrics.cost import METRICS
from halfmask.models.k_anonymity import AlphaKAnonymity, KAnonymity
from halfmask.models.l_diversity import LDiversity
from halfmask.models.likeness import BetaLikeness, DeltaDisclosure
from halfmask.models.requirements import statistics
from halfmask.models.t_closeness import TCloseness
from halfmask.table.columns import Column
from halfmask.table.schema import Schema
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples

spec = importlib.util.spec_from_file_location("brute", Path(__file__).with_name("brute.py"))
brute = importlib.util.module_from_spec(spec)
spec.loader.exec_module(brute)


@st.composite
def hierarchies(draw, leaves):
    """A random nested hierarchy over ``leaves`` that ends in one label."""
    labels = {leaf: [leaf] for leaf in leaves}
    parts = [[leaf] for leaf in leaves]
    for level in range(1, draw(st.integers(1, 3))):
        merged: dict[int, list[str]] = {}
        for part in parts:
            merged.setdefault(draw(st.integers(0, max(0, len(parts) // 2))), []).extend(part)
        parts = list(merged.values())
        for number, part in enumerate(parts):
            for leaf in part:
                labels[leaf].append(f"{level}:{number}")
    for leaf in leaves:
        labels[leaf].append("*")
    return {leaf: tuple(row) for leaf, row in labels.items()}


@st.composite
def tables(draw):
    columns = draw(st.integers(1, 4))
    quasi = [f"q{c}" for c in range(columns)]
    leaves = {q: [f"v{i}" for i in range(draw(st.integers(1, 5)))] for q in quasi}
    trees = {q: draw(hierarchies(leaves[q])) for q in quasi}
    count = draw(st.integers(3, 25))
    rows = [
        {q: draw(st.sampled_from(leaves[q])) for q in quasi} | {"s": draw(st.sampled_from("abc"))}
        for _ in range(count)
    ]
    return rows, quasi, trees


def as_problem(rows, quasi, trees, models, metric, suppression, weights=None):
    arrow = pa.table({name: [row[name] for row in rows] for name in [*quasi, "s"]})
    columns = {q: Column("quasi", hierarchy=WrittenHierarchy(trees[q])) for q in quasi}
    table = Table(arrow, Schema({**columns, "s": Column("sensitive")}))
    tuples, _ = statistics(Tuples.of(table), models)
    hierarchies_ = [table.hierarchy(q) for q in quasi]
    return RecodingProblem(
        tuples, hierarchies_, models, METRICS[metric], suppression=suppression, weights=weights
    )


def distance(members, everything):
    here, there = Counter(r["s"] for r in members), Counter(r["s"] for r in everything)
    return (
        sum(
            abs(Fraction(here[v], len(members)) - Fraction(there[v], len(everything)))
            for v in there
        )
        / 2
    )


def shares(members, everything):
    """Per value of all rows, its share in the class and in all."""
    here, there = Counter(r["s"] for r in members), Counter(r["s"] for r in everything)
    return [
        (Fraction(here[v], len(members)), Fraction(there[v], len(everything)))
        for v in sorted(there)
    ]


def within_delta(members, everything, absent):
    """|log2(q / p)| < 1, which is p / 2 < q < 2 p."""
    return all(p < 2 * q < 4 * p or (q == 0 and absent) for q, p in shares(members, everything))


def within_beta(members, everything, *, capped=False):
    """(q - p) / p <= 1/2; capped: also at most -ln p."""
    return all(
        2 * q <= 3 * p and (not capped or q <= p or float(q / p) <= 1 - math.log(p) + 1e-12)
        for q, p in shares(members, everything)
    )


CASES = {
    "k": ([KAnonymity(3)], (lambda m: len(m) >= 3,)),
    "k and distinct l": (
        [KAnonymity(2), LDiversity(2, "s")],
        (lambda m: len(m) >= 2 and len({r["s"] for r in m}) >= 2,),
    ),
    "alpha": (
        [AlphaKAnonymity(0.6, 2, "s")],
        (lambda m: len(m) >= 2 and max(Counter(r["s"] for r in m).values()) * 5 <= 3 * len(m),),
    ),
    "t": (
        [TCloseness(0.3, "s")],
        (lambda _: True, lambda m, a: distance(m, a) <= Fraction(3, 10)),
    ),
    "k and t": (
        [KAnonymity(2), TCloseness(0.4, "s")],
        (lambda m: len(m) >= 2, lambda m, a: distance(m, a) <= Fraction(4, 10)),
    ),
    "delta": (
        [DeltaDisclosure(1, "s", base=2)],
        (lambda _: True, lambda m, a: within_delta(m, a, absent=False)),
    ),
    "k and relaxed delta": (
        [KAnonymity(2), DeltaDisclosure(1, "s", base=2, absent="ignored")],
        (lambda m: len(m) >= 2, lambda m, a: within_delta(m, a, absent=True)),
    ),
    "beta": ([BetaLikeness(0.5, "s")], (lambda _: True, within_beta)),
    "enhanced beta": (
        [BetaLikeness(0.5, "s", kind="enhanced")],
        (lambda _: True, lambda m, a: within_beta(m, a, capped=True)),
    ),
}

RELAXED = settings(
    max_examples=examples(80), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


@pytest.mark.parametrize("case", CASES)
@RELAXED
@given(table=tables(), suppression=st.sampled_from([0.0, 0.1, 0.25, 0.6, 1.0]))
def test_the_optimum_is_that_of_exhaustive_search(case, table, suppression):
    rows, quasi, trees = table
    models, tests = CASES[case]
    limit = int(Fraction(str(suppression)) * len(rows))
    expected = brute.best(rows, quasi, trees, tests, limit=limit)
    for search in (optimal.scan, optimal.branch):
        found = search(as_problem(rows, quasi, trees, models, "loss", suppression))
        assert (found.best is None) == (expected is None)
        if expected is not None:
            assert found.gap == 0.0
            assert found.best.value == pytest.approx(expected[4], abs=1e-9)
            assert (found.best.suppressed, found.best.levels) == (expected[1], expected[3])


AGAINST = {
    "t": (
        TCloseness(0.3, "s", reference="original"),
        lambda m, a: distance(m, a) <= Fraction(3, 10),
    ),
    "delta": (
        DeltaDisclosure(1, "s", base=2, reference="original"),
        lambda m, a: within_delta(m, a, absent=False),
    ),
    "relaxed delta": (
        DeltaDisclosure(1, "s", base=2, absent="ignored", reference="original"),
        lambda m, a: within_delta(m, a, absent=True),
    ),
    "beta": (BetaLikeness(0.5, "s", reference="original"), within_beta),
    "enhanced beta": (
        BetaLikeness(0.5, "s", kind="enhanced", reference="original"),
        lambda m, a: within_beta(m, a, capped=True),
    ),
}


@pytest.mark.parametrize("search", [optimal.scan, optimal.branch], ids=["scan", "branch"])
@pytest.mark.parametrize("case", AGAINST)
@settings(RELAXED, max_examples=examples(40))
@given(table=tables(), suppression=st.sampled_from([0.0, 0.1, 0.25, 0.6, 1.0]))
def test_against_the_original_table_the_optimum_is_exhaustive_too(search, case, table, suppression):
    rows, quasi, trees = table
    model, holds = AGAINST[case]
    limit = int(Fraction(str(suppression)) * len(rows))
    expected = brute.best(rows, quasi, trees, (lambda m: holds(m, rows),), limit=limit)
    found = search(as_problem(rows, quasi, trees, [model], "loss", suppression))
    assert (found.best is None) == (expected is None)
    if expected is not None:
        assert found.best.value == pytest.approx(expected[4], abs=1e-9)
        assert (found.best.suppressed, found.best.levels) == (expected[1], expected[3])


@pytest.mark.parametrize("case", ["k", "t"])
@pytest.mark.parametrize("metric", list(METRICS))
@settings(RELAXED, max_examples=examples(30))
@given(table=tables(), suppression=st.sampled_from([0.0, 0.2, 1.0]))
def test_every_metric_reaches_its_own_optimum(metric, case, table, suppression):
    rows, quasi, trees = table
    limit = int(Fraction(str(suppression)) * len(rows))
    models, tests = CASES[case]
    expected = brute.best(rows, quasi, trees, tests, limit=limit, metric=metric)
    found = optimal.scan(as_problem(rows, quasi, trees, models, metric, suppression))
    assert (found.best is None) == (expected is None)
    if expected is not None:
        assert found.best.value == pytest.approx(expected[4], abs=1e-9)
        assert (found.best.suppressed, found.best.levels) == (expected[1], expected[3])


@RELAXED
@given(table=tables(), weight=st.sampled_from([0.1, 3.0]))
def test_weights_shift_the_optimum_as_the_formula_says(table, weight):
    rows, quasi, trees = table
    weights = [weight] + [1.0] * (len(quasi) - 1)
    problem = as_problem(rows, quasi, trees, [KAnonymity(3)], "loss", 0.2, weights)
    found = optimal.scan(problem)
    if found.best is not None:
        kept = brute.survivors(
            brute.groups(rows, quasi, trees, found.best.levels), lambda m: len(m) >= 3
        )
        value = brute.loss(rows, quasi, trees, found.best.levels, kept, weights)
        assert found.best.value == pytest.approx(value, abs=1e-9)


def test_a_search_that_runs_out_of_time_says_how_far_the_optimum_can_be():
    rng = np.random.default_rng(3)
    quasi = [f"q{c}" for c in range(7)]
    trees = {
        q: {f"v{i}": (f"v{i}", f"a{i // 2}", f"b{i // 4}", f"c{i // 8}", "*") for i in range(16)}
        for q in quasi
    }
    rows = [{q: f"v{rng.integers(16)}" for q in quasi} | {"s": "a"} for _ in range(400)]
    problem = as_problem(rows, quasi, trees, [KAnonymity(2)], "loss", 0.1)
    stopped = optimal.branch(problem, deadline=0.0)
    assert stopped.best is not None
    assert stopped.gap > 0
    whole = optimal.scan(as_problem(rows, quasi, trees, [KAnonymity(2)], "loss", 0.1))
    assert stopped.best.value - stopped.gap <= whole.best.value <= stopped.best.value


def test_the_gap_of_a_listed_lattice_shrinks_with_what_is_ruled_out():
    rng = np.random.default_rng(5)
    quasi = [f"q{c}" for c in range(6)]
    tree = {f"v{i}": (f"v{i}", f"a{i // 2}", f"b{i // 4}", "*") for i in range(8)}
    rows = [{q: f"v{rng.integers(8)}" for q in quasi} | {"s": "a"} for _ in range(200)]
    given = (rows, quasi, dict.fromkeys(quasi, tree), [KAnonymity(3)], "loss", 0.2)
    whole = optimal.scan(as_problem(*given))
    stopped = optimal.scan(as_problem(*given), deadline=0.0)
    assert 0 < stopped.gap <= stopped.best.value
    assert stopped.best.value - stopped.gap <= whole.best.value


def test_keys_wider_than_one_word_give_the_same_classes():
    rng = np.random.default_rng(0)
    quasi = [f"q{c}" for c in range(30)]
    trees = {q: {f"v{i}": (f"v{i}", "*") for i in range(9)} for q in quasi}
    rows = [{q: f"v{rng.integers(9)}" for q in quasi} | {"s": "a"} for _ in range(300)]
    problem = as_problem(rows, quasi, trees, [KAnonymity(2)], "loss", 1.0)
    assert problem.groupings.tuples.keys.shape[1] > 1
    levels = [1] * 14 + [0] + [1] * 13 + [0, 1]
    expected = brute.groups(rows, quasi, trees, levels)
    got = problem.groupings.at(levels)
    assert sorted(got.rows.tolist()) == sorted(len(m) for m in expected.values())
