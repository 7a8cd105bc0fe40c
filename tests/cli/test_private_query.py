"""``halfmask query`` with noise: what is printed, what is written, what is refused."""

from __future__ import annotations

import csv
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from pathlib import Path

SQL = "SELECT sex, COUNT(*) AS n, AVG(pay) AS mean FROM people GROUP BY sex"


@pytest.fixture
def people(tmp_path: Path) -> str:
    rows = ["sex,pay,k_i", *("f,1000,2" for _ in range(300)), *("m,2000,2" for _ in range(200))]
    (tmp_path / "people.csv").write_text("\n".join(rows) + "\n")
    (tmp_path / "people.toml").write_text(
        '[policy]\nk = "k_i"\n[columns.sex]\nrole = "quasi"\ndomain = ["f", "m"]\n'
        '[columns.pay]\nrole = "sensitive"\ndomain = { low = 0, high = 5000 }\n'
    )
    return str(tmp_path / "people.csv")


@pytest.fixture
def run(halfmask):
    return lambda *words: halfmask("query", *words)


def test_the_figures_the_promise_and_the_attacker_are_printed(run, people: str) -> None:
    done = run(people, f"{SQL} WITH EPSILON 1")
    assert done.code == 0, done.err
    for words in ("n_low", "mean_high", "epsilon = 1", "(in the table?)", "public"):
        assert words in done.out


def test_one_document_with_rows_and_receipt(run, people: str) -> None:
    done = run(people, SQL, "--epsilon", "1", "--delta", "1e-9", "--json")
    document = done.json()
    assert [row["sex"] for row in document["data"]] == ["f", "m"]
    assert document["answer"]["privacy"]["promise"] == {
        "kind": "approximate", "epsilon": "1", "delta": "1/1000000000",
    }  # fmt: skip
    assert {a["column"] for a in document["answer"]["attacker"]} == {
        "(in the table?)",
        "sex",
        "pay",
    }


def test_rows_and_report_are_written(run, people: str, tmp_path: Path) -> None:
    out, page = tmp_path / "a.csv", tmp_path / "a.html"
    done = run(people, f"{SQL} WITH EPSILON 1", "-o", str(out), "--report", str(page))
    assert done.code == 0, done.err
    with out.open() as lines:
        assert [row["sex"] for row in csv.DictReader(lines)] == ["f", "m"]
    text = page.read_text()
    assert "Private answer" in text
    assert "What an attacker can still learn" in text


def test_a_ledger_is_started_kept_and_refuses(run, people: str, tmp_path: Path) -> None:
    ledger = str(tmp_path / "people.ledger")
    missing = run(people, f"{SQL} WITH EPSILON 1", "--ledger", ledger)
    assert missing.code == 1
    assert run(people, f"{SQL} WITH EPSILON 1", "--ledger", ledger, "--grant", "1.5").code == 0
    again = run(people, f"{SQL} WITH EPSILON 1", "--ledger", ledger)
    assert again.code == 3
    assert run(people, f"{SQL} WITH EPSILON 0.5", "--ledger", ledger).code == 0


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (("--epsilon", "1", "--suggest"), "GUARANTEE"),
        (("--epsilon", "1", "--grant", "2"), "--ledger"),
        (("--delta", "1e-6"), "WITH EPSILON"),
    ],
    ids=["a suggestion", "a grant without a ledger", "a delta alone"],
)
def test_what_does_not_fit_together_is_refused(run, people: str, words, told: str) -> None:
    sql = SQL if "--epsilon" in words else f"{SQL} GUARANTEE k = 2"
    done = run(people, sql, *words)
    assert done.code != 0
    assert told in done.out + done.err


def test_the_plan_tells_what_it_would_cost_and_spends_nothing(run, people: str, tmp_path) -> None:
    ledger = str(tmp_path / "budget")
    done = run(people, SQL, "--epsilon", "1", "--explain", "--ledger", ledger, "--grant", "1")
    assert done.code == 0
    assert "nothing is spent yet" in done.out
    assert "standard deviation" in done.out
    assert not (tmp_path / "budget").exists()
