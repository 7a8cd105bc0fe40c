"""The process of the steps: what it holds can be lost, and it can be stopped for good."""

from __future__ import annotations

import os
import signal
import threading
from pathlib import Path

import pytest
from patience import until
from serving import CANARY, PEOPLE, served

from halfmask.errors import ElsewhereError
from halfmask.failure import failure
from halfmask.service.jobs import Jobs, StepRunner
from halfmask.service.requests import AnonymizeRequest, AssessRequest, CompareRequest
from halfmask.service.worker import Worker
from halfmask.service.workspace import Workspace


@pytest.fixture(scope="module")
def runner(tmp_path_factory):
    space = Workspace(folder=tmp_path_factory.mktemp("private"))
    worker = Worker(space.folder)
    yield StepRunner(space, worker, Jobs(worker.restart))
    worker.close()


def settled(job):
    until(lambda: job.state != "working")
    return job


def folders(runner):
    return {path.name for path in runner.space.folder.iterdir()}


def used(number):
    """The processor time of a process, in seconds."""
    fields = Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()
    return sum(map(int, fields[11:13])) / os.sysconf("SC_CLK_TCK")


def test_a_cancelled_step_frees_the_processor_and_leaves_no_file(runner):
    opened = settled(runner.open_sample(300))
    assert opened.state == "done", opened.result
    made = settled(runner.begin("anonymize", AnonymizeRequest(k=3)))
    assert made.state == "done", made.result
    before, table_facts = folders(runner), runner.space.table_facts
    job = runner.open_sample(1_000_000)
    process = runner.worker._process
    until(lambda: folders(runner) != before and used(process.pid) >= 0.5)
    assert runner.jobs.cancel(job.id) is job
    assert settled(job).state == "cancelled"
    assert job.result["code"] == "service.cancelled"
    assert "can be started again" in job.result["message"]
    assert process.exitcode == -signal.SIGKILL
    with pytest.raises(ProcessLookupError):
        os.kill(process.pid, 0)
    assert folders(runner) == before
    assert runner.space.table_facts is table_facts
    assert runner.jobs.current is None
    # What stood before still does, though the process that held it is gone.
    compared = settled(runner.begin("compare", CompareRequest(learn=False)))
    assert compared.result["rows_released"] == 300, compared.result
    assert settled(runner.open_sample(30)).result["rows"] == 30


def test_a_job_that_has_ended_is_not_cancelled(runner):
    job = settled(runner.open_sample(20))
    process = runner.worker._process
    assert runner.jobs.cancel(job.id).state == "done"
    assert runner.worker._process is process
    assert process.is_alive()


def test_a_job_that_is_cancelled_before_it_begins_does_not_begin(runner):
    job = runner.jobs.claim("open")
    runner.jobs.cancel(job.id)
    place = runner.space.room("people.csv")
    place.write_text(PEOPLE)
    runner.open_sent(job, place, 1000, {})
    assert settled(job).state == "cancelled"
    assert not place.parent.exists()


def test_a_step_that_the_system_kills_is_told_as_a_want_of_memory(runner):
    settled(runner.open_sample(20))
    job = runner.open_sample(1_000_000)
    until(lambda: (process := runner.worker._process) and used(process.pid) >= 0.2)
    os.kill(runner.worker._process.pid, signal.SIGKILL)
    assert settled(job).state == "failed"
    assert job.result["code"] == "engine.memory"
    assert settled(runner.begin("assess", AssessRequest())).state == "done"


def test_a_failure_comes_back_as_it_was_told(runner, capfd):
    place = runner.space.room("people.csv")
    place.write_text(PEOPLE)
    with pytest.raises(ElsewhereError) as caught:
        runner.worker.do(
            "open_own", path=place, schema={"disease": {"role": "quasi", "kind": "date"}}
        )
    found = failure(caught.value)
    assert (found.code, found.exit_code) == ("input.schema", 1)
    assert found.details["faults"]
    with pytest.raises(ElsewhereError) as caught:
        runner.worker.do("open_sent", path=[CANARY], unpacked_limit=1, how={})  # no path: a defect
    assert failure(caught.value).code == "internal"
    assert CANARY not in str(caught.value) + "".join(capfd.readouterr())
    runner.space.forget(place)


def test_an_upload_that_is_cancelled_on_its_way_is_dropped(tmp_path):
    with served(tmp_path / "private") as service:
        claimed = threading.Event()
        former = service.jobs.claim

        def claim(verb):
            job = former(verb)
            job.unwanted = True
            claimed.set()
            return job

        service.jobs.claim = claim
        reply = service.call("POST", "/api/table?name=x.csv", content=PEOPLE.encode())
        assert claimed.is_set()
        assert reply.json()["code"] == "service.cancelled"
        assert list(service.space.folder.iterdir()) == []
        assert service.call("GET", "/api/jobs/1").json()["job"]["state"] == "cancelled"


def test_cancelling_is_asked_for_by_the_number_of_the_job(service):
    assert service.upload(PEOPLE)["ok"]
    reply = service.call("DELETE", "/api/jobs/1")
    assert reply.json()["job"]["state"] == "done"
    assert service.call("DELETE", "/api/jobs/99").status_code == 404
    assert service.call("DELETE", "/api/jobs/x").status_code == 400
