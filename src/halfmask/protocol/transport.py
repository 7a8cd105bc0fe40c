"""HTTP: a relay that listens, and senders that try again.

One path, POST only, a message as the body. Every message may be repeated, so a sender that got no
answer sends once more; a relay that was restarted goes on where it was.

Everything in one process: sessions speak to a relay by function calls.
"""

from __future__ import annotations

import http.client
import ssl
import threading
import time
from collections.abc import Callable, Generator
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import TYPE_CHECKING, Any, TypeVar
from urllib.parse import urlsplit

from halfmask.errors import AuthenticationError, InputError, MessageError, PartyUnavailableError
from halfmask.protocol.messages import LARGEST, Reply, Request, encode_message, read_reply

if TYPE_CHECKING:
    from pathlib import Path

    from halfmask.protocol.parties.relay import Relay


MEDIA = "application/vnd.halfmask.cells"
PATH = "/cells/2"


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512

    def __init__(self, address: tuple[str, int], relay: Relay) -> None:
        self.relay = relay
        self.lock = threading.Lock()
        super().__init__(address, _Handler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A broken connection is the other side's affair; nothing of it is printed."""


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"
    timeout = 60
    # Head and body of a reply leave in one packet, and no reply waits for another.
    wbufsize = 1 << 16
    disable_nagle_algorithm = True

    def do_POST(self) -> None:
        """Hand a message to the relay."""
        length = self.headers.get("Content-Length", "")
        if self.path != PATH:
            self._reply(404, b"")
        elif not length.isdigit():
            self._reply(411, b"")
        elif int(length) > LARGEST:
            self._reply(413, b"")
        else:
            data = self.rfile.read(int(length))
            if len(data) != int(length):
                self.close_connection = True
                return
            # One message at a time: each is one transaction of the store.
            with self.server.lock:
                answer = self.server.relay.handle(data, time.time())
            self._reply(200, answer)

    def _reply(self, status: int, body: bytes) -> None:
        if status != 200:
            self.close_connection = True
        self.send_response(status)
        self.send_header("Content-Type", MEDIA)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        """Nobody's address is written down."""


class RelayServer:
    """A relay that listens on a port."""

    def __init__(
        self,
        relay: Relay,
        host: str = "127.0.0.1",
        port: int = 0,
        *,
        certificate: str | Path | None = None,
        key: str | Path | None = None,
    ) -> None:
        try:
            self._server = _Server((host, port), relay)
        except OSError as error:
            raise PartyUnavailableError(
                f"The relay cannot listen on port {port}: {error.strerror}."
            ) from None
        self._scheme = "http"
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            try:
                context.load_cert_chain(certificate, key)
            except (OSError, ssl.SSLError):
                self._server.server_close()
                raise InputError("The certificate or its key cannot be read.") from None
            # The handshake happens in the connection's own thread, not where connections arrive.
            self._server.socket = context.wrap_socket(
                self._server.socket, server_side=True, do_handshake_on_connect=False
            )
            self._scheme = "https"

    @property
    def address(self) -> str:
        """Where it listens."""
        host, port = self._server.server_address[:2]
        return f"{self._scheme}://{host!s}:{port}"

    def serve(self) -> None:
        """Listen until it is stopped."""
        self._server.serve_forever(poll_interval=0.2)

    def start(self) -> RelayServer:
        """Listen in a thread of its own."""
        threading.Thread(target=self.serve, daemon=True).start()
        return self

    def stop(self) -> None:
        """Listen no more."""
        self._server.shutdown()
        self._server.server_close()


class Sender:
    """Carries messages to a relay, over one connection while it lasts."""

    def __init__(
        self, url: str, *, authority: str | Path | None = None, patience: float = 20.0
    ) -> None:
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise InputError("A relay's address looks like http://host:port or https://host:port.")
        self._host, self._port = parts.hostname, parts.port
        self._context: ssl.SSLContext | None = None
        if parts.scheme == "https":
            try:
                self._context = ssl.create_default_context(cafile=authority)
            except (OSError, ssl.SSLError):
                raise InputError("The authority's certificate cannot be read.") from None
        self._patience = patience
        self._connection: http.client.HTTPConnection | None = None

    def __call__(self, data: bytes) -> bytes:
        """Send a message and get the reply.

        Raises:
            PartyUnavailableError: the relay does not answer.
            AuthenticationError: it is not the relay that it says it is.
        """
        until = time.monotonic() + self._patience
        pause = 0.05
        while True:
            try:
                return self._once(data)
            except ssl.SSLCertVerificationError:
                self.close()
                raise AuthenticationError("The relay's certificate is not to be trusted.") from None
            # What was sent may be sent again: the relay takes each contribution and frame once.
            except (OSError, http.client.HTTPException):
                self.close()
                if time.monotonic() + pause > until:
                    raise PartyUnavailableError("The relay does not answer.") from None
            time.sleep(pause)
            pause = min(1.0, pause * 2)

    def close(self) -> None:
        """Let the connection go."""
        if self._connection is not None:
            self._connection.close()
            self._connection = None

    def _once(self, data: bytes) -> bytes:
        if self._connection is None:
            if self._context is not None:
                self._connection = http.client.HTTPSConnection(
                    self._host, self._port, timeout=30, context=self._context
                )
            else:
                self._connection = http.client.HTTPConnection(self._host, self._port, timeout=30)
        self._connection.request("POST", PATH, body=data, headers={"Content-Type": MEDIA})
        response = self._connection.getresponse()
        if response.status == 413:
            self.close()
            raise MessageError("A message is too large for the relay.")
        if response.status != 200:
            self.close()
            raise PartyUnavailableError("This is no relay, or not one of this version.")
        body = response.read(LARGEST + 1)
        if len(body) > LARGEST:
            self.close()
            raise MessageError("The relay's reply is too large.")
        return body


T = TypeVar("T")
Send = Callable[[bytes], bytes]


def drive(session: Generator[Request, Reply, T], send: Send) -> T:
    """Carry a session's messages to the relay and back until it is over."""
    try:
        request = next(session)
        while True:
            request = session.send(read_reply(send(encode_message(request))))
    except StopIteration as over:
        result: T = over.value
        return result
