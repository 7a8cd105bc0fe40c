"""Khiops as oracle: its grids cost the same here, and the search finds nothing worse."""

from __future__ import annotations

import math

import numpy as np
import pytest
from effort import THOROUGH

from halfmask.coclustering.observations import Variable, observe
from halfmask.coclustering.optimize import optimize_grid

pytest.importorskip("khiops", reason="the extra khiops is not installed")

from halfmask.coclustering import khiops
from halfmask.coclustering.criterion import GridCriterion


@pytest.fixture
def printed(monkeypatch):
    """What Khiops printed in its last report."""
    reports = []
    read = khiops.read_report

    def spy(observed, report):
        reports.append(report["coclusteringReport"]["summary"])
        return read(observed, report)

    monkeypatch.setattr(khiops, "read_report", spy)
    return reports


def as_printed(cost):
    """Equal to six decimals, or to the ten digits that Khiops prints where they are fewer."""
    return pytest.approx(
        cost, rel=0, abs=max(1e-6, 0.51 * 10.0 ** (math.floor(math.log10(cost)) - 9))
    )


def mixed(random, rows):
    """A table with structure: two categorical variables and a number that depend on a third."""
    hidden = random.integers(0, 3, rows)
    a = (hidden * 4 + random.integers(0, 5, rows)) % 12
    b = (hidden * 3 + random.integers(0, 4, rows)) % 9
    x = np.unique((hidden * 20 + random.normal(0, 6, rows)).round(1), return_inverse=True)[1]
    return a, b, x


@pytest.mark.parametrize(
    ("rows", "dims"), [(400, 2), (3000, 3), *([(3000, 2), (400, 3)] if THOROUGH else [])]
)
def test_grids_of_khiops_cost_what_khiops_prints(rows, dims, printed):
    a, b, x = (c.astype(np.int32) for c in mixed(np.random.default_rng(rows), rows))
    kinds = ("categorical", "categorical", "numeric")
    sides = [
        Variable(name, kind, int(codes.max()) + 1)
        for name, kind, codes in zip("abx", kinds, (a, b, x), strict=True)
    ]
    observed = observe(sides[:dims], [a, b, x][:dims])
    theirs = khiops.khiops_cocluster(observed)
    assert theirs.informative
    assert theirs.cost == as_printed(printed[0]["cost"])
    assert theirs.null_cost == as_printed(printed[0]["nullCost"])
    assert optimize_grid(observed, criterion="khiops11").cost <= theirs.cost + 1e-6


def test_melted_iris_to_six_decimals(melted, printed):
    theirs = khiops.khiops_cocluster(melted.observations)
    assert printed[0]["cost"] == 5647.855077
    assert theirs.cost == pytest.approx(5647.855077, abs=1e-6)


def test_a_histogram_with_weights(iris, printed):
    names = ("species", "petal_width")
    sides = [
        Variable("species", "categorical", 3),
        Variable("petal_width", "numeric", len(iris.encode("petal_width").values)),
    ]
    codes = [iris.encode(name).codes for name in names]
    observed = observe(sides, codes, np.full(150, 3))
    theirs = khiops.khiops_cocluster(observed)
    assert theirs.total == 450
    assert theirs.cost == pytest.approx(printed[0]["cost"], abs=1e-6)


def test_no_structure_is_the_null_grid():
    random = np.random.default_rng(0)
    sides = [Variable("a", "categorical", 8), Variable("b", "categorical", 8)]
    observed = observe(sides, list(random.integers(0, 8, (2, 2000)).astype(np.int32)))
    theirs = khiops.khiops_cocluster(observed)
    assert theirs.parts == (1, 1)
    assert theirs.cost == GridCriterion(observed, "khiops11").null()


def test_sparse_tables_cost_no_more_than_with_khiops():
    """100 x 100 values and 800 observations: merges from single values alone find nothing here."""
    for seed in (4, 6) if THOROUGH else (4,):
        random = np.random.default_rng(seed)
        groups = [random.integers(0, 4, 100) for _ in range(2)]
        cell = random.choice(16, 800, p=random.dirichlet(np.full(16, 0.3)))
        sides = [
            np.array([random.choice(np.flatnonzero(of == g)) for g in wanted], dtype=np.int32)
            for of, wanted in zip(groups, (cell // 4, cell % 4), strict=True)
        ]
        variables = [Variable(name, "categorical", 100) for name in "ab"]
        observed = observe(variables, sides)
        theirs = khiops.khiops_cocluster(observed)
        assert optimize_grid(observed, criterion="khiops11").cost <= theirs.cost + 1e-6
