"""From the labels of each level to a checked hierarchy: top, missing value, nesting.

Hierarchies written as a nested mapping: group, subgroup, ..., list of values.

All declared hierarchies checked together: covered, nested, one root or a stated top.
"""

from __future__ import annotations

import difflib
import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.errors import HierarchyError
from halfmask.table.hierarchy import TOP, Hierarchy, broken_nesting, canonical, from_levels

if TYPE_CHECKING:
    from pathlib import Path

    import pyarrow as pa

    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table


LeafLabels = list[Any]
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

    inside: list[LeafLabels]
    outside: list[LeafLabels] = field(default_factory=list)
    extra: int = 0
    missing: LeafLabels | None = None
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
    leaves: list[LeafLabels] = [values.to_pylist(), *inside]
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


def _check_nesting(column: str, leaves: list[LeafLabels], outside: list[LeafLabels]) -> None:
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


def present_values(values: pa.Array) -> list[Any]:
    """The values of a column without the missing one, which stands last."""
    return list(values.drop_null().to_pylist())


_TOP_KEY = "top"


@dataclass(frozen=True, slots=True)
class Tree:
    """A tree of groups whose leaves are the values.

    A value that stands less deep than others repeats its own text at the levels it lacks, so the
    groups of the outermost mapping all stand at the same level.

    Attributes:
        groups: name of a group to its subgroups (a mapping) or its values (a list).
        top: the label of the root that is added where there are several outermost groups; False:
            leave it open.

    Example:
        >>> Tree({"Europe": {"West": ["FR", "DE"], "East": ["PL"]}, "Asia": ["JP"]}).height
        2
    """

    groups: Mapping[str, Any]
    top: str | bool = True

    def __post_init__(self) -> None:
        check_top("tree", self.top)
        if not isinstance(self.groups, Mapping) or not self.groups:
            raise HierarchyError("hierarchy tree: give a mapping from groups to their values.")
        paths = list(_paths(self.groups, ()))
        twice = len(paths) - len({path[0] for path in paths})
        if twice:
            raise HierarchyError(f"hierarchy tree: {twice} value(s) stand in two places.")
        if not paths:
            raise HierarchyError("hierarchy tree: no group holds a value.")

    @property
    def height(self) -> int:
        """How many levels of groups there are."""
        return max(len(path) for path in _paths(self.groups, ())) - 1

    def leaves(self) -> list[str]:
        """The values that the tree knows."""
        return [path[0] for path in _paths(self.groups, ())]

    @classmethod
    def parse(cls, value: object, folder: Path) -> Tree:  # noqa: ARG003 - one signature for all
        """Read what stands behind ``tree =`` in the schema file."""
        if not isinstance(value, Mapping):
            raise HierarchyError("hierarchy tree: give a table from groups to their values.")
        return cls(value)

    def to_dict(self) -> dict[str, object]:
        """What stands behind ``hierarchy =`` in the schema file."""
        out: dict[str, object] = {"tree": _plain(self.groups)}
        return out if self.top is True else {**out, _TOP_KEY: self.top}

    def build(self, column: str, values: pa.Array) -> Hierarchy:
        """Bind the tree to the values of ``column``."""
        height = self.height
        leaves = {path[0]: _stretch(path, height) for path in _paths(self.groups, ())}
        found = [leaves.pop(canonical(value), None) for value in present_values(values)]
        absent = sum(path is None for path in found)
        if absent:
            raise HierarchyError(
                f"Column '{column}': {absent} distinct value(s) are not in the tree. Add them."
            )
        held = [path for path in found if path is not None]
        inside = [[path[level] for path in held] for level in range(height)]
        outside = [[path[level] for path in leaves.values()] for level in range(height)]
        levels = Levels(inside, outside, len(leaves), rooted=True)
        return assemble(column, values, levels, top=self.top)


def _paths(node: object, above: tuple[str, ...]) -> Iterator[tuple[str, ...]]:
    """Each value with its groups, innermost first."""
    if isinstance(node, Mapping):
        for name, inside in node.items():
            yield from _paths(inside, (str(name), *above))
    elif isinstance(node, Sequence) and not isinstance(node, str):
        for value in node:
            if isinstance(value, Mapping | list | tuple):
                yield from _paths(value, above)
            else:
                yield (canonical(value), *above)
    else:
        yield (canonical(node), *above)


def _stretch(path: tuple[str, ...], height: int) -> tuple[str, ...]:
    leaf, *groups = path
    return (*[leaf] * (height - len(groups)), *groups)


def _plain(node: Any) -> Any:
    if isinstance(node, Mapping):
        return {str(name): _plain(inside) for name, inside in node.items()}
    if isinstance(node, list | tuple):
        return [_plain(inside) for inside in node]
    return node


def check_hierarchies(table: Table) -> None:
    """Build and check the hierarchy of every quasi-identifier and of every column that has one.

    Raises:
        HierarchyError: with every fault of every column.
    """
    faults: list[str] = []
    for name, column in table.schema.columns.items():
        if column.role != "quasi" and column.hierarchy is None:
            continue
        try:
            hierarchy = table.hierarchy(name)
        except HierarchyError as error:
            faults += error.faults
            continue
        values = len(table.encode(name).values)
        opened = getattr(column.hierarchy, "top", True) is False
        faults += hierarchy_faults(name, hierarchy, values, opened=opened)
    if faults:
        raise HierarchyError(*faults)


def hierarchy_faults(name: str, hierarchy: Hierarchy, values: int, *, opened: bool) -> list[str]:
    """What is wrong with one built hierarchy; builders of others' making are checked like ours."""
    levels, covered = hierarchy.maps.shape
    if covered != values or levels != len(hierarchy.labels):
        return [f"Column '{name}': the hierarchy covers {covered} of {values} distinct values."]
    faults = []
    for level, (labels, leaves) in enumerate(zip(hierarchy.labels, hierarchy.leaves, strict=True)):
        row = hierarchy.maps[level]
        outside = int(np.count_nonzero((row < 0) | (row >= len(labels))))
        if outside or len(leaves) != len(labels):
            faults.append(f"Column '{name}': {outside} value(s) have no label at level {level}.")
    if faults:
        return faults
    for level in range(levels - 1):
        fine, coarse = hierarchy.maps[level], hierarchy.maps[level + 1]
        broken = int(np.count_nonzero(hierarchy.step(level, level + 1)[fine] != coarse))
        if broken:
            faults.append(
                f"Column '{name}': {broken} value(s) share a label at level {level} but not at"
                f" level {level + 1}; levels must nest."
            )
    if not opened and len(np.unique(hierarchy.maps[-1])) > 1:
        faults.append(
            f"Column '{name}': the coarsest level has {len(np.unique(hierarchy.maps[-1]))} labels;"
            " merge them under one root, or state top = false."
        )
    return faults
