"""What is made of a grid: groups of a wanted size, its picture, and a generator of rows."""

from __future__ import annotations

import itertools
import math
import time
from dataclasses import dataclass
from html import escape
from typing import TYPE_CHECKING, Literal

import numpy as np

from halfmask.coclustering.hierarchy import renumber
from halfmask.coclustering.observations import log_factorials
from halfmask.errors import InputError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.coclustering.grid import Grid


_CANDIDATES = 64  # parts that a split is tried on, the most even ones first


def split_large(
    groups: NDArray[np.int32], matrix: NDArray[np.int32], least: int, deadline: float = math.inf
) -> NDArray[np.int32]:
    """Split groups again and again so that none could be split into two of ``least`` rows.

    The levels of a merge hierarchy reach only a few sizes; below a level any size is reached by
    splitting a group on the part that explains most of it.

    Args:
        groups: the group of each row.
        matrix: (rows, columns) the part of each row in each column.
        least: the fewest rows of a group.
        deadline: when to stop, in seconds of the monotonic clock; what is open then stays whole.
    """
    out = np.empty(len(groups), dtype=np.int32)
    order = np.argsort(groups, kind="stable")
    ends = np.flatnonzero(np.diff(groups[order])) + 1
    waiting = np.split(order, ends)
    done = 0
    while waiting:
        rows = waiting.pop()
        open_ = len(rows) >= 2 * least and time.monotonic() < deadline
        halves = _halves(rows, matrix[rows], least) if open_ else None
        if halves is None:
            out[rows] = done
            done += 1
        else:
            waiting.extend(halves)
    return renumber(out)


def _halves(
    rows: NDArray[np.int64], matrix: NDArray[np.int32], least: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]] | None:
    """The rows with and without the part whose presence tells most, or None."""
    counts = np.bincount(matrix.ravel())
    place = np.cumsum(counts > 0) - 1  # parts that no row here holds take no room
    codes, counts = place[matrix], counts[counts > 0]
    n, width = len(rows), len(counts)
    even = np.minimum(counts, n - counts)  # the size of the smaller half
    candidates = np.argsort(-even, kind="stable")[:_CANDIDATES]
    candidates = candidates[even[candidates] >= least]
    if not len(candidates):
        return None
    has = np.zeros((n, width), dtype=np.float32)
    has[np.arange(n)[:, None], codes] = 1.0
    # Counts as a product of matrices; floats of 32 bits hold them exactly up to 16 million rows.
    inside = (has[:, candidates].T @ has).astype(np.float64)
    held = counts[candidates].astype(np.float64)[:, None]
    outside = counts - inside
    gain = _entropic(inside, held) + _entropic(outside, n - held)
    best = candidates[int(gain.sum(axis=1).argmax())]
    with_it = has[:, best] > 0
    return rows[with_it], rows[~with_it]


def _entropic(counts: NDArray[np.float64], total: NDArray[np.float64]) -> NDArray[np.float64]:
    return np.where(counts > 0, counts * np.log(np.maximum(counts, 1.0) / total), 0.0)


def join_failing_groups(
    groups: NDArray[np.int32], counts: NDArray[np.int64], failing: NDArray[np.int64]
) -> NDArray[np.int32]:
    """Join each failing group with the one that costs least; returns the new group of each group.

    Args:
        groups: the group of each row (for their sizes).
        counts: (groups, part groups) how often each part group occurs.
        failing: groups that may not stay alone.
    """
    rows = counts.copy()
    sizes = np.bincount(groups, minlength=len(counts)).astype(np.int64)
    totals = rows.sum(axis=1)
    factorial = log_factorials(int(totals.sum() + sizes.sum()))
    names = np.arange(len(counts), dtype=np.int32)
    alive = np.ones(len(counts), dtype=bool)
    for group in failing[np.argsort(sizes[failing], kind="stable")].tolist():
        small = int(names[group])
        if small != group:  # joined already
            continue
        others = np.flatnonzero(alive & (np.arange(len(alive)) != small))
        if not len(others):
            break
        change = -(factorial[rows[others] + rows[small]] - factorial[rows[others]]).sum(axis=1)
        joined, held = totals[others] + totals[small], sizes[others] + sizes[small]
        change += factorial[joined + held - 1] - factorial[held - 1]
        change -= factorial[totals[others] + sizes[others] - 1] - factorial[sizes[others] - 1]
        target = int(others[change.argmin()])
        rows[target] += rows[small]
        sizes[target] += sizes[small]
        totals[target] += totals[small]
        alive[small] = False
        names[names == small] = target
    return renumber(names)


_SIDE = 640
_MARGIN = 24
_LEAST = 3.0  # pixels: the smallest part can still be seen
_NAMED = 6
_LEGEND = "red: meet more often than if independent; blue: less often; white: as often"


def heat_map(grid: Grid) -> str:
    """The grid as SVG text; a cell's count and its part's values show under the pointer.

    A cell shows its part of the mutual information: red ones hold more observations than if the
    variables were independent, blue ones fewer, white ones as many. Sides are as wide as the share
    of observations in their part.

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


Mode = Literal["draw", "quota"]


@dataclass(frozen=True, slots=True, eq=False)
class BlockGenerator:
    """What is needed to draw rows, and nothing else: a mixture of groups of people.

    Definition: P(v | u, X) is proportional to (n_v / N_p(v)) (N_u,p(v) / N_u) over the parts v of a
        column X; p(v) is the group of parts that holds v and u a group of rows. Only these counts
        are kept: the rows are not needed to draw.
    Source: Benkhelif, "Publication de données personnelles respectueuse de la vie privée", 2018,
        3.4.

    Attributes:
        sizes: how many rows each group holds.
        chances: per column, (groups, parts) the chance of each part.
    """

    sizes: NDArray[np.int64]
    chances: tuple[NDArray[np.float64], ...]

    def __repr__(self) -> str:
        return f"BlockGenerator({len(self.sizes)} groups, {len(self.chances)} columns)"

    def only(self, parts: Sequence[NDArray[np.bool_]]) -> BlockGenerator:
        """The same model without the other parts; a group that has none of these has the margin.

        Args:
            parts: per column, which parts may be drawn; at least one.
        """
        chances = []
        for held, may in zip(self.chances, parts, strict=True):
            raw = held * may
            empty = raw.sum(axis=1) == 0
            raw[empty] = (self.sizes @ held) * may
            raw[raw.sum(axis=1) == 0] = may
            chances.append(raw / raw.sum(axis=1, keepdims=True))
        return BlockGenerator(self.sizes, tuple(chances))

    def draw(
        self, rows: int, random: np.random.Generator, *, mode: Mode = "draw"
    ) -> NDArray[np.int32]:
        """Draw rows as (rows, columns) parts of each column, in random order.

        Args:
            rows: how many.
            random: the source of chance.
            mode: ``"draw"`` at random, or ``"quota"``: every part as often as its chance says,
                rounded, the columns of a group shuffled against each other.
        """
        return self.draw_in_groups(rows, random, mode=mode)[0]

    def draw_in_groups(
        self, rows: int, random: np.random.Generator, *, mode: Mode = "draw"
    ) -> tuple[NDArray[np.int32], NDArray[np.int32]]:
        """The same rows, and the group that each was drawn from."""
        sizes = _shares(self.sizes / self.sizes.sum(), rows)
        out = np.empty((rows, len(self.chances)), dtype=np.int32)
        end = np.cumsum(sizes)
        for group, size in enumerate(sizes.tolist()):
            place = slice(int(end[group]) - size, int(end[group]))
            for k, chances in enumerate(self.chances):
                if mode == "quota":
                    drawn = np.repeat(np.arange(chances.shape[1]), _shares(chances[group], size))
                    random.shuffle(drawn)
                else:
                    drawn = random.choice(chances.shape[1], size, p=chances[group])
                out[place, k] = drawn
        order = random.permutation(rows)
        return out[order], np.repeat(np.arange(len(sizes), dtype=np.int32), sizes)[order]


def generator(
    grid: Grid, offsets: tuple[int, ...], drawn: NDArray[np.float64] | None = None
) -> BlockGenerator:
    """The generator of a grid over (row, part).

    Args:
        grid: over rows and parts.
        offsets: where each column's parts begin.
        drawn: per part, which share of its rows may be drawn; all where it is None.
    """
    met = grid.matrix()
    part_group, counts = grid.partition[1], grid.marginals[1]
    totals = np.maximum(met.sum(axis=0), 1)
    weight = met[:, part_group] * (counts / totals[part_group])
    chances = []
    for low, high in itertools.pairwise(offsets):
        may = np.ones(high - low) if drawn is None else drawn[low:high]
        raw = weight[:, low:high] * may
        empty = raw.sum(axis=1) == 0
        raw[empty] = counts[low:high] * may  # a group that meets no part of the column: the margin
        chances.append(raw / raw.sum(axis=1, keepdims=True))
    return BlockGenerator(grid.sizes(0), tuple(chances))


def _shares(chances: NDArray[np.float64], total: int) -> NDArray[np.int64]:
    """Whole numbers of sum ``total`` in proportion to ``chances``, largest remainders first."""
    exact = chances * total
    out = np.floor(exact).astype(np.int64)
    rest = np.argsort(out - exact, kind="stable")[: total - int(out.sum())]
    out[rest] += 1
    return np.asarray(out)
