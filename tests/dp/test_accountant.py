from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction

import pytest

from halfmask.dp import accountant
from halfmask.dp.accountant import Accountant, Allowance, Receipt, SpendingScope, ViewCost
from halfmask.dp.budget import Approximate, Concentrated, Pure
from halfmask.errors import BudgetExceededError, InternalError, ParameterError, PrivacyError


def test_a_fixed_budget_is_used_in_parts_or_as_the_sum_of_what_was_spent() -> None:
    # tabular-models, example 12
    keeper = Accountant(Pure(1))
    for _ in range(4):
        keeper.allow(Pure(1) / 4, "a quarter")
    assert keeper.remaining == Pure(0)
    other = Accountant(Pure(1))
    other.allow(Pure("0.3"), "first")
    other.allow(Pure("0.5"), "second")
    assert other.remaining == Pure("0.2")


def test_refusal_says_requested_remaining_and_missing() -> None:
    keeper = Accountant(Pure(1))
    keeper.allow(Pure("0.7"), "first")
    with pytest.raises(BudgetExceededError) as caught:
        keeper.allow(Pure("0.5"), "second")
    assert caught.value.requested == Pure("0.5")
    assert caught.value.remaining == Pure("0.3")
    assert caught.value.missing == Pure("0.2")
    assert caught.value.exit_code == 3
    assert keeper.remaining == Pure("0.3")


def test_one_tenth_too_much_in_the_last_digit_is_refused() -> None:
    keeper = Accountant(Pure(1))
    with pytest.raises(BudgetExceededError):
        keeper.allow(Pure(1) + Pure(Fraction(1, 10**40)), "a hair more")


def test_mechanisms_cannot_take_more_than_the_allowance() -> None:
    allowance = Accountant(Pure(1)).allow(Pure(1), "x")
    allowance.charge(ViewCost("a", "m", Pure("0.6")))
    with pytest.raises(BudgetExceededError):
        allowance.charge(ViewCost("b", "m", Pure("0.5")))
    assert allowance.remaining == Pure("0.4")
    allowance.receipt().verify()


def test_a_delta_is_charged_as_zcdp() -> None:
    allowance = Accountant(Approximate(1, "1e-6")).allow(Approximate(1, "1e-6"), "x")
    assert isinstance(allowance.limit, Concentrated)
    allowance.charge(ViewCost("a", "m", allowance.limit))
    allowance.receipt().verify()


def test_nobody_else_writes_receipts_or_allowances() -> None:
    with pytest.raises(PrivacyError):
        Allowance(Pure(1), Pure(1))
    with pytest.raises(PrivacyError):
        Receipt(Pure(1), Pure(1), (), 1, True, None, object())


def test_an_overspent_receipt_is_noticed() -> None:
    allowance = Allowance(Pure(1), Pure(1), issuer=accountant._ISSUER)
    allowance.entries.append(ViewCost("a", "m", Pure(2)))
    with pytest.raises(InternalError):
        allowance.receipt().verify()
    generous = Allowance(Pure(1), Pure(3), issuer=accountant._ISSUER)
    with pytest.raises(InternalError):
        generous.receipt().verify()


def test_rows_used_apart_from_noise_need_to_know_whose_they_are() -> None:
    with pytest.raises(InternalError):
        SpendingScope(rows_used=4)
    scope = SpendingScope(by_person=True, rows_used=4)
    allowance = Accountant(Pure(1)).allow(Pure(1), "x", rows_per_person=2, scope=scope)
    assert allowance.rows_per_person == 2
    assert allowance.receipt().rows_per_person == 4
    assert allowance.receipt().neighbors.startswith("tables that differ by all rows of one person")


def test_threads_share_one_budget() -> None:
    keeper = Accountant(Pure(1))

    def ask(_: int) -> bool:
        try:
            keeper.allow(Pure("0.1"), "x")
        except BudgetExceededError:
            return False
        return True

    with ThreadPoolExecutor(8) as pool:
        assert sum(pool.map(ask, range(40))) == 10


def test_nothing_costs_nothing_is_refused() -> None:
    with pytest.raises(ParameterError):
        Accountant(Pure(1)).allow(Pure(0), "x")
    with pytest.raises(ParameterError):
        Accountant(Pure(1)).allow(Pure(1), "x", rows_per_person=0)
