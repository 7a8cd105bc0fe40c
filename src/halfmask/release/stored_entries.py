"""Rows that stay where they are as entries that stand for them: which columns are counted, and how.

One state of the rows is counted, searched and written: the engine that counts is held until the
release is made.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.engines.counting.coarse_tuples import count_coarser
from halfmask.engines.counting.tuples import MOST, add_policies, count_tuples, one_row_each
from halfmask.engines.read import is_typed
from halfmask.engines.staging import Labeling, first_of_each, label_columns, reach
from halfmask.errors import InputError, SchemaError
from halfmask.models.requirements import largest_feasible, with_demanded_models
from halfmask.release.seal import published_columns
from halfmask.table.demands import absent_people, narrow_schema, sources, with_policies
from halfmask.table.files.rows import require_flat
from halfmask.table.hierarchies.builders import Auto

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from contextlib import ExitStack

    from halfmask.models.verdict import Model
    from halfmask.release.demands import DemandsChoice
    from halfmask.table.columns import Column
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table
    from halfmask.table.tuples import Tuples


def why_read(table: Table, models: Sequence[Model], columns: Iterable[Column]) -> str | None:
    """Why stored rows have to be read whatever is done with them; None: they need not be."""
    schema = table.schema
    if any(model.population is not None or model.weighted for model in models):
        return "a promise compares with a population"
    if any(isinstance(one.hierarchy, Auto) for one in columns):
        return "hierarchies are found from them"
    if schema.policy_file is not None:
        return "people's demands stand in a file of their own"
    if not is_typed(table):
        return "their texts become numbers, dates or missing values"
    return None


def read_note(table: Table, reason: str) -> str:
    """That rows were read, in words for the release."""
    assert table.stored is not None  # noqa: S101 - of stored rows
    return f"The rows were read from {table.stored.engine} into memory: {reason}."


def count_entries(
    table: Table,
    models: Sequence[Model],
    held: ExitStack,
    *,
    unfolded: str | None = None,
    most: int = MOST,
    raised: bool = True,
    demands: DemandsChoice = "keep",
    owners: bool = False,
) -> Tuples:
    """The distinct tuples of all that a search and the door look at, with their counts.

    Who looks at rows gets one entry a row, for which it is named (``unfolded``, such as
    ``method='mdav'``): rows that are alike may stand in different classes. For the others, where
    there are more distinct tuples than ``most``, columns are counted at coarser levels: as few as
    make the tuples fit, unless levels are given already (``raised``). With ``owners`` it is known
    whose each row is, also where nobody has two.

    Raises:
        SchemaError: a column is not declared or not there.
        InputError: a column that leaves has a type that cannot be grouped, there are more rows
            than a division can hold, or more tuples than ``most`` at all levels.
    """
    import pyarrow as pa

    stored: Any = table.stored
    kinds = stored.columns()
    require_flat(pa.schema([(name, kinds[name]) for name in published_columns(table)]))
    held.enter_context(stored.hold())
    held.callback(stored.let_go)
    counted, staying, others = table, None, 0
    if not owners and one_row_each(table):
        counted = _without_person(table)
    if stored.count() > most:  # else all fits, whatever anybody holds
        counted, staying, others = _answerable_rows(counted, models, demands)
    if unfolded and stored.count() - others > most:
        raise InputError(
            f"{unfolded} holds what was counted of every row in memory, and there are more than "
            f"{most:,} rows: use method='local' or 'optimal', which hold distinct tuples."
        )
    schema = counted.schema
    wanted = _columns_read(schema, models)
    if unfolded:
        stored.require_room(_CODE * len(wanted))
    if stored.count() <= most:
        found = count_tuples(counted, lambda _: wanted, most=most)
    else:
        found = count_coarser(
            counted,
            wanted,
            most,
            staying=staying,
            others=others,
            raised=raised and not unfolded,
        )
    _require_people(schema, found.table)
    reach("counted")
    # How many distinct tuples there are would tell of rows that do not leave.
    note = f"The rows stayed in {stored.engine}, which counted them and wrote those that leave."
    found = replace(found, origin=table, note=note)
    return found.unfold() if unfolded else found


def count_rows(
    table: Table,
    names: Sequence[str],
    models: Sequence[Model],
    held: ExitStack,
    *,
    policies: object,
    owners: bool,
) -> Tuples:
    """One entry a row of these columns and of all that promises and demands read.

    Args:
        table: rows that stay where they are.
        names: columns that are looked at, beside those of promises.
        models: the promises.
        held: keeps the engine that counts until the release is made.
        policies: more demands of people.
        owners: whether it must be known whose each row is, also where nobody has two.

    Raises:
        SchemaError: somebody who demands something is not in the table.
        InputError: a column has a type that cannot be grouped, or there are more rows than fit.
    """
    import pyarrow as pa

    stored: Any = table.stored
    table = add_policies(table, policies)
    kinds = stored.columns()
    known = [name for name in names if name in kinds]
    require_flat(pa.schema([(n, kinds[n]) for n in kinds if n not in table.schema.private]))
    held.enter_context(stored.hold())
    held.callback(stored.let_go)
    if stored.count() > MOST:
        raise InputError(
            f"The masked columns of every row are held in memory, and there are more than {MOST:,} "
            "rows: mask some of them after the others, or use anonymize, which holds tuples."
        )
    counted = _without_person(table) if not owners and one_row_each(table) else table
    wanted = list(dict.fromkeys([*_columns_read(counted.schema, models), *known]))
    stored.require_room(_CODE * len(wanted))
    found = count_tuples(counted, lambda _: wanted)
    _require_people(counted.schema, found.table)
    reach("counted")
    note = f"The rows stayed in {stored.engine}, which counted them and wrote those that leave."
    return replace(found, origin=table, note=note).unfold()


def read_columns(
    table: Table, names: Sequence[str], policies: object, *, whole: bool = False
) -> tuple[Table, str]:
    """Some columns of a table in memory, one entry a row, and where the rows stayed, in words.

    Of stored rows the distinct tuples of these columns come over, with what people demand and who
    they are, where somebody has several rows (or ``whole``); their order is that of their values.

    Raises:
        InputError: there are more rows than can be held.
    """
    if table.stored is None:
        return with_policies(table, policies), ""
    stored: Any = table.stored
    reason = why_read(table, (), (c for n in names if (c := table.schema.columns.get(n))))
    if table.schema.weight is not None:
        reason = reason or "the schema names weights"
    if reason is not None:
        return with_policies(table.collect(), policies), read_note(table, reason)
    table = add_policies(table, policies)
    if stored.count() > MOST:
        raise InputError(
            f"The columns that are read of every row are held in memory, and there are more than "
            f"{MOST:,} rows: draw some of them first, or ask by query, which counts in place."
        )
    with stored.hold():
        try:
            if not whole and one_row_each(table):
                table = _without_person(table)
            more = [*table.schema.policy_names, *([p] if (p := table.schema.person) else [])]
            stored.require_room(_CODE * len({*names, *more}))
            found = count_tuples(table, lambda _: [*names, *more])
        finally:
            stored.let_go()
    _require_people(table.schema, found.table)
    note = f"The rows stayed in {stored.engine}, which counted the columns that are shown."
    entries = found.unfold().table
    return entries.with_schema(_with_all_demands(table, entries.schema)), note


_CODE = 4  # bytes that a row takes in each column, as a code


def _with_all_demands(table: Table, part: Schema) -> Schema:
    """The schema of some columns with all demands: who shows others asks less of these."""
    whole = table.schema
    shown = [name for name in table.column_names if name not in whole.private]
    demanded = replace(
        part,
        policy=whole.policy,
        policy_columns=whole.policy_columns,
        policies=whole.policies,
    )
    return narrow_schema(whole, demanded, shown)


def _require_people(schema: Schema, table: Table) -> None:
    """Refuse demands of people who are not in the table."""
    faults = [
        fault
        for source in sources(schema)
        if source.people is not None and schema.person is not None
        for fault in absent_people(source.people, table)
    ]
    if faults:
        raise SchemaError(*faults)


def _answerable_rows(
    table: Table, models: Sequence[Model], demands: DemandsChoice
) -> tuple[Table, Labeling | None, int]:
    """The rows but of those whose demands nothing can meet, and how many rows these have.

    None where all rows stay. What decides levels must not depend on people who leave no trace; so
    the table comes back without its person column where only these have several rows.
    """
    schema = table.schema
    wanted = _columns_read(schema, models)
    names = [name for name in wanted if name not in schema.quasi]
    if demands != "keep" or not sources(schema) or not names:
        return table, None, 0
    found = count_tuples(table, lambda _: names)
    own = [m for m in with_demanded_models(found.table, models) if m.policy]
    keep = largest_feasible(found, own)
    if keep.all() or not keep.any():
        return table, None, 0
    encoded = {name: found.table.encode(name) for name in names}
    columns = {
        name: label_columns(*found.spelled(name), len(one.values), None)
        for name, one in encoded.items()
    }
    codes = [one.codes[keep].astype(np.int64) for one in encoded.values()]
    first = first_of_each(codes)
    person = schema.person
    if person is not None and all(one.people is None for one in sources(schema)):
        people = len(np.unique(encoded[person].codes[keep]))
        # Whose rows count as people must not be served for that.
        alone = largest_feasible(replace(found, table=_without_person(found.table)), own)
        if people == int(found.counts[keep].sum()) and np.array_equal(alone, keep):
            table = _without_person(table)
            wanted = _columns_read(table.schema, models)
    labeling = Labeling(
        columns, [one[first] for one in codes], {}, tuple(wanted), frozenset(), repeated=False
    )
    return table, labeling, int(found.counts[~keep].sum())


def _without_person(table: Table) -> Table:
    """The same rows, each of which is another person."""
    return table.with_schema(replace(table.schema, person=None))


def _columns_read(schema: Schema, models: Sequence[Model]) -> list[str]:
    """The columns that promises and demands read."""
    sensitive = schema.sensitive if sources(schema) else ()
    named = [name for model in models for name in model.columns]
    more = [schema.person] if schema.person else []
    more += [schema.household] if schema.household and any(m.units for m in models) else []
    return list(dict.fromkeys([*schema.quasi, *named, *sensitive, *schema.policy_names, *more]))
