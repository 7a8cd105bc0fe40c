"""The worked examples of the literature, each with the table that it comes from.

Source: Sondeck, "Discrimination rate: an attribute-centric metric to measure privacy", 2017,
tables 2.1 to 2.6; sums of squares are worked out by hand.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.masking.methods.anatomy import estimate_from_groups

AGE = [22, 22, 22, 45, 63, 40, 35, 35, 32]
SALARY = [4, 5, 6, 7, 12, 9, 8, 10, 11]
ILL = ["colon", "stomach", "lung", "diabetes", "diabetes", "aids", "aids", "flu", "lung"]
GROUP = np.array([0, 0, 0, 1, 1, 1, 1, 1, 0])  # rows 1, 2, 3, 9 and 4 to 8


def table(**columns):
    roles = {name: "sensitive" if name == "ill" else "quasi" for name in columns}
    return hm.read(columns, schema=roles)


def test_anatomy_estimates_counts_from_its_two_tables():
    # Table 2.5: the values of each group.
    values = [(0, "colon", 1), (0, "stomach", 1), (0, "lung", 2)]
    values += [(1, "diabetes", 2), (1, "aids", 2), (1, "flu", 1)]
    beside = pa.table([list(part) for part in zip(*values, strict=True)], ["group", "ill", "count"])
    age = np.array(AGE)

    def ask(marked):
        return estimate_from_groups(GROUP, beside, "ill", "aids", marked, "group")

    assert ask(age >= 35) == pytest.approx(2.0)
    assert ask(age == 35) == pytest.approx(0.8)


def test_top_coding_gives_two_classes():
    # Table 2.2: ages up to 32 and above it, classes of four and five.
    people = table(age=AGE)
    release = hm.mask(
        people, hm.masks.TopCode("age", value=33), hm.masks.BottomCode("age", value=32)
    )
    found = release.to_arrow()["age"].to_pylist()
    assert (found.count(32), found.count(33)) == (4, 5)


def test_microaggregation_of_one_column_is_no_worse_than_the_printed_groups():
    # Table 2.6 groups ages at a loss of 298.667 of 1424.889.
    release = hm.mask(table(age=AGE), hm.masks.Microaggregate("age", k=3))
    lost = release.steps[0]["facts"]["variance_lost"]
    # {22, 22, 22}, {32, 35, 35}, {40, 45, 63}: 0 + 6 + 292.667 = 298.667 is optimal.
    assert lost == pytest.approx(298.667 / 1424.889, abs=1e-5)
    found = sorted({round(v, 2) for v in release.to_arrow()["age"].to_pylist()})
    assert found == [22, 34, 49.33]


def test_medians_of_salaries():
    # Table 6.5: salaries 3 to 15 in the sets {3, 4, 5}, {7, 8, 9}, {11, 13, 15}.
    people = table(pay=[4, 5, 3, 13, 8, 15, 9, 7, 11])
    release = hm.mask(people, hm.masks.Microaggregate("pay", k=3, aggregate="median"))
    assert sorted(release.to_arrow()["pay"].to_pylist()) == [4, 4, 4, 8, 8, 8, 13, 13, 13]


def test_anatomy_of_the_table_itself():
    release = hm.mask(table(age=AGE, ill=ILL), hm.masks.Anatomy("ill", l=4), seed=2)
    beside = release.tables["ill"]
    assert sorted(beside["count"].to_pylist()) == [1] * 9
    marked = np.ones(9, dtype=bool)
    assert hm.masks.estimate_count(release, "ill", "aids", marked) == pytest.approx(2.0)


def test_local_suppression_of_ages():
    # Ages 63, 45, 40 stand alone and share a blank; 32 joins them, for it cannot hide elsewhere.
    release = hm.mask(table(age=AGE), hm.masks.LocalSuppression(k=2))
    found = release.to_arrow()["age"].to_pylist()
    assert sorted(v for v in found if v is not None) == [22, 22, 22, 35, 35]
    assert found.count(None) == 4
    assert release.steps[0]["facts"]["gap"] == 0.0
