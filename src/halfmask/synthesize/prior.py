"""What is publicly known of how columns go together, where a private model begins.

Definition: of a public table (last year's release, a published sample, invented rows) the pairs of
    columns that go together most make a tree; a model of independent columns is multiplied by how
    far each pair is from independence there, and then moved to the noisy counts of the columns.

The public table costs nothing and is not protected. What is measured later is moved towards the
model no further than its noise asks for, so that a wrong table does little harm where the budget is
ample.
"""

from __future__ import annotations

from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.domain import encoded
from halfmask.errors import ParameterError
from halfmask.synthesize.inference import align_axes, junction_tree
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Mapping

    from numpy.typing import NDArray

    from halfmask.dp.domain import Domain
    from halfmask.synthesize.inference import Beliefs

    Ints = NDArray[np.int64]

_SURE = 3.0  # standard deviations beyond chance at which columns are taken to go together


@dataclass(frozen=True, slots=True, eq=False)
class PublicPrior:
    """A public table by the codes of the columns that it shares with the private one."""

    codes: Mapping[str, Ints]

    @classmethod
    def of(cls, given: object, table: object, domains: Mapping[str, Domain]) -> PublicPrior:
        """The rows of a public table, coded by public domains.

        Raises:
            ParameterError: it is no table, the private one itself, or shares fewer than two columns
                with it.
        """
        if not isinstance(given, Table):
            raise ParameterError("prior", type(given).__name__, "a public table, as hm.read gives")
        if given is table:
            raise ParameterError("prior", "the table itself", "a table that everybody may see")
        public = given.collect()
        names = [name for name in domains if name in public.column_names]
        if len(names) < 2 or not len(public):
            raise ParameterError(
                "prior", f"{len(names)} column(s)", "rows that share two columns with the table"
            )
        return cls({n: encoded(public, n, domains[n]).astype(np.int64) for n in names})

    def grouped(self, groups: Mapping[str, Ints]) -> PublicPrior:
        """The same by groups of codes."""
        return PublicPrior({name: groups[name][held] for name, held in self.codes.items()})

    def shares(self, name: str, size: int) -> NDArray[np.float64]:
        """How the public rows are spread over the values of a column; none is without any."""
        counts = np.bincount(self.codes[name], minlength=size) + 0.5
        found: NDArray[np.float64] = counts / counts.sum()
        return found

    def begin(self, beliefs: Beliefs, cells: int) -> Beliefs:
        """``beliefs`` with the dependence of the public rows, of at most ``cells`` cells."""
        lifts = self._lifts(beliefs.sizes)
        parts = {name: name for name in beliefs.sizes}
        for (a, b), lift in lifts.items():
            if parts[a] == parts[b]:
                continue
            held = [*beliefs.tree.cliques, (a, b)]
            if junction_tree(beliefs.sizes, held).cells > cells:
                continue
            beliefs = beliefs.extended([(a, b)])
            home = beliefs.tree.holder((a, b))
            assert home is not None  # noqa: S101 - the tree was extended
            beliefs.multiply({home: align_axes(lift, (a, b), beliefs.tree.cliques[home])})
            parts = {n: parts[a] if part == parts[b] else part for n, part in parts.items()}
        return beliefs

    def _lifts(self, sizes: Mapping[str, int]) -> dict[tuple[str, str], NDArray[np.float64]]:
        """Per pair that goes together beyond chance, how far from independence; strongest first."""
        rows = len(next(iter(self.codes.values())))
        found = {}
        for a, b in combinations([name for name in sizes if name in self.codes], 2):
            shape = sizes[a], sizes[b]
            cells = self.codes[a] * sizes[b] + self.codes[b]
            counts = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
            apart = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / rows
            # Half a row in each cell, dealt as independence has it: no cell says never.
            few = 0.5 * counts.size / rows
            expected = np.maximum(apart, 1e-9)
            lift = (counts + few * expected) / (1 + few) / expected
            lift = np.where(apart > 0, lift, 1.0)
            told = counts[counts > 0]
            strength = float((told * np.log(told / apart[counts > 0])).sum())
            free = (np.count_nonzero(counts.sum(axis=1)) - 1) * (
                np.count_nonzero(counts.sum(axis=0)) - 1
            )
            if 2 * strength > free + _SURE * sqrt(2 * max(free, 1)):
                found[a, b] = (strength, lift)
        order = sorted(found, key=lambda pair: -found[pair][0])
        return {pair: found[pair][1] for pair in order}
