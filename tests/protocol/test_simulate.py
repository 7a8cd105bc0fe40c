"""The simulation and the estimate."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import pytest

import halfmask as hm
from halfmask.errors import InputError, ParameterError
from halfmask.protocol import simulate as census
from halfmask.protocol.common_schema import MERGES, Terms
from halfmask.protocol.estimate import Device, curves, estimate, write_page
from halfmask.protocol.simulate import simulate

if TYPE_CHECKING:
    from pathlib import Path

SCHEMA = {
    "columns": {
        **{
            name: {"role": "quasi", "hierarchy": {"tree": tree}}
            for name, tree in census.TREES.items()
        },
        "age": "quasi",
        "education": "quasi",
        "gender": "quasi",
        "native_country": "quasi",
        "fnlwgt": "sensitive",
    }
}


@pytest.mark.parametrize("merge", MERGES)
def test_the_simulation_answers_what_query_does(merge: Any) -> None:
    people = census.population(3000, 60, seed=3)
    done = simulate(
        census.commons(), people, census.QUERY, Terms(merge, 256, 128, 512, ram=1 << 30)
    )
    expected = hm.query(hm.read(people, SCHEMA), census.QUERY, {"k": "k", "l": "l"})
    key = str
    ours = sorted(done.answer.to_arrow().to_pylist(), key=key)
    theirs = sorted(expected.to_arrow().to_pylist(), key=key)
    assert len(ours) > 20
    assert [list(r.values()) for r in ours] == [list(r.values()) for r in theirs]
    assert done.cells == 3000


def test_credentials_change_nothing_but_who_is_believed() -> None:
    people = census.population(400, 20, seed=3)
    terms = Terms(partition=64, frame=128, room=256)
    plain, checked = (
        simulate(census.commons(), people, census.QUERY, terms, credentials=given)
        for given in (False, True)
    )
    assert (plain.credentials, checked.credentials) == (False, True)
    assert plain.traffic == checked.traffic
    assert "enrollment" in checked.seconds
    rows = [sorted(map(str, d.answer.to_arrow().to_pylist())) for d in (plain, checked)]
    assert rows[0] == rows[1] != []


def test_the_census_has_ten_levels_and_the_wanted_groups() -> None:
    people = census.population(500, 40)
    assert people.num_rows == 500
    done = simulate(
        census.commons(),
        people.drop_columns(["k", "l"]),
        census.PLAIN,
        Terms(partition=100, frame=100, room=200),
    )
    assert done.groups == 40
    with pytest.raises(ParameterError):
        census.population(0, 1)


def by(points: list[Any], merge: str) -> dict[int, Any]:
    return {p.groups: p for p in points if p.merge == merge}


def test_the_estimate_has_the_shape_of_the_figures() -> None:
    device = Device()
    points = curves(device, cells=10**6, groups=(10, 100, 400, 1000, 10_000, 100_000, 10**6))
    tree, swap, network = (by(points, m) for m in MERGES)
    # Fig 4.14: the tree ends where memory does; swap-merge and network-merge go on.
    assert tree[100].fits
    assert not tree[10_000].fits
    assert tree[10_000].aggregation_s is None
    assert all(p.fits for p in [*swap.values(), *network.values()])
    # Swap-merge is as fast as the tree while everything fits, and degrades when flash is needed.
    assert swap[100].aggregation_s == tree[100].aggregation_s
    assert not swap[400].swaps
    assert swap[10_000].swaps
    assert swap[10_000].aggregation_s > 5 * swap[400].aggregation_s
    # Fig 4.15: availability is constant for network-merge and grows for swap-merge.
    stays = [p.availability_s for p in network.values() if p.groups >= 400]
    assert max(stays) <= 1.2 * min(stays)
    assert swap[10**6].availability_s > 100 * swap[1000].availability_s
    assert network[10**6].availability_s < swap[10_000].availability_s
    # Figs 4.12 and 4.13: policies are under a tenth; filtering jumps where flash is needed.
    assert tree[10].privacy_s < 0.1 * (tree[10].collection_s - tree[10].privacy_s)
    per_group = {g: tree[g].filtering_s / g for g in (400, 10_000)}
    assert per_group[10_000] > 1.3 * per_group[400]


def test_the_estimate_goes_to_a_hundred_million_cells() -> None:
    point = estimate(Device(), "network", 10**8, 10**6)
    assert point.fits
    assert 0 < point.aggregation_s < 10**7
    more = estimate(replace(Device(), ram=1 << 20), "network", 10**8, 10**6)
    # Larger frames: far fewer tasks, for which a cell must stay longer.
    assert more.tasks < point.tasks / 10
    assert more.availability_s > point.availability_s


@pytest.mark.parametrize("given", [{"ram": 0}, {"ram": 100}, {"link": -1.0}])
def test_devices_that_cannot_be(given: dict[str, Any]) -> None:
    with pytest.raises(ParameterError):
        Device(**given)
    with pytest.raises(ParameterError):
        curves(Device(), present=0.0)
    with pytest.raises(ParameterError):
        curves(Device(), cells=0)


def test_the_page_draws_four_plots(tmp_path: Path) -> None:
    write_page(curves(Device(), cells=10**5), Device(), tmp_path / "e.html")
    text = (tmp_path / "e.html").read_text(encoding="utf-8")
    assert text.count("<svg") == 4
    assert text.count("<polyline") == 9
    assert "<script" not in text
    with pytest.raises(InputError):
        write_page(curves(Device(), cells=10**5), Device(), tmp_path / "e.pdf")
