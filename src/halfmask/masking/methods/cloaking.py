"""Geographic cloaking: coordinates become areas that enough people share, each with their own k.

Definition: (pyramid) the square around the earth is cut in four again and again. People of parts
    that hold enough of them go on with their part; those of the others stay together in the
    undivided cell, with the smallest part that has enough where they are too few. (grid) Who asks
    for most comes first: a box of cells of a fine grid grows around the place, by the strip of
    cells that brings most people for its area, until the people in it who have no area yet
    suffice; then outer lines are taken off while they do. Everybody's place becomes the middle of
    their area.
Source: Mokbel, Chow and Aref, "The new Casper: query processing for location services without
    compromising privacy", 2006; Gruteser and Grunwald, "Anonymous usage of location-based services
    through spatial and temporal cloaking", 2003; Bamba, Liu, Pesti and Wang, "Supporting anonymous
    location queries in mobile environments with PrivacyGrid", 2008. There everybody's box is
    their own and counts whoever is inside; here an area counts only the people who are shown at
    it, so that k people share what leaves.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError, UnsatisfiableError
from halfmask.masking.numeric_columns import numbers_in
from halfmask.masking.step import MaskStep, MaskWords, Outcome, anything, one_column, register_mask
from halfmask.models.blank_cells import WildcardAnonymity
from halfmask.models.verdict import whole_number, word

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.masking.step import Rows
    from halfmask.table.table import Table

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

CELL = "cell"
# A square around the whole earth: one around the places would tell the outermost of them.
_LOW, _SPAN = -180.0, 360.0


_METHODS = {
    "pyramid": "cells of a pyramid (Casper)",
    "grid": "boxes of grid cells that grow around people (PrivacyGrid)",
}
_RADIUS = 6371.0  # of the earth, in kilometers


@register_mask
@dataclass(frozen=True, slots=True)
class Cloak(MaskStep):
    """Replace coordinates by the middle of an area that at least ``k`` people share.

    People's own k of the schema is kept where it is higher. The areas leave beside the rows as
    ``release.tables["cells"]``, with their borders; ``geojson`` makes a map of them. Areas may
    overlap: the people of one are those who are shown at it. Rows without a place keep none.
    """

    name: ClassVar[str] = "cloak"
    words: ClassVar[MaskWords] = MaskWords(
        "Coordinates become the middle of an area that enough people share.",
        "Finding a person by the place: at least k people are shown at it.",
        "Following somebody over several tables, and what all people of an area share.",
    )

    latitude: str = field(metadata=one_column("numbers"))
    longitude: str = field(metadata=one_column("numbers"))
    k: int = field(metadata=whole_number(2))
    levels: int = field(default=20, metadata=whole_number(1))
    cell: str = field(default=CELL, metadata=anything())
    method: str = field(default="pyramid", metadata=word("Areas are", **_METHODS))

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
        need = rows.people_needed(self.k)
        find = pyramid_areas if self.method == "pyramid" else grid_areas
        # Cells of about 2 meters, whose numbers fit into 64 bits beside their level.
        number, low, high = find(
            np.column_stack([north.values, east.values])[there],
            owner[there],
            need[there],
            min(self.levels, 24),
        )
        middle = ((low + high) / 2)[number]
        cell = np.full(len(rows), -1, np.int64)
        cell[there] = number
        out: dict[str, Any] = {}
        for side, one in ((0, north), (1, east)):
            values = np.full(len(rows), np.nan)
            values[there] = middle[:, side]
            out[one.name] = pa.array(np.where(there, values, 0.0), mask=~there)
        out[self.cell] = pa.array(np.where(there, cell, 0), mask=~there)
        sizes = np.bincount(number, minlength=len(low))
        beside = pa.table(
            {
                self.cell: np.arange(len(low)),
                "south": low[:, 0],
                "west": low[:, 1],
                "north": high[:, 0],
                "east": high[:, 1],
                "rows": sizes,
            }
        )
        facts = {
            "cells": len(low),
            "smallest": int(sizes.min()),
            "square_kilometers": round(float((_surface(low, high) * sizes).sum() / sizes.sum()), 6),
        }
        claims = (WildcardAnonymity(self.k, (self.cell,), "value"),) if there.all() else ()
        return Outcome(out, tables={"cells": beside}, facts=facts, claims=claims)


def _surface(low: Floats, high: Floats) -> Floats:
    """How large areas are on the globe, in square kilometers."""
    south, north = (np.sin(np.radians(np.clip(one[:, 0], -90, 90))) for one in (low, high))
    found: Floats = _RADIUS**2 * (north - south) * np.radians(high[:, 1] - low[:, 1])
    return found


def _refuse_few(owner: Ints, need: Ints) -> Ints:
    """Whose places are, numbered without gaps; refuses fewer people than somebody asks for."""
    held = np.bincount(owner) > 0
    if np.count_nonzero(held) < need.max():
        raise UnsatisfiableError(
            f"cloak: there are fewer people with a place ({np.count_nonzero(held):,}) than k or "
            "than somebody asks for: lower k, or leave such people out."
        )
    return owner if held.all() else (np.cumsum(held) - 1)[owner]


def _on_grid(places: Floats, level: int) -> Ints:
    """The row and column of each place on the grid of a level."""
    unit = np.minimum((places - _LOW) / _SPAN, 1 - 1e-12)
    found: Ints = np.floor(unit * (1 << level)).astype(np.int64)
    return found


def pyramid_areas(
    places: Floats, owner: Ints, need: Ints, levels: int
) -> tuple[Ints, Floats, Floats]:
    """Per place the number of its area, and per area its corners, by a pyramid."""
    ids, depth = cells_of(places, owner, need, levels)
    _, first, number = np.unique((depth << 56) | ids, return_index=True, return_inverse=True)
    ids, depth = ids[first], depth[first]
    corner = np.column_stack([ids >> depth, ids & ((1 << depth) - 1)])
    low, high = _degrees(corner, corner + 1, depth)
    return number.reshape(-1), low, high


def grid_areas(places: Floats, owner: Ints, need: Ints, levels: int) -> tuple[Ints, Floats, Floats]:
    """Per place the number of its area, and per area its corners, by boxes that grow.

    A border of a box tells that somebody stands at it. So boxes leave wider, with borders on lines
    that stand apart by more than an eighth of their longer side.
    """
    from halfmask.kernels.masking.cloaking import cloak_places

    person = _refuse_few(owner, need)
    grid = _on_grid(places, levels)
    curve = np.argsort(_along_curve(grid), kind="stable")
    order = np.argsort(-need[curve], kind="stable")
    down, across = (grid[:, side][curve] for side in (0, 1))
    found, boxes = cloak_places(down, across, person[curve], need[curve], order)
    number = np.empty(len(places), np.int64)
    number[curve] = found
    longer = np.maximum(boxes[:, 2] - boxes[:, 0], boxes[:, 3] - boxes[:, 1]) + 1
    unit = (1 << np.maximum(np.floor(np.log2(longer)).astype(np.int64) - 2, 0))[:, None]
    low, high = _degrees(boxes[:, :2] // unit * unit, (boxes[:, 2:] // unit + 1) * unit, levels)
    # Found most demanding first, areas leave with numbers that must not tell whose k is higher.
    first = np.unique(found, return_index=True)[1]
    by_corner = np.lexsort((first, high[:, 1], high[:, 0], low[:, 1], low[:, 0]))
    renumbered = np.empty(len(by_corner), np.int64)
    renumbered[by_corner] = np.arange(len(by_corner))
    return renumbered[number], low[by_corner], high[by_corner]


def _degrees(low: Ints, high: Ints, level: Any) -> tuple[Floats, Floats]:
    """Lines of a grid as degrees."""
    side = np.broadcast_to(_SPAN / (1 << np.asarray(level)), len(low))[:, None]
    return _LOW + low * side, _LOW + high * side


def _along_curve(grid: Ints) -> NDArray[np.uint64]:
    """Where cells stand on a curve that fills the plane (Morton), so that near ones stand near."""
    spread = grid.astype(np.uint64)
    for shift, mask in (
        (16, 0x0000FFFF0000FFFF), (8, 0x00FF00FF00FF00FF), (4, 0x0F0F0F0F0F0F0F0F),
        (2, 0x3333333333333333), (1, 0x5555555555555555),
    ):  # fmt: skip
        spread = (spread | (spread << np.uint64(shift))) & np.uint64(mask)
    found: NDArray[np.uint64] = (spread[:, 0] << np.uint64(1)) | spread[:, 1]
    return found


def cells_of(places: Floats, owner: Ints, need: Ints, levels: int) -> tuple[Ints, Ints]:
    """Per place its cell of the pyramid and its level.

    Raises:
        UnsatisfiableError: all people together are fewer than somebody asks for.
    """
    size = len(places)
    if not size:
        return np.zeros(0, np.int64), np.zeros(0, np.int64)
    person = _refuse_few(owner, need)
    grid = _on_grid(places, levels)
    curve = _along_curve(grid)
    order = np.argsort(curve, kind="stable")  # along the curve, cells of all levels are runs
    curve, need = curve[order], need[order]
    several = int(person.max()) + 1 < size
    person = person[order] if several else person
    reached = np.zeros(size, np.int64)
    going = np.arange(size)
    for level in range(1, levels + 1):
        keys = curve >> np.uint64(2 * (levels - level))
        begins = np.flatnonzero(np.append(True, keys[1:] != keys[:-1]))
        counts = rows = np.diff(np.append(begins, len(keys)))
        above = keys[begins] >> np.uint64(2)
        family = np.cumsum(np.append(False, above[1:] != above[:-1]))
        families = int(family[-1]) + 1
        if several:
            counts = _people(np.repeat(np.arange(len(rows)), rows), person, len(rows))
        # Who would be too few in a part stays in the whole, and enough others with them:
        # subtracting parts from the whole isolates nobody.
        rest = _rest(family, counts, np.maximum.reduceat(need, begins), families)
        if several:  # a person in two parts was counted twice
            stays = np.repeat(rest, rows)
            group = np.repeat(family, rows)[stays]
            rest |= (_people(group, person[stays], families) < _most(group, need[stays], families))[
                family
            ]
        if rest.any():
            on = np.repeat(~rest, rows)
            going, curve, need = going[on], curve[on], need[on]
            person = person[on] if several else person
        if not len(going):
            break
        reached[going] = level
    depth = np.empty(size, np.int64)
    depth[order] = reached
    coarse = grid >> (levels - depth)[:, None]
    return coarse[:, 0] * (1 << depth) + coarse[:, 1], depth


def _rest(family: Ints, counts: Ints, asked: Ints, families: int) -> NDArray[np.bool_]:
    """Per part of a cell, whether its people stay in the undivided cell.

    All parts with too few people, and where these are too few together the smallest others.
    """
    order = np.lexsort((counts, counts >= asked, family))
    starts = np.searchsorted(family[order], np.arange(families))
    ends = np.append(starts[1:], len(order))
    held, most = np.zeros(families, np.int64), np.zeros(families, np.int64)
    rest = np.zeros(len(counts), dtype=bool)
    for turn in range(4):
        mine = np.flatnonzero(starts + turn < ends)
        part = order[starts[mine] + turn]
        stays = (counts[part] < asked[part]) | (held[mine] < most[mine])
        mine, part = mine[stays], part[stays]
        rest[part] = True
        held[mine] += counts[part]
        most[mine] = np.maximum(most[mine], asked[part])
    return rest


def _people(group: Ints, owner: Ints, groups: int) -> Ints:
    """How many different people each group has."""
    many = int(owner.max(initial=0)) + 1
    return np.bincount(np.unique(group * many + owner) // many, minlength=groups)


def _most(group: Ints, need: Ints, groups: int) -> Ints:
    """What the most demanding of each group asks for."""
    found = np.zeros(groups, np.int64)
    np.maximum.at(found, group, need)
    return found


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
