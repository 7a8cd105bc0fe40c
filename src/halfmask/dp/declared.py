"""Where public domains are declared: in the schema, in a file, or with the call."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from halfmask.dp.domain import Bins, Values
from halfmask.errors import SchemaError

if TYPE_CHECKING:
    from os import PathLike

    from halfmask.table.schema import Schema

_MOST = 1e100  # sums and squares of what lies within stay far within a double


def bounds_of(declared: object) -> tuple[float, float] | None:
    """The public bounds that a declaration holds; bounds alone need no number of bins.

    None where there are none to compute with: what is no number, infinite, or beyond 1e100.

    Example:
        >>> bounds_of({"low": 0, "high": 110})
        (0.0, 110.0)
    """
    try:
        low, high = _ends(declared)
    except (TypeError, ValueError, OverflowError):
        return None
    return (low, high) if max(abs(low), abs(high)) <= _MOST else None


def _ends(declared: object) -> tuple[float, float]:
    if isinstance(declared, Mapping) and "low" in declared and "high" in declared:
        return float(declared["low"]), float(declared["high"])
    if isinstance(declared, Bins):
        return declared.edges[0], declared.edges[-1]
    if isinstance(declared, Mapping):
        declared = declared.get("edges", declared.get("values", ()))
    values = declared.values if isinstance(declared, Values) else declared
    if isinstance(values, list | tuple | range):
        numbers = [v for v in values if isinstance(v, int | float) and not isinstance(v, bool)]
        if len(numbers) > 1 and len(numbers) == sum(v is not None for v in values):
            return float(min(numbers)), float(max(numbers))
    raise ValueError


def declared_domains(schema: Schema) -> dict[str, object]:
    """Domains that the schema states, by column: ``domain``, or the order of an ordinal column."""
    found: dict[str, object] = {}
    for name, column in schema.columns.items():
        if column.domain is not None:
            found[name] = column.domain
        elif column.order is not None:
            found[name] = Values(tuple(column.order), ordered=True)
    return found


def given_domains(domains: Mapping[str, object] | str | PathLike[str] | None) -> dict[str, object]:
    """Domains as given, or as a TOML file states them: ``sex = ["f", "m"]``."""
    if domains is None or isinstance(domains, Mapping):
        return dict(domains or {})
    try:
        return tomllib.loads(Path(domains).read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        raise SchemaError(
            f"The domains cannot be read from {Path(domains).name!r}: give a TOML file with a line "
            "or a table per column."
        ) from error
