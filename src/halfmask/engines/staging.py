"""Rows that are written aside, where an engine can count them again, before anybody sees them.

DuckDB writes a file in a folder of its owner alone, PostgreSQL a temporary table, Spark blocks of
its executors; all go when the engine is closed. A killed process leaves DuckDB's file in the
temporary folder, without the record of a release; who makes the next folder removes it.

Labels reach the rows by joins. Each quasi-identifier is joined with a small table of its values;
where labels differ between combinations of values, or some combinations do not leave, the codes of
the values together are joined with a table of the combinations that leave. Where rows of one
combination stand in different classes, they are numbered by a secret order, and each number belongs
to one class: the same rows get the same numbers however often they are asked for. Rows leave in the
order of all published columns: nothing is told by their order. Where they repeat, they are counted
before they are sorted.
"""

# ruff: noqa: S608 - names are quoted, and values travel in tables
from __future__ import annotations

import weakref
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from secrets import token_hex
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.engines.request import quote, unused_name
from halfmask.errors import EngineError, InternalError
from halfmask.ownership import temporary_folder

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from pathlib import Path

    from numpy.typing import NDArray

    from halfmask.engines.stored import Storage
    from halfmask.table.tuples import Tuples

STAGED, PIECES = "hm_staged", "hm_pieces"
BATCH = 1 << 18  # rows that are in memory at once
CELLS, MAP = "hm_cells", "hm_map_"
_WIDEST = 1 << 62  # what one number can tell apart


def reach(point: str) -> None:
    """A point of the way at which a process may be killed: counted, written aside, published."""


@dataclass(frozen=True, slots=True, eq=False)
class ValueLabels:
    """The values of one quasi-identifier and what they become.

    Attributes:
        values: the values as the engine spells them, none missing.
        codes: the number of each value; ``missing`` is that of the missing value, None where no row
            misses it.
        size: how many numbers there are.
        labels: per number its label; None: the value itself leaves, or cells say the label.
    """

    values: pa.Array
    codes: NDArray[np.int64]
    missing: int | None
    size: int
    labels: pa.Array | None = None


@dataclass(frozen=True, slots=True, eq=False)
class Labeling:
    """What the engine is asked to write; it knows no promise.

    Attributes:
        columns: per quasi-identifier its values.
        codes: per combination that leaves, the number of each value, in the order of ``columns``;
            None where all leave and no label depends on several columns.
        cells: the labels that depend on the combination, by column, one per combination; also of
            columns that the rows do not have.
        published: the columns that leave, in order.
        floats: those of them whose values are floating: what is no number is missing.
        repeated: whether far fewer combinations leave than rows.
        ranks: per combination the first and the last of its rows that it is about; None: all.
        salt: what the order of the rows of a combination is made of, beside their other columns.
    """

    columns: Mapping[str, ValueLabels]
    codes: Sequence[NDArray[np.int64]] | None
    cells: Mapping[str, pa.Array]
    published: tuple[str, ...]
    floats: frozenset[str]
    repeated: bool = True
    ranks: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    salt: str = field(default_factory=lambda: token_hex(16), repr=False)

    def tables(self) -> dict[str, pa.Table]:
        """The tables that the joins need, by name."""
        found = {}
        for place, one in enumerate(self.columns.values()):
            columns = {"value": one.values, "code": pa.array(one.codes)}
            if one.labels is not None:
                columns["label"] = one.labels.take(pa.array(one.codes))
            found[f"{MAP}{place}"] = pa.table(columns)
        if self.codes is not None:
            keys = [
                sum((self.codes[i] * factor for i, factor in group), np.int64(0))
                for group in self._keys()
            ]
            labels = {f"label_{i}": one for i, one in enumerate(self.cells.values())}
            if self.ranks is not None:
                labels |= {"low": pa.array(self.ranks[0]), "high": pa.array(self.ranks[1])}
            found[CELLS] = pa.table({f"key_{i}": k for i, k in enumerate(keys)} | labels)
        return found

    def groups(self, rows: str) -> str:
        """The rows of a query, grouped, with how many there are of each, in order."""
        every = ", ".join(map(quote, self.published))
        places = self.places
        return (
            f"SELECT {every}, COUNT(*) AS {self.unused('hm_n')} FROM ({rows}) t "
            f"GROUP BY {places} ORDER BY {places}"
        )

    def unused(self, name: str) -> str:
        """A name for a helper beside the published columns."""
        return unused_name(name, self.published)

    @property
    def places(self) -> str:
        """All published columns by their places."""
        return ", ".join(str(i + 1) for i in range(len(self.published)))

    def words(self, name: str) -> pa.Array | None:
        """What a published column can hold; None where only the rows know."""
        if name in self.cells:
            return self.cells[name]
        own = self.columns.get(name)
        return None if own is None else own.values if own.labels is None else own.labels

    def rows(self, table: str) -> str:
        """The rows with their labels."""
        names, cells = list(self.columns), list(self.cells)
        shown = []
        for name in self.published:
            place = names.index(name) if name in names else None
            own = None if place is None else self.columns[name]
            if name in self.cells:
                cell = f"c.label_{cells.index(name)}"
            elif own is not None and own.labels is not None:
                cell = self._label(name, f"m{place}.label", own)
            else:
                cell = self._plain(name)
            shown.append(f"{cell} AS {quote(name)}")
        joins = [
            f"LEFT JOIN {MAP}{i} m{i} ON r.{quote(name)} = m{i}.value"
            for i, name in enumerate(names)
            if self.codes is not None or self.columns[name].labels is not None
        ]
        source = f"{quote(table)} r {' '.join(joins)}"
        if self.codes is None:
            return f"SELECT {', '.join(shown)} FROM {source}"
        keys = [
            " + ".join(f"{self._code(names[i], i)} * CAST({f} AS BIGINT)" for i, f in group)
            for group in self._keys()
        ]
        same = [f"c.key_{k} = {key}" for k, key in enumerate(keys)]
        if self.ranks is not None:
            source = f"({self._number_repeats(source, keys)}) r"
            named = (self.unused(f"hm_key_{k}") for k in range(len(keys)))
            same = [f"c.key_{k} = r.{name}" for k, name in enumerate(named)]
            same.append(f"r.{self.unused('hm_rank')} BETWEEN c.low AND c.high")
        return f"SELECT {', '.join(shown)} FROM {source} JOIN {CELLS} c ON {' AND '.join(same)}"

    def _number_repeats(self, source: str, keys: Sequence[str]) -> str:
        """The rows with the number that each has among those of its combination."""
        own = {*self.columns, *self.cells}
        free = [name for name in self.published if name not in own]
        texts = [f"CAST({self._plain(name)} AS TEXT)" for name in free]
        # With their lengths: rows that differ must not tie, or engines number them anew each time.
        cells = [f"COALESCE(CAST(LENGTH({t}) AS TEXT) || ':' || {t}, '-')" for t in texts]
        drawn = f"MD5({' || '.join([repr(self.salt), *cells])})"
        numbered = f"ROW_NUMBER() OVER (PARTITION BY {', '.join(keys)} ORDER BY {drawn})"
        named = [f"{key} AS {self.unused(f'hm_key_{k}')}" for k, key in enumerate(keys)]
        named.append(f"{numbered} AS {self.unused('hm_rank')}")
        kept = [f"r.{quote(name)}" for name in self.published if name not in self.cells]
        return f"SELECT {', '.join([*kept, *named])} FROM {source}"

    def _keys(self) -> list[list[tuple[int, int]]]:
        """Columns with a factor each, in groups whose codes together are one number."""
        groups: list[list[tuple[int, int]]] = [[]]
        span = 1
        for place, one in enumerate(self.columns.values()):
            if span * max(one.size, 1) >= _WIDEST:
                groups.append([])
                span = 1
            groups[-1].append((place, span))
            span *= max(one.size, 1)
        return groups

    def _code(self, name: str, place: int) -> str:
        missing = self.columns[name].missing
        number = "NULL" if missing is None else str(missing)
        return f"CASE WHEN r.{quote(name)} IS NULL THEN {number} ELSE m{place}.code END"

    def _label(self, name: str, label: str, own: ValueLabels) -> str:
        text = None
        if own.missing is not None and own.labels is not None:
            text = own.labels[own.missing].as_py()
        word = "NULL" if text is None else "'" + text.replace("'", "''") + "'"
        return f"CASE WHEN r.{quote(name)} IS NULL THEN {word} ELSE {label} END"

    def _plain(self, name: str) -> str:
        cell = f"r.{quote(name)}"
        if name not in self.floats:
            return cell
        # By its text: DuckDB takes none for NaN where a file says how large its numbers are.
        number = f"CASE WHEN LOWER(CAST({cell} AS TEXT)) = 'nan' THEN NULL ELSE {cell} END"
        return f"{number} + CAST(0 AS REAL)"  # and zero has one sign


def label_columns(
    raw: pa.ChunkedArray, codes: NDArray[np.int32], size: int, labels: pa.Array | None
) -> ValueLabels:
    """The values of a column as they were counted, with the number that each of them got."""
    if pa.types.is_dictionary(raw.type):
        raw = raw.cast(raw.type.value_type)
    pairs = pa.table({"value": raw, "code": codes.astype(np.int64)})
    seen = pairs.group_by(["value", "code"]).aggregate([])
    gone = pc.is_null(seen["value"])
    missing = seen.filter(gone)["code"].to_pylist()
    known = seen.filter(pc.invert(gone))
    values = known["value"].combine_chunks()
    values = pa.concat_arrays(values.chunks) if isinstance(values, pa.ChunkedArray) else values
    numbers = np.asarray(known["code"].to_numpy(), dtype=np.int64)
    return ValueLabels(values, numbers, missing[0] if missing else None, size, labels)


def bring_labels(engine: Any, table: str, labeling: Labeling) -> None:
    """Have an engine hold the tables that the joins need, with the types of the rows' columns."""
    like = dict(_like(labeling))
    for name, rows in labeling.tables().items():
        engine.bring(name, rows, like=(table, like.get(name)))


def first_of_each(codes: Sequence[NDArray[np.int64]]) -> NDArray[np.int64]:
    """The first entry of each combination of codes."""
    names = [str(i) for i in range(len(codes))]
    rows = pa.table([*codes, np.arange(len(codes[0]))], names=[*names, "place"])
    first = rows.group_by(names).aggregate([("place", "min")])
    return np.asarray(first["place_min"].to_numpy(), dtype=np.int64)


class StagedRows:
    """Rows that were written and not yet published; ``close`` lets go of them."""

    def __init__(
        self, engine: Any, held: ExitStack, table: str, address: str | None, labeling: Labeling
    ) -> None:
        self._engine = engine
        self._table = table
        self._labeling = labeling
        self.address = address
        self.engine: str = engine.name
        self.groups: tuple[pa.Table, Any] | None = None  # what the door counted of them
        self._finalizer = weakref.finalize(self, held.close)

    def __repr__(self) -> str:
        return f"StagedRows({self.engine})"

    @property
    def rows(self) -> int:
        """How many rows the door counted."""
        return 0 if self.groups is None else int(self.groups[1].sum())

    @property
    def connection(self) -> Any:
        """The engine that holds the rows, for who publishes them where they are."""
        self._require_open()
        return self._engine

    def count(self, columns: Sequence[str], table: str = STAGED) -> tuple[pa.Table, Any]:
        """The combinations of ``columns`` that the written rows hold, and how many rows each."""
        from sqlglot import exp

        from halfmask.engines.sql import table_node

        self._require_open()
        names = [exp.column(name, quoted=True) for name in columns]
        rows = unused_name("hm_n", columns)
        counted = exp.Count(this=exp.Star()).as_(rows)
        query = exp.select(*names, counted).from_(table_node(table))
        found = self._engine.run(query.group_by(*names) if names else query)
        return found.drop_columns([rows]), found[rows].to_numpy()

    def distinct(self, columns: Sequence[str]) -> dict[str, int]:
        """How many values the written rows hold in each column, the missing one among them."""
        from sqlglot import exp

        from halfmask.engines.sql import table_node

        self._require_open()
        if not columns:
            return {}
        asked: list[exp.Expr] = [exp.Count(this=exp.Star()).as_("n")]
        for i, name in enumerate(columns):
            cell = exp.column(name, quoted=True)
            asked.append(exp.Count(this=exp.Distinct(expressions=[cell.copy()])).as_(f"held_{i}"))
            asked.append(exp.Count(this=cell).as_(f"known_{i}"))
        found = self._engine.run(exp.select(*asked).from_(table_node(STAGED))).to_pylist()[0]
        return {
            name: int(found[f"held_{i}"]) + (found[f"known_{i}"] < found["n"])
            for i, name in enumerate(columns)
        }

    def changed_classes(self, labels: Sequence[str], kept: Sequence[str]) -> int:
        """How many classes were written with other values of ``kept`` than their rows have.

        Per class and column, hashes of all values are added up, of what was written and of the
        rows with their labels.
        """
        from sqlglot import parse_one

        self._require_open()
        cells = (self._engine.hashed.format(f"CAST({quote(c)} AS TEXT)") for c in kept)
        shown = ", ".join(
            [*map(quote, labels), *(f"SUM({c}) AS s{i}" for i, c in enumerate(cells))]
        )
        places = ", ".join(str(i + 1) for i in range(len(labels)))
        written, source = (
            f"SELECT {shown} FROM {rows} t GROUP BY {places}"
            for rows in (STAGED, f"({self._labeling.rows(self._table)})")
        )
        query = f"SELECT COUNT(*) AS n FROM ({written} EXCEPT {source}) t"
        return int(self._engine.run(parse_one(query, read="postgres"))["n"][0].as_py())

    def source_rows(self) -> int:
        """How many rows there are now where they come from."""
        from sqlglot import exp

        from halfmask.engines.sql import table_node

        self._require_open()
        counted = exp.Count(this=exp.Star()).as_("n")
        found = self._engine.run(exp.select(counted).from_(table_node(self._table)))
        return int(found["n"][0].as_py())

    def batches(self) -> pa.RecordBatchReader:
        """The written rows, some at a time."""
        self._require_open()
        return self._engine.stream(BATCH)

    @property
    def writes_pieces(self) -> bool:
        """Whether the engine writes files itself, with several hands."""
        return hasattr(self._engine, "write_pieces")

    def write_pieces(self, folder: Path, columns: Sequence[str]) -> tuple[pa.Table, Any]:
        """Have the engine write Parquet files, and count the rows in these."""
        self._require_open()
        self._engine.write_pieces(PIECES, folder)
        return self.count(columns, PIECES)

    def read(self) -> pa.Table:
        """All written rows in memory."""
        return self.batches().read_all()

    def close(self) -> None:
        """Let go of the rows."""
        self._finalizer()

    def _require_open(self) -> None:
        if not self._finalizer.alive:
            raise EngineError("The rows of this release were let go: anonymize the table again.")


def stage_rows(stored: Storage, labeling: Labeling) -> StagedRows:
    """Have the engine that is held over the rows write them with their labels, seen by nobody.

    Raises:
        EngineError: it cannot, for lack of room or of rights.
    """
    held = stored.held
    with stored.open() as opened:
        engine: Any = opened[0]
        table = opened[1]
        bring_labels(engine, table, labeling)
        folder = held.enter_context(temporary_folder())
        engine.write_rows(STAGED, labeling, table, folder)
    reach("written aside")
    stored.let_go()
    address = stored.place if stored.engine == "postgres" else None
    return StagedRows(engine, held.pop_all(), table, address, labeling)


def _like(labeling: Labeling) -> Iterator[tuple[str, str]]:
    """Which table of values holds values of which column."""
    for place, name in enumerate(labeling.columns):
        yield f"{MAP}{place}", quote(name)


@contextmanager
def join_figures(tuples: Tuples, figures: Mapping[str, pa.Array]) -> Iterator[StagedRows]:
    """Every row where it is, with all its columns and the figures of its tuple behind them.

    For whoever holds the table: nothing here is a release.

    Args:
        tuples: distinct tuples that an engine counted, whose raw values say which rows they are.
        figures: one for each tuple, by name.

    Raises:
        EngineError: rows changed since they were counted.
    """
    stored, origin, raw = tuples.source, tuples.origin, tuples.raw
    if stored is None or origin is None or raw is None:
        raise InternalError("Figures are joined with rows that stay elsewhere.")
    rows: Any = stored
    kinds = rows.columns()
    columns, codes = {}, []
    for name in raw.column_names:
        encoded = tuples.table.encode(name)
        columns[name] = label_columns(raw[name], encoded.codes, len(encoded.values), None)
        codes.append(encoded.codes.astype(np.int64))
    first = first_of_each(codes)  # values that are spelled in several ways are one
    labeling = Labeling(
        columns,
        [one[first] for one in codes],
        {name: one.take(pa.array(first)) for name, one in figures.items()},
        (*kinds, *figures),
        frozenset(name for name in kinds if pa.types.is_floating(kinds[name])),
        repeated=False,
    )
    with ExitStack() as held:
        held.enter_context(rows.hold())
        held.callback(rows.let_go)
        staged = stage_rows(rows, labeling)
    try:
        _, (written,) = staged.count(())
        if written != tuples.rows:
            raise EngineError("The rows changed while they were read; nothing was written.")
        yield staged
    finally:
        staged.close()
