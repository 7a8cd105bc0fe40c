"""Swapping: values or places change between people, so that every column keeps its values.

Definition: rank swapping exchanges a value with one whose rank is at most a share of the rows away;
    record swapping exchanges the areas of two alike households, those first who stand out in their
    area; data shuffling draws new normal scores of a column from its dependence on others and gives
    each row the value whose rank the drawn score has.
Source: Moore, "Controlled data-swapping techniques", 1996; Shlomo, Tudor and Groom, "Data swapping
    for protecting census tables", 2010; Muralidhar and Sarathy, "Data shuffling", 2006.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.masking.numeric_columns import numbers_in
from halfmask.masking.step import (
    MaskStep,
    MaskWords,
    Outcome,
    known_columns,
    one_column,
    register_mask,
    some_columns,
)
from halfmask.models.verdict import number, whole_number
from halfmask.table.values import is_number

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.masking.step import Rows
    from halfmask.table.table import Table

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_WIDE = 64  # window from which partners are drawn, not counted
_TRIES = 16
_LEAST = (
    "record-swap: share is the least that moves: every household that stands out in its area "
    "moves, however many do. A smaller k or fewer risk columns let fewer stand out."
)


@register_mask
@dataclass(frozen=True, slots=True)
class RankSwap(MaskStep):
    """Swap each value with one whose rank is at most ``within`` (a share of the rows) away.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"pay": [10, 20, 30, 40]}, schema={"pay": "quasi"})
        >>> release = hm.mask(people, hm.masks.RankSwap("pay", within=0.25))
        >>> sorted(release.to_arrow()["pay"].to_pylist())
        [10, 20, 30, 40]
    """

    name: ClassVar[str] = "rank-swap"
    words: ClassVar[MaskWords] = MaskWords(
        "Values change places with values of nearby rank.",
        "Telling a person's exact value, and matching people by it.",
        "That a person's value is near the one shown; the highest stay near the highest.",
    )

    columns: tuple[str, ...] | str = field(metadata=some_columns("ordered"))
    within: float = field(default=0.05, metadata=number(0, 1, open_low=True))

    def apply(self, rows: Rows) -> Outcome:
        """Swap each column for itself."""
        return Outcome({name: self._swap(rows, name) for name in self.columns})

    def _swap(self, rows: Rows, name: str) -> pa.ChunkedArray:
        from halfmask.kernels.masking.swapping import rank_partners, rank_partners_sampled

        encoded = rows.table.encode(name)
        places = np.flatnonzero(encoded.codes < len(encoded.values.drop_null()))
        size = len(places)
        window = max(1, int(float(self.within) * size))
        # Equal values stand in random order, so that no row is always the one that stays.
        places = rows.random.permutation(places)
        order = places[np.argsort(encoded.codes[places], kind="stable")]
        if window <= _WIDE:
            partner = rank_partners(size, window, rows.random.random(size))
        else:
            partner = rank_partners_sampled(size, window, rows.random.random((size, _TRIES)))
        taken = np.arange(len(rows))
        taken[order] = order[partner]
        return rows.table.arrow[name].take(pa.array(taken))


@register_mask
@dataclass(frozen=True, slots=True)
class RecordSwap(MaskStep):
    """Swap the areas of alike households, those first who stand out in their area.

    ``columns`` are the areas from coarse to fine; they move together. A household stands out where
    fewer than ``k`` people of an area share one of its members' ``risk`` columns (default: the
    other quasi-identifiers); it moves to another area of the coarsest level where it does. All who
    stand out move, and others until it is a ``share`` of all households: the least, not the most.
    ``facts`` say both shares. Partners have as many members and the same ``similar``
    columns; what stands in no household is one of its own.
    """

    name: ClassVar[str] = "record-swap"
    words: ClassVar[MaskWords] = MaskWords(
        "Alike households in different areas change places.",
        "Finding people who are rare in their area, since nobody knows whether a row stayed.",
        "People who are rare everywhere, and what is said of them besides their area.",
    )

    columns: tuple[str, ...] | str = field(metadata=some_columns())
    share: float = field(default=0.05, metadata=number(0, 1))
    k: int = field(default=3, metadata=whole_number(1))
    similar: tuple[str, ...] | str = field(default=(), metadata=some_columns(changed=False))
    risk: tuple[str, ...] | str | None = field(default=None, metadata=some_columns(changed=False))
    household: str | None = field(default=None, metadata=one_column(changed=False))

    def faults(self, table: Table) -> list[str]:  # noqa: ARG002 - its own columns are enough
        """Refuse areas that are compared with themselves."""
        twice = [name for name in self.columns if name in (*self.similar, *(self.risk or ()))]
        return [f"column '{name}' is an area, and cannot say who is alike." for name in twice]

    def apply(self, rows: Rows) -> Outcome:
        """Swap the areas."""
        from halfmask.kernels.masking.swapping import area_partners

        home, households = self._homes(rows)
        first = np.zeros(households, np.int64)
        first[home[::-1]] = np.arange(len(rows) - 1, -1, -1)  # the first row of each household
        levels = _areas(rows, self.columns)
        risky = self._risky(rows, levels, home, households)
        wanted, level = self._plan_moves(rows, risky, households)
        alike = self._alike(rows, home, households, first)
        # Alike households stand together, in random order: the next one is a random partner.
        order = np.lexsort((rows.random.random(households), alike))
        starts = np.concatenate(([0], np.flatnonzero(np.diff(alike[order])) + 1, [households]))
        areas = np.array([one[first] for one in levels])
        partner = area_partners(starts, order, wanted, areas, level)
        # Row for row, since members of one household may stand in different areas.
        order = np.argsort(home, kind="stable")
        sizes = np.bincount(home, minlength=households)
        starts = np.cumsum(sizes) - sizes
        own = home[order]
        taken = np.empty(len(rows), np.int64)
        taken[order] = order[starts[partner[own]] + np.arange(len(rows)) - starts[own]]
        unmoved = int(np.count_nonzero((wanted == 2) & (partner == np.arange(households))))
        moved = int(np.count_nonzero(partner != np.arange(households)))
        swapped = {n: rows.table.arrow[n].take(pa.array(taken)) for n in self.columns}
        notes: tuple[str, ...] = (_LEAST,)
        if unmoved:
            notes += (
                f"{unmoved:,} households stand out in their area and found no partner that is "
                "alike: name fewer similar columns.",
            )
        facts = {
            "swapped_share": moved / max(households, 1),
            "standing_out_share": int(np.count_nonzero(wanted == 2)) / max(households, 1),
            "left_standing_out": unmoved,
        }
        return Outcome(swapped, facts=facts, notes=notes)

    def _homes(self, rows: Rows) -> tuple[Ints, int]:
        """The household of each row, or its person; where none is named the row is its own."""
        unit = self.household or rows.table.schema.person
        if unit is None:
            return rows.people()
        encoded = rows.table.encode(unit)
        codes, known = encoded.codes.astype(np.int64), len(encoded.values.drop_null())
        alone = codes >= known
        codes[alone] = known + np.arange(np.count_nonzero(alone))
        _, home = np.unique(codes, return_inverse=True)
        return home.reshape(-1), int(home.max(initial=-1)) + 1

    def _risky(
        self, rows: Rows, levels: list[Ints], home: Ints, households: int
    ) -> NDArray[np.int8]:
        """The coarsest level at which each household stands out; -1: none."""
        from halfmask.kernels.grouping import number_keys

        quasi = [n for n in rows.table.schema.quasi if n not in self.columns]
        keys = group_ids(rows.table, quasi if self.risk is None else self.risk)
        found = np.full(households, -1, np.int8)
        # From fine to coarse: who stands out in the coarser area has to move farther, and is
        # written last.
        for depth in range(len(levels) - 1, -1, -1):
            pairs = keys * (levels[depth].max(initial=0) + 1) + levels[depth]
            ids, _ = number_keys(pairs.astype(np.uint64))
            rare = rows.people_sharing(ids) < self.k
            found[np.unique(home[rare])] = depth
        return found

    def _plan_moves(
        self, rows: Rows, risky: NDArray[np.int8], households: int
    ) -> tuple[NDArray[np.int8], NDArray[np.int8]]:
        """Who must move, who shall, and how far."""
        wanted = np.zeros(households, np.int8)
        wanted[risky >= 0] = 2
        others = np.flatnonzero(risky < 0)
        missing = float(self.share) * households - np.count_nonzero(risky >= 0)
        many = min(len(others), max(0, int(np.ceil(missing))))
        wanted[rows.random.choice(others, many, replace=False)] = 1
        level = np.where(risky >= 0, risky, len(self.columns) - 1).astype(np.int8)
        return wanted, level

    def _alike(self, rows: Rows, home: Ints, households: int, first: Ints) -> Ints:
        """A number for each household, the same for those that may change places."""
        size = np.bincount(home, minlength=households)
        if not self.similar:
            return size.astype(np.int64)
        of_row = group_ids(rows.table, self.similar)
        if self.household is None:
            key = of_row[first]
        else:  # the members' values together, whatever their order
            mixed = (of_row.astype(np.uint64) + np.uint64(1)) * np.uint64(0x9E3779B97F4A7C15)
            mixed ^= mixed >> np.uint64(29)
            total = np.zeros(households, np.uint64)
            np.add.at(total, home, mixed * mixed)
            _, places = np.unique(total, return_inverse=True)
            key = places.reshape(-1)
        _, ids = np.unique(key * (size.max(initial=0) + 1) + size, return_inverse=True)
        return np.asarray(ids.reshape(-1), dtype=np.int64)


def _areas(rows: Rows, names: tuple[str, ...] | str) -> list[Ints]:
    """Per level the area of each row; a fine area is one inside its coarser ones."""
    return [group_ids(rows.table, names[: depth + 1]) for depth in range(len(names))]


def group_ids(table: Table, names: Any) -> Ints:
    """A number for each row, the same for rows that agree on the columns."""
    from halfmask.kernels.grouping import number_keys

    ids = np.zeros(len(table), np.int64)
    for name in names:
        encoded = table.encode(name)
        ids, _ = number_keys((ids * len(encoded.values) + encoded.codes).astype(np.uint64))
    return ids


@register_mask
@dataclass(frozen=True, slots=True)
class Shuffle(MaskStep):
    """Shuffle the values of numeric columns, keeping how they go with others.

    ``given`` are the columns whose dependence is kept (default: all other columns of numbers that
    leave and are not shuffled). Every column keeps its values exactly; the row a value came from
    plays no part beyond what ``given`` tells.
    """

    name: ClassVar[str] = "shuffle"
    words: ClassVar[MaskWords] = MaskWords(
        "Values are dealt out anew, by what other columns let expect.",
        "Telling a person's own value: the one shown depends on the other columns only.",
        "What the other columns let expect of a person, and values that are rare in themselves.",
    )

    columns: tuple[str, ...] | str = field(metadata=some_columns("numbers"))
    given: tuple[str, ...] | str | None = field(
        default=None, metadata=some_columns("numbers", changed=False)
    )

    def apply(self, rows: Rows) -> Outcome:
        """Deal the values out."""
        from scipy.special import ndtri

        given = known_columns(self.given, self.columns, rows.table)
        if self.given is None:  # ranks are made of numbers alone
            given = tuple(name for name in given if is_number(rows.table.arrow[name].type))
        scores = np.array([_scores(rows, name, ndtri) for name in self.columns])
        known = np.array([_middle_scores(rows, name, ndtri) for name in given])
        drawn = _conditional(scores, known.reshape(len(given), len(rows)), rows.random)
        out = {}
        for place, name in enumerate(self.columns):
            there = np.flatnonzero(~np.isnan(scores[place]))
            ranked = there[np.argsort(scores[place][there], kind="stable")]
            target = there[np.argsort(drawn[place][there], kind="stable")]
            taken = np.arange(len(rows))
            taken[target] = ranked
            out[name] = rows.table.arrow[name].take(pa.array(taken))
        return Outcome(out, facts={"given": list(given)})


def _scores(rows: Rows, name: str, ndtri: Any) -> Floats:
    """Normal scores of the ranks, equal values in random order; NaN where a value is missing."""
    numbers = numbers_in(rows.table, name)
    places = rows.random.permutation(np.flatnonzero(numbers.there))
    order = places[np.argsort(numbers.values[places], kind="stable")]
    out = np.full(len(numbers.values), np.nan)
    out[order] = ndtri((np.arange(len(order)) + 0.5) / max(len(order), 1))
    return out


def _middle_scores(rows: Rows, name: str, ndtri: Any) -> Floats:
    """Normal scores of the ranks, equal values sharing one; NaN where a value is missing."""
    encoded = rows.table.encode(name)
    held = len(encoded.values.drop_null())
    counts = np.bincount(encoded.codes, minlength=held)[:held]
    ranks = np.cumsum(counts) - counts / 2
    scores = np.append(ndtri(ranks / max(int(counts.sum()), 1)), np.nan)
    found: Floats = scores[np.minimum(encoded.codes, held)]
    return found


def _conditional(shuffled: Floats, given: Floats, random: np.random.Generator) -> Floats:
    """New scores with the distribution of ``shuffled`` under ``given``.

    How a column goes with others is learned from the rows that have it, two columns from those that
    have both: rows without a value would seem to go with nothing. What is not known of ``given``
    counts as its middle.
    """
    there = ~np.isnan(shuffled)
    given = np.nan_to_num(given)
    expected = np.zeros_like(shuffled)
    if len(given):
        for place, one in enumerate(there):
            held = given if one.all() else given[:, one]
            across, others = held @ shuffled[place][one], held @ held.T
            expected[place] = (across @ np.linalg.pinv(others, hermitian=True)) @ given
    rest = np.where(there, shuffled - expected, 0.0)
    together = there.astype(np.float64) @ there.T.astype(np.float64)
    spread = rest @ rest.T / np.maximum(together, 1.0)
    weights, directions = np.linalg.eigh(spread)
    root = directions * np.sqrt(np.maximum(weights, 0.0))
    found: Floats = expected + root @ random.standard_normal(shuffled.shape)
    return found
