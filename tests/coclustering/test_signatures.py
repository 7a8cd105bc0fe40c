"""Algorithm 1 on the Iris grids of the thesis, class by class."""

from __future__ import annotations

import numpy as np
import pytest

from halfmask.coclustering.generate import join_failing_groups, split_large
from halfmask.coclustering.hierarchy import simplify
from halfmask.coclustering.trees import chosen_parts, meetings, modes, part_counts, set_label

# sepal length, sepal width, petal length, petal width, species of 50, 51 and 49 rows
CLASSES = {
    50: ("<=5.4", ">3.2", "<=2.633", "<=0.867", "setosa"),
    51: ("]5.4,6.3]", "<=2.9", ">4.9", ">1.6", "virginica"),
    49: ("]5.4,6.3]", "<=2.9", "]2.633,4.9]", "]0.867,1.6]", "versicolor"),
}


def labels(grid, melted, *, link="count"):
    """Per group of rows, its size and the label of each column."""
    groups, part_group = grid.partition
    met = meetings(groups, melted.matrix(), part_group)
    chosen = chosen_parts(met, part_group, melted, link=link)
    out = {}
    for group, size in enumerate(np.bincount(groups).tolist()):
        out[size] = tuple(
            set_label(column, np.flatnonzero(chosen[group, low:high]))
            for column, low, high in zip(
                melted.columns, melted.offsets[:-1], melted.offsets[1:], strict=True
            )
        )
    return out


def test_the_grid_of_the_thesis_gives_its_three_classes(grid, melted):
    assert labels(simplify(grid, parts={"part": 7}), melted) == CLASSES


def test_the_simplified_grid_says_versicolor_for_half_a_class(grid, melted):
    found = labels(simplify(grid, parts={"row": 2, "part": 3}), melted)
    assert found[50] == CLASSES[50]
    assert found[100] == ("]5.4,6.3]", "<=3.2", "]2.633,4.9]", "]0.867,1.6]", "versicolor")


def test_lift_reaches_the_sepal_length_that_counts_miss(grid, melted):
    found = labels(simplify(grid, parts={"part": 7}), melted, link="lift")
    assert ">6.3" in found[51][0]


def test_the_mode_differs_from_the_set(grid, melted):
    coarse = simplify(grid, parts={"part": 7})
    groups = coarse.partition[0]
    chosen = modes(part_counts(groups, melted.matrix(), 15), melted)
    (virginica,) = np.flatnonzero(np.bincount(groups) == 51)
    assert melted.columns[0].labels[int(np.flatnonzero(chosen[virginica, :3])[0])] == ">6.3"
    assert chosen.sum(axis=1).tolist() == [5, 5, 5]


def test_sets_of_parts_have_short_labels(melted):
    length, species = melted.columns[0], melted.columns[4]
    assert set_label(length, np.array([0, 1])) == "<=6.3"
    assert set_label(length, np.array([1, 2])) == ">5.4"
    assert set_label(length, np.array([0, 2])) == "<=5.4 | >6.3"
    assert set_label(length, np.array([0, 1, 2])) == "*"
    assert set_label(species, np.array([0, 2])) == "setosa | virginica"


@pytest.mark.parametrize("least", [2, 7, 20, 49])
def test_groups_are_split_down_to_the_wanted_size(grid, melted, least):
    groups = split_large(grid.partition[0], melted.matrix(), least)
    sizes = np.bincount(groups)
    assert sizes.min() >= least
    if least < 20:
        assert len(sizes) > 3
    pairs = set(zip(groups.tolist(), grid.partition[0].tolist(), strict=True))
    assert len(pairs) == len(sizes)


def test_failing_groups_join_the_one_that_costs_least():
    groups = np.repeat(np.arange(3, dtype=np.int32), 10)
    counts = np.array([[30, 0], [28, 2], [0, 30]])
    assert join_failing_groups(groups, counts, np.array([0])).tolist() == [0, 0, 1]
    assert join_failing_groups(groups, counts, np.array([0, 1, 2])).max() == 0
