"""Comparison figures on tables small enough to count by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InputError, SchemaError

SCHEMA = {
    "age": {"role": "quasi", "hierarchy": {"tree": {"young": ["21", "22"], "old": ["71", "72"]}}},
    "sex": "quasi",
    "disease": "sensitive",
}


def original():
    rows = {
        "age": ["21", "22", "71", "72"],
        "sex": ["f", "f", "m", "m"],
        "disease": ["flu", "flu", "cold", "gout"],
    }
    return hm.read(pa.table(rows), schema=SCHEMA)


def published(age, sex, disease):
    return hm.read(pa.table({"age": age, "sex": sex, "disease": disease}), schema={})


def test_one_level_up_in_one_column():
    release = published(
        ["young", "young", "old", "old"], ["f", "f", "m", "m"], ["flu", "flu", "cold", "gout"]
    )
    found = hm.compare(original(), release)
    age, sex = found.generalized
    # D = 4, every label covers 2 leaves: (2/4 - 1/4) / (1 - 1/4) = 1/3.
    assert age.loss == pytest.approx(1 / 3)
    assert sex.loss == 0
    assert found.loss == pytest.approx((4 / 3) ** 0.5 - 1)
    assert (age.distinct, age.distinct_released) == (4, 2)
    assert (found.classes, found.classes_released) == (4, 2)
    assert (found.mean_class, found.mean_class_released) == (1, 2)
    assert found.suppressed == 0
    assert [column.distance for column in found.kept] == [0]


def test_a_row_left_out_loses_everything_and_moves_the_distribution():
    release = published(["young", "young", "72"], ["f", "f", "m"], ["flu", "flu", "gout"])
    found = hm.compare(original(), release)
    assert (found.suppressed, found.rows_released) == (1, 3)
    # Leaves covered: 2 + 2 + 1 + 4 (left out) = 9; (9/4 - 1) / 3.
    assert found.generalized[0].loss == pytest.approx(1.25 / 3)
    # Sex has D = 2; covered 1 + 1 + 1 + 2 = 5; 5/4 - 1.
    assert found.generalized[1].loss == pytest.approx(0.25)
    # Flu 2/4 to 2/3, cold 1/4 to 0, gout 1/4 to 1/3: (1/6 + 1/4 + 1/12) / 2.
    assert found.kept[0].distance == pytest.approx(0.25)


def test_a_suppressed_cell_covers_every_leaf():
    release = published(["*"] * 4, ["f", "f", "m", "m"], ["flu", "flu", "cold", "gout"])
    assert hm.compare(original(), release).generalized[0].loss == pytest.approx(1)


def test_a_release_says_the_same_loss_as_its_comparison():
    table = original()
    release = hm.anonymize(table, hm.KAnonymity(2))
    assert hm.compare(table, release).loss == pytest.approx(release.loss)


def test_foreign_labels_are_refused_without_showing_them():
    release = published(["canary", "21"], ["f", "m"], ["flu", "flu"])
    with pytest.raises(InputError, match="'age': 1 distinct") as caught:
        hm.compare(original(), release)
    assert "canary" not in str(caught.value)


def test_a_column_that_is_not_there_is_named():
    release = hm.read(pa.table({"age": ["21"]}), schema={})
    with pytest.raises(SchemaError, match="'sex'"):
        hm.compare(original(), release)


def test_more_rows_than_the_original_are_no_release_of_it():
    release = published(["21"] * 5, ["f"] * 5, ["flu"] * 5)
    with pytest.raises(InputError, match="5 rows"):
        hm.compare(original(), release)
