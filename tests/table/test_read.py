"""Reading: every kind of source gives the same table, and bad input one clear error."""

from __future__ import annotations

import csv
import datetime
import gzip
import io
from typing import TYPE_CHECKING

import pandas as pd
import polars as pl
import pyarrow as pa
import pyarrow.feather
import pyarrow.parquet as pq
import pytest
from hypothesis import given
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import InputError, SchemaError

if TYPE_CHECKING:
    from pathlib import Path

CANARY = "Zanzibar-Canary-77"
ROWS = {
    "age": [39, 50, None],
    "city": ["Graz", None, "Linz"],
    "born": [datetime.date(1985, 3, 1)] * 3,
}
CSV = "age,city,born\n39,Graz,1985-03-01\n50,,1985-03-01\n,Linz,1985-03-01\n"


def columns(table: hm.Table) -> dict[str, list[object]]:
    return table.arrow.to_pydict()


def write(folder: Path, text: str | bytes, name: str = "t.csv") -> Path:
    path = folder / name
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


@pytest.mark.parametrize("delimiter", list(",;\t|^~"))
def test_any_delimiter_is_detected(tmp_path: Path, delimiter: str) -> None:
    path = write(tmp_path, CSV.replace(",", delimiter))
    assert columns(hm.read(path)) == ROWS


def test_a_given_delimiter_and_decimal_commas_do_not_confuse(tmp_path: Path) -> None:
    path = write(tmp_path, "a;b\n1,5;2,5\n3,5;4,5\n")
    assert columns(hm.read(path)) == {"a": ["1,5", "3,5"], "b": ["2,5", "4,5"]}
    spaced = write(tmp_path, "a b\n1 2\n")
    assert columns(hm.read(spaced, delimiter=" ")) == {"a": [1], "b": [2]}


@pytest.mark.parametrize(
    ("data", "names"),
    [
        (CSV.replace("Graz", "Gräz").encode(), "utf-8"),
        (CSV.replace("Graz", "Gräz").encode("utf-8-sig"), "utf-8 with a mark"),
        (CSV.replace("Graz", "Gräz").encode("latin-1"), "latin-1"),
        (CSV.replace("Graz", "Gräz").encode("utf-16"), "utf-16"),
        (CSV.replace("Graz", "Gräz").replace("\n", "\r\n").encode(), "carriage returns"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_encodings_are_detected(tmp_path: Path, data: bytes, names: str) -> None:
    expected = ROWS | {"city": ["Gräz", None, "Linz"]}
    assert columns(hm.read(write(tmp_path, data))) == expected
    assert columns(hm.read(io.BytesIO(data))) == expected


def test_latin_1_far_behind_the_beginning_is_found(tmp_path: Path) -> None:
    text = "a,b\n" + "x,1\n" * 2_000_000 + "é,2\n"
    table = hm.read(write(tmp_path, text.encode("latin-1")))
    assert table.encode("a").values.to_pylist() == ["x", "é"]


def test_windows_1252_is_told_from_latin_1(tmp_path: Path) -> None:
    assert columns(hm.read(write(tmp_path, "a,b\n€,1\n".encode("cp1252"))))["a"] == ["€"]


def test_quotes_line_ends_and_blank_lines(tmp_path: Path) -> None:
    path = write(tmp_path, 'a,"b, c"\n"x\ny","say ""hi"""\n\n"","z"\n')
    assert columns(hm.read(path)) == {"a": ["x\ny", None], "b, c": ['say "hi"', "z"]}


def test_lines_end_as_in_csv_and_nowhere_else(tmp_path: Path) -> None:
    assert columns(hm.read(write(tmp_path, "\n\na,b\n1,2\n"))) == {"a": [1], "b": [2]}
    assert columns(hm.read(write(tmp_path, "a,b\r1,2\r3,4\r"))) == {"a": [1, 3], "b": [2, 4]}
    table = hm.read(write(tmp_path, "a,b\nx\u2028y,2\nz\x0bw,3"))
    assert columns(table) == {"a": ["x\u2028y", "z\x0bw"], "b": [2, 3]}


def test_a_header_longer_than_the_sample(tmp_path: Path) -> None:
    names = [f"a_rather_long_name_{place}" for place in range(5000)]
    path = write(tmp_path, ";".join(names) + "\n" + ";".join("1" * 5000) + "\n")
    assert hm.read(path).arrow.column_names == names


def test_another_library_that_fails_is_named_without_its_message() -> None:
    import duckdb

    bad = duckdb.sql(f"SELECT CAST(x AS INT) AS a FROM (VALUES ('{CANARY}')) AS t(x)")  # noqa: S608
    with pytest.raises(InputError, match="ConversionException") as caught:
        hm.read(bad)
    assert CANARY not in str(caught.value)
    with pytest.raises(InputError, match="ColumnNotFoundError"):
        hm.read(pl.DataFrame({"a": [1]}).lazy().select("b"))


def test_one_column_keeps_its_missing_rows(tmp_path: Path) -> None:
    assert columns(hm.read(write(tmp_path, "a\n1\n\n3\n"))) == {"a": [1, None, 3]}


TEXT = st.text(st.characters(exclude_categories=["Cs"], exclude_characters="\0"), max_size=8)


@given(
    st.lists(st.tuples(TEXT, TEXT), min_size=1, max_size=8),
    st.sampled_from(list(",;\t|")),
    st.sampled_from(["utf-8", "utf-8-sig", "utf-16"]),
    st.sampled_from(["\n", "\r\n"]),
)
def test_any_text_comes_back_as_it_was_written(
    rows: list[tuple[str, str]], delimiter: str, encoding: str, end: str
) -> None:
    buffer = io.StringIO()
    writer = csv.writer(
        buffer, delimiter=delimiter, lineterminator=end, quoting=csv.QUOTE_ALL, doublequote=True
    )
    writer.writerows([("first", "second"), *rows])
    data = buffer.getvalue().encode(encoding)
    table = hm.read(
        data,
        {name: {"role": "other", "kind": "nominal"} for name in ("first", "second")},
        delimiter=delimiter,
        encoding=encoding if encoding != "utf-8" else None,
    )
    read = [table.arrow[name].cast(pa.string()).to_pylist() for name in ("first", "second")]
    assert read == [[row[i] or None for row in rows] for i in (0, 1)]


def test_compressed_text(tmp_path: Path) -> None:
    path = write(tmp_path, gzip.compress(CSV.encode()), "t.csv.gz")
    assert columns(hm.read(path)) == ROWS


@pytest.mark.parametrize(
    ("texts", "kind"),
    [
        (["1", "-20", "0"], pa.int64()),
        (["01", "12"], None),
        (["+1", "2"], None),
        (["1.5", "2", "-0.25"], pa.float64()),
        (["nan", "1"], None),
        (["99999999999999999999", "1"], None),
        (["2024-02-29", "1999-01-01"], pa.date32()),
        (["2023-02-29", "1999-01-01"], None),
        (["2024-02-29 10:00:00"], pa.timestamp("s")),
        (["true", "false"], None),
        (["1", "x"], None),
    ],
    ids=str,
)
def test_a_text_column_is_typed_only_if_it_comes_back_the_same(
    tmp_path: Path, texts: list[str], kind: pa.DataType | None
) -> None:
    table = hm.read(write(tmp_path, "a,b\n" + "".join(f"{t},y\n" for t in texts)))
    assert table.arrow["a"].type == (kind or pa.dictionary(pa.int32(), pa.string()))
    back = table.arrow["a"].cast(pa.string()).to_pylist()
    assert back == texts


def test_a_nominal_column_stays_text(tmp_path: Path) -> None:
    path = write(tmp_path, "zip,b\n35510,1\n")
    schema = {"columns": {"zip": {"role": "quasi", "kind": "nominal"}}}
    assert columns(hm.read(path, schema))["zip"] == ["35510"]


def test_missing_texts_are_missing_everywhere(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b\n?,1\nx,?\n")
    assert columns(hm.read(path, missing=["?"])) == {"a": [None, "x"], "b": [1, None]}
    frame = pd.DataFrame({"a": ["?", "x"]})
    declared = {"table": {"missing": ["?"]}, "columns": {"a": "quasi"}}
    assert columns(hm.read(frame, declared)) == {"a": [None, "x"]}


def sources(folder: Path) -> dict[str, tuple[object, str]]:
    import duckdb

    arrow = pa.table(ROWS)
    pq.write_table(arrow, folder / "t.parquet")
    pyarrow.feather.write_feather(arrow, folder / "t.feather")
    with pa.ipc.new_stream(folder / "t.arrows", arrow.schema) as sink:
        sink.write_table(arrow)
    return {
        "csv": (write(folder, CSV), "csv"),
        "parquet": (folder / "t.parquet", "parquet"),
        "feather": (str(folder / "t.feather"), "arrow"),
        "stream": (folder / "t.arrows", "arrow"),
        "table": (arrow, "arrow"),
        "batch": (arrow.to_batches()[0], "arrow"),
        "reader": (arrow.to_reader(), "arrow"),
        "pandas": (pd.DataFrame(ROWS, index=[7, 7, 9]), "pandas"),
        "pandas nullable": (pd.DataFrame(ROWS).convert_dtypes(), "pandas"),
        "polars": (pl.DataFrame(ROWS), "polars"),
        "lazy": (pl.DataFrame(ROWS).lazy(), "polars"),
        "polars categories": (
            pl.DataFrame(ROWS).with_columns(pl.col("city").cast(pl.Categorical)),
            "polars",
        ),
        "duckdb": (duckdb.from_arrow(arrow), "duckdb"),
    }


@pytest.mark.parametrize(
    "name",
    ["csv", "parquet", "feather", "stream", "table", "batch", "reader", "pandas",
     "pandas nullable", "polars", "lazy", "polars categories", "duckdb"],
)  # fmt: skip
def test_every_kind_of_source_gives_the_same_table(tmp_path: Path, name: str) -> None:
    source, origin = sources(tmp_path)[name]
    table = hm.read(source)
    assert columns(table) == ROWS
    assert table.origin == origin
    assert table.arrow["city"].type == pa.dictionary(pa.int32(), pa.string())


def test_a_table_passes_through_and_may_change_its_schema() -> None:
    table = hm.read(pa.table(ROWS))
    assert hm.read(table) is table
    again = hm.read(table, {"age": "quasi"})
    assert again.schema.quasi == ("age",)


def test_nan_is_missing_and_zero_has_one_sign() -> None:
    table = hm.read(pa.table({"x": [float("nan"), 0.0, -0.0, 1.5]}))
    assert table.encode("x").values.to_pylist() == [0.0, 1.5, None]


def test_unused_and_missing_categories_do_not_count() -> None:
    frame = pd.DataFrame({"a": pd.Categorical(["x", None, "x"], categories=["x", CANARY])})
    assert hm.read(frame).encode("a").values.to_pylist() == ["x", None]


def test_a_schema_file_beside_the_data_is_used(tmp_path: Path) -> None:
    path = write(tmp_path, CSV)
    write(tmp_path, '[columns.age]\nrole = "quasi"\n', "t.toml")
    assert hm.read(path).schema.quasi == ("age",)
    assert hm.read(path, hm.Schema()).schema.quasi == ()


BAD = {
    "missing file": (lambda f: f / "no.csv", "does not exist"),
    "folder": (lambda f: f, "folder"),
    "empty": (lambda f: write(f, ""), "is empty"),
    "header only": (lambda f: write(f, "a,b\n"), "no rows"),
    "blank lines only": (lambda f: write(f, "\n\n"), "is empty"),
    "twice": (lambda f: write(f, "a,b,a\n1,2,3\n"), "more than once: columns 1 and 3."),
    "no name": (lambda f: write(f, "a,,c\n1,2,3\n"), "Column 2 has no name"),
    "no names": (lambda f: write(f, ",,c\n1,2,3\n"), "Column 2 has no name"),
    "only column": (lambda f: write(f, '""\n1\n2\n'), "Column 1 has no name"),
    "zero bytes": (lambda f: write(f, b"a,b\n1,\0\0\n"), "zero bytes"),
    "excel": (lambda f: write(f, b"PK\x03\x04 and so on"), "save it as CSV"),
    "damaged parquet": (lambda f: write(f, b"PAR1 and no more"), "damaged Parquet"),
    "damaged gzip": (lambda f: write(f, b"no gzip at all", "t.csv.gz"), "unpacked"),
    "undecodable": (lambda f: write(f, b"a,b\n\x81\x8d,\xff\n"), "cannot be read as cp1252"),
    "ragged": (
        lambda f: write(f, f"a,b\n1,2\n{CANARY}\n3,4\n{CANARY},1,2\n"),
        "2 row(s) do not have 2 fields as the header, first row 3",
    ),
    "nested": (lambda _: pa.table({"a": [[1]], "b": [b"x"]}), "'a' (list"),
    "no rows": (lambda _: pa.table({"a": pa.array([], pa.int64())}), "no rows"),
    "no columns": (lambda _: pa.table({}), "no columns"),
    "arrow twice": (lambda _: pa.table([[1], [2]], names=["a", "a"]), "more than once"),
    "pandas twice": (lambda _: pd.DataFrame([[1, 2]], columns=["a", "a"]), "more than once"),
    "mixed": (
        lambda _: pd.DataFrame({"a": [1, CANARY]}),
        "several types, or of none that Arrow knows: 'a'",
    ),
    "levels": (
        lambda _: pd.DataFrame([[1]], columns=pd.MultiIndex.from_tuples([("a", "b")])),
        "several levels",
    ),
    "series": (lambda _: pl.Series("a", [1]), "no table"),
    "number": (lambda _: 7, "cannot be read"),
}


@pytest.mark.parametrize("name", BAD)
def test_bad_input_gives_one_clear_error(tmp_path: Path, name: str) -> None:
    make, message = BAD[name]
    with pytest.raises(InputError) as caught:
        hm.read(make(tmp_path))
    assert message in str(caught.value)
    assert CANARY not in str(caught.value)
    assert caught.value.__cause__ is None


def test_wrong_or_unknown_encodings(tmp_path: Path) -> None:
    path = write(tmp_path, f"a,b\n{CANARY}é,1\n".encode("latin-1"))
    with pytest.raises(InputError, match="cannot be read as utf-8"):
        hm.read(path, encoding="utf-8")
    with pytest.raises(InputError, match="unknown"):
        hm.read(path, encoding="klingon")
    with pytest.raises(InputError, match="one character"):
        hm.read(path, delimiter=";;")


def test_bytes_that_do_not_decode_far_behind_the_beginning(tmp_path: Path) -> None:
    path = write(tmp_path, b"a,b\n" + b"x,1\n" * 30_000 + CANARY.encode() + b"\xff,2\n")
    with pytest.raises(InputError, match="cannot be read as utf-8") as caught:
        hm.read(path, encoding="utf-8")
    assert CANARY not in str(caught.value)


def test_columns_that_arrow_writes_in_other_ways() -> None:
    runs = pa.RunEndEncodedArray.from_arrays([2, 3], ["x", "y"])
    rows = {
        "runs": runs,
        "codes": pa.array([1, 1, 2]).dictionary_encode(),
        "nothing": pa.nulls(3),
        "views": pa.array(["a", None, "b"], pa.string_view()),
        "days": pa.array([datetime.date(2020, 1, 1)] * 3, pa.date64()),
        "halves": pa.array([0.5, 1.0, None], pa.float16()),
    }
    assert columns(hm.read(pa.table(rows))) == {
        "runs": ["x", "x", "y"],
        "codes": [1, 1, 2],
        "nothing": [None, None, None],
        "views": ["a", None, "b"],
        "days": [datetime.date(2020, 1, 1)] * 3,
        "halves": [0.5, 1.0, None],
    }


def test_all_schema_faults_come_together() -> None:
    rows = pa.table(
        {"age": ["39", CANARY, CANARY], "day": ["x", "2020-01-01", None], "k": [2, 0, 3]}
    )
    schema = {
        "table": {"person": "pid"},
        "policy": {"k": "k", "l": "l_i"},
        "columns": {
            "age": {"role": "quasi", "kind": "numeric"},
            "day": {"role": "quasi", "kind": "date"},
            "city": "quasi",
        },
    }
    with pytest.raises(SchemaError) as caught:
        hm.read(rows, schema)
    faults = caught.value.faults
    assert "Column 'city' is declared in the schema but not in the table" in faults[0]
    assert "'age', 'day', 'k'" in faults[0]
    assert "person column" in faults[1]
    assert "policy column of l" in faults[2]
    assert "'age' is declared numeric but 2 row(s) hold text" in faults[3]
    assert "'day' is declared date but 1 row(s) hold text" in faults[4]
    assert CANARY not in str(caught.value)


def test_a_declared_number_column_is_converted(tmp_path: Path) -> None:
    path = write(tmp_path, "a,b\n1.50,x\n 2.00,y\n+3,z\n")
    schema = {"a": {"role": "quasi", "kind": "numeric"}}
    assert columns(hm.read(path, schema))["a"] == [1.5, 2.0, 3.0]


def test_an_ordinal_column_is_encoded_in_its_order() -> None:
    rows = pa.table({"size": ["L", "S", None, "M", "S"]})
    schema = {"size": {"role": "quasi", "kind": "ordinal", "order": ["S", "M", "L", "XL"]}}
    encoded = hm.read(rows, schema).encode("size")
    assert encoded.values.to_pylist() == ["S", "M", "L", None]
    assert encoded.codes.tolist() == [2, 0, 3, 1, 0]
    short = {"size": {"role": "quasi", "kind": "ordinal", "order": ["S", "M"]}}
    with pytest.raises(SchemaError, match="1 distinct value"):
        hm.read(rows, short)


def test_a_repr_shows_no_value() -> None:
    table = hm.read(pa.table({"a": [CANARY]}), {"a": "quasi"})
    shown = [repr(table), repr(table.encode("a")), repr(table.hierarchy("a"))]
    assert CANARY not in "".join(shown)


@pytest.mark.parametrize("text", ['[{"a": 1}]', '{"a": [1]}', '[\n  {"a": 1}\n]'])
def test_json_is_called_json(tmp_path, text):
    path = tmp_path / "people.json"
    path.write_text(text)
    with pytest.raises(InputError, match="a JSON file, not a table"):
        hm.read(path)


@pytest.mark.parametrize(
    "how", [{"delimiter": "\u00e9"}, {"delimiter": "\0"}, {"encoding": "rot13"}], ids=str
)
def test_what_no_file_is_written_with_is_refused(tmp_path, how):
    path = tmp_path / "people.csv"
    path.write_text("a,b\n1,2\n")
    with pytest.raises(InputError, match=r"one character of ASCII|is unknown"):
        hm.read(path, **how)


def test_a_file_without_a_line_of_names_tells_none_of_its_cells(tmp_path):
    path = write(tmp_path, "38,canary,canary\n41,canary,other\n")
    with pytest.raises(InputError, match="columns 2 and 3") as told:
        hm.read(path)
    assert "canary" not in str(told.value)


ROW_NAMES = {
    "numbers of R": '"","age","city"\n"1",39,"Graz"\n"2",50,"Linz"\n',
    "numbers of pandas": ",age,city\n0,39,Graz\n1,50,Linz\n",
    "names": f" ;age;city\n{CANARY};39;Graz\nother;50;Linz\n",
    "anything": ",age,city\n7,39,Graz\n,50,Linz\n",
}


@pytest.mark.parametrize("text", ROW_NAMES.values(), ids=ROW_NAMES)
@pytest.mark.parametrize("limit", [None, "500MB"], ids=["memory", "in place"])
def test_a_first_column_without_a_name_is_left_out_whatever_it_holds(tmp_path, text, limit):
    delimiter = ";" if ";" in text else None
    table = hm.read(write(tmp_path, text), memory_limit=limit, delimiter=delimiter)
    assert table.column_names == ["age", "city"]
    assert columns(table) == {"age": [39, 50], "city": ["Graz", "Linz"]}
    for one in (table, table.collect(), table.with_schema(hm.Schema())):
        assert "Column 1 has no name" in one.notes[0]
    assert "Column 1 has no name" in table._repr_html_()
    assert CANARY not in f"{table!r} {table.notes}"


def test_frames_leave_their_nameless_column_out_too():
    for frame in (pl.DataFrame({"": [7, 8], "a": [1, 2]}), pa.table({" ": [7, 8], "a": [1, 2]})):
        table = hm.read(frame)
        assert columns(table) == {"a": [1, 2]}
        assert table.notes


def test_row_names_never_leave_and_every_verb_says_that_they_are_left_out(tmp_path):
    rows = "".join(f"{CANARY}{n},{n // 5},x\n" for n in range(20))
    path = write(tmp_path, f",age,ill\n{rows}")
    described = hm.describe(path)
    assert [one.name for one in described.columns] == ["age", "ill"]
    assert "Column 1 has no name" in described.notes[0]
    table = hm.read(path, described.to_schema())
    released = hm.anonymize(table, hm.KAnonymity(5))
    assert CANARY not in str(released.to_arrow().to_pydict())
