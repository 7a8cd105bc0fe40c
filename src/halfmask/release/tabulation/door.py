"""The door for tables of figures: what is withheld, and what a reader can work out of the rest.

The door counts every cell again. A figure leaves only where no rule forbids it, and for every cell
that is withheld there must be a table that a reader cannot tell from the true one and in which the
cell is far enough from its figure. Makers hand over such tables as moves, which are verified in
exact arithmetic; where one is missing, the door looks for it by linear and integer programs.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.errors import InternalError, PrivacyError
from halfmask.release.demands import SET_ASIDE, order_notes, state_demands
from halfmask.release.files import write_table
from halfmask.release.release import DOOR, Release, SealedGuarantee
from halfmask.release.tabulation.cells import Program, ReaderView
from halfmask.release.tabulation.recount import Recount, TableDesign, recount, strictest_demand

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.release.candidate import Proof, TabulationCandidate
    from halfmask.release.tabulation.cells import CellGrid
    from halfmask.table.table import Table

    Numbers = NDArray[np.float64]
    Flags = NDArray[np.bool_]

_CLOSE = 1e-9
MARK = "x"


@dataclass(frozen=True, slots=True, eq=False, repr=False, kw_only=True)
class TableRelease(Release):
    """A table of counts or sums that may leave, in long form: one row per cell.

    Attributes:
        grid: its cells: categories of each column, and what adds up to what.
        by: the columns that span it.
        value: the name of the column of figures; null where a figure is withheld.
        withheld: how many cells are withheld.
        controller: what the controller alone may see: the rule that each cell breaks, primary and
            secondary suppressions, information kept. It is in no file and no document.
    """

    kind: ClassVar[str] = "tabulation"
    _made_by: ClassVar[str] = "A table of figures is made by checking rows: call halfmask.tabulate."

    grid: CellGrid
    value: str
    withheld: int
    controller: Mapping[str, Any] = field(default_factory=dict)

    @property
    def by(self) -> tuple[str, ...]:
        """The columns that span the table."""
        return self.grid.columns

    def to_crossed(self) -> pa.Table:
        """The table with one row per category of all columns but the last, which stands across."""
        return cross_table(self._arrow, self.by, self.value)

    def write(self, path: str | PathLike[str], form: str = "long") -> None:  # type: ignore[override]  # files
        """Write the table, ``"long"`` or ``"crossed"``, to a file whose suffix says the kind."""
        if form not in ("long", "crossed"):
            from halfmask.errors import ParameterError

            raise ParameterError("form", form, "'long' or 'crossed'")
        write_table(self.to_arrow() if form == "long" else self.to_crossed(), path)

    def _summary(self) -> str:
        return f"{len(self):,} cells, {self.withheld:,} withheld; {self.method}"

    def _facts(self) -> dict[str, Any]:
        return {
            "outcome": self._outcome(),
            "cells": {
                "all": len(self),
                "withheld": self.withheld,
                "kept_share": 1 - self.withheld / len(self),
            },
            "by": self.by,
            "value": self.value,
            "axes": [axis.to_dict() for axis in self.grid.axes],
            "method": self.method,
            "gap": self.gap,
            "parameters": self.parameters,
            "statement": self.statement,
        }

    def _outcome(self) -> str:
        kept = len(self) - self.withheld
        return (
            f"{self._warning()}{kept:,} of {len(self):,} cells may leave: every figure was counted "
            "again, and what readers can work out of the others was checked."
        )

    def _page(self, facts: Mapping[str, Any]) -> str:  # noqa: ARG002 - certificates are of tables
        from halfmask.report.page import render_template

        rows = [
            [MARK if value is None else value for value in row.values()]
            for row in self.to_crossed().slice(0, 500).to_pylist()
        ]
        return render_template(
            "tabulation.html",
            document=self.to_dict(),
            columns=self.to_crossed().column_names,
            rows=rows,
        )


def cross_table(rows: pa.Table, by: Sequence[str], value: str) -> pa.Table:
    """Long rows with the labels of the last column across."""
    *down, across = by
    heads = rows[across].unique().to_pylist()
    keys = list(zip(*(rows[name].to_pylist() for name in down), strict=True)) if down else [()] * (
        rows.num_rows)  # fmt: skip
    places = {key: i for i, key in enumerate(dict.fromkeys(keys))}
    out: dict[str, list[Any]] = {head: [None] * len(places) for head in heads}
    figures = rows[value].to_pylist()
    for key, head, figure in zip(keys, rows[across].to_pylist(), figures, strict=True):
        out[head][places[key]] = figure
    columns = {name: pa.array([key[i] for key in places]) for i, name in enumerate(down)}
    taken = set(columns)
    return pa.table(
        {
            **columns,
            **{
                (f"{across}: {head}" if head in taken else head): pa.array(figure, rows[value].type)
                for head, figure in out.items()
            },
        }
    )


def seal_tabulation(candidate: TabulationCandidate) -> TableRelease:
    """Count a table of figures again and release it.

    Raises:
        PrivacyError: people demand what such a table cannot give.
        InternalError: a figure would leave that must not, or one could be found out.
    """
    table, design, grid = candidate.table, candidate.design, candidate.grid
    own = state_demands(table, candidate.demands)
    kept = own is not None and candidate.demands == "keep"
    _refuse_columns(table, design)
    if kept:
        refuse_distances(table, design.touched)
    diversity = {name: 0 for name in design.touched if name in table.schema.sensitive}
    diversity |= dict(candidate.rules.get("diversity", {}))
    found = recount(table, design, grid, diversity, demands=kept)
    if len(candidate.values) != grid.size:
        raise InternalError("The figures are not those of the cells.")
    if not np.isfinite(candidate.values).any():
        raise PrivacyError(
            "Every cell would be withheld: use coarser levels, fewer columns or weaker rules."
        )
    if candidate.reach is None:
        _hold_true(candidate, found)
    else:
        _hold_near(candidate, found)
    return _release(candidate, own, empty=not found.narrow.any())


def _refuse_columns(table: Table, design: TableDesign) -> None:
    private = set(table.schema.private)
    for name in design.touched:
        if name in private or name not in table.schema.columns:
            raise InternalError(f"Column '{name}' would leave, and must not.")


def refuse_distances(table: Table, touched: Sequence[str]) -> None:
    """Refuse where somebody demands a t of a sensitive column, which no table of figures keeps."""
    if not any(name in table.schema.sensitive for name in touched):
        return
    asked = strictest_demand(table, "t", touched).to_numpy(zero_copy_only=False)
    count = _people(table, asked < 1)
    if count:
        raise PrivacyError(
            f"{count:,} people state an own t, which a table that shows a sensitive column cannot "
            f"keep: leave that column out, or use differential privacy; {SET_ASIDE}."
        )


def _people(table: Table, marked: Flags) -> int:
    person = table.schema.person
    if person is None:
        return int(np.count_nonzero(marked))
    return len(np.unique(table.encode(person).codes[marked]))


def _needs(candidate: TabulationCandidate, found: Recount) -> tuple[Flags, Numbers, Numbers]:
    """Which cells must not be shown, and how far they must be able to rise and to fall."""
    rules, values = candidate.rules, found.values
    whole = candidate.design.amount is None
    least = np.fmax(found.k, rules.get("threshold") or 0)
    must = (found.people > 0) & (found.people < least)
    rise, fall = np.zeros(len(values)), np.zeros(len(values))
    doubt = np.abs(values) * rules.get("protection", 0.1)
    if whole:
        rise = np.where(must, np.maximum(least - values, 1.0), 0.0)
    else:
        rise, fall = np.where(must, doubt, 0.0), np.where(must, doubt, 0.0)
    lacks = []
    if rules.get("p") is not None:
        first, both = found.largest(1), found.largest(2)
        lacks.append(first * rules["p"] / 100 - (values - both))
    lacks += [
        found.largest(n) * 100 / percent - values for n, percent in rules.get("dominance", ())
    ]
    for lack in lacks:
        broken = (values > 0) & (lack > _CLOSE * values)
        must |= broken
        rise = np.maximum(rise, np.where(broken, lack, 0.0))
        fall = np.maximum(fall, np.where(broken, np.minimum(lack, values), 0.0))
    must |= found.narrow
    if whole:
        rise = np.maximum(rise, np.where(found.narrow & (values == 0), 1.0, 0.0))
        fall = np.maximum(fall, np.where(found.narrow & (values > 0), 1.0, 0.0))
    else:
        rise = np.maximum(rise, np.where(found.narrow, doubt, 0.0))
        fall = np.maximum(fall, np.where(found.narrow, doubt, 0.0))
    return must, rise, fall


def _hold_true(candidate: TabulationCandidate, found: Recount) -> None:
    """Figures must be true, none may leave that a rule forbids, and none be found out."""
    values, shown = candidate.values, np.isfinite(candidate.values)
    slack = _CLOSE * np.maximum(np.abs(found.values), 1.0)
    if (np.abs(values - found.values)[shown] > slack[shown]).any():
        raise InternalError("A figure that would leave is not the one that is counted again.")
    must, rise, fall = _needs(candidate, found)
    if (must & shown).any():
        raise InternalError("A figure would leave that a rule forbids; nothing was released.")
    hollow = ~shown & (found.people == 0) & ~found.narrow
    if hollow.any():
        raise InternalError("A cell without anybody is withheld, which tells nothing.")
    whole = candidate.design.amount is None
    view = _view(candidate, found, whole=whole)
    owner = found.owners() if candidate.sole else np.full(len(values), -1)
    proofs = {(one.cell, one.sign): one for one in candidate.proofs}
    for sign, need in ((1, rise), (-1, fall)):
        for cell in np.flatnonzero(need > 0).tolist():
            proof = proofs.get((cell, sign))
            known = (owner >= 0) & (owner != owner[cell])
            if proof is not None and _proves(proof, view, found.values, need[cell], known):
                continue
            _hold_program(view, found.values, cell, sign * float(need[cell]), known)


def _view(candidate: TabulationCandidate, found: Recount, *, whole: bool) -> ReaderView:
    """What a reader knows: whoever sees that empty cells are shown knows that others are not."""
    hidden = ~np.isfinite(candidate.values)
    least = 0.0
    low = np.where(hidden, np.where(found.narrow, 0.0, 1.0) if whole else least, candidate.values)
    if not whole and found.negative:
        low = np.where(hidden, -np.inf, candidate.values)
    return ReaderView(candidate.grid, low, np.where(hidden, np.inf, candidate.values), whole)


def _proves(proof: Proof, view: ReaderView, true: Numbers, need: float, known: Flags) -> bool:
    """Whether a proof is one: it keeps all that the reader knows, and moves the cell enough."""
    cells, amounts = proof.cells, proof.amounts
    if len(np.unique(cells)) != len(cells) or known[cells].any():
        return False
    if view.whole and (amounts != np.round(amounts)).any():
        return False
    other = true[cells] + amounts
    slack = 0.0 if view.whole else _CLOSE * np.abs(true[cells]).max(initial=1.0)
    if (other < view.low[cells] - slack).any() or (other > view.high[cells] + slack).any():
        return False
    change = np.zeros(len(true))
    change[cells] = amounts
    apart = np.abs(view.grid.relations @ change).max(initial=0.0)
    if apart > (0.0 if view.whole else 1e-7 * np.abs(amounts).max(initial=1.0)):
        return False
    return bool(change[proof.cell] * proof.sign >= need * (1 - 1e-9))


def _hold_program(view: ReaderView, true: Numbers, cell: int, need: float, known: Flags) -> None:
    """Look for such a table by a program; nothing leaves where there is none."""
    low, high = np.where(known, true, view.low), np.where(known, true, view.high)
    low[cell], high[cell] = view.low[cell], view.high[cell]
    program = Program.of(ReaderView(view.grid, low, high, view.whole), np.flatnonzero(low < high))
    if not (low < high)[cell]:
        raise InternalError("A withheld cell is known to those who contribute to others.")
    reached, proven = program.extreme(cell, -1 if need > 0 else 1)
    moved = (reached - true[cell]) * np.sign(need)
    if not proven or moved < abs(need) * (1 - 1e-6):
        raise InternalError("A withheld cell could be found out too closely; nothing was released.")


def _hold_near(candidate: TabulationCandidate, found: Recount) -> None:
    """Figures must be near the true ones, and hide whoever demands it."""
    values, reach = candidate.values, candidate.reach
    assert reach is not None  # noqa: S101 - the caller looked
    if not np.isfinite(values).all() or (np.abs(values - found.values) > reach).any():
        raise InternalError("A figure is farther from the true one than it may be.")
    if (values < 0).any():
        raise InternalError("A count would be negative.")
    base = candidate.parameters.get("base")
    if base is not None and (values % base != 0).any():
        raise InternalError("A figure is no multiple of the base.")
    sums = candidate.grid.relations @ values
    if candidate.parameters.get("additive") and sums.any():
        raise InternalError("Figures do not add up to their totals.")
    if found.narrow.any():
        raise PrivacyError(
            f"Rounded and perturbed counts do not hide that a line has few values of a sensitive "
            f"column, and l is asked for: use method='suppress'; {SET_ASIDE}."
        )
    least = np.fmax(found.k, candidate.rules.get("threshold") or 0)
    small = np.flatnonzero((found.people > 0) & (found.people < least))
    if not len(small):
        return
    low = np.maximum(values - reach, 0.0)
    view = ReaderView(candidate.grid, low, values + reach, whole=True)
    additive = not sums.any()
    rest = _unhidden(view, found, small, least, values if additive else found.values)
    program = Program.of(view, np.arange(candidate.grid.size)) if len(rest) else None
    for cell in rest.tolist():
        assert program is not None  # noqa: S101 - made where cells are left
        reached, sure = program.extreme(cell, -1)
        if not sure or reached < least[cell]:
            raise PrivacyError(
                f"Noise of at most {reach:g} does not hide that fewer people stand in a cell than "
                f"somebody of the table (or the threshold) asks for: use a larger base or "
                f"maximum, or method='suppress'; {SET_ASIDE}."
            )


def _unhidden(
    view: ReaderView, found: Recount, small: NDArray[np.int64], least: Numbers, start: Numbers
) -> NDArray[np.int64]:
    """Cells that one more person in a part of them, and in all its totals, does not hide."""
    slack = view.high - start
    grid, left = view.grid, []
    above = _above(grid)
    for cell in small.tolist():
        room = min(float(slack[one]) for one in above(cell))
        if start[cell] + np.floor(room) < least[cell]:
            left.append(cell)
    del found
    return np.array(left, dtype=np.int64)


def _above(grid: CellGrid) -> Any:
    """For a cell, a finest cell inside it and everything that contains that one."""
    chains: list[dict[int, set[int]]] = []
    firsts: list[dict[int, int]] = []
    for axis in grid.axes:
        up: dict[int, set[int]] = {i: {i} for i in range(len(axis))}
        first = {i: i for i in range(len(axis))}
        for whole, parts in axis.sums:
            first[whole] = first[parts[0]]
        changed = True
        while changed:
            changed = False
            for whole, parts in axis.sums:
                for part in parts:
                    if not up[whole] <= up[part]:
                        up[part] |= up[whole]
                        changed = True
        chains.append(up)
        firsts.append(first)

    def cells(cell: int) -> list[int]:
        places = np.unravel_index(cell, grid.shape)
        found = [0]
        for axis, up, first, place in zip(grid.axes, chains, firsts, places, strict=True):
            found = [one * len(axis) + node for one in found for node in up[first[int(place)]]]
        return found

    return cells


def _release(candidate: TabulationCandidate, own: Any, *, empty: bool) -> TableRelease:
    design, grid = candidate.design, candidate.grid
    hidden = ~np.isfinite(candidate.values)
    name = "count" if design.amount is None else f"sum of {design.amount}"
    if design.amount is None and design.count == "rows":
        name = "rows"
    while name in design.by:
        name = f"{name} (figure)"
    figures = np.where(hidden, 0.0, candidate.values)
    whole = design.amount is None or bool((figures == np.round(figures)).all())
    column = pa.array(figures.astype(np.int64) if whole else figures, mask=hidden)
    rows = pa.table({**grid.labels(), name: column, "withheld": pa.array(hidden)})
    return TableRelease(
        guarantee=SealedGuarantee(statement=_statement(candidate, empty=empty), demands=own),
        method=candidate.method,
        parameters=dict(candidate.parameters),
        notes=order_notes(own, candidate.notes),
        origin=candidate.table.origin,
        gap=candidate.gap,
        suppressed=0,
        grid=grid,
        value=name,
        withheld=int(hidden.sum()),
        controller=dict(candidate.findings),
        _arrow=rows,
        door=DOOR,
    )


_CLAIMS = {
    "suppress": (
        "no reader of this table alone can tell that fewer people stand in a cell than the "
        "threshold or anybody of the table asks for",
        "no reader of this table alone can work out a withheld sum more closely than its rule says",
    ),
    "round": ("every figure is within the base of the true one, and all figures add up",),
    "random-round": ("every figure is within the base of the true one",),
    "cell-key": ("every figure is within the maximum of the true one",),
}


def _statement(candidate: TabulationCandidate, *, empty: bool) -> dict[str, Any]:
    return {
        "kind": "tabulation",
        "claimed": list(_CLAIMS[candidate.method]),
        "not_claimed": [
            "anything about this table together with others: audit them together",
            "differential privacy",
        ],
        "empty_cells": "published" if empty else "some may be withheld",
        "sole_contributors": "known to themselves" if candidate.sole else "not looked at",
    }
