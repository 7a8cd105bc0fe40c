"""An answer: the rows of a query that have been checked and may leave.

Only ``halfmask.release.seal_answer`` makes one.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from typing import TYPE_CHECKING, Any, ClassVar

from halfmask.release.document import plain
from halfmask.release.sealed import Sealed

if TYPE_CHECKING:
    from collections.abc import Mapping

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
class Answer(Sealed):
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

    _made_by: ClassVar[str] = "An answer is made by checking rows: call halfmask.query."

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
    origin: str = "arrow"

    def __repr__(self) -> str:
        used = ", ".join(f"level {x.level}: {x.rows}" for x in self.levels if x.rows)
        return f"Answer({len(self):,} rows; {used or 'nothing could be published'})"

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

    def _page(self) -> str:
        from halfmask.report.answers import render_answer

        rows = [list(row.values()) for row in self._arrow.to_pylist()]
        return render_answer(self.to_dict(), self._arrow.column_names, rows)
