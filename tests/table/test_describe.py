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
from halfmask.table.proposals.shapes import nice_widths, round_intervals

if TYPE_CHECKING:
    from halfmask.table.proposals.describe import Description

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
        ("disease", "sensitive", "nominal", None, "keep it to themselves"),
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


ROLES = {
    # names in six languages, with values that leave no doubt about what the column is not
    "sensitive": [
        "Hauptdiagnose", "maladie_chronique", "enfermedad", "malattia", "ziekte", "DUQ200", "alcol",
        "Depression", "sexual_orientation", "Konfession", "religione", "politieke_partij", "vote",
        "Gewerkschaft", "syndicat", "ethnicity", "etnia", "RIDRETH3", "Vorstrafen", "condamnations",
        "Jahreseinkommen", "salaire_net", "reddito", "inkomen", "HIV", "antecedentes_penales",
        "origine", "Herkunft", "blood_type", "Blutgruppe", "Rauchen", "fume", "exam_score",
        "Blutzucker", "HbA1c", "serBilir", "ascites", "LBXGH", "BPXSY1", "eGFR", "PH010", "DRG",
        "cause_of_death", "consommation_alcool", "tabagisme", "tabaquismo", "iscrizione_sindacato",
        "PY010G", "hy020", "dividends", "capital-gain", "Sozialhilfe", "pensione", "prestations",
        "uitkering", "Arbeitslosengeld", "asylum", "refugee_status", "gender_identity", "STI_test",
    ],
    "quasi": [
        "phone_known", "email_bill", "mobile", "Geschlecht", "partner", "accreditation", "score",
        "amount", "Beruf", "commune", "estado_civil", "woonplaats", "date_of_birth",
    ],
}  # fmt: skip


@pytest.mark.parametrize("role", ROLES)
def test_names_tell_special_categories_in_many_languages(role: str) -> None:
    names = ROLES[role]
    found = hm.describe(pa.table({name: ["yes", "no"] * 15 for name in names}))
    assert {p.name for p in found.columns if p.role == role} == set(names)


def test_identifiers_are_told_by_their_values_and_amounts_are_none() -> None:
    rng = np.random.default_rng(1)
    rows = {
        "contact": [f"p{i}@x.org" for i in range(60)],
        "line": [f"+49 30 {1000000 + i}" for i in range(60)],
        "number": np.arange(60) + 4711,
        "file": rng.permutation(10**7)[:60] + 10**7,
        "spent": rng.choice(90000, 60, replace=False),
        "born": [datetime.date(1950, 1, 1) + datetime.timedelta(37 * i) for i in range(60)],
        "plz": [f"{10000 + 97 * i}" for i in range(60)],
    }
    roles = {p.name: p.role for p in hm.describe(pa.table(rows)).columns}
    assert [n for n, role in roles.items() if role == "identifier"] == [
        "contact", "line", "number", "file",
    ]  # fmt: skip
    assert {roles[name] for name in ("spent", "born", "plz")} == {"quasi"}


@pytest.mark.parametrize("name", ["weight", "instance weight"])
def test_places_of_birth_measure_no_body(name: str) -> None:
    """Else the sampling weights of a census are a quasi-identifier, and leave."""
    weights = np.random.default_rng(2).gamma(3, 580, 200) + 1
    rows = {name: weights, "country of birth father": ["a", "b"] * 100}
    assert hm.describe(pa.table(rows)).to_schema().weight == name
    grams = {"birth_weight": weights, "sex": ["f", "m"] * 100}
    assert hm.describe(pa.table(grams)).to_schema().weight is None
    born = {"weight": weights, "year of birth": np.arange(200) % 40 + 1980}
    assert hm.describe(pa.table(born)).to_schema().weight is None


NUMBERED = {
    "person": ["participant_no", "NHS_number", "PatNr", "Versichertennr", "numéro_patient"],
    "household": ["household_number", "no_menage", "huishoudnr"],
    None: ["number_of_patients", "Anzahl_Personen"],
}


@pytest.mark.parametrize("what", NUMBERED)
def test_numbers_that_several_rows_share_say_whose_they_are(what: str | None) -> None:
    """Else k counts rows, and the number itself leaves."""
    for name in NUMBERED[what]:
        rows = {name: np.repeat(np.arange(100) + 5000, 3), "age": np.arange(300) % 80}
        found = hm.describe(pa.table(rows))
        table = found.to_schema()
        assert (table.person, table.household) == (
            name if what == "person" else None,
            name if what == "household" else None,
        )
        assert (found.columns[0].role == "identifier") is (what is not None)


def test_numbers_of_people_are_known_when_they_are_written_with_a_point(tmp_path) -> None:
    """As frames write whole numbers of which one was missing."""
    ages = "".join(f"{93703 + i}.0,{20 + i % 60}.0\n" for i in range(200))
    for name in ("SEQN", "serial"):
        path = tmp_path / f"{name}.csv"
        path.write_text(f"{name},age\n{ages}", encoding="utf-8")
        assert [p.role for p in hm.describe(path).columns] == ["identifier", "quasi"]
    rows = {"patient_no": np.repeat(np.arange(100) + 5000.0, 3), "age": np.arange(300) % 80}
    assert hm.describe(pa.table(rows)).to_schema().person == "patient_no"
    spent = np.random.default_rng(1).choice(90000, 60, replace=False) * 1.0
    assert hm.describe(pa.table({"spent": spent})).columns[0].role == "quasi"
    height = hm.describe(pa.table({"height": np.arange(60) + 100.5})).columns[0]
    assert height.role == "quasi"


def test_numbers_of_cases_are_identifiers_and_few_rooms_no_household() -> None:
    rows = {"Fallnummer": np.repeat(np.arange(100) + 5000, 3), "age": np.arange(300) % 80}
    assert hm.describe(pa.table(rows)).columns[0].role == "identifier"
    rows = {"household_number": np.arange(100) % 6 + 1, "age": np.arange(100) % 80}
    assert hm.describe(pa.table(rows)).to_schema().household is None


def test_amounts_of_money_are_sensitive_and_row_numbers_do_not_leave() -> None:
    money = ["Kosten", "Cost", "amount", "montant", "importe", "Rechnungsbetrag"]
    rows = {name: np.arange(30) * 97.5 for name in money} | {"Unnamed: 0": np.arange(30)}
    found = hm.describe(pa.table(rows))
    assert [p.role for p in found.columns] == ["sensitive"] * len(money) + ["drop"]
    assert "quasi protects more" in found.columns[0].why


@pytest.mark.parametrize("design", [{}, {"psu": [1, 2] * 20}], ids=["alone", "in a sample"])
@pytest.mark.parametrize("name", ["w", "W"])
def test_a_column_called_w_weighs_people(name, design) -> None:
    weights = np.random.default_rng(1).uniform(26, 791, 40)  # neither a mean of 1 nor thousands
    found = hm.describe(pa.table({name: weights, **design}))
    assert (found.weight, found.columns[0].role) == (name, "drop")
    body = hm.describe(pa.table({name: weights, "height": weights}))
    assert body.columns[0].role == "quasi"
    assert hm.describe(pa.table({name: [1, 2] * 20})).columns[0].role == "quasi"


def test_the_design_of_a_survey_is_known_as_such() -> None:
    rng = np.random.default_rng(2)
    rows = {
        "hid": np.repeat(np.arange(50), 4),
        "pid": np.repeat(np.arange(100), 2),
        "sampling_weight": np.repeat(rng.uniform(100, 9000, 100), 2),
        "stratum": rng.integers(0, 9, 200),
        "psu": rng.integers(0, 20, 200),
        "weight": rng.uniform(40, 120, 200),
        "height": rng.uniform(150, 200, 200),
        "household_income": rng.integers(1, 9, 200),
    }
    found = hm.describe(pa.table(rows))
    assert (found.person, found.household, found.weight) == ("pid", "hid", "sampling_weight")
    roles = {p.name: p.role for p in found.columns}
    assert {roles[n] for n in ("sampling_weight", "stratum", "psu")} == {"drop"}
    assert (roles["weight"], roles["height"]) == ("quasi", "quasi")
    assert roles["household_income"] == "sensitive"
    schema = found.to_schema()
    assert schema == hm.Schema.from_dict(tomllib.loads(found.to_toml()))
    assert {"hid", "pid", "stratum", "psu", "sampling_weight"} <= set(schema.private)


def test_every_level_merges_something() -> None:
    rows = {
        "tens": [10 * (i % 20) for i in range(100)],
        "firsts": [datetime.date(2000 + i % 30, 1, 1) for i in range(100)],
        "wide": [float(i) for i in range(100)],
    }
    found = hm.describe(pa.table(rows))
    table = hm.read(pa.table(rows), found.to_schema())
    for name in rows:
        sizes = [len(labels) for labels in table.hierarchy(name).labels]
        assert sizes == sorted(set(sizes), reverse=True)


@pytest.mark.parametrize(
    ("others", "value", "labels"),
    [
        ([*range(3, 40_000, 999)], 0, {"0", ">=1"}),
        ([x / 7 + 0.57 for x in range(60)], 0.0, {"[0, 0.1)", ">=0.1"}),
        ([*range(-700, 900, 31)], 40, {"<40", "40", ">=41"}),
        ([*range(-900, 0, 31)], 0, {"<0", "0"}),
    ],
    ids=["zeros below counts", "zeros below decimals", "one inside", "zeros above"],
)
def test_a_number_that_half_of_the_rows_hold_stands_alone(others, value, labels) -> None:
    column = [value] * len(others) + others
    cities = [f"c{row % 2}" for row in range(len(column))]
    rows = pa.table({"gain": pa.array([*column, None]), "city": [*cities, "c0"]})
    found = hm.describe(rows)
    schema = hm.Schema.from_dict(tomllib.loads(found.to_toml()))
    tree = hm.read(rows, schema).hierarchy("gain")
    assert {*tree.labels[-2]} - {None} == labels
    assert tree.labels[0].count(value) == 1
    assert "stands alone" in next(p.why for p in found.columns if p.name == "gain")
    released = hm.anonymize(hm.read(rows, schema), hm.KAnonymity(5), suppression=0.02)
    shown = set(released.to_arrow()["gain"].drop_null().to_pylist()) - {"*"}
    assert len(shown) >= 2


def test_a_number_that_fewer_hold_stands_in_its_interval() -> None:
    rows = pa.table({"gain": [0] * 49 + [*range(1, 52)]})
    (found,) = hm.describe(rows).columns
    assert found.hierarchy == Intervals([5, 10, 20, 40])


def test_bounds_that_were_found_are_rounded_and_still_nest() -> None:
    found = round_intervals(Intervals(bounds=[[36.14, 41.78, 44.8, 58.513], [41.78, 58.513]]))
    assert found == Intervals(bounds=[[36.0, 42.0, 45.0, 60.0], [42.0, 60.0]])


@pytest.mark.parametrize("hierarchies", ["proposed", "auto"])
def test_what_is_described_without_structure_is_accepted(hierarchies: str, tmp_path) -> None:
    rng = np.random.default_rng(4)
    lines = ["amount,city,when,note"]
    for _ in range(80):
        day = datetime.date(2020, 1, 1) + datetime.timedelta(int(rng.integers(0, 900)))
        amount, city = f"{rng.uniform(0, 900):9.2f}", rng.choice(["a", "b", "c"])
        lines.append(f"{amount},{city},{day:%d.%m.%Y},{rng.choice(['x', 'refused'])}")
    (tmp_path / "rows.csv").write_text("\n".join(lines))
    found = hm.describe(tmp_path / "rows.csv", hierarchies=hierarchies)
    (tmp_path / "rows.toml").write_text(found.to_toml())
    table = hm.read(tmp_path / "rows.csv")
    assert hm.check(table, hm.KAnonymity(2))
    hm.anonymize(table, hm.KAnonymity(2), method="optimal")


def test_many_columns_are_looked_at_within_counted_work() -> None:
    rng = np.random.default_rng(5)
    table = pa.table({f"c{i}": rng.integers(0, 9, 50) for i in range(300)})
    found = hm.describe(table)
    assert len(found.columns) == 300
    assert found.searched == 2  # 4,455,100 sets of three would take most of a minute


@pytest.mark.parametrize(
    ("name", "demand"),
    [
        ("k", "k"), ("own k", "k"), ("Eigenes k", "k"), ("k propre", "k"), ("k proprio", "k"),
        ("eigen k", "k"), ("k propio", "k"), ("gewünschtes l", "l"), ("Mein Epsilon", "epsilon"),
        ("eps_own", "epsilon"), ("Vitamin K", None), ("k2", None), ("t", None),
    ],
)  # fmt: skip
def test_demands_are_known_by_name_in_several_languages(name: str, demand: str | None) -> None:
    found = hm.describe({"sex": ["f", "m"] * 20, name: [2, 3, 5, None] * 10})
    assert found.policy == ({} if demand is None else {demand: name})
    if demand is not None:
        assert f"own {demand}" in found.columns[1].why


@pytest.mark.parametrize(
    ("weights", "named", "why"),
    [
        ([1.0, 2.5] * 20, True, "exact weights"),
        ([0.4, 1.6] * 20, False, "below 1"),
        ([None, 2.5, 3.5, 4.5] * 10, False, "some rows have none"),
        (["5,262", "3,244"] * 20, False, "decimal mark"),
    ],
    ids=["people", "scaled", "missing", "text"],
)
def test_a_weight_is_used_where_it_counts_people_else_the_reason_is_said(
    weights: list[object], named: bool, why: str
) -> None:
    found = hm.describe({"sex": ["f", "m"] * 20, "Hochrechnungsgewicht": weights})
    assert found.weight == ("Hochrechnungsgewicht" if named else None)
    assert found.columns[1].role == "drop"
    assert why in found.columns[1].why
