"""Rows that stay elsewhere as small numbers: the engine codes every value and counts the tuples.

Each column is joined with a table of its values and their codes. Numbers of very many values are
cut at stated bounds instead. What comes back are the distinct tuples of codes with their counts.
"""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.engines.counting.columns import VALUES, list_values
from halfmask.engines.counting.tuples import MOST, bind_values
from halfmask.engines.request import any_digits, quote, unread_type
from halfmask.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.table.table import Table

_CUTS = 256  # intervals that are written into a query at most


@dataclass(frozen=True, slots=True)
class CodeIntervals:
    """Intervals of numbers: the first code, then one more at each bound.

    Attributes:
        bounds: where the next interval begins, ascending.
        first: the code below all bounds.
        alone: numbers with codes of their own.
        absent: the code of what is missing or no number.
    """

    bounds: tuple[float, ...]
    first: int
    alone: Mapping[float, int]
    absent: int


@dataclass(frozen=True, slots=True)
class Coding:
    """How one column is coded.

    Attributes:
        codes: per row of a table that holds the column, its code.
        cuts: the same for numbers of very many values; None where it cannot be said by bounds.
    """

    codes: Callable[[Table], NDArray[np.int32]]
    cuts: CodeIntervals | None = None


@dataclass(frozen=True, slots=True, eq=False)
class CodedTuples:
    """Distinct tuples of codes, by column, and how many rows hold each."""

    codes: Mapping[str, NDArray[np.int32]]
    counts: NDArray[np.int64]


def count_codes(table: Table, coding: Mapping[str, Coding]) -> CodedTuples | None:
    """The distinct tuples of codes of stored rows, of which each person has one.

    None where they cannot be had: a column of very many values that no bounds cut, a type that
    the engine compares in its own way, too many tuples, or a person with two rows. People are
    grouped by the very query that counts: files may be written anew between any two.

    Raises:
        EngineError: rows changed while they were counted.
    """
    from sqlglot import parse_one

    stored: Any = table.stored
    kinds = stored.columns()
    if any(kinds[name] in (unread_type(), any_digits()) for name in coding):
        return None
    with ExitStack() as held:
        held.enter_context(stored.hold())
        held.callback(stored.let_go)
        with stored.open() as (engine, name):
            cells, joins = [], []
            for place, (column, how) in enumerate(coding.items()):
                values, whole = list_values(engine, name, column, VALUES)
                if not whole:
                    cuts = _interval_code(column, kinds[column], how.cuts)
                    if cuts is None:
                        return None
                    cells.append(cuts)
                    continue
                known, missing = _coded_values(table, column, how, values)
                like = (name, quote(column))
                engine.bring(f"hm_code_{place}", known, like=like)
                cells.append(
                    f"CASE WHEN r.{quote(column)} IS NULL THEN {missing} ELSE m{place}.code END"
                )
                joins.append(
                    f"LEFT JOIN hm_code_{place} m{place} ON r.{quote(column)} = m{place}.value"
                )
            shown = ", ".join(f"{cell} AS c{i}" for i, cell in enumerate(cells))
            source = f"FROM {quote(name)} r {' '.join(joins)}"
            each = "1"
            if table.schema.person is not None:
                # Of one row each, its smallest code is its code; MAX(p.n) tells whether it is so.
                shown = ", ".join(f"MIN({cell}) AS c{i}" for i, cell in enumerate(cells))
                person = f"r.{quote(table.schema.person)}"
                source = f"FROM (SELECT {shown}, COUNT(*) AS n {source} GROUP BY {person}) p"
                shown, each = ", ".join(f"p.c{i}" for i in range(len(cells))), "MAX(p.n)"
            places = ", ".join(str(i + 1) for i in range(len(cells)))
            query = (
                f"SELECT {shown}, COUNT(*) AS hm_n, {each} AS hm_most {source} "
                f"GROUP BY {places} LIMIT {MOST + 1}"
            )
            found = engine.run(parse_one(query, read="postgres"))
    if found.num_rows > MOST or _most(found) > 1:
        return None
    return _tuples(found, list(coding))


def _most(found: pa.Table) -> int:
    """How many rows the person with the most has."""
    return int(pc.max(found["hm_most"]).as_py() or 0)


def _tuples(found: pa.Table, names: Sequence[str]) -> CodedTuples:
    columns = [found[f"c{i}"] for i in range(len(names))]
    if any(column.null_count for column in columns):
        raise EngineError("The rows changed while they were read; nothing was released.")
    codes = {
        name: np.asarray(column.to_numpy(), dtype=np.int32)
        for name, column in zip(names, columns, strict=True)
    }
    return CodedTuples(codes, np.asarray(found["hm_n"].to_numpy(), dtype=np.int64))


def _coded_values(
    table: Table, column: str, how: Coding, values: pa.ChunkedArray
) -> tuple[pa.Table, int]:
    """The values of a column as the engine spells them, with their codes; and the missing one's."""
    assert table.stored is not None  # noqa: S101 - the caller looked
    # The missing value is coded too, whether some row misses it or not.
    every = pa.chunked_array([*values.chunks, pa.nulls(1, values.type)])
    bound = bind_values(table.stored, table.schema, pa.table({column: every}))
    codes = how.codes(bound).astype(np.int64)
    held = pc.is_valid(every)
    known = pa.table({"value": every, "code": codes}).filter(held)
    return known, int(codes[-1])


def _interval_code(column: str, kind: pa.DataType, cuts: CodeIntervals | None) -> str | None:
    """The code of a number, by comparing it with every bound."""
    if cuts is None or len(cuts.bounds) > _CUTS:
        return None
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
        return None
    cell = f"CAST(r.{quote(column)} AS DOUBLE PRECISION)"
    alone = [f"WHEN {cell} = {_real(number)} THEN {code}" for number, code in cuts.alone.items()]
    below = [
        f"WHEN {cell} < {_real(bound)} THEN {cuts.first + i}" for i, bound in enumerate(cuts.bounds)
    ]
    # As its text: DuckDB trusts a file that says how large its numbers are, and NaN is not said.
    gone = f"WHEN {cell} IS NULL OR LOWER(CAST({cell} AS TEXT)) = 'nan' THEN {cuts.absent}"
    last = cuts.first + len(cuts.bounds)
    return f"CASE {' '.join([gone, *alone, *below])} ELSE {last} END"


def _real(number: float) -> str:
    return f"CAST('{number}' AS DOUBLE PRECISION)"
