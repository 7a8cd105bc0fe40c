"""Original and release on common ground, by hand and against brute force."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.covering import Released, covering_rows, tightest_class
from halfmask.metrics.sides import sides
from halfmask.metrics.utility.association import cramer
from halfmask.sample import write

TREE = {"tree": {"young": ["21", "22"], "old": ["71", "72"]}}
SCHEMA = {"age": {"role": "quasi", "hierarchy": TREE}, "sex": "quasi"}


def original():
    rows = {"age": ["21", "22", "71", "72"], "sex": ["f", "f", "m", "m"]}
    return hm.read(pa.table(rows), schema=SCHEMA)


def test_rows_that_fit():
    rows = {"age": ["young", "*", "71", "72"], "sex": ["f", "f", "m", None]}
    both = sides(original(), hm.read(pa.table(rows), schema={}))
    # 21 f: rows 1, 2; 22 f: rows 1, 2; 71 m: row 3; 72 m: row 4, whose missing sex is suppressed.
    assert covering_rows(both.quasi).tolist() == [2, 2, 1, 1]
    p, q = both.tuple_shares(["age", "sex"])
    assert p.tolist() == [0.25] * 4
    # young f: 1/2 each; * f: 1/4 each; 71 m: 1; 72 with either sex: 1/2.
    assert sorted((q * 4).tolist()) == [0.5, 0.75, 0.75, 1]


def test_local_recoding_agrees_with_brute_force(tmp_path):
    people = hm.read(write(tmp_path, 300))
    release = hm.anonymize(people, hm.KAnonymity(3), method="local")
    both = sides(people, release)
    fits = np.ones((300, both.after), dtype=bool)
    for column in both.quasi:
        under = np.zeros((column.leaves, column.labels), dtype=bool)
        under[column.covered, np.repeat(np.arange(column.labels), column.sizes)] = True
        fits &= under[column.before][:, column.after]
    assert covering_rows(both.quasi).tolist() == fits.sum(axis=1).tolist()
    assert (fits.sum(axis=1) >= 3).all()


def test_perturbed_numbers_are_new_values():
    schema = {"x": "quasi"}
    table = hm.read(pa.table({"x": np.arange(100.0)}), schema=schema)
    noisy = hm.read(pa.table({"x": np.arange(100.0) + 0.25}), schema=schema)
    (column,) = sides(table, noisy).quasi
    assert column.foreign == 100
    p, q = column.shares()
    assert abs(p - q).sum() / 2 < 0.05


def test_cramer_agrees_with_scipy():
    stats = pytest.importorskip("scipy.stats.contingency")
    counts = np.array([[10, 3, 2], [4, 9, 1], [0, 2, 8]])
    assert cramer(counts / counts.sum()) == pytest.approx(stats.association(counts, "cramer"))


def fitting(columns):
    """Which released entries fit which original ones, pair by pair."""
    fits = np.ones((len(columns[0].before), len(columns[0].after)), dtype=bool)
    for column in columns:
        under = np.zeros((column.leaves, column.labels), dtype=bool)
        under[column.covered, np.repeat(np.arange(column.labels), column.sizes)] = True
        fits &= under[column.before][:, column.after]
    return fits


@pytest.mark.parametrize("method", ["optimal", "local", "mondrian", "stars"])
def test_walked_tuples_are_those_that_fit_pair_by_pair(method):
    ages = [20 + (7 * i) % 40 for i in range(120)]
    people = hm.read(
        {"age": ages, "sex": ["f", "m", "m"] * 40, "d": ["a", "b"] * 60},
        schema={
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
            "sex": "quasi",
            "d": "sensitive",
        },
    )
    if method == "stars":  # a missing cell and a star both cover everything
        sexes = [("f", "m", "*", None)[i % 4] for i in range(120)]
        release = hm.read({"age": ["20-35", "31-50", "59"] * 40, "sex": sexes}, schema={})
    else:
        release = hm.anonymize(people, hm.KAnonymity(4), method=method)
    both = sides(people, release)
    columns = both.quasi
    fits = fitting(columns)
    assert covering_rows(columns).tolist() == fits.sum(axis=1).tolist()
    leaves = np.prod([c.sizes[c.after] for c in columns], axis=0)
    ids = Released(columns).ids
    for row, owner in enumerate(tightest_class(columns)):
        held = fits[row]
        assert (owner < 0) == (not held.any())
        if owner >= 0:
            mine = ids == owner
            assert held[mine].all()
            assert leaves[mine][0] == leaves[held].min()
    _, mass = both.tuple_shares(["age", "sex"])
    expected = {tuple(c.before[row] for c in columns): (fits[row] / leaves).sum() / len(leaves)
                for row in range(120)}  # fmt: skip
    assert sorted(mass) == pytest.approx(sorted(expected.values()))
