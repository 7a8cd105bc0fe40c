"""Cloaks of places: everybody's own k, all divisions of few places, and what borders tell."""

from __future__ import annotations

from collections import Counter
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import UnsatisfiableError
from halfmask.kernels.masking.cloaking import cloak_places
from halfmask.masking.methods.cloaking import cells_of, grid_areas

M = hm.masks


def cost(down, across, groups) -> float:
    """Cells of the smallest boxes around groups, for everybody in them."""
    total = 0
    for group in groups:
        y, x = down[group], across[group]
        total += len(group) * (np.ptp(y) + 1) * (np.ptp(x) + 1)
    return float(total)


def divisions(rows):
    """All ways to put rows into groups."""
    if not rows:
        yield []
        return
    first, *rest = rows
    for groups in divisions(rest):
        yield [[first], *groups]
        for i, group in enumerate(groups):
            yield [*groups[:i], [first, *group], *groups[i + 1 :]]


def cloaked(down, across, owner, need):
    found, boxes = cloak_places(down, across, owner, need, np.argsort(-need, kind="stable"))
    return found, boxes


@pytest.mark.parametrize("seed", range(12))
def test_boxes_serve_everybody_and_lose_little_against_all_divisions(seed):
    draw = np.random.default_rng(seed)
    size = 7
    down, across = np.sort(draw.integers(0, 12, (size, 2)), axis=0).T.copy()
    across = draw.permutation(across)
    need = draw.choice([2, 2, 3, 4], size)
    found, boxes = cloaked(down, across, np.arange(size), need)
    groups = [np.flatnonzero(found == c) for c in range(len(boxes))]
    assert all(len(group) >= need[group].max() for group in groups)
    for group, box in zip(groups, boxes, strict=True):
        assert box.tolist() == [
            down[group].min(), across[group].min(), down[group].max(), across[group].max(),
        ]  # fmt: skip
    least = min(
        cost(down, across, [np.array(g) for g in ways])
        for ways in divisions(list(range(size)))
        if all(len(g) >= need[g].max() for g in ways)
    )
    ours = cost(down, across, groups)
    assert least <= ours <= 2.5 * least


def test_people_are_counted_and_not_their_rows():
    down, across = np.zeros(6, np.int64), np.array([0, 0, 0, 0, 9, 9])
    owner = np.array([0, 0, 0, 0, 1, 2])  # the first four are one person
    found, _ = cloaked(down, across, owner, np.full(6, 2))
    people = {c: len(set(owner[found == c])) for c in set(found.tolist())}
    assert min(people.values()) >= 2


@given(st.lists(st.tuples(st.integers(0, 40), st.integers(0, 40), st.integers(2, 6),
                          st.integers(0, 9)), min_size=6, max_size=60))  # fmt: skip
def test_whoever_asks_finds_as_many_people_in_the_area(places):
    north, east, own, who = (list(one) for one in zip(*places, strict=True))
    people = hm.read(
        {"id": who, "n": [v / 40 for v in north], "e": [v / 40 for v in east],
         "k_i": [max(k for k, w in zip(own, who, strict=True) if w == mine) for mine in who]},
        schema={"table": {"person": "id"}, "policy": {"k": "k_i"},
                "columns": {"n": "quasi", "e": "quasi"}},
    )  # fmt: skip
    if len(set(who)) < max(own):
        with pytest.raises(hm.errors.PrivacyError):
            hm.mask(people, M.Cloak("n", "e", k=2, method="grid"))
        return
    for method in ("grid", "pyramid"):
        release = hm.mask(people, M.Cloak("n", "e", k=2, method=method, levels=12))
        assert release.demands is not None
        assert release.demands.kept
        counts = Counter(release.to_arrow()["cell"].to_pylist())
        cells = release.tables["cells"]
        assert cells["rows"].to_pylist() == [counts[c] for c in cells["cell"].to_pylist()]


def points(size, draw):
    return {"n": draw.normal(48, 1, size), "e": draw.normal(4, 1, size), "i": np.arange(size)}


def test_every_place_lies_in_its_area_and_borders_do_not_follow_it():
    draw = np.random.default_rng(3)
    data = points(400, draw)
    people = hm.read(data, schema={"n": "quasi", "e": "quasi", "i": "other"})
    release = hm.mask(people, M.Cloak("n", "e", k=4, method="grid"))
    cells = {c["cell"]: c for c in release.tables["cells"].to_pylist()}
    for row in release.to_arrow().to_pylist():
        cell = cells[row["cell"]]
        assert cell["south"] <= data["n"][row["i"]] <= cell["north"]
        assert cell["west"] <= data["e"][row["i"]] <= cell["east"]
        assert row["n"] == pytest.approx((cell["south"] + cell["north"]) / 2)
    for cell in cells.values():
        longer = max(cell["north"] - cell["south"], cell["east"] - cell["west"])
        line = 360 / 2**20
        while line * 2 <= longer / 6:  # of the box before it was widened, at most 3/2 smaller
            line *= 2
        for border in ("south", "west", "north", "east"):
            lines = (cell[border] + 180) / line
            assert lines == pytest.approx(round(lines), abs=1e-6)


def test_the_place_of_somebody_far_away_is_told_by_no_border():
    """Of the two corners of the area, none is the place, which may lie thousands of miles off."""
    for lat, lon in ((-33.3, 151.2), (-61.9, 93.4)):
        table = hm.read(
            {"lat": [48.1] * 30 + [lat], "lon": [2.1] * 30 + [lon]},
            {"lat": "quasi", "lon": "quasi"},
        )
        release = hm.mask(table, "cloak lat longitude=lon k=2 method=grid")
        (wide,) = [c for c in release.tables["cells"].to_pylist() if c["north"] - c["south"] > 20]
        for border in ("south", "west", "north", "east"):
            assert (wide[border] / 11.25) == round(wide[border] / 11.25)


def test_boxes_lose_less_area_than_the_pyramid():
    people = hm.read(points(3000, np.random.default_rng(1)),
                     schema={"n": "quasi", "e": "quasi", "i": "other"})  # fmt: skip
    wide, tight = (
        hm.mask(people, M.Cloak("n", "e", k=5, method=method)).steps[0]["facts"]
        for method in ("pyramid", "grid")
    )
    assert tight["square_kilometers"] < wide["square_kilometers"] / 100
    assert tight["cells"] > 400


def test_a_pyramid_is_cut_where_a_part_has_too_few():
    """Few stay in the cell with the smallest part that has enough; the others are cut further."""
    places = np.array([[10, 10]] * 3 + [[10, 80]] * 5 + [[80, 10]] * 6 + [[80, 80]], float)
    need = np.full(len(places), 2)
    ids, depth = cells_of(places, np.arange(len(places)), need, 3)
    rest = (ids == ids[-1]) & (depth == depth[-1])
    assert rest.tolist() == [True] * 3 + [False] * 11 + [True]
    assert depth[3] == depth[8] > depth[-1]


def test_too_few_people_are_refused():
    people = hm.read({"n": [1.0, 2.0], "e": [1.0, 2.0]}, schema={"n": "quasi", "e": "quasi"})
    for method in ("pyramid", "grid"):
        with pytest.raises(UnsatisfiableError, match="fewer people"):
            hm.mask(people, M.Cloak("n", "e", k=3, method=method))


def test_needs_fall_in_the_order_of_cloaks():
    """Who joins a cloak asks for no more than those who formed it."""
    draw = np.random.default_rng(8)
    size = 500
    down, across = draw.integers(0, 300, (2, size))
    need = draw.choice([2, 5, 40], size, p=[0.6, 0.3, 0.1])
    found, boxes = cloaked(down, across, np.arange(size), need)
    most = [need[found == c].max() for c in range(len(boxes))]
    assert all(one >= other for one, other in pairwise(most))
    assert all((found == c).sum() >= most[c] for c in range(len(boxes)))


def test_numbers_of_areas_tell_of_their_corners_alone():
    """They leave: found most demanding first, they would order people by their own k."""
    draw = np.random.default_rng(3)
    places = draw.uniform((40, 0), (50, 10), (400, 2))
    need = draw.choice([2, 20], 400, p=[0.5, 0.5])
    number, low, high = grid_areas(places, np.arange(400), need, 14)
    corners = [tuple(one) for one in np.hstack([low, high])]
    assert corners == sorted(corners)
    assert len(corners) > 5
    assert ((low[number] <= places) & (places <= high[number])).all()
    most = [need[number == one].max() for one in range(len(low))]
    assert most != sorted(most, reverse=True)
