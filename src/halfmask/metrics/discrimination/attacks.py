"""Attacks scored by the discrimination rate, and what a release loses by resisting them.

Definition: identity DR_A(A*); homogeneity DR_S(Y*); background knowledge 1 - DR_S(Y*), the
information still needed from outside; skewness DR_S(Y) - DR_S(Y*), what generalization took away;
similarity DR_sS(Y*) on a semantic partition. Information loss of an attack is 1 - its mean rate.
Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, ch. 4-5.

Identity and skewness need the pairing of original and released rows, which the assessor holds and
an attacker does not: the figures bound that attacker from above.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InputError
from halfmask.metrics.codes import joint
from halfmask.metrics.discrimination.rate import (
    Discrimination,
    _details,
    _labels,
    _Lazy,
    discriminate,
    measure,
)

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True)
class Need:
    """What somebody wants to learn, and from what: an attacker's goal or an analyst's need.

    Attributes:
        target: the column of interest.
        keys: the columns it is to be learned from, jointly.
        partition: blocks of values for any of these columns, as for ``discrimination_rate``.
        name: what the need is called in reports.
    """

    target: str
    keys: tuple[str, ...]
    partition: Any = None
    name: str = ""

    @property
    def title(self) -> str:
        """A name for reports."""
        return self.name or f"{self.target} from {', '.join(self.keys)}"

    def measure(
        self, table: Table, counts: NDArray[np.int64] | None = None, *, values: bool = True
    ) -> Discrimination:
        """How far ``table`` serves the need: a rate from 0 to 1, also of each value if ``values``.

        With ``counts``, each row of ``table`` stands for so many.
        """
        return discriminate(
            table, self.target, self.keys, self.partition, values=values, counts=counts
        )


def identity(original: Table, released: Table, column: str) -> Discrimination:
    """How far the released column gives the original one away; rows stand in the same order."""
    return _across(original, column, released, (column,))


def homogeneity(
    released: Table, sensitive: str, keys: Sequence[str], partition: object = None
) -> Discrimination:
    """How far the released keys give the sensitive column away."""
    return discriminate(released, sensitive, keys, partition)


def external_information_needed(
    released: Table, sensitive: str, keys: Sequence[str], partition: object = None
) -> float:
    """The share of the sensitive column's information that an attacker must bring along."""
    return 1.0 - homogeneity(released, sensitive, keys, partition).rate


def skewness_delta(original: Table, released: Table, sensitive: str, keys: Sequence[str]) -> float:
    """What the keys no longer tell about the sensitive column because they were generalized."""
    before = _across(released, sensitive, original, tuple(keys))
    return before.rate - discriminate(released, sensitive, keys).rate


def information_loss(*attacks: Sequence[float]) -> float:
    """What an anonymization lost overall: the mean over attacks of 1 - the mean of its rates."""
    return float(np.mean([1.0 - float(np.mean(rates)) for rates in attacks]))


def inversions(
    stronger: dict[str, float], weaker: dict[str, float]
) -> tuple[tuple[str, float, float], ...]:
    """Where the model that is meant to be stronger scores worse: (what, its rate, the other's)."""
    return tuple(
        (name, stronger[name], weaker[name])
        for name in stronger
        if name in weaker and stronger[name] > weaker[name]
    )


def _across(left: Table, target: str, right: Table, keys: tuple[str, ...]) -> Discrimination:
    """The rate of keys in one table for a target in another, rows paired by position."""
    if len(left) != len(right):
        raise InputError(
            f"The tables hold {len(left):,} and {len(right):,} rows and cannot be paired by place."
        )
    x = left.encode(target)
    columns = [
        (encoded.codes, len(encoded.values), _Lazy(encoded.values))
        for encoded in (right.encode(name) for name in keys)
    ]
    y, groups = joint([(codes, size) for codes, size, _ in columns])
    found = measure(x.codes, len(x.values), y, groups)
    labels = _labels(columns, y, np.ones(len(y), dtype=bool), groups)
    details = tuple(_details(found, labels))
    return Discrimination(
        target, keys, found.rate, found.kind, len(left), 0, found.entropy, found.residual,
        int(found.pure.sum()), int(found.sizes[found.pure].sum()), details, (),
        {entry.value: i for i, entry in enumerate(details)},
    )  # fmt: skip
