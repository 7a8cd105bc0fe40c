"""What holds of all that people demand: of every source the strictest.

All sources count, the schema, a policy file and an argument: the largest k and l, the smallest t
and epsilon. A general demand is a floor for every column, so that one column more never asks less.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, SchemaError
from halfmask.table.columns import quote_names
from halfmask.table.files.text_file import TEXT
from halfmask.table.policies import (
    DEMANDS,
    LARGEST,
    Demand,
    Policies,
    policies_of,
    read_policies,
    readable_column,
)
from halfmask.table.values import cast_dictionary, number_type, used_values

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

HOUSEHOLD = "\0household"  # the name under which a table encodes whose household a row is of
KEY = "\0demand "  # names of demands among the columns of a table; no column begins so


def sources(schema: Schema) -> tuple[Policies, ...]:
    """All sources of demands that a schema knows of, its own ``[policy]`` first."""
    own = policies_of(schema.policy, schema.policy_columns)
    return tuple(source for source in (own, *schema.policies) if source.stated)


def file_policies(schema: Schema, there: Sequence[str]) -> tuple[Policies, ...]:
    """The sources of a table that stays where it is, with what its policy file says of people.

    Args:
        schema: names the file.
        there: the columns of the table; policy columns that are not among them are of the file.

    Raises:
        SchemaError: the file lacks columns.
    """
    from halfmask.table.files.rows import raw_rows

    assert schema.policy_file is not None  # noqa: S101 - only asked where there is one
    path = schema.folder / schema.policy_file
    if path.suffix == ".toml":
        found = read_policies(path)
        return (*sources(schema), *((found,) if found is not None else ()))
    rows = raw_rows(path)[0]
    own = {"": schema.policy, **schema.policy_columns}
    apart = {n for entry in own.values() for n in entry.values() if isinstance(n, str)} - {*there}
    absent = [name for name in (schema.person, *apart) if name not in rows.column_names]
    if absent:
        raise SchemaError(
            f"Policy file '{schema.policy_file}' has no column {quote_names(map(str, absent))}; it "
            f"has {quote_names(rows.column_names)}."
        )
    more, left = [], {}
    for column, entry in own.items():
        held = {demand: n for demand, n in entry.items() if n in apart}
        left[column] = {demand: n for demand, n in entry.items() if n not in apart}
        if held:
            typed, faults = whole_demands(rows, held)
            if faults:
                raise SchemaError(*faults)
            columns = {"person": typed[schema.person]}
            columns["column"] = pa.array([column or None] * len(typed), pa.string())
            columns |= {demand: typed[name] for demand, name in held.items()}
            more.append(Policies(people=pa.table(columns)))
    general = left.pop("")
    stated = policies_of(general, left)
    return tuple(one for one in (stated, *more, *schema.policies) if one.stated)


def with_policies(table: Table, given: object) -> Table:
    """The table whose people also demand what ``given`` says; nothing that it knew is lost.

    Raises:
        SchemaError: the policies name columns that are not there, or people nobody can tell.
    """
    found = read_policies(given)
    if found is None or not found.stated:
        return table
    faults = found.unknown(table.arrow.column_names)
    if found.people is not None and table.schema.person is None:
        faults.append("Policies are keyed by person: name the person column under [table] person.")
    elif found.people is not None:
        faults += absent_people(found.people, table)
    if faults:
        raise SchemaError(*faults)
    schema = replace(table.schema, policies=(*table.schema.policies, found))
    arrow, faults = table.arrow, []
    for entry in (found.general, *found.columns.values()):
        arrow, more = whole_demands(arrow, entry)
        faults += more
    if faults:
        raise SchemaError(*faults)
    return table.with_schema(schema, arrow)


def absent_people(people: pa.Table, table: Table) -> list[str]:
    """What to say where policies name people whom the table does not have; no names."""
    assert table.schema.person is not None  # noqa: S101 - the caller looked
    if table.schema.person not in table.arrow.column_names:
        return []
    named = pc.unique(person_texts(people["person"]))
    known = pc.is_in(named, value_set=pc.unique(person_texts(table.arrow[table.schema.person])))
    absent = len(named) - (pc.sum(known).as_py() or 0)
    if not absent:
        return []
    return [
        f"The policies name {absent} person(s) who are not in the table: write them as the table"
        " does, or leave them out."
    ]


def without_policies(schema: Schema) -> Schema:
    """The schema of a table of which nobody's demands are read."""
    return replace(schema, policy={}, policy_file=None, policy_columns={}, policies=())


def narrow_schema(whole: Schema, part: Schema, names: Sequence[str]) -> Schema:
    """The schema ``part`` of a table that holds only the columns ``names`` of those that are shown.

    What somebody demands where another column is shown holds in general then, for it would leave
    with these; an l or t of another sensitive column speaks of that column alone.
    """
    lost = [name for one in sources(part) for name in one.spoken_of if name not in names]
    if not lost:
        return part
    more: list[Policies] = []
    for source in (Policies(columns=part.policy_columns), *part.policies):
        here = {name: entry for name, entry in source.columns.items() if name in names}
        people = None if source.people is None else _narrowed_rows(whole, source.people, names)
        more.append(replace(source, columns=here, people=people))
        for name in lost:
            entry = source.columns.get(name, {})
            if name not in whole.private:
                alone = ("l", "t") if name in whole.sensitive else ()
                more.append(policies_of({d: v for d, v in entry.items() if d not in alone}))
    kept = tuple(source for source in more if source.stated)
    return replace(part, policy_columns={}, policies=kept)


def _narrowed_rows(schema: Schema, people: pa.Table, names: Sequence[str]) -> pa.Table:
    def among(listed: Iterable[str]) -> pa.ChunkedArray:
        return pc.is_in(people["column"], value_set=pa.array(list(listed), pa.string()))

    there = among(names)
    columns = {"person": people["person"], "column": pc.if_else(there, people["column"], None)}
    alone = pc.and_(pc.invert(there), among(schema.sensitive))
    for demand in DEMANDS:
        values = people[demand]
        columns[demand] = pc.if_else(alone, None, values) if demand in ("l", "t") else values
    return pa.table(columns).filter(pc.invert(among(schema.private)))


def demand_key(demand: str, column: str = "") -> str:
    """The name under which a table encodes a demand, or that of a sensitive ``column``."""
    return f"{KEY}{demand}{' ' if column else ''}{column}"


def key_values(table: Table, key: str) -> pa.Array:
    """Per row, what its person demands, by ``demand_key``; null where nothing is stated."""
    demand, _, column = key.removeprefix(KEY).partition(" ")
    numbers = resolve_demand(table, demand, leaving_columns(table.schema, demand, column))
    return pa.array(numbers, mask=np.isnan(numbers))


def leaving_columns(schema: Schema, demand: str, column: str = "") -> tuple[str, ...]:
    """The columns whose demands a release must keep: all that leave.

    What somebody demands as l or t of one sensitive column is not asked of another ``column``.
    """
    hidden = set(schema.private)
    if demand in ("l", "t") and column:
        hidden |= set(schema.sensitive) - {column}
    spoken = dict.fromkeys(name for source in sources(schema) for name in source.spoken_of)
    return tuple(name for name in spoken if name not in hidden)


def resolve_demand(table: Table, demand: str, columns: Iterable[str]) -> NDArray[np.float64]:
    """Per row, what its person demands where ``columns`` are shown: the strictest of all sources.

    Somebody with several rows demands in all of them what any of them says. NaN: nothing is stated.

    Example:
        >>> import halfmask as hm
        >>> policy = {"k": "k_i", "columns": {"salary": {"k": 3}}}
        >>> people = hm.read({"k_i": [5, 2], "salary": [1, 2]},
        ...                  schema={"policy": policy, "columns": {"salary": "sensitive"}})
        >>> [resolve_demand(people, "k", shown).tolist() for shown in (["salary"], [])]
        [[5.0, 3.0], [5.0, 2.0]]
    """
    listed, stricter = tuple(columns), np.fmax if demand in ("k", "l") else np.fmin
    found = np.full(len(table), np.nan)
    for source in sources(table.schema):
        for entry in source.entries(listed):
            if demand in entry:
                found = stricter(found, _numbers_of(table, entry[demand]))
        if source.people is not None:
            found = stricter(found, _of_people(table, source.people, demand, listed))
    person = table.schema.person
    if person is None or person not in table.arrow.column_names:
        return found
    codes = table.encode(person).codes
    own = np.full(len(table.encode(person).values), np.nan)
    stricter.at(own, codes, found)
    spread: NDArray[np.float64] = own[codes]
    return spread


def _numbers_of(table: Table, demand: Demand) -> NDArray[np.float64]:
    """A demand that stands in a column, or the one of everybody."""
    if not isinstance(demand, str):
        return np.full(len(table), float(demand or np.nan))
    encoded = table.encode(demand)
    values = encoded.values
    if not (pa.types.is_integer(values.type) or pa.types.is_floating(values.type)):
        raise SchemaError(f"The policy column '{demand}' holds text: give numbers.")
    plain = values.cast(pa.float64(), safe=False)  # a demand beyond 2**53 is one all the same
    numbers: NDArray[np.float64] = plain.to_numpy(zero_copy_only=False)
    return numbers[encoded.codes]


def _of_people(
    table: Table, people: pa.Table, demand: str, columns: Sequence[str]
) -> NDArray[np.float64]:
    """What the rows of a policy table say of each row's person."""
    own = per_person(people, columns)
    person = table.schema.person
    if person is None:
        raise SchemaError("Policies are keyed by person: name the person column under [table].")
    encoded = table.encode(person)
    places = pc.index_in(person_texts(encoded.values), value_set=own["person"].combine_chunks())
    found = own[demand].combine_chunks().take(places).to_numpy(zero_copy_only=False)
    return np.asarray(found, dtype=np.float64)[encoded.codes]


def per_person(people: pa.Table, columns: Sequence[str]) -> pa.Table:
    """One row per person of a policy table: the strictest entry in general or of ``columns``."""
    applies = pc.or_(
        pc.is_null(people["column"]),
        pc.is_in(people["column"], value_set=pa.array(list(columns), pa.string())),
    )
    rows = people.set_column(0, "person", person_texts(people["person"]))
    rows = rows.filter(pc.and_(applies, pc.is_valid(rows["person"])))
    grouped = rows.group_by("person").aggregate(
        [(name, "max" if name in ("k", "l") else "min") for name in DEMANDS]
    )
    names = [f"{name}_{'max' if name in ('k', 'l') else 'min'}" for name in DEMANDS]
    return grouped.select(["person", *names]).rename_columns(["person", *DEMANDS])


def person_texts(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Persons as text, so that 17 and "17" are one."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    text = values.cast(pa.string())
    return text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text


def states(schema: Schema, demand: str) -> bool:
    """Whether anybody can state this demand, in whatever source."""
    return any(source.states(demand) for source in sources(schema))


def stated_kinds(schema: Schema | None) -> tuple[str, ...]:
    """The kinds of demands that anybody may state in this table."""
    return () if schema is None else tuple(one for one in DEMANDS if states(schema, one))


def ignored_words(schema: Schema | None) -> str:
    """What is said where demands are set aside: of which kinds, and never of how many people."""
    kinds = stated_kinds(schema)
    of = f" of {' and '.join(kinds)}" if kinds else ""
    return (
        f"People's own demands{of} were set aside by the controller: the epsilon alone is promised "
        "to them. How many people state one is not told under noise."
    )


def people_who(table: Table, rows: NDArray[np.bool_]) -> int:
    """How many people the marked rows are about."""
    if table.schema.person is None:
        return int(np.count_nonzero(rows))
    return len(np.unique(table.encode(table.schema.person).codes[rows]))


def join_policies(table: pa.Table, policies: pa.Table, schema: Schema) -> pa.Table:
    """Append each person's demands, looked up by the person column.

    Where a demand stands in the table too, both count: the stricter one is kept.

    Raises:
        SchemaError: columns are missing, people occur twice, or have no line there.
    """
    person = schema.person
    assert person is not None  # noqa: S101 - the schema demands it where a file is named
    file = f"Policy file '{schema.policy_file}'"
    entries = (schema.policy, *schema.policy_columns.values())
    kinds = {n: d for entry in entries for d, n in entry.items() if isinstance(n, str)}
    faults = [
        f"{file} has no column '{name}'; it has {quote_names(policies.column_names)}."
        for name in (person, *(name for name in kinds if name not in table.column_names))
        if name not in policies.column_names
    ]
    if person not in table.column_names:
        faults += type(schema)(person=person).unknown(table.column_names)
    if faults:
        raise SchemaError(*faults)
    keys, people = person_texts(policies[person]), person_texts(table[person])
    twice = len(keys) - len(pc.unique(keys))
    if twice:
        raise SchemaError(f"{file} has {twice} more line(s) than people: keep one a person.")
    places = pc.index_in(people, value_set=keys)
    absent = len(pc.unique(people.filter(pc.is_null(places)))) if places.null_count else 0
    if absent:
        raise SchemaError(f"{file} has no line for {absent} person(s) of the table. Add them.")
    for name, demand in kinds.items():
        if name not in policies.column_names:
            continue
        own = policies[name].take(places)
        if name not in table.column_names:
            table = table.append_column(name, own)
            continue
        held, more = whole_demands(table.select([name]), {demand: name})
        other, again = whole_demands(pa.table({name: own}), {demand: name})
        if more or again:
            raise SchemaError(*more, *again)
        both = pc.max_element_wise if demand in ("k", "l") else pc.min_element_wise
        table = table.set_column(
            table.column_names.index(name), name, both(held[name], other[name])
        )
    return table


def whole_demands(table: pa.Table, entry: Mapping[str, Demand]) -> tuple[pa.Table, list[str]]:
    """The table with the policy columns of an entry as numbers, and what is wrong with them.

    Demands for k and l are whole numbers of at least 1, those for t lie between 0 and 1, those for
    epsilon above 0. A missing demand is no fault: a model may have a default for those people. Nor
    is one that is too large, infinite or NaN: it is the strictest that there is.
    """
    faults: list[str] = []
    for demand, name in entry.items():
        if not isinstance(name, str) or name not in table.column_names:
            continue
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
            (wrong, "are not whole numbers"),
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
        column = cast_dictionary(column, number)
    kind = column.type
    if pa.types.is_null(kind):  # nobody states one
        column, kind = column.cast(pa.float64()), pa.float64()
    if not (pa.types.is_integer(kind) or pa.types.is_floating(kind) or pa.types.is_decimal(kind)):
        return table, [f"Policy column '{name}' ({demand}): holds {kind}, not numbers."]
    numbers = readable_column(demand, column.cast(pa.float64(), safe=False))  # beyond 2**53 too
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
    if pa.types.is_null(kind):  # nobody states one
        return column.cast(pa.int64()), 0
    if pa.types.is_integer(kind):
        if kind.bit_width < 64:
            return column.cast(pa.int64()), 0
        most = pa.scalar(LARGEST, kind)
        return pc.if_else(pc.greater(column, most), most, column).cast(pa.int64()), 0
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
        return _whole(cast_dictionary(column, number))
    if pa.types.is_floating(kind) or pa.types.is_decimal(kind):
        floats = readable_column("k", column.cast(pa.float64(), safe=False))
        fits = pc.and_(pc.equal(pc.floor(floats), floats), pc.greater(floats, -float(LARGEST)))
        wrong = pc.sum(pc.invert(fits)).as_py() or 0
        return pc.if_else(fits, floats, None).cast(pa.int64()), wrong
    raise InputError(f"holds {kind}, not whole numbers.")
