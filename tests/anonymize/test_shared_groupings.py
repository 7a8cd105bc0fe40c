"""What several searches share gives each of them what it would find alone."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.anonymize import optimal
from halfmask.anonymize.groupings import Groupings, SharedGroupings
from halfmask.anonymize.node_bounds import LatticeBounds
from halfmask.anonymize.problem import RecodingProblem
from halfmask.metrics.cost import METRICS
from halfmask.models.requirements import statistics
from halfmask.table.tuples import Tuples


def tuples_of(seed: int, rows: int = 200):
    random = np.random.default_rng(seed)
    data = {"a": random.integers(0, 40, rows), "b": random.choice(list("uvwx"), rows),
            "c": random.integers(0, 16, rows), "s": random.choice(list("pqr"), rows)}  # fmt: skip
    schema = {
        "a": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
        "b": {"role": "quasi"},
        "c": {"role": "quasi", "hierarchy": {"intervals": [2, 4, 8]}},
        "s": "sensitive",
    }
    table = hm.read(pa.table(data), schema=schema)
    tuples, _ = statistics(Tuples.of(table), [hm.LDiversity(2, "s")])
    return tuples, [table.hierarchy(name) for name in "abc"]


def counts_of(classes):
    held = classes.histograms["s"]
    entries = zip(held.owners.tolist(), held.values.tolist(), held.counts.tolist(), strict=True)
    return sorted(entries)


@pytest.mark.parametrize("budget", [1, 20_000, 1 << 30], ids=["none", "little", "much"])
def test_groupings_are_the_same_in_any_order_and_memory(budget):
    tuples, hierarchies = tuples_of(0)
    every = list(product(*(range(h.height + 1) for h in hierarchies)))
    np.random.default_rng(1).shuffle(every)
    shared = SharedGroupings(tuples, hierarchies, budget)
    shared._budget = budget
    for levels in [*every, *every]:
        levels = tuple(map(int, levels))
        one, other = shared.at(levels), Groupings(tuples, hierarchies).at(levels)
        assert (one.keys == other.keys).all()
        assert (one.rows == other.rows).all()
        assert counts_of(one) == counts_of(other)


def test_groupings_are_the_same_from_any_finer_outcome():
    tuples, hierarchies = tuples_of(0)
    every = list(product(*(range(h.height + 1) for h in hierarchies)))
    problem = RecodingProblem(tuples, hierarchies, (), METRICS["loss"])
    for finer, levels in product(every, every):
        if all(a <= b for a, b in zip(finer, levels, strict=True)):
            groupings = Groupings(tuples, hierarchies)
            one = groupings.at(levels, near=problem.evaluate(finer))
            other = groupings.at(levels)
            assert (one.keys == other.keys).all()
            assert (one.rows == other.rows).all()
            assert counts_of(one) == counts_of(other)


@pytest.mark.parametrize("metric", ["loss", "precision", "discernibility"])
@pytest.mark.parametrize("seed", range(4))
def test_a_search_goes_on_from_weaker_promises(seed, metric):
    tuples, hierarchies = tuples_of(seed)
    first = RecodingProblem(tuples, hierarchies, [hm.KAnonymity(2)], METRICS[metric])
    bounds, starts = LatticeBounds(first), []
    for k, l_, share in [(2, 2, 0.3), (3, 2, 0.3), (3, 2, 0.1), (8, 3, 0.1), (30, 3, 0.0)]:
        models = [hm.KAnonymity(k), hm.LDiversity(l_, "s")]
        alone = RecodingProblem(tuples, hierarchies, models, METRICS[metric], suppression=share)
        whole = optimal.scan(alone)
        going_on = first.under(models, share)
        found = optimal.scan(going_on, bounds=bounds, starts=starts)
        assert found.best.rank == whole.best.rank
        assert found.best.levels == whole.best.levels
        assert found.gap == 0.0
        other = optimal.branch(first.under(models, share), starts=[*starts, (0, 0, 0)])
        assert other.best.levels == whole.best.levels
        starts.append(found.best.levels)


def test_ruled_out_nodes_are_handed_over():
    tuples, hierarchies = tuples_of(0)
    problem = RecodingProblem(tuples, hierarchies, [hm.KAnonymity(20)], METRICS["loss"])
    learned = LatticeBounds(problem)
    alone = optimal.scan(problem, bounds=learned)
    again = problem.under([hm.KAnonymity(21)], 0.0)
    told = LatticeBounds(again)
    told.rule_out_too(learned.ruled_out)
    found = optimal.scan(again, bounds=told)
    assert alone.best is not None
    assert found.best.levels == optimal.scan(again.under(again.models, 0.0)).best.levels
    fresh = again.under(again.models, 0.0)
    optimal.scan(fresh)
    assert again.evaluations < fresh.evaluations
