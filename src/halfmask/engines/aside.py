"""Rows that are written aside, where an engine can count them again, before anybody sees them.

DuckDB writes a file in a folder of its owner alone, PostgreSQL a temporary table, Spark blocks of
its executors; all go when the engine is closed. A killed process leaves DuckDB's file in the
temporary folder, without the record of a release; who makes the next folder removes it.
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any

from halfmask.engines.labeling import quoted
from halfmask.engines.scratch import scratch_folder
from halfmask.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import ExitStack
    from pathlib import Path

    import pyarrow as pa

    from halfmask.engines.labeling import Labeling
    from halfmask.engines.stored import Storage

ASIDE, PIECES = "hm_aside", "hm_pieces"
BATCH = 1 << 18  # rows that are in memory at once


def reach(point: str) -> None:
    """A point of the way at which a process may be killed: counted, written aside, published."""


class AsideRows:
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
        return f"AsideRows({self.engine})"

    @property
    def connection(self) -> Any:
        """The engine that holds the rows, for who publishes them where they are."""
        self._require_open()
        return self._engine

    def count(self, columns: Sequence[str], table: str = ASIDE) -> tuple[pa.Table, Any]:
        """The combinations of ``columns`` that the written rows hold, and how many rows each."""
        from sqlglot import exp

        from halfmask.engines.sql import table_node

        self._require_open()
        names = [exp.column(name, quoted=True) for name in columns]
        counted = exp.Count(this=exp.Star()).as_("hm_n")
        query = exp.select(*names, counted).from_(table_node(table))
        found = self._engine.run(query.group_by(*names) if names else query)
        return found.drop_columns(["hm_n"]), found["hm_n"].to_numpy()

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
        found = self._engine.run(exp.select(*asked).from_(table_node(ASIDE))).to_pylist()[0]
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
        cells = (self._engine.hashed.format(f"CAST({quoted(c)} AS TEXT)") for c in kept)
        shown = ", ".join(
            [*map(quoted, labels), *(f"SUM({c}) AS s{i}" for i, c in enumerate(cells))]
        )
        places = ", ".join(str(i + 1) for i in range(len(labels)))
        written, source = (
            f"SELECT {shown} FROM {rows} t GROUP BY {places}"  # noqa: S608 - names are quoted
            for rows in (ASIDE, f"({self._labeling.rows(self._table)})")
        )
        query = f"SELECT COUNT(*) AS n FROM ({written} EXCEPT {source}) t"  # noqa: S608
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


def write_aside(stored: Storage, labeling: Labeling) -> AsideRows:
    """Have the engine that is held over the rows write them with their labels, seen by nobody.

    Raises:
        EngineError: it cannot, for lack of room or of rights.
    """
    held = stored.held
    with stored.open() as opened:
        engine: Any = opened[0]
        table = opened[1]
        for name, rows in labeling.tables().items():
            engine.bring(name, rows, like=(table, dict(_like(labeling)).get(name)))
        folder = held.enter_context(scratch_folder())
        engine.write_rows(ASIDE, labeling.query(table), labeling.published, folder)
    reach("written aside")
    stored.let_go()
    address = stored.place if stored.engine == "postgres" else None
    return AsideRows(engine, held.pop_all(), table, address, labeling)


def _like(labeling: Labeling) -> Iterator[tuple[str, str]]:
    """Which table of values holds values of which column."""
    from halfmask.engines.labeling import MAP

    for place, name in enumerate(labeling.columns):
        yield f"{MAP}{place}", quoted(name)
