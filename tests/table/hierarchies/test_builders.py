"""Each builder on values small enough to check by hand, its faults, and its way through TOML."""

from __future__ import annotations

import datetime
import tomllib
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from halfmask.errors import HierarchyError
from halfmask.table.files.toml import toml_section
from halfmask.table.hierarchies import Csv, Dates, Flat, Intervals, Mask, Ordered, Tree, from_dict

if TYPE_CHECKING:
    from halfmask.table.hierarchy import HierarchyBuilder

CANARY = "Zanzibar-Canary-77"
DAY = datetime.date


def levels(builder: HierarchyBuilder, values: list[object]) -> list[list[object]]:
    hierarchy = builder.build("c", pa.array(values))
    return [
        [hierarchy.labels[level][code] for code in hierarchy.maps[level]]
        for level in range(hierarchy.height + 1)
    ]


CASES: dict[str, tuple[HierarchyBuilder, list[object], list[list[object]]]] = {
    "whole intervals": (
        Intervals([5, 10]),
        [-1, 0, 4, 5, 12, None],
        [
            [-1, 0, 4, 5, 12, None],
            ["-5 to -1", "0-4", "0-4", "5-9", "10-14", None],
            ["-10 to -1", "0-9", "0-9", "0-9", "10-19", None],
            ["*"] * 6,
        ],
    ),
    "width of one": (Intervals([1]), [3, 4], [[3, 4], ["3", "4"], ["*", "*"]]),
    "an origin": (Intervals([10], origin=5), [4, 5], [[4, 5], ["-5 to 4", "5-14"], ["*"] * 2]),
    "decimals at the edge": (
        Intervals([0.1, 0.3]),
        [0.1, 0.3, 0.7999999],
        [
            [0.1, 0.3, 0.7999999],
            ["[0.1, 0.2)", "[0.3, 0.4)", "[0.7, 0.8)"],
            ["[0, 0.3)", "[0.3, 0.6)", "[0.6, 0.9)"],
            ["*"] * 3,
        ],
    ),
    "numbers written as text": (
        Intervals([5]),
        ["3", "9"],
        [["3", "9"], ["0-4", "5-9"], ["*"] * 2],
    ),
    "bounds": (
        Intervals(bounds=[[18, 40, 65], [18, 65]], top="Anyone"),
        [17, 18, 64, 65],
        [
            [17, 18, 64, 65],
            ["<18", "18-39", "40-64", ">=65"],
            ["<18", "18-64", "18-64", ">=65"],
            ["Anyone"] * 4,
        ],
    ),
    "open top": (
        Intervals([50], top=False),
        [1, 60, None],
        [[1, 60, None], ["0-49", "50-99", None]],
    ),
    "mask": (
        Mask(3),
        ["123", "12", "1", None],
        [["123", "12", "1", None], ["12*", "12*", "1**", None], ["1**"] * 3 + [None], ["*"] * 4],
    ),
    "mask from the left": (
        Mask(char="#", from_="left"),
        [5, 123],
        [[5, 123], ["##5", "#23"], ["##5", "##3"], ["*"] * 2],
    ),
    "dates": (
        Dates(["day", "month", "quarter", "year", "decade"]),
        [DAY(1999, 12, 31), DAY(2024, 2, 29), None],
        [
            [DAY(1999, 12, 31), DAY(2024, 2, 29), None],
            ["1999-12", "2024-02", None],
            ["1999-Q4", "2024-Q1", None],
            ["1999", "2024", None],
            ["1990-1999", "2020-2029", None],
            ["*"] * 3,
        ],
    ),
    "weeks of times": (
        Dates(["day", "week"]),
        [datetime.datetime(2021, 1, 3, 23), datetime.datetime(2021, 1, 4, 1)],
        [
            [datetime.datetime(2021, 1, 3, 23), datetime.datetime(2021, 1, 4, 1)],
            ["2021-01-03", "2021-01-04"],
            ["2020-W53", "2021-W01"],
            ["*"] * 2,
        ],
    ),
    "dates written as text": (Dates(["year"]), ["2020-01-01"], [["2020-01-01"], ["2020"], ["*"]]),
    "ordered by size": (
        Ordered(["a", "b", "c", "d", "e"], [2, 4]),
        ["a", "d", "e"],
        [["a", "d", "e"], ["a to b", "c to d", "e"], ["a to d", "a to d", "e"], ["*"] * 3],
    ),
    "ordered by name": (
        Ordered([1, 2, 3], [{"low": [1, 2], "high": [3]}, {"all": ["low", "high"]}]),
        [1, 3],
        [[1, 3], ["low", "high"], ["all", "all"]],
    ),
    "ascending values": (
        Ordered(groups=[2]),
        [1, 5, 9],
        [[1, 5, 9], ["1 to 5", "1 to 5", "9"], ["*"] * 3],
    ),
    "tree": (
        Tree({"Europe": {"West": ["FR", "DE"]}, "Asia": ["JP"]}),
        ["FR", "JP", None],
        [["FR", "JP", None], ["West", "JP", None], ["Europe", "Asia", None], ["*"] * 3],
    ),
    "tree with a root": (
        Tree({"World": {"Europe": ["FR"]}}),
        ["FR", None],
        [["FR", None], ["Europe", None], ["World"] * 2],
    ),
    "flat": (Flat(), [True, None], [[True, None], ["*", "*"]]),
}


@pytest.mark.parametrize("name", CASES)
def test_labels_of_every_level(name: str) -> None:
    builder, values, expected = CASES[name]
    assert levels(builder, values) == expected


@pytest.mark.parametrize("name", CASES)
def test_builders_come_back_from_toml(name: str) -> None:
    builder = CASES[name][0]
    text = toml_section("x", {"hierarchy": builder.to_dict()})
    assert from_dict(tomllib.loads(text)["x"]["hierarchy"]) == builder


@pytest.mark.parametrize(
    ("spec", "builder"),
    [
        ({"intervals": [5], "top": "Any"}, Intervals([5], top="Any")),
        ({"tree": {"x": ["a"]}, "top": False}, Tree({"x": ["a"]}, top=False)),
        ({"mask": True}, Mask()),
        ({"mask": {"from": "left"}}, Mask(from_="left")),
        ({"dates": True}, Dates()),
        ({"dates": {"levels": ["week"], "top": False}}, Dates(["week"], top=False)),
        ({"ordered": [2]}, Ordered(groups=[2])),
        ({"csv": "h.csv"}, Csv("h.csv")),
        (
            {"csv": {"path": "h.csv", "delimiter": ";", "encoding": "latin-1", "top": False}},
            Csv("h.csv", ";", "latin-1", top=False),
        ),
    ],
    ids=str,
)
def test_short_and_long_forms(spec: dict[str, object], builder: HierarchyBuilder) -> None:
    assert from_dict(spec) == builder
    assert from_dict(builder.to_dict()) == builder


def test_other_leaves_count_in_the_size_of_a_hierarchy() -> None:
    tree = Tree({"Europe": ["FR", "DE"], "Asia": ["JP"]}).build("c", pa.array(["FR", None]))
    assert tree.size == 4  # FR, DE, JP and the missing value
    assert [leaves.tolist() for leaves in tree.leaves] == [[1, 1], [2, 1], [4]]
    ordered = Ordered(["a", "b", "c"], [2]).build("c", pa.array(["a"]))
    assert (ordered.size, ordered.leaves[1].tolist(), ordered.leaves[2].tolist()) == (3, [2], [3])


CONSTRUCTOR_FAULTS = [
    (lambda: Intervals(), "widths or bounds"),
    (lambda: Intervals([5], bounds=[1]), "one of them"),
    (lambda: Intervals([5, 12]), "12 is not a multiple of width 5"),
    (lambda: Intervals([5, 5]), "not nest"),
    (lambda: Intervals([0.1, 0.25]), "not a multiple"),
    (lambda: Intervals([0]), "above 0"),
    (lambda: Intervals([float("inf")]), "above 0"),
    (lambda: Intervals(bounds=[3, 2]), "do not ascend"),
    (lambda: Intervals(bounds=[[1, 2], [3]]), "level 2 cuts where level 1 does not"),
    (lambda: Mask(0), "at least 1"),
    (lambda: Mask(3, char="**"), "one character"),
    (lambda: Mask(3, from_="top"), "'right' or 'left'"),
    (lambda: Dates(["week", "month"]), "a week does not nest in a month"),
    (lambda: Dates(["year", "month"]), "in the order"),
    (lambda: Dates(["hour"]), "some of day"),
    (lambda: Ordered(["a", "a"], [2]), "twice"),
    (lambda: Ordered(["a"], [2, 3]), "multiple of the one before"),
    (lambda: Ordered(["a"], [1]), "at least 2"),
    (lambda: Ordered(groups=[{"x": ["a"]}]), "need the order"),
    (lambda: Ordered(["a", "b"], [{"x": ["a"]}]), "no group for 1 value"),
    (lambda: Ordered(["a", "b", "c"], [{"x": ["a", "c"], "y": ["b"]}]), "not of neighbours"),
    (lambda: Ordered(["a"], [{"x": ["a"], "y": ["a"]}]), "twice"),
    (lambda: Tree({}), "give a mapping"),
    (lambda: Tree({"x": ["a"], "y": ["a"]}), "two places"),
    (lambda: Tree({"x": []}), "no group holds"),
    (lambda: Flat.parse(False, Path()), "flat = true"),
    (lambda: from_dict({"masc": 3}), "did you mean 'mask'"),
    (lambda: from_dict({"intervals": {"width": [5]}}), "did you mean 'widths'"),
    (lambda: from_dict({"intervals": [5], "top": 7}), "top must be"),
    (lambda: from_dict({"csv": 7}), "give a table"),
    (lambda: from_dict("mask"), "a table with one of"),
    (lambda: from_dict({"flat": True, "top": "x"}), "takes no top"),
    (lambda: from_dict({"csv": {"delimiter": ";"}}), "give path"),
    (lambda: from_dict({"dates": {"levels": "week"}}), "levels must be"),
    (lambda: from_dict({"ordered": {"order": "abc"}}), "order must be a list"),
    (lambda: from_dict({"intervals": {"widths": 5}}), "widths must be a list"),
    (lambda: from_dict({"tree": ["a"]}), "give a table"),
    (lambda: Csv(""), "name of a file"),
]


@pytest.mark.parametrize(
    ("make", "message"), CONSTRUCTOR_FAULTS, ids=[m for _, m in CONSTRUCTOR_FAULTS]
)
def test_builders_that_cannot_be(make: object, message: str) -> None:
    with pytest.raises(HierarchyError) as caught:
        make()  # type: ignore[operator]
    assert message in str(caught.value)


VALUE_FAULTS = [
    (Intervals([5]), ["1", CANARY, "x"], "2 distinct value(s) are text"),
    (Intervals([5]), [1.0, float("inf")], "1 distinct value(s) are not finite"),
    (Intervals([1e-9]), [1e9], "too small"),
    (Intervals([5]), [True], "not numbers"),
    (Mask(3), [CANARY], "1 distinct value(s) are longer than the mask's 3"),
    (Dates(), [CANARY], "no date"),
    (Dates(), [5], "not dates"),
    (Ordered(["a"], [2]), ["a", CANARY], "1 distinct value(s) are not in the order"),
    (Tree({"x": ["a"]}), ["a", CANARY], "1 distinct value(s) are not in the tree"),
    (Tree({"x": {"o": ["a"]}, "y": {"o": ["b"]}}), ["a", "b"], "level 1 have more than one"),
]


@pytest.mark.parametrize(
    ("builder", "values", "message"), VALUE_FAULTS, ids=[m for *_, m in VALUE_FAULTS]
)
def test_values_that_do_not_fit(
    builder: HierarchyBuilder, values: list[object], message: str
) -> None:
    with pytest.raises(HierarchyError) as caught:
        builder.build("col", pa.array(values))
    assert "Column 'col'" in str(caught.value)
    assert message in str(caught.value)
    assert CANARY not in str(caught.value)


def write(folder: Path, text: str, encoding: str = "utf-8") -> Csv:
    (folder / "h.csv").write_bytes(text.encode(encoding))
    return Csv("h.csv", folder=folder)


def test_arx_files_match_typed_values(tmp_path: Path) -> None:
    builder = write(tmp_path, "39;30s;*\r\n40.0;40s;*\r\n41;40s;*\r\n39;30s;*\r\n")
    assert levels(builder, [39, 40]) == [[39, 40], ["30s", "40s"], ["*", "*"]]
    assert levels(builder, [39.0, 40.0]) == [[39.0, 40.0], ["30s", "40s"], ["*", "*"]]
    assert levels(builder, ["39"]) == [["39"], ["30s"], ["*"]]
    hierarchy = builder.build("c", pa.array([39, 40]))
    assert (hierarchy.size, hierarchy.leaves[1].tolist()) == (3, [1, 2])


def test_an_arx_file_may_name_the_missing_value_and_lack_a_root(tmp_path: Path) -> None:
    builder = write(tmp_path, "é,letter\n,unknown\n", "latin-1")
    assert levels(builder, ["é", None]) == [["é", None], ["letter", "unknown"], ["*", "*"]]
    assert levels(builder, ["é"])[1:] == [["letter"], ["*"]]
    open_top = Csv("h.csv", top=False, folder=tmp_path)
    assert levels(open_top, ["é", None]) == [["é", None], ["letter", "unknown"]]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("a;x;*\nb;*\nc;x;*\nd\n", "2 line(s) of the hierarchy file 'h.csv' do not have 3 fields"),
        ("a;x;*\nb;*\nc;x;*\n", "first at line 2"),
        ("a;x;*\na;y;*\n", "1 line(s) of the hierarchy file 'h.csv' repeat a leaf"),
        (f"{CANARY};x;*\n", "1 distinct value(s) are not in the hierarchy file"),
        ("a;x;1\nb;x;2\n", "1 label(s) of level 1 have more than one label at level 2"),
        ("", "is empty"),
    ],
)
def test_arx_files_that_do_not_fit(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(HierarchyError) as caught:
        write(tmp_path, text).build("c", pa.array(["a"]))
    assert message in str(caught.value)
    assert CANARY not in str(caught.value)


def test_a_missing_arx_file(tmp_path: Path) -> None:
    with pytest.raises(HierarchyError, match="does not exist"):
        Csv("no.csv", folder=tmp_path).build("c", pa.array(["a"]))


def test_a_mask_longer_than_any_code_is_refused_before_it_fills_the_memory() -> None:
    with pytest.raises(HierarchyError, match="255 are the most"):
        Mask(100_000_000).build("c", pa.array(["35510"]))
    with pytest.raises(HierarchyError, match="group the values"):
        Mask().build("c", pa.array(["x" * 300]))
