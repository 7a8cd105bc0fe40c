"""Minimality: which classes could be finer, by trying it in plain Python."""

from __future__ import annotations

from collections import Counter

import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.metrics.risk.disclosure import minimality
from halfmask.metrics.sides import sides

TREE = {"tree": {"E": {"g": ["s", "l"], "p": ["q"]}, "U": {"u": ["w", "x"]}}}
UP = [
    {v: v for v in "slqwx"},
    dict(zip("slqwx", ["g", "g", "p", "u", "u"], strict=True)),
    dict(zip("slqwx", "EEEUU", strict=True)),
    dict.fromkeys("slqwx", "*"),
]
SCHEMA = {
    "columns": {
        "a": {"role": "quasi", "hierarchy": TREE},
        "b": {"role": "quasi", "hierarchy": TREE},
    }
}


@given(st.data())
def test_classes_that_could_be_finer_by_trying(data):
    n = data.draw(st.integers(5, 30))
    values = st.lists(st.sampled_from("slqwx"), min_size=n - 5, max_size=n - 5)
    a, b = (list("slqwx") + data.draw(values) for _ in "ab")
    up, wide = data.draw(st.integers(0, 3)), data.draw(st.integers(0, 3))
    original = hm.read(pa.table({"a": a, "b": b}), schema=SCHEMA)
    labels = [(UP[up][one], UP[wide][two]) for one, two in zip(a, b, strict=True)]
    one, two = map(list, zip(*labels, strict=True))
    found = minimality(sides(original, hm.read(pa.table({"a": one, "b": two}), schema={})))
    sizes = Counter(labels)
    finer = 0
    for label, size in sizes.items():
        mine = [i for i in range(n) if labels[i] == label]
        tries = []
        if up:
            tries.append(Counter(UP[up - 1][a[i]] for i in mine))
        if wide:
            tries.append(Counter(UP[wide - 1][b[i]] for i in mine))
        if any(len(p) > 1 and min(p.values()) >= min(sizes.values()) for p in tries):
            finer += size
    assert found.value == pytest.approx(finer / n)


def test_a_star_above_the_top_labels_is_one_level_higher_too():
    schema = {"columns": {"a": {"role": "quasi", "hierarchy": {"intervals": [10]}}, "b": "quasi"}}
    rows = {"a": [21, 22, 31, 32, 21, 31], "b": list("mmmmff")}
    original = hm.read(pa.table(rows), schema=schema)
    released = hm.read(pa.table({"a": ["*"] * 6, "b": rows["b"]}), schema={})
    # m: two in their twenties and two in their thirties, as many as f: it could be finer.
    assert minimality(sides(original, released)).value == pytest.approx(4 / 6)


def test_classes_of_rows_that_were_left_out_say_nothing_of_how_small_a_class_may_be():
    """Both labels of the row left out are published, but not together: it is nobody's class."""
    rows = {"a": list("ssllwwwws"), "b": list("sssswwwww")}
    original = hm.read(pa.table(rows), schema=SCHEMA)
    published = pa.table({"a": ["g"] * 4 + ["u"] * 4, "b": ["g"] * 4 + ["u"] * 4})
    found = minimality(sides(original, hm.read(published, schema={})))
    assert (found.value, found.n) == (0, 8)  # halves of two would be smaller than four
