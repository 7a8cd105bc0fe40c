"""Needs: stated in files, measured on both sides, and held against their bounds."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InputError, ParameterError
from halfmask.metrics.discrimination.need import need_met, stated_needs
from halfmask.metrics.discrimination.partition import stated_partitions
from halfmask.metrics.sides import sides

CLOSE = 1e-4
AGE = ["22", "35", "63", "22", "22", "35", "45", "32", "40"]
DISEASE = ["cancer", "diabetes", "malaria", "cancer", "cancer", "malaria", "malaria", "diabetes",
           "diabetes"]  # fmt: skip
TREE = {"2*": ["22"], "3*": ["35", "32"], ">=40": ["63", "45", "40"]}


def close(value):
    return pytest.approx(value, abs=CLOSE)


def e10():
    """Table 6.2 with ages recoded as in table 6.3."""
    schema = {"age": {"role": "quasi", "hierarchy": {"tree": TREE}}, "disease": "sensitive"}
    original = hm.read(pa.table({"age": AGE, "disease": DISEASE}), schema=schema)
    up = {leaf: label for label, leaves in TREE.items() for leaf in leaves}
    released = pa.table({"age": [up[a] for a in AGE], "disease": DISEASE})
    return original, hm.read(released, schema={})


def test_e10_a_need_before_and_after(tmp_path):
    file = tmp_path / "needs.toml"
    file.write_text(
        """
        [[need]]
        name = "disease by decade"
        target = "disease"
        keys = ["age"]
        at_least = 0.6
        [need.partitions.age]
        cuts = [20, 30, 40, inf]

        [[need]]
        target = "disease"
        keys = "age"
        at_most = 0.5
        """,
        encoding="utf-8",
    )
    grouped, plain = hm.compare(*e10(), learn=False, needs=file).needs
    assert (grouped.name, plain.name) == ("disease by decade", "disease from age")
    assert (grouped.before, grouped.after, grouped.met) == (close(0.6137), close(0.6137), True)
    assert (plain.before, plain.after, plain.met) == (close(0.8598), close(0.6137), False)
    assert (plain.rows_before, plain.rows_after) == (9, 9)
    assert grouped.notes == ()


def test_e11_salary_in_intervals_from_zip_and_age():
    rows = {
        "zip": ["35510"] * 3 + ["35620"] * 3 + ["35740"] * 3,
        "age": [int(a) for a in AGE],
        "salary": [4, 4, 4, 13, 8, 13, 8, 8, 13],
    }
    table = hm.read(pa.table(rows), schema={"zip": "quasi", "age": "quasi", "salary": "sensitive"})
    both = sides(table, table)
    wide, two = hm.Cuts(0, 5, 10, 15), [[4, 8], [13]]
    halves = hm.Cuts(0, 35, float("inf"))
    cases = [
        (("age",), {"salary": wide}, 0.5265),
        (("zip", "age"), {"salary": wide}, 0.8598),
        (("age",), {"salary": wide, "age": halves}, 0.0459),
        (("age",), {"salary": two}, 0.4247),
        (("zip", "age"), {"salary": two}, 0.7580),
        (("age",), {"salary": two, "age": halves}, 0.0199),
    ]
    for keys, blocks, rate in cases:
        found = need_met(hm.Need("salary", keys, blocks), both)
        assert (found.before, found.after) == (close(rate), close(rate))


def test_a_label_over_several_blocks_stands_for_itself():
    original, released = e10()
    need = hm.Need("disease", "age", {"age": hm.Cuts(0, 35, 100)}, at_least=0.6)
    found = need_met(need, sides(original, released))
    # 32 and 35 share a label but no block: below 35 are 22 x 3 and 32, above the rest.
    assert found.before == pytest.approx(hm.discrimination_rate(original, "disease", "age",
                                         {"age": hm.Cuts(0, 35, 100)}))  # fmt: skip
    assert found.after == close(0.6137)
    assert found.notes == (
        "1 released label(s) of age cover several blocks and stand for themselves.",
    )


def test_new_numbers_fall_into_the_same_blocks():
    rows = {"age": [10, 20, 50, 60], "ill": ["a", "a", "b", "b"]}
    original = hm.read(pa.table(rows), schema={"age": "quasi", "ill": "sensitive"})
    noisy = hm.read(pa.table(rows | {"age": [11, 19, 51, 62]}), schema={})
    need = hm.Need("ill", "age", {"age": hm.Cuts(0, 30, 100)})
    assert need_met(need, sides(original, noisy)).after == 1
    named = hm.Need("ill", "age", {"age": hm.Partition({"low": [10, 20, 11, 19], "high": [50, 60]},
                                                       rest="together")})  # fmt: skip
    assert need_met(named, sides(original, noisy)).after == 1


def test_new_values_in_no_block_are_blocks_of_their_own():
    rows = {"age": [10, 20, 50], "ill": ["a", "a", "b"]}
    original = hm.read(pa.table(rows), schema={"age": "quasi", "ill": "sensitive"})
    moved = hm.read(pa.table({"age": [10, 20, 11, 12], "ill": ["a", "a", "b", "b"]}), schema={})
    need = hm.Need("ill", "age", {"age": hm.Partition({"low": [10]}, rest="own")})
    # 11 and 12 share a block neither with each other nor with 20 or 50.
    assert need_met(need, sides(original, moved)).after == 1
    together = hm.Need("ill", "age", {"age": hm.Partition({"low": [10]}, rest="together")})
    # In the rest are a, b and b: 3/4 of H(1/3) of one bit are left.
    left = 3 / 4 * (1 / 3 * math.log2(3) + 2 / 3 * math.log2(3 / 2))
    assert need_met(together, sides(original, moved)).after == pytest.approx(1 - left)


def test_a_column_that_is_not_released_serves_nobody():
    rows = {"age": [1, 2], "pay": [1, 2], "ill": ["a", "b"]}
    original = hm.read(pa.table(rows), schema={"age": "quasi", "ill": "sensitive", "pay": "other"})
    released = hm.read(pa.table({"age": [1, 2], "ill": ["a", "b"]}), schema={})
    found = need_met(hm.Need("ill", "pay", at_most=0.5), sides(original, released))
    assert (found.before, found.after, found.met) == (1, None, False)
    assert found.reason == "The release does not show pay."


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "states no needs"),
        ("[need]\ntarget = 'x'", "states no needs"),
        ("[[need]]\nkeys = ['a']", "target"),
        ("[[need]]\ntarget = 'x'\nkeys = ['a']\nat_lest = 1", "at_lest"),
        ("[[need]]\ntarget = 'x'\nkeys = [1]", "keys"),
        ("[[need]]\ntarget = 'x'\nkeys = []", "keys"),
        ("[[need]]\ntarget = 'x'\nkeys = ['a']\nat_least = 2", "at_least"),
        ("[[need]]\ntarget = 'x'\nkeys = ['a']\nat_least = 'much'", "numbers"),
        ("[[need]]\ntarget = 'x'\nkeys = ['a']\npartitions = 1", "partitions"),
        ("[[need]]\ntarget = 'x'\nkeys = ['a']\n[[need]]\ntarget = 'x'\nkeys = ['a']", "Several"),
        ("need = [", "no TOML"),
    ],
)
def test_a_file_that_states_no_needs_is_refused(tmp_path, text, words):
    file = tmp_path / "needs.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        stated_needs(file)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("age = 3", "either cuts or blocks"),
        ("[age]\ncuts = [0, 1]\nblocks = [['a']]", "either"),
        ("[age]\ncuts = ['a']", "numbers"),
        ("[age]\ncuts = [3, 2]", "rising"),
        ("[age]\nblocks = 'a'", "lists of values"),
        ("[age]\nblocks = [['a']]\nrest = 'none'", "own or together"),
        ("[age]\nblocks = [['a']]\nother = 1", "knows no other"),
        ("[age]\ncuts = [0, 1]\nrest = 'own'", "knows no rest"),
    ],
)
def test_a_file_that_states_no_partition_is_refused(tmp_path, text, words):
    file = tmp_path / "blocks.toml"
    file.write_text(text, encoding="utf-8")
    with pytest.raises(InputError, match=words):
        stated_partitions(file)


def test_a_file_that_is_not_there_is_named_without_its_folder(tmp_path):
    for read in (stated_needs, stated_partitions):
        with pytest.raises(InputError, match=r"'none\.toml' cannot be read") as caught:
            read(tmp_path / "none.toml")
        assert str(tmp_path) not in str(caught.value)


def test_bounds_are_shares_and_keys_are_there():
    with pytest.raises(ParameterError):
        hm.Need("x", ("y",), at_most=1.5)
    with pytest.raises(ParameterError):
        hm.Need("x", ())
    need = hm.Need("x", "y", at_least=0.2, at_most=0.4)
    assert [need.met(rate) for rate in (0.1, 0.2, 0.4, 0.5, None)] == [
        False, True, True, False, False,
    ]  # fmt: skip
    assert hm.Need("x", "y").met(0.3) is None
