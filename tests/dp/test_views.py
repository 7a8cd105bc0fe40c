"""Noisy views are known before anything is spent."""

from __future__ import annotations

import pytest

from halfmask.dp.budget import Approximate, Pure
from halfmask.dp.views import Question, Scale, views_of

SCALE = Scale(0, 10)
QUESTIONS = (
    Question("n", "count"),
    Question("v", "variance", "x", SCALE),
    Question("q", "quantile", "x", SCALE),
)


@pytest.mark.parametrize(
    ("limit", "groups"), [(Pure(1), "public"), (Approximate(1, "1e-6"), "threshold")]
)
def test_every_view_is_scaled_by_the_rows_of_a_person(limit, groups) -> None:
    one, three = (views_of(QUESTIONS, ["x"], limit, most, groups=groups) for most in (1, 3))
    assert [view.vector for view in one] == ["count", "count x", "sum x", "squares x", "tree x"]
    assert [view.mechanism.sensitivity for view in one] == [1, 1, 10**6, 10**6, 1]
    assert [view.mechanism.sensitivity for view in three] == [3, 3, 3 * 10**6, 3 * 10**6, 3]
    assert sum(view.mechanism.cost.epsilon for view in one) == 1
