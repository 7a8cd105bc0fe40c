"""Doubts: what keeps a criterion from being met although its attack found nothing.

Definition: an attack that could not use a column proves nothing about it. A criterion is not called
met where the release holds columns that no attack looked at, or labels of which more than half
cannot be read; and singling out is not met where an identifier of the original left with the rows.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import pyarrow.compute as pc

if TYPE_CHECKING:
    from collections.abc import Sequence

    from halfmask.metrics.risk.criterion import Criterion
    from halfmask.metrics.sides import Sides

_UNREAD = 0.5  # the share of unknown labels above which attacks by a column prove nothing
_MORE = 0.01  # how much more of a column may be missing before it looks suppressed


@dataclass(frozen=True, slots=True)
class Doubts:
    """What was seen of a release before any attack.

    Attributes:
        identified: identifiers that left with the rows, as sentences.
        unseen: what no attack could use.
        notes: what a reader should know besides.
    """

    identified: tuple[str, ...]
    unseen: tuple[str, ...]
    notes: tuple[str, ...]

    @property
    def all(self) -> tuple[str, ...]:
        """All of them, the gravest first."""
        return (*self.identified, *self.unseen, *self.notes)

    def judge(self, criteria: Sequence[Criterion]) -> tuple[Criterion, ...]:
        """The criteria, none of them met that cannot be known to be."""
        return tuple(self._judged(one) for one in criteria)

    def _judged(self, one: Criterion) -> Criterion:
        if self.identified and one.name.startswith(("singling out", "linkability")):
            return replace(one, outcome="not met", notes=(*self.identified, *one.notes))
        if one.outcome != "met" or not (self.identified or self.unseen):
            return one
        return replace(one, outcome="undecided", notes=(*self.identified, *self.unseen, *one.notes))


def doubts(paired: Sides) -> Doubts:
    """Look for what the attacks on a release cannot see."""
    known = paired.original.arrow.column_names
    released = paired.rows.column_names
    private = [name for name in released if name in paired.original.schema.private]
    unseen = []
    extra = [name for name in released if name not in known and name not in private]
    if extra:
        unseen.append(
            f"Columns of the release that the original does not have: {', '.join(extra)}. No "
            "attack looked at them: leave them out, or add them to the original."
        )
    unseen += [
        f"Column {column.name!r}: most released labels cannot be read as values of the original, "
        "so that no attack can use them. Give the hierarchy that they are from."
        for column in paired.quasi
        if column.numbers is None and column.foreign > _UNREAD * paired.after
    ]
    return Doubts(
        tuple(
            f"Column {name!r} must not leave, as the schema says, and is in the release with "
            "values of the original. Take it out."
            for name in private
            if _shared(paired, name)
        ),
        tuple(unseen),
        (*_absent(paired), *_suppressed(paired)),
    )


def _shared(paired: Sides, name: str) -> bool:
    """Whether values of a column that never leaves have left."""
    if name not in paired.original.arrow.column_names:
        return True
    own, published = (t.column(name).combine_chunks() for t in (paired.original.arrow, paired.rows))
    texts = [pc.cast(pc.unique(one).drop_null(), "string") for one in (own, published)]
    return bool(pc.any(pc.is_in(texts[1], value_set=texts[0])).as_py())


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
        before, after = (
            t.column(column.name).null_count / t.num_rows
            for t in (paired.original.arrow, paired.rows)
        )
        if 0 < before < after - _MORE:
            out.append(
                f"Column {column.name!r}: more cells are missing than in the original. They are "
                "read as missing there too, not as suppressed: write * for suppressed ones."
            )
    return out
