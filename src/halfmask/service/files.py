"""What can be taken away from the page: reports, releases and the schema, by fixed names.

A browser opens a report or saves a file without the header that carries the token, so each file
gets an address that nobody can guess. It ends with what it leads to.
"""

from __future__ import annotations

import hmac
import os
import secrets
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from halfmask.errors import MissingError
from halfmask.service.workspace import Result

if TYPE_CHECKING:
    from pathlib import Path

    from halfmask.service.workspace import Workspace

SCHEMA = "schema.toml"
# What a file is made of: the verb whose result it is, and whether it is the report or the rows.
FILES = {
    "assessment.html": ("assess", "report"),
    "frontier.html": ("frontier", "report"),
    "comparison.html": ("compare", "report"),
    "release.html": ("anonymize", "report"),
    "release.parquet": ("anonymize", "rows"),
    "release.csv": ("anonymize", "rows"),
    "answer.html": ("query", "report"),
    "answer.parquet": ("query", "rows"),
    "answer.csv": ("query", "rows"),
    "synthetic.html": ("synthesize", "report"),
    "synthetic.parquet": ("synthesize", "rows"),
    "synthetic.csv": ("synthesize", "rows"),
}


@dataclass(frozen=True, slots=True)
class Ticket:
    """The right to fetch one file, as long as what it is made of stands."""

    secret: str
    source: object
    file: str
    download: bool


@dataclass(eq=False)
class Files:
    """The files of a workspace and the addresses under which they are had."""

    space: Workspace
    _tickets: dict[tuple[str, bool], Ticket] = field(default_factory=dict)

    def link(self, file: str, *, download: bool) -> str:
        """The address of a file; the same one while its content stands."""
        source = self._source(file)
        ticket = self._tickets.get((file, download))
        if ticket is None or ticket.source is not source:
            ticket = Ticket(secrets.token_urlsafe(32), source, file, download)
            self._tickets[file, download] = ticket
        return f"/out/{ticket.secret}/{file}"

    def find(self, secret: str, file: str) -> Ticket:
        """The ticket of an address, if what it leads to is still there."""
        for ticket in list(self._tickets.values()):
            fits = hmac.compare_digest(ticket.secret.encode(), secret.encode())
            if fits and ticket.file == file and self._stands(ticket):
                return ticket
        raise _gone()

    def copy(self, ticket: Ticket) -> Path:
        """The file under a name of its own, which outlasts its result; removed once it is sent."""
        place = self.space.room(ticket.file)
        with self.space.kept_if_done(place.parent):
            if isinstance(ticket.source, Result):
                try:
                    os.link(ticket.source.folder / ticket.file, place)
                except FileNotFoundError:
                    raise _gone() from None
            else:
                place.write_text(self.space.standing.toml, encoding="utf-8")
        return place

    def _source(self, file: str) -> object:
        """What a file is made of."""
        if file == SCHEMA:
            return self.space.standing
        if file not in FILES:
            raise MissingError(f"There is no such file: ask for {', '.join([*FILES, SCHEMA])}.")
        return self.space.result(FILES[file][0])

    def _stands(self, ticket: Ticket) -> bool:
        try:
            return self._source(ticket.file) is ticket.source
        except MissingError:
            return False


def _gone() -> MissingError:
    return MissingError("This file is gone: another table, schema or result took its place.")
