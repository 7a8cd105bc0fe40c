"""Adaptive marginals: what is chosen, what it costs, and what three columns have together.

That only noisy views are read, that the receipt adds up, and the audits of neighbors are in
``test_private_methods.py``, for this method as for all.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.dp.budget import Pure
from halfmask.errors import ParameterError
from halfmask.synthesize import adaptive
from halfmask.table.schema import Schema
from halfmask.table.table import Table

BITS = {"a": [0, 1], "b": [0, 1], "c": [0, 1], "d": [0, 1]}


def parity(rows=20_000):
    """c tells whether a and b agree: no pair of columns shows it, three together do."""
    random = np.random.default_rng(0)
    a, b, d = (random.integers(0, 2, rows) for _ in range(3))
    return Table(pa.table({"a": a, "b": b, "c": a ^ b, "d": d}), Schema())


def kept(rows):
    return np.mean(rows["c"].to_numpy() == (rows["a"].to_numpy() ^ rows["b"].to_numpy()))


def test_what_three_columns_have_together_is_kept_where_asked():
    pairs, triples = (
        hm.synthesize(
            parity(), "adaptive", epsilon=2, delta=1e-6, domains=BITS, degree=degree
        ).to_arrow()
        for degree in (2, 3)
    )
    assert kept(pairs) == pytest.approx(0.5, abs=0.1)
    assert kept(triples) > 0.9


@pytest.mark.parametrize("delta", [0, "1e-6"])
def test_the_receipt_lists_every_table_and_every_choice(delta, people, domains, make_views):
    vault = make_views(people, domains, 2, delta)
    model = adaptive.learn(vault, ordered=["age"])
    entries = [(one.view, one.mechanism) for one in vault.allowance.entries]
    assert entries[0][0] == "number of rows"
    assert [view for view, _ in entries[1:5]] == list(domains)
    rounds = entries[5:]
    assert len(rounds) == 2 * len(model.pairs)
    for choice, table, chosen in zip(rounds[::2], rounds[1::2], model.pairs, strict=True):
        assert choice[1] == "Exponential"
        assert choice[0].startswith("worst of ")
        assert table[0] == " x ".join(chosen)
    vault.allowance.receipt().verify()
    left = vault.allowance.remaining.parts()[0] / vault.allowance.limit.parts()[0]
    assert left < 1e-6


def test_rounds_grow_where_there_is_nothing_to_learn(make_views):
    """Independent columns: tables teach less than their noise, so that few rounds take it all."""
    random = np.random.default_rng(1)
    table = Table(pa.table({n: random.integers(0, 2, 5000) for n in "abcd"}), Schema())
    vault = make_views(table, BITS, 1, "1e-6")
    adaptive.learn(vault, rounds=200)
    tables = [e for e in vault.allowance.entries[5:] if e.mechanism != "Exponential"]
    assert len(tables) < 20
    assert tables[-1].variance < tables[0].variance


def test_the_model_stays_as_small_as_asked(people, domains, make_views):
    model = adaptive.learn(make_views(people, domains, 8), ordered=["age"], cells=60)
    assert model.beliefs.tree.cells <= 60


def test_a_turn_without_a_table_that_is_small_enough_goes_to_columns(
    people, domains, make_views, monkeypatch
):
    """One table a turn, and a model that may not grow: pairs are left out, columns stay."""
    monkeypatch.setattr(adaptive, "MOST_TABLES", 1)
    monkeypatch.setattr(adaptive, "SMALL", 1)
    vault = make_views(people, domains, 8)
    model = adaptive.learn(vault, ordered=["age"], cells=1, rounds=300)
    assert len(model.pairs) > 4  # single columns have a turn each, then pairs would
    assert all(len(columns) == 1 for columns in model.pairs)
    vault.allowance.receipt().verify()


def test_nothing_beyond_the_budget_is_read(people, domains, make_views):
    """A limit that claims more than was spent: the allowance refuses, whatever the method asks."""
    vault = make_views(people, domains, 1)
    with pytest.raises(hm.HalfmaskError):
        adaptive.learn(vault.within(Pure(2)), ordered=["age"])
    vault.allowance.receipt().verify()


@pytest.mark.parametrize("options", [{"degree": 4}, {"rounds": 0}, {"selection": "x"}])
def test_wrong_options_cost_nothing(options, people, domains):
    keeper = hm.Accountant(Pure(1))
    with pytest.raises(ParameterError):
        hm.synthesize(people, "adaptive", epsilon=1, domains=domains, accountant=keeper, **options)
    assert keeper.remaining == Pure(1)


def test_one_column_is_enough(people, domains, make_views):
    one = Table(people.arrow.select(["job"]), Schema())
    model = adaptive.learn(make_views(one, {"job": domains["job"]}))
    assert model.pairs == ()
    assert model.draw(50, np.random.default_rng(0))["job"].max() <= 3


def test_many_columns_are_dealt_to_rounds(make_views, monkeypatch):
    monkeypatch.setattr(adaptive, "MOST_TABLES", 60)
    random = np.random.default_rng(2)
    table = Table(pa.table({f"c{i}": random.integers(0, 2, 500) for i in range(12)}), Schema())
    domains = {f"c{i}": [0, 1] for i in range(12)}
    vault = make_views(table, domains, 1, "1e-6")
    adaptive.learn(vault, rounds=4)
    looked = [e.view for e in vault.allowance.entries if e.mechanism == "Exponential"]
    assert all(int(view.split()[2]) <= adaptive.MOST_TABLES for view in looked)
    assert looked
    assert len(list(combinations(range(12), 2))) + 12 > adaptive.MOST_TABLES
