"""What a comparison of policies found: ratios with intervals, population by population.

What personal demands gain: against one k for everybody, and against deleting the demanding.

Definition: with DBIL(k_i) the loss when everybody gets their own k, the gains are
DBIL(k_m) / DBIL(k_i) (scenario 1: people may raise or lower a common k_m),
DBIL(k_c) / DBIL(k_i) (scenario 2: people lower a common k_c), and
(DBIL(k_m without the demanding) + columns * deleted) / DBIL(k_i) (scenario 3).
Source: Michel, "Personalizing privacy constraints in generalization-based anonymization models",
2019, sections 5.2 and 5.5.
"""

from __future__ import annotations

import math
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.anonymize.partition.run import DIVISIONS, division_loss
from halfmask.anonymize.partition.task import PartitionTask, task_of
from halfmask.errors import InternalError, ParameterError
from halfmask.models import PersonalKAnonymity
from halfmask.models.requirements import prepare
from halfmask.release.files import write_report
from halfmask.sample.policies import CONCERNS, demands, generate
from halfmask.table.demands import states
from halfmask.table.table import require_table

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from halfmask.sample.policies import ConcernShares
    from halfmask.table.table import Table


FORMAT = "halfmask.policies/1"


@dataclass(frozen=True, slots=True)
class Gain:
    """One ratio over several seeds: above 1 personal demands lose less.

    Attributes:
        mean: the mean over the seeds.
        low: the lower end of the interval that holds the true mean in 95 of 100 cases (normal
            errors assumed), or the mean itself where all runs agree.
        high: the upper end.
    """

    mean: float
    low: float
    high: float

    @classmethod
    def of(cls, ratios: Sequence[float]) -> Gain:
        """The mean and its interval, by Student's t."""
        n, mean = len(ratios), math.fsum(ratios) / len(ratios)
        if len(set(ratios)) == 1:
            return cls(ratios[0], ratios[0], ratios[0])
        spread = math.sqrt(math.fsum((r - mean) ** 2 for r in ratios) / (n - 1) / n)
        wide = spread * _STUDENT[min(n - 1, len(_STUDENT)) - 1]
        return cls(mean, mean - wide, mean + wide)


# The 97.5% quantiles of Student's t for 1, 2, ... degrees of freedom.
_STUDENT = (12.706, 4.303, 3.182, 2.776, 2.571, 2.447, 2.365, 2.306, 2.262, 2.228)


@dataclass(frozen=True, slots=True)
class PolicyGain:
    """The gains for one population.

    Attributes:
        concern: the population.
        k: what people with a low, medium and high concern demand.
        people: how many people have each concern.
        personal: the mean loss per row with everybody's own k.
        over_moderate: scenario 1, against k_m for everybody.
        over_uniform: scenario 2, against k_c for everybody.
        over_deleting: scenario 3, against k_m for all but the demanding, who are deleted.
    """

    concern: str
    k: tuple[int, int, int]
    people: tuple[int, int, int]
    personal: float
    over_moderate: Gain
    over_uniform: Gain
    over_deleting: Gain


@dataclass(frozen=True, slots=True)
class PolicyComparison:
    """What personal demands gain, population by population.

    Attributes:
        rows: how many rows the table has.
        columns: how many quasi-identifiers it has.
        method: how rows were divided.
        correlated: the columns that demands grow with; none: dealt at random.
        seeds: how many times demands were dealt.
        gains: one entry per population.
    """

    rows: int
    columns: int
    method: str
    correlated: tuple[str, ...]
    seeds: int
    gains: tuple[PolicyGain, ...]

    def to_dict(self) -> dict[str, Any]:
        """Return the comparison as plain values."""
        return {"format": FORMAT, **asdict(self)}

    def report(self, path: str | PathLike[str]) -> None:
        """Write the comparison as ``.json``, or as an ``.html`` or ``.pdf`` page with a plot."""
        write_report(path, self.to_dict(), self._page)

    def _page(self) -> str:
        from halfmask.report import render_policies

        return render_policies(self.to_dict())


OWN = "as stated"


def compare_policies(
    table: Table,
    concerns: Sequence[str | ConcernShares] | None = None,
    *,
    k: Sequence[int] = (3, 5, 7),
    correlated: Sequence[str] | None = None,
    method: str = "personal",
    seeds: Sequence[int] = (0, 1, 2),
    **options: Any,
) -> PolicyComparison:
    """Measure what personal demands gain over one k and over deleting the demanding.

    Args:
        table: the rows.
        concerns: populations as in ``policies.generate``; None: the demands that the table states
            or, where it states none, all presets.
        k: what people with a low, medium and high concern demand.
        correlated: numeric columns that demands grow with; None: dealt at random.
        method: how rows are divided.
        seeds: one run each.
        options: for the method, such as ``score="plain"``.

    Example:
        >>> import halfmask as hm
        >>> import pyarrow as pa
        >>> people = hm.read(pa.table({"age": list(range(40))}), schema={"age": "quasi"})
        >>> found = hm.compare_policies(people, ["personal"], k=(2, 3, 4), seeds=[0])
        >>> found.gains[0].people
        (33, 7, 0)
    """
    table = require_table(table)
    if method not in DIVISIONS:
        raise ParameterError("method", method, "one of " + ", ".join(DIVISIONS))
    if not seeds:
        raise ParameterError("seeds", tuple(seeds), "at least one")
    deals = seeds[:1] if correlated else seeds  # what demands grow with leaves nothing to chance
    runs = _populations(table, concerns, k, correlated, deals)
    low_to_high = demands(k)
    if low_to_high[2] > len(table) and runs[0][0] != OWN:
        allowed = f"demands of no more than the {len(table):,} rows of the table"
        raise ParameterError("k", low_to_high, allowed)
    divided = _Runs(method)
    gains = [_gain(name, tables, low_to_high, divided, seeds, options) for name, tables in runs]
    return PolicyComparison(
        rows=len(table),
        columns=len(table.schema.quasi),
        method=method,
        correlated=tuple(correlated or ()),
        seeds=len(seeds),
        gains=tuple(gains),
    )


def _populations(
    table: Table,
    concerns: Sequence[str | ConcernShares] | None,
    k: Sequence[int],
    correlated: Sequence[str] | None,
    deals: Sequence[int],
) -> list[tuple[str, list[Table]]]:
    """The table with the demands of each population, by its name; its own where none is named."""
    if concerns is None and states(table.schema, "k"):
        return [(OWN, [table])]
    return [
        (
            one if isinstance(one, str) else "/".join(f"{share:g}" for share in one),
            [generate(table, one, k=k, correlated=correlated, seed=seed) for seed in deals],
        )
        for one in (list(CONCERNS) if concerns is None else concerns)
    ]


class _Runs:
    """Divides under policies by one method, nothing twice.

    What one k for everybody loses does not depend on the population, and a method that draws
    nothing at random not on the seed.
    """

    def __init__(self, method: str) -> None:
        self.divide = DIVISIONS[method].divide
        self.draws = DIVISIONS[method].draws
        self._known: dict[tuple[int, int | None], float] = {}

    def loss(self, task: PartitionTask) -> float:
        """The loss of a division, after a check that it is one."""
        ids = self.divide(replace(task, models=())).ids
        sizes = np.bincount(ids)
        if (sizes[ids] < task.demands.k).any():
            raise InternalError("A division does not meet its demands.")
        return division_loss(task, ids)

    def uniform(self, task: PartitionTask, k: int) -> float:
        """The loss when everybody demands ``k``."""
        key = (k, task.seed if self.draws else None)
        if key not in self._known:
            self._known[key] = self.loss(_same(task, k))
        return self._known[key]

    def deleting(self, task: PartitionTask, k: tuple[int, int, int]) -> float:
        """The loss when the demanding are deleted, each at the price of all columns."""
        stay = np.flatnonzero(task.demands.k < k[2]) if k[2] > k[1] else np.arange(len(task))
        if len(stay) == len(task):
            return self.uniform(task, k[1])
        price = float(task.space.weights.sum())
        if len(stay) < k[1]:
            return price * len(task)
        return price * (len(task) - len(stay)) + self.loss(_same(task.take(stay), k[1]))


def _gain(
    name: str,
    tables: Sequence[Table],
    k: tuple[int, int, int],
    runs: _Runs,
    seeds: Sequence[int],
    options: dict[str, Any],
) -> PolicyGain:
    found: list[tuple[float, ...]] = []
    models = (PersonalKAnonymity(),)
    task, asked = None, k
    for i, seed in enumerate(seeds):
        if i >= len(tables) and not runs.draws:
            found.append(found[-1])  # the same rows and demands again
            continue
        given = tables[min(i, len(tables) - 1)]
        task = task_of(prepare(given, models), models, seed=seed, options=options)
        asked = k if name != OWN else _demand_range(task)
        own = runs.loss(task)
        others = runs.uniform(task, asked[1]), runs.uniform(task, asked[2])
        ratios = (_share(one, own) for one in (*others, runs.deleting(task, asked)))
        found.append((own / len(task), *ratios))
    assert task is not None  # noqa: S101 - there is at least one seed
    own_k = task.demands.k
    high, low = int((own_k >= asked[2]).sum()), int((own_k < asked[1]).sum())
    personal, *gains = (Gain.of(column) for column in zip(*found, strict=True))
    people = (low, len(task) - low - high, high)
    return PolicyGain(name, asked, people, personal.mean, *gains)


def _demand_range(task: PartitionTask) -> tuple[int, int, int]:
    """The lowest, the median and the highest demand."""
    own = np.sort(task.demands.k)
    return int(own[0]), int(own[len(own) // 2]), int(own[-1])


def _same(task: PartitionTask, k: int) -> PartitionTask:
    """The task where everybody demands ``k``."""
    return replace(task, demands=task.demands._replace(k=np.full(len(task), k, dtype=np.int64)))


def _share(other: float, own: float) -> float:
    return other / own if own else (1.0 if other == own else math.inf)
