"""``describe`` where the rows are: the proposal of memory, without a row collected."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pytest
from places import people, stored

import halfmask as hm
from halfmask.engines.counting import columns
from halfmask.table.read import read_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

pytestmark = pytest.mark.usefixtures("in_place")


def visits() -> pa.Table:
    """People with tokens of missing values, commas, sentinels, households and weights."""
    rows, random = people(240), np.random.default_rng(3)
    whose = np.arange(240) // 2
    return (
        rows.append_column("patient_id", pa.array(whose))
        .append_column("weight", pa.array(np.round(2 + random.random(120), 2)[whose]))
        .append_column("job", pa.array(random.choice(["cook", "?", "smith", "n/a"], 240)))
        .append_column("rent", pa.array([f"{n / 10:.2f}".replace(".", ",") for n in range(240)]))
        .append_column("years", pa.array(random.choice([1, 2, 3, 7, 9999], 240)))
        .append_column("pain", pa.array(random.choice(["low", "medium", "high"], 240)))
    )


def test_every_engine_proposes_what_memory_proposes(place: Callable[..., hm.Table]) -> None:
    expected = hm.describe(hm.read(visits()))
    found = hm.describe(place(visits(), {}))
    assert found.to_dict() == expected.to_dict()
    assert found.to_toml() == expected.to_toml()
    assert found.person == "patient_id"
    assert found.weight == "weight"
    assert found.missing is not None
    assert "?" in found.missing


def test_texts_of_a_file_become_what_they_are(tmp_path: Path) -> None:
    csv.write_csv(visits(), tmp_path / "visits.csv")
    table = hm.read(tmp_path / "visits.csv", {}, engine="duckdb")
    assert hm.describe(table).to_dict() == hm.describe(read_rows(tmp_path / "visits.csv")).to_dict()


def test_adult_is_proposed_as_in_memory(adult: Path) -> None:
    memory = hm.describe(read_rows(adult, hm.Schema()))
    table = hm.read(adult, hm.Schema(), engine="duckdb", delimiter=";")
    assert hm.describe(table).to_dict() == memory.to_dict()
    assert memory.rows == 30_162


def test_of_very_many_values_some_are_looked_at_and_all_are_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "VALUES", 6)
    found = hm.describe(stored(tmp_path, visits(), {}))
    memory = hm.describe(hm.read(visits()))

    def counted(said: Any) -> list[tuple[Any, ...]]:
        return [(one.name, one.role, one.distinct, one.missing) for one in said.columns]

    assert counted(found) == counted(memory)
    assert found.quasi_identifiers == memory.quasi_identifiers
    (note,) = [note for note in found.notes if note.startswith("Very many values")]
    assert "the most frequent ones" in note


def test_what_is_no_number_is_missing_among_very_many(
    place: Callable[..., hm.Table], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(columns, "VALUES", 6)
    dose = np.where(np.arange(120) % 7 == 0, np.nan, np.arange(120) / 8)
    rows = people(120).select(["age", "sex"]).append_column("dose", pa.array(dose))
    found = {one.name: one for one in hm.describe(place(rows, {})).columns}
    assert (found["dose"].distinct, found["dose"].missing) == (102, 18)  # 0, 7, .. 119 are none


def test_a_column_may_be_called_as_a_helper_is(tmp_path: Path) -> None:
    rows = people(120).select(["age", "sex"]).rename_columns(["halfmask_rows", "sex"])
    found = hm.describe(stored(tmp_path, rows, {}))
    assert found.to_dict() == hm.describe(hm.read(rows)).to_dict()
