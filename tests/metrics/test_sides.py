"""Original and release on common ground, by hand and against brute force."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.covering import covering_rows
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


def test_tuples_are_covered_alike_pattern_by_pattern_and_one_by_one(monkeypatch):
    ages = [20 + (7 * i) % 40 for i in range(120)]
    people = hm.read(
        {"age": ages, "sex": ["f", "m", "m"] * 40, "d": ["a", "b"] * 60},
        schema={
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
            "sex": "quasi",
            "d": "sensitive",
        },
    )
    for method in ("local", "mondrian"):
        release = hm.anonymize(people, hm.KAnonymity(4), method=method)
        columns = list(sides(people, release).quasi)
        by_pattern = covering_rows(columns)
        monkeypatch.setattr("halfmask.metrics.covering._PATTERNS", 0)
        assert covering_rows(columns).tolist() == by_pattern.tolist()
        monkeypatch.undo()
        assert by_pattern.min() >= 4
        assert hm.compare(people, release, learn=False).loss == pytest.approx(release.loss)


def test_ranges_are_read_as_written_where_a_hierarchy_uses_their_names_otherwise():
    # The hierarchy calls 21 to 25 by the name 20-24, as ARX's file of ages does.
    tree = {"20-24": ["21", "22", "23", "24", "25"], "25-29": ["20", "26", "27", "28", "29"]}
    schema = {"columns": {"age": {"role": "quasi", "hierarchy": {"tree": tree}}}}
    original = hm.read(pa.table({"age": list(range(20, 30))}), schema=schema)

    def covered(*labels):
        (column,) = sides(original, hm.read(pa.table({"age": labels}), schema={})).quasi
        names = sorted(labels)
        return {
            name: (20 + column.covered[column.starts[i] : column.starts[i + 1]]).tolist()
            for i, name in enumerate(names)
        }

    assert covered("20-24", "25-29")["20-24"] == [21, 22, 23, 24, 25]
    assert covered("20-24", "26-28") == {"20-24": [20, 21, 22, 23, 24], "26-28": [26, 27, 28]}


@pytest.mark.parametrize("method", ["mondrian", "mdav"])
def test_everybody_of_adult_lies_under_k_released_rows(adult_table, method):
    # ARX's hierarchy of ages calls 41 to 45 by the name 40-44; divisions publish such ranges too.
    some = hm.Table(adult_table.arrow.slice(0, 500), adult_table.schema)
    release = hm.anonymize(some, hm.KAnonymity(4), method=method, seed=0)
    assert covering_rows(sides(some, release).quasi).min() >= 4
