"""What several answers give away together, by adding and subtracting their rows.

Definition: atoms are the rows of a table that no answer tells apart. A published row is a vector
over atoms: how often their rows stand in it. What can be computed from published rows are their
linear combinations. The answers isolate somebody if a combination is zero on all atoms but some
that are about fewer than k people together, and not zero everywhere.

Such a combination vanishes on every atom of k people or more, so the search stays in the space of
combinations that do. It falls into parts that share no atom. In a part of dimension d the smallest
sets are found by making d - 1 atoms zero in all ways. For two answers in which nothing stands
twice it is a smallest cut: take the rows of both as nodes and one node for nobody's row, an edge
weighs the people that two rows share. Where the search is too long, the answer to "is anybody
isolated?" is yes: it could not be ruled out.
"""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import combinations
from math import comb
from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from numpy.typing import NDArray

    Row = tuple[int, int]
    Matrix = NDArray[np.int64]

PRIME = 2_147_483_647
MOST_ATOMS, MOST_ROWS, MOST_NODES, MOST_TRIALS = 100_000, 600, 300, 20_000


@dataclass(frozen=True, slots=True)
class Atom:
    """Rows of a table that no answer tells apart.

    Attributes:
        rows: the published rows (answer, place) they stand in, and how often.
        people: whom they are about; None where these are k or more.
    """

    rows: tuple[tuple[Row, int], ...]
    people: frozenset[int] | None


class _TooLongError(Exception):
    """The search would take too long: nothing can be ruled out."""


def isolates(atoms: Sequence[Atom], k: int, new: int) -> bool | None:
    """Tell whether the answer ``new``, with the others, isolates fewer than ``k`` people.

    What the new answer or the others isolate by themselves is not held against both. None: the
    search would take too long, so that nothing can be ruled out.
    """
    try:
        return any(_part_isolates(part, k, new) for part in _parts(atoms))
    except _TooLongError:
        return None


@dataclass(frozen=True, slots=True, eq=False)
class AnswerProfiles:
    """One answer over numbered rows.

    Attributes:
        codes: per number, which profile it has; -1 where it stands nowhere.
        profiles: the places, and how often.
    """

    codes: NDArray[np.int32]
    profiles: tuple[tuple[tuple[int, int], ...], ...]


def answer_atoms(
    sides: Sequence[AnswerProfiles], who: NDArray[np.int32], k: int
) -> list[Atom] | None:
    """The rows that no answer tells apart; ``who`` is -1 where a number is about several people.

    None of them where each is about ``k`` people or more; None where there are too many to look at.
    """
    used = np.flatnonzero(np.logical_or.reduce([side.codes >= 0 for side in sides]))
    atom, first, sizes = np.zeros(len(used), dtype=np.int64), np.zeros(1, dtype=np.int64), used[:0]
    for side in sides:
        width = len(side.profiles) + 1
        keys = atom * width + side.codes[used] + 1
        atom, first, sizes = _number_keys(keys, len(first) * width)
    small = _few(atom, who[used], sizes, k)
    if not small:
        return []  # nothing to isolate
    if len(first) > MOST_ATOMS:
        return None
    found = []
    for j, at in enumerate(used[first]):
        rows = tuple(
            ((i, place), times)
            for i, side in enumerate(sides)
            if side.codes[at] >= 0
            for place, times in side.profiles[side.codes[at]]
        )
        found.append(Atom(rows, small.get(j)))
    return found


def _number_keys(
    keys: NDArray[np.int64], bound: int
) -> tuple[NDArray[np.int64], NDArray[np.int64], NDArray[np.int64]]:
    """Number equal keys: the numbers, where each is found first, and how often."""
    if bound > 4 * len(keys) + 2**16:
        _, first, numbers, sizes = np.unique(
            keys, return_index=True, return_inverse=True, return_counts=True
        )
        return numbers, first, sizes
    sizes = np.bincount(keys, minlength=bound)
    first = np.zeros(bound, dtype=np.int64)
    first[keys[::-1]] = np.arange(len(keys) - 1, -1, -1)
    present = sizes > 0
    numbers = (np.cumsum(present) - 1)[keys]
    return numbers, first[present], sizes[present]


def _few(
    atom: NDArray[np.int64], whose: NDArray[np.int32], sizes: NDArray[np.int64], k: int
) -> dict[int, frozenset[int]]:
    """The people of each atom that is about fewer than ``k``."""
    most = int(np.bincount(whose[whose >= 0], minlength=1).max())
    # With so many rows an atom is about k people or more, whoever has most of them.
    candidates = np.flatnonzero((sizes < k * most)[atom])
    shared = set(atom[whose < 0].tolist())
    pairs = np.unique(atom[candidates] * 2**32 + whose[candidates])
    people: dict[int, list[int]] = {}
    at, who = pairs >> 32, pairs & (2**32 - 1)
    counts = np.bincount(at, minlength=len(sizes))
    for j in np.flatnonzero((counts > 0) & (counts < k)):
        people[int(j)] = []
    inside = (counts < k)[at]
    for j, one in zip(at[inside].tolist(), who[inside].tolist(), strict=True):
        people[j].append(one)
    return {j: frozenset(those) for j, those in people.items() if j not in shared}


def _parts(atoms: Sequence[Atom]) -> list[list[Atom]]:
    """Atoms that are tied together by rows whose share is not fixed by large atoms."""
    shares = _Shares(atom.rows for atom in atoms if atom.people is None)
    heads: dict[Row, Row] = {}

    def head(row: Row) -> Row:
        while heads.setdefault(row, row) != row:
            heads[row] = heads[heads[row]]
            row = heads[row]
        return row

    free = []
    for atom in atoms:
        rows = tuple((row, times) for row, times in atom.rows if not shares.is_zero(row))
        if rows and (atom.people is None or shares.terms(rows)):
            free.append(Atom(rows, atom.people))
            for row, _ in rows:
                heads[head(row)] = head(rows[0][0])
    found: dict[Row, list[Atom]] = {}
    for atom in free:
        found.setdefault(head(atom.rows[0][0]), []).append(atom)
    return [part for part in found.values() if any(atom.people is not None for atom in part)]


class _Shares:
    """With which factors published rows may be added up, as far as pairs of rows decide it."""

    def __init__(self, equations: Iterable[tuple[tuple[Row, int], ...]]) -> None:
        self._above: dict[Row, tuple[Row, int]] = {}
        self._zero: set[Row] = set()
        self.left = list(equations)
        decided = True
        while decided:
            before = len(self.left)
            self.left = [equation for equation in self.left if not self._decide(equation)]
            decided = len(self.left) < before

    def is_zero(self, row: Row) -> bool:
        """Whether a row can have no share."""
        return self._root(row)[0] in self._zero

    def terms(self, rows: tuple[tuple[Row, int], ...]) -> dict[Row, int]:
        """A sum over rows in terms of those that decide the others."""
        total: Counter[Row] = Counter()
        for row, times in rows:
            root, factor = self._root(row)
            if root not in self._zero:
                total[root] = (total[root] + times * factor) % PRIME
        return {root: factor for root, factor in total.items() if factor}

    def _decide(self, rows: tuple[tuple[Row, int], ...]) -> bool:
        terms = self.terms(rows)
        if len(terms) > 2:
            return False
        if len(terms) == 1:
            self._zero.update(terms)
        if len(terms) == 2:
            (one, a), (other, b) = terms.items()
            self._above[one] = (other, -b * pow(a, -1, PRIME) % PRIME)
        return True

    def _root(self, row: Row) -> tuple[Row, int]:
        way = []
        at, factor = row, 1
        while at in self._above:
            way.append(at)
            at = self._above[at][0]
        for step in reversed(way):
            factor = self._above[step][1] * factor % PRIME
            self._above[step] = (at, factor)
        return at, factor


def _part_isolates(part: list[Atom], k: int, new: int) -> bool:
    answers = {row[0] for atom in part for row, _ in atom.rows}
    if new not in answers or len(answers) < 2:
        return False  # what an answer tells by itself was judged when it was made
    if len(answers) == 2 and all(_is_edge(atom) for atom in part):
        small = _smallest_cut(part, k)
        if small is not None:
            return small
    together = _PeopleOfAtoms([atom.people for atom in part if atom.people is not None], k)
    known: list[Matrix] | None = None
    for vector in together.lightest(_space(part)):
        if known is None:
            alone = (answers - {new}, {new})
            spaces = [_space([_within(atom, those) for atom in part]) for those in alone]
            known = [v for space in spaces for v in together.lightest(space)]
        # What one side tells by itself was judged when that side was asked.
        if not _is_in(known, vector):
            return True
    return False


def _within(atom: Atom, answers: set[int]) -> Atom:
    return Atom(tuple((r, n) for r, n in atom.rows if r[0] in answers), atom.people)


def _is_edge(atom: Atom) -> bool:
    different = {row[0] for row, _ in atom.rows}
    return len(different) == len(atom.rows) and all(times == 1 for _, times in atom.rows)


def _space(part: list[Atom]) -> Matrix:
    """All combinations that vanish on the large atoms, by what they are on the others."""
    shares = _Shares(atom.rows for atom in part if atom.people is None)
    small = [shares.terms(atom.rows) for atom in part if atom.people is not None]
    large = list(dict.fromkeys(tuple(sorted(shares.terms(rows).items())) for rows in shares.left))
    rows = sorted({row for terms in (*small, *map(dict, large)) for row in terms})
    if len(rows) > MOST_ROWS:
        raise _TooLongError
    at = {row: i for i, row in enumerate(rows)}
    matrix = np.zeros((len(rows), len(large) + len(small)), dtype=np.int64)
    for j, terms in enumerate((*map(dict, large), *small)):
        for row, factor in terms.items():
            matrix[at[row], j] = factor
    reduced, pivots = _reduce(matrix)
    return reduced[[i for i, p in enumerate(pivots) if p >= len(large)]][:, len(large) :]


def _reduce(matrix: Matrix) -> tuple[Matrix, list[int]]:
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


def _is_in(known: list[Matrix], vector: Matrix) -> bool:
    """Whether a vector is a combination of known ones."""
    if not known:
        return False
    _, before = _reduce(np.array(known))
    _, after = _reduce(np.array([*known, vector]))
    return len(before) == len(after)


class _PeopleOfAtoms:
    """Counts people behind atoms, each once, however many of these they stand in."""

    def __init__(self, people: list[frozenset[int]], k: int) -> None:
        index = {who: i for i, who in enumerate(sorted(set().union(*people)))}
        self.k = k
        self._member = np.zeros((len(people), len(index)), dtype=bool)
        for j, those in enumerate(people):
            self._member[j, [index[who] for who in those]] = True

    def is_few(self, inside: NDArray[np.bool_]) -> bool:
        return int(self._member[inside].any(axis=0).sum()) < self.k

    def lightest(self, space: Matrix) -> Iterator[Matrix]:
        """The combinations of fewest atoms that isolate somebody."""
        for piece in _pieces(space):
            used = np.flatnonzero((space[piece] != 0).any(axis=0))
            for vector in self._elementary(space[piece][:, used]):
                whole = np.zeros(space.shape[1], dtype=np.int64)
                whole[used] = vector
                if self.is_few(whole != 0):
                    yield whole

    def _elementary(self, space: Matrix) -> Iterator[Matrix]:
        """The combinations that vanish on as many atoms as can be."""
        yield from space
        dimension, atoms = space.shape
        if dimension == 1:
            return
        # A combination of fewest atoms is fixed by dimension - 1 of those on which it vanishes.
        if comb(atoms, dimension - 1) > MOST_TRIALS:
            raise _TooLongError
        for zeros in combinations(range(atoms), dimension - 1):
            order = [*zeros, *(j for j in range(atoms) if j not in zeros)]
            reduced, pivots = _reduce(space[:, order])
            for row, pivot in zip(reduced, pivots, strict=True):
                if pivot >= dimension - 1:
                    found = np.empty_like(row)
                    found[order] = row
                    yield found


def _pieces(space: Matrix) -> list[list[int]]:
    """The vectors of a space, apart where they share no atom."""
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
        found.append(inside)
    return found


def _smallest_cut(part: list[Atom], k: int) -> bool | None:
    """Whether a cut between the rows of two answers leaves fewer than k people; None: perhaps.

    Somebody in several atoms counts a part in each, so that nobody counts more than once in a cut.
    """
    names: dict[Row | None, int] = {None: 0}

    def ends(atom: Atom) -> tuple[int, int]:
        rows: list[Row | None] = [row for row, _ in atom.rows]
        first, second = (*rows, None)[:2]
        return names.setdefault(first, len(names)), names.setdefault(second, len(names))

    # Atoms are edges between a row of each answer, or to the outside (None) where one answer alone
    # holds them. No cut goes through a large atom, so its two rows become one node.
    edges = [(*ends(atom), atom.people) for atom in part]
    heads = _merge_pairs(len(names), [(a, b) for a, b, people in edges if people is None])
    light = [(heads[a], heads[b], p) for a, b, p in edges if p is not None and heads[a] != heads[b]]
    used = sorted({x for a, b, _ in light for x in (a, b)})
    if not light:
        return False
    # Too many to look at: refused as if it isolated somebody.
    if len(used) > MOST_NODES:
        return True
    times = Counter(who for *_, people in light for who in people)
    index = {x: i for i, x in enumerate(used)}
    weights = np.zeros((len(used), len(used)))
    for a, b, people in light:
        weight = sum(1 / times[who] for who in people)
        weights[index[a], index[b]] += weight
        weights[index[b], index[a]] += weight
    parts = np.array(
        _merge_pairs(len(used), [(int(a), int(b)) for a, b in np.argwhere(weights > 0)])
    )
    lightest = min(
        _global_cut(weights[np.ix_(p, p)])
        for head in set(parts.tolist())
        for p in [np.flatnonzero(parts == head)]
    )
    # Fewer than k people weigh k - 1 at most: whole numbers, however the parts are rounded.
    if lightest > k - 0.5:
        return False
    # Parts of people add up to whole ones only where nobody stands in two atoms.
    return True if max(times.values()) == 1 else None


def _merge_pairs(n: int, pairs: list[tuple[int, int]]) -> list[int]:
    heads = list(range(n))

    def head(x: int) -> int:
        while heads[x] != x:
            heads[x] = heads[heads[x]]
            x = heads[x]
        return x

    for a, b in pairs:
        heads[head(a)] = head(b)
    return [head(x) for x in range(n)]


def _global_cut(weights: NDArray[np.float64]) -> float:
    """Stoer and Wagner's minimum cut of a connected graph."""
    weights = weights.copy()
    best = float("inf")
    nodes = list(range(len(weights)))
    while len(nodes) > 1:
        reached = weights[nodes[0], nodes].copy()
        inside = np.zeros(len(nodes), dtype=bool)
        inside[0] = True
        last = before = 0
        for _ in range(len(nodes) - 1):
            following = int(np.where(inside, -1, reached).argmax())
            before, last = last, following
            cut = float(reached[following])
            inside[following] = True
            reached = reached + weights[nodes[following], nodes]
        best = min(best, cut)
        a, b = nodes[before], nodes[last]
        weights[a] += weights[b]
        weights[:, a] += weights[:, b]
        weights[a, a] = 0
        nodes.remove(b)
    return best
