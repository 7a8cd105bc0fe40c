"""Classes counted from rows, coarsened and selected, against plain counting."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfmask.errors import InternalError, SchemaError
from halfmask.table.classes import classes_of, distinct_classes, value_facts
from halfmask.table.columns import Column
from halfmask.table.schema import Schema
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples
from halfmask.table.weights import widen

SCHEMA = Schema({"a": Column("quasi"), "b": Column("quasi"), "s": Column("sensitive")}, person="p")
QUASI = ["a", "b"]

row = st.tuples(
    st.sampled_from(["x", "y", "z", None]), st.integers(0, 3), st.integers(0, 2), st.integers(0, 5)
)
data = st.lists(row, min_size=1, max_size=30)
others = st.lists(
    st.tuples(st.sampled_from(["w", "x", "z", None]), st.integers(-1, 4)), min_size=1, max_size=30
)


def tabulate(rows):
    a, b, s, p = (list(column) for column in zip(*rows, strict=True))
    return Table(pa.table({"a": a, "b": b, "s": s, "p": p}), SCHEMA)


def labels(table, classes):
    """The values of each class, taken back from the packed keys."""
    columns = []
    for j, name in enumerate(QUASI):
        values = table.encode(name).values.to_pylist()
        columns.append([values[c] for c in classes.layout.codes(classes.keys, j)])
    return list(zip(*columns, strict=True))


def histogram(h, i):
    inside = slice(h.starts[i], h.starts[i + 1])
    return Counter(dict(zip(h.values[inside].tolist(), h.counts[inside].tolist(), strict=True)))


def expected(rows, key):
    count, people, values = Counter(), defaultdict(set), defaultdict(Counter)
    for a, b, s, p in rows:
        count[key(a, b)] += 1
        people[key(a, b)].add(p)
        values[key(a, b)][s] += 1
    return count, people, values


@given(data)
def test_classes_are_the_distinct_tuples(rows):
    table = tabulate(rows)
    classes, ids = distinct_classes(Tuples.of(table), QUASI, columns=["s"])
    names = labels(table, classes)
    count, people, values = expected(rows, lambda a, b: (a, b))
    assert dict(zip(names, classes.rows.tolist(), strict=True)) == count
    assert [names[i] for i in ids] == [(a, b) for a, b, _, _ in rows]
    codes = table.encode("s").values.to_pylist()
    for i, name in enumerate(names):
        assert classes.people[i] == len(people[name])
        found = {codes[v]: c for v, c in histogram(classes.histograms["s"], i).items()}
        assert found == values[name]
    assert classes.histograms["s"].totals().sum() == len(rows)


@given(data)
def test_coarser_classes_are_those_of_the_coarser_rows(rows):
    table = tabulate(rows)
    classes = classes_of(Tuples.of(table), QUASI, columns=["s"])
    top = table.hierarchy("b").maps[1]
    merged = classes.coarsen([1], [top])
    count, people, values = expected(rows, lambda a, _: a)
    names = [a for a, _ in labels(table, merged)]
    assert dict(zip(names, merged.rows.tolist(), strict=True)) == count
    codes = table.encode("s").values.to_pylist()
    for i, name in enumerate(names):
        assert merged.people[i] == len(people[name])
        found = {codes[v]: c for v, c in histogram(merged.histograms["s"], i).items()}
        assert found == values[name]


@given(data, st.data())
def test_selected_classes_are_those_of_the_rows_that_stay(rows, draw):
    table = tabulate(rows)
    classes, ids = distinct_classes(Tuples.of(table), QUASI, columns=["s"])
    mask = np.array(
        draw.draw(st.lists(st.booleans(), min_size=len(classes), max_size=len(classes)))
    )
    left = [one for one, i in zip(rows, ids, strict=True) if mask[i]]
    chosen = classes.select(mask)
    merged = chosen.coarsen([1], [table.hierarchy("b").maps[1]])
    count, people, _ = expected(left, lambda a, _: a)
    names = [a for a, _ in labels(table, merged)]
    assert dict(zip(names, merged.rows.tolist(), strict=True)) == count
    assert [len(people[name]) for name in names] == merged.people.tolist()
    assert chosen.histograms["s"].totals().sum() == len(left)


@given(data, others)
def test_population_counts_stand_beside_the_rows(rows, everybody):
    a, b = (list(column) for column in zip(*everybody, strict=True))
    population = Table(pa.table({"a": a, "b": b}), Schema())
    table = widen(tabulate(rows), population, QUASI)
    classes, ids = distinct_classes(Tuples.of(table), QUASI, columns=["s"], population=population)
    names = labels(table, classes)
    count = Counter((a, b) for a, b, _, _ in rows)
    outside = Counter(everybody)
    assert set(names) == set(count) | set(outside)
    assert [count[name] for name in names] == classes.rows.tolist()
    assert [outside[name] for name in names] == classes.population.tolist()
    assert len(ids) == len(rows)
    merged = classes.coarsen([1], [table.hierarchy("b").maps[1]])
    above = Counter(a for a, _ in everybody)
    assert [above[a] for a, _ in labels(table, merged)] == merged.population.tolist()


def test_a_table_that_was_not_widened_is_refused():
    population = Table(pa.table({"a": ["new"], "b": [1]}), Schema())
    with pytest.raises(InternalError, match="widened"):
        distinct_classes(Tuples.of(tabulate([("x", 1, 0, 0)])), QUASI, population=population)


def test_widening_leaves_the_table_itself_alone():
    table = tabulate([("x", 1, 0, 0)])
    population = Table(pa.table({"a": ["new"], "b": pa.array([7], pa.int32())}), Schema())
    wide = widen(table, population, QUASI)
    assert wide.encode("a").values.to_pylist() == ["new", "x"]
    assert wide.encode("b").values.to_pylist() == [1, 7]
    assert table.encode("a").values.to_pylist() == ["x"]
    assert wide.arrow is table.arrow


def test_widening_keeps_a_declared_order():
    schema = Schema({"a": Column("quasi", order=("low", "mid", "high"))})
    table = Table(pa.table({"a": ["high", "low"]}), schema)
    wide = widen(table, Table(pa.table({"a": ["mid"]}), Schema()), ["a"])
    assert wide.encode("a").values.to_pylist() == ["low", "mid", "high"]
    assert wide.encode("a").codes.tolist() == [2, 0]
    with pytest.raises(SchemaError, match="not in its order"):
        widen(table, Table(pa.table({"a": ["canary"]}), Schema()), ["a"])


def test_facts_of_values():
    table = tabulate([("x", 1, 0, 0), (None, 2, 1, 1)])
    facts = value_facts(table, "b")
    assert facts["numbers"].tolist() == [1.0, 2.0]
    assert facts["domain"] == 2
    assert value_facts(table, "a")["numbers"] is None
    assert value_facts(table, "a")["labels"].to_pylist() == ["x", None]


def test_many_columns_take_more_than_one_word():
    wide = {f"c{i}": list(range(40)) for i in range(15)}
    table = Table(pa.table(wide), Schema({name: Column("quasi") for name in wide}))
    classes = classes_of(Tuples.of(table), list(wide))
    assert classes.keys.shape == (40, 2)
    assert classes.rows.tolist() == [1] * 40
