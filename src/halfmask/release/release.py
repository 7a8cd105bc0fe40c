"""A release: rows that were checked or paid for and may leave, with all that is known of them.

The token ``DOOR`` is known to the sealing code only: without it no release comes into being.
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Self

from halfmask.errors import PrivacyError
from halfmask.release.document import (
    AS_IT_WAS,
    certificate_facts,
    published_verdict,
    risk_figures,
    versions,
)
from halfmask.release.files import (
    duckdb_relation,
    pandas_frame,
    polars_frame,
    restore,
    table_kind,
    write_report,
    write_table,
)
from halfmask.table.document import Result, plain_value
from halfmask.table.schema import Schema

if TYPE_CHECKING:
    from collections.abc import Mapping
    from os import PathLike

    import pyarrow as pa

    from halfmask.dp.accountant import Receipt
    from halfmask.dp.figures import ColumnBound
    from halfmask.engines.staging import StagedRows
    from halfmask.metrics.risk.reidentification import Reidentification
    from halfmask.models.verdict import Model, Verdict
    from halfmask.release.candidate import Attempt, GroupShare
    from halfmask.release.demands import DemandsStatement, NoisyDemands
    from halfmask.release.document import ColumnChange
    from halfmask.release.partition import ClassSizes
    from halfmask.release.recoding import Recoding
    from halfmask.release.record import FileRecord
    from halfmask.table.files.rows import Incoming

DOOR = object()


@dataclass(frozen=True, slots=True)
class SealedGuarantee:
    """What holds of rows that leave, found or verified by the door itself.

    Attributes:
        verdicts: one per promise (and level of an answer), found on the very rows that leave.
        models: the promises about a table.
        receipt: what was spent before, and every noisy view that was read for it; None: no noise.
        bounds: under noise, how well an attacker can guess membership and each column of a person.
        statement: what is claimed, what is not, and what was measured, where cells or rows are
            not true.
        demands: whether people's own demands were kept or set aside; None where nobody states any.
    """

    verdicts: tuple[Verdict, ...] = ()
    models: tuple[Model, ...] = ()
    receipt: Receipt | None = None
    bounds: tuple[ColumnBound, ...] = ()
    statement: Mapping[str, Any] = field(default_factory=dict)
    demands: DemandsStatement | NoisyDemands | None = None

    @property
    def aside(self) -> DemandsStatement | NoisyDemands | None:
        """What must be said first: people's own demands were set aside."""
        return None if self.demands is None or self.demands.kept else self.demands


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Release:
    """Rows that may leave and what a reader must know of them.

    Attributes:
        guarantee: what holds of the rows: verdicts of models, a receipt of noise, or both.
        verdicts, models, statement, demands: those of the guarantee.
        rows: how many rows leave.
        method: how the rows were found or made.
        parameters: what is needed to repeat it; public choices only.
        versions: the programs that made it.
        notes: what a reader should know, one sentence each.
        loss: the table's loss, 0 (nothing) to 1 (everything); None where it cannot be told.
        levels: the level per column where every row got the same, else None.
        suppressed: how many rows do not leave.
        classes: the sizes of the published classes, in bins.
        risk: how likely people are found in these classes, counted by the door.
        columns: what was done to each column of the original table.
        recoding: how new rows can be recoded in the same way; None where they cannot.
        metric: what the search minimized.
        gap: the proven distance to the optimum; 0.0 is optimal, None is a heuristic.
        tried: the methods that were looked at where none was named, with what each loses and how
            long it took; documents say no time, and no loss of rows that do not leave.
        absent: the groups that lose most rows, as far as they may be named.
        schema: what the released columns are, for whoever reads the rows; None where no roles are.
    """

    kind: ClassVar[str] = "release"
    _made_by: ClassVar[str] = "A release is made by checking rows: call halfmask.anonymize."

    guarantee: SealedGuarantee
    method: str
    _arrow: pa.Table
    door: InitVar[object]
    parameters: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=versions)
    notes: tuple[str, ...] = ()
    origin: str = "arrow"
    given: Mapping[str, Incoming] = field(default_factory=dict)
    loss: float | None = None
    suppressed: int = 0
    classes: ClassSizes | None = None
    risk: Reidentification | None = None
    columns: tuple[ColumnChange, ...] = ()
    recoding: Recoding | None = None
    metric: str = "none"
    gap: float | None = None
    tried: tuple[Attempt, ...] = ()
    absent: tuple[GroupShare, ...] = ()
    schema: Schema | None = None
    _aside: StagedRows | None = field(default=None, repr=False)

    def __post_init__(self, door: object) -> None:
        if door is not DOOR:
            raise PrivacyError(self._made_by)

    def __len__(self) -> int:
        if self._aside is not None:
            return self._aside.rows
        return int(self._arrow.num_rows)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Let go of rows that an engine holds; those in memory stay."""
        if self._aside is not None:
            self._aside.close()

    def __reduce__(self) -> tuple[Any, ...]:
        raise PrivacyError("A release is not copied unchecked: write it to a file instead.")

    def __repr__(self) -> str:
        aside = "DEMANDS SET ASIDE; " if self.guarantee.aside else ""
        return f"{type(self).__name__}({aside}{self._summary()})"

    def _repr_html_(self) -> str:
        """The outcome, the promises, the columns, and the first of the released rows."""
        from halfmask.table.document import MOST, grid, lines, view

        document = self.to_dict()
        kept = [(v.model, v.column, v.holds) for v in self.verdicts]
        done = [(c.name, c.role, c.action) for c in self.columns if c.published]
        shown = self._arrow if self._aside is not None else self.to_arrow()
        shown = shown.slice(0, MOST // 2)
        return view(
            type(self).__name__,
            lines([document.get("outcome", repr(self))]),
            grid(("promise", "column", "kept"), kept) if kept else "",
            grid(("column", "role", "what was done"), done, len(done)) if done else "",
            lines([f"Released rows, the first of {len(self):,}:"]),
            grid(shown.column_names, [list(row.values()) for row in shown.to_pylist()]),
        )

    @property
    def verdicts(self) -> tuple[Verdict, ...]:
        """What was found on the very rows that leave."""
        return self.guarantee.verdicts

    @property
    def models(self) -> tuple[Model, ...]:
        """The promises."""
        return self.guarantee.models

    @property
    def statement(self) -> Mapping[str, Any]:
        """What is claimed, what is not, and what was measured, where not all is true."""
        return self.guarantee.statement

    @property
    def demands(self) -> DemandsStatement | NoisyDemands | None:
        """Whether people's own demands were kept or set aside; None where nobody states any."""
        return self.guarantee.demands

    @property
    def rows(self) -> int:
        """How many rows leave."""
        return len(self)

    @property
    def levels(self) -> dict[str, int] | None:
        """The level per column where every row got the same, else None."""
        return None if self.recoding is None else self.recoding.levels

    def to_arrow(self) -> pa.Table:
        """The released rows as an Arrow table, all in memory."""
        if self._aside is not None:
            return self._aside.read()
        return restore(self._arrow, self._original_types()) if self.columns else self._arrow

    def to_pandas(self) -> Any:
        """The released rows as a pandas frame; whole numbers stay whole where some are missing."""
        return pandas_frame(self.to_arrow(), self._dtypes("pandas"))

    def to_polars(self) -> Any:
        """The released rows as a Polars frame."""
        return polars_frame(self.to_arrow(), self._dtypes("polars"))

    def to_duckdb(self) -> Any:
        """The released rows as a DuckDB relation."""
        return duckdb_relation(self.to_arrow())

    def native(self) -> Any:
        """The released rows as the kind that came in."""
        convert = {
            "pandas": self.to_pandas,
            "polars": self.to_polars,
            "duckdb": self.to_duckdb,
        }.get(self.origin, self.to_arrow)
        return convert()

    def to_batches(self) -> pa.RecordBatchReader:
        """The released rows, some at a time."""
        return self.to_arrow().to_reader() if self._aside is None else self._aside.batches()

    def write(self, path: str | PathLike[str], *, table: str | None = None) -> None:
        """Write the released rows, whole or not at all.

        A release of a table says in the file, or in a ``.toml`` beside a text file, what its
        columns are, what was promised and which rows these are: ``halfmask check`` reads it.

        Args:
            path: a file whose suffix says the kind; a name that ends in ``/``, for a folder of
                Parquet files; or the address of a PostgreSQL database.
            table: the table of the database. One that is there must be a release, and is replaced
                in one transaction; who may read it may read the new one.
        """
        from halfmask.release.record import write_elsewhere

        if write_elsewhere(self, path, table):
            return
        from halfmask.release.record import write_aside_file, write_release

        if self.schema is None:
            own = self._own_record()
            if own is None:
                write_table(self.to_arrow(), path, given=self.given)
            else:
                write_release(self.to_arrow(), path, own, self.given)
            return
        if self._aside is not None and table_kind(path) == ".parquet":
            write_aside_file(self._aside, path, self.record())
            return
        write_release(self.to_arrow(), path, self.record(), self.given)

    def _own_record(self) -> FileRecord | None:
        """What a file says of rows that have no schema; None: nothing."""
        return None

    def record(self) -> FileRecord:
        """What a file of these rows says of itself."""
        from halfmask.release.record import FileRecord

        facts = {
            "made_with": f"halfmask {self.versions.get('halfmask', 'unknown')}",
            "method": self.method,
            "rows": self.rows,
            "suppressed": self.suppressed,
            "loss": self.loss,
            **({} if self.risk is None else risk_figures(self.risk)),
        }
        return FileRecord.of(self.schema or Schema(), self.models, self.columns, facts)

    def to_dict(self) -> dict[str, Any]:
        """All that is known of the release but its rows, as plain values."""
        own = {} if self.demands is None else {"demands": self.demands.to_dict()}
        facts = {
            "format": f"halfmask.{self.kind}/1",
            **self._facts(),
            "versions": self.versions,
            "notes": self.notes,
        }
        # That demands were set aside is said before all else.
        found: dict[str, Any] = plain_value(
            {**own, **facts} if self.guarantee.aside else {**facts, **own}
        )
        return found

    def report(self, path: str | PathLike[str], **about: Any) -> None:
        """Write the report as ``.json``, or as a self-contained ``.html`` or ``.pdf`` page.

        The page of a table is a certificate to be signed; ``about`` says what only whoever releases
        it knows: ``title``, ``by`` (who releases it), ``original`` (the name of the table),
        ``file`` (the released file, whose hash is then told), ``command`` (how it was made).
        """
        facts = certificate_facts(**about)
        document = self.to_dict() | ({"certificate": facts} if about else {})
        write_report(path, document, lambda: self._page(facts))

    def _original_types(self) -> dict[str, Incoming]:
        """What columns were whose values leave as they are; text stays text in any case."""
        kept = {c.name for c in self.columns if c.published and c.action == AS_IT_WAS}
        return {name: was for name, was in self.given.items() if name in kept or was.text}

    def _dtypes(self, library: str) -> dict[str, Any]:
        if self.origin != library:
            return {}
        return {name: was.dtype for name, was in self._original_types().items()}

    def _personal(self) -> set[str]:
        """The models whose figures are one person's, such as the highest demand of anybody."""
        return {model.name for model in self.models if model.personal}

    def _summary(self) -> str:
        promises = ", ".join(
            v.model if v.model in self._personal() else f"{v.model} {v.achieved:g}"
            for v in self.verdicts
        )
        return (
            f"{self.rows:,} rows, {self.suppressed:,} suppressed; {promises}; loss {self.loss:.4f}"
        )

    def _facts(self) -> dict[str, Any]:
        """What the document of this kind of release says, in its order; made plain afterwards."""
        total = self.rows + self.suppressed
        return {
            "outcome": self._outcome(),
            "rows": {
                "original": total,
                "published": self.rows,
                "suppressed": self.suppressed,
                "suppressed_share": self.suppressed / total,
            },
            "models": [model.to_dict() for model in self.models],
            "verdicts": [
                published_verdict(v, personal=v.model in self._personal()) for v in self.verdicts
            ],
            "loss": self.loss,
            "levels": self.levels,
            "columns": self.columns,
            "classes": self.classes,
            "risk": None if self.risk is None else risk_figures(self.risk),
            "method": self.method,
            "metric": self.metric,
            "gap": self.gap,
            **({"tried": self.tried} if self.tried else {}),
            **({"absent": self.absent} if self.absent else {}),
            "steps": len(self.recoding.steps) if self.recoding is not None else 0,
            "parameters": self.parameters,
            **({"statement": self.statement} if self.statement else {}),
        }

    def _outcome(self) -> str:
        """What happened, in one sentence for a reader who knows no statistics."""
        total = self.rows + self.suppressed
        left = f"{self.rows:,} of {total:,}" if self.suppressed else f"All {total:,}"
        count = len(self.verdicts)
        promises = "the one promise asked for was" if count == 1 else f"all {count} promises were"
        return (
            f"{self._warning()}{left} rows may leave: {promises} checked on these very rows and "
            f"kept, at the price of {self.loss:.1%} of the detail in the columns that others may "
            f"know.{self._truth()}"
        )

    def _warning(self) -> str:
        """What an outcome begins with where demands were set aside."""
        return f"{self.guarantee.aside.words} " if self.guarantee.aside else ""

    def _truth(self) -> str:
        """How many cells are true, where labels may be false."""
        if self.statement.get("kind") != "hybrid":
            return ""
        return f" {self.statement['measured']['true_cells']:.1%} of the published cells are true."

    def _page(self, facts: Mapping[str, Any]) -> str:
        """The report as a self-contained page."""
        from halfmask.report import render

        return render({**self.to_dict(), "certificate": dict(facts)})


REPEATED = "People with several rows count once for each row of the answer they stand in."


@dataclass(frozen=True, slots=True)
class AnswerLevel(Result):
    """One level of the chain and what was published there."""

    level: int
    step: str
    k: int
    l: int
    rows: int


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class Answer(Release):
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
        sql: the query as asked.
    """

    kind: ClassVar[str] = "answer"
    _made_by: ClassVar[str] = "An answer is made by checking rows: call halfmask.query."

    chain: tuple[AnswerLevel, ...]
    people: int
    depth: int
    withheld: Mapping[str, int | None]
    semantics: str
    engine: str
    sql: str

    @property
    def levels(self) -> tuple[AnswerLevel, ...]:  # type: ignore[override] # of rows, not of columns
        """The chain, with the number of rows published at each level."""
        return self.chain

    def _repr_html_(self) -> str:
        """The rows, and whom they cover."""
        from halfmask.table.document import grid, lines, view

        rows = [list(row.values()) for row in self._arrow.to_pylist()]
        said = (*self.coverage, *self.notes)
        return view("Answer", grid(self._arrow.column_names, rows), lines(said))

    @property
    def coverage(self) -> tuple[str, ...]:
        """How many people the rows cover, and why not the others, in sentences."""
        rows = "1 row" if len(self) == 1 else f"{len(self):,} rows"
        each = " (once for each row they stand in)" if REPEATED in self.notes else ""
        out = [f"{rows}; {self.people:,} people{each} could be published."]
        for reason, people in self.withheld.items():
            many = "nobody, or too few to say" if people is None else f"{people:,} people"
            out.append(f"Withheld, {reason}: {many}.")
        return tuple(out)

    def write(self, path: str | PathLike[str]) -> None:  # type: ignore[override]  # files
        """Write the rows; whom they cover stands in the file, or beside a text file."""
        from halfmask.release.record import ABOUT_ANSWER, FileRecord, write_release
        from halfmask.table.schema import Schema

        facts = {"format": "halfmask.answer/1", "sql": self.sql, "people": self.people,
                 "coverage": list(self.coverage), "notes": list(self.notes)}  # fmt: skip
        write_release(self.to_arrow(), path, FileRecord(Schema(), facts, ABOUT_ANSWER))

    def _summary(self) -> str:
        used = ", ".join(f"level {x.level}: {x.rows}" for x in self.chain if x.rows)
        return f"{len(self):,} rows; {used or 'nothing could be published'}"

    def _facts(self) -> dict[str, Any]:
        return {
            "rows": len(self),
            "people": self.people,
            "depth": self.depth,
            "withheld": self.withheld,
            "semantics": self.semantics,
            "gap": self.gap,
            "engine": self.engine,
            "levels": self.chain,
            "verdicts": self.verdicts,
            "sql": self.sql,
        }

    def _page(self, facts: Mapping[str, Any]) -> str:  # noqa: ARG002 - certificates are of tables
        from halfmask.report.page import render_answer

        rows = [list(row.values()) for row in self._arrow.to_pylist()]
        return render_answer(self.to_dict(), self._arrow.column_names, rows)


def _drawn_rows(release: Release, how: str) -> FileRecord:
    """What a file says of rows that are nobody's: how they were made, nothing that was measured."""
    from halfmask.release.record import ABOUT_DRAWN, FileRecord
    from halfmask.table.schema import Schema

    facts = {"format": "halfmask.drawn/1", "method": release.method, "rows": len(release),
             "left": how}  # fmt: skip
    return FileRecord(Schema(), facts, ABOUT_DRAWN)


class PrivateRelease(Release):
    """Rows or answers under differential privacy, with the accountant's receipt.

    There is no check on the output, no loss that could be told without a further look at the rows,
    and there are no levels and no suppressed rows.
    """

    __slots__ = ()
    kind: ClassVar[str] = "private"
    _made_by: ClassVar[str] = (
        "A private release needs the accountant's receipt: call halfmask.synthesize."
    )

    @property
    def receipt(self) -> Receipt:
        """What was promised and every noisy view that was read for it."""
        assert self.guarantee.receipt is not None  # noqa: S101 - the door demands one
        return self.guarantee.receipt

    @property
    def bounds(self) -> tuple[ColumnBound, ...]:
        """How well an attacker can guess membership and each column of one person."""
        return self.guarantee.bounds

    def _own_record(self) -> FileRecord:
        return _drawn_rows(self, f"under {self.receipt.promise}, for {self.receipt.neighbors}")

    def _summary(self) -> str:
        chances = ", ".join(f"{b.column} {100 * b.after:.3g}%" for b in self.bounds)
        return (
            f"{len(self):,} rows; {self.method}; {self.receipt.promise}; an attacker's best "
            f"chance: {chances}"
        )

    def _facts(self) -> dict[str, Any]:
        return {
            "outcome": self._outcome(),
            "rows": {"published": len(self)},
            "columns": list(self._arrow.column_names),
            "privacy": self.receipt.to_dict(),
            "attacker": self.bounds,
            "method": self.method,
            "parameters": self.parameters,
        }

    def _outcome(self) -> str:
        member, receipt = self.bounds[0], self.receipt
        others, one, more = "people", "one person is", ""
        if not receipt.by_person:
            most = receipt.rows_per_person
            others, one = "rows", "one row is" if most == 1 else f"{most:,} rows are"
            more = " No person column is named: people with more rows are promised less."
        return (
            f"{self._warning()}{len(self):,} rows may leave under {receipt.promise}: whoever "
            f"knows all other {others} can tell whether {one} in the table with a chance of "
            f"at most {member.after:.1%} instead of {member.before:.0%}.{more}"
        )

    def _page(self, facts: Mapping[str, Any]) -> str:  # noqa: ARG002 - certificates are of tables
        from halfmask.report.page import render_template

        return render_template("private.html", document=self.to_dict())


class SyntheticRelease(Release):
    """Synthetic rows without a formal guarantee: what was measured of them, what is not claimed."""

    __slots__ = ()
    kind: ClassVar[str] = "synthetic"
    _made_by: ClassVar[str] = "A synthetic release is measured first: call halfmask.synthesize."

    @property
    def measured(self) -> Mapping[str, Any]:
        """Attribution, nearness, the three criteria, membership and likeness."""
        found: Mapping[str, Any] = self.statement["measured"]
        return found

    def _own_record(self) -> FileRecord:
        return _drawn_rows(self, "without a formal guarantee")

    def _summary(self) -> str:
        return f"{len(self):,} rows; {self.method}; no formal guarantee"

    def _facts(self) -> dict[str, Any]:
        return {
            "outcome": self._outcome(),
            "rows": {"published": len(self)},
            "columns": list(self._arrow.column_names),
            "statement": self.statement,
            "method": self.method,
            "parameters": self.parameters,
        }

    def _outcome(self) -> str:
        copies = self.measured["attribution"]["copies"]
        return (
            f"{self._warning()}{len(self):,} synthetic rows may leave with no formal guarantee: "
            f"{copies:.1%} of them equal the row of a real person in all columns (numbers by "
            "interval)."
        )

    def _page(self, facts: Mapping[str, Any]) -> str:  # noqa: ARG002 - certificates are of tables
        from halfmask.report.page import render_page

        return render_page(self.to_dict())
