"""What an answer tells about whom: the people behind each of its rows, and behind each total."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.engines.request import REFUSED, WITHOUT_POLICY

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from halfmask.query.filter import Published
    from halfmask.query.groups import Groups
    from halfmask.query.planning.planned import Plan

BELOW = "below the guarantee"
LEFT_OUT = {"no level satisfies their demands": REFUSED, "no policy": WITHOUT_POLICY}


@dataclass(frozen=True, slots=True, eq=False)
class Told:
    """The sets of people that figures were told of.

    Attributes:
        places: per group (``level``, ``g0...``) the set it belongs to; rows first, then totals.
        k: what every difference must reach: the largest guarantee of what was told, which covers
            the demand of everybody who stands in a row.
    """

    places: pa.Table
    k: int


def told(
    plan: Plan, groups: Groups, published: Published, withheld: Mapping[str, int | None]
) -> Told:
    """The rows of an answer, and its totals of people left out where they are said."""
    import pyarrow as pa

    ids = published.ids.copy()
    if withheld.get(BELOW) is not None:
        ids[ids < 0] = len(published)
    inside = pa.array(np.flatnonzero(ids >= 0))
    names = ["level", *(f"g{i}" for i in range(len(plan.keys)))]
    table = groups.states.select(names).append_column("place", pa.array(ids)).take(inside)
    said = {x: level for x, level in LEFT_OUT.items() if withheld.get(x) is not None}
    # People left out are one group each: level below zero, and no keys.
    rest = {name: pa.nulls(len(said), table.schema.field(name).type) for name in names[1:]}
    rest["level"] = pa.array(list(said.values()), table.schema.field("level").type)
    rest["place"] = pa.array(range(len(published) + 1, len(published) + 1 + len(said)), pa.int64())
    # Made anew from its columns, because Spark says of some that they are never null.
    table = pa.table(table.columns, names=table.column_names)
    table = pa.concat_tables([table, pa.table(rest).select(table.column_names)])
    guarantees = plan.request.guarantees
    used = {0, *published.level.tolist()}
    if said or withheld.get(BELOW) is not None:
        used.add(groups.top)
    return Told(table, max(guarantees[level][0] for level in used))
