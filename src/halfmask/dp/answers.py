"""Answers to grouped questions: exact figures in, noisy figures with intervals and a receipt out.

An engine computes the exact part (counts and whole-number sums per group); nothing of it leaves but
through here. All groups together cost as much as one, since a person's rows are counted once.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Literal, Protocol

import numpy as np

from halfmask.dp.accountant import Entry
from halfmask.dp.budget import Approximate, Budget, Pure
from halfmask.dp.figures import Figure, Noisy, figure
from halfmask.dp.mechanisms.count_tree import CountTree
from halfmask.dp.mechanisms.stable_groups import StableGroups
from halfmask.dp.questions import LEVELS, STEPS, Exact, Question
from halfmask.dp.sampling import Sampler
from halfmask.dp.vault import as_pure, noise
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.dp.accountant import Allowance, Receipt

# One row moves a count by 1, a scaled sum by STEPS, a sum of squares by STEPS squared.
_REACH = {"count": 1, "sum": STEPS, "squares": STEPS * STEPS}


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
    groups: Literal["public", "threshold"] = "public",
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
    vectors = vectors_of(questions, exact, threshold=groups == "threshold")
    noisy: dict[str, Noisy] = {}
    published = np.ones(len(exact.counts), np.bool_)
    # Each figure joins up to three vectors: their intervals must hold together.
    each = 1 - (1 - confidence) / 3
    share = allowance.remaining / len(vectors)
    if groups == "threshold":
        noisy["count"], published = _stable(exact.counts, share, each, allowance, drawn)
        vectors.remove("count")
    if isinstance(share, Approximate):
        share = Pure(share.epsilon)
    for vector in vectors:
        measure = _tree if vector.startswith("tree ") else _measure
        noisy[vector] = measure(vector, exact, share, each, allowance, drawn)
    figures = tuple(figure(q, exact.counted(q.column), noisy) for q in questions)
    return Answered(figures, published, confidence, allowance.receipt())


def require_confidence(confidence: float) -> None:
    """Refuse a confidence that no interval has."""
    if not 0 < confidence < 1:
        raise ParameterError("confidence", confidence, "above 0 and below 1")


def vectors_of(questions: Sequence[Question], exact: Exact, *, threshold: bool) -> list[str]:
    """The vectors that must be measured, each once: counts, sums, squares and trees."""
    if not questions:
        raise ParameterError("questions", 0, "at least one")
    found = ["count"] if threshold else []
    for question in questions:
        kind, column = question.kind, question.column
        if kind == "quantile":
            found.append(f"tree {column}")
            continue
        if kind != "sum" or (question.scale is not None and question.scale.center):
            found.append(exact.counted(column))
        if kind != "count":
            found.append(f"sum {column}")
        if kind in ("variance", "deviation"):
            found.append(f"squares {column}")
    return list(dict.fromkeys(found))


def _stable(
    counts: NDArray[np.int64],
    share: Budget,
    confidence: float,
    allowance: Allowance,
    sampler: Sampler,
) -> tuple[Noisy, NDArray[np.bool_]]:
    """Counts of groups that show themselves, at this share of epsilon and all of delta."""
    left = allowance.remaining
    if not isinstance(share, Approximate) or not isinstance(left, Approximate) or not left.delta:
        raise ParameterError("delta", 0, "above 0 where groups are not public")
    mechanism = StableGroups(share.epsilon, left.delta, allowance.rows_per_person)
    _charge(allowance, "groups and counts", mechanism)
    noisy, shown = mechanism.apply(counts, sampler)
    return Noisy(noisy, mechanism.noise.half_width(confidence)), shown


def _measure(
    vector: str,
    exact: Exact,
    cost: Budget,
    confidence: float,
    allowance: Allowance,
    sampler: Sampler,
) -> Noisy:
    reach = _REACH[vector.partition(" ")[0]]
    mechanism = noise(cost, reach * allowance.rows_per_person)
    _charge(allowance, vector, mechanism)
    noisy = mechanism.apply(exact.vector(vector).astype(np.int64), sampler)
    return Noisy(noisy, mechanism.half_width(confidence))


def _tree(
    vector: str,
    exact: Exact,
    cost: Budget,
    confidence: float,
    allowance: Allowance,
    sampler: Sampler,
) -> Noisy:
    """A tree of counts per group; groups hold different rows, so all cost as much as one."""
    mechanism = CountTree(as_pure(cost).epsilon, LEVELS, allowance.rows_per_person)
    _charge(allowance, vector, mechanism)
    noisy = mechanism.apply(exact.vector(vector).astype(np.int64), sampler)
    return Noisy(noisy, mechanism.half_width(confidence))


class _Mechanism(Protocol):
    @property
    def cost(self) -> Budget: ...
    @property
    def variance(self) -> float: ...


def _charge(allowance: Allowance, view: str, mechanism: _Mechanism) -> None:
    """Pay before the exact figures are touched."""
    variance = Fraction(mechanism.variance).limit_denominator(10**6)
    allowance.charge(Entry(view, type(mechanism).__name__, mechanism.cost, variance))
