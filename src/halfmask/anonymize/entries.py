"""Which searches leave rows where they are, and what it costs where their tuples do not fit."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from halfmask.anonymize.auto import AUTO
from halfmask.errors import ParameterError
from halfmask.metrics.cost import METRICS, Ambiguity, AverageClassSize, Discernibility, Loss
from halfmask.release.stored_entries import read_note, why_read
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from halfmask.anonymize.problem import RecodingProblem, Solution
    from halfmask.metrics.cost import Metric
    from halfmask.models.verdict import Model
    from halfmask.table.tuples import Tuples

# Which see each row, as its tuple.
DIVISIONS = (
    *("personal", "mondrian", "k-member", "mdav", "exact", "confidential"),
    *("cocluster", "cocluster-sets", "cocluster-mode"),
)
IN_PLACE = (AUTO, "optimal", "local", *DIVISIONS)
SMALL = 1_000_000  # rows that auto reads into memory, where divisions lose less


def why_collected(
    table: object, models: Sequence[Model], method: str, options: Mapping[str, Any]
) -> str | None:
    """Why rows that stay elsewhere come into memory, in words for the release; None: they stay.

    Of rows that are in memory already there is nothing to say.
    """
    if not isinstance(table, Table) or table.stored is None:
        return ""
    found: str | None
    if method not in IN_PLACE:
        found = f"method={method!r} looks at them one by one"
    elif options.get("previous") is not None:
        found = "the counterfeits of a series are rows of nobody, and its ledger names everybody"
    elif named := [n for n, one in options.items() if one is not None and n != "pseudonym"]:
        found = f"{named[0]}= needs them one by one, so that most_tuples= limits nothing"
    else:
        found = why_read(table, models, table.schema.columns.values())
    free = found is None and method == AUTO and table.stored.memory_limit is None
    if free and len(table) <= SMALL:
        found = "auto tries methods that divide them"
    return None if found is None else read_note(table, found)


_ABOVE = (Loss, Discernibility, AverageClassSize, Ambiguity)


def require_metric_above(metric: Metric) -> None:
    """Refuse what cannot be said without the values below the floors.

    Raises:
        ParameterError: the metric reads how often each value or tuple occurs, or counts levels.
    """
    if not isinstance(metric, _ABOVE):
        known = ", ".join(name for name, one in METRICS.items() if isinstance(one, _ABOVE))
        raise ParameterError(
            "metric", metric.name, f"one of {known}, where distinct tuples exceed most_tuples"
        )


def state_floors(solution: Solution, entries: Tuples, problem: RecodingProblem) -> Solution:
    """The solution with what the floors cost, proven where that can be.

    Definition: let L be the loss of generalizing to the floors and nothing else. Raising the best
    recoding of all tuples to the floors adds L at most: each cell loses no more than before plus
    what its floor loses, and no class fails that did not fail. So if the search proves V, the best
    one loses (1 + V) / (1 + L) - 1 or more (V - L where columns add up).
    """
    named = ", ".join(f"{name!r} at level {one.level}" for name, one in entries.floors.items())
    said = (
        "The distinct tuples of all values were too many to hold (most_tuples): the engine counted "
        f"{named}, and no cell of these is finer."
    )
    if not isinstance(problem.metric, Loss):
        return replace(solution, gap=None, notes=(*solution.notes, said))
    cost = problem.combined(problem.scores[:, 0].tolist())
    said += f" Generalizing them so far and nothing else loses {cost:.3g}."
    absorbing = all(model.absorbing for model in problem.models)
    monotone = problem.limit == 0 and all(model.monotone for model in problem.models)
    if solution.gap is None or not (absorbing or monotone):
        said += " What one search of all tuples would lose is not known."
        return replace(solution, gap=None, notes=(*solution.notes, said))
    proven = solution.value - solution.gap
    least = proven - cost if not problem.geometric else (1 + proven) / (1 + cost) - 1
    said += f" The best recoding of all tuples is proven to lose {max(least, 0.0):.3g} or more."
    return replace(solution, gap=solution.value - max(least, 0.0), notes=(*solution.notes, said))
