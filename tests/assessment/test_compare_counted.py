"""A comparison of rows that an engine counts gives the figures of rows that are read."""

from __future__ import annotations

import math
from functools import cache

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from effort import turn

import halfmask as hm
from halfmask.errors import InputError, ParameterError, SchemaError
from halfmask.metrics.discrimination.need import Need

SCHEMA = {
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20]}},
        "sex": "quasi",
        "work": {"role": "quasi", "hierarchy": {"tree": {"out": ["farm", "road"], "in": ["desk"]}}},
        "ill": "sensitive",
        "pay": "sensitive",
    }
}
# What is drawn: people who are attacked, rows that models learn from.
DRAWN = {
    "criteria",
    "predictions",
    "likeness",
    "notes",
    "linkage",
    "membership",
    "queries",
    "score",
}


@cache
def rows(size=600, seed=0):
    """People of whom many are alike, and some cells missing."""
    random = np.random.default_rng(seed)
    group = random.integers(0, 2, size).astype(bool)
    age = 20 + group * 20 + random.integers(0, 5, size) * 4
    return pa.table(
        {
            "age": pa.array(age, mask=random.random(size) < 0.02),
            "sex": np.where(group ^ (random.random(size) < 0.1), "f", "m"),
            "work": np.where(group, "desk", random.choice(["farm", "road"], size)),
            "ill": np.where(group, "flu", random.choice(["gout", "cold"], size)),
            "pay": 1000 + 250 * random.integers(0, 4, size),
        }
    )


@cache
def released(kind):
    table = hm.read(rows(), SCHEMA)
    if kind == "perturbed":
        random = np.random.default_rng(1)
        ages = pa.array(
            np.nan_to_num(rows()["age"].to_numpy(), nan=30) + random.integers(0, 3, 600)
        )
        return hm.read(rows().set_column(0, "age", ages), {}).arrow
    if kind == "synthetic":
        whole = hm.read(rows().filter(rows()["age"].is_valid()), SCHEMA)
        return hm.synthesize(whole, method="cocluster", k=20, seed=0).to_arrow()
    suppression = 0.1 if kind == "suppressed" else 0.0
    k, method = (30, "optimal") if kind == "suppressed" else (5, kind)
    return hm.anonymize(
        table, hm.KAnonymity(k), method=method, suppression=suppression, seed=0
    ).to_arrow()


def exact(found):
    """The figures that nothing was drawn for."""
    document = found.to_dict()
    kept = {key: value for key, value in document.items() if key not in DRAWN | {"notes"}}
    kept["attribution"] = document["membership"]["attribution"]
    kept["interval"] = document["linkage"]["interval"]
    kept["baseline"] = document["linkage"]["baseline"]
    kept["findings"] = [one for one in document["findings"] if one["measure"] not in DRAWN]
    return kept


def same(one, two, at=""):
    assert type(one) is type(two) or {type(one), type(two)} == {int, float}, at
    if isinstance(one, dict):
        assert one.keys() == two.keys(), at
        for key in one:
            same(one[key], two[key], f"{at}/{key}")
    elif isinstance(one, list):
        assert len(one) == len(two), at
        for place, (left, right) in enumerate(zip(one, two, strict=True)):
            same(left, right, f"{at}/{place}")
    elif isinstance(one, float):
        assert math.isclose(one, two, rel_tol=1e-9, abs_tol=1e-9), (at, one, two)
    else:
        assert one == two, at


def write(table, path):
    (csv.write_csv if path.suffix == ".csv" else pq.write_table)(table, path)
    return path


KINDS = ("optimal", "suppressed", "local", "mondrian", "personal", "perturbed", "synthetic")


@pytest.mark.parametrize("kind", KINDS)
def test_figures_agree_with_those_of_rows_in_memory(kind, tmp_path):
    original = write(rows(), tmp_path / "people.parquet")
    release = write(released(kind), tmp_path / "release.parquet")
    options = {"learn": False, "attacks": 60, "needs": [Need("ill", ("age", "sex"))]}
    read = hm.compare(
        hm.read(original, SCHEMA), hm.read(release, {}), earlier=hm.read(release, {}), **options
    )
    found = hm.compare(
        hm.read(original, schema=SCHEMA, engine="duckdb"),
        hm.read(release, engine="duckdb"),
        earlier=hm.read(release, engine="duckdb"),
        **options,
    )
    same(exact(read), exact(found))
    assert any("original were counted by duckdb" in note for note in found.notes)


@pytest.mark.parametrize("kind", ["csv", "duckdb"])
def test_other_sources_agree_too(kind, tmp_path):
    import duckdb

    release = released("optimal")
    options = {"learn": False, "attacks": 60}
    if kind == "csv":
        original = write(rows(), tmp_path / "people.csv")
        path = write(hm.read(release, {}).arrow, tmp_path / "release.csv")
        more = {"engine": "duckdb", "memory_limit": "200MB"}
        given = [hm.read(original, SCHEMA, **more), hm.read(path, **more)]
        others = {}
        read = hm.compare(hm.read(original, SCHEMA), hm.read(path, {}), **options)
    else:
        path = tmp_path / "all.duckdb"
        with duckdb.connect(str(path)) as database:
            database.register("one", rows())
            database.register("two", hm.read(release, {}).arrow)
            database.execute("CREATE TABLE people AS SELECT * FROM one")
            database.execute("CREATE TABLE published AS SELECT * FROM two")
        given = [hm.read(path, SCHEMA, table="people"), hm.read(path, table="published")]
        others = {"weaker": hm.read(path, table="people")}
        people, weaker = hm.read(rows(), SCHEMA), hm.read(rows(), {})
        read = hm.compare(people, hm.read(release, {}), weaker=weaker, **options)
    found = hm.compare(*given, **others, **options)
    same(exact(read), exact(found))


def test_one_side_in_memory_and_one_counted_agree(tmp_path):
    original = write(rows(), tmp_path / "people.parquet")
    table, release = hm.read(rows(), SCHEMA), hm.read(released("local"), {})
    path = write(released("local"), tmp_path / "release.parquet")
    read = exact(hm.compare(table, release, learn=False, attacks=60))
    options = {"learn": False, "attacks": 60}
    stored = hm.read(original, SCHEMA, engine="duckdb")
    same(read, exact(hm.compare(stored, release, **options)))
    same(read, exact(hm.compare(table, hm.read(path, engine="duckdb"), **options)))


def test_people_with_several_rows_are_counted_as_people(tmp_path):
    random = np.random.default_rng(2)
    person = random.integers(0, 60, 200)
    table = pa.table(
        {
            "who": [f"p{i}" for i in person],
            "age": 20 + person % 5,
            "ill": random.choice(["flu", "gout"], 200),
        }
    )
    schema = {
        "table": {"person": "who"},
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}},
            "ill": "sensitive",
        },
    }
    original = write(table, tmp_path / "visits.parquet")
    release = write(table.drop_columns(["who"]), tmp_path / "release.parquet")
    read = hm.compare(hm.read(original, schema), hm.read(release, {}), learn=False)
    found = hm.compare(
        hm.read(original, schema=schema, engine="duckdb"),
        hm.read(release, engine="duckdb"),
        learn=False,
    )
    same(exact(read), exact(found))
    assert found.before.to_dict() == found.after.to_dict()  # a copy, by people on either side


def test_drawn_figures_are_near_and_say_what_they_rest_on(tmp_path):
    pytest.importorskip("sklearn")
    original = write(rows(), tmp_path / "people.parquet")
    release = write(released("optimal"), tmp_path / "release.parquet")
    control = write(rows(seed=9), tmp_path / "control.parquet")
    read = hm.compare(
        hm.read(original, SCHEMA), hm.read(release, {}), control=hm.read(control, SCHEMA)
    )
    found = hm.compare(
        hm.read(original, schema=SCHEMA, engine="duckdb"),
        hm.read(release, engine="duckdb"),
        control=hm.read(control, engine="duckdb"),
    )
    for one, two in zip(read.criteria, found.criteria, strict=True):
        assert (
            (one.control is None)
            == (two.control is None)
            == one.name.endswith(("by names", "by classes"))
        )
        pairs = [(one.attack, two.attack), (one.control, two.control)]
        for left, right in pairs[: 1 if one.control is None else 2]:
            assert right.n == left.n
            # Other people are drawn: twice the half-widths of both 95% intervals is 4 deviations.
            widths = [(one.high - one.low) / 2 for one in (left, right)]
            assert abs(left.value - right.value) <= 2 * math.hypot(*widths)
    for name in ("distance", "second", "assignment", "probabilistic"):
        left, right = getattr(read.linkage, name), getattr(found.linkage, name)
        assert right.low <= left.high
        assert left.low <= right.high
    assert found.membership.area.low <= read.membership.area.high
    assert len(found.predictions) == len(read.predictions)
    assert found.predictions[0].original.value == pytest.approx(
        read.predictions[0].original.value, abs=0.1
    )
    assert found.likeness.area.value == pytest.approx(read.likeness.area.value, abs=0.1)


QUERIES = """
select sex, count(*), avg(pay) from people group by sex;
select count(*) from people where age between 30 and 50 and ill = 'flu';
"""


def test_own_queries_run_on_all_rows(tmp_path):
    original = write(rows(), tmp_path / "people.parquet")
    file = tmp_path / "queries.sql"
    file.write_text(QUERIES)
    options = {"queries": file, "learn": False, "attacks": 60}
    # The copy has nothing to draw: every figure is exact.
    copy = hm.compare(
        hm.read(original, schema=SCHEMA, engine="duckdb"),
        hm.read(original, engine="duckdb"),
        **options,
    )
    assert [q.error.value for q in copy.queries] == [0, 0]
    assert [q.cells for q in copy.queries] == [4, 1]
    release = write(released("optimal"), tmp_path / "release.parquet")
    read = hm.compare(hm.read(original, SCHEMA), hm.read(release, {}), **options)
    found = hm.compare(
        hm.read(original, schema=SCHEMA, engine="duckdb"),
        hm.read(release, engine="duckdb"),
        **options,
    )
    assert found.queries[0].error.value == pytest.approx(read.queries[0].error.value)
    drawn = [one.queries[1].error for one in (read, found)]
    assert drawn[1].value == pytest.approx(drawn[0].value, abs=0.1)
    assert all(one.n == 5 and one.low < one.value < one.high for one in drawn)
    again = hm.compare(
        hm.read(original, schema=SCHEMA, engine="duckdb"),
        hm.read(release, engine="duckdb"),
        **options,
    )
    assert again.queries == found.queries  # the seed repeats them


def test_columns_without_a_role_are_left_out_and_named(tmp_path):
    table = rows().append_column("note", pa.array(np.arange(600)))
    table = table.append_column("id", pa.array(np.arange(600)))
    schema = {"columns": SCHEMA["columns"] | {"id": "identifier"}}
    original = write(table, tmp_path / "people.parquet")
    options = {"learn": False, "attacks": 60}
    stored = hm.read(original, schema, engine="duckdb")
    found = hm.compare(stored, stored, **options)
    assert [one.name for one in found.distances] == ["age", "sex", "work", "ill", "pay"]
    (note,) = [one for one in found.notes if "Not compared" in one]
    assert "sensitive: note. Give" in note
    # A column that a need names is counted whatever its role.
    found = hm.compare(stored, stored, needs=[Need("note", ("age",))], **options)
    assert "note" in [one.name for one in found.distances]
    assert found.needs[0].rows_before == 600
    assert not any("Not compared" in one for one in found.notes)


def test_what_does_not_go_with_an_engine_is_refused(tmp_path):
    original = write(rows(), tmp_path / "people.parquet")
    stored = hm.read(original, SCHEMA, engine="duckdb")
    with pytest.raises(InputError, match="have no order"):
        hm.compare(stored, stored, same_order=True, learn=False)
    with pytest.raises(SchemaError, match="quasi-identifier"):
        hm.compare(
            hm.read(original, schema={}, engine="duckdb"), hm.read(original, engine="duckdb")
        )
    with pytest.raises(ParameterError, match="table"):
        hm.compare(stored, tmp_path / "all.duckdb")
    with pytest.raises(ParameterError, match="table"):
        hm.compare(stored, stored, weaker=tmp_path / "all.duckdb")
    narrow = write(rows().select(["age", "ill"]), tmp_path / "narrow.parquet")
    notes = hm.compare(stored, hm.read(narrow, engine="duckdb"), learn=False).notes
    assert "The release lacks the column 'sex': it is taken as suppressed in every row." in notes
    other = write(pa.table({"x": [1]}), tmp_path / "other.parquet")
    with pytest.raises(InputError, match="none of the columns"):
        hm.compare(stored, hm.read(other, engine="duckdb"), learn=False)
    with pytest.raises(SchemaError, match="declared in the schema but not in the table: sex"):
        hm.read(narrow, SCHEMA, engine="duckdb")


def test_postgres_counts_where_the_rows_are(postgres):
    psycopg = pytest.importorskip("psycopg")
    release = hm.read(released("optimal"), {}).arrow
    with psycopg.connect(postgres, autocommit=True) as connection:
        for name, table in (("compared", rows()), ("published", release)):
            kinds = {
                c: "bigint" if pa.types.is_integer(t) else "text"
                for c, t in zip(table.column_names, table.schema.types, strict=True)
            }
            connection.execute(f"DROP TABLE IF EXISTS {name}")
            columns = ", ".join(f"{c} {kind}" for c, kind in kinds.items())
            connection.execute(f"CREATE TABLE {name} ({columns})")
            with connection.cursor().copy(f"COPY {name} FROM STDIN") as copy:
                for row in zip(*(c.to_pylist() for c in table.columns), strict=True):
                    copy.write_row(row)
    options = {"learn": False, "attacks": 60}
    read = hm.compare(
        hm.read(rows(), SCHEMA), hm.read(release, {}), weaker=hm.read(rows(), {}), **options
    )
    people, published = (
        hm.read(postgres, schema, table=name)
        for name, schema in (("compared", SCHEMA), ("published", None))
    )
    weaker = hm.read(postgres, table="compared")
    found = hm.compare(people, published, weaker=weaker, **options)
    same(exact(read), exact(found))
    assert read.discrimination.inversions == ()
    assert any("weaker release were counted by postgres" in note for note in found.notes)
    assert any("counted by postgres" in note for note in found.notes)


def _changed(what):
    """A harmless release, or one that also holds what must not be there."""
    table = rows().append_column("id", pa.array([f"p{i}" for i in range(600)]))
    table = table.append_column("room", pa.array(np.arange(600)))
    starred = ["age", "sex", "work", "ill", "pay"]
    release = pa.table({name: pa.array(["*"] * 600) for name in starred})
    more = {
        "nothing": {},
        "an identifier": {"id": table["id"]},
        "new pseudonyms": {"id": pa.array([f"q{i}" for i in range(600)])},
        "a record number": {"record": pa.array(np.arange(600))},
        "missing cells": {},
    }[what]
    for name, column in more.items():
        release = release.append_column(name, column)
    if what == "missing cells":
        release = release.set_column(0, "age", pa.array([None] * 30 + ["*"] * 570))
    return table, release


WHATS = ("nothing", "an identifier", "new pseudonyms", "a record number", "missing cells")


@pytest.mark.parametrize(
    ("what", "suffix"),
    [(what, suffix) for i, what in enumerate(WHATS) for suffix in turn([".csv", ".parquet"], i)],
)
def test_doubts_are_those_of_rows_in_memory(what, suffix, tmp_path):
    table, release = _changed(what)
    schema = {"columns": SCHEMA["columns"] | {"id": "identifier"}}
    one, two = write(table, tmp_path / f"a{suffix}"), write(release, tmp_path / f"b{suffix}")
    options = {"learn": False, "attacks": 200}
    read = hm.compare(hm.read(one, schema), hm.read(two, {}), **options)
    found = hm.compare(
        hm.read(one, schema=schema, engine="duckdb"), hm.read(two, engine="duckdb"), **options
    )
    # Guessing a column is near its limit: whom it is tried on decides.
    outcomes, others = (
        {c.name: c.outcome for c in side.criteria if c.name != "inference"}
        for side in (found, read)
    )
    assert outcomes == others
    assert [note for note in found.notes if "counted by" not in note] == list(read.notes)
    withheld = dict.fromkeys(("a record number", "new pseudonyms"), "undecided")
    expected = {"an identifier": "not met", **withheld}.get(what, "met")
    assert outcomes["singling out"] == expected


def test_the_person_column_in_the_release_is_seen(tmp_path):
    table, release = _changed("an identifier")
    schema = {"table": {"person": "id"}, "columns": SCHEMA["columns"]}
    one, two = write(table, tmp_path / "a.parquet"), write(release, tmp_path / "b.parquet")
    stored = hm.read(one, schema, engine="duckdb")
    found = hm.compare(stored, hm.read(two, engine="duckdb"), learn=False, attacks=200)
    assert found.criteria[0].outcome == "not met"


@pytest.mark.parametrize("side", ["both", "original", "release"])
def test_what_cannot_be_known_of_many_identifiers_is_undecided(tmp_path, monkeypatch, side):
    monkeypatch.setattr("halfmask.metrics.risk.attack._VALUES", 50)
    table, release = _changed("new pseudonyms")
    few = pa.array([f"r{i % 40}" for i in range(600)])
    if side == "original":  # only it holds too many to look at
        release = release.set_column(release.column_names.index("id"), "id", few)
    if side == "release":
        table = table.set_column(table.column_names.index("id"), "id", few)
    schema = {"columns": SCHEMA["columns"] | {"id": "identifier"}}
    one, two = write(table, tmp_path / "a.parquet"), write(release, tmp_path / "b.parquet")
    found = hm.compare(
        hm.read(one, schema=schema, engine="duckdb"),
        hm.read(two, engine="duckdb"),
        learn=False,
        attacks=200,
    )
    assert {criterion.outcome for criterion in found.criteria} == {"undecided"}
    assert any("holds more than 50 values" in note for note in found.notes)


def test_columns_that_were_not_counted_withhold_the_attack_by_any_column(tmp_path):
    table, release = _changed("nothing")
    release = release.append_column("room", table["room"])
    one, two = write(table, tmp_path / "a.parquet"), write(release, tmp_path / "b.parquet")
    schema = {"columns": SCHEMA["columns"] | {"id": "identifier"}}
    found = hm.compare(
        hm.read(one, schema=schema, engine="duckdb"),
        hm.read(two, engine="duckdb"),
        learn=False,
        attacks=200,
    )
    outcomes = {criterion.name: criterion.outcome for criterion in found.criteria}
    assert outcomes["singling out"] == "met"
    assert outcomes["singling out, by any column"] == "undecided"
    assert "room" in found.criteria[1].notes[0]
