"""The columns of rows that stay elsewhere, counted there one by one: what ``describe`` looks at.

Each column is grouped once. Where it has more values than ``VALUES``, the most frequent ones come
back, with how many there are, how many of them one row alone has, and the ends of numbers and
dates: all of these exact, by the engine.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.engines.counting.tuples import MOST, bind_values, group_tuples
from halfmask.engines.request import any_digits, unread_type, unused_name
from halfmask.errors import EngineError, InputError
from halfmask.table.classes import JointCodes, codes_of, tuples_cost
from halfmask.table.files.rows import require_flat
from halfmask.table.proposals.counts import CountedColumn, ManyValues
from halfmask.table.values import is_moment, is_number

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.engines.stored import Storage
    from halfmask.table.proposals.shapes import Facts
    from halfmask.table.schema import Schema

VALUES = 1_000_000  # distinct values of a column that come back at most
_ROWS = "halfmask_rows"


def count_stored(stored: Storage, schema: Schema) -> StoredColumns | None:
    """Every column as the engine counts it; None where values mean something only as they are read.

    Raises:
        InputError: a column has a type that cannot be grouped, or there are no rows.
    """
    kinds = stored.columns()
    if any(kind in (unread_type(), any_digits()) for kind in kinds.values()):
        return None
    require_flat(pa.schema(list(kinds.items())))
    if not stored.count():
        raise InputError("The table has columns but no rows.")
    return StoredColumns(stored, schema)


@dataclass(frozen=True, eq=False)
class StoredColumns:
    """The columns of stored rows, as an engine counts them."""

    stored: Storage
    schema: Schema

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return self.stored.count()

    @cached_property
    def columns(self) -> Mapping[str, CountedColumn]:
        """Every column; one query each, two where it has very many values."""
        with self.stored.open() as (engine, table):
            return {
                name: self._column(engine, table, name, kind)
                for name, kind in self.stored.columns().items()
            }

    def _column(self, engine: Engine, table: str, name: str, kind: pa.DataType) -> CountedColumn:
        found = _frequent_values(engine, table, name)
        many = None
        if found.num_rows > VALUES:
            found = found.slice(0, VALUES)
            many, ends = _all_values(engine, table, name, kind)
            ends = ends.cast(found.schema)
            # The ends may be among the frequent values already.
            unseen = pc.invert(pc.is_in(ends[name], found[name].combine_chunks()))
            found = pa.concat_tables([found, ends.filter(unseen)])
        counts = np.asarray(found.column(1).to_numpy(), dtype=np.int64)
        bound = bind_values(self.stored, self.schema, found.select([name]))
        return CountedColumn(bound.arrow[name], counts, many=many)

    def joint(self, facts: Sequence[Facts], most: float) -> JointCodes | None:
        """The distinct tuples of some columns; None where there are more than ``most``."""
        names = [one.name for one in facts]
        if len(names) < 2:
            return JointCodes({}, None, 0)
        room = int(min(most, MOST))
        if room < 1:
            return None
        with self.stored.open() as (engine, table):
            try:
                tuples, counts = group_tuples(engine, table, names, most=room)
            except InputError:
                return None
        bound = bind_values(self.stored, self.schema, tuples).arrow
        columns = {one.name: self._codes(one, bound[one.name]) for one in facts}
        return JointCodes(columns, counts.astype(np.float64), tuples_cost(len(counts), self.rows))

    def _codes(self, facts: Facts, column: pa.ChunkedArray) -> tuple[Any, int]:
        """What each value of a tuple was understood to be."""
        if facts.many is not None:
            return codes_of(column)
        known = _plain(self.columns[facts.name].entries)
        places = pc.index_in(_plain(column), value_set=known)
        if places.null_count:
            raise EngineError("The rows changed while they were read: ask again.")
        return facts.codes[places.to_numpy()], facts.size

    def pairs(self, first: Facts, second: Facts) -> int:
        """How many combinations of the values of two columns there are."""
        from sqlglot import exp

        from halfmask.engines.sql import table_node

        cells = [exp.column(one.name, quoted=True) for one in (first, second)]
        with self.stored.open() as (engine, table):
            each = exp.select(*cells).from_(table_node(table)).group_by(*cells).subquery("pairs")
            found = engine.run(exp.select(exp.Count(this=exp.Star()).as_("n")).from_(each))
        return int(found["n"][0].as_py())


def list_values(engine: Engine, table: str, column: str, most: int) -> tuple[pa.ChunkedArray, bool]:
    """Distinct values of a column, no more than ``most``, and whether these are all."""
    from sqlglot import exp

    from halfmask.engines.sql import table_node

    name = exp.column(column, quoted=True)
    query = exp.select(name).from_(table_node(table)).group_by(name)
    found = engine.run(query.limit(most + 1))[column]
    return found.slice(0, most), len(found) <= most


def _frequent_values(engine: Engine, table: str, name: str) -> pa.Table:
    """The values of a column with their rows, the most frequent first, one more than ``VALUES``."""
    from sqlglot import exp

    each, rows = _each_value(table, name, exp.column(name, quoted=True))
    cell = exp.column(name, quoted=True)
    frequent = exp.Ordered(this=rows, desc=True, nulls_first=False)
    alike = exp.Ordered(this=cell, desc=False, nulls_first=False)
    return engine.run(exp.select("*").from_(each).order_by(frequent, alike).limit(VALUES + 1))


def _each_value(table: str, name: str, value: exp.Expr) -> tuple[exp.Subquery, exp.Column]:
    """The values of a column under its own name, and what says how many rows have each."""
    from sqlglot import exp

    from halfmask.engines.sql import table_node

    rows = unused_name(_ROWS, [name])
    counted = exp.Count(this=exp.Star()).as_(rows, quoted=True)
    query = exp.select(value.as_(name, quoted=True), counted).from_(table_node(table))
    return query.group_by(value.copy()).subquery("each"), exp.column(rows, quoted=True)


def _known_number(cell: exp.Expr) -> exp.Expr:
    """A number; what is none is missing, by its text, since DuckDB may take none for NaN."""
    from sqlglot import exp

    text = exp.Lower(this=exp.cast(cell.copy(), "text"))
    number = exp.NEQ(this=text, expression=exp.Literal.string("nan"))
    return exp.case().when(number, cell.copy())


def _all_values(
    engine: Engine, table: str, name: str, kind: pa.DataType
) -> tuple[ManyValues, pa.Table]:
    """What there is of a column, counted by the engine, and its smallest and largest value."""
    from sqlglot import exp

    cell, ends = exp.column(name, quoted=True), is_number(kind) or is_moment(kind)
    known = _known_number(cell) if pa.types.is_floating(kind) else cell
    each, rows = _each_value(table, name, known)
    one = exp.case().when(exp.EQ(this=rows.copy(), expression=exp.Literal.number(1)), _number(1))
    asked: list[exp.Expr] = [
        exp.cast(exp.Sum(this=rows), "bigint").as_("everybody"),
        exp.Count(this=cell.copy()).as_("held"),
        exp.Count(this=one).as_("single"),
        exp.cast(exp.Sum(this=_missing_rows(cell, rows)), "bigint").as_("missing"),
    ]
    if ends:
        asked += [exp.Min(this=cell.copy()).as_("low"), exp.Max(this=cell.copy()).as_("high")]
    found = engine.run(exp.select(*asked).from_(each))
    said = found.slice(0, 1).select(["everybody", "held", "single", "missing"]).to_pylist()[0]
    many = ManyValues(said["everybody"], said["missing"] or 0, said["held"], said["single"])
    values = [found["low"], found["high"]] if ends else []
    chunks = [chunk for column in values for chunk in column.chunks]
    column = pa.chunked_array(chunks, found["low"].type if ends else pa.null())
    return many, pa.table({name: column, rows.name: pa.array([1] * len(column), pa.int64())})


def _missing_rows(cell: exp.Expr, rows: exp.Expr) -> exp.Expr:
    from sqlglot import exp

    return exp.case().when(cell.copy().is_(exp.null()), rows.copy())


def _number(number: int) -> exp.Expr:
    from sqlglot import exp

    return exp.Literal.number(number)


def _plain(column: pa.ChunkedArray) -> pa.Array:
    kind = column.type
    whole = column.cast(kind.value_type) if pa.types.is_dictionary(kind) else column
    found = whole.combine_chunks()
    return pa.concat_arrays(found.chunks) if isinstance(found, pa.ChunkedArray) else found
