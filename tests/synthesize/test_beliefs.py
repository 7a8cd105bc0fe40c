"""Exact inference against the full table, which is small enough here to write out."""

from __future__ import annotations

from itertools import combinations, pairwise, permutations

import numpy as np
import pytest

from halfmask.synthesize.inference import (
    Beliefs,
    MarginalTarget,
    _sorted_by,
    align_axes,
    count_cells,
    draw,
    draw_members,
    draw_values,
    fit_beliefs,
    junction_tree,
)

SIZES = {"a": 2, "b": 3, "c": 4, "d": 2, "e": 3}
LOOP = [("a", "b"), ("b", "c"), ("c", "d"), ("d", "e"), ("a", "e")]


def full(beliefs: Beliefs) -> np.ndarray:
    table = np.ones(tuple(SIZES.values()))
    for clique, part in zip(beliefs.tree.cliques, beliefs.tables, strict=True):
        table = table * align_axes(part, clique, tuple(SIZES))
    for (_, _, shared), part in zip(beliefs.tree.edges, beliefs.separators, strict=True):
        table = table / align_axes(part, shared, tuple(SIZES))
    return table


@pytest.fixture
def beliefs() -> Beliefs:
    random = np.random.default_rng(1)
    return Beliefs.independent(SIZES, {name: random.random(size) for name, size in SIZES.items()})


def test_a_loop_gets_triangles() -> None:
    tree = junction_tree(SIZES, LOOP)
    assert all(tree.holder(pair) is not None for pair in LOOP)
    assert max(len(clique) for clique in tree.cliques) == 3
    assert tree.holder(("a", "b", "c", "d", "e")) is None
    # Running intersection: the cliques that hold a column hang together.
    for name in SIZES:
        holding = [i for i, clique in enumerate(tree.cliques) if name in clique]
        edges = [e for e in tree.edges if name in e[2]]
        assert len(edges) == len(holding) - 1


def test_moving_to_another_tree_changes_nothing(beliefs: Beliefs) -> None:
    assert full(beliefs.extended(LOOP)) == pytest.approx(full(beliefs))


def test_updates_and_marginals_are_exact(beliefs: Beliefs) -> None:
    random = np.random.default_rng(2)
    looped = beliefs.extended(LOOP)
    factors = {i: random.random(table.shape) for i, table in enumerate(looped.tables)}
    expected = full(looped)
    for place, factor in factors.items():
        expected = expected * align_axes(factor, looped.tree.cliques[place], tuple(SIZES))
    expected /= expected.sum()
    looped.multiply(factors)
    assert full(looped) == pytest.approx(expected)
    names = list(SIZES)
    for count in (1, 2, 3):
        for columns in permutations(names, count):
            axes = "".join("abcde"[names.index(name)] for name in columns)
            exact = np.einsum(f"abcde->{axes}", expected)
            assert looped.marginal(columns) == pytest.approx(exact)


def test_fit_reaches_tables_that_can_be_met(beliefs: Beliefs) -> None:
    random = np.random.default_rng(3)
    truth = random.random(tuple(SIZES.values()))
    truth *= 1000 / truth.sum()
    targets = [
        MarginalTarget(("a", "b"), truth.sum(axis=(2, 3, 4)), 1.0),
        MarginalTarget(("c", "d"), truth.sum(axis=(0, 1, 4)), 1.0),
    ]
    found = fit_beliefs(beliefs.extended([t.columns for t in targets]), targets, 1000.0, steps=300)
    for target in targets:
        assert 1000 * found.marginal(target.columns) == pytest.approx(target.counts, abs=0.5)


def test_drawn_rows_follow_the_tables_and_keep_independence() -> None:
    sizes = {"a": 2, "b": 5, "c": 5}
    ones = {"a": np.array([0.3, 0.7]), "b": np.ones(5), "c": np.arange(1.0, 6)}
    rows = draw(Beliefs.independent(sizes, ones), 50_000, np.random.default_rng(1))
    assert np.bincount(rows["a"]) == pytest.approx([15_000, 35_000], abs=1)
    table = np.histogram2d(rows["b"], rows["c"], 5)[0]
    expected = table.sum(1, keepdims=True) * table.sum(0) / 50_000
    statistic = ((table - expected) ** 2 / expected).sum()
    assert 3 < statistic < 45  # 16 degrees of freedom: neither tied nor unnaturally even


def test_dealing_in_a_fixed_order_would_tie_columns() -> None:
    """The fault that the random order prevents: sorted dealing of two columns ties them fully."""
    groups = np.zeros(1000, np.int64)

    class InOrder:
        def permutation(self, size: int) -> np.ndarray:
            return np.arange(size)

        def random(self, size: int) -> np.ndarray:
            return np.full(size, 0.5)

    even = np.ones((1, 5))
    tied = [draw_values(groups, even, InOrder()) for _ in range(2)]  # type: ignore[arg-type]
    assert np.array_equal(*tied)
    random = np.random.default_rng(1)
    free = [draw_values(groups, even, random) for _ in range(2)]
    assert 0.1 < (free[0] == free[1]).mean() < 0.3


def test_groups_without_weight_deal_evenly() -> None:
    weights = np.array([[0.0, 0.0], [0.0, 1.0]])
    values = draw_values(np.repeat([0, 1], 100), weights, np.random.default_rng(1))
    assert np.bincount(values[:100]).tolist() == [50, 50]
    assert (values[100:] == 1).all()


def test_values_spread_evenly_beside_other_columns() -> None:
    """Inside one group, every other value gets its share of each dealt value, up to a few rows."""
    random = np.random.default_rng(4)
    other = np.repeat(np.arange(10), 100)
    values = draw_values(np.zeros(1000, np.int64), np.array([[1.0, 3.0]]), random, beside=other)
    table = np.histogram2d(other, values, [10, 2])[0]
    assert np.abs(table[:, 0] - 25).max() <= 3


def test_tiny_shares_leave_no_cell_that_is_no_number():
    sizes = dict.fromkeys("abcdef", 3)
    ones = {name: np.array([1.0, 1e-30, 1e-150]) for name in sizes}
    beliefs = Beliefs.independent(sizes, ones).extended([("a", name) for name in "bcdef"])
    tiny = np.exp(np.array([0.0, -300.0, -700.0]))[:, None] * np.ones((3, 3))
    for _ in range(3):
        beliefs.multiply(dict.fromkeys(range(len(beliefs.tree.cliques)), tiny))
    grown = beliefs.extended([("b", "c"), ("c", "d"), ("d", "e")])
    assert grown.finite
    assert grown.marginal(("a",)).sum() == pytest.approx(1)
    assert grown.marginal(("b", "e")) == pytest.approx(beliefs.marginal(("b", "e")), abs=1e-9)


@pytest.mark.parametrize("size", [1e-320, 1e-300, 1.0, 1e300, 1.7e308])
def test_no_factor_makes_a_model_that_is_no_number(size):
    """Overflowing, vanishing and contradicting factors: a worse model, never none."""
    random = np.random.default_rng(7)
    names = [f"c{i}" for i in range(30)]
    sizes = dict.fromkeys(names, 3)
    beliefs = Beliefs.independent(sizes, {n: np.ones(3) for n in names})
    beliefs = beliefs.extended(list(pairwise(names)))
    with np.errstate(all="ignore"):
        for turn in range(4):
            factors = {}
            for place, clique in enumerate(beliefs.tree.cliques):
                shape = tuple(sizes[n] for n in clique)
                factors[place] = size * random.integers(0, 2, shape) * random.random(shape)
                if turn == 3:
                    factors[place] *= 0
            beliefs.multiply(factors)
            assert beliefs.finite
            grown = beliefs.extended([(names[0], names[29]), (names[3], names[17])])
            assert grown.finite
            assert grown.marginal((names[0],)).sum() == pytest.approx(1)
            drawn = draw(grown, 20, random)
            assert all(((held >= 0) & (held < 3)).all() for held in drawn.values())


def test_a_model_that_numbers_cannot_hold_is_begun_anew(make_views, people, domains, monkeypatch):
    from halfmask.synthesize import marginals

    whole = Beliefs.extended

    def broken(self, groups):
        grown = whole(self, groups)
        grown.tables[0] = grown.tables[0] * np.nan
        return grown

    monkeypatch.setattr(Beliefs, "extended", broken)
    model = marginals.learn(make_views(people, domains, 2))
    assert model.beliefs.finite
    assert model.pairs
    assert len(model.draw(50, np.random.default_rng(0))["sex"]) == 50


def brute_edges(cliques):
    """A maximum spanning tree by shared columns, every pair compared in every step."""
    inside, edges = [0], []
    while len(inside) < len(cliques):
        pairs = [(o, i) for o in range(len(cliques)) if o not in inside for i in inside]
        child, parent = max(
            pairs, key=lambda one: (len(set(cliques[one[0]]) & set(cliques[one[1]])), one)
        )
        edges.append((child, parent))
        inside.append(child)
    return edges[::-1]


def test_trees_are_those_of_a_plain_search() -> None:
    random = np.random.default_rng(4)
    for _ in range(40):
        names = [f"c{i}" for i in range(9)]
        sizes = {name: int(random.integers(2, 6)) for name in names}
        groups = [tuple(random.choice(names, 2, replace=False)) for _ in range(10)]
        tree = junction_tree(sizes, groups)
        assert [edge[:2] for edge in tree.edges] == brute_edges(tree.cliques)
        assert all(any(set(one) <= set(held) for held in tree.cliques) for one in groups)
        assert count_cells(sizes, groups) == tree.cells
        assert tree.cells == sum(np.prod([sizes[n] for n in held]) for held in tree.cliques)


def test_members_are_drawn_by_their_weights_inside_their_group() -> None:
    homes, weights = np.array([1, 0, 1, 0, 2]), np.array([3.0, 1.0, 1.0, 1.0, 9.0])
    groups = np.repeat([0, 1, 2], 1000)
    values = draw_members(
        groups, homes, weights, np.random.default_rng(1), beside=np.zeros(3000, np.int64)
    )
    assert (homes[values] == groups).all()
    assert np.abs(np.bincount(values) - [750, 500, 250, 500, 1000]).max() < 5


def test_tables_across_cliques_are_those_of_the_whole_distribution() -> None:
    """Against the product of all cliques over separators, cell by cell."""
    random = np.random.default_rng(5)
    names = [f"c{i}" for i in range(7)]
    for _ in range(10):
        sizes = {name: int(random.integers(2, 4)) for name in names}
        groups = [tuple(random.choice(names, 2, replace=False)) for _ in range(7)]
        beliefs = Beliefs.independent(sizes, {n: random.random(s) + 0.1 for n, s in sizes.items()})
        beliefs = beliefs.extended(groups)
        tree = beliefs.tree
        beliefs.multiply({i: random.random(t.shape) + 0.1 for i, t in enumerate(beliefs.tables)})
        joint = np.ones(tuple(sizes.values()))
        for clique, table in zip(tree.cliques, beliefs.tables, strict=True):
            joint = joint * align_axes(table, clique, names)
        for (_, _, shared), table in zip(tree.edges, beliefs.separators, strict=True):
            joint = joint / align_axes(table, shared, names)
        for pick in (*combinations(names, 2), *combinations(names, 3)):
            gone = tuple(i for i, name in enumerate(names) if name not in pick)
            assert np.allclose(beliefs.marginal(pick), joint.sum(axis=gone), atol=1e-12)


def test_rows_sort_stably_by_keys_of_any_size() -> None:
    random = np.random.default_rng(2)
    for most in (1, 3, 70_000, 1 << 40):
        keys, order = random.integers(0, most, 5000), random.permutation(5000)
        expected = sorted(order.tolist(), key=lambda row: keys[row])
        assert _sorted_by(order, keys).tolist() == expected
