"""Iris as UCI published it (rows 35 and 38 are 4.9, 3.1, 1.5, 0.1), whole and melted.

Fisher, 1936; UCI Machine Learning Repository, doi:10.24432/C56C76, CC BY 4.0.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

import halfmask as hm
from halfmask.coclustering.observations import Variable, observe
from halfmask.coclustering.optimize import optimize_grid
from halfmask.coclustering.prepare import melt

IRIS = Path(__file__).parent / "iris.csv"
COLUMNS = ("sepal_length", "sepal_width", "petal_length", "petal_width", "species")


@pytest.fixture(scope="session")
def iris():
    return hm.read(IRIS, dict.fromkeys(COLUMNS, "quasi"))


@pytest.fixture(scope="session")
def melted(iris):
    return melt(iris, COLUMNS, bins=3)


@pytest.fixture(scope="session")
def grid(melted):
    return optimize_grid(melted.observations)


@pytest.fixture(scope="session")
def contingency():
    """Makes observations of two categorical variables from a table of counts."""
    return _contingency


def _contingency(table):
    counts = np.array(table)
    rows, columns = np.nonzero(counts)
    return observe(
        [
            Variable("row", "categorical", counts.shape[0]),
            Variable("column", "categorical", counts.shape[1]),
        ],
        [rows.astype(np.int32), columns.astype(np.int32)],
        counts[rows, columns],
    )
