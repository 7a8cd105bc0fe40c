"""One ledger for one table, whatever is stated of its people and however its file is called.

Attacker: gets a second budget for the same people, because a policy makes the table another one; or
reads an error of the machine.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfmask as hm
from halfmask.dp.budget import Pure
from halfmask.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

PEOPLE = {
    "id": [str(i) for i in range(60)],
    "sex": ["f", "m"] * 30,
    "pay": [10 + i for i in range(60)],
}
COLUMNS: dict[str, Any] = {
    "id": "identifier",
    "sex": {"role": "quasi", "domain": ["f", "m"]},
    "pay": {"role": "sensitive", "domain": [0, 100]},
}
SCHEMA: dict[str, Any] = {"table": {"person": "id"}, "columns": COLUMNS}
SQL = "SELECT sex, COUNT(*) AS n FROM people GROUP BY sex WITH EPSILON 0.1"


def spend(ledger: Path, table: Any, policies: Any, schema: Any = None) -> None:
    """One release of each verb that spends, all from one budget."""
    budget = hm.BudgetLedger.open(ledger)
    hm.query(table, SQL, policies=policies, ledger=budget, schema=schema)
    if isinstance(table, hm.Table):
        kept = hm.Accountant.of(budget)
        hm.tabulate(table, "sex", method="dp", epsilon="0.1", policies=policies, accountant=kept)
        hm.synthesize(table, epsilon="0.1", policies=policies, accountant=kept)


GIVEN: dict[str, Any] = {
    "none": None,
    "by person": {"people": {"1": {"epsilon": 0.5}}},
    "for all": {"epsilon": 10},
    "of a column": {"columns": {"pay": {"epsilon": 10}}},
    "by column": {"epsilon": "own"},
}


def test_one_ledger_serves_all_verbs_with_and_without_policies(tmp_path: Path) -> None:
    """Before, a question with demands keyed by person was one of another table."""
    table = hm.read(
        {**PEOPLE, "own": [10.0] * 60}, {**SCHEMA, "columns": {**COLUMNS, "own": "drop"}}
    )
    ledger = tmp_path / "people.ledger"
    hm.BudgetLedger.create(ledger, Pure(10))
    for policies in GIVEN.values():
        spend(ledger, table, policies)
    assert len(hm.BudgetLedger.open(ledger).history()) == 3 * len(GIVEN)


def test_a_policy_file_makes_no_other_table(tmp_path: Path) -> None:
    """Its columns stand beside the rows where these are read, and not where they stay."""
    demands = {"id": PEOPLE["id"], "own": [1.0] * 60}
    pq.write_table(pa.table(demands), tmp_path / "demands.parquet")
    pq.write_table(pa.table(PEOPLE), tmp_path / "people.parquet")
    ledger = tmp_path / "people.ledger"
    hm.BudgetLedger.create(ledger, Pure(10))
    spend(ledger, hm.read(PEOPLE, SCHEMA), None)
    stated = {**SCHEMA, "policy": {"file": str(tmp_path / "demands.parquet"), "epsilon": "own"}}
    spend(ledger, hm.read(PEOPLE, stated), None)
    spend(ledger, hm.read(tmp_path / "people.parquet", stated), None)
    assert len(hm.BudgetLedger.open(ledger).history()) == 9


@pytest.mark.parametrize("name", ["x\0y", "x\ud800y"], ids=["zero byte", "half a letter"])
def test_a_name_that_no_file_can_have_is_an_input_error(tmp_path: Path, name: str) -> None:
    table, bad = hm.read(PEOPLE, SCHEMA), str(tmp_path / name)
    release = hm.mask(table, "round pay base=10")
    key = tmp_path / "key"
    key.write_bytes(b"k" * 32)
    asks: list[Callable[[], object]] = [
        lambda: hm.BudgetLedger.create(bad, Pure(1)),
        lambda: hm.BudgetLedger.create(tmp_path / "new", Pure(1), key=bad),
        lambda: hm.BudgetLedger.open(bad),
        lambda: hm.Ledger.read(bad),
        lambda: hm.Ledger.read(tmp_path / "answers", key=bad),
        lambda: hm.Ledger().write(bad),
        lambda: hm.SeriesLedger.open(bad),
        lambda: hm.anonymize(table, hm.MInvariance(2, "sex"), previous=bad),
        lambda: hm.anonymize(table, hm.KAnonymity(2), pseudonym=bad),
        lambda: hm.anonymize(table, hm.KAnonymity(2), policies=f"{bad}.toml"),
        lambda: hm.anonymize(table, hm.KAnonymity(2), policies=f"{bad}.csv"),
        lambda: release.write(f"{bad}.csv"),
        lambda: release.report(f"{bad}.html"),
        lambda: release.report(f"{bad}.json"),
    ]
    for ask in asks:
        with pytest.raises(InputError) as refused:
            ask()
        assert "file" in str(refused.value)
        assert "embedded null" not in str(refused.value)


ODD = [2.0**53 + 2, 1e18, 1e98, 1e300, float("inf")]


@pytest.mark.parametrize("odd", ODD)
def test_an_epsilon_beyond_all_sense_leaves_its_person_out(odd: float) -> None:
    """Before, 1e18 was read as somebody who allows everything."""
    rows = {**PEOPLE, "own": [1.0] * 30 + [odd] * 30, "id": PEOPLE["id"]}
    rows["sex"] = ["f"] * 30 + ["m"] * 30
    stated = {**SCHEMA, "policy": {"epsilon": "own"}}
    by_person = {"people": {str(i): {"epsilon": odd if i >= 30 else 1.0} for i in range(60)}}
    own = pa.table({"person": rows["id"], "epsilon": rows["own"]})
    plain = {name: held for name, held in rows.items() if name != "own"}
    tables: list[tuple[hm.Table, Any]] = [
        (hm.read(rows, stated), None),
        (hm.read(plain, SCHEMA), by_person),
        (hm.read(plain, SCHEMA), own),
        (hm.read(rows, SCHEMA), {"epsilon": "own"}),
    ]
    for table, policies in tables:
        answer = hm.query(table, SQL.replace("0.1", "0.9"), policies=policies)
        found = {row["sex"]: row["n"] for row in answer.to_arrow().to_pylist()}
        assert found["f"] > 15 > found["m"]
        shown = hm.tabulate(table, "sex", method="dp", epsilon="0.9", policies=policies)
        figures = {row["sex"]: row["count"] for row in shown.to_arrow().to_pylist()}
        assert figures["f"] > 15 > figures["m"]


@pytest.mark.parametrize("odd", [2.0**53 + 2, 1e18])
def test_an_epsilon_beyond_all_sense_in_a_database_leaves_its_person_out(odd: float) -> None:
    from halfmask.engines.duckdb.engine import DuckDB

    rows = {**PEOPLE, "own": [1.0] * 30 + [odd] * 30, "sex": ["f"] * 30 + ["m"] * 30}
    schema = hm.Schema.from_dict({**SCHEMA, "policy": {"epsilon": "own"}})
    engine = DuckDB({"people": pa.table(rows)})
    answer = hm.query("people", SQL.replace("0.1", "0.9"), engine=engine, schema={"people": schema})
    engine.close()
    found = {row["sex"]: row["n"] for row in answer.to_arrow().to_pylist()}
    assert found["f"] > 15 > found["m"]


def test_an_epsilon_for_all_beyond_all_sense_is_refused() -> None:
    for wrong in (1e18, float("inf")):
        with pytest.raises(InputError, match="at most 2\\^53"):
            hm.query(hm.read(PEOPLE, SCHEMA), SQL, policies={"epsilon": wrong})
