"""m-confidentiality: what readers learn who know how the classes were chosen.

And the tree of cuts that keeps it. Quasi-identifiers alone decide the cuts; limits, how often a
value may stand in a node, follow from numbers of rows, and the size of the smallest parts from how
often the most frequent value stands in the whole table, which every release tells. A reader who
knows everybody's quasi-identifiers can make the same tree.

A node is cut where no value stands in either part more often than its limit, and then only by
chance: with chance d it is left whole, the less the larger it is. So a node that is published whole
may be one that could not be cut, with chance 1, or one that could be, with chance d; of all ways to
deal its values to its people, each is weighed so. Let x be the share of its rows that hold a value,
and q the share of all ways in which it cannot be cut. Of the ways that give somebody this value, at
most min(1, q / x) cannot be cut, so the chance of the link is at most
(d x + (1 - d) z) / (d + (1 - d) z) with z = min(q, x). A limit is the highest count that keeps this
at 1/m.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, field
from fractions import Fraction
from typing import TYPE_CHECKING, ClassVar

import numpy as np

from halfmask.models.statistics import histogram, occupied_classes, pass_empty, reduce
from halfmask.models.verdict import (
    SOUGHT,
    KernelDemand,
    Model,
    Option,
    Verdict,
    Words,
    judge,
    register_model,
    sensitive_column,
    whole_number,
)

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.table.classes import Classes
    from halfmask.table.table import Table

    Ints = NDArray[np.int64]


@register_model
@dataclass(frozen=True, slots=True)
class MConfidentiality(Model):
    """Require that nobody is linked to a value with more than 1 in ``m``, the method being known.

    ``anonymize`` keeps it by one method, ``"confidential"``: where rows are cut is decided by
    quasi-identifiers alone, and whether a cut is made partly by chance.

    Definition: of all tables with the same quasi-identifiers and sensitive values, each weighed by
    how likely the method publishes this release of it, a share of at most 1/m gives any person any
    one value. For that, no value may be held by more than one of m rows of a class; this is what
    classes alone can show.
    Source: Wong, Fu, Wang and Pei, "Minimality attack in privacy preserving data publishing", 2007.

    Attributes:
        m: one in how many.
        column: the sensitive column.

    Example:
        >>> MConfidentiality(3, "disease").to_dict()
        {'model': 'm-confidentiality', 'm': 3, 'column': 'disease'}
    """

    family: ClassVar[str] = "m-confidentiality"
    monotone: ClassVar[bool] = True  # the most frequent value of a merged class is no more frequent
    blind: ClassVar[bool] = True
    option: ClassVar[Option] = Option(
        "m-confidentiality",
        "m-confidentiality: at most 1 in M for any value of anybody, also for readers who know the "
        "method.",
        "m: one in how many, the method being known",
    )
    words: ClassVar[Words] = Words(
        "Whoever runs the method on every table that may be behind the release links nobody to any "
        "value with a chance above 1 in m.",
        f"{SOUGHT} The attacker knows the method and its promises too, and takes all tables that "
        "fit for equally likely.",
        "Values may be alike in meaning. Who knows that some values are likelier for some people "
        "learns more.",
        "at least",
    )

    m: int = field(metadata=whole_number(2, stronger=1))
    column: str = field(metadata=sensitive_column())

    def faults(self, table: Table) -> list[str]:
        """Missing values, among which nobody hides, and people with several rows."""
        found = []
        if table.encode(self.column).values.null_count:
            found.append(
                f"column '{self.column}' has missing values, among which nobody can hide: fill "
                "them in, or leave these people out."
            )
        if table.schema.person is not None:
            people = table.encode(table.schema.person)
            rows = np.bincount(people.codes, minlength=len(people.values))
            several = int((rows > 1).sum())
            if several:
                found.append(
                    f"{several:,} people have several rows, of which one value each could be told: "
                    "keep one row of each person."
                )
        return found

    def kernel_demand(self, table: Table) -> KernelDemand:  # noqa: ARG002 - the same for every table
        """As many rows, each with a value of its own."""
        return KernelDemand(rows=self.m)

    def passes(self, classes: Classes) -> NDArray[np.bool_]:
        """Tell for each class whether no value is above one in ``m`` rows."""
        return pass_empty(classes, _most(classes, self.column) * self.m <= classes.rows)

    def check(self, classes: Classes) -> Verdict:
        """Return the verdict of the classes alone; more than ``m`` is never said to be achieved."""
        live = occupied_classes(classes)
        reached = classes.rows[live] // np.maximum(_most(classes, self.column)[live], 1)
        reached = np.minimum(reached, self.m)
        return judge(
            self,
            classes,
            self.passes(classes),
            required=self.m,
            achieved=int(reached.min()) if live.any() else 0,
        )


def _most(classes: Classes, column: str) -> NDArray[np.int64]:
    """Per class, how many rows hold its most frequent value."""
    values = histogram(classes, column)
    return reduce(np.maximum, values.counts, values.starts)


STOP = Fraction(1, 8)  # the chance that the smallest cut which could be made is not
_MARGIN = 1e-6  # of chances that are computed in floating point
_PARTS = 20_000  # smallest parts at most
_GROWTH = 1.25  # from one size of the smallest parts to the next


@dataclass(frozen=True, slots=True, eq=False)
class QuasiTree:
    """Nodes in the order in which they are met, parts after what they are cut from.

    Attributes:
        parent: per node, what it is cut from; -1: everybody.
        parts: per node, its two parts; -1: it is not cut.
        rows: per node, how many rows it holds.
        end: per node, the first node behind all that are below it.
        leaf: per row, its smallest node.
    """

    parent: Ints
    parts: Ints
    rows: Ints
    end: Ints
    leaf: Ints

    def __len__(self) -> int:
        return len(self.parent)

    def cut(self, least: int) -> NDArray[np.bool_]:
        """Which nodes are cut where parts of fewer rows than ``least`` are not made."""
        return np.asarray((self.parts[:, 0] >= 0) & (self.rows[self.parts].min(axis=1) >= least))


def grow(places: NDArray[np.int32], need: Ints) -> QuasiTree:
    """Cut rows at the middle of the widest column as long as both parts serve everybody in them.

    Args:
        places: per row and column, where its value stands.
        need: per row, how many rows its class must hold.
    """
    least = max(1, len(places) // _PARTS)
    widths = np.maximum(places.max(axis=0) - places.min(axis=0), 1)
    parent: list[int] = []
    parts: list[list[int]] = []
    sizes: list[int] = []
    leaf = np.zeros(len(places), dtype=np.int64)
    waiting: list[tuple[int, int, Ints]] = [(-1, 0, np.arange(len(places)))]
    while waiting:
        above, side, rows = waiting.pop()
        node = len(parent)
        parent.append(above)
        parts.append([-1, -1])
        sizes.append(len(rows))
        if above >= 0:
            parts[above][side] = node
        found = _cut(places[rows], widths, need[rows], least)
        if found is None:
            leaf[rows] = node
        else:
            waiting += [(node, 1, rows[~found]), (node, 0, rows[found])]
    end = np.arange(1, len(parent) + 1)
    for node in range(len(parent) - 1, 0, -1):
        end[parent[node]] = max(end[parent[node]], end[node])
    return QuasiTree(
        np.array(parent, dtype=np.int64), np.array(parts, dtype=np.int64),
        np.array(sizes, dtype=np.int64), end, leaf,
    )  # fmt: skip


def _cut(
    places: NDArray[np.int32], widths: NDArray[np.int32], need: Ints, least: int
) -> NDArray[np.bool_] | None:
    """Which rows stand in the first part; None where no column can be cut."""
    spread = (places.max(axis=0) - places.min(axis=0)) / widths
    for column in np.argsort(-spread, kind="stable").tolist():
        if spread[column] == 0:
            return None
        here = places[:, column]
        middle = np.partition(here, len(here) // 2)[len(here) // 2]
        sides = [here < middle, here <= middle]
        for first in sorted(sides, key=lambda one: abs(2 * int(one.sum()) - len(one))):
            inside = int(first.sum())
            if not max(least, 1) <= inside <= len(first) - max(least, 1):
                continue
            if need[first].max() <= inside and need[~first].max() <= len(first) - inside:
                return np.asarray(first)
    return None


@dataclass(frozen=True, slots=True, eq=False)
class Limits:
    """How often a value may stand in nodes.

    Attributes:
        least: the rows of the smallest parts.
        cut: per node, whether it may be cut.
        most: per node, how often a value may stand in it.
    """

    least: int
    cut: NDArray[np.bool_]
    most: Ints

    def stop(self, rows: int) -> Fraction:
        """The chance that a node of so many rows is left whole, though it could be cut."""
        return stop_of(rows, self.least)


def stop_of(rows: int, least: int) -> Fraction:
    """``STOP`` for nodes of twice the smallest parts, half of it for those of twice as many rows.

    So about as many rows stand in classes that were left whole by chance at every size.
    """
    return STOP * min(Fraction(1), Fraction(2 * least, rows))


def node_limits(tree: QuasiTree, m: int, most: int) -> Limits:
    """The limits with the smallest parts for which the whole table can be published.

    Args:
        tree: all cuts that can be made.
        m: one in how many is promised.
        most: how often the most frequent value stands in the table, at most one in ``m`` rows.
    """
    least = float(max(int(tree.rows.min()), m))
    # Half way between what the table needs and what is promised: parts differ from the whole.
    wanted = max(most, math.isqrt(most * int(tree.rows[0]) // m))
    while True:
        found = _limits(tree, m, int(least))
        if found.most[0] >= wanted or not found.cut[0]:
            return found
        least = max(least * _GROWTH, least + 1)


def _limits(tree: QuasiTree, m: int, least: int) -> Limits:
    cut, most = tree.cut(least), tree.rows // m
    known: dict[tuple[int, ...], int] = {}
    for node in range(len(tree) - 1, -1, -1):
        if not cut[node]:
            continue
        first, second = tree.parts[node].tolist()
        case = tuple(int(one) for one in (*tree.rows[[first, second]], *most[[first, second]]))
        if not (case[2] and case[3]):
            cut[node] = False  # a part could never be published
            continue
        if case not in known:
            known[case] = _limit(case[:2], case[2:], m, least)
        most[node] = known[case]
    return Limits(least, cut, most)


def _limit(rows: tuple[int, ...], most: tuple[int, ...], m: int, least: int) -> int:
    """The highest count in a node of two parts that keeps every link at 1/m."""
    everybody = sum(rows)
    stop = stop_of(everybody, least)
    low, high = 0, everybody // m
    while low < high:
        count = (low + high + 1) // 2
        # As many values at most can stand too often in a part.
        chance = sum(
            everybody // (limit + 1) * _tail(everybody, count, part, limit + 1)
            for part, limit in zip(rows, most, strict=True)
        )
        if _is_kept(Fraction(count, everybody), chance, float(stop), m):
            low = count
        else:
            high = count - 1
    return low


def _is_kept(share: Fraction, chance: float, stop: float, m: int) -> bool:
    """Whether nobody is linked above 1/m to a value that ``share`` of a node's rows hold.

    ``chance`` is at most that of a node which cannot be cut, its values dealt at random.
    """
    if chance == 0:
        return share * m <= 1
    shut = min(chance * (1 + _MARGIN), float(share))
    link = stop * float(share) + (1 - stop) * shut
    return link * m <= (stop + (1 - stop) * shut) * (1 - _MARGIN)


def _tail(rows: int, marked: int, drawn: int, least: int) -> float:
    """At most, the chance that ``least`` of so many ``marked`` rows are among those ``drawn``."""
    if least > min(marked, drawn):
        return 0.0
    if drawn - least > rows - marked:
        return 1.0
    ratio = (marked - least) * (drawn - least)
    next_ = (least + 1) * (rows - marked - drawn + least + 1)
    if ratio >= next_:
        return 1.0
    log = _choose(marked, least) + _choose(rows - marked, drawn - least) - _choose(rows, drawn)
    return min(1.0, math.exp(log) / (1 - ratio / next_))


def _choose(rows: int, some: int) -> float:
    return math.lgamma(rows + 1) - math.lgamma(some + 1) - math.lgamma(rows - some + 1)
