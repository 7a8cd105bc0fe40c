"""What several answers give away together, by adding and subtracting their rows.

Definition: atoms are the sets of people who stand in the same rows of all answers. A row is a 0/1
vector over atoms, and what can be computed from the rows are their linear combinations. The
answers isolate somebody if a combination is zero on all atoms but some that hold fewer than k
people together.

Such a combination vanishes on every atom of k people or more, so the search stays in the space of
combinations that do. It falls into parts that share no atom. In a part of dimension d the smallest
sets are found by making d - 1 atoms zero in all ways. Where that is too much, the answer to
"is anybody isolated?" is yes: it could not be ruled out.
"""

from __future__ import annotations

from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    Row = tuple[int, int]
    Atom = tuple[tuple[Row, ...], int]
    Matrix = NDArray[np.int64]

PRIME = 2_147_483_647
MOST_ROWS, MOST_TRIALS = 600, 20_000


def isolates(atoms: Sequence[Atom], k: int) -> bool:
    """Tell whether a combination of rows isolates fewer than ``k`` people (or may)."""
    return any(_part_isolates(part, k) for part in _parts(atoms) if any(n < k for _, n in part))


def _parts(atoms: Sequence[Atom]) -> list[list[Atom]]:
    """Atoms that are tied together by rows."""
    heads: dict[Row, Row] = {}

    def head(row: Row) -> Row:
        while heads.setdefault(row, row) != row:
            heads[row] = heads[heads[row]]
            row = heads[row]
        return row

    for rows, _ in atoms:
        for row in rows:
            heads[head(row)] = head(rows[0])
    found: dict[Row, list[Atom]] = {}
    for atom in atoms:
        found.setdefault(head(atom[0][0]), []).append(atom)
    return list(found.values())


def _part_isolates(part: list[Atom], k: int) -> bool:
    rows = sorted({row for atom, _ in part for row in atom})
    if len(rows) > MOST_ROWS:
        return True
    at = {row: i for i, row in enumerate(rows)}
    order = sorted(part, key=lambda atom: -atom[1])
    large = sum(n >= k for _, n in order)
    matrix = np.zeros((len(rows), len(order)), dtype=np.int64)
    for j, (atom, _) in enumerate(order):
        matrix[[at[row] for row in atom], j] = 1
    sizes = np.array([n for _, n in order], dtype=np.int64)
    reduced, pivots = _reduced(matrix)
    space = reduced[[i for i, p in enumerate(pivots) if p >= large]][:, large:]
    return any(_lightest(*piece, k) for piece in _pieces(space, sizes[large:]))


def _reduced(matrix: Matrix) -> tuple[Matrix, list[int]]:
    """The reduced row echelon form modulo a large prime, and its pivot columns.

    A combination that vanishes over the fractions does so here too: nothing is overlooked.
    """
    matrix = matrix.copy() % PRIME
    pivots: list[int] = []
    for column in range(matrix.shape[1]):
        at = len(pivots)
        if at == len(matrix):
            break
        below = np.flatnonzero(matrix[at:, column])
        if not len(below):
            continue
        first = at + int(below[0])
        matrix[[at, first]] = matrix[[first, at]]
        matrix[at] = matrix[at] * pow(int(matrix[at, column]), -1, PRIME) % PRIME
        others = np.flatnonzero(matrix[:, column])
        others = others[others != at]
        factors = matrix[others, column][:, None]
        matrix[others] = (matrix[others] - factors * matrix[at]) % PRIME
        pivots.append(column)
    return matrix[: len(pivots)], pivots


def _pieces(space: Matrix, sizes: NDArray[np.int64]) -> list[tuple[Matrix, NDArray[np.int64]]]:
    """The space as a sum of smaller ones that share no atom."""
    left = list(range(len(space)))
    found = []
    while left:
        inside, grown = [left.pop()], True
        while grown:
            used = (space[inside] != 0).any(axis=0)
            more = [i for i in left if (space[i] != 0)[used].any()]
            left = [i for i in left if i not in more]
            inside += more
            grown = bool(more)
        used = (space[inside] != 0).any(axis=0)
        found.append((space[inside][:, used], sizes[used]))
    return found


def _lightest(space: Matrix, sizes: NDArray[np.int64], k: int) -> bool:
    """Tell whether a combination of the space has fewer than ``k`` people where it is not zero."""
    if int(sizes.sum()) < k or any(int(sizes[row != 0].sum()) < k for row in space):
        return True
    dimension, atoms = space.shape
    if dimension == 1:
        return False
    if comb(atoms, dimension - 1) > MOST_TRIALS:
        return True
    for zeros in combinations(range(atoms), dimension - 1):
        order = [*zeros, *(j for j in range(atoms) if j not in zeros)]
        reduced, pivots = _reduced(space[:, order])
        kept = [i for i, p in enumerate(pivots) if p >= dimension - 1]
        for row in reduced[kept]:
            if int(sizes[order][row != 0].sum()) < k:
                return True
    return False
