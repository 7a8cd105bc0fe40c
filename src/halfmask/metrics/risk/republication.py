"""What is learned from how a release was made, and from two releases together.

Definition: minimality: the share of rows in classes that could be published one level finer in some
column with every part still as large as the smallest class; an attacker who knows that the search
loses as little as it can learns that the finer parts broke another promise. Differencing: the
classes that two releases of the same people form together, and how many of them are smaller than
any class of either.
Source: Wong et al., "Minimality attack in privacy preserving data publishing", 2007; Ganta et al.,
"Composition attacks and auxiliary information in data privacy", 2008.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InputError, SchemaError
from halfmask.metrics.codes import joint
from halfmask.metrics.estimate import Estimate, exact, failed

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.metrics.sides import Sides
    from halfmask.table.table import Table


def minimality(sides: Sides) -> Estimate:
    """The share of rows in classes that were generalized further than their size demands."""
    columns = sides.quasi
    if any(c.foreign or len(np.unique(c.level)) > 1 for c in columns):
        return failed("It speaks of releases with one level per column.", sides.before)
    levels = [int(c.level[0]) for c in columns]
    labels = [c.to_label[level][c.before] for c, level in zip(columns, levels, strict=True)]
    present = np.all([held >= 0 for held in labels], axis=0)
    if not present.any():
        return failed("No original row lies under a released class.", sides.before)
    coarse = [(held[present], c.labels) for c, held in zip(columns, labels, strict=True)]
    ids, classes = joint(coarse)
    sizes = np.bincount(ids, minlength=classes)
    smallest = int(sizes.min())
    splits = np.zeros(classes, dtype=bool)
    for place, (column, level) in enumerate(zip(columns, levels, strict=True)):
        hierarchy = sides.original.hierarchy(column.name)
        if level == 0:
            continue
        finer = hierarchy.maps[min(level - 1, hierarchy.height)][column.before[present]]
        parts, count = joint(
            [*coarse[:place], (finer.astype(np.int32), int(finer.max()) + 1), *coarse[place + 1 :]]
        )
        part_sizes = np.bincount(parts, minlength=count)
        least = np.full(classes, np.iinfo(np.int64).max)
        np.minimum.at(least, ids, part_sizes[parts])
        several = np.zeros(classes, dtype=np.int64)
        np.add.at(several, ids, 1)
        splits |= (least >= smallest) & (least < several)
    return exact(float(sizes[splits].sum()) / int(present.sum()), int(present.sum()))


@dataclass(frozen=True, slots=True)
class Differencing:
    """Two releases of the same people, held against each other.

    Attributes:
        smallest: the smallest class of either release alone; ``together`` of both combined.
        rows: rows whose combined class is smaller than ``smallest``; ``share`` of all.
        unique_rows: rows that the combination leaves alone.
    """

    smallest: int
    together: int
    rows: int
    share: float
    unique_rows: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def differencing(first: Table, second: Table, quasi: Sequence[str] | None = None) -> Differencing:
    """Combine two releases whose rows stand for the same people in the same order.

    Args:
        first: one release.
        second: the other.
        quasi: the quasi-identifiers; None: those that the first declares.
    """
    if len(first) != len(second):
        raise InputError(
            f"The releases hold {len(first):,} and {len(second):,} rows and cannot be paired."
        )
    names = list(quasi if quasi is not None else first.schema.quasi)
    if not names:
        raise SchemaError("No quasi-identifier is named: give quasi=.")
    alone = []
    for table in (first, second):
        columns = [
            (table.encode(n).codes, len(table.encode(n).values))
            for n in names
            if n in table.arrow.column_names
        ]
        alone.append(joint(columns))
    both, count = joint([(ids.astype(np.int32), size) for ids, size in alone])
    smallest = min(int(np.bincount(ids).min()) for ids, _ in alone)
    sizes = np.bincount(both, minlength=count)
    small = sizes[sizes < smallest]
    rows = int(small.sum())
    return Differencing(
        smallest, int(sizes.min()), rows, rows / len(first), int((sizes == 1).sum())
    )
