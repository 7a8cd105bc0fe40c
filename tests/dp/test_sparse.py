from __future__ import annotations

from fractions import Fraction
from math import exp

import numpy as np
import pyarrow as pa
import pytest
from noise import repeatable

from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import Concentrated, Pure
from halfmask.dp.domain import public_domains
from halfmask.dp.mechanisms import binomial, chance_bits, fresh_cells, threshold
from halfmask.dp.views import guarded_rows
from halfmask.errors import ParameterError
from halfmask.table.schema import Schema
from halfmask.table.table import Table


def test_the_digits_of_the_chance() -> None:
    # a / (1 + a) with a = exp(-1): 0.26894142...
    bits = chance_bits(Fraction(1), 1, 60)
    value = sum(bit / 2 ** (i + 1) for i, bit in enumerate(bits))
    assert value == pytest.approx(exp(-1) / (1 + exp(-1)), abs=1e-15)
    assert chance_bits(Fraction(1), 1, 200)[:60] == bits


def test_as_many_empty_cells_appear_as_with_noise_on_each() -> None:
    scale, least, cells = Fraction(2), 5, 2000
    chance = exp(-least / 2) / (1 + exp(-1 / 2))
    sampler = repeatable(1)
    sparse = np.array([binomial(sampler, cells, scale, least) for _ in range(600)])
    drawn = sampler.discrete_laplace(scale, 600 * cells).reshape(600, cells)
    dense = (drawn >= least).sum(axis=1)
    for found in (sparse, dense):
        assert found.mean() == pytest.approx(cells * chance, rel=0.02)
        assert found.var() == pytest.approx(cells * chance * (1 - chance), rel=0.2)
    assert sparse.mean() != pytest.approx(cells * exp(-least / 2.6) / (1 + exp(-1 / 2.6)), rel=0.1)


def test_fresh_cells_are_new_different_and_even() -> None:
    taken = np.array([0, 3, 4])
    found = np.array([sorted(fresh_cells(repeatable(i), taken, 10, 3)) for i in range(2000)])
    assert not np.isin(found, taken).any()
    assert (np.diff(found) > 0).all()
    share = np.bincount(found.ravel(), minlength=10)[[1, 2, 5, 6, 7, 8, 9]] / 6000
    assert share == pytest.approx(np.full(7, 1 / 7), abs=0.02)


def test_threshold_follows_public_numbers_only() -> None:
    assert threshold(Fraction(1), 10**9) > threshold(Fraction(1), 10**6) > 1


def test_too_many_empty_cells_are_refused() -> None:
    with pytest.raises(ParameterError, match="marginals"):
        binomial(repeatable(1), 1 << 40, Fraction(1), 3)


@pytest.mark.parametrize("promise", [Pure(2), Concentrated(2)])
def test_a_table_of_hundreds_of_millions_of_cells_is_never_listed(promise) -> None:
    columns = {f"c{i}": np.repeat([3, 7], 400).tolist() for i in range(9)}
    table = Table(pa.table(columns), Schema())
    domains = public_domains(list(columns), {name: range(9) for name in columns})
    allowance = Accountant(promise).allow(promise, "test")
    locked = guarded_rows(table, domains, allowance, sampler=repeatable(5))
    cells, counts, total = locked.heavy(tuple(columns), locked.limit)
    allowance.receipt().verify()
    assert len(cells) < 2000  # out of 387 million
    largest = cells[np.argsort(counts)[-2:]]
    truth = {sum(v * 9 ** (8 - i) for i in range(9)) for v in (3, 7)}
    assert set(largest.tolist()) == truth
    assert total == pytest.approx(800, abs=120)
