"""Rows behind a door that lets only noisy answers out.

A synthesizer receives a ``Vault`` and public domains, and nothing else: every method charges the
allowance before it reads the rows, and what it gives has noise in it. A synthesizer that is given
recorded answers instead of a vault must make the same model, which is tested.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from fractions import Fraction
from math import isqrt, prod
from typing import TYPE_CHECKING

import numpy as np

from halfmask.dp import sparse
from halfmask.dp.accountant import Entry
from halfmask.dp.budget import Budget, Concentrated, Pure
from halfmask.dp.domain import encoded
from halfmask.dp.mechanisms.discrete_gaussian import DiscreteGaussian
from halfmask.dp.mechanisms.discrete_laplace import DiscreteLaplace
from halfmask.dp.mechanisms.exponential import Exponential
from halfmask.dp.noisy_views import Guess, Measured
from halfmask.dp.sampling import Sampler
from halfmask.errors import InternalError, ParameterError

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.dp.accountant import Allowance
    from halfmask.dp.domain import Domain
    from halfmask.table.table import Table

MOST_CELLS = 1 << 27
_KEEP = 1 << 14  # exact tables up to this size are kept for the next question


@dataclass(slots=True, eq=False)
class Vault:
    """The rows of one table as public codes, and the allowance that pays for each look.

    Attributes:
        sizes: how many public values each column has.
        limit: the budget to use, in the unit that mechanisms charge.
        allowance: who pays and refuses.
    """

    sizes: Mapping[str, int]
    limit: Budget
    allowance: Allowance
    _codes: dict[str, NDArray[np.int32]] = field(repr=False)
    _sampler: Sampler = field(default_factory=Sampler, repr=False)
    _kept: dict[tuple[str, ...], NDArray[np.int64]] = field(default_factory=dict, repr=False)

    def count(self, columns: Sequence[str], cost: Budget) -> Measured:
        """A noisy table of counts over ``columns``."""
        what = " x ".join(columns) or "number of rows"
        mechanism = noise(cost, self.allowance.rows_per_person)
        variance = Fraction(mechanism.variance).limit_denominator(10**6)
        self.allowance.charge(Entry(what, type(mechanism).__name__, mechanism.cost, variance))
        noisy = mechanism.apply(self._exact(columns), self._sampler)
        return Measured(tuple(columns), noisy, mechanism.variance)

    def grouped(self, maps: Mapping[str, NDArray[np.int64]]) -> Vault:
        """The same rows after each column's codes went through a public map."""
        sizes = {name: int(new.max()) + 1 for name, new in maps.items()}
        codes = {n: new.astype(np.int32)[self._codes[n]] for n, new in maps.items()}
        return Vault(sizes, self.limit, self.allowance, codes, self._sampler)

    def within(self, limit: Budget) -> Vault:
        """The same rows for a part of the budget; the allowance is still the one that refuses."""
        return replace(self, limit=limit)

    def heavy(
        self, columns: Sequence[str], cost: Budget
    ) -> tuple[NDArray[np.int64], NDArray[np.int64], float]:
        """The cells of a table too large to list whose noisy count is large, and the total.

        Empty cells are noised too, by ``halfmask.dp.sparse``; Laplace noise serves rho as well.
        """
        total = self.count((), cost / 20)
        rest = as_pure(cost * Fraction(19, 20))
        mechanism = DiscreteLaplace(rest.epsilon, self.allowance.rows_per_person)
        size = prod(self.sizes[name] for name in columns)
        if size > 1 << 62:
            raise ParameterError("cells", size, "at most 2**62; use method='marginals'")
        # The number of empty cells is the rows' secret: the threshold knows only the public size.
        least = sparse.threshold(mechanism.scale, size)
        variance = Fraction(mechanism.variance).limit_denominator(10**6)
        what = f"{' x '.join(columns)} (noisy counts from {least})"
        self.allowance.charge(Entry(what, "DiscreteLaplace", mechanism.cost, variance))
        cells, counts = np.unique(self._cells(columns), return_counts=True)
        noisy = mechanism.apply(counts.astype(np.int64), self._sampler)
        kept = noisy >= least
        extra = sparse.binomial(self._sampler, size - len(cells), mechanism.scale, least)
        ghosts = sparse.fresh_cells(self._sampler, cells, size, extra)
        tails = least + self._sampler.geometric(1 / mechanism.scale, extra)
        found = np.concatenate([cells[kept], ghosts])
        order = np.argsort(found)
        sums = np.concatenate([noisy[kept], tails])
        return found[order], sums[order], float(total.counts)

    def worst(self, guesses: Sequence[Guess], cost: Budget) -> int:
        """Which guess is (about) farthest from the rows, by the sum of absolute differences."""
        mechanism = choice(cost, self.allowance.rows_per_person)
        self._charge_choice(mechanism, cost, f"worst of {len(guesses)} guessed tables")
        scores = [
            int(np.abs(self._exact(guess.columns) - guess.counts).sum()) - guess.penalty
            for guess in guesses
        ]
        return mechanism.choose(np.array(scores, dtype=np.int64), self._sampler)

    def dependent(self, pairs: Sequence[tuple[tuple[str, ...], str]], cost: Budget) -> int:
        """Which (parents, child) is (about) farthest from independence.

        The score is the sum of |counts - rows * columns / total| in halves, rounded down; one row
        changes it by at most 2 (see the definition page), and rounding adds 1.
        """
        mechanism = choice(cost, 3 * self.allowance.rows_per_person)
        self._charge_choice(mechanism, cost, f"most dependent of {len(pairs)} families")
        scores = []
        for parents, child in pairs:
            flat = self._exact((*parents, child)).reshape(-1, self.sizes[child])
            total = max(int(flat.sum()), 1)
            # In whole numbers: |t c - r k| summed, over 2 t.
            apart = np.abs(total * flat - flat.sum(1, keepdims=True) * flat.sum(0, keepdims=True))
            scores.append(int(apart.sum() // (2 * total)))
        return mechanism.choose(np.array(scores, dtype=np.int64), self._sampler)

    def _charge_choice(self, mechanism: Exponential, cost: Budget, what: str) -> None:
        paid = mechanism.concentrated if isinstance(cost, Concentrated) else mechanism.cost
        self.allowance.charge(Entry(what, "Exponential", paid))

    def _exact(self, columns: Sequence[str]) -> NDArray[np.int64]:
        """The counts as they are; never leaves this class without noise."""
        key = tuple(columns)
        if key in self._kept:
            return self._kept[key]
        shape = tuple(self.sizes[name] for name in columns)
        if prod(shape) > MOST_CELLS:
            raise ParameterError("cells", prod(shape), f"at most {MOST_CELLS:,} in one table")
        found = np.bincount(self._cells(columns), minlength=prod(shape))
        found = found.reshape(shape).astype(np.int64)
        if found.size <= _KEEP:
            self._kept[key] = found
        return found

    def _cells(self, columns: Sequence[str]) -> NDArray[np.int64]:
        """Per row, the number of its cell."""
        cell = np.zeros(len(next(iter(self._codes.values()))), np.int64)
        for name in columns:
            cell *= self.sizes[name]
            cell += self._codes[name]
        return cell


def vault(
    table: Table,
    domains: Mapping[str, Domain],
    allowance: Allowance,
    *,
    sampler: Sampler | None = None,
) -> Vault:
    """Lock the rows of ``table`` behind noisy views; extra rows of one person are left out."""
    drawn = sampler or Sampler()
    allowance.secure = allowance.secure and drawn.secure
    kept = bounded_rows(table, allowance.rows_per_person, drawn)
    codes = {name: encoded(table, name, domain) for name, domain in domains.items()}
    if kept is not None:
        codes = {name: code[kept] for name, code in codes.items()}
    sizes = {name: len(domain) for name, domain in domains.items()}
    return Vault(sizes, allowance.limit, allowance, codes, drawn)


def bounded_rows(table: Table, most: int, sampler: Sampler) -> NDArray[np.int64] | None:
    """At most ``most`` rows of each person, drawn at random; None where no person repeats."""
    if table.schema.person is None:
        return None
    person = table.encode(table.schema.person)
    missing = bool(person.values.null_count)
    if len(person.values) == len(person.codes) and not missing:
        return None
    order = sampler.permutation(len(person.codes))
    order = order[np.argsort(person.codes[order], kind="stable")]
    codes = person.codes[order]
    first = np.flatnonzero(np.r_[True, codes[1:] != codes[:-1]])
    place = np.arange(len(codes)) - np.repeat(first, np.diff(np.r_[first, len(codes)]))
    return np.sort(order[place < most])


def noise(cost: Budget, sensitivity: int) -> DiscreteLaplace | DiscreteGaussian:
    """The mechanism that spends ``cost`` on counts."""
    if isinstance(cost, Pure):
        return DiscreteLaplace(cost.epsilon, sensitivity)
    if isinstance(cost, Concentrated):
        return DiscreteGaussian(cost.rho, sensitivity)
    raise InternalError("Counts are measured in pure epsilon or in rho.")


def as_pure(cost: Budget) -> Pure:
    """Pure epsilon that costs at most ``cost``: rho pays for epsilon = sqrt(2 rho)."""
    if isinstance(cost, Concentrated):
        step = 1 << 30
        return Pure(Fraction(isqrt(int(2 * cost.rho * step * step)), step))
    if isinstance(cost, Pure):
        return cost
    raise InternalError("Counts are measured in pure epsilon or in rho.")


def choice(cost: Budget, sensitivity: int) -> Exponential:
    """The mechanism that spends ``cost`` on a choice."""
    if isinstance(cost, Pure):
        return Exponential(cost.epsilon, sensitivity)
    if isinstance(cost, Concentrated):
        step = 1 << 30  # the square root rounded down: epsilon**2 / 8 <= rho
        return Exponential(Fraction(isqrt(int(8 * cost.rho * step * step)), step), sensitivity)
    raise InternalError("A choice costs pure epsilon or rho.")
