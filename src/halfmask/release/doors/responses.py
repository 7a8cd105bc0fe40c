"""The door for randomized answers: chances, declared values and people's own epsilon, held again.

A column that leaves by randomized response is epsilon-differentially private for each of its rows
by itself, whatever else is known. That holds only if what leaves is what the mechanism told, and no
step saw the true answers before; both are checked here, by code that the step does not share.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass, replace
from decimal import ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import exp, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.dp.domain import Values, domain_of, public_codes, value_key
from halfmask.dp.figures import attacker
from halfmask.errors import InternalError, ParameterError, PrivacyError
from halfmask.metrics.estimate import wilson
from halfmask.release.demands import enforce_noise
from halfmask.table.columns import quote_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from halfmask.release.candidate import MaskedCandidate
    from halfmask.release.demands import DemandsStatement
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

RANDOMIZE = "randomize"  # the step, by its name in documents
_FAR, _MORE = 9, 40  # deviations, and rows more, beyond which answers were not told by chance


@dataclass(frozen=True, slots=True, eq=False)
class ResponseClaim:
    """Claims that a column leaves as randomized response told it.

    Attributes:
        column: its name.
        epsilon: what one answer costs.
        truth: the chance that an answer is the true one; all others are equally likely.
        told: what was told for every row of the original table, in its order.
        secure: whether the system's secure source was asked; nothing is promised of a seed.
    """

    column: str
    epsilon: Fraction
    truth: Fraction
    told: pa.Array
    secure: bool

    @property
    def words(self) -> str:
        """What is claimed."""
        if not self.secure:
            return f"nothing of the answers in '{self.column}': a seed can undo them"
        return (
            f"local differential privacy of each row's '{self.column}' with epsilon = "
            f"{float(self.epsilon):g}; a person with several rows has as often that"
        )

    def verify(self, rows: Table, tables: Mapping[str, pa.Table], original: Table) -> None:  # noqa: ARG002
        """Demand the chances, the declared values and that answers were changed."""
        domain = listed_values(original.schema, self.column)
        context = Context(prec=50, rounding=ROUND_FLOOR)
        power = context.divide(Decimal(self.epsilon.numerator), Decimal(self.epsilon.denominator))
        odds = context.next_minus(context.exp(power))  # not above e^epsilon
        lie = (1 - self.truth) / (len(domain) - 1)
        if not 0 < self.truth < 1 or self.truth > lie * Fraction(odds):
            raise InternalError("Answers would be told with more than their epsilon.")
        shown = {value_key(v) for v in pc.unique(rows.arrow[self.column]).to_pylist()}
        if not shown <= {value_key(v) for v in domain.values}:
            raise InternalError("A randomized column shows what is not declared; nothing leaves.")
        true = public_codes(original, self.column, domain)
        coded = self.told.dictionary_encode("encode")
        said = domain.encode(coded.dictionary)[coded.indices.to_numpy()]
        kept, count, chance = int(np.sum(true == said)), len(true), float(self.truth)
        if abs(kept - count * chance) > _FAR * sqrt(count * chance * (1 - chance)) + _MORE:
            raise InternalError("Answers were not told by the chances that are stated.")


def listed_values(schema: Schema, column: str) -> Values:
    """The public values of a column, which the schema lists.

    Raises:
        ParameterError: it lists none, or not enough.
    """
    declared = schema.columns.get(column)
    domain = None if declared is None or declared.domain is None else declared.domain
    found = None if domain is None else domain_of(column, domain)
    if not isinstance(found, Values) or len(found) < 2:
        raise ParameterError(f"domain of '{column}'", "none", "a list of two values or more")
    return found


def hold_responses(candidate: MaskedCandidate, held: Table) -> tuple[ResponseClaim, ...]:
    """Demand that answers leave as they were told, unseen by other steps, within people's epsilon.

    Args:
        candidate: the masked rows with what is claimed of them.
        held: these rows with what people demand.

    Returns:
        The claims on randomized answers.

    Raises:
        PrivacyError: a step or a promise looked at true answers, or somebody demands less epsilon.
    """
    claims = tuple(one for one in candidate.claims if isinstance(one, ResponseClaim))
    if not claims:
        return ()
    names = [claim.column for claim in claims]
    refuse_true_answers(names, candidate.models)
    first = [str(step["mask"]) for step in candidate.steps[: len(claims)]]
    if len(set(names)) < len(names) or first != [RANDOMIZE] * len(claims):
        raise PrivacyError("Answers are randomized first, and each column once.")
    for claim in claims:
        if claim.column not in candidate.rows.arrow.column_names:
            raise PrivacyError(
                f"A later step takes out column '{claim.column}', whose answers are randomized: "
                "leave out one of the two steps."
            )
        told = claim.told.take(pa.array(candidate.source))
        if not candidate.rows.arrow[claim.column].combine_chunks().equals(told):
            raise PrivacyError(
                f"A later step changes column '{claim.column}', whose answers are randomized: let "
                "no other step change it."
            )
    if candidate.demands == "keep":
        secure = all(claim.secure for claim in claims)
        cost = sum((claim.epsilon for claim in claims), Fraction(0)) if secure else None
        enforce_noise(held, candidate.table, cost)
    return claims


def covers_all(claims: Sequence[ResponseClaim], leaving: Sequence[str]) -> bool:
    """Whether every column that leaves is told by chance, so that rows keep an epsilon as such."""
    return bool(claims) and set(leaving) <= {c.column for c in claims if c.secure}


def refuse_true_answers(names: Sequence[str], models: Sequence[Any]) -> None:
    """Refuse promises that would be checked on the true answers of randomized columns.

    Raises:
        PrivacyError: there is one: whether rows leave would tell of these answers.
    """
    spoken = [name for model in models for name in model.columns if name in names]
    if spoken:
        raise PrivacyError(
            f"A promise, or people's own l or t, speaks of column '{spoken[0]}', whose answers are "
            "randomized: whether it holds would tell of the true ones. Use anonymize, or leave the "
            "column out of randomize."
        )


def not_claimed(claims: Sequence[ResponseClaim], leaving: Sequence[str]) -> tuple[str, ...]:
    """What is not promised beside randomized answers."""
    if not claims:
        return ("differential privacy",)
    names = [claim.column for claim in claims if claim.secure]
    others = [name for name in leaving if name not in names]
    return (f"differential privacy of {quote_names(others)}",) if others else ()


def settle_demands(
    own: DemandsStatement | None, claims: Sequence[ResponseClaim]
) -> tuple[DemandsStatement | None, tuple[str, ...]]:
    """What became of demands, and what to say of people's own epsilon where answers are noisy."""
    if own is None or not own.noise or not own.kept or not claims:
        return own, ()
    names = quote_names([claim.column for claim in claims])
    return replace(own, noise=0), (
        f"People's own epsilon is kept for {names}; other columns have no noise, and keep what "
        "these people demand besides.",
    )


def receipt(claim: ResponseClaim, original: Table, published: pa.Table) -> dict[str, Any]:
    """What an answer cost, what it means (Theorem 22), and what the answers let estimate."""
    domain = listed_values(original.schema, claim.column)
    counts = count_answers(published[claim.column])
    told = [counts[value_key(value)] for value in domain.values]
    bound = attacker(claim.epsilon, len(domain))
    return {
        "column": claim.column,
        "epsilon": float(claim.epsilon),
        "values": [None if value is None else str(value) for value in domain.values],
        "truth": float(claim.truth),
        "other": float((1 - claim.truth) / (len(domain) - 1)),
        "odds": exp(claim.epsilon),
        "bound": bound,
        "meaning": (
            bound_words(float(claim.epsilon), len(domain), bound)
            if claim.secure
            else "These answers came from a seed: nothing is promised of them."
        ),
        "secure_noise": claim.secure,
        "answers": estimate_answers(told, float(claim.truth)),
    }


def bound_words(epsilon: float, values: int, bound: float) -> str:
    """What epsilon bounds: odds, and a chance only where all answers are equally likely.

    Example:
        >>> bound_words(1, 2, 0.7310586)[:65]
        'A told answer changes the odds between two true answers at most b'
    """
    return (
        f"A told answer changes the odds between two true answers at most by the factor e^epsilon "
        f"= {exp(epsilon):.4g}. Only of {values} equally likely answers does that leave a chance "
        f"of at most {bound:.1%} to name the true one: where one answer is more frequent, guessing "
        "it is right more often."
    )


def count_answers(column: pa.ChunkedArray) -> Counter[object]:
    """In how many rows each value stands, by what it is known by."""
    counts: Counter[object] = Counter()
    for one in pc.value_counts(column).to_pylist():
        counts[value_key(one["values"])] += one["counts"]
    return counts


def estimate_answers(told: Sequence[int], truth: float) -> list[dict[str, Any]]:
    """Per value how many told it, and the share that holds it, with a 95 % interval.

    Definition: with n answers of which c name the value, chance p of the truth and q of each other
    answer, the share (c / n - q) / (p - q) has no bias; it may fall below 0 or above 1. The
    interval is Wilson's of c / n, carried over and cut to 0 and 1.

    Example:
        >>> [round(one["share"], 3) for one in estimate_answers([60, 40], 0.75)]
        [0.7, 0.3]
    """
    total, other = sum(told), (1 - truth) / (len(told) - 1)
    out = []
    for count in told:
        if not total:
            out.append({"told": 0, "share": None, "low": 0.0, "high": 1.0})
            continue
        share, *ends = (
            (one - other) / (truth - other) for one in (count / total, *wilson(count, total))
        )
        low, high = (min(1.0, max(0.0, end)) for end in ends)
        out.append({"told": int(count), "share": share, "low": low, "high": high})
    return out
