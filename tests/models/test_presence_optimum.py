"""The delta-presence optimum on Adult, by going through all combinations of levels.

Two readings of "failing classes are suppressed" give two optima: see
docs/definitions/delta_presence.md. Nothing of halfmask is used.
"""

from __future__ import annotations

import csv
import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from effort import THOROUGH

DATA = next(
    (up / "shared/data/arx" for up in Path(__file__).resolve().parents if (up / "shared").is_dir()),
    Path("shared/data/arx"),
)
COLUMNS = (
    "sex", "age", "race", "marital-status", "education", "native-country", "workclass",
    "salary-class",
)  # fmt: skip

pytestmark = [
    pytest.mark.slow,
    pytest.mark.skipif(
        not (DATA / "adult_subset.csv").is_file(), reason="the Adult table of ARX is not here"
    ),
    pytest.mark.skipif(not THOROUGH, reason="nothing of halfmask is used: make thorough runs it"),
]


def read(name):
    with (DATA / name).open(encoding="utf-8") as file:
        return Counter(
            tuple(row[c] for c in COLUMNS) for row in csv.DictReader(file, delimiter=";")
        )


def levels_of(tuples):
    """Per column and level, the code of each tuple and how many codes there are."""
    out = []
    for place, name in enumerate(COLUMNS):
        with (DATA / f"adult_hierarchy_{name}.csv").open(encoding="utf-8") as file:
            labels = {row[0]: row for row in csv.reader(file, delimiter=";")}
        depth = len(next(iter(labels.values())))
        codes = [
            np.unique([labels[one[place]][level] for one in tuples], return_inverse=True)[1]
            for level in range(depth)
        ]
        out.append([(code.astype(np.int64), int(code.max()) + 1) for code in codes])
    return out


def test_both_optima_of_the_average_class_size():
    table, everybody = read("adult_subset.csv"), read("adult.csv")
    tuples = sorted(everybody)
    inside = np.array([table[one] for one in tuples])
    outside = np.array([everybody[one] for one in tuples])
    rows = int(inside.sum())
    assert (rows, int(outside.sum())) == (3016, 30162)
    checked, unchecked = [], []
    maps = levels_of(tuples)
    for node in itertools.product(*(range(len(levels)) for levels in maps)):
        key = np.zeros(len(tuples), dtype=np.int64)
        for levels, level in zip(maps, node, strict=True):
            key = key * levels[level][1] + levels[level][0]
        places = np.unique(key, return_inverse=True)[1]
        a = np.bincount(places, weights=inside).astype(np.int64)
        b = np.bincount(places, weights=outside).astype(np.int64)
        passing = (20 * a >= b) & (20 * a <= 3 * b)  # 0.05 <= a / b <= 0.15
        kept = int(np.count_nonzero(passing & (a > 0)))
        lost = int(a[~passing].sum())
        if passing.all():
            checked.append((rows / kept, kept, lost))
        if kept and 20 * lost <= rows and passing[a == 0].all():
            gone = int(b[~passing].sum())
            unchecked.append((rows / (kept + (lost > 0)), kept, lost, gone))
    assert min(checked) == (pytest.approx(150.8), 20, 0)
    assert min(unchecked) == (pytest.approx(3016 / 31), 30, 14, 102)
