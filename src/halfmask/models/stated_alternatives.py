"""Several models from one option, for a frontier: ``disease=2,3`` is two of them."""

from __future__ import annotations

from itertools import product
from typing import TYPE_CHECKING, Any

from halfmask.errors import InputError
from halfmask.models.delta_presence import DeltaPresence
from halfmask.models.k_map import KMap
from halfmask.models.stated import stated_bounds, stated_models, stated_population

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from halfmask.models.verdict import Model
    from halfmask.table.table import Table

_LISTED = ("average-risk", "sample-uniques")
_PER_COLUMN = ("l", "t", "delta-disclosure", "beta")


def stated_alternatives(
    given: Mapping[str, Any],
    *,
    mark: str = "",
    population: Callable[[], Table | None] = lambda: None,
) -> list[list[Model]]:
    """One list of alternatives per option and column; as ``stated_models`` but for numbers.

    Example:
        >>> stated_alternatives({"k": "2,5", "average_risk": "0.1"})
        [[KAnonymity(k=2), KAnonymity(k=5)], [AverageRisk(limit=0.1)]]
    """
    out = _counting(given, mark)
    for option in _PER_COLUMN:
        key = option.replace("-", "_")
        for column, values, rest in _pairs(option, given.get(key) or (), mark):
            made = [f"{column}={value}{rest}" for value in values]
            out.append([stated_models({key: (entry,)}, mark=mark)[0] for entry in made])
    for key in ("personal_l", "personal_t"):
        out += [stated_models({key: (column,)}, mark=mark) for column in given.get(key) or ()]
    out += _against_population(given, mark, population)
    for option in _LISTED:
        key = option.replace("-", "_")
        if given.get(key):
            values = stated_numbers(option, given[key], mark)
            out.append([stated_models({key: value}, mark=mark)[0] for value in values])
    return out


def _counting(given: Mapping[str, Any], mark: str) -> list[list[Model]]:
    stated = given.get("k")
    ks = [_whole(value) for value in stated_numbers("k", stated, mark)] if stated else []
    shares = _pairs("alpha", given.get("alpha") or (), mark)
    if shares and not ks:
        raise InputError(f"{mark}alpha needs {mark}k.")
    if len(shares) > 1 and len(ks) > 1:
        raise InputError(f"{mark}alpha for several columns takes one {mark}k: give one.")
    out = []
    for column, values, _ in shares:
        both = product(ks, values)
        out.append([stated_models({"k": k, "alpha": (f"{column}={a}",)})[-1] for k, a in both])
    if ks and not shares:
        out.append([stated_models({"k": k})[0] for k in ks])
    if given.get("personal_k"):
        out.append(stated_models({"personal_k": True}))
    return out


def _against_population(
    given: Mapping[str, Any], mark: str, population: Callable[[], Table | None]
) -> list[list[Model]]:
    """Settings share one table of the population, so that it is counted once."""
    table = stated_population(given, mark, population)
    if table is None:
        return []
    out: list[list[Model]] = []
    if given.get("k_map"):
        ks: list[Any] = [_whole(value) for value in stated_numbers("k-map", given["k_map"], mark)]
        out.append([KMap(k, table) for k in ks])
    if given.get("delta_presence"):
        shares = [stated_bounds(entry, mark) for entry in given["delta_presence"]]
        out.append([DeltaPresence(low, high, table) for low, high in shares])
    return out


def _pairs(option: str, entries: Sequence[str], mark: str) -> list[tuple[str, list[float], str]]:
    """Take ``column=numbers[:word...]`` apart."""
    out = []
    for entry in entries:
        column, equals, listed = entry.rpartition("=")
        values, colon, rest = listed.partition(":")
        if not equals or not column:
            raise InputError(f"{mark}{option} takes COLUMN=NUMBERS, such as disease=2,3.")
        out.append((column, stated_numbers(option, values, mark), colon + rest))
    return out


def stated_numbers(option: str, listed: str, mark: str = "") -> list[float]:
    """The numbers in ``1,2``; at least one."""
    try:
        found = [float(part) for part in listed.split(",") if part.strip()]
    except ValueError:
        found = []
    if not found:
        raise InputError(f"{mark}{option} takes numbers separated by commas, such as 2,5.")
    return found


def _whole(value: float) -> int | float:
    return int(value) if value.is_integer() else value
