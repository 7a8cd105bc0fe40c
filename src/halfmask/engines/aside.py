"""Rows that are written aside, where an engine can count them again, before anybody sees them.

DuckDB writes a file in a folder of its owner alone, PostgreSQL a temporary table; both go when the
engine is closed. A process that is killed leaves DuckDB's file behind in the temporary folder: it
holds rows that nobody has checked, and no record of a release.
"""

from __future__ import annotations

import weakref
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any

from halfmask.engines.labeling import quoted
from halfmask.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import ExitStack

    import pyarrow as pa

    from halfmask.engines.labeling import Labeling
    from halfmask.engines.stored import Storage

ASIDE = "hm_aside"
BATCH = 1 << 18  # rows that are in memory at once


def reach(point: str) -> None:
    """A point of the way at which a process may be killed: counted, written aside, published."""


class AsideRows:
    """Rows that were written and not yet published; ``close`` lets go of them."""

    def __init__(self, engine: Any, held: ExitStack, table: str, address: str | None) -> None:
        self._engine = engine
        self._table = table
        self.address = address
        self.engine: str = engine.name
        self._finalizer = weakref.finalize(self, held.close)

    def __repr__(self) -> str:
        return f"AsideRows({self.engine})"

    @property
    def connection(self) -> Any:
        """The engine that holds the rows, for who publishes them where they are."""
        self._require_open()
        return self._engine

    def count(self, columns: Sequence[str]) -> tuple[pa.Table, Any]:
        """The combinations of ``columns`` that the written rows hold, and how many rows each."""
        from sqlglot import exp

        from halfmask.engines.sql import table_node

        self._require_open()
        names = [exp.column(name, quoted=True) for name in columns]
        counted = exp.Count(this=exp.Star()).as_("hm_n")
        query = exp.select(*names, counted).from_(table_node(ASIDE))
        found = self._engine.run(query.group_by(*names) if names else query)
        return found.drop_columns(["hm_n"]), found["hm_n"].to_numpy()

    def distinct(self, column: str) -> int:
        """How many values the written rows hold in a column, the missing one among them."""
        from sqlglot import exp

        from halfmask.engines.sql import table_node

        self._require_open()
        cell = exp.column(column, quoted=True)
        values = exp.Count(this=exp.Distinct(expressions=[cell.copy()])).as_("held")
        rows, known = exp.Count(this=exp.Star()).as_("n"), exp.Count(this=cell).as_("known")
        found = self._engine.run(exp.select(values, rows, known).from_(table_node(ASIDE)))
        held, n, present = (int(found[one][0].as_py()) for one in ("held", "n", "known"))
        return held + (present < n)

    def sums(self, columns: Sequence[str]) -> list[Any]:
        """Per column of the written rows a number that depends on all its values."""
        self._require_open()
        return list(self._engine.sums(ASIDE, columns))

    def source_sums(self, columns: Sequence[str]) -> list[Any]:
        """The same of the rows that they come from."""
        self._require_open()
        return list(self._engine.sums(self._table, columns))

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
        folder = Path(held.enter_context(TemporaryDirectory(prefix="halfmask-")))
        engine.write_rows(ASIDE, labeling.query(table), labeling.published, folder)
    reach("written aside")
    stored.let_go()
    address = stored.place if stored.engine == "postgres" else None
    return AsideRows(engine, held.pop_all(), table, address)


def _like(labeling: Labeling) -> Iterator[tuple[str, str]]:
    """Which table of values holds values of which column."""
    from halfmask.engines.labeling import MAP

    for place, name in enumerate(labeling.columns):
        yield f"{MAP}{place}", quoted(name)
