"""The optimum against going through all combinations of levels, on hundreds of small tables.

Every table is another one: with missing values, several rows a person, demands of their own, a
population. The reference is plain Python over rows.
"""

from __future__ import annotations

import importlib.util
import itertools
import math
from collections import Counter
from fractions import Fraction
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from effort import THOROUGH
from written_hierarchy import WrittenHierarchy

from halfmask.anonymize import optimal
from halfmask.anonymize.problem import RecodingProblem
from halfmask.metrics.cost import METRICS
from halfmask.models.k_anonymity import KAnonymity
from halfmask.models.l_diversity import LDiversity
from halfmask.models.likeness import BetaLikeness, DeltaDisclosure
from halfmask.models.personal import PersonalKAnonymity
from halfmask.models.population import DeltaPresence, KMap
from halfmask.models.requirements import prepare, statistics
from halfmask.models.t_closeness import TCloseness
from halfmask.table.columns import Column
from halfmask.table.schema import Schema
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples

spec = importlib.util.spec_from_file_location("brute", Path(__file__).with_name("brute.py"))
brute = importlib.util.module_from_spec(spec)
spec.loader.exec_module(brute)

TABLES = 400 if THOROUGH else 65  # for each model, each with its own metric and suppression
SHARES = (0.0, 0.1, 0.2, 0.35, 0.6, 1.0)


def random_tree(rng):
    """Two to six values, None perhaps among them, under nested groups that end in one."""
    leaves = [f"v{i}" for i in range(rng.integers(2, 6))] + [None] * int(rng.random() < 0.3)
    labels = {leaf: [leaf] for leaf in leaves}
    parts = [[leaf] for leaf in leaves]
    for level in range(1, rng.integers(1, 4)):
        merged = {}
        for part in parts:
            merged.setdefault(int(rng.integers(0, len(parts) // 2 + 1)), []).extend(part)
        parts = list(merged.values())
        for number, part in enumerate(parts):
            for leaf in part:
                labels[leaf].append(f"{level}:{number}")
    for own in labels.values():
        own.append("*")
    return {leaf: tuple(own) for leaf, own in labels.items()}


def random_table(rng):
    """Rows of one to four columns, skewed so that some classes are large; who repeats is a person.

    Whoever stands in the population stands there once.
    """
    quasi = [f"q{c}" for c in range(rng.integers(1, 5))]
    trees = {q: random_tree(rng) for q in quasi}
    skew, rows = rng.uniform(0.3, 2.0), []
    people = rng.random() < 0.4
    values = "abcde"[: rng.integers(2, 6)]
    for number in range(rng.integers(4, 34)):
        row = {}
        for q, tree in trees.items():
            leaves = list(tree)
            weights = (1 + np.arange(len(leaves))) ** -skew
            row[q] = leaves[rng.choice(len(leaves), p=weights / weights.sum())]
        row["s"] = values[min(rng.geometric(0.45) - 1, len(values) - 1)]
        row["who"] = f"p{rng.integers(0, 12)}" if people else f"p{number}"
        rows.append(row)
    demands = {row["who"]: int(rng.integers(1, 5)) for row in rows}
    for row in rows:
        row["k_i"] = demands[row["who"]]
    others = [dict(rows[i]) for i in rng.integers(0, len(rows), rng.integers(0, 25))]
    for row in others:
        for q, tree in trees.items():
            if rng.random() < 0.4:
                row[q] = list(tree)[rng.integers(len(tree))]
    return rows, quasi, trees, others


def shares(members, everything):
    here, there = Counter(r["s"] for r in members), Counter(r["s"] for r in everything)
    return [
        (Fraction(here[v], len(members)), Fraction(n, len(everything))) for v, n in there.items()
    ]


def persons(members):
    return len({row["who"] for row in members})


def at_least(k):
    return lambda members: persons(members) >= k


def anybody(_members):
    return True


def close(t):
    return lambda m, a: sum(abs(q - p) for q, p in shares(m, a)) / 2 <= t


def likely(factor, *, capped=False):
    def holds(members, everything):
        return all(
            q <= factor * p and (not capped or q <= p or float(q / p) <= 1 - math.log(p) + 1e-12)
            for q, p in shares(members, everything)
        )

    return holds


def within(factor):
    return lambda m, a: all(p < factor * q < factor**2 * p for q, p in shares(m, a))


# Models, and per class what is asked of it alone and against all rows that stay.
CASES = {
    "k": ([KAnonymity(3)], (at_least(3),)),
    "own k": (
        [PersonalKAnonymity()],
        (lambda m: persons(m) >= max(row["k_i"] for row in m),),
    ),
    "own k and k": (
        [PersonalKAnonymity(), KAnonymity(2)],
        (lambda m: persons(m) >= max(2, *(row["k_i"] for row in m)),),
    ),
    "k and l": (
        [KAnonymity(2), LDiversity(2, "s")],
        (lambda m: persons(m) >= 2 and len({row["s"] for row in m}) >= 2,),
    ),
    "t": ([TCloseness(0.25, "s", distance="equal")], (anybody, close(Fraction(1, 4)))),
    "k and t": (
        [KAnonymity(2), TCloseness(0.35, "s", distance="equal")],
        (at_least(2), close(Fraction(35, 100))),
    ),
    "delta": ([DeltaDisclosure(1, "s", base=3)], (anybody, within(3))),
    "beta": ([BetaLikeness(0.5, "s")], (anybody, likely(Fraction(3, 2)))),
    "large beta": ([BetaLikeness(1.5, "s")], (anybody, likely(Fraction(5, 2)))),
    "enhanced beta": (
        [BetaLikeness(1, "s", kind="enhanced")],
        (anybody, likely(2, capped=True)),
    ),
    "k and beta": ([KAnonymity(2), BetaLikeness(1, "s")], (at_least(2), likely(2))),
}


def problem_of(rows, quasi, trees, models, metric, suppression):
    arrow = pa.table({name: [row[name] for row in rows] for name in [*quasi, "s", "who", "k_i"]})
    columns = {q: Column("quasi", hierarchy=WrittenHierarchy(trees[q])) for q in quasi}
    columns["s"] = Column("sensitive")
    schema = Schema(columns, person="who", policy={"k": "k_i"})
    table = prepare(Table(arrow, schema), models)
    tuples, _ = statistics(Tuples.of(table), models)
    hierarchies = [table.hierarchy(q) for q in quasi]
    return RecodingProblem(tuples, hierarchies, models, METRICS[metric], suppression=suppression)


def require_same(found, expected, told):
    assert (found.best is None) == (expected is None), told
    if expected is not None:
        assert found.gap == 0.0, told
        assert found.best.value == pytest.approx(expected[4], abs=1e-9), told
        assert (found.best.suppressed, found.best.levels) == (expected[1], expected[3]), told


@pytest.mark.parametrize("case", CASES)
def test_the_optimum_is_the_best_of_all_combinations(case):
    models, asked = CASES[case]
    metrics = itertools.cycle(METRICS)
    for number in range(TABLES):
        rng = np.random.default_rng([number, list(CASES).index(case)])
        rows, quasi, trees, _ = random_table(rng)
        share, metric = SHARES[rng.integers(len(SHARES))], next(metrics)
        limit = int(Fraction(str(share)) * len(rows))
        expected = brute.best(rows, quasi, trees, asked, limit=limit, metric=metric)
        found = optimal.scan(problem_of(rows, quasi, trees, models, metric, share))
        require_same(found, expected, (case, number, metric, share))


def best_in_population(rows, everybody, quasi, trees, holds, limit, metric):
    """The least metric where classes that fail are left out and every class then holds.

    ``holds`` sees the people of the table and of the population in a class.
    """
    found = []
    heights = [len(next(iter(trees[q].values()))) for q in quasi]
    for levels in itertools.product(*(range(h) for h in heights)):
        inside = brute.groups(rows, quasi, trees, levels)
        outside = brute.groups(everybody, quasi, trees, levels)
        kept = {
            key: members
            for key, members in inside.items()
            if holds(persons(members), persons(outside[key]))
        }
        gone = len(rows) - sum(len(members) for members in kept.values())
        all_hold = all(
            holds(persons(kept.get(key, ())), persons(there)) for key, there in outside.items()
        )
        if kept and gone <= limit and all_hold:
            value = brute.METRICS[metric](rows, quasi, trees, levels, kept)
            found.append((round(value, 10), gone, sum(levels), levels, value))
    return min(found, default=None)


@pytest.mark.parametrize("case", ["presence", "presence above", "k-map"])
def test_among_a_population_the_optimum_is_the_best_of_all_combinations(case):
    metrics = itertools.cycle(METRICS)
    for number in range(2 * TABLES):
        rng = np.random.default_rng([number, ["presence", "presence above", "k-map"].index(case)])
        rows, quasi, trees, others = random_table(rng)
        everybody = [row | {"who": str(i)} for i, row in enumerate([*rows, *others])]
        rows = everybody[: len(rows)]
        arrow = pa.table({name: [row[name] for row in everybody] for name in quasi})
        columns = {q: Column("quasi", hierarchy=WrittenHierarchy(trees[q])) for q in quasi}
        population = Table(arrow, Schema(columns))
        if case == "k-map":
            model = KMap(4, population)

            def holds(here, there):
                return not here or there >= 4
        else:
            low, high = (Fraction(3, 10), Fraction(8, 10)) if case == "presence" else (0, 0.75)
            model = DeltaPresence(float(low), float(high), population)

            def holds(here, there, low=low, high=high):
                return low * there <= here <= high * there

        share, metric = SHARES[rng.integers(len(SHARES))], next(metrics)
        limit = int(Fraction(str(share)) * len(rows))
        expected = best_in_population(rows, everybody, quasi, trees, holds, limit, metric)
        found = optimal.scan(problem_of(rows, quasi, trees, [model], metric, share))
        require_same(found, expected, (case, number, metric, share))
