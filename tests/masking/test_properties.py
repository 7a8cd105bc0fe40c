"""Invariants of masks on tables of any shape, against brute force where there is one."""

from __future__ import annotations

from collections import Counter
from itertools import combinations, pairwise

import numpy as np
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import InputError, ParameterError
from halfmask.masking.methods.anatomy import deal_groups
from halfmask.masking.methods.pram import invariant_matrix, optimal_matrix

M = hm.masks
small = st.lists(st.integers(0, 9), min_size=4, max_size=9)


def table(**columns):
    return hm.read(columns, schema=dict.fromkeys(columns, "quasi"))


def loss(groups):
    return sum(float(np.var(g)) * len(g) for g in groups)


def best_line(values, need):
    """The least sum of squares over all ways to cut sorted values, by trying them all."""
    order = np.argsort(values, kind="stable")
    values, need = np.array(values, float)[order], np.array(need)[order]
    n, best = len(values), np.inf
    for count in range(n):
        for cuts in combinations(range(1, n), count):
            edges = (0, *cuts, n)
            parts = [slice(a, b) for a, b in pairwise(edges)]
            if all(len(need[p]) >= need[p].max() for p in parts):
                best = min(best, loss([values[p] for p in parts]))
    return best


@given(small, st.integers(2, 3))
def test_microaggregation_of_one_column_is_optimal(values, k):
    release = hm.mask(table(v=values), M.Microaggregate("v", k=k))
    total = float(np.var(values)) * len(values)
    expected = best_line(values, [k] * len(values)) / total if total else 0.0
    assert release.steps[0]["facts"]["variance_lost"] == pytest.approx(expected, abs=1e-5)
    counts = Counter(release.to_arrow()["v"].to_pylist())
    assert min(counts.values()) >= k


@given(st.lists(st.integers(0, 5), min_size=4, max_size=8), st.integers(2, 3))
def test_microaggregation_of_several_rows_a_person_counts_people(owners, k):
    values = [place * place for place in range(len(owners))]
    people = hm.read(
        {"id": [f"p{one}" for one in owners], "v": values},
        schema={"table": {"person": "id"}, "columns": {"v": "quasi"}},
    )
    best = np.inf
    for count in range(len(owners)):
        for cuts in combinations(range(1, len(owners)), count):
            parts = [slice(a, b) for a, b in pairwise((0, *cuts, len(owners)))]
            if all(len(set(owners[part])) >= k for part in parts):
                best = min(best, loss([values[part] for part in parts]))
    if len(set(owners)) < k:
        with pytest.raises(hm.errors.UnsatisfiableError, match="microaggregate"):
            hm.mask(people, M.Microaggregate("v", k=k))
        return
    lost = hm.mask(people, M.Microaggregate("v", k=k)).steps[0]["facts"]["variance_lost"]
    assert lost == pytest.approx(best / loss([values]), abs=1e-5)


def test_groups_of_several_columns_hold_k_people_and_few_rows_more():
    draw = np.random.default_rng(3)
    owners = [None if one < 4 else f"p{one}" for one in draw.integers(0, 120, 300)]
    people = hm.read(
        {"id": owners, "a": draw.normal(size=300).tolist(), "b": draw.normal(size=300).tolist()},
        schema={"table": {"person": "id"}, "columns": {"a": "quasi", "b": "quasi"}},
    )
    for method in ("best", "v-mdav"):
        step = M.Microaggregate(["a", "b"], k=4, method=method)
        release = hm.mask(people, step, models=[hm.KAnonymity(4)])  # counts people
        assert release.steps[0]["facts"]["groups"] > 50  # k times the most rows would give 7


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(1, 3)), min_size=4, max_size=8))
def test_microaggregation_keeps_own_demands_optimally(pairs):
    values, own = (list(one) for one in zip(*pairs, strict=True))
    people = hm.read(
        {"v": values, "k_i": own}, schema={"policy": {"k": "k_i"}, "columns": {"v": "quasi"}}
    )
    release = hm.mask(people, M.Microaggregate("v", k=2))
    total = float(np.var(values)) * len(values)
    expected = best_line(values, np.maximum(own, 2)) / total if total else 0.0
    assert release.steps[0]["facts"]["variance_lost"] == pytest.approx(expected, abs=1e-5)
    assert release.demands is not None
    assert release.demands.kept


@given(
    st.lists(st.tuples(st.integers(0, 50), st.integers(0, 50)), min_size=4, max_size=60),
    st.integers(2, 4),
    st.sampled_from(["best", "mdav", "v-mdav"]),
)
def test_groups_of_several_columns_hold_k(pairs, k, method):
    one, other = zip(*pairs, strict=True)
    rows = hm.mask(
        table(a=list(one), b=list(other)), M.Microaggregate(["a", "b"], k=k, method=method)
    ).to_arrow()
    counts = Counter(zip(rows["a"].to_pylist(), rows["b"].to_pylist(), strict=True))
    assert min(counts.values()) >= k


def test_groups_of_varying_size_follow_clusters():
    places = [(x + dx, 0) for x in (0, 100, 205) for dx in (0, 1, 2, 3)]
    people = table(a=[one[0] for one in places], b=[one[1] for one in places])
    found = hm.mask(people, M.Microaggregate(["a", "b"], k=3, method="v-mdav")).to_arrow()
    assert Counter(found["a"].to_pylist()) == {1.5: 4, 101.5: 4, 206.5: 4}


@given(st.lists(st.one_of(st.none(), st.integers(0, 5)), min_size=1, max_size=60),
       st.floats(0.01, 1.0))  # fmt: skip
def test_swapping_keeps_every_value(values, within):
    people = hm.read(
        {"v": values, "w": list(range(len(values)))},
        schema={"columns": {"v": {"role": "quasi", "kind": "numeric"}, "w": "quasi"}},
    )
    if all(one is None for one in values):
        return
    for mask in (M.RankSwap("v", within=within), M.Shuffle("v"), M.RecordSwap("v", share=0.5)):
        found = hm.mask(people, mask, seed=1).to_arrow()
        assert Counter(found["v"].to_pylist()) == Counter(values)
        missing = {w for v, w in zip(values, range(len(values)), strict=True) if v is None}
        if mask.name != "record-swap":
            pairs = zip(found["v"].to_pylist(), found["w"].to_pylist(), strict=True)
            assert {w for v, w in pairs if v is None} == missing


@given(st.integers(2, 200), st.floats(0.01, 0.5))
def test_ranks_move_within_the_window(size, within):
    values = np.random.default_rng(size).permutation(size)
    people = table(v=values.tolist(), w=list(range(size)))
    found = hm.mask(people, M.RankSwap("v", within=within), seed=1).to_arrow()
    moved = np.abs(found["v"].to_numpy() - values[found["w"].to_numpy()])
    assert moved.max() <= max(1, int(within * size))


@given(st.lists(st.integers(1, 500), min_size=2, max_size=12), st.floats(0, 1))
@example([1, 1, 1, 1, 1, 177, 180], 0.0)
def test_an_invariant_matrix_keeps_counts_in_expectation(counts, keep):
    t = np.array(counts, float)
    matrix = invariant_matrix(t, keep)
    assert np.allclose(matrix.sum(axis=1), 1)
    assert np.allclose(t @ matrix, t, rtol=1e-6)
    assert (np.diag(matrix) >= keep - 1e-9).all()
    if t.max() <= t.sum() / 2 - 1:
        assert np.allclose(np.diag(matrix), keep, atol=1e-6)


def test_pram_keeps_margins_and_changes_as_many_as_it_says():
    jobs = ["a"] * 4000 + ["b"] * 3000 + ["c"] * 3000
    release = hm.mask(table(job=jobs), M.Pram("job", keep=0.8), seed=5)
    counts = Counter(release.to_arrow()["job"].to_pylist())
    for job, before in Counter(jobs).items():
        assert counts[job] == pytest.approx(before, abs=5 * np.sqrt(2 * 0.2 * before))
    changed = release.steps[0]["figures"]["columns"]["job"]["changed"]
    assert changed == pytest.approx(0.2, abs=0.02)


def posterior(counts, matrix):
    """How sure a released value leaves one of the value behind it, at most."""
    flow = np.asarray(counts)[:, None] * matrix
    arrives = flow.sum(axis=0)
    return float((flow[:, arrives > 0] / arrives[arrives > 0]).max())


def test_the_optimal_matrix_changes_as_few_rows_as_by_hand():
    # 60 and 40 at 0.75. Invariant: x both ways, (0.6 - x) / 0.6 <= 0.75, so x = 0.15 each.
    kept = optimal_matrix(np.array([60.0, 40.0]), 0.75, invariant=True)
    assert kept == pytest.approx(np.array([[0.75, 0.25], [0.375, 0.625]]))
    # Free: y = (0.6 - x) / 3 and x = (0.4 - y) / 3 give x = 0.075 and y = 0.175: 0.25, not 0.3.
    free = optimal_matrix(np.array([60.0, 40.0]), 0.75, invariant=False)
    assert free == pytest.approx(np.array([[0.875, 0.125], [0.4375, 0.5625]]))
    assert optimal_matrix(np.array([60.0, 40.0]), 1.0, invariant=True) == pytest.approx(np.eye(2))
    assert optimal_matrix(np.array([60.0, 40.0]), 0.5, invariant=True) is None  # 0.6 is known


@given(
    st.lists(st.integers(0, 40), min_size=2, max_size=6).filter(lambda t: sum(t) > 0),
    st.floats(0.2, 1.0),
    st.booleans(),
)
@settings(max_examples=examples(60))
def test_an_optimal_matrix_leaves_nobody_surer_than_stated(counts, certainty, invariant):
    t = np.array(counts, float)
    matrix = optimal_matrix(t, certainty, invariant=invariant)
    highest = t.max() / t.sum()
    if matrix is None:
        assert highest > certainty - 1e-6
        return
    assert matrix.sum(axis=1) == pytest.approx(1.0)
    assert posterior(t, matrix) <= certainty + 1e-9
    if invariant:
        assert t @ matrix == pytest.approx(t, abs=1e-6 * t.sum())
    # All rows drawn anew by the counts is one such matrix: it keeps the sum of squared shares.
    stays = float((t / t.sum()) @ np.diag(matrix))
    assert stays >= ((t / t.sum()) ** 2).sum() - 1e-6


@pytest.mark.parametrize("invariant", [True, False])
def test_what_a_solver_leaves_above_the_certainty_is_mended(monkeypatch, invariant):
    t = np.array([50.0, 30.0, 20.0])
    stays = np.diag(t / t.sum()).ravel()  # a solver that changes nothing: everybody is sure

    class Found:
        x, status = stays, 0

    monkeypatch.setattr("scipy.optimize.linprog", lambda *_, **__: Found)
    matrix = optimal_matrix(t, 0.6, invariant=invariant)
    assert matrix.sum(axis=1) == pytest.approx(1.0)
    assert t @ matrix == pytest.approx(t)
    assert posterior(t, matrix) <= 0.6 + 1e-9
    assert optimal_matrix(t, 0.4, invariant=invariant) is None  # half of all hold one value


def test_optimal_pram_is_a_step_and_says_what_it_cannot():
    jobs = ["a"] * 6000 + ["b"] * 4000
    mask = M.Pram("job", spread="optimal-invariant", certainty=0.75)
    release = hm.mask(table(job=jobs), mask, seed=5)
    changed = release.steps[0]["figures"]["columns"]["job"]["changed"]
    assert changed == pytest.approx(0.3, abs=0.02)
    assert mask.correct({"a": 6010, "b": 3990}) == {"a": 6010.0, "b": 3990.0}
    with pytest.raises(InputError, match=r"certainty of 0\.55"):
        hm.mask(table(job=jobs), M.Pram("job", spread="optimal", certainty=0.55))
    with pytest.raises(InputError, match="use optimal-invariant"):
        M.Pram("job", spread="optimal", certainty=0.75).correct({"a": 6000, "b": 4000})
    with pytest.raises(ParameterError, match="optimal or optimal-invariant"):
        M.Pram("job", certainty=0.75)
    with pytest.raises(ParameterError, match="no two of them"):
        M.Pram("job", keep=0.5, spread="optimal", certainty=0.75)


def test_the_correction_finds_the_counts_again():
    jobs = ["a"] * 9000 + ["b"] * 1000
    mask = M.Pram("job", matrix={"a": {"a": 0.7, "b": 0.3}, "b": {"a": 0.1, "b": 0.9}})
    counts = Counter(hm.mask(table(job=jobs), mask, seed=5).to_arrow()["job"].to_pylist())
    assert counts["a"] == pytest.approx(0.7 * 9000 + 0.1 * 1000, abs=250)
    found = mask.correct({"a": counts["a"], "b": counts["b"]})
    assert found["a"] == pytest.approx(9000, abs=450)
    assert sum(found.values()) == pytest.approx(10000)


def test_the_variance_of_a_correction_is_that_of_many_draws():
    """By hand for 90 and 10 kept at 0.8: 0.8 x 0.2 x 100 / 0.6^2; and over 4,000 draws."""
    even = M.Pram("job", keep=0.8, spread="even")
    assert even.variances([74, 26]) == pytest.approx([16 / 0.36] * 2)
    draw = np.random.default_rng(2)
    chances = np.array([[0.7, 0.2, 0.1], [0.1, 0.8, 0.1], [0.0, 0.3, 0.7]])
    mask, true = M.Pram("job", matrix=chances), np.array([500, 300, 200])
    shown = sum(draw.multinomial(n, p, 4000) for n, p in zip(true, chances, strict=True))
    found = np.array([mask.correct(one.tolist()) for one in shown])
    assert found.mean(axis=0) == pytest.approx(true, abs=3)
    expected = mask.variances((true @ chances).tolist())
    assert found.var(axis=0) == pytest.approx(expected, rel=0.12)


@given(st.lists(st.integers(0, 6), min_size=4, max_size=80), st.integers(2, 4))
def test_groups_of_anatomy_hold_each_value_once(values, l):  # noqa: E741
    codes = np.array(values)
    if len(codes) // l < 1 or np.bincount(codes).max() > len(codes) // l:
        with pytest.raises(hm.errors.UnsatisfiableError, match="smaller l"):
            deal_groups(codes, l, np.random.default_rng(1))
        return
    groups = deal_groups(codes, l, np.random.default_rng(1))
    assert max(Counter(zip(groups.tolist(), values, strict=True)).values()) == 1
    assert min(Counter(groups.tolist()).values()) >= l


def test_random_rounding_keeps_sums_in_expectation():
    people = table(**{f"v{i}": [13] * 2000 for i in range(10)})
    release = hm.mask(people, M.Round(people.schema.quasi, base=10, how="random"), seed=1)
    found = np.array([column.to_numpy() for column in release.to_arrow().columns])
    assert set(found.ravel().tolist()) == {10, 20}
    assert found.mean() == pytest.approx(13, abs=0.15)


@pytest.mark.parametrize("how", [("nearest", 10), ("up", 20), ("down", 10)])
def test_rounding_goes_where_it_says(how):
    release = hm.mask(table(v=[14]), M.Round("v", base=10, how=how[0]))
    assert release.to_arrow()["v"].to_pylist() == [how[1]]


def test_correlated_noise_keeps_correlations_and_moments_are_kept_where_asked():
    draw = np.random.default_rng(1)
    one = draw.normal(50, 10, 20_000)
    other = 0.8 * one + draw.normal(0, 6, 20_000)
    people = table(a=one.tolist(), b=other.tolist())
    rows = hm.mask(people, M.Noise(["a", "b"], level=0.5, kind="correlated"), seed=9).to_arrow()
    a, b = rows["a"].to_numpy(), rows["b"].to_numpy()
    assert np.corrcoef(a, b)[0, 1] == pytest.approx(np.corrcoef(one, other)[0, 1], abs=0.01)
    assert a.var() == pytest.approx(1.25 * one.var(), rel=0.05)
    kept = (
        hm.mask(people, M.Noise("a", level=0.5, keep="moments"), seed=9).to_arrow()["a"].to_numpy()
    )
    assert (kept.mean(), kept.var()) == (pytest.approx(one.mean()), pytest.approx(one.var()))


def test_shuffling_keeps_how_a_column_goes_with_another():
    draw = np.random.default_rng(1)
    age = draw.normal(50, 10, 10_000)
    pay = np.exp(0.03 * age + draw.normal(0, 0.2, 10_000))
    rows = hm.mask(table(age=age.tolist(), pay=pay.tolist()), M.Shuffle("pay"), seed=9).to_arrow()

    def ranks(values):
        return np.argsort(np.argsort(values))

    before = np.corrcoef(ranks(age), ranks(pay))[0, 1]
    after = np.corrcoef(ranks(rows["age"].to_numpy()), ranks(rows["pay"].to_numpy()))[0, 1]
    assert after == pytest.approx(before, abs=0.03)


def test_shuffling_learns_nothing_from_missing_values():
    draw = np.random.default_rng(1)
    age = draw.normal(50, 10, 10_000)
    pay = age + draw.normal(0, 5, 10_000)
    there = draw.random(10_000) < 0.5
    people = table(age=age.tolist(), pay=[v if t else None for v, t in zip(pay, there)])  # noqa: B905
    rows = hm.mask(people, M.Shuffle("pay"), seed=9).to_arrow().drop_null()
    before = np.corrcoef(age[there], pay[there])[0, 1]
    after = np.corrcoef(rows["age"].to_numpy(), rows["pay"].to_numpy())[0, 1]
    assert after == pytest.approx(before, abs=0.02)


def test_top_coding_counts_everybody_once():
    people = hm.read(
        {"id": ["a"] * 8 + ["b", "c"], "v": [1, 2, 3, 4, 5, 6, 7, 100, 50, 9]},
        schema={"table": {"person": "id"}, "columns": {"v": "quasi"}},
    )
    found = hm.mask(people, M.TopCode("v", share=0.34)).to_arrow()["v"].to_pylist()
    assert sorted(found)[-2:] == [50, 50]


@pytest.mark.parametrize("held", ["low", "mid"])
def test_a_threshold_of_an_ordinal_column_need_not_be_held(held):
    # Serving or refusing would tell whether anybody holds it.
    people = hm.read(
        {"grade": [held, "high", "top"]},
        schema={"columns": {"grade": {"role": "quasi", "order": ["low", "mid", "high", "top"]}}},
    )
    coded = hm.mask(people, M.TopCode("grade", value="mid")).to_arrow()["grade"].to_pylist()
    assert sorted(coded) == sorted([held, "mid", "mid"])
    with pytest.raises(ParameterError, match="declared order of 'grade'"):
        hm.mask(people, M.TopCode("grade", value="none"))


@pytest.mark.parametrize(
    "step",
    [
        M.Microaggregate("x", k=2),
        M.Microaggregate(["x", "y"], k=2),
        M.Hybrid("x", k=3),
        M.Cloak("x", longitude="y", k=2),
        M.Cloak("x", longitude="y", k=2, method="grid"),
    ],
    ids=lambda step: f"{step.name}-{getattr(step, 'method', '')}{len(step.changes)}",
)
def test_demands_that_are_set_aside_change_nothing(step):
    found = []
    for own in (1, 4, 10**6):
        people = hm.read(
            {"x": [1.0, 2, 3, 4, 50, 51, 52], "y": [5.0, 2, 3, 1, 9, 8, 7], "k_i": [own, *[1] * 6]},
            schema={"policy": {"k": "k_i"}, "columns": {"x": "quasi", "y": "quasi"}},
        )
        found.append(hm.mask(people, step, demands="ignore", seed=1).to_arrow().to_pylist())
    assert found[0] == found[1] == found[2]


def test_ordinal_columns_are_coded_and_aggregated_in_their_order():
    schema = {"columns": {"v": {"role": "quasi", "order": ["low", "mid", "high"]}}}
    people = hm.read({"v": ["high", "low", "mid", "high"]}, schema=schema)
    found = hm.mask(people, M.TopCode("v", value="mid")).to_arrow()["v"].to_pylist()
    assert sorted(found) == ["low", "mid", "mid", "mid"]
    found = hm.mask(people, M.Microaggregate("v", k=2, aggregate="median")).to_arrow()["v"]
    assert min(Counter(found.to_pylist()).values()) >= 2


def test_samples_stand_for_all():
    people = table(sex=["f"] * 60 + ["m"] * 40, age=list(range(100)))
    rows = hm.mask(people, M.Sample(0.2, by="sex"), seed=1).to_arrow()
    assert Counter(rows["sex"].to_pylist()) == {"f": 12, "m": 8}
    assert sum(rows["weight"].to_pylist()) == pytest.approx(100)


def test_as_many_households_move_as_asked_for_and_only_to_other_areas():
    draw = np.random.default_rng(3)
    town, sex = draw.choice(list("abcd"), 2000).tolist(), draw.choice(["f", "m"], 2000).tolist()
    people = table(town=town, sex=sex, w=list(range(2000)))
    mask = M.RecordSwap("town", share=0.2, similar="sex", risk="sex")
    release = hm.mask(people, mask, seed=1)
    rows = release.to_arrow()
    place = rows["w"].to_numpy()
    moved = np.array(rows["town"].to_pylist()) != np.array(town)[place]
    assert moved.mean() == pytest.approx(0.2, abs=0.01)
    assert release.steps[0]["facts"]["swapped_share"] == pytest.approx(moved.mean())
    assert Counter(zip(rows["town"].to_pylist(), rows["sex"].to_pylist(), strict=True)) == Counter(
        zip(town, sex, strict=True)
    )


def test_households_that_stand_out_are_moved_together():
    # One household of two in town a is the only one with these ages there.
    homes = [0, 0, 1, 1, 2, 2, 3, 3]
    towns = list("aabbaabb")
    people = hm.read(
        {"home": homes, "town": towns, "age": [70, 71, 30, 31, 30, 31, 30, 31]},
        schema={"columns": {"home": "identifier", "town": "quasi", "age": "quasi"}},
    )
    rows = hm.mask(people, M.RecordSwap("town", share=0, k=2, household="home"), seed=1).to_arrow()
    found = dict(zip(rows["age"].to_pylist(), rows["town"].to_pylist(), strict=True))
    assert found[70] == found[71] == "b"


def test_massc_calibrates_its_weights():
    people = table(sex=["f"] * 60 + ["m"] * 40, age=[i % 30 for i in range(100)])
    rows = hm.mask(people, M.Massc(calibrate="sex", columns="age"), seed=1).to_arrow()
    totals = Counter()
    for sex, weight in zip(rows["sex"].to_pylist(), rows["weight"].to_pylist(), strict=True):
        totals[sex] += weight
    assert totals["f"] == pytest.approx(60)
    assert totals["m"] == pytest.approx(40)


@given(st.lists(st.tuples(st.integers(0, 99), st.integers(0, 99), st.integers(1, 4)),
                min_size=4, max_size=60))  # fmt: skip
def test_cells_hold_as_many_people_as_anybody_in_them_asks_for(places):
    north, east, own = (list(one) for one in zip(*places, strict=True))
    people = hm.read(
        {"n": [v / 100 for v in north], "e": [v / 100 for v in east], "k_i": own},
        schema={"policy": {"k": "k_i"}, "columns": {"n": "quasi", "e": "quasi"}},
    )
    release = hm.mask(people, M.Cloak("n", "e", k=2))
    counts = Counter(release.to_arrow()["cell"].to_pylist())
    assert min(counts.values()) >= 2
    assert release.demands is not None
    assert release.demands.kept
    cells = release.tables["cells"]
    assert cells["rows"].to_pylist() == [counts[c] for c in cells["cell"].to_pylist()]
