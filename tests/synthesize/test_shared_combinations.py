"""Combinations that leave a co-clustering: k people share them, or nobody's absence tells."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.coclustering.generate import BlockGenerator
from halfmask.errors import InternalError, ParameterError, UnsatisfiableError
from halfmask.release.doors import synthetic
from halfmask.release.doors.synthetic import require_shared_together
from halfmask.synthesize.shared_combinations import redraw_rare, shared_combinations
from halfmask.synthesize.shared_parts import shared_parts


def two_kinds(planted):
    """900 people in two kinds whose jobs never cross, but for ``planted`` smiths in the north."""
    random = np.random.default_rng(5)
    kind = np.repeat([0, 1], 450)
    rows = {
        "region": np.where(kind == 0, "north", "south"),
        "job": np.where(kind == 0, "cook", "smith"),
        "sport": np.array(["chess", "rowing"])[(kind + (random.random(900) < 0.2)) % 2],
        "income": 20_000 + 15_000 * kind + random.integers(0, 20_000, 900),
    }
    rows["job"][:planted] = "smith"
    table = pa.table({name: pa.array(values) for name, values in rows.items()})
    return hm.read(table, dict.fromkeys(rows, "quasi"))


def held_by(table, names, row):
    """How many people hold the values of a row, one by one."""
    columns = [table.arrow[name].to_pylist() for name in names]
    return sum(all(column[i] == row[n] for column, n in zip(columns, names, strict=True))
               for i in range(len(table)))  # fmt: skip


@pytest.mark.parametrize("planted", [0, 1, 29])
def test_nobodys_and_few_peoples_combinations_are_alike(planted, monkeypatch):
    monkeypatch.setattr(synthetic, "measure_synthetic", lambda *_, **__: {"likeness": {}})
    table = two_kinds(planted)
    release = hm.synthesize(table, method="cocluster", k=30, seed=1, rows=3000, combinations=2)
    rows = release.to_arrow()
    seen = {(row["region"], row["job"]) for row in rows.select(["region", "job"]).to_pylist()}
    assert seen == {("north", "cook"), ("south", "smith")}
    names = ["region", "job", "sport"]
    for a, b in combinations(names, 2):
        for row in rows.select([a, b]).group_by([a, b]).aggregate([]).to_pylist():
            assert held_by(table, (a, b), row) >= 30
    assert any("held together by at least 30 people" in one for one in release.statement["claimed"])


def test_a_combination_that_k_people_hold_is_drawn(monkeypatch):
    monkeypatch.setattr(synthetic, "measure_synthetic", lambda *_, **__: {"likeness": {}})
    how = {"k": 30, "seed": 1, "rows": 3000, "combinations": 2}
    rows = hm.synthesize(two_kinds(60), method="cocluster", **how).to_arrow()
    seen = {(row["region"], row["job"]) for row in rows.select(["region", "job"]).to_pylist()}
    assert ("north", "smith") in seen


def parts_of(table, k):
    return [shared_parts(table, name, k, None) for name in table.arrow.column_names]


def test_counts_agree_with_counting_by_hand():
    random = np.random.default_rng(0)
    codes = {name: random.integers(0, 4, 300) for name in "abc"}
    table = hm.read(
        pa.table({n: pa.array([f"{n}{v}" for v in c]) for n, c in codes.items()}),
        dict.fromkeys("abc", "quasi"),
    )
    owner = np.arange(300, dtype=np.int32) // 2  # two rows a person
    for whose in (None, owner):
        for size in (2, 3):
            columns = parts_of(table, 2)
            found = shared_combinations(columns, size, 4, whose)
            faults = found.rare(np.column_stack([c.codes for c in columns]))
            for row in range(0, 300, 17):
                rare = dict.fromkeys("abc", 0)
                for chosen in combinations("abc", size):
                    same = np.all([codes[n] == codes[n][row] for n in chosen], axis=0)
                    people = len(set((np.arange(300) if whose is None else whose)[same]))
                    for name in chosen:
                        rare[name] += people < 4
                assert faults[row].tolist() == list(rare.values())


def test_where_no_row_is_right_the_draw_refuses():
    table = hm.read(pa.table({"a": ["x", "y"] * 20, "b": ["u", "u", "v", "v"] * 10}),
                    {"a": "quasi", "b": "quasi"})  # fmt: skip
    columns = parts_of(table, 20)
    shared = shared_combinations(columns, 2, 11, None)  # each pair is held by 10
    model = BlockGenerator(np.array([40]), (np.full((1, 2), 0.5), np.full((1, 2), 0.5)))
    rows, groups = model.draw_in_groups(50, np.random.default_rng(0))
    with pytest.raises(UnsatisfiableError, match="combinations=1"):
        redraw_rare(rows, groups, model, shared, np.random.default_rng(0))


@pytest.mark.parametrize("kind", ["names", "numbers", "missing", "labels"])
def test_the_door_counts_for_itself(kind):
    table = two_kinds(3)
    good = table.arrow.slice(400, 5)
    cuts = {"income": [35_000.0]}
    require_shared_together(table, good, 30, columns=2, cuts=cuts)
    bad = good
    if kind == "names":
        bad = table.arrow.slice(0, 1)
    elif kind == "numbers":  # cooks earn at most 39,999; few have more than 39,900
        cuts = {"income": [39_900.0]}
        bad = good.set_column(3, "income", pa.array([39_950] * 5))
    elif kind == "missing":
        bad = good.set_column(2, "sport", pa.array([None] * 5, pa.string()))
    else:
        bad = good.set_column(3, "income", pa.array([">54000"] * 5))
    with pytest.raises(InternalError, match="combination that fewer than 30 people"):
        require_shared_together(table, bad, 30, columns=2, cuts=cuts)
    require_shared_together(table, bad, 30, columns=1, cuts=cuts)


def test_the_door_counts_people_and_not_rows():
    rows = pa.table({"who": [1] * 40 + list(range(2, 82)), "a": ["x"] * 40 + ["x", "y"] * 40,
                     "b": ["u"] * 40 + ["v", "u"] * 40})  # fmt: skip
    table = hm.read(rows, {"table": {"person": "who"}, "columns": dict.fromkeys("ab", "quasi")})
    made = pa.table({"a": ["y"], "b": ["u"]})
    require_shared_together(table, made, 20, columns=2, cuts={})
    with pytest.raises(InternalError, match="fewer than 20"):
        require_shared_together(table, pa.table({"a": ["x"], "b": ["u"]}), 20, columns=2, cuts={})


def test_what_was_not_counted_is_said(monkeypatch):
    monkeypatch.setattr(synthetic, "measure_synthetic", lambda *_, **__: {"likeness": {}})
    release = hm.synthesize(two_kinds(1), method="cocluster", k=30, seed=1, combinations=1)
    assert not any("held together" in one for one in release.statement["claimed"])
    assert any("more than 1 column" in one for one in release.statement["not_claimed"])
    release = hm.synthesize(two_kinds(1), method="cocluster", k=30, seed=1)
    assert any("every 2 columns" in one for one in release.statement["claimed"])
    assert any("more than 2 column" in one for one in release.statement["not_claimed"])


def test_what_cannot_be_counted_is_refused():
    with pytest.raises(ParameterError, match="combinations"):
        hm.synthesize(two_kinds(0), method="cocluster", k=30, combinations=0)
    wide = hm.read(pa.table({f"c{i}": ["a", "b"] * 5 for i in range(60)}))
    columns = parts_of(wide, 2)
    with pytest.raises(ParameterError, match="combinations"):
        shared_combinations(columns, 3, 2, None)
