"""Whether a table keeps promises as it stands."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.engines.counted import counted
from halfmask.engines.source import Source
from halfmask.models.needs import demand_keys, demanded, prepare, require_models, statistics
from halfmask.models.personal_k_anonymity import PersonalKAnonymity
from halfmask.models.personal_l_diversity import PersonalLDiversity
from halfmask.models.personal_t_closeness import PersonalTCloseness

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.engines.counted import Counted
    from halfmask.models.verdict import Model, Verdict
    from halfmask.table.classes import Classes
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
    policies: object = None,
) -> tuple[Verdict, ...]:
    """Check ``models`` on a table, grouped by its quasi-identifiers as they stand.

    Where no model is named, or ``policies`` are given, what people demand for themselves is
    checked too.

    Args:
        table: rows with a schema that names the quasi-identifiers; or the name of a file, or the
            address of a PostgreSQL database, whose rows stay where they are if ``engine`` says so
            or the file is large.
        models: the promises, such as ``KAnonymity(5)``; none: people's own demands.
        schema: the schema of a file or database, as for ``read``.
        engine: ``"duckdb"`` counts a CSV or Parquet file or a DuckDB database within
            ``memory_limit`` (such as ``"500MB"``), spilling to disk; ``"memory"`` reads it.
        source_table: which table of a database.
        memory_limit: how much memory DuckDB may take.
        delimiter: what stands between the fields of a text file; ``None``: detected.
        encoding: the character encoding of a text file; ``None``: detected.
        policies: more demands of people, as for ``query``; they add to those of the schema.

    Returns:
        One verdict per model, in the order given. ``failing`` of a personal one names those whose
        demand is not met, by the person column or by their row (from 0): for the controller only.

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
    if models:
        require_models(models)
    source = Source(table, schema, engine, source_table, memory_limit, delimiter, encoding)
    source = source.demanding(policies)
    held = counted(source, lambda declared: columns_counted(declared, models))
    if not models or policies is not None:
        models = demanded(held.table, models)
    ready = prepare(held.table, models)
    classes, ids = statistics(ready, models, held.counts)
    found = [model.check(classes) for model in models]
    return tuple(
        replace(verdict, failing=_failing(ready, model, classes, ids, held))
        for model, verdict in zip(models, found, strict=True)
    )


def columns_counted(schema: Schema, models: Sequence[Model]) -> list[str]:
    """The columns that the statistics of ``models`` are counted from, demands among them."""
    schema.require_quasi()
    names = [*schema.quasi, *(name for model in models for name in model.columns)]
    if not models:
        names += schema.sensitive
    if not models or any(model.policy for model in models):
        names += schema.policy_names
    return names if schema.person is None else [*names, schema.person]


def _failing(
    table: Table, model: Model, classes: Classes, ids: NDArray[np.int32], held: Counted
) -> tuple[object, ...]:
    """Who states a demand that ``model`` finds not met."""
    if not isinstance(model, PersonalKAnonymity | PersonalLDiversity | PersonalTCloseness):
        return ()
    asked = np.full(len(table), np.nan if model.default is None else float(model.default))
    for key in demand_keys(table, model):
        encoded = table.encode(key)
        numbers = encoded.values.cast(pa.float64()).to_numpy(zero_copy_only=False)
        asked = np.where(np.isnan(numbers[encoded.codes]), asked, numbers[encoded.codes])
    rows = np.flatnonzero(model.unmet(classes, ids, asked))
    person = table.schema.person
    if person is not None:
        people = table.encode(person)
        return tuple(people.values.take(pa.array(np.unique(people.codes[rows]))).to_pylist())
    return tuple(rows.tolist()) if held.counts is None else ()
