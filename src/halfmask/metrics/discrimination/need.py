"""A need: what somebody wants to learn from which columns, and how well a table serves it.

Definition: DR of the target's blocks given the keys' blocks, jointly: an analyst's need (at least
so much should be told) or an attacker's goal (at most so much may be).
Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, chapter 6.
"""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InputError, ParameterError
from halfmask.metrics.discrimination.columns import grouped, per_column
from halfmask.metrics.discrimination.grouping import measure
from halfmask.metrics.discrimination.rate import discriminate
from halfmask.metrics.discrimination.released import released_column

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.discrimination.result import Discrimination
    from halfmask.metrics.sides import Sides
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True)
class Need:
    """What somebody wants to learn, and from what: an attacker's goal or an analyst's need.

    Attributes:
        target: the column of interest.
        keys: the columns it is to be learned from, jointly.
        partition: blocks of values for any of these columns, as for ``discrimination_rate``.
        name: what the need is called in reports.
        at_least: the rate that the need asks for, 0 to 1; None: none is asked.
        at_most: the rate that must not be passed; None: none is set.

    Example:
        >>> Need("disease", "age", at_least=0.3).title
        'disease from age'
    """

    target: str
    keys: tuple[str, ...]
    partition: Any = None
    name: str = ""
    at_least: float | None = None
    at_most: float | None = None

    def __post_init__(self) -> None:
        keys = (self.keys,) if isinstance(self.keys, str) else tuple(self.keys)
        object.__setattr__(self, "keys", keys)
        if not keys:
            raise ParameterError("keys", keys, "at least one column")
        for name in ("at_least", "at_most"):
            bound = getattr(self, name)
            if bound is not None and not 0 <= bound <= 1:
                raise ParameterError(name, bound, "between 0 and 1")

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

    def met(self, rate: float | None) -> bool | None:
        """Whether ``rate`` keeps the bounds; None where there are none, no where it is unknown."""
        if self.at_least is None and self.at_most is None:
            return None
        if rate is None:
            return False
        enough = self.at_least is None or rate >= self.at_least
        return enough and (self.at_most is None or rate <= self.at_most)


@dataclass(frozen=True, slots=True)
class NeedMet:
    """How far a need is served before and after.

    Attributes:
        name: the need; ``target`` and ``keys`` what is learned from what.
        before: the rate of the original; None where its target never varies.
        after: the rate of the release; None with a ``reason``.
        rows_before: the rows it rests on; ``rows_after`` those of the release.
        at_least: the rate asked for; ``at_most`` the one that must not be passed.
        met: whether the release keeps them; None where nothing is asked.
        notes: how labels and blocks were put together.
    """

    name: str
    target: str
    keys: tuple[str, ...]
    before: float | None
    after: float | None
    rows_before: int
    rows_after: int
    at_least: float | None = None
    at_most: float | None = None
    met: bool | None = None
    reason: str = ""
    notes: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self) | {"keys": list(self.keys), "notes": list(self.notes)}


def need_met(need: Need, both: Sides) -> NeedMet:
    """Measure a need on the original and on the release.

    A released label counts for the block that holds all values it covers; one that covers several
    blocks stands for itself.

    Raises:
        InputError: the original lacks a column, or a partition does not fit.
    """
    one = need.measure(both.original, both.original_counts, values=False)
    before = None if one.degenerate else one.rate
    notes: list[str] = list(one.notes)
    after, reason, rows = None, "", both.after
    names = (need.target, *need.keys)
    absent = [name for name in dict.fromkeys(names) if name not in both.columns]
    if absent:
        reason = f"The release does not show {', '.join(absent)}."
    else:
        given = per_column(both.original, need.target, need.partition)
        columns = []
        for name in names:
            column, more = released_column(both, name, given.get(name))
            columns.append(column)
            notes += more
        y, groups = grouped(columns[1:])
        found = measure(columns[0].codes, columns[0].size, y, groups, weights=both.released_counts)
        after = None if np.isnan(found.rate) else found.rate
        reason = "" if after is not None else "The target never varies in the release."
        rows = int(found.sizes.sum())
    return NeedMet(
        need.title, need.target, need.keys, before, after, one.rows, rows, need.at_least,
        need.at_most, need.met(after), reason, tuple(dict.fromkeys(notes)),
    )  # fmt: skip


def unique_titles(needs: list[Need]) -> list[Need]:
    """Refuse needs that reports could not tell apart."""
    titles = [need.title for need in needs]
    twice = sorted({title for title in titles if titles.count(title) > 1})
    if twice:
        raise InputError(f"Several needs are called {', '.join(twice)}: give them names.")
    return needs
