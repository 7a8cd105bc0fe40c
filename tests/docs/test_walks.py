"""The walks of ARCHITECTURE.md are true: what they name runs, and in few files beside it."""

from __future__ import annotations

import re
import sys
from pathlib import Path

import pyarrow as pa
import pytest
from pyarrow import csv
from tests.protocol.town import Town, sql

import halfmask as hm
from halfmask.cli.main import run
from halfmask.protocol.common_schema import Terms

ROOT = Path(__file__).resolve().parents[2]
HOME = str(Path(hm.__file__).parent) + "/"
PAGE = (ROOT / "ARCHITECTURE.md").read_text(encoding="utf-8")
SCHEMA = """
[policy]
k = "own"

[columns.age]
role = "quasi"
kind = "numeric"
hierarchy = { intervals = [10, 40] }
domain = { low = 0, high = 100, bins = 5 }

[columns.city]
role = "quasi"
domain = ["Ur", "Vis"]

[columns.ill]
role = "sensitive"
domain = ["flu", "gout"]
"""
ASK = (
    "SELECT city, age, COUNT(*) AS n FROM people GROUP BY city, age GUARANTEE k = 3 "
    "THEN age -> del GUARANTEE k = 5 SEMANTICS selective"
)


def command(*words: str) -> None:
    with pytest.raises(SystemExit) as done:
        run([*words])
    assert not done.value.code


def release(file: str) -> None:
    words = ["anonymize", file, "--k", "3", "--method", "optimal", "--suppression", "0.5"]
    command(*words, "-o", f"{file}.out.csv")


def answer(file: str) -> None:
    command("query", file, ASK, "--ledger", f"{file}.ledger")


def synthesis(file: str) -> None:
    people = hm.read(file)
    hm.synthesize(people, method="marginals", epsilon=1, demands="ignore").to_arrow()


def comparison(file: str) -> None:
    people = hm.read(file)
    made = hm.anonymize(people, hm.KAnonymity(3), method="optimal", suppression=0.5)
    hm.compare(people, made, learn=False).report(f"{file}.html")


def cells(_: str) -> None:
    people = [{"a": one % 2, "b": "xy"[one % 2], "s": one % 3, "k": 2, "l": 1} for one in range(8)]
    assert Town(people, terms=Terms(partition=4, frame=4, room=64, merge="swap")).ask(sql())


WALKS = {
    "A CSV becomes a release.": release,
    "A query with personal demands becomes an answer.": answer,
    "A noisy synthesis.": synthesis,
    "`compare`.": comparison,
    "A query to cells, without a trusted center.": cells,
}


@pytest.fixture
def file(tmp_path: Path) -> str:
    """People as a user has them: a CSV and a schema beside it."""
    rows = range(120)
    people = {
        "age": [20 + one * 7 % 60 for one in rows],
        "city": [("Ur", "Vis")[one % 2] for one in rows],
        "ill": [("flu", "gout")[one % 3 == 0] for one in rows],
        "own": [2 + one % 2 for one in rows],
    }
    csv.write_csv(pa.table(people), tmp_path / "people.csv")
    (tmp_path / "people.toml").write_text(SCHEMA, encoding="utf-8")
    return str(tmp_path / "people.csv")


def files_that_run(walk, file: str) -> set[str]:
    """The files of which a function runs, those apart that run only as a module loads."""
    seen: set[str] = set()

    def look(frame, event, _) -> None:
        if event != "call" or not frame.f_code.co_filename.startswith(HOME):
            return
        place, above = frame.f_code.co_filename, frame
        if place in seen or not frame.f_code.co_flags & 1:  # the body of a class or module
            return
        while above is not None:
            if above.f_code.co_name == "<module>" and above.f_code.co_filename.startswith(HOME):
                return
            above = above.f_back
        seen.add(place)

    former = sys.getprofile()
    sys.setprofile(look)
    try:
        walk(file)
    finally:
        sys.setprofile(former)
    return {one.removeprefix(HOME) for one in seen}


@pytest.mark.parametrize("name", WALKS)
def test_every_stop_of_a_walk_runs(name: str, file: str) -> None:
    block = PAGE.partition(f"**{name}**")[2].partition("```\n")[2].partition("```")[0]
    stops = [re.split(r"\s+", line.strip())[1] for line in block.splitlines()]
    assert 5 < len(stops) <= 12
    ran = files_that_run(WALKS[name], file)
    assert [one for one in stops if not any(place.startswith(one) for place in ran)] == []
