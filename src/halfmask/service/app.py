"""The page's server: one route a verb, which starts the step, on one port until interrupted.

It writes nothing to any log.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import secrets
import signal
import socket
import time
from contextlib import contextmanager
from importlib import resources
from typing import TYPE_CHECKING, Any

import uvicorn
from fastapi import FastAPI, Request
from fastapi.exceptions import RequestValidationError
from starlette.exceptions import HTTPException
from starlette.responses import Response

from halfmask.anonymize.run import METHODS
from halfmask.errors import CancelledError, HalfmaskError, InputError, MissingError, ServiceError
from halfmask.masking.masks import known_masks, metavar
from halfmask.metrics.cost import METRICS
from halfmask.release.document import versions
from halfmask.service import requests, verbs
from halfmask.service.files import Files
from halfmask.service.guard import (
    NO_OBJECT,
    POPULATION,
    UPLOAD,
    RequestGuard,
    RequestRules,
    explain_faults,
    file_reply,
    refusal_reply,
    reply,
    too_large,
)
from halfmask.service.jobs import Jobs, StepRunner
from halfmask.synthesize.private import PRIVATE
from halfmask.synthesize.run import MEASURED
from halfmask.table.columns import KINDS, ROLES
from halfmask.table.policies import DEMANDS

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from pathlib import Path
    from types import FrameType

    from halfmask.service.jobs import Job
    from halfmask.service.worker import Worker
    from halfmask.service.workspace import Workspace

LONGEST_WAIT = 30.0
_PAUSE = 0.05
_UNREADABLE = 400
_MEDIA = {"html": "text/html", "css": "text/css", "js": "text/javascript"}
# Telemetry would carry addresses and exceptions to wherever the environment says.
_SILENT: Any = {"tracing": False, "metrics": False, "logs": False, "auto_configure": False}
# The page and what it is made of; "style.css" is that of the reports.
_SCRIPTS = ("page.js", "api.js", "draw.js", "fields.js", "promises.js", "schema.js", "show.js")
_STATIC = ("index.html", "page.css", "style.css", *_SCRIPTS)
_QUEUE = 64  # connections that wait to be accepted


def state(space: Workspace, jobs: Jobs) -> dict[str, Any]:
    """The state of the service, without a row."""
    current = jobs.current
    return {
        "ok": True,
        "version": versions()["halfmask"],
        "table": _table(space) if space.is_open else None,
        "population": None if space.population is None else space.population.to_dict(),
        "results": sorted(space.results),
        "job": None if current is None else current.to_dict(),
        "choices": {
            "roles": list(ROLES),
            "kinds": list(KINDS),
            "demands": list(DEMANDS),
            "methods": list(METHODS),
            "promises": requests.promise_fields(),
            "metrics": list(METRICS),
            "masks": [[metavar(one), one.words.does] for one in known_masks()],
            "synthesizers": ["auto", *PRIVATE, *MEASURED],
        },
    }


def _table(space: Workspace) -> dict[str, Any]:
    now = space.table_facts
    columns = [column["name"] for column in now.description["columns"]]
    return {"name": now.name, "rows": now.description["rows"], "columns": columns}


def make_app(runner: StepRunner, rules: RequestRules) -> RequestGuard:
    """The guarded application over one workspace."""
    app = FastAPI(docs_url=None, redoc_url=None, openapi_url=None, telemetry=_SILENT)
    app.add_exception_handler(HalfmaskError, _refuse)
    app.add_exception_handler(Exception, _refuse)
    app.add_exception_handler(RequestValidationError, _not_understood)
    app.add_exception_handler(HTTPException, _no_route)
    _add_page(app)
    _add_table(app, runner, rules)
    _add_steps(app, runner)
    _add_budget(app, runner)
    _add_jobs(app, runner.jobs)
    _add_results(app, runner)
    return RequestGuard(app, rules)


def _add_page(app: FastAPI) -> None:
    @app.get("/")
    def page() -> Response:
        return _static("index.html")

    @app.get("/static/{name}")
    def static(name: str) -> Response:
        if name not in _STATIC:
            raise MissingError("There is no such file.")
        return _static(name)


def _add_table(app: FastAPI, runner: StepRunner, rules: RequestRules) -> None:
    @app.post(UPLOAD)
    async def open_table(
        request: Request,
        name: str = "table",
        delimiter: str | None = None,
        encoding: str | None = None,
        decimal: str | None = None,
        table: str | None = None,
    ) -> Response:
        how = {"delimiter": delimiter, "encoding": encoding, "decimal": decimal, "table": table}
        job = runner.jobs.claim("open")
        place = await _receive(request, runner.space, name, rules.upload_limit, job)
        return _accept(runner.open_sent(job, place, rules.unpacked_limit, how))

    @app.post(POPULATION)
    async def open_population(request: Request, name: str = "population") -> Response:
        _ = runner.space.table_facts
        job = runner.jobs.claim("population")
        place = await _receive(request, runner.space, name, rules.upload_limit, job)
        return _accept(runner.open_population(job, place, rules.unpacked_limit))

    @app.post("/api/sample")
    def open_sample(asked: requests.SampleRequest) -> Response:
        if not 10 <= asked.rows <= requests.MOST_ROWS:
            raise InputError(
                f"The sample has 10 to {requests.MOST_ROWS:,} rows: choose fewer or more."
            )
        return _accept(runner.open_sample(asked.rows))

    @app.put("/api/schema")
    def change_schema(asked: requests.SchemaRequest) -> Response:
        given = asked.model_dump(exclude={"toml"}, exclude_none=True)
        if not given and asked.toml is None:
            raise InputError("No schema is given: send columns, table and policy, or toml.")
        return _accept(runner.change_schema(given, asked.toml))

    @app.get("/api/schema")
    def schema() -> Response:
        return reply(verbs.describe_table(runner.space.table_facts))


def _add_steps(app: FastAPI, runner: StepRunner) -> None:
    for verb, step in requests.STEPS.items():
        app.post(f"/api/{verb}")(_step_route(runner, verb, step.request))


def _step_route(
    runner: StepRunner, verb: str, request: type[requests.PageRequest]
) -> Callable[[requests.PageRequest], Response]:
    def begin(asked: requests.PageRequest) -> Response:
        return _accept(runner.begin(verb, asked))

    begin.__annotations__["asked"] = request  # by which what is sent is checked
    return begin


def _add_budget(app: FastAPI, runner: StepRunner) -> None:
    @app.put("/api/budget")
    def grant(asked: requests.BudgetRequest) -> Response:
        runner.space.ledgers.grant(asked.epsilon, asked.delta)
        return reply({"ok": True, "budget": runner.space.ledgers.to_dict()})

    @app.get("/api/budget")
    def budget() -> Response:
        return reply({"ok": True, "budget": runner.space.ledgers.to_dict()})


def _add_jobs(app: FastAPI, jobs: Jobs) -> None:
    @app.get("/api/jobs/{number}")
    async def job(number: int, wait: float = 0.0) -> Response:
        return await _await_job(jobs.find(number), jobs, wait)

    @app.delete("/api/jobs/{number}")
    async def cancel(number: int) -> Response:
        stopped = await asyncio.to_thread(jobs.cancel, number)
        return await _await_job(stopped, jobs, LONGEST_WAIT)


async def _await_job(job: Job, jobs: Jobs, wait: float) -> Response:
    """The job, when it has ended or after that long."""
    end = time.monotonic() + min(wait, LONGEST_WAIT)
    while job.state == "working" and time.monotonic() < end and not jobs.closing:
        await asyncio.sleep(_PAUSE)
    return reply({"ok": True, "job": job.to_dict()})


def _add_results(app: FastAPI, runner: StepRunner) -> None:
    files = Files(runner.space)

    @app.get("/api/state")
    def now() -> Response:
        return reply(state(runner.space, runner.jobs))

    @app.get("/api/results/{verb}")
    def result(verb: str) -> Response:
        return reply(runner.space.result(verb).document)

    @app.post("/api/links")
    def link(asked: requests.FileRequest) -> Response:
        return reply({"ok": True, "url": files.link(asked.file, download=asked.download)})

    @app.get("/out/{secret}/{file}")
    def out(secret: str, file: str) -> Response:
        ticket = files.find(secret, file)
        return file_reply(files.copy(ticket), download=ticket.download, done=runner.space.forget)


async def _receive(request: Request, space: Workspace, name: str, limit: int, job: Job) -> Path:
    """Write the body to a new place; removed again where it is too long, cut off or unwanted."""
    size = 0
    try:
        place = space.room(name)
        with space.remove_unless_done(place.parent), place.open("xb") as out:
            async for chunk in _pieces(request, job):
                size += len(chunk)
                _check_size(size or 1, limit)
                out.write(chunk)
            _check_size(size, limit)
    except BaseException as error:
        job.fail(error)
        raise
    return place


async def _pieces(request: Request, job: Job) -> AsyncIterator[bytes]:
    """The body as it comes, until somebody cancels the job: who sends may have fallen silent."""
    stream = request.stream()
    while True:
        coming = asyncio.ensure_future(anext(stream, None))
        try:
            while not job.unwanted and not coming.done():
                await asyncio.wait({coming}, timeout=_PAUSE)
            if job.unwanted:
                raise CancelledError
            if (piece := await coming) is None:
                return
        finally:
            coming.cancel()
        yield piece


def _check_size(size: int, limit: int) -> None:
    if size > limit:
        raise too_large(limit)
    if not size:
        raise InputError("The file is empty: choose another one.")


def _accept(job: Job) -> Response:
    return reply({"ok": True, "job": job.to_dict()}, 202)


def _static(name: str) -> Response:
    home = "halfmask.report" if name == "style.css" else "halfmask.service"
    data = resources.files(home).joinpath("static", name).read_bytes()
    return Response(data, media_type=_MEDIA[name.rpartition(".")[2]])


async def _refuse(_: Request, error: Exception) -> Response:
    return refusal_reply(error)


async def _not_understood(_: Request, error: Exception) -> Response:
    faults = error.errors() if isinstance(error, RequestValidationError) else []
    return refusal_reply(InputError(explain_faults(faults)))


async def _no_route(_: Request, error: Exception) -> Response:
    status = error.status_code if isinstance(error, HTTPException) else 404
    if status == _UNREADABLE:
        return refusal_reply(InputError(NO_OBJECT))
    found = refusal_reply(MissingError("There is nothing under this address for this method."))
    found.status_code = status
    return found


class _PageServer(uvicorn.Server):
    """A server that lets go of those who wait for a job when it is told to end."""

    def __init__(self, config: uvicorn.Config, jobs: Jobs) -> None:
        super().__init__(config)
        self._jobs = jobs

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """Note that the end has come."""
        self._jobs.closing = True
        super().handle_exit(sig, frame)

    def hang_up(self, _: int, frame: FrameType | None) -> None:
        """End as by Ctrl-C; the server below does not know this signal."""
        self.handle_exit(signal.SIGINT, frame)


def open_socket(host: str, port: int) -> socket.socket:
    """A socket that listens; port 0 takes any that is free.

    Raises:
        ServiceError: the port is taken or the address is not one of this machine.
    """
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    try:
        return socket.create_server((host, port), family=family, backlog=_QUEUE)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            raise ServiceError(
                f"Port {port} is taken: stop what listens there, or give --port 0 for a free one."
            ) from None
        why = error.strerror or "it is no address of this machine"
        raise ServiceError(f"Cannot listen on {host}, port {port}: {why}.") from None


def serve(
    space: Workspace,
    worker: Worker,
    listener: socket.socket,
    *,
    host: str,
    limits: tuple[int, int],
    ready: Callable[[str], None],
) -> None:
    """Serve a workspace until interrupted; ``ready`` is told the address to open.

    ``limits`` are the most bytes that a table has as it is sent, and unpacked.
    """
    address, port = listener.getsockname()[:2]
    names = tuple(f"[{name}]" if ":" in name else name for name in (address, host))
    token = secrets.token_urlsafe(32)
    jobs = Jobs(worker.restart)
    rules = RequestRules(token, (*names, "localhost"), port, *limits)
    app = make_app(StepRunner(space, worker, jobs), rules)
    config = uvicorn.Config(
        app,
        log_config=None,
        access_log=False,
        server_header=False,
        proxy_headers=False,
        http="h11",  # not what happens to be installed
        loop="asyncio",
        ws="none",
        timeout_graceful_shutdown=2,
    )
    server = _PageServer(config, jobs)
    with _silence(), ends_by_signals(), _handle_signal("SIGHUP", server.hang_up):
        ready(f"http://{_display_name(names[0])}:{port}/#token={token}")
        try:
            server.run(sockets=[listener])
        except KeyboardInterrupt:
            return  # uvicorn has ended and passes the signal on


def _display_name(name: str) -> str:
    """What to call the service; no browser can open the address that means all of them."""
    everywhere = name in ("0.0.0.0", "[::]")  # noqa: S104 - it is compared, not listened on
    return socket.gethostname() if everywhere else name


@contextmanager
def _silence() -> Iterator[None]:
    """What servers log may hold addresses with secrets, or exceptions with values."""
    names = ("uvicorn", "uvicorn.error", "uvicorn.access", "asyncio", "fastapi")
    loggers = [logging.getLogger(name) for name in names]
    former = [one.disabled for one in loggers]
    for one in loggers:
        one.disabled = True
    try:
        yield
    finally:
        for one, was in zip(loggers, former, strict=True):
            one.disabled = was


@contextmanager
def ends_by_signals() -> Iterator[None]:
    """A closed terminal and a polite kill end what runs as Ctrl-C does, so that it cleans up."""
    interrupt = signal.default_int_handler
    with _handle_signal("SIGTERM", interrupt), _handle_signal("SIGHUP", interrupt):
        yield


@contextmanager
def _handle_signal(name: str, handler: Callable[[int, FrameType | None], Any]) -> Iterator[None]:
    """Let ``handler`` hear a signal, on systems that have it."""
    number = getattr(signal, name, None)
    if number is None:
        yield
        return
    former = signal.signal(number, handler)
    try:
        yield
    finally:
        signal.signal(number, former)
