"""Rows that move between classes: the loss falls by what is said, and everybody's demand is met."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.anonymize.partition import widths
from halfmask.anonymize.partition.task import task_of
from halfmask.kernels.partition.label_loss import move_rows, room_for
from halfmask.models.requirements import prepare


def people(rng, rows):
    data = {
        "age": rng.integers(20, 60, rows),
        "job": rng.choice(list("abcdefgh"), rows),
        "city": rng.choice(["x", "y", "z"], rows, p=[0.7, 0.2, 0.1]),
        "illness": rng.choice(["flu", "cold", "none"], rows),
        "k_i": rng.integers(2, 6, rows),
    }
    schema = {
        "columns": {
            "age": {"role": "quasi", "kind": "numeric", "step": 1},
            "job": {"role": "quasi", "hierarchy": {"flat": True}},
            "city": {"role": "quasi", "hierarchy": {"flat": True}},
            "illness": "sensitive",
        },
        "policy": {"k": "k_i"},
    }
    return hm.read(pa.table(data), schema=schema)


def lost(w, ids):
    """What all classes lose, by hand: bits held and places between, class by class."""
    total = 0.0
    for one in np.unique(ids):
        rows = np.flatnonzero(ids == one)
        wide = -w.alone
        for c, places in enumerate(w.places[rows].T):
            low, high = places.min(), places.max()
            if w.weights[c] == 0.0 or low == high:
                continue
            if w.tables[c] >= 0:
                wide += w.pairs[w.tables[c] + low * w.sizes[c] + high]
            else:
                begin = w.begins[c]
                wide += min(float(w.high[begin + high] - w.low[begin + low]), w.weights[c])
        for word, gain in enumerate(w.gain):
            held = np.bitwise_or.reduce(w.bits[rows, word])
            wide += int(held).bit_count() * gain
        total += len(rows) * max(wide, 0.0)
    return total


@pytest.mark.parametrize("labels", ["sets", "tight"])
@pytest.mark.parametrize("valued", [False, True], ids=["k", "k and l"])
def test_rows_move_where_labels_lose_less(labels, valued):
    rng = np.random.default_rng(3)
    table = people(rng, 120)
    models = [hm.PersonalKAnonymity()] + ([hm.LDiversity(2, "illness")] if valued else [])
    task = task_of(prepare(table, models), models, options={"metric": "loss", "labels": labels})
    w = widths.widths_of(task)
    ids = np.repeat(np.arange(12), 10)[rng.permutation(120)]
    assert not task.failing(ids).any()
    lists, free = widths._lists(task, w, ids)
    before, moved = lost(w, ids), 0
    near = np.tile(np.arange(0, 120, 2, dtype=np.int32), (120, 1))
    for sweep in range(1, 5):
        state = np.array([0, free, 0, -sweep])
        gained = move_rows(w, task.demands, lists, near, state, room_for(w, task.demands), 10**9)
        after = lost(w, lists.ids)
        assert before - after == pytest.approx(gained, abs=1e-4)  # widths are float32
        moved += int(np.count_nonzero(lists.ids != ids))
        ids, before = lists.ids.copy(), after
        assert not task.failing(np.unique(ids, return_inverse=True)[1]).any()
    assert moved > 20
    for c in range(len(lists.head)):  # the lists hold what ids say
        held, row = [], lists.head[c]
        while row >= 0:
            held.append(row)
            row = lists.next[row]
        assert sorted(held) == np.flatnonzero(ids == c).tolist()
        assert lists.size[c] == len(held)


def test_a_lone_stranger_leaves_a_class():
    """By hand: nine people of job a with one of job b; the class of b takes that one in."""
    table = hm.read(
        pa.table({"job": ["a"] * 9 + ["b"] * 6}),
        schema={"columns": {"job": {"role": "quasi", "hierarchy": {"flat": True}}}},
    )
    task = task_of(table, [hm.KAnonymity(5)], options={"metric": "loss", "labels": "sets"})
    w = widths.widths_of(task)
    ids = np.array([0] * 10 + [1] * 5)
    lists, free = widths._lists(task, w, ids)
    near = np.tile(np.array([0, 14], dtype=np.int32), (15, 1))
    state = np.array([0, free, 0, -1])
    gained = move_rows(w, task.demands, lists, near, state, room_for(w, task.demands), 10**9)
    assert gained == pytest.approx(10.0)  # ten people whose label no longer holds both
    assert lists.ids.tolist() == [0] * 9 + [1] * 6


@pytest.mark.parametrize("labels", ["sets", "tight"])
@pytest.mark.parametrize("valued", [False, True], ids=["k", "k and l"])
def test_parts_of_a_large_table_are_the_same_on_any_number_of_cores(labels, valued, monkeypatch):
    monkeypatch.setattr(widths, "_LARGE", 100)
    monkeypatch.setattr(widths, "_PART", 40)
    table = people(np.random.default_rng(5), 240)
    models = [hm.PersonalKAnonymity()] + ([hm.LDiversity(2, "illness")] if valued else [])
    task = task_of(prepare(table, models), models, options={"metric": "loss", "labels": labels})
    w = widths.widths_of(task)
    ids = np.repeat(np.arange(24), 10)[np.random.default_rng(6).permutation(240)]
    assert not task.failing(ids).any()
    parts = widths._parts(task, ids)
    assert len(parts) == 6
    assert sorted(np.concatenate(parts).tolist()) == list(range(240))
    assert sum(len(np.unique(ids[rows])) for rows in parts) == 24  # classes stay whole
    found = []
    for cores in (1, 2, 5):
        monkeypatch.setattr(widths, "ThreadPoolExecutor", partial(ThreadPoolExecutor, cores))
        found.append(widths.improve_by_labels(task, w, ids))
    assert all(np.array_equal(found[0], one) for one in found)
    assert not task.failing(found[0]).any()
    assert lost(w, found[0]) < 0.8 * lost(w, ids)
