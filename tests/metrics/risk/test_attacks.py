"""Attacks succeed where they must and fail where they cannot."""

from __future__ import annotations

from itertools import product

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InputError, SchemaError
from halfmask.metrics.risk.attack import targets
from halfmask.metrics.risk.inference import inference, membership
from halfmask.metrics.risk.linkability import linkability, linkability_by_names
from halfmask.metrics.risk.linkage import linkage
from halfmask.metrics.risk.singling_out import _rare, singling_out
from halfmask.metrics.sides import sides

SCHEMA = {"a": "quasi", "b": "quasi", "c": "quasi", "s": "sensitive"}


def people(seed, rows=300):
    random = np.random.default_rng(seed)
    columns = {
        "a": random.integers(0, 1000, rows),
        "b": random.normal(size=rows).round(3),
        "c": random.choice(list("uvwxyz"), rows),
        "s": random.choice(["p", "q", "r", "t"], rows),
    }
    return hm.read(pa.table(columns), schema=SCHEMA)


def blank(table):
    """Nothing of the quasi-identifiers is left."""
    arrow = table.arrow
    for name in "abc":
        star = pa.array(["*"] * len(table))
        arrow = arrow.set_column(arrow.column_names.index(name), name, star)
    return hm.read(arrow, schema={})


def test_a_copy_is_open_to_every_attack():
    table, control = people(0), people(1)
    whom = targets(table, table, control, attacks=200)
    out = singling_out(whom)
    assert out.attack.value > 0.9
    assert out.outcome == "not met"
    assert out.control.value < 0.5
    link = linkability(whom)
    assert link.attack.value > 0.5
    guess = inference(whom, "s")
    assert guess.attack.value == 1
    assert guess.control.value == pytest.approx(0.25, abs=0.12)
    assert guess.outcome == "not met"
    present = membership(whom)
    assert present.area.value > 0.95
    assert present.attribution.copies == 1


def test_a_combination_of_all_columns_singles_out_where_three_do_not():
    """Ten bits tell 60 of 300 people or more apart, three of them nobody."""
    random = np.random.default_rng(7)
    bits = {f"q{i}": random.integers(0, 2, 300).astype(str) for i in range(10)}
    table = hm.read(pa.table(bits), schema=dict.fromkeys(bits, "quasi"))
    whom = targets(table, table, attacks=100)
    assert singling_out(whom, known=False).attack.value == 0
    out = singling_out(whom)
    assert (out.attack.value, out.outcome) == (1, "not met")
    assert "all quasi-identifiers" in out.attacker


def test_people_with_several_rows_are_singled_out_as_people():
    rows = {"id": [i // 3 for i in range(90)], "a": [str(i // 3) for i in range(90)]}
    schema = {"table": {"person": "id"}, "columns": {"a": "quasi"}}
    table = hm.read(pa.table(rows), schema=schema)
    assert singling_out(targets(table, table)).attack.value == 1
    pairs = {**rows, "a": [str(i // 6) for i in range(90)]}
    hidden = hm.read(pa.table(pairs), schema=schema)
    assert singling_out(targets(hidden, hidden)).attack.value == 0


def test_numbers_that_moved_a_little_still_single_out():
    ages = {"a": list(range(40)), "b": ["u", "v"] * 20}
    schema = {"a": "quasi", "b": "quasi"}
    original = hm.read(pa.table(ages), schema=schema)
    moved = hm.read(pa.table({**ages, "a": [age + 0.2 for age in ages["a"]]}), schema=schema)
    out = singling_out(targets(original, moved))
    assert out.attack.value == 1
    assert out.baseline.value < 0.8


def by_names(original, release, control=None):
    found = linkage(sides(original, release))
    return linkability_by_names(found, targets(original, release, control))


def test_a_copy_is_linked_by_names_and_a_blank_release_is_not():
    table = people(0)
    (copy,) = by_names(table, table)
    assert copy.outcome == "not met"
    assert copy.attack.value > 0.95
    assert copy.notes
    (empty,) = by_names(table, blank(table), people(1))
    assert empty.outcome == "met"
    assert not empty.notes
    made_up = hm.read(pa.table({"a": [5000], "b": [0.5], "c": ["u"], "s": ["p"]}), schema=SCHEMA)
    assert by_names(table, made_up) == ()


def test_a_release_without_detail_tells_nothing():
    table, control = people(0), people(1)
    whom = targets(table, blank(table), control, attacks=200)
    assert singling_out(whom).attack.value == 0
    assert singling_out(whom).outcome == "met"
    assert linkability(whom).attack.value < 0.05
    assert inference(whom, "s").risk.value < 0.15
    assert membership(whom).area.value == pytest.approx(0.5, abs=0.1)


def test_without_a_control_it_is_said():
    found = inference(targets(people(0), people(0), attacks=100), "s")
    assert found.control is None
    assert any("no control" in note for note in found.notes)
    assert membership(targets(people(0), people(0))).area.value is None


def test_linkage_of_a_copy_is_complete_and_of_nothing_is_chance():
    table = people(0)
    same = linkage(sides(table, table), sample=100)
    for name in ("distance", "assignment", "probabilistic"):
        assert getattr(same, name).value == 1
    assert same.interval.value == 1
    assert same.risk == 1
    assert same.bands.correct_links == 100
    assert same.bands.links <= 100 + 0.001 * 100 * 99  # the false links that were allowed
    assert same.bands.links + same.bands.possible + same.bands.non_links == 100 * 100
    none = linkage(sides(table, blank(table)), sample=100)
    assert none.distance.value < 0.1
    assert none.probabilistic.value < 0.15
    assert none.bands.links == 0


def test_linkage_into_classes_finds_one_of_those_in_the_class():
    # People in classes of four, told apart by nothing inside them: one in four is right.
    rows = pa.table({"a": [str(i // 4) for i in range(400)], "s": [str(i) for i in range(400)]})
    original = hm.read(rows, schema={"a": "quasi", "s": "sensitive"})
    shuffled = rows.take(np.random.default_rng(3).permutation(400))
    found = linkage(sides(original, hm.read(shuffled, schema={})), sample=200)
    assert found.distance.value == pytest.approx(0.25, abs=0.1)
    assert found.assignment.value == pytest.approx(0.25, abs=0.1)
    assert found.probabilistic.value == pytest.approx(0.25, abs=0.1)


def classed(sizes):
    rows = pa.table({"a": [str(i) for i, size in enumerate(sizes) for _ in range(size)]})
    table = hm.read(rows, schema={"a": "quasi"})
    return sides(table, table)


def test_matching_takes_whole_classes_and_says_so():
    # Classes of seven: 28 whole classes hold 196 people, a 29th would go above 200.
    found = linkage(classed([7] * 100), sample=200)
    assert found.assignment.n == found.probabilistic.n == 196
    for one in (found.assignment, found.probabilistic):
        assert "196 people of 28 whole classes" in one.reason
        assert "leans upward" in one.reason
    every = linkage(classed([7] * 20), sample=200)
    assert every.assignment.n == 140
    assert "all 140 rows" in every.probabilistic.reason
    large = linkage(classed([900, 900]), sample=200)
    assert large.assignment.n == 200
    assert "one class of 900" in large.assignment.reason


def test_a_little_noise_lowers_linkage_and_interval_disclosure():
    table = people(0)
    random = np.random.default_rng(5)
    noisy = table.arrow.set_column(
        1, "b", pa.array(table.arrow["b"].to_numpy() + random.normal(0, 1, len(table)))
    )
    found = linkage(sides(table, hm.read(noisy, schema=SCHEMA)), same_order=True, sample=100)
    assert 0.3 < found.distance.value <= 1
    assert found.interval.value < 1


def test_rows_in_order_must_be_as_many():
    shorter = hm.read(people(0).arrow.slice(1), schema=SCHEMA)
    with pytest.raises(InputError, match="300 and 299"):
        linkage(sides(people(0), shorter), same_order=True)


def test_synthetic_rows_stand_for_nobody():
    found = linkage(sides(people(0), people(1)))
    assert found.distance.value is None
    assert "nobody" in found.distance.reason
    assert found.risk is None


def test_weights_of_probabilistic_linkage_are_recovered():
    from halfmask.metrics.risk.linkage import fit_mixture

    random = np.random.default_rng(0)
    size, match, other = 200, np.array([0.9, 0.95, 0.8, 0.9]), np.array([0.05, 0.1, 0.02, 0.1])
    bits = (random.random((size * size, 4)) < other).astype(int)
    bits[:: size + 1] = random.random((size, 4)) < match
    kinds, counts = np.unique(bits @ [1, 2, 4, 8], return_counts=True)
    patterns = (kinds[:, None] >> np.arange(4) & 1).astype(float)
    found = fit_mixture(patterns, counts.astype(float), size)
    assert found[0] == pytest.approx(match, abs=0.15)
    assert found[1] == pytest.approx(other, abs=0.01)


def test_weights_are_recovered_where_columns_often_agree_by_chance():
    # Released classes cover much: most pairs agree somewhere, and one column says nothing.
    from halfmask.metrics.risk.linkage import fit_mixture

    random = np.random.default_rng(1)
    size = 400
    match = np.array([0.95, 0.9, 0.85, 0.9, 0.6, 0.97])
    other = np.array([0.3, 0.4, 0.25, 0.15, 0.6, 0.2])
    bits = (random.random((size * size, 6)) < other).astype(int)
    bits[:: size + 1] = random.random((size, 6)) < match
    kinds, counts = np.unique(bits @ (1 << np.arange(6)), return_counts=True)
    patterns = (kinds[:, None] >> np.arange(6) & 1).astype(float)
    found = fit_mixture(patterns, counts.astype(float), size)
    assert found[1] == pytest.approx(other, abs=0.01)
    assert found[0] == pytest.approx(match, abs=0.15)


def test_bands_keep_the_allowed_errors_by_hand():
    # Three patterns: the worst holds 3 % of the matches, the next 4 %; 5 % may be missed.
    from halfmask.metrics.risk.linkage import _bands

    found = _bands(
        np.array([-3.0, -1.0, 2.0]),
        np.array([0.03, 0.04, 0.93]),
        np.array([0.9, 0.0995, 0.0005]),
        np.array([900, 100, 10]),
        np.array([1, 2, 9]),
        0.001,
        0.05,
    )
    assert (found.links, found.correct_links, found.upper) == (10, 9, 2.0)
    assert (found.possible, found.correct_possible) == (100, 2)
    assert (found.non_links, found.missed, found.lower) == (900, 1, -3.0)


def test_nearest_is_the_nearest():
    from halfmask.metrics.risk.distances import row_distances

    both = sides(people(0, 60), people(1, 50))
    compared = row_distances(list(both.columns.values()))
    rows = np.arange(60)
    found, far = compared.nearest(rows, k=3)
    matrix = compared.matrix(rows, np.arange(50))
    assert np.allclose(np.sort(matrix, axis=1)[:, :3], far)
    assert np.allclose(np.take_along_axis(matrix, found, axis=1), far)


def test_columns_of_very_many_values_differ_by_one_at_most(monkeypatch):
    from halfmask.metrics.risk import distances as module

    monkeypatch.setattr(module, "_CELLS", 0)
    original = hm.read(
        pa.table({"zip": ["1001", "1002", "2001", "3001"]}),
        schema={"zip": {"role": "quasi", "hierarchy": {"mask": 4}}},
    )
    both = sides(original, hm.read(pa.table({"zip": ["1***", "1***", "2***", "9999"]}), schema={}))
    compared = module.row_distances(list(both.columns.values()))
    expected = [[0, 0, 1, 1], [0, 0, 1, 1], [1, 1, 0, 1], [1, 1, 1, 1]]
    assert compared.matrix(np.arange(4), np.arange(4)).tolist() == expected
    assert compared.nearest(np.arange(4))[1][:, 0].tolist() == [0, 0, 0, 1]


def test_a_seed_chooses_who_is_attacked():
    rows = hm.read({"a": list(range(200))}, schema={"a": "quasi"})
    one, same, other = (targets(rows, rows, rows, attacks=50, seed=seed) for seed in (1, 1, 2))
    assert one.members.tolist() == same.members.tolist() != other.members.tolist()
    assert one.control.tolist() == same.control.tolist() != other.control.tolist()
    draws = [each.random.random() for each in (one, same, other)]
    assert draws[0] == draws[1] != draws[2]


def test_rare_rows_are_alone_or_as_few_as_any():
    def rare(values, rows):
        table = hm.read({"a": values}, schema={"a": "quasi"})
        return _rare(sides(table, table).quasi, rows).tolist()

    assert rare(["x", "x", "y", "z"], 1) == rare(["x", "x", "y", "z"], None) == [2, 3]
    assert rare(["x", "x", "x", "y", "y"], 1) == []
    assert rare(["x", "x", "x", "y", "y"], None) == [3, 4]


def test_a_link_by_names_is_held_against_guessing_any_row():
    rows = hm.read({"a": list("wxyz")}, schema={"a": "quasi"})
    (one,) = by_names(rows, rows)
    assert (one.attack.value, one.baseline.value) == (1, pytest.approx(1 / 4))


def test_who_hides_in_every_three_columns_may_be_alone_in_all_four():
    # In each of five towns all combinations of two values of its own: pairs by any three columns.
    people = [row for i in range(5) for row in product([f"x{i}", f"y{i}"], repeat=4)]
    columns = dict(zip("abcd", zip(*people, strict=True), strict=True))
    rows = hm.read(columns, schema=dict.fromkeys("abcd", "quasi"))
    found = singling_out(targets(rows, rows, attacks=50))
    assert (found.attack.value, found.outcome) == (1, "not met")
    assert "all quasi-identifiers" in found.attacker


def test_a_control_of_other_types_is_refused_by_name():
    table = people(0)
    place = table.arrow.column_names.index("c")
    numbers = table.arrow.set_column(place, "c", pa.array(range(len(table))))
    with pytest.raises(SchemaError, match=r"c \(string, in the control int64\)"):
        targets(table, table, hm.read(numbers, schema=SCHEMA))
