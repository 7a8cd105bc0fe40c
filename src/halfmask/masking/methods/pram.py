"""The post-randomization method: values of a category change by a matrix of probabilities.

Definition: a value i becomes j with probability P_ij, row by row. With an invariant matrix t P is
    t, so that counts stay what they were in expectation; else t is estimated by t* P^-1. An optimal
    matrix changes the fewest rows in expectation such that t_i P_ij is at most a stated share of
    the sum over h of t_h P_hj: nobody who knows the matrix and the counts is surer of a value.
Source: Gouweleeuw, Kooiman, Willenborg and de Wolf, "Post randomisation for statistical disclosure
    control", 1998; the linear program is ours.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from halfmask.errors import InputError, ParameterError
from halfmask.masking.step import MaskStep, MaskWords, Outcome, anything, one_column, register_mask
from halfmask.models.verdict import number, word

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.masking.step import Rows

    Floats = NDArray[np.float64]

_MOST = 1000  # values of a column: the matrix has their square
_SUM = 1e-6
_OPTIMAL = 60  # values up to which the best matrix is sought: the program has their square, twice
_BALANCED = 1e-10  # of the most frequent value: as much as rounding may part it from all others
_SURER = 1e-9  # above a stated certainty: rounding, no more
_CORRECT = "hm.masks.Pram(...).correct(counts) estimates the counts before the change."
_NAME = "give the matrix as a mapping of mappings, which names them"
_UNTOLD = (
    "The matrix follows from the counts before the change and would tell them: it stays with the "
    "controller."
)
_SPREAD = {
    "invariant": "so that all counts stay in expectation",
    "even": "to all other values alike",
    "optimal": "such that the fewest rows change for the certainty that is allowed",
    "optimal-invariant": "such that the fewest rows change, and all counts stay in expectation",
}


@register_mask
@dataclass(frozen=True, slots=True)
class Pram(MaskStep):
    """Keep a value with probability ``keep``, else change it for another.

    ``spread`` says for which: by an invariant matrix (one value that most people hold is kept more
    often where it must be), or evenly. ``"optimal"`` and ``"optimal-invariant"`` change as few rows
    as they can such that a released value leaves nobody surer than ``certainty`` of the value
    behind it who knows the matrix, the counts of all values and nothing else of the row. A
    ``matrix`` of your own (rows from, columns to, values in ascending order, each row adding up to
    1; or a mapping of mappings, which a column with a declared order needs) takes the place of all
    that.
    Missing stays missing.

    Example:
        >>> import halfmask as hm
        >>> hm.masks.Pram("job", keep=0.8, spread="even").correct({"a": 74, "b": 26})
        {'a': 90.0, 'b': 10.0}
    """

    name: ClassVar[str] = "pram"
    words: ClassVar[MaskWords] = MaskWords(
        "Values change for others with stated probabilities.",
        "Being sure of a person's value, and matching people by it.",
        "Guessing: the more rows keep their value, the likelier the one shown is the true one.",
    )

    column: str = field(metadata=one_column())
    keep: float | None = field(default=None, metadata=number(0, 1))
    spread: str = field(default="invariant", metadata=word("Others are taken", **_SPREAD))
    matrix: Any = field(default=None, metadata=anything(text=False))
    certainty: float | None = field(default=None, metadata=number(0, 1))

    def require(self) -> None:
        """Demand one of keep, certainty and matrix, and a matrix of probabilities."""
        stated = [one is not None for one in (self.keep, self.certainty, self.matrix)]
        if sum(stated) != 1:
            raise ParameterError(
                "keep", self.keep, "either keep= or matrix= or certainty=, and no two of them"
            )
        if self._is_optimal != (self.certainty is not None):
            raise ParameterError(
                "spread", self.spread, "optimal or optimal-invariant with certainty=, and only then"
            )
        if self.matrix is not None:
            object.__setattr__(self, "matrix", _plain(self.matrix))
            _require_stochastic(_array(self.matrix))

    def apply(self, rows: Rows) -> Outcome:
        """Change values."""
        encoded = rows.table.encode(self.column)
        values = encoded.values.drop_null()
        if len(values) > _MOST:
            raise InputError(
                f"pram: column '{self.column}' has {len(values):,} values, and may have {_MOST:,}."
            )
        if isinstance(self.matrix, tuple) and not _is_ascending(values):
            raise InputError(
                f"pram: column '{self.column}' has a declared order, so that the rows of a list "
                f"may stand for its values in two orders: {_NAME}."
            )
        counts = np.bincount(encoded.codes, minlength=len(values))[: len(values)]
        names = [str(one) for one in values.to_pylist()]
        more = self._absent_values(names)
        chances = self._chances([*names, *more], np.append(counts, np.zeros(len(more))))
        there = encoded.codes < len(values)
        drawn = np.zeros(len(there), np.int64)
        drawn[there] = _draw(chances, encoded.codes[there].astype(np.int64), rows.random)
        shown = pa.concat_arrays([_one_array(values), self._as_type(more, values.type)])
        changed = shown.take(pa.array(drawn, mask=~there))
        return Outcome({self.column: changed}, told=self._matrix_facts(chances))

    def _absent_values(self, names: list[str]) -> list[str]:
        """What a mapping names that no row holds; refusing it would tell that nobody does."""
        if not isinstance(self.matrix, dict):
            return []
        named = {*self.matrix, *(name for row in self.matrix.values() for name in row)}
        return sorted(named - set(names))

    def _as_type(self, names: list[str], kind: pa.DataType) -> pa.Array:
        try:
            return pa.array(names, pa.string()).cast(kind)
        except pa.ArrowInvalid:
            raise InputError(
                f"pram: the matrix names values that column '{self.column}' of {kind} cannot hold."
            ) from None

    def _matrix_facts(self, chances: Floats) -> dict[str, Any]:
        """The matrix, for whoever corrects counts; or why it does not leave."""
        if self.matrix is not None:
            return {"matrix": self.matrix, "words": f"The matrix is as stated. {_CORRECT}"}
        if self.spread == "even":
            stays = float(chances[0, 0]) if len(chances) else 1.0
            becomes = float(chances[0, 1]) if len(chances) > 1 else 0.0
            words = (
                f"The matrix holds {stays:.6g} where a value stays and {becomes:.6g} for each "
                f"other value. {_CORRECT}"
            )
            return {"matrix": {"stays": stays, "becomes": becomes}, "words": words}
        more = (
            "It keeps all counts in expectation, so that those of the release estimate them as "
            "they stand; hm.masks.Pram(...).variances(counts) says how far off."
            if self._is_invariant
            else "Counts before the change cannot be estimated without it."
        )
        return {"matrix": None, "words": f"{_UNTOLD} {more}"}

    def _chances(self, values: Sequence[str], counts: Floats) -> Floats:
        """The matrix over the values of the column."""
        size = len(values)
        if self.matrix is not None:
            return _array(_order_matrix(self.matrix, values, self.column))
        if self.certainty is not None:
            found = optimal_matrix(counts, self.certainty, invariant=self._is_invariant)
            if found is None:
                raise InputError(
                    f"pram: no matrix leaves column '{self.column}' at a certainty of "
                    f"{self.certainty:g}: a value that more people hold is guessed by its count "
                    f"alone, or there are more than {_OPTIMAL} values. Allow more, or join values."
                )
            return found
        keep = float(self.keep or 0.0)
        if size < 2:
            return np.eye(size)
        if self.spread == "even":
            even: Floats = np.full((size, size), (1 - keep) / (size - 1))
            np.fill_diagonal(even, keep)
            return even
        return invariant_matrix(counts, keep)

    def correct(self, counts: Mapping[Any, float] | Sequence[float]) -> Any:
        """Estimate the counts before the change from those after it.

        Args:
            counts: of each value in the release, in ascending order, or by value in any order; of
                every value that the column held, also 0.

        Raises:
            InputError: the matrix cannot be turned back, does not fit, or is a list and the values
                have no order that could be known.

        Example:
            >>> step = Pram("paid", matrix=[[0.9, 0.1], [0.2, 0.8]])  # from and to <=50K, >50K
            >>> step.correct({">50K": 152, "<=50K": 448})
            {'>50K': 131.428571429, '<=50K': 468.571428571}
        """
        before, _ = self._turned_back(counts)
        return _as_given(counts, before)

    def variances(self, counts: Mapping[Any, float] | Sequence[float]) -> Any:
        """The variance, by the change alone, of each count that ``correct`` estimates.

        With an invariant matrix the counts of the release stand for those before it, also in the
        matrix, which readers do not know.

        Example:
            >>> Pram("job", keep=0.8, spread="even").variances({"a": 74, "b": 26})
            {'a': 44.444444444, 'b': 44.444444444}
        """
        before, chances = self._turned_back(counts)
        held = np.maximum(before, 0.0)
        spread = np.diag(held @ chances) - chances.T @ (held[:, None] * chances)
        if self._is_invariant:
            return _as_given(counts, np.diag(spread))
        back = np.linalg.inv(chances)
        return _as_given(counts, np.diag(back.T @ spread @ back))

    @property
    def _is_invariant(self) -> bool:
        return self.matrix is None and self.spread.endswith("invariant")

    @property
    def _is_optimal(self) -> bool:
        return self.spread.startswith("optimal")

    def _turned_back(self, counts: Mapping[Any, float] | Sequence[float]) -> tuple[Floats, Floats]:
        """The counts before the change, and the matrix."""
        if self.spread == "optimal":
            raise InputError(
                "pram: an optimal matrix follows from the counts before the change, which nobody "
                "else knows: use optimal-invariant, which keeps them, or state the matrix."
            )
        after = np.array(list(counts.values()) if isinstance(counts, dict) else counts, float)
        if not isinstance(counts, dict):
            if isinstance(self.matrix, dict):
                raise InputError(
                    "pram: the matrix names its values: give the counts by value, as it does."
                )
            chances = self._chances([str(i) for i in range(len(counts))], after)
        elif isinstance(self.matrix, tuple):
            chances = self._chances([str(one) for one in counts], after)
            place = _places(list(counts), self.column)
            chances = chances[np.ix_(place, place)]
        else:
            lacking = len(set(self.matrix or ()) - {str(one) for one in counts})
            if lacking:
                raise InputError(
                    f"pram: the counts lack {lacking} values of the matrix: give one, also 0, for "
                    f"every value of column '{self.column}'."
                )
            chances = self._chances([str(one) for one in counts], after)
        if self._is_invariant:
            return after, chances  # it keeps them in expectation
        try:
            return np.linalg.solve(chances.T, after), chances
        except np.linalg.LinAlgError:
            raise InputError("pram: the matrix cannot be turned back: keep more.") from None


def _one_array(values: pa.Array | pa.ChunkedArray) -> pa.Array:
    return values.combine_chunks() if isinstance(values, pa.ChunkedArray) else values


def _is_ascending(values: pa.Array) -> bool:
    order = pc.sort_indices(values).to_numpy()
    return bool(np.array_equal(order, np.arange(len(values))))


def _places(names: list[Any], column: str) -> list[int]:
    """The row of a listed matrix for each value: its place in ascending order, as in a column.

    Raises:
        InputError: values of several kinds, or texts of numbers that sort otherwise than these.
    """
    unknown = InputError(
        f"pram: the order of the values of column '{column}' cannot be known from the counts, and "
        f"the matrix is a list: {_NAME}."
    )
    try:
        ordered = sorted(names)
    except TypeError:
        raise unknown from None
    if all(isinstance(one, str) for one in names):
        try:
            numbers = [float(one) for one in ordered]
        except ValueError:
            numbers = []
        if numbers != sorted(numbers):
            raise unknown
    place = {name: i for i, name in enumerate(ordered)}
    return [place[name] for name in names]


def _as_given(counts: Mapping[Any, float] | Sequence[float], figures: Floats) -> Any:
    found = [round(float(one), 9) for one in figures]
    return dict(zip(counts, found, strict=True)) if isinstance(counts, dict) else found


def invariant_matrix(counts: Floats, keep: float) -> Floats:
    """Probabilities that keep ``counts`` in expectation and a value with probability ``keep``.

    What leaves a value is dealt to the others by their counts, scaled until as much comes as goes.
    Where one value is held by more than half, as much as the others take leaves it.
    """
    size = len(counts)
    share = counts / max(counts.sum(), 1.0)
    goes = (1 - keep) * share
    most = int(np.argmax(goes))
    # The others must send as much back as it loses, or its count would fall.
    goes[most] = min(goes[most], goes.sum() - goes[most])
    flow = _symmetric_flow(goes, most)
    # Symmetric, it keeps the counts; rounded, less changes rather than more.
    rows = flow.sum(axis=1)
    # One factor for all keeps the flow symmetric, on which the invariance rests.
    flow *= np.min(np.divide(goes, rows, out=np.ones(size), where=rows > 0), initial=1.0)
    chances = np.divide(flow, share[:, None], out=np.zeros_like(flow), where=share[:, None] > 0)
    np.fill_diagonal(chances, 1 - chances.sum(axis=1))
    return np.maximum(chances, 0.0)


def _symmetric_flow(goes: Floats, most: int) -> Floats:
    """A flow x_i x_j between different values, of which ``goes`` leaves each.

    With S the sum of all x, x_i (S - x_i) = goes_i: x_i is the smaller root, but for ``most`` which
    may take the larger one; S solves one equation. Where all others together just balance ``most``,
    they exchange with it alone.
    """
    from scipy.optimize import brentq

    def small(total: float) -> Floats:
        found: Floats = 2 * goes / (total + np.sqrt(np.maximum(total**2 - 4 * goes, 0.0)))
        return found

    others = np.arange(len(goes)) != most
    flow = np.zeros((len(goes), len(goes)))
    if goes[most] >= goes[others].sum() * (1 - _BALANCED):
        flow[most] = flow[:, most] = goes * others
        return flow
    least = 2 * float(np.sqrt(goes[most]))
    larger = small(least).sum() < least

    def missing(total: float) -> float:
        x = small(total)
        rest = x[others].sum()
        return float(rest - x[most]) if larger else float(rest + x[most] - total)

    far = 2 * least
    while (missing(far) < 0) if larger else (missing(far) > 0):
        far *= 2
    total = least
    if missing(least) * missing(far) < 0:
        total = brentq(missing, least, far, xtol=1e-15 * far, rtol=1e-14)
    x = small(total)
    if larger:
        x[most] = total - x[most]
    flow = np.outer(x, x)
    np.fill_diagonal(flow, 0.0)
    return flow


def optimal_matrix(counts: Floats, certainty: float, *, invariant: bool) -> Floats | None:
    """The matrix that changes the fewest rows in expectation; None where there is none.

    Definition: with f_ij = t_i P_ij, the most of the sum of f_ii such that the rows of f add up to
    t, and no f_ij is above ``certainty`` times the sum of its column; ``invariant`` demands that
    columns add up to t too. Values that nobody holds stay.
    """
    from scipy.optimize import linprog
    from scipy.sparse import coo_array, eye_array, kron, vstack

    held = np.flatnonzero(counts > 0)
    size, out = len(held), np.eye(len(counts))
    if size == 0:
        return out
    if size > _OPTIMAL:
        return None
    share = counts[held] / counts[held].sum()
    one, every = eye_array(size), np.ones((1, size))
    leaves, arrives = kron(one, coo_array(every)), kron(coo_array(every), one)
    # Row (i, j): f_ij less certainty times all that arrives at j.
    known = eye_array(size * size) - certainty * kron(coo_array(np.ones((size, 1))), arrives)
    equal = [leaves, arrives] if invariant else [leaves]
    found = linprog(
        -np.eye(size).ravel(),
        A_ub=known.tocsr(),
        b_ub=np.zeros(size * size),
        A_eq=vstack(equal).tocsr(),
        b_eq=np.tile(share, len(equal)),
        method="highs",
    )
    if found.x is None or found.status != 0:
        return None
    flow = np.maximum(found.x.reshape(size, size), 0.0)
    chances = _limit_certainty(flow / flow.sum(axis=1, keepdims=True), share, certainty)
    if chances is None:
        return None
    out[np.ix_(held, held)] = chances
    return out


def _limit_certainty(chances: Floats, share: Floats, certainty: float) -> Floats | None:
    """The matrix such that nobody is surer, which a solver keeps to its own tolerance only.

    Where it is above, as many rows as needed are drawn anew by the counts: of these, nobody knows
    more than the counts say. None: that does not suffice.
    """
    if _surest(chances, share) > certainty + _SURER:
        flow = share[:, None] * chances
        over = np.maximum(flow - certainty * flow.sum(axis=0), 0.0)
        room = np.maximum(np.outer(certainty - share, share), 0.0)
        anew = np.divide(over, over + room, out=np.zeros_like(over), where=over > 0).max()
        chances = (1 - anew) * chances + anew * share
    return chances if _surest(chances, share) <= certainty + _SURER else None


def _surest(chances: Floats, share: Floats) -> float:
    """The highest probability of a value, given what it became."""
    flow = share[:, None] * chances
    arrives = flow.sum(axis=0)
    return float((flow[:, arrives > 0] / arrives[arrives > 0]).max(initial=0.0))


def _draw(
    chances: Floats, codes: NDArray[np.int64], random: np.random.Generator
) -> NDArray[np.int64]:
    """One value for each, by the row of the matrix that its own has."""
    edges = np.cumsum(chances, axis=1)
    edges /= edges[:, -1:]
    size = len(chances)
    # One search for all rows: the line of code c lies between c and c + 1.
    at = codes + np.minimum(random.random(len(codes)), 1 - 1e-12)
    found = np.searchsorted((edges + np.arange(size)[:, None]).ravel(), at, side="right")
    return np.asarray(np.clip(found - codes * size, 0, size - 1), dtype=np.int64)


def _plain(matrix: Any) -> Any:
    """A matrix as it is written into documents: tuples of numbers, or mappings."""
    try:
        if isinstance(matrix, dict):
            rows: Any = {
                str(a): {str(b): float(p) for b, p in row.items()} for a, row in matrix.items()
            }
        else:
            rows = tuple(tuple(float(p) for p in row) for row in matrix)
    except (TypeError, ValueError, AttributeError):
        raise ParameterError("matrix", type(matrix).__name__, "rows of probabilities") from None
    if not rows:
        raise ParameterError("matrix", "no row", "rows of probabilities")
    return rows


def _array(matrix: Any) -> Floats:
    if isinstance(matrix, dict):
        names = sorted({*matrix, *(name for row in matrix.values() for name in row)})
        matrix = [[matrix.get(a, {}).get(b, 0.0) for b in names] for a in names]
    if len({len(row) for row in matrix}) > 1:
        raise ParameterError("matrix", "rows of different lengths", "as many columns as rows")
    return np.array(matrix, dtype=np.float64).reshape(len(matrix), -1)


def _require_stochastic(chances: Floats) -> None:
    if chances.ndim != 2 or chances.shape[0] != chances.shape[1] or not len(chances):
        shape = " x ".join(map(str, chances.shape))
        raise InputError(f"pram: the matrix is {shape}: give as many columns as rows.")
    wrong = (np.abs(chances.sum(axis=1) - 1) > _SUM) | (chances < 0).any(axis=1)
    wrong |= ~np.isfinite(chances).all(axis=1)
    if wrong.any():
        where = ", ".join(str(i + 1) for i in np.flatnonzero(wrong)[:5])
        raise InputError(
            f"pram: rows {where} of the matrix are not possible: give rows of probabilities from 0 "
            "to 1 that add up to 1."
        )


def _order_matrix(matrix: Any, values: Sequence[str], column: str) -> Any:
    """A matrix in the order of the column's values."""
    if isinstance(matrix, dict):
        absent = sum(name not in matrix for name in values)
        if absent:
            raise InputError(
                f"pram: the matrix lacks {absent} values of column '{column}': give a row for each."
            )
        return [[matrix[a].get(b, 0.0) for b in values] for a in values]
    if len(matrix) != len(values):
        raise InputError(
            f"pram: the matrix has {len(matrix)} rows, and column '{column}' {len(values)} values: "
            "give a row, and a count, also 0, for each."
        )
    return matrix
