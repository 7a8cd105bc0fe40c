"""The user's own queries, run on the original and on the release.

Definition: the cells of both answers are matched by their columns that are no numbers; the error of
a cell is |release - original| / |original| (or / 1 where that is 0). Labels of the release are
replaced by values they cover, drawn at random several times; the interval is over these draws.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.errors import HalfmaskError, InputError
from halfmask.metrics.estimate import Estimate, failed, mean
from halfmask.metrics.utility.draw import draw

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from halfmask.metrics.sides import Sides

_DRAWS = 5


@dataclass(frozen=True, slots=True)
class QueryError:
    """One query on both sides.

    Attributes:
        query: its number in the file, from 1.
        error: the mean relative error of its cells.
        cells: how many numbers it gave on the original.
        missing: groups of the original that the release lacks; ``added`` those it adds.
    """

    query: int
    error: Estimate
    cells: int
    missing: float
    added: float

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return {
            "query": self.query,
            "error": self.error.to_dict(),
            "cells": self.cells,
            "missing": self.missing,
            "added": self.added,
        }


def statements(source: str | PathLike[str]) -> list[Any]:
    """The queries of a file, separated by semicolons, parsed."""
    import sqlglot

    try:
        text = Path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"The file of queries cannot be read: {error.strerror}.") from error
    try:
        parsed = sqlglot.parse(text, dialect="duckdb")
        found = [query for query in parsed if isinstance(query, sqlglot.exp.Query)]
    except sqlglot.errors.SqlglotError as error:
        raise InputError(f"The file of queries is no SQL: {type(error).__name__}.") from None
    if not found:
        raise InputError("The file of queries holds none.")
    return found


def sql_queries(
    sides: Sides, queries: Sequence[Any], *, name: str = "people", seed: int = 0
) -> tuple[QueryError, ...]:
    """Run parsed ``queries``, which speak of a table called ``name``, on both sides."""
    random = np.random.default_rng(seed)
    original = sides.original.arrow
    released = [draw(sides, random) for _ in range(_DRAWS)]
    return tuple(
        _compared(number, query, name, original, released)
        for number, query in enumerate(queries, 1)
    )


def _compared(
    number: int, query: Any, name: str, original: pa.Table, released: list[pa.Table]
) -> QueryError:
    truth = _run(query, name, original, number)
    errors, missing, added = [], [], []
    for rows in released:
        answer = _run(query, name, rows, number)
        wrong, lost, new = _cells(truth, answer)
        errors.append(wrong)
        missing.append(lost)
        added.append(new)
    cells = sum(len(values) for values in truth.values())
    known = [e for e in errors if e is not None]
    error = (
        mean(known, f"{_DRAWS} draws of values under the labels")
        if known
        else failed("The query gives no number.")
    )
    return QueryError(number, error, cells, float(np.mean(missing)), float(np.mean(added)))


def _run(
    query: Any, name: str, rows: pa.Table, number: int
) -> dict[tuple[object, ...], list[float]]:
    """The numbers of an answer by the values that are none."""
    from halfmask.engines.duckdb import DuckDB

    engine = DuckDB({name: rows})
    try:
        fetched = engine.run(query)
    except HalfmaskError as error:
        raise InputError(
            f"Query {number} cannot be run on a table called {name!r}. {error}"
        ) from None
    finally:
        engine.close()
    numeric = [
        pa.types.is_integer(f.type) or pa.types.is_floating(f.type) or pa.types.is_decimal(f.type)
        for f in fetched.schema
    ]
    keys = [fetched.column(i).to_pylist() for i, number_ in enumerate(numeric) if not number_]
    numbers = [
        fetched.column(i).cast(pa.float64(), safe=False).to_pylist()
        for i, number_ in enumerate(numeric)
        if number_
    ]
    out: dict[tuple[object, ...], list[float]] = {}
    for row in range(fetched.num_rows):
        key = tuple(column[row] for column in keys)
        out.setdefault(key, []).extend(
            float("nan") if column[row] is None else column[row] for column in numbers
        )
    return out


def _cells(truth: Any, answer: Any) -> tuple[float | None, float, float]:
    errors = []
    for key, values in truth.items():
        guesses = answer.get(key)
        for place, value in enumerate(values):
            if np.isnan(value):
                continue
            guess = 0.0 if guesses is None or place >= len(guesses) else guesses[place]
            guess = 0.0 if np.isnan(guess) else guess
            errors.append(abs(guess - value) / (abs(value) or 1.0))
    lost = sum(key not in answer for key in truth) / max(len(truth), 1)
    new = sum(key not in truth for key in answer) / max(len(answer), 1)
    return (float(np.mean(errors)) if errors else None), lost, new
