"""A client of the service that holds its token, and a small table to send."""

from __future__ import annotations

import http.client
import io
import json
import os
import subprocess
import sys
import warnings
from contextlib import contextmanager, redirect_stderr
from dataclasses import dataclass
from types import SimpleNamespace
from typing import Any
from urllib.parse import urlsplit

from patience import PATIENCE

from halfmask.cli.main import run
from halfmask.errors import ElsewhereError
from halfmask.failure import Failure
from halfmask.service.app import make_app
from halfmask.service.guard import TOKEN, RequestRules
from halfmask.service.jobs import Jobs, StepRunner
from halfmask.service.verbs import LoadedTable
from halfmask.service.worker import perform
from halfmask.service.workspace import Workspace

with warnings.catch_warnings():
    warnings.simplefilter("ignore")  # it would rather be used with another package than httpx
    from starlette.testclient import TestClient

SECRET = "the-token-of-this-run"  # noqa: S105 - of the tests
PORT = 8642
CANARY = "canary-71"
# Three columns, eight people; nobody else is called so.
CITIES = ("Orleans", "Bourges")
LINES = [f"{30 + i},{CITIES[i % 2]},{CANARY if i < 4 else 'flu'}" for i in range(8)]
PEOPLE = "\n".join(["age,city,disease", *LINES])


@dataclass
class Here:
    """The steps in this process, where a test can reach them; what it gives is told as there."""

    loaded: LoadedTable

    def do(self, command: str, job: Any = None, **given: Any) -> Any:
        found = perform(self.loaded, command, given)
        if isinstance(found, Failure):
            raise ElsewhereError(found)
        return found


@dataclass
class Service:
    """What a test talks to."""

    client: TestClient
    runner: StepRunner
    loaded: LoadedTable

    @property
    def space(self) -> Workspace:
        return self.runner.space

    @property
    def jobs(self) -> Jobs:
        return self.runner.jobs

    def call(self, method: str, path: str, **options: Any) -> Any:
        headers = {TOKEN: SECRET, **options.pop("headers", {})}
        return self.client.request(method, path, headers=headers, **options)

    def run(self, method: str, path: str, **options: Any) -> dict[str, Any]:
        """Start a job and give its result."""
        begun = self.call(method, path, **options)
        assert begun.status_code == 202, begun.text
        while (job := begun.json()["job"])["state"] == "working":
            begun = self.call("GET", f"/api/jobs/{job['id']}?wait=10")
        return job["result"]

    def upload(self, text: str | bytes, name: str = "people.csv") -> dict[str, Any]:
        content = text.encode() if isinstance(text, str) else text
        return self.run("POST", "/api/table", params={"name": name}, content=content)


@contextmanager
def served(folder):
    """A service in this process, over a workspace in ``folder``."""
    folder.mkdir(mode=0o700)
    loaded = LoadedTable()
    runner = StepRunner(Workspace(folder=folder), Here(loaded), Jobs())
    rules = RequestRules(SECRET, ("127.0.0.1", "localhost"), PORT, 100_000, 1_000_000)
    with TestClient(make_app(runner, rules), base_url=f"http://127.0.0.1:{PORT}") as client:
        yield Service(client, runner, loaded)


@contextmanager
def started(tmp_path, *arguments):
    """A running service: its address, token, process and the folder that temporary files go to."""
    place = tmp_path / "temporary"
    place.mkdir()
    command = [sys.executable, "-m", "halfmask", "serve", "--port", "0", "--no-open", "--json"]
    process = subprocess.Popen(  # noqa: S603 - our own command
        [*command, *map(str, arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        env={**os.environ, "TMPDIR": str(place)},
    )
    try:
        lines = []
        while not lines or lines[-1] != "}\n":
            line = process.stdout.readline()
            assert line, process.stderr.read()
            lines.append(line)
        address = json.loads("".join(lines))["address"]
        parts = urlsplit(address)
        yield parts, parts.fragment.removeprefix("token="), process, place
    finally:
        if process.poll() is None:
            process.kill()
        process.communicate()


def call(parts, token, method, path, body=None):
    """Ask a running service; its reply and its text."""
    connection = http.client.HTTPConnection(parts.netloc, timeout=PATIENCE)
    connection.request(method, path, body, {TOKEN: token, "Content-Type": "application/json"})
    reply = connection.getresponse()
    text = reply.read().decode()
    connection.close()
    return reply, text


def settled_over_http(parts, token, method, path, body=None):
    """Start a job of a running service and give its result."""
    _, text = call(parts, token, method, path, body)
    while (job := json.loads(text)["job"])["state"] == "working":
        _, text = call(parts, token, "GET", f"/api/jobs/{job['id']}?wait=5")
    return job["result"]


def halfmask(*arguments):
    """Run the verb to its end, which comes before it serves: here, where no process is begun."""
    told, code = io.StringIO(), None
    with redirect_stderr(told):
        try:
            run(["serve", "--no-open", *map(str, arguments)])
        except SystemExit as end:
            code = end.code
    return SimpleNamespace(returncode=code, stderr=told.getvalue())
