"""A release: rows that have been checked and may leave, with all that is known about them.

Only ``halfmask.release.seal`` makes one.
"""

from __future__ import annotations

import json
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any

from halfmask.errors import PrivacyError
from halfmask.release.columns import AS_IT_WAS
from halfmask.release.files import whole_file
from halfmask.release.frames import duckdb_relation, pandas_frame, polars_frame, restored
from halfmask.release.write import report_kind, write_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    import pyarrow as pa

    from halfmask.models.verdict import Model, Verdict
    from halfmask.release.columns import ColumnChange
    from halfmask.release.recoding import Recoding
    from halfmask.release.sizes import ClassSizes
    from halfmask.table.incoming import Incoming

DOOR = object()


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Release:
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
    """

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

    def __post_init__(self, door: object) -> None:
        if door is not DOOR:
            raise PrivacyError("A release is made by checking rows: call halfmask.anonymize.")

    def __repr__(self) -> str:
        promises = ", ".join(f"{v.model} {v.achieved:g}" for v in self.verdicts)
        return (
            f"Release({self.rows:,} rows, {self.suppressed:,} suppressed; {promises}; "
            f"loss {self.loss:.4f})"
        )

    def __len__(self) -> int:
        return self.rows

    def __reduce__(self) -> tuple[Any, ...]:
        raise PrivacyError("A release is not copied unchecked: write it to a file instead.")

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

    def to_pandas(self) -> Any:
        """The published rows as a pandas frame; whole numbers stay whole where some are missing."""
        return pandas_frame(self.to_arrow(), self._dtypes("pandas"))

    def to_polars(self) -> Any:
        """The published rows as a Polars frame."""
        return polars_frame(self.to_arrow(), self._dtypes("polars"))

    def to_duckdb(self) -> Any:
        """The published rows as a DuckDB relation."""
        return duckdb_relation(self.to_arrow())

    def _dtypes(self, library: str) -> dict[str, Any]:
        if self.origin != library:
            return {}
        return {name: was.dtype for name, was in self._untouched().items()}

    def native(self) -> Any:
        """The published rows as the kind that came in."""
        convert = {
            "pandas": self.to_pandas,
            "polars": self.to_polars,
            "duckdb": self.to_duckdb,
        }.get(self.origin, self.to_arrow)
        return convert()

    def write(self, path: str | PathLike[str]) -> None:
        """Write the published rows to a file whose suffix says the kind, whole or not at all."""
        write_table(self.to_arrow(), path)

    def to_dict(self) -> dict[str, Any]:
        """All that is known of the release but its rows, as plain values."""
        from halfmask.release.document import document

        return document(self)

    def report(self, path: str | PathLike[str]) -> None:
        """Write the report as ``.json`` or as a self-contained ``.html`` page."""
        if report_kind(path) == ".json":
            text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        else:
            from halfmask.report import render

            text = render(self.to_dict())
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
