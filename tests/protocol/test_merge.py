"""The three ways to merge: how many tasks, how much memory, and always the same groups."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from effort import examples
from hypothesis import example, given, settings
from hypothesis import strategies as st
from tests.protocol.town import COMMONS, Town, sql

from halfmask.errors import RoomError
from halfmask.protocol.cell_plan import plan_for_cells
from halfmask.protocol.common_schema import Terms
from halfmask.protocol.records import layout
from halfmask.protocol.records import merge as network
from halfmask.protocol.records import merge as swap
from halfmask.protocol.schedule import Schedule

if TYPE_CHECKING:
    from collections.abc import Iterator

LAYOUT = plan_for_cells(COMMONS, sql()).layout


def partition(keys: list[int], frame: int, count: int) -> list[Any]:
    made = np.zeros(len(keys), LAYOUT.dtype)
    made["key"] = [bytes([1, 0]) + k.to_bytes(4, "big") for k in keys]
    made["rows"] = 1
    return layout.frames(LAYOUT, layout.combine_records(LAYOUT, made), frame, count)


def content(frames: list[Any]) -> list[tuple[bytes, int]]:
    whole = np.concatenate(frames)
    whole = whole[~LAYOUT.hollow(whole)]
    return [(k, int(n)) for k, n in zip(whole["key"].tolist(), whole["rows"], strict=True)]


def counted(keys: list[int]) -> list[tuple[bytes, int]]:
    return (
        [
            (bytes([1, 0]) + k.to_bytes(4, "big").rstrip(b"\0"), keys.count(k))
            for k in sorted(set(keys))
        ]
        if keys
        else []
    )


def network_by_tasks(left: list[Any], right: list[Any]) -> tuple[list[Any], int, int]:
    """Algorithm 4 as the schedule lays it out: result, tasks, iterations."""
    n = len(left)
    schedule = Schedule(Terms("network", 1, len(left[0]), 10**6), 2)
    object.__setattr__(schedule, "frames", lambda level: n * (1 << level))
    frames = {
        a: f
        for i, side in enumerate((left, right))
        for a, f in zip(schedule.node(0, i), side, strict=True)
    }
    tasks = iterations = 0
    for number, stage in enumerate(schedule.stages):
        if stage.kind != "split":
            continue
        iterations += 1
        for index in range(stage.tasks):
            task = schedule.task(number, index)
            pair = [frames.pop(a) for a in task.inputs if a is not None]
            frames.update(zip(task.outputs, layout.split_frames(LAYOUT, *pair), strict=True))
            tasks += 1
    return [frames[a] for a in schedule.node(1, 0)], tasks, iterations


@pytest.mark.parametrize("n", [1, 2, 3, 4, 7])
def test_network_merge_takes_n_iterations_and_n_n_plus_1_half_tasks_and_gives_2n_frames(
    n: int,
) -> None:
    left = partition(list(range(0, 6 * n, 2)), 3, n)
    right = partition(list(range(1, 6 * n, 2)), 3, n)
    merged, tasks, iterations = network_by_tasks(left, right)
    assert (iterations, tasks, len(merged)) == (n, n * (n + 1) // 2, 2 * n)
    assert content(merged) == content(partition(list(range(6 * n)), 3, 2 * n))


KEYS = st.lists(st.integers(1, 30), max_size=16)


@settings(max_examples=examples(80), deadline=None)
@given(KEYS, KEYS, st.integers(4, 6))
def test_network_merge_sorts_and_combines_whatever_it_gets(
    one: list[int], two: list[int], n: int
) -> None:
    merged, _, _ = network_by_tasks(partition(one, 4, n), partition(two, 4, n))
    assert content(merged) == content(partition(one + two, 4, 2 * n))


# Every partition holds the two sums, so two keys are in all of them.
SIDE = st.lists(st.integers(3, 12), max_size=4).map(lambda keys: [1, 2, *keys])


@settings(max_examples=examples(100), deadline=None)
@example([1, 2, 12, 7, 8, 11], [1, 2, 3, 10, 6], [1, 2, 5, 4, 8, 10], [1, 2, 6, 9, 11, 4])
@given(SIDE, SIDE, SIDE, SIDE)
def test_network_merge_of_merged_partitions_leaves_no_key_in_two_places(
    a: list[int], b: list[int], c: list[int], d: list[int]
) -> None:
    """Equal keys must not shrink a frame: what is merged next would not be sorted any more."""
    one, two, three, four = (partition(keys, 2, 3) for keys in (a, b, c, d))
    left, right = network_by_tasks(one, two)[0], network_by_tasks(three, four)[0]
    merged, _, _ = network_by_tasks(left, right)
    assert {len(f) for f in merged} == {2}
    assert content(merged) == content(partition(a + b + c + d, 2, 12))


@settings(max_examples=examples(80), deadline=None)
@given(KEYS, KEYS, st.integers(2, 5))
def test_swap_merge_gives_the_same(one: list[int], two: list[int], frame: int) -> None:
    sides = [iter(partition(keys, frame, 16)) for keys in (one, two)]
    merged = list(swap.merge_frames(LAYOUT, sides[0], sides[1], frame))
    assert all(len(f) == frame for f in merged[:-1])
    expected = content(partition(one + two, frame, 32))
    assert (content(merged) if merged else []) == expected


@settings(max_examples=examples(80), deadline=None)
@given(st.integers(1, 17).flatmap(lambda n: st.tuples(st.just(n), st.permutations(range(3 * n)))))
def test_the_network_of_comparisons_sorts_frames(given: tuple[int, list[int]]) -> None:
    n, numbers = given
    frames = [sorted(numbers[3 * i : 3 * i + 3]) for i in range(n)]
    for step in network.comparisons(n):
        touched = [p for pair in step for p in pair]
        assert len(set(touched)) == len(touched)
        for low, high in step:
            both = sorted(frames[low] + frames[high])
            frames[low], frames[high] = both[:3], both[3:]
    assert [v for f in frames for v in f] == sorted(numbers)


class Meter:
    """Counts how many frames are out of the spill at a time."""

    def __init__(self) -> None:
        self.frames: list[bytes] = []
        self.reads = 0

    def append(self, frame: bytes) -> None:
        self.frames.append(frame)

    def read(self, index: int) -> bytes:
        self.reads += 1
        return self.frames[index]


def test_swap_merge_holds_three_frames_however_many_groups_there_are() -> None:
    alive = peak = 0

    def counted_frames(keys: list[int]) -> Iterator[Any]:
        nonlocal alive, peak
        for frame in partition(keys, 10, 100):
            alive += 1
            peak = max(peak, alive)
            yield frame
            alive -= 1

    merged = swap.merge_frames(
        LAYOUT, counted_frames(list(range(0, 2000, 2))), counted_frames(list(range(1, 2000, 2))), 10
    )
    total = sum(len(f) for f in merged)
    assert total == 2000
    assert peak <= 2  # one frame of each side; the third is the one being filled


def test_eight_partitions_take_three_phases() -> None:
    stages = Schedule(Terms("swap", 4, 4, 64), 32).stages
    assert [s.kind for s in stages] == ["fold", "swap", "swap", "swap", "filter"]
    assert [s.tasks for s in stages] == [8, 4, 2, 1, 1]


def people(n: int) -> list[dict[str, Any]]:
    return [{"a": i, "b": "x", "s": i, "k": 1} for i in range(n)]


def test_a_tree_that_outgrows_memory_is_refused_and_the_others_are_not() -> None:
    text = "SELECT a, COUNT(*) AS n FROM people GROUP BY a GUARANTEE k = 1"
    for merge, ram in (("tree", 1024), ("swap", 1024), ("network", 1024)):
        town = Town(people(20), terms=Terms(merge, 4, 4, 64, ram=ram))  # type: ignore[arg-type]
        if merge == "tree":
            with pytest.raises(RoomError):
                town.ask(text)
        else:
            found = town.ask(text)
            assert found is not None
            assert found[0].rows.num_rows == 20


@pytest.mark.parametrize("merge", ["tree", "swap", "network"])
def test_more_groups_than_room_is_an_error_not_a_loss(merge: Any) -> None:
    text = "SELECT a, COUNT(*) AS n FROM people GROUP BY a GUARANTEE k = 1"
    with pytest.raises(RoomError):
        Town(people(30), terms=Terms(merge, 4, 4, 6)).ask(text)


@pytest.mark.parametrize("merge", ["tree", "swap", "network"])
@pytest.mark.parametrize("cells", [1, 4, 5, 9, 23, 64, 65])
def test_every_frame_is_made_once_and_used_where_it_was_made_for(merge: Any, cells: int) -> None:
    schedule = Schedule(Terms(merge, 4, 3, 20), cells)
    made: set[Any] = set()
    for number, stage in enumerate(schedule.stages):
        new: set[Any] = set()
        for index in range(stage.tasks):
            task = schedule.task(number, index)
            assert {a for a in task.inputs if a is not None} <= made
            assert not set(task.outputs) & (made | new)
            new |= set(task.outputs)
        made |= new
