"""Tables and columns of any name: quotes, spaces, reserved words, other alphabets."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pyarrow as pa

import halfmask as hm
from halfmask.engines.counting.columns import list_values
from halfmask.engines.counting.tuples import group_tuples

if TYPE_CHECKING:
    from halfmask.engines.request import Engine

ODD, OTHER = 'Odd"Name', "sélect ` from"
TABLES = {
    ODD: pa.table(
        {
            'a "b" c': [1, 2, 3, 4, 5, 6, 15, 16],
            "select": ["x", "y"] * 4,
            "Größe": [1.5, 2.5, 3.5, 4.5] * 2,
            "who's": list(range(8)),
            "k`i": [2] * 8,
        }
    ),
    OTHER: pa.table({"who's": list(range(8)), "group": ["u"] * 4 + ["v"] * 4}),
}
SCHEMA = {
    ODD: {
        "table": {"person": "who's"},
        "policy": {"k": "k`i"},
        "columns": {
            'a "b" c': "quasi",
            "select": "quasi",
            "Größe": {"role": "sensitive", "domain": {"low": 0, "high": 10}},
            "who's": "identifier",
        },
    },
    OTHER: {"table": {"person": "who's"}, "columns": {"who's": "identifier", "group": "quasi"}},
}
QUOTED, JOINED = '"Odd""Name"', '"sélect ` from"'


def test_a_query_with_intervals_and_a_join(engine: Engine) -> None:
    ledger = hm.Ledger()
    sql = (
        f'SELECT o."a ""b"" c" AS "a ""x""", r."group", SUM("Größe") AS "s""" FROM {QUOTED} o '
        f'JOIN {JOINED} r ON o."who\'s" = r."who\'s" GROUP BY o."a ""b"" c", r."group" '
        'GUARANTEE k = 2 THEN "a ""x""" -> 10 GUARANTEE k = 2'
    )
    found = hm.query(engine, sql, schema=SCHEMA, ledger=ledger).to_arrow()
    assert found.column_names == ['a "x"', "group", 's"', "level", "guarantee"]
    rows = {tuple(row.values())[:3] for row in found.to_pylist()}
    assert rows == {("[0, 10)", "u", 12.0), ("[0, 10)", "v", 4.0), ("[10, 20)", "v", 8.0)}
    assert len(ledger.entries) == 1


def test_noise_and_group_tuples(engine: Engine) -> None:
    sql = f'SELECT COUNT(*) AS n, SUM("Größe") AS s FROM {QUOTED} WITH EPSILON 1000'
    options = {"schema": SCHEMA, "insist": True, "demands": "ignore"}
    (row,) = hm.query(engine, sql, **options).to_arrow().to_pylist()
    assert (row["n"], round(row["s"])) == (8, 24)
    tuples, counts = group_tuples(engine, ODD, ["select"])
    assert (tuples["select"].to_pylist(), counts.tolist()) == (["x", "y"], [4, 4])
    values, whole = list_values(engine, OTHER, "group", 5)
    assert (sorted(values.to_pylist()), whole) == (["u", "v"], True)
