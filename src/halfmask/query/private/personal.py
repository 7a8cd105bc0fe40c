"""Questions in which every person keeps an own epsilon: people are sampled, groups are counted.

The engine counts rows by group, demand and clipped value. Rows of one such cell are alike, so that
keeping each of them by its own coin here is the same as keeping people by chance where they are.
All figures of an answer come from one sample.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import expm1
from statistics import NormalDist
from typing import TYPE_CHECKING, NoReturn

import numpy as np
import pyarrow as pa

from halfmask.dp.personal.demands import Demands
from halfmask.dp.personal.sampling import best_threshold, expected_share, kept
from halfmask.dp.questions import Question
from halfmask.engines.tally import Tally
from halfmask.errors import PrivacyError, UnsupportedQueryError

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray
    from sqlglot import exp

    from halfmask.dp.answers import Answered
    from halfmask.dp.figures import Figure
    from halfmask.dp.sampling import Sampler
    from halfmask.engines.request import Engine
    from halfmask.query.private.clause import PrivateStatement
    from halfmask.query.private.plan import PrivatePlan

    Ints = NDArray[np.int64]


@dataclass(frozen=True, eq=False)
class Personal:
    """What people demand, and the threshold at which the noise is drawn.

    Attributes:
        column: where the demands stand.
        threshold: the epsilon of the noise.
        demands: of everybody who states one; public.
    """

    column: exp.Expr
    threshold: Fraction
    demands: Demands

    @property
    def share(self) -> float:
        """The share of people who are kept, as expected."""
        return expected_share(self.demands, self.threshold)

    @property
    def unsure(self) -> float:
        """The mean of p (1 - p) over people: what sampling adds to the variance of a count."""
        levels, people = self.demands.histogram()
        top = expm1(float(self.threshold))
        chances = np.minimum([expm1(float(level)) / top for level in levels], 1.0)
        return float((chances * (1 - chances) * people).sum() / people.sum())

    def to_dict(self) -> dict[str, object]:
        """The public facts."""
        levels, _ = self.demands.histogram()
        return {
            "threshold": float(self.threshold),
            "kept_share": self.share,
            "smallest": float(levels[0]),
            "largest": float(levels[-1]),
        }

    def totals(self, request: Tally, engine: Engine, sampler: Sampler) -> pa.Table:
        """The totals of the people who are kept, in the columns of ``Engine.tally``."""
        keys, first = len(request.keys), len(request.keys) + 1
        values = tuple(part.expression for part in request.parts if not part.distinct)
        cells = engine.tally(replace(request, keys=(*request.keys, self.column, *values), parts=()))
        cells = cells.filter(cells[f"g{keys}"].combine_chunks().is_valid())
        steps = _steps(cells[f"g{keys}"].cast(pa.float64()).to_numpy())
        rows = _thinned(steps, cells["rows"].cast(pa.int64()).to_numpy(), self.threshold, sampler)
        found: dict[str, pa.Array] = {f"g{i}": cells[f"g{i}"] for i in range(keys)}
        found["rows"] = pa.array(rows)
        place = first
        for i, part in enumerate(request.parts):
            if part.distinct:  # one row a person: people are rows
                found[f"n{i}"] = pa.array(rows)
                continue
            column = cells[f"g{place}"].combine_chunks()
            place += 1
            there = column.is_valid().to_numpy(zero_copy_only=False)
            found[f"n{i}"] = pa.array(rows * there)
            if part.summed:
                value = column.cast(pa.int64()).fill_null(0).to_numpy()
                found[f"s{i}"] = pa.array(rows * value)
        made = pa.table(found)
        return made.filter(pa.array(rows > 0))

    def rescaled(self, plan: PrivatePlan, told: Answered) -> Answered:
        """Figures of the sample as figures of everybody, with the error of sampling."""
        reach = NormalDist().inv_cdf(1 - (1 - told.confidence) / 6)
        counts = {
            q.column: f for q, f in zip(asked(plan), told.figures, strict=True) if q.kind == "count"
        }
        figures = [
            self._whole(question, figure, counts, reach)
            for question, figure in zip(plan.questions, told.figures, strict=False)
        ]
        return replace(told, figures=tuple(figures))

    def _whole(
        self, question: Question, figure: Figure, counts: dict[str, Figure], reach: float
    ) -> Figure:
        share, scale = self.share, question.scale
        if question.kind == "mean" and scale is not None:
            few = np.maximum(counts[question.column].low, 1)
            half = reach * (scale.high - scale.low) / 2 * np.sqrt((1 - share) / few)
            low = np.maximum(figure.low - half, scale.low)
            return replace(figure, low=low, high=np.minimum(figure.high + half, scale.high))
        most = 1.0 if scale is None else max(abs(scale.low), abs(scale.high))
        # The squares of values from 0 to a bound add up to at most the bound times their sum.
        mass = most * np.maximum(figure.high, most) / share
        if scale is not None and scale.low < 0:
            mass = np.full(len(figure.values), most**2 * len(self.demands.steps))
        half = reach * np.sqrt(self.unsure * mass) / share
        values = figure.values / share
        low, high = figure.low / share - half, figure.high / share + half
        if question.kind == "count":
            return replace(
                figure,
                values=np.rint(values),
                low=np.maximum(np.floor(low), 0),
                high=np.ceil(high),
            )
        return replace(figure, values=values, low=low, high=high)


def asked(plan: PrivatePlan) -> tuple[Question, ...]:
    """The questions of a plan, and the counts behind its means; they cost nothing more."""
    more = [Question("", "count", q.column) for q in plan.questions if q.kind == "mean"]
    return (*plan.questions, *more)


def personal(plan: PrivatePlan, engine: Engine, statement: PrivateStatement) -> Personal:
    """Read what people demand (it is public) and choose the threshold that loses least."""
    from sqlglot import exp

    source = plan.scope.tables[plan.scope.main]
    name = source.schema.policy.get("epsilon") if source.schema else None
    if not isinstance(name, str):
        _refuse(
            statement, "nobody's own epsilon is declared: [policy] epsilon = ... in the schema."
        )
    kinds = {question.kind for question in plan.questions}
    if kinds - {"count", "sum", "mean"}:
        _refuse(statement, "with PERSONAL EPSILON ask for COUNT, SUM or AVG.")
    if plan.tally.rows_per_person != 1:
        _refuse(statement, "with PERSONAL EPSILON one row of a person counts.")
    column = exp.column(name, table=plan.scope.main, quoted=True)
    everybody = plan.tally.source.copy()
    everybody.set("where", None)
    if plan.tally.person is not None and source.table is None:
        _require_one_demand(everybody, plan.tally.person, column, engine)
    found = engine.tally(Tally(everybody, (column,), (), plan.tally.person, 1))
    found = found.filter(found["g0"].combine_chunks().is_valid())
    if not found.num_rows:
        _refuse(statement, f"{name} holds no demand: everybody would be left out.")
    steps = _steps(found["g0"].cast(pa.float64()).to_numpy())
    demands = Demands(np.repeat(steps, found["rows"].cast(pa.int64()).to_numpy()))
    numbers = sum(len(key.domain) for key in plan.keys if key.domain is not None)
    return Personal(column, best_threshold(demands, numbers=max(1, numbers)), demands)


def _steps(stated: NDArray[np.float64]) -> Ints:
    """Demands in whole thousandths, rounded down."""
    distinct, own = np.unique(stated, return_inverse=True)
    return Demands.of(distinct.tolist()).steps[own]


def _thinned(steps: Ints, rows: Ints, threshold: Fraction, sampler: Sampler) -> Ints:
    """How many rows of each cell are kept, one exact coin a row."""
    stays = kept(Demands(np.repeat(steps, rows)), threshold, sampler)
    cell = np.repeat(np.arange(len(rows)), rows)
    return np.bincount(cell[stays], minlength=len(rows)).astype(np.int64)


def _require_one_demand(
    rows: exp.Select, person: exp.Expr, column: exp.Expr, engine: Engine
) -> None:
    """A person whose rows demand differently would be kept by the wrong coin."""
    from sqlglot import exp

    several = exp.Count(this=exp.Distinct(expressions=[column.copy()]))
    inner = rows.select(exp.alias_(person.copy(), "p", quoted=True)).group_by(person.copy())
    inner = inner.having(exp.GT(this=several, expression=exp.Literal.number(1)))
    query = exp.select(exp.alias_(exp.Count(this=exp.Star()), "n")).from_(inner.subquery("d"))
    if int(engine.run(query)["n"][0].as_py()):
        raise PrivacyError("Rows of one person demand different epsilons: give one demand each.")


def _refuse(statement: PrivateStatement, message: str) -> NoReturn:
    raise UnsupportedQueryError(message, text=statement.text, start=statement.start, length=4)
