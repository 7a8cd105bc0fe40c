"""Partitions through the seal: tight labels, and nothing that does not cover its value."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InternalError
from halfmask.release import Candidate, RowPartition, seal
from halfmask.release.labels import Nodes, Ranges, required_sharing

PEOPLE = pa.table(
    {
        "zip": ["14025", "14025", "14020", "14110", "14100", "14110", "14110", "14020", "14025"],
        "age": [25, 32, 35, 38, 39, 44, 70, 70, 50],
        "sex": ["F", "M", "M", "F", "M", "F", "M", "M", "F"],
        "condition": ["C", "C", "H", "C", "V", "V", "H", "V", "C"],
    }
)
SCHEMA = hm.Schema(
    {
        "zip": hm.Column("quasi", hierarchy=hm.hierarchies.Mask(5)),
        "age": hm.Column("quasi"),
        "sex": hm.Column("quasi"),
        "condition": hm.Column("sensitive"),
    }
)
ORDERED = {"zip": False, "age": True, "sex": False}
IDS = np.array([0, 0, 0, 1, 1, 1, 2, 2, 2], dtype=np.int32)


def candidate(table: hm.Table, ids: np.ndarray = IDS, **more: object) -> Candidate:
    models = (hm.KAnonymity(3),)
    made = RowPartition.of(table, ids, ORDERED, required_sharing(table, models))
    return Candidate(table=table, models=models, recoding=made, step=ids, method="test", **more)


def test_labels_are_as_tight_as_the_class_allows():
    release = seal(candidate(hm.Table(PEOPLE, SCHEMA)))
    found = {(r["zip"], r["age"], r["sex"]) for r in release.to_arrow().to_pylist()}
    # A step of 5 leaves five cells; 25, 39, 35, 44 and 50 are held by one person each.
    assert found == {("1402*", "20-49", "*"), ("141**", "30-49", "*"), ("14***", "45-74", "*")}
    assert release.verdicts[0].achieved == 3
    assert release.levels is None


def test_loss_counts_the_leaves_that_labels_cover():
    release = seal(candidate(hm.Table(PEOPLE, SCHEMA)))
    by_name = {c.name: c for c in release.columns}
    # age has 8 values; ranges cover 6, 5 and 2 of them, three rows each.
    assert by_name["age"].loss == pytest.approx((3 * (6 + 5 + 2) / 9 - 1) / 7)
    assert by_name["sex"].loss == 1.0


def test_a_column_whose_classes_agree_keeps_its_type():
    rows = pa.table({"age": [30, 30, 41, 41], "sex": ["f", "f", "m", "f"]})
    table = hm.Table(rows, hm.Schema({"age": "quasi", "sex": "quasi"}))
    ids = np.array([0, 0, 1, 1], dtype=np.int32)
    made = RowPartition.of(table, ids, {"age": True, "sex": False})
    release = seal(Candidate(table, (hm.KAnonymity(2),), made, ids))
    assert release.to_arrow()["age"].type == pa.int64()
    assert sorted(release.to_arrow()["sex"].to_pylist()) == ["*", "*", "f", "f"]


def test_a_missing_value_shares_only_the_whole_with_others():
    rows = pa.table({"age": [30, None, None, None]})
    table = hm.Table(rows, hm.Schema({"age": "quasi"}))
    ids = np.array([0, 0, 1, 1], dtype=np.int32)
    release = seal(
        Candidate(table, (hm.KAnonymity(2),), RowPartition.of(table, ids, {"age": True}), ids)
    )
    assert sorted(map(str, release.to_arrow()["age"].to_pylist())) == ["*", "*", "None", "None"]


@pytest.mark.parametrize("name", ["zip", "age", "sex"])
def test_a_label_that_does_not_cover_its_value_never_leaves(name):
    table = hm.Table(PEOPLE, SCHEMA)
    right = RowPartition.of(table, IDS, ORDERED, required_sharing(table, (hm.KAnonymity(3),)))
    labels = right.labels[name]
    if isinstance(labels, Ranges):
        wrong = Ranges(labels.low, np.maximum(labels.high - 1, labels.low))
    else:
        wrong = Nodes(np.zeros_like(labels.level), labels.value)
    bad = replace(right, labels={**right.labels, name: wrong})
    with pytest.raises(InternalError, match=r"do not cover|break"):
        seal(replace(candidate(table), recoding=bad))


def test_a_bound_that_too_few_people_hold_never_leaves():
    table = hm.Table(PEOPLE, SCHEMA)
    exact = RowPartition.of(table, IDS, ORDERED)  # without who must be hidden: 25-35
    with pytest.raises(InternalError, match="'age': 3 published labels show a value that too few"):
        seal(replace(candidate(table), recoding=exact))


@pytest.mark.parametrize("name", ["zip", "age"])
def test_a_label_of_another_class_never_leaves(name):
    table = hm.Table(PEOPLE, SCHEMA)
    right = RowPartition.of(table, IDS, ORDERED, required_sharing(table, (hm.KAnonymity(3),)))
    labels = right.labels[name]
    if isinstance(labels, Ranges):
        wrong = Ranges(np.roll(labels.low, 1), np.roll(labels.high, 1))
    else:
        wrong = Nodes(labels.level, np.roll(labels.value, 1))
    bad = replace(right, labels={**right.labels, name: wrong})
    # Told in counts: no value and no label.
    with pytest.raises(InternalError, match=rf"Column '{name}': \d published labels do not cover"):
        seal(replace(candidate(table), recoding=bad))


def test_a_class_that_is_too_small_never_leaves():
    ids = np.array([0, 0, 1, 1, 1, 1, 2, 2, 2], dtype=np.int32)
    with pytest.raises(InternalError, match="break"):
        seal(candidate(hm.Table(PEOPLE, SCHEMA), ids))


def test_ids_that_do_not_fit_never_leave():
    table = hm.Table(PEOPLE, SCHEMA)
    with pytest.raises(InternalError, match="steps"):
        seal(replace(candidate(table), step=IDS + 1))
    few = np.where(IDS == 2, -1, IDS).astype(np.int32)
    with pytest.raises(InternalError, match="more rows"):
        seal(replace(candidate(table), step=few, parameters={"suppression": 0.1}))


def test_a_partition_cannot_recode_new_rows():
    assert seal(candidate(hm.Table(PEOPLE, SCHEMA))).recoding is None


def test_the_report_of_a_partition_is_written(tmp_path):
    seal(candidate(hm.Table(PEOPLE, SCHEMA))).report(tmp_path / "r.html")
    assert "the range of each class" in (tmp_path / "r.html").read_text()
