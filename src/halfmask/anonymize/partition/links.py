"""Rows that must stand together and rows that may not, and a first division that keeps them.

Links are named by columns: rows of one value. The heuristics know none of them, and above some
thirty rows column generation may find no whole division by itself. So one is built here: bonds and
single rows are put together one by one, each time what brings a class nearest to its demands.

A reader takes classes that publish the same labels for one, so that rows that may not stand
together may not stand in two such classes either. A search that keeps only classes of rows apart
finds that out at the end, so where it happens it is made again with ``PublishedClasses``.
"""

from __future__ import annotations

import time
from dataclasses import dataclass
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.anonymize.partition.methods import LINKS
from halfmask.anonymize.partition.widths import kinds_of
from halfmask.errors import UnsatisfiableError
from halfmask.metrics.partition import sorted_classes
from halfmask.release.labels import label_members, required_sharing
from halfmask.release.partition import RowPartition
from halfmask.table.columns import require_known

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.anonymize.partition.optimum import Instance
    from halfmask.anonymize.partition.task import PartitionTask

    Ints = NDArray[np.int64]

_TRIES, _LEAST = 200, 30  # at most, and whatever the time
_SHARE = 0.25  # of the time that is left


def linked_codes(task: PartitionTask, option: str) -> Ints:
    """Which rows of a task are linked with each other; -1: with nobody."""
    name = task.options.get(option)
    if name is None:
        return np.full(len(task), -1, dtype=np.int64)
    encoded = task.table.encode(str(name))
    codes = np.asarray(encoded.codes[task.rows], dtype=np.int64)
    if encoded.values.null_count:
        present = encoded.values.is_valid().to_numpy(zero_copy_only=False)
        codes = np.where(present[codes], codes, -1)
    counts = np.bincount(codes[codes >= 0], minlength=len(encoded.values))
    several = counts > 1
    number = np.where(several, np.cumsum(several) - 1, -1)
    return np.where(codes >= 0, number[codes], -1)


@dataclass(frozen=True, slots=True, eq=False)
class PublishedClasses:
    """What classes publish, and which rows may not be seen in one.

    Attributes:
        task: what is divided.
        apart: per row of the task, which rows it is kept apart from; -1: none.
        need: per row of the table, how many people its values must be shared with to be shown.
    """

    task: PartitionTask
    apart: Ints
    need: Ints

    @classmethod
    def of(cls, task: PartitionTask) -> PublishedClasses:
        """Of the rows that the task keeps apart."""
        need = required_sharing(task.table, task.models)
        return cls(task, linked_codes(task, "cannot_link"), need)

    def alike(self, ids: Ints) -> tuple[int, int] | None:
        """Two classes of a division that look alike and hold rows that are kept apart, or None."""
        order, begins = sorted_classes(ids)
        held = np.flatnonzero(self.apart >= 0)
        seen = np.stack((self._numbers(order, begins[:-1])[ids[held]], self.apart[held]))
        kinds, place, count = np.unique(seen, axis=1, return_inverse=True, return_counts=True)
        if kinds.shape[1] == seen.shape[1]:
            return None
        first, second = held[np.flatnonzero(place.reshape(-1) == np.argmax(count > 1))[:2]]
        return int(ids[first]), int(ids[second])

    def exclusive(self, members: Sequence[tuple[int, ...]]) -> Any:
        """Per look and kind of rows kept apart, the classes of which one may be taken at most.

        None where no two classes exclude each other.
        """
        from scipy.sparse import coo_array

        sizes = np.fromiter((len(one) for one in members), np.int64, len(members))
        flat = np.fromiter(chain.from_iterable(members), np.int64, int(sizes.sum()))
        kinds = self.apart[flat]
        held = kinds >= 0
        column = np.repeat(np.arange(len(members)), sizes)[held]
        look = self._numbers(flat, np.cumsum(sizes) - sizes)[column]
        # A class of two such rows is too dear to be taken, and counts once.
        triples = np.unique(np.stack((look, kinds[held], column)), axis=1)
        _, place, count = np.unique(triples[:2], axis=1, return_inverse=True, return_counts=True)
        several = count > 1
        if not several.any():
            return None
        number = np.cumsum(several) - 1
        place = place.reshape(-1)
        kept = several[place]
        shape = (int(several.sum()), len(members))
        entries = np.ones(int(kept.sum()))
        return coo_array((entries, (number[place[kept]], triples[2][kept])), shape=shape).tocsc()

    def _numbers(self, flat: Ints, starts: Ints) -> Ints:
        """Per class a number that classes with the same labels share."""
        table, rows = self.task.table, self.task.rows
        kinds = kinds_of(self.task)
        labels = label_members(table, rows[flat], starts, kinds, self.need, rows)
        return RowPartition({name: table.schema.columns[name] for name in kinds}, labels).same(
            table
        )


def keeps_links(instance: Instance, ids: Ints) -> bool:
    """Whether a division parts no bond and joins no rows that stand apart, for a reader either."""
    if instance.published is not None and instance.published.alike(ids) is not None:
        return False
    together = np.equal.outer(ids, ids)
    if (together & (instance.far >= instance.apart)).any():
        return False
    bond = instance.rules.bond
    bound = np.equal.outer(bond, bond) & (bond >= 0)
    return not (bound & ~together).any()


def require_links(task: PartitionTask) -> str:
    """The first option that links rows; none: empty.

    Raises:
        UnsatisfiableError: some rows must stand together and may not.
    """
    given = [name for name in LINKS if task.options.get(name) is not None]
    require_known((str(task.options[name]) for name in given), task.table.arrow.column_names)
    if len(given) == 2:
        must, cannot = (linked_codes(task, name) for name in LINKS)
        both = np.unique(np.stack((must, cannot))[:, (must >= 0) & (cannot >= 0)], axis=1)
        rows = int(((must >= 0) & (cannot >= 0)).sum())
        if rows > both.shape[1]:
            raise UnsatisfiableError(
                "Some rows that must stand together may not: "
                f"{task.options['must_link']} and {task.options['cannot_link']} contradict."
            )
    return given[0] if given else ""


def linked_division(instance: Instance, seed: int | None) -> Ints | None:
    """A division that keeps demands and links; None where none was found."""
    random = np.random.default_rng(seed)
    until = time.monotonic() + min(_SHARE * instance.left, 15.0)
    for tries in range(_TRIES):
        found = _build_classes(instance, random)
        if found is not None and instance.published is not None:
            found = _separate_alike(instance, instance.published, found)
        if found is not None:
            return found
        if tries >= _LEAST and time.monotonic() > until:
            break
    return None


def _build_classes(instance: Instance, random: np.random.Generator) -> Ints | None:
    """Build classes of the hardest units first; then put what is left where it does no harm."""
    bond = instance.rules.bond
    units = [np.flatnonzero(bond == one) for one in range(len(instance.rules.bonds))]
    units += [np.array([row]) for row in np.flatnonzero(bond < 0)]
    if not all(_may_join(instance, unit) for unit in units):
        return None
    noise = random.random(len(units))
    hard = [-_lacking(instance, unit) - one for unit, one in zip(units, noise, strict=True)]
    left = [units[i] for i in np.argsort(hard)]
    classes: list[Ints] = []
    lone: list[Ints] = []  # units from which no class could be made
    while left:
        members, others = left[0], left[1:]
        while _lacking(instance, members) > 0:
            best = _best(instance, members, others, random)
            if best is None:
                break
            members = np.concatenate((members, others.pop(best)))
        if _lacking(instance, members) > 0:
            lone.append(left.pop(0))
        else:
            classes.append(members)
            left = others
    for unit in lone:
        joined = [np.concatenate((one, unit)) for one in classes]
        fits = [i for i, one in enumerate(joined) if _may_join(instance, one)]
        fits = [i for i in fits if _lacking(instance, joined[i]) <= 0]
        if not fits:
            return None
        near = [float(instance.far[np.ix_(unit, classes[i])].mean()) for i in fits]
        chosen = fits[int(np.argmin(near))]
        classes[chosen] = joined[chosen]
    ids = np.empty(len(instance), dtype=np.int64)
    for number, members in enumerate(classes):
        ids[members] = number
    return ids


def _separate_alike(instance: Instance, published: PublishedClasses, ids: Ints) -> Ints | None:
    """Merge classes that look alike and may not with near ones, until they look different.

    Two classes that meet what their rows demand do so together as well.
    """
    while (alike := published.alike(ids)) is not None:
        best: tuple[float, int, int] | None = None
        for one in alike:
            mine = np.flatnonzero(ids == one)
            for other in np.unique(ids[ids != one]).tolist():
                rows = np.flatnonzero(ids == other)
                if not _may_join(instance, np.concatenate((mine, rows))):
                    continue
                near = float(instance.far[np.ix_(mine, rows)].mean())
                if best is None or near < best[0]:
                    best = near, one, other
        if best is None:
            return None
        ids = np.where(ids == best[2], best[1], ids)
        ids = np.unique(ids, return_inverse=True)[1].reshape(-1)
    return ids


def _best(
    instance: Instance, members: Ints, others: list[Ints], random: np.random.Generator
) -> int | None:
    """The unit that may join and brings a class nearest to its demands, then the nearest one."""
    best: tuple[float, float] | None = None
    place = None
    for i, unit in enumerate(others):
        joined = np.concatenate((members, unit))
        if not _may_join(instance, joined):
            continue
        near = float(instance.far[np.ix_(unit, members)].mean()) * (0.5 + random.random())
        found = (_lacking(instance, joined), near)
        if best is None or found < best:
            best, place = found, i
    return place


def _may_join(instance: Instance, rows: Ints) -> bool:
    return bool((instance.far[np.ix_(rows, rows)] < instance.apart).all())


def _lacking(instance: Instance, rows: Ints) -> float:
    """How far a class is from what its rows demand: rows and values it lacks; 0: nothing."""
    d = instance.rules.demands
    lacking = max(int(d.k[rows].max()) - len(rows), 0.0)
    for s in range(d.values.shape[1]):
        held = d.values[rows, s]
        counts = np.bincount(held[held >= 0], minlength=d.shares.shape[1])
        lacking += max(int(d.l[rows, s].max()) - int((counts > 0).sum()), 0)
        t = float(d.t[rows, s].min())
        if t < 1.0:
            total = int(counts.sum())
            moved = np.maximum(counts / total - d.shares[s], 0.0).sum() if total else 1.0
            lacking += max(float(moved) - t, 0.0) * len(rows)
    return float(lacking)
