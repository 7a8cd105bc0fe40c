"""``recode``, ``tabulate``, ``cocluster`` where the rows are: what memory gives, uncollected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pytest
from places import MODELS, SCHEMA, multiset, people, same, stored

import halfmask as hm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Place = Callable[[pa.Table, Any], hm.Table]

PLAIN = {"columns": {**SCHEMA["columns"], "k_i": "drop"}}


def newer(rows: int = 250) -> pa.Table:
    """Other people than those of whom the recoding was found."""
    return people(rows + 60).slice(60)


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize("kind", ["levels", "local"])
def test_new_rows_are_recoded_where_they_are(place: Place, tmp_path: Path, kind: str) -> None:
    old = hm.read(people(), SCHEMA)
    recoding = hm.Recoding.of(old, [{"age": 3, "sex": 0, "zip": 2}])
    if kind == "local":
        found = hm.anonymize(old, *MODELS, method="local", suppression=0.05)
        assert found.recoding is not None
        recoding = found.recoding
    settings = {"suppression": 0.3}
    memory = recoding.apply(hm.read(newer(), SCHEMA), *MODELS, **settings)
    with recoding.apply(place(newer(), SCHEMA), *MODELS, **settings) as release:
        same(memory, release)
        if kind == "levels":  # classes that fail are counted by rows, not by tuples
            assert 0 < release.suppressed < 0.3 * len(newer())
        assert any("The rows stayed in" in note for note in release.notes)
        release.write(tmp_path / "out.parquet")
    assert all(one.holds for one in hm.check(tmp_path / "out.parquet"))


@pytest.mark.usefixtures("in_place")
def test_what_cannot_be_recoded_is_refused_alike(tmp_path: Path) -> None:
    levels = hm.Recoding.of(hm.read(people(), PLAIN), [{"age": 1, "sex": 0, "zip": 0}])
    memory, told = hm.read(newer(), PLAIN), []
    for table in (memory, stored(tmp_path, newer(), PLAIN)):
        with pytest.raises(hm.errors.UnsatisfiableError) as refused:
            levels.apply(table, *MODELS, suppression=0.05)
        told.append(str(refused.value))
    assert told[0] == told[1]
    assert [one.name for one in tmp_path.iterdir()] == ["people.parquet"]


@pytest.mark.usefixtures("in_place")
def test_whoever_asks_for_too_much_leaves_no_trace(tmp_path: Path) -> None:
    asked = newer()["k_i"].to_pylist()
    asked[7] = 9000
    rows = newer().set_column(newer().column_names.index("k_i"), "k_i", pa.array(asked))
    rest = rows.filter(pa.array([i != 7 for i in range(len(rows))]))
    levels = hm.Recoding.of(hm.read(rows, SCHEMA), [{"age": 3, "sex": 1, "zip": 4}])
    left = []
    for table in (rows, rest):
        with levels.apply(stored(tmp_path, table), *MODELS, suppression=0.2) as release:
            left.append(multiset(release.to_arrow()))
    assert left[0] == left[1]


def cells(release: Any) -> list[dict[str, Any]]:
    return sorted(release.to_arrow().to_pylist(), key=str)


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize(
    "given",
    [
        {"by": ["sex", "ill"], "threshold": 8},
        {"by": "zip", "sum": "age", "p": 10.0, "threshold": 3},
        {"by": ["age", "sex"], "levels": {"age": [2, 3]}, "threshold": 6, "count": "rows"},
    ],
    ids=["counts", "sums", "levels"],
)
def test_tables_of_figures_are_those_of_memory(place: Place, given: dict[str, Any]) -> None:
    memory = hm.tabulate(hm.read(people(), PLAIN), **given)
    release = hm.tabulate(place(people(), PLAIN), **given)
    assert cells(memory) == cells(release)
    assert any("The rows stayed in" in note for note in release.notes)


@pytest.mark.usefixtures("in_place")
def test_people_and_demands_count_in_figures_alike(place: Place) -> None:
    rows = people(200)
    rows = rows.append_column("who", pa.array([i % 150 for i in range(200)]))
    same_k = pa.array([[2, 3, 6][i % 150 % 3] for i in range(200)])
    rows = rows.set_column(rows.column_names.index("k_i"), "k_i", same_k)
    schema = {**SCHEMA, "table": {"person": "who"}}
    given = {"by": ["sex", "ill"], "count": "rows"}
    memory = hm.tabulate(hm.read(rows, schema), **given)
    release = hm.tabulate(place(rows, schema), **given)
    assert cells(memory) == cells(release)
    assert release.guarantee.demands is not None
    assert any(row["withheld"] for row in cells(release))  # the 6 that somebody asks for


@pytest.mark.usefixtures("in_place")
def test_keys_of_people_are_those_of_memory(tmp_path: Path) -> None:
    """Noise by keys is the same for the same people in every table, wherever their rows are."""
    schema = {**PLAIN, "table": {"person": "name"}}
    given = {"by": ["sex", "ill"], "method": "cell-key", "secret": b"0123456789abcdef0123456789"}
    memory = hm.tabulate(hm.read(people(), schema), **given)
    release = hm.tabulate(stored(tmp_path, people(), schema), **given)
    assert cells(memory) == cells(release)


@pytest.mark.usefixtures("in_place")
def test_a_column_that_cannot_be_shown_is_refused_alike(tmp_path: Path) -> None:
    for given in ({"by": "name"}, {"by": "nothing"}, {"by": "sex", "sum": "ill"}):
        told = []
        for table in (hm.read(people(), PLAIN), stored(tmp_path, people(), PLAIN)):
            with pytest.raises(hm.errors.SchemaError) as refused:
                hm.tabulate(table, **given, threshold=3)
            told.append(str(refused.value))
        assert told[0] == told[1]


def grid_rows(rows: int = 400) -> pa.Table:
    """Columns that go together, one of them numbers with some missing."""
    return pa.table(
        {
            "job": [f"j{i % 8}" for i in range(rows)],
            "shift": ["night" if i % 8 < 4 else "day" for i in range(rows)],
            "hours": pa.array([None if i % 50 == 7 else 10 + i % 8 * 4 for i in range(rows)]),
            "name": [f"n{i}" for i in range(rows)],
        }
    )


@pytest.mark.usefixtures("in_place")
def test_grids_of_columns_are_those_of_memory(place: Place) -> None:
    """Distinct tuples with their counts are what a grid is made of."""
    names = ["job", "shift", "hours"]
    schema = dict.fromkeys(names, "quasi") | {"name": "identifier"}
    memory = hm.cocluster(hm.read(grid_rows(), schema), names, seed=3)
    found = hm.cocluster(place(grid_rows(), schema), names, seed=3)
    assert memory.to_dict() == found.to_dict()
    assert memory.grid.cost < memory.grid.null_cost
    for name, tree in memory.trees().items():
        assert tree.to_csv() == found.trees()[name].to_csv()


@pytest.mark.usefixtures("in_place")
def test_rows_are_clustered_by_the_columns_named(tmp_path: Path) -> None:
    schema = {"job": "quasi", "shift": "quasi", "hours": "quasi", "name": "identifier"}
    ordered = grid_rows().sort_by([(n, "ascending") for n in ("job", "shift", "hours")])
    memory = hm.cocluster(hm.read(ordered, schema), seed=3)
    found = hm.cocluster(stored(tmp_path, grid_rows(), schema), seed=3)
    assert memory.to_dict() == found.to_dict()
