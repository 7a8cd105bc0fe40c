"""Which values of a sensitive column mean the same, wherever similarity is measured.

Definition: the blocks of a given partition; else the labels of the first level of the column's
hierarchy; else, for numbers, ten equal parts of their range in the original table. Where there is
none of these, nothing says which values are alike.
Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, chapter 5; Li
et al., "t-closeness: privacy beyond k-anonymity and l-diversity", 2007 (salaries that are near).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.discrimination.partition import Cuts, Partition, Partitioning, partitioning
from halfmask.metrics.discrimination.released import released_column
from halfmask.table.histogram import value_facts

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.sides import Sides
    from halfmask.table.table import Table

_PARTS = 10


def meaning_of(table: Table, column: str, given: object = None) -> Partitioning | None:
    """The partition of a column's values by what they mean; None where nothing tells."""
    if given is not None:
        return partitioning(given)
    facts, declared = value_facts(table, column), table.schema.columns.get(column)
    hierarchy = facts["hierarchy"]
    if hierarchy is not None and hierarchy.height > 1:
        blocks: dict[object, list[object]] = {}
        for value, block in zip(
            facts["labels"].to_pylist(), hierarchy.maps[1].tolist(), strict=True
        ):
            blocks.setdefault(block, []).append(value)
        return Partition(blocks, rest="own")
    if facts["numbers"] is None or (declared is not None and declared.kind == "nominal"):
        return None
    return _parts(facts["numbers"])


def _parts(numbers: NDArray[np.float64]) -> Cuts:
    """Equal parts of the range; what is beyond it belongs to the first or the last."""
    known = numbers[np.isfinite(numbers)]
    inner: list[float] = []
    if len(known) and known.min() < known.max():
        inner = np.unique(np.linspace(known.min(), known.max(), _PARTS + 1)[1:-1]).tolist()
    return Cuts(-np.inf, *inner, np.inf, rest="own")


def original_blocks(
    table: Table, column: str, meaning: Partitioning | None
) -> NDArray[np.int32] | None:
    """The block of each value of the original, by its code."""
    if meaning is None:
        return None
    return meaning.bind(column, table.encode(column).values).places


def released_blocks(
    both: Sides, released: Table, column: str, meaning: Partitioning | None
) -> NDArray[np.int32] | None:
    """The block of each released label, by its code in ``released``."""
    if meaning is None:
        return None
    encoded = released.encode(column)
    blocks = np.zeros(len(encoded.values), dtype=np.int32)
    blocks[encoded.codes] = released_column(both, column, meaning)[0].codes
    return blocks
