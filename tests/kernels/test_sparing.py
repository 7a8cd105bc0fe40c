"""What Python and NumPy do in place of a kernel that is not compiled is what the kernel does."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest

from halfmask.kernels import distance, grouping, lattice
from halfmask.kernels.compilation import compiler
from halfmask.kernels.compilation.cache import KernelCache
from halfmask.kernels.compilation.compiler import Sparing, interpret, kernel
from halfmask.kernels.distance import Points
from halfmask.kernels.partition import construction, improvement, search_tree

ROUNDS = 30


@kernel
def double(x):
    return 2 * x


@kernel
def double_all(numbers):
    total = 0
    for i in range(len(numbers)):
        total += double(numbers[i])
    return total


def same(one, other):
    for a, b in zip(one, other, strict=True):
        assert np.array_equal(a, b)
        assert np.asarray(a).dtype == np.asarray(b).dtype


def test_a_kernel_is_compiled_when_enough_was_asked_of_it():
    asked = []

    def plain(numbers):
        asked.append(len(numbers))
        return 0

    spared = Sparing(double_all, len, 5, plain)
    spared._kept = False
    assert [spared(np.arange(n)) for n in (3, 2, 3, 1)] == [0, 0, 6, 0]
    assert asked == [3, 2]  # 3 more were too many; from then on the kernel is there


def test_what_is_too_much_for_python_is_left_to_the_kernel():
    @kernel
    def double_each(numbers):
        return 2 * numbers.sum()

    spared = Sparing(
        double_each,
        lambda _: 1,
        10,
        lambda numbers: NotImplemented if len(numbers) > 3 else len(numbers),
        lambda given, _: given,
    )
    spared._kept = False
    assert spared(np.arange(3)) == 3  # not doubled: Python did it
    assert spared._done == 4  # the call, and what it gave
    assert spared(np.arange(4)) == 12


@pytest.mark.parametrize(
    ("loaded", "given"), [(False, [0, 0, 3]), (True, [0, 12, 3])], ids=["first", "further"]
)
def test_what_an_earlier_process_compiled_is_loaded_sooner(tmp_path, monkeypatch, loaded, given):
    @kernel
    def triple(numbers):
        return 3 * len(numbers)

    triple._cache = KernelCache(triple.py_func, tmp_path)
    assert not Sparing(triple, len, 50)._kept
    triple._cache._path("any", triple.targetctx.codegen()).touch()
    monkeypatch.setattr(compiler, "_loaded", lambda: loaded)
    spared = Sparing(triple, len, 50, lambda _: 0)
    # A tenth of 50 is done by Python, or a fiftieth of it.
    assert [spared(np.arange(n)) for n in (1, 4, 1)] == given


def test_python_runs_the_parts_of_a_kernel_too():
    @kernel
    def outer(numbers):
        return double_all(numbers) + 1

    before = len(double.signatures)
    assert interpret(outer)(np.arange(4)) == 13
    assert not outer.signatures
    assert len(double.signatures) == before


@pytest.mark.parametrize("width", [1, 2, 3])
def test_groups_of_keys(width):
    rng = np.random.default_rng(width)
    for _ in range(ROUNDS):
        n = int(rng.integers(0, 60))
        keys = rng.integers(0, 4, (n, width)).astype(np.uint64)
        keys |= rng.integers(0, 3, (n, width)).astype(np.uint64) << np.uint64(50)
        rows = rng.integers(1, 5, n)
        words = np.arange(width)[: int(rng.integers(0, width + 1))]
        shifts = np.full(len(words), 50, np.uint64)
        masks = np.full(len(words), 3, np.uint64)
        maps = rng.integers(0, 4, 4 * len(words)).astype(np.uint64)
        given = keys, rows, words, shifts, masks, 4 * np.arange(len(words)), maps
        same(grouping.regroup.plain(*given), grouping.regroup.compiled(*given))


def test_groups_of_keys_by_hand():
    keys = np.array([[5], [3], [5], [1]], np.uint64)
    none, fields = np.empty(0, np.int64), np.empty(0, np.uint64)
    ids, unique, sums = grouping.regroup.plain(
        keys, np.array([1, 2, 3, 4]), none, fields, fields, none, fields
    )
    assert ids.tolist() == [0, 1, 0, 2]
    assert unique.tolist() == [[5], [3], [1]]
    assert sums.tolist() == [4, 2, 4]


def test_merged_histograms():
    rng = np.random.default_rng(3)
    for _ in range(ROUNDS):
        units, domain, groups = int(rng.integers(1, 30)), 5, 4
        ids = rng.integers(0, groups, units).astype(np.int32)
        sizes = rng.integers(0, 4, units)
        starts = np.concatenate([[0], np.cumsum(sizes)])
        values = rng.integers(0, domain, sizes.sum()).astype(np.int32)
        counts = rng.integers(1, 9, len(values))
        given = ids, groups, starts, values, counts, domain
        same(grouping.merge.plain(*given), grouping.merge.compiled(*given))


@pytest.mark.parametrize("geometric", [True, False])
def test_walks_over_a_lattice(geometric):
    rng = np.random.default_rng(8)
    heights = np.array([2, 1, 3])
    size = 3 * 2 * 4
    scores = np.sort(rng.random((3, 4)), axis=1)
    weights = np.array([0.5, 0.2, 0.3])
    costs = scores, weights, geometric
    floor = lattice.bounds(heights, *costs)
    each = [(i % 3, i // 3 % 2, i // 6) for i in range(size)]
    own = [lattice.combine.plain(scores[[0, 1, 2], levels], *costs[1:]) for levels in each]
    assert floor == pytest.approx(own, rel=1e-15)
    one = [scores[0, 1], scores[1, 1], scores[2, 2]]  # node 1 + 1 * 3 + 2 * 6
    wanted = np.exp(np.log1p(one) @ weights) - 1 if geometric else np.dot(one, weights)
    assert floor[16] == pytest.approx(wanted)
    order = np.argsort(-floor)
    for _ in range(ROUNDS):
        state = (rng.random(size) < 0.2).astype(np.int8)
        source = np.where(rng.random(size) < 0.3, rng.integers(0, 5, size), -1).astype(np.int32)
        penalties = rng.random((5, 3)) / 4
        found = []
        for run in (lattice.advance.plain, lattice.advance.compiled):
            mine = state.copy(), source.copy()
            facts = lattice.LatticeFacts(floor, heights, *costs, *mine, penalties)
            at = run(order, 0, facts, 0.5)
            found.append((at, *mine))
        same(*found)


def test_what_suppressed_rows_cost():
    rng = np.random.default_rng(5)
    keys = rng.integers(0, 16, (40, 1)).astype(np.uint64)
    given = (
        keys, rng.integers(0, 3, 40), np.array([0, 0]), np.array([0, 2], np.uint64),
        np.array([3, 3], np.uint64), np.array([0, 4]), rng.random(8),
    )  # fmt: skip
    same(lattice.penalty.plain(*given), lattice.penalty.compiled(*given))


def test_a_long_walk_is_left_to_the_kernel():
    size = 2 * lattice._STEPS
    heights, weights = np.array([1, lattice._STEPS - 1]), np.array([0.5, 0.5])
    costs = np.zeros((2, lattice._STEPS)), weights, False
    state = np.full(size, lattice.HOPELESS, np.int8)
    source, penalties = np.full(size, -1, np.int32), np.zeros((1, 2))
    facts = lattice.LatticeFacts(np.zeros(size), heights, *costs, state, source, penalties)
    order = np.arange(size)
    assert lattice.advance.plain(order, 0, facts, 1.0) is NotImplemented
    assert lattice.advance.plain(order, lattice._STEPS, facts, 1.0) == size
    state[size - 1] = 0  # nothing is above the last
    assert lattice.advance.plain(order, lattice._STEPS, facts, 1.0) == size - 1


def test_everything_in_a_box_is_ruled_out():
    state = np.zeros(12, np.int8)
    lattice.rule_out(lattice.by_level(state, np.array([2, 3])), (0, 1), (1, 2))
    assert np.flatnonzero(state).tolist() == [3, 4, 6, 7]  # level + 3 * level


def test_bits_of_classes():
    rng = np.random.default_rng(2)
    for _ in range(ROUNDS):
        lengths = rng.integers(1, 9, 5)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        fits, rows = rng.integers(0, 12, starts[-1]), rng.integers(1, 4, 12)
        codes = rng.integers(0, 6, (2, 12)).astype(np.int32)
        sizes = np.array([min(3, int(rows[fits[a:b]].sum())) for a, b in pairwise(starts)])
        given = lattice.Fits(sizes, starts, fits, rows, np.arange(12), codes)
        same(lattice.entropies.plain(given, 6), lattice.entropies.compiled(given, 6))


def random_points(rng, n):
    """Rows with numbers, some of them missing, categories, and labels of a large hierarchy."""
    numbers = np.round(rng.random((n, 2)), 1)
    numbers[rng.random((n, 2)) < 0.1] = np.nan
    sizes = np.array([3, 4])
    table = []
    for size in sizes:
        far = np.round(rng.random((size, size)), 1)
        table.append(np.triu(far, 1) + np.triu(far, 1).T)
    codes = np.stack([rng.integers(0, size, n) for size in sizes], axis=1).astype(np.int32)
    return Points(
        numbers, np.array([1.0, 0.7]), codes, np.concatenate([one.ravel() for one in table]),
        np.array([0, 9]), sizes, rng.integers(0, 3, (n, 2)).astype(np.int32),
        np.array([0.25, 0.3]), np.zeros((5, 3), np.int64),
    )  # fmt: skip


def random_demands(rng, n, columns):
    values = rng.integers(-1, 5, (n, columns)).astype(np.int32)
    k = rng.integers(1, 5, n)
    return construction.Demands(
        k, values, rng.integers(0, 4, (n, columns)), np.ones((n, columns)),
        np.full((columns, 5), 0.2),
    )  # fmt: skip


@pytest.mark.parametrize("columns", [0, 1, 2])
def test_classes_around_outer_rows_and_grown_ones(columns):
    rng = np.random.default_rng(columns)
    for _ in range(ROUNDS):
        n = int(rng.integers(1, 90))
        given = random_points(rng, n), random_demands(rng, n, columns)
        ordinal = np.array([True, False])
        same([construction.mdav_classes.plain(*given, ordinal)],
             [construction.mdav_classes.compiled(*given, ordinal)])  # fmt: skip
        draws = rng.random(n + 1)
        for improved in (True, False):
            one = construction.k_member.plain(*given, draws, improved)
            same([one], [construction.k_member.compiled(*given, draws, improved)])


@pytest.mark.parametrize("columns", [0, 1])
def test_rows_cut_at_medians_and_the_tree_of_their_cuts(columns):
    rng = np.random.default_rng(columns)
    for _ in range(ROUNDS):
        n = int(rng.integers(1, 90))
        points, demands = random_points(rng, n), random_demands(rng, n, columns)
        places = np.ascontiguousarray(np.round(10 * np.nan_to_num(points.numbers)), np.int32)
        points = points._replace(slots=np.array([[0, 0, 0], [0, 1, 0]]))
        for largest, whole in ((0, False), (0, True), (20, False)):
            given = points, places, demands, largest, whole
            same(construction.cut.plain(*given), construction.cut.compiled(*given))
        found = []
        for fill in (search_tree._build.plain, search_tree._build.compiled):
            spans, boxes = np.zeros((4, 8 * n + 64), np.int64), np.zeros((2, 8 * n + 64, 2), int)
            order, leaf = np.arange(n), np.zeros(n, np.int64)
            nodes = fill(points, places, 4, order, spans, *boxes, leaf)
            found.append((nodes, order, spans, boxes, leaf))
        same(*found)


def test_radii_of_classes():
    rng = np.random.default_rng(4)
    for _ in range(ROUNDS):
        points = random_points(rng, 12)
        lengths = rng.integers(1, 9, 5)
        starts = np.concatenate([[0], np.cumsum(lengths)])
        fits, rows = rng.integers(0, 12, starts[-1]), rng.integers(1, 4, 12)
        codes = np.zeros((2, 12), np.int32)
        sizes = np.array([min(3, int(rows[fits[a:b]].sum())) for a, b in pairwise(starts)])
        given = points, lattice.Fits(sizes, starts, fits, rows, rng.permutation(12), codes)
        same(lattice.radii.plain(*given), lattice.radii.compiled(*given))


def test_failing_classes_join_near_ones():
    rng = np.random.default_rng(9)
    for _ in range(ROUNDS):
        n = int(rng.integers(2, 40))
        points, k = random_points(rng, n), rng.integers(1, 6, n)
        ids = np.unique(rng.integers(0, n, n), return_inverse=True)[1]
        found = []
        for absorb in (improvement.absorb.plain, improvement.absorb.compiled):
            state = improvement.link_classes(points, k, ids.copy())
            failing = (state.size < state.need) | (np.arange(n) == 0)
            absorb(points, k, state, failing, np.zeros((0, 0), np.int32))
            found.append(state)
        order, ends = np.argsort(ids), np.append(0, np.cumsum(np.bincount(ids, minlength=n)))
        given = points, order, ends
        same([distance.diameters.plain(*given)], [distance.diameters.compiled(*given)])
        same(*found)


def test_pairs_of_wide_rows_are_more_work():
    starts = np.array([0, 10, 30])
    few = random_points(np.random.default_rng(1), 30)
    many = few._replace(numbers=np.zeros((30, 156)))
    assert distance._pairs(few, None, starts) == 100 + 400
    assert distance._pairs(many, None, starts) == 20 * (100 + 400)  # 160 columns for 8


def test_classes_as_lists_by_hand():
    points = random_points(np.random.default_rng(1), 5)
    state = improvement.link_classes(points, np.array([2, 1, 4, 1, 3]), np.array([1, 0, 1, 0, 1]))
    assert state.head.tolist() == [1, 0, -1, -1, -1]
    assert state.next.tolist() == [2, 3, 4, -1, -1]
    assert state.size.tolist() == [2, 3, 0, 0, 0]
    assert state.need.tolist() == [1, 4, 0, 0, 0]
    far = distance.matrix(points, np.arange(5))
    assert state.diameter.tolist() == [far[1, 3], max(far[0, 2], far[0, 4], far[2, 4]), 0, 0, 0]
    assert far.tolist() == far.T.tolist()
    assert far[1, 3] == distance.distance(points, 1, 3)


def test_classes_around_outer_rows_by_hand():
    numbers = np.array([[0.0], [9.0], [1.0], [8.0], [4.0]])
    none = np.zeros((5, 0), np.int32)
    points = Points(
        numbers, np.ones(1), none, np.empty(0), np.empty(0, np.int64), np.empty(0, np.int64),
        none, np.empty(0), np.zeros((1, 3), np.int64),
    )  # fmt: skip
    demands = construction.Demands(
        np.full(5, 2), none, np.zeros((5, 0), np.int64), np.zeros((5, 0)), np.zeros((0, 0))
    )
    found = construction.mdav_classes.plain(points, demands, np.zeros(0, np.bool_))
    # The mean is 4.4: 9 is farthest, with 8; then 0, the farthest from 9, with 1; 4 is left over.
    assert found.tolist() == [1, 0, 1, 0, -1]
