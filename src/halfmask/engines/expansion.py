"""Distinct tuples as the rows that they stand for, made inside DuckDB while a query reads them.

A column is given as it is, or as ranges of possible values from which each row takes one: by a hash
of its place and a seed, so that the choice repeats however the work is divided.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.engines.stored import connect_within
from halfmask.table.tuples import all_ones, contiguous

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from numpy.typing import NDArray

    from halfmask.engines.duckdb import DuckDB

_PIECE = 1024  # rows that one entry is unfolded into at a time


@dataclass(frozen=True, slots=True, eq=False)
class Possible:
    """A column of which each entry could hold one of several values.

    Attributes:
        values: all values, one range after the other.
        starts: per entry, where its range begins; ``sizes`` how long it is.
    """

    values: pa.Array
    starts: NDArray[np.int64]
    sizes: NDArray[np.int64]


@contextmanager
def expand_tuples(
    name: str,
    columns: Mapping[str, pa.ChunkedArray | Possible],
    counts: NDArray[np.int64],
    *,
    seed: int = 0,
    memory_limit: str | None = None,
) -> Iterator[DuckDB]:
    """An engine with one table called ``name``.

    Args:
        name: of the table.
        columns: its columns, an entry for each distinct tuple or row.
        counts: how many rows each entry stands for.
        seed: decides which of the possible values each row takes.
        memory_limit: how much memory DuckDB may take.
    """
    from halfmask.engines.duckdb import DuckDB

    with connect_within(memory_limit) as connection:
        engine = DuckDB(connection=connection)
        entries, which = _pieces(counts)
        each = slice(None) if which is None else which
        selected, joined = [], []
        keys = np.random.default_rng(seed).integers(0, 2**62, len(columns)).tolist()
        held = {"piece": pa.array(np.arange(entries.num_rows)), "n": entries["n"]}
        for i, (column, given) in enumerate(columns.items()):
            if isinstance(given, Possible):
                held[f"s{i}"] = pa.array(given.starts[each])
                held[f"m{i}"] = pa.array(given.sizes[each])
                places = pa.array(np.arange(len(given.values)))
                engine.add(f"possible{i}", pa.table({"at": places, "value": given.values}))
                # Hashed once more: where inputs differ in one bit, so do sums of their hashes.
                drawn = f"hash(xor(hash(e.piece, e.r), {keys[i]}::UBIGINT)) % e.m{i}::UBIGINT"
                joined.append(f"JOIN possible{i} ON possible{i}.at = e.s{i} + ({drawn})::BIGINT")
                selected.append(f"possible{i}.value AS {_quoted(column)}")
            else:
                held[f"c{i}"] = given if which is None else given.take(pa.array(which))
                selected.append(f"e.c{i} AS {_quoted(column)}")
        engine.add("entries", pa.table(held))
        unfolded = "SELECT *, unnest(range(n)) AS r FROM entries"
        if which is None:
            unfolded = "SELECT *, 0 AS r FROM entries"
        connection.execute(
            f"CREATE TEMPORARY VIEW {_quoted(name)} AS SELECT {', '.join(selected)} "  # noqa: S608
            f"FROM ({unfolded}) e {' '.join(joined)}"
        )
        yield engine


def _pieces(counts: NDArray[np.int64]) -> tuple[pa.Table, NDArray[np.int64] | None]:
    """Entries that stand for few rows each, and whose pieces they are; None: each is a row."""
    if all_ones(counts):
        return pa.table({"n": pa.array(contiguous(counts))}), None
    pieces = -(-counts // _PIECE)
    which = np.repeat(np.arange(len(counts)), pieces)
    turn = np.arange(len(which)) - np.repeat(np.cumsum(pieces) - pieces, pieces)
    rows = np.minimum(counts[which] - turn * _PIECE, _PIECE)
    return pa.table({"n": pa.array(rows)}), which


def _quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'
