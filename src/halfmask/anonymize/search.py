"""On which rows a search runs: where they stay, which are left out first, what floors cost.

Rows may stay elsewhere where a search needs only their tuples. Whoever demands more than all rows
give is taken out before anything is computed. Where a search suppresses rows and the labels of the
others would follow their values, it is made again on the rows that remain, so that what leaves
tells nothing of those who do not; rows only become fewer, so this ends.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any

from halfmask.anonymize.auto import AUTO
from halfmask.errors import ParameterError, PrivacyError, UnsatisfiableError
from halfmask.metrics.cost import METRICS, Ambiguity, AverageClassSize, Discernibility, Loss
from halfmask.models.requirements import leave_out_entries, prepare
from halfmask.release.partition import Perturbation
from halfmask.release.stored_entries import read_note, why_read
from halfmask.table.hierarchies.builders import columns_following, labels_stay
from halfmask.table.table import Table
from halfmask.table.tuples import pick_counts, rows_in

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from halfmask.anonymize.problem import RecodingProblem, Solution
    from halfmask.metrics.cost import Metric
    from halfmask.models.verdict import Model
    from halfmask.release.candidate import Candidate
    from halfmask.table.tuples import Tuples

    Search = Callable[[Tuples, float | Fraction], Candidate]

SMALL = 1_000_000  # rows that auto reads into memory, where divisions lose less
DECLARE = (
    "or declare hierarchies that do not follow the values of the rows (mask with its length, "
    "ordered with its order, a tree or intervals in place of auto)"
)
_ALLOW = "or allow suppression"


def why_collected(
    table: object, models: Sequence[Model], method: str, options: Mapping[str, Any]
) -> str | None:
    """Why rows that stay elsewhere come into memory, in words for the release; None: they stay.

    Of rows that are in memory already there is nothing to say.
    """
    if not isinstance(table, Table) or table.stored is None:
        return ""
    found: str | None
    if options.get("previous") is not None:
        found = "the counterfeits of a series are rows of nobody, and its ledger names everybody"
    elif named := [n for n, one in options.items() if one is not None and n != "pseudonym"]:
        found = f"{named[0]}= needs them one by one, so that most_tuples= limits nothing"
    else:
        found = why_read(table, models, table.schema.columns.values())
    free = found is None and method == AUTO and table.stored.memory_limit is None
    if free and len(table) <= SMALL:
        found = "auto tries methods that divide them"
    return None if found is None else read_note(table, found)


def search_until_stable(
    table: Tuples,
    models: Sequence[Model],
    search: Search,
    *,
    suppression: float = 0.0,
    unmet: str = "error",
    remedy: str = "",
) -> Candidate:
    """The candidate of ``search``, whose labels show no value that only other rows hold.

    Args:
        table: entries that stand for all rows.
        models: the promises.
        search: makes a candidate of entries of which a share may be suppressed.
        suppression: the share of all rows that may be suppressed.
        unmet: ``"suppress"``: whom nobody can serve is left out, beyond that share.
        remedy: what the method has for those, if neither lets them go.
    """
    everybody = table.rows
    allowed = int(Fraction(str(suppression)) * everybody)
    beyond = unmet == "suppress"
    rows, unserved = leave_out_entries(table, models, everybody if beyond else allowed, remedy)
    room, gone = allowed - (0 if beyond else unserved), 0
    while True:
        reduced = rows.rows < everybody
        if reduced and any(model.original for model in models):
            raise PrivacyError(
                f"{everybody - rows.rows:,} rows have to be left out before the search, so that "
                "nothing can be compared with the original table: ask with reference='release', "
                f"{DECLARE}."
            )
        try:
            # The limit is a share of all rows, so that those already left out are taken off it.
            found = search(rows, Fraction(room - gone, rows.rows) if reduced else suppression)
        except UnsatisfiableError as error:
            told = any(one.startswith(_ALLOW) for one in error.advice)  # of the rows at hand alone
            if not reduced or not told:
                raise
            raise _unsatisfiable(error, everybody, rows.rows) from None
        keep = found.step >= 0
        if keep.all() or labels_remain(found, rows, keep, models):
            return _with_counts(found, suppression, unserved, gone)
        gone += rows_in(pick_counts(rows.counts, ~keep))
        rows = rows.keep(keep)


def _unsatisfiable(error: UnsatisfiableError, everybody: int, rows: int) -> UnsatisfiableError:
    """The refusal of a search on some of the rows, told of all of them."""
    suppressed = error.suppressed + everybody - rows
    advice = [one for one in error.advice if not one.startswith(_ALLOW)]
    share = -(-suppressed * 10_000 // everybody) / 10_000
    advice.append(f"{_ALLOW} = {share} or more")
    return UnsatisfiableError(
        f"{everybody - rows:,} rows have to be left out, and without them no recoding satisfies "
        "the models within the suppression limit.",
        verdicts=error.verdicts,
        levels=error.levels,
        suppressed=suppressed,
        advice=(*advice, DECLARE),
    )


def labels_remain(
    found: Candidate, rows: Tuples, keep: NDArray[np.bool_], models: Sequence[Model]
) -> bool:
    """Whether the rows that leave would have the same labels without the others."""
    if isinstance(found.recoding, Perturbation) or found.table.found:
        return False  # made of all rows together
    names = columns_following(found.table, found.table.schema.quasi)
    return not names or labels_stay(
        found.table, prepare(rows.table.keep(keep), models), keep, names
    )


def _with_counts(found: Candidate, suppression: float, unserved: int, gone: int) -> Candidate:
    """The candidate with how many rows were left out before it was made, and why."""
    notes, parameters = list(found.notes), dict(found.parameters)
    if unserved:
        notes.append(
            f"{unserved:,} rows were left out knowingly: they demand more than all can give."
        )
    if gone:
        notes.append(
            f"{gone:,} rows were suppressed first; hierarchies that follow the values of the rows "
            "were then made of the others, and levels searched on these."
        )
    if "left_out" in parameters and unserved:  # beyond any share
        parameters["left_out"] = unserved
        parameters.pop("suppression", None)
    elif "left_out" not in parameters:
        parameters["suppression"] = suppression
    return replace(found, notes=tuple(notes), parameters=parameters, left_out=unserved + gone)


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
