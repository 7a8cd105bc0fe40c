"""A cell's store without a file, for tests and benchmarks of many cells."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from halfmask.protocol.common_schema import Policy
    from halfmask.protocol.contribution import Participation


@dataclass
class MemoryCellStore:
    """One person's rows, policy and log, gone with the process."""

    rows: Mapping[str, pa.Table]
    demands: Policy | None
    entries: dict[bytes, Participation] = field(default_factory=dict)
    settled: dict[bytes, bytes] = field(default_factory=dict)

    def tables(self) -> Mapping[str, pa.Table]:
        """The person's own rows."""
        return self.rows

    def policy(self) -> Policy | None:
        """What the person demands."""
        return self.demands

    def log(self) -> list[Participation]:
        """What was answered before."""
        return list(self.entries.values())

    def note(self, entry: Participation) -> Participation:
        """Keep the first entry on a query."""
        return self.entries.setdefault(entry.query, entry)

    def settle(self, query: bytes, closing: bytes) -> bytes:
        """Keep the first closing that is seen of a query."""
        return self.settled.setdefault(query, closing)
