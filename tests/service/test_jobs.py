"""One job at a time; a failure is told without values; nothing is logged."""

from __future__ import annotations

import logging
import threading

import pytest
from serving import CANARY, PEOPLE

from halfmask.errors import BusyError, MissingError
from halfmask.service import verbs
from halfmask.service.jobs import KEPT, Jobs, run_job


@pytest.fixture
def held(opened, monkeypatch):
    """A service whose assessment waits until it is let go."""
    go, begun = threading.Event(), threading.Event()

    def slow(loaded, **given):
        begun.set()
        assert go.wait(20)
        return {"ok": True, "verb": "assess"}

    monkeypatch.setattr(verbs, "assess", slow)
    return opened, begun, go


def test_a_second_step_is_refused_and_the_first_ends_well(held):
    service, begun, go = held
    job = service.call("POST", "/api/assess", json={}).json()["job"]
    assert begun.wait(20)
    before = service.call("GET", "/api/schema").json()
    for method, path, options in (
        ("POST", "/api/assess", {"json": {}}),
        ("POST", "/api/anonymize", {"json": {"k": 2}}),
        ("PUT", "/api/schema", {"json": {"columns": {"age": {"role": "quasi"}}}}),
        ("POST", "/api/sample", {"json": {}}),
        ("POST", "/api/table", {"content": PEOPLE.encode()}),
    ):
        reply = service.call(method, path, **options)
        assert reply.status_code == 409, path
        assert reply.json()["code"] == "service.busy"
    assert service.call("GET", "/api/schema").json() == before
    assert service.call("GET", "/api/state").json()["job"]["verb"] == "assess"
    go.set()
    ended = service.call("GET", f"/api/jobs/{job['id']}?wait=20").json()["job"]
    assert ended["state"] == "done"
    assert ended["result"] == {"ok": True, "verb": "assess"}
    assert service.call("GET", "/api/state").json()["job"] is None


def test_waiting_ends_when_the_service_does(held):
    service, begun, go = held
    job = service.call("POST", "/api/assess", json={}).json()["job"]
    assert begun.wait(20)
    service.jobs.closing = True
    now = service.call("GET", f"/api/jobs/{job['id']}?wait=30").json()["job"]
    assert now["state"] == "working"
    go.set()


def test_jobs_are_forgotten_in_order():
    jobs = Jobs()
    for _ in range(KEPT + 2):
        run_job(jobs.claim("x"), dict)
    with pytest.raises(MissingError):
        jobs.find(2)
    assert jobs.find(3).state == "done"
    open_job = jobs.claim("x")
    with pytest.raises(BusyError, match="'x'"):
        jobs.claim("y")
    assert jobs.current is open_job


@pytest.mark.parametrize("error", [ValueError(CANARY), KeyError(CANARY), SystemExit(CANARY)])
def test_a_defect_tells_its_place_and_no_value(opened, monkeypatch, caplog, capfd, error):
    def fails(loaded, **given):
        raise error

    monkeypatch.setattr(verbs, "assess", fails)
    monkeypatch.setenv("HALFMASK_DEBUG", "1")
    with caplog.at_level(logging.DEBUG):
        failed = opened.run("POST", "/api/assess", json={})
    assert failed["code"] == "internal"
    assert "test_jobs.py:" in failed["message"]
    out, err = capfd.readouterr()
    assert CANARY not in str(failed) + out + err + caplog.text


def test_a_defect_outside_a_job_tells_no_more(opened, monkeypatch, caplog, capfd):
    def fails(table_facts):
        raise ValueError(CANARY)

    monkeypatch.setattr(verbs, "describe_table", fails)
    with caplog.at_level(logging.DEBUG):
        reply = opened.call("GET", "/api/schema")
    assert reply.status_code == 500
    assert reply.json()["code"] == "internal"
    out, err = capfd.readouterr()
    assert CANARY not in reply.text + out + err + caplog.text
    assert "Traceback" not in reply.text + out + err + caplog.text


FAULTS = [
    ("PUT", "/api/schema", {"columns": {"disease": {"role": "quasi", "kind": "numeric"}}}),
    ("PUT", "/api/schema", {"columns": {"disease": {"role": "quasi", "kind": "date"}}}),
    (
        "PUT",
        "/api/schema",
        {"columns": {"disease": {"role": "quasi", "hierarchy": {"tree": {"a": ["flu"]}}}}},
    ),
    ("POST", "/api/anonymize", {"k": 9}),
    ("POST", "/api/anonymize", {"k": 2, "l": ["disease=8"]}),
    ("POST", "/api/anonymize", {"k": 2, "method": "nonsense"}),
    ("POST", "/api/query", {"sql": "SELECT disease FROM people GUARANTEE k = 99, l = 9"}),
    ("POST", "/api/synthesize", {"epsilon": "1", "domains": {"disease": ["flu"]}}),
]


@pytest.mark.parametrize(("method", "path", "body"), FAULTS, ids=lambda value: str(value)[:40])
def test_no_value_of_the_table_stands_in_an_error(opened, caplog, capfd, method, path, body):
    with caplog.at_level(logging.DEBUG):
        found = opened.run(method, path, json=body)
        again = opened.run("POST", "/api/anonymize", json={"k": 2}) if path == "/api/schema" else {}
    out, err = capfd.readouterr()
    text = out + err + caplog.text + (str(found) if not found["ok"] else "")
    text += str(again) if not again.get("ok", True) else ""
    assert CANARY not in text
    assert "Bourges" not in text


@pytest.mark.parametrize("path", ["/api/table?name=x.csv", "/api/population", "/api/sample"])
def test_a_full_disk_holds_nobody_up(opened, monkeypatch, path):
    def full():
        raise OSError(28, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(opened.space, "new_folder", full)
        reply = opened.call("POST", path, content=b"{}")
        if reply.status_code == 202:
            number = reply.json()["job"]["id"]
            reply = opened.call("GET", f"/api/jobs/{number}?wait=10")
    assert '"ok": false' in reply.text
    assert opened.jobs.current is None
    assert opened.run("POST", "/api/assess", json={})["ok"]


def test_a_step_that_no_thread_can_run_holds_nobody_up(monkeypatch):
    def full(_):
        raise RuntimeError("can't start new thread")

    jobs = Jobs()
    with monkeypatch.context() as patch:
        patch.setattr(threading.Thread, "start", full)
        with pytest.raises(RuntimeError):
            jobs.start(jobs.claim("assess"), dict)
    assert jobs.current is None
