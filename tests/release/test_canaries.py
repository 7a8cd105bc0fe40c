"""Identifiers, suppressed rows and unpublished values never appear in anything that is written."""

from __future__ import annotations

import gzip

import pytest

from halfmask.errors import HalfmaskError
from halfmask.release import Recoding, seal


def test_no_written_file_holds_a_canary(lab, tmp_path):
    table = lab.people()
    release = seal(lab.candidate(table))
    release.report(tmp_path / "a.json")
    release.report(tmp_path / "a.html")
    release.recoding.save(tmp_path / "recoding.json")
    release.recoding.to_csv(tmp_path / "maps", table)
    for dialect in ("duckdb", "postgres", "spark"):
        sql = release.recoding.to_sql(table, name="people", dialect=dialect)
        (tmp_path / f"{dialect}.sql").write_text(sql)
    for suffix in (".csv", ".csv.gz", ".tsv", ".parquet", ".feather", ".arrow"):
        release.write(tmp_path / f"a{suffix}")
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert len(files) == 16  # one schema file beside the text files
    for path in files:
        content = path.read_bytes()
        content = gzip.decompress(content) if path.suffix == ".gz" else content
        assert lab.CANARY[:5].encode() not in content, path.name
        if path.suffix in {".csv", ".sql", ".tsv"}:  # the age of the suppressed row
            assert b"91" not in content, path.name


def test_no_repr_holds_a_value(lab):
    candidate = lab.candidate()
    release = seal(candidate)
    for thing in (candidate, candidate.table, release, release.recoding):
        assert lab.CANARY[:5] not in repr(thing)
        assert "35510" not in repr(thing)


@pytest.mark.parametrize("step", [[0, 0, 0, 0, 0], [0, 0, 0, -1, 0], [-1] * 5, [0, 0, 0, 0, 3]])
def test_no_error_holds_a_value(lab, step):
    table = lab.people()
    for levels in ({"age": 1, "zip": 0}, {"age": 9, "zip": 0}):
        with pytest.raises(HalfmaskError) as caught:
            seal(
                lab.candidate(
                    table,
                    recoding=Recoding.of(table, [levels]),
                    step=lab.steps(*step),
                    parameters={},
                )
            )
        assert lab.CANARY[:5] not in str(caught.value)
        assert "91" not in str(caught.value)
