"""Plain Python values as TOML text; reading TOML is the standard library's part."""

from __future__ import annotations

import datetime
import json
import re
from collections.abc import Mapping

_BARE = re.compile(r"[A-Za-z0-9_-]+")


def key(name: str) -> str:
    """A key, quoted where it must be."""
    return name if _BARE.fullmatch(name) else text(name)


def text(value: str) -> str:
    """A basic string; TOML's escapes are JSON's, plus one character that JSON lets pass."""
    return json.dumps(value, ensure_ascii=False).replace("\x7f", "\\u007f")


def value(item: object) -> str:
    """Any value on one line: tables become inline tables."""
    if isinstance(item, bool):
        return "true" if item else "false"
    if isinstance(item, int | float):
        return repr(item)
    if isinstance(item, datetime.date | datetime.time):
        return item.isoformat()
    if isinstance(item, Mapping):
        inside = ", ".join(f"{key(str(name))} = {value(entry)}" for name, entry in item.items())
        return f"{{ {inside} }}" if inside else "{}"
    if isinstance(item, list | tuple):
        return f"[{', '.join(value(entry) for entry in item)}]"
    return text(str(item))


def section(name: str, entries: Mapping[str, object], comment: str = "") -> str:
    """One ``[section]`` with its entries, and a comment above it."""
    lines = [f"# {line}" for line in comment.splitlines()]
    lines.append(f"[{name}]")
    lines += [f"{key(entry)} = {value(item)}" for entry, item in entries.items()]
    return "\n".join(lines) + "\n"
