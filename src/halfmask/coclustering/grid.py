"""A grid: the parts of each variable and the counts of its non-empty cells."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from halfmask.coclustering.criterion import GridCriterion, cell_counts
from halfmask.coclustering.observations import Observations, Variable
from halfmask.errors import InputError, usable_path
from halfmask.ownership import make_private

if TYPE_CHECKING:
    from os import PathLike

    from numpy.typing import NDArray

    from halfmask.coclustering.criterion import CriterionForm, GridPartition

FORMAT = "halfmask.grid/1"


@dataclass(frozen=True, slots=True, eq=False)
class Grid:
    """A grid over some observations.

    Attributes:
        variables: the sides.
        partition: per variable, the part of each value.
        marginals: per variable, how often each value was observed.
        cells: (cells, variables) the parts of the non-empty cells.
        counts: how many observations each of them holds.
        cost: the cost of the grid.
        null_cost: the cost of the grid with one cell.
        criterion: the form of the cost.
    """

    variables: tuple[Variable, ...]
    partition: GridPartition
    marginals: tuple[NDArray[np.int64], ...]
    cells: NDArray[np.int32]
    counts: NDArray[np.int64]
    cost: float
    null_cost: float
    criterion: CriterionForm

    @classmethod
    def of(cls, criterion: GridCriterion, partition: GridPartition) -> Grid:
        """The grid that ``partition`` makes of the criterion's observations."""
        observed = criterion.observations
        cells, counts = cell_counts(observed, partition)
        return cls(
            observed.variables,
            partition,
            tuple(observed.marginal(k) for k in range(len(partition))),
            cells,
            counts,
            criterion.cost(partition, garbage=criterion.best_garbage(partition)),
            criterion.null(),
            criterion.form,
        )

    def __repr__(self) -> str:
        size = " x ".join(str(p) for p in self.parts)
        return f"Grid({size} parts, cost {self.cost:.6f}, null {self.null_cost:.6f})"

    @property
    def parts(self) -> tuple[int, ...]:
        """The number of parts per variable."""
        return tuple(int(side.max()) + 1 for side in self.partition)

    @property
    def total(self) -> int:
        """The number of observations."""
        return int(self.counts.sum())

    @property
    def informative(self) -> bool:
        """Whether the variables tell anything of each other."""
        return any(p > 1 for p in self.parts)

    @property
    def level(self) -> float:
        """1 - cost / null cost: 0 is no structure."""
        return 1.0 - self.cost / self.null_cost if self.null_cost > 0 else 0.0

    def side(self, name: str) -> int:
        """The place of a variable."""
        names = [variable.name for variable in self.variables]
        if name not in names:
            raise InputError(f"The grid has no variable {name!r}; it has {', '.join(names)}.")
        return names.index(name)

    def sizes(self, side: int) -> NDArray[np.int64]:
        """How many values each part of one variable holds."""
        return np.bincount(self.partition[side], minlength=self.parts[side]).astype(np.int64)

    def totals(self, side: int) -> NDArray[np.int64]:
        """How many observations each part of one variable holds."""
        summed = np.bincount(self.cells[:, side], self.counts, self.parts[side])
        return summed.astype(np.int64)

    def matrix(self) -> NDArray[np.int64]:
        """The counts of all cells of a grid with two variables."""
        out = np.zeros(self.parts, dtype=np.int64)
        out[tuple(self.cells.T)] = self.counts
        return out

    def stand_in(self) -> Observations:
        """Observations with the same cells, each part's by its first value.

        Enough to merge on: the cost differs from that of the real ones by a constant.
        """
        first = [np.unique(p, return_index=True)[1].astype(np.int32) for p in self.partition]
        codes = np.column_stack([f[self.cells[:, k]] for k, f in enumerate(first)])
        return Observations(self.variables, codes, self.counts)

    def coarser(self, names: list[NDArray[np.int32]], cost: float) -> Grid:
        """The grid whose parts are merged as ``names`` says (new part of each part)."""
        codes = np.column_stack([names[k][self.cells[:, k]] for k in range(len(names))])
        shifted = Observations(self.variables, codes.astype(np.int32), self.counts)
        ident = tuple(np.arange(int(n.max()) + 1, dtype=np.int32) for n in names)
        cells, counts = cell_counts(shifted, ident)
        partition = tuple(n[p] for n, p in zip(names, self.partition, strict=True))
        return Grid(
            self.variables,
            partition,
            self.marginals,
            cells,
            counts,
            cost,
            self.null_cost,
            self.criterion,
        )

    def save(self, path: str | PathLike[str]) -> None:
        """Write the grid as JSON; it holds the values' texts and their counts."""
        document = {
            "format": FORMAT,
            "criterion": self.criterion,
            "cost": self.cost,
            "null_cost": self.null_cost,
            "variables": [
                {
                    "name": variable.name,
                    "kind": variable.kind,
                    "values": None if variable.values is None else list(variable.values),
                    "parts": self.partition[k].tolist(),
                    "counts": self.marginals[k].tolist(),
                }
                for k, variable in enumerate(self.variables)
            ],
            "cells": self.cells.tolist(),
            "counts": self.counts.tolist(),
        }
        make_private(path)
        usable_path(path).write_text(json.dumps(document, ensure_ascii=False), encoding="utf-8")

    @classmethod
    def load(cls, path: str | PathLike[str]) -> Grid:
        """Read a grid that ``save`` wrote."""
        try:
            document: dict[str, Any] = json.loads(usable_path(path).read_text(encoding="utf-8"))
        except FileNotFoundError:
            raise InputError(f"The grid {Path(path).name!r} does not exist.") from None
        except (json.JSONDecodeError, UnicodeDecodeError):
            raise InputError(f"{Path(path).name!r} is not a saved grid.") from None
        if not isinstance(document, dict) or document.get("format") != FORMAT:
            raise InputError(f"{Path(path).name!r} is not a saved grid of format {FORMAT}.")
        sides = document["variables"]
        return cls(
            tuple(
                Variable(
                    side["name"],
                    side["kind"],
                    len(side["parts"]),
                    None if side["values"] is None else tuple(side["values"]),
                )
                for side in sides
            ),
            tuple(np.array(side["parts"], dtype=np.int32) for side in sides),
            tuple(np.array(side["counts"], dtype=np.int64) for side in sides),
            np.array(document["cells"], dtype=np.int32).reshape(-1, len(sides)),
            np.array(document["counts"], dtype=np.int64),
            document["cost"],
            document["null_cost"],
            document["criterion"],
        )
