"""An answer: the rows of a query that have been checked and may leave.

Only ``halfmask.release.seal_answer`` makes one.
"""

from __future__ import annotations

import json
from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Any

from halfmask.errors import PrivacyError
from halfmask.release.document import plain
from halfmask.release.files import whole_file
from halfmask.release.frames import pandas_frame, polars_frame
from halfmask.release.release import DOOR
from halfmask.release.write import report_kind, write_table

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    import pyarrow as pa

    from halfmask.models.verdict import Verdict

FORMAT = "halfmask.answer/1"


@dataclass(frozen=True, slots=True)
class AnswerLevel:
    """One level of the chain and what was published there."""

    level: int
    step: str
    k: int
    l: int
    rows: int


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Answer:
    """The checked rows of a query and what a reader must know of them.

    Attributes:
        verdicts: per level with rows, and per promise, what its rows achieve.
        levels: the chain, with the number of rows published at each level.
        people: how many people the published rows cover (F1).
        depth: the sum of depth times people (F2), the coarsest level having depth 0.
        withheld: reason to people left out; None where there are fewer than would be safe to say.
        semantics: what was allowed to move.
        gap: the proven distance of F2 from its optimum; 0.0 is optimal, None a heuristic.
        engine: where the rows were read.
        notes: what a reader should know, one sentence each.
        versions: the programs that made it.
        sql: the query as asked.
    """

    verdicts: tuple[Verdict, ...]
    levels: tuple[AnswerLevel, ...]
    people: int
    depth: int
    withheld: Mapping[str, int | None]
    semantics: str
    gap: float | None
    engine: str
    notes: tuple[str, ...]
    versions: Mapping[str, str]
    sql: str
    _arrow: pa.Table
    door: InitVar[object]

    def __post_init__(self, door: object) -> None:
        if door is not DOOR:
            raise PrivacyError("An answer is made by checking rows: call halfmask.query.")

    def __repr__(self) -> str:
        used = ", ".join(f"level {x.level}: {x.rows}" for x in self.levels if x.rows)
        return f"Answer({len(self):,} rows; {used or 'nothing could be published'})"

    def __len__(self) -> int:
        return int(self._arrow.num_rows)

    def __reduce__(self) -> tuple[Any, ...]:
        raise PrivacyError("An answer is not copied unchecked: write it to a file instead.")

    def to_arrow(self) -> pa.Table:
        """The published rows as an Arrow table: the selected columns, ``level``, ``guarantee``."""
        return self._arrow

    def to_pandas(self) -> Any:
        """The published rows as a pandas frame."""
        return pandas_frame(self._arrow, {})

    def to_polars(self) -> Any:
        """The published rows as a Polars frame."""
        return polars_frame(self._arrow, {})

    def write(self, path: str | PathLike[str]) -> None:
        """Write the published rows to a file whose suffix says the kind, whole or not at all."""
        write_table(self._arrow, path)

    def to_dict(self) -> dict[str, Any]:
        """All that is known of the answer but its rows, as plain values."""
        return {
            "format": FORMAT,
            "rows": len(self),
            "people": self.people,
            "depth": self.depth,
            "withheld": dict(self.withheld),
            "semantics": self.semantics,
            "gap": self.gap,
            "engine": self.engine,
            "levels": [
                {"level": x.level, "step": x.step, "k": x.k, "l": x.l, "rows": x.rows}
                for x in self.levels
            ],
            "verdicts": [plain(verdict.to_dict()) for verdict in self.verdicts],
            "notes": list(self.notes),
            "versions": dict(self.versions),
            "sql": self.sql,
        }

    def report(self, path: str | PathLike[str]) -> None:
        """Write what is known as ``.json``, or with the rows as a self-contained ``.html`` page."""
        if report_kind(path) == ".json":
            text = json.dumps(self.to_dict(), indent=2, ensure_ascii=False, allow_nan=False) + "\n"
        else:
            from halfmask.report.answers import render_answer

            rows = [list(row.values()) for row in self._arrow.to_pylist()]
            text = render_answer(self.to_dict(), self._arrow.column_names, rows)
        with whole_file(path) as temporary:
            temporary.write_text(text, encoding="utf-8")
