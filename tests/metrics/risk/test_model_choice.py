"""The rule by which one model is relied on."""

from __future__ import annotations

import pytest

from halfmask.metrics.estimate import Estimate, failed_estimate
from halfmask.metrics.risk.uniqueness import choose_estimate


def chosen(fraction, bounds=(0.0, 1.0), **values):
    estimates = {
        name: failed_estimate("why", 9) if value is None else Estimate(value, None, None, 9)
        for name, value in values.items()
    }
    return choose_estimate(estimates, fraction, bounds)


@pytest.mark.parametrize(
    ("fraction", "values", "model"),
    [
        (0.1, {"pitman": 0.3, "zayatz": 0.4, "snb": 0.2}, "pitman"),
        (0.11, {"pitman": 0.3, "zayatz": 0.4, "snb": 0.2}, "snb"),
        (0.11, {"pitman": 0.1, "zayatz": 0.2, "snb": 0.4}, "zayatz"),
        (0.05, {"pitman": None, "zayatz": 0.4, "snb": 0.3}, "snb"),
        (0.05, {"pitman": None, "zayatz": 0.4, "snb": None}, "zayatz"),
        (0.3, {"pitman": 0.1, "zayatz": 0.4, "snb": None}, "zayatz"),
        (0.3, {"pitman": 0.1, "zayatz": None, "snb": None}, "pitman"),
        (0.3, {"pitman": None, "zayatz": None, "snb": None}, None),
    ],
)
def test_the_rule(fraction, values, model):
    found = chosen(fraction, **values)
    assert found.model == model
    assert found.unique.value == (None if model is None else values[model])
    assert found.why


def test_a_figure_that_the_table_rules_out_is_passed_over():
    found = chosen(0.05, (0.5, 1.0), pitman=0.2, zayatz=0.9, snb=0.7)
    assert (found.model, found.span) == ("snb", (0.7, 0.9))
    found = chosen(0.05, (0.0, 0.5), pitman=0.6, zayatz=0.4, snb=0.5)
    assert (found.model, found.span) == ("snb", (0.4, 0.5))
    nothing = chosen(0.05, (0.3, 0.4), pitman=0.2, zayatz=0.5, snb=None)
    assert (nothing.model, nothing.unique.value, nothing.agree) == (None, None, False)


def test_models_that_differ_widely_are_not_trusted():
    found = chosen(0.05, pitman=0.05, zayatz=0.5, snb=0.3)
    assert not found.agree
    assert not found.unique.trusted
    assert found.unique.reason == "The models say anything between 5.0% and 50.0%."


def test_models_within_a_factor_of_two_agree():
    assert chosen(0.05, pitman=0.25, zayatz=0.5, snb=0.3).unique.trusted
    assert chosen(0.05, pitman=0.001, zayatz=0.02, snb=0.01).unique.trusted


def test_one_model_alone_agrees_with_nobody_unless_the_bounds_are_near():
    assert not chosen(0.05, pitman=None, zayatz=0.9, snb=None).unique.trusted
    found = chosen(0.05, (0.85, 1.0), pitman=None, zayatz=0.9, snb=None).unique
    assert found.trusted
    assert (found.low, found.high) == (0.85, 1.0)
    for bounds, sure in (((0.8, 1.0), True), ((0.79, 1.0), False)):  # a quarter more
        assert chosen(0.05, bounds, pitman=None, zayatz=0.9, snb=None).unique.trusted == sure


def test_below_one_percent_nothing_is_trusted():
    assert not chosen(0.009, pitman=0.3, zayatz=0.3, snb=0.3).unique.trusted
