"""The exact privacy loss of private methods: chances of whole transcripts from neighboring tables.

Definition: a transcript is every noisy answer that a method read, in turn. Its chance given a table
    is the product of the mechanisms' stated chances; the loss is the logarithm of the ratio of two
    neighbors' chances, and no transcript's may exceed epsilon. A model is made of answers alone
    (``test_private_methods``), so that this bounds what any drawn row tells.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, field

import numpy as np
import pyarrow as pa
import pytest
from noise import repeatable

from halfmask.dp.mechanisms import DiscreteLaplace, Exponential
from halfmask.synthesize import dp_cocluster
from halfmask.synthesize.private import PRIVATE
from halfmask.table.schema import Schema
from halfmask.table.table import Table

DOMAINS = {"p": ["a", "b"], "q": ["x", "y"], "r": ["s", "t", "u"]}
EPSILON = 1.5
ROWS = [("a", "x", "s")] * 3 + [("b", "y", "t")] * 2 + [("b", "y", "u")]
NEIGHBORS = [
    [*ROWS, ("b", "x", "u")],
    [*ROWS, ("a", "x", "s")],
    ROWS[1:],
    ROWS[:-1],
]


@dataclass
class Tape:
    """Answers that are given in turn, drawn where there are none yet, and their log chance."""

    answers: list = field(default_factory=list)
    asked: list = field(default_factory=list)
    chance: float = 0.0

    def count(self, mechanism, counts, sampler):
        """Noisy counts; their chance by the discrete Laplace distribution, but for its constant."""
        noisy = self._next(lambda: drawn_counts(mechanism, counts, sampler))
        rate = float(mechanism.epsilon) / mechanism.sensitivity
        self.chance -= rate * np.abs(noisy - counts).sum()
        self.asked.append((mechanism, counts.shape))
        return noisy

    def choose(self, mechanism, scores, sampler):
        """A choice; its chance by the exponential mechanism."""
        chosen = self._next(lambda: drawn_choice(mechanism, scores, sampler))
        weights = float(mechanism.epsilon) * scores / (2 * mechanism.sensitivity)
        self.chance += weights[chosen] - np.logaddexp.reduce(weights)
        self.asked.append((mechanism, scores.shape))
        return chosen

    def _next(self, draw):
        if len(self.asked) == len(self.answers):
            self.answers.append(draw())
        return self.answers[len(self.asked)]


drawn_counts, drawn_choice = DiscreteLaplace.apply, Exponential.choose


@pytest.fixture
def run(make_views, monkeypatch):
    """Learn from rows with the answers of a tape."""

    def play(method, rows, answers=(), columns=("p", "q", "r"), seed=0):
        tape = Tape(list(answers))
        monkeypatch.setattr(DiscreteLaplace, "apply", lambda *given: tape.count(*given))
        monkeypatch.setattr(Exponential, "choose", lambda *given: tape.choose(*given))
        names = dict(zip("pqr", zip(*rows, strict=True), strict=True))
        table = Table(pa.table({name: list(names[name]) for name in columns}), Schema())
        domains = {name: DOMAINS[name] for name in columns}
        PRIVATE[method](make_views(table, domains, EPSILON, 0, repeatable(seed)), ordered=[])
        return tape

    return play


def test_the_histogram_spends_epsilon_and_no_more_over_all_small_transcripts(run):
    pairs = ("p", "q")
    losses = []
    for cells in itertools.product(range(-1, 3), repeat=4):
        answers = [np.array(cells).reshape(2, 2)]
        own = run("histogram", ROWS, answers, pairs)
        assert len(own.answers) == 1
        other = run("histogram", NEIGHBORS[0], answers, pairs)
        losses.append(own.chance - other.chance)
    assert max(losses) == pytest.approx(EPSILON, abs=1e-12)
    assert min(losses) == pytest.approx(-EPSILON, abs=1e-12)


def worst(run, method, times) -> float:
    """The largest loss over transcripts of the rows and of a table next to them."""
    found = []
    for seed, other in itertools.product(range(times), NEIGHBORS):
        for one, two in ((ROWS, other), (other, ROWS)):
            first = run(method, one, seed=seed)
            second = run(method, two, first.answers, seed=seed)
            assert first.asked == second.asked  # what is asked depends on answers alone
            found.append(abs(first.chance - second.chance))
    return max(found)


@pytest.mark.parametrize("method", sorted(PRIVATE))
def test_no_transcript_loses_more_than_epsilon(method, run, monkeypatch):
    monkeypatch.setattr(dp_cocluster, "DRAWN", 500)
    loss = worst(run, method, 3)
    assert 0.3 * EPSILON < loss <= EPSILON + 1e-9


def test_a_vault_that_counts_people_twice_is_caught(run, monkeypatch):
    from halfmask.dp.views import GuardedRows

    exact = GuardedRows._exact
    monkeypatch.setattr(GuardedRows, "_exact", lambda self, columns: 2 * exact(self, columns))
    assert worst(run, "histogram", 2) > EPSILON
