"""A private release: rows or answers that differential privacy covers, with the receipt for them.

Only ``halfmask.release.seal_private`` makes one.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from halfmask.dp.personal.levels import IGNORED
from halfmask.release.document import plain
from halfmask.release.sealed import Sealed

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from halfmask.dp.accountant import Receipt
    from halfmask.dp.bounds import ColumnBound

FORMAT = "halfmask.private/1"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class PrivateRelease(Sealed):
    """Rows or answers under differential privacy, and what a reader must know of them.

    Attributes:
        receipt: what was promised and every noisy view that was read for it.
        bounds: how well an attacker can guess membership and each column of one person.
        method: how the rows were made.
        parameters: public choices only.
        versions: the programs that made it.
        notes: what a reader should know, one sentence each.
        verdicts, loss, levels, suppressed: as in every release; DP has no check on the output, no
            loss of detail that could be told without a further look at the rows, no levels and no
            suppressed rows.
    """

    _made_by: ClassVar[str] = (
        "A private release needs the accountant's receipt: call halfmask.synthesize."
    )
    verdicts: ClassVar[tuple[Any, ...]] = ()
    loss: ClassVar[None] = None
    levels: ClassVar[None] = None
    suppressed: ClassVar[int] = 0

    receipt: Receipt
    bounds: tuple[ColumnBound, ...]
    method: str
    parameters: Mapping[str, Any]
    versions: Mapping[str, str]
    notes: tuple[str, ...]
    origin: str
    _arrow: pa.Table
    door: InitVar[object]

    def __repr__(self) -> str:
        told = ", ".join(f"{b.column} {100 * b.after:.3g}%" for b in self.bounds)
        return (
            f"PrivateRelease({len(self):,} rows; {self.method}; {self.receipt.promise}; an "
            f"attacker's best chance: {told})"
        )

    @property
    def rows(self) -> int:
        """How many rows leave."""
        return len(self)

    def to_dict(self) -> dict[str, Any]:
        """All that is known of the release but its rows, as plain values."""
        found: dict[str, Any] = plain(
            {
                "format": FORMAT,
                "outcome": self._outcome(),
                "rows": {"published": len(self)},
                "columns": list(self._arrow.column_names),
                "privacy": self.receipt.to_dict(),
                "attacker": [
                    {"column": b.column, "values": b.values, "before": b.before, "after": b.after}
                    for b in self.bounds
                ],
                "method": self.method,
                "parameters": dict(self.parameters),
                "versions": dict(self.versions),
                "notes": list(self.notes),
            }
        )
        return found

    def _page(self) -> str:
        from halfmask.report.page import rendered

        return rendered("private.html", document=self.to_dict())

    def _outcome(self) -> str:
        member = self.bounds[0]
        aside = "" if self.parameters.get("demands") != "ignore" else f"{IGNORED} "
        return (
            f"{aside}{len(self):,} rows may leave under {self.receipt.promise}: whoever knows all "
            f"other people can tell whether one person is in the table with a chance of at most "
            f"{member.after:.1%} instead of {member.before:.0%}."
        )
