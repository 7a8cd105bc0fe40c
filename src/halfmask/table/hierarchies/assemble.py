"""From the labels of each level to a checked hierarchy: top, missing value, nesting."""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from halfmask.errors import HierarchyError
from halfmask.table.hierarchy import TOP, Hierarchy, broken_nesting, from_levels

if TYPE_CHECKING:
    import pyarrow as pa

Labels = list[Any]
_ELSEWHERE = object()  # a leaf that the table does not hold, whatever it is called


@dataclass(frozen=True, slots=True)
class Levels:
    """The labels of every level above the values, before they become a hierarchy.

    Attributes:
        inside: per level from 1 up, the label of each value that is not missing.
        outside: the same for leaves that the table does not hold.
        extra: how many such leaves there are.
        missing: per level, the label of the missing value, where the builder gives one.
        rooted: the levels are written out by somebody, so that a single label at the coarsest one
            is the root; a computed label (an interval, a decade) never is.
    """

    inside: list[Labels]
    outside: list[Labels] = field(default_factory=list)
    extra: int = 0
    missing: Labels | None = None
    rooted: bool = False


def assemble(column: str, values: pa.Array, levels: Levels, *, top: str | bool = True) -> Hierarchy:
    """Bind ``levels`` to ``values``, close them with a root unless ``top`` is False, and check.

    The missing value keeps its own label until the root, unless the builder gives it labels.

    Raises:
        HierarchyError: labels of one level have several labels at the next.
    """
    inside = [list(labels) for labels in levels.inside]
    outside = [list(labels) for labels in levels.outside] or [[] for _ in inside]
    count = len(values) - values.null_count
    missing = None if levels.missing is None else list(levels.missing)
    roots = {*inside[-1], *outside[-1], *(missing or [])[-1:]} if inside else set()
    if top is not False and not (levels.rooted and len(roots) == 1):
        label = top if isinstance(top, str) else TOP
        inside.append([label] * count)
        outside.append([label] * levels.extra)
        missing = None if missing is None else [*missing, label]
        roots = {label}
    leaves: list[Labels] = [values.to_pylist(), *inside]
    if values.null_count:
        if missing is None:
            missing = [None] * len(inside)
            if top is not False:
                missing[-1] = next(iter(roots))
        for labels, label in zip(leaves[1:], missing, strict=True):
            labels.append(label)
    hierarchy = from_levels(leaves, other_leaves=[[_ELSEWHERE] * levels.extra, *outside])
    _check_nesting(column, leaves, outside)
    return hierarchy


def _check_nesting(column: str, leaves: list[Labels], outside: list[Labels]) -> None:
    faults = []
    known = [above + other for above, other in zip(leaves[1:], outside, strict=True)]
    for level, (fine, coarse) in enumerate(itertools.pairwise(known), start=1):
        broken = broken_nesting(fine, coarse)
        if broken:
            faults.append(
                f"Column '{column}': {broken} label(s) of level {level} have more than one label"
                f" at level {level + 1}; levels must nest."
            )
    if faults:
        raise HierarchyError(*faults)


def options(name: str, value: object, allowed: Sequence[str]) -> dict[str, Any]:
    """The keys of a builder's table in the schema file, or a fault that names the nearest key."""
    if not isinstance(value, Mapping):
        raise HierarchyError(f"hierarchy {name}: give a table with {', '.join(allowed)}.")
    faults = []
    for key in value:
        if key not in allowed:
            near = difflib.get_close_matches(str(key), allowed, n=1)
            hint = f"did you mean '{near[0]}'?" if near else f"known are {', '.join(allowed)}."
            faults.append(f"hierarchy {name}: unknown key '{key}'; {hint}")
    if faults:
        raise HierarchyError(*faults)
    return dict(value)


def check_top(name: str, top: object) -> None:
    """A stated top is a label, True (a root is added where there is none) or False (left open)."""
    if not isinstance(top, bool | str) or top == "":
        raise HierarchyError(f"hierarchy {name}: top must be a label, true or false.")


def with_top(entries: dict[str, object], top: object) -> dict[str, object]:
    """``entries`` and the stated top, where it is not the default."""
    return entries if top is True else {**entries, "top": top}


def present(values: pa.Array) -> list[Any]:
    """The values of a column without the missing one, which stands last."""
    return list(values.drop_null().to_pylist())
