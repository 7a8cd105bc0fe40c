"""Rows that stay where they are as entries for a search: which columns are counted, and when.

One state of the rows is counted, searched and written: the engine that counts is held until the
release is made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from halfmask.anonymize.auto import AUTO
from halfmask.engines.aside import reach
from halfmask.engines.read import is_typed
from halfmask.engines.tuples import MOST, add_policies, count_tuples, one_row_each
from halfmask.errors import InputError, SchemaError
from halfmask.release.seal import published_columns
from halfmask.table.demands import absent_people, sources
from halfmask.table.files.rows import require_flat
from halfmask.table.hierarchies.builders import Auto
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from contextlib import ExitStack

    from halfmask.models.verdict import Model
    from halfmask.table.schema import Schema
    from halfmask.table.tuples import Tuples

DIVISIONS = ("personal", "mondrian", "k-member", "mdav")  # which see each row, as its tuple
IN_PLACE = (AUTO, "optimal", "local", *DIVISIONS)
SMALL = 1_000_000  # rows that auto reads into memory, where divisions lose less


def why_collected(
    table: object, models: Sequence[Model], method: str, options: Mapping[str, Any]
) -> str | None:
    """Why rows that stay elsewhere come into memory, in words for the release; None: they stay.

    Of rows that are in memory already there is nothing to say.
    """
    if not isinstance(table, Table) or table.stored is None:
        return ""
    schema = table.schema
    found = None
    if method not in IN_PLACE:
        found = f"method={method!r} looks at them one by one"
    elif any(options.get(name) is not None for name in options):
        named = next(name for name in options if options[name] is not None)
        found = f"{named}= needs them one by one"
    elif any(model.population is not None or model.weighted for model in models):
        found = "a promise compares with a population"
    elif any(isinstance(one.hierarchy, Auto) for one in schema.columns.values()):
        found = "hierarchies are found from them"
    elif schema.policy_file is not None:
        found = "people's demands stand in a file of their own"
    elif not is_typed(table):
        found = "their texts become numbers, dates or missing values"
    elif method == AUTO and table.stored.memory_limit is None and len(table) <= SMALL:
        found = "auto tries methods that divide them"
    if found is None:
        return None
    return f"The rows were read from {table.stored.engine} into memory: {found}."


def count_entries(
    table: Table, models: Sequence[Model], method: str, policies: object, held: ExitStack
) -> Tuples:
    """The distinct tuples of all that a search and the door look at, with their counts.

    A division gets one entry a row: rows that are alike may stand in different classes.

    Raises:
        SchemaError: a column is not declared or not there.
        InputError: a column that leaves has a type that cannot be grouped, or there are more rows
            than a division can hold.
    """
    import pyarrow as pa

    stored: Any = table.stored
    table = add_policies(table, policies)
    names = published_columns(table)
    kinds = stored.columns()
    require_flat(pa.schema([(name, kinds[name]) for name in names]))
    held.enter_context(stored.hold())
    held.callback(stored.let_go)
    schema = table.schema
    if one_row_each(table):
        schema = replace(schema, person=None)
    wanted = _counted(schema, models)
    found = count_tuples(table.with_schema(schema), lambda _: wanted)
    faults = [
        fault
        for source in sources(schema)
        if source.people is not None and schema.person is not None
        for fault in absent_people(source.people, found.table)
    ]
    if faults:
        raise SchemaError(*faults)
    reach("counted")
    # How many distinct tuples there are would tell of rows that do not leave.
    note = f"The rows stayed in {stored.engine}, which counted them and wrote those that leave."
    found = replace(found, origin=table, note=note)
    if method not in DIVISIONS:
        return found
    if found.rows > MOST:
        raise InputError(
            f"method={method!r} holds what was counted of every row in memory, and there are more "
            f"than {MOST:,} rows: use method='local' or 'optimal', which hold distinct tuples."
        )
    return found.unfold()


def _counted(schema: Schema, models: Sequence[Model]) -> list[str]:
    """The columns that promises and demands read."""
    sensitive = schema.sensitive if sources(schema) else ()
    named = [name for model in models for name in model.columns]
    more = [schema.person] if schema.person else []
    more += [schema.household] if schema.household and any(m.units for m in models) else []
    return list(dict.fromkeys([*schema.quasi, *named, *sensitive, *schema.policy_names, *more]))
