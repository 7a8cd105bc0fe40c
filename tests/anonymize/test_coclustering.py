"""k-anonymity by co-clustering: any k, many columns, other promises, and what is said of it."""

from __future__ import annotations

import json
import pickle
from importlib import import_module
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from effort import turn

import halfmask as hm
from halfmask.errors import InternalError, ParameterError, PrivacyError, UnsatisfiableError
from halfmask.release import Candidate, seal
from halfmask.release.partition import Perturbation

IRIS = Path(__file__).parents[1] / "coclustering" / "iris.csv"
COLUMNS = ("sepal_length", "sepal_width", "petal_length", "petal_width", "species")
METHODS = ("cocluster", "cocluster-sets", "cocluster-mode")


@pytest.fixture(scope="module", autouse=True)
def same_rows_are_searched_once():
    """The grid of the same rows is looked for once: tests differ in what is made of it."""
    place = import_module("halfmask.anonymize.coclustering")
    honest, found = place.cocluster_columns, {}

    def known(table, names, **how):
        key = pickle.dumps((table.arrow.select(list(names)), table.schema.to_dict(), how))
        if key not in found:
            found[key] = honest(table, names, **how)
        return found[key]

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(place, "cocluster_columns", known)
        yield


@pytest.fixture(scope="module")
def iris():
    return hm.read(IRIS, dict.fromkeys(COLUMNS, "quasi"))


def smallest(release, names):
    counts = release.to_arrow().select(names).group_by(names).aggregate([([], "count_all")])
    return min(counts["count_all"].to_pylist())


@pytest.mark.parametrize(
    ("method", "k"),
    [(m, k) for i, m in enumerate(METHODS) for k in turn([2, 7, 49, 50, 150], i, 2)],
)
def test_any_k_is_met_and_counted_on_the_rows(iris, method, k):
    release = hm.anonymize(iris, hm.KAnonymity(k), method=method)
    assert len(release) == 150
    assert smallest(release, list(COLUMNS)) >= k
    assert release.verdicts[0].achieved == smallest(release, list(COLUMNS))
    assert release.method == method
    assert release.recoding is None
    assert release.levels is None


def test_k_is_met_closely_below_a_coarse_grid():
    random = np.random.default_rng(0)
    hidden = random.integers(0, 4, 2000)
    table = pa.table({n: (hidden * 3 + random.integers(0, 3, 2000)).astype(str) for n in "ab"})
    people = hm.read(table, dict.fromkeys("ab", "quasi"))
    for method in METHODS:  # the grid has 4 groups of rows; 36 pairs of values have 43 rows or more
        release = hm.anonymize(people, hm.KAnonymity(10), method=method)
        assert release.classes.count == 36
        assert release.statement["measured"]["true_cells"] == 1


def test_smaller_k_gives_more_classes(iris):
    counts = [
        hm.anonymize(iris, hm.KAnonymity(k), method="cocluster").classes.count for k in (5, 20, 60)
    ]
    assert counts == sorted(counts, reverse=True)
    assert counts[0] > 3


def test_the_release_says_how_many_cells_are_true(iris):
    release = hm.anonymize(iris, hm.KAnonymity(49), method="cocluster-sets")
    assert release.parameters["rounds"] == hm.cocluster(iris).rounds
    measured = release.statement["measured"]
    rows = release.to_arrow()
    assert 0.5 < measured["true_cells"] < 1
    assert release.statement["kind"] == "hybrid"
    for name, share in measured["true_cells_by_column"].items():
        assert (share == 1) == (measured["perturbed_classes_by_column"][name] == 0)
    assert any("perturbed" in note for note in release.notes)
    assert "statement" in release.to_dict()
    species = dict(zip(*np.unique(rows["species"].to_pylist(), return_counts=True), strict=True))
    truth = measured["true_cells_by_column"]["species"]
    assert sum(species.values()) == 150
    assert truth == pytest.approx(round(truth * 150) / 150)


def test_one_class_of_everything_is_true_for_everybody(iris):
    release = hm.anonymize(iris, hm.KAnonymity(150), method="cocluster")
    assert release.classes.count == 1


def test_a_declared_hierarchy_gives_the_labels():
    random = np.random.default_rng(0)
    hidden = random.integers(0, 3, 600)
    table = pa.table(
        {
            "age": 20 + hidden * 20 + random.integers(0, 10, 600),
            "letter": np.array(list("abcdefghi"))[hidden * 3 + random.integers(0, 3, 600)],
        }
    )
    people = hm.read(
        table,
        {
            "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20, 40]}},
            "letter": {
                "role": "quasi",
                "hierarchy": {"tree": {"x": list("abc"), "y": list("defghi")}},
            },
        },
    )
    release = hm.anonymize(people, hm.KAnonymity(150), method="cocluster")
    labels = set(release.to_arrow()["age"].to_pylist())
    known = {"20-29", "40-49", "60-69", "20-39", "40-59", "60-79", "0-39", "40-79", "*"}
    assert labels <= known
    assert set(release.to_arrow()["letter"].to_pylist()) <= {*"abcdefghi", "x", "y", "*"}


def test_sensitive_columns_keep_their_rows_and_other_promises_hold():
    random = np.random.default_rng(1)
    hidden = random.integers(0, 4, 800)
    table = pa.table(
        {
            "a": hidden * 3 + random.integers(0, 3, 800),
            "b": hidden * 3 + random.integers(0, 3, 800),
            "ill": np.array(["flu", "cold", "cancer", "none"])[
                np.where(random.random(800) < 0.7, hidden, random.integers(0, 4, 800))
            ],
        }
    )
    people = hm.read(table, {"a": "quasi", "b": "quasi", "ill": "sensitive"})
    release = hm.anonymize(
        people,
        hm.KAnonymity(5),
        hm.LDiversity(3, "ill"),
        hm.TCloseness(0.45, "ill"),
        method="cocluster",
    )
    assert all(verdict.holds for verdict in release.verdicts)
    before = sorted(table["ill"].to_pylist())
    assert sorted(release.to_arrow()["ill"].to_pylist()) == before
    alone = hm.anonymize(people, hm.KAnonymity(5), method="cocluster")
    assert any("Sensitive columns leave as they are" in note for note in alone.notes)


def test_promises_that_cannot_hold_are_refused(iris):
    with pytest.raises(UnsatisfiableError, match="150"):
        hm.anonymize(iris, hm.KAnonymity(151), method="cocluster")
    table = iris.arrow.append_column("ill", pa.array(["flu"] * 150))
    people = hm.read(table, {**dict.fromkeys(COLUMNS, "quasi"), "ill": "sensitive"})
    with pytest.raises(UnsatisfiableError, match="2 is required, all rows in one class achieve 1"):
        hm.anonymize(people, hm.LDiversity(2, "ill"), method="cocluster")


def test_rows_that_break_a_promise_may_be_left_out(iris):
    ill = np.where(np.arange(150) % 2, "flu", "cold")
    ill[:50] = "flu"  # all of one species
    table = iris.arrow.append_column("ill", pa.array(ill))
    people = hm.read(table, {**dict.fromkeys(COLUMNS, "quasi"), "ill": "sensitive"})
    promises = (hm.KAnonymity(10), hm.LDiversity(2, "ill"))
    joined = hm.anonymize(people, *promises, method="cocluster")
    assert joined.suppressed == 0
    left = hm.anonymize(people, *promises, method="cocluster", suppression=0.34)
    assert 0 < left.suppressed <= 51
    assert len(left) == 150 - left.suppressed
    assert all(verdict.holds for verdict in left.verdicts)
    assert left.verdicts[0].rows == len(left)
    others = hm.read(table.slice(50), people.schema)  # nothing is made of rows that do not leave
    alone = hm.anonymize(others, *promises, method="cocluster")
    assert left.suppressed == 50
    assert left.statement["measured"] == alone.statement["measured"]
    assert left.loss > joined.loss - 1  # rows left out count as wholly generalized


def test_intervals_may_be_even_or_best(iris):
    labels = {
        intervals: set(
            hm.anonymize(iris, hm.KAnonymity(20), method="cocluster-sets", intervals=intervals)
            .to_arrow()["petal_width"]
            .to_pylist()
        )
        for intervals in ("equal-frequency", "equal-width", "modl")
    }
    assert "<=0.8" in labels["modl"]
    assert len({frozenset(one) for one in labels.values()}) == 3


@pytest.mark.parametrize(
    ("wrong", "says"),
    [
        ({"intervals": "width"}, "equal-frequency, equal-width, modl"),
        ({"bins": 1}, "2 or more"),
        ({"link": "chi"}, "count, lift"),
        ({"labels": "tight"}, "bins, intervals, link"),
        ({"metric": "loss"}, "cost of its grid"),
    ],
    ids=["intervals", "bins", "link", "an option of others", "a metric"],
)
def test_wrong_options_are_refused(iris, wrong, says):
    with pytest.raises(ParameterError, match=says):
        hm.anonymize(iris, hm.KAnonymity(5), method="cocluster", **wrong)


def test_lift_reaches_values_that_counts_miss(iris):
    true = [
        hm.anonymize(iris, hm.KAnonymity(40), method="cocluster-sets", bins=3, link=link).statement[
            "measured"
        ]["true_cells_by_column"]["sepal_length"]
        for link in ("count", "lift")
    ]
    assert true[1] > true[0]


def test_no_structure_is_said_with_what_it_means():
    random = np.random.default_rng(2)
    table = pa.table({"a": random.integers(0, 4, 300), "b": random.integers(0, 4, 300)})
    people = hm.read(table, {"a": "quasi", "b": "quasi"})
    with pytest.raises(UnsatisfiableError, match="no structure"):
        hm.anonymize(people, hm.KAnonymity(5), method="cocluster")


def test_constant_and_unique_columns_are_worked_with():
    random = np.random.default_rng(4)
    hidden = random.integers(0, 3, 300)
    table = pa.table(
        {
            "constant": ["x"] * 300,
            "unique": [f"u{i}" for i in range(300)],
            "a": hidden * 3 + random.integers(0, 2, 300),
            "b": hidden * 3 + random.integers(0, 2, 300),
            "c": pa.array(hidden * 3.5 + random.random(300), mask=random.random(300) < 0.1),
        }
    )
    people = hm.read(table, dict.fromkeys(table.column_names, "quasi"))
    for method in METHODS:
        release = hm.anonymize(people, hm.KAnonymity(10), method=method)
        assert smallest(release, table.column_names) >= 10
        assert set(release.to_arrow()["unique"].to_pylist()) == {"*"}  # else one person is named


def test_sixty_columns_of_mixed_kinds():
    random = np.random.default_rng(3)
    hidden = random.integers(0, 5, 1500)
    columns = {}
    for k in range(60):
        noise = random.random(1500) < 0.4
        code = np.where(noise, random.integers(0, 5, 1500), (hidden + k) % 5)
        columns[f"c{k}"] = code * 1.5 + random.random(1500) if k % 3 == 0 else code.astype(str)
    people = hm.read(pa.table(columns), dict.fromkeys(columns, "quasi"))
    release = hm.anonymize(people, hm.KAnonymity(20), method="cocluster")
    assert release.verdicts[0].achieved >= 20
    assert release.statement["measured"]["true_cells"] > 0.6


def test_people_are_counted_and_not_their_rows():
    random = np.random.default_rng(5)
    hidden = np.repeat(random.integers(0, 3, 100), 4)
    table = pa.table(
        {
            "who": np.repeat(np.arange(100), 4),
            "a": hidden * 2 + random.integers(0, 2, 400),
            "b": hidden * 2 + random.integers(0, 2, 400),
        }
    )
    people = hm.read(table, {"table": {"person": "who"}, "columns": {"a": "quasi", "b": "quasi"}})
    release = hm.anonymize(people, hm.KAnonymity(12), method="cocluster")
    assert release.verdicts[0].achieved >= 12
    assert "who" not in release.to_arrow().column_names


def test_reports_can_be_written(iris, tmp_path):
    release = hm.anonymize(iris, hm.KAnonymity(10), method="cocluster")
    release.report(tmp_path / "iris.html")
    release.report(tmp_path / "iris.json")
    document = json.loads((tmp_path / "iris.json").read_text(encoding="utf-8"))
    assert document["statement"]["not_claimed"][0] == "that published cells are true"
    assert "perturbed" in (tmp_path / "iris.html").read_text(encoding="utf-8")


def test_the_door_does_not_believe_the_search(iris):
    names = list(iris.schema.quasi)
    labels = pa.table({name: iris.arrow[name].cast(pa.string()) for name in names})
    meaning = {
        name: {
            text: np.array([i])
            for i, text in enumerate(iris.encode(name).values.cast(pa.string()).to_pylist())
        }
        for name in names
    }
    columns = {name: iris.schema.columns[name] for name in names}
    every, two = np.zeros(150, dtype=np.int32), [hm.KAnonymity(2)]

    def perturbed(labels: pa.Table, step=every, models=two) -> Candidate:
        return Candidate(iris, models, Perturbation(columns, labels, meaning), step)

    with pytest.raises(InternalError, match="break k-anonymity"):
        seal(perturbed(labels))
    with pytest.raises(InternalError, match="labels do not match"):
        seal(perturbed(labels.slice(0, 10)))
    with pytest.raises(PrivacyError, match="No promise"):
        seal(perturbed(labels, models=[]))
    fewer = np.where(np.arange(150) < 10, 0, -1).astype(np.int32)
    with pytest.raises(InternalError, match="suppresses more"):
        seal(perturbed(labels.slice(0, 10), fewer))
    for wrong in (every[:149], every + 1):
        with pytest.raises(InternalError, match="steps do not match"):
            seal(perturbed(labels, wrong))
    star = pa.table({name: ["*"] * 150 for name in names})
    with pytest.raises(InternalError, match="meaning is not stated"):
        seal(perturbed(star))


def test_unknown_methods_name_the_known_ones(iris):
    with pytest.raises(ParameterError, match="cocluster-sets"):
        hm.anonymize(iris, hm.KAnonymity(2), method="coclustering")


def test_each_person_s_own_k_is_met():
    random = np.random.default_rng(6)
    hidden = random.integers(0, 3, 300)
    table = pa.table(
        {
            "k_i": np.where(random.random(300) < 0.1, 40, 3),
            "a": hidden * 2 + random.integers(0, 2, 300),
            "b": hidden * 2 + random.integers(0, 2, 300),
        }
    )
    people = hm.read(table, {"policy": {"k": "k_i"}, "columns": {"a": "quasi", "b": "quasi"}})
    release = hm.anonymize(people, hm.PersonalKAnonymity(), method="cocluster")
    assert release.verdicts[0].holds
    assert "k_i" not in release.to_arrow().column_names


def test_the_report_does_not_speak_of_a_recoding(iris, tmp_path):
    hm.anonymize(iris, hm.KAnonymity(10), method="cocluster").report(tmp_path / "iris.html")
    page = (tmp_path / "iris.html").read_text(encoding="utf-8")
    assert "some labels are false" in page


@pytest.mark.parametrize("method", METHODS)
def test_a_hybrid_release_can_be_compared(iris, method, tmp_path):
    release = hm.anonymize(iris, hm.KAnonymity(20), method=method)
    found = hm.compare(iris, release, learn=False, attacks=20)
    assert found.loss == pytest.approx(release.loss)
    assert not any("taken as new values" in note for note in found.notes)
    for one in found.distances:
        assert 0 <= one.hellinger <= 1
    release.write(tmp_path / "iris.csv")
    again = hm.compare(iris, hm.read(tmp_path / "iris.csv", hm.Schema()), learn=False, attacks=20)
    assert again.loss == pytest.approx(found.loss)


@pytest.mark.parametrize(
    ("method", "k"), [(m, k) for i, m in enumerate(METHODS) for k in turn([50, 190], i)]
)
def test_the_loss_is_that_of_a_comparison_where_a_hierarchy_knows_more_values(method, k):
    random = np.random.default_rng(0)
    hidden = random.integers(0, 3, 600)
    table = pa.table(
        {
            "age": 20 + hidden * 20 + random.integers(0, 5, 600) * 2,
            "letter": np.array(list("abcdefghi"))[hidden * 3 + random.integers(0, 3, 600)],
        }
    )
    tree = {"x": [*"abc", "nobody's"], "y": [*"defghi", "also nobody's"]}
    people = hm.read(
        table,
        {
            "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20, 40]}},
            "letter": {"role": "quasi", "hierarchy": {"tree": tree}},
        },
    )
    release = hm.anonymize(people, hm.KAnonymity(k), method=method, suppression=0.05)
    found = hm.compare(people, release, learn=False, attacks=20)
    assert found.loss == pytest.approx(release.loss)
    lost = {column.name: column.loss for column in found.generalized}
    assert lost == pytest.approx({c.name: c.loss for c in release.columns})


@pytest.mark.parametrize("method", METHODS)
def test_a_column_of_many_zeros_is_not_published_as_any(method):
    random = np.random.default_rng(0)
    rich = random.random(1500) < 0.12
    gains = np.where(rich, random.integers(1000, 9000, 1500), 0)
    rows = {
        "gain": gains,
        "pay": np.where(rich, "high", "low"),
        "home": np.where(rich ^ (random.random(1500) < 0.1), "owned", "let"),
    }
    table = hm.read(pa.table(rows), dict.fromkeys(rows, "quasi"))
    found = hm.anonymize(table, hm.KAnonymity(10), method=method).to_arrow()["gain"].to_pylist()
    assert len(set(found)) > 1
    assert found.count("<=0") > 1000
