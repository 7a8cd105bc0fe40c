"""What is withheld besides: safe by brute force, cheapest by brute force."""

from __future__ import annotations

import numpy as np
import pytest
import tabular_oracles as oracles
from effort import THOROUGH, examples, turn
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linprog

import halfmask as hm
from halfmask.errors import PrivacyError

EXAMPLE = np.array([[20, 50, 10], [8, 19, 22], [17, 32, 12]])


def people(leaves):
    rows = oracles.people_of(leaves)
    return hm.read(rows, schema={"columns": dict.fromkeys(rows, "quasi")})


def figures(release, shape):
    values = release.to_arrow()[release.value].to_pylist()
    flat = np.array([np.nan if v is None else v for v in values], dtype=float)
    return flat.reshape([size + 1 for size in shape])


def test_one_small_cell_needs_three_others():
    # Fischetti and Salazar, 2001, figure 1: investment by activity and region.
    release = hm.tabulate(people(EXAMPLE), ["a", "b"], threshold=9)
    hidden = np.isnan(figures(release, (3, 3)))
    assert release.withheld == 4
    assert hidden[1, 0]
    assert release.gap == 0.0
    assert hm.audit_table(release, threshold=9).holds


def test_figures_that_leave_are_true_and_margins_add_up():
    release = hm.tabulate(people(EXAMPLE), ["a", "b"], threshold=9)
    shown = figures(release, (3, 3))
    true = oracles.with_totals(EXAMPLE)
    assert (np.isnan(shown) | (shown == true)).all()


def test_no_rule_and_no_demand_is_refused():
    with pytest.raises(PrivacyError, match="No rule was asked for"):
        hm.tabulate(people(EXAMPLE), ["a", "b"])


def test_too_few_people_for_any_figure_is_refused():
    with pytest.raises(PrivacyError, match="Every cell would be withheld"):
        hm.tabulate(people(np.array([[1, 1], [1, 1]])), ["a", "b"], threshold=20)


def test_without_margins_small_cells_alone_are_withheld():
    release = hm.tabulate(people(EXAMPLE), ["a", "b"], threshold=9, margins=False)
    assert (len(release), release.withheld) == (9, 1)


SQUARES = oracles.tables_up_to((2, 2), 8)


@settings(max_examples=examples(30), deadline=None)
@given(st.lists(st.integers(0, 3), min_size=4, max_size=4), st.integers(2, 3))
def test_the_pattern_is_safe_and_the_cheapest_of_all(drawn, k):
    leaves = np.array(drawn).reshape(2, 2)
    if not leaves.any(axis=0).all() or not leaves.any(axis=1).all():
        return  # categories that nobody has are no categories
    full = oracles.with_totals(leaves)
    best = oracles.cheapest(full, k, SQUARES)
    try:
        release = hm.tabulate(people(leaves), ["a", "b"], threshold=k)
    except PrivacyError:
        assert best >= full.sum()
        return
    hidden = np.isnan(figures(release, (2, 2)))
    assert not oracles.unprotected(full, hidden, k, SQUARES)
    assert full[hidden].sum() == best
    assert release.controller["gap"] == 0.0


def test_longer_patterns_are_the_cheapest_of_all():
    leaves = np.array([[1, 2, 2], [2, 1, 2]])
    tables = oracles.tables_up_to((2, 3), 4)
    full = oracles.with_totals(leaves)
    release = hm.tabulate(people(leaves), ["a", "b"], threshold=2)
    hidden = np.isnan(figures(release, (2, 3)))
    assert not oracles.unprotected(full, hidden, 2, tables)
    assert full[hidden].sum() == oracles.cheapest(full, 2, tables)


CUBES = oracles.tables_up_to((2, 2, 2), 3)


@pytest.mark.parametrize("seed", range(4))
def test_three_columns_are_safe_by_brute_force(seed):
    rng = np.random.default_rng(seed)
    leaves = rng.integers(1, 3, size=(2, 2, 2))
    release = hm.tabulate(people(leaves), ["a", "b", "c"], threshold=2)
    full = oracles.with_totals(leaves)
    hidden = np.isnan(figures(release, (2, 2, 2)))
    assert not oracles.unprotected(full, hidden, 2, CUBES)
    assert hm.audit_table(release, threshold=2).holds


def test_a_large_table_is_safe_and_says_how_far_it_is_from_the_best():
    rng = np.random.default_rng(3)
    leaves = rng.poisson(rng.gamma(0.7, 12, size=(8, 8, 6)))
    release = hm.tabulate(people(leaves), ["a", "b", "c"], threshold=3, time_limit=2)
    found = release.controller
    assert 0 <= found["gap"] < 1
    assert found["primary"] + found["secondary"] == release.withheld
    true, shown = oracles.with_totals(leaves), figures(release, leaves.shape)
    assert not ((shown > 0) & (shown < 3)).any()
    assert (np.isnan(shown) | (shown == true)).all()


def test_hierarchies_keep_their_sums(town):
    release = hm.tabulate(
        town, ["city", "age"], levels={"age": [1, 2, 3]}, threshold=3, demands="ignore",
        time_limit=4,
    )  # fmt: skip
    audit = hm.audit_table(release, threshold=3)
    assert audit.holds
    labels = release.grid.axes[1].labels
    assert {"20-29", "20-39", "0-39", "Total"} <= set(labels)


def test_cost_may_be_the_number_of_cells():
    by_cells = hm.tabulate(people(EXAMPLE), ["a", "b"], threshold=9, cost="cells")
    assert by_cells.withheld == 4


def test_who_contributes_alone_cannot_undo_what_is_withheld_for_others():
    # Two firms alone in their cells of one row: each knows its own figure, and so the other's.
    rows = {
        "place": ["n"] * 2 + ["s"] * 12 + ["n"] * 5,
        "kind": ["x", "y"] + ["x", "y", "z"] * 4 + ["z"] * 5,
        "turnover": [40.0, 60.0] + [10.0, 11.0, 12.0] * 4 + [20.0, 21.0, 19.0, 22.0, 18.0],
    }
    schema = {"columns": {"place": "quasi", "kind": "quasi", "turnover": "sensitive"}}
    table = hm.read(rows, schema=schema)
    wary = hm.tabulate(table, ["place", "kind"], sum="turnover", p=10)
    naive = hm.tabulate(table, ["place", "kind"], sum="turnover", p=10, sole=False)
    assert wary.withheld > naive.withheld
    shown = dict(
        zip(
            zip(*(wary.to_arrow()[n].to_pylist() for n in ("place", "kind")), strict=True),
            wary.to_arrow()[wary.value].to_pylist(),
            strict=True,
        )
    )
    others = [shown["n", "z"], shown["n", "Total"]]
    assert None in others  # with both, the owner of (n, x) has (n, y) by subtraction


def _reached(target, sign, true, published, known):
    """How far a sum can be from the true one, with the finest cells as the only variables."""
    leaves = [cell for cell in true if "Total" not in cell]

    def inside(cell):
        return [float(all(c in ("Total", own) for c, own in zip(cell, leaf, strict=True)))
                for leaf in leaves]  # fmt: skip

    fixed = [cell for cell in true if cell in published or cell in known]
    found = linprog(
        -sign * np.array(inside(target)), A_eq=[inside(cell) for cell in fixed],
        b_eq=[true[cell] for cell in fixed], bounds=(0, None),
    )  # fmt: skip
    return np.inf if found.status == 3 else sign * (np.array(inside(target)) @ found.x) - (
        sign * true[target])  # fmt: skip


@pytest.mark.parametrize(
    ("shape", "sole"),
    [
        (shape, sole)
        for i, shape in enumerate([(3, 3), (4, 3), (2, 2, 2), (2, 3, 2)])
        for sole in turn([False, True], i)
    ],
)
def test_every_withheld_sum_is_as_uncertain_as_its_rule_asks(shape, sole):
    """p% by hand, and how far readers get by a program that shares no code."""
    rng = np.random.default_rng(len(shape) + shape[1])
    made = primary = 0
    for _ in range(4):
        cells = [one for one in np.ndindex(*shape) for _ in range(int(rng.integers(0, 7)))]
        firms = [(one, float(np.round(rng.lognormal(3, 1), 1))) for one in cells]
        names = "abc"[: len(shape)]
        rows = {n: [f"{n}{cell[i]}" for cell, _ in firms] for i, n in enumerate(names)}
        schema = {"columns": {**dict.fromkeys(names, "quasi"), "v": "sensitive"}}
        table = hm.read({**rows, "v": [v for _, v in firms]}, schema=schema)
        try:
            release = hm.tabulate(table, list(names), sum="v", p=15, sole=sole, time_limit=3)
        except PrivacyError:
            continue
        made += 1
        held = {}
        for row in release.to_arrow().to_pylist():
            cell = tuple(row[n] for n in names)
            held[cell] = row[release.value]
        parts = {
            cell: [i for i in range(len(firms)) if all(
                c in ("Total", rows[n][i]) for c, n in zip(cell, names, strict=True))]
            for cell in held
        }  # fmt: skip
        true = {cell: sum(firms[i][1] for i in who) for cell, who in parts.items()}
        published = {cell for cell, value in held.items() if value is not None}
        for cell, who in parts.items():
            amounts = sorted((firms[i][1] for i in who), reverse=True)
            need = amounts[0] * 0.15 - sum(amounts[2:]) if amounts else 0.0
            if need <= 0:
                continue
            primary += 1
            assert cell not in published
            known = {c for c, others in parts.items()
                     if sole and len(others) == 1 and others != who}  # fmt: skip
            assert _reached(cell, 1, true, published, known) >= need * (1 - 1e-6) - 1e-6
            down = min(need, true[cell])
            assert _reached(cell, -1, true, published, known) >= down * (1 - 1e-6) - 1e-6
    assert made > 0
    assert primary > 2


@pytest.mark.parametrize("seed", range(3 if THOROUGH else 1))
def test_no_cell_is_withheld_that_readers_find_out(seed):
    """Also where the time ends before the optimum is found."""
    rng = np.random.default_rng(seed)
    leaves = rng.poisson(rng.gamma(0.5, 20, size=(2, 5, 9)))
    leaves[:, :, 0] += 1
    leaves[:, 0, :] += 1
    leaves[0, :, :] += 1
    release = hm.tabulate(people(leaves), ["a", "b", "c"], threshold=5, time_limit=0.5)
    assert release.withheld > 0
    assert hm.audit_table(release, threshold=5).holds
