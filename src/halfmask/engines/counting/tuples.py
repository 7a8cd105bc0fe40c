"""A table as its distinct tuples and how many rows hold each.

Rows in memory are taken as they are. Those that stay elsewhere are grouped there by the one query
that touches rows; only the tuples come back, with sums of sampling weights where there are any.

And back again: tuples become the rows that they stand for inside DuckDB, while a query reads them.
A column is given as it is, or as ranges of possible values from which each row takes one: by a hash
of its place and a seed, so that the choice repeats however the work is divided.
"""

from __future__ import annotations

from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.engines.request import quote, unused_name
from halfmask.errors import InputError, SchemaError
from halfmask.table.columns import require_known
from halfmask.table.demands import narrow_schema, sources, with_policies, without_policies
from halfmask.table.files.rows import normalize, require_flat
from halfmask.table.policies import read_policies
from halfmask.table.read import bind_schema, infer_types
from halfmask.table.tuples import Tuples, all_ones, contiguous
from halfmask.table.values import has_comma
from halfmask.table.weights import LARGEST, WeightTally, check_weights, require_numbers, weights_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from numpy.typing import NDArray
    from sqlglot import exp

    from halfmask.engines.duckdb.engine import DuckDB
    from halfmask.engines.request import Engine
    from halfmask.table.schema import Schema
    from halfmask.table.table import StoredRows, Table


MOST = 50_000_000  # distinct tuples that come back at most
_NAME = "halfmask_rows"


def count_tuples(
    table: Table,
    columns: Callable[[Schema], Sequence[str]],
    optional: Sequence[str] = (),
    *,
    weights: str | None = None,
    most: int = MOST,
) -> Tuples:
    """Take the rows of a table in memory; have an engine count those that stay elsewhere.

    Args:
        table: the rows, wherever they are.
        columns: which columns are counted. People count one by one where their column is among
            them, so that every distinct tuple of a person comes back.
        optional: columns that are counted too where the table has them and they may leave.
        weights: a column whose numbers are added up beside the counts.
        most: distinct tuples that come back at most.
    """
    stored, declared = table.stored, table.schema
    if stored is None:
        known = None if weights is None else weights_of(table, weights)
        return replace(Tuples.of(table), weights=known)

    names = list(dict.fromkeys(columns(declared)))
    with stored.open() as (running, name):
        kinds = stored.columns()
        there = list(kinds)
        held = set(there) - {*names, *declared.private}
        names += [one for one in dict.fromkeys(optional) if one in held]
        if not names:
            raise InputError("The source has none of the columns that are compared: check it.")
        faults = [f for one in sources(declared) for f in one.unknown([*there, *one.names])]
        if faults:
            raise SchemaError(*faults)
        used = counted_schema(declared, names)
        if used.policy_file is not None:  # the demands stand in a file of their own
            names = [one for one in names if one not in used.policy_names or one in there]
        # Else texts that are equal without being the same would be one, and count for more.
        require_flat(pa.schema([(one, kinds[one]) for one in names if one in kinds]))
        sums = [] if weights is None else _weight_sums(stored, declared, (running, name), weights)
        tuples, counts = group_tuples(running, name, names, most=most, more=sums)
    if weights is None:
        return bind_tuples(table, used, tuples, counts)
    tuples, tallied = split_weights(tuples, counts)
    found = bind_tuples(table, used, tuples, counts)
    return replace(found, weights=check_weights(found.table, weights, tallied, found.rows))


def add_policies(table: Table, policies: object) -> Table:
    """The same rows, whose people also demand what ``policies`` say."""
    if table.stored is None:
        return with_policies(table, policies)
    found = read_policies(policies)
    if found is None:
        return table
    schema = replace(table.schema, policies=(*table.schema.policies, found))
    return table.with_schema(schema)


def one_row_each(table: Table) -> bool:
    """Whether no person has two rows, so that rows are people and nobody needs to be named."""
    from sqlglot import exp

    from halfmask.engines.sql import table_node

    person, stored = table.schema.person, table.stored
    if person is None or stored is None:
        return False
    if any(source.people is not None for source in sources(table.schema)):
        return False  # what they demand is looked up by who they are
    with stored.open() as (engine, name):
        cell = exp.column(person, quoted=True)
        people = exp.Count(this=exp.Distinct(expressions=[cell])).as_("people")
        rows = exp.Count(this=exp.Star()).as_("n")
        found = engine.run(exp.select(people, rows).from_(table_node(name)))
    return bool(found["people"][0].as_py() == found["n"][0].as_py())


def _weight_sums(
    stored: StoredRows, schema: Schema, opened: tuple[Engine, str], weights: str
) -> list[exp.Expr]:
    """The aggregates of the weights of a source."""
    comma = has_comma(schema, weights)
    return weight_sums(*opened, weights, written=stored.are_texts, comma=comma)


def counted_schema(schema: Schema, names: Sequence[str]) -> Schema:
    """What the schema says of the columns that are counted; demands are read all or not at all."""
    wanted = {*schema.policy_names, *((schema.person,) if schema.person else ())}
    read = wanted <= set(names)
    used = replace(
        schema if read else without_policies(schema),
        columns={name: column for name, column in schema.columns.items() if name in names},
        person=schema.person if schema.person in names else None,
        household=schema.household if schema.household in names else None,
        weight=schema.weight if schema.weight in names else None,
    )
    return narrow_schema(schema, used, names)


def bind_tuples(
    table: Table, schema: Schema, tuples: pa.Table, counts: NDArray[np.int64]
) -> Tuples:
    """Make a table of distinct tuples of stored rows, with the types that its rows would have.

    Args:
        table: the rows.
        schema: what is said of the columns that were counted.
        tuples: their distinct tuples, as the engine spells them.
        counts: how many rows hold each.
    """
    stored = table.stored
    assert stored is not None  # noqa: S101 - an engine counted them
    found = _bind(stored, schema, tuples)
    return Tuples(
        found,
        counts,
        f"The rows were counted by {stored.engine}: {len(found):,} distinct tuples stand for "
        f"{int(counts.sum()):,} rows. Every figure is counted on all rows.",
        stored.engine,
        tuple(one for one in stored.columns() if one not in tuples.column_names),
        table.schema.private,
        source=stored,
        origin=table,
        raw=tuples,
    )


def _bind(stored: StoredRows, schema: Schema, tuples: pa.Table) -> Table:
    texts = schema.missing or ()
    if stored.are_texts:
        texts = ("",) if schema.missing is None else texts
        tuples = infer_types(normalize(tuples, texts), schema)
    return bind_schema(normalize(tuples, texts), schema, "arrow")


def bind_values(stored: StoredRows, schema: Schema, counted: pa.Table) -> Table:
    """Some columns as they were counted, with the types that their rows would have."""
    return _bind(stored, counted_schema(schema, counted.column_names), counted)


def group_tuples(
    engine: Engine,
    table: str,
    columns: Sequence[str],
    *,
    most: int = MOST,
    more: Sequence[exp.Expr] = (),
) -> tuple[pa.Table, NDArray[np.int64]]:
    """The distinct tuples of ``columns`` in order, and how many rows hold each.

    With ``more``, these aggregates of the rows behind each tuple stand beside the columns.

    In order, because engines group in any, and what is drawn from tuples would not repeat.

    Raises:
        InputError: a column is not there, or there are more distinct tuples than ``most``.
    """
    from sqlglot import exp

    from halfmask.engines.sql import table_node as named

    known = engine.columns(table)
    if known is None:
        raise InputError(f"The source has no table called {table!r}: name one of its tables.")
    require_known(columns, known)
    names = [exp.column(name, quoted=True) for name in columns]
    rows = unused_name(_NAME, columns)
    counted = exp.Count(this=exp.Star()).as_(rows)
    query = exp.select(*names, counted, *more).from_(named(table))
    tuples = query.group_by(*names).limit(most + 1).subquery("tuples")
    found = engine.run(exp.select("*").from_(tuples).order_by(*names))
    if found.num_rows > most:
        raise InputError(
            f"The columns form more than {most:,} distinct tuples, too many to hold. Name fewer "
            "quasi-identifiers, generalize one in the source first (years for days, districts for "
            "streets), or draw people at random and assess them with their share as the fraction: "
            "its population estimates then speak of the whole table."
        )
    counts = np.asarray(found[rows].to_numpy(), dtype=np.int64)
    return found.drop_columns([rows]), counts


_WEIGHED_NAME = "halfmask_weights_"
_WEIGHED = ("sum", "low", "high", "known", "below", "beyond")


def weight_sums(
    engine: Engine, table: str, column: str, *, written: bool = False, comma: bool = False
) -> list[exp.Expr]:
    """What is aggregated beside the number of rows.

    Args:
        engine: who counts.
        table: the table that it counts.
        column: where the weights stand.
        written: whether they are texts of a CSV file.
        comma: whether these have a decimal comma.
    """
    from sqlglot import exp

    known = engine.columns(table) or {}
    require_known([column], known)
    weight: exp.Expr = exp.column(column, quoted=True)
    if written:
        if comma:
            weight = exp.func("REPLACE", exp.func("REPLACE", weight, _text("."), _text("")),
                              _text(","), _text("."))  # fmt: skip
        # Trimmed, because DuckDB would have its CSV reader cast a bare column, which tries nothing.
        weight = exp.TryCast(this=exp.Trim(this=weight), to=exp.DataType.build("double"))
    else:
        require_numbers(column, known[column])
        weight = exp.cast(weight, "double")
    largest = exp.Literal.number(f"{LARGEST:.0f}")
    parts = (
        exp.Sum(this=weight),
        exp.Min(this=weight.copy()),
        exp.Max(this=weight.copy()),
        exp.Count(this=weight.copy()),
        _rows_where(exp.LT(this=weight.copy(), expression=exp.Literal.number(1))),
        _rows_where(exp.GT(this=weight.copy(), expression=largest)),
    )
    names = (unused_name(_WEIGHED_NAME + name, known) for name in _WEIGHED)
    return [part.as_(name) for part, name in zip(parts, names, strict=True)]


def split_weights(found: pa.Table, counts: NDArray[np.int64]) -> tuple[pa.Table, WeightTally]:
    """The tuples without the aggregates of their weights, and these."""
    names = found.column_names[-len(_WEIGHED) :]
    held = {part: _numbers(found[name]) for part, name in zip(_WEIGHED, names, strict=True)}
    tallied = WeightTally(
        held["sum"],
        held["low"],
        held["high"],
        missing=int(counts.sum() - held["known"].sum()),
        beyond=int(held["beyond"].sum()),
        below=int(held["below"].sum()),
    )
    return found.drop_columns(names), tallied


def _numbers(column: pa.ChunkedArray) -> NDArray[np.float64]:
    return np.asarray(column.to_numpy(), dtype=np.float64)


def _rows_where(condition: exp.Expr) -> exp.Expr:
    from sqlglot import exp

    return exp.Count(this=exp.case().when(condition, exp.Literal.number(1)))


def _text(text: str) -> exp.Expr:
    from sqlglot import exp

    return exp.Literal.string(text)


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
    from halfmask.engines.duckdb.engine import DuckDB, connect_within

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
                selected.append(f"possible{i}.value AS {quote(column)}")
            else:
                held[f"c{i}"] = given if which is None else given.take(pa.array(which))
                selected.append(f"e.c{i} AS {quote(column)}")
        engine.add("entries", pa.table(held))
        unfolded = "SELECT *, unnest(range(n)) AS r FROM entries"
        if which is None:
            unfolded = "SELECT *, 0 AS r FROM entries"
        connection.execute(
            f"CREATE TEMPORARY VIEW {quote(name)} AS SELECT {', '.join(selected)} "  # noqa: S608
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
