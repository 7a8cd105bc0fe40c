"""Special uniques and column sets against brute force."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import ParameterError
from halfmask.metrics.risk.column_sets import column_sets, special_uniques
from halfmask.table.tuples import Tuples


def t35():
    """Table 3.5 of Sondeck's thesis."""
    zips = [75002, 75005, 75002, 75012, 75002, 75002, 75012, 75012, 75002]
    ages = [22, 23, 22, 45, 63, 40, 35, 35, 25]
    diseases = ["lung", "lung", "lung", "flu", "diabetes", "flu", "aids", "aids", "diabetes"]
    return hm.read(pa.table({"zip": zips, "age": ages, "disease": diseases}), schema={})


def test_special_uniques_of_table_3_5():
    found = special_uniques(Tuples.of(t35()))
    assert found.special_rows == 5
    expected = {
        1: {("zip",), ("age",)},
        3: {("age",), ("zip", "disease")},
        4: {("age",)},
        5: {("age",), ("zip", "disease")},
        8: {("age",)},
    }
    assert dict(found.by_set) == Counter(one for sets in expected.values() for one in sets)
    least = [min(map(len, expected.get(row, [()]))) for row in range(9)]
    assert found.smallest.tolist() == least
    # A = 3, M = 3: a set of one column is worth 2 * 1, of two columns 1.
    assert found.scores.tolist() == [0, 4, 0, 3, 2, 3, 0, 0, 2]
    assert found.by_size == ((1, 6, 5), (2, 2, 0), (3, 0, 0))


def brute(rows, names, size):
    alone = {}
    for count in range(1, size + 1):
        for chosen in combinations(names, count):
            keys = list(zip(*(rows[name] for name in chosen), strict=True))
            counts = Counter(keys)
            alone[chosen] = {i for i, key in enumerate(keys) if counts[key] == 1}
    return alone


@given(st.data())
def test_agrees_with_brute_force(data):
    n = data.draw(st.integers(1, 25))
    names = "abcd"
    column = st.lists(st.integers(0, 2), min_size=n, max_size=n)
    rows = {name: data.draw(column) for name in names}
    table = hm.read(pa.table(rows), schema={})
    alone = brute(rows, names, 3)
    found, held = special_uniques(Tuples.of(table), list(names), size=3, top=14), []
    for row in range(n):
        unique = [set(c) for c, members in alone.items() if row in members]
        minimal = {tuple(sorted(c)) for c in unique if not any(o < c for o in unique)}
        assert found.smallest[row] == min(map(len, minimal), default=0)
        # A = 4, M = 3: (4 - 1)(4 - 2) for one column, 4 - 2 for two, 1 for three.
        assert found.scores[row] == sum({1: 6, 2: 2, 3: 1}[len(one)] for one in minimal)
        held += [(row, one) for one in minimal]
    total = sum({1: 6, 2: 2, 3: 1}[len(one)] for _, one in held)
    assert found.special_rows == len({row for row, _ in held})
    for size, sets, rows_of in found.by_size:
        assert sets == sum(len(one) == size for _, one in held)
        least = Counter(min(len(o) for r, o in held if r == row) for row in {r for r, _ in held})
        assert rows_of == least[size]
    for one in found.contributions:
        mine = [chosen for _, chosen in held if one.name in chosen]
        assert one.sets == len(mine)
        assert one.share == pytest.approx(len(mine) / max(len(held), 1))
        worth = sum({1: 6, 2: 2, 3: 1}[len(chosen)] for chosen in mine)
        assert one.score == pytest.approx(worth / max(total, 1))
    by_set = Counter(chosen for _, chosen in held)
    assert {tuple(sorted(chosen)): count for chosen, count in found.by_set} == by_set
    sets = {one.columns: one for one in column_sets(Tuples.of(table), list(names), size=3)}
    assert set(sets) == set(alone)
    for chosen, one in sets.items():
        keys = list(zip(*(rows[name] for name in chosen), strict=True))
        assert one.unique_rows == len(alone[chosen])
        assert one.classes == len(set(keys))
        assert one.distinction == pytest.approx(len(set(keys)) / n)
        pairs = [keys[i] != keys[j] for i in range(n) for j in range(i)]
        assert one.separation == pytest.approx(sum(pairs) / len(pairs) if pairs else 1)
        smaller = any(alone[o] for o in alone if set(o) < set(chosen))
        assert one.minimal == (bool(alone[chosen]) and not smaller)


def test_the_quasi_identifiers_of_the_footballers():
    rows = {"age": [35, 32, 20, 27, 32, 32], "club": ["PSG"] * 4 + ["OM"] * 2}
    table = hm.read(pa.table(rows), schema={"age": "quasi", "club": "quasi"})
    pair = next(s for s in column_sets(Tuples.of(table)) if len(s.columns) == 2)
    assert (pair.unique_rows, pair.classes) == (4, 5)


def test_sizes_are_at_least_one():
    with pytest.raises(ParameterError):
        special_uniques(Tuples.of(t35()), size=0)


def test_more_columns_than_a_word_has_bits():
    random = np.random.default_rng(6)
    rows = {f"c{i:03d}": random.integers(0, 4, 12).tolist() for i in range(130)}
    alone = brute(rows, list(rows), 2)
    table = hm.read(pa.table(rows), schema={})
    found, held = special_uniques(Tuples.of(table), size=2, top=10_000), Counter()
    for row in range(12):
        ones = {names for names, held in alone.items() if len(names) == 1 and row in held}
        pairs = {
            names
            for names, held in alone.items()
            if len(names) == 2 and row in held and not {(n,) for n in names} & ones
        }
        held.update(ones | pairs)
        assert found.scores[row] == 129 * len(ones) + len(pairs)  # A = 130, M = 2
        assert found.smallest[row] == (1 if ones else 2)
    assert dict(found.by_set) == held
