"""A synthetic release without a formal guarantee.

Only ``halfmask.release.seal_synthetic`` makes one.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from halfmask.release.document import demands_first, demands_last, plain, warned
from halfmask.release.sealed import Sealed

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from halfmask.release.demands import DemandsStatement

FORMAT = "halfmask.synthetic/1"
NOT_CLAIMED = (
    "k-anonymity of the rows: k is the least number of people in a group of the model",
    "differential privacy",
    "that no row equals that of a real person",
)


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
        demands: whether people's own demands were kept or set aside; None where nobody states any.
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
    demands: DemandsStatement | None = None

    def __repr__(self) -> str:
        aside = "" if self.demands is None or self.demands.kept else "DEMANDS SET ASIDE; "
        return f"SyntheticRelease({aside}{len(self):,} rows; {self.method}; no formal guarantee)"

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
                **demands_first(self.demands),
                "format": FORMAT,
                "outcome": self._outcome(),
                "rows": {"published": len(self)},
                "columns": list(self._arrow.column_names),
                "statement": self.statement,
                "method": self.method,
                "parameters": dict(self.parameters),
                "versions": dict(self.versions),
                "notes": list(self.notes),
                **demands_last(self.demands),
            }
        )
        return found

    def _page(self) -> str:
        from halfmask.report.pages import render_page

        return render_page(self.to_dict())

    def _outcome(self) -> str:
        copies = self.measured["attribution"]["copies"]
        return (
            f"{warned(self.demands)}"
            f"{len(self):,} synthetic rows may leave with no formal guarantee: {copies:.1%} of "
            "them equal the row of a real person in all columns (numbers by interval)."
        )
