"""Whether a table keeps promises as it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.engines.counted import counted
from halfmask.engines.source import Source
from halfmask.models.needs import prepare, require_models, statistics

if TYPE_CHECKING:
    from os import PathLike

    from halfmask.models.verdict import Model, Verdict
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table


def check(
    table: Table | str | PathLike[str],
    *models: Model,
    schema: object = None,
    engine: str | None = None,
    source_table: str | None = None,
    memory_limit: str | None = None,
    delimiter: str | None = None,
    encoding: str | None = None,
) -> tuple[Verdict, ...]:
    """Check ``models`` on a table, grouped by its quasi-identifiers as they stand.

    Args:
        table: rows with a schema that names the quasi-identifiers; or the name of a file, or the
            address of a PostgreSQL database, whose rows stay where they are if ``engine`` says so
            or the file is large.
        models: the promises, such as ``KAnonymity(5)``.
        schema: the schema of a file or database, as for ``read``.
        engine: ``"duckdb"`` counts a CSV or Parquet file or a DuckDB database within
            ``memory_limit`` (such as ``"500MB"``), spilling to disk; ``"memory"`` reads it.
        source_table: which table of a database.
        memory_limit: how much memory DuckDB may take.
        delimiter: what stands between the fields of a text file; ``None``: detected.
        encoding: the character encoding of a text file; ``None``: detected.

    Returns:
        One verdict per model, in the order given.

    Raises:
        SchemaError: the table lacks what a model needs; lists everything.

    Example:
        >>> import pyarrow as pa
        >>> from halfmask.models.k_anonymity import KAnonymity
        >>> from halfmask.table.schema import Column, Schema
        >>> from halfmask.table.table import Table
        >>> rows = pa.table({"age": [30, 30, 40]})
        >>> (verdict,) = check(Table(rows, Schema({"age": Column("quasi")})), KAnonymity(2))
        >>> verdict.holds, verdict.achieved
        (False, 1)
    """
    require_models(models)
    source = Source(table, schema, engine, source_table, memory_limit, delimiter, encoding)
    held = counted(source, lambda declared: _read(declared, models))
    ready = prepare(held.table, models)
    classes, _ = statistics(ready, models, held.counts)
    return tuple(model.check(classes) for model in models)


def _read(schema: Schema, models: tuple[Model, ...]) -> list[str]:
    """The columns that the statistics of ``models`` are counted from."""
    schema.require_quasi()
    names = [*schema.quasi, *(name for model in models for name in model.columns)]
    names += [schema.policy[d] for model in models for d in model.policy if d in schema.policy]
    return names if schema.person is None else [*names, schema.person]
