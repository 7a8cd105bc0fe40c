"""Geographic cloaking: coordinates become cells of a pyramid that hold enough people.

Definition: the square around all places is cut in four again and again; a cell is cut as long as
    every part that holds anybody holds as many people as any of them asks for. Everybody's place
    becomes the middle of their cell.
Source: Mokbel, Chow and Aref, "The new Casper: query processing for location services without
    compromising privacy", 2006; Gruteser and Grunwald, "Anonymous usage of location-based services
    through spatial and temporal cloaking", 2003.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError, UnsatisfiableError
from halfmask.masking.mask import MaskStep, MaskWords, Outcome, anything, one_column, register_mask
from halfmask.masking.numbers import numbers_in
from halfmask.models.verdict import whole_number
from halfmask.release.masked import WildcardAnonymity
from halfmask.table.demands import leaving_columns, resolve

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.masking.mask import Rows
    from halfmask.table.table import Table

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

CELL = "cell"
# A square around the whole earth: borders that followed the places would tell the outermost one.
_LOW, _SPAN = -180.0, 360.0


@register_mask
@dataclass(frozen=True, slots=True)
class Cloak(MaskStep):
    """Replace coordinates by the middle of a cell that at least ``k`` people share.

    People's own k of the schema is kept where it is higher. The cells leave beside the rows as
    ``release.tables["cells"]``, with their borders; ``geojson`` makes a map of them. Rows without
    a place keep none.
    """

    name: ClassVar[str] = "cloak"
    words: ClassVar[MaskWords] = MaskWords(
        "Coordinates become the middle of a cell that enough people share.",
        "Finding a person by the place: at least k people are shown at it.",
        "Following somebody over several tables, and what all people of a cell share.",
    )

    latitude: str = field(metadata=one_column("numbers"))
    longitude: str = field(metadata=one_column("numbers"))
    k: int = field(metadata=whole_number(2))
    levels: int = field(default=20, metadata=whole_number(1))
    cell: str = field(default=CELL, metadata=anything())

    def faults(self, table: Table) -> list[str]:
        """Refuse a name that is taken."""
        if self.cell in table.arrow.column_names:
            return [f"there is a column '{self.cell}' already: name the cells otherwise (cell=)."]
        return []

    def apply(self, rows: Rows) -> Outcome:
        """Cloak the places."""
        north, east = (numbers_in(rows.table, n) for n in (self.latitude, self.longitude))
        if np.any(np.abs(north.held) > 90) or np.any(np.abs(east.held) > 180):
            raise InputError(
                "cloak: coordinates are degrees, -90 to 90 north and -180 to 180 east."
            )
        there = north.there & east.there
        if not there.any():
            raise InputError("cloak: no row has both coordinates.")
        owner, _ = rows.people()
        need = np.ceil(
            np.fmax(resolve(rows.table, "k", leaving_columns(rows.table.schema, "k")), self.k)
        )
        ids, depth = cells_of(
            np.column_stack([north.values, east.values])[there],
            owner[there],
            need[there].astype(np.int64),
            min(self.levels, 24),
        )
        low, high = _borders(ids, depth)
        middle = (low + high) / 2
        _, first, number = np.unique((depth << 56) | ids, return_index=True, return_inverse=True)
        cell = np.full(len(rows), -1, np.int64)
        cell[there] = number.reshape(-1)
        out: dict[str, Any] = {}
        for side, one in ((0, north), (1, east)):
            values = np.full(len(rows), np.nan)
            values[there] = middle[:, side]
            out[one.name] = pa.array(np.where(there, values, 0.0), mask=~there)
        out[self.cell] = pa.array(np.where(there, cell, 0), mask=~there)
        beside = pa.table(
            {
                self.cell: np.arange(len(first)),
                "south": low[first, 0],
                "west": low[first, 1],
                "north": high[first, 0],
                "east": high[first, 1],
                "rows": np.bincount(number.reshape(-1), minlength=len(first)),
            }
        )
        facts = {"cells": len(first), "smallest": int(np.bincount(number.reshape(-1)).min())}
        claims = (WildcardAnonymity(self.k, (self.cell,), "value"),) if there.all() else ()
        return Outcome(out, tables={"cells": beside}, facts=facts, claims=claims)


def cells_of(places: Floats, owner: Ints, need: Ints, levels: int) -> tuple[Ints, Ints]:
    """Per place its cell and level: the finest whose people, and those of all its sisters, suffice.

    Raises:
        UnsatisfiableError: all people together are fewer than somebody asks for.
    """
    from halfmask.kernels.group import number_keys

    size = len(places)
    ids, depth = np.zeros(size, np.int64), np.zeros(size, np.int64)
    if not size:
        return ids, depth
    people = len(np.unique(owner))
    several, many = people < size, int(owner.max()) + 1
    if people < need.max():
        raise UnsatisfiableError("cloak: there are fewer people than somebody asks for.")
    unit = np.minimum((places - _LOW) / _SPAN, 1 - 1e-12)
    open_ = np.ones(size, dtype=bool)
    for level in range(1, levels + 1):
        grid = np.floor(unit[open_] * (1 << level)).astype(np.int64)
        finer = grid[:, 0] * (1 << level) + grid[:, 1]
        parent = ids[open_]
        child, counts = number_keys(finer.astype(np.uint64))
        if several:
            pairs = np.unique(child * many + owner[open_])
            counts = np.bincount(pairs // many, minlength=len(counts))
        asked = np.zeros(len(counts), np.int64)
        np.maximum.at(asked, child, need[open_])
        short = (counts < asked)[child]
        family, sizes = number_keys(parent.astype(np.uint64))
        stays = np.zeros(len(sizes), dtype=bool)
        stays[family[short]] = True  # a cell is cut only where all its parts suffice
        cut = ~stays[family]
        places_open = np.flatnonzero(open_)
        ids[places_open[cut]] = finer[cut]
        depth[places_open[cut]] = level
        open_[places_open[~cut]] = False
        if not open_.any():
            break
    return ids, depth


def _borders(ids: Ints, depth: Ints) -> tuple[Floats, Floats]:
    """Per place the corners of its cell."""
    if not len(ids):
        return np.zeros((0, 2)), np.zeros((0, 2))
    side = _SPAN / (1 << depth)
    down, across = ids >> depth, ids & ((1 << depth) - 1)
    corner = _LOW + np.column_stack([down * side, across * side])
    return corner, corner + side[:, None]


def geojson(cells: pa.Table, cell: str = CELL) -> str:
    """The cells of a release as a GeoJSON document, one square each.

    Example:
        >>> import pyarrow as pa
        >>> cells = pa.table({"cell": [0], "south": [1.0], "west": [2.0], "north": [3.0],
        ...                   "east": [4.0], "rows": [5]})
        >>> geojson(cells)[:40]
        '{"type": "FeatureCollection", "features"'
    """
    features = []
    for one in cells.to_pylist():
        south, west, north, east = (one[side] for side in ("south", "west", "north", "east"))
        ring = [[west, south], [east, south], [east, north], [west, north], [west, south]]
        features.append(
            {
                "type": "Feature",
                "properties": {cell: one[cell], "rows": one["rows"]},
                "geometry": {"type": "Polygon", "coordinates": [ring]},
            }
        )
    return json.dumps({"type": "FeatureCollection", "features": features})
