"""``cocluster`` as a verb: direct grids, rows x parts, trees for ARX, and what parts hold."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from effort import THOROUGH

import halfmask as hm
from halfmask.coclustering.independence import chance_of_gain, dependent_columns
from halfmask.coclustering.run import cell_information
from halfmask.errors import HierarchyError, ParameterError, SchemaError

IRIS = Path(__file__).parent / "iris.csv"
COLUMNS = ("sepal_length", "sepal_width", "petal_length", "petal_width", "species")


def test_five_columns_of_iris_cost_what_khiops_prints(iris):
    found = hm.cocluster(iris, COLUMNS, criterion="khiops11")
    assert found.grid.cost == pytest.approx(2351.657024, abs=1e-6)
    assert found.grid.parts == (2, 1, 3, 3, 3)
    assert found.to_dict()["rounds"] == 1


def test_parts_composition_and_interest(iris):
    found = hm.cocluster(iris, ["petal_length", "species"], parts={"species": 2})
    assert found.grid.parts == (2, 2)
    assert 0 < found.information < 1
    sides = found.to_dict()["variables"]
    setosa = next(p for p in sides[1]["composition"] if p["values"] == 1)
    assert setosa["typical"] == [{"value": "setosa", "share": 1.0}]
    assert sum(p["interest"] for p in sides[0]["composition"]) == pytest.approx(1)
    assert sides[0]["composition"][0]["to"] == 1.9
    # Two halves of 50 and 100 that never meet: the mutual information is their entropy.
    entropy = -(1 / 3) * np.log(1 / 3) - (2 / 3) * np.log(2 / 3)
    assert cell_information(found.grid).sum() == pytest.approx(entropy)


def test_rows_against_parts_is_the_default_and_two_of_more(iris):
    whole = hm.cocluster(iris, bins=3)
    assert [v.name for v in whole.grid.variables] == ["row", "part"]
    again = hm.cocluster(iris, COLUMNS, dimensions=2, bins=3)
    assert again.grid.cost == whole.grid.cost
    assert set(whole.trees()) == set(COLUMNS)
    assert hm.cocluster(iris, bins=3, smallest={"row": 50}).grid.sizes(0).min() == 50


def test_hierarchies_are_written_as_arx_reads_them(iris, tmp_path):
    found = hm.cocluster(iris, ["petal_length", "species"])
    paths = found.write_hierarchies(tmp_path / "trees")
    assert len(paths) == 2
    lines = (tmp_path / "trees" / "species.csv").read_text(encoding="utf-8").splitlines()
    assert lines == [
        "setosa;setosa;*",
        "versicolor;versicolor | virginica;*",
        "virginica;versicolor | virginica;*",
    ]
    schema = {"species": {"role": "quasi", "hierarchy": {"csv": paths[1]}}}
    assert hm.read(iris.arrow.select(["species"]), {"columns": schema}).hierarchy("species").height


@pytest.mark.parametrize("dimensions", [2, "rows"])
def test_every_number_of_a_column_is_a_leaf_of_its_hierarchy(iris, tmp_path, dimensions):
    names = ["petal_length", "species"]
    found = hm.cocluster(iris, names, dimensions=dimensions, bins=3)
    path = found.write_hierarchies(tmp_path / "trees")[0]
    lines = Path(path).read_text(encoding="utf-8").splitlines()
    numbers = sorted(set(iris.arrow["petal_length"].to_pylist()))
    assert [line.split(";")[0] for line in lines] == [str(number) for number in numbers]
    assert len({line.split(";")[1] for line in lines}) == 3
    schema = {"petal_length": {"role": "quasi", "hierarchy": {"csv": path}}}
    table = hm.read(iris.arrow.select(names[:1]), {"columns": schema})
    assert hm.anonymize(table, hm.KAnonymity(40), method="optimal").levels == {"petal_length": 1}


def test_a_hierarchy_quotes_what_parts_its_fields(tmp_path):
    rows = {"x": ["a;b", "c"] * 40, "y": ["u", "v"] * 40}
    path = hm.cocluster(hm.read(rows), ["x", "y"]).write_hierarchies(tmp_path / "trees")[0]
    assert Path(path).read_text(encoding="utf-8").splitlines()[0] == '"a;b";*'


@pytest.mark.parametrize(
    ("given", "kind"),
    [
        ({"dimensions": 3}, ParameterError),
        ({"criterion": "khiops"}, ParameterError),
        ({"parts": 0}, ParameterError),
        ({"sizes": 3}, ParameterError),
        ({"variables": ["species"]}, ParameterError),
        ({"variables": ["species", "colour"]}, SchemaError),
    ],
    ids=str,
)
def test_what_cannot_be_asked_is_refused(iris, given, kind):
    with pytest.raises(hm.HalfmaskError) as caught:
        hm.cocluster(iris, **{"variables": COLUMNS, **given})
    assert isinstance(caught.value, kind) or kind is SchemaError


def test_the_command_line_says_the_same(tmp_path):
    from click.testing import CliRunner

    from halfmask.cli.cocluster import cocluster_command

    asked = [
        str(IRIS), "--variables", "petal_length,species", "--parts", "species=2",
        "--hierarchies", str(tmp_path / "trees"), "--json",
    ]  # fmt: skip
    found = CliRunner().invoke(cocluster_command, asked)
    document = json.loads(found.stdout)
    assert [v["parts"] for v in document["variables"]] == [2, 2]
    assert (tmp_path / "trees" / "petal_length.csv").exists()


def zipf(seed, rows=2000):
    random = np.random.default_rng(seed)
    draws = {name: np.minimum(random.zipf(1.5, rows), 30) for name in "abc"}
    return {name: [f"{name}{v}" for v in column] for name, column in draws.items()}


def test_skewed_independent_columns_give_no_trees():
    auto = {"columns": {n: {"role": "quasi", "hierarchy": "auto"} for n in "abc"}}
    for seed in range(4):
        table = hm.read(pa.table(zipf(seed)), auto)
        with pytest.raises(HierarchyError, match="no structure"):
            table.hierarchy("a")


def names_of(columns):
    return {name: [f"{name}{value}" for value in held] for name, held in columns.items()}


def cocluster_names(columns, **options):
    table = hm.read(names_of(columns), dict.fromkeys(columns, "quasi"))
    return hm.cocluster(table, list(columns), **options)


@pytest.mark.parametrize("seed", range(12 if THOROUGH else 4))
def test_skewed_independent_columns_are_one_part_each(seed):
    random = np.random.default_rng(20 + seed)
    rows = (300, 1000, 3000)[seed % 3]
    columns = {n: np.minimum(random.zipf((1.5, 2)[seed % 2], rows), 60) for n in "ab"}
    found = cocluster_names(columns)
    assert found.grid.parts == (1, 1)
    assert found.dependence.bound == ()
    table = hm.read(names_of(columns), dict.fromkeys("ab", "quasi"))
    melted = hm.cocluster(table)
    assert not melted.grid.informative
    assert all(len(tree.levels) == 2 for tree in melted.trees().values())


def test_the_optimum_of_the_criterion_stays_there_to_be_asked_for():
    random = np.random.default_rng(5)
    columns = {n: np.minimum(random.zipf(2, 3000), 60) for n in "ab"}
    whole = cocluster_names(columns, information=1)
    assert whole.grid.parts == (2, 2)  # what shuffled columns give, too
    assert whole.grid.cost < whole.grid.null_cost
    told = whole.to_dict()["dependence"]
    assert told["beyond_chance"] == []
    assert told["no_more_than_chance"] == ["a", "b"]
    assert told["gain_of_optimum"] == pytest.approx(whole.grid.null_cost - whole.grid.cost)
    assert abs(told["gain_of_shuffled"] - told["gain_of_optimum"]) < 6
    assert "No more than chance: a, b." in whole.dependence.sentences()[0]


def test_skewed_columns_that_go_together_keep_their_parts():
    random = np.random.default_rng(0)
    a, own, c = (np.minimum(random.zipf(1.5, 2000), 60) for _ in range(3))
    b = np.where(random.random(2000) < 0.15, a, own)
    found = cocluster_names({"a": a, "b": b, "c": c})
    assert found.dependence.bound == ("a", "b")
    assert min(found.grid.parts[:2]) > 1
    assert found.grid.parts[2] == 1
    assert {name: len(tree.levels) for name, tree in found.trees().items()}["c"] == 2


def test_dependence_that_no_pair_of_columns_shows_is_found():
    random = np.random.default_rng(1)
    a, b = random.integers(0, 2, (2, 1200))
    found = cocluster_names({"a": a, "b": b, "c": a ^ b})  # any two of them are independent
    assert found.grid.parts == (2, 2, 2)


def test_sparse_columns_of_few_hidden_groups_are_found():
    """60 x 60 values, 500 rows: the mutual information of the values themselves tells nothing."""
    random = np.random.default_rng(1)
    of = random.integers(0, 3, (2, 60))
    cell = random.choice(9, 500, p=random.dirichlet(np.full(9, 0.3)))
    sides = [
        np.array([random.choice(np.flatnonzero(one == g)) for g in wanted], dtype=np.int32)
        for one, wanted in zip(of, (cell // 3, cell % 3), strict=True)
    ]
    assert dependent_columns(dict(zip("ab", sides, strict=True))) == set()
    found = cocluster_names(dict(zip("ab", sides, strict=True)))
    assert found.dependence.bound == ("a", "b")


@pytest.mark.parametrize(
    ("found", "gains", "chance"),
    [(5.0, [6.0, 4.0, 7.0], 0.75), (5.0, [6.0, 4.0, 3.0], 0.5), (3.0, [0.0] * 20, np.exp(-3))],
)
def test_the_chance_of_a_gain_by_hand(found, gains, chance):
    assert chance_of_gain(found, gains) == pytest.approx(chance)


def test_a_column_beside_two_that_go_together_stays_flat():
    rows = zipf(1)
    rows["d"] = [value.replace("a", "d") for value in rows["a"]]
    table = hm.read(
        pa.table(rows), {"columns": {n: {"role": "quasi", "hierarchy": "auto"} for n in rows}}
    )
    assert table.hierarchy("c").height == 1
    codes = {n: np.unique(v, return_inverse=True)[1].astype(np.int32) for n, v in rows.items()}
    assert dependent_columns(codes) == {"a", "d"}


def test_chance_is_seldom_taken_for_dependence():
    found = 0
    for seed in range(60):
        random = np.random.default_rng(seed)
        codes = {str(i): np.minimum(random.zipf(1.3, 300), 50).astype(np.int32) for i in range(3)}
        found += bool(dependent_columns(codes))
    assert found <= 1
