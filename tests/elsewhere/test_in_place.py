"""``anonymize`` where the rows are: the release of memory, without a row collected."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from places import MODELS, SCHEMA, multiset, people, same, stored

import halfmask as hm

if TYPE_CHECKING:
    from pathlib import Path


@pytest.mark.usefixtures("in_place")
@pytest.mark.parametrize(
    ("method", "suppression"), [("optimal", 0.0), ("optimal", 0.05), ("local", 0.05)]
)
def test_duckdb_gives_the_release_of_memory(
    tmp_path: Path, method: str, suppression: float
) -> None:
    settings = {"method": method, "suppression": suppression}
    memory = hm.anonymize(hm.read(people(), SCHEMA), *MODELS, **settings)
    with hm.anonymize(stored(tmp_path, people()), *MODELS, **settings) as release:
        same(memory, release)
        rows = release.to_arrow().to_pylist()
        keys = [tuple((v is None, v or 0 if i == 4 else str(v)) for i, v in enumerate(r.values()))
                for r in rows]  # fmt: skip
        groups = [key for i, key in enumerate(keys) if not i or keys[i - 1] != key]
        assert len(groups) == len(set(groups))  # alike rows stand together, whoever they were


@pytest.mark.usefixtures("in_place")
def test_a_folder_and_a_file_hold_the_release(tmp_path: Path) -> None:
    table = stored(tmp_path, people())
    with hm.anonymize(table, *MODELS, method="optimal", suppression=0.05) as release:
        release.write(tmp_path / "out.parquet")
        release.write(f"{tmp_path}/out/")
        release.write(f"{tmp_path}/out/")  # a release of ours is replaced
        expected = multiset(release.to_arrow())
    assert multiset(pq.read_table(tmp_path / "out.parquet")) == expected
    assert multiset(pq.read_table(tmp_path / "out" / "part-00000.parquet")) == expected
    assert all(one.holds for one in hm.check(f"{tmp_path}/out.parquet"))
    assert all(one.holds for one in hm.check(f"{tmp_path}/out/"))
    listed = sorted(one.name for one in tmp_path.iterdir())
    assert listed == ["out", "out.parquet", "people.parquet"]
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "notes.txt").write_text("mine")
    with (
        hm.anonymize(table, *MODELS, method="optimal", suppression=0.05) as release,
        pytest.raises(hm.errors.InputError, match="no release of ours"),
    ):
        release.write(f"{tmp_path}/mine/")
    with pytest.raises(hm.errors.EngineError, match="were let go"):
        release.to_arrow()


@pytest.mark.usefixtures("in_place")
def test_people_with_several_rows_count_once(tmp_path: Path) -> None:
    rows = people(200)
    rows = rows.append_column("who", pa.array([i % 90 for i in range(200)]))
    schema = {**SCHEMA, "table": {"person": "who"}}
    settings = {"method": "optimal", "suppression": 0.1}
    memory = hm.anonymize(hm.read(rows, schema), hm.KAnonymity(3), **settings)
    with hm.anonymize(stored(tmp_path, rows, schema), hm.KAnonymity(3), **settings) as release:
        same(memory, release)


@pytest.mark.usefixtures("in_place")
def test_whom_nobody_can_serve_is_left_out_alike(tmp_path: Path) -> None:
    rows = people(120)
    asked = rows["k_i"].to_pylist()
    asked[5] = 1000
    rows = rows.set_column(rows.column_names.index("k_i"), "k_i", pa.array(asked))
    settings = {"method": "optimal", "suppression": 0.1}
    memory = hm.anonymize(hm.read(rows, SCHEMA), hm.KAnonymity(3), **settings)
    with hm.anonymize(stored(tmp_path, rows), hm.KAnonymity(3), **settings) as release:
        same(memory, release)
        assert release.suppressed >= 1


@pytest.mark.usefixtures("in_place")
def test_what_is_no_number_leaves_as_missing(tmp_path: Path) -> None:
    """A Parquet file says how large its numbers are, and nothing of those that are none."""
    rows = people(60)
    pay = [float("nan") if i % 7 == 0 else -0.0 if i % 7 == 1 else float(i) for i in range(60)]
    rows = rows.set_column(4, "pay", pa.array(pay))
    settings = {"method": "optimal", "suppression": 0.1}
    memory = hm.anonymize(hm.read(rows, SCHEMA), hm.KAnonymity(3), **settings)
    with hm.anonymize(stored(tmp_path, rows), hm.KAnonymity(3), **settings) as release:
        same(memory, release)
        assert release.to_arrow()["pay"].null_count > 0


def test_other_methods_say_that_they_read_the_rows(tmp_path: Path) -> None:
    settings = {"method": "mondrian", "labels": "levels"}
    release = hm.anonymize(stored(tmp_path, people(100)), hm.KAnonymity(3), **settings)
    assert any("were read from duckdb into memory" in note for note in release.notes)


def test_a_type_that_cannot_be_grouped_is_refused_before_work(tmp_path: Path) -> None:
    rows = people(60).append_column("more", pa.array([[1]] * 60))
    schema = {**SCHEMA, "columns": {**SCHEMA["columns"], "more": "other"}}
    with pytest.raises(hm.errors.InputError, match="'more'"):
        hm.anonymize(stored(tmp_path, rows, schema), hm.KAnonymity(3), method="optimal")


@pytest.mark.usefixtures("in_place")
def test_no_word_of_a_row_that_stays_is_in_the_bytes_that_leave(tmp_path: Path) -> None:
    """Texts are sorted by lists of all words; who opens the files must not find the list."""
    rows = people(120)
    asked = rows["k_i"].to_pylist()
    asked[5] = 1000
    rows = rows.set_column(rows.column_names.index("k_i"), "k_i", pa.array(asked))
    words = ["plain"] * 120
    words[5] = "PLANTEDWORD"
    rows = rows.append_column("note", pa.array(words))
    schema = {**SCHEMA, "columns": {**SCHEMA["columns"], "note": "other"}}
    settings = {"method": "optimal", "suppression": 0.1}
    with hm.anonymize(stored(tmp_path, rows, schema), hm.KAnonymity(3), **settings) as release:
        release.write(tmp_path / "out.parquet")
        release.write(tmp_path / "out.csv")
        release.write(f"{tmp_path}/out/")
    left = [tmp_path / "out.parquet", tmp_path / "out.csv", *(tmp_path / "out").iterdir()]
    assert len(pq.read_table(left[0])) < 120
    for file in left:
        assert b"plain" in file.read_bytes()
        assert b"PLANTEDWORD" not in file.read_bytes()
