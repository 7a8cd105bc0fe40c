"""What people demand for themselves: where it is stated, and what holds of all that is.

A demand is an own k, l, t or epsilon, in general or where one column is shown. It may stand in the
schema, in a policy file and in an argument. All of them count: the largest k and l, the smallest t
and epsilon. A general demand is a floor for every column, so that one column more never asks less.
A policy file or argument has this shape, or is a table with the columns person, k, l, t, epsilon
and column:

    missing = "refuse"          # people who state nothing: "refuse", or "level 0" (queries)
    k = "k_i"                   # a column of the table, or one number for everybody
    l = 1
    [columns.salary]            # where salary is shown
    k = 10
    [people."17"]               # one person
    k = 20
    t = 0.3
    [people."17".columns.salary]
    k = 30
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, ParameterError, SchemaError
from halfmask.table.csv_file import TEXT
from halfmask.table.infer import number_type, retyped, used_values
from halfmask.table.names import told

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from numpy.typing import NDArray

    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

Missing = Literal["refuse", "level 0"]
Demand = str | int | float | None

DEMANDS = ("k", "l", "t", "epsilon")
EXACT = ("k", "l", "t")  # what exact rows and figures can keep; epsilon speaks of noise
KEY = "\0demand "  # names of demands among the columns of a table; no column begins so
_LARGEST = 2**53
_SHAPE = "Policies are a path, a mapping, or rows with the columns person, k, l, t or epsilon."


@dataclass(frozen=True, eq=False)
class Policies:
    """One source of people's demands.

    Attributes:
        k: the column (or the number) of everybody's own k.
        l: the same for l.
        t: the same for t.
        epsilon: the same for epsilon.
        columns: column to the demands that hold, beside the general ones, where it is shown.
        people: rows ``person``, ``column`` (null: any column), ``k``, ``l``, ``t``, ``epsilon``.
        missing: what becomes of people who state nothing, in queries; None: left to others.

    Example:
        >>> Policies(k="k_i", columns={"salary": {"k": 10}}).stated
        True
    """

    k: Demand = None
    l: Demand = None  # noqa: E741 - the letter of the definition
    t: Demand = None
    epsilon: Demand = None
    columns: Mapping[str, Mapping[str, Demand]] = field(default_factory=dict)
    people: pa.Table | None = None
    missing: Missing | None = None

    def __post_init__(self) -> None:
        if self.missing not in (None, "refuse", "level 0"):
            raise ParameterError("missing", self.missing, "'refuse' or 'level 0'")
        faults = entry_faults("The policies", self.general)
        for name, entry in self.columns.items():
            faults += entry_faults(f"The policies of column '{name}'", entry)
        if faults:
            raise SchemaError(*faults)
        if self.people is not None:
            object.__setattr__(self, "people", _checked(self.people))

    @property
    def stated(self) -> bool:
        """Whether anybody can have a demand at all."""
        return bool(self.general or any(self.columns.values()) or self.people is not None)

    @property
    def general(self) -> dict[str, Demand]:
        """The demands that hold whatever is shown."""
        given = {name: getattr(self, name) for name in DEMANDS}
        return {name: value for name, value in given.items() if value is not None}

    @property
    def names(self) -> tuple[str, ...]:
        """The columns that hold demands."""
        every = [self.general, *self.columns.values()]
        return tuple(dict.fromkeys(v for e in every for v in e.values() if isinstance(v, str)))

    @property
    def spoken_of(self) -> tuple[str, ...]:
        """The columns that demands are about."""
        rows = [] if self.people is None else self.people["column"].unique().to_pylist()
        return tuple(dict.fromkeys([*self.columns, *(name for name in rows if name is not None)]))

    def entries(self, shown: Iterable[str]) -> list[Mapping[str, Demand]]:
        """The entries that hold where the columns ``shown`` are."""
        own = (self.columns[name] for name in shown if name in self.columns)
        return [entry for entry in (self.general, *own) if entry]

    def states(self, demand: str) -> bool:
        """Whether anybody can state this demand here."""
        if any(demand in entry for entry in (self.general, *self.columns.values())):
            return True
        return self.people is not None and self.people[demand].null_count < self.people.num_rows

    def unknown(self, names: Sequence[str]) -> list[str]:
        """One fault per column that is named here and is not one of ``names``."""
        uses = dict.fromkeys(self.names, "people's demands")
        uses |= dict.fromkeys(self.spoken_of, "a demand for it")
        return [
            f"The policies name the column '{name}' ({use}), which is not there: "
            f"there are {told(names)}."
            for name, use in uses.items()
            if name not in names
        ]


def entry_faults(where: str, entry: Mapping[str, Demand]) -> list[str]:
    """What is wrong with one entry of demands: unknown words, and numbers out of range."""
    faults = []
    for name, value in entry.items():
        if name not in DEMANDS:
            faults.append(f"{where}: '{name}' is none of {', '.join(DEMANDS)}.")
        elif isinstance(value, bool) or not isinstance(value, str | int | float):
            faults.append(f"{where}: {name} must be the name of a column or a number.")
        elif not isinstance(value, str) and not _allowed(name, value):
            faults.append(f"{where}: {name} must be {_RANGES[name]}.")
    return faults


_RANGES = {
    "k": "a whole number of at least 1",
    "l": "a whole number of at least 1",
    "t": "from 0 to 1",
    "epsilon": "above 0",
}


def _allowed(name: str, value: float) -> bool:
    if name in ("k", "l"):
        return value == int(value) and 1 <= value <= _LARGEST if np.isfinite(value) else False
    return 0 <= value <= 1 if name == "t" else 0 < value < float("inf")


def strictest(entries: Iterable[Mapping[str, float | None]]) -> dict[str, float]:
    """What holds where all ``entries`` hold: the largest k and l, the smallest t and epsilon.

    Example:
        >>> strictest([{"k": 5, "t": 0.4}, {"k": 3, "l": 2, "t": 0.2}])
        {'k': 5, 'l': 2, 't': 0.2}
    """
    given = list(entries)
    found: dict[str, float] = {}
    for demand in DEMANDS:
        values = [value for entry in given if (value := entry.get(demand)) is not None]
        if values:
            found[demand] = max(values) if demand in ("k", "l") else min(values)
    return found


def demand_of(
    general: Mapping[str, float | None],
    columns: Mapping[str, Mapping[str, float | None]],
    shown: Iterable[str],
) -> dict[str, float] | None:
    """What one person demands where the columns ``shown`` are; None where nothing is said of one.

    Example:
        >>> demand_of({"k": 50}, {"salary": {"k": 3, "l": 2}}, ["salary", "city"])
        {'k': 50, 'l': 2}
        >>> demand_of({}, {"salary": {"k": 3}}, ["salary", "city"]) is None
        True
    """
    if not strictest([general]) and any(not strictest([columns.get(n, {})]) for n in shown):
        return None
    return strictest([general, *(columns[name] for name in shown if name in columns)]) or None


def read_policies(given: object) -> Policies | None:
    """Read policies in any of their forms.

    Args:
        given: None, a Policies, a mapping of the TOML's shape, a path to TOML, CSV or Parquet, or
            rows keyed by person (an Arrow table or a frame).

    Raises:
        SchemaError: where the given thing holds no policies.
    """
    if given is None or isinstance(given, Policies):
        return given
    if isinstance(given, (str, Path)):
        path = Path(given)
        if path.suffix != ".toml":
            return Policies(people=_rows(path))
        try:
            given = tomllib.loads(path.read_text(encoding="utf-8"))
        except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
            raise SchemaError(_unread(path, "TOML")) from None
    if isinstance(given, Mapping):
        return _from_mapping(given)
    return Policies(people=_arrow(given))


def _from_mapping(given: Mapping[str, Any]) -> Policies:
    known = ("missing", *DEMANDS, "columns", "people")
    unknown = [str(name) for name in given if name not in known]
    if unknown:
        raise SchemaError(
            f"Unknown in the policies: {', '.join(sorted(unknown))}. Known: {', '.join(known)}."
        )
    columns, people = given.get("columns", {}), given.get("people")
    if not isinstance(columns, Mapping) or not all(
        isinstance(e, Mapping) for e in columns.values()
    ):
        raise SchemaError(
            "The columns of the policies hold entries such as [columns.salary] k = 3."
        )
    rows = None
    if isinstance(people, Mapping):
        rows = _people(people)
    elif people is not None:
        rows = _arrow(people)
    own = {name: given.get(name) for name in DEMANDS}
    return Policies(**own, columns=columns, people=rows, missing=given.get("missing"))


def _people(people: Mapping[str, Any]) -> pa.Table:
    """One row per person and column of ``[people."17"]``."""
    entries: list[dict[str, Any]] = []
    faults: list[str] = []
    for person, entry in people.items():
        own = dict(entry) if isinstance(entry, Mapping) else {"": entry}
        columns = own.pop("columns", {})
        several = columns.items() if isinstance(columns, Mapping) else [("", {"columns": columns})]
        for column, demands in [(None, own), *several]:
            wrong = not isinstance(demands, Mapping) or entry_faults("", demands)
            if wrong or any(isinstance(value, str) for value in demands.values()):
                faults.append("wrong")
            elif demands:
                entries.append({"person": str(person), "column": column, **demands})
    if faults:
        raise SchemaError(
            f"{len(faults)} entries of people in the policies are wrong: give numbers for"
            f" {', '.join(DEMANDS)} (k and l whole, at least 1; t from 0 to 1; epsilon above 0)."
        )
    types = [("person", pa.string()), ("column", pa.string())]
    types += [(name, pa.float64()) for name in DEMANDS]
    return pa.table(
        {n: pa.array([entry.get(n) for entry in entries], type=kind) for n, kind in types}
    )


def _rows(path: Path) -> pa.Table:
    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            return pq.read_table(path)
        import pyarrow.csv as csv

        # A person is known as written: 007 is not 7.
        kinds = dict.fromkeys(("person", "Person", "PERSON"), pa.string())
        options = csv.ConvertOptions(strings_can_be_null=True, null_values=[""], column_types=kinds)
        return csv.read_csv(path, convert_options=options)
    except (OSError, pa.ArrowInvalid):
        raise SchemaError(_unread(path, "CSV or Parquet")) from None


def _unread(path: Path, kind: str) -> str:
    return f"The policy file {path.name!r} cannot be read: check that it is there and is {kind}."


def _arrow(given: Any) -> pa.Table:
    if isinstance(given, pa.Table):
        return given
    if hasattr(given, "arrow") and isinstance(given.arrow, pa.Table):
        found: pa.Table = given.arrow
        return found
    if hasattr(given, "__arrow_c_stream__"):
        return pa.table(given)
    raise SchemaError(_SHAPE)


def _checked(rows: pa.Table) -> pa.Table:
    """Rows keyed by person, with every column of a policy table; no demand is lowered."""
    names = {str(name).lower(): name for name in rows.column_names}
    if "person" not in names or not set(DEMANDS) & set(names):
        raise SchemaError(
            "A policy table needs the columns person and k, l, t or epsilon (and may have column)."
        )
    extra = [str(names[name]) for name in names if name not in ("person", "column", *DEMANDS)]
    if extra:
        raise SchemaError(
            f"A policy table has the columns person, column, {', '.join(DEMANDS)}; unknown are"
            f" {told(extra)}."
        )
    columns = {"person": rows[names["person"]]}
    if pa.types.is_dictionary(columns["person"].type):
        columns["person"] = columns["person"].cast(columns["person"].type.value_type)
    given = rows[names["column"]] if "column" in names else pa.nulls(rows.num_rows, pa.string())
    columns["column"] = given.cast(pa.string())
    faults = []
    for demand in DEMANDS:
        if demand not in names:
            columns[demand] = pa.nulls(rows.num_rows, pa.float64())
            continue
        try:
            numbers = rows[names[demand]].cast(pa.float64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            faults.append(f"The policy column {demand} must hold numbers.")
            continue
        if demand in ("k", "l"):  # a demand that is not whole is rounded up: never less
            numbers = pc.ceil(numbers)
        wrong = _outside(demand, numbers)
        if wrong:
            faults.append(
                f"The policy column {demand}: {wrong} demand(s) are not {_RANGES[demand]}."
            )
        columns[demand] = numbers
    if faults:
        raise SchemaError(*faults)
    return pa.table(columns)


def _outside(demand: str, numbers: pa.ChunkedArray) -> int:
    """How many of the demands cannot be one."""
    low, high = {"t": (0.0, 1.0), "epsilon": (5e-324, 1e308)}.get(demand, (1.0, float(_LARGEST)))
    inside = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    return int(len(numbers) - numbers.null_count - (pc.sum(inside).as_py() or 0))


def _entry(
    general: Mapping[str, Demand], columns: Mapping[str, Mapping[str, Demand]] | None = None
) -> Policies:
    """The policies of one general entry and of those of columns."""
    given = {name: general.get(name) for name in DEMANDS}
    return Policies(given["k"], given["l"], given["t"], given["epsilon"], columns or {})


def sources(schema: Schema) -> tuple[Policies, ...]:
    """All sources of demands that a schema knows of, its own ``[policy]`` first."""
    own = _entry(schema.policy, schema.policy_columns)
    return tuple(source for source in (own, *schema.policies) if source.stated)


def file_policies(schema: Schema, there: Sequence[str]) -> tuple[Policies, ...]:
    """The sources of a table that stays where it is, with what its policy file says of people.

    Args:
        schema: names the file.
        there: the columns of the table; policy columns that are not among them are of the file.

    Raises:
        SchemaError: the file lacks columns.
    """
    from halfmask.table.raw_rows import raw_rows

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
            f"Policy file '{schema.policy_file}' has no column {told(map(str, absent))}; it has"
            f" {told(rows.column_names)}."
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
    stated = _entry(general, left)
    return tuple(one for one in (stated, *more, *schema.policies) if one.stated)


def with_policies(table: Table, given: object) -> Table:
    """The table whose people also demand what ``given`` says; nothing that it knew is lost.

    Raises:
        SchemaError: the policies name columns that are not there, or people nobody can tell.
    """
    found = read_policies(given)
    if found is None or not found.stated:
        return table
    from halfmask.table.table import Table

    faults = found.unknown(table.arrow.column_names)
    if found.people is not None and table.schema.person is None:
        faults.append("Policies are keyed by person: name the person column under [table] person.")
    elif found.people is not None:
        faults += _absent_people(found.people, table)
    if faults:
        raise SchemaError(*faults)
    schema = replace(table.schema, policies=(*table.schema.policies, found))
    arrow, faults = table.arrow, []
    for entry in (found.general, *found.columns.values()):
        arrow, more = whole_demands(arrow, entry)
        faults += more
    if faults:
        raise SchemaError(*faults)
    return Table(arrow, schema, table.origin, table.given)


def _absent_people(people: pa.Table, table: Table) -> list[str]:
    """What to say where policies name people whom the table does not have; no names."""
    assert table.schema.person is not None  # noqa: S101 - the caller looked
    if table.schema.person not in table.arrow.column_names:
        return []
    named = pc.unique(as_text(people["person"]))
    known = pc.is_in(named, value_set=pc.unique(as_text(table.arrow[table.schema.person])))
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


def narrowed(whole: Schema, part: Schema, names: Sequence[str]) -> Schema:
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
                more.append(_entry({d: v for d, v in entry.items() if d not in alone}))
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
    numbers = resolve(table, demand, shown(table.schema, demand, column))
    return pa.array(numbers, mask=np.isnan(numbers))


def shown(schema: Schema, demand: str, column: str = "") -> tuple[str, ...]:
    """The columns whose demands a release must keep: all that leave.

    What somebody demands as l or t of one sensitive column is not asked of another ``column``.
    """
    hidden = set(schema.private)
    if demand in ("l", "t") and column:
        hidden |= set(schema.sensitive) - {column}
    spoken = dict.fromkeys(name for source in sources(schema) for name in source.spoken_of)
    return tuple(name for name in spoken if name not in hidden)


def resolve(table: Table, demand: str, columns: Iterable[str]) -> NDArray[np.float64]:
    """Per row, what its person demands where ``columns`` are shown: the strictest of all sources.

    Somebody with several rows demands in all of them what any of them says. NaN: nothing is stated.

    Example:
        >>> import halfmask as hm
        >>> policy = {"k": "k_i", "columns": {"salary": {"k": 3}}}
        >>> people = hm.read({"k_i": [5, 2], "salary": [1, 2]},
        ...                  schema={"policy": policy, "columns": {"salary": "sensitive"}})
        >>> resolve(people, "k", ["salary"]).tolist(), resolve(people, "k", []).tolist()
        ([5.0, 3.0], [5.0, 2.0])
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
    numbers: NDArray[np.float64] = values.cast(pa.float64()).to_numpy(zero_copy_only=False)
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
    places = pc.index_in(as_text(encoded.values), value_set=own["person"].combine_chunks())
    found = own[demand].combine_chunks().take(places).to_numpy(zero_copy_only=False)
    return np.asarray(found, dtype=np.float64)[encoded.codes]


def per_person(people: pa.Table, columns: Sequence[str]) -> pa.Table:
    """One row per person of a policy table: the strictest entry in general or of ``columns``."""
    applies = pc.or_(
        pc.is_null(people["column"]),
        pc.is_in(people["column"], value_set=pa.array(list(columns), pa.string())),
    )
    rows = people.set_column(0, "person", as_text(people["person"]))
    rows = rows.filter(pc.and_(applies, pc.is_valid(rows["person"])))
    grouped = rows.group_by("person").aggregate(
        [(name, "max" if name in ("k", "l") else "min") for name in DEMANDS]
    )
    names = [f"{name}_{'max' if name in ('k', 'l') else 'min'}" for name in DEMANDS]
    return grouped.select(["person", *names]).rename_columns(["person", *DEMANDS])


def as_text(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    """Persons as text, so that 17 and "17" are one."""
    if pa.types.is_dictionary(values.type):
        values = values.cast(values.type.value_type)
    text = values.cast(pa.string())
    return text.combine_chunks() if isinstance(text, pa.ChunkedArray) else text


def states(schema: Schema, demand: str) -> bool:
    """Whether anybody can state this demand, in whatever source."""
    return any(source.states(demand) for source in sources(schema))


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
        f"{file} has no column '{name}'; it has {told(policies.column_names)}."
        for name in (person, *(name for name in kinds if name not in table.column_names))
        if name not in policies.column_names
    ]
    if person not in table.column_names:
        faults += type(schema)(person=person).unknown(table.column_names)
    if faults:
        raise SchemaError(*faults)
    keys, people = as_text(policies[person]), as_text(table[person])
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
    epsilon above 0. A missing demand is no fault: a model may have a default for those people.
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
