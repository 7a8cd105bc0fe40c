"""Record linkage against plain Python: all permutations, all pairs, expectation maximization."""

from __future__ import annotations

import math
from itertools import permutations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.metrics.risk.linkage import fellegi_sunter, fit_mixture, linkage
from halfmask.metrics.sides import sides

SCHEMA = {"x": "quasi", "c": "quasi"}


def masked(seed, rows=7):
    random = np.random.default_rng(seed)
    x = random.permutation(100)[:rows].astype(float)
    c = random.choice(list("abc"), rows)
    other = np.where(random.random(rows) < 0.3, random.choice(list("abc"), rows), c)
    noisy = x + random.normal(0, 15, rows)
    original = hm.read(pa.table({"x": x, "c": c}), schema=SCHEMA)
    return original, hm.read(pa.table({"x": noisy, "c": other}), schema=SCHEMA), x, c, noisy, other


def distances(x, c, noisy, other):
    span = max(x) - min(x)
    return [
        [abs(x[i] - noisy[j]) / span + (c[i] != other[j]) for j in range(len(x))]
        for i in range(len(x))
    ]


@pytest.mark.parametrize("seed", range(8))
def test_nearest_second_nearest_and_best_matching_by_trying_all(seed):
    original, released, *values = masked(seed)
    found = linkage(sides(original, released), same_order=True)
    far = distances(*values)
    rows = range(len(far))
    order = [sorted(rows, key=lambda j, i=i: far[i][j]) for i in rows]
    assert found.distance.value == pytest.approx(sum(order[i][0] == i for i in rows) / len(far))
    assert found.second.value == pytest.approx(sum(order[i][1] == i for i in rows) / len(far))
    costs = {p: sum(far[i][p[i]] for i in rows) for p in permutations(rows)}
    least = min(costs.values())
    # Several matchings may cost the same, as where two people stand on one side of both rows.
    best = [p for p, cost in costs.items() if cost < least + 1e-6]
    shares = [sum(p[i] == i for i in rows) / len(far) for p in best]
    matched = found.assignment.value
    assert min(abs(matched - share) for share in shares) < 1e-9
    x, _, noisy, _ = values
    band = 0.1 * math.sqrt(sum((v - sum(x) / len(x)) ** 2 for v in x) / len(x))
    inside = sum(abs(a - b) <= band for a, b in zip(x, noisy, strict=True)) / len(x)
    assert found.interval.value == pytest.approx(inside)
    linked = (found.distance.value + matched) / 2
    assert found.risk == pytest.approx((linked + inside) / 2)


def plain_em(bits, counts, size, rounds=200, apart_by=0.0):
    """The same mixture, pattern by pattern and column by column."""
    columns, total = len(bits[0]), sum(counts)

    def clip(value):
        return min(max(value, 1e-4), 1 - 1e-4)

    share, match = 1 / size, [0.9 + apart_by * j for j in range(columns)]
    other = [clip(sum(c * b[j] for b, c in zip(bits, counts, strict=True)) / total)
             for j in range(columns)]  # fmt: skip
    for _ in range(rounds):
        belief = []
        for b in bits:
            one = share * math.prod(m if v else 1 - m for m, v in zip(match, b, strict=True))
            two = (1 - share) * math.prod(u if v else 1 - u for u, v in zip(other, b, strict=True))
            belief.append(one / (one + two))
        inside = sum(c * w for c, w in zip(counts, belief, strict=True))
        old, match, other = match, [], []
        for j in range(columns):
            agreed = sum(c * w * b[j] for b, c, w in zip(bits, counts, belief, strict=True))
            apart = sum(c * (1 - w) * b[j] for b, c, w in zip(bits, counts, belief, strict=True))
            other.append(clip(apart / (total - inside)))
            match.append(max(clip(agreed / inside), other[j]))
        share = min(max(inside / total, 1e-9), 0.5)
        if max(abs(a - b) for a, b in zip(match, old, strict=True)) < 1e-9:
            break
    return match, other


@given(st.data())
def test_odds_are_those_of_a_plain_expectation_maximization(data):
    columns = data.draw(st.integers(2, 4))
    size = data.draw(st.integers(5, 30))
    kinds = data.draw(
        st.lists(st.integers(0, 2**columns - 1), min_size=2, max_size=2**columns, unique=True)
    )
    counts = data.draw(st.lists(st.integers(1, 50), min_size=len(kinds), max_size=len(kinds)))
    bits = [[kind >> j & 1 for j in range(columns)] for kind in kinds]
    match, other = fit_mixture(np.array(bits, float), np.array(counts, float), size)
    one, two = plain_em(bits, counts, size)
    # Between two maxima, rounding decides which is reached: such draws say nothing.
    near, _ = plain_em(bits, counts, size, apart_by=1e-9)
    assume(near == pytest.approx(one, abs=1e-7))
    assert match == pytest.approx(one, abs=1e-6)
    assert other == pytest.approx(two, abs=1e-6)


def test_the_likeliest_pair_by_hand():
    # Everybody's c is published as it is, x too but for one person who takes another's.
    rows = {"x": list("pqrstu"), "c": list("aabbcc")}
    changed = {"x": list("qqrstu"), "c": rows["c"]}
    schema = {"x": "quasi", "c": "quasi"}
    both = sides(hm.read(pa.table(rows), schema=schema), hm.read(pa.table(changed), schema=schema))
    every = np.arange(6)
    found, bands, weights = fellegi_sunter(both.quasi, every, every, np.random.default_rng(0))
    # The first released row is q's in both columns: five of six are found.
    assert found.value == pytest.approx(5 / 6)
    assert bands.links + bands.possible + bands.non_links == 36
    match, other = {n: m for n, m, _ in weights}, {n: u for n, _, u in weights}
    assert match["x"] > 0.9
    assert other["x"] < other["c"] < 0.3


@pytest.mark.parametrize(("gap", "share"), [(0.0, 1.0), (0.09, 1.0), (0.11, 0.0)])
def test_the_band_is_a_tenth_of_the_standard_deviation(gap, share):
    x = np.arange(20.0)
    moved = x + gap * x.std()
    original = hm.read(pa.table({"x": x, "c": ["a"] * 20}), schema=SCHEMA)
    released = hm.read(pa.table({"x": moved, "c": ["a"] * 20}), schema=SCHEMA)
    assert linkage(sides(original, released), same_order=True).interval.value == share


def test_people_whose_rows_were_left_out_count_by_their_share():
    # Two of the four people at 1 have no row: six pairs, all with their own number.
    original = hm.read(pa.table({"x": [1.0] * 4 + [9.0] * 4, "c": ["a"] * 8}), schema=SCHEMA)
    released = hm.read(pa.table({"x": [1.0] * 2 + [9.0] * 4, "c": ["a"] * 6}), schema=SCHEMA)
    found = linkage(sides(original, released)).interval
    assert (found.value, found.n) == (1.0, 6)


def of_people(ids, values, **more):
    schema = {"table": {"person": "id"}, "columns": {"a": "quasi"}}
    table = hm.read({"id": ids, "a": values}, schema=schema)
    return sides(table, hm.read({"a": more.get("released", values)}, schema={"a": "quasi"}))


def test_any_row_of_a_person_is_the_right_one_to_find():
    ids = np.repeat(np.arange(30), 3)
    copy = of_people(ids.tolist(), [f"v{i}" for i in ids])  # each person alone, in three equal rows
    by_rows, by_people = linkage(copy), linkage(copy, ids)
    assert by_rows.distance.value < 0.6
    assert by_people.distance.value == by_people.second.value == 1
    assert by_people.baseline == pytest.approx(3 / 90)


def test_rows_of_a_class_are_shared_among_its_people():
    ids = np.array([0] * 30 + [1] * 10)
    found = linkage(of_people(ids.tolist(), ["x"] * 40), ids, sample=40)
    # A row stands for one's person by chance: (30 * 30 + 10 * 10) / (40 * 40).
    assert found.baseline == pytest.approx(0.625)
    assert 0.4 < found.distance.value < 0.85


def test_people_are_found_by_their_rows_elsewhere_where_the_order_was_kept():
    ids = np.array([0, 0, 1, 1])
    swapped = of_people(ids.tolist(), [1, 2, 8, 9], released=[2, 1, 9, 8])
    assert linkage(swapped, same_order=True).distance.value == 0
    assert linkage(swapped, ids, same_order=True).distance.value == 1
