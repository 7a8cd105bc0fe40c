"""Noise on the empty cells of a table too large to list, with exactly the same distribution.

Every empty cell gets noise of its own; those that stay below a threshold are dropped afterwards.
The same comes out by first drawing *how many* empty cells reach the threshold (a binomial), then
*which* (uniform), then their counts (the tail of the noise has no memory).
"""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR, Context, Decimal
from fractions import Fraction
from math import ceil, log
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.dp.sampling import Sampler

MOST_EMPTY = 1 << 32
PHANTOMS = 1000  # how many empty cells may appear, as expected


def threshold(scale: Fraction, empty: int) -> int:
    """The smallest count to list, by a public rule: some 1000 of the empty cells reach it."""
    return max(1, ceil(float(scale) * log(max(2.0, empty / PHANTOMS))))


def binomial(sampler: Sampler, trials: int, scale: Fraction, least: int) -> int:
    """How many of ``trials`` cells have discrete Laplace noise of at least ``least``, exactly.

    Compares one uniform number per cell with the chance, bit by bit, for all cells at once: at each
    bit about half of the undecided cells are decided.
    """
    if not 0 <= trials <= MOST_EMPTY:
        raise ParameterError("cells", trials, f"at most {MOST_EMPTY:,}; use method='marginals'")
    undecided, hits, done = trials, 0, 0
    while undecided:
        for bit in chance_bits(scale, least, done + 128)[done:]:
            ones = _ones(sampler, undecided)
            # Below the chance: a 0 where the chance has a 1; above it: a 1 where it has a 0.
            hits += undecided - ones if bit else 0
            undecided = ones if bit else undecided - ones
            done += 1
            if not undecided:
                break
    return hits


def chance_bits(scale: Fraction, least: int, count: int) -> list[int]:
    """The first binary digits of P(noise >= least) = a**least / (1 + a), a = exp(-1 / scale)."""
    digits = count
    while True:
        low, high = (
            _chance(scale, least, digits, ROUND_FLOOR),
            _chance(scale, least, digits, ROUND_CEILING),
        )
        below, above = int(low * (1 << count)), int(high * (1 << count))
        if below == above:
            return [int(bit) for bit in f"{below:0{count}b}"]
        digits *= 2


def _chance(scale: Fraction, least: int, digits: int, rounding: str) -> Fraction:
    """The chance, rounded down or up: ``Decimal.exp`` is right in its last digit."""
    context = Context(prec=digits, rounding=rounding)
    slack = Fraction(1, 10 ** (digits - 2))
    rate = 1 / scale

    def power(times: int) -> Fraction:
        exponent = context.divide(Decimal(-rate.numerator * times), Decimal(rate.denominator))
        return Fraction(context.exp(exponent))

    sign = 1 if rounding == ROUND_CEILING else -1
    found = power(least) / (1 + power(1)) * (1 + sign * 8 * slack * (1 + least * rate))
    return max(Fraction(0), found)


def _ones(sampler: Sampler, coins: int) -> int:
    """How many of ``coins`` fair coins show heads."""
    heads, chunk = 0, 1 << 26
    for start in range(0, coins, chunk):
        size = min(chunk, coins - start)
        raw = np.frombuffer(sampler.source(-(-size // 8)), dtype=np.uint8).copy()
        if size % 8:
            raw[-1] &= (1 << size % 8) - 1
        heads += int(_POPULATION[raw].sum(dtype=np.int64))
    return heads


_POPULATION = np.array([bin(byte).count("1") for byte in range(256)], dtype=np.uint8)


def fresh_cells(
    sampler: Sampler, taken: NDArray[np.int64], total: int, count: int
) -> NDArray[np.int64]:
    """``count`` different cells out of ``total``, none of the sorted ``taken`` ones."""
    found = np.empty(0, np.int64)
    while len(found) < count:
        drawn = sampler.below(total, 2 * (count - len(found)) + 16)
        drawn = drawn[~np.isin(drawn, taken)]
        both = np.concatenate([found, drawn])
        _, first = np.unique(both, return_index=True)
        found = both[np.sort(first)]  # in the order drawn, so that cutting is fair
    return found[:count]
