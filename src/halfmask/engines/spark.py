"""Spark: the plan runs on the cluster, only aggregated groups come back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from halfmask.engines.request import engine_refusal, unread_type
from halfmask.engines.sql import SqlEngine
from halfmask.errors import EngineUnavailableError

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa
    from sqlglot.expressions import Expr


class Spark(SqlEngine):
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
        self.given = tuple(tables or ())
        if frame is not None:
            frame.createOrReplaceTempView("the_table")
            self._brought.append("the_table")
        for name, rows in (tables or {}).items():
            self.add(name, rows)

    def columns(self, table: str) -> dict[str, pa.DataType] | None:
        """The columns of a table; None where there is no such table."""
        quoted = _quoted(table)
        if not self._session.catalog.tableExists(quoted):
            return None
        rows = self._session.table(quoted).limit(0)
        # Texts that are equal without being the same: groups would be others here than there.
        alike = {f.name for f in rows.schema.fields if "collate" in f.dataType.simpleString()}
        return {f.name: unread_type() if f.name in alike else f.type for f in rows.toArrow().schema}

    def run(self, query: Expr) -> pa.Table:
        """Run one query."""
        from pyspark.errors import PySparkException

        try:
            return self._session.sql(self.sql(query)).toArrow()
        except PySparkException:
            raise engine_refusal("spark") from None

    def sql(self, query: Expr) -> str:
        """The text of a query in this engine's dialect."""
        from sqlglot import exp

        query = query.copy()
        for total in list(query.find_all(exp.Sum)):
            # A sum of whole numbers has 64 bits there, and fails beyond.
            if isinstance(total.parent, exp.Cast) and total.parent.to.sql() == "DECIMAL(38, 0)":
                total.set("this", exp.cast(total.this, "decimal(20, 0)"))
        for match in list(query.find_all(exp.RegexpLike)):
            # Java's $ stands before a last line break too.
            pattern = match.expression.name.removesuffix("$") + "\\z"
            match.set("expression", exp.Literal.string(pattern))
        return super().sql(query)

    def add(self, name: str, rows: pa.Table) -> None:
        """Bring a small table along, as a temporary view."""
        import pyarrow as pa

        columns = [
            c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in rows.columns
        ]
        plain = pa.table(columns, names=rows.column_names)
        self._session.createDataFrame(plain).createOrReplaceTempView(_quoted(name))
        self._brought.append(name)

    def capped(self, value: Expr, count: int) -> Expr:
        """The values where there are fewer than ``count``."""
        from sqlglot import exp

        few = exp.LT(this=exp.Count(this=value.copy()), expression=exp.Literal.number(count))
        return exp.Case().when(few, exp.ArrayAgg(this=value))

    def fingerprint(self, table: str) -> str:
        """A text that changes where the table's rows change."""
        from pyspark.errors import PySparkException

        quoted = _quoted(table)
        total = "SUM(CAST(XXHASH64(*) AS DECIMAL(38, 0)))"
        try:
            row = self._session.sql(f"SELECT COUNT(*) AS n, {total} AS t FROM {quoted}").first()  # noqa: S608
        except PySparkException:
            raise engine_refusal("spark") from None
        return f"spark:{row['n']}-{row['t']}"

    def definition(self, table: str) -> str | None:
        """The SQL of a view; None for a table, and for a view that was made of a frame."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        try:  # the public catalog tells no text of temporary views
            catalog = self._session._jsparkSession.sessionState().catalog()  # noqa: SLF001
            java = self._session._jvm  # noqa: SLF001
            name = java.org.apache.spark.sql.catalyst.TableIdentifier(table)
            text = catalog.getTempViewOrPermanentTableMetadata(name).viewText()
        except (AttributeError, Py4JError):  # a session of Spark Connect, or no such table
            return None
        return str(text.get()) if text.isDefined() else None

    def close(self) -> None:
        """Take away what was brought along; the session is not ours to stop."""
        for name in dict.fromkeys(self._brought):
            self._session.catalog.dropTempView(name)


def _quoted(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
