"""The page of a co-clustering: what the script draws, and that it draws it."""

from __future__ import annotations

import datetime
import json
import re

import numpy as np
import pytest

import halfmask as hm
from halfmask.report.grid import render_grid


@pytest.fixture(scope="module")
def found():
    random = np.random.default_rng(0)
    hidden = random.integers(0, 3, 900)
    job = np.array(["nurse", "clerk", "smith</script>", "cook"])[
        hidden + random.integers(0, 2, 900)
    ]
    days = [datetime.date(2020, 1, 1) + datetime.timedelta(int(d)) for d in hidden * 300]
    sex = np.array(["f", "m", "x"])[(hidden + random.integers(0, 2, 900)) % 3]
    table = hm.read({"job": job, "start": days, "sex": sex}, hm.Schema())
    return hm.cocluster(table, ["job", "start", "sex"])


def drawn(page):
    return json.loads(re.search(r'id="grid">(.*?)</script>', page, re.DOTALL)[1])


def test_the_picture_holds_the_grid_and_its_merges(found):
    picture = drawn(render_grid(found))
    assert [len(v["parts"]) for v in picture["variables"]] == list(found.levels.grid.parts)
    assert sum(picture["counts"]) == 900
    assert len(picture["merges"]) == sum(p - 1 for p in found.levels.grid.parts)
    assert picture["merges"][-1][3] == pytest.approx(0, abs=1e-9)
    assert picture["level"] == 0
    for variable in picture["variables"]:
        assert sum(part["observations"] for part in variable["parts"]) == 900
        assert sorted(variable["order"]) == list(range(len(variable["parts"])))


def test_every_merge_joins_neighbors_of_the_order(found):
    picture = drawn(render_grid(found))
    for side, variable in enumerate(picture["variables"]):
        runs = [[part] for part in variable["order"]]
        for merged, kept, gone, _ in picture["merges"]:
            if merged == side:
                at = [i for i, run in enumerate(runs) if kept in run or gone in run]
                assert at[1] == at[0] + 1
                runs[at[0]] += runs.pop(at[1])


def test_dates_are_dates_and_nothing_ends_the_script(found):
    page = render_grid(found)
    ends = drawn(page)["variables"][1]["parts"]
    assert ends[0]["above"] is None
    assert ends[0]["up_to"].startswith("2020-")
    assert ends[-1]["up_to"] is None
    assert "smith</script>" not in page
    assert found.to_dict()["variables"][1]["composition"][0]["up_to"] == ends[0]["up_to"]


def test_a_coarser_grid_is_where_the_slider_begins(found):
    job = found.levels.grid.parts[0]
    coarse = hm.coclustering.run.simplify_levels(found, {"job": job - 1}, {})
    picture = drawn(render_grid(coarse))
    level = picture["level"]
    assert sum(1 for merge in picture["merges"][:level] if merge[0] == 0) >= 1
    left = [len(v["parts"]) for v in picture["variables"]]
    for merge in picture["merges"][:level]:
        left[merge[0]] -= 1
    assert tuple(left) == coarse.grid.parts


def test_a_column_of_one_part_is_of_no_interest(found):
    coarse = hm.coclustering.run.simplify_levels(found, {"sex": 1}, {})
    (part,) = coarse.to_dict()["variables"][2]["composition"]
    assert part["interest"] == 0
    assert "Of one part in this grid: sex." in render_grid(coarse)
    assert "Of one part" not in render_grid(found)


def test_one_cell_has_a_page(found):
    random = np.random.default_rng(1)
    table = hm.read({n: random.integers(0, 3, 200).astype(str) for n in "ab"}, hm.Schema())
    page = render_grid(hm.cocluster(table, ["a", "b"]))
    assert "No column goes with another one beyond chance" in page
    assert drawn(page)["merges"] == []


def test_the_page_draws_in_a_browser(found, browser, tmp_path):
    path = tmp_path / "grid.html"
    path.write_text(render_grid(found), encoding="utf-8")
    page = browser.new_page()
    faults: list[str] = []
    page.on("pageerror", lambda fault: faults.append(str(fault)))
    page.goto(path.as_uri())
    assert page.locator("#maps svg").count() == found.levels.grid.parts[2]
    before = page.inner_text("#said")
    tables = page.locator("table[data-side]")
    for side, variable in enumerate(found.to_dict()["variables"]):
        rows = tables.nth(side).locator("tbody tr").all_inner_texts()
        shown = sorted(tuple(row.split("\t")[1:]) for row in rows)
        assert shown == sorted(
            (f"{part['observations']:,}", f"{part['values']:,}", f"{100 * part['interest']:.1f}%")
            for part in variable["composition"]
        )
    page.fill("#level", "1")
    assert before != page.inner_text("#said")
    left = [tables.nth(side).locator("tbody tr").count() for side in range(3)]
    assert page.inner_text("#said").startswith(" x ".join(map(str, left)))
    single = left.index(1)
    assert tables.nth(single).locator("tbody td").last.inner_text() == "0.0%"
    page.select_option("#across", "0")
    assert "two different" in page.inner_text("#maps")
    page.close()
    assert not faults
