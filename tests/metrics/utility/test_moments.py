"""Numeric statistics and class means by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.sides import sides
from halfmask.metrics.utility.queries import counting_queries
from halfmask.metrics.utility.tables import class_mean_error, class_utility, moments


def test_example_5_average_salary_by_age():
    """The four PSG players of Nguyen and Castelluccia, ages as decades."""
    decades = {"tree": {"[30;39]": ["35", "32"], "[20;29]": ["20", "27"]}}
    salaries = [1160, 1500, 1730, 3060]
    original = hm.read(
        pa.table({"age": ["35", "32", "20", "27"], "salary": salaries}),
        schema={"age": {"role": "quasi", "hierarchy": decades}, "salary": "sensitive"},
    )
    released = hm.read(
        pa.table({"age": ["[30;39]", "[30;39]", "[20;29]", "[20;29]"], "salary": salaries}),
        schema={},
    )
    error = class_mean_error(sides(original, released), "salary")
    expected = (170 / 1160 + 170 / 1500 + 665 / 1730 + 665 / 3060) / 4
    assert error.value == pytest.approx(expected)
    assert error.value == pytest.approx(0.2154, abs=1e-4)
    found = hm.assess(hm.Table(released.arrow, hm.Schema({"age": "quasi", "salary": "sensitive"})))
    assert found.reidentification.journalist_any_hit == pytest.approx(0.75)
    assert (found.highest_risk, found.mean_risk) == (0.5, 0.5)


def test_two_columns_by_hand():
    schema = {"x": "quasi", "y": "quasi"}
    original = hm.read(pa.table({"x": [0.0, 2.0], "y": [0.0, 4.0]}), schema=schema)
    released = hm.read(pa.table({"x": [0.0, 4.0], "y": [0.0, 4.0]}), schema=schema)
    found = {one.statistic: one for one in moments(sides(original, released))}
    # Means 1, 2 become 2, 2; covariances 1, 2, 4 become 4, 4, 4; the correlation stays 1.
    assert found["mean"].absolute_error == pytest.approx(0.5)
    assert found["mean"].variation == pytest.approx(0.5)
    assert found["covariance"].absolute_error == pytest.approx((3 + 2 + 0) / 3)
    assert found["covariance"].square_error == pytest.approx((9 + 4 + 0) / 3)
    assert found["correlation"].absolute_error == pytest.approx(0)
    assert all(one.absolute_error == 0 for one in moments(sides(original, original)))


def test_the_classification_metric_counts_minorities_and_suppressed_rows():
    schema = {"q": "quasi", "s": "sensitive"}
    rows = {"q": ["a", "a", "a", "b", "b"], "s": ["x", "x", "y", "x", "y"]}
    original = hm.read(pa.table(rows), schema=schema)
    kept = hm.read(pa.table(rows).slice(0, 4), schema=schema)
    # Of a one row is not x; b's one row is its majority; one row of five is suppressed.
    found = class_utility(sides(original, kept))
    assert found.classification == (("s", pytest.approx(2 / 5)),)
    # Discernibility: 9 + 1 for the classes and 5 for the suppressed row, over 25.
    assert found.discernibility == pytest.approx(15 / 25)


def test_counting_queries_on_half_of_the_rows_are_off_by_a_half():
    schema = {"q": "quasi", "r": "quasi"}
    rows = pa.table({"q": list("abcd") * 50, "r": list("uv") * 100})
    original = hm.read(rows, schema=schema)
    half = hm.read(rows.slice(0, 100), schema=schema)
    both = sides(original, half)
    # A condition may fit nobody: then both counts are 0.
    assert 0.3 < counting_queries(both).error.value <= 0.5
    assert counting_queries(both, scaled=True).error.value == pytest.approx(0, abs=1e-9)


def test_moments_are_those_of_numpy():
    random = np.random.default_rng(0)
    before = random.normal(size=(3, 80)).round(2)
    after = before + random.normal(0, 0.2, (3, 80)).round(2)
    tables = [
        hm.read(pa.table(dict(zip("xyz", held, strict=True))), schema=dict.fromkeys("xyz", "quasi"))
        for held in (before, after)
    ]
    found = {one.statistic: one for one in moments(sides(*tables))}
    upper, above = np.triu_indices(3), np.triu_indices(3, 1)
    wanted = {
        "mean": [held.mean(axis=1) for held in (before, after)],
        "covariance": [np.cov(held, ddof=0)[upper] for held in (before, after)],
        "correlation": [np.corrcoef(held)[above] for held in (before, after)],
    }
    for name, (one, two) in wanted.items():
        assert found[name].square_error == pytest.approx(((two - one) ** 2).mean())
        assert found[name].absolute_error == pytest.approx(np.abs(two - one).mean())
        assert found[name].variation == pytest.approx((np.abs(two - one) / np.abs(one)).mean())


def test_factors_are_those_of_the_first_principal_component():
    x = np.array([1.0, 2, 3, 4, 5, 6])
    y, z = 2 * x, np.array([1.0, -1, -1, 1, 1, -1])
    tables = [
        hm.read(pa.table({"x": x, "y": other}), schema={"x": "quasi", "y": "quasi"})
        for other in (y, z)
    ]
    found = {one.statistic: one for one in moments(sides(*tables))}
    # Two columns whose correlation is r: the axis is (1, 1) / sqrt 2 of size 1 + |r|, the sign of
    # r aside. Before, r = 1: both columns correlate 1 with it. After, r as NumPy has it.
    size = 1 + abs(np.corrcoef(x, z)[0, 1])
    assert found["communality"].absolute_error == pytest.approx(1 - size / 2)
    assert found["communality"].variation == pytest.approx(1 - size / 2)
    assert 0 < size < 2


def test_factors_of_three_columns_are_those_of_a_power_iteration():
    random = np.random.default_rng(4)
    common = random.normal(size=200)
    before = np.stack([common + random.normal(size=200) for _ in range(3)]).round(2)
    after = (before + random.normal(0, 1, before.shape)).round(2)
    loadings = []
    for held in (before, after):
        axis, matrix = np.ones(3), np.corrcoef(held)
        for _ in range(2000):
            axis = matrix @ axis
            axis /= np.linalg.norm(axis)
        loadings.append(axis * np.sqrt(axis @ matrix @ axis))
    tables = [
        hm.read(pa.table(dict(zip("xyz", held, strict=True))), schema=dict.fromkeys("xyz", "quasi"))
        for held in (before, after)
    ]
    found = {one.statistic: one for one in moments(sides(*tables))}
    one, two = loadings
    assert found["factor correlation"].absolute_error == pytest.approx(np.abs(two - one).mean())
    assert found["communality"].absolute_error == pytest.approx(np.abs(two**2 - one**2).mean())
    scores = [held / (held @ held) for held in loadings]
    off = np.abs(scores[1] - scores[0]).mean()
    assert found["factor score"].absolute_error == pytest.approx(off)


def test_class_means_row_by_row():
    random = np.random.default_rng(2)
    tree = {"tree": {"v": ["a", "b", "c"], "w": ["d", "e"]}}
    up = {"a": "v", "b": "v", "c": "v", "d": "w", "e": "w"}
    t = np.append(list("abcde"), random.choice(list("abcde"), 40)).tolist()
    y = random.choice(["m", "f"], 45).tolist()
    n = random.integers(0, 9, 45).tolist()  # some are 0 and have no relative error
    schema = {"t": {"role": "quasi", "hierarchy": tree}, "y": "quasi", "n": "sensitive"}
    original = hm.read(pa.table({"t": t, "y": y, "n": n}), schema={"columns": schema})
    kept = range(40)
    released = hm.read(
        pa.table({"t": [up[t[i]] for i in kept], "y": y[:40], "n": n[:40]}), schema={}
    )
    found = class_mean_error(sides(original, released), "n")
    errors = []
    for i in range(45):
        mine = [n[j] for j in kept if (up[t[j]], y[j]) == (up[t[i]], y[i])]
        if mine and n[i]:
            errors.append(abs(sum(mine) / len(mine) - n[i]) / n[i])
    assert found.value == pytest.approx(sum(errors) / len(errors))
    assert found.n == len(errors)


def test_one_column_has_no_correlation():
    rows = hm.read(pa.table({"a": [1.0, 2.0, 4.0]}), schema={"a": "quasi"})
    assert [one.statistic for one in moments(sides(rows, rows))] == ["mean", "covariance"]
