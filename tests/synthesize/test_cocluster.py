"""Synthetic tables by co-clustering: what leaves, what is measured, what is refused."""

from __future__ import annotations

from decimal import Decimal
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from effort import THOROUGH

import halfmask as hm
from halfmask.errors import (
    InputError,
    InternalError,
    ParameterError,
    PrivacyError,
    UnsatisfiableError,
)
from halfmask.release import seal
from halfmask.release.candidate import SyntheticCandidate
from halfmask.release.release import SealedGuarantee, SyntheticRelease

IRIS = Path(__file__).parents[1] / "coclustering" / "iris.csv"
COLUMNS = ("sepal_length", "sepal_width", "petal_length", "petal_width", "species")


@pytest.fixture(scope="module")
def iris():
    return hm.read(IRIS, dict.fromkeys(COLUMNS, "quasi"))


@pytest.fixture(scope="module")
def release(iris):
    return hm.synthesize(iris, method="cocluster", k=8, bins=3, seed=0)


def test_the_release_has_the_table_s_shape(iris, release):
    rows = release.to_arrow()
    assert rows.schema.names == iris.arrow.schema.names
    assert rows.num_rows == len(release) == 150
    assert rows["petal_width"].type == pa.float64()
    numbers = rows["petal_width"].to_numpy()
    assert numbers.min() >= 0.1
    assert numbers.max() <= 2.5
    assert np.array_equal(np.round(numbers, 1), numbers)
    assert len(set(numbers.tolist())) > 10


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize(("k", "groups", "obtained"), [(40, 3, 49), (49, 2, 50)])
def test_k_is_the_least_group_and_the_obtained_one_is_told(iris, k, groups, obtained):
    found = hm.synthesize(iris, method="cocluster", k=k, bins=3, seed=0)
    assert found.parameters["parts"][0] == groups
    assert found.parameters["k_obtained"] == obtained


@pytest.mark.usefixtures("unmeasured")
def test_targeted_merging_keeps_the_parts(iris):
    found = hm.synthesize(iris, method="cocluster", k=42, bins=3, seed=0, strategy="targeted")
    assert found.parameters["parts"] == [3, 8]


def test_one_group_is_refused(iris):
    half = pa.array(["a"] * 60 + ["b"] * 90)
    names = ("x", "y", "z")
    table = hm.read(pa.table(dict.fromkeys(names, half)), dict.fromkeys(names, "quasi"))
    with pytest.raises(UnsatisfiableError, match="one group"):
        hm.synthesize(table, method="cocluster", k=70, bins=3)


def test_a_column_without_a_value_that_k_people_hold_is_refused(iris):
    with pytest.raises(UnsatisfiableError, match="'species': no value is held by 120 people"):
        hm.synthesize(iris, method="cocluster", k=120, bins=3)


def test_no_guarantee_is_claimed_and_risk_is_measured(release):
    document = release.to_dict()
    assert release.verdicts == ()
    assert "at least 8 people" in document["statement"]["claimed"][0]
    assert any("k-anonymity" in words for words in document["statement"]["not_claimed"])
    measured = document["statement"]["measured"]
    assert 0 < measured["attribution"]["ratio"] <= 1
    names = [one["name"] for one in measured["criteria"]]
    assert {"singling out", "singling out, by any column", "linkability", "inference"} <= set(names)
    assert names[-7:] == ["wide singling out", "wide linkability", *["wide inference"] * 5]
    assert {one["column"] for one in measured["criteria"][-5:]} == set(COLUMNS)
    assert all(one["control"] is None for one in measured["criteria"])
    assert any("held out" in note for note in release.notes)
    assert "no formal guarantee" in document["outcome"]
    assert "k-anonym" not in repr(release)


def test_people_held_out_are_the_control(iris):
    found = hm.synthesize(iris, method="cocluster", k=20, bins=3, seed=0, holdout=0.2)
    assert found.rows == 150
    assert found.parameters["k_obtained"] <= 120
    measured = found.measured
    tried = [
        one for one in measured["criteria"] if one["name"].endswith(("linkability", "inference"))
    ]
    assert len(tried) == 8
    assert all(one["control"]["n"] == 30 for one in tried)
    assert measured["membership"]["area"]["n"] == 150
    assert measured["nearness"]["outside"]["n"] == 30
    assert not any("held out" in note for note in found.notes)


def test_a_person_is_held_out_with_all_rows():
    from halfmask.synthesize.cocluster import hold_out

    rows = pa.table({"id": [0, 0, 1, 1, 2, 2, 3, 3], "a": list("aabbccdd")})
    table = hm.read(rows, {"table": {"person": "id"}, "columns": {"a": "quasi"}})
    learned, held = hold_out(table, 0.25, np.random.default_rng(0))
    assert (len(learned), len(held)) == (6, 2)
    assert len(set(held.arrow["id"].to_pylist())) == 1
    with pytest.raises(ParameterError, match="both sides"):
        hold_out(table, 0.01, np.random.default_rng(0))


@pytest.mark.usefixtures("unmeasured")
def test_the_same_seed_draws_the_same_rows(iris, release):
    again = hm.synthesize(iris, method="cocluster", k=8, bins=3, seed=0)
    assert again.to_arrow().equals(release.to_arrow())
    other = hm.synthesize(iris, method="cocluster", k=8, bins=3)
    assert other.parameters["seed"] is None


def test_a_report_is_json_or_a_page(release, tmp_path):
    release.report(tmp_path / "iris.json")
    assert "not_claimed" in (tmp_path / "iris.json").read_text(encoding="utf-8")
    release.report(tmp_path / "iris.html")
    page = (tmp_path / "iris.html").read_text(encoding="utf-8")
    assert "Nothing formal beyond that" in page
    assert "every value that leaves is held by at least 8 people" in page
    assert "singling out" in page
    assert "k-anonymity of the rows" in page
    with pytest.raises(InputError, match="json"):
        release.report(tmp_path / "iris.docx")
    release.write(tmp_path / "iris.parquet")
    assert (tmp_path / "iris.parquet").exists()


@pytest.mark.usefixtures("unmeasured")
def test_identifiers_people_and_policies_never_leave():
    random = np.random.default_rng(0)
    hidden = random.integers(0, 2, 400)
    table = pa.table(
        {
            "name": [f"n{i}" for i in range(400)],
            "id": np.arange(400),
            "k_i": np.full(400, 3),
            "a": hidden * 3 + random.integers(0, 3, 400),
            "b": pa.array(hidden * 3 + random.integers(0, 3, 400), mask=random.random(400) < 0.1),
        }
    )
    schema = {
        "table": {"person": "id"},
        "policy": {"k": "k_i"},
        "columns": {"name": "identifier", "a": "quasi", "b": "sensitive"},
    }
    found = hm.synthesize(
        hm.read(table, schema), method="cocluster", k=20, rows=1000, combinations=1
    )
    assert found.to_arrow().column_names == ["a", "b"]
    assert found.rows == 1000
    assert 50 < found.to_arrow()["b"].null_count < 150


@pytest.fixture(scope="module")
def visits():
    """100 people with 4 rows each, in two hidden groups of 30 and 70 people."""
    random = np.random.default_rng(0)
    person = np.repeat(np.arange(100), 4)
    hidden = (person >= 30).astype(int)
    columns = {name: hidden * 3 + random.integers(0, 3, 400) for name in "abcd"}
    schema = {"table": {"person": "id"}, "columns": dict.fromkeys("abcd", "quasi")}
    return hm.read(pa.table({"id": person, **columns}), schema)


@pytest.mark.usefixtures("unmeasured")
@pytest.mark.parametrize("strategy", ["climb", "targeted"])
def test_k_counts_people_where_they_have_several_rows(visits, strategy):
    how = {"k": 30, "seed": 0, "strategy": strategy}
    with pytest.raises(UnsatisfiableError, match="combinations=1"):  # no pair is held by 30 people
        hm.synthesize(visits, method="cocluster", **how)
    found = hm.synthesize(visits, method="cocluster", combinations=1, **how)
    assert found.parameters["k_obtained"] == 30
    with pytest.raises(UnsatisfiableError, match="at most 30"):
        hm.synthesize(visits, method="cocluster", k=31, seed=0, strategy=strategy)
    with pytest.raises(ParameterError, match="100 people"):
        hm.synthesize(visits, method="cocluster", k=101)


@pytest.mark.usefixtures("unmeasured")
def test_numbers_can_be_cut_where_it_helps_most(iris):
    found = hm.synthesize(iris, method="cocluster", k=30, intervals="modl", seed=0)
    assert found.parameters["intervals"] == "modl"
    numbers = found.to_arrow()["petal_width"].to_numpy()
    assert (numbers <= 0.8).sum() == pytest.approx(50, abs=8)


def test_options_are_checked_by_name(iris):
    with pytest.raises(ParameterError, match="one of k, rows, bins"):
        hm.synthesize(iris, method="cocluster", k=10, sets="tight")
    with pytest.raises(ParameterError, match="150 people"):
        hm.synthesize(iris, method="cocluster")


def test_columns_whose_values_occur_once_are_refused(iris):
    names = pa.array([f"n{i}" for i in range(150)])
    table = hm.read(
        iris.arrow.append_column("name", names), dict.fromkeys((*COLUMNS, "name"), "quasi")
    )
    with pytest.raises(InputError, match=r"'name'.*identifiers"):
        hm.synthesize(table, method="cocluster", k=10)


def test_no_structure_is_refused():
    random = np.random.default_rng(2)
    table = pa.table({"a": random.integers(0, 4, 300), "b": random.integers(0, 4, 300)})
    people = hm.read(table, {"a": "quasi", "b": "quasi"})
    with pytest.raises(UnsatisfiableError, match="no structure"):
        hm.synthesize(people, method="cocluster", k=10)


@pytest.mark.parametrize(
    "wrong", [{"k": 0}, {"k": 151}, {"k": 2.5}, {"k": 5, "rows": 0}, {"k": 5, "mode": "x"},
              {"k": 5, "strategy": "x"}, {"k": 5, "holdout": 1}]
)  # fmt: skip
def test_parameters_out_of_range_are_refused(iris, wrong):
    with pytest.raises(ParameterError):
        hm.synthesize(iris, method="cocluster", **wrong)


def test_unknown_methods_are_refused(iris):
    with pytest.raises(ParameterError, match="cocluster"):
        hm.synthesize(iris, method="other")


def test_only_the_door_makes_a_release(iris):
    with pytest.raises(PrivacyError, match="measured first"):
        SyntheticRelease(guarantee=SealedGuarantee(), method="x", _arrow=iris.arrow, door=object())
    draft = SyntheticCandidate(iris, iris.arrow.select(["species"]), "x")
    with pytest.raises(InternalError, match="other columns"):
        seal(draft)
    with pytest.raises(InternalError, match=r"'sepal_length'.*fewer than 2 people"):
        seal(SyntheticCandidate(iris, iris.arrow, "x", least=2))


@pytest.mark.usefixtures("unmeasured")
def test_dates_are_drawn_inside_their_intervals():
    random = np.random.default_rng(1)
    hidden = random.integers(0, 2, 500)
    days = pa.array((hidden * 4000 + random.integers(0, 1500, 500)).astype("int32")).cast(
        pa.date32()
    )
    table = hm.read(pa.table({"born": days, "group": hidden}), {"born": "quasi", "group": "quasi"})
    rows = hm.synthesize(table, method="cocluster", k=50, seed=1).to_arrow()
    assert rows["born"].type == pa.date32()
    drawn = rows["born"].cast(pa.int32()).to_numpy()
    early = np.array(rows["group"].to_pylist()) == 0
    assert drawn[early].mean() < 2000 < drawn[~early].mean()


@pytest.mark.parametrize(
    "kind",
    [pa.decimal128(12, 2), pa.uint64(), *([pa.int64(), pa.timestamp("ns")] if THOROUGH else [])],
)
def test_numbers_of_every_type_are_drawn_inside_their_intervals(kind):
    random = np.random.default_rng(1)
    hidden = random.integers(0, 2, 300)
    base = {"decimal128(12, 2)": 0, "uint64": 2**63}.get(str(kind), 2**60)
    numbers = [base + int(n) for n in hidden * 10**6 + random.integers(0, 10**5, 300)]
    column = pa.array([Decimal(n) if pa.types.is_decimal(kind) else n for n in numbers], kind)
    columns = {"x": column, "group": hidden, "again": hidden, "third": hidden}
    table = hm.read(pa.table(columns), dict.fromkeys(columns, "quasi"))
    release = hm.synthesize(table, method="cocluster", k=50, seed=1)
    rows = release.to_arrow()
    assert rows["x"].type == kind
    drawn = rows["x"].cast(pa.int64(), safe=False) if pa.types.is_temporal(kind) else rows["x"]
    high = np.array([int(n) - base > 5 * 10**5 for n in drawn.to_pylist()])
    assert np.mean(high == np.array(rows["group"].to_pylist())) > 0.8
    assert {int(n) - base < 11 * 10**5 for n in drawn.to_pylist()} == {True}
    assert hm.compare(table, release, learn=False, attacks=20) is not None


def test_a_synthetic_release_can_be_compared(iris, release, tmp_path):
    found = hm.compare(iris, release, learn=False, attacks=20)
    assert (found.rows, found.rows_released) == (150, 150)
    assert max(one.hellinger for one in found.distances) < 0.5
    found.report(tmp_path / "compared.html")
    assert (tmp_path / "compared.html").stat().st_size > 10_000


def test_a_column_that_loses_all_but_one_value_is_named():
    random = np.random.default_rng(4)
    group = random.integers(0, 2, 4000)
    rows = {
        "gain": np.where(random.random(4000) < 0.95, 0, random.integers(1, 900, 4000)),
        "job": np.array([f"j{n}" for n in group * 6 + random.integers(0, 6, 4000)]),
        "age": group * 30 + random.integers(0, 30, 4000),
    }
    table = hm.read(pa.table(rows), dict.fromkeys(rows, "quasi"))
    release = hm.synthesize(table, method="cocluster", k=50, seed=1)  # 17 people a job have gains
    assert set(release.to_arrow()["gain"].to_pylist()) == {0}
    assert any(note.startswith("In gain, all rows hold one value") for note in release.notes)
    kept = hm.synthesize(table, method="cocluster", k=50, seed=1, combinations=1)
    assert len(set(kept.to_arrow()["gain"].to_pylist())) > 1
    assert not any("one value" in note for note in kept.notes)
