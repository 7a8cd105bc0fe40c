"""Describing: roles, kinds and hierarchies of columns that are easy to tell by eye."""

from __future__ import annotations

import datetime
import json
import tomllib
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.table.hierarchies import Dates, Flat, Intervals, Mask, Ordered
from halfmask.table.proposals import nice_widths

if TYPE_CHECKING:
    from halfmask.table.describe import Description

N = 400
CANARY = "Zanzibar-Canary-77"


@pytest.fixture(scope="module")
def people() -> hm.Table:
    rng = np.random.default_rng(3)
    day = datetime.date(1950, 1, 1)
    rows = {
        "patient_id": [f"P{i:05d}" for i in rng.permutation(N)],
        "email": [f"{i % 390}@example.org" for i in range(N)],
        "age": rng.integers(17, 91, N),
        "zip": [f"{z:05d}" for z in rng.integers(1000, 1400, N)],
        "born": [day + datetime.timedelta(int(d)) for d in rng.integers(0, 20000, N)],
        "sex": rng.choice(["f", "m"], N),
        "pain": rng.choice(["low", "medium", "high"], N),
        "price": [f"{p:.2f}" for p in rng.uniform(1, 9, N)],
        "ticket": [f"{CANARY}{i}" for i in range(N)],
        "disease": rng.choice(["flu", "none", "?"], N),
        "k_i": rng.choice([2, 3, 5], N),
    }
    return hm.read(pa.table(rows))


@pytest.fixture(scope="module")
def found(people: hm.Table) -> Description:
    return hm.describe(people)


@pytest.mark.parametrize(
    ("name", "role", "kind", "hierarchy", "why"),
    [
        ("patient_id", "identifier", "nominal", None, "numbers people"),
        ("email", "identifier", "nominal", None, "identifies a person"),
        ("age", "quasi", "numeric", Intervals([5, 10, 20, 40]), "intervals of 5, 10"),
        ("zip", "quasi", "nominal", Mask(5), "codes of 5"),
        ("born", "quasi", "date", Dates(["month", "quarter", "year", "decade"]), "dates"),
        ("sex", "quasi", "nominal", Flat(), "others may know it"),
        ("pain", "quasi", "ordinal", Ordered(["low", "medium", "high"], [2]), "scale"),
        ("price", "quasi", "numeric", Intervals([0.5, 1, 2, 4]), "intervals of 0.5"),
        ("ticket", "identifier", "nominal", None, "every row has another value"),
        ("disease", "sensitive", "nominal", None, "keep to themselves"),
        ("k_i", "policy", "numeric", None, "own k"),
    ],
)
def test_each_column_is_told_and_the_reason_given(
    found: Description, name: str, role: str, kind: str, hierarchy: object, why: str
) -> None:
    proposal = next(p for p in found.columns if p.name == name)
    assert (proposal.role, proposal.kind, proposal.hierarchy) == (role, kind, hierarchy)
    assert why in proposal.why


def test_the_proposal_reads_back_and_fits(people: hm.Table, found: Description) -> None:
    text = found.to_toml()
    schema = hm.Schema.from_dict(tomllib.loads(text))
    assert schema == found.to_schema()
    assert schema.policy == {"k": "k_i"}
    assert schema.missing == ("", "?")
    hm.hierarchies.check_hierarchies(hm.read(people, schema))
    reason = text.splitlines()[text.splitlines().index("[columns.age]") - 1]
    assert reason.startswith("# ")
    assert "intervals" in reason


def test_a_description_is_plain_data_without_values(found: Description) -> None:
    document = json.dumps(found.to_dict())
    assert CANARY not in document + found.to_toml() + repr(found)
    assert json.loads(document)["rows"] == N


def test_people_with_several_rows_are_told_apart() -> None:
    rows = pa.table({"patient": [1, 1, 2, 2, 3, 3], "visit": [1, 2, 1, 2, 1, 2]})
    found = hm.describe(rows)
    assert found.person == "patient"
    assert found.columns[0].role == "identifier"
    assert found.to_schema().person == "patient"


def test_columns_of_missing_values_only_do_not_matter() -> None:
    found = hm.describe(pa.table({"a": pa.nulls(3), "b": [1, 1, 2]}))
    assert found.columns[0].missing == 3
    assert found.quasi_identifiers == (("b",),)


@pytest.mark.parametrize(
    ("span", "whole", "widths"),
    [
        (73, True, [5, 10, 20, 40]),
        (3, True, [2]),
        (0, True, [2]),
        (1000, True, [50, 100, 200, 400, 800]),
        (8.0, False, [0.5, 1.0, 2.0, 4.0]),
        (0.003, False, [0.0002, 0.0004, 0.0008, 0.0016]),
    ],
)
def test_widths_are_round_and_double(span: float, whole: bool, widths: list[float]) -> None:
    assert nice_widths(span, whole=whole) == widths


def test_adult_is_described_from_its_file(adult_table: hm.Table) -> None:
    found = hm.describe(adult_table)
    roles = {p.name: p.role for p in found.columns}
    assert roles["salary-class"] == "sensitive"
    assert set(roles.values()) == {"quasi", "sensitive"}
    assert ("age",) in found.quasi_identifiers


def test_columns_of_demands_are_proposed_as_policy_though_some_state_none(tmp_path):
    rows = pa.table(
        {
            "age": [30, 40, 50, 60],
            "k_i": pa.array([3, None, 2, 1], pa.int64()),
            "l_i": pa.array([2.0, None, None, 3.0]),
            "t_i": pa.array([None, 0.2, 1.0, None]),
            "epsilon_i": pa.array([0.5, None, None, 20.0]),
            "own_k": [1, 2, 3, 4],
            "mine": [5, 5, 6, 6],
            "t": [0, 1, 0, 1],
        }
    )
    found = hm.describe(rows)
    own = {"k": "k_i", "l": "l_i", "t": "t_i", "epsilon": "epsilon_i"}
    assert found.policy == own
    roles = {column.name: column.role for column in found.columns}
    assert {roles[name] for name in own.values()} == {"policy"}
    assert roles["own_k"] == "identifier"  # a second k: it must not leave
    assert (roles["mine"], roles["t"]) == ("quasi", "quasi")
    declared = {"policy": {"k": "mine", "columns": {"age": {"k": "own_k"}}}}
    again = hm.describe(hm.read(rows, declared))
    assert again.policy == {**own, "k": "mine"}
    assert again.to_schema().policy_columns == {"age": {"k": "own_k"}}
    assert "k_i" in again.to_schema().private


def test_the_command_line_proposes_the_policy_of_the_schema_beside_the_file(tmp_path):
    import subprocess
    import sys

    (tmp_path / "p.csv").write_text("age,mine\n30,2\n40,\n")
    (tmp_path / "p.toml").write_text('[policy]\nk = "mine"\n[columns.age]\nrole = "quasi"\n')
    command = [sys.executable, "-m", "halfmask", "describe", str(tmp_path / "p.csv"), "--json"]
    done = subprocess.run(command, capture_output=True, text=True, check=True)  # noqa: S603
    assert '"k": "mine"' in done.stdout
