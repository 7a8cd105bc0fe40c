"""Selective, complete and greedy on random trees, against brute force and their own properties."""

from __future__ import annotations

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

from halfmask.query import semantics as complete
from halfmask.query import semantics as complete_greedy
from halfmask.query import semantics as selective
from halfmask.query.groups import DROPPED, Groups
from halfmask.query.semantics import choose_levels, publish_groups

spec = importlib.util.spec_from_file_location("trees", Path(__file__).with_name("trees.py"))
assert spec is not None
assert spec.loader is not None
trees = importlib.util.module_from_spec(spec)
spec.loader.exec_module(trees)


@st.composite
def small_trees(draw: st.DrawFn) -> tuple[Groups, list[set[int]] | None]:
    """Up to seven groups on a tree of two to four levels, with or without values."""
    leaves = draw(st.integers(1, 5))
    levels = draw(st.integers(2, 4))
    parents = []
    current = list(range(leaves))
    for _ in range(levels - 1):
        n = max(1, (len(set(current)) + 1) // 2)
        merged = {c: draw(st.integers(0, n - 1)) for c in sorted(set(current))}
        current = [merged[c] for c in current]
        parents.append(list(current))
    ks = sorted(draw(st.lists(st.integers(1, 9), min_size=levels, max_size=levels)))
    ls = sorted(draw(st.lists(st.integers(1, 4), min_size=levels, max_size=levels)))
    seen, members = set(), []
    for _ in range(draw(st.integers(1, 7))):
        level, leaf = draw(st.integers(0, levels - 1)), draw(st.integers(0, leaves - 1))
        node = leaf if level == 0 else parents[level - 1][leaf]
        if (level, node) not in seen:
            seen.add((level, node))
            members.append((level, leaf, draw(st.integers(1, 6))))
    values = None
    if draw(st.booleans()):
        values = [
            set(draw(st.lists(st.integers(0, 5), min_size=1, max_size=m[2]))) for m in members
        ]
    return trees.groups_of(
        parents, [list(t) for t in zip(ks, ls, strict=True)], members, values
    ), values


@settings(max_examples=examples(120))
@given(small_trees())
def test_complete_equals_brute_force(tree: tuple[Groups, list[set[int]] | None]) -> None:
    groups, values = tree
    choice = complete.choose_complete(groups)
    publish_groups(groups, choice)
    assert (choice.people(groups), choice.depth(groups)) == trees.brute_force(groups, values)
    assert choice.gap == 0.0


@st.composite
def deep_chains(draw: st.DrawFn) -> tuple[Groups, list[set[int]] | None]:
    """Up to six groups that meet pair by pair on the way up five or six levels."""
    levels = draw(st.integers(5, 6))
    parents = [[leaf >> min(i, 2) for leaf in range(4)] for i in range(1, levels)]
    ks = sorted(draw(st.lists(st.integers(2, 12), min_size=levels, max_size=levels)))
    ls = sorted(draw(st.lists(st.integers(1, 5), min_size=levels, max_size=levels)))
    places = st.tuples(st.integers(0, levels - 1), st.integers(0, 3))
    chosen = draw(
        st.lists(places, min_size=2, max_size=6, unique_by=lambda p: (p[0], p[1] >> min(p[0], 2)))
    )
    members = [(level, leaf, draw(st.integers(1, 6))) for level, leaf in chosen]
    values = None
    if draw(st.booleans()):
        values = [
            set(draw(st.lists(st.integers(0, 5), min_size=1, max_size=m[2]))) for m in members
        ]
    return trees.groups_of(
        parents, [list(t) for t in zip(ks, ls, strict=True)], members, values
    ), values


@settings(max_examples=examples(60), deadline=None)
@given(deep_chains())
def test_complete_equals_brute_force_on_deep_chains(
    tree: tuple[Groups, list[set[int]] | None],
) -> None:
    test_complete_equals_brute_force.hypothesis.inner_test(tree)  # type: ignore[attr-defined]


@pytest.mark.parametrize(
    ("seed", "branching", "ks"), [(1, 4, [5, 6, 8, 10, 12]), (2, 2, [5, 6, 8, 9, 9, 10, 11, 14])]
)
def test_complete_equals_one_program_of_the_whole_tree(
    seed: int, branching: int, ks: list[int]
) -> None:
    groups = trees.random_tree(seed, 150, branching, ks, 12, 0.5)
    choice = complete.choose_complete(groups)
    publish_groups(groups, choice)
    assert choice.gap == 0.0
    assert choice.depth(groups) == trees.whole_program(groups)


@settings(max_examples=examples(60))
@given(small_trees())
def test_greedy_publishes_as_many_people_as_complete(
    tree: tuple[Groups, list[set[int]] | None],
) -> None:
    groups, _ = tree
    greedy, best = complete_greedy.choose_greedily(groups), complete.choose_complete(groups)
    publish_groups(groups, greedy)
    assert greedy.people(groups) == best.people(groups)
    assert greedy.people(groups) >= selective.choose_selective(groups).people(groups)
    assert greedy.depth(groups) <= best.depth(groups)


@settings(max_examples=examples(60))
@given(small_trees())
def test_selective_drops_nothing_below_a_published_row(
    tree: tuple[Groups, list[set[int]] | None],
) -> None:
    groups, _ = tree
    choice = selective.choose_selective(groups)
    publish_groups(groups, choice)
    key = groups.keys[0]
    for dropped in np.flatnonzero(choice.target == DROPPED):
        for other in np.flatnonzero(choice.target > groups.level[dropped]):
            at = int(choice.target[other])
            assert key.maps[at][key.codes[dropped]] != key.maps[at][key.codes[other]]


@pytest.mark.parametrize("semantics", ["selective", "complete", "complete-greedy"])
def test_nothing_comes_of_nothing(semantics: str) -> None:
    groups = trees.groups_of([[0]], [[2], [3]], [])
    choice = choose_levels(groups, semantics)  # type: ignore[arg-type]
    assert len(publish_groups(groups, choice)) == 0


def test_stopping_early_states_a_proven_gap() -> None:
    groups = trees.random_tree(3, 400, 5, [5, 7, 9, 14], 9, 0.6)
    stopped = complete.choose_complete(groups, effort=0.001)
    best = complete.choose_complete(groups)
    publish_groups(groups, stopped)
    assert best.gap == 0.0
    assert stopped.people(groups) == best.people(groups)
    assert stopped.gap is not None
    assert stopped.gap > 0
    assert best.depth(groups) <= stopped.depth(groups) / (1 - stopped.gap) + 1e-6
