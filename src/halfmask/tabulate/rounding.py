"""Rounding: controlled, so that all figures still add up, or at random, cell by cell.

Definition: controlled rounding gives every cell a multiple of the base next to its figure such that
all sums hold; multiples of the base stay (zero-restricted). Random rounding goes up with the chance
(figure mod base) / base, so that the expected figure is the true one.
Source: Cox, "A constructive procedure for unbiased controlled rounding", 1987; Salazar, "Controlled
rounding and cell perturbation", 2006 (the integer program).
"""

from __future__ import annotations

from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.sampling import Sampler
from halfmask.errors import ParameterError, PrivacyError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.release.tabulation.cells import CellGrid

    Numbers = NDArray[np.float64]


OUT_OF_TIME = 1  # of HiGHS: a limit was reached


def require_base(base: object) -> int:
    """The base of a rounding."""
    if isinstance(base, bool) or not isinstance(base, int) or base < 2:
        raise ParameterError("base", base, "a whole number of at least 2")
    return base


def round_controlled(
    grid: CellGrid, values: Numbers, base: int, *, time_limit: float = 60.0
) -> tuple[Numbers, bool]:
    """Figures rounded so that all sums hold, and whether multiples of the base stayed.

    Which way a figure goes is drawn from the system's secure source, nearer ones more often; the
    nearest table of multiples to what was drawn is taken.

    Raises:
        PrivacyError: there is no such table, or none was found in time: which kind of table is
            taken never depends on the clock.
    """
    coins = _round_up(values, base)
    # Neighboring multiples first; three columns or more may need the next ones.
    for restricted in (True, False):
        found = _solve(grid, values, base, coins, restricted=restricted, time_limit=time_limit)
        if found is not None:
            return found, restricted
    raise PrivacyError(
        f"No rounding to multiples of {base} was found that keeps all sums (tables of three or "
        "more columns may have none): try another base, fewer columns or method='random-round'."
    )


def _solve(
    grid: CellGrid,
    values: Numbers,
    base: int,
    coins: NDArray[np.bool_],
    *,
    restricted: bool,
    time_limit: float,
) -> Numbers | None:
    from scipy.optimize import Bounds, LinearConstraint, milp

    floor = np.floor(values / base)
    loose = values % base != 0
    # Steps of the base above the floor; an unrestricted multiple may go one step either way.
    low = np.where(loose | (not restricted and values > 0), 0.0 if restricted else -1.0, 0.0)
    low[loose] = 0.0
    high = np.where(loose, 1.0, 0.0 if restricted else 1.0)
    high[(values == 0)] = 0.0
    target = np.where(loose, coins.astype(float), 0.0)
    # |step - target|: towards the drawn side; an extra variable measures what moves away from it.
    cost = np.where(loose, np.where(coins, -1.0, 1.0), 0.0)
    extra = np.flatnonzero(~loose & (values > 0)) if not restricted else np.zeros(0, np.int64)
    relations = grid.relations
    constraints = [
        LinearConstraint(_widen(relations, len(extra)), -(relations @ floor), -(relations @ floor))
    ]
    if len(extra):
        constraints += _absolute(grid.size, extra)
    result = milp(
        np.concatenate([cost, np.full(len(extra), 2.0)]),
        constraints=constraints,
        bounds=Bounds(
            np.concatenate([low, np.zeros(len(extra))]), np.concatenate([high, np.ones(len(extra))])
        ),
        integrality=np.ones(grid.size + len(extra)),
        options={"time_limit": time_limit, "mip_rel_gap": 0.01},
    )
    del target
    if result.x is None and result.status == OUT_OF_TIME:
        raise PrivacyError(
            f"No rounding to multiples of {base} was found in {time_limit:g} seconds: give a "
            "larger time_limit, fewer columns or method='random-round'."
        )
    if result.x is None:
        return None
    found: Numbers = (floor + np.round(result.x[: grid.size])) * base
    return found


def _widen(relations: object, more: int) -> object:
    from scipy.sparse import csr_array, hstack

    if not more:
        return relations
    lines = relations.shape[0]  # type: ignore[attr-defined]
    return hstack([relations, csr_array((lines, more))]).tocsr()


def _absolute(size: int, extra: NDArray[np.int64]) -> list[object]:
    from scipy.optimize import LinearConstraint
    from scipy.sparse import coo_array

    lines = np.arange(len(extra))
    found: list[object] = []
    for sign in (1.0, -1.0):
        where = (np.concatenate([lines, lines]), np.concatenate([extra, size + lines]))
        data = np.concatenate([np.full(len(extra), sign), np.full(len(extra), -1.0)])
        matrix = coo_array((data, where), shape=(len(extra), size + len(extra))).tocsr()
        found.append(LinearConstraint(matrix, ub=0.0))
    return found


def round_randomly(values: Numbers, base: int) -> Numbers:
    """Every figure rounded by itself, up or down, so that its expectation is the figure."""
    found: Numbers = (np.floor(values / base) + _round_up(values, base)) * base
    return found


def _round_up(values: Numbers, base: int) -> NDArray[np.bool_]:
    """Coins with the chance (figure mod base) / base, from the system's secure source."""
    rest = (values % base).astype(np.int64)
    sampler, found = Sampler(), np.zeros(len(values), dtype=bool)
    for left in range(1, base):
        here = np.flatnonzero(rest == left)
        if len(here):
            found[here] = sampler.bernoulli(Fraction(left, base), len(here))
    return found
