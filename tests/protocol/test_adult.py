"""The ten-level query of Figure 4.5 on Adult, answered by 30,162 cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from adult import NUMBERS, PLACES, TREES, adult_rows

import halfmask as hm
from halfmask.protocol import simulate as census
from halfmask.protocol.common_schema import MERGES, CommonSchema, Terms, commons_from
from halfmask.protocol.simulate import simulate

if TYPE_CHECKING:
    from pathlib import Path


@pytest.fixture(scope="module")
def adult(data: Path) -> pa.Table:
    return adult_rows(data)


def commons(adult: pa.Table) -> CommonSchema:
    columns: dict[str, Any] = {}
    for name in PLACES:
        columns[name] = {"role": "sensitive" if name == "fnlwgt" else "quasi"}
        if name in NUMBERS:
            columns[name]["type"] = "integer"
        elif name in TREES:
            columns[name] |= {
                "values": _leaves(TREES[name]),
                "hierarchy": {"tree": TREES[name]},
            }
        else:
            columns[name]["values"] = adult[name].unique().to_pylist()
    return commons_from({"tables": {"adult": {"columns": columns}}})


def _leaves(tree: Any) -> list[str]:
    return list(tree) if isinstance(tree, list) else [x for t in tree.values() for x in _leaves(t)]


def with_demands(adult: pa.Table, k: Any, l: Any) -> pa.Table:  # noqa: E741
    return adult.append_column("k", pa.array(k)).append_column("l", pa.array(l))


@pytest.mark.parametrize("merge", MERGES)
def test_figure_4_5_on_adult_by_cells(adult: pa.Table, merge: Any) -> None:
    n = len(adult)
    people = with_demands(adult, [5] * n, [3] * n)
    terms = Terms(merge, 2048, 2050, 20_000, ram=1 << 30)
    done = simulate(commons(adult), people, census.QUERY, terms)
    assert (done.cells, done.groups) == (30_162, 18_109)
    rows = [level.rows for level in done.answer.levels]
    assert rows == [887, 783, 30, 161, 155, 162, 48, 22, 64, 14]
    assert done.answer.people == 29_363


def test_personal_demands_on_adult_get_the_answer_of_query(adult: pa.Table) -> None:
    random = np.random.default_rng(0)
    chance = random.random(len(adult))
    k = np.select([chance < 0.5, chance < 0.8, chance < 0.95], [5, 9, 15], 20)
    people = with_demands(adult, k, np.where(chance < 0.5, 3, 4))
    terms = Terms("swap", 2048, 1026, 40_000, ram=1 << 30)
    done = simulate(commons(adult), people, census.QUERY, terms)
    columns: dict[str, Any] = dict.fromkeys(PLACES, "quasi") | {"fnlwgt": "sensitive"}
    columns |= {n: {"role": "quasi", "hierarchy": {"tree": t}} for n, t in TREES.items()}
    table = hm.read(people, {"columns": columns})
    expected = hm.query(table, census.QUERY, {"k": "k", "l": "l"})
    ours, theirs = (
        sorted(map(str, (list(r.values()) for r in a.to_arrow().to_pylist())))
        for a in (done.answer, expected)
    )
    assert len(ours) > 1000
    assert ours == theirs
