"""The budget of a table: granted once, spent first, shown, and never exceeded or forgotten."""

from __future__ import annotations

import json

import pytest
from patience import until
from serving import CANARY, PEOPLE, halfmask, served, settled_over_http, started

import halfmask as hm
from halfmask.dp.ledger import BudgetLedger
from halfmask.query.run import Session
from halfmask.service.jobs import Jobs, StepRunner
from halfmask.service.requests import SynthesizeRequest
from halfmask.service.worker import Worker
from halfmask.service.workspace import Workspace

NOISY = "SELECT city, COUNT(*) AS n FROM people GROUP BY city WITH EPSILON {}"
CITIES = {"city": ["Bourges", "Orleans"]}
ASKED = {"domains": CITIES}


def grant(service, **amount):
    return service.call("PUT", "/api/budget", json=amount).json()


def budget(service):
    return service.call("GET", "/api/budget").json()["budget"]


def ask(service, epsilon):
    sql = NOISY.format(epsilon)
    return service.run("POST", "/api/query", json={"sql": sql, "domains": CITIES})


def test_nothing_is_spent_before_a_budget_is_granted(opened):
    assert budget(opened) is None
    failed = ask(opened, 1)
    assert failed["code"] == "privacy.ledger"
    assert "No privacy budget is granted" in failed["message"]
    assert not (opened.space.folder / "ledgers").exists()


def test_answers_spend_until_nothing_is_left(opened):
    assert grant(opened, epsilon="1.5")["budget"]["left"] == "epsilon = 1.5"
    found = ask(opened, 1)
    assert found["ok"], found
    assert '"ledger_serial": 1' in json.dumps(found)
    now = budget(opened)
    assert (now["spent"], now["left"]) == ("epsilon = 1", "epsilon = 0.5")
    assert [one["purpose"] for one in now["spendings"]] == ["query"]
    failed = ask(opened, 1)
    assert failed["code"] == "privacy.budget"
    assert failed["details"]["missing"]["epsilon"] == "1/2"
    assert opened.call("GET", "/api/results/query").status_code == 404
    assert budget(opened) == now
    assert ask(opened, "0.5")["ok"]
    assert budget(opened)["left"] == "epsilon = 0"


def test_a_budget_is_granted_once(opened):
    assert grant(opened, epsilon="1")["ok"]
    again = grant(opened, epsilon="9")
    assert again["code"] == "privacy.ledger"
    assert budget(opened)["granted"] == "epsilon = 1"


@pytest.mark.parametrize("wrong", ["0", "-1", "nan", "inf", "x"])
def test_a_wrong_budget_is_no_budget(opened, wrong):
    assert grant(opened, epsilon=wrong)["code"] == "input.parameter"
    assert budget(opened) is None


def test_a_file_keeps_its_budget_however_often_it_is_opened(opened):
    grant(opened, epsilon="1")
    assert ask(opened, 1)["ok"]
    assert opened.upload(PEOPLE, "other-name.csv")["ok"]
    assert budget(opened)["left"] == "epsilon = 0"
    assert opened.upload(PEOPLE + "\n99,Orleans,flu")["ok"]
    assert budget(opened) is None


def test_a_synthetic_table_spends_too(opened):
    grant(opened, epsilon="1")
    domains = {**CITIES, "age": {"low": 0, "high": 100, "bins": 4}, "disease": ["flu", "gout"]}
    asked = {"epsilon": "0.75", "domains": domains}
    assert opened.run("POST", "/api/synthesize", json=asked)["ok"]
    assert budget(opened)["left"] == "epsilon = 0.25"
    assert opened.run("POST", "/api/synthesize", json=asked)["code"] == "privacy.budget"


def test_a_plan_costs_nothing(opened):
    grant(opened, epsilon="1")
    asked = {"sql": NOISY.format(1), "domains": CITIES, "explain": True}
    assert opened.run("POST", "/api/query", json=asked)["explanation"]
    assert budget(opened)["spent"] == "epsilon = 0"


def test_an_answer_that_an_earlier_one_forbids_is_refused(opened):
    sql = "SELECT COUNT(*) AS n FROM people {}GUARANTEE k = 2, l = 1"
    assert opened.run("POST", "/api/query", json={"sql": sql.format("")})["ok"]
    assert opened.run("POST", "/api/query", json={"sql": sql.format("")})["ok"]
    failed = opened.run("POST", "/api/query", json={"sql": sql.format("WHERE age > 30 ")})
    assert failed["code"] == "privacy.ledger"
    assert "subtraction" in failed["message"]


def test_an_earlier_answer_is_compared_whatever_the_schema_says_now(opened):
    sql = "SELECT COUNT(*) AS n FROM people GUARANTEE k = 2, l = 1"
    assert opened.run("POST", "/api/query", json={"sql": sql})["ok"]
    columns = {"age": "quasi", "city": "identifier", "disease": "sensitive"}
    assert opened.run("PUT", "/api/schema", json={"columns": columns})["ok"]
    sql = "SELECT COUNT(*) AS n FROM people WHERE age > 30 GUARANTEE k = 2, l = 1"
    failed = opened.run("POST", "/api/query", json={"sql": sql})
    assert failed["code"] == "privacy.ledger"
    assert "answer 1" in failed["message"]
    assert "city" not in failed["message"]


def test_guarantees_are_proposed_and_plans_shown_without_a_record(opened):
    sql = "SELECT city, COUNT(*) AS n FROM people GROUP BY city GUARANTEE k = 2, l = 1"
    told = opened.run("POST", "/api/query", json={"sql": sql, "suggest": True})
    assert "GUARANTEE" in told["suggestion"]["clause"]
    told = opened.run("POST", "/api/query", json={"sql": sql, "explain": True})
    assert told["explanation"]["levels"][0]["k"] == 2
    assert not (opened.space.folder / "ledgers").exists()


def test_what_was_spent_is_on_record_when_a_step_is_cancelled(tmp_path):
    folder = tmp_path / "private"
    folder.mkdir()
    space, worker = Workspace(folder=folder), Worker(folder)
    runner = StepRunner(space, worker, Jobs(worker.restart))
    people = tmp_path / "people.csv"
    lines = "\n".join(f"{i % 97},{i % 89},{i % 83},{i % 79}" for i in range(40_000))
    people.write_text(f"a,b,c,d\n{lines}\n")
    roles = dict.fromkeys("abcd", "quasi")
    try:
        space.become(worker.do("open_own", path=people, schema=roles))
        space.ledgers.grant("1", 0)
        domains = {name: list(range(97)) for name in "abcd"}
        asked = SynthesizeRequest(epsilon="0.6", method="privbayes", domains=domains)
        ledger = BudgetLedger.open(space.ledgers.budget)
        job = runner.begin("synthesize", asked)
        until(lambda: ledger.history() or job.state != "working", every=0.005)
        runner.jobs.cancel(job.id)
        until(lambda: job.state != "working")
        assert str(ledger.spent()) == "epsilon = 0.6", job.result
        assert job.state == "cancelled"
        assert {path.name for path in folder.iterdir()} == {"ledgers", "temporary"}
        again = runner.begin("synthesize", asked)
        until(lambda: again.state != "working")
        assert again.result["code"] == "privacy.budget"
    finally:
        worker.close()


def test_a_ledger_given_at_the_start_outlasts_the_service(tmp_path):
    people, ledger = tmp_path / "people.csv", tmp_path / "people.ledger"
    people.write_text(PEOPLE)
    body = json.dumps({"sql": NOISY.format(1), "domains": CITIES})
    options = (people, "--ledger", ledger)
    with started(tmp_path, *options, "--grant", "1.5") as (parts, token, _, _):
        assert settled_over_http(parts, token, "POST", "/api/query", body)["ok"]
    assert str(BudgetLedger.open(ledger).remaining()) == "epsilon = 0.5"
    (tmp_path / "temporary").rmdir()
    with started(tmp_path, *options) as (parts, token, _, _):
        failed = settled_over_http(parts, token, "POST", "/api/query", body)
    assert failed["code"] == "privacy.budget"
    assert str(tmp_path) not in str(failed)
    assert CANARY not in str(failed)


def test_a_ledger_that_is_not_there_or_is_none_is_said_at_once(tmp_path):
    (tmp_path / "x.ledger").write_text("no ledger")
    assert halfmask("--ledger", tmp_path / "gone.ledger", "--port", "0").returncode == 1
    assert halfmask("--ledger", tmp_path / "x.ledger", "--port", "0").returncode == 1
    assert halfmask("--grant", "1", "--port", "0").returncode == 1


def test_answers_are_kept_in_a_file_of_ones_own(tmp_path):
    sql = "SELECT COUNT(*) AS n FROM people {}GUARANTEE k = 2, l = 1"
    place = tmp_path / "answers.json"
    (tmp_path / "people.csv").write_text(PEOPLE)
    hm.Ledger().write(place)
    with served(tmp_path / "private") as service:
        service.space.own_ledgers = (None, place)
        service.upload(PEOPLE)
        schema = {"columns": {"age": "quasi", "city": "quasi", "disease": "sensitive"}}
        assert service.run("PUT", "/api/schema", json=schema)["ok"]
        assert service.run("POST", "/api/query", json={"sql": sql.format("")})["ok"]
        assert len(hm.Ledger.read(place).entries) == 1


def test_of_two_services_that_answer_at_once_one_is_refused(tmp_path, monkeypatch):
    sql = "SELECT COUNT(*) AS n FROM people {}GUARANTEE k = 2, l = 1"
    place = tmp_path / "answers.json"
    with served(tmp_path / "one") as one, served(tmp_path / "two") as two:
        for service in (one, two):
            service.space.own_ledgers = (None, place)
            service.upload(PEOPLE)
            schema = {"columns": {"age": "quasi", "city": "quasi", "disease": "sensitive"}}
            assert service.run("PUT", "/api/schema", json=schema)["ok"]
        former, others = Session.answer, []

        def answer(*given, **options):
            made = former(*given, **options)
            if not others:  # the other one answers between the first one's reading and writing
                others.append(None)
                others[0] = two.run("POST", "/api/query", json={"sql": sql.format("")})
            return made

        monkeypatch.setattr(Session, "answer", answer)
        asked = {"sql": sql.format("WHERE age > 30 ")}
        failed = one.run("POST", "/api/query", json=asked)
        assert others[0]["ok"]
        assert failed["code"] == "privacy.ledger"
        assert "Ask again" in failed["message"]
        assert one.call("GET", "/api/results/query").status_code == 404
        assert "subtraction" in one.run("POST", "/api/query", json=asked)["message"]
    assert len(hm.Ledger.read(place).entries) == 1
