"""A cell's home in memory, for simulations and tests; and storage to swap to."""

from __future__ import annotations

import os
import tempfile
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from halfmask.protocol.ledger import Entry
    from halfmask.protocol.policy import Policy


@dataclass
class MemoryHome:
    """One person's rows, policy and log, gone with the process."""

    rows: Mapping[str, pa.Table]
    demands: Policy | None
    entries: dict[bytes, Entry] = field(default_factory=dict)
    settled: dict[bytes, bytes] = field(default_factory=dict)

    def tables(self) -> Mapping[str, pa.Table]:
        """The person's own rows."""
        return self.rows

    def policy(self) -> Policy | None:
        """What the person demands."""
        return self.demands

    def log(self) -> list[Entry]:
        """What was answered before."""
        return list(self.entries.values())

    def note(self, entry: Entry) -> Entry:
        """Keep the first entry on a query."""
        return self.entries.setdefault(entry.query, entry)

    def settle(self, query: bytes, closing: bytes) -> bytes:
        """Keep the first closing that is seen of a query."""
        return self.settled.setdefault(query, closing)


class FileSpill:
    """Frames in a temporary file, as they came: encrypted."""

    def __init__(self) -> None:
        self._file = tempfile.TemporaryFile()  # noqa: SIM115 - lives as long as the task
        self._places: list[tuple[int, int]] = []

    def append(self, frame: bytes) -> None:
        """Keep one more."""
        self._file.seek(0, os.SEEK_END)
        self._places.append((self._file.tell(), len(frame)))
        self._file.write(frame)

    def read(self, index: int) -> bytes:
        """Give one back."""
        start, length = self._places[index]
        self._file.seek(start)
        return self._file.read(length)

    def close(self) -> None:
        """Forget everything."""
        self._file.close()
