"""``row_risks`` where the rows are: the figures of memory, joined with rows that were not read."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import people

import halfmask as hm

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

SCHEMA: dict[str, Any] = {
    "table": {"person": "who", "household": "home", "weight": "stands"},
    "columns": {
        "age": "quasi", "sex": "quasi", "zip": "quasi", "ill": "sensitive", "pay": "other",
        "name": "identifier", "k_i": "drop", "home": "drop", "stands": "drop",
    },
}  # fmt: skip


def visits() -> pa.Table:
    rows = people(240)
    rows = rows.set_column(0, "age", pa.array([n % 30 if n % 11 else None for n in range(240)]))
    return (
        rows.append_column("who", pa.array(np.arange(240) // 2))
        .append_column("home", pa.array(np.arange(240) // 8))
        .append_column("stands", pa.array(2.0 + (np.arange(240) // 2) % 3))
    )


@pytest.mark.usefixtures("in_place")
def test_every_row_has_the_risk_that_it_has_in_memory(
    place: Callable[..., hm.Table], tmp_path: Path
) -> None:
    expected = hm.row_risks(hm.read(visits(), SCHEMA))
    found = hm.row_risks(place(visits(), SCHEMA))
    assert len(found) == 240
    assert found.given == expected.given
    for one, other in zip(found.summary(0.2), expected.summary(0.2), strict=True):
        assert one == pytest.approx(other)
    found.write(tmp_path / "risks.parquet")
    rows = pq.read_table(tmp_path / "risks.parquet").to_pylist()
    assert (tmp_path / "risks.parquet").stat().st_mode & 0o077 == 0
    names = [f"risk_{name}" for name in expected.given]
    by_name = {row["name"]: [row[name] for name in names] for row in rows}
    figures = [getattr(expected, name).tolist() for name in expected.given]
    assert len(rows) == len(by_name) == 240
    for name, *row in zip(visits()["name"].to_pylist(), *figures, strict=True):
        assert by_name[name] == pytest.approx(row)
    assert Counter(row["zip"] for row in rows) == Counter(visits()["zip"].to_pylist())


@pytest.mark.usefixtures("in_place")
def test_figures_of_rows_that_changed_are_not_written(tmp_path: Path) -> None:
    pq.write_table(visits(), tmp_path / "people.parquet")
    table = hm.read(tmp_path / "people.parquet", SCHEMA, engine="duckdb")
    found = hm.row_risks(table)
    assert found.to_arrow()["rows"].to_numpy().sum() == 240
    pq.write_table(visits().slice(0, 200), tmp_path / "people.parquet")
    with pytest.raises(hm.errors.EngineError, match="changed while they were read"):
        found.write(tmp_path / "risks.csv")
    assert not (tmp_path / "risks.csv").exists()


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize("other", ["7.0", "NA"])
def test_texts_that_name_one_person_are_one_person(tmp_path: Path, other: str) -> None:
    """Two rows of one person, written differently, hide nobody."""
    first = "7" if other == "7.0" else "?"
    told = [f"{n},{n // 3},m" for n in range(6)] + [f"{first},9,f", f"{other},9,f"]
    (tmp_path / "people.csv").write_text("\n".join(["who,age,sex", *told]))
    schema = {
        "columns": {"who": "identifier", "age": "quasi", "sex": "quasi"},
        "table": {"person": "who", "missing": ["?", "NA"]},
    }
    table = hm.read(tmp_path / "people.csv", schema, engine="duckdb")
    memory = hm.row_risks(hm.read(tmp_path / "people.csv", schema, engine="memory"))
    found = hm.row_risks(table)
    assert found.summary(0.9) == memory.summary(0.9)
    if other == "7.0":
        assert found.prosecutor.max() == 1.0


@pytest.mark.usefixtures("in_place")
def test_figures_replace_no_column(tmp_path: Path) -> None:
    rows = pa.table({"age": [1, 1, 2], "rows": [5, 5, 6], "Risk_Prosecutor": [0.1, 0.2, 0.3]})
    for name, kept in {"all": rows, "some": rows.drop_columns(["Risk_Prosecutor"])}.items():
        pq.write_table(kept, tmp_path / f"{name}.parquet")
    schema = {"age": "quasi", "rows": "quasi"}
    with pytest.raises(hm.errors.SchemaError, match="'Risk_Prosecutor' has the name of a figure"):
        hm.row_risks(
            hm.read(
                tmp_path / "all.parquet", {**schema, "Risk_Prosecutor": "other"}, engine="duckdb"
            )
        )
    found = hm.row_risks(hm.read(tmp_path / "some.parquet", schema, engine="duckdb"))
    with pytest.raises(hm.errors.SchemaError, match="'rows' has the name of a figure"):
        found.to_arrow()
    found.write(tmp_path / "risks.parquet")
    written = pq.read_table(tmp_path / "risks.parquet")
    assert sorted(written["rows"].to_pylist()) == [5, 5, 6]
    assert sorted(written["risk_prosecutor"].to_pylist()) == [0.5, 0.5, 1.0]


@pytest.mark.usefixtures("in_place")
def test_columns_may_be_called_as_helpers_are(tmp_path: Path) -> None:
    names = {"age": "halfmask_weights_sum", "sex": "halfmask_rows"}
    rows = visits().rename_columns([names.get(n, n) for n in visits().column_names])
    pq.write_table(rows, tmp_path / "people.parquet")
    mine = {names.get(n, n): role for n, role in SCHEMA["columns"].items()}
    table = hm.read(tmp_path / "people.parquet", {**SCHEMA, "columns": mine}, engine="duckdb")
    expected = hm.row_risks(hm.read(visits(), SCHEMA))
    for one, other in zip(hm.row_risks(table).summary(0.2), expected.summary(0.2), strict=True):
        assert one == pytest.approx(other)
