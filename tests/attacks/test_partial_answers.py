"""An answer says that it covers a part of the people, and not by whom it was asked for.

Reader: takes the figures of an answer at k = 5 for those of everybody, while those who ask for 10
are in none. Attacker: looks whether what is said of that depends on what a left-out person holds.
"""

from __future__ import annotations

import json
import tomllib
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.cli.main import run

if TYPE_CHECKING:
    from pathlib import Path

SQL = "SELECT city, COUNT(*) AS n, AVG(pay) AS m FROM people GROUP BY city GUARANTEE k = 5"
PART = "The figures are of a part of the people"


def people(secret: tuple[Any, ...] = ("x", 1000), *, demands: bool = True) -> hm.Table:
    """60 people in two towns, 24 of whom ask for 100, and one more who asks for a million."""
    city, pay = secret
    rows = {
        "city": [*("xy"[i % 2] for i in range(60)), city],
        "pay": [*(1000 + i for i in range(60)), pay],
        "k_i": [*(100 if i % 5 < 2 else 2 for i in range(60)), 1_000_000],
    }
    columns = {"city": "quasi", "pay": "sensitive", **({} if demands else {"k_i": "drop"})}
    policy = {"policy": {"k": "k_i"}} if demands else {}
    return hm.read(pa.table(rows), {"columns": columns, **policy})


@pytest.mark.parametrize("engine", ["duckdb", "reference"])
def test_an_answer_says_that_it_is_of_a_part(engine: str, tmp_path: Path) -> None:
    answer = hm.query(people(), SQL, engine=engine)
    assert [row["n"] for row in answer.to_arrow().to_pylist()] == [18, 18]
    assert answer.people == 36
    assert answer.notes[0].startswith(PART)
    assert answer.to_dict()["notes"][0].startswith(PART)
    assert PART in answer._repr_html_()  # type: ignore[operator]
    answer.write(tmp_path / "answer.csv")
    beside = tomllib.loads((tmp_path / "answer.toml").read_text(encoding="utf-8"))["release"]
    assert beside["people"] == 36
    assert beside["notes"][0].startswith(PART)
    answer.report(tmp_path / "answer.html")
    assert PART in (tmp_path / "answer.html").read_text(encoding="utf-8")


def test_the_terminal_says_it_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    import pyarrow.csv as csv

    csv.write_csv(people().arrow, tmp_path / "people.csv")
    schema = '[policy]\nk = "k_i"\n[columns]\ncity = "quasi"\npay = "sensitive"\n'
    (tmp_path / "people.toml").write_text(schema, encoding="utf-8")
    with pytest.raises(SystemExit) as ended:
        run(["query", str(tmp_path / "people.csv"), SQL])
    assert ended.value.code == 0
    assert PART in capsys.readouterr().err


def test_where_nobody_states_a_demand_nothing_is_said() -> None:
    answer = hm.query(people(demands=False), SQL)
    assert [row["n"] for row in answer.to_arrow().to_pylist()] == [31, 30]
    assert not any(note.startswith(PART) for note in answer.notes)


def test_what_is_said_does_not_depend_on_the_left_out() -> None:
    told = set()
    for secret in [("x", 1000), ("y", 5), ("z", 10**9), (None, None)]:
        for where in ("", "WHERE pay > 1010 "):
            answer = hm.query(people(secret), SQL.replace("GROUP", f"{where}GROUP"))
            told.add((where, json.dumps([answer.to_dict(), answer.to_arrow().to_pylist()])))
    assert len(told) == 2
