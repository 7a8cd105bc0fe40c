"""The discrimination rate on the worked tables of Sondeck's thesis (T = its table, E = example)."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from full_domain import identity
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import InputError, NotObservedError, ParameterError
from halfmask.metrics.discrimination.column_sets import rank_column_sets
from halfmask.metrics.discrimination.need import Need
from halfmask.metrics.discrimination.partition import Cuts, Partition
from halfmask.metrics.discrimination.rate import (
    _adjust,
    _prediction_end,
    discriminate_tuples,
    inflation,
)
from halfmask.metrics.discrimination.release_rates import (
    information_loss,
    release_rates,
)
from halfmask.metrics.estimate import Estimate
from halfmask.metrics.sides import sides
from halfmask.metrics.weighted import entropy_of
from halfmask.table.tuples import Tuples

CLOSE = 1e-4


def table(**columns):
    return hm.read(pa.table(columns), schema={})


def close(value):
    return pytest.approx(value, abs=CLOSE)


def t41():
    return table(
        subject=list(range(1, 10)),
        zip=["35000"] * 9,
        age=[22, 35, 63, 22, 22, 35, 45, 35, 40],
        salary=[4, 5, 3, 13, 8, 15, 9, 7, 11],
        disease=["cancer", "diabetes", "malaria", "cancer", "cancer", "malaria", "malaria",
                 "diabetes", "diabetes"],
    )  # fmt: skip


# E1, T1.2
AGE = [22, 22, 22, 45, 63, 40, 35, 35, 32]
AGE_STAR = ["2*"] * 3 + [">=40"] * 3 + ["3*"] * 3
E1 = ["lung", "lung", "lung", "stomach", "diabetes", "flu", "aids", "aids", "diabetes"]


def test_entropy_primitives():
    assert entropy_of(np.ones(9, np.int64)) == close(3.1699)
    assert entropy_of(np.array([3, 2, 1, 1, 1, 1])) == close(2.4194)
    assert entropy_of(np.array([5])) == 0


def test_e1_privacy_and_utility_of_age():
    rows = table(age=AGE, star=AGE_STAR, disease=E1)
    privacy = hm.discrimination_rate(rows, "age", "star", values=True)
    assert privacy.rate == close(0.6551)
    assert dict(privacy) == close({"2*": 1, ">=40": 0.7816, "3*": 0.8735})
    utility = hm.discrimination_rate(rows, "disease", "star", values=True)
    assert utility.rate == close(0.6202)
    assert dict(utility) == close({"2*": 1, ">=40": 0.7595, "3*": 0.8607})


E4 = [
    (["zip"], 0, "zero"),
    (["age"], 0.6667, "partial"),
    (["salary"], 1, "identifier"),
    (["disease"], 0.5, "sketchy"),
    (["age", "disease"], 0.7632, "partial"),
    (["age", "zip"], 0.6667, "partial"),
    (["age", "salary"], 1, "identifier"),
    (["age", "disease", "zip"], 0.7632, "partial"),
    (["age", "disease", "salary", "zip"], 1, "identifier"),
]


@pytest.mark.parametrize(("keys", "rate", "kind"), E4)
def test_e4_rates_and_identifier_classes(keys, rate, kind):
    assert hm.discrimination_rate(t41(), "subject", keys) == close(rate)
    assert discriminate_tuples(t41(), "subject", keys).kind == kind


def test_e4_values():
    disease = hm.discrimination_rate(t41(), "subject", "disease", values=True)
    assert disease["cancer"] == close(0.8333)
    both = hm.discrimination_rate(t41(), "subject", ["disease", "age"], values=True)
    assert both["cancer", 22] == close(0.8333)
    assert both["diabetes", 35] == close(0.9299)
    assert both["malaria", 35] == 1
    assert both.of(("diabetes", 35)).count == 2
    assert both.of(("diabetes", 35)).unweighted == close(1 - 1 / math.log2(9))


def test_a_value_that_no_row_holds_is_not_one():
    both = hm.discrimination_rate(t41(), "subject", ["disease", "age"], values=True)
    with pytest.raises(NotObservedError) as caught:
        both["cancer", 35]
    assert "cancer" not in str(caught.value)
    assert both.get(("cancer", 35)) is None


def test_e4_context_one_row_more_changes_the_class():
    rows = table(subject=list(range(10)), zip=["35000"] * 9 + ["36000"])
    found = discriminate_tuples(rows, "subject", "zip")
    assert found.rate == close(0.1412)
    assert found.kind == "partial"


def test_the_lattice_of_figure_4_3():
    found = {frozenset(s.columns): s for s in rank_column_sets(t41(), "subject", size=4)}
    assert len(found) == 15
    for columns, one in found.items():
        keys = sorted(columns)
        assert one.rate == pytest.approx(hm.discrimination_rate(t41(), "subject", keys)), keys
        assert one.kind == discriminate_tuples(t41(), "subject", keys).kind
    first = rank_column_sets(t41(), "subject", size=4)[0]
    assert first.columns == ("salary",)
    assert found[frozenset(("salary", "age"))].implied


# E5, T4.2 and T4.5
E5_ZIP = ["35510", "35512", "35517", "35877", "35830", "35618", "35620", "35842", "35655"]
E5_ZIP_STAR = ["355**"] * 3 + ["358**", "358**", "356**", "356**", "358**", "356**"]
E5_AGE = [22, 22, 22, 35, 39, 35, 45, 40, 63]
E5_AGE_STAR = ["2*"] * 3 + ["3*"] * 3 + [">=40"] * 3


def e5():
    original = table(zip=E5_ZIP, age=E5_AGE)
    released = table(zip=E5_ZIP_STAR, age=E5_AGE_STAR)
    return original, released


def test_e5_identity():
    original, released = e5()
    found = identity(original, released, "zip", values=True)
    assert found.rate == close(0.5)
    assert dict(found) == close({"355**": 0.8333, "356**": 0.8333, "358**": 0.8333})
    found = identity(original, released, "age", values=True)
    assert found.rate == close(0.6551)
    assert dict(found) == close({"2*": 1, "3*": 0.8735, ">=40": 0.7816})


def t43():
    """Rows 1, 4, 5 | 2, 6, 8 | 3, 7, 9."""
    return table(
        age=["2*"] * 3 + ["3*"] * 3 + [">=40"] * 3,
        loc1=["diabetes", "cardiology", "cancer", "hiv", "cancer", "cardiology", "diabetes", "hiv",
              "hiv"],
        loc2=["church"] * 3 + ["synagogue", "mosque", "synagogue", "mosque", "mosque", "synagogue"],
    )  # fmt: skip


def t44():
    return table(
        zip=["355**"] * 3 + ["358**"] * 3 + ["356**"] * 3,
        loc1=["cancer", "hiv", "cardiology", "diabetes", "cancer", "hiv", "diabetes", "cardiology",
              "hiv"],
        loc2=["church", "synagogue", "mosque", "church", "synagogue", "mosque", "church", "mosque",
              "synagogue"],
    )  # fmt: skip


def test_e6_homogeneity_and_background_with_the_swapped_rows_put_right():
    loc1 = hm.discrimination_rate(t43(), "loc1", "age", values=True)
    assert loc1.rate == close(0.31)
    assert dict(loc1) == close({"2*": 0.7325, "3*": 0.7325, ">=40": 0.8450})
    loc2 = hm.discrimination_rate(t43(), "loc2", "age", values=True)
    assert loc2.rate == close(0.6137)
    assert dict(loc2) == close({"2*": 1, "3*": 0.8069, ">=40": 0.8069})
    diverse = hm.discrimination_rate(t44(), "loc1", "zip", values=True)
    assert diverse.rate == close(0.1975)
    assert dict(diverse) == close({"355**": 0.7325, "356**": 0.7325, "358**": 0.7325})
    diverse = hm.discrimination_rate(t44(), "loc2", "zip", values=True)
    assert diverse.rate == close(0)
    assert dict(diverse) == close({"355**": 0.6667, "356**": 0.6667, "358**": 0.6667})
    assert diverse.kind == "zero"
    assert hm.discrimination_rate(t43(), "loc2", "age") == close(1 - 0.3863)


def test_e7_information_loss():
    original, released = e5()
    id_ = [identity(original, released, name) for name in ("zip", "age")]
    anonymous = [hm.discrimination_rate(t43(), loc, "age") for loc in ("loc1", "loc2")]
    diverse = [hm.discrimination_rate(t44(), loc, "zip") for loc in ("loc1", "loc2")]
    assert np.mean(id_) == close(0.5776)
    assert np.mean(anonymous) == close(0.4619)
    assert np.mean(diverse) == close(0.0987)
    assert information_loss(id_, anonymous) == close(0.4803)
    assert information_loss(id_, diverse) == close(0.6619)


SP4 = {"other": ["diabetes", "flu", "aids"], "cancer": ["colon", "lung", "stomach"]}
T53 = ["colon", "stomach", "lung", "stomach", "diabetes", "aids", "aids", "flu", "lung"]


def test_e8_semantic_rate_is_one_where_plain_is_less():
    rows = table(age=AGE, disease=T53)
    semantic = hm.discrimination_rate(rows, "disease", "age", partition=SP4, values=True)
    assert semantic.rate == 1
    assert set(semantic.values()) == {1.0}
    plain = hm.discrimination_rate(rows, "disease", "age", values=True)
    assert plain[22] == close(0.7889)
    assert plain.rate == close(0.7002)


SALARY = [4, 5, 6, 7, 12, 9, 8, 10, 11]
SP2 = [[4, 5, 6], [7, 8, 9], [10, 11, 12]]
SP3 = [[4, 6, 10], [7, 12, 9], [5, 8, 11]]


def diverse():
    """T5.2 (= T3.3)."""
    return table(
        zip=["355**"] * 3 + ["3581*"] * 3 + ["355**"] * 3,
        age=AGE_STAR,
        salary=SALARY,
        disease=T53,
    )


def close_table():
    """T5.1 (= T3.4): rows 1, 3, 8 | 4, 5, 6 | 2, 7, 9 of T5.3."""
    order = [0, 2, 7, 3, 4, 5, 1, 6, 8]
    return table(
        zip=["3556*"] * 3 + ["3581*"] * 3 + ["3550*"] * 3,
        age=["<=40"] * 3 + [">=40"] * 3 + ["<=40"] * 3,
        salary=[SALARY[i] for i in order],
        disease=[T53[i] for i in order],
    )


E9 = {
    ("diverse", "age"): {
        "2*": (1, 1, 0.8069), ">=40": (0.6911, 0.8069, 1), "3*": (0.6911, 0.8069, 0.8069),
        None: (0.3823, 0.6137, 0.6137),
    },
    ("diverse", "zip"): {
        "355**": (0.3823, 0.3863, 0.5794), "3581*": (0.6911, 0.8069, 1),
        None: (0.0734, 0.1931, 0.5794),
    },
    ("close", "age"): {
        "<=40": (0.3823, 0.3863, 0.5794), ">=40": (0.6911, 0.8069, 1),
        None: (0.0734, 0.1931, 0.5794),
    },
    ("close", "zip"): {
        "3550*": (0.6911, 0.6667, 1), "3581*": (0.6911, 0.8069, 1), "3556*": (0.6911, 0.8069, 1),
        None: (0.0734, 0.2804, 1),
    },
}  # fmt: skip


@pytest.mark.parametrize(("which", "key"), list(E9))
def test_e9_all_42_similarity_figures(which, key):
    rows = diverse() if which == "diverse" else close_table()
    attackers = [("disease", SP4), ("salary", SP2), ("salary", SP3)]
    for place, (target, blocks) in enumerate(attackers):
        found = hm.discrimination_rate(rows, target, key, partition=blocks, values=True)
        for value, expected in E9[which, key].items():
            assert (found.rate if value is None else found[value]) == close(expected[place])


def test_e9_without_a_partition_and_jointly():
    rate = hm.discrimination_rate
    assert rate(diverse(), "salary", "age") == close(0.5)
    assert rate(diverse(), "salary", "zip") == close(0.2897)
    assert rate(close_table(), "salary", "age") == close(0.2897)
    assert rate(close_table(), "salary", "zip") == close(0.5)
    for rows in (diverse(), close_table()):
        assert rate(rows, "salary", ["zip", "age"]) == close(0.5)
    joint = [("salary", SP2, 0.6137, 0.2804), ("salary", SP3, 0.6137, 1),
             ("disease", SP4, 0.3823, 0.0734)]  # fmt: skip
    for target, blocks, first, second in joint:
        assert rate(diverse(), target, ["zip", "age"], blocks) == close(first)
        assert rate(close_table(), target, ["zip", "age"], blocks) == close(second)


E10_AGE = [22, 35, 63, 22, 22, 35, 45, 32, 40]
E10_DISEASE = ["cancer", "diabetes", "malaria", "cancer", "cancer", "malaria", "malaria",
               "diabetes", "diabetes"]  # fmt: skip


def test_e10_utility_of_global_recoding():
    released = table(
        age=["2*"] * 3 + [">=40"] * 3 + ["3*"] * 3,
        zip=["355**"] * 3 + ["356**"] * 3 + ["357**"] * 3,
        disease=["cancer"] * 3 + ["malaria", "diabetes", "malaria", "malaria", "diabetes",
                                  "diabetes"],
    )  # fmt: skip
    need = Need("disease", ("age",)).measure(released)
    assert need.rate == close(0.6137)
    assert dict(need) == close({"2*": 1, ">=40": 0.8069, "3*": 0.8069})
    assert hm.discrimination_rate(released, "disease", "zip") == close(0.6137)
    original = table(
        zip=["35510", "35602", "35712", "35510", "35510", "35602", "35715", "35602", "35703"],
        age=E10_AGE,
        disease=E10_DISEASE,
    )
    assert hm.discrimination_rate(original, "disease", "age") == close(0.8598)
    assert hm.discrimination_rate(original, "disease", "zip") == close(0.8069)
    binned = hm.discrimination_rate(
        original, "disease", "age", partition={"age": Cuts(20, 30, 40, 70)}
    )
    assert binned == close(0.6137)


def e11():
    return table(
        zip=["35510"] * 3 + ["35620"] * 3 + ["35740"] * 3,
        age=E10_AGE,
        salary=[4, 4, 4, 13, 8, 13, 8, 8, 13],
    )


CASES = [
    (Cuts(0, 5, 10, 15), 0.6667, 0.8598, 0.5265, 0.8598, 0.4665, 0.5794, 0.0459, 0.6137),
    ([[4, 8], [13]], 0.6667, 0.7580, 0.4247, 0.7580, 0.4126, 0.6074, 0.0199, 0.3333),
]


@pytest.mark.parametrize("case", CASES, ids=["intervals", "below and above 10"])
def test_e11_utility_of_microaggregation(case):
    blocks, v22, v35, age, both, old, young, coarse, zip_ = case
    found = hm.discrimination_rate(e11(), "salary", "age", blocks, values=True)
    assert found.rate == close(age)
    expected = {22: v22, 35: v35, 32: 1, 40: 1, 45: 1, 63: 1}
    assert dict(found) == close(expected)
    pair = hm.discrimination_rate(e11(), "salary", ["zip", "age"], blocks, values=True)
    assert pair.rate == close(both)
    assert pair["35620", 22] == close(both)
    assert sum(rate == 1 for rate in pair.values()) == 7
    binned = {"salary": blocks, "age": Cuts(0, 35, math.inf)}
    halves = hm.discrimination_rate(e11(), "salary", "age", binned, values=True)
    assert halves.rate == close(coarse)
    assert halves["[35, inf["] == close(old)
    assert halves["[0, 35["] == close(young)
    assert hm.discrimination_rate(e11(), "salary", "zip", blocks) == close(zip_)


def test_e12_skewness():
    groups = [g for g in range(9) for _ in range(2)] + [9] * 982
    answers = ["Yes", "No"] * 9 + ["Yes"] + ["No"] * 981
    found = hm.discrimination_rate(table(g=groups, x=answers), "x", "g", values=True)
    assert found.entropy == close(0.0808)
    assert found.rate == close(0.6363)
    assert found[0] == close(0.9752)
    assert found[9] == close(0.8591)
    even = [g for g in range(10) for _ in range(100)]
    answers = (["Yes"] + ["No"] * 99) * 10
    assert hm.discrimination_rate(table(g=even, x=answers), "x", "g") == pytest.approx(0, abs=1e-9)


def test_skewness_is_what_generalization_took_away():
    tree = {"2*": [22], ">=40": [45, 63, 40], "3*": [35, 32]}
    schema = {"age": {"role": "quasi", "hierarchy": {"tree": tree}}, "disease": "sensitive"}
    original = hm.read(pa.table({"age": AGE, "disease": E1}), schema={"columns": schema})
    released = table(age=AGE_STAR, disease=E1)
    rates = release_rates(sides(original, released)).rates
    delta = next(one.rate for one in rates if one.attack == "skewness")
    before = hm.discrimination_rate(original, "disease", "age")
    assert delta == pytest.approx(before - 0.6202, abs=CLOSE)
    assert delta >= 0


def test_e3_three_anonymity_is_more_useful_than_three_diversity():
    t31 = ["lung", "lung", "lung", "flu", "diabetes", "flu", "aids", "aids", "diabetes"]
    found = hm.discrimination_rate(table(age=AGE_STAR, d=t31), "d", "age", values=True)
    assert found.rate == close(0.69)
    assert dict(found) == close({"2*": 1, ">=40": 0.845, "3*": 0.845})
    found = hm.discrimination_rate(diverse(), "disease", "age", values=True)
    assert found.rate == close(0.3668)
    assert dict(found) == close({"2*": 0.7889, ">=40": 0.7889, "3*": 0.7889})


X2 = {
    "a": ["Adm-clerical", "Exec-managerial"],
    "b": ["Handlers-cleaners", "Protective-serv"],
    "c": ["Craft-repair", "Protective-serv"],
}


def jobs():
    return table(
        job=["Adm-clerical", "Handlers-cleaners", "Protective-serv", "Craft-repair", "Farming"],
        sex=["f", "m", "m", "m", "m"],
    )


def test_a_partition_that_overlaps_and_leaves_gaps_is_refused_for_both():
    with pytest.raises(InputError) as caught:
        hm.discrimination_rate(jobs(), "job", "sex", partition=X2)
    assert "1 value(s) stand in several blocks" in str(caught.value)
    assert "1 value(s) of the table stand in no block" in str(caught.value)
    assert "Farming" not in str(caught.value)


def test_first_match_and_own_block_are_recorded():
    found = discriminate_tuples(jobs(), "job", "sex", Partition(X2, overlap="first", rest="own"))
    assert len(found.notes) == 2
    # Blocks a, b, b, c, own: one, two, one, one of five.
    assert found.entropy == pytest.approx(1.9219, abs=CLOSE)


def test_the_last_edge_is_outside():
    with pytest.raises(InputError, match="1 value"):
        hm.discrimination_rate(table(x=[4, 15], y=[1, 2]), "x", "y", partition=Cuts(0, 5, 15))


def test_a_target_that_never_varies_is_undefined():
    rows = table(x=["a"] * 3, y=[1, 2, 3])
    assert math.isnan(hm.discrimination_rate(rows, "x", "y"))
    found = discriminate_tuples(rows, "x", "y")
    assert found.degenerate
    assert found.to_dict()["rate"] is None
    assert hm.discrimination_rate(rows, "x", "y", undefined=1.0) == 1.0


def test_suppressed_cells_count_as_asked():
    rows = table(x=["a", "b", "a", "b"], y=["1", "2", "*", None])
    assert discriminate_tuples(rows, "x", "y").rows == 4
    dropped = discriminate_tuples(rows, "x", "y", suppressed="drop")
    assert (dropped.rows, dropped.left_out, dropped.rate) == (3, 1, 1)
    assert discriminate_tuples(rows, "x", "y", suppressed="missing").rate == close(0.5)


def test_a_missing_value_is_a_value_of_its_own():
    assert hm.discrimination_rate(table(x=["a", "b"], y=[1, None]), "x", "y") == 1


def test_no_value_in_words():
    found = hm.discrimination_rate(table(x=["a", "b"], y=["canary", "o"]), "x", "y", values=True)
    assert "canary" not in repr(found) + repr(found.details)
    with pytest.raises(InputError, match="Unknown columns: 'z'"):
        hm.discrimination_rate(table(x=[1], y=[2]), "x", "z")
    with pytest.raises(ParameterError):
        hm.discrimination_rate(table(x=[1], y=[2]), "x", [])


COLUMN = st.lists(st.integers(0, 3), min_size=2, max_size=30)


@given(st.data())
def test_sum_rule_bounds_and_monotony(data):
    n = data.draw(st.integers(2, 30))
    column = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    x, y, z = (data.draw(column) for _ in range(3))
    rows = table(x=x, y=y, z=z, half=[v // 2 for v in y], constant=[0] * n)
    found = hm.discrimination_rate(rows, "x", "y", values=True)
    if found.degenerate:
        return
    assert 1 - found.rate == pytest.approx(sum(1 - rate for rate in found.values()), abs=1e-9)
    assert -1e-12 <= found.rate <= 1
    assert all(found.rate - 1e-9 <= rate <= 1 for rate in found.values())
    assert hm.discrimination_rate(rows, "x", ["y", "z"]) >= found.rate - 1e-9
    assert hm.discrimination_rate(rows, "x", "half") <= found.rate + 1e-9
    assert hm.discrimination_rate(rows, "x", "x") == 1
    assert hm.discrimination_rate(rows, "x", "constant") == 0


@given(st.data())
def test_all_sets_agree_with_one_set_at_a_time(data):
    n = data.draw(st.integers(2, 40))
    column = st.lists(st.integers(0, 2), min_size=n, max_size=n)
    rows = table(**{name: data.draw(column) for name in "xabcd"})
    for one in rank_column_sets(rows, "x", list("abcd"), size=3):
        alone = discriminate_tuples(rows, "x", one.columns)
        if not alone.degenerate:
            assert one.rate == pytest.approx(alone.rate, abs=1e-9)
            assert one.kind == alone.kind
            assert one.identified_rows == alone.identified_rows


@given(st.data())
def test_it_is_homogeneity_of_scikit_learn(data):
    metrics = pytest.importorskip("sklearn.metrics")
    n = data.draw(st.integers(2, 30))
    column = st.lists(st.integers(0, 3), min_size=n, max_size=n)
    x, y = data.draw(column), data.draw(column)
    rate = hm.discrimination_rate(table(x=x, y=y), "x", "y")
    if not math.isnan(rate):
        assert rate == pytest.approx(metrics.homogeneity_score(x, y), abs=1e-9)


def test_k_anonymity_bounds_the_rate_of_a_row_number():
    rows = table(id=list(range(9)), zip=E5_ZIP_STAR)
    assert hm.discrimination_rate(rows, "id", "zip") == pytest.approx(1 - math.log(3) / math.log(9))


def test_small_groups_inflate_and_shuffling_shows_it():
    random = np.random.default_rng(1)
    rows = table(x=random.integers(0, 2, 400), y=random.integers(0, 200, 400))
    found = inflation(Tuples.of(rows), "x", "y")
    assert found.rate > 0.3
    assert found.chance.value == pytest.approx(found.rate, abs=0.1)
    assert abs(found.adjusted.value) < 0.2
    real = inflation(Tuples.of(table(x=[0, 1] * 200, y=[0, 1] * 200)), "x", "y")
    assert real.adjusted.trusted
    assert real.adjusted.value == pytest.approx(1)


@pytest.mark.parametrize(("groups", "permutations"), [(50, 20), (200, 5)])
def test_what_chance_gives_is_seldom_said_to_be_beyond_it(groups, permutations):
    random = np.random.default_rng(5)
    beyond = 0
    for _ in range(100):
        rows = table(x=random.integers(0, 3, 400), y=random.integers(0, groups, 400))
        beyond += inflation(Tuples.of(rows), "x", "y", permutations=permutations).adjusted.trusted
    assert beyond <= 8  # 2.5 % are expected, and four deviations


def test_a_rate_is_beyond_chance_above_what_one_more_shuffle_gives():
    # Mean 0.2, deviation 0.1: 0.2 + 4.3027 * 0.1 * sqrt(4 / 3) with two degrees of freedom.
    assert _prediction_end([0.1, 0.2, 0.3]) == pytest.approx(0.69683, abs=1e-5)
    chance = Estimate(0.5, 0.4, 0.6, 20)
    for rate, beyond in ((0.65, False), (0.7, False), (0.75, True)):
        found = _adjust(rate, chance, 0.7)
        assert found.value == pytest.approx((rate - 0.5) / 0.5)
        assert (found.trusted, found.reason == "") == (beyond, beyond)


def test_adult_rates(adult):
    rows = hm.read(adult, schema={})
    rows = hm.Table(rows.arrow.slice(1), rows.schema)  # the thesis read the first row as a header
    expected = {
        "age": (0.1204, 0.0279), "education": (0.1154, 0.0990), "native-country": (0.0115, 0.0126),
        "race": (0.0102, 0.0057), "marital-status": (0.1945, 0.0227), "workclass": (0.0211, 0.0495),
        "sex": (0.0462, 0.0441),
    }  # fmt: skip
    assert len(rows) == 30161
    for name, (salary, job) in expected.items():
        assert hm.discrimination_rate(rows, "salary-class", name) == close(salary)
        assert hm.discrimination_rate(rows, "occupation", name) == close(job)
    race = hm.discrimination_rate(rows, "salary-class", "race", values=True)
    assert race["White"] == close(0.1161)
    assert race["Other"] == close(0.9958)
    assert race.of("White").unweighted == close(-0.0281)
    assert race.of("Asian-Pac-Islander").unweighted == close(-0.0517)
    keys = ["age", "education", "native-country", "race"]
    assert hm.discrimination_rate(rows, "salary-class", keys) == close(0.3164)
    found = inflation(Tuples.of(rows), "salary-class", keys, permutations=5)
    assert found.chance.value == pytest.approx(0.1304, abs=5e-3)
    old = {"age": Cuts(0, 80, math.inf)}
    assert hm.discrimination_rate(rows, "salary-class", "age", old) == close(0.0002)


MARITAL = ["marital-status", "native-country", "race", "workclass"]
FIGURE_3 = ["age", "education", "native-country", "race"]
ADULT_RUNS = [
    (MARITAL, (0, 0, 0, 0), 10, 1352, 127, (0.9407, 0.7414, 0.8872, 0.9295), "occupation",
     (0.0227, 0.0101, 0.0060, 0.0468)),
    (MARITAL, (0, 0, 0, 0), 15, 1746, 93, (0.9247, 0.6715, 0.8558, 0.9142), "occupation",
     (0.0225, 0.0088, 0.0060, 0.0467)),
    (FIGURE_3, (2, 0, 0, 0), 5, 1873, 302, (0.4020, 0.9206, 0.6352, 0.8513), "salary-class",
     (0.0984, 0.1056, 0.0072, 0.0096)),
    (FIGURE_3, (2, 0, 0, 0), 10, 2606, 185, (0.3907, 0.8937, 0.5111, 0.7981), "salary-class",
     (0.0969, 0.1038, 0.0049, 0.0100)),
]  # fmt: skip


@pytest.mark.parametrize("run", ADULT_RUNS, ids=["10-anonymity", "15", "5, other keys", "10"])
def test_adult_anonymized(adult_table, run):
    keys, levels, k, suppressed, classes, ids, target, homogeneity = run
    rows = hm.Table(adult_table.arrow.slice(1), adult_table.schema)
    columns = {}
    for name, level in zip(keys, levels, strict=True):
        hierarchy = rows.hierarchy(name)
        labels = [str(label) for label in hierarchy.labels[level]]
        columns[name] = np.array(labels, dtype=object)[
            hierarchy.maps[level][rows.encode(name).codes]
        ]
    tuples = np.array(["|".join(one) for one in zip(*columns.values(), strict=True)])
    _, place, counts = np.unique(tuples, return_inverse=True, return_counts=True)
    gone = counts[place] < k
    assert int(gone.sum()) == suppressed
    assert int((counts >= k).sum()) == classes
    starred = {name: np.where(gone, "*", held) for name, held in columns.items()}
    starred[target] = rows.arrow[target].to_pylist()
    released = table(**starred)
    for name, id_rate, other in zip(keys, ids, homogeneity, strict=True):
        assert identity(rows, released, name) == close(id_rate)
        assert hm.discrimination_rate(released, target, name) == close(other)
