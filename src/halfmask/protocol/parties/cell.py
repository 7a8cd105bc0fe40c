"""A cell: takes part in queries with its person's own rows, and works for others.

Sessions are generators: they yield a message to the relay and are sent its reply, so that any
transport (or a test) can drive them. What must outlast a session goes through ``CellStore``.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from halfmask.errors import AuthenticationError, InputError, MessageError
from halfmask.protocol.cell_plan import CellPlan, plan_for_cells
from halfmask.protocol.common_schema import permits, permits_row
from halfmask.protocol.contribution import (
    Contribution,
    Participation,
    contribution,
    object_to_cost,
    object_to_repetition,
)
from halfmask.protocol.crypto import FrameKey, derive
from halfmask.protocol.messages import (
    Accepted,
    AskedQuery,
    Browse,
    Contribute,
    Late,
    Open,
    Signed,
)
from halfmask.protocol.parties.worker import (
    Talk,
    WorkSession,
    expect,
    seal_contribution,
    verify_query,
)
from halfmask.protocol.publication import sent_demands

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    import pyarrow as pa

    from halfmask.protocol.common_schema import CommonSchema, Policy
    from halfmask.protocol.keys import CellKey
    from halfmask.protocol.parties.worker import Spill


class CellStore(Protocol):
    """What one person's cell keeps."""

    def tables(self) -> Mapping[str, pa.Table]:
        """The person's own rows, one table per common table."""
        ...

    def policy(self) -> Policy | None:
        """What the person demands."""
        ...

    def log(self) -> list[Participation]:
        """What was answered before."""
        ...

    def note(self, entry: Participation) -> Participation:
        """Keep the first entry on a query, and give it back for good."""
        ...

    def settle(self, query: bytes, closing: bytes) -> bytes:
        """Keep the first closing that is seen of a query, and give it back for good."""
        ...


@dataclass(eq=False)
class Cell:
    """One person's cell.

    Attributes:
        key: what it was enrolled with.
        commons: the common schema.
        home: what it keeps; None: it only works for others.
        spill: makes storage for swap-merge.
        settled: without a home, which closing of a query it works on.
    """

    key: CellKey
    commons: CommonSchema
    home: CellStore | None = None
    spill: Callable[[], Spill] | None = None
    settled: dict[bytes, bytes] = field(default_factory=dict, repr=False)

    def take_part(self, now: float) -> Talk:
        """Look for open questions and contribute to each once.

        Returns:
            What was done, in words; None where there is no question.
        """
        reply = yield Browse(self.key.group)
        done = None
        for signed in expect(reply, Open).queries:
            try:
                done = yield from self.contribute(signed, now)
            except (AuthenticationError, MessageError, InputError) as error:
                done = f"refused: {error.code}"
        return done

    def contribute(self, signed: Signed, now: float) -> Talk:
        """Answer one question by a record, real or dummy alike.

        What was decided first stands: a second try sends the same record under the same ticket.

        Raises:
            AuthenticationError: the question is not one that this cell answers, or it is not
                enrolled any more.
        """
        home = self.home
        if home is None:
            return None
        query = self.verify_query(signed, now)
        # Workers judge proofs by the end of the query: a record of ours would count as void there.
        if self.key.credential.expires < query.until:
            raise AuthenticationError("This cell's credential expires too soon: enroll it anew.")
        made = self._plan(query)
        known = next((entry for entry in home.log() if entry.query == signed.id), None)
        # Noted before it is sent: whatever happens then, it counts as answered.
        entry = known or home.note(self._entry(signed.id, query, made, now))
        record = made.layout.empty(1).tobytes() if entry.revoked else entry.record
        # A record that was taken back is replaced by a dummy, of which the relay can tell nothing.
        ticket, sealed = seal_contribution(
            FrameKey(self.key.secret, signed.id),
            signed.id,
            self.key.credential.serial,
            record,
            self.key,
        )
        reply = yield Contribute(signed.id, self.key.group, ticket, sealed)
        if isinstance(reply, Late):
            return "late"
        expect(reply, Accepted)
        return "revoked" if entry.revoked else entry.outcome

    def verify_query(self, signed: Signed, now: float) -> AskedQuery:
        """The question, if it is one for this cell.

        Raises:
            AuthenticationError: wrong signature, certificate, time, group or common schema.
        """
        return verify_query(self.key, self.commons, signed, now)

    def work(self, now: float) -> Talk:
        """Do one task for others.

        Returns:
            What was done; None where there is nothing to do.
        """
        settle = self.settled.setdefault if self.home is None else self.home.settle
        return WorkSession(self.key, self.commons, self.spill, settle).session(now)

    # -- own contribution

    def _plan(self, query: AskedQuery) -> CellPlan:
        salt = derive(self.key.secret, b"", b"tokens")
        return plan_for_cells(self.commons, query.text, query.terms, salt)

    def _entry(self, name: bytes, query: AskedQuery, made: CellPlan, now: float) -> Participation:
        """What this cell decides to answer, and what the person can read about it."""
        given = self._decide(query.text, made, now)
        return Participation(
            name,
            query.certificate.name,
            query.text,
            int(now),
            made.aggregated,
            given.reason,
            given.level,
            epsilon=given.epsilon,
            record=given.record,
        )

    def _decide(self, text: str, made: CellPlan, now: float) -> Contribution:
        home = self.home
        assert home is not None  # noqa: S101 - the caller looked
        policy = home.policy()
        log = home.log()
        if made.layout.noisy or made.terms.epsilon:
            objection = object_to_cost(log, policy, now, made.terms.epsilon)
        else:
            objection = object_to_repetition(log, policy, made.aggregated, now)
        given = contribution(made, home.tables(), policy, objection)
        level = made.layout.level(given.record)
        if level is None or self._permits(policy, text, made, given.record, level):
            return given
        return Contribution(made.layout.empty(1).tobytes(), None, "the policy forbids it")

    def _permits(
        self, policy: Policy | None, text: str, made: CellPlan, record: bytes, level: int
    ) -> bool:
        """The last look at a record, by code that shares nothing with what made it."""
        if made.shown is None:
            return permits(policy, self.commons, text, level)
        k, l = sent_demands(made, made.layout.read(record))  # noqa: E741
        return permits_row(policy, self.commons, text, int(k[0]), int(l[0]))
