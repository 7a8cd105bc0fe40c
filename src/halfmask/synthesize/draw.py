"""Draw rows from a distribution without inventing dependence.

Columns are drawn clique by clique. Within each group of rows that agree on the columns already
drawn, values are dealt in the right shares (systematic sampling: each value gets its share, up to
one row) to the rows in *random order*; dealing in a fixed order would tie columns that the model
holds independent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.synthesize.inference import Beliefs

    Floats = NDArray[np.float64]
    Ints = NDArray[np.int64]

_GOLDEN = 0.6180339887498949


def draw(beliefs: Beliefs, rows: int, random: np.random.Generator) -> dict[str, Ints]:
    """``rows`` rows as codes per column."""
    tree, sizes = beliefs.tree, beliefs.sizes
    root = tree.edges[-1][1] if tree.edges else 0
    drawn: dict[str, Ints] = {}
    for place in (root, *(child for child, _, _ in reversed(tree.edges))):
        clique = tree.cliques[place]
        known = [name for name in clique if name in drawn]
        new = [name for name in clique if name not in drawn]
        table = beliefs.tables[place].transpose([clique.index(name) for name in known + new])
        groups = np.zeros(rows, np.int64)
        for name in known:
            groups = groups * sizes[name] + drawn[name]
        width = int(np.prod([sizes[name] for name in new], dtype=np.int64))
        cells = draw_values(groups, table.reshape(-1, width), random)
        for name in reversed(new):
            cells, drawn[name] = np.divmod(cells, sizes[name])
    return drawn


def draw_values(
    groups: Ints, weights: Floats, random: np.random.Generator, *, beside: Ints | None = None
) -> Ints:
    """Per row, a value drawn by the weights of its group.

    Args:
        groups: per row, its group.
        weights: (groups, values); a group without any weight deals evenly.
        random: where chance comes from; it holds no secret.
        beside: per row, what the values must stay independent of inside a group: rows that share it
            get values in the same shares, more evenly than chance would.
    """
    count, width = weights.shape
    totals = weights.sum(axis=1, keepdims=True)
    shares = np.where(totals > 0, weights / np.maximum(totals, 1e-300), 1 / width)
    keys = (random.random(len(groups)), *(() if beside is None else (beside,)), groups)
    order = np.lexsort(keys)
    owner = groups[order]
    sizes = np.bincount(owner, minlength=count)
    first = np.cumsum(sizes) - sizes
    place = np.arange(len(groups)) - first[owner]
    start = random.random(count)[owner]
    # Steps of the golden ratio fill the unit interval evenly over any stretch of rows.
    at = (place + start) / sizes[owner] if beside is None else (place * _GOLDEN + start) % 1.0
    at = np.minimum(at, 1 - 1e-12)
    edges = np.cumsum(shares, axis=1)
    edges /= edges[:, -1:]
    found = np.searchsorted((edges + np.arange(count)[:, None]).ravel(), owner + at, side="right")
    values = np.empty(len(groups), np.int64)
    values[order] = np.clip(found - owner * width, 0, width - 1)
    return values
