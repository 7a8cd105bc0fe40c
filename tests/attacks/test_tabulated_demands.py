"""A reader of a table of figures looks for the cell of somebody who asks for more than others.

Attacker: knows who asks for much, and everything about everybody else, and looks at which cells are
withheld. Withheld for this person alone, a cell would tell where the person is.
"""

from __future__ import annotations

import json
from typing import Any

import pytest

import halfmask as hm
from halfmask.errors import PrivacyError
from halfmask.tabulate import rounding

PLACES = [(city, ill) for city in "abc" for ill in ("flu", "gout")]


def town(place: tuple[str, str], k: int, income: float = 50.0, **more: Any) -> hm.Table:
    """Six cells of 8 to 13 people who ask for 3 and, last, one who asks for more."""
    rows = [(c, i, 10.0 + n) for x, (c, i) in enumerate(PLACES) for n in range(8 + x)]
    rows.append((*place, income))
    columns = dict(zip(("city", "ill", "income"), map(list, zip(*rows, strict=True)), strict=True))
    asked = {name: [low] * (len(rows) - 1) + [high] for name, (low, high) in more.items()}
    columns |= {"who": list(range(len(rows))), "k_i": [3] * (len(rows) - 1) + [k], **asked}
    return hm.read(
        columns,
        schema={
            "table": {"person": "who"},
            "policy": {"k": "k_i", **({"l": "l_i"} if more else {})},
            "columns": {"who": "identifier", "city": "quasi", "ill": "quasi",
                        "income": "sensitive"},
        },
    )  # fmt: skip


def withheld(release: Any) -> set[tuple[str, str]]:
    return {(r["city"], r["ill"]) for r in release.to_arrow().to_pylist() if r["withheld"]}


def told(release: Any) -> str:
    document = release.to_dict()
    del document["versions"]
    return json.dumps([document, release.to_arrow().to_pylist(), str(release.to_arrow().schema)])


@pytest.mark.parametrize("settings", [{}, {"sum": "income"}, {"margins": False}])
def test_withheld_cells_do_not_show_who_asks_for_more(settings: dict[str, Any]) -> None:
    """20 is above every cell and below every total: the six cells are withheld for everybody."""
    patterns = [
        withheld(hm.tabulate(town(place, 20), ["city", "ill"], **settings))
        for place in PLACES
        if settings.get("margins", True)
    ]
    if not patterns:  # without totals nothing is left, wherever the person stands
        for place in PLACES:
            with pytest.raises(PrivacyError, match="Every cell would be withheld"):
                hm.tabulate(town(place, 20), ["city", "ill"], **settings)
        return
    assert all(pattern == patterns[0] for pattern in patterns)
    assert patterns[0] >= set(PLACES)


def test_an_own_l_does_not_show_where_its_person_is() -> None:
    """Cells hold 8 to 13 different amounts, and the person brings none that is not there."""
    patterns = {
        frozenset(
            withheld(hm.tabulate(town(p, 3, 10.0, l_i=(1, 13)), ["city", "ill"], sum="income"))
        )
        for p in PLACES
    }
    assert len(patterns) == 1
    assert next(iter(patterns)) >= set(PLACES[:-1])


@pytest.mark.parametrize(
    "settings",
    [
        {},
        {"sum": "income"},
        {"sum": "income", "dominance": (1, 60)},
        {"margins": False},
        {"threshold": 9},
    ],
)
def test_whoever_is_left_out_is_in_no_figure(settings: dict[str, Any]) -> None:
    strangers = [*PLACES, ("only here", "flu"), ("a", None)]
    found = {
        told(hm.tabulate(town(place, k, income), ["city", "ill"], leave_out={"k": 3}, **settings))
        for place in strangers
        for k, income in ((20, 50.0), (10**9, -3.0), (4, 1e12))
    }
    assert len(found) == 1
    release = hm.tabulate(town(("a", "flu"), 20), ["city", "ill"], leave_out={"k": 3})
    assert release.notes[0] == "People who ask for a k above 3 are in no figure, if there are any."
    shown = {(r["city"], r["ill"]): r["count"] for r in release.to_arrow().to_pylist()}
    assert shown["Total", "Total"] == sum(range(8, 14))


@pytest.mark.parametrize("settings", [{}, {"sum": "income"}, {"margins": False}])
def test_who_asks_for_more_than_all_is_refused_wherever_they_are(settings: dict[str, Any]) -> None:
    said = set()
    for place in [*PLACES, ("only here", "flu")]:
        with pytest.raises(PrivacyError, match="1 people ask for a k above the 64 people") as error:
            hm.tabulate(town(place, 65), ["city", "ill"], **settings)
        said.add(str(error.value))
    assert len(said) == 1
    assert "--leave-out k=20" in said.pop()


def test_the_limit_of_left_out_people_is_a_whole_number() -> None:
    for wrong in ({"t": 1}, {"k": 2.5}, {"k": True}):
        with pytest.raises(hm.HalfmaskError, match="leave_out"):
            hm.tabulate(town(("a", "flu"), 3), "city", leave_out=wrong)  # type: ignore[arg-type]


ALTERED: dict[str, dict[str, Any]] = {
    "round": {"base": 5},
    "random-round": {"base": 5},
    "cell-key": {"variance": 2.0, "maximum": 5, "secret": b"sixteen bytes or more"},
}


@pytest.mark.parametrize("method", ALTERED)
def test_altered_figures_hold_nothing_of_whoever_is_left_out(
    method: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Coins are new in every run: with the same ones, the same table leaves wherever she stands."""
    monkeypatch.setattr(rounding, "_round_up", lambda values, base: 2 * (values % base) > base)
    found = {
        told(
            hm.tabulate(
                town(place, k, income),
                ["city", "ill"],
                leave_out={"k": 3},
                method=method,
                **ALTERED[method],
            )
        )
        for place in [("a", "flu"), ("c", "gout"), ("only here", "flu"), ("a", None)]
        for k, income in ((20, 50.0), (10**9, -3.0))
    }
    assert len(found) == 1


@pytest.mark.parametrize("method", ["round", "random-round"])
def test_rounded_figures_differ_by_chance_alone(method: str) -> None:
    """One table, ten times: the runs differ, and each figure stays next to its own."""
    table = town(("a", "flu"), 3)
    runs = [
        {(r["city"], r["ill"]): r["count"] for r in release.to_arrow().to_pylist()}
        for release in (hm.tabulate(table, ["city", "ill"], method=method, base=5)
                        for _ in range(10))
    ]  # fmt: skip
    assert len({tuple(run.values()) for run in runs}) > 1
    sizes = {place: 8 + x for x, place in enumerate(PLACES)}
    sizes["a", "flu"] += 1
    for run in runs:
        assert all(abs(run[place] - size) < 5 for place, size in sizes.items())


def test_that_demands_were_set_aside_is_said_where_no_rule_is_left() -> None:
    with pytest.raises(PrivacyError, match="keep the demands of 64 people, which were set aside"):
        hm.tabulate(town(PLACES[0], 3), ["city"], demands="ignore")
