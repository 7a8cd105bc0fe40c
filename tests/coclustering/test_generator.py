"""The generator's chances on the Iris grid of the thesis."""

from __future__ import annotations

import pickle

import numpy as np
import pytest

from halfmask.coclustering.generate import generator
from halfmask.coclustering.hierarchy import simplify

# per group (by its size): chances of the parts of each column, in the columns' order
EXPECTED = {
    49: (
        (0.092917, 0.697128, 0.209956),
        (0.670952, 0.258085, 0.070963),
        (0, 0.987431, 0.012569),
        (0, 0.986395, 0.013605),
        (0, 0.985277, 0.014723),
    ),
    50: (
        (0.924692, 0.075308, 0),
        (0.065467, 0.296652, 0.637881),
        (1, 0, 0),
        (1, 0, 0),
        (1, 0, 0),
    ),
    51: (
        (0.088422, 0.343256, 0.568322),
        (0.430530, 0.481465, 0.088005),
        (0, 0.077441, 0.922559),
        (0, 0.071895, 0.928105),
        (0, 0.066734, 0.933266),
    ),
}


@pytest.fixture(scope="module")
def model(grid, melted):
    return generator(simplify(grid, parts={"part": 7}), melted.offsets)


@pytest.mark.parametrize("size", EXPECTED)
def test_chances_are_those_of_the_thesis(model, size):
    (group,) = np.flatnonzero(model.sizes == size)
    for chances, expected in zip(model.chances, EXPECTED[size], strict=True):
        assert chances[group] == pytest.approx(expected, abs=1e-6)


def test_the_simplified_grid_mixes_two_species(grid, melted):
    model = generator(simplify(grid, parts={"row": 2, "part": 3}), melted.offsets)
    (group,) = np.flatnonzero(model.sizes == 100)
    assert model.chances[4][group] == pytest.approx([0.034874, 0.464574, 0.500551], abs=1e-6)


def test_draws_follow_the_chances(model):
    rows = model.draw(100_000, np.random.default_rng(0))
    expected = model.sizes / 150 @ model.chances[4]
    assert np.bincount(rows[:, 4], minlength=3) / 100_000 == pytest.approx(expected, abs=0.005)


def test_quotas_are_kept_to_a_row_per_group(model):
    rows = model.draw(15_000, np.random.default_rng(0), mode="quota")
    expected = model.sizes * 100 @ model.chances[0]
    assert np.bincount(rows[:, 0]) == pytest.approx(expected, abs=3)


def test_the_model_alone_draws_without_the_table(model):
    again = pickle.loads(pickle.dumps(model))  # noqa: S301 - our own bytes
    one, two = (m.draw(50, np.random.default_rng(4)) for m in (model, again))
    assert np.array_equal(one, two)
    held = [array.size for array in (again.sizes, *again.chances)]
    assert sum(held) == 3 + 3 * 15
