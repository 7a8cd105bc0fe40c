"""One row of a file must not decide whether a private verb fails, or which types leave.

Attacker: knows all rows but one, asks for a private release of the file, and looks at whether it is
refused, and at the types of its columns. A file's columns are read as what all their cells are.
"""

from __future__ import annotations

import pytest

import halfmask as hm

DOMAINS = {
    "age": {"low": 0, "high": 100, "bins": 5},
    "kids": [0, 1, 2],
    "weight": {"low": 0.0, "high": 200.0, "bins": 4},
    "sex": ["f", "m"],
}
PLAIN = ["34,0,70.5,f", "41,1,80.0,m", "29,2,61.25,f", "55,0,90.5,m"] * 30
ROWS = [
    "37.5,1,70.0,f",
    "unknown,1,70.0,f",
    ",,,",
    "1e400,1,-1e400,m",
    "true,true,true,true",
    "2020-01-01,2020-01-01,2020-01-01 10:00,2020-01-01",
    "99999999999999999999999,007,nan,inf",
    "34,1.5,seventy,other",
    '"3,4",0,70.0,"f ""x"""',
]
SCHEMA = {name: {"role": "quasi"} for name in DOMAINS}


def outcome(tmp_path, extra, ask):
    path = tmp_path / "people.csv"
    path.write_text("\n".join([",".join(DOMAINS), *PLAIN, *extra]) + "\n", encoding="utf-8")
    try:
        made = ask(hm.read(path, {"columns": SCHEMA}))
    except hm.HalfmaskError as error:
        return type(error).__name__, str(error)
    return made.to_arrow().schema


def private(method):
    return lambda table: hm.synthesize(table, method, epsilon=1, domains=DOMAINS)


@pytest.mark.parametrize("method", ["marginals", "histogram", "privbayes"])
def test_types_and_refusals_of_a_synthetic_table_depend_on_no_row(tmp_path, method):
    known = outcome(tmp_path, [], private(method))
    assert [str(kind) for kind in known.types] == ["int64", "int64", "double", "string"]
    for row in ROWS:
        assert outcome(tmp_path, [row], private(method)) == known, row


def test_types_and_refusals_of_a_table_of_figures_depend_on_no_row(tmp_path):
    domains = {name: DOMAINS[name] for name in ("age", "kids")}

    def ask(table):
        return hm.tabulate(table, ["age", "kids"], method="dp", epsilon=1, domains=domains)

    known = outcome(tmp_path, [], ask)
    assert not isinstance(known, tuple)
    for row in ROWS:
        assert outcome(tmp_path, [row], ask) == known, row


def test_a_row_outside_moves_by_the_public_rule(tmp_path):
    made = outcome(tmp_path, ["unknown,7,1e9,x"] * 3, private("histogram"))
    assert not isinstance(made, tuple)
