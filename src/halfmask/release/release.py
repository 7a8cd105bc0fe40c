"""A release: rows that have been checked and may leave, with all that is known about them.

Only ``halfmask.release.seal`` makes one.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

from halfmask.release.columns import AS_IT_WAS
from halfmask.release.frames import restored
from halfmask.release.sealed import Sealed

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from halfmask.models.verdict import Model, Verdict
    from halfmask.release.columns import ColumnChange
    from halfmask.release.demands import DemandsStatement
    from halfmask.release.recoding import Recoding
    from halfmask.release.sizes import ClassSizes
    from halfmask.table.incoming import Incoming


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Release(Sealed):
    """Checked rows and what a reader must know of them.

    Attributes:
        verdicts: one per model, found on the very rows that leave.
        models: the promises.
        loss: the table's loss, 0 (nothing) to 1 (everything).
        levels: the level per column where every row got the same, else None.
        suppressed: how many rows do not leave.
        rows: how many rows leave.
        classes: the sizes of the published classes, in bins.
        columns: what was done to each column of the original table.
        recoding: how new rows can be recoded in the same way; None where they cannot.
        method: how the recoding was found.
        metric: what the search minimized.
        gap: the proven distance to the optimum; 0.0 is optimal, None is a heuristic.
        parameters: what is needed to repeat it.
        versions: the programs that made it.
        notes: what a reader should know, one sentence each.
        statement: what is claimed, what is not, and what was measured, where rows were perturbed.
        demands: whether people's own demands were kept or set aside; None where nobody states any.
    """

    _made_by: ClassVar[str] = "A release is made by checking rows: call halfmask.anonymize."

    verdicts: tuple[Verdict, ...]
    models: tuple[Model, ...]
    loss: float
    suppressed: int
    rows: int
    classes: ClassSizes
    columns: tuple[ColumnChange, ...]
    recoding: Recoding | None
    method: str
    metric: str
    gap: float | None
    parameters: Mapping[str, Any]
    versions: Mapping[str, str]
    notes: tuple[str, ...]
    origin: str
    given: Mapping[str, Incoming]
    _arrow: pa.Table
    door: InitVar[object]
    statement: Mapping[str, Any] = field(default_factory=dict)
    demands: DemandsStatement | None = None

    def __repr__(self) -> str:
        aside = "" if self.demands is None or self.demands.kept else "DEMANDS SET ASIDE; "
        personal = {model.name for model in self.models if model.policy}
        promises = ", ".join(
            v.model if v.model in personal else f"{v.model} {v.achieved:g}" for v in self.verdicts
        )
        return (
            f"Release({aside}{self.rows:,} rows, {self.suppressed:,} suppressed; {promises}; "
            f"loss {self.loss:.4f})"
        )

    @property
    def levels(self) -> dict[str, int] | None:
        """The level per column where every row got the same, else None."""
        return None if self.recoding is None else self.recoding.levels

    def to_arrow(self) -> pa.Table:
        """The published rows as an Arrow table."""
        return restored(self._arrow, self._untouched())

    def _untouched(self) -> dict[str, Incoming]:
        """What columns were whose values leave as they are; text stays text in any case."""
        kept = {c.name for c in self.columns if c.published and c.action == AS_IT_WAS}
        return {name: was for name, was in self.given.items() if name in kept or was.text}

    def _dtypes(self, library: str) -> dict[str, Any]:
        if self.origin != library:
            return {}
        return {name: was.dtype for name, was in self._untouched().items()}

    def to_dict(self) -> dict[str, Any]:
        """All that is known of the release but its rows, as plain values."""
        from halfmask.release.document import document

        return document(self)

    def _page(self) -> str:
        from halfmask.report import render

        return render(self.to_dict())
