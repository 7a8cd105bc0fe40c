"""A synthetic release without a formal guarantee, and the door that measures its risk.

Only ``seal_synthetic`` makes one. It cannot check a promise, because none is made: it checks that
nothing leaves that must not, measures how near the rows come to real people, and says so.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from halfmask.errors import InternalError, PrivacyError
from halfmask.release.document import plain, versions
from halfmask.release.leaving import leaving
from halfmask.release.measured import measured
from halfmask.release.sealed import DOOR, Sealed

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import numpy as np
    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.table.table import Table

FORMAT = "halfmask.synthetic/1"
NOT_CLAIMED = (
    "k-anonymity of the rows: k is the least number of people in a group of the model",
    "differential privacy",
    "that no row equals that of a real person",
)


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticDraft:
    """Rows that a generator drew, not yet measured.

    Attributes:
        table: the original rows, without those that were held out.
        rows: what would leave.
        codes: (original, synthetic) rows as codes over the same parts, columns in order.
        control: the codes of rows that were held out of the model; None where none were.
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

    def __repr__(self) -> str:
        return f"SyntheticDraft({self.method}, {self.rows.num_rows:,} rows)"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class SyntheticRelease(Sealed):
    """Synthetic rows, what was measured of them, and what is not claimed.

    Attributes:
        measured: attribution, nearness, the three criteria, membership and likeness.
        statement: what is claimed (nothing formal), what is not, and what was measured.
        method: how the rows were made.
        parameters: what is needed to repeat it.
        versions: the programs that made it.
        notes: what a reader should know, one sentence each.
        verdicts, loss, levels, suppressed: as in every release; there is no promise to check.
    """

    _made_by: ClassVar[str] = "A synthetic release is measured first: call halfmask.synthesize."
    verdicts: ClassVar[tuple[Any, ...]] = ()
    loss: ClassVar[None] = None
    levels: ClassVar[None] = None
    suppressed: ClassVar[int] = 0

    measured: Mapping[str, Any]
    method: str
    parameters: Mapping[str, Any]
    versions: Mapping[str, str]
    notes: tuple[str, ...]
    origin: str
    _arrow: pa.Table
    door: InitVar[object]

    def __repr__(self) -> str:
        return f"SyntheticRelease({len(self):,} rows; {self.method}; no formal guarantee)"

    @property
    def rows(self) -> int:
        """How many rows leave."""
        return len(self)

    @property
    def statement(self) -> dict[str, Any]:
        """What is claimed, what is not, and what was measured."""
        return {
            "kind": "synthetic",
            "claimed": [],
            "not_claimed": list(NOT_CLAIMED),
            "measured": plain(dict(self.measured)),
        }

    def to_dict(self) -> dict[str, Any]:
        """All that is known of the release but its rows, as plain values."""
        found: dict[str, Any] = plain(
            {
                "format": FORMAT,
                "outcome": self._outcome(),
                "rows": {"published": len(self)},
                "columns": list(self._arrow.column_names),
                "statement": self.statement,
                "method": self.method,
                "parameters": dict(self.parameters),
                "versions": dict(self.versions),
                "notes": list(self.notes),
            }
        )
        return found

    def _page(self) -> str:
        from halfmask.report.pages import render_page

        return render_page(self.to_dict())

    def _outcome(self) -> str:
        copies = self.measured["attribution"]["copies"]
        return (
            f"{len(self):,} synthetic rows may leave with no formal guarantee: {copies:.1%} of "
            "them equal the row of a real person in all columns (numbers by interval)."
        )


def seal_synthetic(draft: SyntheticDraft, random: np.random.Generator) -> SyntheticRelease:
    """Measure the rows that would leave and release them.

    Raises:
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
        tuple(notes),
        draft.table.origin,
        draft.rows,
        DOOR,
    )
