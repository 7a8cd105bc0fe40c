"""What models read of class statistics: sums, extremes, entropies and people's own demands."""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from halfmask.errors import InternalError, SchemaError
from halfmask.models.verdict import DemandLevel

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from halfmask.table.classes import Classes, Histogram
    from halfmask.table.table import Table


_SQUARES_FIT = 2**31


def histogram(classes: Classes, column: str) -> Histogram:
    """The histogram of ``column``."""
    if column not in classes.histograms:
        raise InternalError(f"The class statistics lack column {column!r}.")
    return classes.histograms[column]


MissingValues = Literal["unknown", "value"]
MISSING_NOTE = "Missing values count as a value."


def value_histogram(classes: Classes, column: str, missing: MissingValues) -> Histogram:
    """The histogram of ``column``, in which a missing value counts only where that is said."""
    found = histogram(classes, column)
    return found if missing == "value" else found.drop_missing()


def reduce(operation: np.ufunc, entries: NDArray[Any], starts: NDArray[np.int64]) -> NDArray[Any]:
    """Combine the entries of each class; 0 for a class without entries."""
    begins = starts[:-1]
    if len(entries) == 0:
        return np.zeros(len(begins), dtype=entries.dtype)
    filled = begins < starts[1:]
    if filled.all():
        return np.asarray(operation.reduceat(entries, begins))
    out = np.zeros(len(begins), dtype=entries.dtype)
    out[filled] = operation.reduceat(entries, begins[filled])
    return out


def pass_empty(classes: Classes, passing: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """``passing``, where classes that hold no row of the table always pass."""
    return passing if classes.population is None else passing | (classes.rows == 0)


def occupied_classes(classes: Classes) -> NDArray[np.bool_]:
    """The classes that hold rows of the table."""
    return classes.rows > 0


def smallest_classes(classes: Classes, at: NDArray[np.int64], rows: int) -> NDArray[np.int64]:
    """The smallest of the classes ``at``, until they hold ``rows`` rows together."""
    ordered = at[np.argsort(classes.rows[at], kind="stable")]
    return ordered[: int(np.searchsorted(np.cumsum(classes.rows[ordered]), rows)) + 1]


ReferenceRows = Literal["release", "original"]
ORIGINAL = "against the original table"
ORIGINAL_NOTE = (
    "Compared with all rows of the table that the search began with, also those that do not leave: "
    "the release alone cannot show it."
)


def reference_totals(values: Histogram, reference: ReferenceRows) -> NDArray[np.int64]:
    """How often each value occurs in the rows that classes are compared with."""
    if reference == "release":
        return values.totals()
    if values.reference is None:
        raise InternalError("The rows of the original table were not counted.")
    return values.reference


def lifts(values: Histogram, total: NDArray[np.int64]) -> tuple[NDArray[Any], NDArray[Any]]:
    """Per entry, how much more frequent the value is in its class than in all rows.

    With q its share in the class and p its share in all rows, of which ``total`` hold each value,
    q / p is the first over the second number that this gives; both are integers.
    """
    rows: NDArray[Any] = reduce(np.add, values.counts, values.starts)
    size, counts = int(total.sum()), values.counts
    if size >= _SQUARES_FIT:
        rows, counts = rows.astype(object), counts.astype(object)
    n = np.repeat(rows, np.diff(values.starts))
    return counts * size, total[values.values] * n


def all_per_class(values: Histogram, entries: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """Tell for each class whether all its entries are true."""
    failing = np.concatenate(([0], np.cumsum(~entries)))
    return np.asarray(failing[values.starts[1:]] == failing[values.starts[:-1]])


def demand_faults(table: Table, demand: str, of: str = "") -> list[str]:
    """What hinders reading the demands that are stated, in words; counts, never values."""
    from halfmask.table.demands import demand_key, states

    if not states(table.schema, demand):  # a default speaks for everybody
        return []
    where = table.schema.policy.get(demand)
    named = f"the policy column '{where}'" if isinstance(where, str) else f"people's own {demand}"
    try:
        numbers = _numbers(table, demand_key(demand, of))
    except SchemaError as error:
        if "holds text" not in str(error):
            raise
        return [f"{named} holds text: give numbers."]
    found = []
    rows = np.bincount(table.encode(demand_key(demand, of)).codes, minlength=len(numbers))
    known = ~np.isnan(numbers)
    if demand == "t":
        wrong = int(rows[known & ((numbers < 0) | (numbers > 1))].sum())
        if wrong:
            found.append(f"{named}: {wrong} rows are not from 0 to 1.")
        return found
    broken = int(rows[known & (numbers != np.floor(numbers))].sum())
    low = int(rows[known & (numbers < 1)].sum())
    if broken:
        found.append(f"{named}: {broken} rows are not whole numbers.")
    if low:
        found.append(f"{named}: {low} rows are below 1.")
    return found


def own_demands(
    table: Table, demand: str, default: float | None, of: str = ""
) -> NDArray[np.float64]:
    """Everybody's own demand, row by row, that ``of`` a sensitive column; the default for others.

    Without a default it is 1 for them, which asks for nothing as k, l or t.
    """
    from halfmask.table.demands import demand_key, states

    unstated = 1.0 if default is None else float(default)
    if not states(table.schema, demand):
        return np.full(len(table), unstated)
    key = demand_key(demand, of)
    numbers = _numbers(table, key)
    return np.asarray(np.where(np.isnan(numbers), unstated, numbers)[table.encode(key).codes])


def _numbers(table: Table, key: str) -> NDArray[np.float64]:
    """The demand behind each code of a column of demands."""
    from halfmask.table.classes import value_facts

    numbers = value_facts(table, key)["numbers"]
    assert numbers is not None  # noqa: S101 - demands are numbers
    return np.asarray(numbers)


def _demand_histogram(
    classes: Classes, demand: str, default: float | None, of: str
) -> tuple[Histogram, NDArray[np.float64]] | None:
    """The histogram of a demand and the number behind each code; None where nobody can state it.

    Where none stands it is the default, or 1, which asks for nothing as k, l or t.
    """
    from halfmask.table.demands import demand_key

    key = demand_key(demand, of)
    if default is not None and key not in classes.histograms:
        return None
    demands = histogram(classes, key)
    if demands.numbers is None:
        raise SchemaError("A policy column holds text: give numbers.")
    unknown = 1.0 if default is None else float(default)
    return demands, np.where(np.isnan(demands.numbers), unknown, demands.numbers)


def highest_demands(
    classes: Classes, demand: str, default: float | None, of: str = ""
) -> NDArray[np.float64]:
    """The highest demand in each class; the default where nobody can state one."""
    stated = _demand_histogram(classes, demand, default, of)
    if stated is None:
        return np.where(classes.rows > 0, float(default or 0), 0.0)
    demands, asked = stated
    return reduce(np.maximum, asked[demands.values], demands.starts)


def lowest_demands(
    classes: Classes, demand: str, default: float | None, of: str = ""
) -> NDArray[np.float64]:
    """The lowest demand in each class."""
    stated = _demand_histogram(classes, demand, default, of)
    if stated is None:
        return np.full(len(classes), float(default or 0))
    demands, asked = stated
    return reduce(np.minimum, asked[demands.values], demands.starts)


def demand_levels(
    classes: Classes,
    demand: str,
    default: float | None,
    given: NDArray[Any],
    of: str = "",
) -> tuple[DemandLevel, ...]:
    """By what people demand, how many they are and the least that any of them is ``given``.

    Of a distance the most; who demands nothing is not listed. The least demanding come first.
    """
    stated = _demand_histogram(classes, demand, default, of)
    if stated is None:
        return ()
    held, asked = stated
    each = asked[held.values]
    theirs = np.repeat(np.asarray(given, dtype=np.float64), np.diff(held.starts))
    distance = demand == "t"
    out: list[DemandLevel] = []
    for level in np.unique(each).tolist():
        at = each == level
        if level < 1 if distance else level > 1:
            worst = theirs[at].max() if distance else theirs[at].min()
            rows = int(held.counts[at].sum())
            people = rows if held.people is None else int(held.people[asked == level].sum())
            out.append(DemandLevel(_short(level), people, _short(float(worst))))
    return tuple(reversed(out)) if distance else tuple(out)


def _short(number: float) -> float:
    """A whole number as such."""
    return int(number) if np.isfinite(number) and number == int(number) else number


def rows_short(
    classes: Classes,
    demand: str,
    default: float | None,
    given: NDArray[np.int64],
    of: str = "",
) -> NDArray[np.int64]:
    """Per class, how many rows are of people who demand more than is ``given`` in it."""
    stated = _demand_histogram(classes, demand, default, of)
    if stated is None:
        return np.where(given < (default or 0), classes.rows, 0)
    demands, asked = stated
    more = asked[demands.values] > np.repeat(given, np.diff(demands.starts))
    return reduce(np.add, np.where(more, demands.counts, 0), demands.starts)


_INTEGERS_UP_TO = 200_000


def entropy_at_least(values: Histogram, least: Fraction) -> NDArray[np.bool_]:
    """Tell for each class whether its entropy is at least ln ``least``, exactly.

    With counts c_1 ... c_m and n their sum, H >= ln l means n^n >= l^n * c_1^c_1 * ... * c_m^c_m.
    Floats decide classes that lie clear of the threshold; integers decide the others, after
    dividing the counts by their greatest common divisor (which leaves H as it is).
    """
    counts, starts = values.counts, values.starts
    lengths = np.diff(starts)
    n = reduce(np.add, counts, starts).astype(np.float64)
    scale = n * np.log(np.maximum(n, 1.0))
    spread = scale - reduce(np.add, counts * np.log(counts), starts)
    wanted = n * math.log(least)
    # Each of the (lengths + 3) terms is at most scale + wanted and carries a rounding of the
    # logarithm (1 ulp), of the product and of the running sum: under 4 * 2**-53 each, twice safe.
    margin = (lengths + 3) * 2.0**-50 * (scale + wanted)
    result = np.asarray(spread >= wanted)
    close = np.abs(spread - wanted) <= margin
    if close.any():
        _decide_close(values, least, np.flatnonzero(close), result)
    return result


def effective_values(values: Histogram) -> float:
    """The lowest exp(H) of all classes: the l that they satisfy."""
    counts, starts = values.counts, values.starts
    n = reduce(np.add, counts, starts).astype(np.float64)
    if not n.all():
        return 0.0  # a class of which nothing is known
    h = np.log(n) - reduce(np.add, counts * np.log(counts), starts) / n
    lowest = int(np.argmin(h))
    inside = counts[starts[lowest] : starts[lowest + 1]]
    if inside.min() == inside.max():
        return float(len(inside))
    return float(np.exp(h[lowest]))


def _decide_close(
    values: Histogram, least: Fraction, close: NDArray[np.int64], result: NDArray[np.bool_]
) -> None:
    """Decide the classes of ``close``: equal counts at a glance, the others by integers."""
    counts, starts = values.counts, values.starts
    lengths = np.diff(starts)
    even = reduce(np.maximum, counts, starts) == reduce(np.minimum, counts, starts)
    result[close] = lengths[close] >= math.ceil(least)
    for i in close[~even[close]]:
        inside = np.sort(counts[starts[i] : starts[i + 1]])
        result[i] = _decide(tuple(int(c) for c in inside), least)


@lru_cache(maxsize=4096)
def _decide(counts: tuple[int, ...], least: Fraction) -> bool:
    divisor = math.gcd(*counts)
    counts = tuple(c // divisor for c in counts)
    n = sum(counts)
    difference, error = _difference(counts, n, least)
    if abs(difference) > error:
        return difference > 0
    if n > _INTEGERS_UP_TO:
        return False  # equal to 70 digits and too large to write out: not proven, so not promised
    product = math.prod(c**c for c in counts)
    return bool((n * least.denominator) ** n >= least.numerator**n * product)


def _difference(counts: tuple[int, ...], n: int, least: Fraction) -> tuple[Decimal, Decimal]:
    """The logarithm of left over right side to 80 digits, and a bound of its error."""
    with localcontext() as context:
        context.prec = 80
        terms = [c * Decimal(c).ln() for c in counts]
        left = n * Decimal(n * least.denominator).ln()
        right = n * Decimal(least.numerator).ln()
        error = (left + right + sum(terms)) * (len(terms) + 4) * Decimal(10) ** -78
        return left - right - sum(terms), error
