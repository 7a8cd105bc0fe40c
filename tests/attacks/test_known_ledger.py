"""Two answers that differ by one person, or one row, asked so that a ledger sees no difference."""

from __future__ import annotations

import csv
import json
from typing import TYPE_CHECKING, Any

import duckdb
import pyarrow as pa
import pytest
from tests.attacks.conftest import AGE, SALARY, SCHEMA, Asker, make_rows

import halfmask as hm
from halfmask.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path

BUT_ADA = f"age <> {AGE}"
VISITS = {"table": {"person": "id"}, "columns": {"id": "identifier", "ward": "quasi"}}


def difference(
    asker: Asker, first: str, second: str, tables: tuple[Any, Any] = (None, None)
) -> float | None:
    """The sum of all, less the sum of all but Ada."""
    asker.options["ledger"] = hm.Ledger()
    seen = [asker.rows(sql, table) for sql, table in zip((first, second), tables, strict=True)]
    if not seen[0] or not seen[1]:
        return None
    (a,), (b,) = seen
    return None if a["x"] is None or b["x"] is None else round(float(a["x"]) - float(b["x"]))


def total(source: str, condition: str = "") -> str:
    where = f"WHERE {condition}" if condition else ""
    return f"SELECT SUM(salary) AS x FROM {source} {where} GUARANTEE k = 5"


def two_tables() -> dict[str, hm.Table]:
    visits = pa.table({"id": list(range(60)), "ward": ["a", "b"] * 30})
    return {
        "people": hm.read(pa.table(make_rows(k=2)), SCHEMA),
        "visits": hm.read(visits, VISITS),
    }


def test_the_plain_attack_is_refused(liberal: hm.Table) -> None:
    assert difference(Asker(liberal), total("people"), total("people", BUT_ADA)) != SALARY


@pytest.mark.parametrize(
    ("one", "other"),
    [
        ("people JOIN visits USING (id)", "visits JOIN people USING (id)"),
        ("visits JOIN people USING (id)", "people"),
        ("people", "people LEFT JOIN visits USING (id)"),
        ("people p", "(SELECT * FROM people) d"),
    ],
)
def test_another_order_of_a_join(one: str, other: str) -> None:
    assert difference(Asker(two_tables()), total(one), total(other, BUT_ADA)) != SALARY


def test_another_name_of_the_table(liberal: hm.Table) -> None:
    tables = ({"people": liberal}, {"folk": liberal})
    found = difference(Asker(None), total("people"), total("folk", BUT_ADA), tables)
    assert found != SALARY


def test_another_table_beside_it(liberal: hm.Table) -> None:
    tables = (liberal, two_tables())
    found = difference(Asker(None), total("people"), total("people", BUT_ADA), tables)
    assert found != SALARY


def test_a_view_of_the_table(tmp_path: Path) -> None:
    path = str(tmp_path / "office.duckdb")
    with duckdb.connect(path) as connection:
        connection.register("a", pa.table(make_rows(k=2)))
        connection.execute("CREATE TABLE people AS SELECT * FROM a")
        connection.execute("CREATE VIEW folk AS SELECT * FROM people")
    asker = Asker(path, {"schema": {"people": SCHEMA, "folk": SCHEMA}})
    assert difference(asker, total("people"), total("folk", BUT_ADA)) != SALARY


def monthly() -> hm.Table:
    """Everybody has three rows; Ada's third one is a salary nobody should see."""
    rows: dict[str, list[Any]] = {n: [] for n in (*make_rows(), "month")}
    for month in (1, 2, 3):
        once = make_rows(salary=SALARY if month == 3 else 30_000, k=2)
        for name, values in once.items():
            rows[name] += values
        rows["month"] += [month] * 60
    schema = SCHEMA | {"columns": SCHEMA["columns"] | {"month": "quasi"}}
    return hm.read(pa.table(rows), schema)


@pytest.mark.parametrize(
    "condition", [f"NOT (age = {AGE} AND month = 3)", f"salary <> {SALARY} OR age <> {AGE}"]
)
def test_one_row_of_somebody_with_several(condition: str) -> None:
    """Ada stands in both answers: it is her row that does not."""
    found = difference(Asker(monthly()), total("people"), total("people", condition))
    assert found != SALARY


def test_three_answers_of_which_two_are_of_rows() -> None:
    asker = Asker(monthly())
    asker.options["ledger"] = hm.Ledger()
    parts = ["month = 1", f"month = 2 OR (month = 3 AND age <> {AGE})", "month <= 3"]
    seen = [asker.rows(total("people", part)) for part in parts]
    if all(seen):
        first, second, whole = (rows[0]["x"] for rows in seen)
        assert None in (first, second, whole) or round(whole - first - second) != SALARY


def test_the_command_line_under_another_name(tmp_path: Path, capfd) -> None:
    rows = make_rows(k=2)
    for name in ("people.csv", "folk.csv"):
        with (tmp_path / name).open("w", newline="") as file:
            writer = csv.writer(file)
            writer.writerow(rows)
            writer.writerows(zip(*rows.values(), strict=True))
        schema = hm.Schema.from_dict(SCHEMA).to_toml()
        (tmp_path / name.replace(".csv", ".toml")).write_text(schema)
    ledger = str(tmp_path / "ledger.json")
    file = str(tmp_path / "people.csv")
    seen = []
    for sql, extra in (
        (total("people"), []),
        (total("folk", BUT_ADA), ["--table", f"folk={tmp_path / 'people.csv'}"]),
    ):
        with pytest.raises(SystemExit) as stop:
            run(["query", file, sql, "--ledger", ledger, "--json", *extra])
        out = capfd.readouterr().out
        seen.append(json.loads(out)["data"][0]["x"] if stop.value.code == 0 else None)
    assert None in seen or round(seen[0] - seen[1]) != SALARY
