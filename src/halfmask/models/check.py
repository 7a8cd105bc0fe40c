"""Whether a table keeps promises as it stands."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.models.needs import prepare, statistics

if TYPE_CHECKING:
    from halfmask.models.verdict import Model, Verdict
    from halfmask.table.table import Table


def check(table: Table, *models: Model) -> tuple[Verdict, ...]:
    """Check ``models`` on a table, grouped by its quasi-identifiers as they stand.

    Args:
        table: rows with a schema that names the quasi-identifiers.
        models: the promises, such as ``KAnonymity(5)``.

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
    ready = prepare(table, models)
    classes, _ = statistics(ready, models)
    return tuple(model.check(classes) for model in models)
