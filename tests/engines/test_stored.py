"""Every verb gives on rows that stay where they are what it gives on rows in memory."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pyarrow.csv as csv
import pyarrow.parquet as pq
import pytest
from effort import turn

import halfmask as hm
from halfmask.errors import InputError, ParameterError, SchemaError

SCHEMA = {
    "table": {"person": "who"},
    "policy": {"k": "own_k"},
    "columns": {
        "age": {"role": "quasi", "hierarchy": {"intervals": [10, 20, 80]}},
        "sex": {"role": "quasi", "hierarchy": {"tree": {"any": ["f", "m"]}}},
        "ill": "sensitive",
    },
}


PLACES = ("duckdb", "parquet", "csv", "postgres")


def pairs(verbs, few):
    """Verbs and places: every place has its turn; that places hold the same is asked elsewhere."""
    return [(verb, place) for i, verb in enumerate(verbs) for place in turn(PLACES, i, few)]


def rows(size=240):
    random = np.random.default_rng(3)
    old = random.random(size) < 0.5
    return pa.table(
        {
            "who": np.arange(size),
            "age": 20 + 20 * old + random.integers(0, 20, size),
            "sex": np.where(old ^ (random.random(size) < 0.1), "f", "m"),
            "ill": np.where(old, "flu", random.choice(["gout", "cold"], size)),
            "own_k": random.choice([2, 3, 5], size),
        }
    )


@pytest.fixture(scope="module")
def here():
    return hm.read(rows(), SCHEMA)


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    import duckdb

    folder = tmp_path_factory.mktemp("stored")
    with duckdb.connect(str(folder / "base.duckdb")) as database:
        database.register("given", rows())
        database.execute("CREATE TABLE people AS SELECT * FROM given ORDER BY who")
    pq.write_table(rows(), folder / "people.parquet")
    csv.write_csv(rows(), folder / "people.csv")
    return folder


@pytest.fixture(params=PLACES)
def there(request, files):
    if request.param == "duckdb":
        return hm.read(files / "base.duckdb", SCHEMA, table="people")
    if request.param != "postgres":
        return hm.read(files / f"people.{request.param}", SCHEMA, engine="duckdb")
    psycopg = pytest.importorskip("psycopg")
    address = request.getfixturevalue("postgres")
    with psycopg.connect(address, autocommit=True) as connection:
        connection.execute("DROP TABLE IF EXISTS stored_people")
        connection.execute(
            "CREATE TABLE stored_people (who bigint, age bigint, sex text, ill text, own_k bigint)"
        )
        with connection.cursor().copy("COPY stored_people FROM STDIN") as copy:
            for row in zip(*(c.to_pylist() for c in rows().columns), strict=True):
                copy.write_row(row)
    return hm.read(address, SCHEMA, table="stored_people")


def plain(found):
    """A document without the note that says who counted, to nine digits."""
    facts = found.to_dict()
    facts.pop("notes", None)
    return json.loads(json.dumps(facts, default=str), parse_float=lambda x: round(float(x), 9))


def is_collected(table):
    return "collected" in table.memo


COUNTED = {
    "assess": lambda table: plain(hm.assess(table, fraction=0.1)),
    "check": lambda table: hm.check(table, hm.KAnonymity(3), hm.LDiversity(2, "ill")),
    "discrimination_rate": lambda table: round(hm.discrimination_rate(table, "ill", "age"), 9),
    "rank_column_sets": lambda table: [
        (one.columns, round(one.rate, 9))
        for one in hm.rank_column_sets(table, "ill", ["age", "sex"])
    ],
    "frontier": lambda table: [
        (one.name, round(one.loss, 9), round(one.risk, 9))
        for one in hm.frontier(table, hm.KAnonymity(5), suppression=[0.0, 0.1]).points
    ],
    "describe": lambda table: hm.describe(table).to_dict()["columns"],
    "row_risks": lambda table: [
        (one["risk"], round(one["mean"], 9), one["above"])
        for one in hm.row_risks(table, fraction=0.1).summary(0.2)
    ],
    "len": len,
    "columns": lambda table: table.column_names,
}
ASKED = "SELECT sex, COUNT(*) AS n, AVG(age) AS mean FROM people GROUP BY sex GUARANTEE k = 5"
IN_PLACE = {
    "query": lambda table: sorted(map(str, hm.query(table, ASKED).to_arrow().to_pylist())),
    "suggest": lambda table: str(hm.suggest(table, ASKED).clause),
    "explain": lambda table: hm.explain(table, ASKED).levels,
}
COLLECTED = {
    "anonymize": lambda table: sorted(
        map(str, hm.anonymize(table, hm.KAnonymity(5), seed=0).to_arrow().to_pylist())
    ),
    "personal": lambda table: hm.anonymize(table, seed=0).loss,
    "synthesize": lambda table: (
        hm.synthesize(table, method="cocluster", k=20, seed=0).to_arrow().to_pylist()
    ),
    "partition_measures": lambda table: hm.partition_measures(
        table, np.arange(240) // 10
    ).to_dict(),
    "policies": lambda table: hm.policies.generate(
        table, "general", column="dealt", seed=1
    ).arrow.to_pylist(),
    "compare_policies": lambda table: plain(
        hm.compare_policies(table, ["personal"], method="mondrian", seeds=[0])
    ),
}


KNOWN = {}


def known(verbs, verb, here):
    """What the rows in memory give, once for all places."""
    if verb not in KNOWN:
        KNOWN[verb] = verbs[verb](here)
    return KNOWN[verb]


@pytest.mark.parametrize(("verb", "there"), pairs(COUNTED, 2), indirect=["there"])
def test_figures_are_counted_where_the_rows_are(here, there, verb):
    assert COUNTED[verb](there) == known(COUNTED, verb, here)
    assert not is_collected(there)


@pytest.mark.parametrize("verb", IN_PLACE)
def test_queries_are_answered_where_the_rows_are(here, there, verb):
    assert IN_PLACE[verb](there) == known(IN_PLACE, verb, here)
    # The values of a CSV file are texts until they are read.
    assert is_collected(there) == there.stored.are_texts


@pytest.mark.parametrize(("verb", "there"), pairs(COLLECTED, 1), indirect=["there"])
def test_what_needs_rows_has_them_collected_once(here, there, verb, monkeypatch):
    calls, collect = [], type(there.stored).collect
    monkeypatch.setattr(
        type(there.stored), "collect", lambda *given: (calls.append(1), collect(*given))[1]
    )
    assert COLLECTED[verb](there) == known(COLLECTED, verb, here)
    assert len(there.arrow) == 240
    assert len(calls) == 1


def test_a_release_is_compared_with_rows_that_stay(here, there):
    release = hm.anonymize(here, hm.KAnonymity(5))
    found, expected = (
        hm.compare(table, release, control=table, learn=False, attacks=20)
        for table in (there, here)
    )
    for name in ("loss", "before", "after", "distances", "generalized"):
        assert plain_value(getattr(found, name)) == plain_value(getattr(expected, name))
    assert not is_collected(there)


def plain_value(value):
    if isinstance(value, tuple):
        return [plain_value(one) for one in value]
    return round(value, 9) if isinstance(value, float) else str(value)


def test_nothing_is_counted_to_show_a_table(there, monkeypatch):
    monkeypatch.setattr(type(there.stored), "open", lambda _: pytest.fail("it was opened"))
    assert repr(there) in (
        f"Table(rows in {engine}; age: quasi, sex: quasi, ill: sensitive)"
        for engine in ("duckdb", "postgres")
    )


def test_demands_of_a_policy_file_are_kept(files, tmp_path):
    table = rows()
    csv.write_csv(table.select(["who", "own_k"]), tmp_path / "demands.csv")
    pq.write_table(table.drop_columns(["own_k"]), tmp_path / "people.parquet")
    schema = hm.Schema.from_dict(
        SCHEMA | {"policy": {"file": "demands.csv", "k": "own_k"}}, folder=tmp_path
    )
    read, stored = (
        hm.read(tmp_path / "people.parquet", schema, engine=engine)
        for engine in ("memory", "duckdb")
    )
    assert hm.check(stored) == hm.check(read)
    own = [hm.anonymize(table, seed=0).verdicts for table in (read, stored)]
    assert own[0] == own[1]
    assert "personal" in own[0][0].model
    assert IN_PLACE["query"](stored) == IN_PLACE["query"](read)


def test_texts_that_mean_missing_are_read_before_a_query(tmp_path):
    table = pa.table({"city": ["x"] * 6 + ["NA"] * 6, "n": [*range(12)]})
    pq.write_table(table, tmp_path / "t.parquet")
    schema = {"table": {"missing": ["NA"]}, "columns": {"city": "quasi", "n": "sensitive"}}
    asked = "SELECT COUNT(city) AS n FROM t GUARANTEE k = 3"
    answers = [
        hm.query(hm.read(tmp_path / "t.parquet", schema, engine=engine), asked).to_arrow()
        for engine in ("memory", "duckdb")
    ]
    assert answers[0].equals(answers[1])


def test_what_options_say_of_a_text_file_holds_for_an_engine(tmp_path):
    (tmp_path / "t.csv").write_text("age;pay\n30;1,5\nNA;2,5\n30;1,5\n")
    how = {"delimiter": ";", "decimal": ",", "missing": ["NA"]}
    schema = {"age": "quasi", "pay": "quasi"}
    read, stored = (
        hm.read(tmp_path / "t.csv", schema, engine=engine, **how) for engine in ("memory", "duckdb")
    )
    assert plain(hm.assess(stored)) == plain(hm.assess(read))
    assert stored.arrow.to_pylist() == read.arrow.to_pylist()


def test_a_schema_is_put_on_rows_that_stay(files):
    stored = hm.read(files / "people.parquet", engine="duckdb")
    again = hm.read(stored, {"age": "quasi"})
    assert again.schema.quasi == ("age",)
    assert hm.assess(again).rows == 240
    assert not is_collected(again)


@pytest.mark.parametrize(
    ("how", "error", "words"),
    [
        ({"engine": "abacus"}, ParameterError, "duckdb, postgres, spark or memory"),
        ({"engine": "postgres"}, ParameterError, "postgres:// address"),
        ({"table": "people"}, ParameterError, "only databases"),
        ({"engine": "duckdb", "schema": {"nothing": "quasi"}}, SchemaError, "'nothing'"),
        ({"engine": "duckdb", "memory_limit": "lots"}, ParameterError, "500MB"),
    ],
)
def test_faults_are_told_when_a_table_is_read(files, how, error, words):
    with pytest.raises(error, match=words):
        hm.read(files / "people.parquet", **how)


def test_faults_of_databases_and_frames_are_told(files):
    with pytest.raises(ParameterError, match="the name of a table"):
        hm.read(files / "base.duckdb")
    with pytest.raises(InputError, match="no table called"):
        hm.read(files / "base.duckdb", table="nobody")
    with pytest.raises(ParameterError, match="in memory already"):
        hm.read(rows(), engine="duckdb")


@pytest.mark.parametrize("verb", ["assess", "check", "discrimination_rate", "compare", "frontier"])
@pytest.mark.parametrize("word", ["engine", "source_table", "memory_limit", "schema"])
def test_what_reads_belongs_to_read(here, verb, word):
    more = {"discrimination_rate": ("ill", "age"), "compare": (here,)}.get(verb, ())
    with pytest.raises((TypeError, InputError), match=word):
        getattr(hm, verb)(here, *more, **{word: "duckdb"})
