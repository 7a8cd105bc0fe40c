"""Where tokens tie the rows of a person together: who is left out, with all own rows.

A promise then counts people whose rows are alike all together (``release.pseudonyms``), which no
search looks for. Whoever shares all own rows with too few others is left out within the share that
may be suppressed, and nobody loses some of the own rows alone where that helps.
"""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.search import labels_remain, search_until_stable
from halfmask.errors import UnsatisfiableError
from halfmask.models.requirements import prepare
from halfmask.release.labels import encode_labels
from halfmask.release.partition import Perturbation, RowPartition
from halfmask.release.pseudonyms import tied_classes
from halfmask.release.recoding import Recoding
from halfmask.release.verification import class_ids, count_published
from halfmask.table.tuples import pick_counts, rows_in

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.search import Search
    from halfmask.models.verdict import Model
    from halfmask.release.candidate import Candidate
    from halfmask.table.tuples import Tuples


def search_people(
    table: Tuples,
    models: Sequence[Model],
    search: Search,
    *,
    suppression: float = 0.0,
    unmet: str = "error",
    remedy: str = "",
) -> Candidate:
    """The candidate of ``search`` whose promises hold for the rows of each person together.

    First as without tokens; then with nothing left out but people with all their rows, because a
    row that leaves alone makes the others of its person unlike those of anybody.

    Raises:
        UnsatisfiableError: more rows would have to be left out than ``suppression`` allows.
    """
    everybody = least = table.rows
    broken: tuple[str, ...] = ()
    allowed = int(Fraction(str(suppression)) * everybody)
    settings = {"unmet": unmet, "remedy": remedy}
    for share in dict.fromkeys((suppression, 0.0)):
        rows, gone = table, 0
        while True:
            try:
                found = search_until_stable(
                    rows, models, search, suppression=0.0 if gone else share, **settings
                )
            except UnsatisfiableError:
                if share == suppression and not gone:
                    raise
                break
            keep, failing = _without_unlike(found)
            more = rows_in(pick_counts(found.counts, (found.step >= 0) & ~keep))
            needed = everybody - rows_in(pick_counts(found.counts, keep))
            if needed <= least:
                least, broken = needed, failing
            if not more:
                return _with_notes(found, suppression, gone)
            fits = needed <= allowed and needed < everybody
            stays = keep | (found.step < 0)
            if fits and _stay(found, stays, models):
                return _with_notes(_of_rows(found, stays, models), suppression, gone + more)
            if not fits or found.left_out or any(model.original for model in models):
                break  # else a division makes other labels of other rows: it is asked again
            gone, rows = needed, rows.keep(keep)
    raise _refusal(least, everybody, broken)


def _without_unlike(found: Candidate) -> tuple[NDArray[np.bool_], tuple[str, ...]]:
    """Which rows stay when whoever is unlike too many others leaves, and what did not hold."""
    table = found.table
    keep: NDArray[np.bool_] = found.step >= 0
    person, whole = str(table.schema.person), keep.copy()
    if isinstance(found.recoding, Perturbation) or any(
        model.population is not None for model in found.models
    ):
        return keep, ()  # the door says why not
    labels = [
        encode_labels(column) for column in found.recoding.published(table, found.step).columns
    ]
    alone, _ = class_ids(labels, int(whole.sum()))
    ids = np.full(len(table), -1, dtype=np.int64)
    ids[whole] = alone
    whose = table.encode(person).codes
    broken: dict[str, None] = {}
    while keep.any():
        kept = np.flatnonzero(keep)
        tied = tied_classes(ids[kept], whose[kept])
        failing = np.zeros(tied[1], dtype=bool)
        for model in found.models:
            classes, _ = count_published([], found.entries, kept, model, found.recoding, tied)
            short = ~model.passes(classes)
            failing |= short
            broken |= {model.name: None} if short.any() else {}
        if not failing.any():
            break
        keep &= ~np.isin(whose, whose[kept[failing[tied[0]]]])
    return keep, tuple(broken)


def _stay(found: Candidate, stays: NDArray[np.bool_], models: Sequence[Model]) -> bool:
    """Whether the labels of those who stay tell nothing of those who leave."""
    if isinstance(found.recoding, RowPartition | Perturbation):
        return False
    return labels_remain(found, found.entries, stays, models)


def _of_rows(found: Candidate, stays: NDArray[np.bool_], models: Sequence[Model]) -> Candidate:
    """The same recoding of the rows that stay, which states no class that only others are in."""
    entries, step, recoding = found.entries.keep(stays), found.step[stays], found.recoding
    table = prepare(entries.table, models)
    if isinstance(recoding, Recoding) and any(one.classes is not None for one in recoding.steps):
        recoding = recoding.with_classes(table, step)
    counted = None if found.tuples is None else replace(entries, table=table)
    return replace(found, table=table, tuples=counted, step=step, recoding=recoding, loss=None)


def _with_notes(found: Candidate, suppression: float, gone: int) -> Candidate:
    """The candidate with how many rows were left out with their people."""
    parameters, notes = dict(found.parameters), list(found.notes)
    if "suppression" in parameters:
        parameters["suppression"] = suppression
    if gone:
        notes.append(
            f"{gone:,} rows were left out with all others of their people, whose rows taken "
            "together too few others share."
        )
    out = found.left_out + gone
    return replace(found, parameters=parameters, notes=tuple(notes), left_out=out)


def _refusal(least: int, everybody: int, broken: tuple[str, ...]) -> UnsatisfiableError:
    """Why tokens cannot leave, and what would let them."""
    advice = [
        "Leave the pseudonym out, promise less, or give fewer and coarser columns or one row per "
        "person"
    ]
    if least < everybody:
        share = -(-least * 10_000 // everybody) / 10_000
        advice.insert(0, f"Allow suppression = {share} or more, which leaves these people out")
    return UnsatisfiableError(
        "Pseudonyms would tie a person's rows together, and then "
        f"{' and '.join(broken)} {'do' if len(broken) > 1 else 'does'} not hold within the "
        f"suppression limit: {least:,} rows of {everybody:,} would have to be left out, of "
        "people whose rows, taken together, too few others share.",
        suppressed=least,
        advice=advice,
    )
