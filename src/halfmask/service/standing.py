"""The table that is in force, in plain values that pass from process to process."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from halfmask.table.schema import Schema


@dataclass(frozen=True, slots=True)
class Standing:
    """A table as it was opened, without its rows.

    Attributes:
        serial: what tells it from every other table and schema of this service.
        path: where its rows lie; the browser is never told.
        content: what tells its bytes from those of every other file.
        how: the delimiter, encoding and decimal mark that were given.
        description: what its columns seem to be, as ``describe`` tells it.
        schema: what is in force.
        toml: the same as a file; a proposal says why.
        proposed: whether that schema is the proposal as it stands.
    """

    serial: str
    path: Path
    content: str
    how: Mapping[str, str | None]
    description: Mapping[str, Any]
    schema: Schema
    toml: str
    proposed: bool

    @property
    def name(self) -> str:
        """How its file is called."""
        return self.path.name


@dataclass(frozen=True, slots=True)
class Population:
    """A table of all people of whom the other holds some: where it lies, and how large it is."""

    path: Path
    rows: int

    def to_dict(self) -> dict[str, Any]:
        """What the browser is told."""
        return {"name": self.path.name, "rows": self.rows}
