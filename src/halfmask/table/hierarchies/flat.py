"""The hierarchy with two levels: the value, or nothing."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from halfmask.errors import HierarchyError
from halfmask.table.hierarchies.assemble import Levels, assemble

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from halfmask.table.hierarchy import Hierarchy


@dataclass(frozen=True, slots=True)
class Flat:
    """Keep the value or hide it; what a quasi-identifier gets that declares no hierarchy."""

    @classmethod
    def parse(cls, value: object, folder: Path) -> Flat:  # noqa: ARG003 - one signature for all
        """Read what stands behind ``flat =`` in the schema file."""
        if value is not True:
            raise HierarchyError("hierarchy flat: write flat = true.")
        return cls()

    def to_dict(self) -> dict[str, object]:
        """What stands behind ``hierarchy =`` in the schema file."""
        return {"flat": True}

    def build(self, column: str, values: pa.Array) -> Hierarchy:
        """Two levels: the values and the top."""
        return assemble(column, values, Levels([]))
