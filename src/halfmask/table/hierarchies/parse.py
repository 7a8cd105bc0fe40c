"""What stands behind ``hierarchy =`` in a schema, made a builder."""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from halfmask.errors import HierarchyError
from halfmask.table.hierarchies.arx_csv import Csv
from halfmask.table.hierarchies.assemble import check_top
from halfmask.table.hierarchies.auto import Auto
from halfmask.table.hierarchies.dates import Dates
from halfmask.table.hierarchies.flat import Flat
from halfmask.table.hierarchies.intervals import Intervals
from halfmask.table.hierarchies.mask import Mask
from halfmask.table.hierarchies.ordered import Ordered
from halfmask.table.hierarchies.tree import Tree

if TYPE_CHECKING:
    from halfmask.table.hierarchy import HierarchyBuilder

BUILDERS: dict[str, Callable[[Any, Path], HierarchyBuilder]] = {
    "auto": Auto.parse,
    "csv": Csv.parse,
    "dates": Dates.parse,
    "flat": Flat.parse,
    "intervals": Intervals.parse,
    "mask": Mask.parse,
    "ordered": Ordered.parse,
    "tree": Tree.parse,
}


def from_dict(spec: object, *, folder: str | Path = "") -> HierarchyBuilder:
    """Make the builder that ``{ builder = options }`` names; ``top`` may stand beside it.

    Example:
        >>> from_dict({"intervals": [5, 10]})
        Intervals(widths=(5, 10), origin=0, bounds=(), top=True)
    """
    known = ", ".join(BUILDERS)
    if spec == "auto":
        return Auto()
    if not isinstance(spec, Mapping):
        raise HierarchyError(f"a hierarchy is a table with one of {known}.")
    names = [name for name in spec if name != "top"]
    if len(names) != 1:
        raise HierarchyError(f"a hierarchy has exactly one of {known}; this one has {len(names)}.")
    name = str(names[0])
    if name not in BUILDERS:
        near = difflib.get_close_matches(name, BUILDERS, n=1)
        hint = f"did you mean '{near[0]}'?" if near else f"known are {known}."
        raise HierarchyError(f"unknown hierarchy builder '{name}'; {hint}")
    builder = BUILDERS[name](spec[name], Path(folder))
    if "top" not in spec:
        return builder
    check_top(name, spec["top"])
    if isinstance(builder, Auto | Flat):
        raise HierarchyError(f"hierarchy {name}: takes no top.")
    return replace(builder, top=spec["top"])  # type: ignore[type-var]
