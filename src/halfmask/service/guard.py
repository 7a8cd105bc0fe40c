"""Who may ask: the token, the Host and the Origin of every request, and what every reply says.

The page itself holds no data and needs no token. All else asks for the token in a header, which
no other site can send, or lies under an address that nobody can guess. No cookie is set:
cookies would go to every other port of the same machine.
"""

from __future__ import annotations

import hmac
import ipaddress
import re
import socket
from dataclasses import dataclass
from typing import TYPE_CHECKING

from starlette.datastructures import Headers, MutableHeaders

from halfmask.errors import RefusedError, TooLargeError
from halfmask.service.replies import refusal

if TYPE_CHECKING:
    from starlette.types import ASGIApp, Message, Receive, Scope, Send

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
class Rules:
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


class Guard:
    """Stands before the application: nothing passes unchecked, and no exception passes at all."""

    def __init__(self, app: ASGIApp, rules: Rules) -> None:
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
                await refusal(error)(scope, receive, sending)


def _complete(message: Message) -> None:
    headers = MutableHeaders(scope=message)
    for name, value in _HEADERS.items():
        headers.setdefault(name, value)
