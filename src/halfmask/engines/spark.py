"""Spark: the plan runs on the cluster, only aggregated groups come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halfmask.engines import sql as shared
from halfmask.engines.duckdb import refusal
from halfmask.engines.tally import tally as shared_tally
from halfmask.errors import EngineUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from sqlglot.expressions import Expr, Select

    from halfmask.engines.request import Measure, Request
    from halfmask.engines.tally import Tally


class Spark:
    """A Spark session and its tables and views.

    Args:
        given: a session, or a frame (which is then called ``the_table``); None: a session is
            found or started.
        tables: tables in memory to bring along.
    """

    name = "spark"
    dialect = "spark"

    def __init__(self, given: Any = None, *, tables: Mapping[str, pa.Table] | None = None) -> None:
        try:
            from pyspark.sql import SparkSession
        except ImportError:
            raise EngineUnavailableError("Spark", "pip install 'halfmask[spark]'") from None
        frame = given if hasattr(given, "createOrReplaceTempView") else None
        session = frame.sparkSession if frame is not None else given
        self._session: Any = session or SparkSession.builder.getOrCreate()
        self._brought: list[str] = []
        if frame is not None:
            frame.createOrReplaceTempView("the_table")
            self._brought.append("the_table")
        for name, rows in (tables or {}).items():
            self.add(name, rows)

    def __repr__(self) -> str:
        return "Spark()"

    def columns(self, table: str) -> dict[str, pa.DataType] | None:
        """The columns of a table; None where there is no such table."""
        if not self._session.catalog.tableExists(table):
            return None
        found = self._session.table(table).limit(0).toArrow()
        return {f.name: f.type for f in found.schema}

    def run(self, query: Expr) -> pa.Table:
        """Run one query."""
        from pyspark.errors import PySparkException

        try:
            return self._session.sql(self.sql(query)).toArrow()
        except PySparkException as error:
            raise refusal("spark", error) from None

    def sql(self, query: Expr) -> str:
        """The text of a query in this engine's dialect."""
        return query.sql(dialect=self.dialect, pretty=True)

    def add(self, name: str, rows: pa.Table) -> None:
        """Bring a small table along, as a temporary view."""
        import pyarrow as pa

        columns = [
            c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in rows.columns
        ]
        plain = pa.table(columns, names=rows.column_names)
        self._session.createDataFrame(plain).createOrReplaceTempView(name)
        self._brought.append(name)

    def collect(self, request: Request) -> pa.Table:
        """Aggregate the rows into groups."""
        return shared.collect(self, request)

    def queries(self, request: Request) -> list[Select]:
        """The queries behind ``collect``."""
        return shared.collect_queries(self, request)

    def measure(
        self, request: Request, places: pa.Table, measures: tuple[Measure, ...]
    ) -> pa.Table:
        """Measure the rows of each place."""
        return shared.measure(self, request, places, measures)

    def tally(self, request: Tally) -> pa.Table:
        """Count and sum the bounded contributions of people."""
        return shared_tally(self, request)

    def capped(self, value: Expr, count: int) -> Expr:
        """The values where there are fewer than ``count``."""
        from sqlglot import exp

        few = exp.LT(this=exp.Count(this=value.copy()), expression=exp.Literal.number(count))
        return exp.Case().when(few, exp.ArrayAgg(this=value))

    def fingerprint(self, table: str) -> str:
        """A text that changes where the table's rows change."""
        from pyspark.errors import PySparkException

        quoted = "`" + table.replace("`", "``") + "`"
        total = "SUM(CAST(XXHASH64(*) AS DECIMAL(38, 0)))"
        try:
            row = self._session.sql(f"SELECT COUNT(*) AS n, {total} AS t FROM {quoted}").first()  # noqa: S608
        except PySparkException as error:
            raise refusal("spark", error) from None
        return f"spark:{row['n']}-{row['t']}"

    def close(self) -> None:
        """Take away what was brought along; the session is not ours to stop."""
        for name in dict.fromkeys(self._brought):
            self._session.catalog.dropTempView(name)
