"""Columns drawn from a model, hybrid rows, and estimates from several draws."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import InputError, PrivacyError, SchemaError, UnsatisfiableError
from halfmask.masking.methods.synthetic import bin_edges, grow_tree

M = hm.masks
COLUMNS = {"age": "quasi", "sex": "quasi", "pay": "sensitive", "job": "other"}


def workers(size=4000, seed=1):
    draw = np.random.default_rng(seed)
    age, sex = draw.integers(20, 70, size), draw.choice(["f", "m"], size)
    pay = np.exp(0.03 * age + draw.normal(0, 0.2, size) + 0.5 * (sex == "f"))
    job = np.where(pay > 8, "a", np.where(draw.random(size) < 0.3, "b", "c"))
    rows = {"age": age, "sex": sex, "pay": pay, "job": job}
    return hm.read(pa.table(rows), schema={"columns": COLUMNS})


def test_draws_keep_how_columns_go_together():
    people = workers()
    release = hm.mask(people, M.PartlySynthetic(["pay", "job"], k=20, draws=3), seed=3)
    before = np.corrcoef(people.arrow["age"], np.log(people.arrow["pay"]))[0, 1]
    tables = M.draw_tables(release)
    assert [one.column_names for one in tables] == [["age", "sex", "pay", "job"]] * 3
    for one in tables:
        pay, jobs = one["pay"].to_numpy(), np.array(one["job"].to_pylist())
        assert np.corrcoef(one["age"], np.log(pay))[0, 1] == pytest.approx(before, abs=0.03)
        assert np.mean((pay > 8) == (jobs == "a")) > 0.95  # 0.69 if they were independent
    assert not tables[0]["pay"].equals(tables[1]["pay"])


def test_the_row_a_value_came_from_plays_no_part():
    """Within people who are alike by the other columns, shown and true values go apart."""
    draw = np.random.default_rng(5)
    sex = np.repeat(["f", "m"], 3000)
    pay = np.where(sex == "f", 10.0, 20.0) + draw.normal(0, 1, 6000)
    people = hm.read(
        pa.table({"w": np.arange(6000), "sex": sex, "pay": pay}),
        schema={"w": "other", "sex": "quasi", "pay": "sensitive"},
    )
    rows = hm.mask(people, M.PartlySynthetic("pay", given="sex"), seed=2).to_arrow()
    order = np.argsort(rows["w"].to_numpy())
    shown = rows["pay"].to_numpy()[order]
    for one in ("f", "m"):
        assert abs(np.corrcoef(shown[sex == one], pay[sex == one])[0, 1]) < 0.06


def test_what_few_people_hold_is_not_drawn():
    pay = [*range(100), 5000, 6000]
    job = ["a"] * 60 + ["b"] * 39 + ["canary"] * 3
    people = hm.read(
        {"age": [i % 10 for i in range(102)], "pay": pay, "job": job},
        schema={"age": "quasi", "pay": "sensitive", "job": "sensitive"},
    )
    for seed in range(20):
        rows = hm.mask(people, M.PartlySynthetic(["pay", "job"], k=5), seed=seed).to_arrow()
        assert min(rows["pay"].to_pylist()) >= 4
        assert max(rows["pay"].to_pylist()) <= 97
        assert "canary" not in rows["job"].to_pylist()


def test_one_person_with_many_rows_is_one():
    people = hm.read(
        {"id": ["x"] * 30 + [f"p{i}" for i in range(60)], "v": [900] * 30 + list(range(60)),
         "c": ["own"] * 30 + ["a", "b"] * 30},
        schema={"table": {"person": "id"}, "columns": {"v": "quasi", "c": "sensitive"}},
    )  # fmt: skip
    rows = hm.mask(people, M.PartlySynthetic(["v", "c"], k=2, given=[]), seed=1).to_arrow()
    assert max(rows["v"].to_pylist()) <= 59
    assert "own" not in rows["c"].to_pylist()


def test_it_is_refused_where_too_few_hold_a_value():
    people = hm.read(
        {"age": [1] * 8, "ill": list("abcdefgh")}, schema={"age": "quasi", "ill": "sensitive"}
    )
    with pytest.raises(UnsatisfiableError, match=r"fewer than 3 people .* 'ill'"):
        hm.mask(people, M.PartlySynthetic("ill", k=3))
    with pytest.raises(SchemaError, match="'ill_2' already"):
        hm.mask(
            hm.read({"ill": ["a"] * 9, "ill_2": ["a"] * 9},
                    schema={"ill": "sensitive", "ill_2": "quasi"}),
            M.PartlySynthetic("ill", draws=2),
        )  # fmt: skip


def test_the_door_reads_the_draws_itself():
    people = workers(300)
    late = M.Noise("pay", level=3.0)
    with pytest.raises(PrivacyError, match="no other step"):
        hm.mask(people, M.PartlySynthetic("pay"), late, seed=1)
    with pytest.raises(InputError, match="no draws"):
        M.draw_tables(hm.mask(people, M.TopCode("age", value=60)))


def test_further_draws_of_quasi_identifiers_count_for_promises():
    """Two draws of a column tell people apart whom one does not."""
    people = hm.read(
        {"age": [i % 3 for i in range(90)], "ill": ["a", "b"] * 45},
        schema={"age": "quasi", "ill": "sensitive"},
    )
    one, many = (M.PartlySynthetic("age", k=5, draws=n) for n in (1, 9))
    assert hm.mask(people, one, models=[hm.KAnonymity(10)], seed=1).verdicts[0].holds
    with pytest.raises(UnsatisfiableError):
        hm.mask(people, many, models=[hm.KAnonymity(10)], seed=1)


def test_own_demands_are_of_the_true_values():
    """Drawing many values for a class whose people all have one does not make it diverse."""
    rows = {"sex": ["f"] * 20 + ["m"] * 20, "ill": ["a"] * 20 + ["a", "b"] * 10, "l_i": [2] * 40}
    schema = {"policy": {"l": "l_i"}, "columns": {"sex": "quasi", "ill": "sensitive"}}
    people = hm.read(rows, schema=schema)
    with pytest.raises(UnsatisfiableError, match="40 people state"):
        hm.mask(people, M.PartlySynthetic("ill", k=20, given=[]), seed=1)


def test_the_rules_for_combining():
    """By hand: m = 3, mean 10, b = 1, u = 4: 4 + 1/3, and 2 (1 + 12)^2 = 338."""
    found = M.combine_estimates([9, 10, 11], [3, 4, 5])
    assert found.estimate == 10
    assert found.variance == pytest.approx(13 / 3)
    assert found.degrees == pytest.approx(338)
    assert (found.low + found.high) / 2 == pytest.approx(10)
    assert found.high - 10 == pytest.approx(1.967 * (13 / 3) ** 0.5, abs=2e-3)  # Student's table
    assert M.combine_estimates([1, 1], [4, 4]).degrees == float("inf")
    for wrong in (([1], [1]), ([1, 2], [1]), ([1, 2], [1, -1]), ([1, float("nan")], [1, 1])):
        with pytest.raises(InputError):
            M.combine_estimates(*wrong)


def test_intervals_from_draws_cover_what_they_estimate():
    hits, runs = 0, 60
    for seed in range(runs):
        draw = np.random.default_rng(seed)
        sex = draw.choice(["f", "m"], 400)
        pay = np.where(sex == "f", 10.0, 12.0) + draw.normal(0, 2, 400)
        people = hm.read(
            pa.table({"sex": sex, "pay": pay}), schema={"sex": "quasi", "pay": "sensitive"}
        )
        release = hm.mask(people, M.PartlySynthetic("pay", k=2, draws=5), seed=seed)
        means, errors = [], []
        for one in M.draw_tables(release):
            held = one["pay"].to_numpy()[np.array(one["sex"].to_pylist()) == "f"]
            means.append(held.mean())
            errors.append(held.var(ddof=1) / len(held))
        found = M.combine_estimates(means, errors)
        hits += found.low <= 10.0 <= found.high
    assert hits >= 50  # 95% of 60 is 57; below 50 has a chance under 1 in 1,000


@given(
    st.lists(st.tuples(st.integers(-50, 50), st.integers(-50, 50)), min_size=3, max_size=40),
    st.integers(3, 5),
)
def test_hybrid_rows_keep_means_and_covariances(pairs, k):
    block = np.array(pairs) / 4
    if len(block) < k:
        return
    people = hm.read(
        pa.table({"a": block[:, 0], "b": block[:, 1]}), schema={"a": "quasi", "b": "quasi"}
    )
    rows = hm.mask(people, M.Hybrid(["a", "b"], k=k), seed=1).to_arrow()
    made = np.column_stack([rows["a"].to_numpy(), rows["b"].to_numpy()])
    assert made.mean(axis=0) == pytest.approx(block.mean(axis=0), abs=1e-8)
    assert np.cov(made.T) == pytest.approx(np.cov(block.T), abs=1e-7)


def test_each_group_of_hybrid_rows_keeps_its_own():
    values = [1.0, 2.0, 6.0, 101.0, 102.0, 109.0]
    people = hm.read({"v": values}, schema={"v": "quasi"})
    rows = np.sort(hm.mask(people, M.Hybrid("v", k=3), seed=4).to_arrow()["v"].to_numpy())
    assert rows[:3].mean() == pytest.approx(3)
    assert rows[:3].var() == pytest.approx(14 / 3)
    assert rows[3:].mean() == pytest.approx(104)
    assert not set(np.round(rows, 6)) & set(values)


def test_hybrid_groups_hold_what_people_ask_for():
    rows = {"w": [1] * 9, "v": [float(i) for i in range(9)], "k_i": [9] + [1] * 8}
    schema = {"policy": {"k": "k_i"}, "columns": {"v": "other", "w": "quasi"}}
    people = hm.read(rows, schema=schema)
    assert hm.mask(people, M.Hybrid("v", k=3)).steps[0]["facts"]["groups"] == 1


def test_leaves_hold_as_many_rows_as_asked_for():
    draw = np.random.default_rng(1)
    values = draw.normal(size=(3, 2000))
    target = (values[0] > 0.5) * 1.0 + (values[1] > 0) * 2.0
    block = np.array([np.searchsorted(bin_edges(v), v) for v in values]).astype(np.uint8)
    for classes in (0, 4):
        tree = grow_tree(block, target, classes, 50)
        leaf = tree.leaf_of(block)
        assert min(Counter(leaf.tolist()).values()) >= 50
        assert tree.leaves == len(set(leaf.tolist()))
        inside = sum(target[leaf == one].var() * (leaf == one).sum() for one in set(leaf.tolist()))
        assert inside < 0.1 * target.var() * len(target)


def test_hybrid_rows_are_drawn_several_times_each_with_the_same_means_and_covariances():
    people = workers(400)
    release = hm.mask(people, M.Hybrid(["age", "pay"], k=10, draws=3), seed=4)
    assert release.to_arrow().column_names[-4:] == ["age_2", "pay_2", "age_3", "pay_3"]
    assert {"age_2", "age_3"} <= set(release.schema.quasi)
    tables = M.draw_tables(release)
    pay = people.arrow["pay"].to_numpy()
    assert [one.column_names for one in tables] == [["age", "sex", "pay", "job"]] * 3
    for one in tables:
        assert np.mean(one["pay"]) == pytest.approx(np.mean(pay))
        assert np.var(one["pay"].to_numpy()) == pytest.approx(np.var(pay))
    assert not tables[1]["pay"].equals(tables[2]["pay"])
    # Draws agree on the mean, so that its variance is that of one table.
    own = np.var(pay, ddof=1) / 400
    found = M.combine_estimates([np.mean(one["pay"]) for one in tables], [own] * 3)
    assert (found.estimate, found.variance) == (pytest.approx(np.mean(pay)), pytest.approx(own))


def test_draws_of_hybrid_rows_are_refused_where_names_are_taken_or_another_step_changes_one():
    people = workers(60)
    taken = people.arrow.append_column("pay_2", people.arrow["age"])
    table = hm.read(taken, schema={"columns": {**COLUMNS, "pay_2": "other"}})
    with pytest.raises(SchemaError, match="column 'pay_2' already"):
        hm.mask(table, M.Hybrid("pay", k=5, draws=2))
    with pytest.raises(PrivacyError, match="missing in different rows"):
        hm.mask(people, M.Hybrid("pay", k=5, draws=2), "top-code pay share=0.1 replace=missing")


def test_best_groups_under_own_demands_lose_no_more_than_any_other():
    draw = np.random.default_rng(11)
    rows = {"a": draw.integers(0, 60, 240), "b": draw.integers(0, 40, 240),
            "k": draw.choice([2, 3, 5], 240)}  # fmt: skip
    schema = {"columns": {"a": "quasi", "b": "quasi"}, "policy": {"k": "k"}}
    people = hm.read(pa.table(rows), schema=schema)
    lost = {
        method: hm.mask(people, M.Microaggregate(["a", "b"], k=2, method=method)).steps[0]["facts"][
            "variance_lost"
        ]
        for method in ("best", "mdav", "v-mdav")
    }
    assert lost["best"] == min(lost.values())
    assert lost["mdav"] != lost["v-mdav"]
