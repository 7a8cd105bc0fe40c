"""A co-clustering as a page: heat maps that a slider coarsens, with the trees of parts."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.report.page import embedded_script, render_template

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from halfmask.coclustering.grid import Grid
    from halfmask.coclustering.run import CoClustering

_SHOWN = 60  # parts of a variable that the page draws or lists at most
_CELLS = 40_000  # non-empty cells
_TYPICAL = 5


def render_grid(found: CoClustering) -> str:
    """The page of a co-clustering, for the controller alone.

    Example:
        >>> from halfmask.report.grid import render_grid
        >>> render_grid(hm.cocluster(people, ["job", "age"]))  # doctest: +SKIP
        '<!doctype html>...'
    """
    document = found.to_dict()
    bound = () if found.dependence is None else found.dependence.bound
    return render_template(
        "grid.html",
        document=document,
        single=[v["name"] for v in document["variables"] if v["parts"] == 1 and v["name"] in bound],
        sentences=() if found.dependence is None else found.dependence.sentences(),
        picture=_picture(found),
        part_name=_part_name,
        most=_SHOWN,
        script=embedded_script("grid.js"),
    )


def _picture(found: CoClustering) -> dict[str, Any]:
    """What the script draws: the finest grid that a page can show, and the merges from there."""
    levels, shown = found.levels, found.grid.parts
    parts = levels.parts()
    fits = np.flatnonzero((parts <= _SHOWN).all(axis=1) & (parts.prod(axis=1) <= _CELLS))
    start = int(fits[0])
    names, grid = levels.path.names(start), levels.at(start)
    # Merges name parts of the finest grid: those that are left are numbered without gaps.
    place = [np.unique(name, return_inverse=True) for name in names]
    number = [dict(zip(kept.tolist(), range(len(kept)), strict=True)) for kept, _ in place]
    merges = [
        [side, number[side][kept], number[side][gone], float(information)]
        for (side, kept, gone), information in zip(
            levels.path.steps[start:].tolist(), levels.information[start + 1 :], strict=True
        )
    ]
    wanted = np.flatnonzero((parts[start:] == np.array(shown)).all(axis=1))
    return {
        "variables": [
            {
                "name": variable.name,
                "parts": _parts(found, grid, side),
                "order": _order(grid.parts[side], merges, side),
            }
            for side, variable in enumerate(grid.variables)
        ],
        "cells": grid.cells.tolist(),
        "counts": grid.counts.tolist(),
        "merges": merges,
        "level": int(wanted[0]) if len(wanted) else 0,
    }


def _order(parts: int, merges: list[list[Any]], side: int) -> list[int]:
    """The parts in an order in which every merge joins neighbors."""
    runs = {part: [part] for part in range(parts)}
    for merged, kept, gone, _ in merges:
        if merged == side:
            one, other = runs[kept], runs.pop(gone)
            runs[kept] = one + other if min(one) < min(other) else other + one
    return [part for run in runs.values() for part in run]


def _parts(found: CoClustering, grid: Grid, side: int) -> list[dict[str, Any]]:
    """The parts of one variable: how much each holds, and what it is called."""
    ends = found.interval_ends(side, grid)
    out = []
    for part in range(grid.parts[side]):
        held = np.flatnonzero(grid.partition[side] == part)
        one = {"values": len(held), "observations": int(grid.totals(side)[part])}
        out.append(one | _name(grid, side, held, None if ends is None else ends[part]))
    return out


def _name(
    grid: Grid, side: int, held: NDArray[np.int64], ends: tuple[str | None, str | None] | None
) -> dict[str, Any]:
    """What a part is called: its ends in their order, or its most frequent values."""
    variable, counts = grid.variables[side], grid.marginals[side]
    if variable.values is not None and variable.kind == "numeric":
        numbers: Any = variable.values
        low, high = ends or (f"{numbers[held[0]]:g}", f"{numbers[held[-1]]:g}")
        return {"from": int(held[0]), "above": low, "up_to": high}
    often = held[np.argsort(-counts[held], kind="stable")][:_TYPICAL].tolist()
    known = variable.values
    return {"typical": [] if known is None else [[str(known[v]), int(counts[v])] for v in often]}


def _part_name(part: Mapping[str, Any]) -> str:
    """A part in the table: its ends, or its most frequent values."""
    if "above" in part:
        return interval_text(part["above"], part["up_to"])
    if "from" in part:
        return f"{part['from']:g} to {part['to']:g}"
    typical = [one["value"] for one in part.get("typical", ())]
    if not typical:
        return f"{part['values']:,} values"
    more = part["values"] - len(typical)
    return " | ".join([*typical, *([f"{more:,} more"] if more else [])])


def interval_text(above: str | None, up_to: str | None) -> str:
    """An interval that is open below, in words."""
    if above is None:
        return "all" if up_to is None else f"up to {up_to}"
    return f"above {above}" if up_to is None else f"above {above}, up to {up_to}"
