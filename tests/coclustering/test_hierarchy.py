"""The levels above the Iris grid: numbers of the thesis and of Khiops."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from halfmask.coclustering.criterion import GridCriterion
from halfmask.coclustering.grid import Grid
from halfmask.coclustering.hierarchy import hierarchy, merge_small, simplify
from halfmask.coclustering.observations import PartSizes
from halfmask.coclustering.optimize import optimize_grid
from halfmask.errors import InputError, ParameterError

PUBLISHED = {
    (3, 8): 5646.818946,
    (3, 7): 5647.230874,
    (3, 6): 5652.314042,
    (3, 5): 5660.049617,
    (3, 4): 5668.219212,
    (3, 3): 5703.755166,
    (2, 3): 5763.300389,
    (2, 2): 5764.208986,
    (1, 2): 5977.285649,
    (1, 1): 5966.412356,
}
KHIOPS = {
    (3, 8): 5647.855077,
    (3, 7): 5647.946991,
    (3, 6): 5652.620619,
    (3, 5): 5659.788790,
    (3, 4): 5667.438117,
    (3, 3): 5702.108044,
    (2, 3): 5760.960120,
    (2, 2): 5761.175570,
    (1, 1): 5959.386818,
}
THESIS = {
    (150, 77, 0, 0, 0, 7, 16),
    (0, 9, 142, 32, 11, 39, 22),
    (0, 8, 2, 10, 145, 67, 13),
}


def test_every_level_costs_what_it_should(grid):
    levels = hierarchy(grid)
    found = {tuple(p): c for p, c in zip(levels.parts().tolist(), levels.costs, strict=True)}
    assert found == pytest.approx(PUBLISHED, abs=1e-6)


def test_every_level_costs_what_khiops_counts(melted):
    levels = hierarchy(optimize_grid(melted.observations, criterion="khiops11"))
    found = {tuple(p): c for p, c in zip(levels.parts().tolist(), levels.costs, strict=True)}
    assert {parts: found[parts] for parts in KHIOPS} == pytest.approx(KHIOPS, abs=1e-6)


def test_costs_along_the_path_are_those_of_the_criterion(melted, grid):
    levels = hierarchy(grid)
    judge = GridCriterion(melted.observations)
    for level in range(len(levels)):
        assert judge.cost(levels.at(level).partition) == pytest.approx(levels.costs[level])


def test_the_grid_of_the_thesis_is_one_merge_away(grid):
    coarser = simplify(grid, parts={"part": 7})
    assert coarser.parts == (3, 7)
    rows = {tuple(sorted(row)) for row in coarser.matrix().tolist()}
    assert rows == {tuple(sorted(row)) for row in THESIS}


def test_the_simplified_grid_of_the_thesis_keeps_64_percent(melted):
    levels = hierarchy(optimize_grid(melted.observations, criterion="khiops11"))
    coarser = simplify(levels, parts={"row": 2, "part": 3})
    assert sorted(coarser.matrix().ravel().tolist()) == [0, 17, 23, 186, 227, 297]
    level = levels.parts().tolist().index([2, 3])
    assert levels.information[level] == pytest.approx(0.6369, abs=5e-5)
    assert sorted(coarser.sizes(0).tolist()) == [50, 100]


def test_information_starts_at_one_and_ends_at_nothing(grid):
    rates = hierarchy(grid).information
    assert rates[0] == 1
    assert rates[-1] == pytest.approx(0)


@pytest.mark.parametrize(
    ("limits", "parts"),
    [
        ({"cells": 12}, (3, 4)),
        ({"information": 0.95}, (3, 5)),
        ({"smallest": {"row": 49}}, (3, 8)),
        ({"smallest": {"row": 50}}, (2, 3)),
        ({"smallest": {"row": 120}}, (1, 2)),
    ],
)
def test_simplification_stops_at_the_limit(grid, limits, parts):
    assert simplify(grid, **limits).parts == parts


def test_limits_that_nothing_meets_are_refused(grid):
    with pytest.raises(ParameterError):
        simplify(grid, smallest={"row": 151})
    with pytest.raises(ParameterError, match="cells = 0 is not possible: give 1 or more"):
        simplify(grid, cells=0)
    with pytest.raises(ParameterError, match=r"information = 7 .* from 0 to 1"):
        simplify(grid, information=7)
    with pytest.raises(InputError, match="no variable"):
        simplify(grid, parts={"person": 2})


def test_merging_only_small_parts_keeps_the_other_side(grid):
    merged = merge_small(grid, "row", 50)
    assert merged.parts == (2, 8)
    assert sorted(merged.sizes(0).tolist()) == [50, 100]


def test_a_grid_can_be_saved_and_loaded(grid, tmp_path):
    grid.save(tmp_path / "grid.json")
    again = Grid.load(tmp_path / "grid.json")
    assert repr(again) == repr(grid)
    assert hierarchy(again).costs == pytest.approx(hierarchy(grid).costs)


@pytest.mark.parametrize("text", ["", "[1]", '{"format": "other"}'])
def test_what_is_no_grid_is_refused(tmp_path, text):
    path = tmp_path / "grid.json"
    path.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match="not a saved grid"):
        Grid.load(path)
    with pytest.raises(InputError, match="does not exist"):
        Grid.load(tmp_path / "other.json")


@given(st.integers(1, 6), st.integers(0, 10_000))
def test_owners_are_counted_once_in_a_part(parts, seed):
    random = np.random.default_rng(seed)
    part = np.concatenate([np.arange(parts), random.integers(0, parts, 20)]).astype(np.int32)
    owner = random.integers(0, 8, len(part)).astype(np.int32)
    held = PartSizes(part, owner)
    while True:
        alive = np.flatnonzero(held.alive).tolist()
        expected = {p: len(set(owner[part == p].tolist())) for p in alive}
        assert {p: int(held.sizes[p]) for p in alive} == expected
        assert held.fewest() == min(expected.values())
        if len(alive) == 1:
            break
        kept, gone = random.choice(alive, 2, replace=False).tolist()
        held.join(kept, gone)
        part[part == gone] = kept
