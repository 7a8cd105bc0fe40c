"""A release of a text file is written as that file was: decimal mark, dates, delimiter."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import halfmask as hm

TEXT = (
    "Alter;Gewicht;Aufnahme;Befund\n"
    "31;62,5;28.10.2005;a\n"
    "34;70,25;01.02.2006;b\n"
    "52;62,5;28.10.2005;a\n"
    "58;;01.02.2006;b\n"
)
SCHEMA = {
    "Alter": {"role": "quasi", "hierarchy": {"intervals": [50]}},
    "Gewicht": {"role": "other", "kind": "numeric"},
    "Aufnahme": "sensitive",
    "Befund": "other",
}


@pytest.fixture
def people(tmp_path):
    (tmp_path / "in.csv").write_text(TEXT)
    return hm.read(tmp_path / "in.csv", schema=SCHEMA)


def cells(path):
    first, *lines = path.read_text().replace('"', "").splitlines()
    return first, sorted(line.split(";")[1:] for line in lines)


KEPT = sorted(line.split(";")[1:] for line in TEXT.splitlines()[1:])


def test_kept_columns_leave_as_they_came(people, tmp_path):
    release = hm.anonymize(people, hm.KAnonymity(2), method="optimal")
    release.write(tmp_path / "out.csv")
    assert cells(tmp_path / "out.csv") == (TEXT.splitlines()[0], KEPT)
    again = hm.read(tmp_path / "out.csv")
    assert sorted(again.arrow["Gewicht"].to_pylist(), key=str) == [62.5, 62.5, 70.25, None]
    assert set(again.arrow["Aufnahme"].to_pylist()) == {
        datetime.date(2005, 10, 28), datetime.date(2006, 2, 1),
    }  # fmt: skip
    assert [v.holds for v in hm.check(tmp_path / "out.csv")] == [True]


def test_other_kinds_of_files_hold_plain_values(people, tmp_path):
    release = hm.anonymize(people, hm.KAnonymity(2), method="optimal")
    for name in ("out.parquet", "out.tsv"):
        release.write(tmp_path / name)
        assert [v.holds for v in hm.check(tmp_path / name)] == [True]
    assert "\t" in (tmp_path / "out.tsv").read_text()
    again = hm.read(tmp_path / "out.parquet").arrow
    assert sorted(again["Gewicht"].to_pylist(), key=str) == [62.5, 62.5, 70.25, None]


def test_masked_numbers_keep_their_form(people, tmp_path):
    hm.mask(people, hm.masks.Microaggregate("Gewicht", k=2), demands="ignore").write(
        tmp_path / "out.csv"
    )
    first, lines = cells(tmp_path / "out.csv")
    assert first.split(";")[1] == "Gewicht"
    assert all("." not in line[0] for line in lines)
    assert any("," in line[0] for line in lines)
    assert {line[1] for line in lines} == {"28.10.2005", "01.02.2006"}


def test_what_was_written_with_points_stays_so(tmp_path):
    (tmp_path / "in.csv").write_text(
        TEXT.replace(",", ".").replace(";", ",").replace("28.10.2005", "2005-10-28")
        .replace("01.02.2006", "2006-02-01")
    )  # fmt: skip
    table = hm.read(tmp_path / "in.csv", schema=SCHEMA)
    assert table.given == {}
    hm.anonymize(table, hm.KAnonymity(2), method="optimal").write(tmp_path / "out.csv")
    assert "62.5,2005-10-28," in (tmp_path / "out.csv").read_text()


def test_synthetic_rows_are_written_alike(tmp_path):
    first, *lines = TEXT.splitlines()
    (tmp_path / "in.csv").write_text("\n".join([first, *(lines[:3] * 40)]) + "\n")
    table = hm.read(tmp_path / "in.csv", schema=SCHEMA)
    release = hm.synthesize(table, method="cocluster", k=2, seed=1, demands="ignore")
    release.write(tmp_path / "out.csv")
    _, lines = cells(tmp_path / "out.csv")
    assert {line[0] for line in lines} <= {"62,5", "70,25", ""}
    assert {line[1] for line in lines} <= {"28.10.2005", "01.02.2006", ""}
    again = hm.read(tmp_path / "out.csv")  # by the record beside it
    assert pa.types.is_floating(again.arrow["Gewicht"].type)
    assert pa.types.is_date(again.arrow["Aufnahme"].type)


def released(tmp_path, lines, columns, method="optimal", head="age;pay"):
    """A release that may leave one row of eleven out."""
    (tmp_path / "in.csv").write_text("\n".join([head, *lines]) + "\n")
    table = hm.read(tmp_path / "in.csv", schema=columns)
    return hm.anonymize(table, hm.KAnonymity(2), method=method, suppression=0.1)


def written(tmp_path, *given, **more):
    """The released file and the schema beside it, without what hangs on their number of rows."""
    return write(tmp_path, released(tmp_path, *given, **more))


def write(tmp_path, release):
    """The same of a release that is there."""
    release.write(tmp_path / "out.csv")
    record = (tmp_path / "out.toml").read_text()
    return sorted((tmp_path / "out.csv").read_text().splitlines()), record[
        record.index("[columns") :
    ]


@pytest.mark.parametrize("declared", [{"kind": "numeric"}, {"decimal": ","}])
def test_a_suppressed_fraction_does_not_change_how_others_are_written(tmp_path, declared):
    lines = [f"{20 + i // 10};{125 + i}" for i in range(20)]
    columns = {"age": {"role": "quasi", "kind": "nominal"}, "pay": {"role": "other", **declared}}
    alone = written(tmp_path, lines, columns)
    assert "125" in alone[0][0]
    assert written(tmp_path, [*lines, "99;7,5"], columns) == alone


def test_a_suppressed_date_does_not_tell_day_from_month(tmp_path):
    lines = [f"{20 + i // 10};{1 + i % 10:02}/02/2006" for i in range(20)]
    columns = {"age": {"role": "quasi", "kind": "nominal"}, "pay": "other"}
    alone = written(tmp_path, lines, columns)
    assert '"20";"01/02/2006"' in alone[0]
    assert written(tmp_path, [*lines, "99;28/10/2005"], columns) == alone


def test_tabs_and_rare_delimiters_become_commas_in_csv(tmp_path):
    lines = [f"{20 + i // 10}\t{i}" for i in range(20)]
    columns = {"age": {"role": "quasi", "kind": "nominal"}, "pay": "other"}
    rows, _ = written(tmp_path, lines, columns, head="age\tpay")
    assert '"age","pay"' in rows


def test_small_numbers_are_written_in_full_beside_a_comma(tmp_path):
    lines = [f"{20 + i // 10};0,000000015" for i in range(19)] + ["21;2,5"]
    columns = {"age": {"role": "quasi", "kind": "nominal"}, "pay": SCHEMA["Gewicht"]}
    rows, _ = written(tmp_path, lines, columns)
    assert sum("0,000000015" in row for row in rows) == 19
    again = hm.read(tmp_path / "out.csv").arrow["pay"].to_pylist()
    assert sorted(again) == [1.5e-8] * 19 + [2.5]


OPEN = {"age": {"role": "quasi", "kind": "nominal"}, "pay": "other"}
LEAVING = {
    "whole numbers": [f"{125 + i}" for i in range(20)],
    "decimals": [f"{125 + i}.5" for i in range(20)],
    "decimals without a fraction": [f"{125 + i}.0" for i in range(20)],
    "thousands": [f"{1 + i}e3" for i in range(20)],
    "decimals with a comma": [f"{125 + i},25" for i in range(20)],
    "days": [f"2006-02-{1 + i:02}" for i in range(20)],
    "days as Germans write them": [f"{1 + i:02}.02.2006" for i in range(20)],
    "days that may be months": [f"{1 + i % 10:02}/02/2006" for i in range(20)],
    "texts": [f"a{i}" for i in range(20)],
    "nothing": [""] * 20,
}
ODD = ["7,5", "7.5", "unknown", "7", "2006-02-28", "28.10.2005", "28/10/2005", ""]


def leaves(tmp_path, values, odd):
    """Types, values and record of a release whose one suppressed row held ``odd``."""
    lines = [f"{20 + i // 10};{value}" for i, value in enumerate(values)] + [f"99;{odd}"]
    release = released(tmp_path, lines, OPEN)
    rows, record = write(tmp_path, release)
    release.write(tmp_path / "out.parquet")
    held = pq.read_table(tmp_path / "out.parquet")
    kind = held.schema.field("pay").type
    inside = held.schema.metadata[b"halfmask"].decode()
    return rows, record, kind, inside[inside.index("[columns") :], sorted(map(str, held["pay"]))


@pytest.mark.parametrize("values", LEAVING.values(), ids=LEAVING)
def test_the_type_of_a_column_does_not_tell_what_a_suppressed_row_held(tmp_path, values):
    found = [leaves(tmp_path, values, odd) for odd in ODD]
    assert len(found[0][0]) == 21
    assert all(one == found[0] for one in found), [one[2] for one in found]


def test_the_types_are_those_that_the_rows_tell(tmp_path):
    kinds = {name: leaves(tmp_path, values, "unknown")[2] for name, values in LEAVING.items()}
    assert {name: str(kind) for name, kind in kinds.items()} == {
        "whole numbers": "int64",
        "decimals": "double",
        "decimals without a fraction": "int64",
        "thousands": "int64",
        "decimals with a comma": "string",  # 125,25 may be a code: reading asks for the mark
        "days": "date32[day]",
        "days as Germans write them": "date32[day]",
        "days that may be months": "string",
        "texts": "string",
        "nothing": "string",
    }


def test_the_type_of_a_masked_column_does_not_tell_what_a_row_held_that_was_not_drawn(tmp_path):
    lines = [f"{20 + i // 10};{125 + i};{i % 4}" for i in range(20)]
    told = []
    for odd in ("7", "7.5", "unknown"):
        (tmp_path / "in.csv").write_text(
            "\n".join(["age;pay;ill", *lines, f"9;{odd};{odd}"]) + "\n"
        )
        table = hm.read(tmp_path / "in.csv", schema={**OPEN, "ill": "sensitive"})
        seeds = iter(range(99))
        while True:  # until the odd row is not drawn
            steps = hm.masks.Sample(0.5), hm.masks.Anatomy("ill", l=2)
            made = hm.mask(table, *steps, seed=next(seeds), demands="ignore")
            if not {"7", "7.5", "unknown"} & set(map(str, made.to_arrow()["pay"].to_pylist())):
                break
        beside = made.tables["ill"].schema.field("ill").type
        told.append((str(made.to_arrow().schema.field("pay").type), str(beside)))
    assert told == [("int64", "int64")] * 3


def test_types_of_synthetic_rows_tell_nothing_of_a_value_that_nobody_shares(tmp_path):
    found = set()
    for odd in ("5", "x", "7.5"):
        path = tmp_path / f"{odd}.csv"
        shared = "".join(f"{'ab'[i % 2]},{1 + i % 4}\n" for i in range(200))
        path.write_text(f"q,v\n{shared}a,{odd}\n")
        people = hm.read(path, {"columns": {"q": "quasi", "v": "sensitive"}})
        rows = hm.synthesize(people, method="cocluster", k=5, seed=1).to_arrow()
        assert set(rows["v"].to_pylist()) <= {1, 2, 3, 4}
        found.add(rows.schema.field("v").type)
    assert len(found) == 1
