"""The classes of the next release of an m-invariant series: who stays together, who joins whom.

Classes that are still whole stay as they were, and so do those whose free places newcomers of the
right values can take, those with whom the class loses least. The others are gathered by their
signature: the i-th people of each value make a class, in the order of where they stand. Where a
value lacks people, newcomers who hold it take the places, else counterfeits do. The other newcomers
are divided by their quasi-identifiers as long as both parts can be served, then dealt into classes
of m different values.
Source: Xiao and Tao, "m-invariance: towards privacy preserving re-publication of dynamic datasets",
2007; the division after LeFevre, DeWitt and Ramakrishnan, "Mondrian multidimensional k-anonymity",
2006.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InfeasibleDemandsError, InputError, PrivacyError
from halfmask.metrics.space import space_of
from halfmask.models.k_anonymity import KAnonymity
from halfmask.models.l_diversity import LDiversity, MInvariance
from halfmask.models.requirements import LEAVE_OUT, lone_values, prepare
from halfmask.models.statistics import own_demands
from halfmask.release.labels import encode_labels, required_sharing
from halfmask.table.tuples import Tuples

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.metrics.space import Space
    from halfmask.models.verdict import Model
    from halfmask.release.doors.series import SeriesLedger
    from halfmask.table.table import Table

    Reals = NDArray[np.float64]


@dataclass(slots=True, eq=False)
class SeriesDivision:
    """A table on its way to classes.

    Attributes:
        table: the rows that are divided.
        values: per row, the number of its value; ``texts`` the values.
        signatures: every signature as numbers of values.
        signature: per row, the number of its signature; -1: a newcomer.
        before: per row, its last class; -1: none.
        owed: per row, how many people its class must hold, each with a value of its own.
        step: per row, its class, once divided; ``counterfeits`` a class and a value each.
    """

    table: Table
    m: int
    models: tuple[MInvariance, Sequence[Model]]
    values: NDArray[np.int64]
    texts: list[str | None]
    signatures: list[tuple[int, ...]]
    signature: NDArray[np.int64]
    before: NDArray[np.int64]
    owed: NDArray[np.int64]
    space: Space
    notes: tuple[str, ...] = ()
    step: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, dtype=np.int64))
    counterfeits: list[tuple[int, str | None]] = field(default_factory=list)
    classes: int = 0

    @classmethod
    def of(
        cls,
        table: Table,
        invariance: MInvariance,
        others: Sequence[Model],
        ledger: SeriesLedger,
        *,
        drop: bool,
        again: bool = False,
    ) -> SeriesDivision:
        """Look everybody up in the ledger; whom nothing can serve is left out or refused.

        Those whose demands cannot be met come first: nothing else depends on what they hold.
        ``again``: others were left out before.
        """
        out = _unmet(table, invariance.column, others, ledger)
        if out.all() and again:
            raise PrivacyError("Nobody can be served: relax a model or a demand.")
        if out.any() and (out.all() or not drop):
            named = np.flatnonzero(out).tolist()
            raise InfeasibleDemandsError(table.schema.policy_names, named, len(table), LEAVE_OUT)
        if not again:
            _require_known(table.keep(~out), ledger)
        if out.any():
            rest = cls.of(table.keep(~out), invariance, others, ledger, drop=drop, again=True)
            note = f"{int(out.sum()):,} people were left out: they demand more than all can give."
            rest.notes = (note, *rest.notes)
            return rest
        _require_values(table, invariance.column)
        table = prepare(table, [invariance, *others])
        people = table.arrow[str(table.schema.person)].to_pylist()
        signature, before = ledger.latest(ledger.hashes(people))
        values, texts, signatures = _numbered_values(table, invariance.column, ledger)
        owed = _people_needed(table, others)
        if not drop:
            _require_wide(invariance.m, signature, signatures)
        wrong = _find_unserved(values, signature, signatures, np.maximum(owed, invariance.m))
        if drop:
            wrong |= owed > len(texts)
            if wrong.all():
                raise PrivacyError("Nobody can be served: relax a model or a demand.")
        if wrong.any() and not drop:
            raise PrivacyError(
                f"{int(wrong.sum()):,} people hold a value that is not among those that they were "
                "published with, or demand more than these give: whoever has the earlier releases "
                "would learn that. Leave them out (on_infeasible='suppress', --on-infeasible "
                "suppress), or begin a new series."
            )
        if wrong.any():
            rest = cls.of(table.keep(~wrong), invariance, others, ledger, drop=drop, again=True)
            note = (
                f"{int(wrong.sum()):,} people were left out: their value changed, or more is asked "
                "than the values give that they can be published with."
            )
            rest.notes = (*rest.notes, note)
            return rest
        space = space_of(table)
        return cls(table, invariance.m, (invariance, others), values, texts, signatures, signature,
                   before, owed, space)  # fmt: skip

    def without(
        self, rows: NDArray[np.bool_], ledger: SeriesLedger, *, drop: bool
    ) -> SeriesDivision:
        """The same without people whose classes hold too few others."""
        if not drop:
            raise PrivacyError(
                f"{int(rows.sum()):,} people demand more people or values than their class holds "
                "beside counterfeits: leave them out (on_infeasible='suppress', --on-infeasible "
                "suppress), or lower k and l."
            )
        if rows.all():
            raise PrivacyError("Nobody can be served: relax a model or a demand.")
        rest = SeriesDivision.of(
            self.table.keep(~rows), *self.models, ledger, drop=drop, again=True
        )
        rest.notes = (*self.notes, f"{int(rows.sum()):,} people were left out: too few are beside "
                      "them.")  # fmt: skip
        return rest

    def short(self) -> NDArray[np.bool_]:
        """Whose class holds fewer people than they need; each of them holds a value of its own."""
        people = np.bincount(self.step, minlength=self.classes)
        return np.asarray(people[self.step] < self.owed)

    @property
    def need(self) -> NDArray[np.int64]:
        """Per row, how many values its class must hold, those of counterfeits too."""
        return np.maximum(self.owed, self.m)

    @property
    def shown(self) -> NDArray[np.int64]:
        """Per row, how many people must hold its values for a label to show them; m or more."""
        return np.maximum(required_sharing(self.table, self.models[1]), self.m)

    def divide(self) -> None:
        """Give every row a class, and every class the values that it lacks."""
        self.step = np.full(len(self.values), -1, dtype=np.int64)
        self.counterfeits, self.classes = [], 0
        self._keep_whole()
        key = self._order()
        fresh = _Newcomers(self, key)
        self._refill(fresh)
        waiting = np.flatnonzero((self.signature >= 0) & (self.step < 0))
        waiting = waiting[np.lexsort((key[waiting], self.signature[waiting]))]
        starts = np.flatnonzero(np.diff(self.signature[waiting], prepend=-1))
        for rows in np.split(waiting, starts[1:]) if len(waiting) else ():
            self._balance(rows, fresh)
        fresh.deal()

    def make(self, rows: Sequence[int], lacking: Sequence[int] = ()) -> None:
        """One class of some rows, with counterfeits of the values that it lacks."""
        self.step[list(rows)] = self.classes
        self.counterfeits += [(self.classes, self.texts[value]) for value in lacking]
        self.classes += 1

    def _keep_whole(self) -> None:
        """Let classes stay whose people are all there, each with a value of its own."""
        known = np.flatnonzero(self.before >= 0)
        if not len(known):
            return
        sizes = np.array([len(one) for one in self.signatures])
        of, number = np.unique(self.before[known], return_inverse=True)
        number = number.reshape(-1)
        people = np.bincount(number, minlength=len(of))
        pairs = np.unique(number * len(self.texts) + self.values[known])
        distinct = np.bincount(pairs // len(self.texts), minlength=len(of))
        wanted = np.zeros(len(of), dtype=np.int64)
        wanted[number] = sizes[self.signature[known]]
        whole = (people == wanted) & (distinct == wanted)
        fresh = np.cumsum(whole) - 1
        stay = whole[number]
        self.step[known[stay]] = fresh[number[stay]]
        self.classes = int(whole.sum())

    def _order(self) -> NDArray[np.int64]:
        """Where each row stands, so that neighbors are near each other in the widest columns."""
        places = self.space.places
        spread = [len(np.unique(places[:, c])) for c in range(places.shape[1])]
        columns = [places[:, c] for c in np.argsort(spread)]
        order = np.lexsort(columns[::-1])  # the column with fewest values decides first
        rank = np.empty(len(order), dtype=np.int64)
        rank[order] = np.arange(len(order))
        return rank

    def _refill(self, fresh: _Newcomers) -> None:
        """Let people stay together whom others left, where newcomers take all free places."""
        waiting = np.flatnonzero((self.before >= 0) & (self.step < 0))
        waiting = waiting[np.argsort(self.before[waiting], kind="stable")]
        starts = np.flatnonzero(np.diff(self.before[waiting], prepend=-1))
        for rows in np.split(waiting, starts[1:]) if len(waiting) else ():
            members = rows.tolist()
            signature = self.signatures[int(self.signature[rows[0]])]
            held = set(self.values[rows].tolist())
            if len(held) < len(members):
                continue
            taken: list[int] = []
            for value in signature:
                one = None if value in held else fresh.take(value, len(signature), members)
                if one is None and value not in held:
                    break
                taken += [] if one is None else [one]
            if len(members) + len(taken) == len(signature):
                self.make([*members, *taken])
            else:
                fresh.give_back(taken)

    def _balance(self, rows: NDArray[np.int64], fresh: _Newcomers) -> None:
        """Make classes of people of one signature, with newcomers or counterfeits in gaps."""
        signature = self.signatures[int(self.signature[rows[0]])]
        piles = {value: rows[self.values[rows] == value].tolist() for value in signature}
        for turn in range(max(map(len, piles.values()))):
            present = [pile[turn] for pile in piles.values() if turn < len(pile)]
            lacking = []
            for value, pile in piles.items():
                if turn < len(pile):
                    continue
                one = fresh.take(value, len(signature), present)
                lacking += [value] if one is None else []
                present += [] if one is None else [one]
            self.make(present, lacking)


class _Newcomers:
    """People whom the ledger does not know, by value."""

    def __init__(self, work: SeriesDivision, key: NDArray[np.int64]) -> None:
        self.work, self.need = work, work.need
        self.rest: list[int] = []
        rows = np.flatnonzero(work.signature < 0)
        rows = rows[np.argsort(key[rows])]
        self.left = np.zeros(len(work.values), dtype=bool)
        self.left[rows] = True
        self.piles = {int(v): rows[work.values[rows] == v] for v in np.unique(work.values[rows])}
        self.counts = np.bincount(work.values[rows], minlength=len(work.texts))
        self.places = Coordinates.of(work.table, work.space)

    def take(self, value: int, size: int, near: Sequence[int]) -> int | None:
        """The newcomer of a value with whom some people lose least, for a class of ``size``.

        None where there is none, or where the other newcomers could not be dealt any more.
        """
        after = self.counts.copy()
        after[value] -= 1
        if after[value] < 0 or after.max() * self.work.m > after.sum():
            return None
        pile = self.piles[value]
        pile = self.piles[value] = pile[self.left[pile]]
        fits = pile[self.need[pile] <= size]
        if not len(fits):
            return None
        held, come = self.places.points[list(near)], self.places.points[fits]
        low, high = np.minimum(held.min(axis=0), come), np.maximum(held.max(axis=0), come)
        row = int(fits[np.argmin(self.places.width(low, high))])
        self.left[row] = False
        self.counts = after
        return row

    def give_back(self, rows: Sequence[int]) -> None:
        """Undo ``take``."""
        for row in rows:
            value = int(self.work.values[row])
            self.left[row] = True
            self.counts[value] += 1
            self.piles[value] = np.append(self.piles[value], row)

    def deal(self) -> None:
        """Make classes of those who are left, who need most first."""
        work = self.work
        while self.left.any():
            rows = np.flatnonzero(self.left)
            size = int(self.need[rows].max())
            now = rows[self.need[rows] == size]
            if len(now) < len(rows):
                now = np.concatenate([now, self._helpers(now, rows, size)])
            self.left[now] = False
            for part in _parts(work.space.places, work.values, now, size):
                self._classes(part, size)
        self._gather()

    def _helpers(
        self, now: NDArray[np.int64], rows: NDArray[np.int64], size: int
    ) -> NDArray[np.int64]:
        """Others who need less, so that those who need most can be served."""
        values = self.work.values
        counts = np.bincount(values[now], minlength=len(self.work.texts))
        others = rows[self.need[rows] < size]
        # One of each value in turn, those that are rare among the first.
        order = np.lexsort((np.arange(len(others)), _turns(values[others]), counts[values[others]]))
        out: list[int] = []
        total = len(now)
        for row in others[order].tolist():
            if counts.max() * size <= total:
                break
            if counts[values[row]] + 1 < max(counts.max(), 2):
                counts[values[row]] += 1
                total += 1
                out.append(row)
        return np.array(out, dtype=np.int64)

    def _classes(self, rows: NDArray[np.int64], size: int) -> None:
        """Deal rows into classes of ``size`` different values; what is left joins them."""
        values = self.work.values
        piles: dict[int, list[int]] = {}
        for row in rows.tolist():
            piles.setdefault(int(values[row]), []).append(row)
        made: list[list[int]] = []
        while len(piles) >= size:
            largest = sorted(piles, key=lambda v: -len(piles[v]))[:size]
            made.append([piles[value].pop() for value in largest])
            for value in largest:
                if not piles[value]:
                    del piles[value]
        for value, pile in piles.items():
            for row in pile:
                home = next((one for one in made if value not in values[one]), None)
                (self.rest if home is None else home).append(row)
        for one in made:
            self.work.make(one)

    def _gather(self) -> None:
        """Make classes of those whom no other takes, with counterfeits of values that they lack."""
        values, counts = self.work.values, np.bincount(self.work.values)
        frequent = np.argsort(-counts, kind="stable").tolist()
        frequent += range(len(counts), len(self.work.texts))
        waiting = sorted(self.rest, key=lambda row: -int(self.need[row]))
        while waiting:
            size = int(self.need[waiting[0]])
            one: dict[int, int] = {}
            for row in waiting:
                if len(one) < size:
                    one.setdefault(int(values[row]), row)
            chosen = set(one.values())
            waiting = [row for row in waiting if row not in chosen]
            lacking = [v for v in frequent if v not in one][: size - len(one)]
            if len(one) + len(lacking) < size:
                raise PrivacyError(
                    f"The sensitive column has {len(frequent)} values, and classes of {size} are "
                    "asked for: ask for a smaller m, k or l."
                )
            self.work.make(list(chosen), lacking)


def _turns(values: NDArray[np.int64]) -> NDArray[np.int64]:
    """For each value, the how manieth of its kind it is."""
    order = np.argsort(values, kind="stable")
    starts = np.searchsorted(values[order], values[order])
    out = np.empty(len(values), dtype=np.int64)
    out[order] = np.arange(len(values)) - starts
    return out


def _parts(
    places: NDArray[np.int32], values: NDArray[np.int64], rows: NDArray[np.int64], size: int
) -> list[NDArray[np.int64]]:
    """Cut rows at medians as long as no value is above one in ``size`` on either side."""
    done, waiting = [], [rows]
    widths = np.maximum(places.max(axis=0) - places.min(axis=0), 1)
    while waiting:
        part = waiting.pop()
        if len(part) < 2 * size:
            done.append(part)
            continue
        held = places[part]
        spread = (held.max(axis=0) - held.min(axis=0)) / widths
        for column in np.argsort(-spread, kind="stable").tolist():
            if spread[column] == 0:
                done.append(part)
                break
            order = np.argsort(held[:, column], kind="stable")
            at = int(np.searchsorted(held[order, column], held[order[len(part) // 2], column]))
            at = at or int(np.searchsorted(held[order, column], held[order[0], column], "right"))
            sides = part[order[:at]], part[order[at:]]
            if all(len(s) and np.bincount(values[s]).max() * size <= len(s) for s in sides):
                waiting += sides
                break
        else:
            done.append(part)
    return done


@dataclass(frozen=True, slots=True, eq=False)
class Coordinates:
    """Rows as points, such that a class loses about the width of the box around it.

    Attributes:
        points: (rows, axes); an axis is a column on a line, or one level of a hierarchy.
        weight: per axis, what its whole width costs.
        level: per axis, whether any width counts in full.
    """

    points: Reals
    weight: Reals
    level: NDArray[np.bool_]

    @classmethod
    def of(cls, table: Table, space: Space) -> Coordinates:
        """The points of a table."""
        axes: list[Reals] = []
        weight: list[float] = []
        level: list[bool] = []
        for place, (name, on_line) in enumerate(zip(space.columns, space.ordered, strict=True)):
            if on_line:
                held = space.places[:, place].astype(np.float64)
                axes.append(held / max(float(held.max(initial=1)), 1))
                weight.append(1.0)
                level.append(False)
                continue
            hierarchy, codes = table.hierarchy(name), table.encode(name).codes
            shares = [
                float(hierarchy.leaves[one][hierarchy.maps[one][codes]].mean() / hierarchy.size)
                for one in range(hierarchy.height + 1)
            ]
            steps = np.maximum(np.diff([*shares, 1.0]), 0.0)
            for one, cost in enumerate(steps.tolist()):
                axes.append(hierarchy.maps[one][codes].astype(np.float64))
                weight.append(cost)
                level.append(True)
        return cls(np.column_stack(axes), np.array(weight), np.array(level))

    def width(self, low: Reals, high: Reals) -> Reals:
        """What boxes cost."""
        return np.where(self.level, high > low, high - low) @ self.weight


def _numbered_values(
    table: Table, column: str, ledger: SeriesLedger
) -> tuple[NDArray[np.int64], list[str | None], list[tuple[int, ...]]]:
    """The number of each row's value, all values, and the signatures of the ledger in numbers."""
    encoded = table.encode(column)
    texts: list[str | None] = encode_labels(encoded.values).cast("string").to_pylist()
    place = {text: number for number, text in enumerate(texts)}
    for text in ledger.values:
        if text not in place:
            place[text] = len(texts)
            texts.append(text)
    numbers = [place[text] for text in ledger.values]
    signatures = [tuple(sorted(numbers[v] for v in one)) for one in ledger.signatures]
    return encoded.codes.astype(np.int64), texts, signatures


def _require_known(table: Table, ledger: SeriesLedger) -> None:
    """Refuse a table of people of whom no earlier release holds anybody."""
    people = ledger.hashes(table.arrow[str(table.schema.person)].to_pylist())
    if ledger.releases and (ledger.latest(people)[0] < 0).all():
        raise InputError(
            f"Nobody of this table is in the ledger {ledger.file.path.name!r}: it is of other "
            "people, or the person column is written otherwise."
        )


def _require_values(table: Table, column: str) -> None:
    """Refuse people without a value, of those who can be served."""
    if table.encode(column).values.null_count:
        raise InputError(
            f"Column {column!r} has missing values, among which nobody can hide in a series: fill "
            "them in, or leave these people out."
        )


def _unmet(
    table: Table, column: str, others: Sequence[Model], ledger: SeriesLedger
) -> NDArray[np.bool_]:
    """Who demands more than a series can give, whatever this person holds.

    A class holds each value once, so that nobody can have more people than there are values: those
    of the signature, and those that other people hold.
    """
    asked = _people_needed(table, [one for one in others if one.policy])
    signature, _ = ledger.latest(ledger.hashes(table.arrow[str(table.schema.person)].to_pylist()))
    sizes = np.array([*(len(one) for one in ledger.signatures), np.iinfo(np.int64).max])
    out = asked > sizes[signature]  # the last size is that of newcomers, who have no signature
    while True:
        here = np.flatnonzero(~out)
        codes, values = table.encode(column).codes[here], table.encode(column).values
        held = len(np.unique(codes)) - int(values.null_count and (codes == len(values) - 1).any())
        short = (asked[here] > 1) & (
            asked[here] + lone_values(Tuples.of(table), column, here) > held
        )
        if not short.any():
            return out
        out[here[short]] = True


def _people_needed(table: Table, others: Sequence[Model]) -> NDArray[np.int64]:
    """How many people, each with a value of its own, everybody's class must hold."""
    owed = np.ones(len(table))
    for model in others:
        if isinstance(model, KAnonymity):
            owed = np.maximum(owed, model.k)
        elif isinstance(model, LDiversity):
            owed = np.maximum(owed, model.l)
        else:  # people's own k or l
            of = model.columns[0] if model.columns else ""
            default = getattr(model, "default", None)
            owed = np.maximum(owed, own_demands(table, model.policy[0], default, of))
    return np.ceil(owed).astype(np.int64)


def _require_wide(m: int, signature: NDArray[np.int64], signatures: list[tuple[int, ...]]) -> None:
    """Refuse a larger m than people were published with: their values must stay the same."""
    sizes = np.array([*(len(one) for one in signatures), np.iinfo(np.int64).max])
    held = sizes[signature]  # the last size is that of newcomers, who have no signature
    small = int((held < m).sum())
    if small:
        raise PrivacyError(
            f"{small:,} people hide among fewer than {m} values since an earlier release, which "
            f"must stay the same: ask for m = {int(held.min())} as before, leave them out "
            "(on_infeasible='suppress', --on-infeasible suppress), or begin a new series."
        )


def _find_unserved(
    values: NDArray[np.int64],
    signature: NDArray[np.int64],
    signatures: list[tuple[int, ...]],
    owed: NDArray[np.int64],
) -> NDArray[np.bool_]:
    """Whose value is not in their signature, or who need more than it holds."""
    out = np.zeros(len(values), dtype=bool)
    known = np.flatnonzero(signature >= 0)
    for number in np.unique(signature[known]).tolist():
        rows = known[signature[known] == number]
        held = signatures[number]
        out[rows] = ~np.isin(values[rows], held) | (owed[rows] > len(held))
    return out
