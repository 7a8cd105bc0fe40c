"""Coefficients of linear models on either side: by hand, by chance, and on counted rows."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.sides import sides
from halfmask.metrics.utility import prediction
from halfmask.metrics.utility.prediction import overlap, regress
from halfmask.table.tuples import Tuples

SCHEMA = {"a": "quasi", "b": "quasi", "g": "quasi", "y": "sensitive"}


def people(seed, rows=400, slope=1.0):
    random = np.random.default_rng(seed)
    a, b = random.normal(size=(2, rows)).round(3)
    g = random.choice(["u", "v", "v", "w"], rows)
    y = (slope * (a - 0.5 * b + (g == "u")) + random.normal(size=rows)).round(3)
    return hm.read(pa.table({"a": a, "b": b, "g": g, "y": y}), SCHEMA)


def only(original, release, target="y"):
    (found,) = regress(sides(original, release), [target])
    return found


def by_hand(frame, own):
    """Plain least squares with an intercept; v, the most frequent value, is the reference."""

    def scaled(name):
        return (frame[name] - own[name].mean()) / own[name].std(ddof=0)

    x = np.column_stack(
        [np.ones(len(frame)), scaled("a"), scaled("b"), frame["g"] == "u", frame["g"] == "w"]
    ).astype(float)
    y = scaled("y").to_numpy()
    found, (squares,), *_ = np.linalg.lstsq(x, y)
    errors = np.sqrt(squares / (len(y) - 5) * np.diag(np.linalg.inv(x.T @ x)))
    return found[1:], errors[1:]


def test_the_figures_are_those_by_hand():
    left, right = people(0), people(1, rows=300, slope=0.6)
    own = left.arrow.to_pandas()
    (b, e), (c, f) = by_hand(own, own), by_hand(right.arrow.to_pandas(), own)
    t, u = 1.9660, 1.9680  # 97.5 % points of t with 395 and 295 degrees of freedom
    low, high = np.maximum(b - t * e, c - u * f), np.minimum(b + t * e, c + u * f)
    expected = np.mean([(high - low) / (2 * t * e), (high - low) / (2 * u * f)])
    found = only(left, right)
    assert found.overlap.value == pytest.approx(expected, abs=1e-3)
    assert (found.overlap.n, found.coefficients, found.lost) == (300, 4, 0)
    sure = np.abs(b) > t * e
    assert found.significant == sure.sum() >= 3
    assert found.same_sign == (b * c > 0)[sure].mean()
    assert found.largest == pytest.approx((np.abs(b - c) / e).max())


def test_overlaps_of_intervals_by_hand():
    one = np.zeros(4)
    two, other = np.array([0.0, 1.0, 2.0, 3.0]), np.array([1.0, 1.0, 1.0, 2.0])
    # Shared: 2 of 2 and 2, 1 of 2 and 2, 0, and 0 of 2 and 4.
    assert overlap(one, np.ones(4), two, other).tolist() == [1, 0.5, 0, 0]
    # A gap of 1 between intervals of lengths 2 and 2; one of length 2 inside one of length 8.
    assert overlap(one[:2], np.ones(2), np.array([3.0, 0.0]), np.array([1.0, 4.0])).tolist() == [
        -0.5,
        (1 + 0.25) / 2,
    ]


def test_the_same_rows_agree_in_full_drawn_or_not(monkeypatch):
    table = people(0)
    for _ in range(2):
        found = only(table, table)
        assert (found.overlap.value, found.same_sign, found.largest) == (1, 1, 0)
        monkeypatch.setattr(prediction, "_ROWS", 100)
    assert found.overlap.n == 100
    assert found.overlap.reason == "On 100 rows of either table at most."


def test_what_rows_drawn_anew_and_other_people_give():
    random = np.random.default_rng(0)
    drawn, others = [], []
    for turn in range(60):
        table = people(turn)
        again = hm.read(table.arrow.take(random.integers(0, 400, 400)), SCHEMA)
        drawn.append(only(table, again).overlap.value)
        others.append(only(table, people(100 + turn)).overlap.value)
    # A normal difference of one or of two variances: 1 - E|d| / (2 * 1.96 standard errors).
    assert np.mean(drawn) == pytest.approx(1 - (2 / np.pi) ** 0.5 / 3.92, abs=0.03)
    assert np.mean(others) == pytest.approx(1 - (4 / np.pi) ** 0.5 / 3.92, abs=0.03)


def test_a_shuffled_target_leaves_no_overlap():
    table = people(0, slope=3.0)
    place = table.arrow.column_names.index("y")
    values = np.random.default_rng(0).permutation(table.arrow["y"].to_numpy())
    found = only(table, hm.read(table.arrow.set_column(place, "y", pa.array(values)), SCHEMA))
    assert found.overlap.value < 0
    assert found.largest > 10


def test_counts_are_repeated_rows():
    random = np.random.default_rng(3)
    one, two = people(4, rows=60), people(5, rows=50)
    counts, others = random.integers(1, 6, 60), random.integers(1, 6, 50)
    rows = [
        hm.read(table.arrow.take(np.repeat(np.arange(len(held)), held)), SCHEMA)
        for table, held in ((one, counts), (two, others))
    ]
    found, repeated = only(Tuples(one, counts), Tuples(two, others)), only(*rows)
    assert found.overlap.value == pytest.approx(repeated.overlap.value)
    assert found.largest == pytest.approx(repeated.largest)
    assert found.overlap.n == repeated.overlap.n == min(counts.sum(), others.sum())


def test_what_only_the_original_can_estimate_is_counted():
    table = people(0)
    hidden = table.arrow.set_column(2, "g", pa.array(["*"] * 400))
    found = only(table, hm.read(hidden, {}))
    assert (found.coefficients, found.lost) == (2, 2)
    assert found.overlap.value == 1
    twice = table.arrow.append_column("c", pa.array(2 * table.arrow["a"].to_numpy() + 1))
    both = hm.read(twice, SCHEMA | {"c": "quasi"})
    assert (only(both, both).coefficients, only(both, both).lost) == (4, 0)


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        ({"y": [1.0] * 40}, "does not vary"),
        ({"a": [1.0] * 40, "b": [1.0] * 40, "g": ["u"] * 40}, "No other column"),
        ({"y": None}, "in full"),
    ],
)
def test_what_cannot_be_fitted_says_why(change, reason):
    table = people(0, rows=40)
    rows = table.arrow.to_pydict()
    if "y" in change:
        change = {"y": change["y"] or [3 * v for v in rows["a"]]}
    found = only(table, hm.read(pa.table(rows | change), SCHEMA))
    assert found.overlap.value is None
    assert reason in found.overlap.reason
    few = people(0, rows=12)
    assert "too few rows" in only(few, few).overlap.reason


def test_only_numbers_are_fitted():
    table = people(0)
    assert [one.target for one in regress(sides(table, table), ["g", "a"])] == ["a"]


def test_only_coefficients_that_differ_from_nothing_are_held_to_their_sign():
    left = people(3)
    own = left.arrow.to_pandas()
    own["y"] = own["a"] + np.random.default_rng(3).normal(size=400)
    x = np.column_stack([np.ones(400), own["a"], own["b"], own["g"] == "u", own["g"] == "w"])
    found, *_ = np.linalg.lstsq(x.astype(float), own["y"].to_numpy(), rcond=None)
    turned = own.assign(y=own["y"] - 2 * found[2] * own["b"])  # the coefficient of b changes sign
    one = only(hm.read(own, SCHEMA), hm.read(turned, SCHEMA))
    assert (one.coefficients, one.significant, one.same_sign) == (4, 1, 1)
