"""Loss, precision, discernibility, class sizes and class labels, row by row in plain Python."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.metrics.risk.disclosure import minimality
from halfmask.metrics.sides import sides
from halfmask.metrics.utility.tables import class_utility

TREE = {"E": {"gov": ["s", "l"], "p": ["p"]}, "U": {"u": ["w", "x"]}}
UP = {
    0: {v: v for v in "slpwx"},
    1: {"s": "gov", "l": "gov", "p": "p", "w": "u", "x": "u"},
    2: {"s": "E", "l": "E", "p": "E", "w": "U", "x": "U"},
    3: dict.fromkeys("slpwx", "*"),
}
WIDE = {"gov": 2, "u": 2, "E": 3, "U": 2, "*": 5}
SCHEMA = {
    "columns": {
        "w": {"role": "quasi", "hierarchy": {"tree": TREE}},
        "y": "quasi",
        "d": "sensitive",
    }
}


@given(st.data())
def test_every_figure_by_counting(data):
    n = data.draw(st.integers(5, 20))
    work = list("slpwx") + data.draw(
        st.lists(st.sampled_from("slpwx"), min_size=n - 5, max_size=n - 5)
    )
    year = [1, 2, *data.draw(st.lists(st.integers(1, 2), min_size=n - 2, max_size=n - 2))]
    ill = data.draw(st.lists(st.sampled_from("abc"), min_size=n, max_size=n))
    levels = data.draw(st.lists(st.integers(0, 3), min_size=n, max_size=n))
    kept = data.draw(st.integers(1, n))
    original = hm.read(pa.table({"w": work, "y": year, "d": ill}), schema=SCHEMA)
    labels = [UP[level][value] for level, value in zip(levels, work, strict=True)][:kept]
    released = hm.read(pa.table({"w": labels, "y": year[:kept], "d": ill[:kept]}), schema={})
    found = class_utility(sides(original, released))
    gone = n - kept
    column = found.columns[0]
    lost = (sum((WIDE.get(x, 1) - 1) / 4 for x in labels) + gone) / n
    assert column.loss == pytest.approx(lost)
    assert found.loss == pytest.approx(((1 + lost) * (1 + gone / n)) ** 0.5 - 1)
    # "p" names a value and the label above it: it stands at level 1 where all others do.
    height = {"gov": 1, "u": 1, "E": 2, "U": 2, "*": 3}
    others = {height.get(x, 0) for x in labels if x not in ("p", "*")}
    height["p"] = int(others == {1})
    steps = sum(height.get(x, 0) for x in labels)
    assert column.precision == pytest.approx(1 - (steps / 3 + gone) / n)
    assert found.precision == pytest.approx((column.precision + 1 - gone / n) / 2)
    classes = Counter(zip(labels, year[:kept], strict=True))
    assert found.discernibility == pytest.approx(
        (sum(size * size for size in classes.values()) + gone * n) / n**2
    )
    assert found.mean_class_released == pytest.approx(kept / len(classes))
    assert found.mean_class == pytest.approx(n / len(set(zip(work, year, strict=True))))
    right = 0
    for key in classes:
        rows = zip(labels, year[:kept], ill[:kept], strict=True)
        right += max(Counter(d for w, y, d in rows if (w, y) == key).values())
    assert found.classification == (("d", pytest.approx((n - right) / n)),)


def test_a_range_stands_at_the_lowest_level_with_one_label_over_it():
    schema = {"columns": {"age": {"role": "quasi", "hierarchy": {"intervals": [10, 20]}}}}
    ages = list(range(20, 60))
    original = hm.read(pa.table({"age": ages}), schema=schema)
    # Height 3: values, tens, twenties, *. 20-24 lies in a ten, 25-34 in a twenty, the rest in none.
    said = ["20-24"] * 5 + ["25-34"] * 10 + ["35-59"] * 25
    found = class_utility(sides(original, hm.read(pa.table({"age": said}), schema={})))
    assert found.precision == pytest.approx(1 - (5 * 1 / 3 + 10 * 2 / 3 + 25) / 40)


def test_a_table_left_as_it_is_keeps_its_precision():
    table = hm.read(pa.table({"w": list("slpwx"), "y": [1] * 5, "d": ["a"] * 5}), schema=SCHEMA)
    both = sides(table, table)
    assert class_utility(both).precision == 1
    assert minimality(both).value == 0  # every column stands at one level, that of its values


def test_the_loss_weighs_columns_as_a_release_does():
    rows = {"age": [20, 21, 30, 31], "city": ["Ux", "Vx", "Wx", "Wx"]}
    age = {"role": "quasi", "weight": 3.0, "hierarchy": {"intervals": [10]}}
    people = hm.read(rows, {"age": age, "city": {"role": "quasi", "weight": 1.0}})
    release = hm.anonymize(people, hm.KAnonymity(2), method="optimal")
    assert hm.compare(people, release, learn=False).loss == pytest.approx(release.loss)
    equal = hm.read(rows, {"age": age | {"weight": 1.0}, "city": "quasi"})
    assert hm.compare(equal, release, learn=False).loss != pytest.approx(release.loss)


def test_values_that_nobody_has_count_as_covered_too():
    # Five values stand in the hierarchy, q and r in no row; p names a value and a label over two.
    tree = {"tree": {"gov": ["s", "l", "q"], "p": ["p", "r"]}}
    schema = {"columns": {"w": {"role": "quasi", "hierarchy": tree}}}
    original = hm.read(pa.table({"w": ["s", "l", "p"]}), schema=schema)

    def loss(*labels):
        return sides(original, hm.read(pa.table({"w": labels}), schema={})).columns["w"].loss

    assert loss("gov", "gov", "p") == pytest.approx((2 + 2 + 1) / 3 / 4)
    assert loss("s", "l", "*") == pytest.approx(4 / 3 / 4)
    # What could be either counts as the wider one.
    assert loss("s", "l", "p") == pytest.approx(1 / 3 / 4)
