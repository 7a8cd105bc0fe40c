"""The patients of the thesis (Table 2.1): what k, l and t say of its 3-anonymous table."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm

ROWS = [
    ("236**", "2*", "Hypertension"),
    ("236**", "2*", "Hypertension"),
    ("236**", "2*", "Hypertension"),
    ("2390*", ">=40", "Arrhythmia"),
    ("2390*", ">=40", "Hypertension"),
    ("2390*", ">=40", "Atherosclerosis"),
    ("236**", "3*", "Hypertension"),
    ("236**", "3*", "Cancer"),
    ("236**", "3*", "Cancer"),
]


@pytest.fixture
def patients():
    zips, ages, diagnoses = zip(*ROWS, strict=True)
    table = pa.table({"zip": zips, "age": ages, "diagnosis": diagnoses})
    return hm.read(table, {"zip": "quasi", "age": "quasi", "diagnosis": "sensitive"})


def test_the_table_is_3_anonymous_and_no_more(patients):
    (verdict,) = hm.check(patients, hm.KAnonymity(3))
    assert verdict.holds
    assert verdict.achieved == 3


def test_one_class_is_homogeneous(patients):
    (distinct,) = hm.check(patients, hm.LDiversity(2, "diagnosis"))
    assert not distinct.holds
    assert distinct.achieved == 1
    assert distinct.failing_classes == 1
    # effective l of the classes: 1, 3 and exp(0.636514) = 1.8899
    for wanted, failing in ((1.88, 1), (1.9, 2), (3.01, 3)):
        (entropy,) = hm.check(patients, hm.LDiversity(wanted, "diagnosis", kind="entropy"))
        assert entropy.failing_classes == failing


def test_recursive_diversity_fails_in_the_homogeneous_class_and_where_one_value_is_frequent(
    patients,
):
    for c, failing in ((2, 2), (2.01, 1), (100, 1)):  # the class of two and one needs c above 2
        model = hm.LDiversity(2, "diagnosis", kind="recursive", c=c)
        assert hm.check(patients, model)[0].failing_classes == failing


def test_every_class_is_four_ninths_away(patients):
    (verdict,) = hm.check(patients, hm.TCloseness(0.5, "diagnosis"))
    assert verdict.achieved == pytest.approx(4 / 9)
    assert not hm.check(patients, hm.TCloseness(0.44, "diagnosis"))[0].holds
