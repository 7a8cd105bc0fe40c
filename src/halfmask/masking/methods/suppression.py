"""Local suppression: the fewest cells that, once blank, let nobody stand out.

Definition: choose cells to blank, at least total cost, so that every row is shared by k people.
    ``reading="value"``: a blank cell is a value of its own, so that whole classes hold k people;
    ``reading="any"``: a blank cell matches every value, as sdcMicro and mu-Argus count.
Source: Hundepool and others, "Statistical Disclosure Control", 2012, section 3.2; Templ, Kowarik
    and Meindl, "Statistical disclosure control for micro-data using the R package sdcMicro", 2015.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import UnsatisfiableError
from halfmask.masking.step import MaskStep, MaskWords, Outcome, register_mask, some_columns
from halfmask.models.blank_cells import WildcardAnonymity
from halfmask.models.verdict import whole_number, word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.masking.step import Rows
    from halfmask.table.table import Table

    Bools = NDArray[np.bool_]
    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_READINGS = {"value": "a value of its own", "any": "matching any value"}
_MOST = 12  # columns: all sets of them are looked at
_PAIRS = 4_000_000_000  # comparisons of rows that the search of the other reading may make
_EXACT = 6_000  # rows times sets of columns up to which an optimum is proven
_BOUND = 60_000_000  # rows times sets of columns up to which a bound is counted
_SECONDS = 20.0


@register_mask
@dataclass(frozen=True, slots=True)
class LocalSuppression(MaskStep):
    """Blank as few cells as possible so that everybody shares their row with ``k`` people.

    ``columns`` default to the quasi-identifiers. Columns in ``importance`` are blanked last, the
    first of them most reluctantly. ``reading`` says what a blank cell counts as, and the release is
    checked by that rule. For ``"any"`` a row loses only what it lacks itself; k - 1 rows that are
    blank altogether would satisfy that rule too, and protect nobody. One ``k`` holds for all:
    people's own k are not used, and the rows are refused where one is not kept. Give the highest.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"sex": ["f", "f", "f", "m"]}, schema={"sex": "quasi"})
        >>> release = hm.mask(people, hm.masks.LocalSuppression(k=2))
        >>> release.steps[0]["facts"]["suppressed"]
        2
    """

    name: ClassVar[str] = "local-suppression"
    words: ClassVar[MaskWords] = MaskWords(
        "Single cells are blanked until nobody stands out.",
        "Finding a person by these columns: at least k people share them.",
        "What all who share a row have in common; and by the reading 'any', a row that matches "
        "others only through their blanks is still the likeliest.",
    )

    k: int = field(metadata=whole_number(2))
    columns: tuple[str, ...] | str | None = field(default=None, metadata=some_columns())
    reading: str = field(default="value", metadata=word("A blank cell counts as", **_READINGS))
    importance: tuple[str, ...] | str = field(default=(), metadata=some_columns(changed=False))

    def faults(self, table: Table) -> list[str]:
        """Refuse too many columns, and none."""
        names = self._names(table)
        if not names:
            return ["no column is named, and none is a quasi-identifier."]
        if len(names) > _MOST:
            return [f"{len(names)} columns are too many: name at most {_MOST}."]
        return [
            f"column '{one}' is important, and not among the columns that are blanked."
            for one in self.importance
            if one not in names
        ]

    def _names(self, table: Table) -> tuple[str, ...]:
        return tuple(self.columns) if self.columns is not None else table.schema.quasi

    def apply(self, rows: Rows) -> Outcome:
        """Blank cells."""
        names = self._names(rows.table)
        owner, people = rows.people()
        if people < self.k:
            raise UnsatisfiableError(
                f"local-suppression: {people:,} people are fewer than k = {self.k:,}: lower k."
            )
        encoded = [rows.table.encode(name) for name in names]
        codes = np.array([one.codes.astype(np.int64) for one in encoded]).T
        empty = np.array([one.codes >= len(one.values.drop_null()) for one in encoded]).T
        alone = people == len(rows)
        cost = _costs(names, self.importance)
        task = SuppressionTask(codes, empty, None if alone else owner, self.k, cost, rows.random)
        blank, gap, bound = _solve(task, self.reading)
        # A cell that was missing before shows nothing more or less.
        blank &= ~empty
        out = {
            name: _without(rows.table.arrow[name], blank[:, c])
            for c, name in enumerate(names)
            if blank[:, c].any()
        }
        total = int(blank.sum())
        facts = {
            "suppressed": total,
            "suppressed_share": total / max(blank.size, 1),
            "suppressed_by_column": {n: int(blank[:, c].sum()) for c, n in enumerate(names)},
            "reading": self.reading,
            "own_k": "not used: k is the same for everybody",
            "gap": gap,
            "fewest_possible": bound,
        }
        claims = (WildcardAnonymity(self.k, names, self.reading),)
        return Outcome(out, facts=facts, claims=claims, notes=self._notes())

    def _notes(self) -> tuple[str, ...]:
        if self.reading == "value":
            return ()
        return (
            "A blank cell counts as matching any value, as sdcMicro counts: a row may have its k "
            "matches through blanks of other rows, which is weaker than k-anonymity.",
        )


@register_mask
@dataclass(frozen=True, slots=True)
class Suppress(MaskStep):
    """Take columns out, or blank their values that fewer than ``rare`` people hold.

    Example:
        >>> import halfmask as hm
        >>> people = hm.read({"sex": ["f", "f", "m"], "job": ["a", "a", "b"]},
        ...                  schema={"sex": "quasi", "job": "quasi"})
        >>> hm.mask(people, hm.masks.Suppress("job")).to_arrow().column_names
        ['sex']
        >>> sorted(hm.mask(people, hm.masks.Suppress("job", rare=2)).to_arrow()["job"].to_pylist(),
        ...        key=str)
        [None, 'a', 'a']
    """

    name: ClassVar[str] = "suppress"
    words: ClassVar[MaskWords] = MaskWords(
        "Columns are taken out, or their rare values blanked in all rows.",
        "Whatever these columns, or their rare values, would tell.",
        "Whoever stands out by other columns, or by several values together that are not rare.",
    )

    columns: tuple[str, ...] | str = field(metadata=some_columns())
    rare: int | None = field(default=None, metadata=whole_number(2))

    def apply(self, rows: Rows) -> Outcome:
        """Suppress columns or values."""
        if self.rare is None:
            return Outcome(removed=tuple(self.columns))
        owner, people = rows.people()
        out, blanked = {}, 0
        for name in self.columns:
            encoded = rows.table.encode(name)
            codes = encoded.codes.astype(np.int64)
            # People, not rows: somebody with several rows does not hide by them.
            pairs = np.unique(codes * people + owner)
            held = np.bincount(pairs // people, minlength=len(encoded.values))
            gone = (held < self.rare)[codes] & (codes < len(encoded.values.drop_null()))
            out[name] = _without(rows.table.arrow[name], gone)
            blanked += int(gone.sum())
        return Outcome(out, facts={"suppressed": blanked})


@dataclass(frozen=True, slots=True, eq=False)
class SuppressionTask:
    """What is to be solved: codes, what is missing, whose rows, k and the cost of each column."""

    codes: Ints
    empty: Bools
    owner: Ints | None
    k: int
    cost: Floats
    random: np.random.Generator


def _costs(names: tuple[str, ...], importance: Any) -> Floats:
    """1 for a column of no importance, more the more important it is."""
    cost = np.ones(len(names))
    for place, name in enumerate(importance):
        cost[names.index(name)] = 1.0 + len(importance) - place
    return cost


def _without(column: pa.ChunkedArray, gone: Bools) -> pa.ChunkedArray:
    if pa.types.is_dictionary(column.type):
        column = column.cast(column.type.value_type)
    return pc.if_else(pa.array(gone), pa.scalar(None, column.type), column)


def _solve(task: SuppressionTask, reading: str) -> tuple[Bools, float | None, float | None]:
    """The cells to blank, the proven gap, and the least total cost that is possible."""
    ids = _Ids(task)
    short = np.flatnonzero(ids.people(None, 0) < task.k)
    if not len(short):
        return np.zeros(task.codes.shape, dtype=bool), 0.0, 0.0
    if reading == "any" and task.owner is None:
        found = _any(task, short)
        if found is not None:
            return found, None, None
    best = _by_sets(task, ids, short)
    if reading == "any":
        return best, None, None
    if len(task.codes) << task.codes.shape[1] <= _EXACT and task.owner is None:
        exact = _optimum(task)
        if exact is not None:
            return exact, 0.0, float((exact * task.cost).sum())
    bound = _bound(task, ids, short)
    total = float(((best & ~task.empty) * task.cost).sum())
    gap = None if not bound else (total - bound) / bound
    return best, gap, bound


class _Ids:
    """Numbers that rows share which agree on all columns but a set of them."""

    def __init__(self, task: SuppressionTask) -> None:
        self.task = task
        # Numbers to tell rows apart by, no secret: a fixed start repeats what was found.
        draw = np.random.default_rng(0x5EED)
        tables = [
            draw.integers(0, 2**63, int(task.codes[:, c].max(initial=0)) + 1, dtype=np.uint64)
            for c in range(task.codes.shape[1])
        ]
        self.parts = [table[task.codes[:, c]] for c, table in enumerate(tables)]
        # A blank cell must count as one that was missing.
        self.blank = [
            table[code] if (code := _missing(task, c)) >= 0 else np.uint64(0x9E37 + c)
            for c, table in enumerate(tables)
        ]

    def of(self, rows: Ints | None, gone: int) -> NDArray[np.uint64]:
        """Per row its number once the columns of the set ``gone`` are blank."""
        size = len(self.task.codes) if rows is None else len(rows)
        out = np.zeros(size, np.uint64)
        for c, part in enumerate(self.parts):
            if gone >> c & 1:
                out ^= self.blank[c]
            else:
                out ^= part if rows is None else part[rows]
        return out

    def people(self, rows: Ints | None, gone: int) -> Ints:
        """Per row, how many people of these rows share its number."""
        return _shared(self.of(rows, gone), self._owner(rows))

    def _owner(self, rows: Ints | None) -> Ints | None:
        if self.task.owner is None or rows is None:
            return self.task.owner
        return self.task.owner[rows]


def _missing(task: SuppressionTask, column: int) -> int:
    """The code of the missing value of a column; -1 where it has none."""
    gone = np.flatnonzero(task.empty[:, column])
    return int(task.codes[gone[0], column]) if len(gone) else -1


def _shared(ids: NDArray[np.uint64], owner: Ints | None) -> Ints:
    """Per row, how many people have its number."""
    from halfmask.kernels.grouping import number_keys

    group, counts = number_keys(ids)
    if owner is not None:
        people = int(owner.max(initial=0)) + 1
        pairs = np.unique(group * people + owner)
        counts = np.bincount(pairs // people, minlength=len(counts))
    found: Ints = counts[group]
    return found


def _sets(cost: Floats) -> tuple[Ints, Floats]:
    """All sets of columns from cheap to dear, and what each costs."""
    every = np.arange(1 << len(cost))
    price = sum(((every >> c) & 1) * one for c, one in enumerate(cost))
    order = np.argsort(price, kind="stable")
    return every[order], np.asarray(price, dtype=np.float64)


def _by_sets(task: SuppressionTask, ids: _Ids, short: Ints) -> Bools:
    """Blank sets of columns, the cheapest first and among these the one that serves most rows."""
    blank = np.zeros(task.codes.shape, dtype=bool)
    order, price = _sets(task.cost)
    left = short
    for level in np.unique(price[order][1:]):
        if not len(left):
            break
        level_sets = order[price[order] == level]
        serves = [int(np.count_nonzero(ids.people(left, int(s)) >= task.k)) for s in level_sets]
        for place in np.argsort(-np.array(serves), kind="stable"):
            if not serves[place] or not len(left):
                break
            chosen = int(level_sets[place])
            fits = ids.people(left, chosen) >= task.k
            blank[left[fits]] |= _columns(chosen, task)
            left = left[~fits]
    if len(left):
        _fill_up(task, ids, blank, left)
    return blank


def _columns(chosen: int, task: SuppressionTask) -> Bools:
    return np.array([bool(chosen >> c & 1) for c in range(task.codes.shape[1])])


def _fill_up(task: SuppressionTask, ids: _Ids, blank: Bools, left: Ints) -> None:
    """Blank the last rows altogether, with as many others as they lack to be k people."""
    # No set of columns serves them: blank altogether, they are alike.
    blank[left] = True
    owner = np.arange(len(task.codes)) if task.owner is None else task.owner
    whole = np.flatnonzero(blank.all(axis=1))
    lack = task.k - len(np.unique(owner[whole]))
    if lack <= 0:
        return
    numbers = np.zeros(len(task.codes), np.uint64)
    for c, part in enumerate(ids.parts):
        numbers ^= np.where(blank[:, c], ids.blank[c], part)
    people = _shared(numbers, task.owner)
    # From the largest classes, which can spare some; a class that cannot goes as a whole.
    for row in np.argsort(-people, kind="stable"):
        if blank[row].all():
            continue
        same = np.flatnonzero(numbers == numbers[row])
        spare = int(people[row]) - task.k
        held = np.unique(owner[same])
        taken = held if spare < lack else held[:lack]
        blank[same[np.isin(owner[same], taken)]] = True
        return


def _bound(task: SuppressionTask, ids: _Ids, short: Ints) -> float | None:
    """The least any solution costs: each row must blank a set under which k people agree."""
    order, price = _sets(task.cost)
    if len(task.codes) * len(order) > _BOUND:
        return None
    least = np.zeros(len(task.codes))
    open_ = np.zeros(len(task.codes), dtype=bool)
    open_[short] = True
    for chosen in order[1:]:
        if not open_.any():
            break
        fits = open_ & (ids.people(None, int(chosen)) >= task.k)
        least[fits] = price[chosen] - _free(task, int(chosen))[fits]
        open_ &= ~fits
    return float(np.maximum(least, 0.0).sum())


def _free(task: SuppressionTask, chosen: int) -> Floats:
    """What a set costs less where its cells were missing already; at most, for a bound."""
    return (task.empty * task.cost).sum(axis=1) if chosen else np.zeros(len(task.codes))


def _optimum(task: SuppressionTask) -> Bools | None:
    """The least that must be blanked, proven; None where time runs out."""
    from scipy.optimize import Bounds, LinearConstraint, milp
    from scipy.sparse import coo_matrix

    rows, width = task.codes.shape
    order, _ = _sets(task.cost)
    ids = _Ids(task)
    pairs_row = np.tile(np.arange(rows), len(order))
    pairs_set = np.repeat(order, rows)
    price = np.concatenate(
        [((~task.empty * _columns(int(s), task)) * task.cost).sum(axis=1) for s in order]
    )
    numbers = np.concatenate([ids.of(None, int(s)) for s in order])
    node = np.unique(numbers, return_inverse=True)[1].reshape(-1)
    count, nodes = len(price), int(node.max()) + 1
    place = np.arange(count)
    once = coo_matrix((np.ones(count), (pairs_row, place)), (rows, count + nodes))
    full = coo_matrix(
        (
            np.concatenate([np.ones(count), np.full(nodes, -float(task.k))]),
            (np.concatenate([node, np.arange(nodes)]), np.arange(count + nodes)),
        ),
        (nodes, count + nodes),
    )
    used = coo_matrix(
        (
            np.concatenate([np.ones(count), -np.ones(count)]),
            (np.concatenate([place, place]), np.concatenate([place, count + node])),
        ),
        (count, count + nodes),
    )
    found = milp(
        np.concatenate([price, np.zeros(nodes)]),
        constraints=[
            LinearConstraint(once, 1, 1),
            LinearConstraint(full, 0, np.inf),
            LinearConstraint(used, -np.inf, 0),
        ],
        integrality=np.ones(count + nodes),
        bounds=Bounds(0, 1),
        options={"time_limit": _SECONDS},
    )
    if found.status != 0:
        return None
    blank = np.zeros((rows, width), dtype=bool)
    for one in np.flatnonzero(found.x[:count] > 0.5):
        blank[pairs_row[one]] = _columns(int(pairs_set[one]), task)
    return blank


def _any(task: SuppressionTask, short: Ints) -> Bools | None:
    """The cells to blank where a blank matches anything; None where there are too many rows."""
    from halfmask.kernels.masking.suppression import (
        Entries,
        count_matches,
        restore_cells,
        suppress_cells,
    )

    ids = _Ids(task)
    numbers = ids.of(None, 0)
    lone = np.zeros(len(numbers), dtype=bool)
    lone[short] = True
    _, first, counts = np.unique(numbers[~lone], return_index=True, return_counts=True)
    alike = np.flatnonzero(~lone)[first]
    chosen = np.concatenate([short, alike])
    if len(chosen) * len(short) > _PAIRS:
        return None
    weight = np.concatenate([np.ones(len(short), np.int64), counts.astype(np.int64)])
    sizes = [int(task.codes[:, c].max()) + 1 for c in range(task.codes.shape[1])]
    sequence = np.argsort(-np.array(sizes), kind="stable")  # wide columns tell rows apart first
    keys, fields = _pack(task.codes[chosen], sizes, sequence)
    whole = _shown_bits(task.empty[chosen], fields, sequence)
    seen = whole.copy()
    matches = count_matches(keys, seen, weight, len(short))
    cost = task.cost[sequence]
    entries = Entries(keys, seen, fields, weight, matches)
    suppress_cells(entries, task.k, cost)
    cells = np.arange(len(short))[None, :] * len(cost) + np.argsort(-cost, kind="stable")[:, None]
    restore_cells(entries, whole, task.k, cells.ravel())
    blank = np.zeros(task.codes.shape, dtype=bool)
    for place, c in enumerate(sequence):
        gone = ((seen & fields[place]) == 0).all(axis=1) & ~task.empty[chosen, c]
        blank[short, c] = gone[: len(short)]
    return blank


def _pack(
    codes: Ints, sizes: list[int], sequence: Ints
) -> tuple[NDArray[np.uint64], NDArray[np.uint64]]:
    """Codes in bit fields of as many words as they need, and the bits of each column."""
    places, word_, used = [], 0, 0
    for c in sequence:
        bits = max(1, (sizes[c] - 1).bit_length())
        if used + bits > 64:
            word_, used = word_ + 1, 0
        places.append((word_, used, bits))
        used += bits
    keys = np.zeros((len(codes), word_ + 1), np.uint64)
    fields = np.zeros((len(sequence), word_ + 1), np.uint64)
    for place, (at, shift, bits) in enumerate(places):
        keys[:, at] |= codes[:, sequence[place]].astype(np.uint64) << np.uint64(shift)
        fields[place, at] = np.uint64(((1 << bits) - 1) << shift)
    return keys, fields


def _shown_bits(empty: Bools, fields: NDArray[np.uint64], sequence: Ints) -> NDArray[np.uint64]:
    """Per row, the bits of the columns that it has."""
    seen = np.zeros((len(empty), fields.shape[1]), np.uint64)
    for place, c in enumerate(sequence):
        seen |= np.where(empty[:, [c]], np.uint64(0), fields[place])
    return seen
