"""Which values mean the same: one answer for every figure of similarity."""

from __future__ import annotations

import math

import pytest

import halfmask as hm
from halfmask.errors import ParameterError
from halfmask.metrics.discrimination.partition import Cuts
from halfmask.metrics.discrimination.release_rates import meaning_of, original_blocks

TREE = {"tree": {"low": ["1", "2"], "high": ["3", "4"]}}


def blocks(values, column="sensitive", given=None):
    table = hm.read({"s": values}, schema={"columns": {"s": column}})
    found = original_blocks(table, "s", meaning_of(table, "s", given))
    return None if found is None else found[table.encode("s").codes].tolist()


def test_a_partition_comes_first_then_the_hierarchy_then_tenths_of_the_range():
    tree = {"role": "sensitive", "hierarchy": TREE}
    assert blocks([1, 2, 3, 4], tree, [[1, 4], [2, 3]]) == [0, 1, 1, 0]
    assert blocks([1, 2, 3, 4], tree) == [0, 0, 1, 1]
    assert blocks([0, 9, 10, 95, 100]) == [0, 0, 1, 9, 9]
    assert blocks(["x", "y"]) is None


def test_numbers_that_only_name_things_are_not_alike():
    assert blocks([1, 2, 3], {"role": "sensitive", "kind": "nominal"}) is None


def test_a_missing_number_is_its_own_block_and_one_number_is_one():
    assert blocks([0, None, 100]) == [0, 10, 9]
    assert blocks([7, 7]) == [0, 0]
    assert blocks([None, None]) is None


def both(keys, pay, published=None, **options):
    """The figures of similarity of a table that is released as it is, or with other pay."""
    roles = {"q": "quasi", "s": "sensitive"}
    original = hm.read({"q": keys, "s": pay}, schema=roles)
    release = hm.read({"q": keys, "s": published or pay}, schema={})
    found = hm.compare(original, release, learn=False, attacks=2, **options)
    ((_, after),) = found.disclosures
    (rate,) = [one for one in found.discrimination.rates if one.attack == "similarity"]
    return after.similarity, rate.rate, rate.reason


def test_rows_and_rates_go_by_the_same_blocks():
    assert both(list("aabb"), [0, 5, 95, 100]) == (1.0, pytest.approx(1), "")
    assert both(list("abab"), [0, 5, 95, 100]) == (0.0, pytest.approx(0, abs=1e-12), "")
    # Three of four in the first part: H = 0.8113 bits, half of the rows have one bit left.
    share, rate, _ = both(list("aabb"), [0, 5, 8, 100])
    assert share == 0.5
    assert rate == pytest.approx(1 - 0.5 / (2 - 0.75 * math.log2(3)))


def test_a_given_partition_counts_for_both():
    crossed = {"s": [[0, 95], [5, 100]]}
    assert both(list("abab"), [0, 5, 95, 100], partition=crossed)[:2] == (1.0, pytest.approx(1))
    found = both(list("aabb"), [0, 5, 95, 100], partition=crossed)
    assert found[:2] == (0.0, pytest.approx(0, abs=1e-12))


def test_what_chance_gives_stands_beside_the_rate():
    roles = {"q": "quasi", "s": "sensitive"}
    table = hm.read({"q": list("aabb"), "s": [0, 5, 95, 100]}, schema=roles)
    found = hm.compare(table, table, learn=False, attacks=2).discrimination
    (rate,) = [one for one in found.rates if one.attack == "similarity"]
    # Two pairs of four: a third of the orders tell all, the others nothing.
    assert rate.chance.low <= 1 / 3 <= rate.chance.high
    assert rate.chance_before.n == rate.chance.n == 10


def test_neither_is_known_where_nothing_says_what_is_alike():
    share, rate, reason = both(list("aabb"), list("wxyz"))
    assert share is None
    assert rate is None
    assert "mean the same" in reason


def test_perturbed_numbers_stand_in_the_parts_of_the_original_and_texts_alone():
    assert both(list("aabb"), [0, 5, 95, 100], [-3, 9, 91, 140])[:2] == (1.0, pytest.approx(1))
    texts = ["0", "5", "secret", "100"]
    share, rate, _ = both(list("aabb"), [0, 5, 95, 100], texts)
    assert share == 0.5
    assert rate == pytest.approx(1 - 0.5 / 1.5)  # blocks 2, 1 and 1 of 4 rows: 1.5 bits


def test_cuts_refuse_what_is_no_number_unless_it_may_stand_alone():
    import pyarrow as pa

    values = pa.array(["1", "x", "15", None])
    with pytest.raises(hm.errors.InputError, match="no numbers"):
        Cuts(0, 10, 20).bind("s", values)
    found = Cuts(0, 10, 20, rest="own").bind("s", values)
    assert found.places.tolist() == [0, 2, 1, 3]
    assert found.names == ("[0, 10[", "[10, 20[", "x", None)
    with pytest.raises(ParameterError, match="refuse or own"):
        Cuts(0, 1, rest="drop")
