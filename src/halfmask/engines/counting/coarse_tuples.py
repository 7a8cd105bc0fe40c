"""Rows whose distinct tuples do not fit: some columns are counted at a level of their hierarchy.

The engine puts one value in the place of all values that share a label at that level, the floor.
What comes back are fewer tuples, of which everything is known from the floor on and nothing below.
Columns are raised step by step, each time the one that loses least for the detail it gives away,
until the tuples fit. Only hierarchies whose labels do not follow the values of rows are raised.
"""

# ruff: noqa: S608 - names are quoted, and values travel in tables
from __future__ import annotations

import math
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.engines.counting.columns import VALUES
from halfmask.engines.counting.tuples import bind_tuples, bind_values, counted_schema
from halfmask.engines.request import quote, unused_name
from halfmask.engines.staging import bring_labels
from halfmask.errors import EngineError, InputError
from halfmask.table.hierarchies.builders import follows_values
from halfmask.table.table import Encoded
from halfmask.table.tuples import Floor

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from numpy.typing import NDArray
    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.engines.staging import Labeling
    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table
    from halfmask.table.tuples import Tuples

_JOINED = "hm_floor_"
_KEPT = "hm_tuples_{}"
_ROWS = "hm_n"


@dataclass(frozen=True, slots=True, eq=False)
class _CoarserColumn:
    """A column that can be counted at a coarser level.

    Attributes:
        name: of the column.
        values: all its values as the engine spells them; ``codes`` their codes.
        encoded: the values in order.
        hierarchy: their labels.
        weight: how much the column counts.
    """

    name: str
    values: pa.ChunkedArray
    codes: NDArray[np.int32]
    encoded: pa.Array
    hierarchy: Hierarchy
    weight: float

    def first_alike(self, level: int) -> NDArray[np.int64]:
        """Per value, the first of those that share its label at ``level``."""
        _, first, place = np.unique(
            self.hierarchy.maps[level], return_index=True, return_inverse=True
        )
        return np.asarray(first[place.reshape(-1)], dtype=np.int64)

    def next(self, level: int) -> tuple[float, int]:
        """What the best higher level loses for each halving of the labels, and which it is.

        A level may join nothing, or little, and the one above it much: all higher ones are looked
        at. Infinite where none joins anything.
        """
        labels, found = self.hierarchy.labels, (math.inf, level)
        for higher in range(level + 1, len(labels)):
            bits = math.log2(len(labels[level]) / len(labels[higher]))
            if bits:
                found = min(found, ((self._loss_at(higher) - self._loss_at(level)) / bits, higher))
        return found

    def _loss_at(self, level: int) -> float:
        """The loss of the column at a level, each value counted once."""
        leaves = self.hierarchy.leaves[level][self.hierarchy.maps[level]]
        return self.weight * float(leaves.mean() - 1) / max(self.hierarchy.size - 1, 1)

    def places(self) -> tuple[pa.Table, list[int | None]]:
        """Per value and level the code of what stands for it; and per level, the missing one's."""
        levels = range(1, self.hierarchy.height + 1)
        codes = {f"at_{one}": self.first_alike(one)[self.codes] for one in levels}
        known = pc.is_valid(self.values)
        table = pa.table({"value": self.values, **codes})
        gone = table.filter(pc.invert(known))
        missing = [gone[name][0].as_py() if gone.num_rows else None for name in codes]
        return table.filter(known), [None, *missing]


def count_coarser(
    table: Table,
    columns: Sequence[str],
    most: int,
    *,
    staying: Labeling | None = None,
    others: int = 0,
    raised: bool = True,
) -> Tuples:
    """The distinct tuples of ``columns`` at the lowest levels at which at most ``most`` are left.

    Args:
        table: the rows.
        columns: which columns are counted.
        most: how many distinct tuples may come back.
        staying: the rows whose values decide the levels; None: all.
        others: how many rows do not stay: what they hold decides nothing.
        raised: whether levels may be raised at all.

    Raises:
        InputError: no column that can be raised makes the tuples few enough.
        EngineError: rows changed while they were counted.
    """
    stored: Any = table.stored
    with stored.open() as (engine, name):
        whole = source = f"{quote(name)} r"
        if staying is not None:
            bring_labels(engine, name, staying)
            source = f"({staying.rows(name)}) r"
        ladders: list[_CoarserColumn] = []
        missing: dict[str, list[int | None]] = {}
        chain: list[dict[str, int]] = [{}]

        def tuples(step: int, rows: str, limit: int) -> exp.Expr:
            cells, joins = _cells(ladders, missing, chain[step], columns)
            return _distinct_query(cells, columns, f"{rows} {joins}", limit)

        def fits(step: int) -> bool:
            found: int = engine.keep(_KEPT.format(step), tuples(step, source, most))
            return found <= most

        high = 0
        if not fits(0):
            engine.forget(_KEPT.format(0))
            ladders += _ladders(table, engine, source) if raised else []
            for place, one in enumerate(ladders):
                places, missing[one.name] = one.places()
                engine.bring(f"{_JOINED}{place}", places, like=(name, quote(one.name)))
            chain += _chain(ladders) if ladders else []
            high = len(chain) - 1
            if not high or not fits(high):
                raise _too_many(most, table.schema, ladders, raised=raised)
            high = _first_that_fits(engine, high, fits)
        if staying is not None:  # what the others hold comes over beside these
            engine.forget(_KEPT.format(high))
            engine.keep(_KEPT.format(high), tuples(high, whole, most + others))
        found = engine.run(_in_order(_KEPT.format(high), len(columns)))
        engine.forget(_KEPT.format(high))
    if found.num_rows > most + others:
        raise EngineError("The rows changed while they were read; nothing was released.")
    floors = chain[high]
    return _bound(table, [one for one in ladders if one.name in floors], floors, found, staying)


def _first_that_fits(engine: Any, high: int, fits: Callable[[int], bool]) -> int:
    """The first step whose tuples are few enough, where those of ``high`` are; these are kept."""
    # Each step is coarser than the one before, so it is found by halving.
    low = 0
    while high - low > 1:
        middle = (low + high) // 2
        if fits(middle):
            engine.forget(_KEPT.format(high))
            high = middle
        else:
            engine.forget(_KEPT.format(middle))
            low = middle
    return high


def _ladders(table: Table, engine: Engine, source: str) -> list[_CoarserColumn]:
    """The quasi-identifiers that can be counted at a coarser level."""
    from sqlglot import parse_one

    stored, schema = table.stored, table.schema
    assert stored is not None  # noqa: S101 - an engine counts them
    kinds, out = stored.columns(), []
    for name in schema.quasi:
        column = schema.columns[name]
        if follows_values(column.hierarchy, kinds[name]):
            continue
        query = f"SELECT r.{quote(name)} AS hm_value FROM {source} GROUP BY 1 LIMIT {VALUES + 1}"
        values = engine.run(parse_one(query, read="postgres"))["hm_value"]
        if len(values) > VALUES:
            continue
        bound = bind_values(stored, schema, pa.table({name: values}))
        encoded = bound.encode(name)
        out.append(
            _CoarserColumn(
                name, values, encoded.codes, encoded.values, bound.hierarchy(name), column.weight
            )
        )
    return out


def _chain(ladders: Sequence[_CoarserColumn]) -> list[dict[str, int]]:
    """The levels of the columns that are raised, one more in each step."""
    at = dict.fromkeys((one.name for one in ladders), 0)
    chain: list[dict[str, int]] = []
    while True:
        price, level, name = min((*one.next(at[one.name]), one.name) for one in ladders)
        if math.isinf(price):
            return chain
        at[name] = level
        chain.append({name: level for name, level in at.items() if level})


def _cells(
    ladders: Sequence[_CoarserColumn],
    missing: Mapping[str, Sequence[int | None]],
    floors: Mapping[str, int],
    columns: Sequence[str],
) -> tuple[list[str], str]:
    """What tuples are made of, and the joins that give it."""
    place = {one.name: i for i, one in enumerate(ladders)}
    cells, joins = [], []
    for name in columns:
        cell = f"r.{quote(name)}"
        if name in floors:
            own, none = place[name], missing[name][floors[name]]
            joins.append(f"LEFT JOIN {_JOINED}{own} f{own} ON {cell} = f{own}.value")
            code = f"CAST({'NULL' if none is None else none} AS BIGINT)"
            cell = f"CASE WHEN {cell} IS NULL THEN {code} ELSE f{own}.at_{floors[name]} END"
        cells.append(cell)
    return cells, " ".join(joins)


def _distinct_query(
    cells: Sequence[str], columns: Sequence[str], source: str, most: int
) -> exp.Expr:
    """The distinct tuples, and how many rows hold each in the last column."""
    from sqlglot import parse_one

    named = ", ".join(f"{c} AS {quote(n)}" for c, n in zip(cells, columns, strict=True))
    rows = unused_name(_ROWS, columns)
    places = ", ".join(str(i + 1) for i in range(len(cells)))
    # One more than may be, which tells that there are too many.
    query = f"SELECT {named}, COUNT(*) AS {rows} FROM {source} GROUP BY {places} LIMIT {most + 1}"
    return parse_one(query, read="postgres")


def _in_order(name: str, columns: int) -> exp.Expr:
    """What was kept, in the order of its columns."""
    from sqlglot import parse_one

    places = ", ".join(str(i + 1) for i in range(columns))
    return parse_one(f"SELECT * FROM {name} ORDER BY {places}", read="postgres")


def _bound(
    table: Table,
    ladders: Sequence[_CoarserColumn],
    levels: Mapping[str, int],
    found: pa.Table,
    staying: Labeling | None,
) -> Tuples:
    """The tuples with values that stand for others, and with the hierarchies of all values."""
    counts = np.asarray(found.column(found.num_columns - 1).to_numpy(), dtype=np.int64)
    tuples = found.drop_columns([found.column_names[-1]])
    codes, floors, stand = {}, {}, {}
    for one in ladders:
        held, at = tuples[one.name], tuples.column_names.index(one.name)
        if staying is None and held.null_count:
            raise EngineError("The rows changed while they were read; nothing was released.")
        # Values that only rows hold which do not stay have no code; these rows go before all else.
        own = np.asarray(pc.fill_null(held, 0).to_numpy(), dtype=np.int64)
        first = one.first_alike(levels[one.name])
        stand[one.name], place = np.unique(first, return_inverse=True)
        codes[one.name] = place.astype(np.int32)[own]
        floors[one.name] = Floor(
            levels[one.name], one.values, place.reshape(-1).astype(np.int32)[one.codes]
        )
        # Backwards, so that the first spelling of each value is the one that stays.
        spelling = np.zeros(len(one.encoded), dtype=np.int64)
        spelling[one.codes[::-1]] = np.arange(len(one.codes))[::-1]
        shown = one.values.take(pa.array(spelling[own]))
        tuples = tuples.set_column(at, one.name, shown)
    bound = bind_tuples(table, counted_schema(table.schema, tuples.column_names), tuples, counts)
    for one in ladders:
        values = one.encoded.take(pa.array(stand[one.name]))
        hierarchy = one.hierarchy.select(stand[one.name])
        bound.table.bind_codes(one.name, Encoded(values, codes[one.name]), hierarchy)
    return replace(bound, floors=floors)


def _too_many(
    most: int, schema: Schema, ladders: Sequence[_CoarserColumn], *, raised: bool
) -> InputError:
    said = f"The columns form more than {most:,} distinct tuples, too many to hold"
    if schema.person is not None:
        # Two tuples of two people stay two, however coarse they are.
        return InputError(
            f"{said}: people have several rows, so that every person ({schema.person!r}) is "
            "counted apart, and coarser levels help only down to the number of people. Raise "
            "the limit above it, or bring each person into one row first."
        )
    if not raised:
        return InputError(
            f"{said}. Name fewer quasi-identifiers, or generalize one in the source first (years "
            "for days, districts for streets)."
        )
    able = ", ".join(repr(one.name) for one in ladders) or "no column"
    return InputError(
        f"{said}, also where the "
        f"columns that can be generalized before ({able}) are generalized fully. Name fewer "
        "quasi-identifiers, give them hierarchies whose labels do not follow the rows (mask with "
        f"its length, ordered with its order) and at most {VALUES:,} values, or raise the limit."
    )
