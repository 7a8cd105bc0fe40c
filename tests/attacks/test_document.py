"""A reader of the released document looks for one demand, or for a row that did not leave."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import halfmask as hm

if TYPE_CHECKING:
    from pathlib import Path

JOBS = hm.hierarchies.Tree({"food": ["cook", "baker"], "metal": ["smith", "nailer", "tinker"]})
SCHEMA = hm.Schema(
    columns={
        "age": hm.Column("quasi", kind="numeric", hierarchy=hm.hierarchies.Intervals([5, 10])),
        "job": hm.Column("quasi", hierarchy=JOBS),
        "ill": hm.Column("sensitive"),
        "shoe": hm.Column("other"),
    }
)


def people(age: int, job: str, ill: str, shoe: int) -> hm.Table:
    """Twenty people of their thirties in the kitchen, and one far from them."""
    return hm.read(
        pa.table(
            {
                "age": [*(30 + i % 5 for i in range(20)), age],
                "job": [*(("cook", "baker")[i % 2] for i in range(20)), job],
                "ill": [*(("flu", "gout")[i % 2] for i in range(20)), ill],
                "shoe": [*(40 + i % 3 for i in range(20)), shoe],
            }
        ),
        SCHEMA,
    )


@pytest.mark.parametrize("method", ["optimal", "local", "mondrian"])
def test_a_suppressed_row_leaves_no_trace_of_its_values(method: str) -> None:
    """Its illness and shoe are somebody else's too, or nobody's; its age and job are its own."""
    documents = set()
    for person in (
        (90, "smith", "flu", 40),
        (90, "smith", "cholera", 40),
        (97, "tinker", "flu", 51),
        (55, "nailer", "Zyxw9173", 12),
    ):
        table = people(*person)
        if method == "mondrian":
            release = _without_the_last(table)
        else:
            release = hm.anonymize(table, hm.KAnonymity(3), suppression=0.1, method=method)
        assert release.suppressed == 1
        documents.add(json.dumps(release.to_dict(), sort_keys=True))
    assert len(documents) == 1


def _without_the_last(table: hm.Table) -> hm.Release:
    """The rows divided, with the last one left out for its demand."""
    demands = pa.array([2] * 20 + [21_000])
    stated = hm.read(
        table.arrow.append_column("k_i", demands),
        hm.Schema(columns=dict(table.schema.columns), policy={"k": "k_i"}),
    )
    return hm.anonymize(stated, method="mondrian", seed=0, on_infeasible="suppress")


def personal(highest: int, **columns: Any) -> hm.Release:
    """Sixty people of whom one demands more than all others."""
    n = 60
    table = pa.table(
        {
            "age": [30 + i % 2 for i in range(n)],
            "ill": [f"i{i % 9}" for i in range(n)],
            "k_i": [2] * (n - 1) + [highest],
            "l_i": [2] * (n - 1) + [columns.get("l", 2)],
        }
    )
    schema = hm.Schema(
        columns={"age": hm.Column("quasi"), "ill": hm.Column("sensitive")},
        policy={"k": "k_i", "l": "l_i"},
    )
    models = (hm.PersonalKAnonymity(), hm.PersonalLDiversity("ill"))
    return hm.anonymize(hm.read(table, schema), *models, method="optimal")


def test_the_highest_demand_is_not_told(tmp_path: Path) -> None:
    told = set()
    for highest in (7, 19, 23, 29):
        release = personal(highest)
        release.report(tmp_path / "r.html")
        page = (tmp_path / "r.html").read_text(encoding="utf-8")
        assert "what each person demands" in page
        told.add((json.dumps(release.to_dict(), sort_keys=True), page, repr(release)))
        assert max(v.required for v in release.verdicts) == highest  # the controller still sees it
    assert len(told) == 1


def test_the_highest_demand_for_values_is_not_told() -> None:
    told = {json.dumps(personal(2, l=most).to_dict(), sort_keys=True) for most in (3, 5, 7)}
    assert len(told) == 1


def test_one_number_for_all_is_told() -> None:
    document = hm.anonymize(
        people(33, "cook", "flu", 40), hm.KAnonymity(3), method="optimal"
    ).to_dict()
    (verdict,) = document["verdicts"]
    assert verdict["required"] == 3
    assert verdict["achieved"] == document["classes"]["smallest"]


def test_an_answer_tells_its_guarantees_and_no_demand() -> None:
    asked = (
        "SELECT age, COUNT(*) AS n FROM people GROUP BY age GUARANTEE k = 3, l = 1 "
        "THEN age -> 20 GUARANTEE k = 30, l = 1"
    )
    told = set()
    for demand in (31, 47, 1_000):
        table = pa.table({"age": [30 + i % 2 for i in range(60)], "k_i": [3] * 59 + [demand]})
        answer = hm.query(hm.read(table, hm.Schema()), asked, {"k": "k_i"})
        told.add(json.dumps(answer.to_dict(), sort_keys=True))
    assert len(told) == 1


def test_by_demand_neither_a_rare_demand_nor_one_person_is_told() -> None:
    """One person of 65 demands 2, 5, 19 or nothing: levels and about how many stay the same."""
    told = set()
    for own in (2, 5, 19, None):
        table = pa.table(
            {"age": [30 + i % 2 for i in range(65)], "k_i": [2] * 42 + [5] * 22 + [own]}
        )
        schema = hm.Schema(columns={"age": hm.Column("quasi")}, policy={"k": "k_i"})
        release = hm.anonymize(
            hm.read(table, schema), hm.PersonalKAnonymity(default=1), method="optimal"
        )
        (verdict,) = release.to_dict()["verdicts"]
        told.add(json.dumps(verdict["demands"]))
        exact = {one.demanded: one.people for one in release.verdicts[0].demands}
        assert exact[2] == 42 + (own == 2)  # the controller sees all of it
    levels = [(2, 40, 32), (5, 20, 32)]
    names = ("demanded", "people", "reached")
    assert told == {json.dumps([dict(zip(names, one, strict=True)) for one in levels])}
