"""Trees of columns: that of the thesis for Iris, those of Adult, and a schema's use of them."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from effort import THOROUGH

import halfmask as hm
from halfmask.coclustering.hierarchy import hierarchy
from halfmask.coclustering.prepare import ColumnParts
from halfmask.coclustering.trees import column_trees, group_label, ordered_tree, thin
from halfmask.errors import HierarchyError
from halfmask.table.hierarchies import Auto, Dates, Flat, Intervals, Tree
from halfmask.table.hierarchies.builders import find_automatic


@pytest.fixture(scope="module")
def trees(grid, melted):
    return column_trees(hierarchy(grid), melted)


def test_the_tree_of_sepal_width_is_that_of_the_thesis(trees):
    tree = trees["sepal_width"]
    assert [level.tolist() for level in tree.levels] == [[0, 1, 2], [0, 0, 1], [0, 0, 0]]
    assert tree.labels(1) == ["<=2.9 | ]2.9,3.2]", ">3.2"]
    assert tree.to_csv() == (
        "<=2.9;<=2.9 | ]2.9,3.2];*\n]2.9,3.2];<=2.9 | ]2.9,3.2];*\n>3.2;>3.2;*\n"
    )


def test_every_tree_nests_and_ends_in_one_root(trees):
    assert len(trees) == 5
    for tree in trees.values():
        assert int(tree.levels[-1].max()) == 0
        for fine, coarse in zip(tree.levels, tree.levels[1:], strict=False):
            assert len(set(zip(fine.tolist(), coarse.tolist(), strict=True))) == fine.max() + 1


def test_the_lowest_node_covers_the_parts(trees):
    assert trees["sepal_width"].lowest(np.array([0, 1])) == (1, 0)
    assert trees["sepal_width"].lowest(np.array([0, 2])) == (2, 0)
    assert trees["sepal_width"].lowest(np.array([2])) == (0, 2)


def test_neighbours_alone_join_in_an_ordered_tree(melted, grid):
    tree = ordered_tree(melted.columns[0], grid.partition[0])
    for level in tree.levels:
        assert (np.diff(level) >= 0).all()
    assert int(tree.levels[-1].max()) == 0


def test_thinning_keeps_the_ends(trees):
    found = thin(trees["sepal_length"], 1)
    assert len(found.levels) == 3


def parts_of(labels, *, ordered):
    codes = np.arange(len(labels), dtype=np.int32)
    return ColumnParts("x", ordered, tuple(labels), codes, codes)


@pytest.mark.parametrize(
    ("parts", "ordered", "label"),
    [
        ([0, 1], False, "a | b"),
        ([0, 1, 2, 3], False, "a | b | c | d"),
        ([0, 1, 2, 3, 5, 6], False, "d | g | 4 more"),
        ([1, 2], True, "b | c"),
        ([1, 2, 3, 4, 5], True, "b to f"),
        ([1, 2, 4], True, "b | c | e"),
        ([4, 5, 6], True, "e | f | missing"),
    ],
    ids=[
        "two", "four", "many: the most frequent", "two neighbors", "a run", "no run",
        "a run that ends in the missing value",
    ],
)  # fmt: skip
def test_labels_of_groups_stay_short(parts, ordered, label):
    names = [*"abcdef", "missing" if ordered else "g"]
    counts = np.array([1, 1, 1, 9, 1, 1, 5])
    assert group_label(parts_of(names, ordered=ordered), np.array(parts), counts) == label


def test_auto_hierarchies_are_written_out_and_used(iris):
    columns = {name: {"role": "quasi", "hierarchy": "auto"} for name in iris.schema.columns}
    table = hm.read(iris.arrow, {"columns": columns})
    found = find_automatic(table).schema.columns
    assert isinstance(found["petal_length"].hierarchy, Intervals)
    assert isinstance(found["species"].hierarchy, Tree)
    assert table.hierarchy("petal_length").height >= 2
    release = hm.anonymize(table, hm.KAnonymity(10))
    assert release.verdicts[0].achieved >= 10
    assert not [c for c in release.recoding.columns.values() if isinstance(c.hierarchy, Auto)]
    assert hm.compare(table, release).loss == pytest.approx(release.loss)


def test_what_is_found_can_be_saved_and_read_again(iris, tmp_path):
    found = hm.describe(iris, hierarchies="auto")
    assert found.notes[-1] == "Hierarchies were found with 1 round(s) of search, as by every verb."
    assert {p.name: type(p.hierarchy) for p in found.columns}["petal_width"] is Intervals
    assert all("was found from" in p.why for p in found.columns if p.role == "quasi")
    assert not any("merged into intervals of" in p.why for p in found.columns)
    (tmp_path / "iris.toml").write_text(found.to_toml(), encoding="utf-8")
    again = hm.read(iris.arrow, tmp_path / "iris.toml")
    assert again.hierarchy("petal_width").height >= 2


def test_the_missing_value_stays_apart_below_the_root():
    random = np.random.default_rng(0)
    hidden = random.integers(0, 3, 900)
    letters = np.array(list("abcdefghi"))[hidden * 3 + random.integers(0, 3, 900)]
    table = pa.table(
        {
            "letter": pa.array(letters, mask=random.random(900) < 0.1),
            "number": pa.array(hidden * 30.0 + random.normal(0, 5, 900), mask=letters == "a"),
        }
    )
    auto = {"role": "quasi", "hierarchy": {"auto": {"levels": 2}}}
    people = hm.read(table, {"columns": {"letter": auto, "number": auto}})
    for name in ("letter", "number"):
        hierarchy_ = people.hierarchy(name)
        assert hierarchy_.labels[1][hierarchy_.maps[1][-1]] is None
        assert set(hierarchy_.labels[-1]) == {"*"}
    assert "d | e | f" in people.hierarchy("letter").labels[1]


def test_a_value_alone_in_its_group_is_not_nested():
    random = np.random.default_rng(0)
    hidden = random.integers(0, 5, 2000)
    letters = np.array(list("abcdefghijklz"))[
        hidden * 3 + random.integers(0, 3, 2000) * (hidden < 4)
    ]
    other = np.array(list("vwxyz"))[np.where(random.random(2000) < 0.9, hidden, 0)]
    table = hm.read(
        pa.table({"letter": letters, "other": other}),
        {"columns": {n: {"role": "quasi", "hierarchy": "auto"} for n in ("letter", "other")}},
    )
    groups = find_automatic(table).schema.columns["letter"].hierarchy.groups
    assert {"a", "b", "c"} in [set(values) for values in _lists(groups)]
    assert ["z"] in _lists(groups)
    assert not _padded(groups)
    levels = table.hierarchy("letter")
    z = table.encode("letter").values.to_pylist().index("z")
    assert levels.labels[1][levels.maps[1][z]] == "z"


def _padded(node):
    """Whether a group holds one group alone that holds one value alone."""
    if isinstance(node, list):
        return False
    inside = [list(v.values()) for v in node.values() if isinstance(v, dict)]
    alone = [v for v in inside if len(v) == 1 and isinstance(v[0], list) and len(v[0]) == 1]
    return bool(alone) or any(_padded(v) for v in node.values())


def _lists(node):
    return [node] if isinstance(node, list) else [x for v in node.values() for x in _lists(v)]


def test_columns_without_structure_are_refused_by_name():
    random = np.random.default_rng(3)
    table = pa.table({"a": random.integers(0, 5, 200), "b": random.integers(0, 5, 200)})
    auto = {"role": "quasi", "hierarchy": "auto"}
    people = hm.read(table, {"columns": {"a": auto, "b": auto}})
    with pytest.raises(HierarchyError, match="no structure"):
        people.hierarchy("a")
    alone = hm.read(table.select(["a"]), {"columns": {"a": auto}})
    with pytest.raises(HierarchyError, match="no other column"):
        alone.hierarchy("a")


def test_constant_unique_and_date_columns_are_left_to_themselves():
    random = np.random.default_rng(3)
    hidden = random.integers(0, 2, 600)
    table = pa.table(
        {
            "constant": ["x"] * 600,
            "unique": [f"u{i}" for i in range(600)],
            "day": pa.array(random.integers(0, 9000, 600).astype("int32")).cast(pa.date32()),
            "a": hidden * 2 + random.integers(0, 2, 600),
            "b": hidden * 2 + random.integers(0, 2, 600),
        }
    )
    auto = {"role": "quasi", "hierarchy": "auto"}
    people = hm.read(table, {"columns": dict.fromkeys(table.column_names, auto)})
    found = find_automatic(people).schema.columns
    kinds = {name: type(column.hierarchy) for name, column in found.items()}
    assert kinds["constant"] is kinds["unique"] is Flat
    assert kinds["day"] is Dates
    assert kinds["a"] is kinds["b"] is Tree


@pytest.mark.parametrize("wrong", [{"levels": 0}, {"bins": 1}, {"depth": 3}, {"levels": "x"}])
def test_wrong_options_are_refused(wrong):
    from halfmask.table.hierarchies import from_dict

    with pytest.raises(HierarchyError, match="auto"):
        from_dict({"auto": wrong})


def test_adult_groups_governments_and_continents(adult):
    names = ("sex", "age", "race", "education", "native-country", "workclass", "occupation")
    auto = {"role": "quasi", "hierarchy": "auto"}
    columns = dict.fromkeys(names, auto)
    columns |= {"marital-status": {"role": "other"}, "salary-class": {"role": "sensitive"}}
    rows = hm.read(adult, {"columns": columns}).arrow
    table = hm.read(rows if THOROUGH else rows.slice(0, 10_000), {"columns": columns})
    country = table.hierarchy("native-country")
    values = table.encode("native-country").values.to_pylist()
    group = dict(zip(values, country.maps[2], strict=True))
    assert len({group[c] for c in ("China", "India", "Vietnam", "Philippines")}) == 1
    assert group["China"] != group["United-States"]
    assert table.hierarchy("age").height >= 3
