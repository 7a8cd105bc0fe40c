"""``describe`` loses nobody's edits, and says what a codebook got wrong."""

from __future__ import annotations

import pytest


@pytest.fixture
def table(tmp_path):
    path = tmp_path / "t.csv"
    path.write_text("age,city\n" + "30,Lille\n41,Nice\n" * 20, encoding="utf-8")
    return path


def test_an_untouched_proposal_is_written_again(halfmask, table, tmp_path):
    schema = tmp_path / "t.toml"
    for more in ((), (), ("--hierarchies", "auto"), ("--public",)):
        outcome = halfmask("describe", table, "-o", schema, *more)
        assert outcome.code == 0, outcome.err


def test_an_edited_schema_is_not_written_over(halfmask, table, tmp_path):
    schema = tmp_path / "t.toml"
    assert halfmask("describe", table, "-o", schema).code == 0
    edited = "# mine\n" + schema.read_text(encoding="utf-8")
    schema.write_text(edited, encoding="utf-8")
    for more in ((), ("--public",)):
        outcome = halfmask("describe", table, "-o", schema, *more)
        assert outcome.code == 1
        assert "would be lost: give -o another name" in outcome.err
        assert "--replace" in outcome.err
        assert schema.read_text(encoding="utf-8") == edited
    assert halfmask("describe", table, "-o", tmp_path / "other.toml").code == 0
    assert halfmask("describe", table, "-o", schema, "--replace").code == 0
    assert "# mine" not in schema.read_text(encoding="utf-8")


def test_the_schema_of_a_release_and_the_table_itself_are_not_written_over(
    halfmask, table, tmp_path
):
    out = tmp_path / "out.csv"
    outcome = halfmask("anonymize", table, "--quasi", "age,city", "--k", 5, "-o", out)
    assert outcome.code == 0, outcome.err
    before = out.with_suffix(".toml").read_bytes()
    assert halfmask("describe", out, "-o", out.with_suffix(".toml")).code == 1
    assert out.with_suffix(".toml").read_bytes() == before
    rows = table.read_bytes()
    assert halfmask("describe", table, "-o", table, "--replace").code == 1
    assert table.read_bytes() == rows


def test_columns_that_only_the_codebook_has_are_named(halfmask, table, tmp_path):
    book = tmp_path / "codes.csv"
    book.write_text("column,value\ncity,Lille\ncity,Nice\ncitty,Nice\n", encoding="utf-8")
    outcome = halfmask("describe", table, "--public", "--codebook", book)
    assert "columns that the table does not have: citty" in outcome.err
    document = halfmask("describe", table, "--public", "--codebook", book, "--json").json()
    assert document["unused"] == ["citty"]


def test_row_names_are_left_out_and_every_verb_that_reads_says_so(halfmask, tmp_path):
    file, out = tmp_path / "r.csv", tmp_path / "out.csv"
    rows = "".join(f"canary{n},{30 + n // 10},Lille\n" for n in range(20))
    file.write_text(f",age,city\n{rows}", encoding="utf-8")
    for verb in (
        ("describe",),
        ("assess", "--quasi", "age"),
        ("check", "--quasi", "age", "--k", 5),
    ):
        outcome = halfmask(verb[0], file, *verb[1:])
        assert outcome.code == 0, outcome.err
        assert "Column 1 has no name" in outcome.err
    outcome = halfmask("anonymize", file, "--quasi", "age,city", "--k", 5, "-o", out)
    assert "Column 1 has no name" in outcome.err
    assert "canary" not in out.read_text() + outcome.out + outcome.err
