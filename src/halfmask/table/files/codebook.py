"""Codebooks: what values columns can have, written by whoever made the form, not read off rows.

A CSV file with one line per value (``column,value``) or range (``column,low,high,bins``), or both
for numbers that stand alone beside a range; a TOML file with one entry per column, or a schema
file.
"""

from __future__ import annotations

import csv
import tomllib
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfmask.errors import SchemaError

if TYPE_CHECKING:
    from collections.abc import Iterable

_HEADINGS = {
    "column": ("column", "variable", "name", "field", "variable name", "spalte", "feld"),
    "value": ("value", "values", "code", "category", "wert", "valeur", "valor"),
    "low": ("low", "min", "minimum", "from", "von"),
    "high": ("high", "max", "maximum", "to", "bis"),
    "bins": ("bins", "intervals"),
    "missing": ("missing", "may be missing"),
}
_YES = ("yes", "true", "1", "x", "ja", "oui", "si")
EXAMPLE = (
    'a TOML file with a line for each column, such as city = ["Lille", "Nice"] or age = { low = 0, '
    "high = 110 }; or a CSV file with the columns column and value, or column, low and high"
)


def read_codebook(path: str | Path) -> dict[str, object]:
    """The domain of each column that a codebook speaks of.

    Raises:
        SchemaError: the file cannot be read, or says too little.
    """
    file = Path(path)
    try:
        text = file.read_text(encoding="utf-8-sig")
        if file.suffix.lower() in (".csv", ".tsv", ".txt"):
            return _from_lines(text, file.name)
        return _from_toml(tomllib.loads(text))
    except (OSError, UnicodeDecodeError, tomllib.TOMLDecodeError) as error:
        why = (
            f"There is no file {file.name!r} of domains"
            if isinstance(error, FileNotFoundError)
            else f"The domains cannot be read from {file.name!r}"
        )
        raise SchemaError(f"{why}: give {EXAMPLE}.") from error


def _from_toml(data: dict[str, Any]) -> dict[str, object]:
    """Domains as they stand, or those of a schema file."""
    columns = data.get("columns")
    if not isinstance(columns, Mapping) or not all(
        isinstance(c, Mapping) for c in columns.values()
    ):
        return data
    found = {name: entry["domain"] for name, entry in columns.items() if "domain" in entry}
    return found | ({"impossible": data["impossible"]} if "impossible" in data else {})


def _from_lines(text: str, name: str) -> dict[str, object]:
    first = text.partition("\n")[0]
    delimiter = max(",;\t", key=first.count)
    lines = csv.DictReader(text.splitlines(), delimiter=delimiter)
    places = _places(lines.fieldnames or ())
    if "column" not in places or not {"value", "low"} & set(places):
        raise SchemaError(
            f"The first line of the codebook {name!r} does not say what stands where: name its "
            "columns column and value, or column, low and high."
        )
    entries: dict[str, list[dict[str, str]]] = {}
    for line in lines:
        entry = {what: (line.get(heading) or "").strip() for what, heading in places.items()}
        if entry["column"]:
            entries.setdefault(entry["column"], []).append(entry)
    return {column: _domain(column, lines) for column, lines in entries.items()}


def _places(headings: Iterable[str]) -> dict[str, str]:
    """Which heading stands for what."""
    found: dict[str, str] = {}
    for heading in headings:
        for what, known in _HEADINGS.items():
            if heading.strip().lower() in known:
                found.setdefault(what, heading)
    return found


def _domain(column: str, lines: list[dict[str, str]]) -> object:
    absent = any(line.get("missing", "").lower() in _YES for line in lines)
    missing: dict[str, object] = {"missing": True} if absent else {}
    ranges = [line for line in lines if line.get("low") and line.get("high")]
    values = [part for line in lines for part in line.get("value", "").split("|") if part]
    if len(ranges) == 1:
        (line,) = ranges
        bins = {"bins": int(line["bins"])} if line.get("bins", "").isdigit() else {}
        alone = [_bound(text) for text in dict.fromkeys(values)]
        if any(isinstance(number, str) for number in alone):
            raise SchemaError(
                f"The codebook gives column {column!r} a range and texts: beside a range only "
                "numbers can stand alone; write missing values as missing."
            )
        special: dict[str, object] = {"special": alone} if alone else {}
        ends = {"low": _bound(line["low"]), "high": _bound(line["high"])}
        return {**ends, **bins, **special, **missing}
    if values and not ranges:
        return {"values": list(dict.fromkeys(values)), **missing}
    raise SchemaError(
        f"The codebook gives column {column!r} neither values nor one range from low to high: give "
        "a line per value, or one line with low and high, or both."
    )


def _bound(text: str) -> object:
    """A bound as a number; else as it stands, which may be a date."""
    try:
        number = float(text)
    except ValueError:
        return text
    return int(number) if number.is_integer() else number
