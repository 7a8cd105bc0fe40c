"""Codebooks and public descriptions: nothing that comes from rows is said to be public."""

from __future__ import annotations

import datetime
import tomllib

import numpy as np
import pytest

import halfmask as hm
from halfmask.dp.domain import Bins, domain_of, public_domains
from halfmask.errors import SchemaError
from halfmask.table.files.codebook import read_codebook
from halfmask.table.proposals.public import public_description

CANARY = "Zanzibar"
BOOK = """Variable;Code;Min;Max;Bins;Missing
sex;f|m;;;;yes
born;;1920-01-01;2020-12-31;10;
ill;no;;;;
ill;yes;;;;
pay;;0;90000;;
elsewhere;1|2;;;;
"""


def table(rows=60):
    random = np.random.default_rng(1)
    day = datetime.date(1950, 1, 1)
    return hm.read(
        {
            "patient_id": [f"{CANARY}{i}" for i in range(rows)],
            "sex": random.choice(["f", "m"], rows),
            "born": [day + datetime.timedelta(int(d)) for d in random.integers(0, 20000, rows)],
            "ill": random.choice(["no", "yes"], rows),
            "pay": random.integers(0, 90000, rows),
            "age": random.integers(20, 90, rows),
            "town": [CANARY] * rows,
        },
        schema={},
    )


def test_a_codebook_gives_values_ranges_and_dates(tmp_path):
    (tmp_path / "book.csv").write_text(BOOK)
    found = read_codebook(tmp_path / "book.csv")
    assert found["sex"] == {"values": ["f", "m"], "missing": True}
    assert found["ill"] == {"values": ["no", "yes"]}
    assert found["pay"] == {"low": 0, "high": 90000}
    known = public_domains(["born", "pay"], {n: found[n] for n in ("born", "pay")})
    assert isinstance(known["born"], Bins)
    assert known["born"].labels[0] == "[1920-01-01, 1930-02-06)"
    assert (len(known["born"]), len(known["pay"])) == (10, 20)


def test_dates_are_encoded_and_drawn_inside_their_bounds():
    import pyarrow as pa

    low, high = datetime.date(2000, 1, 1), datetime.date(2000, 12, 31)
    domain = domain_of("day", {"low": low, "high": high, "bins": 12, "missing": True})
    days = pa.array([datetime.date(1990, 1, 1), datetime.date(2000, 7, 4), None])
    codes = domain.encode(days)
    assert codes.tolist() == [0, 6, 12]
    again = domain.decode(codes.astype(np.int64), np.random.default_rng(2), pa.date32())
    assert low <= again[0].as_py() < datetime.date(2000, 2, 3)
    assert again[2].as_py() is None


def test_a_public_description_holds_no_value_and_asks(tmp_path):
    (tmp_path / "book.csv").write_text(BOOK)
    found = public_description(table(), read_codebook(tmp_path / "book.csv"))
    text = found.to_toml()
    assert CANARY not in text
    assert found.asked == ("town",)
    assert text == public_description(table(1), read_codebook(tmp_path / "book.csv")).to_toml()
    assert hm.Schema.from_dict(tomllib.loads(text)) == found.schema
    assert found.schema.columns["patient_id"].role == "identifier"
    assert public_description(table(), {}).asked == ("sex", "born", "ill", "pay", "town")


def test_private_synthesis_in_one_line(tmp_path):
    (tmp_path / "book.csv").write_text(BOOK)
    roles = {
        "patient_id": "identifier",
        "sex": "quasi",
        "*": "other",
        "town": "drop",
        "age": "drop",
    }
    rows = hm.read(table(), {"columns": {**roles, "*": "other"}})
    release = hm.synthesize(rows, method="marginals", epsilon=1, domains=tmp_path / "book.csv")
    drawn = release.to_arrow()
    assert drawn.column_names == ["sex", "born", "ill", "pay"]
    assert min(drawn["born"].to_pylist()) >= datetime.date(1920, 1, 1)
    with pytest.raises(SchemaError, match="'sex', 'born', 'ill', 'pay' have no public domain"):
        hm.synthesize(rows, method="marginals", epsilon=1)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("a,b\n1,2\n", "name its columns column and value"),
        ("column,value,low,high\nage,,3,\n", "neither values nor one range"),
    ],
)
def test_what_is_no_codebook_is_explained(tmp_path, text, words):
    (tmp_path / "book.csv").write_text(text)
    with pytest.raises(SchemaError, match=words):
        read_codebook(tmp_path / "book.csv")
    with pytest.raises(SchemaError, match=r"no file 'none.csv'"):
        read_codebook(tmp_path / "none.csv")


@pytest.mark.parametrize(
    ("name", "person"),
    [
        ("Patienten-Nr.", True),
        ("person_id", True),
        ("Kundennummer", True),
        ("RB030", True),
        ("id", False),
        ("visit_id", False),
        ("patient_name", False),
        ("Haushalt", False),
    ],
)
def test_a_public_description_names_the_person_column_or_asks(name, person):
    rows = hm.read({name: ["a", "b"], "age": [3, 4]}, hm.Schema())
    found = public_description(rows, {})
    text = found.to_toml()
    assert found.schema.person == (name if person else None)
    assert tomllib.loads(text).get("table", {}).get("person") == found.schema.person
    assert ("Which column says whose row it is?" in text) is not person


def test_a_public_description_keeps_demands_and_weights_back():
    rows = hm.read({"age": [3, 4], "Eigenes k": [3, 4], "Hochrechnung": [1, 2]}, hm.Schema())
    found = public_description(rows, {})
    assert found.schema.policy == {"k": "Eigenes k"}
    assert found.schema.columns["Hochrechnung"].role == "drop"
    assert "sampling weight: it does not leave" in found.to_toml()
    assert found.asked == ()
    assert hm.Schema.from_dict(tomllib.loads(found.to_toml())) == found.schema


def test_a_codebook_gives_zero_or_a_range(tmp_path):
    (tmp_path / "book.csv").write_text(
        "column,value,low,high,bins\nincome,,1,99999,10\nincome,0,,,\n"
    )
    wanted = {"income": {"low": 1, "high": 99999, "bins": 10, "special": [0]}}
    assert read_codebook(tmp_path / "book.csv") == wanted
    (tmp_path / "book.toml").write_text(
        "income = { low = 1, high = 99999, bins = 10, special = [0] }"
    )
    assert read_codebook(tmp_path / "book.toml") == wanted
    (tmp_path / "book.csv").write_text("column,value,low,high\nincome,,1,9\nincome,none,,\n")
    with pytest.raises(SchemaError, match="only numbers can stand alone"):
        read_codebook(tmp_path / "book.csv")
