"""Discrimination rates: how far columns, and their values, tell another column."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, Literal

import numpy as np

from halfmask.engines.counting.tuples import count_tuples
from halfmask.engines.read import as_table
from halfmask.errors import NotObservedError, ParameterError
from halfmask.metrics.discrimination.columns import (
    Suppressed,
    bind_partitions,
    code_column,
    counting_rows,
    group_labels,
    group_rows,
    require_measurable,
)
from halfmask.metrics.estimate import Estimate, failed_estimate, mean_estimate
from halfmask.metrics.weighted import entropy_of, pairs
from halfmask.table.document import Result, document_field, plain_value
from halfmask.table.tuples import Tuples, ones, rows_in, tally

if TYPE_CHECKING:
    from collections.abc import Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.table.table import Table
    from halfmask.table.tuples import Counts


KeyKind = Literal["identifier", "partial", "sketchy", "zero", "undefined"]
NEVER_VARIES = "The target never varies: there is nothing to discriminate."
SAME = 1e-12  # bits by which equal entropies may differ


@dataclass(frozen=True, slots=True, eq=False)
class GroupRates:
    """The rate of a grouping, and what each group adds to it."""

    rate: float
    kind: KeyKind
    entropy: float
    residual: float
    sizes: NDArray[np.int64]
    inside: NDArray[np.float64]
    pure: NDArray[np.bool_]
    top: NDArray[np.int64]

    @property
    def pure_rows(self) -> int:
        """The rows of groups that hold one outcome."""
        return int(self.sizes[self.pure].sum())


def group_rates(
    x: NDArray[np.int32], size: int, y: NDArray[np.int64], groups: int, counts: Counts,
    undefined: float = float("nan"),
) -> GroupRates:  # fmt: skip
    """Measure how the groups ``y`` discriminate the outcomes ``x``; both are dense codes.

    Definition: 1 - H(X | Y) / H(X), from counts of pairs; a group's part is its share times H(X |
    y). Classes: identifier if every group holds one outcome, zero if H(X | Y) = H(X) within 1e-12,
    partial if some group holds one outcome, else sketchy; undefined where H(X) = 0.
    Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, section
    4.5.

    Each entry stands for ``counts`` rows.
    """
    owner, _, rows = pairs(y, x, size, groups, counts)
    sizes = tally(y, groups, counts)
    starts = np.flatnonzero(np.concatenate(([True], owner[1:] != owner[:-1])))
    parts = rows / sizes[owner]
    inside = np.add.reduceat(-parts * np.log2(parts), starts) + 0.0  # not -0.0
    pure = np.diff(np.append(starts, len(owner))) == 1
    inside[pure] = 0.0
    top = np.maximum.reduceat(rows, starts)
    entropy = entropy_of(tally(x, size, counts))
    residual = float(sizes @ inside) / int(sizes.sum())
    rate, kind = judge_rate(entropy, residual, undefined, all_pure=pure.all(), any_pure=pure.any())
    return GroupRates(rate, kind, entropy, residual, sizes, inside, pure, top)


def judge_rate(
    entropy: float,
    residual: float,
    undefined: float,
    *,
    all_pure: bool | np.bool_,
    any_pure: bool | np.bool_,
    same: float = SAME,
) -> tuple[float, KeyKind]:
    """The rate, and its class by structure rather than by comparing floats with 0 and 1."""
    if entropy == 0.0:
        return undefined, "undefined"
    if all_pure:
        return 1.0, "identifier"
    if abs(entropy - residual) < same:
        return 0.0, "zero"
    return 1.0 - residual / entropy, "partial" if any_pure else "sketchy"


_SHUFFLED = 500_000  # more rows are drawn as tables of counts
_CELLS = 1 << 22  # the largest table of counts that is drawn
_PATIENCE = 2_000_000  # rows that are shuffled where that table is too large


@dataclass(frozen=True, slots=True)
class Inflation(Result):
    """A rate beside what chance gives it.

    Attributes:
        rate: the measured rate.
        chance: the mean rate of shuffled outcomes.
        adjusted: what is left of the rate beyond chance; not trusted where chance explains it.
    """

    rate: float
    chance: Estimate
    adjusted: Estimate


def inflation(
    tuples: Tuples,
    target: str,
    keys: str | Sequence[str],
    partition: object = None,
    *,
    permutations: int = 20,
    seed: int = 0,
) -> Inflation:
    """Shuffle the target ``permutations`` times and compare.

    Definition: the rate of the same groups when the outcomes are shuffled among the rows; the
    adjusted rate is (rate - mean shuffled rate) / (1 - mean shuffled rate). It is beyond chance if
    the rate lies above the 95 % prediction interval of one more shuffle. Many rows are not shuffled
    one by one: tables of counts with the same margins are drawn, which has the same distribution.
    Source: Patefield, "Algorithm AS 159: an efficient method of generating random r x c tables with
    given row and column totals", 1981, for the latter.
    """
    table = tuples.table
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    require_measurable(table, target, names, "keep")
    bound = bind_partitions(table, (target, *names), target, partition)
    x = code_column(table, target, bound.get(target))
    y, groups = group_rows([code_column(table, name, bound.get(name)) for name in names])
    return beside_chance(x.codes, x.size, y, groups, tuples.counts, permutations, seed=seed)


def beside_chance(
    x: NDArray[np.int32],
    size: int,
    y: NDArray[np.int64],
    groups: int,
    counts: Counts,
    permutations: int,
    *,
    seed: int = 0,
) -> Inflation:
    """The rate of groups ``y`` for outcomes ``x``, beside that of shuffled outcomes."""
    if permutations < 2:
        raise ParameterError("permutations", permutations, "at least 2")
    rate = group_rates(x, size, y, groups, counts).rate
    if np.isnan(rate):
        return Inflation(rate, failed_estimate(NEVER_VARIES), failed_estimate(NEVER_VARIES))
    rows = rows_in(counts)
    random = np.random.default_rng(seed)
    if rows > _SHUFFLED and size * groups <= _CELLS:
        outcomes, sizes = tally(x, size, counts), tally(y, groups, counts)
        drawn = _random_rates(outcomes, sizes, permutations, random)
    elif rows > _PATIENCE:
        reason = f"There are more than {_PATIENCE:,} rows in too many groups to see what chance is."
        return Inflation(rate, failed_estimate(reason, rows), failed_estimate(reason, rows))
    else:
        # Sorted, so that the order of rows does not matter.
        x, y = np.sort(np.repeat(x, counts)), np.sort(np.repeat(y, counts))
        each = ones(rows)
        shuffled = (random.permutation(x) for _ in range(permutations))
        drawn = [group_rates(one, size, y, groups, each).rate for one in shuffled]
    chance = mean_estimate(drawn, f"{permutations} random shuffles of the target")
    return Inflation(rate, chance, _adjust(rate, chance, _prediction_end(drawn)))


def _random_rates(
    outcomes: NDArray[np.int64],
    sizes: NDArray[np.int64],
    times: int,
    random: np.random.Generator,
) -> list[float]:
    """Rates of random tables with these margins."""
    from scipy.stats import random_table

    filled, entropy = outcomes[outcomes > 0], entropy_of(outcomes)
    out = []
    for _ in range(times):
        counts = random_table.rvs(sizes, filled, method="patefield", random_state=random)
        parts = counts / sizes[:, None]
        inside = -(parts * np.log2(np.where(counts > 0, parts, 1.0))).sum(axis=1)
        out.append(1.0 - float(sizes @ inside) / int(sizes.sum()) / entropy)
    return out


def _prediction_end(drawn: list[float]) -> float:
    """The most that one more shuffle gives: the end of its 95 % prediction interval."""
    from scipy.special import stdtrit

    n, spread = len(drawn), float(np.std(drawn, ddof=1))
    return float(np.mean(drawn) + stdtrit(n - 1, 0.975) * spread * np.sqrt(1 + 1 / n))


def _adjust(rate: float, chance: Estimate, most: float) -> Estimate:
    """What is left of a rate where chance gives at ``most`` so much."""
    assert chance.value is not None and chance.low is not None and chance.high is not None  # noqa: S101, PT018
    if chance.value >= 1.0:
        return failed_estimate(
            "Every group is one row: any target would look discriminated.", chance.n
        )
    # The more chance gives, the less is left: the ends of its interval change places.
    value, low, high = (
        (rate - c) / (1 - c) for c in (chance.value, min(chance.high, 1 - 1e-12), chance.low)
    )
    beyond = rate > most + SAME
    reason = "" if beyond else "The rate is what chance alone would give."
    return Estimate(value, low, high, chance.n, trusted=beyond, reason=reason)


@dataclass(frozen=True, slots=True, repr=False)
class ValueRate:
    """One value (or tuple of values) of the keys.

    Attributes:
        value: the value; a tuple where there are several keys.
        rate: 1 - p(y) H(X | y) / H(X); mostly driven by how rare the value is.
        count: how many rows hold it; ``share`` is p(y).
        unweighted: 1 - H(X | y) / H(X), what the value says, however rare; may be negative.
        top: the largest share of one outcome among these rows.
    """

    value: object
    rate: float
    count: int
    share: float
    unweighted: float
    top: float

    def __repr__(self) -> str:
        return f"ValueRate(rate={self.rate:.4f}, count={self.count}, top={self.top:.4f})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Discrimination(Result, Mapping[object, float]):
    """How far ``keys`` discriminate ``target``: a mapping from value to rate, with all around it.

    Attributes:
        rate: the rate of the keys together; not a number where the target never varies.
        kind: identifier, partial, sketchy or zero; undefined where the target never varies.
        rows: how many rows it rests on; ``left_out`` those with suppressed cells that were dropped.
        entropy: H(X) in bits; ``residual`` is H(X | Y).
        identifying: how many values leave one outcome only; ``identified_rows`` their rows.
        details: one entry per value.
        notes: what a reader should know.
        inflation: what chance alone gives groups of these sizes, where that was asked for.
    """

    target: str
    keys_: tuple[str, ...] = field(metadata=document_field("keys"))
    rate: float
    kind: KeyKind
    rows: int
    left_out: int
    entropy: float
    residual: float
    identifying: int = field(metadata=document_field("identifying_values"))
    identified_rows: int
    details: tuple[ValueRate, ...] = field(default=(), metadata=document_field(hidden=True))
    notes: tuple[str, ...] = ()
    inflation: Inflation | None = None
    _places: dict[object, int] = field(default_factory=dict)

    @property
    def degenerate(self) -> bool:
        """Whether the target never varies, so that there is nothing to discriminate."""
        return self.kind == "undefined"

    def __repr__(self) -> str:
        return f"Discrimination({self.rate:.4f}, {self.kind}, {len(self.details)} values)"

    def __getitem__(self, value: object) -> float:
        return self.of(value).rate

    def __iter__(self) -> Iterator[object]:
        return iter(self._places)

    def __len__(self) -> int:
        return len(self._places)

    def of(self, value: object) -> ValueRate:
        """The entry of one value; raises ``NotObservedError`` where no row holds it."""
        if value not in self._places:
            raise NotObservedError(self.keys_)
        return self.details[self._places[value]]

    def to_dict(self, *, values: bool = False) -> dict[str, Any]:
        """Return plain values, with those of every value if asked for, which shows cells."""
        out = Result.to_dict(self)
        if values:
            out["values"] = [plain_value(one) | {"value": one.value} for one in self.details]
        return out


def discrimination_of_groups(
    target: str,
    names: tuple[str, ...],
    found: GroupRates,
    labels: Sequence[object] = (),
    *,
    left_out: int = 0,
    notes: tuple[str, ...] = (),
    inflation: Inflation | None = None,
) -> Discrimination:
    """Put what was measured into words; ``labels`` name the groups where values are wanted."""
    details = tuple(_details(found, labels))
    return Discrimination(
        target, names, found.rate, found.kind, int(found.sizes.sum()), left_out, found.entropy,
        found.residual, int(found.pure.sum()), found.pure_rows, details, notes, inflation,
        {entry.value: i for i, entry in enumerate(details)},
    )  # fmt: skip


def _details(found: GroupRates, labels: Sequence[object]) -> Iterator[ValueRate]:
    total = int(found.sizes.sum())
    for i, label in enumerate(labels):
        count, inside = int(found.sizes[i]), float(found.inside[i])
        share = count / total
        if found.entropy == 0.0:
            rate = alone = found.rate
        else:
            rate = 1.0 - share * inside / found.entropy
            alone = 1.0 - inside / found.entropy
        yield ValueRate(label, rate, count, share, alone, int(found.top[i]) / count)


def discrimination_rate(
    table: Table | str | PathLike[str],
    target: str,
    keys: str | Sequence[str],
    partition: object = None,
    *,
    values: bool = False,
    suppressed: Suppressed = "keep",
    undefined: float = float("nan"),
    permutations: int = 0,
) -> float | Discrimination:
    """Tell how far knowing ``keys`` shrinks what ``target`` can be: 0 not at all, 1 to one outcome.

    Definition: DR_X(Y) = 1 - H(X | Y) / H(X) in bits; of a value, 1 - p(y) H(X | Y = y) / H(X), so
    that 1 - DR_X(Y) is the sum of 1 - DR_X(y). A partition of a column is applied before anything
    else.
    Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, whose
    printed algorithms stop too early; its tables follow the definition.

    Args:
        table: the rows, wherever they are, or the name of a file; every column can be target or
            key, whatever its role.
        target: the column X whose outcomes are the anonymity set.
        keys: the column or columns Y that somebody knows.
        partition: which values count as one: blocks of the target's values (a mapping from block to
            values, or lists of values), or a mapping from column to such blocks for any columns;
            ``Partition`` and ``Cuts`` say more.
        values: also give the rate of each value, as a mapping with all figures around it.
        suppressed: rows with a cell ``*`` are kept as a value of its own, dropped, or such cells
            count as missing.
        undefined: what a target that never varies gives.
        permutations: with ``values``, shuffle the target so often to see what chance gives.

    Raises:
        InputError: a column is not there, or a partition overlaps or leaves values out.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"age": [22, 35, 22], "id": [1, 2, 3]}, schema={})
        >>> round(hm.discrimination_rate(people, "id", "age"), 4)
        0.5794
    """
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    held = count_tuples(as_table(table), lambda _: (target, *names))
    found = discriminate_tuples(
        held,
        target,
        names,
        partition,
        suppressed=suppressed,
        undefined=undefined,
        values=values,
        permutations=permutations if values else 0,
    )
    return found if values else found.rate


def discriminate_tuples(
    rows: Table | Tuples,
    target: str,
    keys: str | Sequence[str],
    partition: object = None,
    *,
    suppressed: Suppressed = "keep",
    undefined: float = float("nan"),
    values: bool = True,
    permutations: int = 0,
) -> Discrimination:
    """The rate with its class and, if ``values``, each value's figures."""
    held = Tuples.of(rows)
    table = held.table
    names = (keys,) if isinstance(keys, str) else tuple(keys)
    require_measurable(table, target, names, suppressed)
    bound = bind_partitions(table, (target, *names), target, partition, suppressed)
    columns = {
        name: code_column(table, name, bound.get(name)) for name in dict.fromkeys((target, *names))
    }
    keep = counting_rows(table, (target, *names), suppressed, columns)
    x, known = columns[target], [columns[name] for name in names]
    y, groups = group_rows(known, keep)
    counts = held.counts[keep]
    found = group_rates(x.codes[keep], x.size, y, groups, counts, undefined)
    notes = (held.note,) if held.note else ()
    return discrimination_of_groups(
        target,
        names,
        found,
        group_labels(known, y, groups, keep) if values else (),
        left_out=int(held.counts[~keep].sum()),
        notes=(*notes, *(note for blocks in bound.values() for note in blocks.notes)),
        inflation=(
            beside_chance(x.codes[keep], x.size, y, groups, counts, permutations)
            if permutations
            else None
        ),
    )
