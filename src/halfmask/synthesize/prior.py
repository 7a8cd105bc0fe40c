"""What is publicly known of how columns go together, where a private model begins.

Definition: of a public table (an earlier release, a published sample, invented rows) the pairs of
    columns that go together most make a tree; a model of independent columns is multiplied by how
    far each pair is from independence there, and then moved to the noisy counts of the columns.

The public table costs nothing and is not protected. What is measured later is moved towards the
model no further than its noise asks for, so that a wrong table does little harm where the budget is
ample.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from itertools import combinations
from math import sqrt
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp.domain import public_codes
from halfmask.errors import ParameterError
from halfmask.synthesize.inference import align_axes, count_cells
from halfmask.table.table import Table

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

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
    def of(cls, given: object, table: Table, domains: Mapping[str, Domain]) -> PublicPrior:
        """The rows of a public table, coded by public domains.

        Raises:
            ParameterError: it is no table, the private one itself, or shares fewer than two columns
                with it.
        """
        if not isinstance(given, Table):
            raise ParameterError("prior", type(given).__name__, "a public table, as hm.read gives")
        if _is_same(given, table):
            raise ParameterError("prior", "the table itself", "a table that everybody may see")
        public = given.collect()
        names = [name for name in domains if name in public.column_names]
        if len(names) < 2 or not len(public):
            raise ParameterError(
                "prior", f"{len(names)} column(s)", "rows that share two columns with the table"
            )
        return cls({n: public_codes(public, n, domains[n]).astype(np.int64) for n in names})

    def recode(self, groups: Mapping[str, Ints]) -> PublicPrior:
        """The same by groups of codes."""
        return PublicPrior({name: groups[name][held] for name, held in self.codes.items()})

    def shares(self, name: str, size: int) -> NDArray[np.float64]:
        """How the public rows are spread over the values of a column; none is without any."""
        counts = np.bincount(self.codes[name], minlength=size) + 0.5
        found: NDArray[np.float64] = counts / counts.sum()
        return found

    def begin(self, beliefs: Beliefs, cells: int) -> Beliefs:
        """``beliefs`` with the dependence of the public rows, of at most ``cells`` cells."""
        parts = {name: name for name in beliefs.sizes}
        for a, b in self._strongest(beliefs.sizes, cells):
            if parts[a] == parts[b]:
                continue
            if count_cells(beliefs.sizes, [*beliefs.tree.cliques, (a, b)]) > cells:
                continue
            beliefs = beliefs.extended([(a, b)])
            home = beliefs.tree.holder((a, b))
            assert home is not None  # noqa: S101 - the tree was extended
            lift = self._lift(a, b, beliefs.sizes)
            beliefs.multiply({home: align_axes(lift, (a, b), beliefs.tree.cliques[home])})
            parts = {n: parts[a] if part == parts[b] else part for n, part in parts.items()}
        return beliefs

    def _strongest(self, sizes: Mapping[str, int], cells: int) -> list[tuple[str, str]]:
        """The pairs of at most ``cells`` cells that go together beyond chance, strongest first."""
        found = {}
        for a, b in combinations([name for name in sizes if name in self.codes], 2):
            if sizes[a] * sizes[b] > cells:  # no model of the size holds it: do not list its cells
                continue
            counts, apart = self._counts(a, b, sizes)
            told = counts[counts > 0]
            strength = float((told * np.log(told / apart[counts > 0])).sum())
            free = (np.count_nonzero(counts.sum(axis=1)) - 1) * (
                np.count_nonzero(counts.sum(axis=0)) - 1
            )
            # G-test: by chance alone the statistic is about its degrees of freedom, with twice
            # these as variance.
            if 2 * strength > free + _SURE * sqrt(2 * max(free, 1)):
                found[a, b] = strength
        return sorted(found, key=lambda pair: -found[pair])

    def _lift(self, a: str, b: str, sizes: Mapping[str, int]) -> NDArray[np.float64]:
        """How far from independence each cell of a pair is."""
        counts, apart = self._counts(a, b, sizes)
        # Half a row in each cell, dealt as independence has it: no cell says never.
        few = 0.5 * counts.size / len(self.codes[a])
        expected = np.maximum(apart, 1e-9)
        lift = (counts + few * expected) / (1 + few) / expected
        found: NDArray[np.float64] = np.where(apart > 0, lift, 1.0)
        return found

    def _counts(self, a: str, b: str, sizes: Mapping[str, int]) -> tuple[Ints, NDArray[np.float64]]:
        """The public rows in each cell of a pair, and how many independence would have there."""
        shape = sizes[a], sizes[b]
        cells = self.codes[a] * sizes[b] + self.codes[b]
        counts = np.bincount(cells, minlength=shape[0] * shape[1]).reshape(shape)
        apart = np.outer(counts.sum(axis=1), counts.sum(axis=0)) / len(self.codes[a])
        return counts, apart


def _is_same(given: Table, table: Table) -> bool:
    """Whether two tables are the same rows, by where they were read from or lie in memory.

    Never by their values. Equal rows read from elsewhere pass: a refusal would hang on rows. Who
    knows that the table is the public one, or that one with somebody added, would learn which from
    the mere fact that a release was made.
    """
    if given is table or given.collect() is table:
        return True
    if given.place is not None and table.place is not None:
        (mine, named), (other, asked) = given.place, table.place
        if _one_place(mine, other) and (named == asked or None in (named, asked)):
            return True
    if table.stored is not None:  # nothing of it lies in memory
        return False
    return bool(set(_memory(given)) & set(_memory(table)))


def _one_place(mine: str, other: str) -> bool:
    try:
        return mine == other or os.path.samefile(mine, other)  # two names of one file, too
    except OSError:
        return False


def _memory(table: Table) -> Iterator[tuple[int, int]]:
    """Where the columns of a table lie, and from which row on."""
    for column in table.arrow.columns:
        for chunk in column.chunks:
            held = chunk.buffers()[1:2]
            if len(chunk) and held and held[0] is not None:
                yield held[0].address, chunk.offset
