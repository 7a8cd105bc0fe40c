"""``mask`` where the rows are: what memory gives for the same rows in order, uncollected."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import psycopg
import pyarrow as pa
import pytest
from places import SCHEMA, load, people, stored

import halfmask as hm
from halfmask.engines import staging
from halfmask.masking.methods.coding import Round

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    Place = Callable[[pa.Table, Any], hm.Table]

PLAIN = {"columns": {**SCHEMA["columns"], "k_i": "drop"}}
COUNTED = ("age", "sex", "zip", "ill")
STEPS = {
    "top-code": ["top-code age value=45", "bottom-code age value=25"],
    "round": ["round age base=5"],
    "noise": ["noise age level=0.5"],
    "pram": ["pram sex keep=0.7"],
    "rank-swap": ["rank-swap age within=0.1"],
    "microaggregate": ["microaggregate age k=4"],
    "sample": ["sample share=0.5"],
    "suppress": ["local-suppression k=4"],
    "several": ["round age base=10", "pram zip keep=0.4", "sample share=0.6"],
}


def in_order(rows: pa.Table) -> pa.Table:
    return rows.sort_by([(name, "ascending") for name in COUNTED])


def held(rows: pa.Table, names: Any) -> Counter[tuple[Any, ...]]:
    return Counter(tuple(row[name] for name in names) for row in rows.to_pylist())


def same(memory: Any, other: Any, told: tuple[str, ...]) -> None:
    first, second = memory.to_dict(), other.to_dict()
    for figure in ("rows", "steps", "columns", "risk", "verdicts", "outcome"):
        assert first[figure] == second[figure], figure
    assert held(memory.to_arrow(), told) == held(other.to_arrow(), told)
    assert len(memory) == len(other)


def masked(memory: hm.Table, there: hm.Table, steps: list[str], **more: Any) -> tuple[Any, Any]:
    found = [hm.mask(one, *steps, seed=5, **more) for one in (memory, there)]
    assert any("The rows stayed in" in note for note in found[1].notes)
    return found[0], found[1]


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize("name", STEPS)
def test_a_mask_is_that_of_memory(tmp_path: Path, name: str) -> None:
    steps = STEPS[name]
    memory = hm.read(in_order(people()), PLAIN)
    first, second = masked(memory, stored(tmp_path, people(), PLAIN), steps)
    same(first, second, tuple(n for n in first.to_arrow().column_names if n != "pay"))
    if name != "sample" and name != "several":  # what nobody looked at belongs to the same rows
        kept = [n for n in (*COUNTED, "pay") if n not in {c for s in steps for c in s.split()}]
        if name == "suppress":
            kept = ["ill", "pay"]
        assert held(people(), kept) == held(second.to_arrow(), kept)
    second.close()


@pytest.mark.usefixtures("in_place")
def test_everywhere(place: Place, tmp_path: Path) -> None:
    steps = ["round age base=10", "noise age level=0.3", "pram zip keep=0.5", "sample share=0.7"]
    memory = hm.read(in_order(people()), PLAIN)
    first, second = masked(memory, place(people(), PLAIN), steps)
    with second as release:
        same(first, release, (*COUNTED, "weight"))
        release.write(tmp_path / "out.parquet")
    assert hm.read(tmp_path / "out.parquet").arrow.num_rows == len(first)


@pytest.mark.usefixtures("in_place")
def test_promises_and_demands_are_kept_or_refused_alike(tmp_path: Path) -> None:
    steps = ["round age base=20", "local-suppression k=6"]
    memory, told = hm.read(in_order(people()), SCHEMA), []
    there = stored(tmp_path, people())
    for table in (memory, there):
        with pytest.raises(hm.errors.UnsatisfiableError) as refused:
            hm.mask(table, "round age base=20", models=hm.KAnonymity(5), seed=1)
        told.append(str(refused.value))
    assert told[0] == told[1]
    steps = ["microaggregate age k=30", "pram sex keep=0", "local-suppression k=6"]
    found = []
    for table in (memory, there):
        try:
            found.append(str(hm.mask(table, *steps, models=hm.KAnonymity(2), seed=1).verdicts))
        except hm.errors.UnsatisfiableError as refused:
            found.append(str(refused))
    assert found[0] == found[1]


@pytest.mark.usefixtures("in_place")
def test_a_person_moves_as_one(tmp_path: Path) -> None:
    rows = pa.table(
        {
            "who": [f"p{i % 40}" for i in range(80)],
            "day": pa.array([19_000 + i % 40 for i in range(80)], pa.int32()).cast(pa.date32()),
            "sex": ["f", "m"] * 40,
            "pay": list(range(80)),
        }
    )
    schema = {
        "table": {"person": "who"},
        "columns": {"day": "quasi", "sex": "quasi", "pay": "other"},
    }
    key = b"0123456789abcdef0123456789"
    step = hm.masks.DateShift("day", key=key)
    memory = hm.mask(hm.read(rows, schema), step)
    with hm.mask(stored(tmp_path, rows, schema), step) as release:
        every = ("day", "sex", "pay")
        assert held(memory.to_arrow(), every) == held(release.to_arrow(), every)
    token = hm.masks.Pseudonym("who", key=key)
    memory = hm.mask(hm.read(rows, schema), token)
    with hm.mask(stored(tmp_path, rows, schema), token) as release:
        every = ("who", "day", "sex", "pay")
        assert held(memory.to_arrow(), every) == held(release.to_arrow(), every)
        assert any("pseudonyms" in note for note in release.notes)


def test_tables_leave_beside_files_alone(tmp_path: Path) -> None:
    schema = {"columns": {**PLAIN["columns"], "zip": "other", "age": "other"}}
    there = stored(tmp_path, people(), schema)
    with hm.mask(there, "anatomy ill l=2", seed=1) as release:
        assert "ill" not in release.to_arrow().column_names
        with pytest.raises(hm.errors.InputError, match="write them to files"):
            release.write(f"{tmp_path}/folder/")
        release.write(tmp_path / "out.parquet")
    assert (tmp_path / "out.ill.parquet").exists()


def test_another_value_than_was_masked_does_not_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The engine is not trusted: it writes one cell otherwise, or a column that nobody read."""
    there = stored(tmp_path, people(), PLAIN)
    rows = staging.Labeling.rows

    def other(column: str) -> Callable[..., str]:
        def write(self: staging.Labeling, table: str) -> str:
            query = rows(self, table)
            if table == "rows_" and not found:
                found.append(query)
                name = staging.quote(column)
                return f"SELECT * REPLACE ({name} + 1 AS {name}) FROM ({query}) q"  # noqa: S608
            return query

        return write

    for column in ("age", "pay"):
        found: list[str] = []
        monkeypatch.setattr(staging.Labeling, "rows", other(column))
        with pytest.raises(hm.errors.InternalError, match="nothing was released"):
            hm.mask(there, "round age base=5", seed=1)
        assert found


def test_rows_that_change_meanwhile_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    there = stored(tmp_path, people(), PLAIN)
    apply = Round.apply

    def grown(self: Any, rows: Any) -> Any:
        stored(tmp_path, people(400), PLAIN)
        return apply(self, rows)

    monkeypatch.setattr(Round, "apply", grown)
    with pytest.raises(hm.errors.EngineError, match="changed while"):
        hm.mask(there, "round age base=5", seed=1)


@pytest.mark.usefixtures("in_place")
def test_what_cannot_be_masked_there_is_said_before(tmp_path: Path) -> None:
    there, memory = stored(tmp_path, people(), PLAIN), hm.read(people(), PLAIN)
    for step in (
        "round nothing base=5",
        "noise sex",
        "round k_i base=2",
        "sample share=0.5 by=name",
    ):
        told = []
        for table in (memory, there):
            with pytest.raises(hm.errors.SchemaError) as refused:
                hm.mask(table, step)
            told.append(str(refused.value))
        assert told[0] == told[1]
    with pytest.raises(hm.errors.SchemaError, match="already"):
        hm.mask(there, "sample share=0.5 weight=pay", seed=1)


def test_a_planted_person_whom_nothing_can_serve_is_refused_alike(tmp_path: Path) -> None:
    told = set()
    for age in (21, 40, 59):
        rows = people().to_pydict()
        rows["k_i"][7], rows["age"][7] = 9_000, age
        there = stored(tmp_path, pa.table(rows))
        with pytest.raises(hm.errors.HalfmaskError) as refused:
            hm.mask(there, "round age base=20", "local-suppression k=6", seed=1)
        told.add(str(refused.value))
    assert len(told) == 1


@pytest.mark.usefixtures("in_place")
def test_masked_rows_go_to_a_table_of_the_database(postgres: str) -> None:
    load(postgres, "before_masks", people())
    there = hm.read(postgres, PLAIN, table="before_masks")
    with hm.mask(there, "round age base=5", "pram sex keep=0.8", seed=2) as release:
        release.write(postgres, table="after_masks")
        told = held(release.to_arrow(), COUNTED)
    with psycopg.connect(postgres) as connection:
        found = connection.execute("SELECT age, sex, zip, ill FROM after_masks").fetchall()
    assert Counter(found) == told
