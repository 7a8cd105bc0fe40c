"""Data intrusion simulation, against the practice guide and by hand."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.metrics.risk.inference import dis_scores, measure_intrusion
from halfmask.report.population import intrusion_sentence as said
from halfmask.table.classes import Classes

GUIDE = {
    "residence": ["Urban"] * 4 + ["Rural"] + ["Urban"] * 5,
    "gender": ["F", "F", "F", "M", "F", "M", "F", "M", "F", "F"],
    "education": ["si", "si", "pi", "sc", "sc", "sc", "pc", "ps", "si", "si"],
    "labor": ["E", "E", "N", "E", "U", "E", "N", "U", "N", "N"],
}


def classes(people):
    people = np.array(people)
    return Classes(np.arange(len(people), dtype=np.uint64).reshape(-1, 1), people, people)


def test_the_scores_of_the_practice_guide():
    # Table 4.5: made by sdcMicro with a fraction of 0.01 from the scores that it used then, where
    # sets of 1, 2 and 3 of 4 columns are worth 1.75, 0.5 and 0.25.
    people = [2, 1, 2, 1, 1, 1, 2]
    scores = np.array([0, 1.75, 0, 3.25, 1.75, 2.75, 0])
    found = dis_scores(classes(people), scores, 4, 0.01)
    assert np.round(found, 4).tolist() == [0, 0.0051, 0, 0.0107, 0.0051, 0.0088, 0]


def test_rows_of_the_practice_guide_by_the_scores_of_elliot():
    table = hm.read(GUIDE, schema=dict.fromkeys(GUIDE, "quasi"))
    risks = hm.row_risks(table, fraction=0.01, size=4)
    assert risks.special_score.tolist() == [0, 0, 6, 0, 12, 0, 6, 10, 0, 0]
    # U = 4, P = 6: 594 = 4 (1 / dis - 1); q = 1.2.
    total = 2 * 6**-1.2 + 12**-1.2 + 10**-1.2
    expected = [0 if not s else 1 / (1 + 594 / (s**1.2 * total)) for s in risks.special_score]
    assert risks.special_dis == pytest.approx(expected)
    found = hm.assess(table, fraction=0.01, size=4).intrusion
    assert (found.unique, found.paired, found.rows) == (4, 6, 4)
    assert found.chance.value == pytest.approx(0.04 / (0.04 + 5.94))
    assert found.highest == pytest.approx(max(expected))
    assert [one.rows for one in found.distribution] == [4, 0, 0, 0, 0, 0, 0, 0]


@given(
    st.lists(st.floats(0.5, 500), min_size=1, max_size=20),
    st.integers(1, 9),
    st.floats(0.001, 0.999),
    st.integers(1, 40),
)
def test_the_odds_against_a_match_are_on_average_those_of_the_table(scores, pairs, d, columns):
    held = classes([1] * len(scores) + [2] * pairs)
    found = dis_scores(held, np.array([*scores, *[0] * pairs]), columns, d)
    own = found[: len(scores)]
    chance = len(scores) * d / (len(scores) * d + 2 * pairs * (1 - d))
    assert np.mean((1 - own) / own) == pytest.approx((1 - chance) / chance, rel=1e-6)
    order = np.argsort(scores)
    assert (np.diff(own[order]) >= -1e-12).all()
    assert not found[len(scores) :].any()


def test_agreeing_rows_of_a_person_are_one():
    schema = {"table": {"person": "who"}, "columns": {"age": "quasi", "sex": "quasi"}}
    rows = {"who": [1, 2, 3, 4], "age": [30, 30, 41, 52], "sex": ["f", "f", "m", "f"]}
    twice = {"who": [1, 2, 3, 3, 4, 4], "age": [30, 30, 41, 41, 52, 52],
             "sex": ["f", "f", "m", "m", "f", "f"]}  # fmt: skip
    one = hm.row_risks(hm.read(rows, schema=schema), fraction=0.1).special_dis
    two = hm.row_risks(hm.read(twice, schema=schema), fraction=0.1).special_dis
    assert two == pytest.approx(one[[0, 1, 2, 2, 3, 3]])
    found = hm.assess(hm.read(twice, schema=schema), fraction=0.1).intrusion
    assert (found.unique, found.paired, found.rows) == (2, 2, 4)


def test_the_limits():
    nobody = measure_intrusion(classes([2, 3]), np.zeros(2), 3, 0.1)
    assert (nobody.chance.value, nobody.highest, nobody.rows) == (None, 0.0, 0)
    everybody = measure_intrusion(classes([1, 2]), np.array([4.0, 0.0]), 3, 1.0)
    assert (everybody.chance.value, everybody.highest) == (1.0, 1.0)
    assert said(everybody.to_dict()).endswith("100.0%: the table is the population.")
    no_pair = measure_intrusion(classes([1, 3]), np.array([4.0, 0.0]), 3, 0.1)
    assert no_pair.chance.value == 1
    assert not no_pair.chance.trusted
    assert "not to be relied on: No class holds just two people." in said(no_pair.to_dict())
    unscored = measure_intrusion(classes([1, 2]), np.zeros(2), 3, 0.5)
    assert unscored.rows == 0
    assert said(unscored.to_dict()).endswith("with a chance of 33.3%.")
    scored = measure_intrusion(classes([1, 2]), np.array([4.0, 0.0]), 3, 0.5)
    assert "1 row that few columns single out it is up to 33.3%" in said(scored.to_dict())


def test_without_a_share_of_the_population_there_is_no_figure():
    table = hm.read(GUIDE, schema=dict.fromkeys(GUIDE, "quasi"))
    assert hm.row_risks(table).special_dis is None
    assert hm.assess(table).intrusion is None
    everybody = hm.read(
        {name: column * 4 for name, column in GUIDE.items()}, schema=dict.fromkeys(GUIDE, "quasi")
    )
    stated = hm.row_risks(table, fraction=0.25).special_dis
    assert hm.row_risks(table, population=everybody).special_dis == pytest.approx(stated)
