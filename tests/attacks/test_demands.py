"""A demand that is stated is kept: by whatever verb, source and column the attack goes around it.

Every test is an attack that once worked: somebody in a hurry, or an asker who picks what to ask,
gets people below what they demand.
"""

from __future__ import annotations

import io
import json
import re
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.cli.main import run as halfmask
from halfmask.errors import (
    HalfmaskError,
    InternalError,
    PrivacyError,
    QueryError,
    SchemaError,
)
from halfmask.query.run import Session
from halfmask.release import Candidate, Recoding, seal
from halfmask.sample import write

if TYPE_CHECKING:
    from pathlib import Path

ROWS = pa.table(
    {
        "id": [f"p{i}" for i in range(12)],
        "city": ["x"] * 6 + ["y"] * 6,
        "kwh": [*range(12)],
        "salary": [*range(100, 112)],
        "k_i": [2] * 6 + [50] * 6,
    }
)
SCHEMA: dict[str, Any] = {
    "table": {"person": "id"},
    "policy": {"k": "k_i"},
    "columns": {"city": "quasi", "kwh": "sensitive", "salary": "sensitive"},
}
MEETABLE = {**SCHEMA, "policy": {"k": "k_low"}}
LOW = ROWS.append_column("k_low", pa.array([2] * 6 + [9] * 6)).drop_columns(["k_i"])


def people(policy: dict[str, Any] | None = None, rows: pa.Table = ROWS) -> hm.Table:
    return hm.read(rows, {**SCHEMA, "policy": policy or SCHEMA["policy"]})


@dataclass(frozen=True)
class Outcome:
    exit_code: int
    stdout: str
    stderr: str


def run(*arguments: str) -> Outcome:
    out, err = io.StringIO(), io.StringIO()
    with redirect_stdout(out), redirect_stderr(err), pytest.raises(SystemExit) as stop:
        halfmask(list(arguments))
    return Outcome(int(stop.value.code or 0), out.getvalue(), err.getvalue())


@pytest.fixture(scope="module")
def sample(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write(tmp_path_factory.mktemp("sample"), 200, seed=1)


# One k for everybody, in a hurry.


def test_one_k_for_everybody_does_not_pass_over_people_who_demand_more(sample: Path) -> None:
    table = hm.read(sample)
    for method in (None, "optimal", "local", "mondrian"):
        release = hm.anonymize(table, hm.KAnonymity(2), method=method)
        assert {v.model for v in release.verdicts} >= {
            "k-anonymity", "personal k-anonymity", "personal l-diversity",
        }  # fmt: skip
        assert all(v.holds for v in release.verdicts)
        assert release.demands is not None
        assert release.demands.kept
        assert release.to_dict()["demands"] == {"kept": True}


def test_the_command_line_keeps_demands_beside_a_smaller_k(sample: Path) -> None:
    found = run("anonymize", str(sample), "--k", "2", "--json")
    assert found.exit_code == 0, found.stderr
    verdicts = {v["model"]: v for v in json.loads(found.stdout)["verdicts"]}
    assert verdicts["personal k-anonymity"]["holds"]
    assert verdicts["personal k-anonymity"]["failing_rows"] == 0


def test_a_table_with_a_policy_needs_no_model(sample: Path) -> None:
    plain, named = run("anonymize", str(sample), "--json"), hm.anonymize(hm.read(sample))
    assert plain.exit_code == 0, plain.stderr
    assert [v.model for v in named.verdicts] == [
        "personal k-anonymity", "personal l-diversity", "personal l-diversity",
    ]  # fmt: skip
    assert [v["model"] for v in json.loads(plain.stdout)["verdicts"]] == [
        v.model for v in named.verdicts
    ]


def test_without_models_and_demands_nothing_is_promised() -> None:
    table = hm.read(ROWS.select(["city", "kwh"]), {"city": "quasi", "kwh": "sensitive"})
    with pytest.raises(HalfmaskError, match="at least one model"):
        hm.anonymize(table)


def test_t_and_the_demands_of_columns_are_kept_too() -> None:
    rows = pa.table(
        {
            "age": [*range(40)],
            "ill": ["a", "b"] * 20,
            "k_i": [2] * 40,
            "t_i": [0.2] * 40,
        }
    )
    policy = {"k": "k_i", "t": "t_i", "columns": {"ill": {"k": 7, "l": 2}}}
    columns = {"age": "quasi", "ill": "sensitive"}
    release = hm.anonymize(hm.read(rows, {"policy": policy, "columns": columns}))
    found = {v.model: v for v in release.verdicts}
    assert found["personal k-anonymity"].required == 7
    assert found["personal l-diversity"].required == 2
    assert found["personal t-closeness (equal distance)"].required == pytest.approx(0.2)
    assert release.classes.smallest >= 7


def test_a_demand_nobody_can_meet_is_refused_with_a_count() -> None:
    with pytest.raises(PrivacyError, match=r"(?s)6 of 12 people.*demands='ignore'"):
        hm.anonymize(people())
    with pytest.raises(PrivacyError, match=r"(?s)6 of 12 people.*demands='ignore'"):
        hm.anonymize(people(), hm.KAnonymity(2), method="optimal")


def test_only_epsilon_is_refused_by_exact_rows_with_a_count() -> None:
    rows = LOW.append_column("e", pa.array([0.1] * 3 + [None] * 9))
    table = hm.read(rows.drop_columns(["k_low"]), {**SCHEMA, "policy": {"epsilon": "e"}})
    with pytest.raises(PrivacyError, match="3 people state an own epsilon and no k, l or t"):
        hm.anonymize(table, hm.KAnonymity(2))
    both = hm.read(rows, {**SCHEMA, "policy": {"epsilon": "e", "k": "k_low"}})
    notes = hm.anonymize(both).notes
    assert any("3 people also state an own epsilon" in note for note in notes)


# Setting demands aside is the controller's, and said first.


def test_demands_that_are_set_aside_are_said_so_first(sample: Path, tmp_path: Path) -> None:
    page, rows = tmp_path / "r.html", tmp_path / "r.csv"
    options = ("--ignore-demands", "-o", str(rows), "--report", str(page))
    found = run("anonymize", str(sample), "--k", "2", *options)
    assert found.exit_code == 0, found.stderr
    first = "The own demands of 200 people were set aside by the controller"
    assert found.stderr.startswith(first)
    text = re.sub(r"<[^>]+>", " ", page.read_text().split("<body", 1)[1].split(">", 1)[1])
    assert first in text[: text.index("may leave")]
    release = hm.anonymize(hm.read(sample), hm.KAnonymity(2), demands="ignore")
    document = release.to_dict()
    assert next(iter(document)) == "demands"
    assert document["demands"] == {"kept": False, "people": 200}
    assert document["outcome"].startswith(first)
    assert release.notes[0].startswith(first)
    assert "SET ASIDE" in repr(release)


def test_setting_aside_needs_its_very_word() -> None:
    for word in ("Ignore", True, None, "no"):
        with pytest.raises(HalfmaskError, match="'keep' or 'ignore'"):
            hm.anonymize(people(), hm.KAnonymity(2), demands=word)  # type: ignore[arg-type]


def test_ignoring_without_a_model_promises_nothing(sample: Path) -> None:
    found = run("anonymize", str(sample), "--ignore-demands")
    assert found.exit_code == 1
    assert "No promise is named" in found.stderr


# Other verbs.


def test_a_saved_recoding_keeps_the_demands_of_new_rows() -> None:
    table = hm.read(LOW, MEETABLE)
    recoding = Recoding.of(table, [{"city": 0}])
    with pytest.raises(PrivacyError):
        recoding.apply(table, hm.KAnonymity(2))
    left = recoding.apply(table, hm.KAnonymity(2), suppression=0.5)
    assert (len(left), left.suppressed) == (6, 6)
    assert not recoding.apply(table, hm.KAnonymity(2), demands="ignore").demands.kept


def test_synthetic_rows_come_from_groups_as_large_as_anybody_demands(tmp_path: Path) -> None:
    table = hm.read(write(tmp_path, 600, seed=1))  # so many that postcodes repeat
    with pytest.raises(PrivacyError, match=r"\d+ people state an own l or t"):
        hm.synthesize(table, "cocluster", k=5)
    columns = {**table.schema.columns}
    only_k = hm.Table(table.arrow, replace(table.schema, columns=columns, policy={"k": "k_i"}))
    only_k = hm.read(only_k.arrow.drop_columns(["l_i"]), only_k.schema)
    made = hm.synthesize(only_k, "cocluster", k=2, seed=0, combinations=1)
    assert made.parameters["k_obtained"] >= max(only_k.arrow["k_i"].to_pylist())
    aside = hm.synthesize(table, "cocluster", k=2, seed=0, demands="ignore", combinations=1)
    assert next(iter(aside.to_dict())) == "demands"
    assert "set aside" in aside.to_dict()["outcome"]


def test_a_frontier_holds_only_what_may_leave() -> None:
    table = hm.read(LOW, MEETABLE)
    found = hm.frontier(table, [hm.KAnonymity(2)], suppression=[0.0], methods=["optimal"])
    assert all(point.classes == 1 for point in found.points)
    options = {"suppression": [0.0], "methods": ["optimal"]}
    aside = hm.frontier(table, [hm.KAnonymity(2)], **options, demands="ignore")
    assert any(point.classes == 2 for point in aside.points)
    assert "set aside" in aside.notes[0]


def test_co_clustering_keeps_demands() -> None:
    random = np.random.default_rng(0)
    group = random.integers(0, 4, 240)
    rows = pa.table(
        {f"a{i}": (group * 3 + random.integers(0, 3, 240)).astype(str) for i in range(4)}
    ).append_column("k_i", pa.array([2] * 200 + [70] * 40))
    schema = {"policy": {"k": "k_i"}, "columns": {f"a{i}": "quasi" for i in range(4)}}
    release = hm.anonymize(hm.read(rows, schema), hm.KAnonymity(2), method="cocluster", seed=0)
    assert release.verdicts[1].model == "personal k-anonymity"
    assert release.verdicts[1].holds


# The doors see for themselves.


def test_the_door_refuses_what_a_search_forgot() -> None:
    table = hm.read(LOW, MEETABLE)
    forgot = Candidate(
        table=table,
        models=[hm.KAnonymity(2)],
        recoding=Recoding.of(table, [{"city": 0}]),
        step=np.zeros(12, dtype=np.int32),
    )
    with pytest.raises(InternalError, match=r"people's own k \(6 rows\)"):
        seal(forgot)
    assert not seal(replace(forgot, demands="ignore")).demands.kept


@pytest.mark.parametrize(
    ("policy", "broken"),
    [({"l": 3}, "l of ill"), ({"t": 0.1}, "t of ill"), ({"columns": {"ill": {"k": 4}}}, "k")],
    ids=str,
)
def test_the_door_looks_at_every_demand(policy: dict[str, Any], broken: str) -> None:
    rows = pa.table({"a": list("xxyyy"), "ill": list("uuvvw")})
    table = hm.read(rows, {"policy": policy, "columns": {"a": "quasi", "ill": "sensitive"}})
    candidate = Candidate(
        table=table,
        models=[hm.KAnonymity(2)],
        recoding=Recoding.of(table, [{"a": 0}]),
        step=np.zeros(5, dtype=np.int32),
    )
    with pytest.raises(InternalError, match=broken):
        seal(candidate)


def test_the_door_of_answers_counts_demands_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    """A planner that forgets demands is found out by what the door had counted."""
    from halfmask.query.planning import demands

    monkeypatch.setattr(demands, "join_demands", lambda plan, given, engine: plan)
    for policies in (None, {"people": {"p7": {"k": 9}}}, {"columns": {"salary": {"k": 9}}}):
        table = people({"k": "k_i"}) if policies is None else people({"k": 1})
        with pytest.raises(InternalError, match="own demand is not met"):
            hm.query(table, "SELECT city, SUM(salary) AS s FROM t GROUP BY city GUARANTEE k = 2",
                     policies)  # fmt: skip


# Queries: more policies, more columns, other tables.

COUNT = "SELECT city, COUNT(*) AS n FROM t GROUP BY city GUARANTEE k = 2"
SUM = "SELECT city, COUNT(*) AS n, SUM({}) AS s FROM t GROUP BY city GUARANTEE k = 2"


def published(table: object, sql: str, policies: object = None) -> dict[str, int]:
    answer = hm.query(table, sql, policies)
    return {row["city"]: row["n"] for row in answer.to_arrow().to_pylist()}


def test_a_policy_file_that_adds_one_column_does_not_replace_the_schemas(tmp_path: Path) -> None:
    extra = tmp_path / "extra.toml"
    extra.write_text("[columns.salary]\nk = 2\n")
    assert published(people(), SUM.format("salary")) == {"x": 6}
    assert published(people(), SUM.format("salary"), str(extra)) == {"x": 6}
    rows = tmp_path / "people.csv"
    import pyarrow.csv as csv

    csv.write_csv(ROWS, rows)
    (tmp_path / "people.toml").write_text(hm.Schema.from_dict(SCHEMA).to_toml())
    found = run("query", str(rows), SUM.format("salary"), "--policies", str(extra), "--json")
    assert [row["city"] for row in json.loads(found.stdout)["data"]] == ["x"]


def test_one_column_more_never_publishes_more() -> None:
    policies = {"columns": {"kwh": {"k": 2}}}
    assert published(people(), COUNT, policies) == {"x": 6}
    assert published(people(), SUM.format("kwh"), policies) == {"x": 6}
    alone = people({"k": 1, "columns": {"kwh": {"k": 9}}})
    assert published(alone, COUNT) == {"x": 6, "y": 6}
    assert published(alone, SUM.format("kwh")) == {}


def test_a_single_persons_lower_demand_does_not_lower_the_columns() -> None:
    lower = {"people": {f"p{i}": {"k": 2} for i in range(12)}}
    assert published(people(), COUNT, lower) == {"x": 6}
    higher = {"people": {"p0": {"k": 30}}}
    assert published(people(), COUNT, higher) == {"x": 5}


@pytest.mark.parametrize(
    "policies",
    [
        {"columns": {"Salary": {"k": 3}}},
        {"columns": {"wage": {"k": 3}}},
        {"k": "K_i"},
        {"people": {"p1": {"columns": {"SALARY": {"k": 3}}}}},
        pa.table({"person": ["p1"], "column": ["Salary"], "k": [3]}),
    ],
    ids=["case", "unknown", "column of demands", "person", "rows"],
)
def test_a_policy_that_names_an_unknown_column_is_an_error(policies: object) -> None:
    for attempt in (
        lambda: hm.query(people(), COUNT, policies),
        lambda: hm.anonymize(people(), hm.KAnonymity(2), policies=policies),
        lambda: hm.check(people(), policies=policies),
    ):
        with pytest.raises(SchemaError, match=r"which is not there: there are .*'salary'"):
            attempt()


def test_a_schema_that_names_an_unknown_column_in_its_policy_is_an_error() -> None:
    with pytest.raises(SchemaError, match=r"'Salary' is named in \[policy.columns\]"):
        people({"columns": {"Salary": {"k": 3}}})


@pytest.mark.parametrize("main", ["visits", "people"])
def test_demands_of_a_joined_table_count_whichever_comes_first(main: str) -> None:
    visits = hm.read(ROWS.select(["id", "city", "kwh"]), {"table": {"person": "id"}, "columns": {}})
    tables = {"visits": visits, "people": people()}
    other = "people" if main == "visits" else "visits"
    sql = (
        f"SELECT visits.city AS city, COUNT(*) AS n FROM {main} JOIN {other} "
        "ON visits.id = people.id GROUP BY visits.city GUARANTEE k = 2"
    )
    assert published(tables, sql) == {"x": 6}


def test_t_and_noise_that_no_answer_can_keep_leave_people_out() -> None:
    rows = LOW.append_column("t_i", pa.array([None] * 9 + [0.1, 1.0, None], pa.float64()))
    rows = rows.append_column("e", pa.array([0.1] + [None] * 11, pa.float64()))
    only_noise = rows.set_column(
        rows.column_names.index("k_low"), "k_low", pa.array([None, *[2] * 11], pa.int64())
    )
    table = hm.read(only_noise, {**SCHEMA, "policy": {"k": "k_low", "t": "t_i", "epsilon": "e"}})
    assert published(table, COUNT) == {"x": 5, "y": 5}
    assert published(table, COUNT, {"missing": "refuse"}) == {"x": 5, "y": 5}
    assert published(table, COUNT, {"missing": "level 0", "l": 1}) == {"x": 6, "y": 5}


def test_a_person_with_several_rows_demands_the_most_of_them() -> None:
    twice = pa.table(
        {
            "id": ["a", "a", "b", "c", "d"],
            "city": ["x"] * 5,
            "kwh": [1, 2, 3, 4, 5],
        }
    )
    table = hm.read(twice, {"table": {"person": "id"}, "columns": {"city": "quasi"}})
    sql = COUNT.replace("COUNT(*)", "COUNT(DISTINCT id)")
    assert published(table, sql, {"k": 2, "people": {"a": {"k": 9}}}) == {"x": 3}


# Checks name who fails, to whoever holds the table.


def test_a_check_names_who_has_less_than_they_demand(tmp_path: Path) -> None:
    table = hm.read(LOW, MEETABLE)
    (verdict,) = hm.check(table)
    assert not verdict.holds
    assert verdict.failing == tuple(sorted(f"p{i}" for i in range(6, 12)))
    assert "failing" not in verdict.to_dict()
    assert "p7" not in repr(verdict)
    unnamed = hm.read(LOW.drop_columns(["id"]), {**MEETABLE, "table": {}})
    assert hm.check(unnamed, hm.PersonalKAnonymity())[0].failing == tuple(range(6, 12))
    import pyarrow.csv as csv

    rows, names = tmp_path / "people.csv", tmp_path / "failing.csv"
    csv.write_csv(LOW, rows)
    (tmp_path / "people.toml").write_text(hm.Schema.from_dict(MEETABLE).to_toml())
    found = run("check", str(rows), "--personal-k", "--failing", str(names))
    assert found.exit_code == 2
    assert "p11" in found.stdout
    assert "p5" not in found.stdout
    assert names.stat().st_mode & 0o077 == 0
    assert len(names.read_text().splitlines()) == 7
    told = json.loads(run("check", str(rows), "--json").stdout)
    assert told["verdicts"][0]["failing"] == [f"p{i}" for i in (10, 11, 6, 7, 8, 9)]


def test_a_release_never_names_who_fails() -> None:
    release = hm.anonymize(hm.read(LOW, MEETABLE), hm.KAnonymity(2), demands="ignore")
    assert all(verdict.failing == () for verdict in release.verdicts)
    assert "failing_rows" in json.dumps(release.to_dict())
    assert not re.search(r"\bp\d+\b", json.dumps(release.to_dict()))


def test_a_check_of_named_models_looks_at_demands_too(tmp_path: Path) -> None:
    table = hm.read(LOW, MEETABLE)
    named, own = hm.check(table, hm.KAnonymity(2))
    assert (named.holds, own.model, own.holds) == (True, "personal k-anonymity", False)
    assert len(own.failing) == 6
    assert [v.holds for v in hm.check(table, hm.KAnonymity(2), demands="ignore")] == [True]
    import pyarrow.csv as csv

    rows = tmp_path / "people.csv"
    csv.write_csv(LOW, rows)
    (tmp_path / "people.toml").write_text(hm.Schema.from_dict(MEETABLE).to_toml())
    for more in ((), ("--engine", "duckdb")):
        found = run("check", str(rows), "--k", "2", *more)
        assert found.exit_code == 2
        assert "k-anonymity" in found.stdout
        assert "p11" in found.stdout
        told = run("check", str(rows), "--k", "2", "--json", *more)
        assert told.exit_code == 2
        document = json.loads(told.stdout)
        assert (document["holds"], document["demands"]) == (False, {"checked": True})
        assert [v["holds"] for v in document["verdicts"]] == [True, False]
        aside = run("check", str(rows), "--k", "2", "--ignore-demands", *more)
        assert aside.exit_code == 0
        assert "set aside" in aside.stderr


def test_a_check_says_that_rows_cannot_keep_noise() -> None:
    rows = LOW.append_column("e", pa.array([None] * 11 + [0.5], pa.float64()))
    alone = {**SCHEMA, "policy": {"epsilon": "e"}}
    (verdict,) = hm.check(hm.read(rows, alone))
    assert (verdict.model, verdict.holds, verdict.failing) == ("personal epsilon", False, ("p11",))
    both = {**SCHEMA, "policy": {"epsilon": "e", "k": "k_low"}}
    assert [v.model for v in hm.check(hm.read(rows, both))] == ["personal k-anonymity"]


@pytest.mark.parametrize("verb", ["anonymize", "check", "frontier"])
def test_demands_are_not_kept_and_set_aside_at_once(verb: str, tmp_path: Path) -> None:
    table = hm.read(LOW, MEETABLE)
    with pytest.raises(HalfmaskError, match="ask for one of the two"):
        getattr(hm, verb)(table, hm.PersonalKAnonymity(), demands="ignore")
    if verb == "frontier":
        return
    import pyarrow.csv as csv

    csv.write_csv(LOW, tmp_path / "people.csv")
    (tmp_path / "people.toml").write_text(hm.Schema.from_dict(MEETABLE).to_toml())
    found = run(verb, str(tmp_path / "people.csv"), "--personal-k", "--ignore-demands")
    assert found.exit_code == 1
    assert "ask for one of the two" in found.stderr


@pytest.mark.parametrize("verb", ["anonymize", "check", "frontier"])
def test_a_promise_given_as_a_keyword_says_what_to_write(verb: str) -> None:
    with pytest.raises(HalfmaskError, match=rf"write hm.{verb}\(table, hm.KAnonymity\(5\)\)"):
        getattr(hm, verb)(hm.read(LOW, MEETABLE), k=2)


# What stands empty is no demand of that kind, whoever reads it.

EMPTY = pa.table(
    {
        "id": [f"p{i}" for i in range(12)],
        "city": ["x"] * 6 + ["y"] * 6,
        "kwh": [*range(12)],
        "k_i": pa.array([6, None, None, None, None, None, 9, None, None, 2, 2, 2], pa.int64()),
        "l_i": pa.array([None, 2, None, None, None, None, None, None, 3, 3, None, None]),
        "t_i": pa.array([None] * 12, pa.float64()),
    }
)
EMPTY_SCHEMA: dict[str, Any] = {
    "table": {"person": "id"},
    "policy": {"k": "k_i", "l": "l_i", "t": "t_i"},
    "columns": {"city": "quasi", "kwh": "sensitive"},
}
ASKED = "SELECT city, COUNT(DISTINCT id) AS n, AVG(kwh) AS a FROM people GROUP BY city "


def emptied(way: str) -> tuple[hm.Table, object]:
    """The same demands, stated in the schema, as an argument, or as rows keyed by person."""
    if way == "schema":
        return hm.read(EMPTY, EMPTY_SCHEMA), None
    if way == "argument":
        bare = {**EMPTY_SCHEMA, "policy": {}}
        return hm.read(EMPTY, bare), EMPTY_SCHEMA["policy"]
    rows = EMPTY.select(["id", "k_i", "l_i", "t_i"]).rename_columns(["person", "k", "l", "t"])
    bare = {**EMPTY_SCHEMA, "policy": {}}
    return hm.read(EMPTY.drop_columns(["k_i", "l_i", "t_i"]), bare), rows


@pytest.mark.parametrize("way", ["schema", "argument", "people"])
def test_an_empty_demand_means_the_same_to_every_verb(way: str) -> None:
    table, more = emptied(way)
    found = hm.check(table, policies=more)
    named = {verdict.model: verdict.failing for verdict in found}
    assert named == {"personal k-anonymity": ("p6",), "personal l-diversity": ()}
    # p6 demands 9 of 6 people in y: only one group of all twelve keeps everybody.
    for method in ("optimal", "personal", "mondrian", "k-member", "mdav"):
        release = hm.anonymize(table, policies=more, method=method)
        sizes = {c: release.to_arrow()["city"].to_pylist().count(c) for c in ("x", "y")}
        out = release.to_arrow().to_pylist()
        group = {row["kwh"]: [r for r in out if r["city"] == row["city"]] for row in out}
        assert len(out) == 12, sizes
        assert len(group[6]) >= 9
        assert len(group[0]) >= 6
        assert len({r["kwh"] for r in group[8]}) >= 3
    with_models = [hm.PersonalKAnonymity(), hm.PersonalLDiversity("kwh")]
    assert len(hm.anonymize(table, *with_models, policies=more, method="optimal")) == 12
    frontier = hm.frontier(table, hm.KAnonymity(2), policies=more)
    assert frontier.points
    for engine in ("duckdb", "reference"):
        text = ASKED + "GUARANTEE k = 6, l = 3"
        answer = hm.query(table, text, policies=more, engine=engine)
        rows = {r["city"]: r["n"] for r in answer.to_arrow().to_pylist()}
        # In y p6 asks for 9; the five others are fewer than 6 people.
        assert rows == {"x": 6}
        refused = {"missing": "refuse"} if way != "people" else None
        if refused is not None:
            silent = hm.query(
                table, text.replace("k = 6", "k = 3"), {**refused, **(more or {})}, engine
            )
            assert silent.to_arrow()["n"].to_pylist() == [4]  # p8, p9, p10 and p11 state something


def test_an_empty_demand_is_the_floor_of_the_controller_and_never_less() -> None:
    nobody = EMPTY.set_column(3, "k_i", pa.array([None] * 12, pa.int64()))
    nobody = nobody.set_column(4, "l_i", pa.array([None] * 12, pa.int64()))
    schema = {**EMPTY_SCHEMA, "query": {"k": 7}}
    table = hm.read(nobody, schema)
    assert len(hm.query(table, ASKED + "GUARANTEE k = 2")) == 0
    assert len(hm.query(table, ASKED + "GUARANTEE k = 2, l = 1", {"k": "k_i"})) == 0
    general = {**EMPTY_SCHEMA, "policy": {"k": "k_i", "columns": {"kwh": {"k": 7}}}}
    assert len(hm.query(hm.read(nobody, general), ASKED + "GUARANTEE k = 3")) == 0
    assert len(hm.query(hm.read(nobody, EMPTY_SCHEMA), ASKED + "GUARANTEE k = 3")) == 2


def test_missing_refuse_is_kept_by_releases_with_a_count() -> None:
    table = hm.read(EMPTY, EMPTY_SCHEMA)
    for attempt in (
        lambda: hm.anonymize(table, policies={"missing": "refuse"}),
        lambda: hm.frontier(table, hm.KAnonymity(2), policies={"missing": "refuse"}),
    ):
        with pytest.raises(PrivacyError, match="5 people state no demand at all"):
            attempt()


def test_one_row_of_a_person_speaks_for_all_of_them() -> None:
    rows = pa.table(
        {
            "id": ["a", "a", "b", "c", "d", "e"],
            "city": ["x", "y", "x", "x", "y", "y"],
            "kwh": [1, 2, 3, 4, 5, 6],
            "k_i": pa.array([None, 4, 2, None, None, None], pa.int64()),
        }
    )
    schema = {**EMPTY_SCHEMA, "policy": {"k": "k_i"}}
    table = hm.read(rows, schema)
    assert hm.check(table)[0].failing == ("a",)
    assert set(hm.anonymize(table, method="optimal").to_arrow()["city"].to_pylist()) == {"*"}
    assert len(hm.query(table, ASKED + "GUARANTEE k = 3")) == 0  # without a, two people a city


# All sources at random, against an oracle of plain loops.

DEMAND = st.one_of(st.none(), st.integers(1, 6))
ENTRY = st.dictionaries(st.sampled_from(["k", "l"]), st.integers(1, 4), max_size=2)


@st.composite
def sources(draw: st.DrawFn) -> dict[str, Any]:
    """Policies as an argument: numbers for all, for columns, for single people."""
    one: dict[str, Any] = dict(draw(ENTRY))
    columns = draw(st.dictionaries(st.sampled_from(["pay", "ill"]), ENTRY, max_size=2))
    single = st.dictionaries(st.sampled_from(["k", "l"]), st.integers(1, 6), max_size=2)
    who = draw(st.dictionaries(st.sampled_from([f"p{i}" for i in range(8)]), single, max_size=3))
    one["columns"] = columns
    one["people"] = {
        person: {**entry, "columns": draw(st.dictionaries(st.just("pay"), single, max_size=1))}
        for person, entry in who.items()
    }
    return one


@st.composite
def worlds(draw: st.DrawFn) -> tuple[hm.Table, list[dict[str, Any]]]:
    n = draw(st.integers(8, 14))
    column = st.lists(DEMAND, min_size=n, max_size=n)
    rows = pa.table(
        {
            "id": [f"p{i}" for i in range(n)],
            "tag": [f"t{i}" for i in range(n)],
            "town": draw(st.lists(st.sampled_from("ab"), min_size=n, max_size=n)),
            "pay": draw(st.lists(st.integers(0, 5), min_size=n, max_size=n)),
            "ill": draw(st.lists(st.sampled_from("uvw"), min_size=n, max_size=n)),
            "k_i": pa.array(draw(column), pa.int64()),
            "k_pay": pa.array(draw(column), pa.int64()),
        }
    )
    policy = {"k": "k_i", "columns": {"pay": {"k": "k_pay"}, "ill": draw(ENTRY)}}
    columns = {"town": "quasi", "pay": "sensitive", "ill": "sensitive", "tag": "other"}
    table = hm.read(rows, {"table": {"person": "id"}, "policy": policy, "columns": columns})
    return table, draw(st.lists(sources(), max_size=2))


def oracle(
    row: dict[str, Any], given: list[dict[str, Any]], ill: dict[str, int], shown: set[str]
) -> dict[str, int]:
    """What a row's person demands where ``shown`` is: the strictest of everything that holds."""
    said: list[dict[str, Any]] = [{"k": row["k_i"]}]
    said += [{"k": row["k_pay"]}] if "pay" in shown else []
    said += [ill] if "ill" in shown else []
    for one in given:
        own = one["people"].get(row["id"], {})
        said += [one, own]
        for name in shown:
            said += [one["columns"].get(name, {}), own.get("columns", {}).get(name, {})]
    return {
        demand: max([entry[demand] for entry in said if entry.get(demand)], default=0)
        for demand in ("k", "l")
    }


def with_all(table: hm.Table, given: list[dict[str, Any]]) -> hm.Table:
    from halfmask.table.demands import with_policies

    for one in given:
        table = with_policies(table, one)
    return table


@settings(max_examples=examples(25), deadline=None)
@given(worlds())
def test_every_published_person_has_the_strictest_of_all_sources(
    world: tuple[hm.Table, list[dict[str, Any]]],
) -> None:
    table, given_ = world
    ill = dict(table.schema.policy_columns["ill"])
    full = with_all(table, given_)
    try:
        release = hm.anonymize(full, hm.KAnonymity(2), method="optimal", suppression=0.5)
    except PrivacyError:
        return
    rows = {row["tag"]: row for row in table.arrow.to_pylist()}
    kept = release.to_arrow().to_pylist()
    for out in kept:
        row, peers = rows[out["tag"]], [r for r in kept if r["town"] == out["town"]]
        assert len(peers) >= oracle(row, given_, ill, {"pay", "ill"})["k"]
        for name in ("pay", "ill"):
            wanted = oracle(row, given_, ill, {name})["l"]
            assert len({r[name] for r in peers}) >= wanted


@settings(max_examples=examples(25), deadline=None)
@given(worlds(), sources(), st.sampled_from(["pay", "ill"]))
def test_one_source_or_one_column_more_never_asks_less(
    world: tuple[hm.Table, list[dict[str, Any]]], more: dict[str, Any], column: str
) -> None:
    from halfmask.table.demands import resolve_demand

    table, given_ = world
    ill = dict(table.schema.policy_columns["ill"])
    before, after = with_all(table, given_), with_all(table, [*given_, more])
    for demand in ("k", "l"):
        few = np.nan_to_num(resolve_demand(before, demand, []))
        assert (np.nan_to_num(resolve_demand(before, demand, [column])) >= few).all()
        both = np.nan_to_num(resolve_demand(before, demand, ["pay", "ill"]))
        assert (both >= np.nan_to_num(resolve_demand(before, demand, [column]))).all()
        assert (np.nan_to_num(resolve_demand(after, demand, ["pay", "ill"])) >= both).all()
        plain = [oracle(r, given_, ill, {"pay", "ill"})[demand] for r in table.arrow.to_pylist()]
        assert both.tolist() == plain


@settings(max_examples=examples(15), deadline=None)
@given(worlds(), st.sampled_from([(), ("pay",), ("ill",), ("pay", "ill")]))
def test_answers_take_in_whom_the_oracle_lets_in(
    world: tuple[hm.Table, list[dict[str, Any]]], asked: tuple[str, ...]
) -> None:
    table, given_ = world
    ill = dict(table.schema.policy_columns["ill"])
    policies = given_[0] if given_ else None
    figures = {"pay": "SUM(pay) AS a", "ill": "COUNT(DISTINCT ill) AS b"}
    select = ", ".join(["town", "COUNT(*) AS n", *(figures[name] for name in asked)])
    promise = "k = 3, l = 2" if asked else "k = 3"
    sql = f"SELECT {select} FROM t GROUP BY town GUARANTEE {promise}"
    with Session(table) as session:
        work = session.prepare(sql, policies)
        touched = set(work.plan.queried)
        answer = session.answer(work)
    rows = table.arrow.to_pylist()
    used = given_[:1]
    for row in answer.to_arrow().to_pylist():
        inside = [r for r in rows if r["town"] == row["town"]]
        wanted = [oracle(r, used, ill, touched) for r in inside]
        fits = [w for w in wanted if w["k"] <= 3 and w["l"] <= (2 if asked else 1)]
        assert row["n"] == len(fits) >= 3


def test_a_demand_that_stands_in_a_table_that_is_not_asked_is_not_lost() -> None:
    rows = {"id": list(range(20)), "city": ["a"] * 20, "own": [2] * 19 + [10**6]}
    people = hm.read(
        rows,
        schema={"table": {"person": "id"}, "policy": {"k": "own"}, "columns": {"city": "quasi"}},
    )
    visits = hm.read(
        {"id": list(range(20)), "cost": [float(i) for i in range(20)]},
        schema={"table": {"person": "id"}, "columns": {"cost": "sensitive"}},
    )
    tables = {"people": people, "visits": visits}
    with pytest.raises(QueryError, match="stands in people: join it on the person"):
        hm.query(tables, "SELECT MAX(cost) AS m FROM visits GUARANTEE k = 3")
    joined = "SELECT MAX(cost) AS m FROM visits JOIN people USING (id) GUARANTEE k = 3"
    assert hm.query(tables, joined).to_arrow()["m"].to_pylist() == [18.0]


def test_nearly_exact_noise_does_not_stand_for_k() -> None:
    people = hm.read(
        {"age": [30] * 19 + [44], "own": [2] * 19 + [10**6]},
        schema={"policy": {"k": "own"}, "columns": {"age": "quasi"}},
    )
    sql = "SELECT COUNT(*) AS n FROM people WHERE age = 44 WITH EPSILON {}"
    with pytest.raises(PrivacyError, match="up to epsilon 1"):
        hm.query(people, sql.format(20))
    assert len(hm.query(people, sql.format(1)).to_arrow()) == 1
    with pytest.raises(PrivacyError, match="up to epsilon 1"):
        hm.synthesize(people, epsilon=3, domains={"age": {"low": 0, "high": 100, "bins": 4}})


def test_people_of_policies_are_known_as_they_are_written(tmp_path: Path) -> None:
    (tmp_path / "policies.csv").write_text("person,k\n007,30\n")
    rows = "".join(f"{i:03d},{20 + i % 10}\n" for i in range(40))
    (tmp_path / "table.csv").write_text("id,age\n" + rows)
    schema = {"table": {"person": "id"}, "columns": {"age": {"role": "quasi", "kind": "numeric"}}}
    table = hm.read(tmp_path / "table.csv", schema=schema)
    release = hm.anonymize(table, hm.KAnonymity(2), policies=tmp_path / "policies.csv")
    assert "personal k-anonymity" in [verdict.model for verdict in release.verdicts]
    with pytest.raises(SchemaError, match="1 person"):
        hm.anonymize(table, hm.KAnonymity(2), policies={"people": {"7": {"k": 30}}})
    found = hm.check(table, hm.KAnonymity(2), policies={"people": {"007": {"k": 30}}})
    assert [verdict.holds for verdict in found] == [True, False]


@pytest.mark.parametrize("engine", [None, "reference"])
@pytest.mark.parametrize(
    "ids", [pa.array([float(i) for i in range(60)]), pa.array(range(60), pa.timestamp("us"))]
)
def test_keys_that_engines_write_in_other_ways_lose_nobodys_demand(ids, engine):
    """The text of 3.0 is "3" here and "3.0" there: a demand keyed by it would be lost."""
    rows = pa.table({"id": ids, "salary": range(60)})
    schema = {"table": {"person": "id"}, "columns": {"id": "identifier", "salary": "sensitive"}}
    demands = {"people": {str(key): {"k": 1000} for key in ids.to_pylist()}}
    with pytest.raises(SchemaError, match="keyed by person"):
        hm.query(
            rows,
            "SELECT SUM(salary) AS s FROM t WHERE salary < 5 GUARANTEE k = 3",
            schema=schema,
            policies=demands,
            engine=engine,
        )
