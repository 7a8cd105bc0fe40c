"""The discrimination rate of columns and of their values.

Definition: DR_X(Y) = 1 - H(X | Y) / H(X) in bits; of a value, 1 - p(y) H(X | Y = y) / H(X), so that
1 - DR_X(Y) is the sum of 1 - DR_X(y). A partition of a column is applied before anything else.
Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, whose printed
algorithms stop too early; its tables follow the definition.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.engines.counted import counted
from halfmask.engines.source import Source
from halfmask.metrics.discrimination.columns import (
    Suppressed,
    bind,
    coded,
    group_labels,
    grouped,
    kept,
    require_columns,
)
from halfmask.metrics.discrimination.grouping import measure
from halfmask.metrics.discrimination.inflation import beside_chance
from halfmask.metrics.discrimination.result import Discrimination, told
from halfmask.table.table import require_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.table.table import Table


def discrimination_rate(
    table: Table | str | PathLike[str],
    target: str,
    keys: str | Sequence[str],
    partition: object = None,
    *,
    values: bool = False,
    suppressed: Suppressed = "keep",
    undefined: float = float("nan"),
    permutations: int = 0,
    schema: object = None,
    engine: str | None = None,
    source_table: str | None = None,
    memory_limit: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> float | Discrimination:
    """Tell how far knowing ``keys`` shrinks what ``target`` can be: 0 not at all, 1 to one outcome.

    Args:
        table: the rows; every column can be target or key, whatever its role. Or the name of a
            file or the address of a database, as for ``check``, with ``schema``, ``engine``,
            ``source_table`` and ``memory_limit``.
        target: the column X whose outcomes are the anonymity set.
        keys: the column or columns Y that somebody knows.
        partition: which values count as one: blocks of the target's values (a mapping from block to
            values, or lists of values), or a mapping from column to such blocks for any columns;
            ``Partition`` and ``Cuts`` say more.
        values: also give the rate of each value, as a mapping with all figures around it.
        suppressed: rows with a cell ``*`` are kept as a value of its own, dropped, or such cells
            count as missing.
        undefined: what a target that never varies gives.
        permutations: with ``values``, shuffle the target so often to see what chance gives.
        schema: the schema of a file or database, as for ``read``.
        engine: ``"duckdb"`` counts a file within ``memory_limit``; ``"memory"`` reads it.
        source_table: which table of a database.
        memory_limit: how much memory DuckDB may take, such as ``"500MB"``.
        delimiter: what stands between the fields of a text file; ``None``: detected.
        encoding: the character encoding of a text file; ``None``: detected.

    Raises:
        InputError: a column is not there, or a partition overlaps or leaves values out.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [22, 35, 22], "id": [1, 2, 3]}, schema={})
        >>> round(hm.discrimination_rate(people, "id", "age"), 4)
        0.5794
    """
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    source = Source(table, schema, engine, source_table, memory_limit, delimiter, encoding)
    held = counted(source, lambda _: (target, *names))
    found = discriminate(
        held.table,
        target,
        names,
        partition,
        suppressed=suppressed,
        undefined=undefined,
        values=values,
        permutations=permutations if values else 0,
        counts=held.counts,
        notes=(held.note,) if held.note else (),
    )
    return found if values else found.rate


def discriminate(
    table: Table,
    target: str,
    keys: str | Sequence[str],
    partition: object = None,
    *,
    suppressed: Suppressed = "keep",
    undefined: float = float("nan"),
    values: bool = True,
    permutations: int = 0,
    counts: NDArray[np.int64] | None = None,
    notes: tuple[str, ...] = (),
) -> Discrimination:
    """The rate with its class and, if ``values``, each value's figures.

    With ``counts``, each row of ``table`` stands for so many.
    """
    require_table(table)
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    require_columns(table, target, names, suppressed)
    bound = bind(table, (target, *names), target, partition, suppressed)
    columns = {
        name: coded(table, name, bound.get(name)) for name in dict.fromkeys((target, *names))
    }
    keep = kept(table, (target, *names), suppressed, columns)
    x, known = columns[target], [columns[name] for name in names]
    y, groups = grouped(known, keep)
    weights = None if counts is None else counts[keep]
    found = measure(x.codes[keep], x.size, y, groups, undefined, weights)
    every = np.ones(len(table), dtype=np.int64) if counts is None else counts
    return told(
        target,
        names,
        found,
        group_labels(known, y, groups, keep) if values else (),
        left_out=int(every[~keep].sum()),
        notes=(*notes, *(note for blocks in bound.values() for note in blocks.notes)),
        inflation=(
            beside_chance(x.codes[keep], x.size, y, groups, permutations, weights=weights)
            if permutations
            else None
        ),
    )
