"""Answers that could be subtracted from each other are refused."""

from __future__ import annotations

import sqlite3
from contextlib import closing
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
    file = tmp_path / "people.ledger"
    ledger = Ledger.read(file)
    hm.query(people, ALL, ledger=ledger)
    ledger.write(file)
    assert file.stat().st_mode & 0o077 == 0
    assert b'"n3"' not in file.read_bytes()
    for text, said in (
        ("", "is not a ledger"),
        ("{}", "is not a ledger"),
        ("no JSON", "is not a ledger"),
    ):
        (tmp_path / "other").write_text(text)
        with pytest.raises(InputError, match=said):
            Ledger.read(tmp_path / "other")
        with pytest.raises(InputError, match="is not a ledger"):
            ledger.write(tmp_path / "other")
        assert (tmp_path / "other").read_text() == text


CHANGES = {
    "a lower k": "UPDATE entries SET body = replace(body, '\"k\": 5', '\"k\": 1') WHERE serial = 2",
    "another place": "UPDATE entries SET body = replace(body, '\"start\": 0', '\"start\": 1')",
    "an answer less": "DELETE FROM entries WHERE serial = 2",
    "the last answer less": "DELETE FROM entries WHERE serial = 3",
    "an answer that is none": "UPDATE entries SET kind = 'bind' WHERE serial = 2",
    "another salt": 'UPDATE entries SET body = \'{"salt": "0"}\' WHERE serial = 1',
    "no end": "DELETE FROM head",
}


WRITTEN: dict[tuple[bool, bool], bytes] = {}


def written(people: hm.Table, file: Path, key: Path | None) -> bytes:
    """A ledger of two answers, once for all changes."""
    which = people.schema.person is not None, key is not None
    if which not in WRITTEN:
        ledger = Ledger.read(file, key=key)
        for _ in range(2):
            hm.query(people, ALL, ledger=ledger)
            ledger.write(file)
        WRITTEN[which] = file.read_bytes()
    return WRITTEN[which]


@pytest.mark.parametrize("keyed", [False, True], ids=["without a key", "with a key"])
@pytest.mark.parametrize("change", CHANGES)
def test_a_changed_removed_or_moved_answer_is_noticed(
    people: hm.Table, tmp_path: Path, change: str, keyed: bool
) -> None:
    file, key = tmp_path / "people.ledger", tmp_path / "key" if keyed else None
    (tmp_path / "key").write_bytes(b"sixteen bytes or more")
    before = written(people, file, key)
    file.write_bytes(before)
    ledger = Ledger.read(file, key=key)
    with closing(sqlite3.connect(file)) as base:
        base.execute(CHANGES[change])
        base.commit()
    assert file.read_bytes() != before
    with pytest.raises(LedgerError, match="damaged"):
        Ledger.read(file, key=key)
    with pytest.raises(LedgerError, match="damaged"):
        ledger.write(file)
    with pytest.raises(LedgerError, match="damaged"):
        hm.BudgetLedger.open(file, key=key)


def test_a_keyed_ledger_of_answers_needs_its_key(people: hm.Table, tmp_path: Path) -> None:
    file, key = tmp_path / "people.ledger", tmp_path / "key"
    key.write_bytes(b"sixteen bytes or more")
    ledger = Ledger.read(file, key=key)
    hm.query(people, ALL, ledger=ledger)
    ledger.write(file)
    with pytest.raises(LedgerError, match="another key"):
        Ledger.read(file)
    assert len(Ledger.read(file, key=key).entries) == 1
    file.write_text("{}")
    with pytest.raises(InputError, match="is not a ledger"):  # put there by somebody without it
        Ledger.read(file, key=key)


def test_a_ledger_that_was_exchanged_meanwhile_is_not_added_to(
    people: hm.Table, tmp_path: Path
) -> None:
    """As many answers, but others."""
    one, other = Ledger(), Ledger()
    for ledger, name in ((one, "one"), (other, "other")):
        hm.query(people, ALL, ledger=ledger)
        ledger.write(tmp_path / name)
    (tmp_path / "other").rename(tmp_path / "one")
    hm.query(people, ALL, ledger=one)
    with pytest.raises(LedgerError, match="meanwhile"):
        one.write(tmp_path / "one")


def test_one_file_holds_answers_and_spending(people: hm.Table, tmp_path: Path) -> None:
    noisy = "SELECT COUNT(*) AS n FROM t WITH EPSILON 0.5"
    for first in ("answers", "budget"):
        file = tmp_path / first
        if first == "budget":
            hm.BudgetLedger.create(file, hm.dp.Pure(1))
        ledger = Ledger.read(file)
        hm.query(people, ALL, ledger=ledger)
        ledger.write(file)
        if first == "answers":
            with pytest.raises(LedgerError, match=r"holds no budget.*budget create answers"):
                hm.BudgetLedger.open(file)
            hm.BudgetLedger.create(file, hm.dp.Pure(1))
        with pytest.raises(InputError, match="exists"):
            hm.BudgetLedger.create(file, hm.dp.Pure(9))
        again = Ledger.read(file)
        hm.query(people, noisy, ledger=hm.BudgetLedger.open(file))  # spent meanwhile: no matter
        with pytest.raises(LedgerError, match="isolate"):
            hm.query(people, BUT_ONE.format("WHERE name <> 'n3'"), ledger=again)
        hm.query(people, ALL, ledger=again)
        again.write(file)
        assert len(Ledger.read(file).entries) == 2
        assert str(hm.BudgetLedger.open(file).remaining()) == "epsilon = 0.5"


def test_a_ledger_is_not_written_over_another(people: hm.Table, tmp_path: Path) -> None:
    one, other = Ledger(), Ledger()
    for ledger in (one, other):
        hm.query(people, ALL, ledger=ledger)
    one.write(tmp_path / "x")
    with pytest.raises(LedgerError, match="meanwhile"):
        other.write(tmp_path / "x")
    (tmp_path / "x").unlink()
    with pytest.raises(LedgerError, match="meanwhile"):
        one.write(tmp_path / "x")  # what it held is gone
    one.write(tmp_path / "y")
    assert len(Ledger.read(tmp_path / "y").entries) == 1


def test_people_keep_their_numbers_over_many_writings(tmp_path: Path) -> None:
    """Numbers are written as differences; what is read equals what was noted."""
    file, ledger = tmp_path / "x", Ledger()
    rows = {"id": [i // 2 for i in range(60)], "city": ["x", "y"] * 30, "salary": [*range(60)]}
    for size in (20, 40, 40, 60):
        part = hm.read(pa.table(rows).slice(0, size), hm.Schema({"city": "quasi"}, person="id"))
        asked = "SELECT city, SUM(salary) AS s FROM t GROUP BY city GUARANTEE k = 3"
        hm.query(part, asked, ledger=ledger)
        ledger.write(file)
        found = Ledger.read(file)
        assert found._numbers.ids.tolist() == ledger._numbers.ids.tolist()
        assert found._numbers.who.tolist() == ledger._numbers.who.tolist()
        assert [e.seen[0].packed for e in found.entries] == [
            e.seen[0].packed for e in ledger.entries
        ]


def test_no_answer_of_another_process_is_lost(people: hm.Table, tmp_path: Path) -> None:
    file = tmp_path / "ledger.json"
    one, other = Ledger.read(file), Ledger.read(file)
    for ledger in (one, other):
        hm.query(people, ALL, ledger=ledger)
    one.write(file)
    with pytest.raises(LedgerError, match="meanwhile"):
        other.write(file)
    assert len(Ledger.read(file).entries) == 1


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
