"""Who may ask: the token, the Host and the Origin of every request, and what every reply says.

The page itself holds no data and needs no token. All else asks for the token in a header, which
no other site can send, or lies under an address that nobody can guess. No cookie is set:
cookies would go to every other port of the same machine. What is wrong with a request is said in
words: the fields and what they take, never what stood there.
"""

from __future__ import annotations

import hmac
import ipaddress
import json
import re
import socket
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import FileResponse, Response

from halfmask.errors import (
    BusyError,
    EngineError,
    HalfmaskError,
    InputError,
    MissingError,
    PrivacyError,
    RefusedError,
    TooLargeError,
)
from halfmask.failure import failure

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from starlette.types import ASGIApp, Message, Receive, Scope, Send


# What a field takes, by the name that pydantic gives to the fault.
_WANTED = {
    "int_type": "a whole number",
    "int_parsing": "a whole number",
    "int_from_float": "a whole number",
    "float_type": "a number",
    "float_parsing": "a number",
    "finite_number": "a finite number",
    "bool_type": "true or false",
    "string_type": "a text",
    "list_type": "a list",
    "dict_type": "an object",
    "model_attributes_type": "an object",
    "missing": "something: it is needed",
    "extra_forbidden": "nothing: it is not known here",
}
NO_OBJECT = "The request is not understood: its body must be a JSON object."
_SHOWN = 60


def explain_faults(faults: Sequence[Mapping[str, Any]]) -> str:
    """A sentence that names every faulty field once and says what it takes."""
    told: dict[str, list[str]] = {}
    if any(fault["type"] == "json_invalid" for fault in faults):
        return NO_OBJECT
    for fault in faults:
        name = "".join(str(part)[:_SHOWN] for part in fault["loc"][1:2])
        wanted = told.setdefault(name, [])
        if _expectation(fault) not in wanted:  # a field of several types has a fault for each
            wanted.append(_expectation(fault))
    if not told or "" in told:
        return NO_OBJECT
    parts = "; ".join(f"{name} takes {' or '.join(wanted)}" for name, wanted in told.items())
    return f"The request is not understood: {parts}."


def _expectation(fault: Mapping[str, Any]) -> str:
    kind, context = fault["type"], fault.get("ctx") or {}
    if kind == "literal_error":
        return str(context["expected"])
    if kind == "greater_than":
        return f"a number above {context['gt']:g}"
    return _WANTED.get(kind, "another value")


# Whose move it is now, in HTTP's words; the first that fits.
STATUS: tuple[tuple[type[HalfmaskError], int], ...] = (
    (RefusedError, 403),
    (MissingError, 404),
    (BusyError, 409),
    (TooLargeError, 413),
    (InputError, 400),
    (PrivacyError, 409),
    (EngineError, 503),
)
# A report runs its own scripts, but as a stranger: it reaches neither the page nor the network.
REPORT_POLICY = (
    "default-src 'none'; script-src 'unsafe-inline' 'unsafe-eval'; style-src 'unsafe-inline'; "
    "img-src data:; base-uri 'none'; form-action 'none'; frame-ancestors 'none'; "
    "sandbox allow-scripts"
)
_MEDIA = {
    ".html": "text/html; charset=utf-8",
    ".csv": "text/csv; charset=utf-8",
    ".toml": "application/toml; charset=utf-8",
    ".parquet": "application/vnd.apache.parquet",
}


def reply(document: dict[str, Any], status: int = 200) -> Response:
    """A JSON document."""
    text = json.dumps(document, default=str, allow_nan=False)
    return Response(text, status, media_type="application/json")


def refusal_reply(error: BaseException) -> Response:
    """An error as the one document that may be shown of it."""
    status = next((status for kind, status in STATUS if isinstance(error, kind)), 500)
    return reply(failure(error).to_dict(), status)


class _TemporaryFile(FileResponse):
    """A file that is done with once its reply has ended, also where a part of it was asked for."""

    def __init__(self, path: Path, done: Callable[[Path], None], **told: Any) -> None:
        super().__init__(path, **told)
        self._done = done

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Send it; a reader who has gone, or asks for a part that is not there, ends it too."""
        try:
            await super().__call__(scope, receive, send)
        finally:
            self._done(Path(self.path))


def file_reply(path: Path, *, download: bool, done: Callable[[Path], None]) -> Response:
    """A file that is shown or saved, and removed once it is sent."""
    return _TemporaryFile(
        path,
        done,
        media_type=_MEDIA[path.suffix],
        filename=path.name,
        content_disposition_type="attachment" if download else "inline",
        headers={"Content-Security-Policy": REPORT_POLICY},
    )


TOKEN = "X-Halfmask-Token"  # noqa: S105 - the name of a header
UPLOAD = "/api/table"
POPULATION = "/api/population"
LARGEST_REQUEST = 1 << 20
_HTTP = 80
PAGE_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src data:; "
    "base-uri 'none'; form-action 'none'; frame-ancestors 'none'"
)
_HEADERS = {
    "Content-Security-Policy": PAGE_POLICY,
    "Cache-Control": "no-store",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}


@dataclass(frozen=True, slots=True)
class RequestRules:
    """What a request must carry.

    Attributes:
        token: the secret of this run.
        names: what the service may be called in a Host, without the port.
        port: its port.
        upload_limit: the most bytes of a table that is sent.
        unpacked_limit: the most bytes that it may unpack to.
    """

    token: str
    names: tuple[str, ...]
    port: int
    upload_limit: int
    unpacked_limit: int

    def check(self, path: str, headers: Headers) -> None:
        """Refuse what must not be answered."""
        host = headers.get("host", "")
        if not self._is_ours(host):
            raise RefusedError("The Host of this request is not that of the service.")
        if path == "/" or path.startswith("/static/"):
            return
        self._check_origin(host, headers)
        self._check_size(path, headers)
        if not path.startswith("/out/"):
            given = headers.get(TOKEN, "")
            if not hmac.compare_digest(given.encode(), self.token.encode()):
                raise RefusedError(
                    "The token is missing or wrong: open the address that halfmask serve printed."
                )

    def _is_ours(self, host: str) -> bool:
        """Names that other people's DNS can point at this machine are not taken."""
        if self.port == _HTTP and not re.search(r":\d+$", host):
            host = f"{host}:{_HTTP}"  # browsers leave it out
        name, _, port = host.rpartition(":")
        if port != str(self.port):
            return False
        if name in self.names:
            return True
        everywhere = any(found.is_unspecified for found in map(_address, self.names) if found)
        return everywhere and (_address(name) is not None or name == socket.gethostname())

    @staticmethod
    def _check_origin(host: str, headers: Headers) -> None:
        origin, site = headers.get("origin"), headers.get("sec-fetch-site", "none")
        if origin not in (None, f"http://{host}") or site not in ("none", "same-origin"):
            raise RefusedError("This request comes from another site.")

    def _check_size(self, path: str, headers: Headers) -> None:
        limit = self.upload_limit if path in (UPLOAD, POPULATION) else LARGEST_REQUEST
        length = headers.get("content-length", "0")
        if "transfer-encoding" in headers or not length.isdecimal():
            raise TooLargeError(
                "The size of this request is not told: send it with Content-Length."
            )
        if int(length) > limit:
            raise too_large(limit)


def too_large(limit: int) -> TooLargeError:
    """The error for more bytes than ``limit``."""
    return TooLargeError(
        f"More than {limit / 1e6:,.0f} MB were sent: start halfmask serve with the file's name, or "
        "with a larger --upload-limit."
    )


def _address(text: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(text.strip("[]"))
    except ValueError:
        return None


class RequestGuard:
    """Stands before the application: nothing passes unchecked, and no exception passes at all."""

    def __init__(self, app: ASGIApp, rules: RequestRules) -> None:
        self.app, self.rules = app, rules

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Check a request, answer it, and put the headers on the reply."""
        if scope["type"] == "lifespan":
            await self.app(scope, receive, send)
            return
        if scope["type"] != "http":
            await send({"type": "websocket.close", "code": 1008})
            return
        started = False

        async def sending(message: Message) -> None:
            nonlocal started
            if message["type"] == "http.response.start":
                started = True
                _complete(message)
            await send(message)

        try:
            self.rules.check(scope["path"], Headers(scope=scope))
            await self.app(scope, receive, sending)
        except Exception as error:  # noqa: BLE001 - else a server would write it to its log
            if not started:
                await refusal_reply(error)(scope, receive, sending)


def _complete(message: Message) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
