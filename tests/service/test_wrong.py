"""Every wrong value gets a clear error: no defect, no traceback, no path, no value of the table."""

from __future__ import annotations

import json
import logging
import math

import pytest
from serving import CANARY

NAN, INF = math.nan, math.inf
COUNT = "SELECT city, COUNT(*) AS n FROM people GROUP BY city"
GUARANTEED = f"{COUNT} GUARANTEE k = 2, l = 1"
DOMAINS = {"age": {"low": 0, "high": 99, "bins": 3}, "city": ["Bourges"], "disease": ["flu"]}

WRONG = {
    "assess": [
        ({"size": 0}, "size"), ({"size": "3"}, "size takes a whole number"),
        ({"limit": -1}, "limit"),
        ({"limit": NAN}, "limit takes a finite number"), ({"fraction": 0}, "fraction"),
        ({"x": 1}, "x takes nothing"), ([], "JSON object"), (None, "JSON object"),
    ],
    "anonymize": [
        ({}, "No promise"), ({"k": 1}, "k = 1"), ({"k": 2.5}, "k takes a whole number"),
        ({"k": True}, "k takes a whole number"), ({"l": ["disease"]}, "l takes COLUMN=NUMBER"),
        ({"l": ["disease=many"]}, "l takes a number"), ({"l": ["nowhere=2"]}, "nowhere"),
        ({"l": ["disease=nan"]}, "l = nan"), ({"l": ["disease=2:odd"]}, "kind"),
        ({"l": [{"column": "disease"}]}, "l takes a text"), ({"t": ["disease=7"]}, "t = 7"),
        ({"t": ["disease=0.1:odd"]}, "distance"), ({"alpha": ["disease=0.5"]}, "alpha needs k"),
        ({"beta": ["disease=-1"]}, "beta"), ({"delta_disclosure": ["disease=inf"]}, "delta"),
        ({"average_risk": 2.0}, "limit"), ({"personal_k": True}, "own k"),
        ({"personal_l": ["disease"]}, "own l"), ({"k": 2, "suppression": 2.0}, "suppression"),
        ({"k": 2, "time_limit": -1.0}, "time_limit"), ({"k": 2, "time_limit": INF}, "time_limit"),
        ({"k": 2, "seed": -1}, "seed"), ({"k": 2, "method": "x"}, "method"),
        ({"k": 2, "metric": "x"}, "metric"), ({"k": 2, "labels": "x"}, "or 'sets'"),
        ({"k": 2, "method": "cocluster", "bins": 0}, "bins"),
    ],
    "frontier": [
        ({}, "No promise"), ({"k": "a"}, "k takes numbers"), ({"k": "0"}, "k = 0"),
        ({"k": "2", "suppression": "2"}, "suppression"), ({"k": "2", "methods": []}, "methods"),
        ({"k": "2", "risk": "x"}, "risk"), ({"k": "2", "seed": -1}, "seed"), ({"k": 2}, "a text"),
    ],
    "compare": [
        ({"limit": 7.0}, "limit"), ({"attacks": 0}, "attacks"), ({"seed": -1}, "seed"),
        ({"targets": ["nowhere"]}, "nowhere"), ({"learn": "x"}, "learn takes true or false"),
    ],
    "query": [
        ({}, "sql takes something"), ({"sql": " "}, "no query"),
        ({"sql": COUNT}, "promises nothing"),
        ({"sql": GUARANTEED, "effort": NAN}, "effort takes a finite number"),
        ({"sql": GUARANTEED, "effort": INF}, "effort takes a finite number"),
        ({"sql": GUARANTEED, "effort": -1}, "effort takes a number above 0"),
        ({"sql": GUARANTEED, "effort": 0}, "effort takes a number above 0"),
        ({"sql": GUARANTEED, "delta": "1e-6"}, "for noisy answers"),
        ({"sql": COUNT, "epsilon": "nan"}, "epsilon"), ({"sql": COUNT, "epsilon": -1}, "epsilon"),
        ({"sql": COUNT, "epsilon": [1]}, "epsilon takes a text or a number"),
        ({"sql": COUNT, "epsilon": "1", "rows_per_person": 0, "domains": DOMAINS}, "rows"),
        ({"sql": COUNT, "epsilon": "1", "suggest": True}, "GUARANTEE only"),
        ({"sql": COUNT.replace("city", f"'{CANARY}'"), "epsilon": "1"}, ""),
    ],
    "synthesize": [
        ({}, "Neither epsilon nor k"), ({"k": 0}, "k = 0"), ({"k": 99}, "k = 99"),
        ({"k": 2, "rows": 0}, "rows"), ({"k": 2, "seed": -1}, "seed"),
        ({"k": 2, "mode": "x"}, "mode"), ({"k": 2, "holdout": 2.0}, "holdout"),
        ({"k": 2, "time_limit": -1.0}, "time_limit"),
        ({"method": "x"}, "method"), ({"method": "histogram"}, "epsilon"),
        ({"epsilon": "0", "domains": DOMAINS}, "epsilon"),
        ({"epsilon": "x", "domains": DOMAINS}, "epsilon"),
        ({"epsilon": 1, "delta": "2", "domains": DOMAINS}, "delta"),
        ({"epsilon": 1, "domains": {"age": "x"}}, "domains takes a list or an object"),
        ({"epsilon": 1, "domains": {**DOMAINS, "age": {"low": 5, "high": 1}}}, "age"),
        ({"epsilon": 1, "k": 3, "domains": DOMAINS}, "k"),
        ({"epsilon": 1, "method": "cocluster"}, "epsilon"),
        ({"epsilon": 1, "rows": -1, "domains": DOMAINS}, "rows"),
    ],
}  # fmt: skip
OTHERS = [
    ("PUT", "/api/budget", {}, "epsilon takes something"),
    ("PUT", "/api/budget", {"epsilon": NAN}, "epsilon takes a text or a finite number"),
    ("PUT", "/api/schema", {}, "No schema is given"),
    ("PUT", "/api/schema", {"columns": []}, "columns takes an object"),
    ("PUT", "/api/schema", {"columns": {"age": 5}}, "age"),
    ("PUT", "/api/schema", {"columns": {"age": {"role": "x"}}}, "unknown role"),
    ("PUT", "/api/schema", {"policy": {"k": "nowhere"}}, "nowhere"),
    ("POST", "/api/sample", {"rows": 1}, "10 to 1,000,000"),
    ("POST", "/api/sample", {"rows": "x"}, "rows takes a whole number"),
    ("POST", "/api/links", {"file": "../x"}, "no such file"),
    ("POST", "/api/links", {}, "file takes something"),
    ("GET", "/api/jobs/99999999999999999999999", None, "no job"),
    ("GET", "/api/results/x", None, "nothing of 'x'"),
]
ALL = [
    *(("POST", f"/api/{verb}", *one) for verb, several in WRONG.items() for one in several),
    *OTHERS,
]


@pytest.fixture(scope="module")
def ready(tmp_path_factory):
    from serving import PEOPLE, served

    with served(tmp_path_factory.mktemp("wrong") / "private") as service:
        service.upload(PEOPLE)
        columns = {"age": {"role": "quasi", "hierarchy": {"intervals": [5, 10]}}, "city": "quasi"}
        schema = {"columns": {**columns, "disease": "sensitive"}}
        assert service.run("PUT", "/api/schema", json=schema)["ok"]
        assert service.call("PUT", "/api/budget", json={"epsilon": "1"}).json()["ok"]
        assert service.run("POST", "/api/anonymize", json={"k": 2})["ok"]
        service.release = service.space.results["anonymize"]
        yield service


def told(service, method, path, body):
    text, headers = json.dumps(body), {"Content-Type": "application/json"}
    reply = service.call(method, path, content=text, headers=headers)
    while reply.status_code in (200, 202) and "job" in reply.json():
        job = reply.json()["job"]
        if job["state"] != "working":
            return job["result"]
        reply = service.call("GET", f"/api/jobs/{job['id']}?wait=5")
    return reply.json()


@pytest.mark.parametrize(
    ("method", "path", "body", "words"), ALL, ids=lambda value: str(value)[:50]
)
def test_a_wrong_value_is_explained(ready, caplog, capfd, method, path, body, words):
    ready.space.results.setdefault("anonymize", ready.release)
    with caplog.at_level(logging.DEBUG):
        found = told(ready, method, path, body)
    assert found["ok"] is False
    assert found["code"].startswith(("input", "service", "privacy")), found
    assert words in found["message"]
    out, err = capfd.readouterr()
    text = json.dumps(found) + out + err + caplog.text
    mine = json.dumps(body)
    assert (CANARY in text) <= (CANARY in mine)
    assert "Traceback" not in text
    assert str(ready.space.folder) not in text


def test_wrong_values_spent_nothing(ready):
    assert ready.call("GET", "/api/budget").json()["budget"]["spent"] == "epsilon = 0"
