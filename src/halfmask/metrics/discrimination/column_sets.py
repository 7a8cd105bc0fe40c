"""Which combinations of columns discriminate a target most: all sets up to a size.

Definition: as in ``halfmask.metrics.discrimination.rate``, for every set of columns.
Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, figure 4.3.

Sets are pruned: everything that contains an identifier is one. A column whose rate alone is 0 is
not pruned, because it may matter together with others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from halfmask.engines.counted import counted
from halfmask.engines.source import Source
from halfmask.errors import InputError
from halfmask.metrics.discrimination.columns import bind, per_column, require_columns
from halfmask.metrics.discrimination.inflation import inflation
from halfmask.metrics.discrimination.set_walk import SetRate, SetWalk
from halfmask.metrics.walk import by_size, chosen_columns, units_of

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    import numpy as np
    from numpy.typing import NDArray

    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

_FIRST = 10  # sets whose target is shuffled
_SHUFFLED = 2_000_000  # rows that are shuffled in all for one of them, three times at least


def rank_column_sets(
    table: Table | str | PathLike[str],
    target: str,
    columns: Sequence[str] | None = None,
    *,
    size: int = 3,
    partition: object = None,
    undefined: float = float("nan"),
    permutations: int = 0,
    schema: object = None,
    engine: str | None = None,
    source_table: str | None = None,
    memory_limit: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> tuple[SetRate, ...]:
    """Measure every set of at most ``size`` columns and put the most discriminating first.

    Among equal rates the smaller set comes first.

    Args:
        table: the rows, or the name of a file or the address of a database, as for
            ``discrimination_rate``.
        target: the column X.
        columns: where to look; None: all columns that may leave, without the target.
        size: the largest set.
        partition: blocks of values, as for ``discrimination_rate``.
        undefined: what a target that never varies gives.
        permutations: how often the target is shuffled to see what chance gives the first ten
            sets; three times are enough for many rows.
        schema: the schema of a file or database, as for ``read``.
        engine: ``"duckdb"`` counts a file within ``memory_limit``; ``"memory"`` reads it.
        source_table: which table of a database.
        memory_limit: how much memory DuckDB may take, such as ``"500MB"``.
        delimiter: what stands between the fields of a text file; ``None``: detected.
        encoding: the character encoding of a text file; ``None``: detected.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"id": [1, 2, 3], "age": [22, 35, 22], "pay": [4, 5, 6]}, schema={})
        >>> hm.rank_column_sets(people, "id")[0].columns
        ('pay',)
    """

    def used(known: Schema) -> list[str]:
        if columns is None and not known.columns:
            raise InputError("Name the columns to look at, or give a schema that lists them.")
        wanted = (
            [n for n in known.columns if n not in known.private] if columns is None else columns
        )
        return [target, *wanted]

    source = Source(table, schema, engine, source_table, memory_limit, delimiter, encoding)
    held = counted(source, used)
    found = ranked(
        held.table, target, columns, size=size, partition=partition, undefined=undefined,
        counts=held.counts,
    )  # fmt: skip
    if not permutations:
        return found
    blocks = per_column(held.table, target, partition)
    times = min(permutations, max(3, _SHUFFLED // held.rows))
    first = []
    for one in found[:_FIRST]:
        own = {name: blocks[name] for name in (target, *one.columns) if name in blocks} or None
        chance = inflation(
            held.table, target, one.columns, own, permutations=times, counts=held.counts
        )
        first.append(replace(one, inflation=chance))
    return (*first, *found[_FIRST:])


def ranked(
    table: Table,
    target: str,
    columns: Sequence[str] | None = None,
    *,
    size: int = 3,
    partition: object = None,
    undefined: float = float("nan"),
    counts: NDArray[np.int64] | None = None,
) -> tuple[SetRate, ...]:
    """The same for rows at hand; with ``counts``, each row of ``table`` stands for so many."""
    names = [name for name in chosen_columns(table, columns, size) if name != target]
    require_columns(table, target, tuple(names), "keep")
    blocks = bind(table, (target, *names), target, partition)
    units = units_of(table, [*by_size(table, names), target], blocks, counts)
    walk = SetWalk(units, size, undefined)
    walk.descend((units.keys, units.rows, walk.labels, units.start), 0, 0)
    place = {name: i for i, name in enumerate(names)}
    found = [
        replace(one, columns=tuple(sorted(one.columns, key=place.__getitem__)))
        for one in walk.found
    ]
    return tuple(sorted(found, key=lambda one: (-one.rate, len(one.columns), one.columns)))
