"""Policies: what people demand for themselves, as they state it in a file, a table or an argument.

A demand is an own k, l, t or epsilon, in general or where one column is shown. It may stand in the
schema, in a policy file and in an argument. All of them count: the largest k and l, the smallest t
and epsilon. A general demand is a floor for every column, so that one column more never asks less.
Where a k, l, t or epsilon stands empty, the person states none of that kind, in every verb: what
else the person states holds, and what the controller demands for everybody.
A policy file or argument has this shape, or is a table with the columns person, k, l, t, epsilon
and column:

    missing = "refuse"          # people who state nothing at all; "level 0", the usual: the floor
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
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, ParameterError, SchemaError, usable_path
from halfmask.table.columns import quote_names
from halfmask.table.files.text_file import detect_delimiter, detect_encoding, read_sample

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence


WithoutDemands = Literal["refuse", "level 0"]
Demand = str | int | float | None

DEMANDS = ("k", "l", "t", "epsilon")
EXACT = ("k", "l", "t")  # what exact rows and figures can keep; epsilon speaks of noise
LARGEST = 2**53
# What counts where a demand is too large to read or no number at all: nobody asks for more.
STRICTEST: dict[str, float] = {"k": LARGEST, "l": LARGEST, "t": 0.0, "epsilon": 5e-324}
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
        missing: ``"refuse"``: people who state nothing at all are left out of answers, and nothing
            is released with them in it; else they demand nothing beyond the controller's floor.

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
    missing: WithoutDemands | None = None

    def __post_init__(self) -> None:
        if self.missing not in (None, "refuse", "level 0"):
            raise ParameterError("missing", self.missing, "'refuse' or 'level 0'")
        faults = entry_faults("The policies", self.general)
        for name, entry in self.columns.items():
            faults += entry_faults(f"The policies of column '{name}'", entry)
        if faults:
            raise SchemaError(*faults)
        if self.people is not None:
            object.__setattr__(self, "people", _check_rows(self.people))

    @property
    def stated(self) -> bool:
        """Whether anything is said of people: a demand, or that silence is refused."""
        said = self.general or any(self.columns.values()) or self.people is not None
        return bool(said) or self.missing == "refuse"

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
            f"there are {quote_names(names)}."
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
        elif not isinstance(value, str) and not _is_allowed(name, value):
            faults.append(f"{where}: {name} must be {_RANGES[name]}.")
    return faults


_RANGES = {
    "k": "a whole number of at least 1",
    "l": "a whole number of at least 1",
    "t": "from 0 to 1",
    "epsilon": "above 0, at most 2^53",
}


def _is_allowed(name: str, value: float) -> bool:
    if name in ("k", "l"):
        return 1 <= value <= LARGEST and value == int(value)
    return 0 <= value <= 1 if name == "t" else 0 < value <= LARGEST


def _readable(name: str, value: object) -> object:
    """What one person demands: what is too large, or no number, is the strictest demand."""
    if name not in STRICTEST or isinstance(value, bool) or not isinstance(value, int | float):
        return value
    large = value > LARGEST and name != "t"
    return STRICTEST[name] if large or value != value else value  # NaN


def readable_column(demand: str, numbers: pa.ChunkedArray) -> pa.ChunkedArray:
    """The same of demands as doubles."""
    odd = pc.is_nan(numbers)
    if demand != "t":
        odd = pc.or_(odd, pc.greater(numbers, float(LARGEST)))
    return pc.if_else(odd, float(STRICTEST[demand]), numbers)


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
        path = usable_path(given)
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
            if isinstance(demands, Mapping):
                demands = {name: _readable(name, value) for name, value in demands.items()}
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
        encoding = detect_encoding(path)
        delimiter = detect_delimiter(read_sample(path, encoding), header=True)
        return csv.read_csv(
            path,
            read_options=csv.ReadOptions(encoding=encoding),
            parse_options=csv.ParseOptions(delimiter=delimiter),
            convert_options=options,
        )
    except (OSError, InputError, pa.ArrowInvalid):
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


def _check_rows(rows: pa.Table) -> pa.Table:
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
            f" {quote_names(extra)}."
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
            numbers = rows[names[demand]].cast(pa.float64(), safe=False)  # beyond 2**53 too
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            faults.append(f"The policy column {demand} must hold numbers.")
            continue
        numbers = readable_column(demand, numbers)
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
    low, high = {"k": (1.0, LARGEST), "l": (1.0, LARGEST), "t": (0.0, 1.0)}.get(
        demand, (5e-324, LARGEST)
    )
    inside = pc.and_(pc.greater_equal(numbers, low), pc.less_equal(numbers, high))
    return int(len(numbers) - numbers.null_count - (pc.sum(inside).as_py() or 0))


def policies_of(
    general: Mapping[str, Demand], columns: Mapping[str, Mapping[str, Demand]] | None = None
) -> Policies:
    """The policies of one general entry and of those of columns."""
    given = {name: general.get(name) for name in DEMANDS}
    return Policies(given["k"], given["l"], given["t"], given["epsilon"], columns or {})
