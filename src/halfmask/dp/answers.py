"""Answers to grouped questions: exact figures in, noisy figures with intervals and a receipt out.

An engine computes the exact part (counts and whole-number sums per group); nothing of it leaves but
through here. All groups together cost as much as one, since a person's rows are counted once.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.figures import Figure, Noisy, figure
from halfmask.dp.mechanisms.stable_groups import StableGroups
from halfmask.dp.sampling import Sampler
from halfmask.dp.views import Groups, counted, views_of
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.dp.accountant import Allowance, Receipt
    from halfmask.dp.questions import Exact, Question


@dataclass(frozen=True, slots=True, eq=False)
class Answered:
    """The figures, which groups are published, and the receipt."""

    figures: tuple[Figure, ...]
    published: NDArray[np.bool_]
    confidence: float
    receipt: Receipt


def answer(
    questions: Sequence[Question],
    exact: Exact,
    allowance: Allowance,
    *,
    groups: Groups = "public",
    confidence: float = 0.95,
    sampler: Sampler | None = None,
) -> Answered:
    """Noisy figures for ``questions``, for the whole of ``allowance``.

    Args:
        questions: what to answer.
        exact: the exact figures; with public groups there is one for each of them, empty ones too.
        allowance: what is already spent for this answer; for thresholded groups it is charged in
            epsilon and delta (``accountant.allow(..., as_promised=True)``).
        groups: whether the groups are public, or only those far above one person are shown.
        confidence: of each interval.
        sampler: only for tests.
    """
    require_confidence(confidence)
    drawn = sampler or Sampler()
    allowance.secure = allowance.secure and drawn.secure
    views = views_of(
        questions, exact.present, allowance.remaining, allowance.rows_per_person, groups=groups
    )
    noisy: dict[str, Noisy] = {}
    published = np.ones(len(exact.counts), np.bool_)
    # Each figure joins up to three vectors: their intervals must hold together.
    each = 1 - (1 - confidence) / 3
    for view in views:
        allowance.charge(view.entry)  # paid before the exact figures are touched
        whole = exact.vector(view.vector).astype(np.int64)
        if isinstance(view.mechanism, StableGroups):
            values, published = view.mechanism.apply(whole, drawn)
        else:
            values = view.mechanism.apply(whole, drawn)
        noisy[view.vector] = Noisy(values, view.half_width(each))
    figures = tuple(figure(q, counted(q.column, exact.present), noisy) for q in questions)
    return Answered(figures, published, confidence, allowance.receipt())


def require_confidence(confidence: float) -> None:
    """Refuse a confidence that no interval has."""
    if not 0 < confidence < 1:
        raise ParameterError("confidence", confidence, "above 0 and below 1")
