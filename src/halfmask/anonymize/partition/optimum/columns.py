"""Classes as columns of a set partitioning program: choose some so that each row is in one."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

if TYPE_CHECKING:
    from typing import Any

    from numpy.typing import NDArray


class Columns:
    """A growing set of different classes with their costs."""

    def __init__(self, rows: int) -> None:
        self.rows = rows
        self.members: list[tuple[int, ...]] = []
        self.costs: list[float] = []
        self._known: set[tuple[int, ...]] = set()

    def __len__(self) -> int:
        return len(self.members)

    def add(self, members: NDArray[np.int64], starts: NDArray[np.int64], costs: Any) -> int:
        """Add classes given one after the other; how many were new."""
        before = len(self)
        flat, begins = members.tolist(), starts.tolist()
        for i, cost in enumerate(costs.tolist()):
            key = tuple(sorted(flat[begins[i] : begins[i + 1]]))
            if key not in self._known:
                self._known.add(key)
                self.members.append(key)
                self.costs.append(cost)
        return len(self) - before

    def matrix(self) -> Any:
        """The rows in each column."""
        from scipy.sparse import csc_array

        lengths = np.fromiter((len(m) for m in self.members), dtype=np.int64, count=len(self))
        rows = np.fromiter((r for m in self.members for r in m), np.int64, int(lengths.sum()))
        pointers = np.concatenate(([0], np.cumsum(lengths)))
        ones = np.ones(len(rows))
        return csc_array((ones, rows, pointers), shape=(self.rows, len(self)))

    def relaxed(self) -> tuple[float, NDArray[np.float64]]:
        """The optimum if classes could be taken in part, and the price of each row."""
        from scipy.optimize import linprog

        result = linprog(
            np.array(self.costs), A_eq=self.matrix(), b_eq=np.ones(self.rows), method="highs"
        )
        return float(result.fun), np.asarray(result.eqlin.marginals)

    def chosen(self, seconds: float) -> tuple[NDArray[np.int64] | None, float, float]:
        """The best whole classes among these: each row's class, their cost, and a lower bound."""
        from scipy.optimize import Bounds, LinearConstraint, milp

        result = milp(
            np.array(self.costs),
            integrality=np.ones(len(self)),
            bounds=Bounds(0, 1),
            constraints=LinearConstraint(self.matrix(), 1, 1),
            options={"time_limit": seconds, "mip_rel_gap": 0.0},
        )
        bound = getattr(result, "mip_dual_bound", None)
        lower = -np.inf if bound is None else float(bound)
        if result.x is None:
            return None, np.inf, np.inf if result.status == 2 else lower
        ids = np.full(self.rows, -1, dtype=np.int64)
        picked = np.flatnonzero(result.x > 0.5)
        for number, column in enumerate(picked.tolist()):
            ids[list(self.members[column])] = number
        return ids, float(sum(self.costs[c] for c in picked)), lower
