"""Scores of models agree with scikit-learn, and with training them by hand."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.sides import sides
from halfmask.metrics.utility.distributions import _clusters, _separability, propensity
from halfmask.metrics.utility.prediction import _area, _r_squared, predict

metrics = pytest.importorskip("sklearn.metrics")


def test_the_area_is_that_of_scikit_learn():
    random = np.random.default_rng(0)
    truth = random.integers(0, 3, 200)
    chances = random.dirichlet([1, 1, 1], 200)
    chances[np.arange(200), truth] += 0.3
    chances /= chances.sum(axis=1, keepdims=True)
    theirs = metrics.roc_auc_score(truth, chances, multi_class="ovr", average="weighted")
    assert _area(np.arange(3), chances, truth) == pytest.approx(theirs)
    two = truth % 2
    both = np.column_stack([1 - chances[:, 1], chances[:, 1]])
    assert _area(np.arange(2), both, two) == pytest.approx(
        metrics.roc_auc_score(two, chances[:, 1])
    )


def test_r_squared_below_zero_has_an_interval_that_covers():
    random = np.random.default_rng(4)
    held = 0
    for _ in range(200):
        truth = random.normal(0, 1, 300)
        found = _r_squared(truth, random.normal(0.5, 1, 300))
        held += found.low < 1 - 2.25 < found.high  # error: 1 + 1 + 0.25, spread: 1
    assert 180 <= held <= 199


def test_r_squared_is_that_of_scikit_learn_and_its_interval_covers():
    random = np.random.default_rng(1)
    covered = 0
    for _ in range(400):
        guess = random.normal(size=300)
        truth = guess + random.normal(size=300)
        found = _r_squared(truth, guess)
        covered += found.low <= 0.5 <= found.high
    assert found.value == pytest.approx(metrics.r2_score(truth, guess))
    assert covered / 400 >= 0.94
    assert _r_squared(np.ones(5), np.ones(5)).value is None


def scene(rows=500):
    random = np.random.default_rng(2)
    a, b = random.normal(size=rows).round(2), random.choice(["u", "v"], rows)
    y = np.where(a + (b == "u") + random.normal(0, 0.5, rows) > 0.5, "yes", "no")
    n = (10 * a + 5 * (b == "u") + random.normal(0, 2, rows)).round(1)
    made = pa.table({"a": a, "b": b, "y": y, "n": n})
    schema = {"a": "quasi", "b": "quasi", "y": "sensitive", "n": "sensitive"}
    return hm.read(made, schema=schema), random


def test_a_model_trained_by_hand_has_the_same_scores():
    from sklearn.linear_model import LogisticRegression, Ridge

    table, random = scene()
    order = random.permutation(500)
    released = hm.read(table.arrow.take(order[:300]), table.schema)
    found = {p.model: p for p in predict(sides(table, released), "y", inside=400)}
    rows = table.arrow.to_pandas()

    def columns(frame):
        a = (frame["a"] - rows["a"].mean()) / rows["a"].std(ddof=0)
        n = (frame["n"] - rows["n"].mean()) / rows["n"].std(ddof=0)
        return np.column_stack([a, frame["b"] == "u", frame["b"] == "v", n])

    test, made = rows.iloc[400:], rows.iloc[order[:300]]
    for name, frame in (("original", rows.iloc[:400]), ("release", made)):
        model = LogisticRegression(max_iter=500).fit(columns(frame), frame["y"])
        right = (model.predict(columns(test)) == test["y"]).mean()
        mine = found["logistic regression"]
        assert getattr(mine, name).value == pytest.approx(right, abs=0.021)
        area = metrics.roc_auc_score(test["y"] == "yes", model.predict_proba(columns(test))[:, 1])
        assert getattr(mine, f"area_{name}") == pytest.approx(area, abs=0.01)
    common = rows["y"].iloc[:400].mode()[0]
    assert found["tree"].baseline == pytest.approx((test["y"] == common).mean())
    numbers = {p.model: p for p in predict(sides(table, released), "n", inside=400)}
    frame = rows.iloc[:400]

    def others(one):
        a = (one["a"] - rows["a"].mean()) / rows["a"].std(ddof=0)
        marks = [one["b"] == "u", one["b"] == "v", one["y"] == "yes", one["y"] == "no"]
        return np.column_stack([a, *marks])

    guess = Ridge().fit(others(frame), frame["n"]).predict(others(test))
    mine = numbers["ridge regression"]
    assert mine.original.value == pytest.approx(metrics.r2_score(test["n"], guess), abs=0.01)
    assert mine.measure == "R squared"


def test_propensity_is_the_mean_square_from_one_half():
    from sklearn.linear_model import LogisticRegression

    random = np.random.default_rng(3)
    left, right = random.normal(size=(300, 3)), random.normal(0.4, 1, (300, 3))
    value, ratio = propensity(left, right)
    x, y = np.vstack([left, right]), np.repeat([0, 1], 300)
    p = LogisticRegression().fit(x, y).predict_proba(x)[:, 1]
    pmse = ((p - 0.5) ** 2).mean()
    assert value.value == pytest.approx(pmse, rel=1e-6)
    # Snoke et al.: (k - 1) (1 - c)^2 c / N with k - 1 = 3 coefficients, c = 1/2 and N = 600.
    assert ratio == pytest.approx(pmse / (3 / 8 / 600), rel=1e-6)


def test_clusters_agree_in_full_or_by_chance():
    random = np.random.default_rng(4)
    centers = np.array([[0, 0], [20, 0], [0, 20], [20, 20], [40, 40]])
    left = centers[random.integers(0, 5, 400)] + random.normal(size=(400, 2))
    right = centers[random.integers(0, 5, 400)] + random.normal(size=(400, 2))
    assert _clusters(left, right, 0).value == pytest.approx(1, abs=1e-9)
    flat = random.normal(size=(400, 2)) * [0.01, 100]
    assert _clusters(left, flat, 0).value < 0.6


def test_telling_apart_is_about_one_half_where_both_are_alike():
    areas = []
    for seed in range(6):
        left, right = np.random.default_rng(seed).normal(size=(2, 200, 2))
        found = _separability(left, right, 0)
        assert found.high - found.value == pytest.approx(1.96 * (401 / 12 / 200**2) ** 0.5)
        areas.append(found.value)
    assert np.mean(areas) == pytest.approx(0.5, abs=0.03)
