"""What people demand for themselves: checked, and joined from a file where they stand apart."""

from __future__ import annotations

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, SchemaError
from halfmask.table.csv_file import TEXT
from halfmask.table.infer import number_type, retyped, used_values
from halfmask.table.names import told
from halfmask.table.schema import Schema

_LARGEST = 2**53


def join_policies(table: pa.Table, policies: pa.Table, schema: Schema) -> pa.Table:
    """Append each person's demands, looked up by the person column.

    Raises:
        SchemaError: columns are missing or in the way, people occur twice, or have no line there.
    """
    person = schema.person
    assert person is not None  # noqa: S101 - the schema demands it where a file is named
    file = f"Policy file '{schema.policy_file}'"
    faults = [
        f"{file} has no column '{name}'; it has {told(policies.column_names)}."
        for name in (person, *schema.policy.values())
        if name not in policies.column_names
    ]
    faults += [
        f"Column '{name}' stands in the table and in the policy file: rename one of them."
        for name in schema.policy.values()
        if name in table.column_names
    ]
    if person not in table.column_names:
        faults += Schema(person=person).unknown(table.column_names)
    if faults:
        raise SchemaError(*faults)
    keys, people = _text(policies[person]), _text(table[person])
    twice = len(keys) - len(pc.unique(keys))
    if twice:
        raise SchemaError(f"{file} has {twice} more line(s) than people: keep one a person.")
    places = pc.index_in(people, value_set=keys)
    absent = len(pc.unique(people.filter(pc.is_null(places)))) if places.null_count else 0
    if absent:
        raise SchemaError(f"{file} has no line for {absent} person(s) of the table. Add them.")
    for name in schema.policy.values():
        table = table.append_column(name, policies[name].take(places))
    return table


def _text(column: pa.ChunkedArray) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return column.cast(pa.string()).combine_chunks()


def whole_demands(table: pa.Table, schema: Schema) -> tuple[pa.Table, list[str]]:
    """The table with its policy columns as numbers, and what is wrong with them.

    Demands for k and l are whole numbers of at least 1, those for t lie between 0 and 1, those for
    epsilon above 0. A missing demand is no fault: a model may have a default for those people.
    """
    faults: list[str] = []
    for demand, name in schema.policy.items():
        column = table[name]
        if demand in ("t", "epsilon"):
            table, found = _numbers(table, name, demand)
            faults += found
            continue
        try:
            whole, wrong = _whole(column)
        except InputError as error:
            faults.append(f"Policy column '{name}' ({demand}): {error}")
            continue
        parts = [
            (wrong, "are not whole numbers, or far too large"),
            (pc.sum(pc.less(whole, 1)).as_py() or 0, "are below 1"),
        ]
        said = ", ".join(f"{count} {what}" for count, what in parts if count)
        if said:
            faults.append(
                f"Policy column '{name}': of {len(column)} demands {said}; give whole"
                f" numbers of at least 1 for {demand}, or leave them missing."
            )
        table = table.set_column(table.column_names.index(name), name, whole)
    return table, faults


def _numbers(table: pa.Table, name: str, demand: str) -> tuple[pa.Table, list[str]]:
    """The table with demands for t or epsilon as numbers, and what is wrong with them."""
    column = table[name]
    if pa.types.is_dictionary(column.type):
        number, bad = number_type(used_values(column))
        if number is None:
            count = len(used_values(column).filter(bad))
            return table, [
                f"Policy column '{name}' ({demand}): {count} distinct demands are no numbers."
            ]
        column = retyped(column, number)
    kind = column.type
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return table, [f"Policy column '{name}' ({demand}): holds {kind}, not numbers."]
    numbers = column.cast(pa.float64())
    if demand == "t":
        inside = pc.and_(pc.greater_equal(numbers, 0), pc.less_equal(numbers, 1))
        allowed = "from 0 to 1"
    else:
        inside = pc.and_(pc.greater(numbers, 0), pc.is_finite(numbers))
        allowed = "above 0"
    outside = len(numbers) - numbers.null_count - (pc.sum(inside).as_py() or 0)
    faults = []
    if outside:
        faults.append(
            f"Policy column '{name}': of {len(column)} demands {outside} are not {allowed}."
        )
    return table.set_column(table.column_names.index(name), name, numbers), faults


def _whole(column: pa.ChunkedArray) -> tuple[pa.ChunkedArray, int]:
    """The demands as int64 (null where they are not whole), and how many rows are not whole."""
    kind = column.type
    if pa.types.is_integer(kind):
        if kind != pa.uint64():
            return column.cast(pa.int64()), 0
        large = pc.greater(column, pa.scalar(_LARGEST, kind))
        return pc.if_else(large, None, column).cast(pa.int64()), pc.sum(large).as_py() or 0
    if pa.types.is_dictionary(kind):
        values = used_values(column)
        number, bad = number_type(values)
        if number is None:
            odd = values.filter(bad)
            rows = pc.sum(pc.is_in(column.cast(pa.string()), value_set=odd)).as_py()
            kept = (
                pc.if_else(
                    pc.is_in(column.cast(pa.string()), value_set=odd),
                    None,
                    column.cast(pa.string()),
                )
                .dictionary_encode()
                .cast(TEXT)
            )
            return _whole(kept)[0], rows
        return _whole(retyped(column, number))
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        floats = column.cast(pa.float64())
        fits = pc.and_(pc.equal(pc.floor(floats), floats), pc.less(pc.abs(floats), float(_LARGEST)))
        wrong = pc.sum(pc.invert(fits)).as_py() or 0
        return pc.if_else(fits, floats, None).cast(pa.int64()), wrong
    raise InputError(f"holds {kind}, not whole numbers.")
