"""An attacker with linear algebra: published rows, totals and levels give no withheld group away.

The attacker knows the query, the hierarchy and so which groups may exist, but not who stands
where. Every published figure is one equation over the unknown group sizes (and sums). A withheld
group is derived if its own unknown, or the sum of all withheld ones in fewer than k people, is
fixed by the equations.
"""

from __future__ import annotations

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm

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
@settings(max_examples=60, deadline=None)
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


@settings(max_examples=60, deadline=None)
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
