from __future__ import annotations

from math import exp, log

import pytest

from halfmask.dp.budget import Approximate, Concentrated, Pure
from halfmask.dp.figures import attacker, column_bounds
from halfmask.errors import ParameterError


def test_theorem_22() -> None:
    # tabular-models, example 10
    assert attacker(str(log(3)), 2) == pytest.approx(0.75, abs=1e-9)
    assert attacker(10, 10**6) == pytest.approx(0.0216, abs=5e-5)


def test_bounds_are_rounded_up_and_never_above_one() -> None:
    assert attacker(0, 4) >= 0.25
    assert attacker(5000, 2) == 1.0
    assert attacker(1, 2, delta="0.9") == 1.0


def test_membership_counts_once_and_a_changed_value_twice() -> None:
    member, column = column_bounds(Pure(1), {"sex": 2, "constant": 1})
    assert member.after == pytest.approx(exp(1) / (exp(1) + 1))
    assert column.after == pytest.approx(exp(2) / (exp(2) + 1))
    assert (column.column, column.before) == ("sex", 0.5)


def test_delta_is_added() -> None:
    plain = column_bounds(Pure(1), {"x": 5})
    with_delta = column_bounds(Approximate(1, "0.01"), {"x": 5})
    assert with_delta[0].after == pytest.approx(plain[0].after + 0.01)
    assert with_delta[1].after == pytest.approx(plain[1].after + 0.01 * (1 + exp(1)))


def test_zcdp_is_read_at_a_small_delta() -> None:
    assert column_bounds(Concentrated("0.01"), {"x": 5})[0].after > 0.5


def test_one_value_cannot_be_guessed() -> None:
    with pytest.raises(ParameterError):
        attacker(1, 1)
