"""One column of an original and of its release, on common ground.

A column has leaves: the values of the original, then values that only the release holds (perturbed
or synthetic rows). A published label covers leaves: a value itself, a label of the hierarchy all
values under it, ``*`` all of them. A label's mass lies evenly on the leaves it covers.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.leaf_order import Ordered, in_order, merged
from halfmask.metrics.weighted import tally

if TYPE_CHECKING:
    from numpy.typing import NDArray
    from scipy.sparse import csr_array


@dataclass(frozen=True, slots=True, eq=False)
class SharedColumn:
    """One column of both tables.

    Attributes:
        name: its name; ``role`` its role in the original.
        before: per entry of the original (a row, or a distinct tuple of several), its leaf;
            ``after``: per entry of the release, its label.
        before_counts: per entry of the original, its rows; None: one each; ``after_counts`` of the
            release.
        leaves: how many leaves there are, the first ``known`` of them from the original.
        starts: where the leaves of each label begin in ``covered``.
        covered: the leaves under each label, ascending.
        level: per label, the level of the hierarchy it stands at; 0 is a value.
        numbers: per leaf, its number; None where the column is not numeric.
        foreign: released rows whose label the original and its hierarchy do not know.
        loss: the mean loss of the published cells, 0 to 1; None where labels are foreign.
        bin_of: per leaf, the bin in which distributions are compared; ``bins`` how many.
        coarse_of: the same for pairs of columns: rare values share a bin; ``coarse`` how many.
    """

    name: str
    role: str
    before: NDArray[np.int32]
    after: NDArray[np.int32]
    before_counts: NDArray[np.int64] | None
    after_counts: NDArray[np.int64] | None
    leaves: int
    known: int
    starts: NDArray[np.int64]
    covered: NDArray[np.int64]
    level: NDArray[np.int64]
    numbers: NDArray[np.float64] | None
    foreign: int
    loss: float | None
    bin_of: NDArray[np.int64]
    bins: int
    coarse_of: NDArray[np.int64]
    coarse: int
    _ordered: list[Ordered] = field(default_factory=list, init=False, repr=False)

    @property
    def labels(self) -> int:
        """How many different labels the release holds."""
        return len(self.starts) - 1

    @property
    def sizes(self) -> NDArray[np.int64]:
        """Per label, how many leaves it covers."""
        return np.diff(self.starts)

    @property
    def leaf_rows(self) -> NDArray[np.int64]:
        """Per leaf, how many rows of the original hold it."""
        return tally(self.before, self.leaves, self.before_counts)

    @property
    def label_rows(self) -> NDArray[np.int64]:
        """Per label, how many released rows hold it."""
        return tally(self.after, self.labels, self.after_counts)

    @property
    def label_numbers(self) -> NDArray[np.float64]:
        """Per label, the mean number of its leaves."""
        assert self.numbers is not None  # noqa: S101 - only asked of numeric columns
        sums = np.add.reduceat(self.numbers[self.covered], self.starts[:-1])
        return np.asarray(sums / self.sizes)

    @property
    def ordered(self) -> Ordered:
        """Leaves in an order in which labels are ranges, if there is one."""
        return self._orders()[0]

    @property
    def merged(self) -> Ordered:
        """The same, where leaves that no label tells apart are one."""
        return self._orders()[1]

    def _orders(self) -> list[Ordered]:
        if not self._ordered:
            found = in_order(self.leaves, self.starts, self.covered)
            self._ordered.extend((found, merged(found)))
        return self._ordered

    def covers(self, labels: NDArray[np.int64], leaves: NDArray[np.int32]) -> NDArray[np.bool_]:
        """Whether each of some labels covers the leaf beside it."""
        keys = np.repeat(np.arange(self.labels), self.sizes) * self.leaves + self.covered
        wanted = labels * self.leaves + leaves
        at = np.minimum(np.searchsorted(keys, wanted), len(keys) - 1)
        return np.asarray(keys[at] == wanted)

    def only_label(self) -> NDArray[np.int32]:
        """Per leaf, the label that covers it where there is one at most; -1 where none does."""
        out = np.full(self.leaves, -1, dtype=np.int32)
        out[self.covered] = np.repeat(np.arange(self.labels), self.sizes)
        return out

    def spread(self, weights: NDArray[np.float64]) -> NDArray[np.float64]:
        """Mass on labels as mass on leaves."""
        each = np.repeat(weights / self.sizes, self.sizes)
        return np.asarray(
            np.bincount(self.covered, weights=each, minlength=self.leaves), dtype=np.float64
        )

    def shares(self) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The distributions over bins of the original and of the release."""
        p = tally(self.bin_of, self.bins, self.leaf_rows)
        counts = self.label_rows.astype(np.float64)
        q = np.bincount(self.bin_of, weights=self.spread(counts), minlength=self.bins)
        return p / max(p.sum(), 1), q / max(q.sum(), 1e-300)

    def weights(self) -> csr_array:
        """(labels, coarse bins) how the mass of each label lies on the bins."""
        from scipy.sparse import csr_array

        owner = np.repeat(np.arange(self.labels), self.sizes)
        cells = (1.0 / self.sizes[owner], (owner, self.coarse_of[self.covered]))
        return csr_array(cells, shape=(self.labels, self.coarse))

    def inside(self, chosen: NDArray[np.bool_]) -> NDArray[np.float64]:
        """Per label, the share of its leaves that ``chosen`` marks."""
        marks = chosen[self.covered].astype(np.float64)
        return np.asarray(np.add.reduceat(marks, self.starts[:-1]) / self.sizes)

    @property
    def renumbered(self) -> bool:
        """Whether the release holds new numbers, which equal none of the original's."""
        return self.numbers is not None and self.leaves > self.known

    def binned(self) -> SharedColumn:
        """The column in its bins; a label of several values lies evenly on the bins it touches."""
        if self.bins == self.leaves:
            return self
        several = np.flatnonzero(self.sizes > 1)
        label = self.bin_of[self.covered[self.starts[:-1]]]
        label[several] = self.bins + np.arange(len(several))
        wide = [self.bin_of[self.covered[self.starts[i] : self.starts[i + 1]]] for i in several]
        covers = [np.array([place]) for place in range(self.bins)] + [np.unique(w) for w in wide]
        return replace(
            self,
            before=self.bin_of[self.before].astype(np.int32),
            after=label[self.after].astype(np.int32),
            leaves=self.bins,
            known=self.bins,
            starts=np.concatenate(([0], np.cumsum([len(c) for c in covers]))).astype(np.int64),
            covered=np.concatenate(covers).astype(np.int64),
            level=np.concatenate((np.zeros(self.bins), 1 + np.arange(len(several)))).astype(
                np.int64
            ),
            numbers=None,
            bin_of=np.arange(self.bins),
        )
