"""The main job over HTTP: the same documents as the verbs, the same pages, the same errors."""

from __future__ import annotations

import io
import json
import tomllib

import pyarrow.csv as pc
import pyarrow.parquet as pq
import pytest
from serving import CANARY, PEOPLE

import halfmask as hm
from halfmask.report.page import render_page
from halfmask.report.words import next_steps


def fetch(service, file, *, download=False):
    asked = {"file": file, "download": download}
    url = service.call("POST", "/api/links", json=asked).json()["url"]
    return service.client.get(url)


@pytest.fixture
def original(tmp_path):
    path = tmp_path / "original.csv"
    path.write_text(PEOPLE)
    schema = {
        "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}},
        "city": {"role": "quasi"},
        "disease": {"role": "sensitive"},
    }
    return hm.read(path, schema)


def test_an_opened_table_is_described(service):
    found = service.upload(PEOPLE)
    assert (found["ok"], found["verb"], found["rows"]) == (True, "describe", 8)
    assert [column["name"] for column in found["columns"]] == ["age", "city", "disease"]
    assert found["proposed"] is True
    assert found["name"] == "people.csv"
    assert service.call("GET", "/api/schema").json() == found
    state = service.call("GET", "/api/state").json()
    assert state["table"] == {
        "name": "people.csv",
        "rows": 8,
        "columns": ["age", "city", "disease"],
    }


def test_parquet_is_opened_too(service, original):
    out = io.BytesIO()
    pq.write_table(original.arrow, out)
    assert service.upload(out.getvalue(), "people.parquet")["rows"] == 8


def test_a_sheet_is_chosen_by_name(service, tmp_path):
    import sqlite3

    path = tmp_path / "p.sqlite"
    with sqlite3.connect(path) as held:
        for name in ("people", "codes"):
            held.execute(f"CREATE TABLE {name} (age INTEGER, {name}_town TEXT)")
            held.executemany(f"INSERT INTO {name} VALUES (?, ?)", [(30, "a"), (31, "b")] * 4)  # noqa: S608
    held.close()
    sent = {"params": {"name": "p.sqlite"}, "content": path.read_bytes()}
    failed = service.run("POST", "/api/table", **sent)
    assert "'people'" in failed["message"]
    found = service.run(
        "POST",
        "/api/table",
        **(sent | {"params": {"name": "p.sqlite", "table": "codes"}}),
    )
    assert [column["name"] for column in found["columns"]] == ["age", "codes_town"]
    asked = {"columns": {"age": {"role": "quasi"}, "codes_town": {"role": "sensitive"}}}
    assert service.run("PUT", "/api/schema", json=asked)["ok"]
    assert service.run("POST", "/api/assess", json={})["rows"] == 8


def test_the_page_lets_every_kind_of_file_be_chosen(service):
    page = service.call("GET", "/").text
    for ending in (".csv", ".zst", ".xz", ".zip", ".xlsx", ".dta", ".sav", ".sas7bdat", ".sqlite"):
        assert page.count(ending) == 2  # of a table and of a population


def test_how_a_text_is_written_can_be_said(service):
    text = "name;weight\nM\xfcller;3,5\nMeyer;4,25\n".encode("latin-1")
    said = {"name": "x.csv", "delimiter": ";", "encoding": "latin-1", "decimal": ","}
    found = service.run("POST", "/api/table", params=said, content=text)
    assert [column["kind"] for column in found["columns"]] == ["nominal", "numeric"]
    assert found["schema"]["table"]["decimal"] == ","
    columns = {"columns": {"weight": {"role": "quasi"}}, "table": found["schema"]["table"]}
    assert service.run("PUT", "/api/schema", json=columns)["ok"]
    for wrong in ({"delimiter": "xx"}, {"encoding": "klingon"}, {"decimal": "x"}):
        asked = {"name": "x.csv", **wrong}
        failed = service.run("POST", "/api/table", params=asked, content=text)
        assert failed["code"].startswith("input")


def test_the_sample_comes_with_its_schema(service):
    found = service.run("POST", "/api/sample", json={"rows": 50})
    assert found["rows"] == 50
    assert found["proposed"] is False
    assert found["schema"]["policy"] == {"k": "k_i", "l": "l_i"}
    assert service.call("POST", "/api/sample", json={"rows": 1}).status_code == 400


def test_roles_change_and_the_schema_is_saved(opened):
    found = opened.call("GET", "/api/schema").json()
    assert found["proposed"] is False
    assert found["schema"]["columns"]["age"]["hierarchy"] == {"intervals": [5, 10]}
    reply = fetch(opened, "schema.toml", download=True)
    assert "attachment" in reply.headers["content-disposition"]
    assert tomllib.loads(reply.text)["columns"]["disease"] == {"role": "sensitive"}
    again = opened.run("PUT", "/api/schema", json={"toml": reply.text})
    assert again["schema"] == found["schema"]


def test_a_proposal_is_saved_with_its_reasons(service):
    service.upload(PEOPLE)
    assert fetch(service, "schema.toml").text.startswith("# Proposed by halfmask describe")


def test_a_schema_that_does_not_fit_changes_nothing(opened):
    before = opened.call("GET", "/api/schema").json()
    failed = opened.run("PUT", "/api/schema", json={"columns": {"gone": {"role": "quasi"}}})
    assert (failed["ok"], failed["code"]) == (False, "input.schema")
    assert "gone" in failed["message"]
    assert opened.call("GET", "/api/schema").json() == before
    failed = opened.run("PUT", "/api/schema", json={"toml": "columns = ["})
    assert failed["code"] == "input.schema"


def test_assess_gives_what_the_verb_gives(opened, original):
    found = opened.run("POST", "/api/assess", json={})
    expected = json.loads(json.dumps(hm.assess(original).to_dict()))
    steps = next_steps(expected)
    assert steps
    assert found == {"ok": True, "verb": "assess", **expected, "steps": steps}
    assert opened.call("GET", "/api/results/assess").json() == found
    page = fetch(opened, "assessment.html")
    assert page.text == render_page(expected)
    assert "sandbox allow-scripts" in page.headers["content-security-policy"]


def test_a_release_is_checked_downloaded_and_compared(opened, original):
    asked = {"k": 2, "l": ["disease=2"], "t": ["disease=0.5"]}
    found = opened.run("POST", "/api/anonymize", json=asked)
    models = (hm.KAnonymity(2), hm.LDiversity(2, "disease"), hm.TCloseness(0.5, "disease"))
    expected = hm.anonymize(original, *models)
    assert found["verdicts"] == json.loads(json.dumps(expected.to_dict()))["verdicts"]
    assert found["loss"] == expected.loss
    assert found["levels"] == expected.levels
    assert fetch(opened, "release.html").text.startswith("<!doctype html>")
    rows = pq.read_table(io.BytesIO(fetch(opened, "release.parquet", download=True).content))
    text = pc.read_csv(io.BytesIO(fetch(opened, "release.csv", download=True).content))
    assert rows.num_rows == text.num_rows == 8
    assert rows.column_names == text.column_names == ["age", "city", "disease"]
    compared = opened.run("POST", "/api/compare", json={"learn": False})
    assert (compared["verb"], compared["rows_released"]) == ("compare", 8)
    assert fetch(opened, "comparison.html").text == render_page(
        {name: value for name, value in compared.items() if name not in ("ok", "verb")}
    )


def test_all_models_of_the_command_line_are_taken(opened):
    asked = {
        "k": 2, "alpha": ["disease=0.9"], "l": ["disease=1.5:entropy"],
        "t": ["disease=0.9:equal"], "delta_disclosure": ["disease=9:ignored"],
        "beta": ["disease=9:enhanced"], "average_risk": 0.5, "sample_uniques": 0.5,
    }  # fmt: skip
    found = opened.run("POST", "/api/anonymize", json=asked)
    assert found["ok"], found
    assert len(found["verdicts"]) == len(asked)
    assert all(one["holds"] for one in found["verdicts"])


def test_settings_reach_the_method(opened):
    asked = {"k": 2, "method": "mondrian", "cut": "whole", "labels": "levels", "seed": 3}
    assert opened.run("POST", "/api/anonymize", json=asked)["method"] == "mondrian"
    failed = opened.run(
        "POST", "/api/anonymize", json={"k": 2, "method": "optimal", "cut": "whole"}
    )
    assert failed["code"] == "input.parameter"


def test_several_settings_are_tried(opened, original):
    asked = {"k": "2,4", "suppression": "0", "l": ["disease=2"]}
    found = opened.run("POST", "/api/frontier", json=asked)
    several = ([hm.KAnonymity(2), hm.KAnonymity(4)], hm.LDiversity(2, "disease"))
    expected = json.loads(json.dumps(hm.frontier(original, *several, suppression=[0.0]).to_dict()))
    assert found == {"ok": True, "verb": "frontier", **expected}
    assert fetch(opened, "frontier.html").status_code == 200


POPULATION = PEOPLE + "\n" + "\n".join(PEOPLE.splitlines()[1:])


def test_a_population_is_sent_and_promised_against(opened):
    failed = opened.run("POST", "/api/anonymize", json={"k_map": 2})
    assert "population" in failed["message"]
    content = POPULATION.encode()
    found = opened.run("POST", "/api/population?name=all.csv", content=content)
    assert (found["name"], found["rows"]) == ("all.csv", 16)
    state = opened.call("GET", "/api/state").json()
    assert state["population"] == {"name": "all.csv", "rows": 16}
    found = opened.run("POST", "/api/anonymize", json={"k_map": 2, "delta_presence": "0,0.5"})
    assert [one["holds"] for one in found["verdicts"]] == [True, True]
    assert found["loss"] == 0  # everybody is twice in the population as they are
    assert opened.run("POST", "/api/frontier", json={"k_map": "2,4", "suppression": "0"})["ok"]
    assert opened.run("POST", "/api/assess", json={})["ok"]
    files = len(list(opened.space.folder.iterdir()))
    assert opened.run("POST", "/api/population?name=all.csv", content=content)["ok"]
    assert len(list(opened.space.folder.iterdir())) == files
    opened.upload(PEOPLE, "other.csv")
    assert opened.call("GET", "/api/state").json()["population"] is None
    assert len(list(opened.space.folder.iterdir())) == 1


def test_a_population_that_cannot_be_read_leaves_the_former(opened):
    content = POPULATION.encode()
    opened.run("POST", "/api/population?name=all.csv", content=content)
    failed = opened.run("POST", "/api/population?name=x.csv", content=b"PK\x03\x04")
    assert failed["code"] == "input"
    assert str(opened.space.folder) not in failed["message"]
    assert opened.call("GET", "/api/state").json()["population"]["name"] == "all.csv"
    assert opened.call("POST", "/api/population", content=b"").status_code == 400


def test_each_persons_own_k_comes_from_the_policy(service):
    service.run("POST", "/api/sample", json={"rows": 60})
    found = service.run("POST", "/api/anonymize", json={"personal_k": True})
    own = ["personal k-anonymity", "personal l-diversity", "personal l-diversity"]
    assert [one["model"] for one in found["verdicts"]] == own
    assert all(one["holds"] for one in found["verdicts"])
    found = service.run("POST", "/api/anonymize", json={})
    assert [one["model"] for one in found["verdicts"]] == own
    assert found["demands"] == {"kept": True}


def test_demands_are_set_aside_only_where_the_request_says_so(service):
    service.run("POST", "/api/sample", json={"rows": 60})
    aside = {"k": 2, "demands": "ignore"}
    found = service.run("POST", "/api/anonymize", json=aside)
    assert found["demands"] == {"kept": False, "people": 60}
    assert found["outcome"].startswith("The own demands of 60 people were set aside")
    refused = service.run("POST", "/api/synthesize", json={"k": 5})
    assert "people state an own l or t" in refused["message"]
    assert not service.run("POST", "/api/anonymize", json={"demands": "ignore"})["ok"]


def test_a_promise_that_cannot_be_kept_is_told_as_it_is(opened):
    failed = opened.run("POST", "/api/anonymize", json={"k": 9})
    assert failed["ok"] is False
    assert failed["code"] == "privacy.unsatisfiable"
    assert failed["details"]["advice"]
    assert opened.call("GET", "/api/results/anonymize").status_code == 404
    asked = {"file": "release.csv"}
    assert opened.call("POST", "/api/links", json=asked).status_code == 404


def test_a_release_does_not_outlast_the_failure_of_the_next(opened):
    opened.run("POST", "/api/anonymize", json={"k": 2})
    url = opened.call("POST", "/api/links", json={"file": "release.csv"}).json()["url"]
    assert opened.client.get(url).status_code == 200
    assert not opened.run("POST", "/api/anonymize", json={"k": 9})["ok"]
    assert opened.client.get(url).status_code == 404
    assert opened.call("GET", "/api/state").json()["results"] == []


def test_no_promise_is_no_release(opened):
    failed = opened.run("POST", "/api/anonymize", json={})
    assert failed["code"] == "input"
    assert "No promise" in failed["message"]


SQL = "SELECT city, COUNT(*) AS people FROM people GROUP BY city GUARANTEE k = 2, l = 1"


def test_a_query_is_answered_with_its_levels(opened, original):
    found = opened.run("POST", "/api/query", json={"sql": SQL})
    assert found["data"] == hm.query(original, SQL).to_arrow().to_pylist()
    assert found["answer"]["levels"][0]["rows"] == 2
    assert found["coverage"][0] == f"2 rows; {found['answer']['people']} people could be published."
    assert any(line.startswith("Withheld, ") for line in found["coverage"])
    assert "Answer to a query" in fetch(opened, "answer.html").text
    assert fetch(opened, "answer.csv", download=True).text.startswith('"city","people"')


@pytest.mark.parametrize(
    "table", ["'/etc/passwd'", "read_csv('/etc/passwd')", "people, read_text('/etc/passwd')"]
)
def test_a_query_reaches_no_file(opened, table):
    found = opened.run(
        "POST", "/api/query", json={"sql": SQL.replace("FROM people", f"FROM {table}")}
    )
    assert not found["ok"] or [row["people"] for row in found["data"]] == [4, 4]
    assert "root" not in json.dumps(found)


def test_a_fault_in_a_query_points_at_its_place(opened):
    failed = opened.run("POST", "/api/query", json={"sql": "SELECT nowhere FROM people"})
    assert failed["code"].startswith("input.query")
    assert "line 1" in failed["message"]


def test_rows_are_synthesized_under_a_budget(opened):
    asked = {
        "epsilon": "1",
        "domains": {
            "age": {"low": 0, "high": 100, "bins": 4},
            "city": ["Bourges", "Orleans"],
            "disease": ["flu", "gout"],
        },
    }
    refused = opened.run("POST", "/api/synthesize", json=asked)
    assert refused["code"] == "privacy.ledger"
    assert opened.call("PUT", "/api/budget", json={"epsilon": "1.5"}).json()["ok"]
    found = opened.run("POST", "/api/synthesize", json=asked)
    assert found["format"] == "halfmask.private/1", found
    assert fetch(opened, "synthetic.csv", download=True).status_code == 200
    assert "attacker" in fetch(opened, "synthetic.html").text


def test_rows_are_drawn_given_what_a_form_says(opened):
    asked = {
        "epsilon": "1",
        "rows": 30,
        "given": ["city=Orleans", "age>=50"],
        "domains": {
            "age": {"low": 0, "high": 100, "bins": 4},
            "city": ["Bourges", "Orleans"],
            "disease": ["flu", "gout"],
        },
    }
    assert opened.call("PUT", "/api/budget", json={"epsilon": "1"}).json()["ok"]
    wrong = opened.run("POST", "/api/synthesize", json={**asked, "given": ["Orleans"]})
    assert wrong["code"].startswith("input.parameter"), wrong
    found = opened.run("POST", "/api/synthesize", json=asked)
    assert found["format"] == "halfmask.private/1", found
    rows = fetch(opened, "synthetic.csv", download=True).text.replace('"', "").splitlines()
    place = rows[0].split(",").index("city")
    assert len(rows) == 31
    assert {row.split(",")[place] for row in rows[1:]} == {"Orleans"}


def test_without_domains_the_reason_is_told(opened):
    opened.call("PUT", "/api/budget", json={"epsilon": "1"})
    failed = opened.run("POST", "/api/synthesize", json={"epsilon": "1"})
    assert failed["code"] == "input.schema"
    assert opened.call("GET", "/api/budget").json()["budget"]["spent"] == "epsilon = 0"


def test_another_schema_drops_what_was_made_and_its_addresses(opened):
    opened.run("POST", "/api/assess", json={})
    asked = {"file": "assessment.html"}
    url = opened.call("POST", "/api/links", json=asked).json()["url"]
    assert opened.call("POST", "/api/links", json=asked).json()["url"] == url
    assert opened.client.get(url).status_code == 200
    opened.run("PUT", "/api/schema", json={"columns": {"age": {"role": "quasi"}}})
    assert opened.client.get(url).status_code == 404
    assert opened.call("GET", "/api/state").json()["results"] == []


def test_a_new_release_drops_the_comparison_of_the_former(opened):
    opened.run("POST", "/api/anonymize", json={"k": 2})
    opened.run("POST", "/api/compare", json={"learn": False})
    opened.run("POST", "/api/anonymize", json={"k": 3})
    assert opened.call("GET", "/api/state").json()["results"] == ["anonymize"]


@pytest.mark.parametrize(
    "path", ["assess", "anonymize", "mask", "frontier", "compare", "query", "synthesize"]
)
def test_without_a_table_every_step_says_so(service, path):
    body = {"sql": SQL} if path == "query" else {}
    reply = service.call("POST", f"/api/{path}", json=body)
    assert reply.status_code == 404
    assert reply.json()["code"] == "service.missing"
    assert "choose a file" in reply.json()["message"]


def test_steps_mask_the_table_and_promises_are_checked(opened):
    steps = ["round age base=10", "local-suppression k=2"]
    found = opened.run("POST", "/api/mask", json={"steps": steps, "k": 2})
    assert found["format"] == "halfmask.masked/1", found
    assert [one["mask"] for one in found["steps"]] == ["round", "local-suppression"]
    assert found["risk"]["smallest"] >= 2
    assert fetch(opened, "masked.csv", download=True).status_code == 200
    assert "[release]" in fetch(opened, "masked.toml", download=True).text
    assert "smallest class, people" in fetch(opened, "masked.html").text
    broken = opened.run("POST", "/api/mask", json={"steps": ["round age base=1"], "k": 50})
    assert broken["code"].startswith("privacy")


@pytest.mark.parametrize(
    ("steps", "words"),
    [
        (["pseudonym city key-file=/etc/hostname"], "names a file of a key"),
        (["date-shift age key-file=/etc/hostname"], "names a file of a key"),
        (["pseudonym city vault=/tmp/vault.csv"], "names a file of a key"),
        (["anatomy disease l=2"], "second table"),
        (["fold age"], "fold"),
        ([], "step"),
    ],
)
def test_steps_that_the_page_may_not_take_are_refused(opened, steps, words):
    refused = opened.run("POST", "/api/mask", json={"steps": steps})
    assert words in refused["message"], refused
    assert opened.call("GET", "/api/state").json()["results"] == []


def test_compare_needs_a_release(opened):
    failed = opened.run("POST", "/api/compare", json={})
    assert failed["code"] == "service.missing"
    assert "anonymize" in failed["message"]


@pytest.mark.parametrize(
    "body",
    [{"k": CANARY}, {"k": 2, CANARY: 1}, {"k": 2.5}, {"l": [{"column": CANARY}]}],
    ids=["a text", "an unknown name", "no whole number", "a wrong part"],
)
def test_a_request_that_is_not_understood_names_fields_only(opened, body):
    reply = opened.call("POST", "/api/anonymize", json=body)
    assert reply.status_code == 400
    assert reply.json()["ok"] is False
    assert "Traceback" not in reply.text
    if CANARY not in body:
        assert CANARY not in reply.text


@pytest.mark.parametrize("part", ["bytes=0-10", "bytes=junk", "bytes=999999999-"])
def test_asking_for_a_part_of_a_file_leaves_no_copy_of_it(opened, part):
    assert opened.run("POST", "/api/assess", json={})["ok"]
    before = set(opened.space.folder.iterdir())
    asked = {"file": "assessment.html"}
    url = opened.call("POST", "/api/links", json=asked).json()["url"]
    assert opened.client.get(url, headers={"Range": part}).status_code in (206, 400, 416)
    assert set(opened.space.folder.iterdir()) == before
