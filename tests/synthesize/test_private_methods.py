"""What every private synthesizer must keep, whatever its method."""

from __future__ import annotations

import numpy as np
import pytest
from effort import THOROUGH
from noise import least_epsilon, repeatable
from views import Recorder, Replay

from halfmask.synthesize.private import PRIVATE
from halfmask.table.schema import Schema
from halfmask.table.table import Table

METHODS = sorted(PRIVATE)


def learn(method: str):
    return PRIVATE[method]


pytestmark = pytest.mark.usefixtures("few_drawn")


@pytest.mark.parametrize("delta", [0, "1e-6"])
@pytest.mark.parametrize("method", METHODS)
def test_the_declared_noisy_views_alone_are_read_and_paid(
    method, delta, people, domains, make_views
) -> None:
    """The same noisy answers without any row give the same model: nothing else was read."""
    vault = make_views(people, domains, 2, delta)
    recorder = Recorder(vault)
    model = learn(method)(recorder, ordered=["age"])
    charged = [e for e in vault.allowance.entries if "noisy counts from" not in e.view]
    assert len(charged) == len(recorder.answers)
    again = learn(method)(Replay(vault.sizes, vault.limit, list(recorder.answers)), ordered=["age"])
    first, second = (m.draw(500, np.random.default_rng(7)) for m in (model, again))
    assert list(first) == list(domains)
    for name, size in vault.sizes.items():
        assert np.array_equal(first[name], second[name])
        assert first[name].shape == (500,)
        assert 0 <= first[name].min() <= first[name].max() < size
    # As many rows as noise tells, and the receipt adds up to the budget.
    assert model.rows == pytest.approx(4000, abs=600)
    vault.allowance.receipt().verify()
    left = vault.allowance.remaining.parts()[0] / vault.allowance.limit.parts()[0]
    assert left < 0.1


@pytest.mark.parametrize("method", METHODS)
def test_dependence_in_the_rows_is_learned_and_none_is_invented(
    method, people, domains, make_views
) -> None:
    drawn = learn(method)(make_views(people, domains, 5), ordered=["age"]).draw(
        20_000, np.random.default_rng(1)
    )
    if method != "histogram":
        # Women are cooks or clerks; men are clerks, smiths or without.
        female = drawn["sex"] == 0
        assert (drawn["job"][female] <= 1).mean() > 0.85
        assert (drawn["job"][~female] >= 1).mean() > 0.85
    # Sex and age are independent in the rows; drawn rows must not tie them beyond chance.
    table = np.histogram2d(drawn["sex"], drawn["age"], [2, 20])[0] / 20_000
    apart = np.abs(table - table.sum(1, keepdims=True) * table.sum(0)).sum() / 2
    # The rows themselves, 4,000 of them, are 0.02 apart by chance.
    assert apart < 0.05


def _toy(with_person: bool) -> Table:
    import pyarrow as pa

    first, second = ["a"] * 3 + ["b"] * 2, ["x"] * 3 + ["y"] * 2
    if with_person:
        first, second = [*first, "b"], [*second, "x"]
    return Table(pa.table({"p": first, "q": second}), Schema())


TOY = {"p": ["a", "b"], "q": ["x", "y"]}


def _audit(method: str, make_views, epsilon: float, times: int) -> float:
    """One person is alone in cell (b, x): how many drawn rows fall there, over many runs."""

    def run(with_person: bool, times: int) -> np.ndarray:
        table, found = _toy(with_person), []
        sampler = repeatable(100 + with_person)
        random = np.random.default_rng(3)
        for _ in range(times):
            model = learn(method)(make_views(table, TOY, epsilon, 0, sampler), ordered=[])
            rows = model.draw(model.rows, random)
            found.append(((rows["p"] == 1) & (rows["q"] == 0)).sum() + 0.01 * model.rows)
        return np.array(found, float)

    return least_epsilon(run, times)


# In the ordinary run as many as catch the broken vault below; a false alarm once in 10**5.
AUDITED = {
    "dp-cocluster": 100,
    "dpcocgen": 400 if THOROUGH else 140,
    "histogram": 800 if THOROUGH else 140,
    "privbayes": 600 if THOROUGH else 240,
    "marginals": 400,
}


@pytest.mark.slow
@pytest.mark.parametrize("method", sorted(AUDITED))
def test_audit_of_neighbors(method, make_views, monkeypatch) -> None:
    from halfmask.synthesize import dp_cocluster

    monkeypatch.setattr(dp_cocluster, "DRAWN", 2000)
    assert _audit(method, make_views, 1, AUDITED[method]) <= 1


# Runs that a broken vault takes to be caught.
CAUGHT = {
    "adaptive": 400,
    "dp-cocluster": 160,
    "marginals": 400,
    "privbayes": 240,
}


@pytest.mark.parametrize("method", METHODS)
def test_audit_fails_where_the_noise_is_broken(method, make_views, monkeypatch) -> None:
    """A vault that forgets most of its noise must be caught: else the audit sees nothing."""
    from halfmask.dp.mechanisms import DiscreteLaplace
    from halfmask.synthesize import dp_cocluster

    honest = DiscreteLaplace.apply

    def broken(self, counts, sampler):
        return honest(DiscreteLaplace(self.epsilon * 1000, self.sensitivity), counts, sampler)

    monkeypatch.setattr(DiscreteLaplace, "apply", broken)
    monkeypatch.setattr(dp_cocluster, "DRAWN", 2000)
    assert _audit(method, make_views, 1, CAUGHT.get(method, 140)) > 1


@pytest.mark.parametrize("method", METHODS)
def test_an_empty_table_is_like_any_other(method, domains, make_views, people) -> None:
    """Whether there are rows at all is a secret too: nothing fails, and some rows come out."""
    empty = Table(people.arrow.slice(0, 0), Schema())
    model = learn(method)(make_views(empty, domains), ordered=["age"])
    assert model.rows >= 1
    assert len(model.draw(5, np.random.default_rng(1))["sex"]) == 5
