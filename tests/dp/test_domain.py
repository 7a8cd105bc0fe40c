from __future__ import annotations

import io
from datetime import date

import numpy as np
import pyarrow as pa
import pytest

from halfmask.dp.domain import Bins, Values, domain_of, public_codes, public_domains
from halfmask.errors import ParameterError, SchemaError
from halfmask.table.schema import Schema
from halfmask.table.table import Table

RANDOM = np.random.default_rng(1)


def test_a_missing_domain_says_how_to_give_it_and_lists_all() -> None:
    with pytest.raises(SchemaError) as caught:
        public_domains(["age", "sex", "job"], {"sex": ["f", "m"]})
    assert len(caught.value.faults) == 1
    for word in ("'age', 'job' have no public domain", "--domains", "describe FILE --public"):
        assert word in str(caught.value)
    with pytest.raises(SchemaError, match="no column"):
        public_domains(["sex"], {"sex": ["f"], "height": [1]})


def test_values_outside_move_by_a_public_rule() -> None:
    column = pa.array(["a", "z", None])
    assert Values(("a", "b")).encode(column).tolist() == [0, 0, 0]
    assert Values(("a", "b", None)).encode(column).tolist() == [0, 2, 2]
    assert Values(("a", "b"), other="b").encode(column).tolist() == [0, 1, 1]


def test_numbers_go_to_the_nearest_interval() -> None:
    bins = Bins.even(0, 10, 5)
    assert bins.encode(pa.array([-3, 0, 1.9, 2, 10, 99, None])).tolist() == [0, 0, 0, 1, 4, 4, 0]
    with_missing = Bins.even(0, 10, 5, missing=True)
    assert with_missing.encode(pa.array([None, 4.0])).tolist() == [5, 2]
    assert len(with_missing) == 6


def test_numbers_and_texts_that_print_alike_meet() -> None:
    assert Values((1, 2, 3)).encode(pa.array(["3", "1"])).tolist() == [2, 0]


def test_decoding_gives_the_columns_own_kind() -> None:
    codes = np.array([1, 0, 1])
    assert Values((17, 18)).decode(codes, RANDOM, pa.int64()).to_pylist() == [18, 17, 18]
    text = Values(("a", None)).decode(codes, RANDOM, pa.dictionary(pa.int32(), pa.string()))
    assert text.to_pylist() == [None, "a", None]


def test_drawn_numbers_lie_inside_their_interval() -> None:
    bins = Bins.even(17, 90, 10, missing=True)
    codes = np.arange(11).repeat(50)
    whole = bins.decode(codes, RANDOM, pa.int64())
    assert whole.null_count == 50
    kept = whole.drop_null()
    assert bins.encode(kept).tolist() == codes[codes < 10].tolist()
    assert min(kept.to_pylist()) >= 17
    assert max(kept.to_pylist()) <= 90
    real = bins.decode(codes[:10], RANDOM, pa.float64())
    assert pa.types.is_floating(real.type)


@pytest.mark.parametrize(
    ("low", "high", "count", "edges"),
    [
        (0, 10, 20, (0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10)),
        (0, 9, 6, (0, 2, 3, 5, 6, 8, 9)),
        (0, 1, 20, (0, 1)),
        (17, 90, 2, (17, 54, 90)),
        (0.25, 2.5, 9, (0.25, 1, 2, 2.5)),
    ],
)
def test_intervals_of_whole_numbers_end_at_whole_numbers(low, high, count, edges) -> None:
    bins = Bins.even(low, high, count, integer=True)
    assert bins.edges == edges


@pytest.mark.parametrize("count", range(1, 25))
def test_whole_numbers_keep_their_interval(count) -> None:
    """Two of them share one of whole edges where they share one of equal width."""
    found = Bins.even(0, 11, count, integer=True).encode(pa.array(range(11)))
    equal = [number * count // 11 for number in range(11)]
    assert (np.diff(found) > 0).tolist() == (np.diff(equal) > 0).tolist()


@pytest.mark.parametrize("count", [1, 2, 3, 7, 10, 13, 20, 40])
def test_every_whole_number_is_drawn_from_its_own_interval(count) -> None:
    bins = Bins.even(0, 10, count, integer=True)
    codes = np.arange(len(bins)).repeat(200)
    drawn = bins.decode(codes, np.random.default_rng(0))
    assert bins.encode(drawn).tolist() == codes.tolist()
    assert set(drawn.to_pylist()) == set(range(11))
    assert bins.drawable


def test_no_number_that_stands_alone_is_drawn_from_an_interval() -> None:
    bins = Bins((0, 4, 8, 12), integer=True, special=(1, 2, 4, 12, 20))
    assert bins.drawable
    drawn = bins.decode(np.array([0, 1, 2] * 300), np.random.default_rng(0)).to_pylist()
    assert [set(drawn[place::3]) for place in range(3)] == [{0, 3}, {5, 6, 7}, {8, 9, 10, 11}]


@pytest.mark.parametrize(
    ("bins", "drawable"),
    [
        (Bins((0, 0.5, 1.5), integer=True), True),
        (Bins((0, 0.5, 1, 2), integer=True), False),
        (Bins((0, 0.5, 1, 2)), True),
        (Bins((0, 0.2, 0.5), integer=True), False),
        (Bins((0, 1, 2), integer=True, special=(0,)), False),
        (Bins((0, 1, 2), integer=True, special=(2,)), True),
        (Bins((1, 2), integer=True, special=(0.5,)), False),
    ],
)
def test_domains_of_which_some_code_has_no_whole_number(bins, drawable) -> None:
    assert bins.drawable is drawable


def test_every_shape_of_a_declaration() -> None:
    assert domain_of("x", range(3)) == Values((0, 1, 2), ordered=True)
    assert domain_of("x", {"edges": [0, 1, 5]}) == Bins((0.0, 1.0, 5.0), integer=True)
    assert domain_of("x", {"edges": [0, 1.0, 5]}) == Bins((0.0, 1.0, 5.0))
    assert domain_of("x", {"low": 0, "high": 9, "bins": 3, "integer": False}) == Bins.even(0, 9, 3)
    assert domain_of("x", {"values": ["a"], "other": "a"}) == Values(("a",), "a")
    assert domain_of("x", Bins((0.0, 1.0))) == Bins((0.0, 1.0))
    for bad in (7, {"low": 1}, {"values": ["a"], "size": 3}):
        with pytest.raises(SchemaError):
            domain_of("x", bad)


def test_impossible_domains_are_refused() -> None:
    for make in (
        lambda: Values(()),
        lambda: Values(("a", "a")),
        lambda: Values(("a",), other="b"),
        lambda: Bins((1.0,)),
        lambda: Bins((2.0, 1.0)),
        lambda: Bins.even(0, 0, 3),
        lambda: Bins.even(0, float("inf"), 3),
    ):
        with pytest.raises(ParameterError):
            make()


def test_codes_per_row() -> None:
    table = Table(pa.table({"x": ["b", "a", "b"]}), Schema())
    assert public_codes(table, "x", Values(("a", "b"))).tolist() == [1, 0, 1]


def test_a_domain_of_several_types_is_refused() -> None:
    from halfmask.dp.domain import require_fitting

    require_fitting({"n": Values((1, 2)), "t": Values(("a", None)), "b": Bins.even(0, 1, 2)})
    with pytest.raises(SchemaError, match="'n' lists values of several types"):
        require_fitting({"n": Values((1, "a"))})
    with pytest.raises(SchemaError, match="'n' lists values of several types, or lists"):
        require_fitting({"n": Values((["a"], ["b"]))})


@pytest.mark.parametrize("declared", [[], ["a", "a"], {"values": []}, {"values": [1, 1.0]}])
def test_a_list_without_values_names_its_column(declared) -> None:
    with pytest.raises(ParameterError, match=r"values of the domain of column 'x' .* each once"):
        domain_of("x", declared)


@pytest.mark.parametrize(
    ("values", "declared"),
    [
        (["1", "2", "37.5"], [1, 2, 37.5]),
        (["true", "false", "true"], [True, False]),
        (["2020-01-01", "2020-01-02"], [date(2020, 1, 1), "2020-01-02"]),
        (["2020-01-01 10:00", "2020-01-02T11:30:00"], ["2020-01-01 10:00", "2020-01-02 11:30"]),
        (["007", "7"], ["007", "7"]),
    ],
    ids=str,
)
def test_what_a_value_is_known_by_does_not_depend_on_the_columns_type(values, declared) -> None:
    import pyarrow.csv as csv

    domain = Values(tuple(declared))
    text = pa.array(values)
    table = csv.read_csv(io.BytesIO(("x\n" + "\n".join(values)).encode()))
    read = text if "007" in values else table["x"].combine_chunks()
    assert domain.encode(read).tolist() == domain.encode(text).tolist()


def test_numbers_in_text_fall_into_their_interval() -> None:
    bins = Bins.even(0, 10, 5, missing=True)
    text = pa.array(["3", "9.5", "unknown", None, "1e3", ""])
    assert bins.encode(text).tolist() == [1, 4, 5, 5, 4, 5]
    assert bins.encode(pa.array([date(2020, 1, 1)])).tolist() == [5]
    assert bins.encode(pa.array([True])).tolist() == [5]


def test_whole_floats_meet_whole_numbers() -> None:
    assert Values((1, 2)).encode(pa.array([2.0, 1.0])).tolist() == [1, 0]


@pytest.mark.parametrize(
    "declared",
    [
        {"edges": ["2022-13-01", "2022-02-01"]},
        {"edges": 3},
        {"low": "a", "high": "b", "bins": 3},
        {"low": 0, "high": 9, "bins": 2.5},
        {"low": 0, "high": 9, "bins": "x"},
        {"values": 3},
        {"values": ["a"], "surplus": 1},
    ],
    ids=str,
)
def test_domains_that_cannot_be_read_name_their_column(declared):
    with pytest.raises(SchemaError, match="'visit'"):
        domain_of("visit", declared)


@pytest.mark.parametrize("edges", [[1], [2, 1], [0, float("inf")], [0, float("nan")]], ids=str)
def test_edges_are_finite_and_ascend(edges):
    with pytest.raises(ParameterError, match="edges"):
        domain_of("age", {"edges": edges})


def test_more_parts_than_memory_holds_are_refused() -> None:
    with pytest.raises(ParameterError, match="bins"):
        Bins.even(0, 100, 10**9)


def test_single_numbers_stand_beside_a_range() -> None:
    declared = {"low": 1, "high": 11, "bins": 2, "special": [99, 0], "missing": True}
    domain = domain_of("income", declared)
    assert domain.labels == ["0", "[1, 6)", "[6, 11]", "99", None]
    assert len(domain) == 5
    column = pa.array([0, 1, 5, 6, 11, 50, 99, -4, None])
    assert domain.encode(column).tolist() == [0, 1, 1, 2, 2, 2, 3, 1, 4]
    drawn = domain.decode(np.array([0, 3, 4, 1, 2] * 50), RANDOM).to_pylist()
    assert drawn[:3] == [0, 99, None]
    assert set(drawn[3::5]) == {1, 2, 3, 4, 5}
    assert set(drawn[4::5]) == {6, 7, 8, 9, 10, 11}


def test_what_is_not_there_goes_to_the_first_interval_and_not_to_a_single_number() -> None:
    assert domain_of("x", {"edges": [1, 5, 9], "special": [0]}).encode(pa.array([None])) == [1]


def test_single_numbers_are_numbers_and_each_once() -> None:
    for special in ([0, 0], ["none"], [float("inf")]):
        with pytest.raises((ParameterError, SchemaError), match="'x'"):
            domain_of("x", {"low": 1, "high": 9, "bins": 2, "special": special})
    with pytest.raises(ParameterError, match="special"):
        domain_of("x", {"low": "2000-01-01", "high": "2001-01-01", "bins": 2, "special": [0]})
    assert domain_of("x", {"low": 1, "high": 9, "bins": 2, "special": [0.5]}).integer is False


def test_engines_find_the_same_codes() -> None:
    import duckdb
    from sqlglot import exp

    from halfmask.query.planning.noise_aggregates import bin_number

    numbers = pa.table({"x": [0.0, 1.0, 5.0, 6.0, 11.0, 50.0, 99.0, -4.0, None]})
    for special, missing in (([99, 0], True), ([0], False), ([], True), ([3], False)):
        declared = {"low": 1, "high": 11, "bins": 2, "special": special, "missing": missing}
        domain = domain_of("x", declared)
        code = bin_number(exp.column("x"), domain).sql("duckdb")
        found = duckdb.sql(f"SELECT {code} FROM numbers").fetchall()  # noqa: S608
        assert [one for (one,) in found] == domain.encode(numbers["x"].combine_chunks()).tolist()


@pytest.mark.parametrize(
    "bins",
    [
        Bins((1e15, 1e15 + 1, 1e15 + 2, 1e15 + 8)),
        Bins((1e15, 1e15 + 0.5, 1e15 + 1), special=(1e15, 1e15 + 0.125, 1e15 + 0.625)),
        Bins((2.0**53, 2.0**53 + 4, 2.0**53 + 8), special=(2.0**53 + 2,)),
        Bins((-1.7e308, -1.0, 1.7e308)),
    ],
)
def test_decimals_stay_in_their_interval_where_numbers_are_far_apart(bins) -> None:
    """Rounding to the next interval would break a condition on it after the budget is spent."""
    assert bins.drawable
    codes = np.repeat(np.arange(len(bins)), 400)
    drawn = bins.decode(codes, np.random.default_rng(0))
    assert bins.encode(drawn).tolist() == codes.tolist()


def test_an_interval_of_one_number_that_stands_alone_has_nothing_to_draw() -> None:
    assert not Bins((2.0**53, 2.0**53 + 2, 2.0**53 + 8), special=(2.0**53,)).drawable


def test_whole_numbers_that_do_not_fit_are_refused_before_anything_is_drawn() -> None:
    with pytest.raises(ParameterError, match="whole numbers up to"):
        domain_of("x", {"low": 0, "high": 2**63, "bins": 3})
