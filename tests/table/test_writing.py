"""How values are written: dates of every form, what is asked, and what is taken as missing."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import SchemaError

DAY = datetime.date


def csv(tmp_path, name, texts):
    path = tmp_path / "t.csv"
    path.write_text(f"{name};x\n" + "".join(f"{text};1\n" for text in texts), encoding="utf-8")
    return path


def proposal(source):
    found = hm.describe(source)
    return found.columns[0], " ".join(found.notes), found


def declared(name):
    return {"columns": {name: {"role": "other", "kind": "date"}}}


MONTHS = {
    "german": "Januar Februar März April Mai Juni Juli August September Oktober November Dezember",
    "austrian": "Jänner Feb. März April Mai Juni Juli August Sept. Okt. Nov. Dez.",
    "french": "janvier février mars avril mai juin juillet août septembre octobre novembre "
    "décembre",
    "french, short": "janv. févr. mars avr. mai juin juil. août sept. oct. nov. déc.",
    "spanish": "enero febrero marzo abril mayo junio julio agosto septiembre octubre noviembre "
    "diciembre",
    "english": "January February March April May June July August September October November "
    "December",
    "english, short": "Jan Feb Mar Apr May Jun Jul Aug Sep Oct Nov Dec",
    "italian": "gennaio febbraio marzo aprile maggio giugno luglio agosto settembre ottobre "
    "novembre dicembre",
}


@pytest.mark.parametrize("pattern", ["{d}. {m} {y}", "{d} {m} {y}", "{d} de {m} de {y}"])
@pytest.mark.parametrize("language", MONTHS)
def test_names_of_months_are_proposed_as_dates_and_read_as_such(tmp_path, language, pattern):
    days = [DAY(2005, month, 28) for month in range(1, 13)]
    names = MONTHS[language].split()
    texts = [pattern.format(d=28, m=name, y=2005) for name in names]
    path = csv(tmp_path, "when", texts)
    column, _, found = proposal(path)
    assert column.kind == "date"
    assert hm.read(path, found.to_schema()).arrow["when"].to_pylist() == days
    assert hm.read(path, declared("when")).arrow["when"].to_pylist() == days


def test_what_is_no_month_is_no_date(tmp_path):
    for word in ("Marble", "Jui", "Octopus", "Ok"):  # jui: June or July
        column, _, _ = proposal(csv(tmp_path, "when", [f"28 {word} 2005", "28 May 2005"]))
        assert column.kind == "nominal"


def test_other_languages_are_dates_only_where_a_schema_says_so(tmp_path):
    texts = ["28 Oktober 2005", "3 Mai 2006"]
    assert hm.read(csv(tmp_path, "when", texts)).arrow["when"].to_pylist() == texts


SHORT = {
    "%d.%m.%y": ["28.10.05", "03.04.99"],
    "%d/%m/%y": ["28/10/05", "03/04/99"],
    "%m/%d/%y": ["10/28/05", "04/03/99"],
    "%d-%m-%y": ["28-10-05", "03-04-31"],
    "%y-%m-%d": ["99-10-28", "05-04-03"],
    "%d-%b-%y": ["28-Okt-05", "03-Apr-99"],
    "%d.%m.%y %H:%M": ["28.10.05 10:00", "03.04.99 23:59"],
}


@pytest.mark.parametrize("form", SHORT)
def test_years_of_two_digits_are_proposed_with_a_note_on_the_century(tmp_path, form):
    path = csv(tmp_path, "when", SHORT[form])
    column, notes, found = proposal(path)
    assert (column.kind, column.written) == ("date", {"format": form})
    assert "69 to 99 are read as 1969 to 1999" in notes
    years = [day.year for day in hm.read(path, found.to_schema()).arrow["when"].to_pylist()]
    assert set(years) <= {1999, 2005, 2031}
    with pytest.raises(SchemaError, match=f'format = "{form}"'):
        hm.read(path, declared("when"))


ASKED = {
    "day or month": (["01/02/05", "03/04/05"], '"%d/%m/%y" or format = "%m/%d/%y"'),
    "a birth in 2055": (["28.10.55", "03.04.71"], "four digits"),
    "two orders": (["28.10.2005", "2005.10.28"], "no one format fits all"),
    "no day": (["31.02.2005", "30.02.2006"], "no one format fits all"),
    "1.23,4": (["1.23,4", "4.56,7"], "no decimal mark fits all"),
}


@pytest.mark.parametrize("what", ASKED)
def test_what_values_leave_open_is_asked(tmp_path, what):
    texts, question = ASKED[what]
    column, notes, _ = proposal(csv(tmp_path, "when", texts))
    assert column.kind == "nominal"
    assert "Column 'when'" in notes
    assert question in notes
    assert not any(text in notes for text in texts)


@pytest.mark.parametrize("texts", [["0.1.2", "1.2.3"], ["10.0", "12.50"], ["I20.1", "I21.9"]])
def test_codes_and_numbers_are_not_asked_about(tmp_path, texts):
    assert "Column 'when'" not in proposal(csv(tmp_path, "when", texts))[1]


def test_days_as_excel_counts_them_are_known_by_name_and_all_values(tmp_path):
    path = csv(tmp_path, "AdmissionDate", [43500, 43600, 43700])  # 2019-02-04 and on
    column, _, found = proposal(path)
    assert (column.kind, column.written) == ("date", {"format": "excel"})
    days = [DAY(1899, 12, 30) + datetime.timedelta(n) for n in (43500, 43600, 43700)]
    assert hm.read(path, found.to_schema()).arrow["AdmissionDate"].to_pylist() == days
    with pytest.raises(SchemaError, match='format = "excel"'):
        hm.read(path, declared("AdmissionDate"))


@pytest.mark.parametrize(
    ("name", "numbers"),
    [
        ("AdmissionCost", [43500, 43600]),
        ("income", [43500, 43600]),
        ("BirthWeight", [13500, 13600]),
        ("BirthDate", [1950, 2003]),  # years
        ("AdmissionDate", [43500, 99999]),  # not all are days of this century or the last
        ("days_to_death", [500, 1200]),
    ],
)
def test_amounts_years_and_durations_are_no_days_as_excel_counts_them(tmp_path, name, numbers):
    assert proposal(csv(tmp_path, name, numbers))[0].kind == "numeric"


def test_of_workbooks_numbers_that_may_be_days_are_asked_about(tmp_path):
    rows = pa.table({"when": [43500, 43600, 43700]})
    table = hm.read(rows, hm.Schema())
    assert "Excel" not in proposal(table)[1]
    table.__dict__["origin"] = "excel"
    column, notes, _ = proposal(table)
    assert column.kind == "numeric"
    assert 'say kind = "date" and format = "excel"' in notes


def test_eight_digits_are_dates_where_all_are_days(tmp_path):
    days = [20051028, 19990228, 20000229, 20101231, 20240229]
    path = csv(tmp_path, "when", days)
    column, _, found = proposal(path)
    assert column.written == {"format": "%Y%m%d"}
    assert hm.read(path, found.to_schema()).arrow["when"].to_pylist()[0] == DAY(2005, 10, 28)
    assert proposal(csv(tmp_path, "when", [*days, 20230229]))[0].kind == "numeric"
    assert proposal(csv(tmp_path, "when", days[:2]))[0].kind == "numeric"


def test_a_release_of_dates_with_names_of_months_is_read_again(tmp_path):
    texts = ["28. Oktober 2005"] * 5 + ["3. Mai 2006"] * 5
    path = csv(tmp_path, "when", texts)
    table = hm.read(path, proposal(path)[2].to_schema())
    out = tmp_path / "out.csv"
    hm.anonymize(table, hm.KAnonymity(5)).write(out)
    assert set(hm.read(out).arrow["when"].to_pylist()) <= {DAY(2005, 10, 28), DAY(2006, 5, 3)}


ANSWERS = {
    "answers, refused, unknown": ([1, 2, 3, 4, 5, 7, 9], ["7", "9"]),
    "yes, no, refused, unknown": ([1, 2, 7, 9], ["7", "9"]),
    "yes, no, none": ([1, 2, 9], ["9"]),
    "no, yes, none": ([0, 1, 9], ["9"]),
    "a count": ([0, 1, 2, 3, 4, 7, 9], None),
    "a scale": ([1, 2, 3, 4, 5, 6, 7], None),
    "another scale": ([1, 2, 3, 4, 5, 6, 7, 8, 9], None),
    "siblings": ([0, 1, 2, 3, 4, 5, 8], None),
    "one answer": ([1, 7, 9], None),
    "yes, no, refused, unknown by two digits": ([1, 2, 77, 99], ["77", "99"]),
    "no, yes, unknown by three digits": ([0, 1, 999], ["999"]),
    "two prices": ([15, 20, 99], None),
}


@pytest.mark.parametrize("what", ANSWERS)
def test_codes_behind_the_answers_of_a_question_are_proposed_as_missing(tmp_path, what):
    numbers, absent = ANSWERS[what]
    path = csv(tmp_path, "question", numbers * 10)
    column, _, found = proposal(path)
    assert list(column.written.get("missing", [])) == (absent or [])
    held = set(hm.read(path, found.to_schema()).arrow["question"].to_pylist()) - {None}
    assert held == {number for number in numbers if str(number) not in (absent or [])}


def test_a_few_texts_that_are_no_dates_are_asked_for_and_not_shown(tmp_path):
    days = [f"{day:02d}.03.19{year}" for day in range(1, 10) for year in (50, 61, 72)]
    column, said, _ = proposal(csv(tmp_path, "geboren", [*days, "1944", "1948"]))
    assert column.kind == "nominal"
    assert '27 of its 29 texts are dates by format = "%d.%m.%Y", 2 are not: correct these' in said
    assert "1944" not in said
    _, said, _ = proposal(csv(tmp_path, "geboren", [*days[:9], "1944", "1948", "1950"]))
    assert "are dates" not in said


def test_a_decimal_comma_says_nothing_of_other_columns(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("kg;eur\n" + "81,5;3.973,41\nk.A.;1.004,50\n" * 9, encoding="utf-8")
    notes = " ".join(hm.describe(path).notes)
    assert "Numbers with a decimal comma: kg" in notes
    assert "points" not in notes


@pytest.mark.parametrize("form", ["%Y-%m-%d", "%d.%m.%Y", "%d/%m/%y"])
def test_days_that_usually_mean_none_are_proposed_as_missing(tmp_path, form):
    known = [DAY(1990, 3, 13), DAY(1991, 12, 24), DAY(2003, 7, 30)]
    odd = [DAY(1970, 1, 1)] if "y" in form else [DAY(1900, 1, 1), DAY(9999, 12, 31)]
    texts = [day.strftime(form) for day in (*known, *odd)] * 3
    path = csv(tmp_path, "when", texts)
    column, notes, found = proposal(path)
    assert column.kind == "date"
    assert list(column.written["missing"]) == [day.isoformat() for day in odd]
    assert "Proposed as missing" in notes
    assert set(hm.read(path, found.to_schema()).arrow["when"].to_pylist()) == {*known, None}
    frame = pa.table({"when": [*known, *odd]})
    schema = proposal(hm.read(frame))[2].to_schema()
    assert set(hm.read(frame, schema).arrow["when"].to_pylist()) == {*known, None}


def test_days_among_the_others_are_days(tmp_path):
    for texts in (["1900-01-01", "1903-04-05", "1931-01-02", "1898-07-08"], ["1900-01-01"] * 3):
        column, _, _ = proposal(csv(tmp_path, "when", texts))
        assert column.kind == "date"
        assert "missing" not in column.written


def test_a_day_that_no_calendar_has_means_none(tmp_path):
    texts = ["13.03.1990", "24.12.1991", "00.00.0000"]
    path = csv(tmp_path, "when", texts)
    column, _, found = proposal(path)
    assert column.kind == "date"
    held = hm.read(path, found.to_schema()).arrow["when"].to_pylist()
    assert held == [DAY(1990, 3, 13), DAY(1991, 12, 24), None]
