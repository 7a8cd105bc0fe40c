from __future__ import annotations

import numpy as np
import pytest
from noise import repeatable

from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import Approximate, Pure
from halfmask.dp.figures import answer
from halfmask.dp.mechanisms import DiscreteLaplace
from halfmask.dp.views import ExactCounts, Question, Scale
from halfmask.errors import BudgetExceededError, ParameterError, SchemaError


def allowance(promise=None, **options):
    promise = promise or Pure(1)
    return Accountant(promise).allow(promise, "a question", **options)


def people(groups: int = 16, each: int = 500):
    """Groups of people with ages; the exact part as an engine would compute it."""
    random = np.random.default_rng(1)
    ages = random.integers(20, 80, (groups, each)).astype(float)
    scale = Scale.of("age", 0, 130)
    whole = scale.whole(ages)
    exact = ExactCounts(
        np.full(groups, each), {"age": whole.sum(1)}, {"age": scale.squares(whole).sum(1)}
    )
    return ages, scale, exact


def test_a_group_by_costs_epsilon_once() -> None:
    """Sixteen groups: one charge of the whole budget, and the noise of one group."""
    _, _, exact = people()
    paid = allowance()
    found = answer([Question("n", "count")], exact, paid)
    (entry,) = found.receipt.entries
    assert entry.cost == Pure(1)
    found.receipt.verify()
    with pytest.raises(BudgetExceededError):
        answer([Question("n", "count")], exact, _overspent(paid))


def _overspent(paid):
    from halfmask.dp.accountant import ViewCost

    class Greedy:
        secure, rows_per_person, left = True, 1, staticmethod(lambda _: Pure(1))
        charge = staticmethod(lambda entry: paid.charge(ViewCost("x", "m", entry.cost)))

    return Greedy()


def test_error_is_the_theoretical_one() -> None:
    _, _, exact = people()
    sampler = repeatable(1)
    runs = np.array(
        [
            answer([Question("n", "count")], exact, allowance(), sampler=sampler).figures[0].values
            for _ in range(400)
        ]
    )
    stated = DiscreteLaplace(Pure(1).epsilon).variance
    assert (runs - 500).var() == pytest.approx(stated, rel=0.06)


@pytest.mark.parametrize("kind", ["sum", "mean", "variance"])
def test_figures_are_near_and_intervals_cover(kind: str) -> None:
    ages, scale, exact = people(each=5000)
    truth = {"sum": ages.sum(1), "mean": ages.mean(1), "variance": ages.var(1)}[kind]
    sampler = repeatable(2)
    covered = []
    for _ in range(40):
        (figure,) = answer(
            [Question("x", kind, "age", scale)], exact, allowance(), sampler=sampler
        ).figures
        covered.append((figure.low <= truth) & (truth <= figure.high))
        assert (figure.low <= figure.values).all()
        assert (figure.values <= figure.high).all()
    # 640 intervals: a share of 95% has a standard error of 0.9%.
    assert 0.93 <= np.mean(covered) <= 0.975
    assert figure.values == pytest.approx(truth, rel=0.15)


def test_undeclared_groups_show_only_far_above_one_person() -> None:
    exact = ExactCounts(np.array([1000, 1, 0, 400]), {}, {})
    promise = Approximate(1, "1e-6")
    found = answer(
        [Question("n", "count")],
        exact,
        allowance(promise, as_promised=True),
        groups="threshold",
    )
    assert found.published.tolist() == [True, False, False, True]
    found.receipt.verify()
    with pytest.raises(ParameterError, match="delta"):
        answer([Question("n", "count")], exact, allowance(), groups="threshold")


def test_thresholded_groups_with_sums_stay_within_the_budget() -> None:
    _, scale, exact = people()
    questions = [Question("n", "count"), Question("v", "variance", "age", scale)]
    promise = Approximate(1, "1e-6")
    paid = allowance(promise, as_promised=True)
    found = answer(questions, exact, paid, groups="threshold")
    found.receipt.verify()
    assert paid.remaining.parts()[0] == 0


def test_several_rows_per_person_mean_more_noise() -> None:
    _, _, exact = people()
    found = answer([Question("n", "count")], exact, allowance(rows_per_person=5))
    assert float(found.receipt.entries[0].variance) == pytest.approx(
        DiscreteLaplace(Pure("1/5").epsilon).variance, rel=1e-4
    )


def test_missing_bounds_say_how_to_give_them() -> None:
    with pytest.raises(SchemaError, match="low and high"):
        Scale.of("salary", None, None)
    with pytest.raises(SchemaError, match="public bounds"):
        Question("x", "mean", "salary")


def test_values_beyond_the_bounds_count_as_the_bound() -> None:
    scale = Scale.of("age", 0, 100)
    assert scale.whole(np.array([-5.0, 0, 50, 100, 900, np.nan])).tolist() == [
        -1_000_000, -1_000_000, 0, 1_000_000, 1_000_000, 0,
    ]  # fmt: skip


@pytest.mark.parametrize("promise", [Pure(1), Approximate(1, "1e-6")])
def test_quantiles_per_group_with_intervals(promise) -> None:
    """Two groups, three quantiles: one tree is paid for, and it answers all."""
    scale = Scale.of("age", 0, 128)
    random = np.random.default_rng(3)
    ages = [random.integers(20, 80, 20_000), random.integers(50, 120, 20_000)]
    trees = np.array([np.histogram(a, scale.edges)[0] for a in ages])
    exact = ExactCounts(np.full(2, 20_000), {}, {}, histograms={"age": trees})
    questions = [Question(f"q{at}", "quantile", "age", scale, at) for at in (0.25, 0.5, 0.75)]
    paid = allowance(promise)
    found = answer(questions, exact, paid, sampler=repeatable(4))
    assert [entry.view for entry in found.receipt.entries] == ["tree age"]
    for figure, at in zip(found.figures, (0.25, 0.5, 0.75), strict=True):
        truth = np.array([np.quantile(a, at) for a in ages])
        assert (figure.low <= truth).all()
        assert (truth <= figure.high).all()
        assert figure.values == pytest.approx(truth, abs=3)
        assert (figure.high - figure.low < 20).all()


def test_a_sum_alone_needs_no_count_and_missing_values_add_nothing() -> None:
    scale = Scale.of("age", 0, 100)
    assert scale.around_zero == Scale(-100, 100)
    exact = ExactCounts(
        np.array([900]), {"age": np.array([500 * 300_000])}, {}, {"age": np.array([500])}
    )
    paid = allowance()
    (figure,) = answer([Question("s", "sum", "age", scale.around_zero)], exact, paid).figures
    assert [entry.view for entry in paid.entries] == ["sum age (in steps of 0.0001)"]
    assert figure.values[0] == pytest.approx(500 * 30, abs=2000)


def test_means_divide_by_the_values_that_are_there() -> None:
    scale = Scale.of("age", 0, 100)
    whole = scale.whole(np.full(10_000, 30.0))
    exact = ExactCounts(
        np.array([90_000]), {"age": np.array([whole.sum()])}, {}, {"age": np.array([10_000])}
    )
    found = answer([Question("m", "mean", "age", scale)], exact, allowance())
    assert found.figures[0].values[0] == pytest.approx(30, abs=1)
    assert [entry.view for entry in found.receipt.entries] == [
        "count age",
        "sum age (in steps of 5e-05)",
    ]


def test_only_the_declared_noisy_views_are_read(monkeypatch) -> None:
    """Every exact vector that is touched was charged before, once; nothing else is touched."""
    _, scale, exact = people()
    paid, read = allowance(), []
    honest = ExactCounts.vector

    def watched(self, name):
        read.append(name)
        assert [entry.view.split(" (")[0] for entry in paid.entries] == read
        return honest(self, name)

    monkeypatch.setattr(ExactCounts, "vector", watched)
    answer([Question("n", "count"), Question("v", "variance", "age", scale)], exact, paid)
    assert read == ["count", "sum age", "squares age"]


def test_variance_of_a_sample_and_deviation() -> None:
    ages, scale, exact = people(groups=2, each=40_000)
    questions = [
        Question("p", "variance", "age", scale),
        Question("s", "variance", "age", scale, sample=True),
        Question("d", "deviation", "age", scale),
    ]
    p, s, d = answer(questions, exact, allowance(Pure(20))).figures
    assert s.values == pytest.approx(p.values * 40_000 / 39_999, rel=1e-5)
    assert d.values == pytest.approx(np.sqrt(p.values))
    assert d.values == pytest.approx(ages.std(1), rel=0.02)


def test_confidence_and_questions_are_checked() -> None:
    _, _, exact = people()
    with pytest.raises(ParameterError):
        answer([Question("n", "count")], exact, allowance(), confidence=1.0)
    with pytest.raises(ParameterError):
        answer([], exact, allowance())
