"""Randomized response: each row's answer is told truly by chance, else another of those declared.

Definition: of n declared answers the true one is told with chance p = e^epsilon / (e^epsilon + n -
    1), any other one with q = 1 / (e^epsilon + n - 1). Any two true answers are told alike up to a
    factor e^epsilon, and nobody names the true one of n equally likely answers with a chance above
    p (Theorem 22), which is reached. A share is estimated without bias by (c / n - q) / (p - q).
Source: Warner, "Randomized response", 1965; Kairouz, Oh, Viswanath, "Extremal mechanisms for local
    differential privacy", 2014; Nguyen, Castelluccia, "Techniques d'anonymisation tabulaire", 2020,
    Theorem 22.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any, ClassVar

from halfmask.dp.budget import exact_number
from halfmask.dp.domain import Values, domain_of, public_codes, value_key
from halfmask.dp.mechanisms import RandomizedResponse
from halfmask.errors import InputError, ParameterError
from halfmask.masking.step import MaskStep, MaskWords, Outcome, one_column, register_mask
from halfmask.models.verdict import number
from halfmask.release.doors.masked import MaskedRelease
from halfmask.release.doors.responses import (
    ResponseClaim,
    count_answers,
    estimate_answers,
    listed_values,
)
from halfmask.release.files import read_document
from halfmask.table.document import Result
from halfmask.table.table import require_table

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from halfmask.masking.step import Rows
    from halfmask.table.table import Table

MOST = 20  # epsilon beyond which nearly every answer is the true one, as for cells
_VALUES = 1000


@register_mask
@dataclass(frozen=True, slots=True)
class Randomize(MaskStep):
    """Tell each row's answer by randomized response over the values that the schema declares.

    The column's ``domain`` lists them; nothing of it is taken from rows. What is not listed counts
    as the declared ``other``, else as missing where that is declared, else as the first value. It
    comes before all other steps, and no other step changes the column. With a seed it promises
    nothing.

    Example:
        >>> import halfmask as hm
        >>> hm.masks.Randomize("smokes", epsilon=1).sentence
        "Answers are told truly by chance, else another declared one ('smokes'; epsilon = 1)"
    """

    name: ClassVar[str] = "randomize"
    words: ClassVar[MaskWords] = MaskWords(
        "Answers are told truly by chance, else another declared one.",
        "Being sure of a row's answer, whatever else is known: local differential privacy.",
        "What other columns tell of it, who has a row, and people with many rows: each costs.",
    )

    column: str = field(metadata=one_column())
    epsilon: float = field(metadata=number(0, MOST, open_low=True))

    def faults(self, table: Table) -> list[str]:
        """That the schema lists the answers."""
        declared = table.schema.columns.get(self.column)
        if declared is None or declared.domain is None:
            return [
                f"column '{self.column}' has no declared answers: list them as its domain in the "
                'schema, such as domain = ["yes", "no"]; none is taken from the rows.'
            ]
        domain = domain_of(self.column, declared.domain)
        if not isinstance(domain, Values) or not 2 <= len(domain) <= _VALUES:
            return [f"the domain of column '{self.column}' must list 2 to {_VALUES:,} answers."]
        return []

    def apply(self, rows: Rows) -> Outcome:
        """Tell answers."""
        domain = listed_values(rows.table.schema, self.column)
        mechanism = RandomizedResponse(exact_number("epsilon", self.epsilon), len(domain))
        answers = public_codes(rows.table, self.column, domain).astype("int64")
        told = domain.decode(mechanism.tell(answers, rows.sampler), rows.random)
        claim = ResponseClaim(
            self.column, mechanism.epsilon, mechanism.truth, told, rows.sampler.secure
        )
        return Outcome({self.column: told}, claims=(claim,))


@dataclass(frozen=True, slots=True)
class ShareEstimate(Result):
    """The estimated share of rows that hold a value.

    Attributes:
        column: whose value it is.
        value: as text; None: missing.
        told: in how many rows it stands.
        share: without bias, so that it may fall below 0; None where there is no row.
        low: the lower end of the 95 % interval.
        high: the upper end.
    """

    column: str
    value: str | None
    told: int
    share: float | None
    low: float
    high: float


def estimate_shares(
    rows: Table | MaskedRelease,
    column: str | None = None,
    *,
    epsilon: float | None = None,
    values: Sequence[object] | None = None,
) -> tuple[ShareEstimate, ...]:
    """Estimate how often each value was true, from randomized answers.

    Args:
        rows: a release of ``randomize``, which knows the rest; or rows of one, all or some.
        column: whose answers; of a release, all that were randomized by default.
        epsilon: with which it was randomized.
        values: all answers that could be told; by default those that the schema of ``rows`` lists.

    Raises:
        InputError: the column was not randomized, or holds what could not be told.

    Example:
        >>> import halfmask as hm
        >>> told = hm.read({"smokes": ["yes"] * 60 + ["no"] * 40}, schema={"smokes": "sensitive"})
        >>> yes, no = hm.estimate_shares(told, "smokes", epsilon=1.0986122886681098,
        ...                              values=["yes", "no"])
        >>> round(yes.share, 6), round(yes.low, 3), round(yes.high, 3)
        (0.7, 0.504, 0.881)
    """
    if isinstance(rows, MaskedRelease):
        receipts = [
            one
            for one in rows.statement.get("randomized", ())
            if column is None or one["column"] == column
        ]
        if not receipts:
            raise InputError("The release holds no such randomized column: name one that it has.")
        return tuple(
            ShareEstimate(receipt["column"], value, **figures)
            for receipt in receipts
            for value, figures in zip(receipt["values"], receipt["answers"], strict=True)
        )
    table = require_table(rows)
    if column is None or column not in table.arrow.column_names:
        raise InputError("Name a column of the rows that was randomized.")
    if epsilon is None or not epsilon > 0:
        raise ParameterError("epsilon", epsilon, "that of the randomized answers, above 0")
    domain = listed_values(table.schema, column) if values is None else Values(tuple(values))
    counts = count_answers(table.arrow[column])
    told = [counts.pop(value_key(value), 0) for value in domain.values]
    if counts:
        raise InputError(
            f"Column '{column}' has {sum(counts.values()):,} rows with values that could not be "
            "told: give all values of its domain, or the rows as they were released."
        )
    mechanism = RandomizedResponse(exact_number("epsilon", epsilon), len(domain))
    return tuple(
        ShareEstimate(column, None if value is None else str(value), **figures)
        for value, figures in zip(
            domain.values, estimate_answers(told, float(mechanism.truth)), strict=True
        )
    )


def read_responses(path: str | PathLike[str]) -> list[Mapping[str, Any]]:
    """What the JSON report of a release says of its randomized columns.

    Raises:
        InputError: the file is no such report, or the release has no such column.
    """
    file, document = Path(path), read_document(path, "report")
    statement = document.get("statement") if isinstance(document, dict) else None
    found = statement.get("randomized") if isinstance(statement, dict) else None
    if not isinstance(found, list) or not found:
        raise InputError(f"{str(file)!r} is no report of a release with randomized columns.")
    known = ("column", "epsilon", "values")
    if not all(isinstance(one, dict) and all(name in one for name in known) for one in found):
        raise InputError(f"{str(file)!r} lacks what it should say of randomized columns.")
    return found
