"""All declared hierarchies checked together: covered, nested, one root or a stated top."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import HierarchyError

if TYPE_CHECKING:
    from halfmask.table.hierarchy import Hierarchy
    from halfmask.table.table import Table


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
