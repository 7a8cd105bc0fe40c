"""PRAM and rank swapping against plain Python, written from what sdcMicro documents of its own.

The package itself is not run here. Its ``pram`` has a matrix whose diagonal is ``pd`` or more, made
invariant in two stages and mixed with standing still by ``alpha``; its ``rankSwap`` swaps values
whose ranks differ by at most ``P`` percent of the rows.
"""

from __future__ import annotations

import random
from collections import Counter
from fractions import Fraction
from statistics import correlation

import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm

M = hm.masks


def two_stages(counts, stays, alpha):
    """The invariant matrix: first away by ``stays``, then back by Bayes; ``alpha`` of the way."""
    size, total = len(counts), sum(counts)
    share = [Fraction(one, total) for one in counts]
    away = [
        [stays[i] if i == j else (1 - stays[i]) / (size - 1) for j in range(size)]
        for i in range(size)
    ]
    arrives = [sum(share[i] * away[i][j] for i in range(size)) for j in range(size)]
    back = [[share[j] * away[j][k] / arrives[k] for j in range(size)] for k in range(size)]
    both = [
        [sum(away[i][k] * back[k][j] for k in range(size)) for j in range(size)]
        for i in range(size)
    ]
    return [[alpha * both[i][j] + (1 - alpha) * (i == j) for j in range(size)] for i in range(size)]


@given(
    st.lists(st.tuples(st.integers(1, 400), st.integers(0, 10)), min_size=2, max_size=6),
    st.sampled_from([Fraction(1, 2), Fraction(8, 10)]),
    st.sampled_from([Fraction(1, 2), Fraction(1)]),
)
def test_a_matrix_of_two_stages_is_taken_and_keeps_counts(given, pd, alpha):
    counts = [count for count, _ in given]
    stays = [pd + (1 - pd) * Fraction(part, 10) for _, part in given]
    matrix = two_stages(counts, stays, alpha)
    assert [sum(c * row[j] for c, row in zip(counts, matrix, strict=True))
            for j in range(len(counts))] == counts  # fmt: skip
    assert all(sum(row) == 1 for row in matrix)
    step = M.Pram("job", matrix=[[float(one) for one in row] for row in matrix])
    assert sum(step.correct([float(one) for one in counts])) == pytest.approx(sum(counts))


COUNTS = {"a": 12_000, "b": 6_000, "c": 1_500, "d": 500}
JOBS = [job for job, count in COUNTS.items() for _ in range(count)]


def transitions(matrix):
    """How often each value became which, in a release by ``matrix``."""
    people = hm.read(
        {"job": JOBS, "was": JOBS}, schema={"columns": {"job": "quasi", "was": "quasi"}}
    )
    found = hm.mask(people, M.Pram("job", matrix=matrix), seed=3).to_arrow()
    return Counter(zip(found["was"].to_pylist(), found["job"].to_pylist(), strict=True))


def plain_transitions(matrix):
    """The same by one draw for each row."""
    draw, values = random.Random(3), [*COUNTS]
    return Counter((job, draw.choices(values, matrix[values.index(job)])[0]) for job in JOBS)


def test_values_become_others_as_often_as_one_draw_a_row_lets_them():
    pd = [Fraction(8, 10), Fraction(85, 100), Fraction(9, 10), Fraction(1)]
    exact = two_stages(list(COUNTS.values()), pd, Fraction(1, 2))
    matrix = [[float(one) for one in row] for row in exact]
    ours, plain = transitions(matrix), plain_transitions(matrix)
    for i, (was, count) in enumerate(COUNTS.items()):
        for j, now in enumerate(COUNTS):
            chance = matrix[i][j]
            spread = (count * chance * (1 - chance)) ** 0.5
            assert abs(ours[was, now] - count * chance) <= 5 * spread + 1e-9
            assert abs(ours[was, now] - plain[was, now]) <= 8 * spread + 1e-9
    after = Counter(now for (_, now), count in ours.items() for _ in range(count))
    for job, count in COUNTS.items():
        assert after[job] == pytest.approx(count, abs=5 * count**0.5)


@pytest.mark.parametrize("pd", [0.5, 0.8, 0.95])
def test_our_own_invariant_matrix_keeps_as_much_as_is_asked_for(pd):
    people = hm.read({"job": JOBS}, schema={"columns": {"job": "quasi"}})
    figures = hm.mask(people, M.Pram("job", keep=pd), seed=3).steps[0]["figures"]
    # By the definition no value stays less often than pd.
    spread = 5 * (pd * (1 - pd) / len(JOBS)) ** 0.5
    assert figures["columns"]["job"]["changed"] <= 1 - pd + spread


def plain_rank_swap(size, window, seed):
    """Per rank its partner: from below, one at random of those above who are free and near."""
    draw, partner = random.Random(seed), list(range(size))
    free = [True] * size
    for rank in range(size):
        near = [r for r in range(rank + 1, min(rank + window, size - 1) + 1) if free[r]]
        if free[rank] and near:
            other = draw.choice(near)
            partner[rank], partner[other] = other, rank
            free[other] = False
        free[rank] = False
    return partner


def our_rank_swap(size, within, seed):
    order = random.Random(seed).sample(range(size), size)
    people = hm.read({"v": order, "was": order}, schema={"columns": {"v": "quasi", "was": "quasi"}})
    found = hm.mask(people, M.RankSwap("v", within=within), seed=seed).to_arrow()
    pairs = dict(zip(found["was"].to_pylist(), found["v"].to_pylist(), strict=True))
    return [pairs[rank] for rank in range(size)]


@pytest.mark.parametrize(("size", "percent"), [(1_000, 5), (1_000, 1), (2_000, 15)])
def test_ranks_are_swapped_as_by_the_definition(size, percent):
    window = size * percent // 100
    ours, plain = [], []
    for seed in range(4):
        mine = our_rank_swap(size, percent / 100, seed)
        assert all(mine[mine[rank]] == rank for rank in range(size))  # they are swaps
        ours += [abs(rank - other) for rank, other in enumerate(mine)]
        plain += [abs(r - other) for r, other in enumerate(plain_rank_swap(size, window, seed))]
        same = list(range(size))
        assert correlation(same, mine) == pytest.approx(
            correlation(same, plain_rank_swap(size, window, seed)), abs=0.01
        )
    assert max(ours) <= window
    assert max(plain) <= window
    # Distances are spread alike: each tenth of the window takes as many, within chance.
    for tenth in range(10):
        low, high = window * tenth / 10, window * (tenth + 1) / 10
        counts = [sum(low < one <= high for one in found) for found in (ours, plain)]
        assert counts[0] == pytest.approx(counts[1], abs=7 * max(counts[1], 30) ** 0.5)
    assert sum(one == 0 for one in ours) <= sum(one == 0 for one in plain) + size // 50
