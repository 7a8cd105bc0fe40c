"""Worked tables of the specifications that no other file of tests holds.

Discrimination rate (Sondeck, 2017): E1, E3 to E12 and Adult in discrimination/test_rate.py, special
uniques of E3 in risk/test_uniques.py, E2 and the t-closeness of E3 here, Adult under l and t here.
Tabular models (Nguyen and Castelluccia, 2020): 1 to 4 in risk/test_reidentification.py and
risk/test_uniques.py, 5 in utility/test_moments.py, 6 to 8 in ../models/test_worked_examples.py, 9
to 12 in ../dp. Co-clustering, section 5 (Benkhelif, 2018): Patients here. Personal anonymity, 1D
(Michel, 2019): Table 3.3 in test_partition.py, the rates of Table 3.5 here.
"""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from full_domain import identity, recoded

import halfmask as hm
from halfmask.metrics import partition
from halfmask.metrics.discrimination.release_rates import meaning_of, original_blocks
from halfmask.metrics.risk.disclosure import disclosure
from halfmask.metrics.space import space_of
from halfmask.table.classes import classes_of
from halfmask.table.tuples import Tuples

in_classes = partition.PointClasses.of_rows

AGE = [22, 22, 22, 45, 63, 40, 35, 35, 32]
SALARY = [4, 5, 6, 7, 12, 9, 8, 10, 11]
ILL = ["colon", "stomach", "lung", "diabetes", "diabetes", "aids", "aids", "flu", "lung"]


def close(value):
    return pytest.approx(value, abs=1e-4)


def anatomy_count(groups, holds, matches):
    """Xiao and Tao, 2006: sum over groups of (rows with the value) * (matching rows) / size."""
    held, fitting = (np.bincount(groups, weights=rows) for rows in (holds, matches))
    return float((held * fitting / np.bincount(groups)).sum())


@pytest.mark.parametrize(("oldest", "estimate"), [(99, 2.0), (35, 0.8)], ids=["age >= 35", "= 35"])
def test_e2_anatomy_estimates_counts(oldest, estimate):
    age, ill = np.array(AGE), np.array(ILL)
    groups = np.array([0, 0, 0, 1, 1, 1, 1, 1, 0])
    matches = (age >= 35) & (age <= oldest)
    assert anatomy_count(groups, ill == "aids", matches) == close(estimate)


def test_e2_microaggregation_squares():
    groups = np.repeat([0, 1, 2], 3)
    for values, within, whole in ((AGE, 298.6667, 1424.8889), (SALARY, 19.3333, 60.0)):
        table = hm.read(pa.table({"x": values}), schema={"x": "quasi"})
        span = (max(values) - min(values)) ** 2
        space = space_of(table)
        assert partition.squared_distances(in_classes(space, groups)) * span == close(within)
        assert partition.squared_distances(in_classes(space, groups * 0)) * span == close(whole)


DIVERSE = ["a", "a", "a", "b", "b", "b", "c", "c", "c"]
CLOSE_SALARY = [4, 6, 10, 7, 12, 9, 5, 8, 11]
CLOSE_ILL = ["colon", "lung", "flu", "stomach", "diabetes", "aids", "stomach", "aids", "lung"]
INFECTIOUS = {"infectious": ["aids", "flu"], "other": ["colon", "lung", "stomach", "diabetes"]}


@pytest.mark.parametrize(
    ("values", "distance", "t"),
    [(SALARY, "ordered", 0.375), (CLOSE_SALARY, "ordered", 0.1667), (CLOSE_ILL, "equal", 0.5556),
     (CLOSE_ILL, "hierarchical", 0.2778)],
    ids=["salary, 3-diverse", "salary, t-close", "disease, equal", "disease, infectious"],
)  # fmt: skip
def test_e3_closeness(values, distance, t):
    column = {"role": "sensitive"}
    if distance == "hierarchical":
        column["hierarchy"] = {"tree": INFECTIOUS}
    schema = {"columns": {"q": "quasi", "s": column}}
    table = hm.read(pa.table({"q": DIVERSE, "s": values}), schema=schema)
    (verdict,) = hm.check(table, hm.TCloseness(0.9, "s", distance))
    assert verdict.achieved == close(t)


def test_patients_under_the_attacks_on_classes():
    heart = {"heart": ["Hypertension", "Arrhythmia", "Atherosclerosis"], "other": ["Cancer"]}
    ill = ["Hypertension"] * 3 + ["Arrhythmia", "Hypertension", "Atherosclerosis"]
    ill += ["Hypertension", "Cancer", "Cancer"]
    schema = {"columns": {"q": "quasi", "s": {"role": "sensitive", "hierarchy": {"tree": heart}}}}
    table = hm.read(pa.table({"q": DIVERSE, "s": ill}), schema=schema)
    blocks = original_blocks(table, "s", meaning_of(table, "s"))
    found = disclosure(classes_of(Tuples.of(table), ["q"], columns=["s"]), "s", blocks)
    assert found.homogeneity == close(3 / 9)
    assert found.background == close(6 / 9)  # the third class is certain without one value
    assert found.skewness == close(2 / 3 - 2 / 9)
    assert found.similarity == close(3 / 9)  # three values, all of the heart
    assert found.mean_shift == close(4 / 9)


def test_table_3_5_of_personal_anonymity():
    age = [25, 32, 35, 38, 39, 44, 70, 70, 50]
    condition = ["C", "C", "H", "C", "V", "V", "H", "V", "C"]
    rows = pa.table({"age": age, "wide": DIVERSE, "condition": condition, "zip": list(range(9))})
    table = hm.read(rows, schema={})
    assert hm.discrimination_rate(table, "condition", "wide") == close(0.2548)
    assert hm.discrimination_rate(table, "condition", "age") == close(0.8548)
    assert hm.discrimination_rate(table, "age", "wide") == close(0.53769)
    assert hm.discrimination_rate(table, "condition", ["zip", "age"]) == 1


def distinct(counts, _):
    return (counts > 0).sum() >= 10


def two_distinct(counts, _):
    return (counts > 0).sum() >= 2


def entropy(counts, _):
    p = counts[counts > 0] / counts.sum()
    return -(p @ np.log2(p)) >= math.log2(10)


def recursive(counts, _):
    r = np.sort(counts)[::-1]
    return r[0] < 5 * r[9:].sum()


def near(counts, whole):
    return np.abs(counts / counts.sum() - whole).sum() / 2 <= 0.3


MARITAL = ["marital-status", "native-country", "race", "workclass"]
INCOME = ["age", "education", "native-country", "race"]
JOB = ["age", "education", "race", "sex"]
RUNS = {
    "distinct-10": (MARITAL, (0, 0, 0, 0), distinct, 3119, 47, (0.8630, 0.5003, 0.7540, 0.8395),
                    "occupation", (0.0229, 0.0057, 0.0066, 0.0438)),
    "entropy-10": (MARITAL, (2, 0, 0, 1), entropy, 7037, 3, (0, 0.2489, 0.6058, 0.2599),
                   "occupation", (0, 0.0155, 0.0198, 0.0155)),
    "recursive-(5,10)": (MARITAL, (0, 0, 0, 1), recursive, 6771, 22,
                         (0.7567, 0.3247, 0.6206, 0.2686), "occupation",
                         (0.0352, 0.0163, 0.0204, 0.0157)),
    "2-diverse": (INCOME, (2, 1, 0, 0), two_distinct, 2243, 272, (0.4012, 0.5501, 0.6686, 0.8443),
                  "salary-class", (0.0997, 0.0842, 0.0232, 0.0251)),
    "10-diverse": (JOB, (2, 1, 0, 0), distinct, 2806, 64, (0.3849, 0.5216, 0.7550, 0.8986),
                   "occupation", (0.0208, 0.0555, 0.0086, 0.0432)),
    "0.3-close": (JOB, (3, 3, 0, 0), near, 2860, 19, (0.2509, 0, 0.8201, 0.8975), "occupation",
                  (0.0158, 0, 0.0153, 0.0497)),
}  # fmt: skip


@pytest.mark.parametrize("run", RUNS)
def test_adult_under_l_and_t(adult_table, run):
    keys, levels, keeps, suppressed, classes, ids, target, rates = RUNS[run]
    rows = hm.Table(adult_table.arrow.slice(1), adult_table.schema)
    released, *found = recoded(rows, keys, levels, keeps, target)
    assert found == [suppressed, classes]
    for name, id_rate, rate in zip(keys, ids, rates, strict=True):
        assert identity(rows, released, name) == close(id_rate)
        assert hm.discrimination_rate(released, target, name) == close(rate)
