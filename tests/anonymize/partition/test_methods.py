"""Every partition method keeps every demand; what the thesis says of each of them."""

from __future__ import annotations

import importlib.util
import math
import re
from collections import Counter, defaultdict
from dataclasses import replace
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.anonymize.partition.run import DIVISIONS
from halfmask.errors import (
    InfeasibleDemandsError,
    ParameterError,
    UnsatisfiableError,
)
from halfmask.kernels.partition import construction
from halfmask.kernels.partition.construction import Demands
from halfmask.metrics.space import space_of

spec = importlib.util.spec_from_file_location("brute", Path(__file__).with_name("brute.py"))
brute = importlib.util.module_from_spec(spec)
spec.loader.exec_module(brute)
line, violations = brute.line, brute.violations

HEURISTICS = ("mondrian", "mdav", "k-member", "personal")
OWN = hm.PersonalKAnonymity()


@st.composite
def tables(draw) -> hm.Table:
    n = draw(st.integers(1, 24))
    rows = {
        "x": draw(st.lists(st.one_of(st.none(), st.integers(0, 9)), min_size=n, max_size=n)),
        "c": draw(st.lists(st.sampled_from(["a", "b", "c", None]), min_size=n, max_size=n)),
        "s": draw(st.lists(st.sampled_from("uvw"), min_size=n, max_size=n)),
        "k_i": draw(st.lists(st.integers(1, min(n, 6)), min_size=n, max_size=n)),
    }
    # Whether an l can be met is decided by what the others hold.
    others = [len({*rows["s"][:i], *rows["s"][i + 1 :]}) for i in range(n)]
    rows["l_i"] = [draw(st.integers(1, max(1, min(2, values)))) for values in others]
    rows["t_i"] = draw(st.lists(st.sampled_from([0.3, 0.5, 1.0]), min_size=n, max_size=n))
    rows["tag"] = list(range(n))
    schema = hm.Schema(
        {"x": "quasi", "c": "quasi", "s": "sensitive", "tag": "other"},
        policy={"k": "k_i", "l": "l_i", "t": "t_i"},
    )
    kinds = {"x": pa.int64(), "c": pa.string()}
    return hm.Table(pa.table({n: pa.array(v, kinds.get(n)) for n, v in rows.items()}), schema)


def only_k(table):
    """The table whose people state no l and no t."""
    rows = table.arrow.drop_columns(["l_i", "t_i"])
    return hm.Table(rows, replace(table.schema, policy={"k": "k_i"}))


def test_exact_keeps_the_l_and_t_that_people_state():
    rows = pa.table({"x": [1, 1, 2, 2], "s": list("uuvv"), "l_i": [2, 1, 1, 2]})
    schema = hm.Schema({"x": "quasi", "s": "sensitive"}, policy={"l": "l_i"})
    release = hm.anonymize(hm.Table(rows, schema), hm.KAnonymity(2), method="exact")
    # Each pair alone holds one value; only all four together hold two.
    assert release.classes.count == 1
    assert release.gap == 0.0


@pytest.mark.parametrize("method", DIVISIONS)
@given(table=tables())
@settings(max_examples=examples(30))
def test_everybody_stands_among_as_many_as_they_ask_for(method, table):
    if method == "exact":
        table = only_k(table)  # else twice as many demands in a fifth of a second
    release = hm.anonymize(table, OWN, method=method, seed=1, time_limit=0.2)
    assert release.rows == len(table)
    assert violations(table, release, ["x", "c"], "k_i") == 0


@pytest.mark.parametrize("method", HEURISTICS)
@given(table=tables())
@settings(max_examples=examples(25))
def test_personal_l_and_t_are_kept_too(method, table):
    models = (OWN, hm.PersonalLDiversity("s"), hm.PersonalTCloseness("s"))
    release = hm.anonymize(table, *models, method=method, seed=1)
    rows = release.to_arrow().to_pylist()
    asked = {row["tag"]: row for row in table.arrow.to_pylist()}
    total = Counter(row["s"] for row in rows)
    groups = defaultdict(list)
    for row in rows:
        groups[row["x"], row["c"]].append(row)
    for group in groups.values():
        inside = Counter(row["s"] for row in group)
        apart = sum(abs(inside[s] / len(group) - total[s] / len(rows)) for s in total) / 2
        for row in group:
            own = asked[row["tag"]]
            assert len(group) >= own["k_i"]
            assert len(inside) >= own["l_i"]
            assert apart <= own["t_i"] + 1e-9


@pytest.mark.parametrize("method", HEURISTICS)
def test_labels_cover_what_they_stand_for(method):
    rng = np.random.default_rng(0)
    table = line(rng.integers(0, 100, 60).tolist(), rng.integers(2, 5, 60).tolist())
    table = hm.Table(
        table.arrow.append_column("seen", table.arrow["x"]),
        replace(table.schema, columns={**table.schema.columns, "seen": hm.Column("other")}),
    )
    for row in hm.anonymize(table, OWN, method=method, seed=0).to_arrow().to_pylist():
        low, high = re.fullmatch(r"(-?\d+)(?: to |-)?(-?\d+)?", row["x"]).groups()
        assert int(low) <= row["seen"] <= int(high or low)


@pytest.mark.parametrize("method", HEURISTICS)
def test_a_constant_demand_is_plain_k_anonymity(method):
    rng = np.random.default_rng(5)
    xs = rng.integers(0, 500, 120).tolist()
    table = line(xs, [7] * 120)
    own = hm.anonymize(table, OWN, method=method, seed=3)
    plain = hm.anonymize(table, hm.KAnonymity(7), method=method, seed=3)
    counts = [Counter(r.to_arrow()["x"].to_pylist()) for r in (own, plain)]
    assert counts[0] == counts[1]


@pytest.mark.parametrize("method", DIVISIONS)
def test_a_remote_row_that_asks_for_all_gets_all(method):
    release = hm.anonymize(line([0, 0, 1, 100], [2, 2, 2, 4]), OWN, method=method, seed=0)
    assert set(release.to_arrow()["x"].to_pylist()) == {"0-109"}


@pytest.mark.parametrize("method", HEURISTICS)
def test_the_same_seed_gives_the_same_classes(method):
    rng = np.random.default_rng(7)
    table = line(rng.integers(0, 90, 50).tolist(), rng.integers(2, 5, 50).tolist())
    found = [
        Counter(hm.anonymize(table, OWN, method=method, seed=11).to_arrow()["x"].to_pylist())
        for _ in range(2)
    ]
    assert found[0] == found[1]


def test_the_improved_score_passes_over_a_near_row_that_demands_much():
    # The class {0} with k 2: one candidate at distance 1 asks for 7, one at distance 2 asks for 2.
    points = space_of(line([0, 1, -2], [2, 7, 2])).points
    none = np.zeros((3, 0))
    demands = Demands(
        np.array([2, 7, 2]), none.astype(np.int32), none.astype(np.int64), none, np.zeros((0, 1))
    )
    picked = []
    for improved in (False, True):
        reach, known = np.array([0.0, 1.0, 2.0]), np.ones(3, np.int64)
        empty = np.zeros(0, np.int64)
        variety = construction.Variety(np.zeros((0, 1), np.int64), empty, empty)
        grown = construction.GrowingClass(np.array([0]), reach, known, variety)
        free = construction.FreeRows(np.array([1, 2]), np.array([-1, 0, 1]))
        stage = construction.GrowthStage(0, 1, 2, 0.0, full=False, improved=improved)
        row, _ = construction._best(points, demands, free, 2, grown, stage, empty, 0.0)
        picked.append(row)
    assert picked == [1, 2]  # 2 * 1 < 2 * 2, but 7 * 1 > 2 * 2


def test_more_than_the_table_holds_is_refused_and_the_rest_can_be_released():
    table = line([1, 2, 3, 4, 5], [2, 2, 6, 2, 5])
    with pytest.raises(InfeasibleDemandsError, match=r"'k_i'.*rows 2, 4, counted from 0") as caught:
        hm.anonymize(table, OWN)
    assert (caught.value.rows, caught.value.feasible) == ((2, 4), 3)
    release = hm.anonymize(table, OWN, on_infeasible="suppress")
    assert (release.rows, release.suppressed) == (3, 2)
    assert any("left out knowingly" in note for note in release.notes)


def test_nobody_can_be_served():
    with pytest.raises(InfeasibleDemandsError):
        hm.anonymize(line([1, 2], [3, 3]), OWN, on_infeasible="suppress")
    with pytest.raises(UnsatisfiableError, match="one class"):
        hm.anonymize(line([1, 2, 3], [1, 1, 1]), hm.KAnonymity(4), method="mondrian")


@given(st.lists(st.tuples(st.integers(0, 60), st.integers(2, 5)), min_size=5, max_size=25))
@settings(max_examples=examples(50))
def test_the_fallback_never_loses_more_than_one_k_for_all(rows):
    table = line([x for x, _ in rows] + [61], [k for _, k in rows] + [2])
    highest = max(k for _, k in rows)
    for method in ("k-member", "mondrian"):
        own = hm.anonymize(table, OWN, method=method, seed=1, fallback="uniform")
        one = hm.anonymize(table, hm.KAnonymity(highest), method=method, seed=1)
        assert own.parameters["value"] <= one.parameters["value"] + 1e-9


def test_labels_of_hierarchies_on_request():
    intervals = hm.hierarchies.Intervals([10, 20])
    rows = pa.table({"age": [11, 14, 29, 35, 38], "k_i": [2, 2, 2, 2, 2]})
    schema = hm.Schema({"age": hm.Column("quasi", hierarchy=intervals)}, policy={"k": "k_i"})
    release = hm.anonymize(hm.Table(rows, schema), OWN, labels="levels", method="exact")
    assert Counter(release.to_arrow()["age"].to_pylist()) == {"10-19": 2, "20-39": 3}


def test_people_are_counted_once_even_if_they_have_several_rows():
    rows = pa.table({"who": [1, 1, 2, 2, 3, 3], "x": [0, 0, 1, 1, 9, 9], "k_i": [2] * 6})
    schema = hm.Schema({"x": "quasi"}, person="who", policy={"k": "k_i"})
    release = hm.anonymize(hm.Table(rows, schema), OWN)
    assert release.verdicts[0].achieved >= 2


def test_options_and_models_that_do_not_fit_are_refused():
    table = line([1, 2, 3, 4], [2, 2, 2, 2])
    with pytest.raises(ParameterError, match="score"):
        hm.anonymize(table, OWN, method="mdav", score="plain")
    with pytest.raises(ParameterError, match="labels"):
        hm.anonymize(table, hm.KAnonymity(2), method="optimal", labels="tight")
    with pytest.raises(ParameterError, match="score"):
        hm.anonymize(table, OWN, method="k-member", score="best")
    with pytest.raises(ParameterError, match="metric"):
        hm.anonymize(table, OWN, method="mdav", metric="wcsd")
    with pytest.raises(ParameterError, match="models"):
        hm.anonymize(table, hm.AverageRisk(0.5), method="mdav")


def test_large_tables_are_divided_block_by_block(monkeypatch):
    from halfmask.anonymize.partition import methods

    monkeypatch.setattr(methods.blockwise, "__defaults__", (40,))
    rng = np.random.default_rng(1)
    table = line(rng.integers(0, 1000, 200).tolist(), rng.integers(2, 5, 200).tolist())
    for method in ("mdav", "k-member"):
        release = hm.anonymize(table, OWN, method=method, seed=1)
        assert any("blocks" in note for note in release.notes)


@pytest.mark.parametrize(("deadline", "left"), [(None, True), (math.inf, False)])
def test_with_a_time_limit_no_row_is_left_over_by_its_block(deadline, left):
    """Among the classes of a wide table they took seconds after the limit."""
    from halfmask.anonymize.partition import methods
    from halfmask.anonymize.partition.task import task_of

    rng = np.random.default_rng(1)
    table = line(rng.integers(0, 1000, 200).tolist(), [3] * 200)
    task = task_of(table, [OWN], seed=1, deadline=deadline)
    ids, notes = methods.blockwise(task, methods._k_member, 50)
    assert notes
    assert (ids < 0).any() == left
    rows = np.bincount(ids[ids >= 0])
    assert rows.min() >= 3


def test_a_default_speaks_for_everybody_and_a_refusal_keeps_it_to_itself():
    table = hm.Table(pa.table({"x": [1, 1, 2, 2]}), hm.Schema({"x": "quasi"}))
    assert hm.anonymize(table, hm.PersonalKAnonymity(default=2)).rows == 4
    with pytest.raises(InfeasibleDemandsError, match="4 of 4 people") as caught:
        hm.anonymize(table, hm.PersonalKAnonymity(default=98765))
    assert "98765" not in str(caught.value)
