"""All measures of a release or of classes, against values worked out by hand."""

from __future__ import annotations

import math
from collections import Counter

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InputError, ParameterError, SchemaError
from halfmask.metrics import partition_measures
from halfmask.release.partition import RowPartition

AGES = [25, 32, 35, 38, 39, 44, 70, 70, 50]
LABELS = ["25-35"] * 3 + ["38-44"] * 3 + ["50-70"] * 3
IDS = [0, 0, 0, 1, 1, 1, 2, 2, 2]


def people() -> hm.Table:
    return hm.Table(pa.table({"age": AGES}), hm.Schema({"age": "quasi"}))


def trees() -> hm.Table:
    tree = hm.hierarchies.Tree(
        {"Employed": {"gov": ["state", "local"], "Private": ["private"]}, "Unpaid": {"U": ["none"]}}
    )
    rows = pa.table(
        {"age": [0, 2, 4, 10], "work": ["state", "local", "none", "none"], "sex": list("fmff")}
    )
    columns = {"age": "quasi", "work": hm.Column("quasi", hierarchy=tree), "sex": "quasi"}
    return hm.Table(rows, hm.Schema(columns))


@pytest.mark.parametrize("given", ["classes", "a release"])
def test_table_33_is_measured_as_worked_out_by_hand(given):
    release = hm.Table(pa.table({"age": LABELS}), hm.Schema({"age": "quasi"}))
    found = hm.partition_measures(people(), IDS if given == "classes" else release)
    assert (found.rows, found.deleted, found.classes, found.k) == (9, 0, 3, 3)
    assert found.dbil == pytest.approx(2.4)
    assert found.sbil == pytest.approx(2.4)
    two = math.log2(3) - 2 / 3  # of 70, 70, 50
    assert found.ebil == pytest.approx(3 * (2 * math.log2(3) + two))
    assert found.tbil == 0.0
    assert found.ctbil == 9 + 9  # no age is published, and no label was there before
    assert found.discernibility == 27
    assert found.average_class == 1.0
    squares = (158 + 62 + 800) / 3  # around the means 92/3, 121/3 and 190/3
    assert found.wcss == pytest.approx(squares / 45**2)
    assert found.wcsd == pytest.approx((20 + 12 + 40) / 45)
    assert found.diameter == pytest.approx(20 / 45)
    assert found.split == pytest.approx(3 / 45)


def test_hierarchies_count_by_their_height():
    found = hm.partition_measures(trees(), [0, 0, 1, 1])
    assert found.tbil == pytest.approx(2 * (1 / 3 + 1))  # state and local: gov, 1 of 3; f and m: *
    assert found.dbil == pytest.approx(2 * (0.2 + 1 / 3 + 1) + 2 * 0.6)
    # age and its pairs: all rows move; work, sex and both: the first class alone.
    assert found.ctbil == 2 * (3 * 4 + 3 * 2)


def test_a_deleted_row_is_charged_every_column():
    kept, found = (hm.partition_measures(trees(), ids) for ids in ([0, 0, 1, 2], [0, 0, 1, -1]))
    assert (found.rows, found.deleted, found.classes) == (3, 1, 2)
    assert found.dbil == pytest.approx(kept.dbil + 3)
    assert found.sbil == pytest.approx(kept.sbil + 3)
    assert found.tbil == pytest.approx(kept.tbil + 2)
    assert found.ctbil == kept.ctbil + 6
    assert found.discernibility == kept.discernibility - 1 + 4
    assert found.ebil == pytest.approx(kept.ebil + 2 + 1.5 + math.log2(4) - 0.75 * math.log2(3))


def random(n: int = 60) -> hm.Table:
    rng = np.random.default_rng(0)
    rows = {"age": rng.integers(0, 9, n), "work": rng.choice(["state", "local", "none"], n)}
    columns = {"age": "quasi", "work": trees().schema.columns["work"]}
    return hm.Table(pa.table(rows), hm.Schema(columns))


def test_a_release_whose_labels_do_not_overlap_tells_which_row_is_where():
    rows = pa.table({"age": ["38-44"] * 3 + ["25-35"] * 3}, schema=pa.schema({"age": pa.string()}))
    release = hm.Table(rows, hm.Schema({"age": "quasi"}))
    found = hm.partition_measures(people(), release)
    assert found == hm.partition_measures(people(), [0, 0, 0, 1, 1, 1, -1, -1, -1])
    assert (found.deleted, found.dbil) == (3, pytest.approx(3 * (10 + 6) / 45 + 3))


def test_a_full_domain_release_is_measured_as_its_classes_are():
    table = random()
    release = hm.anonymize(table, hm.KAnonymity(6), method="optimal")
    found, published = hm.partition_measures(table, release), release.to_arrow()
    groups = Counter(zip(*(published[c].to_pylist() for c in ("age", "work")), strict=True))
    assert found.classes == len(groups)
    assert found.dbil is not None
    assert found.discernibility == sum(g * g for g in groups.values())


def test_labels_alone_give_what_the_classes_give():
    table = random()
    ids = np.argsort(np.argsort(table.arrow["age"].to_numpy(), kind="stable")) // 10
    ranges = RowPartition.of(table, ids.astype(np.int32), {"age": True, "work": False})
    published = ranges.published(table, ids.astype(np.int32))
    release = hm.Table(published.take(np.argsort(published["age"].to_pylist())), table.schema)
    exact, seen = hm.partition_measures(table, ids), hm.partition_measures(table, release)
    assert seen.dbil is None
    for name in ("rows", "deleted", "classes", "k", "ctbil", "discernibility", "average_class"):
        assert getattr(seen, name) == getattr(exact, name), name
    assert seen.sbil == pytest.approx(exact.sbil)
    assert seen.tbil == pytest.approx(exact.tbil)


def test_rows_that_are_alike_in_two_classes_leave_no_split():
    table = hm.Table(pa.table({"age": [1, 1, 5]}), hm.Schema({"age": "quasi"}))
    assert hm.partition_measures(table, [0, 1, 1]).split == 0.0
    assert hm.partition_measures(table, [0, 0, 0]).split is None


def test_too_many_pairs_are_left_out(monkeypatch):
    monkeypatch.setattr(partition_measures, "_PAIRS", 8)
    found = hm.partition_measures(people(), IDS)
    assert (found.dbil, found.wcsd, found.diameter, found.split) == (None, None, None, None)
    assert found.sbil == pytest.approx(2.4)


def test_what_does_not_fit_is_refused():
    with pytest.raises(ParameterError):
        hm.partition_measures(people(), [0, 1])
    with pytest.raises(ParameterError):
        hm.partition_measures(people(), IDS, k=0)
    with pytest.raises(InputError, match="No row stays"):
        hm.partition_measures(people(), [-1] * 9)
    with pytest.raises(SchemaError, match="'age'"):
        hm.partition_measures(people(), hm.Table(pa.table({"x": IDS}), hm.Schema({"x": "quasi"})))
