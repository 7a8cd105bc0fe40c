"""Numbers, dates and missing values as people write them, found from all values of a column."""

from __future__ import annotations

import datetime
import tomllib

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import HierarchyError, SchemaError
from halfmask.table.moments import FORMS, form_fault, forms_of, moments_by
from halfmask.table.values import mark_of

BORN = datetime.date(2005, 10, 28)


def column(*texts, entry=None, **how):
    text = "a;b\n" + "".join(f"{text};1\n" for text in texts)
    schema = None if entry is None else {"a": {"role": "quasi", **entry}, "b": "other"}
    return hm.read(text.encode(), schema, delimiter=";", **how).arrow["a"]


@pytest.mark.parametrize(
    ("texts", "numbers"),
    [
        (["100.0", "99.5"], [100.0, 99.5]),
        (["1.50", "2.00"], [1.5, 2.0]),
        ([" 62.84", "  7.1 ", "100"], [62.84, 7.1, 100.0]),
        ([" 5", "12"], [5, 12]),
        (["1e3", "2.5E-1"], [1000.0, 0.25]),
        (["1,234.50", "12", "1.5"], [1234.5, 12.0, 1.5]),
        (["1.234,5", "12,75", "3"], [1234.5, 12.75, 3.0]),
        (["1.234", "2.345"], [1.234, 2.345]),
        (["170.1", "180.25"], [170.1, 180.25]),
        ([".5", "-.25"], [0.5, -0.25]),
        (["5", "5.0"], [5.0, 5.0]),
    ],
    ids=str,
)
def test_numbers_as_people_write_them(texts, numbers):
    assert column(*texts).to_pylist() == numbers


@pytest.mark.parametrize(
    "texts",
    [["01.5", "2"], ["+5", "3"], ["1,5", "2,7"], ["1,234", "2,345"], ["100,200,300", "1,234,567"],
     ["1.1", "1.10"], ["1,5", "1.5"], ["1.2.3", "4"], ["12345678901234567890.5", "1"]],
    ids=str,
)  # fmt: skip
def test_what_may_be_codes_stays_text(texts):
    assert column(*texts).to_pylist() == texts


def test_a_text_is_never_read_as_another_number():
    numeric = {"kind": "numeric"}
    assert column("170.1", "180.2", entry=numeric, decimal=",").to_pylist() == [170.1, 180.2]
    assert column("170.1", "180.2", decimal=",").to_pylist() == [170.1, 180.2]
    with pytest.raises(SchemaError, match=r"1 row\(s\) hold text that is no number") as caught:
        column("170,1", "180.2", "1,7", entry=numeric, decimal=",")
    assert "180" not in str(caught.value)
    with pytest.raises(SchemaError, match="with the decimal mark ','"):
        column("170.1", "180.2", entry={"kind": "numeric", "decimal": ","})
    with pytest.raises(SchemaError, match="decimal marks or stand between thousands"):
        column("1,234", "2,345", entry=numeric)
    said = {"kind": "numeric", "decimal": ","}
    assert column("1,234", "2,345", entry=said).to_pylist() == [1.234, 2.345]
    said = {"kind": "numeric", "decimal": "."}
    assert column("1,234", "2,345", entry=said, decimal=",").to_pylist() == [1234, 2345]
    assert column("1.234", "5.678", entry={"decimal": ","}).to_pylist() == [1234, 5678]


def test_the_mark_is_found_per_column():
    rows = hm.read(b"a;b\n1.234,5;1.5\n12,75;2.25\n").arrow
    assert rows["a"].to_pylist() == [1234.5, 12.75]
    assert rows["b"].to_pylist() == [1.5, 2.25]
    assert mark_of(pa.array(["1", "2"])) == "."
    assert mark_of(pa.array(["x"])) is None


@pytest.mark.parametrize(
    "text",
    ["28.10.2005", "10/28/2005", "28/10/2005", "28-10-2005", "2005/10/28", "28 Oct 2005",
     "28OCT2005", "28-Oct-2005", "28 October 2005", "October 28, 2005", "2005-10-28"],
)  # fmt: skip
def test_dates_as_people_write_them(text):
    assert column(text, text).to_pylist() == [BORN, BORN]
    timed = column(f"{text} 10:30", f"{text} 23:59").to_pylist()
    assert [moment.hour for moment in timed if not isinstance(moment, str)] in ([10, 23], [])


def test_all_values_decide_the_order_of_day_and_month():
    assert column("01/02/2005", "13/02/2005").to_pylist()[0] == datetime.date(2005, 2, 1)
    assert column("01/02/2005", "02/13/2005").to_pylist()[0] == datetime.date(2005, 1, 2)
    assert column("05/05/2005").to_pylist() == [datetime.date(2005, 5, 5)]  # either way the same
    twofold = ["01/02/2005", "03/04/2005"]
    assert column(*twofold).to_pylist() == twofold
    with pytest.raises(SchemaError, match=r'say which, format = "%d/%m/%Y" or format = "%m/%d/%Y"'):
        column(*twofold, entry={"kind": "date"})
    dates = {"a": {"role": "quasi", "hierarchy": {"dates": ["year"]}}}
    with pytest.raises(HierarchyError, match="several ways"):
        hm.anonymize(hm.read(pa.table({"a": twofold}), dates), hm.KAnonymity(2))
    said = {"format": "%d/%m/%Y"}
    assert column(*twofold, entry=said).to_pylist()[0] == datetime.date(2005, 2, 1)
    with pytest.raises(SchemaError, match=r"1 row\(s\) hold text that is no date in the format"):
        column("01/02/2005", "31/02/2005", entry={"kind": "date", **said})


@pytest.mark.parametrize("text", ["2005-10", "2005", "10/2005", "20051001"])
def test_months_and_years_are_dates_where_that_is_said(text):
    assert not pa.types.is_date(column(text).type)
    found = column(text, entry={"kind": "date"}).to_pylist()[0]
    assert found.year == 2005
    assert found.month == (1 if text == "2005" else 10)


def test_dates_of_any_form_have_the_levels_of_the_calendar():
    levels = ["month", "quarter", "year", "decade"]
    entry = {"role": "quasi", "hierarchy": {"dates": levels}}
    for rows in (b"a;b\n28.10.2005;1\n01.02.2011;2\n", pa.table({"a": ["28.10.2005"]})):
        hierarchy = hm.read(rows, {"a": entry}).hierarchy("a")
        labels = [hierarchy.labels[level][0] for level in range(1, 5)]
        assert {"2005-10", "2005-Q4", "2005", "2000-2009"} == set(labels)


@pytest.mark.parametrize("form", [3, "", "%d.%m", "%Q", "%Y %Y", "%Y %y", "%Y-%m-%d %Z"], ids=str)
def test_forms_that_are_none_are_refused(form):
    assert form_fault(form)
    with pytest.raises(SchemaError, match="format must"):
        hm.Schema.from_dict({"a": {"role": "quasi", "format": form}})


def test_missing_values_of_one_column():
    entry = {"a": {"role": "quasi", "missing": ["-1", "Refused"]}, "b": "quasi"}
    rows = hm.read(b"a,b\n-1,-1\n5,3\nRefused,4\n", entry).arrow
    assert rows["a"].to_pylist() == [None, 5, None]
    assert rows["b"].to_pylist() == [-1, 3, 4]
    for values in ([-1, 5], [-1.0, 5.0], ["-1", "5"]):
        rows = hm.read(pa.table({"a": values, "b": [1, 2]}), entry).arrow
        assert rows["a"].null_count == 1
    schema = hm.Schema.from_dict(entry)
    assert hm.Schema.from_dict(tomllib.loads(schema.to_toml())) == schema
    with pytest.raises(SchemaError, match="missing must be a list of texts"):
        hm.Schema.from_dict({"a": {"role": "quasi", "missing": [1]}})


@pytest.mark.parametrize("engine", [None, "duckdb"])
def test_an_engine_counts_what_is_written_in_any_form(tmp_path, engine):
    path = tmp_path / "p.csv"
    path.write_text("n;d;m\n" + "".join(
        f"1.234,{i % 2};{1 + i % 2}.10.2005;{-1 if i % 2 else 5}\n" for i in range(8)))  # fmt: skip
    schema = {
        "n": {"role": "quasi", "kind": "numeric", "decimal": ","},
        "d": {"role": "quasi", "format": "%d.%m.%Y"},
        "m": {"role": "quasi", "missing": ["-1"]},
    }
    verdict = hm.check(hm.read(path, schema, engine=engine), hm.KAnonymity(4))[0]
    assert verdict.holds
    assert verdict.achieved == 4


def test_sentinels_are_proposed_and_never_taken_silently(tmp_path):
    ages = [*range(20, 60), 9999, -1]
    words = [*["yes", "no"] * 20, "Refused", "k.A."]
    income = [*(str(10 * i) for i in range(40)), ".", "unknown"]
    path = tmp_path / "p.csv"
    rows = zip(ages, words, income, strict=True)
    path.write_text("age,smokes,pay\n" + "".join(f"{a},{w},{i}\n" for a, w, i in rows))
    plain = hm.read(path).arrow
    assert [plain[name].null_count for name in plain.column_names] == [0, 0, 0]
    found = hm.describe(path)
    said = {p.name: set(p.written.get("missing", ())) for p in found.columns}
    assert said == {"age": {"9999", "-1"}, "smokes": {"Refused", "k.A."}, "pay": {".", "unknown"}}
    assert found.columns[2].kind == "numeric"
    assert any("Proposed as missing" in note for note in found.notes)
    assert found.to_dict()["columns"][0]["written"]["missing"]
    kept = hm.read(path, found.to_schema()).arrow
    assert [kept[name].null_count for name in kept.column_names] == [2, 2, 2]
    none = hm.describe(pa.table({"score": [*range(-5, 100), 99], "n": [*range(105), 999]}))
    assert [p.written for p in none.columns] == [{}, {"missing": ("999",)}]


FILES = {
    "padded decimals": "weight,n\n" + "".join(f"{w:6.2f},{w // 10}\n" for w in range(40, 80)),
    "decimal commas": "w;p;n\n" + "".join(f"{w},5;{w}.25;{w % 3}\n" for w in range(40, 80)),
    "commas alone": "w;n\n" + "".join(f"{w},5;{w % 3}\n" for w in range(40, 80)),
    "thousands": 'pay;n\n' + "".join(f"{w},234.50;{w % 3}\n" for w in range(40, 80)),
    "thousands or decimals": "pay;n\n" + "".join(f"{w},234;{w % 3}\n" for w in range(40, 80)),
    "german dates": "d;n\n" + "".join(f"{1 + w % 28}.9.20{w % 9 + 9};{w % 3}\n" for w in range(40)),
    "twofold dates": "d;n\n" + "".join(f"0{1 + w % 9}/10/2005;{w % 3}\n" for w in range(40)),
    "times": "d;n\n" + "".join(f"{13 + w % 9}/10/2005 1{w % 9}:30;{w % 3}\n" for w in range(40)),
    "months": "d;n\n" + "".join(f"2005-{1 + w % 12:02};{w % 3}\n" for w in range(40)),
    "sentinels": "a;b;n\n" + "".join(
        f"{w if w % 9 else 9999};{w / 4 if w % 7 else 'Refused'};{w % 3}\n" for w in range(40)),
    "codes": "zip;code;sex\n" + "".join(f"0{w % 5}1;{' ' if w % 3 else ''}{w % 4};{'fm'[w % 2]}\n"
                                        for w in range(40)),
    "tokens": "a;b\n" + "".join(f"{'?' if w % 5 == 0 else w / 2};{w % 3}\n" for w in range(40)),
    "signs": "a;b\n" + "".join(f"{w - 20:+d};{w % 3}\n" for w in range(40)),
    "empty": "a;b\n" + "".join(f";{w % 3}\n" for w in range(40)),
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "hierarchies"),
    [
        *((name, "proposed") for name in FILES),
        *((name, "auto") for name in ("padded decimals", "decimal commas", "codes", "sentinels")),
    ],
)
def test_a_proposed_schema_is_accepted_by_every_verb(tmp_path, name, hierarchies):
    path, schema = tmp_path / "p.csv", tmp_path / "p.toml"
    names, *lines = FILES[name].splitlines()
    path.write_text("\n".join([names, *lines * 6]))  # enough for hierarchies to be found
    found = hm.describe(hm.read(path, hm.Schema()), hierarchies=hierarchies)
    schema.write_text(found.to_toml())
    table = hm.read(path)
    assert table.schema.columns.keys() == {p.name for p in found.columns if p.role != "policy"}
    kinds = {p.name: p.kind for p in found.columns}
    for one, kind in kinds.items():
        held = table.arrow[one].type
        assert pa.types.is_temporal(held) == (kind == "date")
    if not table.schema.quasi:
        return
    hm.hierarchies.check_hierarchies(table)
    hm.assess(table)
    hm.check(table, hm.KAnonymity(2))
    release = hm.anonymize(table, hm.KAnonymity(2), method="optimal", suppression=1.0)
    release.write(tmp_path / "out.csv")


@pytest.mark.parametrize("form", FORMS)
def test_every_form_is_found_in_dates_written_so(form):
    days = [datetime.datetime.fromisoformat(one) for one in ("2005-10-28T07:05:09", "1999-05-13")]
    texts = pa.array([day.strftime(form) for day in days])
    found = forms_of(texts)
    assert len(found) == 1  # no other form, or one that means the same
    wanted = [day if "%H" in form else day.date() for day in days]
    if "%H" in form and "%S" not in form:
        wanted = [day.replace(second=0) for day in days]
    assert moments_by(texts, found[0]).to_pylist() == wanted
