"""Distances of distributions agree with SciPy and with counting by hand."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, product
from types import SimpleNamespace

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import jensenshannon
from scipy.stats import entropy

import halfmask as hm
from halfmask.metrics.sides import sides
from halfmask.metrics.utility.distributions import (
    column_distance,
    divergence,
    hellinger,
    joint_distances,
    variation,
)

shares = st.lists(st.integers(1, 50), min_size=2, max_size=6)


@given(shares, st.randoms(use_true_random=False))
def test_distances_are_those_of_scipy(counts, random):
    p = np.array(counts) / sum(counts)
    other = list(counts)
    random.shuffle(other)
    q = np.array(other) / sum(other)
    assert divergence(p, q, 10**9) == pytest.approx(entropy(p, q, base=2), abs=1e-9)
    assert variation(p, q) == pytest.approx(np.maximum(p - q, 0).sum())
    assert hellinger(p, q) == pytest.approx(
        np.sqrt(((np.sqrt(p) - np.sqrt(q)) ** 2).sum() / 2), abs=1e-6
    )
    # Total variation lies between the squared Hellinger distance and its root of two.
    assert hellinger(p, q) ** 2 <= variation(p, q) + 1e-9
    assert variation(p, q) <= np.sqrt(2) * hellinger(p, q) + 1e-6
    assert jensenshannon(p, q, base=2) <= 1


def test_a_value_that_the_release_lacks_counts_as_half_a_row():
    p, q = np.array([0.75, 0.25]), np.array([1.0, 0.0])
    expected = 0.75 * np.log2(0.75) + 0.25 * np.log2(0.25 / (0.5 / 100))
    assert divergence(p, q, 100) == pytest.approx(expected)


def test_joint_distributions_of_two_to_six_columns_by_counting():
    random = np.random.default_rng(3)
    names = list("abcdef")
    before = {name: random.choice(["u", "v"], 200) for name in names}
    after = {name: random.permutation(values) for name, values in before.items()}
    schema = dict.fromkeys(names, "quasi")
    both = sides(hm.read(pa.table(before), schema), hm.read(pa.table(after), schema))
    found = joint_distances(both)
    assert {len(one.columns) for one in found} == {2, 3, 4, 5, 6}
    assert sum(len(one.columns) == 2 for one in found) == 15
    for one in found:
        left = Counter(zip(*(before[name] for name in one.columns), strict=True))
        right = Counter(zip(*(after[name] for name in one.columns), strict=True))
        overlap = sum(np.sqrt(left[key] * right[key]) / 200 for key in left)
        assert one.hellinger == pytest.approx(np.sqrt(max(0, 1 - overlap)), abs=1e-6)
        gone = sum(count for key, count in left.items() if not right[key]) / 200
        assert one.ruled_out == pytest.approx(gone)
        bits = sum(
            count / 200 * np.log2(count / max(right[key], 0.5)) for key, count in left.items()
        )
        assert one.kl == pytest.approx(max(0, bits))


TREE = {"tree": {"v": ["a", "b", "c"], "w": ["d", "e"]}}
UNDER = {"v": "abc", "w": "de", "*": "abcde"} | {one: one for one in "abcde"}
GENERAL = {
    "columns": {
        "t": {"role": "quasi", "hierarchy": TREE},
        "u": {"role": "quasi", "hierarchy": TREE},
        "s": "sensitive",
    }
}


def spread(rows):
    """Every released row lies evenly on the tuples that its labels cover."""
    mass = Counter()
    for row in rows:
        leaves = [UNDER.get(label, label) for label in row]
        covered = list(product(*leaves))
        for one in covered:
            mass[one] += 1 / len(covered) / len(rows)
    return mass


@given(st.data())
def test_generalized_values_lie_evenly_jointly_and_alone(data):
    n = data.draw(st.integers(2, 12))
    m = data.draw(st.integers(1, 12))
    value, label = st.sampled_from("abcde"), st.sampled_from([*"abcde", "v", "w", "*"])
    rows = data.draw(
        st.lists(st.tuples(value, value, st.sampled_from("xy")), min_size=n, max_size=n)
    )
    made = data.draw(
        st.lists(st.tuples(label, label, st.sampled_from("xy")), min_size=m, max_size=m)
    )
    rows += [(one, one, "x") for one in "abcde"] + [("a", "a", "y")]  # all values are known
    names = ("t", "u", "s")
    original, released = (
        pa.table(dict(zip(names, map(list, zip(*held, strict=True)), strict=True)))
        for held in (rows, made)
    )
    both = sides(hm.read(original, schema=GENERAL), hm.read(released, schema={}))
    for one in joint_distances(both):
        places = [names.index(name) for name in one.columns]
        p = Counter(tuple(row[i] for i in places) for row in rows)
        q = spread([tuple(row[i] for i in places) for row in made])
        overlap = sum(np.sqrt(count / len(rows) * q[key]) for key, count in p.items())
        assert one.hellinger == pytest.approx(np.sqrt(max(0, 1 - overlap)), abs=1e-6)
        assert one.ruled_out == pytest.approx(
            sum(count for key, count in p.items() if not q[key]) / len(rows)
        )
    for name, column in both.columns.items():
        found = column_distance(column, m)
        place = names.index(name)
        p = Counter(row[place] for row in rows)
        q = spread([(row[place],) for row in made])
        gap = sum(abs(p[key] / len(rows) - q[(key,)]) for key in p) / 2
        assert found.variation == pytest.approx(gap, abs=1e-9)


def test_new_numbers_are_compared_in_bins_jointly_too():
    random = np.random.default_rng(0)
    x = random.normal(size=400)
    y = x + random.normal(size=400)
    schema = {"x": "quasi", "y": "quasi"}
    original = hm.read(pa.table({"x": x, "y": y}), schema=schema)

    def pair(x, y):
        (found,) = joint_distances(sides(original, hm.read(pa.table({"x": x, "y": y}), schema)))
        return found.hellinger

    assert pair(x + 1e-4, y + 1e-4) < 0.1
    shuffled = pair(x + 1e-4, random.permutation(y))
    assert 0.5 < shuffled < 1  # the columns alone are as they were, together they are not
    edges = [np.quantile(v, np.linspace(0, 1, 21)[1:-1]) for v in (x, y)]

    def cells(a, b):
        held = (np.searchsorted(e, v, side="right") for e, v in zip(edges, (a, b), strict=True))
        return Counter(zip(*(one.tolist() for one in held), strict=True))

    p, q = cells(x, y), cells(x + 0.3, y)
    overlap = sum(np.sqrt(count * q[key]) / 400 for key, count in p.items())
    assert pair(x + 0.3, y) == pytest.approx(np.sqrt(1 - overlap), abs=1e-6)


def test_equal_distributions_are_not_apart_by_rounding():
    p = np.array([0.1, 0.2, 0.3, 0.15, 0.25])
    assert hellinger(p, p) == 0.0
    assert hellinger(p / p.sum(), (p * 7) / (p * 7).sum()) == 0.0
    assert hellinger(np.array([0.5, 0.5]), np.array([0.501, 0.499])) == pytest.approx(
        7.0711e-4, rel=1e-3
    )


def test_sets_of_a_wide_table_are_chosen_without_listing_billions(monkeypatch):
    module = "halfmask.metrics.utility.distributions"
    monkeypatch.setattr(f"{module}.joint_distance", lambda _, names: names)
    wide = SimpleNamespace(columns=dict.fromkeys(f"c{i}" for i in range(200)))
    found = joint_distances(wide)
    assert len(set(found)) == 200 * 199 // 2 + 4 * 6
    assert found[-1] == tuple(f"c{i}" for i in range(194, 200))
    few = SimpleNamespace(columns=dict.fromkeys("abcdefg"))
    triples = list(combinations("abcdefg", 3))
    assert joint_distances(few)[21:27] == tuple(triples[i * 34 // 5] for i in range(6))
