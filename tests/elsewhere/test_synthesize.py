"""``synthesize`` where the rows are: the engine codes and counts them, and none is collected."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from places import stored

import halfmask as hm
from halfmask.dp.domain import public_domains
from halfmask.dp.views import coding_of
from halfmask.engines.counting import coded_tuples
from halfmask.engines.counting.coded_tuples import count_codes
from halfmask.engines.stored import Storage
from halfmask.synthesize import private

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

DOMAINS: dict[str, Any] = {
    "sex": {"values": ["f", "m"], "other": "m"},
    "job": ["cook", "smith", None],
    "pay": {"low": 0.0, "high": 10.0, "bins": 5, "missing": True, "special": [-1]},
    "kids": [0, 1, 2],
}
SCHEMA = {"columns": dict.fromkeys(DOMAINS, "quasi")}


def rows() -> pa.Table:
    random = np.random.default_rng(5)
    pay = [None, float("nan"), -1.0, -3.0, 0.0, 2.0, 3.9, 4.0, 10.0, 99.0]
    return pa.table(
        {
            "sex": random.choice(["f", "m", "x"], 300).tolist(),
            "job": pa.array(random.choice(["cook", "smith", None], 300).tolist()),
            "pay": pa.array([pay[i] for i in random.integers(0, 10, 300)], pa.float64()),
            "kids": random.integers(0, 4, 300),
        }
    )


def by_hand() -> Counter[tuple[int, ...]]:
    """The public rule: what is outside goes to other, to the nearest interval, or to the first."""
    pays = {None: 6, -1.0: 0, -3.0: 1, 0.0: 1, 2.0: 2, 3.9: 2, 4.0: 3, 10.0: 5, 99.0: 5}
    jobs = {"cook": 0, "smith": 1, None: 2}
    return Counter(
        (
            {"f": 0}.get(row["sex"], 1),
            jobs[row["job"]],
            6 if row["pay"] != row["pay"] else pays[row["pay"]],
            row["kids"] if row["kids"] < 3 else 0,
        )
        for row in rows().to_pylist()
    )


def counted(table: hm.Table) -> Counter[tuple[int, ...]]:
    found = count_codes(table, coding_of(public_domains(list(DOMAINS), DOMAINS)))
    assert found is not None
    tuples = zip(*(found.codes[name].tolist() for name in DOMAINS), strict=True)
    return Counter(dict(zip(tuples, found.counts.tolist(), strict=True)))


@pytest.mark.usefixtures("in_place")
def test_every_engine_codes_rows_by_the_public_rule(place: Callable[..., hm.Table]) -> None:
    table = place(rows(), SCHEMA)
    assert counted(table) == by_hand()
    named = rows().append_column("who", pa.array(np.arange(300)))
    assert counted(place(named, {**SCHEMA, "table": {"person": "who"}})) == by_hand()
    table = place(rows(), SCHEMA)
    # With hardly any noise the histogram draws the rows themselves, as codes.
    made = hm.synthesize(table, "histogram", epsilon=2000, insist=True, domains=DOMAINS, rows=300)
    sexes = Counter(made.to_arrow()["sex"].to_pylist())
    expected = sum(n for key, n in by_hand().items() if key[0] == 0)
    assert abs(sexes["f"] - expected) < 60  # drawn from the exact shares: 7 standard deviations


@pytest.mark.usefixtures("in_place")
def test_numbers_of_very_many_values_are_cut_by_the_query(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(coded_tuples, "VALUES", 5)
    table = stored(tmp_path, rows(), SCHEMA)
    assert counted(table) == by_hand()
    made = hm.synthesize(table, "marginals", epsilon=1, domains=DOMAINS, rows=50)
    assert len(made.to_arrow()) == 50


def test_people_with_several_rows_are_read_and_no_release_says_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever sees the release must not learn that somebody has two rows."""
    read = []
    usual = Storage.collect
    monkeypatch.setattr(Storage, "collect", lambda *given: read.append(1) or usual(*given))
    schema = {**SCHEMA, "table": {"person": "who"}}
    told = []
    for people in (np.arange(300), np.maximum(np.arange(300), 1)):
        table = stored(tmp_path, rows().append_column("who", pa.array(people)), schema)
        made = hm.synthesize(table, "marginals", epsilon=1, domains=DOMAINS, rows=50)
        told.append((made.notes, dict(made.parameters), made.origin, sorted(made.to_dict())))
        assert len(read) == (people[0] == people[1])
    assert told[0] == told[1]


def test_rows_that_change_meanwhile_count_once_a_person(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file is written anew after it was looked at: 20,000 rows of one person count as one."""
    schema = {"table": {"person": "who"}, "columns": {"sex": "quasi"}}
    one = pa.table({"who": np.arange(500), "sex": ["f"] * 500})
    table = stored(tmp_path, one, schema)
    usual = private._rehearse

    def late(*given: Any, **options: Any) -> None:
        more = pa.table({"who": np.zeros(20_000, np.int64), "sex": ["m"] * 20_000})
        stored(tmp_path, pa.concat_tables([one, more]), schema)
        usual(*given, **options)

    monkeypatch.setattr(private, "_rehearse", late)
    made = hm.synthesize(table, "histogram", epsilon=1, domains={"sex": ["f", "m"]})
    assert abs(len(made) - 500) < 60  # noise of scale 1 in two cells


@pytest.mark.usefixtures("in_place")
def test_groups_of_people_are_drawn_from_the_columns_that_leave(
    place: Callable[..., hm.Table],
) -> None:
    """What memory draws of the same rows in the order of their values; nothing else comes over."""
    given = pa.table(
        {
            "job": [f"j{i % 8}" for i in range(400)],
            "shift": ["night" if i % 8 < 4 else "day" for i in range(400)],
            "hours": [10 + i % 8 * 4 + i % 3 for i in range(400)],
            "name": [f"n{i}" for i in range(400)],
        }
    )
    names = ["job", "shift", "hours"]
    schema = {"columns": dict.fromkeys(names, "quasi") | {"name": "identifier"}}
    ordered = given.sort_by([(name, "ascending") for name in names])
    settings = {"method": "cocluster", "k": 5, "seed": 2, "rows": 80}
    memory = hm.synthesize(hm.read(ordered, schema), **settings)
    made = hm.synthesize(place(given, schema), **settings)
    assert made.to_arrow().column_names == names
    drawn = [Counter(map(str, one.to_arrow().to_pylist())) for one in (memory, made)]
    assert drawn[0] == drawn[1]
    assert any("The rows stayed in" in note for note in made.notes)
