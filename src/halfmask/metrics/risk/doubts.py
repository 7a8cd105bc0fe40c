"""Doubts: what keeps a criterion from being met although its attack found nothing.

Definition: an attack that could not use a column proves nothing about it. A criterion is not called
met where the release holds columns that no attack looked at (pseudonyms too), or labels of which
more than half cannot be read: of a quasi-identifier, or of the column that is guessed. Singling out
is not met where an identifier of the original left with the rows, however it is written.
Columns that an engine did not count are in the tables all the same.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from halfmask.engines.counted import Counted
from halfmask.metrics.weighted import mean
from halfmask.table.schema import Schema
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa

    from halfmask.metrics.risk.criterion import Criterion
    from halfmask.metrics.shared_column import SharedColumn
    from halfmask.metrics.sides import Published, Sides
    from halfmask.metrics.weighted import Counts

_UNREAD = 0.5  # the share of unknown labels above which attacks by a column prove nothing
_MORE = 0.01  # how much more of a column may be missing before it looks suppressed
_VALUES = 1_000_000  # distinct values of a column that must not leave which are looked at


@dataclass(frozen=True, slots=True)
class Doubts:
    """What was seen of a release before any attack.

    Attributes:
        identified: identifiers that left with the rows, as sentences.
        unseen: what no attack could use; ``uncounted`` what only an attack by any column would.
        unread: per column that may be guessed, why no guess can be held against its labels.
        notes: what a reader should know besides.
    """

    identified: tuple[str, ...]
    unseen: tuple[str, ...]
    uncounted: tuple[str, ...]
    unread: dict[str, str]
    notes: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """All of them, the gravest first."""
        # uncounted ones are told elsewhere
        return (*self.identified, *self.unseen, *self.unread.values(), *self.notes)

    def judge(self, criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
        """The criteria, none of them met that cannot be known to be."""
        return tuple(self._judged(one) for one in criteria)

    def _judged(self, one: Criterion) -> Criterion:
        if self.identified and one.name.startswith(("singling out", "linkability")):
            return replace(one, outcome="not met", notes=(*self.identified, *one.notes))
        reasons = (*self.identified, *self.unseen)
        if one.name.endswith("by any column"):
            reasons = (*reasons, *self.uncounted, *self.unread.values())
        elif one.column in self.unread:
            reasons = (*reasons, self.unread[one.column])
        if one.outcome != "met" or not reasons:
            return one
        return replace(one, outcome="undecided", notes=(*reasons, *one.notes))


def doubts(paired: Sides, original: Counted, release: Published | Counted) -> Doubts:
    """Look for what the attacks on a release cannot see.

    Args:
        paired: the columns that were read or counted, on common ground.
        original: the whole of the original, with the columns that were not counted.
        release: the whole of the release.
    """
    whole = release if isinstance(release, Counted) else Counted(Table(paired.rows, Schema()))
    identified, unseen = _identifiers(original, whole)
    others = [name for name in whole.columns if name not in original.private]
    extra = [name for name in others if name not in original.columns]
    if extra:
        unseen.append(
            f"Columns of the release that the original does not have: {', '.join(extra)}. No "
            "attack looked at them: leave them out, or add them to the original."
        )
    unread = [
        column
        for column in paired.columns.values()
        if column.numbers is None and column.foreign > _UNREAD * paired.after
    ]
    unseen += [
        f"{_cannot_be_read(column)} Give the hierarchy that they are from."
        for column in unread
        if column.role == "quasi"
    ]
    left = [name for name in others if name not in extra and name not in paired.columns]
    return Doubts(
        tuple(identified),
        tuple(unseen),
        (f"Not counted, so that no attack used them: {', '.join(left)}.",) if left else (),
        {
            column.name: f"{_cannot_be_read(column)} Write them as in the original."
            for column in unread
            if column.role != "quasi"
        },
        (*_absent(paired), *_suppressed(paired)),
    )


def _cannot_be_read(column: SharedColumn) -> str:
    return (
        f"Column {column.name!r}: most released labels cannot be read as values of the original, "
        "so that no attack can use them."
    )


def _identifiers(original: Counted, release: Counted) -> tuple[list[str], list[str]]:
    """Columns that must not leave and have left with their values, or that may have."""
    gone, doubtful = [], []
    for name in (one for one in release.columns if one in original.private):
        published, whole = _written(release, name)
        if whole and not len(published):
            continue  # nothing is left of it
        shared = _shared(original, name, published, whole=whole)
        if shared:
            gone.append(
                f"Column {name!r} must not leave, as the schema says, and is in the release with "
                "values of the original. Take it out."
            )
        elif shared is None:
            doubtful.append(
                f"Column {name!r} must not leave, as the schema says, and is in the release. It "
                f"holds more than {_VALUES:,} values: no shared one was found among those that "
                "were looked at. Take it out."
            )
        else:
            doubtful.append(
                f"Column {name!r} must not leave, as the schema says, and is in the release with "
                "other values. No attack looked at them: if they were made from the identifiers, "
                "or stand in another release too, they tell who is who. Take it out."
            )
    return gone, doubtful


def _shared(original: Counted, name: str, published: pa.Array, *, whole: bool) -> bool | None:
    """Whether values of a column that never leaves have left; None where that is not known."""
    if name not in original.columns:
        return True
    own, all_own = _written(original, name)
    if pc.any(pc.is_in(published, value_set=own)).as_py():
        return True
    return False if all_own and whole else None


def _written(side: Counted, name: str) -> tuple[pa.Array, bool]:
    """Values as texts without what is easily changed (case, spaces, signs); whether all."""
    values, whole = side.texts(name, _VALUES)
    plain = pc.replace_substring_regex(pc.utf8_lower(values), r"[^\p{L}\p{N}]+", "")
    return plain.filter(pc.not_equal(plain, "")), whole


def _absent(paired: Sides) -> list[str]:
    gone = [n for n in paired.original.schema.sensitive if n not in paired.rows.column_names]
    if not gone:
        return []
    return [f"The release does not hold {', '.join(gone)}: nothing is said about what it tells."]


def _suppressed(paired: Sides) -> list[str]:
    """Columns whose missing cells may be suppressed ones; rows made anew hold new values."""
    out: list[str] = []
    if any(column.foreign for column in paired.quasi):
        return out
    for column in paired.quasi:
        before = _missing(paired.original.arrow, column.name, paired.original_counts)
        after = _missing(paired.rows, column.name, paired.released_counts)
        if 0 < before < after - _MORE:
            out.append(
                f"Column {column.name!r}: more cells are missing than in the original. They are "
                'read as missing there too: if they are suppressed, say suppressed="missing".'
            )
    return out


def _missing(rows: pa.Table, name: str, counts: Counts) -> float:
    """The share of rows without a value."""
    return mean(np.asarray(rows[name].is_null()), counts)
