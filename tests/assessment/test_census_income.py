"""KDD census-income, as ``make data`` fetches it: the figures of all its rows."""

from __future__ import annotations

from pathlib import Path

import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv as csv
import pytest

import halfmask as hm

FILE = Path(__file__).parents[2] / ".data" / "census_income_train.csv"
QUASI = ("c00", "c04", "c07", "c10", "c12", "c32")  # age, education, marriage, race, sex, birth


@pytest.fixture(scope="module")
def rows():
    if not FILE.is_file():
        pytest.skip("KDD census-income is not there: make data fetches it")
    names = [f"c{place:02}" for place in range(42)]
    table = csv.read_csv(FILE, csv.ReadOptions(column_names=names))
    columns = [
        pc.utf8_trim_whitespace(column) if pa.types.is_string(column.type) else column
        for column in table.columns
    ]
    return pa.table(columns, names=names)


def test_classes_and_people_alone_are_those_that_arrow_counts(rows):
    assert rows.shape == (199_523, 42)
    people = hm.read(rows.select(QUASI), dict.fromkeys(QUASI, "quasi"))
    found = hm.assess(people, size=1)
    sizes = rows.group_by(list(QUASI)).aggregate([([], "count_all")])["count_all"]
    assert found.classes == len(sizes)
    assert found.unique_rows == pc.sum(pc.equal(sizes, 1)).as_py()
    assert found.smallest == 1
