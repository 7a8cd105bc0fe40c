"""How wrong counts and the user's own queries are on a release."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.errors import HalfmaskError, InputError, usable_path
from halfmask.metrics.estimate import Estimate, failed_estimate, mean_estimate
from halfmask.metrics.weighted import joint
from halfmask.table.columns import quote_names
from halfmask.table.document import Result
from halfmask.table.tuples import tally
from halfmask.table.values import is_number

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.engines.counting.tuples import Possible
    from halfmask.engines.duckdb.engine import DuckDB
    from halfmask.metrics.common_ground import SharedColumn
    from halfmask.metrics.sides import Sides
    from halfmask.table.tuples import Counts

    AnswerCells = dict[tuple[object, ...], list[float]]


_FLOOR = 0.001


@dataclass(frozen=True, slots=True)
class CountingQueries(Result):
    """The errors of random counting queries.

    Attributes:
        error: the mean relative error.
        median: the median one.
        q95: the 95 % quantile.
        queries: how many were asked; ``columns`` how many columns each names.
    """

    error: Estimate
    median: float
    q95: float
    queries: int
    columns: int


def counting_queries(
    sides: Sides, *, queries: int = 200, columns: int = 2, seed: int = 0, scaled: bool = False
) -> CountingQueries:
    """Ask ``queries`` random counts on both sides.

    Definition: a query counts rows that satisfy a random condition (an interval of numbers, a set
    of other values) on each of some columns; its error is |count on the release - count on the
    original| divided by the larger of the count on the original and a floor (0.1 % of its rows).
    Counts on the release are scaled to the original's number of rows only if asked for.
    Source: Zhang et al., "Accurate and efficient private release of datacubes and contingency
    tables", 2011 (floor); Benkhelif, 2018.
    """
    random = np.random.default_rng(seed)
    shared = list(sides.columns.values())
    wide = min(columns, len(shared))
    errors = []
    ends = [np.cumsum(c.leaf_rows) for c in shared]
    tuples: dict[tuple[int, ...], Any] = {}
    for _ in range(queries):
        chosen = tuple(sorted(random.choice(len(shared), wide, replace=False).tolist()))
        if chosen not in tuples:  # columns repeat: distinct tuples are found once for each set
            picked = [shared[i] for i in chosen]
            tuples[chosen] = (
                _distinct([(c.before, c.leaves) for c in picked], sides.original_counts),
                _distinct([(c.after, c.labels) for c in picked], sides.released_counts),
            )
        before, after = tuples[chosen]
        real, guess = before[0].astype(np.float64), after[0].astype(np.float64)
        for place, i in enumerate(chosen):
            wanted = _condition(shared[i], ends[i], random)
            real = real * wanted[before[1][place]]
            guess = guess * shared[i].inside(wanted)[after[1][place]]
        truth, answer = float(real.sum()), float(guess.sum())
        if scaled:
            answer *= sides.before / sides.after  # left-out rows cost nothing then
        errors.append(abs(answer - truth) / max(truth, _FLOOR * sides.before, 1.0))
    return CountingQueries(
        mean_estimate(errors, f"{queries} random queries"),
        float(np.median(errors)),
        float(np.quantile(errors, 0.95)),
        queries,
        wide,
    )


def _distinct(
    columns: list[tuple[NDArray[np.int32], int]], counts: Counts
) -> tuple[NDArray[np.int64], list[NDArray[np.int32]]]:
    """How many rows each combination has, and its codes."""
    ids, count = joint(columns)
    first = np.empty(count, dtype=np.int64)
    first[ids] = np.arange(len(ids))
    return tally(ids, count, counts), [codes[first] for codes, _ in columns]


def _condition(
    column: SharedColumn, ends: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.bool_]:
    """Which leaves satisfy a random condition: an interval that starts and ends at rows' values.

    ``ends`` counts the rows up to each leaf.
    """
    # Rows are drawn, not values: frequent values are asked for as often as they occur.
    picked = np.searchsorted(ends, random.integers(0, int(ends[-1]), 2), side="right")
    if column.numbers is not None:
        low, high = column.numbers[picked].min(), column.numbers[picked].max()
        return np.asarray((column.numbers >= low) & (column.numbers <= high))
    chosen = random.random(column.leaves) < 0.5
    chosen[picked[0]] = True
    return np.asarray(chosen)


TABLE = "people"  # what queries call the table
_DRAWS = 5


@dataclass(frozen=True, slots=True)
class QueryDeviation(Result):
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


def statements(source: str | PathLike[str]) -> list[Any]:
    """The queries of a file, separated by semicolons, parsed."""
    import sqlglot

    try:
        text = usable_path(source).read_text(encoding="utf-8")
    except OSError as error:
        raise InputError(f"The file of queries cannot be read: {error.strerror}.") from error
    try:
        parsed = sqlglot.parse(text, dialect="duckdb")
    except sqlglot.errors.SqlglotError as error:
        raise InputError(f"The file of queries is no SQL: {type(error).__name__}.") from None
    nothing = (type(None), sqlglot.exp.Semicolon)
    found = [query for query in parsed if not isinstance(query, nothing)]
    if not found:
        raise InputError("The file of queries holds none.")
    for number, query in enumerate(found, 1):
        if not isinstance(query, sqlglot.exp.Query):
            raise InputError(f"Statement {number} of the file is no query: keep SELECT only.")
        known = {TABLE, *(one.alias for one in query.find_all(sqlglot.exp.CTE))}
        if any(one.name not in known for one in query.find_all(sqlglot.exp.Table)):
            raise InputError(f"Query {number} speaks of another table than {TABLE!r}: rename it.")
    return found


def columns_named(queries: Sequence[Any]) -> list[str]:
    """The names in parsed queries that may be columns."""
    from sqlglot import exp

    return list(dict.fromkeys(one.name for q in queries for one in q.find_all(exp.Column)))


def sql_queries(
    sides: Sides,
    queries: Sequence[Any],
    *,
    seed: int = 0,
    memory_limit: str | None = None,
) -> tuple[QueryDeviation, ...]:
    """Run parsed ``queries``, which speak of a table called ``people``, on both sides.

    Definition: the cells of both answers are matched by their columns that are no numbers, and
    where there are aggregates by all that are none; the error of a cell is |release - original| /
    |original| (or / 1 where that is 0). Labels of the release are replaced by values they cover,
    drawn at random several times; the interval is over these draws.

    Both tables are made of their entries inside DuckDB, which takes at most ``memory_limit``.
    """
    from halfmask.engines.counting.tuples import expand_tuples

    arrow = sides.original.arrow
    own = dict(zip(arrow.column_names, arrow.columns, strict=True))
    with expand_tuples(TABLE, own, sides.original_counts, memory_limit=memory_limit) as engine:
        truths = [_run(engine, query, i, own) for i, query in enumerate(queries, 1)]
    possible = {column: _possible(sides, column) for column in sides.columns}
    random = np.random.default_rng(seed)
    answers = []
    for drawn in random.integers(0, 2**31, _DRAWS).tolist():
        counts = sides.released_counts
        opened = expand_tuples(TABLE, possible, counts, seed=drawn, memory_limit=memory_limit)
        with opened as engine:
            answers.append([_run(engine, query, i, possible) for i, query in enumerate(queries, 1)])
    return tuple(
        _compare_answers(number, truth, [draw[number - 1] for draw in answers])
        for number, truth in enumerate(truths, 1)
    )


def _possible(sides: Sides, name: str) -> pa.ChunkedArray | Possible:
    """What each entry of the release may stand for, as values of the original."""
    column = sides.columns[name]
    if column.leaves > column.known:  # new values: the released ones are as they should be
        held = sides.rows[name]
        dictionary = pa.types.is_dictionary(held.type)
        return held.cast(held.type.value_type) if dictionary else held
    from halfmask.engines.counting.tuples import Possible

    values = sides.original.encode(name).values.take(pa.array(column.covered))
    return Possible(values, column.starts[column.after], column.sizes[column.after])


def _compare_answers(number: int, truth: AnswerCells, answers: list[AnswerCells]) -> QueryDeviation:
    errors, missing, added = [], [], []
    for answer in answers:
        wrong, lost, new = _cells(truth, answer)
        errors.append(wrong)
        missing.append(lost)
        added.append(new)
    cells = sum(len(values) for values in truth.values())
    known = [e for e in errors if e is not None]
    error = (
        mean_estimate(known, f"{_DRAWS} draws of values under the labels")
        if known
        else failed_estimate("The query gives no number.")
    )
    return QueryDeviation(number, error, cells, float(np.mean(missing)), float(np.mean(added)))


def _run(engine: DuckDB, query: Any, number: int, columns: Iterable[str]) -> AnswerCells:
    """The figures of an answer by the other values."""
    try:
        fetched = engine.run(query)
    except HalfmaskError as error:
        unknown = _count_unknown_names(query, columns)
        if unknown:
            raise InputError(
                f"Query {number} names {unknown} column(s) that are not in both tables. There: "
                f"{quote_names(columns)}. Texts stand in single quotes."
            ) from None
        raise InputError(
            f"Query {number} cannot be run on a table called {TABLE!r} with the columns "
            f"{quote_names(columns)}. {error}"
        ) from None
    figures = _figures(query, fetched.schema)
    keys = [fetched.column(i).to_pylist() for i, figure in enumerate(figures) if not figure]
    numbers = [
        fetched.column(i).cast(pa.float64(), safe=False).to_pylist()
        for i, figure in enumerate(figures)
        if figure
    ]
    out: AnswerCells = {}
    for row in range(fetched.num_rows):
        key = tuple(column[row] for column in keys)
        out.setdefault(key, []).extend(
            float("nan") if column[row] is None else column[row] for column in numbers
        )
    return out


def _count_unknown_names(query: Any, columns: Iterable[str]) -> int:
    """How many names are neither columns nor given in the query; they may be values in quotes."""
    from sqlglot import exp

    known = {name.lower() for name in columns}
    known |= {one.alias.lower() for one in query.find_all(exp.Alias, exp.TableAlias)}
    return sum(name.lower() not in known for name in columns_named([query]))


def _figures(query: Any, schema: pa.Schema) -> list[bool]:
    """Which columns of an answer are compared: numbers, and of groups only their aggregates."""
    from sqlglot import exp

    numeric = [is_number(f.type) for f in schema]
    counted = [one.find(exp.AggFunc) is not None for one in query.selects]
    if len(counted) != len(numeric) or not any(counted):
        return numeric
    return [number and figure for number, figure in zip(numeric, counted, strict=True)]


def _cells(truth: AnswerCells, answer: AnswerCells) -> tuple[float | None, float, float]:
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
