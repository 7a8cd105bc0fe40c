"""A hierarchy whose labels are written down value by value."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.table.hierarchy import from_levels

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from halfmask.table.hierarchy import Hierarchy


class WrittenHierarchy:
    """Labels per value, level 0 first; a column need not hold all of them."""

    def __init__(self, labels: Mapping[object, Sequence[object]]) -> None:
        self.labels = labels

    def build(self, column: str, values: pa.Array) -> Hierarchy:
        """The hierarchy of these values, the others as leaves that it does not hold."""
        known = values.to_pylist()
        depth = range(len(next(iter(self.labels.values()))))
        rest = [v for v in self.labels if v not in known]
        return from_levels(
            [[self.labels[v][level] for v in known] for level in depth],
            other_leaves=[[self.labels[v][level] for v in rest] for level in depth],
        )

    def to_dict(self) -> dict[str, object]:
        """Nothing to repeat it by."""
        return {}
