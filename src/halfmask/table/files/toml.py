"""Plain Python values as TOML text, and TOML files as plain values."""

from __future__ import annotations

import datetime
import json
import re
import tomllib
from collections.abc import Mapping
from typing import TYPE_CHECKING

from halfmask.errors import InputError, SchemaError
from halfmask.table.files.text_file import path_text

if TYPE_CHECKING:
    from pathlib import Path

_WIDTH = 100  # longer tables and lists are written over several lines
_BARE = re.compile(r"[A-Za-z0-9_-]+")


def toml_key(name: str) -> str:
    """A key, quoted where it must be."""
    return name if _BARE.fullmatch(name) else toml_text(name)


def toml_text(value: str) -> str:
    """A basic string; TOML's escapes are JSON's, also for what no terminal should be sent."""
    written = json.dumps(value, ensure_ascii=False)
    if written.isprintable():
        return written
    return "".join(c if c.isprintable() else f"\\U{ord(c):08x}" for c in written)


def toml_value(item: object) -> str:
    """Any value on one line: tables become inline tables."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int | float):
        return repr(item)
    if isinstance(item, datetime.date | datetime.time):
        return item.isoformat()
    if isinstance(item, Mapping):
        inside = ", ".join(
            f"{toml_key(str(name))} = {toml_value(entry)}" for name, entry in item.items()
        )
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(item, list | tuple):
        return f"[{', '.join(toml_value(entry) for entry in item)}]"
    return toml_text(str(item))


def toml_section(name: str, entries: Mapping[str, object], comment: str = "") -> str:
    """One ``[section]`` with its entries and a comment above it; long tables follow as sections."""
    lines = [f"# {line}" for line in comment.splitlines()]
    return "\n".join([*lines, *_section(name, entries)]) + "\n"


def _section(name: str, entries: Mapping[str, object]) -> list[str]:
    apart = {
        e: i for e, i in entries.items() if isinstance(i, Mapping) and len(toml_value(i)) > _WIDTH
    }
    lines = [_entry(entry, item) for entry, item in entries.items() if entry not in apart]
    lines = [f"[{name}]", *lines] if lines or not apart else []
    for entry, inside in apart.items():
        lines += _section(f"{name}.{toml_key(entry)}", inside)
    return lines


def _entry(name: str, item: object) -> str:
    """One entry; a long list takes several lines."""
    line = f"{toml_key(name)} = {toml_value(item)}"
    if len(line) <= _WIDTH or not isinstance(item, list | tuple):
        return line
    lines = [""]
    for text in map(toml_value, item):
        if lines[-1] and len(lines[-1]) + len(text) > _WIDTH:
            lines.append("")
        lines[-1] += f"{text}, "
    return "\n".join([f"{toml_key(name)} = [", *(f"  {line.rstrip()}" for line in lines), "]"])


def read_mapping(path: Path) -> dict[str, object]:
    """What a schema file says, not yet checked."""
    name = path_text(path)
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
