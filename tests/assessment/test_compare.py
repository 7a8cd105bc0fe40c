"""Comparison figures on tables small enough to count by hand."""

from __future__ import annotations

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InputError

SCHEMA = {
    "age": {"role": "quasi", "hierarchy": {"tree": {"young": ["21", "22"], "old": ["71", "72"]}}},
    "sex": "quasi",
    "disease": "sensitive",
}


def original():
    rows = {
        "age": ["21", "22", "71", "72"],
        "sex": ["f", "f", "m", "m"],
        "disease": ["flu", "flu", "cold", "gout"],
    }
    return hm.read(pa.table(rows), schema=SCHEMA)


def published(age, sex, disease):
    return hm.read(pa.table({"age": age, "sex": sex, "disease": disease}), schema={})


def test_one_level_up_in_one_column():
    release = published(
        ["young", "young", "old", "old"], ["f", "f", "m", "m"], ["flu", "flu", "cold", "gout"]
    )
    found = hm.compare(original(), release, learn=False)
    age, sex = found.generalized
    # D = 4, every label covers 2 leaves: (2/4 - 1/4) / (1 - 1/4) = 1/3.
    assert age.loss == pytest.approx(1 / 3)
    assert sex.loss == 0
    assert found.loss == pytest.approx((4 / 3) ** 0.5 - 1)
    assert (age.distinct, age.distinct_released) == (4, 2)
    assert (found.classes, found.classes_released) == (4, 2)
    assert (found.mean_class, found.mean_class_released) == (1, 2)
    assert found.suppressed == 0
    assert [column.distance for column in found.kept] == [0]


def test_risks_and_disclosures_stand_before_and_after():
    release = published(
        ["young", "young", "old", "old"], ["f", "f", "m", "m"], ["flu", "flu", "cold", "gout"]
    )
    found = hm.compare(original(), release, learn=False)
    # Four people alone become two pairs; flu is certain in one of them.
    assert (found.before.prosecutor, found.before.marketer) == (1, 1)
    assert (found.after.prosecutor, found.after.marketer) == (0.5, 0.5)
    ((before, after),) = found.disclosures
    assert (before.homogeneity, before.best_guess) == (1, 1)
    assert (after.homogeneity, after.best_guess) == (0.5, 0.75)
    assert (found.finding.found, found.finding.highest, found.finding.uncovered) == (0.5, 0.5, 0)
    assert found.score == pytest.approx((found.loss + found.linkage.risk) / 2)


def test_people_whom_no_row_fits_are_not_found():
    release = published(["21", "21", "71"], ["f", "f", "m"], ["flu", "flu", "cold"])
    found = hm.compare(original(), release, learn=False)
    # Two rows fit 21, one fits 71, none fits 22 and 72: three rows and half of the people.
    assert found.finding.found == pytest.approx((1 / 2 + 1) / 4)
    assert (found.finding.highest, found.finding.uncovered) == (1, 0.5)
    assert found.made_up


def test_a_row_left_out_loses_everything_and_moves_the_distribution():
    release = published(["young", "young", "72"], ["f", "f", "m"], ["flu", "flu", "gout"])
    found = hm.compare(original(), release, learn=False)
    assert (found.suppressed, found.rows_released) == (1, 3)
    # Leaves covered: 2 + 2 + 1 + 4 (left out) = 9; (9/4 - 1) / 3.
    assert found.generalized[0].loss == pytest.approx(1.25 / 3)
    # Sex has D = 2; covered 1 + 1 + 1 + 2 = 5; 5/4 - 1.
    assert found.generalized[1].loss == pytest.approx(0.25)
    # Flu 2/4 to 2/3, cold 1/4 to 0, gout 1/4 to 1/3: (1/6 + 1/4 + 1/12) / 2.
    assert found.kept[0].distance == pytest.approx(0.25)


def test_a_suppressed_cell_covers_every_leaf():
    release = published(["*"] * 4, ["f", "f", "m", "m"], ["flu", "flu", "cold", "gout"])
    assert hm.compare(original(), release, learn=False).generalized[0].loss == pytest.approx(1)


def test_a_release_says_the_same_loss_as_its_comparison():
    table = original()
    release = hm.anonymize(table, hm.KAnonymity(2), method="optimal")
    assert hm.compare(table, release, learn=False).loss == pytest.approx(release.loss)


def test_foreign_values_are_new_values_and_the_count_is_told():
    release = published(["canary", "21"], ["f", "m"], ["flu", "flu"])
    found = hm.compare(original(), release, learn=False)
    assert found.loss is None
    assert any("'age': 1 released rows" in note for note in found.notes)
    assert "canary" not in str(found.to_dict())


def test_a_column_that_is_not_there_is_named():
    release = hm.read(pa.table({"age": ["21"]}), schema={})
    notes = hm.compare(original(), release, learn=False).notes
    assert "The release lacks the column 'sex': it is taken as suppressed in every row." in notes


def test_more_rows_than_the_original_are_synthetic():
    release = published(["21"] * 5, ["f"] * 5, ["flu"] * 5)
    found = hm.compare(original(), release, learn=False)
    assert (found.rows_released, found.suppressed) == (5, 0)
    # Age: p = 1/4 each, q = (1, 0, 0, 0): sqrt(1 - sqrt(1/4)).
    assert found.distances[0].hellinger == pytest.approx(0.5**0.5)
    assert found.distances[0].ruled_out == pytest.approx(0.75)


def test_identical_tables_lose_nothing():
    table = original()
    found = hm.compare(table, table, learn=False)
    assert found.loss == 0
    assert found.utility.precision == 1
    assert all(d.hellinger == 0 and d.variation == 0 and d.kl == 0 for d in found.distances)
    assert all(j.hellinger == pytest.approx(0, abs=1e-7) for j in found.joint)
    assert all(p.contingency == 0 and p.before == p.after for p in found.pairs)
    assert found.counting.error.value == 0
    assert found.finding.found == 1  # the four rows are alone
    assert found.membership.attribution.copies == 1


def test_generalized_values_are_spread_evenly():
    release = published(["young"] * 4, ["f", "f", "m", "m"], ["flu", "flu", "cold", "gout"])
    found = hm.compare(original(), release, learn=False)
    # q = (1/2, 1/2, 0, 0) against 1/4 each: BC = 2 sqrt(1/8).
    assert found.distances[0].hellinger == pytest.approx((1 - 2 * (1 / 8) ** 0.5) ** 0.5)
    joint = next(j for j in found.joint if j.columns == ("age", "sex"))
    # Pairs of the original: (21 f) (22 f) (71 m) (72 m), 1/4 each; the release gives the first two
    # 1/2 of f's half each, the others nothing.
    assert joint.hellinger == pytest.approx((1 - 2 * (1 / 4 * 1 / 4) ** 0.5) ** 0.5)
    assert joint.ruled_out == pytest.approx(0.5)


def test_needs_and_own_queries(tmp_path):
    from halfmask.metrics.discrimination.need import Need

    table = original()
    file = tmp_path / "queries.sql"
    file.write_text("select sex, count(*) from people group by sex; -- a comment\n")
    release = published(["young"] * 4, ["f", "f", "f", "m"], ["flu", "flu", "cold", "gout"])
    found = hm.compare(table, release, learn=False, queries=file, needs=[Need("disease", ("sex",))])
    (query,) = found.queries
    # f: 3 instead of 2, m: 1 instead of 2: both off by a half.
    assert query.error.value == pytest.approx(0.5)
    assert query.cells == 2
    (need,) = found.needs
    # H(disease) = 1.5 bits; given sex: f certain, m one bit: 1 - 0.5/1.5.
    assert need.before == pytest.approx(2 / 3)
    assert need.name == "disease from sex"


def test_a_query_that_cannot_run_is_named_without_its_text(tmp_path):
    file = tmp_path / "queries.sql"
    file.write_text("select canary from people")
    with pytest.raises(InputError, match="Query 1") as caught:
        hm.compare(original(), original(), learn=False, queries=file)
    assert "canary" not in str(caught.value)


def test_models_are_trained_on_the_release():
    pytest.importorskip("sklearn")
    import numpy as np

    random = np.random.default_rng(0)
    x = random.integers(0, 2, 400)
    rows = {"x": x, "z": random.integers(0, 5, 400), "y": np.where(x == 1, "a", "b")}
    schema = {"x": "quasi", "z": "quasi", "y": "sensitive"}
    table = hm.read(pa.table(rows), schema=schema)
    spoiled = hm.read(pa.table(rows | {"y": random.permutation(rows["y"])}), schema=schema)
    good = hm.compare(table, table)
    bad = hm.compare(table, spoiled)
    assert good.predictions[0].release.value == 1
    assert bad.predictions[0].release.value < 0.9
    assert {p.model for p in good.predictions} == {"logistic regression", "tree", "boosting"}
    assert good.likeness.area.value == pytest.approx(0.5, abs=0.1)
    assert good.likeness.clusters.value > 0.5
    assert bad.likeness.area.value > 0.6
    assert good.likeness.pmse_ratio < 3


def test_without_scikit_learn_the_command_is_told(monkeypatch):
    from halfmask.errors import EngineUnavailableError
    from halfmask.metrics.utility import prediction

    monkeypatch.setattr(prediction, "available", lambda: False)
    assert hm.compare(original(), original()).likeness is None
    with pytest.raises(EngineUnavailableError, match="halfmask\\[measures\\]"):
        hm.compare(original(), original(), targets=["disease"])


def test_the_document_is_plain_and_both_files_are_written(tmp_path):
    import json

    found = hm.compare(original(), original(), learn=False)
    found.report(tmp_path / "a.json")
    found.report(tmp_path / "a.html")
    assert json.loads((tmp_path / "a.json").read_text())["format"] == "halfmask.comparison/1"
    assert (tmp_path / "a.html").read_text().startswith("<!doctype html>")
    with pytest.raises(InputError, match=r"\.json, \.html or \.pdf"):
        found.report(tmp_path / "a.txt")


def test_linear_models_of_numeric_columns_are_fitted_without_scikit_learn(monkeypatch, tmp_path):
    import numpy as np

    from halfmask.metrics.utility import prediction

    monkeypatch.setattr(prediction, "available", lambda: False)
    random = np.random.default_rng(0)
    x = random.integers(0, 9, 200)
    rows = {"x": x, "w": random.choice(["a", "b"], 200), "p": x + random.normal(size=200)}
    schema = {"x": "quasi", "w": "sensitive", "p": "sensitive"}
    table = hm.read(pa.table(rows), schema=schema)
    found = hm.compare(table, hm.anonymize(table, hm.KAnonymity(3), method="optimal"))
    (model,) = found.regressions
    assert (model.target, model.coefficients, model.same_sign) == ("p", 2, 1)
    assert found.to_dict()["regressions"][0]["overlap"]["value"] == model.overlap.value
    found.report(tmp_path / "a.html")
    page = " ".join((tmp_path / "a.html").read_text().split())
    assert "has 2 coefficients, whose intervals overlap to" in page
    assert hm.compare(table, table, learn=False).regressions == ()


def test_the_limit_is_that_of_every_criterion():
    for limit in (0.2, 0.9):
        found = hm.compare(original(), original(), learn=False, limit=limit)
        assert {one.limit for one in found.criteria} == {found.limit} == {limit}
        assert found.criteria[-1].name == "inference, by classes"


def test_a_release_is_no_control():
    release = hm.anonymize(original(), hm.KAnonymity(2), method="optimal")
    with pytest.raises(InputError, match="A release is no control"):
        hm.compare(original(), release, control=release, learn=False)


def test_sensitive_values_that_were_generalized_stand_in_the_blocks_of_what_they_cover():
    tree = {"tree": {"lung": ["flu", "cold"], "joint": ["gout"]}}
    schema = {"sex": "quasi", "disease": {"role": "sensitive", "hierarchy": tree}}
    rows = {"sex": list("ffmm"), "disease": ["flu", "cold", "cold", "gout"]}
    people = hm.read(pa.table(rows), schema=schema)
    kept = hm.compare(people, hm.read(pa.table(rows)), learn=False).disclosures[0]
    # Both of f have lungs: their values differ and mean the same.
    assert [one.similarity for one in kept] == [0.5, 0.5]
    labels = hm.read(pa.table(rows | {"disease": ["lung", "lung", "lung", "joint"]}))
    before, after = hm.compare(people, labels, learn=False).disclosures[0]
    assert (before.homogeneity, after.homogeneity) == (0, 0.5)
    # Both of f hold one label: that is homogeneity, and no class holds several of one block.
    assert (before.similarity, after.similarity) == (0.5, 0)
    half = hm.read(pa.table(rows | {"disease": ["lung", "cold", "lung", "joint"]}))
    assert hm.compare(people, half, learn=False).disclosures[0][1].similarity == 0.5


def test_numbers_whose_squares_are_none_are_compared_and_rendered(tmp_path):
    rows = {
        "a": [0.0, -0.0, float("nan"), 1e300, -1e300, float("inf")] * 10,
        "s": [1e300 * (-1) ** i for i in range(60)],
    }
    people = hm.read(pa.table(rows), schema={"a": "quasi", "s": "sensitive"})
    found = hm.compare(people, people, learn=False)
    (pair,) = found.pairs
    assert pair.before == pytest.approx(pair.after)
    assert -1 <= pair.before <= 1
    found.report(tmp_path / "page.html")
