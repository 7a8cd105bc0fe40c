"""Column sets of tables in which people have several rows: who is alone by people, not by rows.

Rows of one person that agree in a set of columns hide nobody, so that a row counts as alone where
all rows that share its values are of one person.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.metrics.risk.column_sets import ColumnSet
    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


def by_people(sets: Sequence[ColumnSet], classes: Classes, table: Table) -> tuple[ColumnSet, ...]:
    """The same sets with rows alone and minimal sets by people; most rows alone first.

    Args:
        sets: every set up to a size, as counted by rows.
        classes: the classes of all quasi-identifiers, with who stands where.
        table: the table that they were made from.
    """
    if classes.members is None:  # every row is another person
        return tuple(sets)
    bare = replace(classes, histograms={}, population=None)
    found: list[ColumnSet] = []
    minimal: list[frozenset[str]] = []
    for one in sorted(sets, key=lambda s: len(s.columns)):
        alone = _alone(bare, table, one.columns)
        names = frozenset(one.columns)
        first = alone > 0 and not any(known <= names for known in minimal)
        if first:
            minimal.append(names)
        found.append(replace(one, unique_rows=alone, minimal=first))
    return tuple(
        sorted(found, key=lambda s: (-s.unique_rows, -s.separation, len(s.columns), s.columns))
    )


def _alone(classes: Classes, table: Table, names: Sequence[str]) -> int:
    """Rows of people who share their values in ``names`` with nobody."""
    others = [i for i, name in enumerate(table.schema.quasi) if name not in names]
    gone = [np.zeros_like(table.hierarchy(table.schema.quasi[i]).maps[0]) for i in others]
    coarser = classes.coarsen(others, gone) if others else classes
    return int(coarser.rows[coarser.people == 1].sum())
