"""The schema file: TOML to ``Schema`` and back, with all faults reported together."""

from __future__ import annotations

import difflib
import re
import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

from halfmask.errors import HierarchyError, InputError, SchemaError
from halfmask.table import hierarchies, toml
from halfmask.table.decimal_comma import MARKS
from halfmask.table.demands import DEMANDS, Demand
from halfmask.table.schema import KINDS, ROLES, Column, QueryRules, Schema
from halfmask.table.text_file import shown

if TYPE_CHECKING:
    from halfmask.table.hierarchy import HierarchyBuilder

_SECTIONS = ("table", "policy", "query", "columns")
_TABLE = ("person", "missing", "delimiter", "encoding", "decimal")
_QUERY = ("k", "single_people", "tables", "dominance")
_COLUMN = ("role", "kind", "hierarchy", "weight", "order", "domain")


def read_schema(path: Path) -> Schema:
    """Read a schema file."""
    return schema_from_dict(read_mapping(path), path.parent)


def read_mapping(path: Path) -> dict[str, object]:
    """What a schema file says, not yet checked."""
    name = shown(path)
    try:
        text = path.read_text(encoding="utf-8-sig")
    except FileNotFoundError:
        raise InputError(f"Schema file '{name}' does not exist.") from None
    except IsADirectoryError:
        raise InputError(f"Schema file '{name}' is a folder: give the TOML file in it.") from None
    except OSError as error:
        raise InputError(f"Schema file '{name}' cannot be read: {error.strerror}.") from None
    except UnicodeDecodeError:
        raise InputError(f"Schema file '{name}' is not UTF-8 text.") from None
    return mapping_of(text, name)


def mapping_of(text: str, name: str) -> dict[str, object]:
    """What the text of the schema file called ``name`` says, not yet checked."""
    try:
        return tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise SchemaError(_toml_fault(name, str(error))) from None
    except RecursionError:
        raise SchemaError(f"Schema file '{name}' is nested too deeply.") from None


def _toml_fault(name: str, message: str) -> str:
    line = re.search(r"line (\d+)", message)
    where = f" at line {line[1]}" if line else " at the end of the file"
    twice = "overwrite" in message or "twice" in message
    what = "something is declared twice (a column has one entry)" if twice else "a syntax error"
    return f"Schema file '{name}' is not valid TOML: {what}{where}."


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
    for name in ("person", "delimiter", "encoding"):
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
    )


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
    if schema.person is not None:
        table["person"] = schema.person
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
    parts = {"table": table, "policy": policy, "query": query, "columns": columns}
    return {name: part for name, part in parts.items() if part}


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
        toml.section(name, data[name], comments.get(f"[{name}]", ""))  # type: ignore[arg-type]
        for name in ("table", "policy", "query")
        if name in data
    ]
    parts += [
        toml.section(f"columns.{toml.key(name)}", column_to_dict(column), comments.get(name, ""))
        for name, column in schema.columns.items()
    ]
    return "\n".join(parts)
