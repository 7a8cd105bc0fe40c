"""What a notebook shows: schema and counts of a table, and rows only where they were released."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm

CANARY = "Zyxw9173"


@pytest.fixture(scope="module")
def people() -> hm.Table:
    rows = {
        "who": [f"{CANARY}{i}" for i in range(12)],
        "age": [31, 32] * 6,
        "ill": ["<b>flu</b>", "gout"] * 6,
        "k_i": [2] * 12,
    }
    schema = {
        "table": {"person": "who"},
        "policy": {"k": "k_i"},
        "columns": {
            "who": "identifier",
            "age": {"role": "quasi", "hierarchy": {"intervals": [10]}},
            "ill": "sensitive",
        },
    }
    return hm.read(pa.table(rows), schema=schema)


@pytest.fixture(scope="module")
def release(people) -> hm.Release:
    return hm.anonymize(people, method="optimal")


def test_a_table_shows_its_schema_and_no_row(people):
    shown = people._repr_html_()
    assert "12 rows" in shown
    assert "intervals" in shown
    assert "policy" in shown
    for value in (CANARY, "gout", ">31<"):
        assert value not in shown
    assert "quasi" in people.schema._repr_html_()


def test_a_proposal_shows_why_and_no_value(people):
    shown = hm.describe(people.arrow.drop(["k_i"]))._repr_html_()
    assert "Proposed schema, from 12 rows and 3 columns" in shown
    assert "others may know it" in shown
    for value in (CANARY, "gout", "&lt;b&gt;", ">31<"):
        assert value not in shown
    wide = hm.describe(pa.table({f"c{i}": [1, 2, 3] for i in range(60)}))._repr_html_()
    assert "and 20 more" in wide


def test_results_show_what_the_report_says_first(people, release):
    compared = hm.compare(people, release, learn=False, attacks=5)
    points = hm.frontier(
        people, [hm.KAnonymity(2)], methods=["optimal"], suppression=[0.0], demands="ignore"
    )
    wanted = {
        "smallest class, people": compared,
        "rows alone in their class": hm.assess(people),
        "not dominated": points,
        "demanded": release.verdicts[0],
    }
    for word, result in wanted.items():
        shown = result._repr_html_()
        assert word in shown, word
        assert CANARY not in shown
        assert "prefers-color-scheme: dark" in shown  # light and dark
        assert "<script" not in shown


def test_a_release_shows_released_rows_as_text(release):
    shown = release._repr_html_()
    assert "&lt;b&gt;flu" in shown
    assert "<b>flu" not in shown
    assert CANARY not in shown
    assert "may leave" in shown


def test_an_answer_shows_whom_it_covers(people):
    asked = "SELECT ill, COUNT(*) AS n FROM people GROUP BY ill GUARANTEE k = 3, l = 1"
    shown = hm.query(people, asked)._repr_html_()
    assert "12 people could be published" in shown
