"""All rules of hierarchies: what stands behind ``hierarchy =`` in a schema becomes a builder.

``"auto"`` is found from how the columns of the table go together. ``mask = true`` is as long as the
longest code, neighbors without an order are those that the rows hold: labels of a hierarchy that
follows the values of the rows can show a value of a row that does not leave. A declared hierarchy
gives each value its labels whatever the others are.
"""

from __future__ import annotations

import difflib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.errors import HierarchyError
from halfmask.table.hierarchies.arx_csv import Csv
from halfmask.table.hierarchies.dates import Dates
from halfmask.table.hierarchies.intervals import Intervals
from halfmask.table.hierarchies.ladder import Flat, Mask, Ordered
from halfmask.table.hierarchies.tree import Tree, check_top, options
from halfmask.table.hierarchy_finder import find_hierarchies
from halfmask.table.values import is_text

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.table.hierarchy import Hierarchy, HierarchyBuilder
    from halfmask.table.table import Table


_KEYS = ("levels", "bins", "intervals")
INTERVALS = ("equal-frequency", "equal-width", "modl")


@dataclass(frozen=True, slots=True)
class Auto:
    """A hierarchy that is still to be found, from all rows and columns at once.

    Attributes:
        levels: the most levels between the values and the top.
        bins: how many intervals numbers are first cut into.
        intervals: how: ``"equal-frequency"``, ``"equal-width"``, or ``"modl"``: cut anew where it
            explains the other columns best.
    """

    levels: int = 4
    bins: int = 10
    intervals: str = "equal-frequency"

    def __post_init__(self) -> None:
        faults = [
            f"hierarchy auto: {name} must be a whole number of at least {least}."
            for name, value, least in (("levels", self.levels, 1), ("bins", self.bins, 2))
            if not isinstance(value, int) or isinstance(value, bool) or value < least
        ]
        if self.intervals not in INTERVALS:
            faults.append(f"hierarchy auto: intervals must be one of {', '.join(INTERVALS)}.")
        if faults:
            raise HierarchyError(*faults)

    @classmethod
    def parse(cls, value: object, folder: Path) -> Auto:  # noqa: ARG003 - one signature for all
        """Read what stands behind ``auto =`` in the schema file."""
        return cls() if value is True else cls(**options("auto", value, _KEYS))

    def to_dict(self) -> dict[str, object]:
        """What stands behind ``hierarchy =`` in the schema file."""
        default = Auto()
        given = {key: getattr(self, key) for key in _KEYS}
        own = {key: value for key, value in given.items() if value != getattr(default, key)}
        return {"auto": own or True}

    def build(self, column: str, values: pa.Array) -> Hierarchy:  # noqa: ARG002 - one signature
        """Refuse: one column's values do not tell."""
        raise HierarchyError(
            f"Column '{column}': an automatic hierarchy is found from the whole table it stands "
            "in. Run halfmask describe --hierarchies auto on a whole table, and use what it finds."
        )


def find_automatic(table: Table, seconds: float | None = None) -> Table:
    """The table with automatic hierarchies found and written out; found once.

    Args:
        table: the rows.
        seconds: what the search may take; what it finds then is used under a time limit alone.
    """
    if not any(isinstance(c.hierarchy, Auto) for c in table.schema.columns.values()):
        return table
    hurried = seconds is not None and "settled" not in table.memo
    known = "settled in time" if hurried else "settled"
    if known not in table.memo:
        table.memo[known] = find_hierarchies(table, seconds)
    return table.memo[known]


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


def follows_values(builder: object, kind: pa.DataType) -> bool:
    """Whether the labels of a value of type ``kind`` may depend on other values of its column."""
    if builder is None or isinstance(builder, Flat | Csv | Tree):
        return False
    if isinstance(builder, Mask):
        return builder.length is None
    if isinstance(builder, Ordered):
        return bool(builder.groups) and not builder.order
    if isinstance(builder, Intervals | Dates):
        # One text decides whether all are written as whole numbers, or as days.
        inner = kind.value_type if pa.types.is_dictionary(kind) else kind
        return bool(is_text(inner) or pa.types.is_uint64(inner))
    return True


def columns_following(table: Table, names: Sequence[str]) -> list[str]:
    """Those of ``names`` whose hierarchy follows the values of the rows."""
    columns, types = table.schema.columns, table.arrow.schema
    return [
        name
        for name in names
        if name in table.found or follows_values(columns[name].hierarchy, types.field(name).type)
    ]


def labels_stay(whole: Table, rest: Table, keep: NDArray[np.bool_], names: Sequence[str]) -> bool:
    """Whether the rows ``keep`` of ``whole``, alone in ``rest``, have the same labels there."""
    for name in names:
        old, new = whole.hierarchy(name), rest.hierarchy(name)
        if old.height != new.height:
            return False
        codes, first = np.unique(rest.encode(name).codes, return_index=True)
        before = whole.encode(name).codes[keep][first]
        for level in range(1, old.height + 1):
            if _labels(old, level, before) != _labels(new, level, codes):
                return False
    return True


def _labels(hierarchy: Hierarchy, level: int, codes: NDArray[np.int32]) -> list[object]:
    return [hierarchy.labels[level][code] for code in hierarchy.maps[level][codes].tolist()]
