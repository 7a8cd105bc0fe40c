"""What to do next: what each quasi-identifier costs in unique people, in counts."""

from __future__ import annotations

from dataclasses import asdict, dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from halfmask.table.classes import Classes
    from halfmask.table.table import Table


_TUPLES = 100_000
_STEPS = 20


@dataclass(frozen=True, slots=True)
class Advice:
    """What generalizing one column would change.

    Attributes:
        column: the column.
        unique_rows: rows alone in their class as things stand.
        one_level: the same if the column went up one level of its hierarchy.
        removed: the same if the column were removed.
        levels: how many levels its hierarchy has beyond the values; 1 means: all or nothing.
    """

    column: str
    unique_rows: int
    one_level: int
    removed: int
    levels: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def advice(table: Table, classes: Classes) -> tuple[Advice, ...]:
    """Try each quasi-identifier alone; the most helpful first."""
    now = _alone(classes)
    out = []
    for place, name in enumerate(table.schema.quasi):
        maps = table.hierarchy(name).maps
        coarser = _alone(classes.coarsen([place], [maps[min(1, len(maps) - 1)]]))
        nothing = maps[-1] * 0
        gone = _alone(classes.coarsen([place], [nothing]))
        out.append(Advice(name, now, coarser, gone, len(maps) - 1))
    return tuple(sorted(out, key=lambda one: (one.one_level, one.removed, one.column)))


@dataclass(frozen=True, slots=True)
class Step:
    """One step of a way to fewer unique people: which column goes up, and who is alone then."""

    column: str
    level: int
    unique_rows: int

    def to_dict(self) -> dict[str, Any]:
        """Return plain values."""
        return asdict(self)


def way(table: Table, classes: Classes, *, share: float = 0.05) -> tuple[Step, ...]:
    """Generalize the column that helps most, again and again, until few people are alone.

    A greedy way, not the best: it shows which columns matter. Nothing for very large tables.
    """
    if len(classes) > _TUPLES:
        return ()
    quasi = table.schema.quasi
    maps = [table.hierarchy(name).maps for name in quasi]
    levels = [0] * len(quasi)
    now, alone = classes, _alone(classes)
    limit = share * int(classes.rows.sum())
    out: list[Step] = []
    while alone > limit and len(out) < _STEPS:
        tries = []
        for place, levels_of in enumerate(maps):
            if levels[place] + 1 < len(levels_of):
                step = table.hierarchy(quasi[place]).step(levels[place], levels[place] + 1)
                coarser = now.coarsen([place], [step])
                # Among equal counts the step that leaves fewer classes is on its way further.
                tries.append((_alone(coarser), len(coarser), place, coarser))
        if not tries:
            break
        alone, _, place, now = min(tries, key=lambda one: one[:3])
        levels[place] += 1
        out.append(Step(quasi[place], levels[place], alone))
    return tuple(out)


def _alone(classes: Classes) -> int:
    return int(classes.rows[(classes.people == 1)].sum())
