"""The asker: signs a question, waits, and opens the sealed answers of the groups of cells."""

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
from halfmask.protocol.answering import Received, read_envelope
from halfmask.protocol.blueprint import blueprint
from halfmask.protocol.crypto import sign
from halfmask.protocol.keys import Members
from halfmask.protocol.messages import (
    Accepted,
    Ask,
    Collect,
    Failed,
    Frames,
    Pending,
    Query,
    Ready,
    Reply,
    Request,
    Retrieve,
    Signed,
    Trouble,
    encode,
    read_query,
)
from halfmask.protocol.schedule import ENVELOPE
from halfmask.protocol.terms import Terms
from halfmask.protocol.together import apart, together

if TYPE_CHECKING:
    from collections.abc import Generator

    import pyarrow as pa

    from halfmask.protocol.commons import Commons
    from halfmask.protocol.keys import AskerKey


@dataclass(frozen=True, eq=False)
class Asker:
    """Somebody who asks."""

    key: AskerKey
    commons: Commons
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
        blueprint(self.commons, text, self.terms)
        start = int(now)
        query = Query(
            text,
            self.commons.digest,
            self.key.certificate,
            os.urandom(16),
            start,
            start + max(1, int(seconds)),
            start + max(1, int(seconds)) + int(patience),
            cells,
            list(range(self.key.groups)),
            self.terms,
        )
        body = encode(query)
        return Signed(body, sign(self.key.signing, body))

    def ask(self, question: Signed) -> Generator[Request, Reply, None]:
        """Put the question."""
        reply = yield Ask(question)
        if not isinstance(reply, Accepted):
            _trouble(reply)

    def collect(self, question: Signed) -> Generator[Request, Reply, dict[int, Received] | None]:
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

    def together(self, text: str, answers: dict[int, Received]) -> tuple[pa.Table | None, str]:
        """The answers of all groups of cells as one table; or None, and why they stay apart."""
        made = blueprint(self.commons, text, self.terms)
        return together(made, answers), apart(made) or ""

    def _read(self, question: Signed, group: int, sealed: bytes) -> Received:
        if not 0 <= group < self.key.groups:
            raise MessageError("The relay answers for a group of cells that was not asked.")
        members = Members(self.key.issuer, group, read_query(question.body).until)
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
