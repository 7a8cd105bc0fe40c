"""What a query asks of an engine: one aggregation over rows, and one measurement of chosen groups.

A request holds SQL expressions, not SQL text, so that each engine writes it in its own dialect
(and the plain-Python reference evaluates it directly).

What an engine complains of, without what it quotes and without what it stumbled over.
"""

from __future__ import annotations

import glob
import re
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Literal, Protocol

from halfmask.errors import EngineError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    import pyarrow as pa
    from sqlglot import exp

    from halfmask.engines.tallies import BoundedTally


ValueKind = Literal["integer", "decimal", "float", "text", "boolean", "temporal", "other"]
StateKind = Literal["count", "sum", "min", "max", "moments"]
MeasureKind = Literal["median", "distinct", "rows", "max"]

MARK = "halfmask release\n"  # how the comment of a released table begins
REFUSED, WITHOUT_POLICY = -1, -2
ATTACHED = "given"  # what a database file is called in a connection of its own


@dataclass(frozen=True, slots=True)
class Interval:
    """Whole numbers times ``width``: [0, width), [width, 2 width) ..."""

    width: int


@dataclass(frozen=True, slots=True)
class Climb:
    """Up a hierarchy: per value, a value that stands for all those under the same label.

    Attributes:
        stand_ins: value to the value that stands for its label; a missing value, and every value
            where one label covers all, stand for themselves as null.
    """

    stand_ins: Mapping[object, object]


@dataclass(frozen=True, slots=True)
class Delete:
    """The column is taken away."""


Rule = Interval | Climb | Delete


@dataclass(frozen=True, slots=True)
class Key:
    """One grouping column.

    Attributes:
        expression: what is grouped by.
        kind: what its values are.
        depths: per level of the chain, how often it has been generalized.
        rules: per depth from 1, how a value as it stands in the rows is generalized.
    """

    expression: exp.Expr
    kind: ValueKind
    depths: tuple[int, ...]
    rules: tuple[Rule, ...] = ()


@dataclass(frozen=True, slots=True)
class DistinctTest:
    """A number of distinct values that must reach a threshold; counted exactly below ``cap``.

    Attributes:
        expression: whose values are counted.
        cap: from so many on, no threshold can fail.
        total: whether the number is used as such, so that it must be exact above ``cap`` too.
    """

    expression: exp.Expr
    cap: int
    total: bool = False


@dataclass(frozen=True, slots=True)
class AggregateState:
    """A part of an aggregate that merges: counts, sums, extremes, moments of one expression."""

    kind: StateKind
    expression: exp.Expr
    of: ValueKind = "other"
    scale: int = 0


@dataclass(frozen=True, slots=True)
class GroupMeasure:
    """An aggregate that does not merge, or a second look: computed once it is known who is where.

    ``distinct`` counts distinct values, ``rows`` those that are not null, ``max`` is the largest.
    """

    kind: MeasureKind
    expression: exp.Expr


@dataclass(frozen=True, slots=True)
class Request:
    """The one query that touches rows.

    Attributes:
        source: SELECT ... FROM ... JOIN ... WHERE ..., without a select list.
        keys: what is grouped by, with its generalizations.
        guarantees: per level, (k, l).
        demands: the expressions of a person's own k and l; None where nobody states any.
        person: whose row it is; None where each row is another person.
        missing: the level of people without a policy, or WITHOUT_POLICY to leave them out.
        tests: what must reach a threshold as a number of distinct values.
        states: the mergeable parts of the aggregates.
    """

    source: exp.Select
    keys: tuple[Key, ...]
    guarantees: tuple[tuple[int, int], ...]
    demands: tuple[exp.Expr, exp.Expr] | None = None
    person: exp.Expr | None = None
    missing: int = WITHOUT_POLICY
    tests: tuple[DistinctTest, ...] = ()
    states: tuple[AggregateState, ...] = field(default=())


@dataclass(frozen=True)
class RowOrigin:
    """What gives the rows of a table or view of a database.

    Attributes:
        types: the engine's own name of the type of each column, without its size.
        definition: of a view, its SQL; None for a table.
        computes: what else runs when its rows are read, in words; "" where they are just read.
    """

    types: Mapping[str, str]
    definition: str | None = None
    computes: str = ""


class Engine(Protocol):
    """Where rows stay, and what may be asked of them.

    ``given`` names the tables that it was made of, rather than found.

    ``collect`` returns one row per group and level: ``level`` (negative: left out), ``g0...``,
    ``rows``, ``k`` and ``l`` (the largest demand of a contributor), per test ``t0_n`` (from
    ``cap`` on, a lower bound may do) and ``t0_values`` (from ``cap`` on, null or a part), per
    state ``s0`` (moments: ``s0_n``, ``s0_mean``, ``s0_m2``).
    """

    name: str
    dialect: str
    given: tuple[str, ...] = ()

    def columns(self, table: str) -> dict[str, pa.DataType] | None:
        """The columns of a table; None where there is no such table."""
        ...

    def run(self, query: exp.Expr) -> pa.Table:
        """Run one query."""
        ...

    def sql(self, query: exp.Expr) -> str:
        """The text of a query in this engine's dialect."""
        ...

    def add(self, name: str, rows: pa.Table) -> None:
        """Bring a small table along under a name that the user's tables do not have."""
        ...

    def collect(self, request: Request) -> pa.Table:
        """Aggregate the rows into groups, each person at the finest level they accept."""
        ...

    def queries(self, request: Request) -> list[exp.Select]:
        """The queries behind ``collect``."""
        ...

    def measure(
        self, request: Request, places: pa.Table, measures: tuple[GroupMeasure, ...]
    ) -> pa.Table:
        """Measure the rows of each ``place``; ``places`` maps (level, g0...) to a place.

        Gives ``place``, ``rows`` (how many there were) and ``m0...``.
        """
        ...

    def parts(
        self,
        request: Request,
        places: pa.Table,
        splits: tuple[exp.Expr, ...],
        counted: tuple[exp.Expr, ...],
    ) -> pa.Table:
        """Count the rows of each ``place`` for which the ``splits`` are the same.

        Gives ``place``, ``c0...`` (what the splits are), ``rows``, and ``d0...``: how many distinct
        values of each of ``counted`` there are. Where ``places`` says what is ``needed`` of rows
        and of each value (``need0...``), a lower bound that reaches it may do.
        """
        ...

    def shares(
        self, request: Request, places: pa.Table, amounts: tuple[exp.Expr, ...], most: int
    ) -> pa.Table:
        """Add up what each person brings to each ``place``.

        Gives ``place`` and per amount ``rows0`` (how many there were), ``t0`` (all absolute values
        together, as doubles) and ``x0_1`` to ``x0_most``: what those bring who bring most; null
        where there are fewer people.
        """
        ...

    def tally(self, request: BoundedTally) -> pa.Table:
        """Count and sum the bounded contributions of people: ``g0...``, ``rows``, ``n0`` ..."""
        ...

    def trace(
        self, request: Request, places: pa.Table, columns: Mapping[str, exp.Expr]
    ) -> pa.Table:
        """The rows behind each ``place``, one by one: ``place`` and the given columns."""
        ...

    def definition(self, table: str) -> str | None:
        """The SQL of a view in the engine's dialect; None for a table, or where it is not told."""
        ...

    def row_origin(self, table: str, schema: str = "") -> RowOrigin | None:
        """What gives the rows of a table or view; None where it is not known, or nothing is."""
        ...

    def capped(self, value: exp.Expr, count: int) -> exp.Expr:
        """The list of a group's (already distinct) values, or null or a part from ``count`` on."""
        ...

    def fingerprint(self, table: str) -> str:
        """A text that changes where the table's rows change; how it is made stands before ':'."""
        ...

    def close(self) -> None:
        """Let go of what was opened."""
        ...


def any_digits() -> pa.DataType:
    """The type that stands for numbers of any number of digits, which become doubles."""
    import pyarrow as pa

    return pa.decimal256(76, 0)


def unread_type() -> pa.DataType:
    """The type that stands for every type whose values are not read here."""
    import pyarrow as pa

    return pa.month_day_nano_interval()


def kind_of(data_type: pa.DataType) -> ValueKind:
    """What the values of an Arrow type are."""
    import pyarrow as pa

    if pa.types.is_dictionary(data_type):
        data_type = data_type.value_type
    tests: tuple[tuple[ValueKind, bool], ...] = (
        ("integer", pa.types.is_integer(data_type)),
        ("decimal", pa.types.is_decimal(data_type)),
        ("float", pa.types.is_floating(data_type)),
        (
            "text",
            pa.types.is_string(data_type)
            or pa.types.is_large_string(data_type)
            or pa.types.is_string_view(data_type),
        ),
        ("boolean", pa.types.is_boolean(data_type)),
        ("temporal", pa.types.is_temporal(data_type)),
    )
    return next((kind for kind, found in tests if found), "other")


def file_literal(place: object) -> str:
    """A file's name as a text of DuckDB's SQL, in which marks of patterns stand for themselves."""
    return "'" + glob.escape(str(place)).replace("'", "''") + "'"


def engine_refusal(engine: str) -> EngineError:
    """An engine's complaint as ours: one text for all, since its reason may lie in a row."""
    return EngineError(
        f"{engine} could not answer this query. Check that it can be reached, has memory enough "
        "(memory_limit), and knows the tables and the types of their columns; its own log has the "
        "reason."
    )


_UNITS = "KMGT"


def memory_bytes(limit: str) -> float | None:
    """A size as DuckDB reads and shows it, in bytes; None where it is a share."""
    found = re.fullmatch(r"\s*([\d.]+)\s*([KMGT]?)(i?)B?(?:ytes?)?\s*", limit, re.IGNORECASE)
    if found is None:
        return None
    number, unit, binary = found.groups()
    power = _UNITS.index(unit.upper()) + 1 if unit else 0
    scale = 1024.0 if binary else 1000.0
    return float(number) * scale**power


def unused_name(name: str, columns: Iterable[str]) -> str:
    """A name for a helper that none of the columns has, also where engines ignore its case."""
    taken = {one.casefold() for one in columns}
    while name in taken:
        name += "_"
    return name


def bare_type(name: str) -> str:
    """The name of a type as it is compared: in small letters, without its size."""
    return " ".join(re.sub(r"\([^()]*\)", "", name).lower().split())


def quote(name: str) -> str:
    """A name as SQL writes it, whatever characters stand in it."""
    return '"' + name.replace('"', '""') + '"'
