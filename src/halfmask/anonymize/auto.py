"""``method="auto"``: the methods that can keep the promises, and the one that loses least.

Candidates are made one after the other, cheapest first, and scored alike: by the loss of the labels
on all rows, those left out counted in full, or by the metric that was asked for. Without a time
limit what is tried depends on the size of the table alone, so that a search can be repeated; with
one, each method gets an even share of what is left of it. On a table so wide or large that a search
can use all the time there is, the one that gains most by it comes first and may take all.
"""

from __future__ import annotations

import math
import time
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.anonymize.partition.methods import LEVELS
from halfmask.errors import (
    HalfmaskError,
    InfeasibleDemandsError,
    ParameterError,
    UnsatisfiableError,
)
from halfmask.metrics.cost import METRICS, CellMetric, Loss
from halfmask.release.candidate import Attempt
from halfmask.release.partition import column_loss, table_loss
from halfmask.table.tuples import Tuples

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from halfmask.metrics.cost import Metric
    from halfmask.models.verdict import Model
    from halfmask.release.candidate import Candidate
    from halfmask.table.table import Table

AUTO = "auto"


@dataclass(frozen=True, slots=True)
class Contender:
    """A method that may be tried.

    Attributes:
        name: as for ``anonymize``.
        recodes: whether it finds levels; else it divides the rows.
        cells: the most cells (rows times quasi-identifiers) for which its time suits a table.
        columns: the most quasi-identifiers.
    """

    name: str
    recodes: bool
    cells: float = math.inf
    columns: int = 1 << 30


# Cheapest first; the sizes keep each within about a minute, and are judged rather than measured.
CONTENDERS = (
    Contender("optimal", recodes=True, cells=4e6, columns=24),
    Contender("local", recodes=True, cells=2e7, columns=LEVELS),
    Contender("personal", recodes=False, cells=2e7),
    Contender("mondrian", recodes=False),
    Contender("k-member", recodes=False, cells=2e6),
)
_SCORED = ("loss", "mean-loss")  # what is known of labels, whichever method made them
_DIVIDED = ("dbil",)
_DOOR_SHARE = 0.08  # of a limit, for labels and the door
_DOOR_CELL = 2e-6  # or so many seconds of the processor for a row's cell, if that is more
_DOOR_MOST = 0.75  # of a limit, whatever the table is like
_LEVEL_CELL = 1e-5  # seconds for a row's cell below which a search of levels may end at the top
NOTHING = 0.01  # seconds that stand for none
_PACE_KNOWN = 0.05  # seconds of the processor from which a pace is believed


@dataclass(frozen=True, slots=True)
class Clock:
    """What is left of a time limit that counts from ``began``, on a machine that others use too.

    Searches stop at any time; what comes after them (labels, and the door, which counts again) does
    not. What that will take is kept back: in seconds of the processor, times how much slower the
    clock has run than the processor so far.

    Attributes:
        limit: seconds for everything.
        cells: rows times quasi-identifiers, which the door labels and counts again.
        began: when it started, as ``time.monotonic`` counts.
        worked: seconds of the processor that the process had used then.
    """

    limit: float
    cells: int
    began: float
    worked: float

    @property
    def pace(self) -> float:
        """Seconds by the clock for one of the processor; 1 where that is not known yet."""
        worked = time.process_time() - self.worked
        if worked < _PACE_KNOWN:
            return 1.0
        return max((time.monotonic() - self.began) / worked, 1.0)

    @property
    def left(self) -> float:
        """The seconds that searches still have; a little where there are none."""
        kept = max(_DOOR_SHARE * self.limit, _DOOR_CELL * self.cells) * self.pace
        kept = min(kept, _DOOR_MOST * self.limit)
        return max(self.limit - kept - (time.monotonic() - self.began), NOTHING)


@dataclass(frozen=True, slots=True)
class Choice:
    """What is asked of every method alike.

    Attributes:
        models: the promises.
        metric: what to minimize, by name or as a metric; None: the loss.
        suppression: the share of rows that may be left out.
        clock: the time limit for all together.
        options: those of divisions, by name.
    """

    models: Sequence[Model]
    metric: str | Metric | None
    suppression: float
    clock: Clock | None
    options: dict[str, Any]

    @property
    def metric_name(self) -> str:
        """The name of the metric."""
        if self.metric is None:
            return "loss"
        return self.metric if isinstance(self.metric, str) else self.metric.name

    @property
    def limit(self) -> float:
        """The seconds for all together; 0 where they are not limited."""
        return 0.0 if self.clock is None else self.clock.limit

    @property
    def scored(self) -> bool:
        """Whether all methods can be scored by their labels; else by what their search says."""
        plain = not isinstance(self.metric, CellMetric) or self.metric == Loss()
        return self.metric_name in _SCORED and plain


def try_methods(
    table: Tuples, choice: Choice, run: Callable[[str, float | None], Candidate]
) -> tuple[Candidate, tuple[Attempt, ...]]:
    """The candidate that loses least, and what was tried.

    Args:
        table: entries that stand for all rows.
        choice: what is asked for.
        run: makes the candidate of one method within so many seconds.

    Raises:
        UnsatisfiableError: no method keeps the promises; that of the method that can do most.
    """
    if choice.metric_name not in (*METRICS, *_DIVIDED) and isinstance(choice.metric, str):
        raise ParameterError("metric", choice.metric, "one of " + ", ".join((*METRICS, *_DIVIDED)))
    best: tuple[float, Candidate, str] | None = None
    seen: list[Attempt] = []
    kept: dict[str, Candidate] = {}
    failure: HalfmaskError | None = None
    turns = [(one, _unfit(one, table, choice)) for one in _in_turn(table, choice.limit)]
    greedy = _wide(table) or _hurried(table, choice.limit)
    open_ = sum(unfit is None for _, unfit in turns)
    for contender, unfit in turns:
        reason = unfit
        left = None if choice.clock is None else choice.clock.left
        if reason is None and left is not None and best is not None:
            least = max(one.seconds or 0.0 for one in seen) if greedy else 0.1 * choice.limit
            reason = "no time was left" if left < least else None
        if reason is not None:
            seen.append(Attempt(contender.name, reason=reason))
            continue
        began = time.monotonic()
        share = None if left is None else max(left if greedy else left / open_, NOTHING)
        open_ -= 1
        try:
            found = run(contender.name, share)
        except UnsatisfiableError as error:
            own = isinstance(error, InfeasibleDemandsError)
            failure = error if failure is None or own else failure
            seen.append(
                Attempt(
                    contender.name, None, time.monotonic() - began, "nothing keeps the promises"
                )
            )
            continue
        value = _score(found, choice)
        seen.append(Attempt(contender.name, value, time.monotonic() - began))
        kept[contender.name] = found
        if best is None or value < best[0]:
            best = (value, found, contender.name)
    if best is None:
        raise failure or ParameterError("models", "these", "some that one method can keep")
    return best[1], tuple(_comparable(one, best[1], kept) for one in seen)


def suitable_methods(
    table: Table, models: Sequence[Model], metric: str, clock: Clock | None = None
) -> list[str]:
    """The methods that would be tried, in their turn; where the first may take all, it alone."""
    choice, rows = Choice(models, metric, 0.0, clock, {}), Tuples.of(table)
    turns = _in_turn(rows, choice.limit)
    names = [one.name for one in turns if _unfit(one, rows, choice) is None]
    greedy = clock is not None and (_wide(rows) or _hurried(rows, clock.limit))
    return names[:1] if greedy else names


def _wide(table: Tuples) -> bool:
    return len(table.table.schema.quasi) > LEVELS


def _hurried(table: Tuples, limit: float) -> bool:
    """Whether a time limit (0: none) ends searches of levels before they leave the top."""
    return 0 < limit < _LEVEL_CELL * len(table) * len(table.table.schema.quasi)


def _in_turn(table: Tuples, limit: float) -> list[Contender]:
    """The methods, cheapest first, but for what loses least within any time.

    Of a wide table that is what grows classes from far-off rows, while cuts need all of it to come
    near; of a large one in a hurry cuts, which are useful wherever they are stopped.
    """
    first = "k-member" if _wide(table) else "mondrian" if _hurried(table, limit) else None
    return sorted(CONTENDERS, key=lambda one: first is not None and one.name != first)


def _unfit(contender: Contender, table: Tuples, choice: Choice) -> str | None:
    """Why a method is not tried; None: it is."""
    columns = len(table.table.schema.quasi)
    if table.engine and not contender.recodes:
        return "it divides rows, which stay where they are"
    known = METRICS if contender.recodes else (*_SCORED, *_DIVIDED)
    if choice.metric_name not in known or (not contender.recodes and not _plain(choice)):
        return f"it cannot minimize {choice.metric_name}"
    if any(model.population is not None for model in choice.models) and contender.name != "optimal":
        return "it cannot compare with a population"
    if any(model.whole for model in choice.models) and not contender.recodes:
        return "a promise looks at all classes at once"
    if contender.recodes and choice.options.get("on_infeasible") == "suppress":
        return "it leaves people out within the share alone"
    only = any(name in choice.options for name in ("score", "cut", "fallback"))
    if contender.recodes and only:
        return "it does not know the options given"
    if contender.name == "local" and choice.options.get("labels") == "sets":
        return "with labels of sets, personal begins with its classes"
    if contender.name == "local" and not _cellwise(choice):
        return f"it cannot minimize {choice.metric_name}"
    if contender.recodes and not _alone(contender, choice) and columns > contender.columns:
        return f"the table has more than {contender.columns} quasi-identifiers"
    if contender.name == "personal" and _wide(table) and _cut_by_labels(choice):
        return f"more than {LEVELS} quasi-identifiers it divides as mondrian does"
    # What grows classes does so in small blocks where time is limited.
    blocks = contender.name == "k-member" and _wide(table) and choice.clock is not None
    if not _alone(contender, choice) and not blocks and len(table) * columns > contender.cells:
        return "the table is large for it"
    return None


def _plain(choice: Choice) -> bool:
    return choice.scored or choice.metric_name in _DIVIDED


def _cut_by_labels(choice: Choice) -> bool:
    return choice.metric_name not in _DIVIDED and "cut" not in choice.options


def _cellwise(choice: Choice) -> bool:
    if choice.metric is None:
        return True
    made = METRICS.get(choice.metric) if isinstance(choice.metric, str) else choice.metric
    return isinstance(made, CellMetric)


def _alone(contender: Contender, choice: Choice) -> bool:
    """Whether no other method can keep the promises, so that cost does not count."""
    if contender.name != "optimal":
        return False
    return any(m.population is not None for m in choice.models) or not (
        choice.scored or choice.metric_name in _DIVIDED
    )


def _score(found: Candidate, choice: Choice) -> float:
    """What a candidate loses; the same measure for all."""
    if not choice.scored:
        return float(found.parameters["value"])
    table, out, rows = found.table, found.left_out, found.everybody
    weights, losses = {}, {}
    for name in table.schema.quasi:
        loss = column_loss(found.recoding, found.entries, found.step, name)  # type: ignore[arg-type]
        wide = table.hierarchy(name).size > 1
        losses[name] = Fraction(loss * rows + out, rows + out) if wide else loss
        weights[name] = table.schema.columns[name].weight
    aggregate = "geometric" if choice.metric_name == "loss" else "arithmetic"
    return table_loss(losses, weights, aggregate=aggregate)


def _comparable(attempt: Attempt, best: Candidate, kept: dict[str, Candidate]) -> Attempt:
    """The attempt with whether its loss tells of no row but those that leave."""
    found = kept.get(attempt.method)
    if found is None:
        return attempt
    same = found.left_out == best.left_out and len(found.step) == len(best.step)
    same = same and bool(np.array_equal(found.step >= 0, best.step >= 0))
    return Attempt(attempt.method, attempt.loss, attempt.seconds, attempt.reason, same_rows=same)
