"""Whom cells believe, what they refuse, and what their own ledger stops."""

from __future__ import annotations

import contextlib
import os
from dataclasses import replace
from typing import Any

import msgspec
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st
from memory_cell import MemoryCellStore
from tests.protocol.town import COMMONS, NOW, Town

from halfmask.errors import (
    AuthenticationError,
    HalfmaskError,
    InputError,
    MessageError,
    ParameterError,
    PartyUnavailableError,
    QueryError,
    SchemaError,
    TamperedMessageError,
    UnsupportedQueryError,
)
from halfmask.protocol import answering
from halfmask.protocol.common_schema import Policy, Terms, commons_from
from halfmask.protocol.contribution import Participation, object_to_repetition
from halfmask.protocol.crypto import Address, FrameKey, open_sealed, place, seal_for, sign
from halfmask.protocol.keys import (
    PROOF,
    AskerKey,
    CellGroup,
    CellKey,
    Issuer,
    new_issuer,
    read_key,
    write_key,
)
from halfmask.protocol.messages import (
    LARGEST,
    Ask,
    Closing,
    Contribute,
    Late,
    Refuse,
    Retrieve,
    Signed,
    TaskGrant,
    Trouble,
    encode_message,
    read_query,
    read_reply,
    read_request,
)
from halfmask.protocol.parties.asker import Asker
from halfmask.protocol.parties.cell import Cell
from halfmask.protocol.transport import drive

TEXT = "SELECT b, COUNT(*) AS n, SUM(s) AS total FROM people GROUP BY b GUARANTEE k = 2"
PEOPLE: list[dict[str, Any]] = [{"a": i, "b": "xy"[i % 2], "s": i, "k": 2} for i in range(6)]


def asked(found: Any) -> list[tuple[Any, ...]]:
    return sorted((r["b"], r["n"]) for r in found[0].rows.to_pylist())


# -- keys, certificates, foreign queries


def question(asker: Asker, **changes: Any) -> Signed:
    signed = asker.question(TEXT, NOW, cells=10)
    body = encode_message(msgspec.structs.replace(read_query(signed.body), **changes))
    return Signed(body, sign(asker.key.signing, body))


def test_a_cell_refuses_what_it_should_not_answer() -> None:
    town = Town(PEOPLE)
    cell, asker = town.cells[0], town.asker
    stranger = new_issuer().asker("stranger", int(NOW) + 10**6)
    late = town.issuer.asker("office", int(NOW) - 10**6)
    forged = msgspec.structs.replace(asker.key.certificate, name="somebody else")
    good = question(asker)
    cases = {
        "a certificate of another issuer": question(Asker(stranger, COMMONS)),
        "an expired certificate": question(Asker(late, COMMONS)),
        "a changed certificate": question(asker, certificate=forged),
        "another's signature": Signed(good.body, sign(stranger.signing, good.body)),
        "no signature": Signed(good.body, b""),
        "another common schema": question(asker, commons=bytes(32)),
        "another group of cells": question(asker, groups=[7]),
        "a query of the past": question(asker, asked=1, closes=2, until=3),
        "a query of the future": question(
            asker, asked=int(NOW) + 10**4, closes=int(NOW) + 10**5, until=int(NOW) + 10**6
        ),
    }
    assert cell.verify_query(good, NOW).text == TEXT
    for name, signed in cases.items():
        with pytest.raises(AuthenticationError):
            pytest.fail(name) if cell.verify_query(signed, NOW) else None
    assert cell.home is not None
    assert cell.home.log() == []


def test_clocks_may_differ_by_a_few_minutes() -> None:
    town = Town(PEOPLE)
    signed = question(town.asker)
    town.cells[0].verify_query(signed, NOW - 200)
    with pytest.raises(AuthenticationError):
        town.cells[0].verify_query(signed, NOW - 400)


def test_the_relay_keeps_no_query_of_a_stranger() -> None:
    town = Town(PEOPLE)
    stranger = Asker(new_issuer().asker("stranger", int(NOW) + 10**6), COMMONS)
    reply = read_reply(town.raw(encode_message(Ask(stranger.question(TEXT, NOW, cells=3)))))
    assert isinstance(reply, Trouble)
    assert reply.code == "protocol.authentication"


def test_a_cell_with_another_groups_key_can_neither_contribute_nor_work() -> None:
    town = Town(PEOPLE)
    other = new_issuer().enroll("somebody", 1 << 40)
    key = msgspec.structs.replace(other, issuer=town.issuer.public)
    impostor = Cell(key, COMMONS, MemoryCellStore(town.cells[0].home.rows, Policy(2)))  # type: ignore[union-attr]
    signed = town.question(TEXT)
    drive(town.asker.ask(signed), town.send)
    drive(impostor.take_part(town.clock), town.send)
    for cell in town.cells:
        drive(cell.take_part(town.clock), town.send)
    town.clock += 61
    # It opens no contribution, and what it makes of that is refused by the next cell.
    assert drive(impostor.work(town.clock), town.send) == "fold"
    town.work(limit=200)
    with pytest.raises(PartyUnavailableError):
        drive(town.asker.collect(signed), town.send)


def test_contributions_without_a_key_are_void_and_stop_nobody() -> None:
    town = Town(PEOPLE)
    signed = town.question(TEXT)
    drive(town.asker.ask(signed), town.send)
    for i in range(3):
        town.raw(encode_message(Contribute(signed.id, 0, bytes([i] * 32), b"junk" * 100)))
    town.gather(signed)
    town.work()
    found = drive(town.asker.collect(signed), town.send)
    assert found is not None
    assert asked(found) == [("x", 3), ("y", 3)]
    assert (found[0].contributions, found[0].void) == (6, 3)


def test_an_answer_is_for_its_asker_only_and_from_cells_only() -> None:
    town = Town(PEOPLE)
    signed = town.question(TEXT)
    town.gather(signed)
    town.work()
    curious = Asker(town.issuer.asker("curious", int(NOW) + 10**6), COMMONS, town.terms)
    with pytest.raises(TamperedMessageError):
        drive(curious.collect(signed), town.send)
    key = town.asker_key
    fake = seal_for(key.certificate.box, signed.id, bytes(PROOF + town.terms.reply))
    members = CellGroup(key.issuer, 0, int(NOW))
    with pytest.raises(AuthenticationError):
        answering.read_envelope(fake, query=signed.id, box=key.box, members=members)
    with pytest.raises(TamperedMessageError):
        open_sealed(key.box, bytes(32), fake)


@pytest.mark.parametrize(
    "change", ["query", "closing", "level", "node", "step", "position", "key", "byte"]
)
def test_a_frame_opens_at_its_place_only(change: str) -> None:
    query, closing = os.urandom(32), os.urandom(32)
    at = Address(1, 2, 3, 4)
    secret = os.urandom(32)
    sealed = FrameKey(secret, query).seal(place(query, closing, at), b"groups")
    key = FrameKey(os.urandom(32) if change == "key" else secret, query)
    where = place(
        os.urandom(32) if change == "query" else query,
        os.urandom(32) if change == "closing" else closing,
        at._replace(**{change: 9}) if change in Address._fields else at,
    )
    if change == "byte":
        sealed = sealed[:-1] + bytes([sealed[-1] ^ 1])
    with pytest.raises(TamperedMessageError):
        key.open(where, sealed)


def test_key_files_are_private_and_never_overwritten(tmp_path: Any) -> None:
    issuer = new_issuer(2)
    path = tmp_path / "group.json"
    enrolled = issuer.enroll("alice", 1 << 40, 1)
    write_key(enrolled, path)
    assert path.stat().st_mode & 0o077 == 0
    assert read_key(path, CellKey) == enrolled
    with pytest.raises(InputError):
        write_key(issuer.enroll("bob", 1 << 40), path)
    with pytest.raises(InputError):
        read_key(path, AskerKey)
    assert b"alice" not in path.read_bytes()
    assert repr(enrolled) + repr(issuer) == "CellKey(group=1)Issuer(2 groups)"


@pytest.mark.parametrize("kind", [CellKey, AskerKey])
def test_key_files_of_a_version_without_credentials_say_to_enroll_anew(
    tmp_path: Any, kind: Any
) -> None:
    old = {
        CellKey: {"group": 0, "secret": "AA==", "issuer": "AA=="},
        AskerKey: {"certificate": {}, "box": "", "signing": "", "groups": {"0": "AA=="}},
    }
    path = tmp_path / "old.json"
    path.write_bytes(msgspec.json.encode(old[kind]))
    with pytest.raises(InputError, match="enroll every cell anew"):
        read_key(path, kind)
    with pytest.raises(InputError, match="cannot be read as the key file of an issuer"):
        read_key(tmp_path / "none.json", Issuer)


# -- credentials


def proven(change: str) -> bytes:
    """The serial that a proof is taken for, after one change to it."""
    issuer, stranger = new_issuer(2), new_issuer(2)
    key = (stranger if change == "issuer" else issuer).enroll("alice", 5, 0)
    if change == "person":
        # Somebody else's key under a credential that is not its own.
        key = msgspec.structs.replace(key, signing=os.urandom(32))
    if change == "serial":
        other = issuer.enroll("bob", 5, 0).credential.serial
        key = msgspec.structs.replace(
            key, credential=msgspec.structs.replace(key.credential, serial=other)
        )
    proof = key.prove(b"another message" if change == "message" else b"message")
    at = 6 if change == "time" else 5
    members = CellGroup(issuer.public, 1 if change == "group" else 0, at)
    return members.serial(proof[:-1] if change == "length" else proof, b"message")


@pytest.mark.parametrize(
    "change", ["issuer", "person", "serial", "message", "group", "time", "length"]
)
def test_a_proof_holds_for_one_cell_and_message_only(change: str) -> None:
    assert len(proven("")) == 16
    with pytest.raises(AuthenticationError):
        proven(change)


def test_whoever_is_enrolled_twice_stays_one_person() -> None:
    issuer = new_issuer(5)
    one, two = issuer.enroll("alice", 5), issuer.enroll("alice", 9)
    assert one.signing != two.signing
    assert (one.credential.serial, one.group) == (two.credential.serial, two.group)
    others = {issuer.enroll(f"person {i}", 5).group for i in range(200)}
    assert others == {0, 1, 2, 3, 4}


def test_a_cell_whose_credential_has_expired_does_not_contribute() -> None:
    town = Town(PEOPLE)
    question = town.question(TEXT)
    until = read_query(question.body).until
    town.cells[0].key = town.issuer.enroll("person 0", until - 1)
    town.cells[1].key = town.issuer.enroll("person 1", until)
    said = town.gather(question)
    assert said[:2] == ["refused: protocol.authentication", "contributed"]


# -- the cells' own ledger


def test_a_repeated_question_gets_nothing_more() -> None:
    town = Town(PEOPLE)
    assert asked(town.ask(TEXT)) == [("x", 3), ("y", 3)]
    again = town.ask(TEXT)
    assert again is not None
    assert again[0].rows.num_rows == 0
    assert again[0].contributions == 6


def test_a_question_that_leaves_one_person_out_cannot_be_subtracted() -> None:
    town = Town(PEOPLE)
    assert asked(town.ask(TEXT)) == [("x", 3), ("y", 3)]
    changed = "SELECT b, SUM(s + 0) AS total FROM people WHERE a <> 4 GROUP BY b GUARANTEE k = 2"
    other = Asker(town.issuer.asker("accomplice", int(NOW) + 10**6), COMMONS, town.terms)
    town.asker = other
    found = town.ask(changed)
    assert found is not None
    assert found[0].rows.num_rows == 0


def test_other_values_may_be_asked_for_and_time_heals() -> None:
    policy = Policy(2)
    entry = Participation(b"q1", "office", TEXT, int(NOW), frozenset({"s", "*"}), "contributed", 0)
    assert object_to_repetition([entry], policy, frozenset({"s"}), NOW + 5) == "answered before"
    assert object_to_repetition([entry], policy, frozenset({"height"}), NOW + 5) is None
    assert object_to_repetition([entry], policy, frozenset({"s"}), NOW + 31 * 86_400) is None
    assert (
        object_to_repetition([entry], replace(policy, answers=2), frozenset({"s"}), NOW + 5) is None
    )
    # It was sent before it was revoked.
    revoked = replace(entry, revoked=True)
    assert object_to_repetition([revoked], policy, frozenset({"s"}), NOW + 5) == "answered before"
    dummy = replace(entry, outcome="no policy", level=None)
    assert object_to_repetition([dummy], policy, frozenset({"s"}), NOW + 5) is None


COUNTS = [
    ("COUNT(*)", "COUNT(a)"),
    ("COUNT(*)", "COUNT(DISTINCT s)"),
    ("COUNT(*)", "SUM(a * 0 + 1)"),
    ("COUNT(*)", "SUM(a) AS t, AVG(a)"),
    ("COUNT(*)", "VAR_POP(a) AS t, VAR_SAMP(a)"),
    ("COUNT(*)", "1"),
    ("SUM(s)", "COUNT(*)"),
    ("AVG(s)", "MAX(s)"),
]


@pytest.mark.parametrize(("first", "second"), COUNTS)
def test_the_same_counts_and_values_in_other_words_cannot_be_subtracted(
    first: str, second: str
) -> None:
    town = Town(PEOPLE)
    for select, where, shown in ((first, "s >= 0", True), (second, "s >= 0 AND a <> 4", False)):
        select = "" if select == "1" else f", {select} AS n"
        found = town.ask(
            f"SELECT b{select} FROM people WHERE {where} GROUP BY b GUARANTEE k = 2"  # noqa: S608
        )
        assert found is not None
        assert (found[0].rows.num_rows > 0) is shown


def test_values_that_cannot_be_subtracted_may_both_be_asked_for() -> None:
    town = Town(PEOPLE)
    for select in ("AVG(s)", "SUM(a)"):
        found = town.ask(f"SELECT b, {select} AS m FROM people GROUP BY b GUARANTEE k = 2")  # noqa: S608
        assert found is not None
        assert found[0].rows.num_rows == 2


def test_what_a_cell_decided_first_stands() -> None:
    town = Town(PEOPLE)
    home = town.cells[0].home
    assert isinstance(home, MemoryCellStore)
    question = town.question(TEXT)
    drive(town.asker.ask(question), town.send)
    assert drive(town.cells[0].take_part(NOW), town.send) == "contributed"
    (entry,) = home.log()
    home.demands = Policy(9)
    assert drive(town.cells[0].take_part(NOW), town.send) == "contributed"
    home.entries[question.id] = replace(entry, revoked=True)
    for _ in range(2):
        assert drive(town.cells[0].take_part(NOW), town.send) == "revoked"
    # The ledger still knows that something was sent.
    assert home.log() == [replace(entry, revoked=True)]
    home.demands = Policy(2)
    drive(town.asker.ask(town.question(TEXT)), town.send)
    drive(town.cells[0].take_part(NOW), town.send)
    assert sorted(e.outcome for e in home.log()) == ["answered before", "contributed"]


def test_a_revoked_contribution_is_sent_as_a_dummy() -> None:
    town = Town(PEOPLE)
    home = town.cells[0].home
    assert isinstance(home, MemoryCellStore)
    question = town.question(TEXT)
    drive(town.asker.ask(question), town.send)
    next(town.cells[0].contribute(question, NOW))
    # The message is lost, and the person thinks again.
    home.entries[question.id] = replace(home.entries[question.id], revoked=True)
    assert town.gather(question)[0] == "revoked"
    town.work()
    assert asked(drive(town.asker.collect(question), town.send)) == [("x", 2), ("y", 3)]


def test_a_condition_that_fits_no_value_gives_no_row_and_fails_nobody() -> None:
    town = Town(PEOPLE)
    found = town.ask(
        "SELECT b, COUNT(*) AS n FROM people GROUP BY b HAVING CAST(b AS INTEGER) > 1 "
        "GUARANTEE k = 2"
    )
    assert found is not None
    assert found[0].rows.num_rows == 0


# -- bad input


@pytest.mark.parametrize(
    "text",
    [
        "SELECT MEDIAN(s) AS m FROM people GUARANTEE k = 2",
        "SELECT COUNT(*) FILTER (WHERE s = 9) AS n FROM people GUARANTEE k = 2",
        "SELECT SUM(COALESCE(s, 0)) AS n FROM people GUARANTEE k = 2",
        "SELECT SUM(s * s * s) AS n FROM people GUARANTEE k = 2",
        "SELECT SUM(s * 9223372036854775807) AS n FROM people GUARANTEE k = 2",
        "SELECT SUM(CAST(b AS INTEGER)) AS n FROM people GUARANTEE k = 2",
        "SELECT nothing, COUNT(*) AS n FROM people GROUP BY nothing GUARANTEE k = 2",
        "SELECT b, COUNT(*) AS n FROM elsewhere.people GROUP BY b GUARANTEE k = 2, l = 3",
        "SELECT b, COUNT(*) AS n FROM people GROUP BY b",
        "SELECT b FROM people",
        "",
    ],
)
def test_a_question_that_cells_cannot_answer_is_refused_before_it_is_asked(text: str) -> None:
    town = Town(PEOPLE)
    with pytest.raises(QueryError):
        town.question(text)


@pytest.mark.parametrize(
    "text",
    [
        "SELECT nothing, COUNT(*) AS n FROM people GROUP BY nothing GUARANTEE k = 2",
        "SELECT b, SUM(t) AS n FROM people GROUP BY b GUARANTEE k = 2",
        "SELECT MEDIAN(s) AS m FROM people GUARANTEE k = 2",
    ],
)
def test_a_cell_does_not_join_what_its_schema_cannot_answer(text: str) -> None:
    town = Town(PEOPLE)
    signed = question(town.asker, text=text, closes=int(NOW) + 60)
    said = set(town.gather(signed))
    assert all(str(words).startswith("refused: input.") for words in said), said
    assert town.store._db.execute("SELECT COUNT(*) FROM contributions").fetchone()[0] == 0
    assert all(cell.home.log() == [] for cell in town.cells)  # type: ignore[union-attr]
    with pytest.raises(PartyUnavailableError):
        drive(town.asker.collect(signed), town.send)


@pytest.mark.parametrize(
    "given",
    [
        {"k": 0},
        {"k": -3},
        {"k": 10**10},
        {"l": 0, "k": 1},
        {"k": True},
        {"columns": {"s": (0, 1)}},
        {"days": -1},
    ],
)
def test_policies_out_of_range(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Policy(**given)


def test_a_policy_per_column_and_none_at_all() -> None:
    policy = Policy(None, 1, {"s": (5, 2), "a": (3, 3)})
    assert policy.demand(("s", "A")) == (5, 3)
    assert policy.demand(("s", "b")) is None
    assert policy.demand(()) is None


@pytest.mark.parametrize(
    "document",
    [
        {},
        {"tables": {}},
        {"tables": {"t": {}}},
        {"tables": {"t": {"columns": {}}}},
        {"tables": {"t": {"columns": {"c": {"type": "number", "role": "quasi"}}}}},
        {"tables": {"t": {"columns": {"c": {"role": "quasi", "hierarchy": {"mask": 3}}}}}},
        {
            "tables": {
                "t": {"columns": {"c": {"type": "integer", "role": "quasi", "values": ["x"]}}}
            }
        },
    ],
)
def test_common_schemas_that_cannot_be(document: dict[str, Any]) -> None:
    with pytest.raises(SchemaError):
        commons_from(document)


@pytest.mark.parametrize(
    "terms",
    [
        Terms(partition=0),
        Terms(frame=1),
        Terms(room=0),
        Terms(room=1 << 30),
        Terms(room=1 << 20, frame=2),
        Terms(text=0),
        Terms(ram=1),
    ],
)
def test_terms_out_of_range(terms: Terms) -> None:
    with pytest.raises(MessageError):
        Asker(Town([]).asker_key, COMMONS, terms).question(TEXT, NOW, cells=3)


# -- fuzzing


@settings(max_examples=examples(200), deadline=None)
@given(st.binary(max_size=200))
def test_random_bytes_never_break_the_relay(data: bytes) -> None:
    assert isinstance(read_reply(RELAY.raw(data)), Trouble) or read_request(data)
    for read in (read_reply, read_query):
        with contextlib.suppress(MessageError):
            read(data)


@settings(max_examples=examples(150), deadline=None)
@given(st.data())
def test_damaged_messages_never_break_the_relay(data: st.DataObject) -> None:
    message = bytearray(data.draw(st.sampled_from(MESSAGES)))
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.integers(0, len(message) - 1))
        message[at] = data.draw(st.integers(0, 255))
    cut = data.draw(st.integers(1, len(message)))
    read_reply(RELAY.raw(bytes(message[:cut])))


@pytest.mark.parametrize("piece", [-1, 5, 2**40])
def test_a_piece_that_is_not_there(piece: int) -> None:
    (name,) = {read_request(m).query for m in MESSAGES if isinstance(read_request(m), Retrieve)}
    assert isinstance(read_reply(RELAY.raw(encode_message(Retrieve(name, 0, piece)))), Late)


@pytest.mark.parametrize("closing", [
    Closing(2**40, bytes(32)), Closing(0, bytes(32)), Closing(-1, bytes(32)),
])  # fmt: skip
def test_a_closing_that_cannot_be_is_refused(closing: Closing) -> None:
    town = Town(PEOPLE)
    session = town.cells[0].work(NOW)
    next(session)
    refusal = session.send(TaskGrant(question(town.asker), closing, 0, 0, 1, [bytes(32)], []))
    assert isinstance(refusal, Refuse)
    assert refusal.code == "protocol.tampered"


def test_a_message_that_is_too_large_is_refused() -> None:
    with pytest.raises(MessageError):
        read_request(bytes(LARGEST + 1))


def recorded() -> tuple[Town, list[bytes]]:
    town = Town(PEOPLE)
    seen: list[bytes] = []

    def tapped(data: bytes) -> bytes:
        seen.append(data)
        return town.raw(data)

    town.send = tapped
    town.ask(TEXT)
    kinds = {type(read_request(d)): d for d in seen if len(d) < 5000}
    return town, list(kinds.values())


RELAY, MESSAGES = recorded()


def test_errors_of_the_protocol_are_ours() -> None:
    assert issubclass(UnsupportedQueryError, HalfmaskError)
    assert issubclass(PartyUnavailableError, HalfmaskError)
