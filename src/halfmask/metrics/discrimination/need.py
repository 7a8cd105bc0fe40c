"""Needs: what somebody wants to learn from which columns, and how well a table serves it."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import HalfmaskError, InputError, ParameterError
from halfmask.metrics.discrimination.columns import group_rows, per_column
from halfmask.metrics.discrimination.partition import is_plain_number, read_toml, stated_partition
from halfmask.metrics.discrimination.rate import discriminate_tuples, group_rates
from halfmask.metrics.discrimination.release_rates import released_column
from halfmask.table.document import Result

if TYPE_CHECKING:
    from os import PathLike

    from halfmask.metrics.discrimination.rate import Discrimination
    from halfmask.metrics.sides import Sides
    from halfmask.table.table import Table
    from halfmask.table.tuples import Tuples


@dataclass(frozen=True, slots=True)
class Need:
    """What somebody wants to learn, and from what: an attacker's goal or an analyst's need.

    Definition: DR of the target's blocks given the keys' blocks, jointly: an analyst's need (at
    least so much should be told) or an attacker's goal (at most so much may be).
    Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, chapter
    6.

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

    def measure(self, table: Table | Tuples, *, values: bool = True) -> Discrimination:
        """How far rows serve the need: a rate from 0 to 1, also of each value if ``values``."""
        return discriminate_tuples(table, self.target, self.keys, self.partition, values=values)

    def met(self, rate: float | None) -> bool | None:
        """Whether ``rate`` keeps the bounds; None where there are none, no where it is unknown."""
        if self.at_least is None and self.at_most is None:
            return None
        if rate is None:
            return False
        enough = self.at_least is None or rate >= self.at_least
        return enough and (self.at_most is None or rate <= self.at_most)


@dataclass(frozen=True, slots=True)
class NeedMet(Result):
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


def need_met(need: Need, both: Sides) -> NeedMet:
    """Measure a need on the original and on the release.

    A released label counts for the block that holds all values it covers; one that covers several
    blocks stands for itself.

    Raises:
        InputError: the original lacks a column, or a partition does not fit.
    """
    # Who counted the rows is said once, of the whole comparison.
    one = need.measure(replace(both.original_tuples, note=""), values=False)
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
        y, groups = group_rows(columns[1:])
        found = group_rates(columns[0].codes, columns[0].size, y, groups, both.released_counts)
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


_NEED = ("target", "keys", "name", "at_least", "at_most", "partitions")


def stated_needs(given: Sequence[Need] | str | PathLike[str]) -> list[Need]:
    """Needs as they are, or read from a file: one ``[[need]]`` each.

    Raises:
        InputError: the file cannot be read or says something else.
    """
    if not isinstance(given, str | os.PathLike):
        return unique_titles(list(given))
    path = Path(given)
    document = read_toml(path)
    entries = document.get("need")
    if not isinstance(entries, list) or not entries or set(document) != {"need"}:
        raise InputError(f"The file {path.name!r} states no needs: write a [[need]] for each.")
    return unique_titles([_need(place, entry) for place, entry in enumerate(entries, 1)])


def _need(place: int, stated: object) -> Need:
    if not isinstance(stated, Mapping) or "target" not in stated or "keys" not in stated:
        raise InputError(f"Need {place} must name its target and its keys.")
    strange = sorted(set(stated) - set(_NEED))
    if strange:
        raise InputError(
            f"Need {place} knows no {', '.join(strange)}; it knows {', '.join(_NEED)}."
        )
    keys, blocks = stated["keys"], stated.get("partitions")
    names = [keys] if isinstance(keys, str) else keys
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names):
        raise InputError(f"The keys of need {place} are a list of columns.")
    if blocks is not None and not isinstance(blocks, Mapping):
        raise InputError(f"The partitions of need {place} are a table per column.")
    bounds = {name: stated[name] for name in ("at_least", "at_most") if name in stated}
    if not all(is_plain_number(bound) for bound in bounds.values()):
        raise InputError(f"The bounds of need {place} are numbers from 0 to 1.")
    try:
        return Need(
            str(stated["target"]),
            tuple(names),
            {name: stated_partition(name, one) for name, one in blocks.items()} if blocks else None,
            str(stated.get("name", "")),
            **bounds,
        )
    except HalfmaskError as error:
        raise InputError(f"Need {place}: {error}") from None
