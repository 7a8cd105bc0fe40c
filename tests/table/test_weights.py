"""Declared weights that a figure does not use are named beside it, and only there."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm

SAID = "the weights of column 'stands for' are not used"


def survey(weight: str | None = "stands for") -> hm.Table:
    rows = pa.table(
        {
            "city": ["a"] * 6 + ["b"] * 6,
            "pay": [1, 2, 3, 4, 5, 6] * 2,
            "stands for": [2.0, 3.0] * 6,
        }
    )
    columns = {"city": "quasi", "pay": "other", "stands for": "other"}
    known = {} if weight is None else {"table": {"weight": weight}}
    return hm.read(rows, schema={**known, "columns": columns})


ASKED = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
BY_WEIGHT = 'SELECT city, SUM("stands for") AS n FROM people GROUP BY city'


@pytest.mark.parametrize(
    ("sql", "weight", "said"),
    [
        (f"{ASKED} GUARANTEE k = 3", "stands for", 1),
        (f"{BY_WEIGHT} GUARANTEE k = 3", "stands for", 0),  # the asker uses them
        (f"{ASKED} GUARANTEE k = 3", None, 0),
    ],
)
def test_an_answer_says_that_weights_are_not_used(sql, weight, said):
    answer = hm.query({"people": survey(weight)}, sql)
    assert sum(SAID in note for note in answer.notes) == said


def test_a_noisy_answer_says_it_too():
    sql = "SELECT COUNT(*) AS n FROM people WITH EPSILON 1"
    answer = hm.query({"people": survey()}, sql)
    assert sum(SAID in note for note in answer.notes) == 1


def test_a_table_of_figures_says_it_unless_it_adds_them_up():
    counted = hm.tabulate(survey(), by=["city"], threshold=3)
    assert sum(SAID in note for note in counted.notes) == 1
    plain = hm.tabulate(survey(None), by=["city"], threshold=3)
    assert not any(SAID in note for note in plain.notes)
