"""Classes grown from dense places, row by row, by what each row costs there and anywhere else."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from halfmask.kernels.compilation.compiler import clear, light
from halfmask.kernels.distance import distance
from halfmask.kernels.partition.construction import Variety, new_value, note_values
from halfmask.kernels.partition.search_tree import all_free, nearest_free, nearest_room, take

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.kernels.partition.construction import Demands
    from halfmask.kernels.partition.search_tree import Nearest, SearchTree


class Seeds(NamedTuple):
    """Where classes form.

    Attributes:
        rows: the rows in the order in which classes form around them.
        anyway: per row, what it would lose in any class.
    """

    rows: NDArray[np.int64]
    anyway: NDArray[np.float64]


class FormRoom(NamedTuple):
    """What ``form`` fills, and where it writes in between.

    Attributes:
        ids: the class of each row.
        members: the rows of the class that grows; ``variety`` its sensitive values.
        near: free rows near its seed; ``reach`` how far each is from the farthest of its rows.
    """

    ids: NDArray[np.int64]
    members: NDArray[np.int64]
    reach: NDArray[np.float64]
    near: Nearest
    variety: Variety


def form(
    p: Any, places: Any, tree: SearchTree, d: Demands, seeds: Seeds, regret: float
) -> NDArray[np.int64]:
    """Form classes around ``seeds`` in their order from rows that are near and still free.

    Of the candidates the one with the lowest marginal cost joins: what it adds to the class, less
    ``regret`` times what it would lose anywhere, so that demanding and remote rows stay together
    and others are spared. -1 for rows left over.
    """
    n, columns = len(d.k), d.values.shape[1]
    nothing = Variety(np.full(d.shares.shape, -1), np.zeros(columns, int), np.zeros(columns, int))
    room = FormRoom(np.full(n, -1), np.zeros(n, int), np.zeros(n), nearest_room(n), nothing)
    _form(p, places, tree, all_free(tree), d, seeds, room, regret)
    return room.ids


@light
def _form(
    p: Any, places: Any, tree: Any, free: Any, d: Any, seeds: Any, room: Any, regret: float
) -> None:
    k, ids, members, variety = d.k, room.ids, room.members, room.variety
    near, reach, anyway = room.near, room.reach, seeds.anyway
    rows = near.rows
    classes, nodes = 0, len(tree.begin)
    for i in range(len(seeds.rows)):
        seed = seeds.rows[i]
        if free[nodes + seed] == 0:
            continue
        size, need, diameter = 0, 0, 0.0
        wanted, found, row = 0, 0, seed
        clear(variety.distinct)
        clear(variety.most)
        while True:
            members[size] = row
            size += 1
            need = max(need, k[row])
            short = note_values(d, row, classes, variety)
            take(tree, free, row)
            if (size >= need and not short) or free[0] == 0:
                break
            for j in range(found):
                if rows[j] >= 0:
                    reach[j] = max(reach[j], distance(p, row, rows[j]))
            best, best_score = -1, np.inf
            while True:
                for j in range(found):
                    if rows[j] < 0:
                        continue
                    if size >= need and not new_value(d, rows[j], classes, variety):
                        continue
                    wide = max(diameter, reach[j])
                    score = max(size + 1, need, k[rows[j]]) * wide - regret * anyway[rows[j]]
                    if score < best_score:
                        best, best_score = j, score
                if (best >= 0 and wanted >= need) or (wanted > 0 and found == free[0]):
                    break
                wanted = max(2 * need + 4, 2 * wanted)  # doubled: searching again stays cheap
                found = nearest_free(p, places, tree, free, seed, wanted, near)
                best, best_score = -1, np.inf
                for j in range(found):
                    reach[j] = near.far[j]
                    for m in range(1, size):
                        reach[j] = max(reach[j], distance(p, members[m], rows[j]))
            if best < 0:
                break
            row = rows[best]
            diameter = max(diameter, reach[best])
            rows[best] = -1
        if size >= need and not short:
            if diameter == 0.0:
                size = _take_alike(p, places, tree, free, d, members, size, near)
            for m in range(size):
                ids[members[m]] = classes
            classes += 1


@light
def _take_alike(
    p: Any, places: Any, tree: Any, free: Any, d: Any, members: Any, size: int, near: Any
) -> int:
    """Let free rows with the very same values join a class without diameter: they cost nothing."""
    rows, far = near.rows, near.far
    while free[0] > 0 and d.values.shape[1] == 0:
        found = nearest_free(p, places, tree, free, members[0], 8, near)
        joined = 0
        for j in range(found):
            if far[j] == 0.0 and d.k[rows[j]] <= size + 1:
                members[size] = rows[j]
                size += 1
                take(tree, free, rows[j])
                joined += 1
        if joined == 0:
            break
    return size
