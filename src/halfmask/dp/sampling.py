"""The only source of noise: exact integer samplers on the system's secure source.

Definition: no floating-point number takes part; every draw has exactly the stated distribution.
Source: Canonne, Kamath, Steinke, "The discrete Gaussian for differential privacy", 2020.

All draws of one call run in step as arrays, so that millions of draws take about a second. Rational
parameters are given as fractions; ``gaussian_grid`` and ``laplace_grid`` round a wanted scale *up*
to one whose arithmetic fits a machine word.
"""

from __future__ import annotations

import secrets
from dataclasses import dataclass
from fractions import Fraction
from math import isqrt
from typing import TYPE_CHECKING

import numpy as np

from halfmask.errors import ParameterError

if TYPE_CHECKING:
    from collections.abc import Callable

    from numpy.typing import NDArray

    Ints = NDArray[np.int64]
    Bits = NDArray[np.bool_]

_WORD = 1 << 64
MOST_SCALE = 1 << 50  # of Laplace noise that is drawn in words of 64 bits
_MOST = 1 << 57  # denominators below this can be multiplied by the rounds of a Bernoulli draw


@dataclass(frozen=True, slots=True)
class Sampler:
    """Draws from exact distributions; ``secure`` says that the system's source feeds it.

    Example:
        >>> Sampler().discrete_laplace(Fraction(2), 3).shape
        (3,)
    """

    source: Callable[[int], bytes] = secrets.token_bytes

    @property
    def secure(self) -> bool:
        """Whether the draws come from the system's secure source.

        Tests feed another one, and cells a stream under a secret key, to draw the same twice.
        """
        return self.source is secrets.token_bytes

    def words(self, size: int) -> NDArray[np.uint64]:
        """``size`` uniform 64-bit words."""
        return np.frombuffer(self.source(8 * size), dtype=np.uint64)

    def below(self, limit: int, size: int) -> Ints:
        """Uniform integers from 0 to ``limit`` - 1."""
        if not 0 < limit <= 1 << 62:
            raise ParameterError("limit", limit, "1 to 2**62")
        # A remainder of every word would favor small numbers: words of the last, partial round are
        # drawn again.
        fair = _WORD - _WORD % limit
        out = self.words(size)
        if fair < _WORD:
            out = out.copy()
            while len(unfair := np.flatnonzero(out >= np.uint64(fair))):
                out[unfair] = self.words(len(unfair))
        return (out % np.uint64(limit)).astype(np.int64)

    def coins(self, size: int) -> Bits:
        """Fair coins."""
        raw = np.frombuffer(self.source(-(-size // 8)), dtype=np.uint8)
        return np.unpackbits(raw)[:size].astype(np.bool_)

    def bernoulli(self, chance: Fraction, size: int) -> Bits:
        """True with a rational chance."""
        if not 0 <= chance <= 1:
            raise ParameterError("chance", str(chance), "0 to 1")
        limit = chance.denominator
        if limit <= 1 << 62:
            return self.below(limit, size) < chance.numerator
        return np.array([self._long_bernoulli(chance) for _ in range(size)], dtype=np.bool_)

    def bernoulli_exp(self, numerators: Ints, denominator: int) -> Bits:
        """True with chance exp(-numerator / denominator), for each non-negative numerator."""
        if not 0 < denominator < _MOST:
            raise ParameterError("denominator", denominator, "1 to 2**57")
        whole, part = np.divmod(numerators, denominator)
        alive = self._exp_of_part(part, denominator)
        left = np.flatnonzero(alive & (whole > 0))
        done = 0
        # exp(-whole) is as many successes in a row at exp(-1); few survive more than some.
        while len(left):
            lucky = self._exp_of_part(np.ones(len(left), np.int64), 1)
            alive[left[~lucky]] = False
            done += 1
            left = left[lucky]
            left = left[whole[left] > done]
        return alive

    def _exp_of_part(self, part: Ints, denominator: int) -> Bits:
        """True with chance exp(-part / denominator) where 0 <= part <= denominator."""
        # Coins of chance part / (denominator * k), k = 1, 2, ..., until one fails: k is odd with
        # chance 1 - g + g**2 / 2! - ... = exp(-g), g = part / denominator.
        odd = np.zeros(len(part), np.bool_)
        left = np.arange(len(part))
        k = 1
        while len(left):
            go_on = self.below(denominator * k, len(left)) < part[left]
            odd[left[~go_on]] = k % 2 == 1
            left = left[go_on]
            k += 1
        return odd

    def geometric(self, rate: Fraction, size: int) -> Ints:
        """Non-negative integers with chances proportional to exp(-rate * x)."""
        scale, step = rate.denominator, rate.numerator
        if rate <= 0 or scale >= MOST_SCALE:
            raise ParameterError("rate", str(rate), "a positive fraction with a small denominator")
        out = np.empty(size, np.int64)
        want = np.arange(size)
        while len(want):
            # x = low + scale * high, and exp(-x / scale) = exp(-low / scale) * exp(-high).
            low = self.below(scale, len(want))
            kept = self._exp_of_part(low, scale)
            high = self._unit_geometric(int(kept.sum()))
            out[want[kept]] = (low[kept] + scale * high) // step
            want = want[~kept]
        return out

    def _unit_geometric(self, size: int) -> Ints:
        """How many successes at exp(-1) come before the first failure."""
        out = np.zeros(size, np.int64)
        left = np.arange(size)
        while len(left):
            left = left[self._exp_of_part(np.ones(len(left), np.int64), 1)]
            out[left] += 1
        return out

    def discrete_laplace(self, scale: Fraction, size: int) -> Ints:
        """Integers with chances proportional to exp(-abs(x) / scale)."""
        if scale <= 0:
            raise ParameterError("scale", str(scale), "above 0")
        out = np.empty(size, np.int64)
        want = np.arange(size)
        while len(want):
            magnitude = self.geometric(1 / scale, len(want))
            negative = self.coins(len(want))
            kept = ~(negative & (magnitude == 0))  # zero would count twice
            out[want[kept]] = np.where(negative, -magnitude, magnitude)[kept]
            want = want[~kept]
        return out

    def discrete_gaussian(self, variance: Fraction, size: int) -> Ints:
        """Integers with chances proportional to exp(-x**2 / (2 * variance))."""
        if variance <= 0:
            raise ParameterError("variance", str(variance), "above 0")
        a, b = variance.numerator, variance.denominator
        t = isqrt(a // b) + 1
        out = np.empty(size, np.int64)
        want = np.arange(size)
        while len(want):
            # Laplace noise as wide as the deviation covers the Gaussian; the rest is rejected.
            guess = self.discrete_laplace(Fraction(t), len(want))
            kept = self._gaussian_kept(np.abs(guess), a, b, t)
            out[want[kept]] = guess[kept]
            want = want[~kept]
        return out

    def _gaussian_kept(self, size: Ints, a: int, b: int, t: int) -> Bits:
        """True with chance exp(-(size - variance / t)**2 / (2 * variance)), variance = a / b."""
        if a % (b * t) == 0:  # variance / t is an integer: the small form of the same fraction
            shift, unit, denominator = a // (b * t), 1, 2 * a // b
        else:
            shift, unit, denominator = a, b * t, 2 * a * b * t * t
        fits = size <= (isqrt(1 << 62) - shift) // unit
        if denominator >= _MOST or not fits.any():
            fits = np.zeros(len(size), np.bool_)
        kept = np.zeros(len(size), np.bool_)
        if fits.any():
            kept[fits] = self.bernoulli_exp((size[fits] * unit - shift) ** 2, denominator)
        for i in np.flatnonzero(~fits):  # beyond a word: the same draw in Python's own integers
            gamma = Fraction((int(size[i]) * unit - shift) ** 2, denominator)
            kept[i] = self._exp_of_fraction(gamma)
        return kept

    def _exp_of_fraction(self, gamma: Fraction) -> bool:
        """True with chance exp(-gamma), in integers of any length."""
        if gamma > 1:
            one = np.ones(1, np.int64)
            for _ in range(int(gamma)):
                if not self._exp_of_part(one, 1)[0]:
                    return False
            gamma -= int(gamma)
        k = 1
        while self._long_bernoulli(gamma / k):
            k += 1
        return k % 2 == 1

    def _long_bernoulli(self, chance: Fraction) -> bool:
        size = -(-(chance.denominator.bit_length() + 64) // 8)
        fair = (1 << 8 * size) - (1 << 8 * size) % chance.denominator
        while (draw := int.from_bytes(self.source(size), "big")) >= fair:
            pass
        return draw % chance.denominator < chance.numerator

    def choose(self, scores: Ints, rate: Fraction) -> int:
        """One index, with chances proportional to exp(rate * score); scores are integers.

        Uniform proposals are kept with chance exp(-rate * (best - score)), which is exact.
        """
        gaps = scores.max() - scores
        if int(gaps.max()) * rate.numerator >= 1 << 62:
            raise ParameterError("rate", str(rate), "a fraction with a smaller numerator")
        batch = max(64, min(4 * len(scores), 1 << 16))
        while True:
            picks = self.below(len(scores), batch)
            kept = self.bernoulli_exp(gaps[picks] * rate.numerator, rate.denominator)
            if kept.any():
                return int(picks[np.argmax(kept)])

    def permutation(self, size: int) -> Ints:
        """A uniform order of ``size`` things, short of a tie among 64-bit words."""
        return np.argsort(self.words(size), kind="stable")


def laplace_grid(scale: Fraction) -> Fraction:
    """The smallest scale from ``scale`` upwards that the sampler can use exactly."""
    if scale.denominator <= 1 << 20 and scale.numerator < MOST_SCALE:
        return scale
    step = 1 << 20 if scale < 1 << 20 else 1
    return Fraction(-(-scale.numerator * step // scale.denominator), step)


def gaussian_grid(variance: Fraction) -> Fraction:
    """The smallest variance from ``variance`` upwards whose arithmetic fits a word."""
    if variance < 1 << 15:
        step = 1 << 10
        return Fraction(-(-variance.numerator * step // variance.denominator), step)
    whole = -(-variance.numerator // variance.denominator)
    if whole < 1 << 25:
        return Fraction(whole)
    t = isqrt(whole) + 1
    found = t * -(-whole // t)
    while (isqrt(found) + 1) != t:  # rounding up may move the root, and with it the multiple
        t = isqrt(found) + 1
        found = t * -(-found // t)
    return Fraction(found)
