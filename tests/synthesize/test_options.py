"""What cannot be done is refused before anything is spent, in one clear sentence."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import Approximate, Pure
from halfmask.errors import ParameterError
from halfmask.table.schema import Schema
from halfmask.table.table import Table

WRONG = [
    ("auto", {"rows": 2.5}, "rows = 2.5 "),
    ("auto", {"rows": "5"}, "rows = '5' "),
    ("auto", {"rows": 0}, "rows = 0 "),
    ("auto", {"rows_per_person": "2"}, "rows_per_person = '2' "),
    ("auto", {"rows_per_person": True}, "rows_per_person = True "),
    ("marginals", {"cells": "many"}, "cells = 'many' "),
    ("marginals", {"cells": -3}, "cells = -3 "),
    ("marginals", {"cells": None}, "cells is missing"),
    ("marginals", {"rounds": "x"}, "rounds = 'x' "),
    ("marginals", {"rounds": 2.5}, "rounds = 2.5 "),
    ("marginals", {"rounds": 0}, "rounds = 0 "),
    ("marginals", {"rounds": -1}, "rounds = -1 "),
    ("adaptive", {"degree": 3.0}, "degree = 3.0 "),
    ("adaptive", {"degree": 4}, "degree = 4 "),
    ("adaptive", {"cells": 0}, "cells = 0 "),
    ("privbayes", {"theta": "4"}, "theta = '4' "),
    ("privbayes", {"theta": Decimal(4)}, "theta = '4' "),
    ("privbayes", {"structure": 0.99}, "structure = 0.99 "),
    ("privbayes", {"structure": 1e-30}, "structure = 1e-30 "),
    ("dp-cocluster", {"first": 1 - 1e-16}, "first = 0.9999999999999999 "),
    ("adaptive", {"rounds": 10**15}, "rounds = 1000000000000000 "),
    ("marginals", {"rows": 10**15}, "rows = 1000000000000000 "),
    ("auto", {"rows_per_person": 10**18}, "epsilon = 1.0 is not possible: give more: noise alone"),
    ("auto", {"bounds": 1e-30}, "bounds = 1e-30 "),
    ("privbayes", {"preset": ["tuned"]}, r"preset = \['tuned'\] "),
    ("dp-cocluster", {"rows_per_block": 0}, "rows_per_block = 0 "),
    ("dp-cocluster", {"first": "half"}, "first = 'half' "),
    ("dp-cocluster", {"seconds": float("inf")}, "seconds = inf "),
    ("dpcocgen", {"blocks": 1.5}, "blocks = 1.5 "),
    ("histogram", {"rounds": 3}, "option = 'rounds' .* no options of its own with histogram"),
    ("marginals", {"degree": 3}, "option = 'degree' .* only cells, rounds with marginals"),
    ("auto", {"order": "a"}, "order = 'a' .* it beside together='person'"),
    ("auto", {"constant": ["a"]}, "constant = .* it beside together='person'"),
]


@pytest.mark.parametrize(("method", "wrong", "said"), WRONG)
def test_a_wrong_option_costs_nothing(method, wrong, said) -> None:
    random = np.random.default_rng(0)
    table = Table(pa.table({n: random.integers(0, 4, 60) for n in "abc"}), Schema())
    accountant = Accountant(Pure(1))
    with pytest.raises(ParameterError, match=f"^{said}"):
        hm.synthesize(
            table, method, epsilon=1, domains=dict.fromkeys("abc", range(4)),
            accountant=accountant, **wrong,
        )  # fmt: skip
    assert accountant.remaining == Pure(1)


@pytest.mark.parametrize("method", ["marginals", "histogram", "dp-cocluster", "dpcocgen"])
@pytest.mark.parametrize(("epsilon", "delta"), [(1e-30, 0), (1e-5, 0), (1e-30, 1e-9), (1e-6, 1e-9)])
def test_an_epsilon_that_draws_rows_without_bound_costs_nothing(method, epsilon, delta) -> None:
    """With rows stated, too: dp-cocluster draws rows of its own before."""
    table = Table(pa.table({n: [0, 1, 2] * 20 for n in "abc"}), Schema())
    for rows in (None, 10):
        accountant = Accountant(Approximate(1, Fraction(1, 10**6)))
        with pytest.raises(
            ParameterError, match=f"epsilon = {epsilon} .* such as 0.0001: noise alone"
        ):
            hm.synthesize(
                table, method, epsilon=epsilon, delta=delta, rows=rows, accountant=accountant,
                domains=dict.fromkeys("abc", range(4)),
            )  # fmt: skip
        assert accountant.remaining == Approximate(1, Fraction(1, 10**6))


def test_the_least_epsilon_draws_rows_within_bounds() -> None:
    table = Table(pa.table({n: [0, 1, 2] * 20 for n in "abc"}), Schema())
    made = hm.synthesize(table, "marginals", epsilon=2e-5, domains=dict.fromkeys("abc", range(4)))
    assert 1 <= len(made.to_arrow()) < 10_000_000


def test_a_histogram_of_cells_without_a_number_costs_nothing() -> None:
    names = [f"c{i}" for i in range(14)]  # 40 ** 14 > 2 ** 62
    table = Table(pa.table({name: [1, 2, 3] for name in names}), Schema())
    accountant = Accountant(Pure(1))
    with pytest.raises(ParameterError, match=r"give marginals: all columns together have over"):
        hm.synthesize(
            table, "histogram", epsilon=1, domains=dict.fromkeys(names, range(40)),
            accountant=accountant,
        )  # fmt: skip
    assert accountant.remaining == Pure(1)


def test_auto_takes_a_method_that_begins_with_a_prior_and_says_so_once() -> None:
    table = Table(pa.table({"a": [0, 1] * 30, "b": [1, 0] * 30}), Schema())
    public = Table(pa.table({"a": [0, 1, 1] * 5, "b": [0, 1, 1] * 5}), Schema())
    made = hm.synthesize(
        table, epsilon=1, domains={"a": range(2), "b": range(2)}, prior=public, rows=10
    )
    assert made.method == "marginals"
    assert sum("prior table" in note for note in made.notes) == 1
