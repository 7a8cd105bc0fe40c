"""Attacks on releases as discrimination rates: the thesis, scikit-learn, and counts by hand."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from pyarrow import csv

import halfmask as hm
from halfmask.errors import InputError
from halfmask.metrics.discrimination.release_rates import release_rates
from halfmask.metrics.sides import sides
from halfmask.table.tuples import Tuples

CLOSE = 1e-4


def close(value):
    return pytest.approx(value, abs=CLOSE)


def plain(**columns):
    return hm.read(pa.table(columns), schema={})


def by(found, attack, target, *keys):
    (one,) = [
        one
        for one in found.rates
        if one.attack == attack and one.target == target and one.keys == keys
    ]
    return one


AGES = {"2*": ["22"], "3*": ["35", "39", "32"], ">=40": ["45", "40", "63"]}
ZIP = {"role": "quasi", "hierarchy": {"mask": 5}}
AGE = {"role": "quasi", "hierarchy": {"tree": AGES}}


def test_e5_identity_through_compare():
    """Tables 4.2 and 4.5."""
    age = [22, 22, 22, 35, 39, 35, 45, 40, 63]
    zips = ["35510", "35512", "35517", "35877", "35830", "35618", "35620", "35842", "35655"]
    rows = pa.table({"zip": zips, "age": [str(a) for a in age]})
    original = hm.read(rows, schema={"zip": ZIP, "age": AGE})
    released = plain(
        zip=["355**"] * 3 + ["358**", "358**", "356**", "356**", "358**", "356**"],
        age=["2*"] * 3 + ["3*"] * 3 + [">=40"] * 3,
    )
    found = hm.compare(original, released, learn=False).discrimination
    assert by(found, "identity", "zip", "zip").rate == close(0.5)
    assert by(found, "identity", "age", "age").rate == close(0.6551)
    assert by(found, "identity", "age", "age").identified_rows == 3  # all of 2* are 22
    (lost,) = found.losses
    assert (lost.attack, lost.rate, lost.loss) == ("identity", close(0.5776), close(0.4224))
    assert found.loss == close(0.4224)  # there is no sensitive column
    assert found.pairing.startswith("Which row became which follows")


def label_rates_of(found, attack, column, target):
    return {
        one.label: one.rate
        for one in found
        if (one.attack, one.column, one.target) == (attack, column, target)
    }


def test_e5_identity_label_by_label():
    """Table 4.5, with the share of the likeliest value and what a label says however rare."""
    age = [22, 22, 22, 35, 39, 35, 45, 40, 63]
    zips = ["35510", "35512", "35517", "35877", "35830", "35618", "35620", "35842", "35655"]
    rows = pa.table({"zip": zips, "age": [str(a) for a in age]})
    original = hm.read(rows, schema={"zip": ZIP, "age": AGE})
    released = plain(
        zip=["355**"] * 3 + ["358**", "358**", "356**", "356**", "358**", "356**"],
        age=["2*"] * 3 + ["3*"] * 3 + [">=40"] * 3,
    )
    found = hm.compare(original, released, learn=False, values=True).labels
    ages = label_rates_of(found, "identity", "age", "age")
    assert ages == {"2*": close(1), "3*": close(0.8735), ">=40": close(0.7816)}
    zips = label_rates_of(found, "identity", "zip", "zip")
    assert zips == dict.fromkeys(("355**", "358**", "356**"), close(0.8333))
    three = next(one for one in found if one.label == "3*")
    assert (three.rows, three.share, three.top) == (3, close(1 / 3), close(2 / 3))
    # The gaps to 1 add up to that of the column, 0.6551.
    assert 1 - sum(1 - rate for rate in ages.values()) == close(0.6551)
    assert hm.compare(original, released, learn=False).labels is None


def test_e6_homogeneity_label_by_label():
    """Table 4.6, where print exchanges the rows of 2* and >=40."""
    found = hm.compare(*t43(), learn=False, values=True).labels
    first = label_rates_of(found, "homogeneity", "age", "loc1")
    assert first == {"2*": close(0.7325), "3*": close(0.7325), ">=40": close(0.8450)}
    second = label_rates_of(found, "homogeneity", "age", "loc2")
    assert second == {"2*": close(1), "3*": close(0.8069), ">=40": close(0.8069)}
    assert label_rates_of(found, "homogeneity", "zip", "loc1") == {"*": close(0)}


def test_rows_that_were_left_out_are_no_label():
    original, released = t43()
    kept = hm.read(released.arrow.slice(0, 6), schema={})
    found = hm.compare(original, kept, learn=False, values=True).labels
    assert set(label_rates_of(found, "identity", "age", "age")) == {"2*", "3*"}


def t43():
    """Table 4.3, three-anonymous; the original ages are made up under their labels."""
    columns = {
        "zip": ["35000"] * 9,
        "age": ["22", "22", "22", "35", "39", "32", "45", "40", "63"],
        "loc1": ["diabetes", "cardiology", "cancer", "hiv", "cancer", "cardiology", "diabetes",
                 "hiv", "hiv"],
        "loc2": ["church"] * 3 + ["synagogue", "mosque", "synagogue", "mosque", "mosque",
                                  "synagogue"],
    }  # fmt: skip
    schema = {"zip": ZIP, "age": AGE, "loc1": "sensitive", "loc2": "sensitive"}
    released = {"zip": ["*"] * 9, "age": ["2*"] * 3 + ["3*"] * 3 + [">=40"] * 3}
    return (
        hm.read(pa.table(columns), schema=schema),
        plain(**released, loc1=columns["loc1"], loc2=columns["loc2"]),
    )


def test_e6_homogeneity_and_background_through_compare():
    found = hm.compare(*t43(), learn=False).discrimination
    for location, rate in (("loc1", 0.31), ("loc2", 0.6137)):
        for keys in (("age",), ("zip", "age")):
            assert by(found, "homogeneity", location, *keys).rate == close(rate)
            assert by(found, "background", location, *keys).rate == close(1 - rate)
        assert by(found, "homogeneity", location, "zip").kind == "zero"
    lost = {one.attack: one for one in found.losses}
    assert (lost["homogeneity"].rate, lost["homogeneity"].loss) == (close(0.4619), close(0.5381))
    assert lost["similarity"].rate is None
    # ZIP never varies and is left out of the mean; H(age) = 2.7255 bits, 9 - 3 kinds: 2/3 of them
    # have log2(3) bits left.
    entropy = math.log2(9) - 3 / 9 * math.log2(3)
    assert lost["identity"].rate == pytest.approx(1 - 6 / 9 * math.log2(3) / entropy)
    assert found.loss == pytest.approx((lost["identity"].loss + lost["homogeneity"].loss) / 2)


SALARY = [4, 5, 6, 7, 12, 9, 8, 10, 11]
DISEASE = ["colon", "stomach", "lung", "stomach", "diabetes", "aids", "aids", "flu", "lung"]
ZIPS = ["35567", "35502", "35560", "35817", "35810", "35812", "35502", "35568", "35505"]
SP4 = {"other": ["diabetes", "flu", "aids"], "cancer": ["colon", "lung", "stomach"]}
SP3 = [[4, 6, 10], [7, 12, 9], [5, 8, 11]]
SP2 = [[4, 5, 6], [7, 8, 9], [10, 11, 12]]


def t53():
    rows = {
        "zip": ZIPS,
        "age": [str(a) for a in (22, 22, 22, 45, 63, 40, 35, 35, 32)],
        "salary": SALARY,
        "disease": DISEASE,
    }
    tree = AGES | {"3*": ["35", "32"]}
    age = {"role": "quasi", "hierarchy": {"tree": {"<=40": {"2*": tree["2*"], "3*": tree["3*"]},
                                                   "40 on": {">=40": tree[">=40"]}}}}  # fmt: skip
    schema = {"zip": ZIP, "age": age, "salary": "sensitive", "disease": "sensitive"}
    return hm.read(pa.table(rows), schema=schema)


def diverse():
    age = ["2*"] * 3 + [">=40"] * 3 + ["3*"] * 3
    zips = ["355**"] * 3 + ["3581*"] * 3 + ["355**"] * 3
    return plain(zip=zips, age=age, salary=SALARY, disease=DISEASE)


def close_release():
    order = [0, 2, 7, 3, 4, 5, 1, 6, 8]
    return plain(
        zip=["3556*"] * 3 + ["3581*"] * 3 + ["3550*"] * 3,
        age=["<=40"] * 3 + [">=40"] * 3 + ["<=40"] * 3,
        salary=[SALARY[i] for i in order],
        disease=[DISEASE[i] for i in order],
    )


@pytest.mark.parametrize(
    ("blocks", "salary", "worse"),
    [(SP2, (0.1931, 0.2804), 0.2804), (SP3, (0.5794, 1), 1)],
    ids=["SP2", "SP3"],
)
def test_e9_similarity_and_its_inversion_through_compare(blocks, salary, worse):
    given = {"salary": blocks, "disease": SP4}
    weaker = hm.compare(t53(), diverse(), learn=False, partition=given).discrimination
    found = hm.compare(
        t53(), close_release(), learn=False, partition=given, weaker=diverse()
    ).discrimination
    assert by(weaker, "similarity", "salary", "zip").rate == close(salary[0])
    assert by(found, "similarity", "salary", "zip").rate == close(salary[1])
    assert by(weaker, "similarity", "disease", "zip", "age").rate == close(0.3823)
    assert by(found, "similarity", "disease", "zip", "age").rate == close(0.0734)
    worst = {(i.attack, i.target, i.keys): (i.rate, i.weaker) for i in found.inversions}
    assert worst["similarity", "salary", ("zip",)] == (close(worse), close(salary[0]))
    assert ("similarity", "disease", ("zip", "age")) not in worst
    assert weaker.inversions is None
    assert (found.rows, found.weaker_rows, weaker.weaker_rows) == (9, 9, None)


def test_the_first_level_of_a_hierarchy_says_what_is_alike():
    """E8: table 5.3 with cancers under one label."""
    rows = {"age": ["22", "22", "22", "45", "63", "40", "35", "35", "32"], "disease": DISEASE}
    schema = {"age": "quasi", "disease": {"role": "sensitive", "hierarchy": {"tree": SP4}}}
    original = hm.read(pa.table(rows), schema=schema)
    found = release_rates(sides(original, original))
    assert by(found, "similarity", "disease", "age").rate == 1
    assert by(found, "homogeneity", "disease", "age").rate == close(0.7002)


def people(ages, ills):
    schema = {
        "age": {"role": "quasi", "hierarchy": {"tree": {"young": ["1", "2"], "old": ["3", "4"]}}},
        "ill": "sensitive",
    }
    return hm.read(pa.table({"age": ages, "ill": ills}), schema=schema)


def test_rows_left_out_are_a_label_of_their_own():
    original = people(["1", "2", "3", "4"], ["a", "b", "a", "b"])
    found = release_rates(sides(original, plain(age=["young", "young"], ill=["a", "b"])))
    one = by(found, "identity", "age", "age")
    assert (one.rate, one.rows) == (pytest.approx(0.5), 4)
    # Of the two rows that were released, age told all and tells nothing.
    assert by(found, "skewness", "ill", "age").rate == pytest.approx(1)
    (gone,) = found.absent
    assert (gone.column, gone.values, gone.absent) == ("age", 4, 2)


def test_a_star_stands_for_no_value():
    original = people(["1", "2", "3", "4"], ["a", "b", "a", "b"])
    found = release_rates(
        sides(original, plain(age=["1", "2", "*", "*"], ill=["a", "b", "a", "b"]))
    )
    assert [(one.column, one.absent) for one in found.absent] == [("age", 2)]
    assert by(found, "identity", "age", "age").rate == pytest.approx(1 - 0.5 * 1 / 2)


def test_invented_values_stand_for_nobody_and_say_so():
    original = people(["1", "2", "3", "4"], ["a", "b", "a", "b"])
    found = release_rates(sides(original, plain(age=["7", "8", "9"], ill=["a", "c", "a"])))
    one = by(found, "identity", "age", "age")
    assert one.rate is None
    assert "cannot be told" in one.reason
    assert by(found, "skewness", "ill", "age").rate is None
    assert found.loss is None
    assert by(found, "homogeneity", "ill", "age").rate == 1


def test_rows_in_order_are_paired_by_place():
    original = people(["1", "2", "3", "4"], ["a", "b", "a", "b"])
    noisy = plain(age=["5", "5", "6", "6"], ill=["a", "b", "a", "b"])
    assert by(release_rates(sides(original, noisy)), "identity", "age", "age").rate is None
    found = release_rates(sides(original, noisy), same_order=True)
    assert by(found, "identity", "age", "age").rate == pytest.approx(0.5)
    with pytest.raises(InputError, match="as many on both sides"):
        release_rates(sides(original, plain(age=["5"], ill=["a"])), same_order=True)


def test_a_column_that_never_varies_is_no_zero():
    original = people(["1", "2"], ["a", "a"])
    found = release_rates(sides(original, original))
    one = by(found, "homogeneity", "ill", "age")
    assert (one.rate, one.before, one.kind) == (None, None, "undefined")
    assert "never varies" in one.reason
    assert found.loss is None


def test_partitions_are_of_sensitive_columns():
    original = people(["1", "2"], ["a", "b"])
    with pytest.raises(InputError, match="age"):
        release_rates(sides(original, original), {"age": [["1"], ["2"]]})


@st.composite
def recoded(draw):
    n = draw(st.integers(2, 40))
    column = st.lists(st.integers(1, 4), min_size=n, max_size=n)
    ages, ills = draw(column), draw(column)
    level = draw(st.sampled_from(["as it is", "one up", "left out"]))
    return [str(a) for a in ages], [f"ill {i}" for i in ills], level


@given(recoded())
@settings(max_examples=examples(60), deadline=None)
def test_the_figures_are_those_of_scikit_learn(case):
    metrics = pytest.importorskip("sklearn.metrics")
    ages, ills, level = case
    up = {"1": "young", "2": "young", "3": "old", "4": "old"}
    labels = [up[a] if level != "as it is" else a for a in ages]
    kept = [level != "left out" or label == "young" for label in labels]
    if not any(kept):
        return
    shown = [(label, ill) for label, ill, k in zip(labels, ills, kept, strict=True) if k]
    both = sides(people(ages, ills), plain(age=[s[0] for s in shown], ill=[s[1] for s in shown]))
    found = release_rates(both)
    told = [label if k else "gone" for label, k in zip(labels, kept, strict=True)]
    one = by(found, "identity", "age", "age")
    if len(set(ages)) > 1:
        assert one.rate == pytest.approx(metrics.homogeneity_score(ages, told), abs=1e-9)
    inner = by(found, "homogeneity", "ill", "age")
    if len({s[1] for s in shown}) > 1:
        expected = metrics.homogeneity_score([s[1] for s in shown], [s[0] for s in shown])
        assert inner.rate == pytest.approx(expected, abs=1e-9)
        mine = [(a, i) for a, i, k in zip(ages, ills, kept, strict=True) if k]
        before = metrics.homogeneity_score([m[1] for m in mine], [m[0] for m in mine])
        delta = by(found, "skewness", "ill", "age").rate
        assert delta == pytest.approx(before - expected, abs=1e-9)
        assert delta >= -1e-9


@given(recoded())
@settings(max_examples=examples(30), deadline=None)
def test_counted_tuples_give_the_same_as_rows(case):
    ages, ills, level = case
    labels = ages if level == "as it is" else ["young" if a in "12" else "old" for a in ages]
    kept = [i for i, one in enumerate(labels) if level != "left out" or one == "young"]
    if not kept:
        return
    labels, told = [labels[i] for i in kept], [ills[i] for i in kept]
    shown = plain(age=labels, ill=told)
    rows = release_rates(sides(people(ages, ills), shown))
    tuples = release_rates(
        sides(_counted(people(ages, ills), ages, ills), _counted(shown, labels, told))
    )
    for one, two in zip(rows.rates, tuples.rates, strict=True):
        assert (one.attack, one.keys, one.kind, one.rows) == (
            two.attack, two.keys, two.kind, two.rows,
        )  # fmt: skip
        for name in ("rate", "before"):
            left, right = getattr(one, name), getattr(two, name)
            assert left == right or left == pytest.approx(right, abs=1e-9)
    assert rows.absent == tuples.absent


def _counted(table, first, second):
    pairs, counts = np.unique(np.array([first, second]), axis=1, return_counts=True)
    arrow = pa.table({"age": pairs[0].tolist(), "ill": pairs[1].tolist()})
    return Tuples(hm.Table(arrow, table.schema), counts.astype(np.int64))


def test_adult_rows_that_were_left_out_count_as_the_thesis_stars(adult_table):
    keys = ["marital-status", "native-country", "race", "workclass"]
    rows = adult_table.arrow.slice(1).select([*keys, "occupation"])
    schema = dict.fromkeys(keys, "quasi") | {"occupation": "sensitive"}
    original = hm.read(rows, schema=schema)
    tuples = np.array(["|".join(t) for t in zip(*(rows[k].to_pylist() for k in keys), strict=True)])
    _, place, counts = np.unique(tuples, return_inverse=True, return_counts=True)
    shown = rows.filter(pa.array(counts[place] >= 10))
    assert len(rows) - len(shown) == 1352
    found = release_rates(sides(original, hm.read(shown, schema={})))
    expected = (0.9407, 0.7414, 0.8872, 0.9295)
    for name, rate in zip(keys, expected, strict=True):
        assert by(found, "identity", name, name).rate == close(rate)
    assert found.absent  # Married-AF-spouse and rare countries are gone


def test_an_engine_gives_the_same_comparison(tmp_path):
    original, released = t43()
    schema = {"zip": ZIP, "age": AGE, "loc1": "sensitive", "loc2": "sensitive"}
    for name, table in (("original", original), ("released", released)):
        csv.write_csv(table.arrow, tmp_path / f"{name}.csv")
    need = hm.Need("loc2", "age", at_least=0.6)
    files = [str(tmp_path / f"{name}.csv") for name in ("original", "released")]
    found = [
        hm.compare(
            hm.read(files[0], schema, engine=engine),
            hm.read(files[1], engine=engine),
            learn=False,
            needs=[need],
            weaker=hm.read(files[0], engine=engine),
        )
        for engine in ("memory", "duckdb")
    ]
    own, other = (one.discrimination for one in found)
    for one, two in zip(own.rates, other.rates, strict=True):
        assert (one.kind, one.rows, one.reason) == (two.kind, two.rows, two.reason)
        assert one.rate == two.rate or one.rate == pytest.approx(two.rate, abs=1e-12)
    assert own.inversions == other.inversions == ()
    assert own.loss == pytest.approx(other.loss)
    assert [one.needs[0].met for one in found] == [True, True]


def test_chance_is_that_of_each_side():
    original = people(["1", "2", "3", "4"], ["a", "b", "a", "b"])
    found = release_rates(sides(original, plain(age=["*"] * 4, ill=["a", "b", "a", "b"])))
    one = by(found, "homogeneity", "ill", "age")
    # Everybody alone looks told whatever the outcome; nobody told apart never does.
    assert (one.before, one.chance_before.value) == (1, 1)
    assert (one.rate, one.chance.value) == (0, pytest.approx(0))


@pytest.mark.parametrize(("copies", "known"), [(3, True), (4, False)])
def test_labels_that_overlap_too_much_pair_nobody(copies, known):
    # The tightest label of 1 is 1, of all others *: one row each where many ones are published.
    ages, ills = ["1", "2", "3", "4", "4"][: copies + 1], ["a", "b", "a", "b", "b"][: copies + 1]
    found = release_rates(sides(people(ages, ills), plain(age=["1"] * copies + ["*"], ill=ills)))
    one = by(found, "identity", "age", "age")
    assert (one.rate is not None) == known
    if known:
        assert "agrees with 50.0% of the published rows" in found.pairing
    else:
        assert "cannot be told" in one.reason
