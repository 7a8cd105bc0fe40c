"""What drawn rows may be: no combination that cannot occur, and what they are drawn given.

Both are public, and a model sees noisy views only: drawing again is post-processing, however often.
A budget that is spent is not lost to a condition: whether any row is possible at all is known
before, from the declarations alone, and the row that shows it stands in where a model has none.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from datetime import date
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.dp.conditions import condition_words, conditions_of, impossible_of, occurs
from halfmask.dp.domain import Bins
from halfmask.errors import InternalError, SchemaError, UnsatisfiableError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from numpy.typing import NDArray

    from halfmask.dp.conditions import Combination
    from halfmask.dp.domain import Domain
    from halfmask.table.schema import Schema
    from halfmask.table.table import Table

    Mask = NDArray[np.bool_]
    Codes = dict[str, NDArray[np.int64]]
    Masks = Mapping[str, Mask]

_TURNS = 60  # of drawing again, before a row is taken from those that are right
_MOST = 1 << 18  # rows that one turn draws
_DRAWN = 1 << 19  # rows that all turns draw, where few are asked for
_TIMES = 16  # the rows asked for, which all turns draw where that is more
_STEPS = 200_000  # of the search for a row that is possible


@dataclass(frozen=True, slots=True)
class DrawLimits:
    """Which codes rows may hold.

    Attributes:
        impossible: combinations that cannot occur, as per column the codes that are part of one.
        given: per column that is given, the codes that rows hold.
        row: codes of the columns named above that are possible together.
    """

    impossible: tuple[Masks, ...]
    given: Masks
    row: Mapping[str, int]

    @classmethod
    def of(
        cls,
        impossible: Sequence[Combination],
        given: Combination,
        domains: Mapping[str, Domain],
    ) -> DrawLimits:
        """The limits that conditions on public domains make.

        Raises:
            SchemaError: a condition does not fit its domain, or no row is possible.
        """
        for one in (*(one for combination in impossible for one in combination), *given):
            domain = domains[one.column]
            if isinstance(domain, Bins) and not domain.drawable:
                raise SchemaError(
                    f"Column {one.column!r} has whole numbers, and its domain an interval or a "
                    "special number without one, of which nothing can be drawn that keeps the "
                    "condition on it: declare whole edges and numbers, or integer = false."
                )
        zeros = tuple({one.column: one.codes(domains[one.column]) for one in c} for c in impossible)
        held = {one.column: one.codes(domains[one.column]) for one in given}
        for name, mask in held.items():
            if not mask.any():
                raise SchemaError(
                    f"What is given lies outside the domain of column {name!r}: give a range or "
                    "values that it holds."
                )
        if any(len(m) != len(domains[n]) for one in (*zeros, held) for n, m in one.items()):
            raise InternalError("A condition does not tell of every code of its column.")
        row = _possible_row(zeros, held, {name: len(domain) for name, domain in domains.items()})
        if row is None:
            raise SchemaError(
                "No row is possible: [[impossible]] excludes every combination"
                + (" with what is given." if held else ".")
            )
        return cls(zeros, held, row)

    def __bool__(self) -> bool:
        return bool(self.impossible or self.given)

    def wrong(self, codes: Codes) -> Mask:
        """Per row, whether it holds what it may not."""
        rows = len(next(iter(codes.values())))
        out = np.zeros(rows, dtype=bool)
        for name, mask in self.given.items():
            out |= ~mask[codes[name]]
        for combination in self.impossible:
            held = np.ones(rows, dtype=bool)
            for name, mask in combination.items():
                held &= mask[codes[name]]
            out |= held
        return out

    def draw(
        self,
        draw: Callable[[int, np.random.Generator], Codes],
        rows: int,
        random: np.random.Generator,
    ) -> tuple[Codes, float]:
        """``rows`` rows within the limits, and which share of them the model did not give."""
        codes = draw(rows, random)
        if not self:
            return codes, 0.0
        right = [_take(codes, ~self.wrong(codes))]
        have, drawn = _rows(right[0]), rows
        for _ in range(_TURNS):
            if have >= rows or drawn >= max(_DRAWN, _TIMES * rows):
                break
            # As many as the share that was right so far asks for, and some more.
            wanted = int(1.2 * (rows - have) * drawn / max(have, 1)) + 100
            more = draw(min(wanted, _MOST), random)
            drawn += _rows(more)
            right.append(_take(more, ~self.wrong(more)))
            have += _rows(right[-1])
        found = {name: np.concatenate([one[name] for one in right])[:rows] for name in codes}
        short = rows - _rows(found)
        if not short:
            return found, 0.0
        return self._fill(found, draw(short, random), random), short / rows

    def _fill(self, found: Codes, rest: Codes, random: np.random.Generator) -> Codes:
        """The rows that were right, and as many more: right ones again, or the possible row."""
        short = _rows(rest)
        if _rows(found):
            again = random.integers(0, _rows(found), short)
            rest = {name: codes[again] for name, codes in found.items()}
        else:
            rest |= {name: np.full(short, code, np.int64) for name, code in self.row.items()}
        return {name: np.concatenate([found[name], rest[name]]) for name in found}


def draw_limits(
    declared: Sequence[object], given: object, domains: Mapping[str, Domain]
) -> tuple[DrawLimits, tuple[Combination, ...], Combination]:
    """Limits as they are declared, and the conditions that the door checks."""
    columns = list(domains)
    impossible = impossible_of(declared, columns)
    held = () if given is None else conditions_of(given, columns, "given")
    return DrawLimits.of(impossible, held, domains), impossible, held


def draw_fitting(
    draw: Callable[[int], pa.Table],
    rows: int,
    impossible: Sequence[Combination],
    given: Combination,
) -> pa.Table:
    """``rows`` rows that hold nothing impossible, and what is given; by their values.

    Raises:
        UnsatisfiableError: too few such rows are drawn.
    """
    found = draw(rows)
    if not impossible and not given:
        return found
    right = [found.filter(pa.array(_fits(found, impossible, given)))]
    have, drawn = right[0].num_rows, rows
    for _ in range(_TURNS):
        if have >= rows:
            return pa.concat_tables(right).slice(0, rows).combine_chunks()
        wanted = int(1.2 * (rows - have) * drawn / max(have, 1)) + 500
        found = draw(min(wanted, _MOST))
        drawn += found.num_rows
        right.append(found.filter(pa.array(_fits(found, impossible, given))))
        have += right[-1].num_rows
    raise UnsatisfiableError(
        f"Of {drawn:,} rows that were drawn, {have:,} hold what is given and nothing impossible, "
        f"and {rows:,} are asked for.",
        advice=("ask for fewer rows", "give less"),
    )


def _fits(rows: pa.Table, impossible: Sequence[Combination], given: Combination) -> Mask:
    fits = occurs(rows, given)
    for combination in impossible:
        fits &= ~occurs(rows, combination)
    return fits


def require_shared_condition(
    table: Table, given: Combination, least: int, owner: NDArray[np.int32] | None
) -> None:
    """Refuse to draw given what too few people hold: all rows would speak of them.

    Raises:
        UnsatisfiableError: fewer than ``least`` people hold it.
    """
    held = np.flatnonzero(occurs(table.arrow, given))
    people = len(held) if owner is None else len(np.unique(owner[held]))
    if people < least:
        names = ", ".join(repr(one.column) for one in given)
        raise UnsatisfiableError(
            f"Fewer than {least:,} people hold what is given of {names}: rows drawn given it would "
            "speak of them alone.",
            advice=("give less", "or a wider range"),
        )


def stated_conditions(declared: Sequence[object], given: object) -> dict[str, object]:
    """What a release says of its conditions, as plain values."""
    found: dict[str, object] = {}
    if declared:
        found["impossible"] = [_plain(one) for one in declared]
    if given is not None:
        found["given"] = _plain(given)
    return found


def condition_notes(declared: Sequence[Any], given: Any) -> tuple[str, ...]:
    """The same in words."""
    notes = []
    if declared:
        words = "; ".join(condition_words(one) for one in declared)
        notes.append(f"No row holds what is declared impossible: {words}.")
    if given is not None:
        notes.append(
            f"Every row was drawn given {condition_words(given)}: the table is no picture of "
            "everybody, and how many people that is of is not told."
        )
    return tuple(notes)


def structure_notes(schema: Schema) -> tuple[str, ...]:
    """What is not kept of several rows that belong together."""
    whose = [n for n in (schema.person, schema.household) if n is not None]
    if not whose:
        return ()
    return (
        f"Rows are drawn one by one: which rows are of one person or household "
        f"({', '.join(whose)}), their number and their order are not drawn.",
    )


def _plain(given: Any) -> object:
    """Conditions as JSON holds them."""
    if isinstance(given, Mapping):
        return {str(name): _plain(one) for name, one in given.items()}
    if isinstance(given, list | tuple | set | range):
        return [_plain(one) for one in given]
    return str(given) if isinstance(given, date) else given


def _take(codes: Codes, kept: Mask) -> Codes:
    return {name: held[kept] for name, held in codes.items()}


def _rows(codes: Codes) -> int:
    return len(next(iter(codes.values())))


def _possible_row(
    impossible: Sequence[Masks], given: Masks, sizes: Mapping[str, int]
) -> dict[str, int] | None:
    """Codes of the columns that limits name, none of them excluded; None where there are none.

    Raises:
        SchemaError: the search is too long to tell.
    """
    names = list(dict.fromkeys([*given, *(name for one in impossible for name in one)]))
    choices = []
    for name in names:
        allowed = given.get(name, np.ones(sizes[name], dtype=bool))
        # Codes that are part of the same combinations are one choice; the freest comes first.
        apart = np.zeros(sizes[name], dtype=bool)
        marks = np.array([apart, *(one.get(name, apart) for one in impossible)])
        kinds: dict[bytes, int] = {}
        for code in np.flatnonzero(allowed).tolist():
            kinds.setdefault(marks[:, code].tobytes(), code)
        choices.append(sorted(kinds.values(), key=lambda c, m=marks: int(m[:, c].sum())))  # type: ignore[misc]
    row: dict[str, int] = {}
    steps = 0

    def search(place: int) -> bool:
        nonlocal steps
        steps += 1
        if place == len(names):
            return True
        if steps > _STEPS:
            raise SchemaError(
                f"Whether any row is possible was not found within {_STEPS:,} steps: declare fewer "
                "combinations in [[impossible]], or of fewer columns."
            )
        for code in choices[place]:
            row[names[place]] = code
            whole = (one for one in impossible if set(one) <= set(row))
            barred = any(all(mask[row[n]] for n, mask in one.items()) for one in whole)
            if not barred and search(place + 1):
                return True
        del row[names[place]]
        return False

    return row if search(0) else None
