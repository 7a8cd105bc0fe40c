"""The door for answers: whatever the filter claims, wrong rows do not leave."""

from __future__ import annotations

import pickle
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.errors import InternalError, PrivacyError
from halfmask.query.aggregate import aggregate
from halfmask.query.answer_columns import Figures
from halfmask.query.groups import collect
from halfmask.query.run import Session, candidate_of
from halfmask.query.semantics import LevelChoice, choose_levels, publish_groups
from halfmask.release import seal
from halfmask.release.doors.answer import _check_keys, _place_groups

if TYPE_CHECKING:
    from halfmask.release.candidate import AnswerCandidate

ROWS = pa.table(
    {
        "city": ["x"] * 6 + ["y"] * 3 + ["x"] * 9,
        "street": ["s"] * 6 + ["t"] * 3 + ["u"] * 9,
        "salary": [*range(6), *range(3), *range(9)],
        "k": [3] * 6 + [3] * 3 + [5] * 9,
    }
)
SQL = (
    "SELECT city, street, COUNT(*) AS n, AVG(salary) AS m FROM t GROUP BY city, street "
    "GUARANTEE k = 3, l = 2 THEN street -> del GUARANTEE k = 5, l = 3"
)


@pytest.fixture
def candidate() -> AnswerCandidate:
    with Session(ROWS) as session:
        plan = session.prepare(SQL, {"k": "k"}).plan
        groups = collect(plan, session.engine)
        choice = choose_levels(groups, "selective")
        published = publish_groups(groups, choice)
        figures = Figures(aggregate(plan, groups, published, session.engine))
        return candidate_of(
            plan, groups, choice, published, figures, session.engine, second_look=True
        )


def test_a_right_candidate_leaves(candidate: AnswerCandidate) -> None:
    answer = seal(candidate)
    assert sorted(answer.to_arrow()["n"].to_pylist()) == [3, 6, 9]
    assert all(v.holds for v in answer.verdicts)


def stronger(candidate: AnswerCandidate) -> AnswerCandidate:
    promises = tuple(replace(p, thresholds=(7, 9)) for p in candidate.promises)
    return replace(candidate, promises=promises, counted=None)


def finer(candidate: AnswerCandidate) -> AnswerCandidate:
    return replace(
        candidate,
        places=np.zeros_like(candidate.places),
        counted=None,
        rows=candidate.rows.set_column(
            candidate.rows.column_names.index("level"),
            "level",
            pa.array([0] * candidate.rows.num_rows),
        ),
    )


def thrown_together(candidate: AnswerCandidate) -> AnswerCandidate:
    groups = candidate.groups
    places = groups["place"].to_numpy().copy()
    places[:2] = places[0]
    at = groups.column_names.index("place")
    return replace(candidate, groups=groups.set_column(at, "place", pa.array(places)), counted=None)


def demanding(candidate: AnswerCandidate) -> AnswerCandidate:
    groups = candidate.groups
    k = groups.column_names.index("k")
    return replace(
        candidate, counted=None, groups=groups.set_column(k, "k", pa.array([99] * groups.num_rows))
    )


def relabelled(candidate: AnswerCandidate) -> AnswerCandidate:
    at = candidate.rows.column_names.index("level")
    return replace(
        candidate,
        rows=candidate.rows.set_column(at, "level", pa.array([1] * candidate.rows.num_rows)),
    )


def invented(candidate: AnswerCandidate) -> AnswerCandidate:
    at = candidate.rows.column_names.index("hm_row")
    return replace(
        candidate,
        rows=candidate.rows.set_column(at, "hm_row", pa.array([77] * candidate.rows.num_rows)),
    )


def fewer_on_a_second_look(candidate: AnswerCandidate) -> AnswerCandidate:
    assert candidate.counted is not None
    counted = candidate.counted
    at = counted.column_names.index("m0")
    return replace(
        candidate, counted=counted.set_column(at, "m0", pa.array([1] * counted.num_rows))
    )


@pytest.mark.parametrize(
    "spoil",
    [stronger, finer, thrown_together, demanding, relabelled, invented, fewer_on_a_second_look],
)
def test_a_wrong_candidate_does_not(candidate: AnswerCandidate, spoil: Any) -> None:
    with pytest.raises(InternalError):
        seal(spoil(candidate))


@pytest.mark.parametrize(
    ("places", "good"),
    [
        ([0, 0, 1, 2], True),  # groups 0 and 1 have one key
        ([0, 1, 2, 3], False),  # a key in two places
        ([0, 0, 1, 1], False),  # two keys in a place
        ([0, 1, 1, 2], False),  # both, and as many keys as places
        ([0, 0, 1, -1], False),  # a place of nothing
        ([0, 0, -1, -1], False),
        ([-1, -1, -1, -1], True),  # nothing is published
    ],
)
def test_each_place_has_one_key_and_each_key_one_place(
    candidate: AnswerCandidate, places: list[int], good: bool
) -> None:
    count = 0 if max(places) < 0 else 3 + (3 in places)
    groups = pa.table({"place": places, "g0": ["a", "a", "b", None], "g1": [None] * 4})
    spoiled = replace(candidate, groups=groups, places=np.zeros(count, np.int64))
    if good:
        _check_keys(spoiled, _place_groups(spoiled))
    else:
        with pytest.raises(InternalError, match="do not match"):
            _check_keys(spoiled, _place_groups(spoiled))


def test_a_choice_below_the_guarantee_is_caught_before() -> None:
    with Session(ROWS) as session:
        groups = collect(session.prepare(SQL, {"k": "k"}).plan, session.engine)
    for target in (np.zeros(len(groups), dtype=np.int64), np.full(len(groups), 1)):
        groups_ = replace(groups, thresholds=groups.thresholds + 100)
        with pytest.raises(InternalError):
            publish_groups(groups_, LevelChoice(target))


def test_an_answer_is_made_by_the_door_only() -> None:
    answer = hm.query(ROWS, SQL, {"k": "k"})
    with pytest.raises(PrivacyError):
        pickle.dumps(answer)
    with pytest.raises(PrivacyError):
        replace(answer, door=None)


def test_an_answer_writes_and_converts(tmp_path: Any) -> None:
    answer = hm.query(ROWS, SQL, {"k": "k"})
    answer.write(tmp_path / "a.parquet")
    answer.report(tmp_path / "a.json")
    assert len(answer.to_pandas()) == len(answer.to_polars()) == len(answer) == 3
    assert "Answer(3 rows" in repr(answer)
    assert "k>=3, l>=2" in answer.to_arrow()["guarantee"].to_pylist()


@pytest.mark.parametrize("weaker", ["lower thresholds", "no people", "no values"])
def test_a_promise_that_would_not_be_checked_stops_the_answer(
    candidate: AnswerCandidate, weaker: str
) -> None:
    """The label says k >= 3, l >= 2: nothing less may be counted for it."""
    promises = candidate.promises
    if weaker == "lower thresholds":
        promises = tuple(replace(p, thresholds=(0, 0)) for p in promises)
    else:
        left_out = {"no people": "people", "no values": "diversity"}[weaker]
        promises = tuple(p for p in promises if p.what != left_out)
    with pytest.raises(InternalError, match="is not what would be checked"):
        seal(replace(candidate, promises=promises, counted=None))
