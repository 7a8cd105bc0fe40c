"""Original and release on common ground, by hand and against brute force."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.sides import ReleasedTuples, finding_chance, sides, tightest_class
from halfmask.metrics.utility.distributions import column_distance, cramer
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
    # young f covers two tuples and * f four: 1/2 against 1/4.
    assert finding_chance(both.quasi) == pytest.approx([2 / 3, 2 / 3, 1, 1])
    p, q = both.tuple_shares(["age", "sex"])
    assert p.tolist() == [0.25] * 4
    # young f: 1/2 each; * f: 1/4 each; 71 m: 1; 72 with either sex: 1/2.
    assert sorted((q * 4).tolist()) == [0.5, 0.75, 0.75, 1]


def test_local_recoding_agrees_with_brute_force(tmp_path):
    people = hm.read(write(tmp_path, 300))
    release = hm.anonymize(people, hm.KAnonymity(3), method="local")
    both = sides(people, release)
    fits = fitting(both.quasi)
    assert (fits.sum(axis=1) >= 3).all()
    covered = np.prod([column.sizes[column.after] for column in both.quasi], axis=0)
    weights = fits / covered
    assert finding_chance(both.quasi) == pytest.approx(weights.max(axis=1) / weights.sum(axis=1))


def test_suppressed_rows_hide_nobody_who_stands_beside_them():
    rows = {"age": ["21", "22", "*", "*"], "sex": ["f", "f", "*", "*"]}
    both = sides(original(), hm.read(pa.table(rows), schema={}))
    # * * covers eight tuples: 1 against 2/8 for those left, one half for those suppressed.
    assert finding_chance(both.quasi) == pytest.approx([0.8, 0.8, 0.5, 0.5])


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
    leaves = np.prod([c.sizes[c.after] for c in columns], axis=0)
    ids = ReleasedTuples(columns).ids
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
    assert fitting(sides(some, release).quasi).sum(axis=1).min() >= 4


def test_new_dates_are_numbers_of_days():
    days = pa.array([0, 10, 20], pa.int32()).cast(pa.date32())
    table = hm.read(pa.table({"day": days}), schema={"day": "quasi"})
    moved = pa.array([5, 10, 30], pa.int32()).cast(pa.date32())
    for released in (moved, moved.cast(pa.timestamp("ns"))):
        column = sides(table, hm.read(pa.table({"day": released}), schema={})).columns["day"]
        assert column.numbers.tolist() == [0, 10, 20, 5, 30]
        assert column.foreign == 2


def column(values, released, **declared):
    table = hm.read(pa.table({"x": values}), schema={"x": {"role": "quasi", **declared}})
    return sides(table, hm.read(pa.table({"x": released}), schema={})).columns["x"]


def test_a_missing_number_takes_the_mean_of_the_others():
    assert column([1, 3, 8, None], [1, 3, 8, None]).numbers.tolist() == [1, 3, 8, 4]


def test_new_numbers_are_no_days():
    days = pa.array([0, 10], pa.int32()).cast(pa.date32())
    assert column(days, days).numbers.tolist() == [0, 10]
    assert column(days, [3, 4]).numbers is None


def test_fine_numbers_are_compared_in_twentieths_of_the_rows():
    values = list(range(101))
    one = column(values, values)
    held = np.bincount(one.bin_of)
    assert (np.diff(one.bin_of) >= 0).all()
    assert (one.bins, held.min(), held.max()) == (20, 4, 6)  # an edge falls to either side
    assert column(values[:50], values[:50]).bins == 50


def test_rare_values_share_a_bin_in_pairs_of_columns():
    # 120 values; those with even numbers are held by two rows.
    values = [f"v{i:03}" for i in range(120) for _ in range(2 - i % 2)]
    one = column(values, values)
    frequent, rare = one.coarse_of[::2], one.coarse_of[1::2]
    assert one.coarse == 100
    assert len(set(frequent.tolist())) == 60
    alone = [code for code in rare.tolist() if code != 99]
    assert len(alone) == len(set(alone)) == 39  # what is left of 99 bins
    assert not set(alone) & set(frequent.tolist())


def test_new_values_are_counted_by_rows():
    assert column([1, 2], [7, 7, 1]).foreign == 2
    assert column([1, 2], [1, 1, 2]).foreign == 0


def test_a_value_beside_ranges_is_a_value():
    one = column(list(range(20, 30)), ["20-24", "26"])
    assert one.level.tolist()[1] == 0
    assert one.level.tolist()[0] > 0


def test_a_number_that_many_share_is_compared_by_itself():
    random = np.random.default_rng(0)
    gains = np.where(random.random(2000) < 0.9, 0, random.integers(1, 5000, 2000))
    spread = np.where(gains == 0, random.integers(0, 300, 2000), gains)
    original = hm.read(pa.table({"gain": gains}), {"gain": "quasi"})
    released = hm.read(pa.table({"gain": spread}), {"gain": "quasi"})
    found = column_distance(sides(original, released).columns["gain"], 2000)
    assert found.variation > 0.85
    same = column_distance(sides(original, original).columns["gain"], 2000)
    assert same.variation == 0
