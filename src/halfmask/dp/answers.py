"""Answers to grouped questions: exact figures in, noisy figures with intervals and a receipt out.

An engine computes the exact part (counts and whole-number sums per group); nothing of it leaves but
through here. All groups together cost as much as one, since a person's rows are counted once.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.figures import Figure, Noisy, figure
from halfmask.dp.mechanisms.stable_groups import StableGroups
from halfmask.dp.questions import Exact
from halfmask.dp.sampling import Sampler
from halfmask.dp.views import Groups, counted, views_of
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from fractions import Fraction

    from numpy.typing import NDArray

    from halfmask.dp.accountant import Allowance, Receipt
    from halfmask.dp.questions import Question


@dataclass(frozen=True, slots=True, eq=False)
class Stratum:
    """The exact figures of the people of one public level of demand.

    Attributes:
        level: the level, which pays for its own noise.
        exact: its figures.
        weight: what each of its numbers counts in the answer.
    """

    level: Fraction
    exact: Exact
    weight: float = 1.0


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """The figures, which groups are published, and the receipt."""

    figures: tuple[Figure, ...]
    published: NDArray[np.bool_]
    confidence: float
    receipt: Receipt


def answer(
    questions: Sequence[Question],
    exact: Exact | Sequence[Stratum],
    allowance: Allowance,
    *,
    groups: Groups = "public",
    confidence: float = 0.95,
    mixture: float = 0.0,
    sampler: Sampler | None = None,
) -> Answered:
    """Noisy figures for ``questions``, for the whole of ``allowance``.

    Args:
        questions: what to answer.
        exact: the exact figures; with public groups there is one for each of them, empty ones too.
            Of several strata each is measured with the noise that its level pays for; levels are
            disjoint people.
        allowance: what is already spent for this answer; for thresholded groups it is charged in
            epsilon and delta (``accountant.allow(..., as_promised=True)``).
        groups: whether the groups are public, or only those far above one person are shown.
        confidence: of each interval.
        mixture: the variance per row where strata stand for people who are not read.
        sampler: only for tests.
    """
    require_confidence(confidence)
    drawn = sampler or Sampler()
    allowance.secure = allowance.secure and drawn.secure
    strata = (
        [(None, exact, 1.0)]
        if isinstance(exact, Exact)
        else [(one.level, one.exact, one.weight) for one in exact]
    )
    first = strata[0][1]
    noisy: dict[str, Noisy] = {}
    published = np.ones(len(first.counts), np.bool_)
    for level, figures, weight in strata:
        views = views_of(
            questions,
            figures.present,
            allowance.left(level),
            allowance.rows_per_person,
            groups=groups,
        )
        for view in views:
            allowance.charge(replace(view.entry, level=level))  # paid before figures are touched
            whole = figures.vector(view.vector).astype(np.int64)
            if isinstance(view.mechanism, StableGroups):
                measured, published = view.mechanism.apply(whole, drawn)
                values = weight * measured
            else:
                values = weight * view.mechanism.apply(whole, drawn)
            one = Noisy(values.astype(np.float64), ((weight, view.mechanism),), mixture)
            noisy[view.vector] = one.plus(noisy.get(view.vector))
    found = tuple(figure(q, counted(q.column, first.present), noisy, confidence) for q in questions)
    return Answered(found, published, confidence, allowance.receipt())


def require_confidence(confidence: float) -> None:
    """Refuse a confidence that no interval has."""
    if not 0 < confidence < 1:
        raise ParameterError("confidence", confidence, "above 0 and below 1")
