"""A relay that misbehaves and cells that vanish: an error or a second try, never a wrong answer."""

from __future__ import annotations

import os
import random
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import msgspec
import pytest
from effort import THOROUGH, examples
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.protocol.deaths import Nursery, ask_dying_relays
from tests.protocol.town import COMMONS, TABLES, Town, row, sql

from halfmask.errors import HalfmaskError, InputError, ProtocolError
from halfmask.protocol.common_schema import MERGES, Policy, Terms
from halfmask.protocol.messages import (
    Contribute,
    Deliver,
    Fetch,
    Frames,
    Late,
    TaskGrant,
    encode_message,
    read_reply,
    read_request,
)
from halfmask.protocol.parties.cell import Cell
from halfmask.protocol.store.relay_sqlite import RelayStore
from halfmask.protocol.store.vault import CellVault
from halfmask.protocol.transport import drive

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "SELECT b, COUNT(*) AS n, SUM(s) AS total FROM people GROUP BY b GUARANTEE k = 2"
PEOPLE: list[dict[str, Any]] = [{"a": i, "b": "xyz"[i % 3], "s": i, "k": 1} for i in range(11)]
RIGHT = [("x", 4, 18), ("y", 4, 22), ("z", 3, 15)]
SMALL = Terms("tree", 4, 4, 16)
Send = Callable[[bytes], bytes]


def rows(found: Any) -> list[tuple[Any, ...]]:
    return sorted((r["b"], r["n"], r["total"]) for r in found[0].rows.to_pylist())


def outcome(town: Town) -> list[tuple[Any, ...]] | str:
    """The answer, or the error that stopped it."""
    question = town.question(TEXT)
    try:
        town.gather(question)
        town.work(limit=400)
        found = drive(town.asker.collect(question), town.send)
    except HalfmaskError as error:
        return error.code
    return "pending" if found is None else rows(found)


def meddling(change: Callable[[Any, Any], Any], share: float = 1.0, seed: int = 0) -> Any:
    """A relay that changes some of its replies before they leave."""
    chance = random.Random(seed)

    def wrap(send: Send) -> Send:
        def sent(data: bytes) -> bytes:
            answer = send(data)
            if chance.random() < share:
                request, reply = read_request(data), read_reply(answer)
                return encode_message(change(request, reply))
            return answer

        return sent

    return wrap


def flip(data: bytes, at: int) -> bytes:
    at %= len(data)
    return data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :]


seen: list[bytes] = []


def drop(request: Any, reply: Any) -> Any:
    return Frames(reply.frames[:-1]) if isinstance(reply, Frames) and reply.frames else reply


def repeat(request: Any, reply: Any) -> Any:
    return Frames(reply.frames[:1] * len(reply.frames)) if isinstance(reply, Frames) else reply


def reorder(request: Any, reply: Any) -> Any:
    return Frames(reply.frames[::-1]) if isinstance(reply, Frames) else reply


def truncate(request: Any, reply: Any) -> Any:
    return Frames([f[:-5] for f in reply.frames]) if isinstance(reply, Frames) else reply


def alter(request: Any, reply: Any) -> Any:
    return Frames([flip(f, 40) for f in reply.frames]) if isinstance(reply, Frames) else reply


def lie_about_count(request: Any, reply: Any) -> Any:
    if isinstance(reply, TaskGrant):
        import msgspec

        less = msgspec.structs.replace(reply.closing, contributions=reply.closing.contributions - 1)
        return msgspec.structs.replace(reply, closing=less)
    return reply


def leave_one_out(request: Any, reply: Any) -> Any:
    import msgspec

    if isinstance(reply, TaskGrant) and reply.stage == 0:
        return msgspec.structs.replace(reply, tickets=reply.tickets[:-1])
    if isinstance(reply, Frames) and isinstance(request, Fetch) and request.stage == 0:
        return Frames(reply.frames[:-1])
    return reply


ATTACKS = [drop, repeat, reorder, truncate, alter, lie_about_count, leave_one_out]


@pytest.mark.parametrize("attack", ATTACKS, ids=lambda f: f.__name__)
def test_a_relay_that_always_meddles_is_noticed(attack: Any) -> None:
    town = Town(PEOPLE, terms=SMALL, wrap=meddling(attack))
    found = outcome(town)
    assert isinstance(found, str) or found == RIGHT
    if attack is not reorder:
        assert isinstance(found, str)


def test_a_relay_that_takes_every_try_of_a_cell_for_another_cell_counts_it_once(
    tmp_path: Path,
) -> None:
    """One person would look like three."""
    names = iter(range(100))

    def wrap(send: Send) -> Send:
        def sent(data: bytes) -> bytes:
            request = read_request(data)
            if isinstance(request, Contribute) and (other := next(names)):
                data = encode_message(msgspec.structs.replace(request, ticket=other.to_bytes(32)))
            return send(data)

        return sent

    town = Town(PEOPLE[:1], terms=SMALL, wrap=wrap)
    on_disk = CellVault.create(tmp_path / "one.cell", bytes(32), town.enroll(1), {"tables": TABLES})
    on_disk.put_table("people", row(COMMONS, PEOPLE[1]))
    on_disk.put_policy(Policy(1))
    town.cells.append(on_disk.cell())
    question = town.question(TEXT)
    drive(town.asker.ask(question), town.send)
    for cell in town.cells:
        assert {drive(cell.take_part(town.clock), town.send) for _ in "123"} == {"contributed"}
    town.clock += 61
    town.work()
    found = drive(town.asker.collect(question), town.send)
    assert found is not None
    # The first was left as it was; the others do not open under another ticket.
    assert (found[0].contributions, found[0].void, found[0].rows.num_rows) == (1, 5, 0)


@pytest.mark.parametrize(
    "attack", [drop, repeat, reorder, truncate, alter], ids=lambda f: f.__name__
)
@pytest.mark.parametrize("merge", MERGES)
def test_a_relay_that_meddles_now_and_then_causes_second_tries(attack: Any, merge: Any) -> None:
    chance = MERGES.index(merge)
    town = Town(PEOPLE, terms=Terms(merge, 4, 4, 16), wrap=meddling(attack, 0.15, chance))
    found = outcome(town)
    assert isinstance(found, str) or found == RIGHT


class Repeating(RelayStore):
    """Has every contribution twice, in the root over all of them too."""

    def number(self, name: bytes, group: int) -> int:
        return 2 * super().number(name, group)

    def members(self, name: bytes, group: int, low: int, high: int) -> list[tuple[bytes, bytes]]:
        found = super().members(name, group, 0, 1000)
        return self.doubled(found)[low:high]

    def doubled(self, found: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        return [m for m in found for _ in "12"]


class RepeatingElsewhere(Repeating):
    """The second time in another partition, in order within each."""

    def doubled(self, found: list[tuple[bytes, bytes]]) -> list[tuple[bytes, bytes]]:
        return found + found


@pytest.mark.parametrize("store", [Repeating, RepeatingElsewhere])
def test_a_closing_that_repeats_contributions_is_refused(store: Any) -> None:
    town = Town(PEOPLE[:4], terms=SMALL, store=store())
    town.gather(town.question(TEXT))
    said = {drive(town.cells[0].work(town.clock), town.send) for _ in "12"}
    assert said == {"refused: protocol.tampered"}


class Exchanging(RelayStore):
    """Closes the collection without the last contribution, and then leaves out the first."""

    def members(self, name: bytes, group: int, low: int, high: int) -> list[tuple[bytes, bytes]]:
        found = super().members(name, group, low, high)
        room = self.room(name, group)
        assert room is not None
        return found[:-1] if room.state == "collecting" else found[1:]


def test_other_contributions_than_were_closed_are_refused() -> None:
    town = Town(PEOPLE[:4], terms=SMALL, store=Exchanging())
    assert outcome(town) in ("protocol.unavailable", "pending")


def test_frames_of_another_query_are_refused() -> None:
    kept: dict[tuple[int, int], list[bytes]] = {}

    def swap(request: Any, reply: Any) -> Any:
        if not isinstance(request, Fetch) or not isinstance(reply, Frames):
            return reply
        at = (request.stage, request.task)
        if at in kept and len(kept[at]) == len(reply.frames):
            return Frames(kept[at])
        kept.setdefault(at, reply.frames)
        return reply

    town = Town(PEOPLE, terms=SMALL, wrap=meddling(swap))
    assert outcome(town) == RIGHT
    for cell in town.cells:
        cell.home.entries.clear()  # type: ignore[union-attr]
    second = outcome(town)
    assert isinstance(second, str)


def test_a_frame_of_another_group_of_cells_does_not_open() -> None:
    town = Town(PEOPLE, terms=SMALL, groups=2)
    question = town.question(TEXT)
    town.gather(question)
    for old, new in ((0, 10), (1, 0), (10, 1)):
        town.store._db.execute("UPDATE contributions SET grp = ? WHERE grp = ?", (new, old))
    town.work()
    found = drive(town.asker.collect(question), town.send)
    assert found is not None
    assert {g: (r.contributions, r.void, r.rows.num_rows) for g, r in found.items()} == {
        0: (0, 5, 0),
        1: (0, 6, 0),
    }


def test_groups_of_cells_answer_apart() -> None:
    town = Town(PEOPLE, terms=SMALL, groups=2)
    found = town.ask("SELECT COUNT(*) AS n FROM people GUARANTEE k = 2")
    assert found is not None
    assert {g: r.rows["n"].to_pylist() for g, r in found.items()} == {0: [6], 1: [5]}


def test_cells_are_counted_over_all_groups_when_a_collection_closes() -> None:
    town = Town(PEOPLE, terms=SMALL, groups=3)
    question = town.question("SELECT COUNT(*) AS n FROM people GUARANTEE k = 1", cells=7)
    drive(town.asker.ask(question), town.send)
    said = [drive(cell.take_part(town.clock), town.send) for cell in town.cells]
    assert said == ["contributed"] * 7 + [None] * 4
    town.work()
    found = drive(town.asker.collect(question), town.send)
    assert found is not None
    assert {g: r.contributions for g, r in found.items()} == {0: 3, 1: 2, 2: 2}


def test_groups_in_which_nobody_took_part_are_silent_when_the_others_suffice() -> None:
    town = Town(PEOPLE, terms=SMALL, groups=3)
    question = town.question("SELECT COUNT(*) AS n FROM people GUARANTEE k = 1", cells=1)
    drive(town.asker.ask(question), town.send)
    assert drive(town.cells[1].take_part(town.clock), town.send) == "contributed"
    town.work()
    found = drive(town.asker.collect(question), town.send)
    assert found is not None
    assert list(found) == [1]


def test_answers_of_groups_of_cells_are_added_up() -> None:
    people = [{"a": i % 2, "b": "xyz"[i % 3], "s": i, "k": 1} for i in range(24)]
    town = Town(people, terms=SMALL, groups=4)
    text = TEXT.replace("SUM(s) AS total", "SUM(s) AS total, MIN(s) AS low, MAX(s) AS high")
    found = town.ask(text)
    assert found is not None
    whole, reason = town.asker.join_answers(text, found)
    assert (reason, len(found)) == ("", 4)
    assert whole is not None
    assert sorted(list(r.values())[:5] for r in whole.to_pylist()) == [
        ["x", 8, 84, 0, 21],
        ["y", 8, 92, 1, 22],
        ["z", 8, 100, 2, 23],
    ]


@pytest.mark.parametrize(
    ("select", "rest", "reason"),
    [
        ("AVG(s) AS mean", "", "mean cannot be added up"),
        ("COUNT(DISTINCT s) AS d", "", "d cannot be added up"),
        ("SUM(s) + 1 AS more", "", "more cannot be added up"),
        ("COUNT(*) AS n", "HAVING COUNT(*) > 1", "HAVING"),
    ],
)
def test_answers_that_cannot_be_added_up_stay_apart(select: str, rest: str, reason: str) -> None:
    text = f"SELECT b, {select} FROM people GROUP BY b {rest} GUARANTEE k = 2"  # noqa: S608
    town = Town(PEOPLE, terms=SMALL, groups=2)
    found = town.ask(text)
    assert found is not None
    whole, why = town.asker.join_answers(text, found)
    assert whole is None
    assert reason in why


def reopened(town: Town, without: int) -> None:
    """The relay forgets one contribution and all work, and closes the collection once more."""
    db = town.store._db
    db.execute("DELETE FROM contributions WHERE number = ?", (without,))
    db.execute("DELETE FROM tasks")
    db.execute("DELETE FROM frames")
    db.execute("UPDATE rooms SET state = 'collecting', stage = 0")


def test_a_collection_that_is_closed_twice_is_refused_by_whoever_worked_on_it() -> None:
    town = Town(PEOPLE, terms=SMALL)
    question = town.question(TEXT)
    town.gather(question)
    town.work()
    assert rows(drive(town.asker.collect(question), town.send)) == RIGHT
    reopened(town, without=0)
    worked = [cell for cell in town.cells if cell.home.settled]  # type: ignore[union-attr]
    assert len(worked) >= 4
    said = {drive(cell.work(town.clock), town.send) for cell in worked}
    assert said == {"refused: protocol.tampered"}


def test_a_cell_that_only_works_settles_on_one_closing_too() -> None:
    town = Town(PEOPLE, terms=SMALL)
    question = town.question(TEXT)
    town.gather(question)
    hired = Cell(town.enroll(99), town.commons)
    while drive(hired.work(town.clock), town.send) is not None:
        pass
    assert rows(drive(town.asker.collect(question), town.send)) == RIGHT
    reopened(town, without=3)
    assert drive(hired.work(town.clock), town.send) == "refused: protocol.tampered"


def test_a_cell_that_vanishes_with_a_task_is_replaced() -> None:
    town = Town(PEOPLE, terms=SMALL)
    question = town.question(TEXT)
    town.gather(question)
    for _ in range(3):
        next_message = town.cells[0].work(town.clock)
        town.send(
            encode_message(next(next_message))
        )  # it asks for work and is never heard of again
    assert town.work(limit=50) == 0 or drive(town.asker.collect(question), town.send) is None
    town.clock += 31
    town.work()
    found = drive(town.asker.collect(question), town.send)
    assert rows(found) == RIGHT


@pytest.mark.parametrize("semantics", ["selective", "complete", "complete-greedy"])
def test_a_second_try_of_the_last_task_gives_the_same_answer(semantics: str) -> None:
    """The first answer is lost with the relay; another cell makes it again from the same frames."""
    people = [
        {"a": i % 7, "b": "xyz"[i % 3], "s": i % 5, "k": 1 + i % 6, "l": 1 + i % 3}
        for i in range(40)
    ]
    town = Town(people, terms=Terms("tree", 8, 16, 60))
    lost: list[bytes] = []

    def losing(data: bytes) -> bytes:
        request = read_request(data)
        if isinstance(request, Deliver) and len(request.frames[0]) > 1 << 16 and not lost:
            lost.extend(request.frames)
            return encode_message(Late())
        return town.raw(data)

    town.send = losing
    question = town.question(sql(semantics))
    town.gather(question)
    town.work()
    assert drive(town.asker.collect(question), town.send) is None
    town.clock += 31
    town.cells.reverse()
    town.work()
    found = drive(town.asker.collect(question), town.send)
    assert found is not None
    first = town.asker._read(question, 0, b"".join(lost))
    assert found[0].rows.num_rows > 2
    # The order of rows is drawn afresh; the rows are not.
    both = [sorted(map(str, r.rows.to_pylist())) for r in (found[0], first)]
    assert both[0] == both[1]
    assert (found[0].contributions, found[0].document["people"]) == (
        first.contributions,
        first.document["people"],
    )


def test_a_cell_that_returns_twice_or_late_changes_nothing() -> None:
    town = Town(PEOPLE, terms=SMALL)
    sent: list[bytes] = []

    def recording(data: bytes) -> bytes:
        if isinstance(read_request(data), Deliver | Contribute):
            sent.append(data)
        return town.raw(data)

    town.send = recording
    question = town.question(TEXT)
    drive(town.asker.ask(question), town.send)
    for cell in town.cells:
        drive(cell.take_part(town.clock), town.send)
        drive(cell.take_part(town.clock), town.send)
    for data in sent:
        town.raw(data)
    town.clock += 61
    while any(drive(cell.work(town.clock), town.send) for cell in town.cells):
        for data in sent:
            town.raw(data)
    assert rows(drive(town.asker.collect(question), town.send)) == RIGHT
    newcomer = Town(PEOPLE[:1], terms=SMALL).cells[0]
    newcomer.key = town.enroll(77)
    assert drive(newcomer.contribute(question, town.clock), town.send) == "late"


# -- killed at every step


@pytest.mark.skipif(not hasattr(os, "fork"), reason="kills forked processes")
@pytest.mark.parametrize("merge", ["tree", *(["swap", "network"] if THOROUGH else [])])
def test_a_relay_killed_at_every_step_gives_the_same_answer(
    nursery: Nursery, merge: Any, tmp_path: Path
) -> None:
    path = tmp_path / "relay.sqlite"
    town = Town(PEOPLE[:5], terms=Terms(merge, 3, 8, 6), store=RelayStore(path))
    found, deaths = ask_dying_relays(nursery, town, path, TEXT)
    assert found is not None
    assert found[0].contributions == 5
    kinds = ("Ask", "Browse", "Contribute", "Seek", "Fetch", "Deliver", "Collect")
    assert all(deaths[kind] >= 3 for kind in (*kinds, "Retrieve"))
    assert rows(found) == [("x", 2, 3), ("y", 2, 5)]


def test_a_store_of_a_version_without_credentials_says_what_to_do(tmp_path: Path) -> None:
    import sqlite3

    db = sqlite3.connect(tmp_path / "relay.sqlite")
    db.execute("CREATE TABLE slots (slot INT)")
    db.close()
    with pytest.raises(InputError, match="cells enroll"):
        RelayStore(tmp_path / "relay.sqlite")


def test_a_full_disk_loses_nothing(tmp_path: Path) -> None:
    town = Town(PEOPLE, terms=SMALL, store=RelayStore(tmp_path / "relay.sqlite"))
    question = town.question(TEXT)
    drive(town.asker.ask(question), town.send)
    for cell in town.cells[:5]:
        drive(cell.take_part(town.clock), town.send)
    pages = town.store._db.execute("PRAGMA page_count").fetchone()[0]
    town.store._db.execute(f"PRAGMA max_page_count = {pages}")
    stopped = []
    for cell in town.cells[5:]:
        try:
            drive(cell.take_part(town.clock), town.send)
        except ProtocolError:
            stopped.append(cell)
    town.store._db.execute("PRAGMA max_page_count = 1000000")
    for cell in stopped:
        drive(cell.take_part(town.clock), town.send)
    town.clock += 61
    town.work()
    assert rows(drive(town.asker.collect(question), town.send)) == RIGHT


def test_a_cell_whose_disk_is_full_sends_nothing_and_others_go_on() -> None:
    town = Town(PEOPLE, terms=SMALL)
    poor = town.cells[0]

    def note(_: Any) -> None:
        raise InputError("alice.cell: the disk is full; nothing was changed.")

    poor.home.note = note  # type: ignore[union-attr,method-assign]
    question = town.question(TEXT)
    assert town.gather(question)[0] == "refused: input"
    town.work()
    found = drive(town.asker.collect(question), town.send)
    assert found is not None
    assert found[0].contributions == 10
    assert rows(found) == [("x", 3, 18), ("y", 4, 22), ("z", 3, 15)]


@settings(max_examples=examples(40), deadline=None)
@given(st.randoms(use_true_random=False))
def test_replies_damaged_anywhere_never_give_a_wrong_answer(chance: Any) -> None:
    def damaging(send: Send) -> Send:
        def sent(data: bytes) -> bytes:
            answer = bytearray(send(data))
            if chance.random() < 0.05:
                for _ in range(chance.randrange(1, 4)):
                    answer[chance.randrange(len(answer))] = chance.randrange(256)
                del answer[len(answer) - chance.randrange(2) * chance.randrange(len(answer)) :]
            return bytes(answer)

        return sent

    found = outcome(Town(PEOPLE, terms=SMALL, wrap=damaging))
    if isinstance(found, list):
        # Who was kept from contributing is missing, and nobody else.
        right = {b: (n, total) for b, n, total in RIGHT}
        assert all(n <= right[b][0] and total <= right[b][1] for b, n, total in found)
        assert found == RIGHT or sum(n for _, n, _ in found) < 11
