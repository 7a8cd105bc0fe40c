"""The schema of a table: what its columns are, whose rows they hold, and the file that says so."""

from __future__ import annotations

import difflib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from halfmask.errors import HierarchyError, SchemaError
from halfmask.table import hierarchies
from halfmask.table.columns import (
    KINDS,
    ROLES,
    Column,
    Role,
    abbreviate_names,
    is_nonnegative,
    quote_names,
)
from halfmask.table.files.toml import read_mapping, toml_key, toml_section
from halfmask.table.policies import DEMANDS, Demand, Policies, entry_faults
from halfmask.table.values import MARKS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from halfmask.table.hierarchy import HierarchyBuilder


FLOOR = 3
MOST_SHARES = 10
REST = "*"
TIES = "ties"  # of a record: the columns of tokens that tie rows together
NO_ROWS = "The table has no rows: there is nobody to protect."
NO_QUASI = (
    'No column is declared a quasi-identifier: give role = "quasi" to those that others '
    "may know, or run `halfmask describe`."
)


@dataclass(frozen=True, slots=True)
class QueryRules:
    """What the controller lets be asked, whoever asks.

    Attributes:
        k: the least k that an answer promises; ``None``: 3.
        single_people: the word that ``k = 1`` needs: figures about single people may leave.
        tables: the tables that may be asked; ``None``: those that are given.
        dominance: ``{"p": 10}`` or ``{"n": 2, "k": 85}``: no sum that few people make up. A name
            for p is the column in which people state their own; the largest holds for all sums,
            since another one would tell where somebody stands who states more.
    """

    k: int | None = None
    single_people: bool = False
    tables: tuple[str, ...] | None = None
    dominance: Mapping[str, float | str] = field(default_factory=dict)

    def faults(self) -> list[str]:
        """Everything that is wrong with these rules."""
        found = []
        if self.k is not None and (not isinstance(self.k, int) or isinstance(self.k, bool)):
            found.append("[query] k must be a whole number.")
        elif self.k is not None and self.k < 1:
            found.append("[query] k must be at least 1.")
        elif self.k == 1 and not self.single_people:
            found.append(
                "[query] k = 1 lets figures about single people leave: say so with "
                "single_people = true, or give k = 2 or more."
            )
        if self.tables is not None and not all(isinstance(t, str) and t for t in self.tables):
            found.append('[query] tables must be a list of names, such as ["visits"].')
        return found + self._dominance_faults()

    @property
    def own_p(self) -> str | None:
        """The column in which people state their own p of the p% rule."""
        found = self.dominance.get("p") if isinstance(self.dominance, Mapping) else None
        return found if isinstance(found, str) else None

    def _dominance_faults(self) -> list[str]:
        if self.own_p and len(self.dominance) == 1:
            return []
        rule: Mapping[str, Any] = self.dominance
        right = isinstance(rule, Mapping) and set(rule) in (set(), {"p"}, {"n", "k"})
        if right and all(is_nonnegative(value) for value in rule.values()):
            whole = isinstance(rule.get("n", 1), int) and 1 <= rule.get("n", 1) <= MOST_SHARES
            if whole and rule.get("p", 1) > 0 and 0 < rule.get("k", 1) <= 100:
                return []
        return [
            '[query] dominance must be { p = 10 } (percent), { p = "own_p" } (a column of what '
            "people state) or { n = 2, k = 85 } (the n largest may make up k percent), n at most "
            f"{MOST_SHARES}."
        ]


@dataclass(frozen=True, slots=True)
class Schema:
    """What a table's columns are, who a row is about, and what these people demand.

    Attributes:
        columns: one entry per declared column; a plain text means the role. The entry ``"*"``
            speaks of every column that has none of its own.
        person: the column that says whose row this is; ``None``: one row, one person.
        household: the column that says which rows are of one household; its people know of each
            other, and promises count households where asked.
        weight: the column that says how many people of the population a row stands for.
        policy: demand (``"k"``, ``"l"``, ``"t"``, ``"epsilon"``) to the column that holds it, or to
            the number that everybody demands.
        policy_file: a file keyed by the person column that holds the policy columns, or TOML of the
            shape of ``Policies``.
        policy_columns: column to the demands that hold, beside the general ones, where it is shown.
        policies: more sources of demands; all count, and the strictest holds.
        missing: the texts that mean a missing value; ``None``: the empty text in text files.
        delimiter: what stands between the fields of a text file; ``None``: detected.
        encoding: the character encoding of a text file; ``None``: detected.
        decimal: the decimal mark of a text file, ``","`` or ``"."``; ``None``: a point.
        query: what the controller lets be asked, as rules or as a mapping of their names.
        folder: the folder that relative file names refer to.
        epsilon_levels: the public levels of epsilon that people's own are rounded down to,
            ascending; empty: halfmask's own.
        epsilon_shares: the public share of people at each level; empty: not known.
        impossible: combinations of values that cannot occur, each as column to value, values or
            range; public. Synthetic rows hold none of them.
        mask: the steps of ``mask`` where none are named: texts or mappings, as ``[mask]`` has them.
        release: what a release file says of itself (``release/record.py``); empty for others.

    Example:
        >>> Schema({"age": "quasi", "disease": "sensitive"}).quasi
        ('age',)
    """

    columns: Mapping[str, Column] = field(default_factory=dict)
    person: str | None = None
    household: str | None = field(default=None, kw_only=True)
    weight: str | None = field(default=None, kw_only=True)
    policy: Mapping[str, Demand] = field(default_factory=dict)
    policy_file: str | None = None
    missing: tuple[str, ...] | None = None
    delimiter: str | None = None
    encoding: str | None = None
    decimal: str | None = None
    query: QueryRules = QueryRules()
    folder: Path = field(default_factory=Path, compare=False)
    policy_columns: Mapping[str, Mapping[str, Demand]] = field(default_factory=dict)
    policies: tuple[Policies, ...] = field(default=(), compare=False, repr=False)
    epsilon_levels: tuple[float, ...] = ()
    epsilon_shares: tuple[float, ...] = ()
    mask: tuple[object, ...] = ()
    impossible: tuple[Mapping[str, Any], ...] = field(default=(), kw_only=True)
    release: Mapping[str, Any] = field(default_factory=dict, compare=False, repr=False)

    def __post_init__(self) -> None:
        columns = {
            name: column if isinstance(column, Column) else Column(column)
            for name, column in self.columns.items()
        }
        object.__setattr__(self, "columns", columns)
        if isinstance(self.query, Mapping):
            object.__setattr__(self, "query", QueryRules(**self.query))
        faults = [fault for name, column in columns.items() for fault in column.faults(name)]
        faults += self._two_roles() + self.query.faults()
        weights = [column.weight for column in columns.values() if column.role == "quasi"]
        if weights and all(is_nonnegative(weight) and weight == 0 for weight in weights):
            faults.append("All quasi-identifiers have weight 0: give those that count more.")
        faults += entry_faults("[policy]", self.policy)
        for name, entry in self.policy_columns.items():
            faults += entry_faults(f"[policy.columns] '{name}'", entry)
        if self.policy_file is not None and self.person is None:
            faults.append("Policy: a policy file needs [table] person, the column that keys it.")
        faults += self._level_faults()
        if faults:
            raise SchemaError(*faults)

    def _two_roles(self) -> list[str]:
        """Person and policy columns never leave, so they cannot be anything but identifiers."""
        uses = self._policy_uses()
        faults = []
        if self.person is not None:
            if self.person in uses:
                faults.append(f"Column '{self.person}' has two roles: person and policy. Keep one.")
            uses[self.person] = "the person column"
        if self.household is not None:
            uses[self.household] = "the household column"
        for name, use in uses.items():
            column = self.columns.get(name)
            if column is not None and column.role in ("quasi", "sensitive", "other"):
                faults.append(
                    f"Column '{name}' has two roles: {use} and {column.role}. Keep one of them."
                )
        return faults

    def _policy_uses(self) -> dict[str, str]:
        """What each column that holds demands is, in words."""
        entries = [self.policy, *self.policy_columns.values()]
        for source in self.policies:
            entries += [source.general, *source.columns.values()]
        return {
            name: f"the policy column of {demand}"
            for entry in entries
            for demand, name in entry.items()
            if isinstance(name, str)
        }

    @property
    def policy_names(self) -> tuple[str, ...]:
        """The columns that hold demands."""
        return tuple(self._policy_uses())

    def _level_faults(self) -> list[str]:
        """What is wrong with the public levels of epsilon and their shares."""
        levels, shares = self.epsilon_levels, self.epsilon_shares
        faults = []
        if not all(is_nonnegative(level) and level >= 0.001 for level in levels) or any(
            high <= low for low, high in pairwise(levels)
        ):
            faults.append("[policy] levels: epsilon takes ascending numbers of at least 0.001.")
        if shares and (
            len(shares) != len(levels)
            or not all(is_nonnegative(share) and share > 0 for share in shares)
            or abs(sum(shares) - 1) > 1e-9
        ):
            faults.append(
                "[policy] shares: epsilon takes one share above 0 per level, which add up to 1."
            )
        return faults

    def names(self, role: Role) -> tuple[str, ...]:
        """The columns of one role, in declared order."""
        return tuple(name for name, column in self.columns.items() if column.role == role)

    @property
    def quasi(self) -> tuple[str, ...]:
        """The quasi-identifiers."""
        return self.names("quasi")

    def require_quasi(self) -> None:
        """Refuse a schema by which nobody can be recognized.

        Raises:
            SchemaError: no column is a quasi-identifier.
        """
        if not self.quasi:
            raise SchemaError(NO_QUASI)

    @property
    def sensitive(self) -> tuple[str, ...]:
        """The sensitive columns."""
        return self.names("sensitive")

    @property
    def private(self) -> tuple[str, ...]:
        """The columns that never leave: identifiers, people, households, policies, and drops."""
        extra = [name for name in (self.person, self.household) if name is not None]
        if self.weight is not None and self.weight not in self.columns:
            extra.append(self.weight)
        if self.query.own_p is not None:
            extra.append(self.query.own_p)
        hidden = (*self.names("identifier"), *self.names("drop"))
        return tuple(dict.fromkeys([*hidden, *extra, *self.policy_names]))

    @property
    def ties(self) -> tuple[str, ...]:
        """Of a release, the columns of tokens by which a reader finds all rows of one person.

        A person column of a release holds tokens, whether its record says so or not.
        """
        if not self.release:
            return ()
        said = self.release.get(TIES, ())
        said = said if isinstance(said, list | tuple) else ()
        person = () if self.person is None else (self.person,)
        known = [name for name in map(str, said) if name not in self.quasi]
        return tuple(dict.fromkeys([*person, *known]))

    def name_people(self) -> Schema:
        """The same, in which the tokens of a release say whose row it is, if nothing else does."""
        if self.person is not None or not self.ties:
            return self
        person = self.ties[0]
        columns = {name: column for name, column in self.columns.items() if name != person}
        return replace(self, person=person, columns=columns)

    def over(self, names: Iterable[str]) -> Schema:
        """The schema of a table with these columns: what ``"*"`` says is said of each."""
        if REST not in self.columns:
            return self
        columns = {name: column for name, column in self.columns.items() if name != REST}
        known = replace(self, columns=columns)
        rest = dict.fromkeys(known.undeclared(names), self.columns[REST])
        return replace(known, columns=columns | rest)

    def undeclared(self, names: Iterable[str]) -> tuple[str, ...]:
        """Those of ``names`` that the schema says nothing about."""
        known = {*self.columns, *self.private}
        return tuple(name for name in names if name not in known)

    def unknown(self, names: Sequence[str]) -> list[str]:
        """The columns that the schema names and the table does not have, one fault per use."""
        places = [(name, "declared in the schema") for name in self.columns if name != REST]
        for what in ("person", "household", "weight"):
            name = getattr(self, what)
            if name is not None and name not in self.columns:
                places.append((name, f"named as the {what} column"))
        places += [
            (name, f"named as {use}")
            for name, use in self._policy_uses().items()
            if name not in self.columns
        ]
        places += [
            (name, "named in [policy.columns]")
            for name in self.policy_columns
            if name not in self.columns
        ]
        exists = quote_names(names)
        lacking = {
            place: [n for n, p in places if p == place and n not in names] for _, place in places
        }
        return [
            f"Column '{found[0]}' is {place} but not in the table, which has {exists}."
            if len(found) == 1
            else f"{len(found):,} columns are {place} but not in the table: "
            f"{abbreviate_names(found)}. It has {exists}: is this the schema of another table?"
            for place, found in lacking.items()
            if found
        ]

    @classmethod
    def read(cls, path: str | Path) -> Schema:
        """Read a schema file (TOML); file names in it refer to its folder."""
        return read_schema(Path(path))

    @classmethod
    def from_dict(cls, data: Mapping[str, object], *, folder: str | Path = "") -> Schema:
        """Make a schema from a mapping of the shape of the schema file."""
        return schema_from_dict(data, Path(folder))

    def to_dict(self) -> dict[str, object]:
        """The mapping that ``from_dict`` reads back."""
        return schema_to_dict(self)

    def _repr_html_(self) -> str:
        from halfmask.table.document import schema_parts, view

        return view("Schema", schema_parts(self, [*dict.fromkeys([*self.columns, *self.private])]))

    def to_toml(self) -> str:
        """The text of a schema file that reads back as this schema, in the same folder."""
        return schema_to_toml(self)


_SECTIONS = ("table", "policy", "query", "mask", "impossible", "columns", "release")
_TABLE = ("person", "household", "weight", "missing", "delimiter", "encoding", "decimal")
_QUERY = ("k", "single_people", "tables", "dominance")
_COLUMN = (
    "role", "kind", "hierarchy", "weight", "order", "domain", "decimal", "format", "missing",
    "step",
)  # fmt: skip


def read_schema(path: Path) -> Schema:
    """Read a schema file."""
    return schema_from_dict(read_mapping(path), path.parent)


def schema_from_dict(data: Mapping[str, object], folder: Path) -> Schema:
    """Make a schema from a mapping of the file's shape, or from the columns alone."""
    if not isinstance(data, Mapping):
        raise SchemaError("A schema is a mapping, a Schema or the path of a TOML file.")
    if data and not are_sections(data) and are_columns(data):
        data = {"columns": data}
    faults = _unknown_keys("the schema", data, _SECTIONS)
    sections: dict[str, Mapping[str, Any]] = {}
    for name in _SECTIONS:
        section = data.get(name, {})
        if name == "impossible":
            continue
        if not isinstance(section, Mapping):
            faults.append(f"[{name}] must be a table of keys and values.")
            section = {}
        sections[name] = section
    columns = {
        str(name): _column(str(name), entry, folder, faults)
        for name, entry in sections["columns"].items()
    }
    table = _table_section(sections["table"], faults)
    table["query"] = _query_section(sections["query"], faults)
    table["mask"] = _mask_section(sections["mask"], faults)
    table["impossible"] = _impossible_section(data.get("impossible", ()), faults)
    table["release"] = sections["release"]
    table |= _levels(sections["policy"], faults)
    table |= _policy_section(sections["policy"], faults)
    return _finish(faults, columns, table, folder)


def _finish(
    faults: list[str],
    columns: Mapping[str, Column | None],
    table: Mapping[str, Any],
    folder: Path,
) -> Schema:
    sound = {name: column for name, column in columns.items() if column is not None}
    try:
        schema = Schema(sound, folder=folder, **table)
    except SchemaError as error:
        faults.extend(error.faults)
    if faults:
        raise SchemaError(*faults)
    return schema


def are_sections(data: Mapping[str, object]) -> bool:
    """Whether a mapping has the sections of a schema file."""
    return any(name in data for name in _SECTIONS)


def are_columns(data: Mapping[str, object]) -> bool:
    """Whether a mapping is the columns of a schema alone."""
    return all(
        (isinstance(entry, str) and entry in ROLES)
        or isinstance(entry, Column)
        or (isinstance(entry, Mapping) and "role" in entry)
        for entry in data.values()
    )


def _unknown_keys(where: str, data: Mapping[str, object], known: Sequence[str]) -> list[str]:
    faults = []
    for name in data:
        if name in known:
            continue
        near = difflib.get_close_matches(str(name), known, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known)}."
        faults.append(f"Unknown key '{name}' in {where}: {hint}")
    return faults


def _table_section(data: Mapping[str, Any], faults: list[str]) -> dict[str, Any]:
    faults += _unknown_keys("[table]", data, _TABLE)
    out: dict[str, Any] = {}
    for name in ("person", "household", "weight", "delimiter", "encoding"):
        if name not in data:
            continue
        if isinstance(data[name], str) and data[name]:
            out[name] = data[name]
        else:
            faults.append(f"[table] {name} must be a text.")
    if data.get("decimal", ".") in MARKS:
        out["decimal"] = data.get("decimal")
    else:
        faults.append('[table] decimal must be "," or ".".')
    missing = data.get("missing")
    if isinstance(missing, str):
        out["missing"] = (missing,)
    elif isinstance(missing, Sequence) and all(isinstance(token, str) for token in missing):
        out["missing"] = tuple(missing)
    elif missing is not None:
        faults.append('[table] missing must be a list of texts, such as ["", "?"].')
    return out


def _mask_section(data: Mapping[str, Any], faults: list[str]) -> tuple[object, ...]:
    """The steps of masking, which ``halfmask.masking`` reads when they are applied."""
    faults += _unknown_keys("[mask]", data, ("steps",))
    steps = data.get("steps", [])
    if isinstance(steps, str) or not isinstance(steps, Sequence):
        faults.append('[mask] steps must be a list, such as ["top-code income share=0.01"].')
        return ()
    return tuple(steps)


def _impossible_section(given: object, faults: list[str]) -> tuple[Mapping[str, Any], ...]:
    """Combinations that cannot occur; ``halfmask.dp.conditions`` reads them."""
    if not isinstance(given, list | tuple) or not all(isinstance(one, Mapping) for one in given):
        faults.append(
            '[[impossible]] takes columns with values, such as sex = "m", pregnant = "yes".'
        )
        return ()
    return tuple(dict(one) for one in given)


def _query_section(data: Mapping[str, Any], faults: list[str]) -> QueryRules:
    faults += _unknown_keys("[query]", data, _QUERY)
    tables = data.get("tables")
    if isinstance(tables, str) or not isinstance(tables, Sequence | None):
        faults.append('[query] tables must be a list of names, such as ["visits"].')
        tables = None
    if not isinstance(data.get("single_people", False), bool):
        faults.append("[query] single_people must be true or false.")
    return QueryRules(
        data.get("k"),
        data.get("single_people") is True,
        None if tables is None else tuple(tables),
        data.get("dominance", {}),
    )


def _policy_section(data: Mapping[str, Any], faults: list[str]) -> dict[str, Any]:
    faults += _unknown_keys("[policy]", data, (*DEMANDS, "file", "columns", "levels", "shares"))
    file, columns = data.get("file"), data.get("columns", {})
    if file is not None and not isinstance(file, str | Path):
        faults.append("[policy] file must be the name of a file.")
        file = None
    if not isinstance(columns, Mapping) or not all(
        isinstance(entry, Mapping) for entry in columns.values()
    ):
        faults.append("[policy] columns must hold entries such as [policy.columns.salary] k = 3.")
        columns = {}
    policy: dict[str, Demand] = {demand: data[demand] for demand in DEMANDS if demand in data}
    if file is not None and not policy and not columns and Path(file).suffix != ".toml":
        policy = {"k": "k"}
    return {
        "policy": policy,
        "policy_columns": columns,
        "policy_file": None if file is None else str(file),
    }


def _levels(data: Mapping[str, Any], faults: list[str]) -> dict[str, Any]:
    """The public levels of epsilon, and the shares of people at them."""
    found = {}
    for name in ("levels", "shares"):
        given = data.get(name, {})
        listed = given.get("epsilon", []) if isinstance(given, Mapping) else None
        if not isinstance(listed, Sequence) or isinstance(listed, str) or set(given) - {"epsilon"}:
            faults.append(f"[policy] {name} takes a list: {name} = {{ epsilon = [0.1, 0.5, 1] }}.")
        elif listed:
            found[f"epsilon_{name}"] = tuple(listed)
    return found


def _column(name: str, entry: object, folder: Path, faults: list[str]) -> Column | None:
    if isinstance(entry, Column):
        return entry
    if isinstance(entry, str):
        entry = {"role": entry}
    if not isinstance(entry, Mapping):
        faults.append(f"Column '{name}': give its role as text, or a table with role, kind, ...")
        return None
    before = len(faults)
    faults += _unknown_keys(f"column '{name}'", entry, _COLUMN)
    _check_word(name, "role", entry.get("role"), ROLES, faults)
    if entry.get("kind") is not None:
        _check_word(name, "kind", entry["kind"], KINDS, faults)
    order = entry.get("order")
    if order is not None and (isinstance(order, str) or not isinstance(order, Sequence)):
        faults.append(f"Column '{name}': order must be a list of values.")
        order = None
    builder = _hierarchy(name, entry.get("hierarchy"), folder, faults)
    if len(faults) > before:
        return None
    return Column(
        entry["role"],
        entry.get("kind"),
        builder,
        entry.get("weight", 1.0),
        None if order is None else tuple(order),
        tuple(domain) if isinstance(domain := entry.get("domain"), list) else domain,
        entry.get("decimal"),
        entry.get("format"),
        _texts(entry.get("missing")),
        entry.get("step"),
    )


def _texts(given: Any) -> tuple[Any, ...] | None:
    """One text or a list of them; what is neither is told by the column's own check."""
    if given is None:
        return None
    return tuple(given) if isinstance(given, list | tuple) else (given,)


def _check_word(
    name: str, what: str, word: object, known: Sequence[str], faults: list[str]
) -> None:
    if isinstance(word, str) and word in known:
        return
    if word is None:
        faults.append(f"Column '{name}' has no {what}: give one of {', '.join(known)}.")
    elif isinstance(word, list | tuple) and len(word) > 1:
        faults.append(f"Column '{name}' has {len(word)} {what}s: keep one of them.")
    else:
        near = difflib.get_close_matches(str(word), known, n=1, cutoff=0.5)
        hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(known)}."
        faults.append(f"Column '{name}': unknown {what} {str(word)!r}; {hint}")


def _hierarchy(
    name: str,
    spec: Any,
    folder: Path,
    faults: list[str],
) -> HierarchyBuilder | None:
    if spec is None or hasattr(spec, "build"):
        return cast("HierarchyBuilder | None", spec)
    try:
        return hierarchies.from_dict(spec, folder=folder)
    except HierarchyError as error:
        faults += [f"Column '{name}': {fault}" for fault in error.faults]
    return None


def schema_to_dict(schema: Schema) -> dict[str, object]:
    """The mapping that ``schema_from_dict`` reads back."""
    table: dict[str, object] = {}
    for name in ("person", "household", "weight"):
        if getattr(schema, name) is not None:
            table[name] = getattr(schema, name)
    if schema.missing is not None:
        table["missing"] = list(schema.missing)
    if schema.delimiter is not None:
        table["delimiter"] = schema.delimiter
    if schema.encoding is not None:
        table["encoding"] = schema.encoding
    if schema.decimal is not None:
        table["decimal"] = schema.decimal
    policy: dict[str, object] = dict(schema.policy)
    if schema.policy_file is not None:
        policy["file"] = schema.policy_file
    if schema.policy_columns:
        policy["columns"] = {name: dict(entry) for name, entry in schema.policy_columns.items()}
    for name, listed in (("levels", schema.epsilon_levels), ("shares", schema.epsilon_shares)):
        if listed:
            policy[name] = {"epsilon": list(listed)}
    columns = {name: column_to_dict(column) for name, column in schema.columns.items()}
    query = {
        name: list(value) if name == "tables" else value
        for name in _QUERY
        if (value := getattr(schema.query, name)) not in (None, False, {})
    }
    mask = {"steps": list(schema.mask)} if schema.mask else {}
    parts = {"table": table, "policy": policy, "query": query, "mask": mask, "columns": columns}
    found = {name: part for name, part in parts.items() if part}
    if schema.impossible:
        found["impossible"] = [dict(one) for one in schema.impossible]
    return found


def column_to_dict(column: Column) -> dict[str, object]:
    """One column's entry, without what is the default."""
    out: dict[str, object] = {"role": column.role}
    if column.kind is not None:
        out["kind"] = column.kind
    if column.hierarchy is not None:
        out["hierarchy"] = column.hierarchy.to_dict()
    if column.weight != 1.0:
        out["weight"] = column.weight
    if column.order is not None:
        out["order"] = list(column.order)
    if column.domain is not None:
        out["domain"] = _domain_to_dict(column.domain)
    for name in ("decimal", "format", "step"):
        if getattr(column, name) is not None:
            out[name] = getattr(column, name)
    if column.missing is not None:
        out["missing"] = list(column.missing)
    return out


def _domain_to_dict(domain: Sequence[object] | Mapping[str, object]) -> object:
    """A domain as TOML can hold it: a missing value among the listed ones becomes a word."""
    if isinstance(domain, Mapping):
        return dict(domain)
    values = [value for value in domain if value is not None]
    return values if len(values) == len(domain) else {"values": values, "missing": True}


def schema_to_toml(schema: Schema, comments: Mapping[str, str] | None = None) -> str:
    """The schema file's text; ``comments`` are written above the columns they belong to."""
    comments = comments or {}
    data = schema_to_dict(schema)
    parts = [
        toml_section(name, data[name], comments.get(f"[{name}]", ""))  # type: ignore[arg-type]
        for name in ("table", "policy", "query", "mask")
        if name in data
    ]
    parts += [
        toml_section(f"columns.{toml_key(name)}", column_to_dict(column), comments.get(name, ""))
        for name, column in schema.columns.items()
    ]
    parts += [toml_section("impossible", one).replace("[impossible]", "[[impossible]]", 1)
              for one in schema.impossible]  # fmt: skip
    return "\n".join(parts)
