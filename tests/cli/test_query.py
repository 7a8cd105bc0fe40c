"""``halfmask query`` as a user would call it."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from halfmask.sample import write

if TYPE_CHECKING:
    from pathlib import Path

ASK = (
    "SELECT education, age, AVG(salary) AS pay FROM people GROUP BY education, age "
    "GUARANTEE k = 3, l = 2 THEN age -> 10 GUARANTEE k = 5, l = 3 "
    "THEN education -> up GUARANTEE k = 10, l = 3"
)


@pytest.fixture
def people(tmp_path: Path) -> Path:
    return write(tmp_path, 300)


def test_an_answer_as_a_table_and_as_json(halfmask, people):
    shown = halfmask("query", people, ASK)
    assert shown.code == 0
    assert "guarantee" in shown.out
    assert "people could be published" in shown.err
    document = halfmask("query", people, ASK, "--json").json()
    assert document["ok"]
    assert {r["level"] for r in document["data"]} <= {0, 1, 2}
    assert document["answer"]["rows"] == len(document["data"])


def test_what_json_cannot_write_is_null(halfmask, tmp_path):
    path = tmp_path / "people.parquet"
    pay = [1.0, 2.0, float("inf"), 1.0, 2.0, 3.0]
    pq.write_table(pa.table({"city": ["a"] * 3 + ["b"] * 3, "pay": pay}), path)
    sql = "SELECT city, MAX(pay) AS top FROM people GROUP BY city GUARANTEE k = 2, l = 1"
    rows = halfmask("query", path, sql, "--json").json()["data"]
    assert sorted((row["city"], row["top"]) for row in rows) == [("a", None), ("b", 3.0)]


def test_a_query_from_a_file_to_a_file(halfmask, people, tmp_path):
    sql = tmp_path / "ask.sql"
    sql.write_text(ASK)
    done = halfmask("query", people, "-f", sql, "-o", tmp_path / "out.csv")
    assert done.code == 0
    assert (tmp_path / "out.csv").read_text().startswith('"education","age","pay","level"')


@pytest.mark.parametrize("how", [("--explain", ASK), (f"EXPLAIN {ASK}",)])
def test_the_plan(halfmask, people, how):
    shown = halfmask("query", people, *how)
    assert shown.code == 0
    assert "Level 1: age -> 10; by education, age in steps of 10; k >= 5, l >= 3" in shown.out
    assert "GROUP BY" in shown.out


def test_a_suggestion(halfmask, people):
    document = halfmask("query", people, ASK, "--suggest", "--json").json()["suggestion"]
    assert document["proposed"]["people"] >= document["asked"]["people"]
    assert document["clause"].startswith("GUARANTEE k = ")


def test_a_fault_points_at_its_place(halfmask, people):
    failed = halfmask(
        "query", people, "SELECT id, COUNT(*)\nFROM people GROUP BY id GUARANTEE k = 3"
    )
    assert failed.code == 1
    assert "line 1, column 8" in failed.err
    assert "\n       ^^" in failed.err


def test_the_ledger_refuses_a_difference(halfmask, people, tmp_path):
    file = tmp_path / "ledger.json"
    every = "SELECT sex, SUM(salary) AS s FROM people {} GROUP BY sex GUARANTEE k = 10, l = 3"
    assert halfmask("query", people, every.format(""), "--ledger", file).code == 0
    again = halfmask("query", people, every.format("WHERE age < 89"), "--ledger", file)
    assert again.code == 2
    assert "subtraction" in again.err


def test_one_ledger_keeps_answers_and_spending(halfmask, people, tmp_path):
    file, key = tmp_path / "people.ledger", tmp_path / "key"
    key.write_bytes(b"sixteen bytes or more")
    kept = ("--ledger", file, "--ledger-key", key)
    every = "SELECT sex, SUM(salary) AS s FROM people {} GROUP BY sex GUARANTEE k = 10, l = 3"
    noisy = ("query", people, "SELECT COUNT(*) AS n FROM people WITH EPSILON 0.5", *kept)
    assert halfmask("query", people, every.format(""), *kept).code == 0
    assert "budget create" in halfmask(*noisy).err
    assert halfmask("budget", "create", file, "--grant", "1", "--key", key).code == 0
    assert halfmask(*noisy, "--ignore-demands").code == 0
    shown = halfmask("budget", "show", file, "--key", key, "--json").json()
    assert shown["left"] == "epsilon = 0.5"
    again = halfmask("query", people, every.format("WHERE age < 89"), *kept)
    assert (again.code, "subtraction" in again.err) == (2, True)
    assert "another key" in halfmask("query", people, every.format(""), "--ledger", file).err
    assert "--ledger" in halfmask("query", people, every.format(""), "--ledger-key", key).err


def test_no_query_or_two(halfmask, people, tmp_path):
    assert halfmask("query", people).code == 1
    (tmp_path / "ask.sql").write_text(ASK)
    assert halfmask("query", people, ASK, "-f", tmp_path / "ask.sql").code == 1


def test_a_floor_and_the_tables_of_a_database(halfmask, tmp_path):
    import duckdb

    path = tmp_path / "clinic.duckdb"
    with duckdb.connect(str(path)) as made:
        made.execute("CREATE TABLE visits AS SELECT i % 2 AS g FROM range(8) t(i)")
        made.execute("CREATE TABLE secret AS SELECT i % 2 AS g FROM range(8) t(i)")
    sql = "SELECT g, COUNT(*) AS n FROM {} GROUP BY g GUARANTEE k = 4"
    said = halfmask("query", path, sql.format("visits"))
    assert said.code == 1
    assert "--tables visits" in said.err
    for words in (("--tables", "visits,wards"), ("--table", "visits")):
        assert (
            len(halfmask("query", path, sql.format("visits"), *words, "--json").json()["data"]) == 2
        )
        assert (
            "there is no table secret" in halfmask("query", path, sql.format("secret"), *words).err
        )
    asked = ("query", path, sql.format("visits"), "--tables", "visits")
    raised = halfmask(*asked, "--floor", "5")
    assert "k was raised to 5" in raised.err
    assert halfmask(*asked, "--floor", "0").code != 0
