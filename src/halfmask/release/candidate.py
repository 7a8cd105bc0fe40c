"""What code that is not trusted hands to the door; one candidate for each way of checking."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isfinite
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.table.document import Result
from halfmask.table.tuples import Tuples, rows_in

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.dp.accountant import Receipt
    from halfmask.dp.conditions import Combination
    from halfmask.engines.request import Request
    from halfmask.models.l_diversity import MInvariance
    from halfmask.models.verdict import Model
    from halfmask.release.demands import DemandsChoice
    from halfmask.release.doors.answer import DemandWatch
    from halfmask.release.doors.claims import Claim
    from halfmask.release.doors.series import SeriesLedger
    from halfmask.release.partition import Perturbation, RowPartition
    from halfmask.release.recoding import Recoding
    from halfmask.release.tabulation.cells import CellGrid
    from halfmask.release.tabulation.recount import TableDesign
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

    Counts = NDArray[np.int64]
    Numbers = NDArray[np.float64]
    Label = str | None


@dataclass(frozen=True, slots=True)
class Attempt(Result):
    """One method that was looked at, for whoever holds the table.

    Attributes:
        method: its name.
        loss: what it would have lost, by the measure asked for; None where it was not made.
        seconds: how long it took.
        reason: why it was not tried, or failed.
        same_rows: whether it speaks of the very rows that leave: else its loss may tell of others.
    """

    method: str
    loss: float | None = None
    seconds: float | None = None
    reason: str | None = None
    same_rows: bool = False

    def to_dict(self) -> dict[str, Any]:
        """What may be told to readers of the release: no time, and no loss of other rows."""
        shown = float(f"{self.loss:.3g}") if self.loss is not None and self.same_rows else None
        return {"method": self.method, "loss": shown, "reason": self.reason}


@dataclass(frozen=True, slots=True)
class GroupShare(Result):
    """A group of people of whom more were left out than of all.

    Attributes:
        column: the column; ``group`` what the rows hold there.
        share: the share of its rows that was left out, in whole percent.
    """

    column: str
    group: str
    share: float


@dataclass(frozen=True, slots=True, eq=False)
class Candidate:
    """Labels for the rows of one table that claim to satisfy the models.

    Attributes:
        table: the original rows, but those that were left out.
        models: the promises it must keep.
        recoding: how rows are generalized, or what labels they carry.
        step: per row, the index of the recoding's step or of the partition's class (0 where labels
            are perturbed); -1 means that the row is suppressed.
        loss: the loss that the search believes it has, or None where it did not compute it.
        method: how it was found, such as ``"optimal"``.
        metric: what the search minimized.
        parameters: what is needed to repeat it (suppression, seed, time limit, weights ...).
        gap: the proven distance to the optimum; 0.0 is optimal, None is a heuristic.
        notes: what a reader should know, one sentence each.
        demands: whether people's own demands are kept, or set aside by the controller.
        left_out: how many rows were taken out before; they are not in ``table``, and nothing here
            was made of them.
        tried: the methods that were looked at, where it was not named.
        absent: the groups that lose most rows, as far as they may be named.
        pseudonym: the key by which the person column leaves as tokens; None: it does not leave.
        tuples: where rows stay elsewhere, who counted them; ``table`` then holds entries that stand
            for several rows each.
    """

    table: Table
    models: Sequence[Model]
    recoding: Recoding | RowPartition | Perturbation
    step: NDArray[np.int32]
    loss: float | None = None
    method: str = "optimal"
    metric: str = "loss"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    gap: float | None = None
    notes: Sequence[str] = ()
    demands: DemandsChoice = "keep"
    left_out: int = 0
    tried: tuple[Attempt, ...] = ()
    absent: tuple[GroupShare, ...] = ()
    pseudonym: bytes | None = field(default=None, repr=False)
    tuples: Tuples | None = None

    @property
    def entries(self) -> Tuples:
        """What the table holds: its rows, or distinct tuples that an engine counted."""
        if self.tuples is None:
            return Tuples.of(self.table)
        return replace(self.tuples, table=self.table)

    @property
    def counts(self) -> Counts:
        """How many rows each entry of the table stands for."""
        return self.entries.counts

    @property
    def everybody(self) -> int:
        """How many rows the table stands for."""
        return rows_in(self.counts)

    def __repr__(self) -> str:
        return f"Candidate({self.method}, {len(self.models)} models, {self.recoding!r})"


MARGIN = Fraction(1, 10**9)


@dataclass(frozen=True, slots=True)
class Promise:
    """What every published row must reach, level by level.

    Attributes:
        what: people, contributors or diversity.
        column: the column it speaks of.
        thresholds: per level.
        count: the column of ``groups`` that holds the number.
        values: the column that lists the distinct values; None where numbers add up.
        cap: from so many on, values are not listed.
    """

    what: str
    column: str
    thresholds: tuple[int, ...]
    count: str
    values: str | None = None
    cap: int = 0


@dataclass(frozen=True, slots=True, eq=False)
class LargestShares:
    """What those bring to the sums of a row who bring most, all amounts without their sign.

    Definition: by the p% rule a sum T is not shown where T - x1 - x2 < p/100 x1, because whoever
    brings x2 could work out x1 too closely; by the (n, k) rule where x1 + ... + xn > k/100 T.
    Source: Hundepool and others, "Statistical Disclosure Control", 2012, section 4.2.

    Attributes:
        figures: the columns of the published rows that hold sums and averages.
        rules: ``{"p": ...}`` or ``{"n": ..., "k": ...}``, all of which must hold.
        most: how many of the largest are known.
        rows: per place and figure ``rows0`` (of how many rows), ``t0`` (the sum) and ``x0_1`` ...,
            largest first.
    """

    figures: tuple[str, ...]
    rules: tuple[Mapping[str, float], ...]
    most: int
    rows: pa.Table

    def dominated_places(self, figure: int) -> NDArray[np.bool_]:
        """Per place, whether few people make up too much of a figure."""
        totals = self._numbers(f"t{figure}")
        ranks = range(1, self.most + 1)
        largest = np.array([self._numbers(f"x{figure}_{j}") for j in ranks])
        endless = [v is not None and not isfinite(v) for v in self.rows[f"t{figure}"].to_pylist()]
        found: NDArray[np.bool_] = np.array(endless, dtype=bool)
        for rule in self.rules:
            if "p" in rule:
                rest = totals - largest[0] - (largest[1] if self.most > 1 else 0)
                excess = largest[0] * Fraction(str(rule["p"])) / 100 - rest
            else:
                excess = largest[: int(rule["n"])].sum(axis=0)
                excess = excess - totals * Fraction(str(rule["k"])) / 100
            # Sums of fractions differ in the last digit between engines: what is close counts.
            close = [t > 0 and e > -t * MARGIN for e, t in zip(excess, totals, strict=True)]
            found |= np.array(close, dtype=bool)
        return found

    def _numbers(self, name: str) -> NDArray[np.object_]:
        values = [v if v is not None and isfinite(v) else 0 for v in self.rows[name].to_pylist()]
        return np.array([Fraction(v) for v in values], dtype=object)


@dataclass(frozen=True, slots=True, eq=False)
class AnswerCandidate:
    """An answer before it is checked.

    Attributes:
        rows: the asker's columns, ``level`` (as shown) and ``hm_row`` (the place).
        groups: what the engine counted, with ``place`` per group (-1: left out).
        places: per place, its level (from 0).
        request: what was asked of the engine.
        promises: what must hold.
        steps: per level, what was generalized, in words.
        first: the number that the finest level is shown with.
        refused: people whom no level satisfies, and the largest k among them.
        without_policy: people left out because they state none.
        below: people below the guarantee, where somebody may stand in several groups.
        counted: what a second look at the rows found per place, where one was asked for:
            ``place``, then one column per promise, then the largest k and l.
        figures: per place (``hm_row``) the figures that ``rows`` were made of and that may have to
            be null, the conditional ones first.
        conditional: how many of them are conditional.
        shares: who makes up how much of the sums, where the controller asks for that.
        parts: per place and part of the people of a place: ``met``, which conditions they meet,
            ``people``, and ``l0`` ..., how many values there are of what is shown.
        measured: per place, of how many rows the engine made medians and distinct counts, which it
            looks up once more; None where there are none.
        watch: what the door had counted of people's demands; None where the people are not in
            reach of the door (their own cells keep their demands).
    """

    rows: pa.Table
    groups: pa.Table
    places: Counts
    request: Request
    promises: tuple[Promise, ...]
    steps: tuple[str, ...]
    first: int
    refused: tuple[int, int]
    without_policy: int
    semantics: str
    gap: float | None
    engine: str
    sql: str
    notes: tuple[str, ...] = ()
    below: int | None = None
    counted: pa.Table | None = None
    figures: pa.Table | None = None
    conditional: int = 0
    shares: LargestShares | None = None
    parts: pa.Table | None = None
    measured: pa.ChunkedArray | None = None
    watch: DemandWatch | None = None


@dataclass(frozen=True, slots=True, eq=False)
class NoiseCandidate:
    """Rows that a private method made, against the accountant's receipt.

    Attributes:
        rows: what would leave.
        receipt: what was spent before, and every noisy view that was read.
        sizes: how many public values each column has; the bounds are told for these columns.
        method: how the rows were made.
        parameters: public choices only.
        notes: what a reader should know, one sentence each.
        origin: the kind that came in.
        schema: of the table that was read, which says whether people state an epsilon.
        impossible: combinations that no row may hold, as declared.
        given: what every row must hold.
    """

    rows: pa.Table
    receipt: Receipt
    sizes: Mapping[str, int]
    method: str
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    origin: str = "arrow"
    schema: Schema | None = None
    impossible: Sequence[Combination] = ()
    given: Combination = ()


@dataclass(frozen=True, slots=True, eq=False)
class SyntheticCandidate:
    """Rows that a generator drew without a formal guarantee, not yet measured.

    Attributes:
        table: the original rows, without those that were held out.
        rows: what would leave.
        method: how the rows were made.
        least: how many people must share every value that leaves.
        seed: repeats the choice of the people who are attacked.
        parameters: what is needed to repeat it.
        notes: what a reader should know, one sentence each.
        control: the rows that were held out of the model; None where none were.
        groups: the group of people that the model counted each original row in.
        combinations: of how many columns the values of a row must be shared together.
        cuts: the bounds between the intervals by which numbers are counted there.
        demands: whether people's own demands are kept, or set aside by the controller.
        impossible: combinations that no row may hold, as declared.
        given: what every row must hold.
    """

    table: Table
    rows: pa.Table
    method: str
    least: int = 1
    seed: int = 0
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    control: Table | None = None
    groups: NDArray[np.int32] | None = None
    combinations: int = 1
    cuts: Mapping[str, Sequence[float]] = field(default_factory=dict)
    demands: DemandsChoice = "keep"
    impossible: Sequence[Combination] = ()
    given: Combination = ()

    def __repr__(self) -> str:
        return f"SyntheticCandidate({self.method}, {self.rows.num_rows:,} rows)"


@dataclass(frozen=True, slots=True, eq=False)
class Proof:
    """A table like the true one for every reader: these cells differ by these amounts."""

    cell: int
    sign: int
    cells: NDArray[np.int64]
    amounts: Numbers


@dataclass(frozen=True, slots=True, eq=False)
class TabulationCandidate:
    """A table of figures before it is checked.

    Attributes:
        table: the rows.
        design: what it shows.
        grid: its cells.
        values: the figures; NaN where one is withheld.
        method: how it was protected.
        rules: threshold, dominance, p, protection and diversity that were asked for.
        reach: how far figures may be from the true ones; None: they are true.
        proofs: why withheld cells cannot be found out, where the maker knows.
        sole: whether those who contribute to a cell alone are taken to know it.
        findings: what was found, for the controller.
        parameters: what is needed to repeat it; public choices only.
        notes: what a reader should know, one sentence each.
        gap: the proven distance to the optimum.
        demands: whether people's own demands are kept, or set aside by the controller.
    """

    table: Table
    design: TableDesign
    grid: CellGrid
    values: Numbers
    method: str
    rules: Mapping[str, Any]
    reach: float | None = None
    proofs: Sequence[Proof] = ()
    sole: bool = False
    findings: Mapping[str, Any] = field(default_factory=dict)
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    gap: float | None = None
    demands: DemandsChoice = "keep"


@dataclass(frozen=True, slots=True, eq=False)
class MaskedCandidate:
    """Masked rows before they are checked.

    Attributes:
        table: the original rows.
        rows: the masked rows, private columns among them.
        source: which original row each of them was.
        tables: what would leave beside them.
        steps: what was done, in order, as plain values.
        models: the promises that must hold.
        claims: what steps claim.
        measured: figures of what rows still tell and are good for.
        figures: the same step by step, for the controller only.
        parameters: what is needed to repeat it.
        notes: what a reader should know, one sentence each.
        demands: whether people's own demands are kept, or set aside by the controller.
        order: a seed for the order of the rows; None: the system's secure source.
        tuples: the entries, one a row, where the rows stay elsewhere; None: they are here.
    """

    table: Table
    rows: Table
    source: Counts
    tables: Mapping[str, pa.Table]
    steps: Sequence[Mapping[str, Any]]
    models: Sequence[Model]
    claims: Sequence[Claim] = ()
    measured: Mapping[str, Any] = field(default_factory=dict)
    figures: Sequence[Mapping[str, Any]] = ()
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    demands: DemandsChoice = "keep"
    order: int | None = None
    tuples: Tuples | None = None

    def __repr__(self) -> str:
        return f"MaskedCandidate({len(self.steps)} steps, {len(self.rows):,} rows)"


@dataclass(frozen=True, slots=True, eq=False)
class SeriesCandidate:
    """Classes of people and counterfeits that claim to keep everybody's signature.

    Attributes:
        table: the rows, but those that were left out.
        invariance: the promise about the series; ``models`` the others.
        partition: what the classes publish.
        step: per row, its class.
        counterfeits: the class of each counterfeit, and its value as text.
        ledger: of the series.
        parameters: what is needed to repeat it; public choices only.
        notes: what a reader should know, one sentence each.
        demands: whether people's own demands are kept, or set aside by the controller.
        left_out: how many rows were taken out before.
    """

    table: Table
    invariance: MInvariance
    models: Sequence[Model]
    partition: RowPartition
    step: NDArray[np.int32]
    counterfeits: tuple[NDArray[np.int32], tuple[Label, ...]]
    ledger: SeriesLedger
    parameters: Mapping[str, Any] = field(default_factory=dict)
    notes: Sequence[str] = ()
    demands: DemandsChoice = "keep"
    left_out: int = 0
