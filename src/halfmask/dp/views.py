"""Which noisy views a set of questions needs, by which mechanism, and at which cost.

All of it follows from the questions and the budget: it is known before anything is spent or read.
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from math import sqrt
from typing import TYPE_CHECKING, Literal

from halfmask.dp.accountant import Entry
from halfmask.dp.budget import Approximate, Budget, Pure
from halfmask.dp.mechanisms.count_tree import CountTree
from halfmask.dp.mechanisms.stable_groups import StableGroups
from halfmask.dp.questions import LEVELS, STEPS
from halfmask.dp.vault import as_pure, noise
from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from halfmask.dp.mechanisms.discrete_gaussian import DiscreteGaussian
    from halfmask.dp.mechanisms.discrete_laplace import DiscreteLaplace
    from halfmask.dp.questions import Question

    Mechanism = StableGroups | CountTree | DiscreteLaplace | DiscreteGaussian

Groups = Literal["public", "threshold"]
# One row moves a count by 1, a scaled sum by STEPS, a sum of squares by STEPS squared.
_REACH = {"count": 1, "sum": STEPS, "squares": STEPS * STEPS}


@dataclass(frozen=True, slots=True)
class View:
    """One noisy view.

    Attributes:
        vector: what is measured: ``count``, ``count x``, ``sum x``, ``squares x`` or ``tree x``.
        name: the same for the receipt.
        mechanism: by what.
    """

    vector: str
    name: str
    mechanism: Mechanism

    @property
    def entry(self) -> Entry:
        """The line of the receipt."""
        variance = Fraction(self.mechanism.variance).limit_denominator(10**6)
        return Entry(self.name, type(self.mechanism).__name__, self.mechanism.cost, variance)

    @property
    def deviation(self) -> float:
        """The standard deviation of the noise in each number."""
        return sqrt(self.mechanism.variance)

    def half_width(self, confidence: float) -> float:
        """How far each number may be off."""
        used = self.mechanism
        return (used.noise if isinstance(used, StableGroups) else used).half_width(confidence)


def counted(column: str, present: Collection[str]) -> str:
    """The vector that tells how many values of ``column`` there are."""
    return f"count {column}" if column in present else "count"


def vectors_of(question: Question, present: Collection[str]) -> list[str]:
    """The vectors that one question is answered from."""
    kind, column = question.kind, question.column
    if kind == "quantile":
        return [f"tree {column}"]
    found = []
    if kind != "sum" or (question.scale is not None and question.scale.center):
        found.append(counted(column, present))
    if kind != "count":
        found.append(f"sum {column}")
    if kind in ("variance", "deviation"):
        found.append(f"squares {column}")
    return found


def views_of(
    questions: Sequence[Question],
    present: Collection[str],
    limit: Budget,
    rows_per_person: int = 1,
    *,
    groups: Groups = "public",
) -> tuple[View, ...]:
    """The views that ``questions`` need, each once; they share ``limit`` evenly.

    Args:
        questions: what to answer.
        present: the columns whose values are counted beside the rows.
        limit: the whole budget, in the unit that mechanisms charge.
        rows_per_person: how many rows of one person count.
        groups: whether they are public; else their counts take all of delta.
    """
    if not questions:
        raise ParameterError("questions", 0, "at least one")
    vectors = ["count"] if groups == "threshold" else []
    vectors = list(
        dict.fromkeys([*vectors, *(v for q in questions for v in vectors_of(q, present))])
    )
    share, found = limit / len(vectors), []
    if groups == "threshold":
        if not isinstance(limit, Approximate) or not limit.delta:
            raise ParameterError("delta", 0, "above 0 where groups are not public")
        stable = StableGroups((limit / len(vectors)).epsilon, limit.delta, rows_per_person)
        found.append(View(vectors.pop(0), "groups and counts", stable))
    if isinstance(share, Approximate):
        share = Pure(share.epsilon)
    for vector in vectors:
        kind = vector.partition(" ")[0]
        if kind == "tree":
            tree = CountTree(as_pure(share).epsilon, LEVELS, rows_per_person)
            found.append(View(vector, vector, tree))
            continue
        mechanism = noise(share, _REACH[kind] * rows_per_person)
        found.append(View(vector, f"{vector}{_unit(vector, questions)}", mechanism))
    return tuple(found)


def _unit(vector: str, questions: Sequence[Question]) -> str:
    """What one whole number of a vector is worth, for the receipt."""
    kind, _, column = vector.partition(" ")
    if kind == "count":
        return ""
    step = next(q.scale.step for q in questions if q.column == column and q.scale is not None)
    return f" (in steps of {step:g}{', squared' if kind == 'squares' else ''})"
