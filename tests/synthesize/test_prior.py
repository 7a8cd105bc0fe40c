"""A public table where a private model begins: it costs nothing, helps where budgets are poor."""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import Pure
from halfmask.errors import ParameterError
from halfmask.table.schema import Schema
from halfmask.table.table import Table

SIZES = {"a": 4, "b": 4, "c": 3, "d": 4}
DOMAINS = {name: list(range(size)) for name, size in SIZES.items()}


def chain(rows: int, seed: int, stays: float = 0.85) -> Table:
    random = np.random.default_rng(seed)
    held = {"a": random.choice(4, rows, p=[0.4, 0.3, 0.2, 0.1])}
    for before, name in zip("abc", "bcd", strict=True):
        fresh = random.integers(0, SIZES[name], rows)
        near = held[before] % SIZES[name]
        held[name] = np.where(random.random(rows) < stays, near, fresh)
    return Table(pa.table(held), Schema())


def distance(table: Table, rows: pa.Table) -> float:
    found = []
    for a, b in combinations(SIZES, 2):
        p, q = (
            np.bincount(one[a].to_numpy() * SIZES[b] + one[b].to_numpy(), minlength=16)
            for one in (table.arrow, rows)
        )  # fmt: skip
        found.append(np.abs(p / p.sum() - q / q.sum()).sum() / 2)
    return float(np.mean(found))


@pytest.fixture(scope="module")
def table() -> Table:
    return chain(2000, 1)


def made(table: Table, method: str, epsilon: object, **more: object) -> hm.PrivateRelease:
    return hm.synthesize(table, method, epsilon=epsilon, domains=DOMAINS, **more)


@pytest.mark.parametrize("method", ["marginals", "adaptive"])
def test_it_helps_where_the_budget_is_poor(table, method) -> None:
    public = chain(3000, 2)
    alone = np.mean([distance(table, made(table, method, 0.02).to_arrow()) for _ in range(6)])
    helped = np.mean(
        [distance(table, made(table, method, 0.02, prior=public).to_arrow()) for _ in range(6)]
    )
    assert helped < 0.75 * alone


def test_a_wrong_one_does_little_harm_where_the_budget_is_ample(table) -> None:
    random = np.random.default_rng(3)
    wrong = pa.table({name: random.integers(0, size, 3000) for name, size in SIZES.items()})
    mirrored = chain(3000, 4).arrow
    mirrored = mirrored.set_column(1, "b", pa.array(3 - mirrored["b"].to_numpy()))
    for prior in (wrong, mirrored):
        rows = made(table, "marginals", 20, prior=Table(prior, Schema())).to_arrow()
        assert distance(table, rows) < 0.03


def test_it_is_told_and_nothing_more_is_read_or_spent(table) -> None:
    release = made(
        table, "marginals", 1, prior=Table(chain(500, 5).arrow.select(["a", "b"]), Schema())
    )
    release.receipt.verify()
    assert release.parameters["prior"] is True
    assert any("does not cover" in note for note in release.notes)
    assert not any("does not cover" in note for note in made(table, "marginals", 1).notes)


def test_values_outside_move_and_no_kind_of_row_fails(table) -> None:
    odd = pa.table(
        {"a": ["0", "x", None, "3"], "b": [0.0, 2.5, float("nan"), 1.0], "z": [1, 2, 3, 4]}
    )
    assert len(made(table, "marginals", 1, prior=Table(odd, Schema()))) > 0


@pytest.mark.parametrize(
    ("method", "more"),
    [
        ("histogram", {"prior": chain(50, 1)}),
        ("marginals", {"prior": chain(50, 1).arrow}),
        ("marginals", {"prior": Table(pa.table({"a": [1]}), Schema())}),
        ("marginals", {"prior": Table(chain(50, 1).arrow.slice(0, 0), Schema())}),
    ],
)
def test_what_is_none_costs_nothing(table, method, more) -> None:
    keeper = Accountant(Pure(1))
    with pytest.raises(ParameterError, match="prior"):
        made(table, method, 1, accountant=keeper, **more)
    with pytest.raises(ParameterError, match="everybody may see"):
        made(table, "marginals", 1, accountant=keeper, prior=table)
    assert keeper.remaining == Pure(1)
