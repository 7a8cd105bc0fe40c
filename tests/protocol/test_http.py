"""Real connections: bad certificates, foreign bytes, a relay that is killed, the command line."""

from __future__ import annotations

import http.client
import os
import re
import signal
import subprocess
import sys
import threading
import time
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import pytest
from patience import PATIENCE, until
from tests.protocol.town import Town

from halfmask.errors import AuthenticationError, InputError, PartyUnavailableError
from halfmask.protocol.common_schema import Terms
from halfmask.protocol.messages import LARGEST, Browse, Open, encode_message, read_reply
from halfmask.protocol.parties.relay import Relay
from halfmask.protocol.store.relay_sqlite import RelayStore
from halfmask.protocol.transport import PATH, RelayServer, Sender, drive

if TYPE_CHECKING:
    from pathlib import Path

TEXT = "SELECT b, COUNT(*) AS n, SUM(s) AS total FROM people GROUP BY b GUARANTEE k = 2"


@pytest.fixture
def server() -> Any:
    started = RelayServer(Relay(RelayStore())).start()
    yield started
    started.stop()


def test_cells_answer_over_http(server: RelayServer) -> None:
    people = [{"a": i, "b": "xy"[i % 2], "s": i, "k": 2} for i in range(40)]
    town = Town(people, terms=Terms("network", 8, 8, 16), clock=time.time())
    town.asker_key = town.issuer.asker("office", int(time.time()) + 10**6)
    town.asker = type(town.asker)(town.asker_key, town.commons, town.terms)
    question = town.asker.question(TEXT, time.time(), cells=40, seconds=PATIENCE, patience=PATIENCE)
    send = Sender(server.address)
    drive(town.asker.ask(question), send)

    def take_part(cell: Any) -> None:
        own = Sender(server.address)
        drive(cell.take_part(time.time()), own)
        while drive(cell.work(time.time()), own) is not None:
            pass
        own.close()

    with ThreadPoolExecutor(6) as pool:
        list(pool.map(take_part, town.cells))
    while (found := drive(town.asker.collect(question), send)) is None:
        take_part(town.cells[0])
    send.close()
    assert sorted((r["b"], r["n"], r["total"]) for r in found[0].rows.to_pylist()) == [
        ("x", 20, 380),
        ("y", 20, 400),
    ]


@pytest.mark.parametrize(
    ("path", "body", "headers", "status"),
    [
        ("/", b"x", {}, 404),
        (PATH, b"", {"Content-Length": str(LARGEST + 1)}, 413),
        (PATH, b"", {"Content-Length": "many"}, 411),
        (PATH, b"junk", {}, 200),
    ],
    ids=["another path", "too large", "no length", "junk"],
)
def test_what_is_no_message_is_refused(
    server: RelayServer, path: str, body: bytes, headers: dict[str, str], status: int
) -> None:
    parts = urlsplit(server.address)
    connection = http.client.HTTPConnection(str(parts.hostname), parts.port, timeout=PATIENCE)
    connection.putrequest("POST", path, skip_accept_encoding=True)
    for name, value in ({"Content-Length": str(len(body))} | headers).items():
        connection.putheader(name, value)
    connection.endheaders(body)
    response = connection.getresponse()
    assert response.status == status
    if status == 200:
        assert read_reply(response.read()).code == "protocol.message"  # type: ignore[union-attr]
    connection.close()


def test_a_relay_that_is_not_there() -> None:
    with pytest.raises(PartyUnavailableError):
        Sender("http://127.0.0.1:9", patience=0.1)(b"x")
    with pytest.raises(InputError):
        Sender("ftp://127.0.0.1")


def certificate(folder: Path, name: str) -> tuple[Path, Path]:
    from cryptography import x509
    from cryptography.hazmat.primitives import hashes, serialization
    from cryptography.hazmat.primitives.asymmetric import ec

    key = ec.generate_private_key(ec.SECP256R1())
    subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, "localhost")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(subject)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - timedelta(days=1))
        .not_valid_after(now + timedelta(days=1))
        .add_extension(x509.SubjectAlternativeName([x509.DNSName("localhost")]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    paths = folder / f"{name}.pem", folder / f"{name}.key"
    paths[0].write_bytes(made.public_bytes(serialization.Encoding.PEM))
    paths[1].write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM,
            serialization.PrivateFormat.PKCS8,
            serialization.NoEncryption(),
        )
    )
    return paths


def test_tls_and_bad_certificates(tmp_path: Path) -> None:
    own, key = certificate(tmp_path, "relay")
    other, _ = certificate(tmp_path, "other")
    server = RelayServer(Relay(RelayStore()), certificate=own, key=key).start()
    address = server.address.replace("127.0.0.1", "localhost")
    try:
        good = Sender(address, authority=own)
        assert read_reply(good(encode_message(Browse(0)))) == Open([])
        good.close()
        for untrusted in (
            Sender(address, authority=other),
            Sender(address),
            Sender(server.address, authority=own),
        ):
            with pytest.raises(AuthenticationError):
                untrusted(encode_message(Browse(0)))
        with pytest.raises(InputError):
            Sender(address, authority=key)
    finally:
        server.stop()
    with pytest.raises(InputError):
        RelayServer(Relay(RelayStore()), certificate=key, key=own)


class RelayProcess:
    def __init__(self, folder: Path) -> None:
        self.folder, self.port = folder, 0
        self.start()

    def start(self) -> None:
        self.process = subprocess.Popen(  # noqa: S603 - ourselves
            [
                sys.executable,
                "-m",
                "halfmask",
                "relay",
                "--store",
                str(self.folder / "relay.sqlite"),
                "--port",
                str(self.port),
                "--patience",
                "1",
            ],
            stderr=subprocess.PIPE,
            text=True,
            env=os.environ,
        )
        assert self.process.stderr is not None
        line = self.process.stderr.readline()
        found = re.search(r"http://[\d.]+:(\d+)", line)
        assert found, line
        self.address, self.port = found[0], int(found[1])

    def kill(self) -> None:
        self.process.send_signal(signal.SIGKILL)
        self.process.wait()
        assert self.process.stderr is not None
        self.process.stderr.close()


def test_a_relay_process_killed_in_the_middle_goes_on(tmp_path: Path) -> None:
    relay = RelayProcess(tmp_path)
    people = [{"a": i, "b": "xy"[i % 2], "s": i, "k": 2} for i in range(12)]
    town = Town(people, terms=Terms("tree", 4, 4, 16))
    town.asker_key = town.issuer.asker("office", int(time.time()) + 10**6)
    town.asker = type(town.asker)(town.asker_key, town.commons, town.terms)
    send = Sender(relay.address, patience=PATIENCE)
    question = town.asker.question(TEXT, time.time(), cells=12, seconds=PATIENCE, patience=PATIENCE)
    drive(town.asker.ask(question), send)
    done = threading.Event()

    def cells() -> None:
        own = Sender(relay.address, patience=PATIENCE)
        for cell in town.cells:
            drive(cell.take_part(time.time()), own)
            time.sleep(0.05)
        while not done.is_set():
            for cell in town.cells:
                drive(cell.work(time.time()), own)
            time.sleep(0.05)
        own.close()

    thread = threading.Thread(target=cells)
    thread.start()
    try:
        time.sleep(0.3)
        relay.kill()
        relay.start()
        found: dict[int, Any] = {}
        until(lambda: found.update(drive(town.asker.collect(question), send) or {}) or found)
    finally:
        done.set()
        thread.join()
        send.close()
        relay.kill()
    assert found[0].contributions == 12
    assert sorted((r["b"], r["n"], r["total"]) for r in found[0].rows.to_pylist()) == [
        ("x", 6, 30),
        ("y", 6, 36),
    ]
