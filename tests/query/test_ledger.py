"""Answers that could be subtracted from each other are refused."""

from __future__ import annotations

import base64
import json
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import InputError, LedgerError
from halfmask.query.history.differences import Atom, isolates
from halfmask.query.history.ledger import Ledger

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(params=[True, False], ids=["people are known", "one row, one person"])
def people(request: pytest.FixtureRequest) -> hm.Table:
    rows = pa.table(
        {
            "id": list(range(20)),
            "name": [f"n{i}" for i in range(20)],
            "city": ["x"] * 12 + ["y"] * 8,
            "age": [30 + i % 3 for i in range(19)] + [99],
            "salary": [1000 + i for i in range(20)],
            "k": [2] * 20,
        }
    )
    schema = {
        "policy": {"k": "k"},
        "columns": {
            "id": "identifier",
            "name": "quasi",
            "city": "quasi",
            "age": "quasi",
            "salary": "sensitive",
        },
    }
    if request.param:
        schema["table"] = {"person": "id"}
    return hm.read(rows, schema)


ALL = "SELECT city, SUM(salary) AS s FROM t GROUP BY city GUARANTEE k = 5, l = 2"
BUT_ONE = "SELECT city, SUM(salary) AS s FROM t {} GROUP BY city GUARANTEE k = 5, l = 2"


def test_leaving_one_person_out_is_refused(people: hm.Table) -> None:
    ledger = Ledger()
    hm.query(people, ALL, ledger=ledger)
    with pytest.raises(LedgerError, match="fewer than 5"):
        hm.query(people, BUT_ONE.format("WHERE name <> 'n3'"), ledger=ledger)
    assert len(ledger.entries) == 1


def test_leaving_an_outlier_out_is_refused_under_another_alias(people: hm.Table) -> None:
    ledger = Ledger()
    hm.query(people, ALL, ledger=ledger)
    with pytest.raises(LedgerError):
        hm.query(
            people,
            "SELECT q.city, AVG(q.salary) AS s FROM t q WHERE q.age < 90 GROUP BY q.city "
            "GUARANTEE k = 5, l = 2",
            ledger=ledger,
        )


def test_the_same_question_again_is_answered(people: hm.Table) -> None:
    ledger = Ledger()
    first = hm.query(people, ALL, ledger=ledger)
    again = hm.query(people, ALL, ledger=ledger)
    assert first.to_arrow().sort_by("city").equals(again.to_arrow().sort_by("city"))


def test_a_coarser_question_is_answered(people: hm.Table) -> None:
    ledger = Ledger()
    hm.query(people, ALL, ledger=ledger)
    assert (
        len(
            hm.query(people, "SELECT SUM(salary) AS s FROM t GUARANTEE k = 5, l = 2", ledger=ledger)
        )
        == 1
    )


def test_a_total_that_uncovers_a_withheld_group_is_refused(people: hm.Table) -> None:
    ledger = Ledger()
    by_age = "SELECT age, SUM(salary) AS s FROM t GROUP BY age GUARANTEE k = 5, l = 2"
    assert len(hm.query(people, by_age, ledger=ledger)) == 3  # the one aged 99 is withheld
    with pytest.raises(LedgerError):
        hm.query(people, "SELECT SUM(salary) AS s FROM t GUARANTEE k = 5, l = 2", ledger=ledger)


def test_a_warning_instead(people: hm.Table) -> None:
    ledger = Ledger(on_danger="warn")
    hm.query(people, ALL, ledger=ledger)
    answer = hm.query(people, BUT_ONE.format("WHERE name <> 'n3'"), ledger=ledger)
    assert len(answer) == 2
    assert len(ledger.warnings) == 1


def test_a_ledger_survives_in_a_file(people: hm.Table, tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    ledger = Ledger.read(file)
    hm.query(people, ALL, ledger=ledger)
    ledger.write(file)
    with pytest.raises(LedgerError):
        hm.query(people, BUT_ONE.format("WHERE name <> 'n3'"), ledger=Ledger.read(file))
    assert len(Ledger.read(file).entries) == 1


def test_a_file_is_private_and_says_what_is_wrong_with_it(people: hm.Table, tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    ledger = Ledger.read(file)
    hm.query(people, ALL, ledger=ledger)
    ledger.write(file)
    assert file.stat().st_mode & 0o077 == 0
    assert '"n3"' not in file.read_text()
    good = file.read_text()
    for text, said in (
        ("{}", "is not a ledger"),
        ("no JSON", "is not a ledger"),
        ('{"format": "halfmask.ledger/99"}', "newer version"),
        (good[:-200], "is damaged"),
        (good.replace('"k": 5', '"k": 1'), "is damaged"),
        (good.replace('"fingerprint"', '"x"'), "is damaged"),
    ):
        file.write_text(text)
        with pytest.raises(InputError, match=said):
            Ledger.read(file)
    file.write_text(good)
    with pytest.raises(LedgerError):
        hm.query(people, BUT_ONE.format("WHERE name <> 'n3'"), ledger=Ledger.read(file))


def test_no_answer_of_another_process_is_lost(people: hm.Table, tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    one, other = Ledger.read(file), Ledger.read(file)
    for ledger in (one, other):
        hm.query(people, ALL, ledger=ledger)
    one.write(file)
    with pytest.raises(LedgerError, match="meanwhile"):
        other.write(file)
    assert len(Ledger.read(file).entries) == 1


OLD = {
    "format": "halfmask.ledger/1",
    "entries": [{"sql": ALL, "table": "the_table", "k": 5, "fingerprint": "duckdb 0:20-1"}],
}


def test_a_ledger_of_the_first_format_is_read_and_compared(
    people: hm.Table, tmp_path: Path
) -> None:
    file = tmp_path / "ledger.json"
    places = pa.table({"level": [0, 0], "g0": ["x", "y"], "place": [0, 1]})
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, places.schema) as writer:
        writer.write_table(places)
    OLD["entries"][0]["places"] = base64.b64encode(sink.getvalue()).decode()  # type: ignore[index]
    file.write_text(json.dumps(OLD))
    ledger = Ledger.read(file)
    with pytest.raises(LedgerError, match="fewer than 5"):
        hm.query(people, BUT_ONE.format("WHERE name <> 'n3'"), ledger=ledger)
    hm.query(people, ALL, ledger=ledger)
    ledger.write(file)
    assert len(Ledger.read(file).entries) == 2
    other = hm.read(pa.table({"color": ["red"] * 9}))
    file.write_text(json.dumps(OLD))
    with pytest.raises(LedgerError, match="older version"):
        hm.query(other, "SELECT COUNT(*) AS n FROM t GUARANTEE k = 5", ledger=Ledger.read(file))


cells = st.dictionaries(
    st.tuples(st.integers(-1, 2), st.integers(-1, 2)), st.integers(1, 9), min_size=1, max_size=8
)


def _atoms(shared: dict[tuple[int, int], int], k: int) -> list[Atom]:
    """Per pair of rows as many people, of whom nobody stands in two pairs."""
    found = []
    for i, ((a, b), n) in enumerate(shared.items()):
        rows = tuple(((j, place), 1) for j, place in enumerate((a, b)) if place >= 0)
        if rows:
            found.append(Atom(rows, None if n >= k else frozenset(range(10 * i, 10 * i + n))))
    return found


@given(cells, st.integers(2, 8))
def test_the_cut_equals_trying_every_subset(shared: dict[tuple[int, int], int], k: int) -> None:
    rows = sorted({("o", a) for a, _ in shared if a >= 0} | {("n", b) for _, b in shared if b >= 0})
    sizes = {
        row: sum(n for (a, b), n in shared.items() if row in (("o", a), ("n", b))) for row in rows
    }
    if min(sizes.values(), default=0) < k:
        return  # no answer has such a row
    smallest = k
    for mask in range(1, 2 ** len(rows)):
        chosen = {r for i, r in enumerate(rows) if mask >> i & 1}
        apart = sum(
            n for (a, b), n in shared.items() if (("o", a) in chosen) != (("n", b) in chosen)
        )
        if 0 < apart < smallest:
            smallest = apart
    assert isolates(_atoms(shared, k), k, 1) == (smallest < k)


def test_many_light_pairs_are_refused_without_searching() -> None:
    rng = np.random.default_rng(1)
    shared = {(int(a), int(b)): 1 for a, b in rng.integers(0, 400, (4000, 2))}
    assert isolates(_atoms(shared, 5), 5, 1)
