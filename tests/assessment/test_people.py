"""Figures of tables in which people have several rows, against counting in plain Python."""

from __future__ import annotations

import datetime
import itertools
import math
from collections import Counter, defaultdict
from decimal import Decimal

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm

QUASI = ("born", "weight", "city")
SCHEMA = {
    "table": {"person": "who"},
    "columns": {
        "who": "identifier",
        "born": {"role": "quasi"},
        "weight": {"role": "quasi", "kind": "numeric"},
        "city": {"role": "quasi"},
        "ill": {"role": "sensitive"},
    },
}
DAYS = [datetime.date(1980, 1, 1), datetime.date(1980, 1, 2), datetime.date(1999, 12, 31), None]
WEIGHTS = [Decimal("70.50"), Decimal("70.51"), Decimal("81.00"), None]

rows_of_people = st.lists(
    st.tuples(
        st.sampled_from(["a", "b", "c", "d", "e"]),
        st.sampled_from(DAYS),
        st.sampled_from(WEIGHTS),
        st.sampled_from(["x", "y", None]),
        st.sampled_from(["flu", "cold", None]),
    ),
    min_size=1,
    max_size=14,
)


def table(rows):
    who, born, weight, city, ill = zip(*rows, strict=True)
    return hm.read(
        pa.table(
            {
                "who": pa.array(who),
                "born": pa.array(born, pa.date32()),
                "weight": pa.array(weight, pa.decimal128(6, 2)),
                "city": pa.array(city, pa.string()),
                "ill": pa.array(ill, pa.string()),
            }
        ),
        schema=SCHEMA,
    )


def groups(rows, names):
    """The rows of each combination of values."""
    out = defaultdict(list)
    for row in rows:
        out[values_of(row, names)].append(row)
    return list(out.values())


def values_of(row, names):
    return tuple(row[1 + QUASI.index(name)] for name in names)


def people(group):
    return len({row[0] for row in group})


def alone(rows, names):
    return sum(len(group) for group in groups(rows, names) if people(group) == 1)


def sets(size=3):
    return [s for n in range(1, size + 1) for s in itertools.combinations(QUASI, n)]


@given(rows_of_people)
@settings(max_examples=examples(60), deadline=None)
def test_classes_and_risks(rows):
    found = hm.assess(table(rows))
    classes = groups(rows, QUASI)
    held = [people(group) for group in classes]
    assert (found.rows, found.people, found.classes) == (len(rows), people(rows), len(classes))
    assert found.smallest == min(held)
    assert found.unique_rows == alone(rows, QUASI)
    assert found.highest_risk == pytest.approx(1 / min(held))
    assert found.mean_risk == pytest.approx(len(held) / sum(held))
    risk = found.reidentification
    assert risk.journalist_any_hit == pytest.approx(1 - math.prod(1 - 1 / n for n in held))
    for one in risk.thresholds:
        above = sum(len(g) for g in classes if 1 / people(g) > one.limit)
        assert one.rows == above
    for one in risk.distribution:
        inside = sum(len(g) for g in classes if one.low < 1 / people(g) <= one.high)
        assert one.rows == inside
    sizes = Counter()
    for group in classes:
        n = people(group)
        sizes[str(n) if n < 3 else "3-4" if n < 5 else "5-9"] += len(group)
    assert {label: n for label, _, n in found.sizes} == sizes


@given(rows_of_people)
@settings(max_examples=examples(60), deadline=None)
def test_columns_sets_and_advice(rows):
    found = hm.assess(table(rows))
    for one in found.columns:
        values = [row[1 + QUASI.index(one.name)] for row in rows]
        assert one.missing == values.count(None)
        assert one.distinct == len(set(values) - {None})
        assert one.unique_rows == alone(rows, [one.name])
    by_set = {frozenset(one.columns): one for one in found.sets}
    for names in sets():
        one = by_set[frozenset(names)]
        assert one.unique_rows == alone(rows, names)
        assert one.classes == len(groups(rows, names))
        entries = {(row[0], values_of(row, names)) for row in rows}
        assert one.distinction == pytest.approx(len(groups(rows, names)) / len(entries))
        pairs = [(a[1], b[1]) for a, b in itertools.combinations(entries, 2) if a[0] != b[0]]
        apart = sum(a != b for a, b in pairs)
        assert one.separation == pytest.approx(apart / len(pairs) if pairs else 1.0)
    singling = [set(names) for names in sets() if alone(rows, names)]
    minimal = [names for names in singling if not any(other < names for other in singling)]
    assert sorted(map(sorted, found.minimal)) == sorted(map(sorted, minimal))
    for one in found.advice:
        assert one.unique_rows == alone(rows, QUASI)
        assert one.removed == alone(rows, [name for name in QUASI if name != one.column])


def minimal_sets(rows, row):
    """The minimal sets on which no other person shares the values of ``row``."""
    others = [other for other in rows if other[0] != row[0]]
    unique = [
        set(names)
        for names in sets()
        if all(values_of(other, names) != values_of(row, names) for other in others)
    ]
    return [names for names in unique if not any(other < names for other in unique)]


@given(rows_of_people)
@settings(max_examples=examples(60), deadline=None)
def test_special_uniques(rows):
    whole = table(rows)
    found = hm.assess(whole).special
    mine = [minimal_sets(rows, row) for row in rows]
    worth = {1: 2, 2: 1, 3: 1}  # A = M = 3: (3 - 1)(3 - 2), 3 - 2, 1
    scores = [sum(worth[len(one)] for one in held) for held in mine]
    assert found.scores.tolist() == scores
    smallest = [min(map(len, held), default=0) for held in mine]
    assert found.smallest.tolist() == smallest
    assert found.special_rows == sum(map(bool, mine))
    # Rows of a person that agree are one: their sets count once, their rows each.
    tuples = {(row[0], values_of(row, QUASI)): held for row, held in zip(rows, mine, strict=True)}
    for size, count, held in found.by_size:
        assert count == sum(len(one) == size for sets_ in tuples.values() for one in sets_)
        assert held == smallest.count(size)
    by_set = Counter(frozenset(one) for held in mine for one in held)
    assert {frozenset(names): count for names, count in found.by_set} == by_set
    every = [one for sets_ in tuples.values() for one in sets_]
    for column in found.contributions:
        assert column.sets == sum(column.name in one for one in every)
        score = sum(worth[len(one)] for one in every if column.name in one)
        total = sum(worth[len(one)] for one in every)
        assert column.score == pytest.approx(score / total if total else 0)
    risks = hm.row_risks(whole)
    assert risks.special_score.tolist() == scores
    assert risks.special_size.tolist() == smallest


@given(rows_of_people)
@settings(max_examples=examples(60), deadline=None)
def test_disclosure_and_criteria(rows):
    found = hm.assess(table(rows))
    classes = groups(rows, QUASI)
    known = [[row[4] for row in group if row[4] is not None] for group in classes]
    (one,) = found.disclosures
    total = len(rows)
    certain = sum(len(values) for values in known if len(set(values)) == 1)
    assert one.homogeneity == pytest.approx(certain / total)
    guessed = sum(max(Counter(row[4] for row in group).values()) for group in classes)
    assert one.best_guess == pytest.approx(guessed / total)
    prior = max(Counter(row[4] for row in rows).values()) / total
    assert one.prior_guess == pytest.approx(prior)
    by = {c.name: c for c in found.criteria}
    assert by["singling out, by classes"].attack.value == pytest.approx(alone(rows, QUASI) / total)
    held = [people(group) for group in classes]
    assert by["linkability, by classes"].attack.value == pytest.approx(len(held) / sum(held))
    assert by["inference, by classes"].attack.value == pytest.approx(guessed / total)


def test_rows_of_one_person_that_agree_are_alone_in_every_figure():
    day, weight = DAYS[0], WEIGHTS[0]
    rows = [("a", day, weight, "x", "flu")] * 2 + [("b", DAYS[2], weight, "y", "cold"),
            ("c", DAYS[2], weight, "y", "flu")]  # fmt: skip
    found = hm.assess(table(rows))
    assert found.unique_rows == 2
    assert {c.name: c.unique_rows for c in found.columns} == {"born": 2, "weight": 0, "city": 2}
    assert any("several rows" in note for note in found.notes)
    assert found.special.special_rows == 2
    # By born and by city, each worth 2; both rows are one.
    assert found.special.by_size == ((1, 2, 2), (2, 0, 0), (3, 0, 0))
    assert found.special.scores.tolist() == [4, 4, 0, 0]


@pytest.mark.parametrize("suffix", ["parquet", "csv"])
def test_the_engine_counts_the_same(tmp_path, suffix):
    from pyarrow import csv, parquet

    rows = [
        ("a", DAYS[0], WEIGHTS[0], "x", "flu"),
        ("a", DAYS[0], WEIGHTS[0], "x", "cold"),
        ("b", DAYS[0], WEIGHTS[0], "x", "flu"),
        ("c", None, WEIGHTS[1], None, "flu"),
        ("c", None, WEIGHTS[1], None, None),
        ("d", DAYS[2], None, "y", "flu"),
        ("e", DAYS[2], None, "y", "flu"),
    ]
    here = table(rows)
    path = tmp_path / f"rows.{suffix}"
    (parquet.write_table if suffix == "parquet" else csv.write_csv)(here.arrow, path)
    there = hm.assess(hm.read(path, schema=SCHEMA, engine="duckdb")).to_dict()
    own = hm.assess(here).to_dict()
    differ = [key for key in own if there[key] != own[key]]
    assert differ == ["notes"]


def test_the_share_of_the_population_is_counted_by_people():
    visits = {"who": list("aabbccdd"), "city": [*"xyxyxyxy"]}
    table = hm.read(visits, {"table": {"person": "who"}, "columns": {"city": "quasi"}})
    # Four people, each in two classes, of a population of five.
    found = hm.assess(table, population=hm.read({"city": list("xxyyy")}))
    assert found.intrusion.fraction == pytest.approx(4 / 5)
    with pytest.raises(hm.errors.InputError, match="3 rows and the table 4 people"):
        hm.assess(table, population=hm.read({"city": list("xyx")}))
