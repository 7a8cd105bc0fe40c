"""An attacker with linear algebra: published rows, totals and levels give no withheld group away.

The attacker knows the query, the hierarchy and so which groups may exist, but not who stands
where. Every published figure is one equation over the unknown group sizes (and sums). A withheld
group is derived if its own unknown, or the sum of all withheld ones in fewer than k people, is
fixed by the equations.
"""

from __future__ import annotations

from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.query.groups import collect
from halfmask.query.run import Session
from halfmask.query.semantics import choose_levels, publish_groups

CITIES, STREETS = ("Blois", "Tours"), ("a", "b", "c")
LEVELS = ((3, 1), (4, 1), (6, 1))


@st.composite
def populations(draw: st.DrawFn) -> pa.Table:
    """Up to sixty people on six streets of two cities, each with a demand."""
    rows = draw(
        st.lists(
            st.tuples(
                st.sampled_from(CITIES), st.sampled_from(STREETS), st.sampled_from([1, 3, 4, 6, 9])
            ),
            min_size=1,
            max_size=60,
        )
    )
    return pa.table(
        {
            "city": [r[0] for r in rows],
            "street": [r[1] for r in rows],
            "k": [r[2] for r in rows],
            "salary": [1000 + 7 * i for i in range(len(rows))],
        }
    )


def _equations(
    answer: hm.Answer, atoms: list[tuple[str, str, int]]
) -> tuple[np.ndarray, np.ndarray]:
    """One row per published figure over the atoms (city, street, where the group ended up).

    The last coordinate is the published level, or -1 where it was withheld: the attacker is even
    told which groups were moved where.
    """
    found, right = [], []
    for row in answer.to_arrow().to_pylist():
        found.append(
            [
                level == row["level"]
                and row["city"] in (city, "*")
                and row["street"] in (street, "*")
                for city, street, level in atoms
            ]
        )
        right.append(row["n"])
    found.append([level >= 0 for *_, level in atoms])
    right.append(answer.people)
    said = answer.withheld["below the guarantee"]
    if said is not None:
        found.append([level == -1 for *_, level in atoms])
        right.append(said)
    return np.array(found, dtype=float), np.array(right, dtype=float)


def _is_fixed(matrix: np.ndarray, unknown: np.ndarray) -> bool:
    together = np.vstack([matrix, unknown])
    return bool(np.linalg.matrix_rank(together) == np.linalg.matrix_rank(matrix))


@pytest.mark.parametrize("semantics", ["selective", "complete", "complete-greedy"])
@settings(max_examples=examples(60), deadline=None)
@given(rows=populations())
def test_no_set_of_fewer_than_k_people_is_derived(rows: pa.Table, semantics: str) -> None:
    table = hm.read(
        rows,
        {
            "policy": {"k": "k"},
            "columns": {"city": "quasi", "street": "quasi", "salary": "sensitive"},
        },
    )
    sql = (
        "SELECT city, street, COUNT(*) AS n FROM t GROUP BY city, street GUARANTEE k = 3 "
        "THEN street -> del GUARANTEE k = 4 THEN city -> del GUARANTEE k = 6 "
        f"SEMANTICS {semantics}"
    )
    answer = hm.query(table, sql)
    atoms = [(c, s, level) for c in CITIES for s in STREETS for level in (-1, 0, 1, 2)]
    matrix, right = _equations(answer, atoms)
    # Every single group of the finest grouping, wherever it went, and each place as a whole.
    for i, (*_, level) in enumerate(atoms):
        unknown = np.zeros(len(atoms))
        unknown[i] = 1
        if _is_fixed(matrix, unknown):
            value = float(np.linalg.lstsq(matrix, right, rcond=None)[0][i])
            assert level >= 0
            assert round(value) == 0 or round(value) >= LEVELS[level][0]
    for chosen in (
        np.array([level == -1 for *_, level in atoms], dtype=float),
        *(
            np.array([level == -1 and c == city for c, _, level in atoms], dtype=float)
            for city in CITIES
        ),
    ):
        if _is_fixed(matrix, chosen):
            solved = np.linalg.lstsq(matrix, right, rcond=None)[0]
            assert round(float(chosen @ solved)) >= LEVELS[-1][0]


def test_the_attack_finds_what_a_total_would_give_away() -> None:
    """The attack has teeth: with a grand total over everybody the withheld group is derived."""
    atoms = [("Blois", "a", 0), ("Tours", "a", -1)]
    matrix = np.array([[1.0, 0.0], [1.0, 1.0]])
    assert _is_fixed(matrix, np.array([0.0, 1.0]))
    assert not _is_fixed(matrix[:1], np.array([0.0, 1.0]))
    assert len(atoms) == 2


@settings(max_examples=examples(60), deadline=None)
@given(rows=populations())
def test_what_is_said_of_the_withheld_reaches_k(rows: pa.Table) -> None:
    table = hm.read(
        rows,
        {
            "policy": {"k": "k"},
            "columns": {"city": "quasi", "street": "quasi", "salary": "sensitive"},
        },
    )
    answer = hm.query(
        table,
        "SELECT city, street, COUNT(*) AS n FROM t GROUP BY city, street GUARANTEE k = 3 "
        "THEN street -> del GUARANTEE k = 4 THEN city -> del GUARANTEE k = 6",
    )
    demands = np.array(rows["k"].to_pylist())
    for reason, people in answer.withheld.items():
        assert people is None or people >= 6
        if reason == "no level satisfies their demands" and people is not None:
            assert people == int((demands > 6).sum()) >= 9


SUMS = (
    "SELECT city, street, COUNT(*) AS n, SUM(salary) AS s FROM t GROUP BY city, street {} "
    "GUARANTEE k = 3 THEN street -> del GUARANTEE k = 4 THEN city -> del GUARANTEE k = 6 "
    "SEMANTICS {} "
)


def _combined(matrix: np.ndarray, inside: list[int]) -> bool:
    """Whether some combination of the figures is made of exactly the groups ``inside``."""
    outside = [i for i in range(matrix.shape[1]) if i not in inside]
    _, sizes, turned = np.linalg.svd(matrix[:, outside].T, full_matrices=True)
    rank = int((sizes > 1e-9).sum())
    # What vanishes outside, looked at inside: a generic combination is nonzero where one is.
    left = turned[rank:] @ matrix[:, inside]
    return bool(len(left) and (np.abs(left) > 1e-9).any(axis=0).all())


@pytest.mark.parametrize("semantics", ["selective", "complete", "complete-greedy"])
@pytest.mark.parametrize("having", ["", "HAVING SUM(salary) > 9000"])
@settings(max_examples=examples(10), deadline=None)
@given(rows=populations())
def test_no_combination_of_sums_and_counts_is_made_of_too_few(
    rows: pa.Table, having: str, semantics: str
) -> None:
    """Every subset of groups: whatever is combined of the figures covers its people's demands.

    The attacker is told the groups as they were collected, and which of them went where.
    """
    table = hm.read(
        rows,
        {
            "policy": {"k": "k"},
            "columns": {"city": "quasi", "street": "quasi", "salary": "sensitive"},
        },
    )
    with Session(table) as session:
        work = session.prepare(SUMS.format(having, semantics))
        answer = session.answer(work)
        groups = collect(work.plan, session.engine)
        published = publish_groups(groups, choose_levels(groups, semantics))
    people, totals = groups.people, groups.states["s0"].cast(pa.float64()).to_numpy()
    every = [published.ids == i for i in range(len(published))]
    shown = [r for r in every if not having or totals[r].sum() > 9000]
    found = answer.to_arrow()
    assert sorted(found["n"].to_pylist()) == sorted(int(people[r].sum()) for r in shown)
    assert sorted(found["s"].to_pylist()) == sorted(int(totals[r].sum()) for r in shown)
    figures = [*shown, published.ids >= 0]
    depths = [(groups.top - published.level[i]) * r for i, r in enumerate(every)]
    figures += [np.sum(depths, axis=0)] if depths else []
    if answer.withheld["below the guarantee"] is not None:
        figures.append(published.ids < 0)
    matrix = np.array(figures, dtype=float)
    needed = [
        max(LEVELS[published.level[i]][0] if i >= 0 else LEVELS[-1][0], int(k))
        for i, k in zip(published.ids, groups.demand[0], strict=True)
    ]
    for size in (1, 2, 3):
        for inside in combinations(range(len(groups)), size):
            if people[list(inside)].sum() < max(needed[i] for i in inside):
                assert not _combined(matrix, list(inside))


def test_the_combining_attack_has_teeth() -> None:
    whole, part = np.array([1.0, 1.0, 1.0]), np.array([1.0, 1.0, 0.0])
    assert _combined(np.array([whole, part]), [2])
    assert _combined(np.array([whole, part]), [0, 1])
    assert not _combined(np.array([whole, part]), [0])
    assert not _combined(np.array([whole]), [2])
