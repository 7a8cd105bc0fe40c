"""Promises whose unit is not the row: households, and people for whom rows stand."""

from __future__ import annotations

from collections import defaultdict
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.errors import InternalError, SchemaError
from halfmask.models.options import read_models
from halfmask.release import verification

row = st.tuples(
    st.integers(0, 3), st.one_of(st.none(), st.integers(0, 5)), st.integers(0, 9), st.booleans()
)
rows = st.lists(row, min_size=1, max_size=20)
WEIGHTS = [1.0, 1.9, 2.5, 3.0, 10.2, 7.7, 1.2, 4.4, 6.0, 2.2]


def tabulate(data, *, people=False):
    """Whole rows, or several for some people, whose weight is theirs."""
    q, household, person, _ = zip(*data, strict=True)
    arrow = pa.table(
        {
            "q": q,
            "hid": pa.array(household, pa.int64()),
            "id": person if people else range(len(data)),
            "w": [WEIGHTS[one] for one in person],
        }
    )
    told = {"person": "id", "household": "hid", "weight": "w"}
    return hm.read(arrow, {"table": told, "columns": {"q": "quasi"}})


def grouped(data):
    out = defaultdict(list)
    for one in data:
        out[one[0]].append(one)
    return out


@given(rows, st.integers(2, 3))
def test_households_are_counted_once_and_unknown_ones_never(data, k):
    held = {q: len({h for _, h, *_ in x} - {None}) for q, x in grouped(data).items()}
    (found,) = hm.check(tabulate(data), hm.HouseholdKAnonymity(k))
    assert found.achieved == min(held.values())
    assert found.failing_classes == sum(count < k for count in held.values())


def stood_for(inside, *, people):
    """How many people rows stand for: somebody with several rows once."""
    if people:
        return sum(int(WEIGHTS[one]) for one in {person for *_, person, _ in inside})
    return sum(int(WEIGHTS[person]) for *_, person, _ in inside)


@given(rows, st.booleans(), st.integers(2, 9))
@settings(max_examples=examples(60))
def test_weights_say_whom_rows_stand_for(data, people, k):
    groups = grouped(data)
    sizes = {q: stood_for(x, people=people) for q, x in groups.items()}
    mapped, risk = hm.check(tabulate(data, people=people), hm.KMap(k), hm.PopulationRisk(0.5))
    assert mapped.achieved == min(sizes.values())
    assert mapped.failing_classes == sum(size < k for size in sizes.values())
    expected = sum(Fraction(len(x), sizes[q]) for q, x in groups.items()) / len(data)
    assert risk.achieved == pytest.approx(float(expected))


def survey(**table):
    random = np.random.default_rng(8)
    age = np.repeat(random.integers(20, 60, 40), 3)
    columns = {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}}}
    data = {"age": age, "hid": np.repeat(np.arange(40), 3), "w": random.uniform(1, 9, 120)}
    return hm.read(data, {"table": table, "columns": {**columns, "*": "drop"}}), age


@pytest.mark.parametrize("method", ["optimal", "local", "mondrian"])
def test_releases_keep_households_apart(method):
    table, _ = survey(household="hid")
    release = hm.anonymize(table, hm.HouseholdKAnonymity(3), method=method)
    counts = np.unique(release.to_arrow()["age"].to_pylist(), return_counts=True)[1]
    assert counts.min() >= 9  # three households of three people of one age
    assert release.to_arrow().column_names == ["age"]
    assert "household" in str(release.to_dict()["columns"])


def test_releases_keep_promises_about_the_population():
    table, _ = survey(weight="w")
    release = hm.anonymize(table, hm.KMap(60), hm.PopulationRisk(0.02), method="optimal")
    assert all(verdict.holds for verdict in release.verdicts)
    assert "sampling weights" in release.verdicts[0].note


def test_the_door_counts_households_and_weights_by_itself(monkeypatch):
    class Careless(hm.HouseholdKAnonymity):
        def passes(self, classes):
            return np.ones(len(classes), dtype=bool)

    table, _ = survey(household="hid")
    with pytest.raises(InternalError, match=r"'hid'.*fewer known values"):
        hm.anonymize(table, Careless(30), hm.KAnonymity(2), method="optimal")
    table, _ = survey(weight="w")
    monkeypatch.setattr(
        verification, "_stood_for", lambda *given: np.ones(given[-1], dtype=np.int64)
    )
    with pytest.raises(InternalError, match="break k-map"):
        hm.anonymize(table, hm.KMap(20), method="optimal")


def test_what_is_not_declared_is_asked_for():
    table = hm.read({"age": [1, 1]}, {"age": "quasi"})
    with pytest.raises(SchemaError, match="household = "):
        hm.check(table, hm.HouseholdKAnonymity(2))
    with pytest.raises(SchemaError, match="column of sampling weights"):
        hm.check(table, hm.KMap(2))
    (mapped,) = read_models({"k_map": 3})
    assert mapped.weighted
    assert read_models({"k_households": 2}) == [hm.HouseholdKAnonymity(2)]
