"""What each person demands of a query: an own k and l, per queried column if they wish.

Demands come from columns of the table, from a table keyed by person, or from a TOML file:

    missing = "refuse"          # people without a policy: "refuse", or "level 0"
    k = "k_i"                   # a column of the table, or one number for everybody
    l = 1
    [columns.salary]            # when salary is queried
    k = 10
    [people."17"]               # one person
    k = 20
    l = 3
    [people."17".columns.salary]
    k = 30
"""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from halfmask.errors import ParameterError, SchemaError

if TYPE_CHECKING:
    import pyarrow as pa

Missing = Literal["refuse", "level 0"]
Demand = str | int | None


@dataclass(frozen=True, eq=False)
class Policies:
    """Where people's demands stand.

    Attributes:
        k: the column (or the number) of everybody's own k.
        l: the same for l.
        columns: queried column to the k and l that hold when it is queried.
        people: rows ``person``, ``k``, ``l`` and optionally ``column`` (null: any column).
        missing: what becomes of people without a policy.

    Example:
        >>> Policies(k="k_i", columns={"salary": {"k": 10}}).stated
        True
    """

    k: Demand = None
    l: Demand = None
    columns: Mapping[str, Mapping[str, Demand]] = field(default_factory=dict)
    people: pa.Table | None = None
    missing: Missing = "refuse"

    def __post_init__(self) -> None:
        if self.missing not in ("refuse", "level 0"):
            raise ParameterError("missing", self.missing, "'refuse' or 'level 0'")
        entries: list[Mapping[str, Demand]] = [{"k": self.k, "l": self.l}, *self.columns.values()]
        for entry in entries:
            for name, value in entry.items():
                if name not in ("k", "l"):
                    raise ParameterError("policies", name, "k and l")
                if isinstance(value, bool) or (isinstance(value, int) and value < 1):
                    raise ParameterError(name, value, "a column or a whole number, at least 1")

    @property
    def stated(self) -> bool:
        """Whether anybody can have a demand at all."""
        return bool(self.k or self.l or self.columns or self.people is not None)

    def demand(self, name: Literal["k", "l"], column: str) -> Demand:
        """The column or number that holds when ``column`` is queried."""
        entry = self.columns.get(column, {})
        return entry.get(name) or (self.k if name == "k" else self.l)


def policies_of(given: object, defaults: Mapping[str, str]) -> Policies:
    """Read policies in any of their forms.

    Args:
        given: None, a Policies, a mapping of the TOML's shape, a path to TOML, CSV or Parquet, or
            rows keyed by person (an Arrow table or a frame).
        defaults: the schema's policy columns.

    Raises:
        SchemaError: where the given thing holds no policies.
    """
    if given is None:
        return Policies(k=defaults.get("k"), l=defaults.get("l"))
    if isinstance(given, Policies):
        return given
    if isinstance(given, (str, Path)):
        path = Path(given)
        if path.suffix == ".toml":
            try:
                given = tomllib.loads(path.read_text(encoding="utf-8"))
            except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
                raise SchemaError(
                    f"The policy file cannot be read: {type(error).__name__}."
                ) from None
        else:
            return Policies(people=_checked(_rows(path)))
    if isinstance(given, Mapping):
        return _from_mapping(given)
    return Policies(people=_checked(_arrow(given)))


def _from_mapping(given: Mapping[str, Any]) -> Policies:
    import pyarrow as pa

    unknown = set(given) - {"missing", "k", "l", "columns", "people"}
    if unknown:
        raise SchemaError(
            f"Unknown in the policies: {', '.join(sorted(map(str, unknown)))}. "
            "Known: missing, k, l, columns, people."
        )
    people = given.get("people")
    rows = None
    if isinstance(people, Mapping):
        entries = [
            (str(person), column, e.get("k", 1), e.get("l", 1))
            for person, entry in people.items()
            for column, e in [(None, entry), *entry.get("columns", {}).items()]
            if "k" in e or "l" in e
        ]
        names = ("person", "column", "k", "l")
        types = (pa.string(), pa.string(), pa.int64(), pa.int64())
        rows = pa.table(
            {
                n: pa.array([e[i] for e in entries], type=t)
                for i, (n, t) in enumerate(zip(names, types, strict=True))
            }
        )
    elif people is not None:
        rows = _checked(_arrow(people))
    return Policies(
        given.get("k"),
        given.get("l"),
        given.get("columns", {}),
        rows,
        given.get("missing", "refuse"),
    )


def _rows(path: Path) -> pa.Table:
    import pyarrow as pa

    try:
        if path.suffix == ".parquet":
            import pyarrow.parquet as pq

            return pq.read_table(path)
        import pyarrow.csv as csv

        return csv.read_csv(path)
    except (OSError, pa.ArrowInvalid) as error:
        raise SchemaError(f"The policy table cannot be read: {type(error).__name__}.") from None


def _arrow(given: Any) -> pa.Table:
    import pyarrow as pa

    if isinstance(given, pa.Table):
        return given
    if hasattr(given, "arrow") and isinstance(given.arrow, pa.Table):
        return given.arrow
    if hasattr(given, "__arrow_c_stream__"):
        return pa.table(given)
    raise SchemaError("Policies are a path, a mapping, or rows with the columns person, k and l.")


def _checked(rows: pa.Table) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    names = {str(n).lower(): n for n in rows.column_names}
    if "person" not in names or not {"k", "l"} & set(names):
        raise SchemaError("A policy table needs the columns person, k and l (and may have column).")
    count = rows.num_rows
    columns = {"person": rows[names["person"]]}
    columns["column"] = (
        rows[names["column"]].cast(pa.string())
        if "column" in names
        else pa.nulls(count, pa.string())
    )
    for name in ("k", "l"):
        if name not in names:
            columns[name] = pa.array([1] * count, type=pa.int64())
            continue
        try:
            # A demand that is no whole number is rounded up: never less than was asked for.
            columns[name] = pc.ceil(rows[names[name]].cast(pa.float64())).cast(pa.int64())
        except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
            raise SchemaError(f"The policy column {name} must hold numbers.") from None
    return pa.table(columns)
