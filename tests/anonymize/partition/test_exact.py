"""Proven optima against exhaustive search and the worked examples."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.anonymize.partition.run import METHODS
from halfmask.errors import ParameterError

spec = importlib.util.spec_from_file_location("brute", Path(__file__).with_name("brute.py"))
brute = importlib.util.module_from_spec(spec)
spec.loader.exec_module(brute)
best, line, value = brute.best, brute.line, brute.value
partitions, valid = brute.partitions, brute.valid

OWN = hm.PersonalKAnonymity()
CASES = {
    "first": ([0, 1, 2, 10, 11, 12, 20, 30], [2, 2, 3, 2, 2, 2, 3, 2], (62, 41, 18, 8)),
    "second": ([1, 2, 4, 7, 11, 16, 22, 29], [2, 2, 2, 3, 2, 2, 3, 2], (62, 41, 13, 5)),
    "third": ([0, 1, 5, 6, 20], [2, 2, 2, 2, 3], (47, 31, 15, 4)),
}


def solved(table: hm.Table, metric: str, **options: object) -> hm.Release:
    return hm.anonymize(table, OWN, method="exact", metric=metric, **options)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("metric", METHODS["exact"].metrics)
def test_worked_examples(case, metric):
    xs, ks, wanted = CASES[case]
    release = solved(line(xs, ks), metric)
    found = dict(zip(("dbil", "wcsd", "diameter", "split"), wanted, strict=True))[metric]
    assert release.parameters["value"] == pytest.approx(found)
    assert release.gap == 0.0


def test_the_most_classes_are_not_the_least_loss():
    release = solved(line([0, 0, 0, 100, 100, 100], [2] * 6), "dbil")
    assert release.parameters["value"] == 0
    assert release.classes.count == 2


def test_the_case_that_the_printed_bound_cuts_off():
    xs, ys = [0, 4, 1, 5], [3, 1, 1, 0]
    rows = pa.table({"x": xs, "y": ys, "k_i": [3, 2, 3, 2]})
    schema = hm.Schema(
        {"x": hm.Column("quasi", weight=5.0), "y": hm.Column("quasi", weight=3.0)},
        policy={"k": "k_i"},
    )
    release = solved(hm.Table(rows, schema), "dbil")
    assert release.parameters["value"] == pytest.approx(32)
    assert release.gap == 0.0


@pytest.mark.parametrize("metric", METHODS["exact"].metrics)
@given(
    rows=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 4)), min_size=4, max_size=7),
)
@settings(max_examples=40)
def test_the_optimum_is_that_of_exhaustive_search(metric, rows):
    xs, ks = [x for x, _ in rows] + [21], [k for _, k in rows] + [2]
    far = np.abs(np.subtract.outer(xs, xs)).astype(float)
    release = solved(line(xs, ks), metric)
    assert release.parameters["value"] == pytest.approx(best(far, ks, metric))
    assert release.gap == 0.0


def test_the_brute_force_lists_every_partition_once():
    listed = [tuple(ids) for ids in partitions(6) if valid(ids, [2] * 6)]
    assert len(listed) == len(set(listed)) == 41
    assert value(np.ones((6, 6)), list(listed[0]), "dbil") == 6


def test_forty_adults_are_proven(thesis_adult):
    rng = np.random.default_rng(3)
    rows = rng.choice(len(thesis_adult), 40, replace=False)
    part = hm.Table(thesis_adult.arrow.take(pa.array(rows)), thesis_adult.schema)
    table = hm.policies.generate(part, (0, 20, 80), k=(2, 3, 3), seed=0)
    release = solved(table, "dbil", time_limit=60)
    assert release.gap == 0.0
    greedy = hm.anonymize(table, OWN, method="k-member", metric="dbil", seed=0)
    assert release.parameters["value"] <= greedy.parameters["value"] + 1e-9


def test_a_larger_table_is_cut_first_and_says_so(thesis_adult):
    rng = np.random.default_rng(4)
    rows = rng.choice(len(thesis_adult), 150, replace=False)
    part = hm.Table(thesis_adult.arrow.take(pa.array(rows)), thesis_adult.schema)
    table = hm.policies.generate(part, (0, 20, 80), k=(2, 3, 3), seed=0)
    release = solved(table, "dbil", block=20, time_limit=60)
    assert release.gap is None
    assert any("blocks" in note for note in release.notes)
    heuristic = hm.anonymize(table, OWN, method="personal", metric="dbil")
    assert release.parameters["value"] < heuristic.parameters["value"]


@given(
    ids=st.lists(st.integers(0, 12), min_size=41, max_size=60),
    first=st.sampled_from([10, 20]),
)
@settings(max_examples=30)
def test_blocks_hold_whole_classes(ids, first):
    from halfmask.anonymize.partition.exact import _blocks
    from halfmask.anonymize.partition.methods import number_classes
    from halfmask.anonymize.partition.task import task_of

    given_ids = number_classes(np.array(ids))
    task = task_of(line(list(range(len(ids))), [2] * len(ids)), [OWN])
    blocks = _blocks(task, given_ids, 20, first)
    assert sorted(np.concatenate(blocks).tolist()) == list(range(len(ids)))
    homes = [set(given_ids[rows].tolist()) for rows in blocks]
    assert sum(map(len, homes)) == len(np.unique(given_ids))
    assert all(len(rows) <= 20 or len(home) == 1 for rows, home in zip(blocks, homes, strict=True))


def test_time_is_up_at_once_and_the_gap_is_honest(thesis_adult):
    part = hm.Table(thesis_adult.arrow.slice(0, 100), thesis_adult.schema)
    table = hm.policies.generate(part, "online", k=(4, 6, 8), seed=0)
    release = solved(table, "dbil", time_limit=0.01)
    assert release.gap > 0
    assert any("may be lower" in note for note in release.notes)


def test_at_least_so_many_classes_can_be_asked_for_with_the_split():
    table = line([0, 1, 2, 10, 11, 12, 20, 30], [2, 2, 3, 2, 2, 2, 3, 2])
    assert solved(table, "split").classes.count >= 2
    three = solved(table, "split", classes=3)
    assert three.classes.count == 3
    assert three.parameters["value"] == pytest.approx(1)


def test_sensitive_columns_are_refused():
    rows = pa.table({"x": [1, 2], "s": ["a", "b"]})
    table = hm.Table(rows, hm.Schema({"x": "quasi", "s": "sensitive"}))
    with pytest.raises(ParameterError, match="exact"):
        hm.anonymize(table, hm.KAnonymity(2), hm.LDiversity(2, "s"), method="exact")
