"""Personal epsilon for a whole table: keep each person by chance, then run any private method.

Definition: person i stays, with all own rows, with chance (e^eps_i - 1) / (e^t - 1), or always from
t on; a t-private method on the kept rows gives person i eps_i. With delta, person i has at most it.
Source: Jorgensen, Yu, Cormode, "Conservative or liberal? Personalized differential privacy", 2015,
Theorem 3, which holds for every t-private method and not for counts alone.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.dp.personal.demands import Demands
from halfmask.dp.personal.sampling import best_threshold, expected_share, kept
from halfmask.errors import SchemaError
from halfmask.table.table import Table

if TYPE_CHECKING:
    from fractions import Fraction

    from numpy.typing import NDArray

    from halfmask.dp.sampling import Sampler


@dataclass(frozen=True, slots=True, eq=False)
class PersonalSample:
    """The people of a table, what they demand, and at which epsilon to run a method.

    Attributes:
        threshold: the epsilon of the method.
        share: the share of people with a demand that is kept, as expected; public.
        smallest: the least epsilon that anybody demands.
        largest: the largest one.
        silent: how many people state no demand; they are left out.
    """

    threshold: Fraction
    share: float
    smallest: Fraction
    largest: Fraction
    silent: int
    _demands: Demands
    _person: NDArray[np.int64]
    _table: Table

    def __repr__(self) -> str:
        return f"PersonalSample({self.threshold}, {self.share:.3f})"

    def draw(self, sampler: Sampler) -> Table:
        """The rows of the people who are kept."""
        stays = np.zeros(int(self._person.max(initial=-1)) + 2, np.bool_)
        stays[: len(self._demands.steps)] = kept(self._demands, self.threshold, sampler)
        rows = np.flatnonzero(stays[self._person] & (self._person >= 0))
        return Table(self._table.arrow.take(pa.array(rows)), self._table.schema, self._table.origin)

    def to_dict(self) -> dict[str, object]:
        """The public facts."""
        return {
            "threshold": float(self.threshold),
            "kept_share": self.share,
            "smallest": float(self.smallest),
            "largest": float(self.largest),
            "without_demand": self.silent,
        }


def personal_sample(
    table: Table, *, threshold: Fraction | None = None, numbers: int = 1
) -> PersonalSample:
    """What the schema's policy says of epsilon, and the threshold that loses least.

    Args:
        table: rows whose schema names a policy column for epsilon.
        threshold: the epsilon of the method; by default the best for these demands.
        numbers: how many noisy numbers the method measures, for choosing the threshold.
    """
    column = table.schema.policy.get("epsilon")
    if column is None:
        raise SchemaError(
            "Nobody's own epsilon is declared: name its column in the schema, [policy] epsilon = "
            "..., or give one epsilon for everybody."
        )
    stated = table.arrow[column].cast(pa.float64()).to_numpy(zero_copy_only=False)
    person = np.arange(len(stated))
    if table.schema.person is not None:
        person = table.encode(table.schema.person).codes.astype(np.int64)
    least = np.full(int(person.max(initial=-1)) + 1, np.inf)
    # Where rows of one person differ, or one states nothing, the most cautious counts.
    np.minimum.at(least, person, np.nan_to_num(stated, nan=-1.0))
    spoken = least > 0
    place = np.cumsum(spoken) - 1
    silent = int((~spoken).sum())
    if silent == len(least):
        raise SchemaError(f"Policy column {column!r} holds no demand: everybody would be left out.")
    demands = Demands.of(least[spoken].tolist())
    level = threshold or best_threshold(demands, numbers=numbers)
    return PersonalSample(
        level,
        expected_share(demands, level),
        demands.smallest,
        demands.histogram()[0][-1],
        silent,
        demands,
        np.where(spoken[person], place[person], -1),
        table,
    )
