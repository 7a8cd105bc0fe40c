"""The door for synthetic rows without a formal guarantee.

It cannot check a promise, because none is made: it checks that nothing leaves that must not,
measures how near the rows come to real people, and says so.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import InternalError, PrivacyError
from halfmask.release.demands import hold_groups, told_first
from halfmask.release.document import versions
from halfmask.release.leaving import leaving
from halfmask.release.measured import measured
from halfmask.release.sealed import DOOR
from halfmask.release.synthetic import SyntheticRelease

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.release.demands import Choice
    from halfmask.table.table import Table


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticDraft:
    """Rows that a generator drew, not yet measured.

    Attributes:
        table: the original rows, without those that were held out.
        rows: what would leave.
        codes: (original, synthetic) rows as codes over the same parts, columns in order.
        control: the codes of rows that were held out of the model; None where none were.
        groups: the group of people that the model counted each original row in.
        demands: whether people's own demands are kept, or set aside by the controller.
        method: how the rows were made.
        parameters: what is needed to repeat it.
        notes: what a reader should know, one sentence each.
    """

    table: Table
    rows: pa.Table
    codes: tuple[NDArray[np.int32], NDArray[np.int32]]
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    control: NDArray[np.int32] | None = None
    groups: NDArray[np.int32] | None = None
    demands: Choice = "keep"

    def __repr__(self) -> str:
        return f"SyntheticDraft({self.method}, {self.rows.num_rows:,} rows)"


def seal_synthetic(draft: SyntheticDraft, random: np.random.Generator) -> SyntheticRelease:
    """Measure the rows that would leave and release them.

    Raises:
        PrivacyError: people demand what groups cannot give.
        InternalError: a column would leave that must not, or rows and codes do not match.
    """
    names = leaving(draft.table)
    if draft.rows.column_names != list(names):
        raise InternalError("The synthetic rows have other columns than may leave.")
    original, synthetic = draft.codes
    if len(original) != len(draft.table) or len(synthetic) != draft.rows.num_rows:
        raise InternalError("The synthetic rows and their codes do not match.")
    if not draft.rows.num_rows:
        raise PrivacyError("No row would leave: ask for at least one.")
    alone = np.arange(len(draft.table))  # without groups everybody is one
    groups = alone if draft.groups is None else draft.groups
    if len(groups) != len(draft.table):
        raise InternalError("The groups are not those of the original rows.")
    own = hold_groups(draft.table, groups, draft.demands)
    found = measured(names, original, synthetic, draft.control, int(random.integers(2**31)))
    notes = list(draft.notes)
    if draft.control is None:
        notes.append(
            "No rows were held out: the risks stand against guessing, not against people outside."
        )
    if "likeness" not in found:
        notes.append("scikit-learn is not installed: likeness was not measured.")
    notes.append(
        "No formal guarantee is claimed; the measured figures speak of the attacks that were tried."
    )
    return SyntheticRelease(
        found,
        draft.method,
        dict(draft.parameters),
        versions(),
        told_first(own, notes),
        draft.table.origin,
        draft.rows,
        DOOR,
        own,
    )
