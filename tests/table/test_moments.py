"""Dates and times: which texts are such, and which moments no calendar holds."""

from __future__ import annotations

import datetime

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import HierarchyError, InputError, SchemaError

DATE = {"a": {"role": "quasi", "kind": "date"}, "b": "other"}


def lines(*texts: str) -> bytes:
    return "\n".join(["a,b", *(f"{text},1" for text in texts)]).encode()


def test_times_with_a_zone_are_read_as_utc() -> None:
    table = hm.read(lines("2020-01-01T10:00:00Z", "2020-01-01 10:00:00+01:00"), DATE)
    assert table.arrow["a"].type == pa.timestamp("us", "UTC")
    hours = [moment.hour for moment in table.arrow["a"].to_pylist()]
    assert hours == [10, 9]
    dates = {"a": {"role": "quasi", "hierarchy": {"dates": ["month"]}}, "b": "other"}
    table = hm.read(lines("2020-01-31T23:30:00-01:00", "2020-02-01T00:30:00Z"), dates)
    release = hm.anonymize(table, hm.KAnonymity(2), method="optimal")
    assert release.to_arrow()["a"].to_pylist() == ["2020-02", "2020-02"]


@pytest.mark.parametrize(
    ("texts", "rows"),
    [
        (["0000-01-01", "2020-01-01", "0000-01-01"], 2),
        (["2020-01-01T10:00:00Z", "2020-01-01T10:00:00", "2020-01-02T10:00:00"], 1),
        (["2020-02-30", "2020-01-01"], 1),
        (["soon", "2020-01-01"], 1),
    ],
    ids=str,
)
def test_texts_that_are_no_dates_are_counted(texts: list[str], rows: int) -> None:
    with pytest.raises(SchemaError, match=rf"'a' is declared date but {rows} row\(s\) hold text"):
        hm.read(lines(*texts), DATE)
    dates = {"a": {"role": "quasi", "hierarchy": {"dates": ["year"]}}, "b": "other"}
    with pytest.raises(HierarchyError, match=r"1 distinct value.* are no dates"):
        hm.anonymize(hm.read(lines(*texts), dates), hm.KAnonymity(2))


def test_a_year_that_no_calendar_holds_stays_text_where_nothing_is_declared() -> None:
    table = hm.read(lines("0000-01-01", "0000-01-01"), {"a": "quasi", "b": "other"})
    release = hm.anonymize(table, hm.KAnonymity(2), method="optimal")
    assert release.to_arrow()["a"].to_pylist() == ["0000-01-01"] * 2


@pytest.mark.parametrize(
    ("kind", "value"),
    [
        (pa.timestamp("s"), 2**60),
        (pa.timestamp("us"), -(2**62)),
        (pa.timestamp("ms", "Europe/Berlin"), 2**60),
        (pa.date32(), -719_163),
        (pa.date32(), 2_932_897),
    ],
    ids=str,
)
def test_moments_outside_the_calendar_are_counted_and_refused(
    kind: pa.DataType, value: int
) -> None:
    rows = pa.table({"a": pa.array([value, 0, None], kind), "q": [1, 1, 1]})
    with pytest.raises(InputError, match=r"Column 'a': 1 row\(s\) hold dates outside") as caught:
        hm.read(rows, {"a": "quasi", "q": "quasi"})
    assert str(value) not in str(caught.value)


def test_the_first_and_the_last_day_are_inside() -> None:
    days = [datetime.date(1, 1, 1), datetime.date(9999, 12, 31)]
    rows = pa.table({"a": days, "t": pa.array(days, pa.date32()).cast(pa.timestamp("s"))})
    assert hm.read(rows).arrow["a"].to_pylist() == days


def test_an_unknown_time_zone_is_refused() -> None:
    rows = pa.table({"a": pa.array([1, 1], pa.timestamp("s", "Foo/Bar"))})
    with pytest.raises(InputError, match="Column 'a': its time zone is unknown"):
        hm.read(rows, {"a": "quasi"})
