"""A grid with two variables as a picture: each cell's part of the mutual information.

Red cells hold more observations than if the variables were independent, blue ones fewer, white ones
as many. Sides are as wide as the share of observations in their part.
"""

from __future__ import annotations

from html import escape
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import InputError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.coclustering.grid import Grid

_SIDE = 640
_MARGIN = 24
_LEAST = 3.0  # pixels: the smallest part can still be seen
_NAMED = 6
_LEGEND = "red: meet more often than if independent; blue: less often; white: as often"


def heat_map(grid: Grid) -> str:
    """The grid as SVG text; a cell's count and its part's values show under the pointer.

    Raises:
        InputError: the grid does not have two variables.
    """
    if len(grid.parts) != 2:
        raise InputError("A heat map shows grids of two variables.")
    order = [np.argsort(-grid.totals(side), kind="stable") for side in (0, 1)]
    edges = [_edges(grid.totals(side)[order[side]]) for side in (0, 1)]
    matrix = grid.matrix()[np.ix_(*order)]
    gain = _gain(matrix)
    scale = float(np.abs(gain).max()) or 1.0
    names = [[_name(grid, side, int(part)) for part in order[side]] for side in (0, 1)]
    cells = [
        _cell(
            edges[1][j : j + 2],
            edges[0][i : i + 2],
            _color(float(gain[i, j]) / scale),
            f"{names[0][i]} x {names[1][j]}: {int(matrix[i, j]):,} observations, "
            f"{float(gain[i, j]):+.5f} nats",
        )
        for i in range(matrix.shape[0])
        for j in range(matrix.shape[1])
    ]
    size = _SIDE + 2 * _MARGIN
    below = f'<text x="{_MARGIN}" y="{size - 8}" font-family="sans-serif" font-size="12">{_LEGEND}'
    title = f"{grid.variables[0].name} (down) x {grid.variables[1].name} (across)"
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {size} {size}" role="img">'
        f"<title>{escape(title)}</title>"
        f'<text x="{_MARGIN}" y="16" font-family="sans-serif" font-size="12">{escape(title)}</text>'
        + "".join(cells)
        + f"{below}</text></svg>\n"
    )


def _edges(totals: NDArray[np.int64]) -> NDArray[np.float64]:
    room = _SIDE - _LEAST * len(totals)
    widths = _LEAST + max(room, 0.0) * totals / max(int(totals.sum()), 1)
    ends = np.concatenate([[0.0], np.cumsum(widths)])
    return np.asarray(_MARGIN + ends * (_SIDE / ends[-1]))


def _gain(matrix: NDArray[np.int64]) -> NDArray[np.float64]:
    """What each cell adds to the mutual information; an empty cell counts as lacking."""
    share = matrix / matrix.sum()
    independent = share.sum(axis=1, keepdims=True) * share.sum(axis=0)
    filled = np.where(matrix > 0, share, 1.0)
    gain = np.where(matrix > 0, share * np.log(filled / independent), -independent)
    return np.asarray(gain)


def _color(value: float) -> str:
    """White at 0, red above, blue below."""
    pale = round(255 * (1 - min(1.0, abs(value) ** 0.5)))
    return f"rgb(255,{pale},{pale})" if value >= 0 else f"rgb({pale},{pale},255)"


def _cell(across: NDArray[np.float64], down: NDArray[np.float64], color: str, words: str) -> str:
    x, y = float(across[0]), float(down[0])
    width, height = float(across[1]) - x, float(down[1]) - y
    return (
        f'<rect x="{x:.2f}" y="{y:.2f}" width="{width:.2f}" height="{height:.2f}" '
        f'fill="{color}" stroke="#ddd" stroke-width=".5"><title>{escape(words)}</title></rect>'
    )


def _name(grid: Grid, side: int, part: int) -> str:
    """The part's values, or how many there are."""
    held = np.flatnonzero(grid.partition[side] == part)
    values = grid.variables[side].values
    if values is None or len(held) > _NAMED:
        return f"{len(held):,} values of {grid.variables[side].name}"
    return ", ".join(str(values[v]) for v in held)
