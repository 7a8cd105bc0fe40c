"""Figures of Adult that Sondeck's thesis, section 6.6 and its recomputation (section 3) give."""

from __future__ import annotations

import math

import numpy as np
import pyarrow as pa
import pytest
from full_domain import recoded

import halfmask as hm
from halfmask.errors import InputError
from halfmask.metrics.discrimination.partition import Cuts, Partition

SP = {
    "a": ["Adm-clerical", "Exec-managerial", "Prof-specialty", "Transport-moving", "Other-service"],
    "b": ["Handlers-cleaners", "Protective-serv", "Tech-support"],
    "c": ["Craft-repair", "Protective-serv", "Sales"],
    "d": ["Machine-op-inspct", "Armed-Forces", "Priv-house-serv"],
}
FIRST = Partition(SP, overlap="first", rest="own")


def close(value):
    return pytest.approx(value, abs=1e-4)


@pytest.fixture(scope="module")
def rows(adult_table):
    return hm.Table(adult_table.arrow.slice(1), adult_table.schema)


def counts(table, name):
    encoded = table.encode(name)
    held = np.bincount(encoded.codes).tolist()
    return dict(zip(encoded.values.to_pylist(), held, strict=True))


def test_counts_of_tables_6_11_and_6_12(rows):
    assert counts(rows, "race") == {
        "Amer-Indian-Eskimo": 286, "Asian-Pac-Islander": 895, "Black": 2817, "Other": 231,
        "White": 25932,
    }  # fmt: skip
    assert counts(rows, "salary-class") == {"<=50K": 22653, ">50K": 7508}
    ages = counts(rows, "age")
    old = sum(count for age, count in ages.items() if age >= 80)
    assert (len(rows) - old, old) == (30070, 91)
    distinct = {"age": 72, "education": 16, "native-country": 41, "race": 5, "marital-status": 7,
                "workclass": 7, "sex": 2}  # fmt: skip
    assert {name: len(counts(rows, name)) for name in distinct} == distinct


def test_races_one_by_one(rows):
    found = hm.discrimination_rate(rows, "salary-class", "race", values=True)
    assert found.entropy == close(0.8096)
    expected = {
        "White": (0.1161, -0.0281), "Black": (0.9357, 0.3117),
        "Asian-Pac-Islander": (0.9688, -0.0517), "Amer-Indian-Eskimo": (0.9938, 0.3501),
        "Other": (0.9958, 0.4571),
    }  # fmt: skip
    for race, (rate, unweighted) in expected.items():
        assert found[race] == close(rate)
        assert found.of(race).unweighted == close(unweighted)


def test_occupations_in_the_blocks_of_figure_5_1(rows):
    plain = hm.discrimination_rate(rows, "occupation", "sex", values=True)
    assert plain.entropy == close(3.3966)
    assert 1 - math.log2(10) / plain.entropy == close(0.0220)  # the bound of entropy-10-diversity
    with pytest.raises(InputError, match="several blocks"):
        hm.discrimination_rate(rows, "occupation", "sex", SP)
    for name, rate in (("sex", 0.0274), ("age", 0.0095), ("education", 0.0494), ("race", 0.0038)):
        assert hm.discrimination_rate(rows, "occupation", name, FIRST) == close(rate)
    keys = ["marital-status", "native-country", "race", "workclass"]
    assert hm.discrimination_rate(rows, "occupation", keys) == close(0.1167)
    halves = hm.discrimination_rate(rows, "salary-class", "age", {"age": Cuts(0, 80, math.inf)})
    assert halves == close(0.0002)


def diverse(held, _):
    return (held > 0).sum() >= 10


def near(held, whole):
    return np.abs(held / held.sum() - whole).sum() / 2 <= 0.3


JOB = ["age", "education", "race", "sex"]


@pytest.mark.parametrize(
    ("levels", "keeps", "rates"),
    [((2, 1, 0, 0), diverse, (0.0077, 0.0271, 0.0058, 0.0248)),
     ((3, 3, 0, 0), near, (0.0035, 0, 0.0032, 0.0261))],
    ids=["10-diverse", "0.3-close"],
)  # fmt: skip
def test_semantic_rates_under_l_and_t(rows, levels, keeps, rates):
    released, _, _ = recoded(rows, JOB, levels, keeps, "occupation")
    for name, rate in zip(JOB, rates, strict=True):
        assert hm.discrimination_rate(released, "occupation", name, FIRST) == close(rate)


@pytest.mark.parametrize(
    ("levels", "keeps", "rate"),
    [((2, 3, 0, 0), near, 0.0249), ((2, 1, 0, 1), diverse, 0.0012)],
    ids=["sex kept", "sex generalized"],
)
def test_sex_as_figure_5_1_has_it(rows, levels, keeps, rate):
    released, _, _ = recoded(rows, JOB, levels, keeps, "occupation", star=None)
    assert hm.discrimination_rate(released, "occupation", "sex", FIRST) == close(rate)


def test_races_score_higher_after_5_anonymity(rows):
    keys = ["age", "education", "native-country", "race"]
    released, _, _ = recoded(
        rows, keys, (2, 0, 0, 0), lambda held, _: held.sum() >= 5, "salary-class"
    )
    found = hm.discrimination_rate(released, "salary-class", "race", values=True)
    expected = {"Amer-Indian-Eskimo": 0.9962, "Asian-Pac-Islander": 0.9846, "Black": 0.9410,
                "Other": 0.9993}  # fmt: skip
    assert {race: found[race] for race in expected} == close(expected)


def test_starring_half_of_the_rows_raises_values_and_lowers_the_column(rows):
    race = rows.arrow["race"].to_pylist()
    gone = np.random.default_rng(0).random(len(race)) < 0.5
    starred = pa.table(
        {"race": np.where(gone, "*", race).tolist(), "s": rows.arrow["salary-class"].to_pylist()}
    )
    found = hm.discrimination_rate(hm.read(starred, schema={}), "s", "race", values=True)
    # One random run of the source: .5595, .9981 and .0048.
    assert found["White"] == pytest.approx(0.5595, abs=0.01)
    assert found["Other"] == pytest.approx(0.9981, abs=0.001)
    assert found.rate == pytest.approx(0.0048, abs=0.0015)
