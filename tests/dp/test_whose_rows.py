"""What a private verb says of whom its epsilon covers: decided by the schema, never by the rows."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

import halfmask as hm
from halfmask.dp.accountant import Accountant, SpendingScope, ViewCost
from halfmask.dp.budget import Pure
from halfmask.errors import InternalError
from halfmask.release.candidate import NoiseCandidate
from halfmask.release.seal import seal

if TYPE_CHECKING:
    from pathlib import Path

ROWS = {"patient": ["a", "a", "a", "b", "c", "d"], "sex": ["f", "f", "f", "m", "m", "f"]}
COLUMNS = {
    "patient": {"role": "identifier"},
    "sex": {"role": "quasi", "domain": ["f", "m"]},
}
BY_ROW = "tables that differ by one row (added or removed)"
BY_PERSON = "tables that differ by all rows of one person (added or removed)"
VERBS = {
    "synthesize": lambda t, most: hm.synthesize(t, epsilon=1, rows_per_person=most),
    "tabulate": lambda t, most: hm.tabulate(
        t, ["sex"], method="dp", epsilon=1, rows_per_person=most
    ),
    "query": lambda t, most: hm.query(
        t, "SELECT COUNT(*) FROM data WITH EPSILON 1", rows_per_person=most
    ),
}


def table(*, person: bool, rows: dict[str, list[str]] | None = None) -> hm.Table:
    said = {"columns": COLUMNS, **({"table": {"person": "patient"}} if person else {})}
    return hm.read(rows or ROWS, hm.Schema.from_dict(said))


@pytest.mark.parametrize("verb", VERBS)
def test_without_a_person_column_epsilon_holds_per_row(verb: str, tmp_path: Path) -> None:
    made = VERBS[verb](table(person=False), 1)
    assert made.to_dict()["privacy"]["neighbors"] == BY_ROW
    assert "epsilon holds per row. 'patient'" in made.notes[0]
    assert 'person = "..." under [table]' in made.notes[0]
    assert "one person" not in made.to_dict()["outcome"]
    made.report(tmp_path / "page.html")
    page = (tmp_path / "page.html").read_text("utf-8")
    assert BY_ROW in page
    assert "rows of one person" not in page


@pytest.mark.parametrize("verb", VERBS)
def test_with_one_it_holds_per_person_and_the_bound_is_said(verb: str) -> None:
    made = VERBS[verb](table(person=True), 2)
    assert made.to_dict()["privacy"]["neighbors"] == BY_PERSON
    assert "at most 2 rows are used" in made.notes[0]
    assert "whether one person is in the table" in made.to_dict()["outcome"]


def test_the_words_do_not_depend_on_rows() -> None:
    alone = {"patient": list("abcdef"), "sex": ROWS["sex"]}
    for person in (True, False):
        first, second = (
            VERBS["tabulate"](table(person=person, rows=rows), 1) for rows in (ROWS, alone)
        )
        assert first.notes == second.notes
        assert first.receipt.neighbors == second.receipt.neighbors


def test_a_wider_bound_without_a_person_column_is_said_in_rows() -> None:
    made = VERBS["tabulate"](table(person=False), 3)
    assert made.receipt.neighbors == "tables that differ by up to 3 rows (added or removed)"
    assert "people with up to 3 rows" in made.notes[0]


def test_the_door_refuses_a_receipt_for_people_whom_no_column_tells_apart() -> None:
    allowance = Accountant(Pure(1)).allow(Pure(1), "test", scope=SpendingScope(by_person=True))
    allowance.charge(ViewCost("sex", "DiscreteLaplace", allowance.limit))
    rows = table(person=False)
    made = NoiseCandidate(
        rows.arrow.select(["sex"]), allowance.receipt(), {"sex": 2}, "test", schema=rows.schema
    )
    with pytest.raises(InternalError, match="whose rows"):
        seal(made)
