"""Files of other programs and packed text: read as they are, or refused in one clear sentence."""

from __future__ import annotations

import bz2
import datetime
import gzip
import io
import lzma
import sqlite3
import sys
import zipfile

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import EngineUnavailableError, HalfmaskError, InputError, ParameterError
from halfmask.service.files import require_unpacked
from halfmask.table.files.rows import file_kind

CANARY = "Zanzibar-Canary-77"
CSV = "age,city\n39,Graz\n50,Linz\n,Graz\n"
ROWS = {"age": [39, 50, None], "city": ["Graz", "Linz", "Graz"]}


def columns(table):
    return {name: table.arrow[name].to_pylist() for name in table.column_names}


def zipped(*files):
    target = io.BytesIO()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED) as file:
        for name, text in files:
            file.writestr(name, text)
    return target.getvalue()


def cell(place, value):
    if isinstance(value, datetime.date):
        days = (value - datetime.date(1899, 12, 30)).days
        return f'<c r="{place}" s="1"><v>{days}</v></c>'
    if isinstance(value, str):
        return f'<c r="{place}" t="inlineStr"><is><t>{value}</t></is></c>'
    return "" if value is None else f'<c r="{place}"><v>{value}</v></c>'


def sheet(rows):
    lines = "".join(
        f'<row r="{y}">'
        + "".join(cell(f"{chr(65 + x)}{y}", v) for x, v in enumerate(row))
        + "</row>"
        for y, row in enumerate(rows, start=1)
    )
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    return f'<worksheet xmlns="{main}"><sheetData>{lines}</sheetData></worksheet>'


def workbook(*sheets):
    """A workbook of (name, XML of the sheet), with one style for dates."""
    main = "http://schemas.openxmlformats.org/spreadsheetml/2006/main"
    office = "http://schemas.openxmlformats.org/officeDocument/2006/relationships"
    package = "http://schemas.openxmlformats.org/package/2006/relationships"
    listed = "".join(
        f'<sheet name="{name}" sheetId="{n}" r:id="rId{n}"/>'
        for n, (name, _) in enumerate(sheets, 1)
    )
    related = "".join(
        f'<Relationship Id="rId{n}" Type="{office}/worksheet" Target="worksheets/sheet{n}.xml"/>'
        for n in range(1, len(sheets) + 1)
    )
    related += f'<Relationship Id="rIdS" Type="{office}/styles" Target="styles.xml"/>'
    styles = (
        f'<styleSheet xmlns="{main}"><cellXfs count="2"><xf numFmtId="0"/><xf numFmtId="14"/>'
        "</cellXfs></styleSheet>"
    )
    return zipped(
        ("[Content_Types].xml", "<Types/>"),
        (
            "_rels/.rels",
            f'<Relationships xmlns="{package}"><Relationship Id="rId1"'
            f' Type="{office}/officeDocument" Target="xl/workbook.xml"/></Relationships>',
        ),
        (
            "xl/workbook.xml",
            f'<workbook xmlns="{main}" xmlns:r="{office}"><sheets>{listed}</sheets></workbook>',
        ),
        (
            "xl/_rels/workbook.xml.rels",
            f'<Relationships xmlns="{package}">{related}</Relationships>',
        ),
        ("xl/styles.xml", styles),
        *((f"xl/worksheets/sheet{n}.xml", xml) for n, (_, xml) in enumerate(sheets, 1)),
    )


PACKINGS = {
    "gz": gzip.compress,
    "bz2": bz2.compress,
    "xz": lzma.compress,
    "zst": lambda data: pa.compress(data, codec="zstd", asbytes=True),
    "zip": lambda data: zipped(("people.csv", data), ("__MACOSX/._people.csv", b"x")),
}


@pytest.mark.parametrize("ending", PACKINGS)
def test_packed_text_is_known_by_its_first_bytes(tmp_path, ending):
    data = PACKINGS[ending](CSV.encode())
    for name in (f"people.csv.{ending}", "people.csv"):
        path = tmp_path / name
        path.write_bytes(data)
        assert columns(hm.read(path)) == ROWS
    assert columns(hm.read(data)) == ROWS
    (tmp_path / "people.toml").write_text('[columns.age]\nrole = "quasi"\n')
    assert hm.read(tmp_path / f"people.csv.{ending}").schema.quasi == ("age",)
    with pytest.raises(HalfmaskError, match="unpacks to more than"):
        require_unpacked(path, 10)
    path.write_bytes(data[: len(data) - 20])
    with pytest.raises(InputError) as caught:
        hm.read(path)
    assert caught.value.__cause__ is None


@pytest.mark.parametrize(
    ("data", "message"),
    [
        (zipped(("a.csv", CSV), ("b.csv", CSV)), "holds 2 files"),
        (zipped(), "damaged zip"),
        (zipped(("a.zip", zipped(("a.csv", CSV)))), "packs a file"),
        (gzip.compress(b"PAR1 and more"), "packs a file that is no text"),
        (zipped(("xl/workbook.bin", b"")), "save it as .xlsx"),
    ],
    ids=range(5),
)
def test_what_is_no_one_text_is_refused(tmp_path, data, message):
    path = tmp_path / "people.zip"
    path.write_bytes(data or b"PK\x03\x04")
    with pytest.raises(InputError, match=message):
        hm.read(path if data[:4] in (b"PK\x03\x04", b"\x1f\x8b\x08\x00") else b"PK\x03\x04 no")


BORN = datetime.date(2005, 10, 28)


def test_a_workbook_is_read_with_its_dates(tmp_path):
    pytest.importorskip("python_calamine", reason="python-calamine is not installed")
    rows = [
        ["age", "born", "zip", "mixed", "text"],
        [39, BORN, "01234", 5, "a"],
        [50, 38653, "35510", CANARY, None],
        [None, None, "35510", 2.5, "#N/A"],
        [None, None, None, None, None],
    ]
    path = tmp_path / "people.data"
    path.write_bytes(workbook(("Rows", sheet(rows))))
    table = hm.read(path)
    assert table.origin == "excel"
    assert columns(table) == {
        "age": [39, 50, None],
        "born": [BORN, BORN, None],
        "zip": ["01234", "35510", "35510"],
        "mixed": ["5", CANARY, "2.5"],
        "text": ["a", None, None],
    }
    with pytest.raises(hm.errors.SchemaError, match=r"1 row\(s\) hold text") as caught:
        hm.read(path, {"mixed": {"role": "quasi", "kind": "numeric"}})
    assert CANARY not in str(caught.value)


def test_days_as_excel_counts_them_are_dates_where_that_is_said(tmp_path):
    pytest.importorskip("python_calamine", reason="python-calamine is not installed")
    path = tmp_path / "people.xlsx"
    path.write_bytes(workbook(("Rows", sheet([["born", "n"], [38653, 1], [38654.5, 2]]))))
    found = hm.read(path, {"born": {"role": "quasi", "kind": "date"}}).arrow["born"].to_pylist()
    assert found[1] == datetime.datetime(2005, 10, 29, 12)
    said = {"born": {"role": "quasi", "kind": "date", "format": "excel"}}
    assert hm.read(b"born,n\n38653,1\n", said).arrow["born"].to_pylist() == [BORN]
    with pytest.raises(InputError, match='format = "excel"'):
        hm.read(pa.table({"born": [38653]}), {"born": {"role": "quasi", "kind": "date"}})
    years = {"born": {"role": "quasi", "kind": "date", "format": "%Y"}}
    assert hm.read(pa.table({"born": [2005]}), years).arrow["born"][0].as_py().year == 2005


def test_sheets_are_named_where_there_are_several(tmp_path):
    pytest.importorskip("python_calamine", reason="python-calamine is not installed")
    path = tmp_path / "people.xlsx"
    one, two = sheet([["a"], [1]]), sheet([["b"], [2]])
    path.write_bytes(workbook(("One", one), ("Two", two), ("Empty", sheet([]))))
    with pytest.raises(InputError, match=r"has 2 sheets: name one with table=.*'One', 'Two'"):
        hm.read(path)
    assert columns(hm.read(path, table="Two")) == {"b": [2]}
    with pytest.raises(InputError, match="no sheet of that name"):
        hm.read(path, table="Three")
    path.write_bytes(workbook(("One", one), ("Empty", sheet([]))))
    assert columns(hm.read(path)) == {"a": [1]}
    for source in (b"a,b\n1,2\n", pa.table({"a": [1]})):
        with pytest.raises(ParameterError, match="table"):
            hm.read(source, table="One")


def spreadsheet(body):
    """An .ods file of these rows."""
    names = "urn:oasis:names:tc:opendocument:xmlns"
    kind = "application/vnd.oasis.opendocument.spreadsheet"
    content = (
        f'<o:document-content xmlns:o="{names}:office:1.0" xmlns:table="{names}:table:1.0"'
        f' xmlns:office="{names}:office:1.0" xmlns:text="{names}:text:1.0"><office:body>'
        f'<office:spreadsheet><table:table table:name="Rows">{body}</table:table>'
        "</office:spreadsheet></office:body></o:document-content>"
    )
    manifest = (
        f'<m:manifest xmlns:m="{names}:manifest:1.0"><m:file-entry m:full-path="/"'
        f' m:media-type="{kind}"/></m:manifest>'
    )
    return zipped(("mimetype", kind), ("content.xml", content), ("META-INF/manifest.xml", manifest))


def ods_row(*texts, more="", rows=""):
    cells = "".join(
        f'<table:table-cell office:value-type="string"{more}><text:p>{text}</text:p>'
        "</table:table-cell>"
        for text in texts
    )
    return f"<table:table-row{rows}>{cells}</table:table-row>"


def test_an_open_document_is_read_and_its_repeated_cells_are_counted(tmp_path):
    pytest.importorskip("python_calamine", reason="python-calamine is not installed")
    path = tmp_path / "people.ods"
    path.write_bytes(spreadsheet(ods_row("a", "b") + ods_row("x", "y")))
    assert columns(hm.read(path)) == {"a": ["x"], "b": ["y"]}
    wide = ods_row("x", more=' table:number-columns-repeated="16384"',
                   rows=' table:number-rows-repeated="1000000"')  # fmt: skip
    path.write_bytes(spreadsheet(ods_row("a", "b") + wide))
    with pytest.raises(InputError, match="cells: delete stray cells"):
        hm.read(path)


def test_a_hostile_workbook_is_refused_before_it_is_read(tmp_path, monkeypatch):
    pytest.importorskip("python_calamine", reason="python-calamine is not installed")
    path = tmp_path / "people.xlsx"
    stray = sheet([["a"], [1]]).replace("</sheetData>", '<row r="1048576"><c r="XFD1048576"><v>1'
                                        "</v></c></row></sheetData>")  # fmt: skip
    path.write_bytes(workbook(("One", stray)))
    with pytest.raises(InputError, match="cells: delete stray cells"):
        hm.read(path)
    path.write_bytes(workbook(("One", sheet([["a"], [1]]) + " " * 10_000_000)))
    with pytest.raises(HalfmaskError, match="unpacks to more than"):
        require_unpacked(path, 1_000_000)
    monkeypatch.setattr("halfmask.table.files.formats.MOST_BYTES", 1_000_000)
    with pytest.raises(InputError, match="unpacks to more than"):
        hm.read(path)
    path.write_bytes(b"\xd0\xcf\x11\xe0\xa1\xb1\x1a\xe1" + bytes(600))
    with pytest.raises(InputError, match="damaged or locked Excel file"):
        hm.read(path)


def statistics(folder):
    pd = pytest.importorskip("pandas")
    stats = pytest.importorskip("pyreadstat", reason="pyreadstat is not installed")
    frame = pd.DataFrame(
        {
            "HEALTH": [1.0, 3.0, 2.0, None],
            "AGE": [30.0, -9.0, 41.0, 50.5],
            "BORN": [BORN] * 4,
            "CITY": ["Graz", "", "Linz", "Graz"],
            "PART": [1.0, 2.0, 7.0, 8.0],
        }
    )
    labels = {"HEALTH": {1: "poor", 2: "fair", 3: "good"}, "PART": {1: "one"}}
    stats.write_sav(frame, folder / "a.sav", variable_value_labels=labels,
                    missing_ranges={"AGE": [-9]})  # fmt: skip
    stats.write_sav(frame, folder / "z.sav", variable_value_labels=labels, compress=True,
                    missing_ranges={"AGE": [-9]})  # fmt: skip
    stats.write_dta(frame, folder / "a.dta", variable_value_labels=labels)
    stats.write_dta(frame, folder / "old.dta", variable_value_labels=labels, version=8)
    stats.write_por(frame, folder / "a.por")
    stats.write_xport(frame, folder / "a.xpt")


ORIGINS = {"a.sav": "spss", "z.sav": "spss", "a.dta": "stata", "old.dta": "stata", "a.por": "spss",
           "a.xpt": "sas"}  # fmt: skip


@pytest.mark.parametrize("name", ORIGINS)
def test_files_of_statistics_programs(tmp_path, name):
    statistics(tmp_path)
    table = hm.read(tmp_path / name)
    assert table.origin == ORIGINS[name]
    found = columns(table)
    labelled = ORIGINS[name] == "stata" or name.endswith(".sav")
    assert found["HEALTH"] == (["poor", "good", "fair", None] if labelled else [1, 3, 2, None])
    assert found["AGE"] == [30, None if name.endswith(".sav") else -9, 41, 50.5]
    assert found["BORN"] == [BORN] * 4
    assert found["CITY"] == ["Graz", None, "Linz", "Graz"]
    assert found["PART"] == [1, 2, 7, 8]  # not every value has a label
    assert columns(hm.read((tmp_path / name).read_bytes())) == found
    if labelled:
        ordinal = hm.read(tmp_path / name, {"HEALTH": {"role": "quasi", "kind": "ordinal"}})
        assert ordinal.schema.columns["HEALTH"].order == ("poor", "fair", "good")
    with pytest.raises(HalfmaskError, match="unpacks to more than"):
        require_unpacked(tmp_path / name, 10)
    (tmp_path / "cut").write_bytes((tmp_path / name).read_bytes()[:600])
    if file_kind(tmp_path / "cut") != "xpt":
        with pytest.raises(InputError, match="damaged or locked"):
            hm.read(tmp_path / "cut")


def test_a_release_of_labels_is_written_by_the_name_of_its_file(tmp_path):
    statistics(tmp_path)
    schema = dict.fromkeys(("BORN", "CITY", "PART", "AGE"), "other")
    schema["HEALTH"] = {"role": "quasi", "kind": "ordinal"}
    release = hm.anonymize(hm.read(tmp_path / "a.sav", schema), hm.KAnonymity(2), method="optimal")
    for name in ("out.csv", "out.parquet"):
        release.write(tmp_path / name)
        assert hm.read(tmp_path / name).origin == name[4:]


def test_a_database_file_gives_the_table_that_is_named(tmp_path):
    path = tmp_path / "people.db"
    with sqlite3.connect(path) as base:
        base.execute("CREATE TABLE people (age INTEGER, born TEXT, mixed)")
        base.execute('CREATE TABLE "odd "" name" (a)')
        base.executemany(
            "INSERT INTO people VALUES (?, ?, ?)", [(39, "2005-10-28", 1), (None, None, CANARY)]
        )
    base.close()
    with pytest.raises(InputError, match="has 2 tables: name one"):
        hm.read(path)
    table = hm.read(path, table="people")
    assert table.origin == "sqlite"
    assert columns(table)["mixed"] == ["1", CANARY]
    assert columns(hm.read(path.read_bytes(), table="people")) == columns(table)
    with pytest.raises(InputError, match="no rows"):
        hm.read(path, table='odd " name')
    with pytest.raises(InputError, match="no table of that name"):
        hm.read(path, table="people; DROP TABLE people")
    with pytest.raises(InputError, match="DuckDB does not read"):
        hm.read(path, engine="duckdb")
    path.write_bytes(b"SQLite format 3\0" + bytes(80))
    with pytest.raises(InputError, match="damaged or locked SQLite"):
        hm.read(path, table="people")


@pytest.mark.parametrize(
    ("package", "data", "extra"),
    [
        ("python_calamine", workbook(("One", sheet([["a"], [1]]))), "excel"),
        ("pyreadstat", b"$FL2@(#) SPSS DATA FILE", "stats"),
    ],
)
def test_a_missing_package_is_named_with_the_command_that_helps(monkeypatch, package, data, extra):
    monkeypatch.setitem(sys.modules, package, None)
    with pytest.raises(EngineUnavailableError, match=rf"Run: pip install .halfmask\[{extra}\]"):
        hm.read(data)
