from __future__ import annotations

import pytest

from halfmask import errors, read
from halfmask.table.columns import check_names, quote_names, require_known

CANARY = "Zyxw9173"


def test_names_are_told_in_quotes():
    assert quote_names(["age", "Home town", "k_i"]) == "'age', 'Home town', 'k_i'"


@pytest.mark.parametrize("cell", ["39", " 7", "-3.5", "1,234", "50%", "1987-03-01", "01/02/1990"])
def test_names_that_seem_to_be_the_cells_of_a_row_are_not_told(cell):
    words = quote_names([CANARY, cell, "cook"])
    assert CANARY not in words
    assert cell.strip() not in words
    assert "3 columns" in words
    assert "first line" in words


@pytest.mark.parametrize("name", ["x1", "2nd visit", "k", "wave 3", "-"])
def test_a_figure_within_a_name_is_no_cell(name):
    assert quote_names([name, "age"]) == f"'{name}', 'age'"


def test_unknown_columns_are_named_and_those_there_listed():
    require_known(["age"], ["age", "job"])
    with pytest.raises(errors.InputError, match=r"^Unknown columns: 'jb', 'x'\. The table"):
        require_known(["age", "jb", "x"], ["age", "job"])


def test_repeated_names_are_told_by_place():
    with pytest.raises(errors.InputError, match="columns 1 and 3; 2 and 4") as raised:
        check_names([CANARY, "b", CANARY, "b"])
    assert CANARY not in str(raised.value)


def test_a_file_without_its_line_of_names_tells_no_cell(tmp_path):
    path = tmp_path / "people.csv"
    path.write_text(f"39,{CANARY},flu\n50,{CANARY},gout\n")
    with pytest.raises(errors.SchemaError) as raised:
        read(path, schema={"columns": {"age": "quasi"}})
    assert CANARY not in str(raised.value)
    assert "first line" in str(raised.value)
