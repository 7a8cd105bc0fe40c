"""Measures of partitions: the thesis's Table 3.3 and brute force."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.kernels import distance
from halfmask.metrics import partition
from halfmask.metrics.space import space_of
from halfmask.table.tuples import ones

in_classes = partition.PointClasses.of_rows

AGES = [25, 32, 35, 38, 39, 44, 70, 70, 50]
IDS = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2])
CONDITION = ["C", "C", "H", "C", "V", "V", "H", "V", "C"]


def ages() -> hm.Table:
    rows = pa.table({"age": AGES, "condition": CONDITION})
    return hm.Table(rows, hm.Schema({"age": "quasi", "condition": "sensitive"}))


def test_table_33_has_the_losses_that_are_worked_out_by_hand():
    space = space_of(ages())
    assert partition.diameter_loss(in_classes(space, IDS)) == pytest.approx(
        3 * (10 + 6 + 20) / 45
    )  # 2.4
    assert partition.span_loss(in_classes(space, IDS)) == pytest.approx(2.4)  # one column: the same
    sizes = in_classes(space, IDS).sizes
    assert partition.average_class(sizes, 3) == 1.0
    assert partition.discernibility(sizes, 3) == 27
    assert partition.discernibility(sizes, 4) == 9 * 9
    assert partition.entropy_loss(ages(), IDS, ["condition"], ones(9)) == pytest.approx(
        10.265, abs=5e-4
    )
    assert partition.largest_diameter(in_classes(space, IDS)) == pytest.approx(20 / 45)
    assert partition.class_separation(in_classes(space, IDS)) == pytest.approx(3 / 45)  # 35 and 38
    pairs = (7 + 10 + 3) + (1 + 6 + 5) + (0 + 20 + 20)
    assert partition.pair_distances(in_classes(space, IDS)) == pytest.approx(pairs / 45)


def test_the_middle_of_a_class_is_mean_and_most_frequent_category():
    rows = pa.table({"x": [0, 2, 4, 10], "c": ["a", "a", "b", "b"]})
    space = space_of(hm.Table(rows, hm.Schema({"x": "quasi", "c": "quasi"})))
    # x: mean 2 of [0, 2, 4]; c: "a" is most frequent.
    wanted = 0.2**2 + 0.0 + (0.2 + 1) ** 2 + 0.0
    found = partition.squared_distances(in_classes(space, np.array([0, 0, 0, 1])))
    assert found == pytest.approx(wanted)


def test_the_tree_loss_is_the_share_of_the_height():
    tree = hm.hierarchies.Tree({"E": {"gov": ["s", "l"], "p": ["p"]}, "U": {"U": ["w"]}})
    rows = pa.table({"w": ["s", "l", "w", "w"]})
    space = space_of(hm.Table(rows, hm.Schema({"w": hm.Column("quasi", hierarchy=tree)})))
    assert partition.tree_loss(in_classes(space, np.array([0, 0, 1, 1]))) == pytest.approx(2 / 3)
    assert partition.tree_loss(in_classes(space, np.array([0, 1, 1, 2]))) == pytest.approx(2.0)


def test_the_tree_loss_refers_to_the_hierarchy_and_the_span_loss_to_the_table():
    tree = hm.hierarchies.Tree({"E": {"gov": ["s", "l"], "p": ["p"]}, "U": {"U": ["w"]}})
    rows = pa.table({"w": ["s", "l", "s"]})  # nobody outside gov, whose height is 1 of 3
    space = space_of(hm.Table(rows, hm.Schema({"w": hm.Column("quasi", hierarchy=tree)})))
    assert partition.tree_loss(in_classes(space, np.zeros(3, dtype=np.int64))) == pytest.approx(1.0)
    assert partition.span_loss(in_classes(space, np.zeros(3, dtype=np.int64))) == pytest.approx(3.0)


@pytest.mark.parametrize("k", [6, 7, 10])
def test_the_bound_of_the_number_of_classes_is_exact(k):
    assert partition.class_limit(np.full(k, k)) == 1
    assert math.floor(sum(1 / k for _ in range(k))) == 0  # what floats would say


def test_the_thesis_example_may_form_four_classes():
    assert partition.class_limit(np.array([2, 2, 2, 3, 3, 2, 3, 2, 2])) == 4


@given(st.data())
def test_sums_over_classes_are_sums_over_rows(data):
    n = data.draw(st.integers(2, 9))
    xs = data.draw(st.lists(st.integers(0, 50), min_size=n, max_size=n))
    cs = data.draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    ids = np.array(data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n)))
    table = hm.Table(pa.table({"x": xs, "c": cs}), hm.Schema({"x": "quasi", "c": "quasi"}))
    space = space_of(table)
    far = np.asarray(distance.matrix(space.points, np.arange(n)))
    alike = np.equal.outer(ids, ids)
    per_row = sum(far[np.ix_(alike[i], alike[i])].max() for i in range(n))
    assert partition.diameter_loss(in_classes(space, ids)) == pytest.approx(per_row)
    pairs = sum(far[i, j] for i, j in combinations(range(n), 2) if ids[i] == ids[j])
    assert partition.pair_distances(in_classes(space, ids)) == pytest.approx(pairs)
    between = [far[i, j] for i, j in combinations(range(n), 2) if ids[i] != ids[j]]
    assert partition.class_separation(in_classes(space, ids)) == pytest.approx(
        min(between, default=math.inf)
    )


TREE = hm.hierarchies.Tree({"E": {"gov": ["s", "l"], "p": ["q"]}, "U": {"u": ["w", "x"]}})
PATHS = {"s": "gov E", "l": "gov E", "q": "p E", "w": "u U", "x": "u U"}


def height(values):
    """The height of the lowest common label of some values, of 3."""
    if len(set(values)) == 1:
        return 0
    for place in (0, 1):
        if len({PATHS[value].split()[place] for value in values}) == 1:
            return place + 1
    return 3


@given(st.data())
def test_losses_of_classes_are_added_up_row_by_row(data):
    n = data.draw(st.integers(2, 10))
    xs = [0, 50, *data.draw(st.lists(st.integers(0, 50), min_size=n - 2, max_size=n - 2))]
    ws = ["s", "w", *data.draw(st.lists(st.sampled_from("slqwx"), min_size=n - 2, max_size=n - 2))]
    ids = np.array(data.draw(st.lists(st.integers(-1, 2), min_size=n, max_size=n)))
    if (ids < 0).all():
        ids[0] = 0
    schema = hm.Schema({"x": "quasi", "w": hm.Column("quasi", hierarchy=TREE)})
    found = hm.partition_measures(hm.Table(pa.table({"x": xs, "w": ws}), schema), ids)
    gone = int((ids < 0).sum())
    dbil = sbil = tbil = ebil = wcsd = wcss = 0.0
    widest, moved = 0.0, 0
    for one in sorted(set(ids[ids >= 0].tolist())):
        mine = [i for i in range(n) if ids[i] == one]
        size, x, w = len(mine), [xs[i] for i in mine], [ws[i] for i in mine]
        pairs = [abs(a - b) / 50 + height([c, d]) / 3
                 for (a, c), (b, d) in combinations(list(zip(x, w, strict=True)), 2)]  # fmt: skip
        dbil += size * max(pairs, default=0)
        widest = max(widest, max(pairs, default=0))
        wcsd += sum(pairs)
        sbil += size * ((max(x) - min(x)) / 50 + height(w) / 3)
        tbil += size * height(w) / 3
        for values in (x, w):
            ebil += sum(math.log2(size / values.count(value)) for value in values)
        middle = sum(x) / size
        mode = max(w.count(value) for value in w)
        squares = {
            value: sum((abs(a - middle) / 50 + height([c, value]) / 3) ** 2
                       for a, c in zip(x, w, strict=True))
            for value in w if w.count(value) == mode
        }  # fmt: skip
        wcss += squares[min(squares, key="slqwx".index)] if len(squares) == 1 else math.nan
        wide = [len(set(x)) > 1, len(set(w)) > 1]
        moved += 2 * size * (sum(wide) + any(wide))
    assert found.dbil == pytest.approx(dbil + 2 * gone)
    assert found.sbil == pytest.approx(sbil + 2 * gone)
    assert found.tbil == pytest.approx(tbil + gone)
    whole = sum(math.log2(n / values.count(v)) for values in (xs, ws) for v in values) / n
    assert found.ebil == pytest.approx(ebil + gone * whole)
    assert found.wcsd == pytest.approx(wcsd)
    assert found.diameter == pytest.approx(widest)
    if not math.isnan(wcss):
        assert found.wcss == pytest.approx(wcss)
    assert found.ctbil == moved + 3 * gone
    sizes = [int((ids == one).sum()) for one in set(ids[ids >= 0].tolist())]
    assert found.k == min(sizes)
    assert found.discernibility == sum(size * size for size in sizes) + gone * n
    assert found.average_class == pytest.approx(sum(sizes) / len(sizes) / min(sizes))
