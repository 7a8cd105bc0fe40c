"""A search on rows of which the others tell nothing: first without those nobody can serve.

Whoever demands more than all rows give is taken out before anything is computed. Where a search
suppresses rows and the labels of the others would follow their values, it is made again on the
rows that remain; rows only become fewer, so this ends.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

from halfmask.errors import PrivacyError, UnsatisfiableError
from halfmask.models.requirements import leave_out_entries, prepare
from halfmask.release.partition import Perturbation
from halfmask.table.hierarchies.builders import columns_following, labels_stay
from halfmask.table.tuples import picked, rows_in

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    import numpy as np
    from numpy.typing import NDArray

    from halfmask.models.verdict import Model
    from halfmask.release.candidate import Candidate
    from halfmask.table.tuples import Tuples

    Search = Callable[[Tuples, float | Fraction], Candidate]

DECLARE = (
    "or declare hierarchies that do not follow the values of the rows (mask with its length, "
    "ordered with its order, a tree or intervals in place of auto)"
)
_ALLOW = "or allow suppression"


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
            found = search(rows, Fraction(room - gone, rows.rows) if reduced else suppression)
        except UnsatisfiableError as error:
            told = any(one.startswith(_ALLOW) for one in error.advice)  # of the rows at hand alone
            if not reduced or not told:
                raise
            raise _unsatisfiable(error, everybody, rows.rows) from None
        keep = found.step >= 0
        if keep.all() or _labels_stay(found, rows, keep, models):
            return _with_counts(found, suppression, unserved, gone)
        gone += rows_in(picked(rows.counts, ~keep))
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


def _labels_stay(
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
