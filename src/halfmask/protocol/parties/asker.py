"""One answer of several groups of cells: rows with the same key and level are added up.

Each group of cells has checked its guarantees by itself, and what is done here reads nothing but
the released rows. So every row that comes out stands for at least the people that its guarantee
names. People who would reach a guarantee only together with those of another group stay out:
nobody holds the key to both.

The asker: signs a question, waits, and opens the sealed answers of the groups of cells.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from halfmask.errors import (
    MessageError,
    ParameterError,
    PartyUnavailableError,
    QueryError,
    RoomError,
    TamperedMessageError,
)
from halfmask.protocol.answering import ReceivedAnswer, read_envelope
from halfmask.protocol.cell_plan import plan_for_cells
from halfmask.protocol.common_schema import Terms
from halfmask.protocol.crypto import sign
from halfmask.protocol.keys import CellGroup
from halfmask.protocol.messages import (
    Accepted,
    Ask,
    AskedQuery,
    Collect,
    Failed,
    Frames,
    Pending,
    Ready,
    Reply,
    Request,
    Retrieve,
    Signed,
    Trouble,
    encode_message,
    read_query,
)
from halfmask.protocol.publication import join_rows
from halfmask.protocol.schedule import ENVELOPE

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping

    import pyarrow as pa

    from halfmask.protocol.answering import ReceivedAnswer
    from halfmask.protocol.cell_plan import CellPlan
    from halfmask.protocol.common_schema import CommonSchema
    from halfmask.protocol.keys import AskerKey


_ADDED = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


def find_obstacle(made: CellPlan) -> str | None:
    """Why the answers of groups of cells cannot be put together; None where they can."""
    if made.shown is not None:
        return None
    final = made.plan.final
    if any(final.args.get(clause) is not None for clause in ("where", "limit", "offset")):
        return "HAVING and LIMIT choose rows within each group of cells"
    ways = _ways(made)
    names = [name for name in made.plan.names if name not in ways]
    if names:
        return f"{', '.join(names)} cannot be added up: select COUNT, SUM, MIN or MAX"
    return None


def join_answers(made: CellPlan, answers: Mapping[int, ReceivedAnswer]) -> pa.Table | None:
    """The rows of all groups of cells as one table; None where ``find_obstacle`` tells why not."""
    import pyarrow as pa

    if find_obstacle(made) is not None:
        return None
    tables = [received.rows for received in answers.values()]
    if made.shown is not None:
        return join_rows(tables)
    if made.terms.local:  # every group of cells numbers the levels that its rows stand at
        tables = [table.drop_columns(["level"]) for table in tables]
    whole = pa.concat_tables([t.cast(tables[0].schema) for t in tables])
    ways = _ways(made)
    keys = [name for name in whole.column_names if ways.get(name) is None]
    added = [(name, way) for name, way in ways.items() if way is not None]
    found = whole.group_by(keys).aggregate(added)
    columns = [n if ways.get(n) is None else f"{n}_{ways[n]}" for n in whole.column_names]
    return found.select(columns).rename_columns(whole.column_names)


def _ways(made: CellPlan) -> dict[str, str | None]:
    """Per selected column how it is added up; None for grouping columns."""
    from sqlglot import exp

    found: dict[str, str | None] = {}
    for item in made.plan.final.expressions:
        node = item.unalias()
        if not isinstance(node, exp.Column) or item.alias not in made.plan.names:
            continue
        kind, number = node.name[0], node.name[1:]
        if kind == "k":
            found[item.alias] = None
        elif (way := _ADDED.get(made.plan.aggregates[int(number)].kind)) is not None:
            found[item.alias] = way
    return found


@dataclass(frozen=True, eq=False)
class Asker:
    """Somebody who asks."""

    key: AskerKey
    commons: CommonSchema
    terms: Terms = field(default_factory=Terms)

    def question(
        self, text: str, now: float, *, cells: int, seconds: float = 60, patience: float = 600
    ) -> Signed:
        """Sign a question, after seeing that cells can answer it.

        Args:
            text: guaranteed SQL.
            now: the time.
            cells: close the collection with so many contributions, of all groups together.
            seconds: close it after so long in any case.
            patience: give up after so long.

        Raises:
            QueryError: it cannot be understood or answered.
        """
        if cells < 1:
            raise ParameterError("cells", cells, "at least 1")
        self.terms.check()
        # For what it refuses alone: every cell plans the question by itself.
        plan_for_cells(self.commons, text, self.terms)
        start = int(now)
        query = AskedQuery(
            text,
            self.commons.digest,
            self.key.certificate,
            # A question that is asked again is another query: its name, tickets and keys differ.
            os.urandom(16),
            start,
            start + max(1, int(seconds)),
            start + max(1, int(seconds)) + int(patience),
            cells,
            list(range(self.key.groups)),
            self.terms,
        )
        body = encode_message(query)
        return Signed(body, sign(self.key.signing, body))

    def ask(self, question: Signed) -> Generator[Request, Reply, None]:
        """Put the question."""
        reply = yield Ask(question)
        if not isinstance(reply, Accepted):
            _trouble(reply)

    def collect(
        self, question: Signed
    ) -> Generator[Request, Reply, dict[int, ReceivedAnswer] | None]:
        """The answers by group of cells, or None where they are not ready.

        Raises:
            ProtocolError: there will be none.
        """
        reply = yield Collect(question.id)
        if isinstance(reply, Pending):
            return None
        if not isinstance(reply, Ready):
            _trouble(reply)
            return None
        found = {}
        size = ENVELOPE + self.terms.reply
        for group, pieces in sorted(reply.pieces.items()):
            if pieces == 0:
                continue
            sealed = b""
            for piece in range(pieces):
                part = yield Retrieve(question.id, group, piece)
                if not isinstance(part, Frames) or len(part.frames) != 1:
                    raise TamperedMessageError("The relay withholds a part of the answer.")
                sealed += part.frames[0]
            if len(sealed) != size:
                raise TamperedMessageError("The answer has another size than all answers have.")
            found[group] = self._read(question, group, sealed)
        if not found:
            raise PartyUnavailableError("No cell took part: nobody can answer.")
        return found

    def join_answers(
        self, text: str, answers: dict[int, ReceivedAnswer]
    ) -> tuple[pa.Table | None, str]:
        """The answers of all groups of cells as one table; or None, and why they stay apart."""
        made = plan_for_cells(self.commons, text, self.terms)
        return join_answers(made, answers), find_obstacle(made) or ""

    def _read(self, question: Signed, group: int, sealed: bytes) -> ReceivedAnswer:
        if not 0 <= group < self.key.groups:
            raise MessageError("The relay answers for a group of cells that was not asked.")
        members = CellGroup(self.key.issuer, group, read_query(question.body).until)
        return read_envelope(sealed, query=question.id, box=self.key.box, members=members)


def _trouble(reply: Reply) -> None:
    if isinstance(reply, Failed):
        if reply.code == RoomError.code:
            raise RoomError("There are more groups than the query has room for: ask with more.")
        if reply.code == QueryError.code:
            raise QueryError(
                "An expression fails on the rows to be released: check HAVING, CAST and ranges."
            )
        raise PartyUnavailableError(f"The cells could not finish the work: {reply.code}.")
    if isinstance(reply, Trouble):
        raise PartyUnavailableError(f"The relay refuses: {reply.code}. {reply.message}")
    raise MessageError("The relay gave an answer that does not fit the question.")
