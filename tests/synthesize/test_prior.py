"""A public table where a private model begins: it costs nothing, helps where budgets are poor."""

from __future__ import annotations

import tracemalloc
from itertools import combinations

import duckdb
import numpy as np
import pyarrow as pa
import pytest
from pyarrow import csv

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


def test_the_same_rows_are_no_prior_wherever_they_lie(tmp_path) -> None:
    """By object, memory, file and table; an equal copy elsewhere passes: rows never decide."""
    rows = chain(300, 1).arrow
    for name in ("same.csv", "copy.csv"):
        csv.write_csv(rows, tmp_path / name)
    (tmp_path / "link.csv").symlink_to(tmp_path / "same.csv")
    (tmp_path / "hard.csv").hardlink_to(tmp_path / "same.csv")
    with duckdb.connect(str(tmp_path / "all.duckdb")) as base:
        base.register("given", rows)
        base.execute("CREATE TABLE people AS SELECT * FROM given")
        base.execute("CREATE TABLE public_sample AS SELECT * FROM given")
    same, base = tmp_path / "same.csv", tmp_path / "all.duckdb"
    memory, stored = hm.read(same), hm.read(same, engine="duckdb")
    people = hm.read(base, table="people")
    schema = {"columns": {"a": "quasi"}}
    keeper = Accountant(Pure(1))
    for table, prior in (
        (stored, stored),
        (memory, hm.read(same)),
        (memory, hm.read(tmp_path / "link.csv")),
        (stored, hm.read(tmp_path / "hard.csv", schema)),
        (hm.read(memory, schema), stored),
        (memory, Table(memory.arrow.select(["c", "a"]), Schema())),
        (people, hm.read(base, table="people")),
    ):
        with pytest.raises(ParameterError, match="everybody may see"):
            made(table, "marginals", 1, accountant=keeper, prior=prior)
    assert keeper.remaining == Pure(1)
    for table, prior in (
        (memory, hm.read(tmp_path / "copy.csv")),
        (people, hm.read(base, table="public_sample")),
        (Table(rows.slice(0, 150), Schema()), Table(rows.slice(150), Schema())),
    ):
        assert made(table, "marginals", 1, prior=prior).parameters["prior"] is True


def test_pairs_of_many_values_take_no_memory() -> None:
    """The 400 million cells of two columns are listed neither for the prior nor for the rows."""
    values = 20_000
    ones = np.arange(values)
    table = Table(pa.table({"a": ones, "b": ones, "c": ones % 2}), Schema())
    public = Table(pa.table({"a": ones[::-1].copy(), "b": ones.copy()}), Schema())
    domains = {"a": ones.tolist(), "b": ones.tolist(), "c": [0, 1]}
    tracemalloc.start()
    try:
        release = hm.synthesize(
            table, "marginals", epsilon=0.01, domains=domains, prior=public, rows=1000
        )
        most = tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()
    assert len(release) == 1000
    assert most < 500 << 20
