"""The audit finds every hole that is there, and none that is not."""

from __future__ import annotations

import json

import numpy as np
import pytest
import tabular_oracles as oracles
from effort import THOROUGH, examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import InputError, ParameterError, SchemaError

LEAVES = np.array([[5.0, 2, 7], [1, 8, 3], [4, 6, 9]])


def found_of(audit: object) -> dict[tuple[str, ...], tuple[float, float]]:
    return {tuple(one.cell.values()): (one.low, one.high) for one in audit.intervals}


def test_one_withheld_cell_is_found_exactly():
    published = oracles.with_totals(LEAVES)
    published[1, 0] = np.nan
    audit = hm.audit_table(oracles.long_rows(published))
    assert found_of(audit) == {("a1", "b0"): (1, 1)}
    assert [one.finding for one in audit.disclosed] == ["exact"]
    assert not audit.holds


def test_a_square_of_withheld_cells_has_the_interval_of_its_sums():
    published = oracles.with_totals(LEAVES)
    published[:2, :2] = np.nan
    audit = hm.audit_table(oracles.long_rows(published))
    assert found_of(audit)[("a0", "b1")] == (1, 7)  # rows 7 and 9, columns 6 and 10
    assert audit.holds
    assert hm.audit_table(oracles.long_rows(published), protection=0.9).disclosed


def test_a_cell_that_must_hold_few_people_is_found():
    published = oracles.with_totals(np.array([[1.0, 2, 30], [2, 1, 40]]))
    published[:2, :2] = np.nan
    assert hm.audit_table(oracles.long_rows(published)).holds
    audit = hm.audit_table(oracles.long_rows(published), threshold=5)
    assert {one.finding for one in audit.disclosed} == {"few"}


def test_whoever_knows_that_empty_cells_are_shown_knows_more():
    published = oracles.with_totals(np.array([[1.0, 1, 30], [1, 1, 40]]))
    published[:2, :2] = np.nan
    assert hm.audit_table(oracles.long_rows(published)).holds
    audit = hm.audit_table(oracles.long_rows(published), least=1)
    assert {one.finding for one in audit.disclosed} == {"exact"}


def test_published_figures_below_the_threshold_are_named():
    audit = hm.audit_table(oracles.long_rows(oracles.with_totals(LEAVES)), threshold=3)
    assert sorted(tuple(cell.values()) for cell in audit.small) == [("a0", "b1"), ("a1", "b0")]
    assert not audit.holds


@settings(max_examples=examples(40), deadline=None)
@given(st.data())
def test_intervals_are_those_of_all_tables(data: st.DataObject):
    shape = data.draw(st.sampled_from([(2, 2), (2, 3), (3, 3), (2, 2, 2)]))
    size = int(np.prod(shape))
    drawn = data.draw(st.lists(st.integers(0, 3), min_size=size, max_size=size))
    full = oracles.with_totals(np.array(drawn, dtype=float).reshape(shape))
    cells = data.draw(st.lists(st.integers(0, full.size - 1), min_size=1, max_size=6, unique=True))
    published = full.copy()
    published.ravel()[cells] = np.nan
    inner = np.isnan(published[tuple(slice(0, n) for n in shape)]).sum()
    if not np.isfinite(published).any() or inner > 5 or np.isnan(published.ravel()[-1]):
        return
    least = data.draw(st.integers(0, int(min(1, full.ravel()[cells].min()))))
    audit = hm.audit_table(oracles.long_rows(published), least=least)
    grid = oracles.grid_of(shape)
    expected = {
        tuple(name[i].as_py() for name in grid.labels().values()): ends
        for i, ends in oracles.intervals(published, least).items()
    }
    assert found_of(audit) == expected
    exact = {cell for cell, (low, high) in expected.items() if low == high}
    assert {tuple(one.cell.values()) for one in audit.disclosed} == exact


def test_the_difference_of_two_tables_of_the_same_people_is_found():
    young = {"age": ["0-17", "18+"], "count": [10, 90]}
    other = {"age": ["0-19", "20+"], "count": [11, 89]}
    parts = {"age": {
        "Total": [["0-17", "18+"], ["0-19", "20+"]],
        "0-19": ["0-17", "18-19"], "18+": ["18-19", "20+"],
    }}  # fmt: skip
    audit = hm.audit_table(young, other, parts=parts, threshold=3)
    assert [(one.cell, one.high, one.finding) for one in audit.disclosed] == [
        ({"age": "18-19"}, 1.0, "few")
    ]


def test_a_figure_that_one_table_withholds_and_another_shows_is_found():
    whole = oracles.with_totals(LEAVES)
    first = whole.copy()
    first[:2, :2] = np.nan
    second = {"a": ["a0", "a1", "a2", "Total"], "b": ["b0"] * 4, "count": [5, 1, 4, 10]}
    assert hm.audit_table(oracles.long_rows(first)).holds
    audit = hm.audit_table(oracles.long_rows(first), second)
    assert {tuple(one.cell.values()) for one in audit.disclosed} == {("a0", "b1"), ("a1", "b1")}


def test_a_table_by_fewer_columns_stands_at_the_total():
    whole = oracles.with_totals(LEAVES)
    first = whole.copy()
    first[0, 0] = first[0, 3] = first[1, 0] = first[1, 3] = np.nan
    assert hm.audit_table(oracles.long_rows(first)).holds
    margin = {"a": ["a0", "a1", "a2"], "count": [14, 12, 19]}
    assert len(hm.audit_table(oracles.long_rows(first), margin).disclosed) == 2


def test_sums_of_money_have_intervals_that_are_not_whole():
    table = {"firm": ["a", "b", "c", "Total"], "turnover": [None, None, 2.5, 10.0]}
    audit = hm.audit_table(table)
    assert found_of(audit)[("a",)] == (0.0, 7.5)


def test_figures_below_zero_have_no_least():
    """Profits: a loss that is withheld is not above 0 because others are."""
    table = {"firm": ["a", "b", "c", "Total"], "profit": [None, None, -2.0, 3.0]}
    assert found_of(hm.audit_table(table)) == {("a",): (None, None), ("b",): (None, None)}
    above = {"firm": ["a", "b", "Total"], "profit": [None, None, 3.0]}
    assert found_of(hm.audit_table(above))[("a",)] == (0, 3)
    assert found_of(hm.audit_table(above, least=float("-inf")))[("a",)] == (None, None)
    assert found_of(hm.audit_table(above, least=-1))[("a",)] == (-1, 4)
    alone = {"firm": ["a", "b", "Total"], "profit": [None, -5.0, 3.0]}
    assert found_of(hm.audit_table(alone))[("a",)] == (8, 8)
    assert json.loads(json.dumps(hm.audit_table(table).to_dict()))["intervals"][0]["low"] is None
    with pytest.raises(ParameterError):
        hm.audit_table(above, least=float("nan"))


@pytest.mark.parametrize("seed", range(14 if THOROUGH else 7))
def test_intervals_under_a_hierarchy_are_those_of_all_tables(seed):
    """Leaves a to d, e = a + b, f = c + d, total; beside it a second column, or none."""
    rng = np.random.default_rng(seed)
    parts = {"x": {"e": ["a", "b"], "f": ["c", "d"], "Total": ["e", "f"]}}
    wide = int(rng.integers(1, 3))  # columns of the second side
    sums = {"a": "a", "b": "b", "c": "c", "d": "d", "e": "ab", "f": "cd", "Total": "abcd"}
    sides = {f"s{i}": [i] for i in range(wide)} | ({"Total": [0, 1]} if wide == 2 else {})

    def figures(leaves):
        return {(x, s): sum(leaves["abcd".index(one), i] for one in sums[x] for i in sides[s])
                for x in sums for s in sides}  # fmt: skip

    true = figures(rng.integers(0, 3, (4, wide)))
    cells = list(true)
    hidden = {cells[i] for i in rng.choice(len(cells), int(rng.integers(1, 8)), replace=False)}
    ends = {cell: [99, -1] for cell in hidden}
    for drawn in np.ndindex(*(3,) * 4 * wide):  # published leaves are up to 2, so nothing else fits
        other = figures(np.array(drawn).reshape(4, wide))
        if all(other[c] == true[c] for c in cells if c not in hidden):
            for c in hidden:
                ends[c] = [min(ends[c][0], other[c]), max(ends[c][1], other[c])]
    rows = {"x": [c[0] for c in cells], "s": [c[1] for c in cells],
            "count": [None if c in hidden else int(true[c]) for c in cells]}  # fmt: skip
    if wide == 1:
        del rows["s"]
    found = found_of(hm.audit_table(rows, parts=parts))
    for cell, (low, high) in ends.items():
        seen = found[cell if wide == 2 else cell[:1]]
        # Tables with larger leaves may fit too: the interval holds all that were tried.
        assert seen[0] <= low
        assert seen[1] is None or seen[1] >= high
        if seen[1] is not None and seen[1] <= 2:
            assert seen == (low, high)


def test_marks_in_text_files_are_withheld_figures(tmp_path):
    path = tmp_path / "table.csv"
    path.write_text("sex,n\nf,x\nm,7\nTotal,9\n", encoding="utf-8")
    assert found_of(hm.audit_table(str(path)))[("f",)] == (2.0, 2.0)


def test_the_document_and_the_rows(tmp_path):
    published = oracles.with_totals(LEAVES)
    published[1, 0] = np.nan
    audit = hm.audit_table(oracles.long_rows(published))
    audit.report(tmp_path / "audit.json")
    document = json.loads((tmp_path / "audit.json").read_text(encoding="utf-8"))
    assert document["found_out"] == {"exact": 1, "close": 0, "few": 0}
    audit.write(tmp_path / "audit.csv")
    assert "exact" in (tmp_path / "audit.csv").read_text(encoding="utf-8")
    assert len(audit.to_pandas()) == 1
    assert "1 found out" in repr(audit)


def test_margins_that_do_not_add_up_are_refused_in_one_sentence():
    published = oracles.with_totals(LEAVES)
    published[3, 3] += 1
    with pytest.raises(InputError, match="2 of 8 sums do not add up"):
        hm.audit_table(oracles.long_rows(published))


def test_figures_that_no_table_fits_are_refused():
    published = oracles.with_totals(LEAVES)
    published[:2, :2] = np.nan
    published[0, 2], published[2, 2] = 30, 9 - 23
    with pytest.raises(InputError):
        hm.audit_table(oracles.long_rows(published))


@pytest.mark.parametrize(
    ("tables", "more", "words"),
    [
        ([{"a": ["x"], "n": [1], "m": [2]}], {}, "Which column holds the figures"),
        ([{"a": ["x"], "n": [1]}], {"value": "z"}, "is not there"),
        ([{"a": ["x"], "n": [1]}], {"by": "z"}, "None of the columns"),
        ([{"n": [1]}], {}, "needs a column of categories"),
        ([{"a": ["x", "x"], "n": [1, 2]}], {}, "another line names"),
        ([{"a": ["x"], "n": ["many"]}], {"value": "n"}, "neither numbers nor marks"),
        ([{"a": ["x"], "n": [1]}, {"a": ["x"], "n": [2]}], {}, "differ between the tables"),
        ([{"a": ["x"], "n": [1]}], {"parts": {"z": {"t": ["x"]}}}, "no table has"),
        ([{"a": ["x"], "n": [1]}], {"parts": {"a": {"x": ["x"]}}}, "contain themselves"),
        ([{"a": ["x"], "n": [1]}], {"parts": {"a": {"t": "x"}}}, "no lists"),
        ([{"a": ["x"], "n": [1]}], {"parts": {"a": ["x"]}}, "no table"),
        ([{"a": ["x"], "n": [1]}], {"parts": "absent.toml"}, "cannot be read"),
    ],
)
def test_bad_input_is_one_clear_sentence(tables, more, words):
    with pytest.raises((InputError, SchemaError), match=words):
        hm.audit_table(*tables, **more)


@pytest.mark.parametrize(
    "more", [{"protection": 2}, {"threshold": 0}, {"parts": 3}], ids=lambda m: next(iter(m))
)
def test_parameters_out_of_range(more):
    with pytest.raises(ParameterError):
        hm.audit_table({"a": ["x"], "n": [1]}, **more)


def test_nothing_to_audit():
    with pytest.raises(ParameterError):
        hm.audit_table()


def test_marks_may_stand_among_figures():
    published = {"sex": ["f", "m", "Total"], "count": ["x", 7, 9]}
    withheld = hm.audit_table({**published, "count": [None, 7, 9]})
    assert hm.audit_table(published).to_dict() == withheld.to_dict()
