"""Attacks on cells: who mints people, counts twice, repeats, or words a question cleverly.

Dana's salary is what everybody is after. Her cell stands among few others, and an attacker who adds
or takes away known people, or makes her cell behave differently, would read it from the answer.
"""

from __future__ import annotations

import os
from typing import Any

import msgspec
import pytest
from memory_cell import MemoryCellStore
from tests.protocol.town import Town, row

from halfmask.engines.duckdb.engine import DuckDB
from halfmask.errors import ProtocolError, UnsupportedQueryError
from halfmask.protocol.cell_plan import plan_for_cells
from halfmask.protocol.common_schema import Policy, Terms, commons_from, permits
from halfmask.protocol.contribution import contribution
from halfmask.protocol.crypto import FrameKey, derive, place, seat, sign
from halfmask.protocol.keys import PROOF, new_issuer
from halfmask.protocol.messages import Contribute, Deliver, encode_message, read_reply, read_request
from halfmask.protocol.parties import worker
from halfmask.protocol.records import layout
from halfmask.protocol.schedule import Schedule
from halfmask.protocol.store.relay_sqlite import RelayStore
from halfmask.protocol.transport import drive

COMMONS = commons_from(
    {
        "tables": {
            "people": {
                "columns": {
                    "city": {"role": "quasi", "values": ["Bourges", "Vierzon"]},
                    "age": {"type": "integer", "role": "quasi"},
                    "note": {"role": "other"},
                    "salary": {"type": "integer", "role": "sensitive"},
                }
            }
        }
    }
)
SALARY = 4321
DANA: dict[str, Any] = {"city": "Bourges", "age": 93, "salary": SALARY, "note": "7", "k": 5}
OTHERS: list[dict[str, Any]] = [
    {"city": "Vierzon", "age": 30 + i, "salary": 1000 + i, "note": "1", "k": 2} for i in range(6)
]
TOTAL = "SELECT city, COUNT(*) AS n, SUM(salary) AS total FROM people GROUP BY city GUARANTEE k = 5"
SMALL = Terms("tree", 4, 8, 32)


def town_of(people: list[dict[str, Any]], **more: Any) -> Town:
    return Town(people, COMMONS, **{"terms": SMALL, **more})


def minted(town: Town, question: Any, salary: int, serial: bytes, kind: str) -> Contribute:
    """A contribution of somebody who holds the group's key, and no credential of the issuer."""
    key = town.cells[0].key
    made = plan_for_cells(COMMONS, TOTAL, town.terms, derive(key.secret, b"", b"tokens"))
    person = {"city": "Bourges", "age": 1, "salary": salary, "note": ""}
    record = contribution(made, {"people": row(COMMONS, person)}, Policy(1)).record
    frames = FrameKey(key.secret, question.id)
    stranger = new_issuer().enroll(str(salary), 1 << 40)
    if kind == "a credential of another issuer":
        serial = stranger.credential.serial
    if kind == "somebody's credential":
        serial = town.cells[salary].key.credential.serial
    ticket = os.urandom(32) if kind == "any ticket" else frames.ticket(serial)
    message = b"contribution" + question.id + ticket + record
    proof = bytes(PROOF)
    if kind == "a credential of another issuer":
        proof = stranger.prove(message)
    if kind == "somebody's credential":
        other = town.cells[salary].key.credential
        proof = other.body() + other.signature + sign(os.urandom(32), message)
    return Contribute(
        question.id, 0, ticket, frames.seal(seat(question.id, ticket), record + proof)
    )


def recovered(town: Town, question: Any, known: int) -> int | None:
    """Dana's salary, if the answer shows her city."""
    town.work(limit=300)
    try:
        found = drive(town.asker.collect(question), town.send)
    except ProtocolError:
        return None
    shown = {} if found is None else {r["city"]: r["total"] for r in found[0].rows.to_pylist()}
    return int(shown["Bourges"]) - known if "Bourges" in shown else None


MINTED = ["nothing", "any ticket", "a credential of another issuer", "somebody's credential"]


def mint(town: Town, question: Any, kind: str) -> None:
    drive(town.asker.ask(question), town.send)
    for i in range(1, 5):
        town.raw(encode_message(minted(town, question, i, bytes([i] * 16), kind)))
    town.gather(question)


@pytest.mark.parametrize("kind", MINTED)
def test_a_group_key_mints_nobody(kind: str) -> None:
    town = town_of([DANA, *OTHERS])
    question = town.question(TOTAL)
    mint(town, question, kind)
    assert recovered(town, question, known=10) is None


def test_without_the_check_four_minted_cells_give_her_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the key of a group could do alone: so that the test above can fail."""

    def unchecked(context: worker.TaskContext, ticket: bytes, sealed: bytes) -> bytes:
        plain = context.key.open(seat(context.query, ticket), sealed)
        return plain[: context.cell_plan.layout.size]

    monkeypatch.setattr(worker.TaskContext, "admit", unchecked)
    town = town_of([DANA, *OTHERS])
    question = town.question(TOTAL)
    mint(town, question, "nothing")
    assert recovered(town, question, known=10) == SALARY


def test_work_by_whoever_holds_the_group_key_alone_is_refused() -> None:
    """A frame with four invented people in it, from nobody's cell, in place of four others."""
    town = town_of([DANA, *OTHERS, OTHERS[0]])
    question = town.question(TOTAL)
    key = town.cells[0].key
    made = plan_for_cells(COMMONS, TOTAL, town.terms, derive(key.secret, b"", b"tokens"))
    invented = [
        contribution(made, {"people": row(COMMONS, {**DANA, "salary": s})}, Policy(1)).record
        for s in (1, 2, 3, 4)
    ]
    frames = FrameKey(key.secret, question.id)
    hers = frames.ticket(key.credential.serial)
    forged: list[int] = []

    def forging(data: bytes) -> bytes:
        request = read_request(data)
        if isinstance(request, Deliver) and request.stage == 0:
            (room,) = town.store.rooms(question.id)
            task = Schedule(town.terms, room.contributions).task(0, request.task)
            low = 4 * request.task
            if hers not in dict(town.store.members(question.id, 0, low, low + 4)):
                content = layout.fold_contributions(
                    made.layout, made.layout.read(b"".join(invented))
                )
                whole = layout.frames(made.layout, content, town.terms.frame, 1)[0].tobytes()
                where = place(question.id, room.closing.digest(question.id, 0), task.outputs[0])
                sealed = frames.seal(where, whole + bytes(PROOF))
                data = encode_message(msgspec.structs.replace(request, frames=[sealed]))
                forged.append(request.task)
        return town.raw(data)

    town.send = forging
    town.gather(question)
    assert recovered(town, question, known=10) is None
    assert len(forged) == 1


# -- one credential, one contribution


def again(town: Town, question: Any, cell: Any, salary: int, ticket: bytes | None) -> Contribute:
    """One more contribution of a broken cell, under its own credential."""
    made = plan_for_cells(COMMONS, TOTAL, town.terms, derive(cell.key.secret, b"", b"tokens"))
    person = {"city": "Bourges", "age": 1, "salary": salary, "note": ""}
    record = contribution(made, {"people": row(COMMONS, person)}, Policy(1)).record
    frames = FrameKey(cell.key.secret, question.id)
    ticket = ticket or frames.ticket(cell.key.credential.serial)
    proof = cell.key.prove(b"contribution" + question.id + ticket + record)
    return Contribute(
        question.id, 0, ticket, frames.seal(seat(question.id, ticket), record + proof)
    )


@pytest.mark.parametrize("tickets", ["own", "any"])
def test_a_credential_contributes_once_to_a_query(tickets: str) -> None:
    town = town_of([DANA, *OTHERS])
    question = town.question(TOTAL)
    drive(town.asker.ask(question), town.send)
    for i in range(1, 5):
        ticket = None if tickets == "own" else bytes([i] * 32)
        town.raw(encode_message(again(town, question, town.cells[1], i, ticket)))
    town.gather(question)
    assert recovered(town, question, known=10) is None


@pytest.mark.parametrize("claim", ["several people", "a sum"])
def test_a_contribution_speaks_for_one_person(claim: str) -> None:
    """A broken cell, which can sign whatever it likes, claims to be four people."""
    town = town_of([DANA, *OTHERS])
    question = town.question(TOTAL)
    cell = town.cells[1]
    made = plan_for_cells(COMMONS, TOTAL, town.terms, derive(cell.key.secret, b"", b"tokens"))
    person = {"city": "Bourges", "age": 1, "salary": 10, "note": ""}
    record = made.layout.read(
        contribution(made, {"people": row(COMMONS, person)}, Policy(1)).record
    ).copy()
    if claim == "a sum":
        record = made.layout.sums(0, 4, 0)[1:2]
    else:
        record["rows"] = 4
        for i in range(len(made.layout.states)):
            record[f"s{i}_n"] = 4
    frames = FrameKey(cell.key.secret, question.id)
    ticket, sealed = worker.seal_contribution(
        frames, question.id, cell.key.credential.serial, record.tobytes(), cell.key
    )
    drive(town.asker.ask(question), town.send)
    town.raw(encode_message(Contribute(question.id, 0, ticket, sealed)))
    town.gather(question)
    assert recovered(town, question, known=10) is None
    found = drive(town.asker.collect(question), town.send)
    assert found is not None
    assert (found[0].contributions, found[0].void) == (6, 1)


class Doubling(RelayStore):
    """A relay in league with a broken cell: takes all that it sends, under one ticket."""

    extra: tuple[tuple[bytes, bytes], ...] = ()
    apart = False

    def number(self, name: bytes, group: int) -> int:
        return super().number(name, group) + len(self.extra)

    def members(self, name: bytes, group: int, low: int, high: int) -> list[tuple[bytes, bytes]]:
        found = [*super().members(name, group, 0, 1000), *self.extra]
        if self.apart:
            # One of them in each partition of two, beside somebody else, in order.
            others = [m for m in found if m[0] != self.extra[0][0]]
            pairs = [sorted(pair) for pair in zip(others, self.extra, strict=False)]
            own = [m for m in found if m[0] == self.extra[0][0] and m not in self.extra]
            found = [m for pair in pairs for m in pair] + others[len(pairs) :] + own
        return (found if self.apart else sorted(found, key=lambda m: m[0]))[low:high]


@pytest.mark.parametrize("apart", [False, True], ids=["side by side", "in other partitions"])
def test_a_relay_in_league_with_a_cell_does_not_count_it_twice(apart: bool) -> None:
    store = Doubling()
    terms = Terms("tree", 2 if apart else 64, 8, 64)
    town = town_of([DANA, *OTHERS], store=store, terms=terms)
    question = town.question(TOTAL)
    sent = [again(town, question, town.cells[1], i, None) for i in range(1, 5)]
    store.extra, store.apart = tuple((c.ticket, c.frame) for c in sent), apart
    town.gather(question)
    assert recovered(town, question, known=10) is None


@pytest.mark.parametrize("ticket", ["as it was", "of this query"])
def test_contributions_to_another_query_count_for_nothing(ticket: str) -> None:
    friends = [{**DANA, "salary": i, "k": 1} for i in range(1, 5)]
    town = town_of([DANA, *friends])
    kept: list[Contribute] = []

    def tapped(data: bytes) -> bytes:
        request = read_request(data)
        if isinstance(request, Contribute):
            kept.append(request)
        return town.raw(data)

    town.send = tapped
    first = town.question(TOTAL)
    cells, town.cells = town.cells, town.cells[1:]
    town.gather(first)
    assert len(kept) == 4
    town.cells, town.send = cells[:1], town.raw
    second = town.question(TOTAL)
    drive(town.asker.ask(second), town.send)
    frames = FrameKey(cells[0].key.secret, second.id)
    for request, cell in zip(kept, cells[1:], strict=True):
        name = frames.ticket(cell.key.credential.serial)
        used = request.ticket if ticket == "as it was" else name
        town.raw(encode_message(msgspec.structs.replace(request, query=second.id, ticket=used)))
    town.gather(second)
    assert recovered(town, second, known=10) is None


# -- demands, however the question is worded

COLUMN = Policy(2, 1, {"salary": (50, 1), "age": (50, 1), "note": (50, 1)})
WORDINGS = {
    "an argument": "SELECT city, SUM({c}) AS x FROM people GROUP BY city GUARANTEE k = 2",
    "a position": "SELECT {c}, COUNT(*) AS n FROM people GROUP BY 1 GUARANTEE k = 2",
    "an alias": "SELECT {c} AS x, COUNT(*) AS n FROM people GROUP BY x GUARANTEE k = 2",
    "another case": "SELECT {C} AS x, COUNT(*) AS n FROM people GROUP BY x GUARANTEE k = 2",
    "a filter": "SELECT COUNT(*) AS n FROM people WHERE {c} = 7 GUARANTEE k = 2",
    "a filter behind an alias": (
        "SELECT COUNT(*) AS n FROM (SELECT {c} AS x FROM people) AS t WHERE x = 7 GUARANTEE k = 2"
    ),
    "WITH": (
        "WITH t AS (SELECT {c} AS x, city FROM people) "
        "SELECT x, COUNT(*) AS n FROM t GROUP BY x GUARANTEE k = 2"
    ),
    "a condition": (
        "SELECT city, COUNT(*) FILTER (WHERE {c} = 7) AS n FROM people GROUP BY city "
        "GUARANTEE k = 2"
    ),
    "HAVING": (
        "SELECT city, COUNT(*) AS n FROM people GROUP BY city HAVING MAX({c}) > 7 GUARANTEE k = 2"
    ),
    "ORDER BY": (
        "SELECT city, COUNT(*) AS n FROM people GROUP BY city ORDER BY MAX({c}) GUARANTEE k = 2"
    ),
    "a qualified name": (
        "SELECT p.{c}, COUNT(*) AS n FROM people AS p GROUP BY p.{c} GUARANTEE k = 2"
    ),
    "diversity": (
        "SELECT city, COUNT(*) AS n FROM people GROUP BY city GUARANTEE k = 2, l = 2 OF {c}"
    ),
}


@pytest.mark.parametrize("column", ["salary", "age", "note"])
@pytest.mark.parametrize("wording", WORDINGS)
def test_a_demand_on_a_column_holds_however_it_is_named(wording: str, column: str) -> None:
    if column == "note" and wording in ("an argument",):
        pytest.skip("a text is not added up")
    text = WORDINGS[wording].format(c=column, C=column.upper())
    assert not permits(COLUMN, COMMONS, text, 0)
    # Without that demand she would take part: it is the demand that keeps her out.
    assert permits(Policy(2, 2 if wording == "diversity" else 1), COMMONS, text, 0)
    try:
        made = plan_for_cells(COMMONS, text)
    except UnsupportedQueryError:
        return  # nobody is asked
    tables = {"people": row(COMMONS, DANA)}
    assert contribution(made, tables, COLUMN).reason == "no level satisfies the policy"


@pytest.mark.parametrize("general", [(50, 1), (2, 9)])
def test_a_column_named_with_less_lowers_no_general_demand(general: tuple[int, int]) -> None:
    policy = Policy(*general, {"salary": (2, 1), "city": (2, 1)})
    made = plan_for_cells(COMMONS, TOTAL)
    given = contribution(made, {"people": row(COMMONS, DANA)}, policy)
    assert given.reason == "no level satisfies the policy"
    assert policy.demand(["salary", "city"]) == general
    assert not permits(policy, COMMONS, TOTAL, 0)


def test_one_column_more_never_lowers_what_is_demanded() -> None:
    policy = Policy(3, 1, {"salary": (9, 1), "age": (2, 4)})
    assert [
        policy.demand(c)
        for c in ([], ["city"], ["age"], ["age", "salary"], ["age", "salary", "city"])
    ] == [(3, 1), (3, 1), (3, 4), (9, 4), (9, 4)]


def test_the_door_of_a_cell_does_not_believe_what_chose_the_level(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A planner that takes everybody for content: the cell's own last look still keeps her out."""
    monkeypatch.setattr(Policy, "demand", lambda *_: (1, 1))
    town = town_of([{**DANA, "k": None}, *OTHERS])
    home = town.cells[0].home
    assert isinstance(home, MemoryCellStore)
    home.demands = COLUMN
    question = town.question(TOTAL.replace("k = 5", "k = 2"))
    assert town.gather(question)[0] == "the policy forbids it"
    made = plan_for_cells(COMMONS, TOTAL.replace("k = 5", "k = 2"), town.terms)
    (entry,) = home.log()
    assert made.layout.level(entry.record) is None


@pytest.mark.parametrize(
    ("policy", "question", "permitted"),
    [
        (Policy(2, 2), "SELECT salary, COUNT(*) AS n FROM people GROUP BY salary {}", False),
        (Policy(2, 2), "SELECT COUNT(*) AS n FROM people WHERE salary = 7 {} OF age", False),
        (Policy(2, 2), "SELECT COUNT(*) AS n FROM people WHERE salary = 7 {} OF salary", True),
        (Policy(2, 2), "SELECT age, MAX(salary) AS n FROM people GROUP BY age {}", True),
        (Policy(2, 1, {"Age": (2, 2)}), "SELECT age, MAX(salary) FROM people GROUP BY 1 {}", False),
        (Policy(2, 1, {"age": (2, 2)}), "SELECT city, MAX(age) FROM people GROUP BY city {}", True),
        (Policy(2, 1), "SELECT salary, COUNT(*) AS n FROM people GROUP BY salary {}", True),
        (
            Policy(2, 2),
            "SELECT MAX(x) AS n FROM (SELECT salary AS x FROM people) AS t {}",
            True,
        ),
    ],
)
def test_the_last_look_knows_which_columns_are_counted(
    policy: Policy, question: str, permitted: bool
) -> None:
    """Behind a key or a condition stands one value: no l holds for it."""
    assert permits(policy, COMMONS, question.format("GUARANTEE k = 3, l = 2"), 0) is permitted


# -- nothing that a row holds is seen

FAILING = [
    "SUM(CAST(note AS INTEGER))",
    "SUM(1 / (salary - 4321))",
    "SUM(salary * 9223372036854775807)",
    "SUM(CASE WHEN salary = 4321 THEN CAST(note AS INTEGER) ELSE 0 END)",
    "SUM(SQRT(4320 - salary))",
    "SUM(LN(4321 - salary))",
    "COUNT(SUBSTRING(note, salary, 3))",
    "SUM(CASE WHEN salary = 4321 THEN EXP(salary) ELSE 0 END)",
]


def observed(person: dict[str, Any], select: str, condition: str = "TRUE") -> Any:
    """All that relay and asker see: kinds and lengths of messages, and the answer."""
    seen: list[tuple[str, int, str, int]] = []
    town = town_of([person, *OTHERS])

    def tapped(data: bytes) -> bytes:
        answer = town.raw(data)
        names = type(read_request(data)).__name__, type(read_reply(answer)).__name__
        seen.append((names[0], len(data), names[1], len(answer)))
        return answer

    town.send = tapped
    text = f"SELECT city, {select} AS x FROM people WHERE {condition} GROUP BY city GUARANTEE k = 2"
    try:
        question = town.question(text)
    except UnsupportedQueryError as refused:
        return str(refused)  # nobody is asked
    town.gather(question)
    town.work()
    found = drive(town.asker.collect(question), town.send)
    assert found is not None
    # Fractions are added in the order of tickets, which are others in every query.
    rows = [
        {n: float(f"{v:.9g}") if isinstance(v, float) else v for n, v in r.items()}
        for r in found[0].rows.to_pylist()
    ]
    return seen, sorted(map(str, rows)), found[0].contributions


@pytest.mark.parametrize("select", FAILING)
def test_a_row_that_fails_an_expression_looks_like_any_other(select: str) -> None:
    """Her demand cannot be met: whatever she earns, nothing that is seen depends on it."""
    values = [
        {"salary": SALARY, "note": "seven"},
        {"salary": 17, "note": "7"},
        {"salary": None, "note": None},
        {"salary": 2**62, "note": "x" * 500},
    ]
    first, *rest = (observed({**DANA, **v, "k": 1000}, select) for v in values)
    assert all(other == first for other in rest)


@pytest.mark.parametrize("condition", ["CAST(note AS INTEGER) > 0", "1 / (salary - 4321) > 0"])
def test_a_row_that_fails_a_condition_looks_like_any_other(condition: str) -> None:
    one = observed({**DANA, "k": 1000}, "COUNT(*)", condition)
    two = observed({**DANA, "k": 1000, "note": "seven", "salary": 9}, "COUNT(*)", condition)
    assert one == two


def test_what_evaluates_a_question_depends_on_no_row(monkeypatch: pytest.MonkeyPatch) -> None:
    """Starting DuckDB takes long: a cell that did so for one branch of CASE would show by it."""
    started: list[int] = []
    init = DuckDB.__init__
    text = (
        "SELECT city, COUNT(*) AS n FROM people WHERE "
        "CASE WHEN salary = 4321 THEN EXP(salary / 1000) ELSE 1 END > 0 "
        "GROUP BY city GUARANTEE k = 2"
    )
    made = plan_for_cells(COMMONS, text)
    monkeypatch.setattr(DuckDB, "__init__", lambda *a, **m: started.append(1) or init(*a, **m))
    counts = []
    for salary in (SALARY, 17, None):
        started.clear()
        given = contribution(made, {"people": row(COMMONS, {**DANA, "salary": salary})}, Policy(2))
        assert given.reason == "contributed"
        counts.append(len(started))
    assert len(set(counts)) == 1
    started.clear()
    contribution(made, {"people": COMMONS.tables["people"].arrow.empty_table()}, Policy(2))
    assert len(started) == counts[0]


def test_people_are_told_only_where_ledgers_know_that_they_are_counted() -> None:
    # Each cell answers a count once; a number of people beside an average would be another one.
    town = town_of([DANA, *OTHERS])
    everybody = town.ask("SELECT COUNT(*) AS n FROM people GUARANTEE k = 5")
    assert everybody is not None
    assert everybody[0].document["people"] == 1 + len(OTHERS)
    without = town.ask(
        "SELECT AVG(salary) AS x FROM people WHERE NOT (age = 93 AND salary > 4000) GUARANTEE k = 5"
    )
    assert without is not None
    told = without[0].document
    assert without[0].rows.num_rows == 1
    assert [told[name] for name in ("people", "depth", "gap")] == [None, None, None]
    assert set(told["withheld"].values()) == {None}
