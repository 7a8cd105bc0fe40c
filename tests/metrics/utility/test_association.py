"""Associations of two columns agree with SciPy and with figures by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from scipy.stats.contingency import association

import halfmask as hm
from halfmask.metrics.sides import sides
from halfmask.metrics.utility.distributions import pairs_of


def table(**columns):
    return hm.read(pa.table(columns), schema=dict.fromkeys(columns, "quasi"))


def only(original, release):
    (found,) = pairs_of(sides(original, release))
    return found


def test_cramers_v_is_that_of_scipy():
    random = np.random.default_rng(0)
    one = random.choice(["a", "b", "c"], 400)
    two = np.where(random.random(400) < 0.5, one, random.choice(["a", "b", "d", "e"], 400))
    original = table(one=one, two=two)
    other = table(one=random.permutation(one), two=two)
    found = only(original, other)
    assert found.kind == "Cramer's V"
    for rows, value in ((original, found.before), (other, found.after)):
        codes = [rows.encode(name).codes for name in ("one", "two")]
        counts = np.zeros([len(np.unique(c)) for c in codes], dtype=int)
        np.add.at(counts, tuple(codes), 1)
        assert value == pytest.approx(association(counts, method="cramer"))


def test_a_correlation_keeps_its_sign():
    x = [1, 2, 3, 4, 5, 6]
    found = only(table(x=x, y=[2, 1, 4, 3, 6, 5]), table(x=x, y=[6, 5, 4, 3, 1, 2]))
    assert found.kind == "correlation"
    assert found.before == pytest.approx(np.corrcoef(x, [2, 1, 4, 3, 6, 5])[0, 1])
    assert found.after == pytest.approx(np.corrcoef(x, [6, 5, 4, 3, 1, 2])[0, 1])
    assert found.after < 0 < found.before


def test_a_correlation_ratio_by_hand():
    # Means 1 and 5 around 3: between 4; inside 1 and 1: total 5.
    groups = ["a", "a", "b", "b"]
    found = only(table(g=groups, x=[0, 2, 4, 6]), table(g=["a", "b", "a", "b"], x=[0, 2, 4, 6]))
    assert found.kind == "correlation ratio"
    assert found.before == pytest.approx(np.sqrt(4 / 5))
    assert found.after == pytest.approx(np.sqrt(1 / 5))
    # The two-way tables share none of a-2, b-4: half of the mass differs.
    assert found.contingency == pytest.approx(0.5)


TREE = {"tree": {"v": ["a", "b", "c"], "w": ["d", "e"]}}
UNDER = {"v": "abc", "w": "de", "*": "abcde"} | {one: one for one in "abcde"}


@pytest.mark.parametrize("seed", range(4))
def test_generalized_labels_enter_as_shares_of_rows(seed):
    # Each released row is written out as one weighted row for every value that its label covers.
    random = np.random.default_rng(seed)
    t = np.append(list("abcde"), random.choice(list("abcde"), 60))
    x = (2.0 * (t < "c") + random.integers(0, 4, 65)).astype(int)
    z = x + random.integers(0, 3, 65)
    labels = random.choice([*"abcde", "v", "w", "*"], 65)
    schema = {"t": {"role": "quasi", "hierarchy": TREE}, "x": "quasi", "z": "quasi"}
    original = hm.read(pa.table({"t": t, "x": x, "z": z}), schema={"columns": schema})
    released = hm.read(pa.table({"t": labels, "x": x, "z": z}), schema={})
    found = {pair.columns: pair for pair in pairs_of(sides(original, released))}
    wide = [
        (leaf, x[i], 1 / len(UNDER[one])) for i, one in enumerate(labels) for leaf in UNDER[one]
    ]
    text, number, weight = (np.array(part) for part in zip(*wide, strict=True))
    mean = np.average(number, weights=weight)
    between = sum(
        weight[text == leaf].sum()
        * (np.average(number[text == leaf], weights=weight[text == leaf]) - mean) ** 2
        for leaf in set(text.tolist())
    )
    ratio = found["t", "x"]
    assert ratio.kind == "correlation ratio"
    assert ratio.after == pytest.approx(np.sqrt(between / (weight @ (number - mean) ** 2)))
    gap = 0.0
    for leaf in "abcde":
        for value in set(x.tolist()):
            after = weight[(text == leaf) & (number == value)].sum()
            gap += abs(((t == leaf) & (x == value)).sum() - after) / 65
    assert ratio.contingency == pytest.approx(gap / 2)
    assert found["x", "z"].after == pytest.approx(np.corrcoef(x, z)[0, 1])
