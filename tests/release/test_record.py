"""A release file says itself what it is, and that it was changed."""

from __future__ import annotations

import gzip

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfmask as hm
from halfmask.errors import InputError
from halfmask.release.record import matches_record, rows_digest
from halfmask.table.read import INSIDE

SCHEMA = {
    "table": {"person": "who"},
    "policy": {"k": "k_i"},
    "columns": {
        "who": "identifier",
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 30]}},
        "code": {"role": "quasi", "kind": "nominal"},
        "ill": "sensitive",
    },
}


def people(**more: object) -> hm.Table:
    rows = {
        "who": [f"CANARY{i}" for i in range(40)],
        "age": [31 + i % 7 for i in range(39)] + [93],
        "code": ["01", "1"] * 20,
        "ill": ["flu", "gout"] * 20,
        "k_i": [2] * 39 + [29],
    } | more
    return hm.read(pa.table(rows), schema=SCHEMA)


@pytest.mark.parametrize("name", ["out.csv", "out.tsv", "out.csv.gz", "out.parquet", "out.arrow"])
def test_a_file_is_checked_as_it_stands(name, tmp_path):
    release = hm.anonymize(people(), hm.KAnonymity(2), method="optimal", suppression=0.1,
                           demands="ignore")  # fmt: skip
    release.write(tmp_path / name)
    back = hm.read(tmp_path / name)
    assert {n: c.role for n, c in back.schema.columns.items()} == {
        "age": "quasi", "code": "quasi", "ill": "sensitive",
    }  # fmt: skip
    assert sorted(set(back.arrow["code"].to_pylist())) == ["01", "1"]  # two codes stay two
    (verdict,) = hm.check(back)
    assert (verdict.model, verdict.holds, verdict.required) == ("k-anonymity", True, 2)
    assert matches_record(tmp_path / name, back.schema.release) is True


def test_a_changed_file_is_noticed(tmp_path):
    release = hm.anonymize(people(), hm.KAnonymity(2), method="optimal", suppression=0.1,
                           demands="ignore")  # fmt: skip
    text, packed = tmp_path / "a.csv", tmp_path / "b.parquet"
    release.write(text)
    facts = hm.read(text).schema.release
    text.write_text(text.read_text().replace("gout", "flu", 1))
    assert matches_record(text, facts) is False
    release.write(packed)
    rows = pq.read_table(packed)
    other = rows.set_column(2, "ill", pa.array(["flu"] * len(rows)))
    pq.write_table(other.replace_schema_metadata(rows.schema.metadata), packed)
    assert matches_record(packed, hm.read(packed).schema.release) is False


@pytest.mark.parametrize("name", ["a.csv", "a.csv.gz"])
def test_other_ends_of_lines_are_no_change(name, tmp_path):
    release = hm.anonymize(people(), hm.KAnonymity(2), method="optimal", suppression=0.1,
                           demands="ignore")  # fmt: skip
    path = tmp_path / name
    release.write(path)
    packed = name.endswith("gz")
    held = gzip.decompress(path.read_bytes()) if packed else path.read_bytes()
    facts = hm.read(path).schema.release
    for text, same in ((held, True), (held.replace(b"gout", b"flu", 1), False)):
        text = text.replace(b"\n", b"\r\n")
        path.write_bytes(gzip.compress(text) if packed else text)
        assert matches_record(path, facts) is same
    assert hm.assess(str(path)).smallest >= 2


def test_a_record_tells_no_more_than_the_release(tmp_path):
    """Neither who was left out nor the highest demand can be read off the record."""
    told = set()
    for age, demand in ((93, 999), (71, 777)):
        table = people(age=[31] * 39 + [age], k_i=[2] * 39 + [demand])
        release = hm.anonymize(table, method="personal", on_infeasible="suppress")
        release.write(tmp_path / "a.csv")
        text = (tmp_path / "a.toml").read_text(encoding="utf-8")
        assert "CANARY" not in text
        assert "k_i" not in text
        assert str(demand) not in text.split("sha256")[0]
        told.add(text.split("sha256")[0])
    schema = hm.read(tmp_path / "a.csv").schema
    assert (schema.person, schema.policy) == (None, {})
    assert len(told) == 1


def test_the_schema_of_another_table_is_not_written_over(tmp_path):
    (tmp_path / "a.toml").write_text('[columns]\nage = "quasi"\n', encoding="utf-8")
    release = hm.anonymize(people(), hm.KAnonymity(2), method="optimal", suppression=0.1,
                           demands="ignore")  # fmt: skip
    with pytest.raises(InputError, match="another table"):
        release.write(tmp_path / "a.csv")
    assert not (tmp_path / "a.csv").exists()
    release.write(tmp_path / "a.parquet")  # it holds its own


def test_the_digest_is_of_values_and_not_of_how_they_are_held():
    plain = pa.table({"a": ["x", None, "y"], "n": [1, 2, None]})
    coded = plain.set_column(0, "a", plain["a"].dictionary_encode())
    parts = pa.concat_tables([plain.slice(0, 1), plain.slice(1)])
    assert rows_digest(plain) == rows_digest(coded) == rows_digest(parts)
    moved = pa.table({"a": ["x", "y", None], "n": [1, 2, None]})
    assert rows_digest(moved) != rows_digest(plain)
    assert rows_digest(plain.rename_columns(["b", "n"])) != rows_digest(plain)


def test_a_strangers_file_names_no_other_file(tmp_path):
    """What stands in a Parquet file may come from anybody: roles count, nothing else does."""
    said = b'[policy]\nfile = "/etc/passwd"\n[columns.age]\nrole = "quasi"\n'
    said += b'hierarchy = { csv = "/etc/passwd" }\n[release]\nformat = "halfmask.file/1"\n'
    rows = pa.table({"age": [1, 2]}).replace_schema_metadata({INSIDE: said})
    pq.write_table(rows, tmp_path / "a.parquet")
    schema = hm.read(tmp_path / "a.parquet").schema
    assert schema.columns["age"].hierarchy is None
    assert (schema.policy_file, dict(schema.policy)) == (None, {})
