"""Attacks by discrimination rates, and identity value by value of rows in the same order.

Definition: identity DR_A(A*); homogeneity DR_S(Y*); background knowledge 1 - DR_S(Y*), the
information still needed from outside; skewness DR_S(Y) - DR_S(Y*), what generalization took away;
similarity DR_sS(Y*) on a semantic partition. Information loss of an attack is 1 - its mean rate.
Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, ch. 4-5.

Identity and skewness need the pairing of original and released rows, which the assessor holds and
an attacker does not: the figures bound that attacker from above.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InputError
from halfmask.metrics.discrimination.columns import coded, group_labels, grouped
from halfmask.metrics.discrimination.grouping import measure
from halfmask.metrics.discrimination.result import Discrimination, told

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.table.table import Table


def identity(original: Table, released: Table, column: str) -> Discrimination:
    """How far the released column gives the original one away; rows stand in the same order."""
    return _across(original, column, released, (column,))


def information_loss(*attacks: Sequence[float]) -> float:
    """What an anonymization lost overall: the mean over attacks of 1 - the mean of its rates."""
    return float(np.mean([1.0 - float(np.mean(rates)) for rates in attacks]))


def _across(left: Table, target: str, right: Table, keys: tuple[str, ...]) -> Discrimination:
    """The rate of keys in one table for a target in another, rows paired by position."""
    if len(left) != len(right):
        raise InputError(
            f"The tables hold {len(left):,} and {len(right):,} rows and cannot be paired by place."
        )
    x, columns = coded(left, target), [coded(right, name) for name in keys]
    y, groups = grouped(columns)
    found = measure(x.codes, x.size, y, groups)
    return told(target, keys, found, group_labels(columns, y, groups))
