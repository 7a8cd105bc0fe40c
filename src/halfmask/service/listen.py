"""Listens on one port until it is interrupted; writes nothing to any log."""

from __future__ import annotations

import errno
import logging
import secrets
import signal
import socket
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

import uvicorn

from halfmask.errors import ServiceError
from halfmask.service.app import make_app
from halfmask.service.guard import RequestRules
from halfmask.service.jobs import Jobs, StepRunner

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from types import FrameType

    from halfmask.service.worker import Worker
    from halfmask.service.workspace import Workspace

_QUEUE = 64


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
