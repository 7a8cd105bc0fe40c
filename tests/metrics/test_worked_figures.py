"""Single figures of the worked tables, beside the rates that ``test_worked_tables.py`` holds.

Sources: Sondeck, 2017 (discrimination-rate, section 2, E2 to E11); Nguyen and Castelluccia, 2020
(tabular-models, section 2); Benkhelif, 2018 (coclustering, 13.1 and 13.9); Michel, 2019
(personal-anonymity, section 2, E1, E3 to E5, E9, E10).
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics import partition
from halfmask.metrics.discrimination.rate import discriminate_tuples
from halfmask.metrics.discrimination.release_rates import information_loss
from halfmask.metrics.risk.disclosure import minimality
from halfmask.metrics.risk.reidentification import prosecutor_risks
from halfmask.metrics.sides import sides
from halfmask.metrics.space import space_of
from halfmask.metrics.utility.distributions import divergence, hellinger
from halfmask.metrics.weighted import entropy_of
from halfmask.models import t_closeness
from halfmask.table.classes import classes_of, distinct_classes
from halfmask.table.tuples import Tuples

in_classes = partition.PointClasses.of_rows

THREE = ["a", "a", "a", "b", "b", "b", "c", "c", "c"]


def close(value):
    return pytest.approx(value, abs=1e-4)


def table(schema=None, **columns):
    return hm.read(pa.table(columns), schema=schema or {})


def classed(values, hierarchy=None, q=THREE):
    column = {"role": "sensitive"} | ({"hierarchy": {"tree": hierarchy}} if hierarchy else {})
    return table({"columns": {"q": "quasi", "s": column}}, q=q, s=values)


def test_e2_classes_and_counts_of_the_anatomized_table():
    ill = ["colon", "stomach", "lung", "diabetes", "diabetes", "aids", "aids", "flu", "lung"]
    rows = classed(ill, q=["<=32"] * 3 + [">32"] * 5 + ["<=32"])
    assert hm.assess(rows).sizes == (("3-4", 1, 4), ("5-9", 1, 5))
    held = classes_of(Tuples.of(rows), ["q"], columns=["s"]).histograms["s"]
    parts = [held.counts[held.starts[i] : held.starts[i + 1]].tolist() for i in range(2)]
    assert sorted(map(sorted, parts)) == [[1, 1, 2], [1, 2, 2]]


SALARY = [4, 5, 6, 7, 12, 9, 8, 10, 11]
CLOSE_SALARY = [4, 6, 10, 7, 12, 9, 5, 8, 11]
CLOSE_ILL = ["colon", "lung", "flu", "stomach", "diabetes", "aids", "stomach", "aids", "lung"]
CANCERS = ["colon", "lung", "stomach"]
DISTANCES = {
    "salary, 3-diverse": (SALARY, "ordered", None, (0.375, 0.1667, 0.2361)),
    "salary, t-close": (CLOSE_SALARY, "ordered", None, (0.1667, 0.1667, 0.0833)),
    "disease, equal": (CLOSE_ILL, "equal", None, (0.5556, 0.4444, 0.3333)),
    "disease, cancer or not": (
        CLOSE_ILL, "hierarchical", {"cancer": CANCERS, "other": ["aids", "flu", "diabetes"]},
        (0.3333, 0.3333, 0.2222)),
    "disease, infectious": (
        CLOSE_ILL, "hierarchical", {"yes": ["aids", "flu"], "no": [*CANCERS, "diabetes"]},
        (0.2778, 0.2222, 0.1667)),
    "patients": (["H", "H", "H", "R", "H", "A", "H", "C", "C"], "equal", None, (0.4444,) * 3),
    "conditions": (["C", "C", "H", "C", "V", "V", "H", "V", "C"], "equal", None,
                   (0.3333, 0.3333, 0.1111)),
}  # fmt: skip


@pytest.mark.parametrize("name", DISTANCES)
def test_e3_distance_of_each_class(name):
    values, kind, hierarchy, expected = DISTANCES[name]
    held = classes_of(Tuples.of(classed(values, hierarchy)), ["q"], columns=["s"]).histograms["s"]
    distance = getattr(t_closeness, kind if kind == "hierarchical" else f"{kind}_distance")
    moved, full = distance(held, held.totals(), "s")
    assert (moved.astype(float) / full.astype(float)).tolist() == close(list(expected))


def test_e3_k_and_l_of_the_published_tables():
    ill = ["lung", "lung", "lung", "flu", "diabetes", "flu", "aids", "aids", "diabetes"]
    k, diverse = hm.check(classed(ill), hm.KAnonymity(3), hm.LDiversity(2, "s"))
    assert (k.achieved, diverse.achieved) == (3, 1)
    ill = ["colon", "stomach", "lung", "stomach", "diabetes", "aids", "aids", "flu", "lung"]
    (verdict,) = hm.check(classed(ill), hm.LDiversity(3, "s"))
    assert (verdict.holds, verdict.achieved) == (True, 3)


def test_e3_counts_of_each_row():
    zips = [75002, 75005, 75002, 75012, 75002, 75002, 75012, 75012, 75002]
    ages = [22, 23, 22, 45, 63, 40, 35, 35, 25]
    ill = ["lung", "lung", "lung", "flu", "diabetes", "flu", "aids", "aids", "diabetes"]
    keys = {"zip": "quasi", "age": "quasi", "ill": "quasi"}
    classes, of_row = distinct_classes(
        Tuples.of(table(keys, zip=zips, age=ages, ill=ill)), list(keys)
    )
    risks = prosecutor_risks(classes.people, of_row)
    assert (1 / risks).tolist() == [2, 1, 2, 1, 1, 1, 2, 2, 1]


@pytest.mark.parametrize(
    ("keys", "left"),
    [(["zip"], 3.1699), (["age"], 1.0566), (["salary"], 0), (["disease"], 1.5850),
     (["age", "disease"], 0.7505), (["age", "disease", "salary"], 0)],
)  # fmt: skip
def test_e4_information_that_is_left(keys, left):
    rows = table(
        subject=list(range(9)), zip=["35000"] * 9, age=[22, 35, 63, 22, 22, 35, 45, 35, 40],
        salary=[4, 5, 3, 13, 8, 15, 9, 7, 11], disease=list("cdmccmmdd"),
    )  # fmt: skip
    found = discriminate_tuples(rows, "subject", keys)
    assert found.entropy == close(3.1699)
    assert found.residual == close(left)


def test_e6_and_e7_information_an_attacker_must_bring():
    anonymous = table(
        age=THREE,
        one=["diabetes", "cardiology", "cancer", "hiv", "cancer", "cardiology", "diabetes", "hiv",
             "hiv"],
        two=["church"] * 3 + ["synagogue", "mosque", "synagogue", "mosque", "mosque", "synagogue"],
    )  # fmt: skip
    assert 1 - hm.discrimination_rate(anonymous, "one", "age") == close(0.69)
    assert 1 - hm.discrimination_rate(anonymous, "two", "age") == close(0.3863)
    for name, expected in (("one", (0.2675, 0.2675, 0.155)), ("two", (0, 0.1931, 0.1931))):
        found = hm.discrimination_rate(anonymous, name, "age", values=True)
        assert [1 - found[value] for value in "abc"] == close(list(expected))
    assert information_loss([0.5, 0.6551]) == close(0.4224)
    assert information_loss([0.31, 0.6137]) == close(0.5381)
    assert information_loss([0.1975, 0]) == close(0.9013)


def test_e9_entropies_and_half_of_the_salaries_are_low():
    assert entropy_of(np.array([5, 4])) == close(0.9911)
    assert entropy_of(np.array([3, 3, 3])) == close(1.5850)
    assert entropy_of(np.array([6, 3])) == close(0.9183)
    rows = table(zip=["355**"] * 3 + ["3581*"] * 3 + ["355**"] * 3, salary=SALARY)
    low = {"low": [4, 5, 6], "medium": [7, 8, 9], "high": [10, 11, 12]}
    found = hm.discrimination_rate(rows, "salary", "zip", low, values=True)
    assert (found.of("355**").count, found.of("355**").top) == (6, 0.5)


def test_patients_by_entropy_and_frequency():
    rows = classed(["H", "H", "H", "R", "H", "A", "H", "C", "C"])
    checked = hm.check(
        rows, hm.KAnonymity(3), hm.LDiversity(2, "s"), hm.LDiversity(2, "s", "entropy")
    )
    assert [v.achieved for v in checked] == [3, 1, 1]
    for place, nats, effective in (("b", 1.098612, 3), ("c", 0.636514, 1.8899)):
        one = hm.read(rows.arrow.filter(pa.array([q == place for q in THREE])), rows.schema)
        (verdict,) = hm.check(one, hm.LDiversity(2, "s", "entropy"))
        assert math.log(verdict.achieved) == close(nats)
        assert verdict.achieved == close(effective)
    (last,) = (hm.read(rows.arrow.slice(6), rows.schema),)
    for c, holds in ((2, False), (2.01, True)):
        assert hm.check(last, hm.LDiversity(2, "s", "recursive", c=c))[0].holds is holds
    (found,) = hm.assess(rows).disclosures
    assert found.skewness == close(2 / 3 - 2 / 9)


def test_distances_of_two_small_distributions():
    p, q = np.array([0.5, 0.5]), np.array([0.9, 0.1])
    assert hellinger(p, q) == pytest.approx(0.324920, abs=1e-6)
    assert hellinger(np.array([1.0, 0]), np.array([0, 1.0])) == 1
    assert divergence(p, q, 10**9) == pytest.approx(0.736966, abs=1e-6)
    assert divergence(p, q, 10**9) * math.log(2) == pytest.approx(0.510826, abs=1e-6)


CONDITION = ["C", "C", "H", "C", "V", "V", "H", "V", "C"]


def test_table_3_3_of_personal_anonymity():
    rows = classed(CONDITION)
    k, diverse = hm.check(rows, hm.KAnonymity(3), hm.LDiversity(2, "s"))
    assert (k.achieved, diverse.achieved) == (3, 2)
    held = classes_of(Tuples.of(rows), ["q"], columns=["s"]).histograms["s"]
    first = held.counts[held.starts[0] : held.starts[1]] / 3
    assert sorted(first.tolist()) == close([1 / 3, 2 / 3])
    found = discriminate_tuples(rows, "s", "q")
    assert found.entropy == close(1.53049)
    assert (1 - found["a"]) * found.entropy == close(0.30610)


def test_minimality_of_table_3_4():
    # Two q1 with VI and three q2 with Cancer: 2-diversity merges them, 2-anonymity would not.
    tree = {"tree": {"q": ["q1", "q2"], "r": ["r1"]}}
    schema = {"q": {"role": "quasi", "hierarchy": tree}, "s": "sensitive"}
    rows = {"q": ["q1"] * 2 + ["q2"] * 3 + ["r1"] * 2, "s": list("VVCCCVC")}
    released = table(q=["q"] * 5 + ["r"] * 2, s=rows["s"])
    found = minimality(sides(table(schema, **rows), released))
    assert found.value == pytest.approx(5 / 7)


def test_e5_height_of_the_common_label_of_two_workclasses():
    work = {
        "Employed": {"P": ["Private"], "Self": ["Self-emp-inc", "Self-emp-not-inc"],
                     "gov": ["Federal-gov", "State-gov", "Local-gov"]},
        "Unpaid": {"U": ["Without-pay", "Never-worked"]},
    }  # fmt: skip
    schema = {"w": {"role": "quasi", "hierarchy": {"tree": work}}}
    rows = table(schema, w=["State-gov", "Local-gov", "Private", "Never-worked"])
    space = space_of(rows)
    assert partition.tree_loss(
        in_classes(space.take(np.arange(2)), np.zeros(2, dtype=int))
    ) / 2 == close(1 / 3)
    assert partition.tree_loss(in_classes(space, np.array([0, 0, 1, 1]))) / 2 == close(1 / 3 + 1)


def test_e10_most_classes_are_not_the_least_loss():
    rows = table({"x": "quasi"}, x=[0, 0, 0, 100, 100, 100])
    assert partition.class_limit(np.full(6, 2)) == 3
    assert partition.diameter_loss(in_classes(space_of(rows), np.array([0, 0, 0, 1, 1, 1]))) == 0
    assert partition.diameter_loss(in_classes(space_of(rows), np.array([0, 0, 1, 1, 2, 2]))) == 2
