"""The search reaches the best grid: by brute force on tiny tables, by known costs on Iris."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
from effort import THOROUGH, examples
from hypothesis import given, settings
from hypothesis import strategies as st

from halfmask.coclustering import observations
from halfmask.coclustering.criterion import GridCriterion
from halfmask.coclustering.observations import Variable, observe
from halfmask.coclustering.optimize import optimize_grid
from halfmask.errors import InputError, ParameterError

COLUMNS = ("sepal_length", "sepal_width", "petal_length", "petal_width", "species")


def set_partitions(size):
    """All partitions of ``size`` values, each once."""
    for names in itertools.product(range(size), repeat=size):
        if all(name <= max(names[:i], default=-1) + 1 for i, name in enumerate(names)):
            yield np.array(names, dtype=np.int32)


def interval_partitions(size):
    for cuts in itertools.product((0, 1), repeat=size - 1):
        yield np.concatenate([[0], np.cumsum(cuts)]).astype(np.int32)


def least(observed, form):
    judge = GridCriterion(observed, form)
    sides = [
        list(set_partitions(v.size) if v.kind == "categorical" else interval_partitions(v.size))
        for v in observed.variables
    ]
    return min(judge.cost(grid) for grid in itertools.product(*sides))


tables = st.lists(
    st.lists(st.integers(0, 9), min_size=4, max_size=4), min_size=2, max_size=4
).filter(lambda table: sum(map(sum, table)) > 0)


@settings(max_examples=examples(25))
@given(tables, st.sampled_from(["published", "khiops11"]))
def test_tiny_categorical_tables_reach_the_optimum(contingency, table, form):
    observed = contingency(table)
    assert optimize_grid(observed, criterion=form).cost == pytest.approx(least(observed, form))


@settings(max_examples=examples(25))
@given(st.lists(st.tuples(*[st.integers(0, 3)] * 3), min_size=1, max_size=40))
def test_tiny_mixed_grids_of_three_variables_reach_the_optimum(rows):
    codes = np.array(rows, dtype=np.int32)
    kinds = ("numeric", "categorical", "numeric")
    sides = [Variable(kind + str(k), kind, 4) for k, kind in enumerate(kinds)]
    observed = observe(sides, list(codes.T))
    assert optimize_grid(observed, rounds=16).cost == pytest.approx(least(observed, "published"))


@pytest.mark.parametrize("seed", range(5 if THOROUGH else 2))
def test_iris_reaches_the_best_known_grid(melted, seed):
    found = optimize_grid(melted.observations, seed=seed)
    assert found.parts == (3, 8)
    assert found.cost == pytest.approx(5646.818946, abs=1e-6)
    assert sorted(found.sizes(0).tolist()) == [49, 50, 51]


def test_progress_tells_the_cost_after_the_starts_and_after_each_round(melted):
    told = []
    found = optimize_grid(melted.observations, rounds=3, progress=lambda *seen: told.append(seen))
    assert [number for number, _ in told] == [0, 1, 2, 3]
    costs = [cost for _, cost in told]
    assert costs == sorted(costs, reverse=True)
    assert costs[-1] == pytest.approx(found.cost)


def test_raw_iris_in_five_dimensions_reaches_the_cost_of_khiops(iris):
    sides = [
        Variable(n, "categorical" if n == "species" else "numeric", len(iris.encode(n).values))
        for n in COLUMNS
    ]
    observed = observe(sides, [iris.encode(n).codes for n in COLUMNS])
    found = optimize_grid(observed, criterion="khiops11")
    assert found.null_cost == pytest.approx(2589.708389, abs=1e-6)
    assert found.cost == pytest.approx(2351.657024, abs=1e-6)
    assert found.parts == (2, 1, 3, 3, 3)
    first_above = [int(np.argmax(found.partition[k] == 1)) for k in (0, 2, 3)]
    values = [
        iris.encode(n).values.to_pylist() for n in ("sepal_length", "petal_length", "petal_width")
    ]
    bounds = [(v[i - 1] + v[i]) / 2 for v, i in zip(values, first_above, strict=True)]
    assert bounds == pytest.approx([5.55, 2.4, 0.8], abs=0.051)


def test_independent_variables_give_the_null_grid():
    random = np.random.default_rng(5)
    sides = [Variable("a", "categorical", 8), Variable("b", "categorical", 8)]
    observed = observe(sides, list(random.integers(0, 8, (2, 2000)).astype(np.int32)))
    found = optimize_grid(observed)
    assert found.parts == (1, 1)
    assert not found.informative
    assert found.level == 0


def test_the_same_seed_gives_the_same_grid(melted):
    one, two = (optimize_grid(melted.observations, seed=3, rounds=2) for _ in range(2))
    assert all(np.array_equal(a, b) for a, b in zip(one.partition, two.partition, strict=True))


def test_blocks_hidden_in_a_sparse_table_are_found():
    random = np.random.default_rng(1)
    row = random.integers(0, 2000, 30_000)
    column = (row % 5) * 40 + random.integers(0, 40, len(row))
    sides = [Variable("row", "categorical", 2000), Variable("column", "categorical", 200)]
    observed = observe(sides, [row.astype(np.int32), column.astype(np.int32)])
    found = optimize_grid(observed, rounds=2)
    assert found.parts == (5, 5)
    assert len(set(zip(np.arange(2000) % 5, found.partition[0].tolist(), strict=True))) == 5


def test_an_ordered_variable_is_cut_where_the_law_changes():
    x = np.arange(3000, dtype=np.int32)
    target = ((x >= 1000).astype(np.int32) + (x >= 1750)) % 2
    observed = observe(
        [Variable("x", "numeric", 3000), Variable("y", "categorical", 2)], [x, target]
    )
    found = optimize_grid(observed, rounds=1)
    assert found.parts == (3, 2)
    assert np.flatnonzero(np.diff(found.partition[0])).tolist() == [999, 1749]


def test_a_sample_of_many_values_finds_the_blocks_of_all(monkeypatch):
    random = np.random.default_rng(5)
    hidden = np.repeat(np.arange(4), 500)
    parts = [hidden * 3 + random.integers(0, 3, 2000) + 12 * column for column in range(6)]
    rows = np.tile(np.arange(2000, dtype=np.int32), 6)
    observed = observe(
        [Variable("row", "categorical", 2000), Variable("part", "categorical", 72)],
        [rows, np.concatenate(parts).astype(np.int32)],
    )
    whole = optimize_grid(observed, rounds=0)
    monkeypatch.setattr(observations, "ROOM", 3_000)  # of 12,000 observations
    monkeypatch.setattr(observations, "FEWEST", 400)
    assert observations.side_to_sample(observed) == (0, 500)
    grid = optimize_grid(observed, rounds=0)
    assert grid.cost <= whole.cost + 1e-6
    assert len(set(zip(hidden.tolist(), grid.partition[0].tolist(), strict=True))) == 4
    monkeypatch.setattr(observations, "ROOM", 12_000)
    assert observations.side_to_sample(observed) is None


def test_time_may_be_limited(melted):
    assert optimize_grid(melted.observations, rounds=10_000, time_limit=0.2).informative


@pytest.mark.parametrize("wrong", [{"rounds": -1}, {"time_limit": 0}])
def test_parameters_out_of_range_are_refused(melted, wrong):
    with pytest.raises(ParameterError):
        optimize_grid(melted.observations, **wrong)


def test_weights_must_be_counts():
    sides = [Variable("a", "categorical", 2), Variable("b", "categorical", 2)]
    with pytest.raises(InputError, match="counts"):
        observe(sides, [np.array([0, 1])] * 2, np.array([0.5, 1.0]))
    with pytest.raises(InputError, match="two variables"):
        observe(sides[:1], [np.array([0, 1])])
    with pytest.raises(InputError, match="no observation"):
        observe(sides, [np.array([], dtype=np.int32)] * 2)


# Of so many rows: observations, values, rounds, the cost of one cell, where Khiops 11.0.1 ends
# (after a minute of the processor, after half an hour), how many parts there are and how large.
MELTED = {
    3_000: (27_000, 102, 8, 313_169.468, 311_484.113, (4, 10), (20, 40), (300, 900)),
    30_162: (271_458, 104, 1, 3_772_136.486, 3_744_247.963, (20, 40), (40, 60), (400, 1900)),
}


@pytest.mark.slow
@pytest.mark.parametrize("rows", list(MELTED)[: 2 if THOROUGH else 1])
def test_melted_adult_ends_below_khiops(adult, rows):
    import halfmask as hm
    from halfmask.coclustering.prepare import melt

    total, values, rounds, null, theirs, groups, parts, people = MELTED[rows]
    names = hm.read(adult, hm.Schema()).arrow.column_names
    table = hm.read(adult, dict.fromkeys(names, "quasi"))
    observed = melt(hm.Table(table.arrow.slice(0, rows), table.schema), names).observations
    assert (observed.total, observed.sizes) == (total, (rows, values))
    found = optimize_grid(observed, criterion="khiops11", rounds=rounds)
    assert found.null_cost == pytest.approx(null, abs=1e-3)
    assert found.cost <= theirs
    assert groups[0] <= found.parts[0] <= groups[1]
    assert parts[0] <= found.parts[1] <= parts[1]
    assert people[0] <= found.sizes(0).min() <= found.sizes(0).max() <= people[1]
