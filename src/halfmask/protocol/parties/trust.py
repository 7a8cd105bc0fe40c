"""Whom a cell believes, and which replies it takes."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeVar

from halfmask.errors import AuthenticationError, MessageError, PartyUnavailableError
from halfmask.protocol.crypto import verify
from halfmask.protocol.keys import SKEW
from halfmask.protocol.messages import Query, Reply, Signed, Trouble, read_query

if TYPE_CHECKING:
    from halfmask.protocol.commons import Commons
    from halfmask.protocol.keys import CellKey

R = TypeVar("R")


def believe(key: CellKey, commons: Commons, signed: Signed, now: float) -> Query:
    """The question, if it is one for a cell with this key and common schema.

    Raises:
        AuthenticationError: wrong signature, certificate, time, group or common schema.
    """
    query = read_query(signed.body)
    query.certificate.check(key.issuer, now)
    verify(query.certificate.signing, signed.signature, signed.body, "The query")
    if query.commons != commons.digest:
        raise AuthenticationError("The query is written for another common schema.")
    if key.group not in query.groups:
        raise AuthenticationError("The query asks other groups of cells.")
    if not query.asked - SKEW <= now <= query.until + SKEW:
        raise AuthenticationError("The query is not of this time: check the clocks.")
    return query


def expect(reply: Reply, kind: type[R]) -> R:
    """The reply, if it is of the kind that fits.

    Raises:
        PartyUnavailableError: the relay says that it cannot.
        MessageError: it is something else.
    """
    if isinstance(reply, kind):
        return reply
    if isinstance(reply, Trouble):
        raise PartyUnavailableError(f"The relay refuses: {reply.code}.")
    raise MessageError("The relay gave an answer that does not fit the question.")
