"""A small town of cells, a relay and an asker in memory, for tests."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import pyarrow as pa
from memory_cell import MemoryCellStore

from halfmask.protocol.common_schema import CommonSchema, Policy, Terms, commons_from
from halfmask.protocol.keys import AskerKey, CellKey, Issuer, new_issuer
from halfmask.protocol.parties.asker import Asker
from halfmask.protocol.parties.cell import Cell
from halfmask.protocol.parties.relay import Relay
from halfmask.protocol.store.relay_sqlite import RelayStore
from halfmask.protocol.store.vault import FileSpill
from halfmask.protocol.transport import drive

if TYPE_CHECKING:
    from collections.abc import Callable

    from halfmask.protocol.answering import ReceivedAnswer
    from halfmask.protocol.messages import Signed

NOW = 1_000_000.0
TREE = {"tree": {"*": {"east": ["x", "y"], "west": ["z"]}}}
TABLES = {
    "people": {
        "columns": {
            "a": {"type": "integer", "role": "quasi"},
            "b": {"type": "text", "role": "quasi", "values": ["x", "y", "z"]},
            "s": {"type": "integer", "role": "sensitive"},
        }
    }
}
COMMONS = commons_from({"tables": TABLES})
CHAIN = ["", "THEN a -> 2", "THEN a -> 4", "THEN b -> del"]
GUARANTEES = [(2, 1), (3, 2), (4, 2), (6, 3)]


def sql(semantics: str = "selective", select: str = "COUNT(*) AS n, SUM(s) AS total") -> str:
    chain = " ".join(
        f"{step} GUARANTEE k = {k}, l = {m}" for step, (k, m) in zip(CHAIN, GUARANTEES, strict=True)
    )
    return f"SELECT a, b, {select} FROM people GROUP BY a, b {chain} SEMANTICS {semantics}"  # noqa: S608


def row(commons: CommonSchema, values: dict[str, Any], table: str = "people") -> pa.Table:
    fields = commons.tables[table].arrow
    return pa.table({f.name: pa.array([values.get(f.name)], f.type) for f in fields}, schema=fields)


@dataclass
class Town:
    people: list[dict[str, Any]]
    commons: CommonSchema = COMMONS
    terms: Terms = field(default_factory=lambda: Terms(partition=4, frame=4, room=64))
    groups: int = 1
    store: RelayStore = field(default_factory=RelayStore)
    wrap: Callable[[Callable[[bytes], bytes]], Callable[[bytes], bytes]] = lambda send: send
    clock: float = NOW

    def __post_init__(self) -> None:
        self.issuer: Issuer = new_issuer(self.groups)
        self.asker_key: AskerKey = self.issuer.asker("office", int(NOW) + 10**6)
        self.asker = Asker(self.asker_key, self.commons, self.terms)
        self.relay = Relay(self.store, issuer=self.issuer.public)
        self.cells = [
            Cell(self.enroll(i), self.commons, self.home(p), FileSpill)
            for i, p in enumerate(self.people)
        ]
        self.send = self.wrap(self.raw)

    def enroll(self, number: int) -> CellKey:
        return self.issuer.enroll(f"person {number}", 1 << 40, number % self.groups)

    def home(self, person: dict[str, Any]) -> MemoryCellStore:
        policy = None if person.get("k") is None else Policy(person["k"], person.get("l") or 1)
        return MemoryCellStore({"people": row(self.commons, person)}, policy)

    def raw(self, data: bytes) -> bytes:
        return self.relay.handle(data, self.clock)

    def transcript(self, text: str) -> list[tuple[bytes, bytes]]:
        """Every byte into and out of the relay, in order, until a question is answered."""
        seen: list[tuple[bytes, bytes]] = []

        def tapped(data: bytes) -> bytes:
            answer = self.raw(data)
            seen.append((data, answer))
            return answer

        self.send = tapped
        question = self.question(text)
        self.gather(question)
        self.work()
        assert drive(self.asker.collect(question), self.send) is not None
        return seen

    def question(self, text: str, cells: int | None = None) -> Signed:
        return self.asker.question(text, self.clock, cells=cells or 10**6, seconds=60)

    def gather(self, question: Signed) -> list[str | None]:
        drive(self.asker.ask(question), self.send)
        done = [drive(cell.take_part(self.clock), self.send) for cell in self.cells]
        self.clock += 61
        return done

    def work(self, limit: int = 100_000) -> int:
        done = idle = 0
        while idle < len(self.cells) and done < limit:
            cell = self.cells[done % len(self.cells)] if idle == 0 else self.cells[idle]
            if drive(cell.work(self.clock), self.send) is None:
                idle += 1
            else:
                done, idle = done + 1, 0
        return done

    def ask(self, text: str) -> dict[int, ReceivedAnswer] | None:
        question = self.question(text)
        self.gather(question)
        self.work()
        return drive(self.asker.collect(question), self.send)
