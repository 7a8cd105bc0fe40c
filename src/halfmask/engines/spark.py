"""Spark: the plan runs on the cluster, only aggregated groups come back.

Rows of a Spark table stay there. What leaves is written aside as a checkpoint: blocks that the
executors keep, which are not computed again from rows that may have changed. Where an executor is
lost with its blocks, what is asked next fails, and nothing is released; with a checkpoint folder
(``SparkContext.setCheckpointDir``) blocks outlast their executor. Only SQL runs on the workers,
which need no Python.
"""

from __future__ import annotations

import glob
import os
import re
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from secrets import token_hex
from typing import TYPE_CHECKING, Any

from halfmask.engines.request import MARK, RowOrigin, bare_type, engine_refusal, unread_type
from halfmask.engines.sources import is_pieces, list_pieces, partition_columns
from halfmask.engines.sql import SqlEngine
from halfmask.engines.stored import Storage
from halfmask.errors import EngineError, EngineUnavailableError, HalfmaskError, InputError
from halfmask.table.files.rows import incoming_types, normalize
from halfmask.table.read import bind_schema
from halfmask.table.values import is_text

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping

    import pyarrow as pa
    from sqlglot.expressions import Expr

    from halfmask.engines.staging import Labeling
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table


class Spark(SqlEngine):
    """A Spark session and its tables and views.

    Args:
        given: a session, or a frame (which is then called ``the_table``); None: a session is
            found or started.
        tables: tables in memory to bring along.
    """

    name = "spark"
    dialect = "spark"
    # Hashes have 64 bits with a sign, and their sums would overflow.
    hashed = "CAST(XXHASH64({}) AS DECIMAL(38, 0))"

    def __init__(self, given: Any = None, *, tables: Mapping[str, pa.Table] | None = None) -> None:
        frame = given if hasattr(given, "createOrReplaceTempView") else None
        session = frame.sparkSession if frame is not None else given
        self._session: Any = session or _find_session()
        self._brought: list[str] = []
        # What we bring has names of our own making, since a session may be used by several at once.
        self._views: dict[str, str] = {}
        self.given = tuple(tables or ())
        if frame is not None:
            frame.createOrReplaceTempView("the_table")
            self._brought.append("the_table")
        for name, rows in (tables or {}).items():
            self.add(name, rows)

    def columns(self, table: str) -> dict[str, pa.DataType] | None:
        """The columns of a table; None where there is no such table."""
        from pyspark.errors import PySparkException

        quoted = _quote(self._views.get(table, table))
        try:
            if not self._session.catalog.tableExists(quoted):
                return None
            rows = self._session.table(quoted).limit(0)
            # Texts that are equal without being the same: groups would be others here than there.
            alike = {f.name for f in rows.schema.fields if "collate" in f.dataType.simpleString()}
            found = rows.toArrow().schema
        except PySparkException:
            raise engine_refusal("spark") from None
        return {f.name: unread_type() if f.name in alike else f.type for f in found}

    def run(self, query: Expr) -> pa.Table:
        """Run one query."""
        text = self.sql(query)
        try:
            return self._session.sql(text).toArrow()
        except Exception:  # noqa: BLE001 - Spark's errors are many, also Java's, and quote cells
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
        for table in list(query.find_all(exp.Table)):
            if not table.db and table.name in self._views:
                table.set("this", exp.to_identifier(self._views[table.name], quoted=True))
        return super().sql(query)

    def add(self, name: str, rows: pa.Table) -> None:
        """Bring a small table along, as a temporary view."""
        import pyarrow as pa

        columns = [
            c.cast(c.type.value_type) if pa.types.is_dictionary(c.type) else c for c in rows.columns
        ]
        plain = pa.table(columns, names=rows.column_names)
        self._session.createDataFrame(plain).createOrReplaceTempView(_quote(name))
        self._brought.append(name)

    def begin(self) -> None:
        """Nothing: Spark holds no state of tables; the door notices rows that change."""

    def settle(self) -> None:
        """Nothing either."""

    def show(self, name: str, frame: Any) -> None:
        """Make a frame known to queries under ``name``, in this engine alone."""
        view = f"hm_{token_hex(8)}"
        frame.createOrReplaceTempView(view)
        self._brought.append(view)
        self._views[name] = view

    def bring(self, name: str, rows: pa.Table, like: tuple[str, str | None]) -> None:  # noqa: ARG002
        """Bring a table along to join with; Spark compares numbers of different widths."""
        self.add(view := f"hm_{token_hex(8)}", rows)
        self._views[name] = view

    def write_rows(self, name: str, labeling: Labeling, table: str, folder: Path) -> None:  # noqa: ARG002
        """Write the rows with their labels as blocks of the executors.

        Raises:
            EngineError: they cannot be written.
        """
        from sqlglot import parse_one

        query = f"{labeling.rows(table)} ORDER BY {labeling.places}"
        if labeling.repeated:
            query = labeling.groups(labeling.rows(table))
        text = self.sql(parse_one(query, read="postgres"))
        if labeling.repeated:
            names = ", ".join(f"g.{_quote(one)}" for one in labeling.published)
            count = f"g.{labeling.unused('hm_n')}"
            each = f"LATERAL VIEW EXPLODE(SEQUENCE(CAST(1 AS BIGINT), {count})) e AS hm_i"
            text = f"SELECT {names} FROM ({text}) g {each}"  # noqa: S608
        try:
            rows = self._session.sql(text)
            # Written now: a frame is computed anew for each use, from rows that may have changed.
            self.show(name, self._written(rows))
        except Exception as error:  # noqa: BLE001 - Spark's errors are many, and quote cells
            raise _unwritten(error) from None

    def keep(self, name: str, query: Expr) -> int:
        """Keep what a query gives as blocks of the executors; how many rows it gave."""
        text = self.sql(query)
        try:
            frame = self._written(self._session.sql(text))
            self.show(name, frame)
            return int(frame.count())
        except Exception:  # noqa: BLE001
            raise engine_refusal("spark") from None

    def forget(self, name: str) -> None:
        """Let go of what was kept."""
        self._session.catalog.dropTempView(self._views.pop(name))

    def _written(self, frame: Any) -> Any:
        """The rows of a frame as they are now."""
        return frame.checkpoint() if self._keeps_blocks() else frame.localCheckpoint()

    def _keeps_blocks(self) -> bool:
        """Whether the session has a folder whose blocks outlast an executor."""
        try:
            return self._session.sparkContext.getCheckpointDir() is not None
        except Exception:  # noqa: BLE001 - Spark Connect has no context
            return False

    def write_pieces(self, name: str, folder: Path) -> None:
        """Have the executors write the rows as Parquet files, to be counted as ``name``.

        Raises:
            EngineError: they cannot be written, or not where this process sees them.
        """
        from halfmask.engines.staging import STAGED

        place = folder.resolve().as_uri()
        try:
            # The folder is there, and every other mode refuses it or makes it anew for all to read.
            self._session.table(self._views[STAGED]).write.mode("append").parquet(place)
            self.show(name, self._session.read.parquet(place))
        except Exception as error:  # noqa: BLE001
            raise _unwritten(error) from None
        # Spark's own marks and checksums are no pieces.
        for mark in (*folder.glob("_*"), *folder.glob(".*")):
            mark.unlink()
        if not any(folder.glob("*.parquet")):
            raise EngineError(
                "Spark's executors wrote to a disk that this machine does not see: name a folder "
                "of a file system that all of them share. Nothing was released."
            )

    def publish(self, kind: str, name: str, record: str, check: Callable[[str], None]) -> None:
        """Make a table of a kind that the session has, counted before it gets its name.

        Args:
            kind: such as ``delta``.
            name: of the table; there must be none.
            record: what the release says of itself, as the comment of the table.
            check: has the new table counted, by the name that queries have for it.

        Raises:
            InputError: the session does not write such tables, or there is one of that name.
            EngineError: it cannot be written; nothing was released.
        """
        from halfmask.engines.staging import STAGED

        session, fresh = self._session, _beside(name)
        self._require_kind(kind)
        if session.catalog.tableExists(name):
            raise InputError(
                f"There is a table {name!r} already, and Spark exchanges no tables in one step: "
                "give the output another name."
            )
        # Texts of Spark's SQL know backslashes, unlike the standard's.
        text = (MARK + record).replace("\\", "\\\\").replace("'", "\\'")
        try:
            session.table(self._views[STAGED]).write.format(kind).saveAsTable(fresh)
            try:
                session.sql(f"COMMENT ON TABLE {_quote_path(fresh)} IS '{text}'")
                self.show("hm_arrived", session.table(fresh))
                check("hm_arrived")
                session.sql(f"ALTER TABLE {_quote_path(fresh)} RENAME TO {_quote_path(name)}")
            except BaseException:
                session.sql(f"DROP TABLE IF EXISTS {_quote_path(fresh)}")
                raise
        except HalfmaskError:
            raise
        except Exception as error:  # noqa: BLE001 - Spark's errors are many, and quote cells
            unknown = "DATA_SOURCE_NOT_FOUND" in str(error)
            raise _no_such_kind(kind) if unknown else _unwritten(error) from None

    def _require_kind(self, kind: str) -> None:
        """Refuse a kind of table whose package the session was not started with."""
        try:
            java = self._session._jvm.org.apache.spark.sql.execution.datasources  # noqa: SLF001
            conf = self._session._jsparkSession.sessionState().conf()  # noqa: SLF001
            java.DataSource.lookupDataSource(kind, conf)
        except AttributeError:  # Spark Connect tells when it is asked to write
            return
        except Exception:  # noqa: BLE001
            raise _no_such_kind(kind) from None

    def stream(self, rows: int) -> pa.RecordBatchReader:
        """The rows that were written aside; all of them come to this machine first."""
        from halfmask.engines.staging import STAGED

        try:
            found = self._session.table(self._views[STAGED]).toArrow()
        except Exception as error:  # noqa: BLE001
            raise _unwritten(error) from None
        return found.to_reader(rows)

    def capped(self, value: Expr, count: int) -> Expr:
        """The values where there are fewer than ``count``."""
        from sqlglot import exp

        few = exp.LT(this=exp.Count(this=value.copy()), expression=exp.Literal.number(count))
        return exp.Case().when(few, exp.ArrayAgg(this=value))

    def fingerprint(self, table: str) -> str:
        """A text that changes where the table's rows change."""
        quoted = _quote(self._views.get(table, table))
        total = "SUM(CAST(XXHASH64(*) AS DECIMAL(38, 0)))"
        try:
            row = self._session.sql(f"SELECT COUNT(*) AS n, {total} AS t FROM {quoted}").first()  # noqa: S608
        except Exception:  # noqa: BLE001
            raise engine_refusal("spark") from None
        return f"spark:{row['n']}-{row['t']}"

    def definition(self, table: str, schema: str = "") -> str | None:
        """The SQL of a view; None for a table, and for a view that was made of a frame."""
        from py4j.protocol import Py4JError  # type: ignore[import-untyped]

        try:  # the public catalog tells no text of temporary views
            catalog = self._session._jsparkSession.sessionState().catalog()  # noqa: SLF001
            java = self._session._jvm  # noqa: SLF001
            named = [self._views.get(table, table)]
            if schema:
                named.append(self._session._jvm.scala.Option.apply(schema))  # noqa: SLF001
            name = java.org.apache.spark.sql.catalyst.TableIdentifier(*named)
            text = catalog.getTempViewOrPermanentTableMetadata(name).viewText()
        except (AttributeError, Py4JError):  # a session of Spark Connect, or no such table
            return None
        return str(text.get()) if text.isDefined() else None

    def row_origin(self, table: str, schema: str = "") -> RowOrigin | None:
        """What gives the rows of a table or view; of a frame only its columns are known."""
        from pyspark.errors import PySparkException

        name = _quote(self._views.get(table, table))
        try:
            kinds = self._session.table(f"{_quote(schema)}.{name}" if schema else name).dtypes
        except PySparkException:
            return None
        types = {column: bare_type(kind) for column, kind in kinds}
        return RowOrigin(types, self.definition(table, schema))

    def close(self) -> None:
        """Take away what was brought along; the session is not ours to stop."""
        for name in dict.fromkeys(self._brought):
            self._session.catalog.dropTempView(name)


@dataclass(frozen=True, eq=False, repr=False)
class SparkRows(Storage):
    """A frame of Spark, whose rows stay there.

    Attributes:
        frame: the frame; None only until one is given.
    """

    frame: Any = None

    @property
    def engine(self) -> str:
        """Spark counts the rows."""
        return "spark"

    @property
    def are_texts(self) -> bool:
        """Frames have types."""
        return False

    @contextmanager
    def _open_rows(self) -> Iterator[tuple[Any, str]]:
        engine = Spark(self.frame.sparkSession)
        try:
            engine.show("the_table", self.frame)
            yield engine, "the_table"
        finally:
            engine.close()

    def collect(self, schema: Schema) -> Table:
        """All rows in memory, by SQL alone: workers need no Python for it.

        Raises:
            InputError: Spark cannot give the rows, or they would take more than the memory limit.
        """
        self.require_whole_room()
        try:
            arrow = self.frame.toArrow()
        except Exception as error:  # noqa: BLE001 - Spark raises its own, which quote cells
            raise InputError(
                f"Spark gave no rows ({type(error).__name__}). Does the table work on its own?"
            ) from None
        rows = normalize(arrow, schema.missing or ())
        return bind_schema(rows, schema, "arrow", incoming_types(arrow))


def find_frame(source: Any, table: str | None) -> Any:
    """The frame of a session's table, of a Parquet file or folder, or the frame itself.

    Args:
        source: a frame; a session, whose ``table`` is meant; or the name of Parquet files or of a
            table, for the session that there is (``SPARK_REMOTE`` names another).
        table: the name of a table.

    Raises:
        InputError: there is no such table, or it is not told which.
    """
    if hasattr(source, "createOrReplaceTempView"):
        return source
    if not isinstance(source, str) and table is None:
        raise InputError(
            "A Spark session is no table: name one of its tables, such as "
            'hm.read(spark.table("visits")).'
        )
    session = Spark(None if isinstance(source, str) else source)._session  # noqa: SLF001
    name = table if table is not None else source
    try:
        frame = session.table(name) if table is not None or not _are_files(source) else None
        frame = _read_files(session, source) if frame is None else frame
        frame.schema  # noqa: B018 - Spark Connect looks for it only when it is asked
    except InputError:
        raise
    except Exception as error:  # noqa: BLE001
        if "MERGE_SCHEMA" in str(error):
            raise InputError(
                "The Parquet files hold columns of one name with several types: write them with "
                "one type, or name files that agree."
            ) from None
        raise InputError(
            f"Spark has no table or Parquet files called {name!r} ({type(error).__name__}): check "
            "the name, and that Spark can reach them."
        ) from None
    return frame


def _read_files(session: Any, source: str) -> Any:
    """The frame of Parquet files: the files, folders and columns that every engine sees.

    Left to itself, Spark takes marks in names of files for patterns, finds no columns in the names
    of folders where a pattern or one folder of several is given, and makes numbers of theirs (007).
    """
    from pyspark.sql.types import StringType, StructField, StructType

    if "://" in source:
        return session.read.parquet(source)
    # A server has another working folder.
    place = str(Path(source).expanduser().absolute())
    if Path(place).is_file():
        return session.read.parquet(_literal(place))
    here = Path(place).exists() or any(glob.iglob(place, recursive=True))
    if not (here and is_pieces(place)):
        return session.read.parquet(place)  # perhaps the server has it
    kind, files = list_pieces(place)
    if kind != "parquet":
        raise InputError(
            f"{Path(place).name!r} names {kind} files, and Spark is given Parquet files alone."
        )
    reader, named = session.read.option("mergeSchema", "true"), partition_columns(files)
    if named:
        parts = Path(files[0]).parts
        first = next(i for i, part in enumerate(parts) if "=" in part)
        reader = reader.option("basePath", str(Path(*parts[:first])))
    frame = reader.parquet(*map(_literal, files))
    kinds = Storage(place).columns() if named else {}
    texts = {name for name in named if name in kinds and is_text(kinds[name])}
    if all(isinstance(f.dataType, StringType) for f in frame.schema if f.name in texts):
        return frame
    fields = [
        StructField(f.name, StringType()) if f.name in texts else f for f in frame.schema.fields
    ]
    return reader.schema(StructType(fields)).parquet(*map(_literal, files))


def _literal(place: str) -> str:
    """A file's name in which no mark is one of a pattern."""
    return re.sub(r"([{}\[\]*?\\])", r"\\\1", place)


_PATIENCE = 15  # seconds in which a server must answer; Spark would try for ten minutes


def _find_session() -> Any:
    """The session that there is, or a new one: where ``SPARK_REMOTE`` says so, with a server.

    Raises:
        EngineUnavailableError: Spark is not installed, or its client of Spark Connect is not.
        EngineError: there is no such server, no Java, or another session in this process.
    """
    try:
        from pyspark.errors import PySparkException
        from pyspark.sql import SparkSession
    except ImportError:
        raise EngineUnavailableError("Spark", "pip install 'halfmask[spark]'") from None
    remote = os.environ.get("SPARK_REMOTE", "")
    try:
        if remote.startswith("sc://"):
            _require_server(remote)
        return SparkSession.builder.getOrCreate()
    except ImportError:
        raise EngineUnavailableError("Spark Connect", "pip install 'halfmask[connect]'") from None
    except PySparkException as error:
        raise EngineError(
            f"There is no Spark session ({type(error).__name__}): install Java 17, or set "
            "SPARK_REMOTE to a server (sc://host:port) where no other session is open, or give "
            'the session itself, such as hm.read(spark, table="visits").'
        ) from None


def _require_server(address: str) -> None:
    """Refuse a server of Spark Connect that does not answer."""
    import grpc
    from pyspark.sql.connect.client import DefaultChannelBuilder

    with DefaultChannelBuilder(address).toChannel() as channel:
        try:
            grpc.channel_ready_future(channel).result(timeout=_PATIENCE)
        except grpc.FutureTimeoutError:
            raise EngineError(
                "The Spark Connect server that SPARK_REMOTE names does not answer: check the "
                "address (sc://host:port), and that the server runs."
            ) from None


def _are_files(name: str) -> bool:
    """Whether a name is that of files rather than of a table."""
    return "/" in name or name.endswith(".parquet") or Path(name).exists()


def _no_such_kind(kind: str) -> InputError:
    return InputError(
        f"This Spark session writes no {kind} tables: start it with the package of {kind} "
        "(spark.jars.packages) and its catalog, or write a folder of Parquet files."
    )


def _unwritten(error: Exception) -> EngineError:
    return EngineError(
        f"Spark could not write the rows ({type(error).__name__}): an executor may be lost, or its "
        "disk full. Nothing was released."
    )


def _beside(name: str) -> str:
    """A name of its own in the same database or catalog."""
    home, dot, _ = name.rpartition(".")
    return f"{home}{dot}hm_{token_hex(8)}"


def _quote_path(name: str) -> str:
    return ".".join(map(_quote, name.split(".")))


def _quote(name: str) -> str:
    return "`" + name.replace("`", "``") + "`"
