"""What an engine may do wrong, and what happens where the way ends: nothing leaves."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from effort import THOROUGH
from places import MODELS, people, stored

import halfmask as hm
from halfmask.engines.duckdb.engine import DuckDB
from halfmask.ownership import TEMPORARY, temporary_folder
from halfmask.release.doors import stored_rows

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from halfmask.engines.staging import Labeling

SETTINGS: dict[str, Any] = {"method": "optimal", "suppression": 0.05}


def _refused(place: Path, error: type[hm.errors.HalfmaskError], words: str) -> None:
    table = stored(place, people())
    with pytest.raises(error, match=words):
        hm.anonymize(table, *MODELS, **SETTINGS)
    assert [one.name for one in place.iterdir()] == ["people.parquet"]


def _drop_cell(one: Labeling) -> Labeling:
    assert one.codes is not None
    return replace(one, codes=[codes[1:] for codes in one.codes])


def _double_cell(one: Labeling) -> Labeling:
    assert one.codes is not None
    return replace(one, codes=[np.append(codes, codes[:1]) for codes in one.codes])


def _mislabel(one: Labeling) -> Labeling:
    name = next(n for n, c in one.columns.items() if c.labels is not None)
    column = one.columns[name]
    assert column.labels is not None
    turned = pa.concat_arrays([column.labels[1:], column.labels[:1]])
    return replace(one, columns={**one.columns, name: replace(column, labels=turned)})


@pytest.mark.parametrize("change", [_drop_cell, _double_cell, _mislabel])
def test_a_labeling_that_drops_doubles_or_mislabels_rows_does_not_leave(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    change: Callable[[Labeling], Labeling],
) -> None:
    honest = stored_rows.propose_labeling
    monkeypatch.setattr(stored_rows, "propose_labeling", lambda *given: change(honest(*given)))
    _refused(tmp_path, hm.errors.InternalError, "wrote other rows than those that were checked")


def test_an_engine_that_writes_one_row_more_does_not_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = DuckDB.write_rows

    def generous(self: DuckDB, name: str, query: str, columns: Any, folder: Path) -> None:
        honest(self, name, query, columns, folder)
        place = folder / "rows.parquet"
        rows = pq.read_table(place)
        pq.write_table(pa.concat_tables([rows, rows.slice(0, 1)]), place)

    monkeypatch.setattr(DuckDB, "write_rows", generous)
    _refused(tmp_path, hm.errors.InternalError, "wrote other rows than those that were checked")


def test_an_engine_that_exchanges_values_of_another_column_does_not_leave(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = DuckDB.write_rows

    def careless(self: DuckDB, name: str, query: str, columns: Any, folder: Path) -> None:
        honest(self, name, query, columns, folder)
        place = folder / "rows.parquet"
        rows = pq.read_table(place)
        pay = rows["pay"].to_pylist()
        turned = pa.chunked_array([pa.array([*pay[1:], pay[0]], rows["pay"].type)])
        pq.write_table(rows.set_column(rows.column_names.index("pay"), "pay", turned), place)

    monkeypatch.setattr(DuckDB, "write_rows", careless)
    _refused(tmp_path, hm.errors.InternalError, "other values than the table holds")


def test_rows_that_cannot_fit_are_refused_before_they_are_read(tmp_path: Path) -> None:
    table = stored(tmp_path, people())
    vars(table.stored)["_count"] = 10**9  # three numbers and four texts: 120 bytes a row
    for verb in (
        lambda: hm.anonymize(table, hm.KAnonymity(3), method="local", labels="sets"),
        lambda: hm.describe(table, hierarchies="auto"),
    ):
        with pytest.raises(hm.errors.InputError, match=r"about 120\.0 GB, more than memory_limit"):
            verb()


def test_rows_that_change_while_they_are_read_are_refused(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    honest = stored_rows.propose_labeling

    def late(*given: Any) -> Labeling:
        rows = people()
        pq.write_table(pa.concat_tables([rows, rows.slice(0, 5)]), tmp_path / "people.parquet")
        return honest(*given)

    monkeypatch.setattr(stored_rows, "propose_labeling", late)
    _refused(tmp_path, hm.errors.EngineError, "changed while they were read|could not")


_KILLED = """
import os, signal, sys
import halfmask as hm
from halfmask.engines import staging
from halfmask.engines import postgres
from halfmask.release import record, stored_entries
from halfmask.release.doors import stored_rows
from places import MODELS, SCHEMA, people

def reach(point):
    if point == sys.argv[2]:
        os.kill(os.getpid(), signal.SIGKILL)

for module in (staging, postgres, record, stored_rows, stored_entries):
    module.reach = reach
table = hm.read(sys.argv[1] + "/people.parquet", SCHEMA, engine="duckdb", memory_limit="200MB")
levels = hm.Recoding.of(hm.read(people(), SCHEMA), [{"age": 3, "sex": 0, "zip": 2}])
verbs = {
    "anonymize": lambda: hm.anonymize(table, *MODELS, method="optimal", suppression=0.05),
    "mask": lambda: hm.mask(table, "round age base=5", demands="ignore"),
    "recode": lambda: levels.apply(table, *MODELS, suppression=0.5),
    "risks": lambda: hm.row_risks(table),
}
verbs[sys.argv[4]]().write(sys.argv[1] + "/" + sys.argv[3])
print("whole")
"""


@pytest.mark.parametrize(
    ("verb", "point", "target"),
    [("anonymize", "written aside", "out.parquet"), ("anonymize", "before publishing", "out/"),
     ("mask", "before publishing", "out.parquet"), ("recode", "written aside", "out.csv"),
     ("risks", "written aside", "out.csv"),
     *([("anonymize", "before publishing", "out.parquet")] if THOROUGH else [])],
)  # fmt: skip
def test_a_killed_process_leaves_nothing_that_looks_like_a_release(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, verb: str, point: str, target: str
) -> None:
    stored(tmp_path, people())
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    tools = f"{sys.path[0]}:" + ":".join(p for p in sys.path if p.endswith("tools"))
    done = subprocess.run(  # noqa: S603 - our own program
        [sys.executable, "-c", _KILLED, str(tmp_path), point, target, verb],
        capture_output=True,
        check=False,
        env={
            **os.environ,
            "PYTHONPATH": ":".join([*sys.path, tools]),
            "TMPDIR": str(scratch),
        },
    )
    assert done.returncode == -9, done.stderr.decode()[-500:]
    assert not (tmp_path / target).exists()
    left = {one.name for one in tmp_path.iterdir()} - {"people.parquet", "scratch"}
    assert all(name.startswith(".") and name.endswith(".part") for name in left)
    with pytest.raises(hm.errors.InputError):
        hm.read(f"{tmp_path}/{target}")
    monkeypatch.setattr(tempfile, "tempdir", str(scratch))
    assert list(scratch.rglob("rows.parquet"))  # the next process takes away what nobody holds
    with temporary_folder() as held, temporary_folder() as other:
        assert {held, other} == set(scratch.glob(TEMPORARY + "*"))


def test_a_full_disk_leaves_nothing(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hm.anonymize(stored(tmp_path, people()), *MODELS, **SETTINGS) as release:

        def full(*_: Any, **__: Any) -> None:
            raise OSError(28, "No space left on device")

        monkeypatch.setattr(pq.ParquetWriter, "write_batch", full)
        for target in ("out.parquet", "out/"):
            with pytest.raises(hm.errors.InputError, match="No space left"):
                release.write(f"{tmp_path}/{target}")
    assert [one.name for one in tmp_path.iterdir()] == ["people.parquet"]
