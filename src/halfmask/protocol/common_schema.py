"""The common schema: what all cells' tables look like, so that one question suits them all.

    [query]
    k = 5                          # no answer promises less; 3 if left out
    [tables.people.columns.city]
    type = "text"                  # integer, float, decimal(9,2), text, boolean, date, timestamp
    role = "quasi"
    values = ["Bourges", "Vierzon"]   # the domain; needed to climb a hierarchy
    hierarchy = { tree = ... }        # as in a schema file

It holds no data. Questions name its digest, and cells answer questions on their own one only.

A person's policy: how well to hide, how often to answer, and what noise may cost.

How the work on a query is cut up: public, part of the question, the same for everybody.
"""

from __future__ import annotations

import json
import re
import tomllib
from collections.abc import Mapping  # noqa: TC003 - read when a policy is decoded
from dataclasses import dataclass, field
from functools import cached_property, lru_cache
from math import ceil
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import msgspec
import pyarrow as pa

from halfmask.dp.personal import STEP
from halfmask.errors import MessageError, ParameterError, SchemaError
from halfmask.protocol.contribution import MOST, MOST_GROUPS, response
from halfmask.protocol.crypto import digest
from halfmask.query.catalog import AskedTable, Catalog
from halfmask.table.schema import FLOOR, QueryRules, Schema

if TYPE_CHECKING:
    from collections.abc import Iterable

    from halfmask.table.hierarchy import Hierarchy


TYPES = {
    "integer": pa.int64(),
    "float": pa.float64(),
    "text": pa.string(),
    "boolean": pa.bool_(),
    "date": pa.date32(),
    "timestamp": pa.timestamp("us"),
}
_DECIMAL = re.compile(r"decimal\((\d+),\s*(\d+)\)")


@dataclass(frozen=True, eq=False)
class CommonTable:
    """One table: its Arrow schema, roles, and the domains of its columns."""

    arrow: pa.Schema
    schema: Schema
    domains: Mapping[str, pa.Array]


@dataclass(frozen=True, eq=False)
class CommonSchema:
    """The tables that every cell has, and the least k of an answer about them."""

    tables: Mapping[str, CommonTable]
    rules: QueryRules = field(default_factory=QueryRules)

    @property
    def floor(self) -> int:
        """The least k that an answer promises."""
        return FLOOR if self.rules.k is None else self.rules.k

    @cached_property
    def hierarchies(self) -> dict[tuple[str, str], Hierarchy]:
        """The hierarchies over the declared domains."""
        found = {}
        for name, table in self.tables.items():
            for column, declared in table.schema.columns.items():
                if declared.hierarchy is not None and column in table.domains:
                    found[name, column] = declared.hierarchy.build(column, table.domains[column])
        return found

    @cached_property
    def digest(self) -> bytes:
        """The name of this common schema."""
        document: dict[str, Any] = {
            name: {
                "columns": [[f.name, str(f.type)] for f in table.arrow],
                "roles": {c: d.role for c, d in table.schema.columns.items()},
                "domains": {c: v.to_pylist() for c, v in table.domains.items()},
                "hierarchies": {
                    c: [[m.tolist() for m in h.maps], [list(x) for x in h.labels]]
                    for (t, c), h in self.hierarchies.items()
                    if t == name
                },
            }
            for name, table in self.tables.items()
        }
        document["query"] = {"k": [self.rules.k]}
        return digest(json.dumps(document, sort_keys=True, default=str).encode())

    def catalog(self) -> Catalog:
        """The tables as queries are planned on."""
        sources = {
            name: AskedTable(
                name, {f.name: f.type for f in table.arrow}, table.schema, repeats=False
            )
            for name, table in self.tables.items()
        }
        main = next(iter(sources)) if len(sources) == 1 else None
        return Catalog(sources, main, None, dict(self.hierarchies))


def read_commons(path: str | Path) -> CommonSchema:
    """Read a common schema (TOML).

    Raises:
        SchemaError: the file says something that cannot be.
    """
    file = Path(path)
    try:
        document = tomllib.loads(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError):
        raise SchemaError(
            f"{file.name} cannot be read as a schema file (TOML): give the common schema."
        ) from None
    return commons_from(document, file.parent)


def commons_from(document: Mapping[str, Any], folder: Path | None = None) -> CommonSchema:
    """Make a common schema from a mapping of the file's shape.

    Raises:
        SchemaError: everything that is wrong, together.
    """
    tables = document.get("tables")
    if not isinstance(tables, dict) or not tables:
        raise SchemaError("A common schema needs [tables.NAME.columns.COLUMN] entries.")
    rules = Schema.from_dict({"query": document.get("query", {})}).query
    faults: list[str] = []
    found = {name: _table(name, entry, folder or Path(), faults) for name, entry in tables.items()}
    if faults:
        raise SchemaError(*faults)
    return CommonSchema(found, rules)


def _table(name: str, entry: Mapping[str, Any], folder: Path, faults: list[str]) -> CommonTable:
    columns = entry.get("columns") if isinstance(entry, dict) else None
    if not isinstance(columns, dict) or not columns:
        faults.append(f"Table '{name}' declares no columns.")
        return CommonTable(pa.schema([]), Schema(), {})
    fields, domains, declared = [], {}, {}
    for column, given in columns.items():
        given = dict(given) if isinstance(given, dict) else {"role": given}
        kind = _type(given.pop("type", "text"))
        if kind is None:
            faults.append(
                f"Column '{column}': the type is none of {', '.join(TYPES)}, decimal(p,s)."
            )
            continue
        values = given.pop("values", None)
        if values is not None:
            try:
                domains[column] = pa.array(sorted(values), kind)
            except (TypeError, ValueError, pa.ArrowInvalid):
                faults.append(f"Column '{column}': its values are not all of its type.")
        elif given.get("hierarchy") is not None:
            faults.append(f"Column '{column}': a hierarchy needs the column's values listed.")
        fields.append(pa.field(column, kind))
        declared[column] = given
    schema = Schema.from_dict({"columns": declared}, folder=folder)
    return CommonTable(pa.schema(fields), schema, domains)


def _type(name: object) -> pa.DataType | None:
    decimal = _DECIMAL.fullmatch(str(name))
    if decimal is not None and 1 <= int(decimal[1]) <= 38 and int(decimal[2]) <= int(decimal[1]):
        return pa.decimal128(int(decimal[1]), int(decimal[2]))
    return TYPES.get(str(name))


LARGEST = 10**9


@dataclass(frozen=True, slots=True)
class Policy:
    """What the person demands.

    Attributes:
        k: of every query; None: queries are refused unless all their columns are named.
        l: of every query.
        columns: column to (k, l) when a query touches it, if that is more.
        days: so long an answer blocks another one on the same values.
        answers: so many answers on the same values within that time.
        epsilon: what one answer with noise may cost; None: none is given.
        budget: what all answers with noise may cost within that time.
    """

    k: int | None = None
    l: int = 1  # noqa: E741
    columns: Mapping[str, tuple[int, int]] = field(default_factory=dict)
    days: int = 30
    answers: int = 1
    epsilon: float | None = None
    budget: float = 1.0

    def __post_init__(self) -> None:
        pairs = [(self.k if self.k is not None else 1, self.l), *self.columns.values()]
        for k, l in pairs:  # noqa: E741
            for name, value in (("k", k), ("l", l)):
                if not isinstance(value, int) or isinstance(value, bool):
                    raise ParameterError(name, value, "a whole number")
                if not 1 <= value <= LARGEST:
                    raise ParameterError(name, value, f"1 to {LARGEST:,}")
        if self.epsilon is not None:
            response(self.epsilon, MOST_GROUPS)
        if not 0 <= self.budget < float("inf"):
            raise ParameterError("budget", self.budget, "a number of at least 0")
        if self.days < 0 or self.answers < 0:
            raise ParameterError("days or answers", min(self.days, self.answers), "at least 0")

    def demand(self, touched: Iterable[str]) -> tuple[int, int] | None:
        """The strictest demand on a query that touches these columns; None: it is refused.

        The general demand is a floor for every column; where there is none, every column that is
        touched must have its own.
        """
        names = {name.lower() for name in touched}
        own = [(name.lower(), pair) for name, pair in self.columns.items() if name.lower() in names]
        pairs = [pair for _, pair in own]
        if self.k is not None:
            pairs.append((self.k, self.l))
        elif {name for name, _ in own} != names:
            return None
        if not pairs:
            return None
        return max(pair[0] for pair in pairs), max(pair[1] for pair in pairs)

    def owes(self, uncounted: Iterable[str], *, sensitive: bool) -> bool:
        """Whether an l is stated for a column whose values no row of the answer counts.

        Args:
            uncounted: the columns that are touched and not counted.
            sensitive: whether one of them is sensitive, so that the general l speaks of it.
        """
        names = {name.lower() for name in uncounted}
        own = [pair[1] for name, pair in self.columns.items() if name.lower() in names]
        return max([*own, self.l if sensitive else 1]) > 1

    def check_columns(self, commons: CommonSchema) -> None:
        """Refuse a demand on a column that does not exist: nobody would ever honor it.

        Raises:
            ParameterError: a column is not one of the common schema, or is in another case.
        """
        known = {field.name for table in commons.tables.values() for field in table.arrow}
        for name in self.columns:
            if name not in known:
                raise ParameterError("column", name, f"one of {', '.join(sorted(known))}")


def permits(policy: Policy | None, commons: CommonSchema, text: str, level: int) -> bool:
    """Whether a record may leave a person's cell at a level of a question: the last look at it.

    Reads the question itself, and shares nothing with what chose the level: the guarantee of the
    level must cover what the person demands in general, and of each column that is named; an l
    holds only for columns of which values are counted.
    """
    named, guarantees, uncounted = _read(commons, text)
    if policy is None or not 0 <= level < len(guarantees):
        return False
    if policy.l > 1 and uncounted & _sensitive(commons):
        return False
    if any(own > 1 and name.lower() in uncounted for name, (_, own) in policy.columns.items()):
        return False
    k, l = guarantees[level]  # noqa: E741
    # Answers never promise less than the floor, whatever the question says.
    k = max(k, commons.floor)
    if policy.k is not None and (policy.k > k or policy.l > l):
        return False
    stated = set()
    for column, (own_k, own_l) in policy.columns.items():
        if column.lower() in named:
            stated.add(column.lower())
            if own_k > k or own_l > l:
                return False
    return policy.k is not None or (bool(stated) and stated == named)


def permits_row(policy: Policy | None, commons: CommonSchema, text: str, k: int, l: int) -> bool:  # noqa: E741
    """Whether a person's row may leave for a release in which it demands ``k`` and ``l``.

    Reads the question itself, as ``permits`` does. An l is kept for the sensitive columns that the
    release shows; of any other column that is named nobody can keep one.
    """
    named, _, _ = _read(commons, text)
    shown = _shown_columns(commons, text) & _sensitive(commons)
    if policy is None or (policy.l > 1 and named & _sensitive(commons) - shown):
        return False
    if policy.k is not None and (policy.k > k or (shown and policy.l > l)):
        return False
    own = {name.lower(): pair for name, pair in policy.columns.items() if name.lower() in named}
    if any(pair[0] > k or pair[1] > (l if name in shown else 1) for name, pair in own.items()):
        return False
    return policy.k is not None or (bool(own) and set(own) == named)


@lru_cache(maxsize=32)
def _shown_columns(commons: CommonSchema, text: str) -> frozenset[str]:
    """The common columns, in lower case, that a release shows."""
    from sqlglot import exp

    from halfmask.query.parse import parse

    group = parse(text).select.args.get("group")
    named = [] if group is None else [c.name.lower() for c in group.find_all(exp.Column)]
    return frozenset(named) & _read(commons, text)[0]


@lru_cache(maxsize=32)
def _read(
    commons: CommonSchema, text: str
) -> tuple[frozenset[str], tuple[tuple[int, int], ...], frozenset[str]]:
    """The common columns that a question names, its guarantees, and the columns it does not count.

    The latter stand in no aggregate, in no list of columns of a table inside the question, and
    not behind ``OF``.
    """
    from sqlglot import exp

    from halfmask.query.parse import parse

    statement = parse(text)
    known = {field.name.lower() for table in commons.tables.values() for field in table.arrow}
    parts = [
        identifier.name
        for identifier in statement.select.find_all(exp.Identifier)
        # A new name touches nothing: what it stands for is named beside it.
        if not (
            isinstance(identifier.parent, exp.Alias | exp.TableAlias)
            and identifier.arg_key != "this"
        )
    ]
    # A natural join compares whatever columns two tables have in common.
    if any(join.method for join in statement.select.find_all(exp.Join)):
        parts += known
    parts += statement.chain.diverse
    named = frozenset(part.lower() for part in parts) & known
    places = [*statement.select.find_all(exp.AggFunc)]
    for inner in statement.select.find_all(exp.Select):
        places += inner.expressions if inner is not statement.select else []
    inside = [column.name for place in places for column in place.find_all(exp.Column)]
    counted = {name.lower() for name in (*inside, *statement.chain.diverse)}
    people = {(table.schema.person or "").lower() for table in commons.tables.values()}
    guarantees = tuple((g.k, g.l) for g in statement.chain.guarantees)
    return named, guarantees, named - counted - people


def _sensitive(commons: CommonSchema) -> set[str]:
    tables = commons.tables.values()
    return {name.lower() for table in tables for name in table.schema.names("sensitive")}


def named_columns(commons: CommonSchema, text: str) -> frozenset[str]:
    """The columns of the common schema, in lower case, that a question names anywhere."""
    return _read(commons, text)[0]


Merge = Literal["tree", "swap", "network"]
MERGES: tuple[Merge, ...] = ("tree", "swap", "network")
SUMS = 3
# The ways to divide rows into classes that draw nothing at random: done twice, they give the same.
RELEASES = ("mondrian", "personal", "mdav")
TERMS_LARGEST = 1 << 14


class Terms(msgspec.Struct, frozen=True, array_like=True, forbid_unknown_fields=True):
    """Sizes that depend on nobody's data.

    Attributes:
        merge: how partial aggregates are merged.
        partition: contributions that one cell aggregates at first.
        frame: groups in one frame.
        room: groups that there is room for; with more the query fails.
        text: bytes for a text key; people with a longer one do not contribute.
        ram: bytes that a cell can hold (``tree`` needs room for everything it merges).
        row: bytes of the answer per group that there is room for.
        noise: every cell reports its group by chance, under its person's own epsilon.
        epsilon: above 0, counts get noise of so much epsilon when they are filtered; whose own
            epsilon is less is counted by chance.
        local: rows are generalized apart from each other, in no more columns than each needs.
        release: rows of single people leave in place of an answer, in classes that this method
            makes; empty: an answer.
    """

    merge: Merge = "tree"
    partition: int = 256
    frame: int = 256
    room: int = 4096
    text: int = 32
    ram: int = 64 << 20
    row: int = 64
    noise: bool = False
    epsilon: float = 0.0
    local: bool = False
    release: str = ""

    @property
    def reply(self) -> int:
        """Bytes of the answer, whatever it says."""
        return (1 << 16) + self.room * self.row

    @property
    def full(self) -> int:
        """Frames that hold everything there is room for."""
        return ceil((self.room + SUMS) / self.frame)

    def check(self) -> None:
        """Refuse sizes that cannot be worked with.

        Raises:
            MessageError: a size is out of range.
        """
        limits = {
            "partition": (1, 1 << 16),
            "frame": (2, 1 << 16),
            "room": (1, 1 << 24),
            "text": (1, 1024),
            "ram": (1 << 10, 1 << 40),
            "row": (1, 1 << 16),
        }
        for name, (low, high) in limits.items():
            if not low <= getattr(self, name) <= high:
                raise MessageError(f"The query's {name} must lie between {low:,} and {high:,}.")
        if self.full > TERMS_LARGEST:
            raise MessageError(
                f"The query's room needs over {TERMS_LARGEST:,} frames: enlarge them."
            )
        if not (self.epsilon == 0 or STEP <= self.epsilon <= MOST):
            raise MessageError(f"The query's epsilon must lie between {float(STEP):g} and {MOST}.")
        if self.release not in ("", *RELEASES):
            raise MessageError(f"A release from cells is made by {' or '.join(RELEASES)}.")
        if bool(self.noise) + bool(self.epsilon) + self.local + bool(self.release) > 1:
            raise MessageError("Noise, local recoding and a release of rows exclude each other.")
