"""What guarantees a population of cells can expect, where nobody holds their rows or demands.

``hm.suggest`` looks at everybody, which only a controller may. An asker of cells has the common
schema, the question and an idea of how many cells there are: that is all that is used here.

Definition: n cells fall into the G possible groups of a level at random, each equally likely, so
    that m = n / G stand in one on average. Then a person is published under k with the chance that
    a Poisson number of mean m is at least k - 1; a group reaches k (and, with V equally frequent
    sensitive values, l) with 95 % up to the 5 % quantile of that number (and of a binomial one of V
    trials with chance 1 - e^(-m / V)). Under noise an average group is told from an empty one, with
    95 %, from epsilon = -ln((1 - a) / (1 + a (G - 1))) on, where a = 1.96 sqrt((G - 1) / n).
Source: ours, by the usual approximation of the numbers in cells; for noise Kairouz, Oh, Viswanath,
    "Extremal mechanisms for local differential privacy", 2014.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import partial
from math import exp, floor, log, prod, sqrt
from typing import TYPE_CHECKING

from halfmask.engines.request import Climb, Delete, Interval
from halfmask.errors import InputError, ParameterError
from halfmask.metrics.estimate import NORMAL_95
from halfmask.protocol.cell_plan import plan_for_cells
from halfmask.table.document import Result

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

    from halfmask.engines.request import Key
    from halfmask.protocol.common_schema import CommonSchema

_SURE = 0.95
PUBLIC = (
    "From the common schema, the question and the number of cells alone, as if people were spread "
    "evenly over all groups: crowded groups keep more, rare ones less."
)


@dataclass(frozen=True, slots=True)
class LevelAdvice(Result):
    """What one level of a question can expect.

    Attributes:
        level: from 0, the finest.
        k: what the question asks for there.
        l: the same.
        groups: how many groups are possible.
        mean: cells in a group on average.
        published: the share of people whose group reaches k, if all of them accept the level.
        reached_k: what an average group reaches with 95 %.
        reached_l: the same of l; None where the values are not listed, so that k alone limits it.
        epsilon: from which on noise leaves an average group to be seen; None where no epsilon does.
    """

    level: int
    k: int
    l: int  # noqa: E741 - the literature's name
    groups: int
    mean: float
    published: float
    reached_k: int
    reached_l: int | None
    epsilon: float | None


def advise(
    commons: CommonSchema,
    text: str,
    cells: int,
    *,
    spans: Mapping[str, tuple[int, int]] | None = None,
) -> tuple[LevelAdvice, ...]:
    """What each level of a question can expect of so many cells.

    Args:
        commons: the common schema.
        text: guaranteed SQL.
        cells: how many cells may answer.
        spans: the lowest and highest whole number of columns whose values the schema does not list.

    Raises:
        QueryError: the question cannot be understood, or cells cannot answer it.
        InputError: how many groups there can be is not known of a column.
    """
    if cells < 1:
        raise ParameterError("cells", cells, "at least 1")
    for name, (low, high) in (spans or {}).items():
        if low > high:
            raise ParameterError(f"span of {name}", f"{low},{high}", "LOW,HIGH in this order")
    plan = plan_for_cells(commons, text).plan
    counted = [r.column for r in plan.requirements if r.what == "diversity"]
    sizes = [
        len(table.domains[name])
        for table in commons.tables.values()
        for name in counted
        if name in table.domains
    ]
    found = []
    for level, (k, l) in enumerate(plan.request.guarantees):  # noqa: E741
        keys = [_size(commons, key, level, spans or {}) for key in plan.request.keys]
        groups = prod(keys)
        mean = cells / groups
        reached_l = None
        if sizes:
            # As if values were spread evenly: each then meets a Poisson number of cells.
            held = 1 - exp(-mean / min(sizes))
            reached_l = _most(min(sizes), partial(_distinct, min(sizes), held))
        found.append(
            LevelAdvice(
                level,
                k,
                l,
                groups,
                round(mean, 3),
                round(_people(mean, k - 1), 4),
                _most(int(mean) + 2, partial(_people, mean)),
                reached_l,
                least_epsilon(prod(size + 1 for size in keys), cells),
            )
        )
    return tuple(found)


def _people(mean: float, least: int) -> float:
    """The chance of at least so many people where ``mean`` are expected."""
    from scipy.special import pdtrc

    return 1.0 if least < 1 else float(pdtrc(least - 1, mean))


def _distinct(values: int, held: float, least: int) -> float:
    """The chance of at least so many of ``values``, each there with chance ``held``."""
    from scipy.special import bdtrc

    return 1.0 if least < 1 else float(bdtrc(least - 1, values, held))


def _most(top: int, chance: Callable[[int], float]) -> int:
    """The largest number up to ``top`` that is reached with 95 %; the chance falls with it."""
    low, high = 0, top
    while low < high:
        middle = (low + high + 1) // 2
        if chance(middle) >= _SURE:
            low = middle
        else:
            high = middle - 1
    return low


def least_epsilon(groups: int, cells: int) -> float | None:
    """From which epsilon on an average group is told from an empty one; None: from none.

    Example:
        >>> least_epsilon(6, 50), least_epsilon(6, 10)
        (2.378, None)
    """
    if groups < 2:
        return 0.0
    apart = NORMAL_95 * sqrt((groups - 1) / cells)
    if apart >= 1:
        return None
    return round(-log((1 - apart) / (1 + apart * (groups - 1))), 3)


def _size(commons: CommonSchema, key: Key, level: int, spans: Mapping[str, tuple[int, int]]) -> int:
    """How many values a column can have at a level."""
    depth = key.depths[level]
    rule = key.rules[depth - 1] if depth else None
    if isinstance(rule, Delete):
        return 1
    name = key.expression.name
    listed = next((t.domains[name] for t in commons.tables.values() if name in t.domains), None)
    if isinstance(rule, Climb):
        return len(set(rule.stand_ins.values()))
    if name in spans:
        low, high = spans[name]
        width = rule.width if isinstance(rule, Interval) else 1
        return floor(high / width) - floor(low / width) + 1
    if listed is None:
        raise InputError(
            f"The common schema does not list the values of '{name}': list them, or give --span "
            f"{name or 'COLUMN'}=LOW,HIGH for whole numbers."
        )
    if isinstance(rule, Interval):
        return len({floor(value / rule.width) for value in listed.to_pylist()})
    return len(listed)
