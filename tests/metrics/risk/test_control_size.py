"""A control of another size than the original tells the same as one of its size."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.stats import hypergeom

import halfmask as hm
from halfmask.metrics.risk.attack import targets
from halfmask.metrics.risk.singling_out import as_many, singling_out


def drawn(seed, rows):
    random = np.random.default_rng(seed)
    names = ("a", "b", "c")
    return hm.read({n: random.integers(0, 15, rows) for n in names}, dict.fromkeys(names, "quasi"))


def test_a_control_of_the_same_size_counts_as_it_is():
    found = as_many([1, 0, 5], [0, 1, 2], 100, 100)
    assert found.value == pytest.approx(1 / 3)


def test_a_larger_control_is_thinned_out():
    fitting = [0, 1, 2, 7, 300]
    expected = np.mean(hypergeom.pmf(1, 300, fitting, 100))
    assert as_many([0] * 5, fitting, 100, 300).value == pytest.approx(expected)


def test_a_smaller_control_by_hand():
    own, outside = [1, 1, 2, 6], [0, 1, 0, 1]
    each = [
        (o == 1) + 4 * ((m == 1) - hypergeom.pmf(1, 40, o, 10))
        for o, m in zip(own, outside, strict=True)
    ]
    most = (1 - 1 / 40) ** 39
    assert as_many(own, outside, 40, 10).value == pytest.approx(min(most, max(0, np.mean(each))))


@pytest.mark.parametrize("size", [400, 3000, 9000])
def test_rows_drawn_anew_single_nobody_out_whatever_the_size_of_the_control(size):
    # About one row for each combination: among 400 people far fewer combinations occur once.
    original, anew, control = drawn(1, 3000), drawn(2, 3000), drawn(3, size)
    found = singling_out(targets(original, anew, control, attacks=2000))
    assert found.control.low <= found.attack.high
    assert found.risk.low < 0.05
    assert found.outcome != "not met"


@pytest.mark.parametrize("size", [20, 400, 9000])
def test_a_copy_is_seen_whatever_the_size_of_the_control(size):
    original = drawn(1, 3000)
    found = singling_out(targets(original, original, drawn(3, size), attacks=500))
    assert found.outcome == "not met"
