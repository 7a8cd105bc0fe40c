"""The verb as a user runs it: it listens, answers, ends by Ctrl-C, and leaves nothing behind."""

from __future__ import annotations

import json
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from urllib.parse import urlsplit

import pytest
from effort import THOROUGH
from patience import PATIENCE, until
from serving import CANARY, PEOPLE, call, halfmask, settled_over_http, started

from halfmask.service.guard import TOKEN

# The other two end it elsewhere below: Ctrl-C while somebody waits, and a terminal that is closed.
ENDINGS = [signal.SIGINT, signal.SIGTERM, signal.SIGHUP]


@pytest.mark.parametrize("ending", ENDINGS if THOROUGH else [signal.SIGTERM])
def test_it_serves_a_table_and_leaves_nothing_behind(tmp_path, ending):
    table = tmp_path / "people.csv"
    table.write_text(PEOPLE)
    with started(tmp_path, table) as (parts, token, process, place):
        assert parts.hostname == "127.0.0.1"
        assert len(token) >= 40
        reply, text = call(parts, token, "GET", "/api/state")
        assert json.loads(text)["table"]["rows"] == 8
        assert reply.getheader("server") is None
        assert settled_over_http(parts, token, "POST", "/api/table?name=x.csv", PEOPLE)["rows"] == 8
        (folder,) = place.iterdir()
        assert folder.stat().st_mode & 0o777 == 0o700
        assert call(parts, "wrong", "GET", "/api/state")[0].status == 403
        process.send_signal(ending)
        out, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0
    assert list(place.iterdir()) == []
    assert table.exists()
    assert err.splitlines()[-1] == "Stopped; what was sent or made is removed."
    assert CANARY not in out + err
    assert "Traceback" not in err


@pytest.mark.parametrize("ending", ENDINGS if THOROUGH else [signal.SIGINT])
def test_it_leaves_nothing_behind_when_it_is_ended_before_it_serves(tmp_path, ending):
    place, table = tmp_path / "temporary", tmp_path / "people.csv"
    place.mkdir()
    os.mkfifo(table)  # nobody writes: it is being read for ever
    command = [sys.executable, "-m", "halfmask", "serve", table, "--port", "0", "--no-open"]
    process = subprocess.Popen(  # noqa: S603 - our own command
        command, stderr=subprocess.PIPE, text=True, env={**os.environ, "TMPDIR": str(place)}
    )
    try:
        until(lambda: list(place.iterdir()))
        time.sleep(0.3)  # somewhere on its way to the table, or waiting for it
        process.send_signal(ending)
        _, err = process.communicate(timeout=PATIENCE)
    finally:
        process.kill()
        process.wait()
    assert list(place.iterdir()) == []
    assert "Traceback" not in err


def test_it_ends_while_somebody_waits_for_a_job(tmp_path):
    with started(tmp_path) as (parts, token, process, place):
        body = json.dumps({"rows": 1_000_000})
        job = json.loads(call(parts, token, "POST", "/api/sample", body)[1])["job"]
        waiting = socket.create_connection((parts.hostname, parts.port))
        head = f"GET /api/jobs/{job['id']}?wait=30 HTTP/1.1\r\nHost: {parts.netloc}\r\n"
        waiting.sendall(f"{head}{TOKEN}: {token}\r\n\r\n".encode())
        time.sleep(0.3)
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=PATIENCE)
        waiting.close()
    assert process.returncode == 0, err
    assert err.splitlines()[-1] == "Stopped; what was sent or made is removed."
    assert "Traceback" not in err
    assert list(place.iterdir()) == []


def test_a_step_is_cancelled_over_http_and_a_killed_service_leaves_nothing(tmp_path):
    with started(tmp_path) as (parts, token, process, place):
        body = json.dumps({"rows": 1_000_000})
        job = json.loads(call(parts, token, "POST", "/api/sample", body)[1])["job"]
        time.sleep(0.5)
        ended = json.loads(call(parts, token, "DELETE", f"/api/jobs/{job['id']}")[1])["job"]
        assert ended["state"] == "cancelled"
        assert settled_over_http(parts, token, "POST", "/api/table?name=x.csv", PEOPLE)["rows"] == 8
        process.kill()
        process.wait()
        until(lambda: not list(place.iterdir()))


def test_a_table_whose_sender_falls_silent_is_cancelled_and_one_that_breaks_off_dropped(tmp_path):
    with started(tmp_path) as (parts, token, _, place):
        head = f"POST /api/table HTTP/1.1\r\nHost: {parts.netloc}\r\n{TOKEN}: {token}\r\n"
        begun = f"{head}Content-Length: 1000\r\n\r\nage\n1\n".encode()
        silent = socket.create_connection((parts.hostname, parts.port))
        silent.sendall(begun)
        while (job := json.loads(call(parts, token, "GET", "/api/state")[1])["job"]) is None:
            time.sleep(0.02)
        # The sender stays silent: nothing but the cancelling ends the job.
        told = json.loads(call(parts, token, "DELETE", f"/api/jobs/{job['id']}")[1])["job"]
        assert told["state"] == "cancelled"
        assert b"service.cancelled" in silent.recv(4096)
        silent.close()
        (folder,) = place.iterdir()
        assert [path.name for path in folder.iterdir()] == ["temporary"]
        half = socket.create_connection((parts.hostname, parts.port))
        half.sendall(begun)
        half.close()
        until(lambda: json.loads(call(parts, token, "GET", "/api/state")[1])["job"] is None)
        assert settled_over_http(parts, token, "POST", "/api/table?name=x.csv", PEOPLE)["rows"] == 8
        assert {path.name for path in folder.iterdir() if path.is_dir()} >= {"temporary"}
        assert len(list(folder.iterdir())) == 2


def test_a_taken_port_is_said():
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
        done = halfmask("--port", port)
    assert done.returncode == 4
    assert done.stderr.startswith(f"halfmask: Port {port} is taken: stop what listens there, or")
    assert done.stderr.count("\n") == 1


def test_an_address_of_another_machine_is_said():
    done = halfmask("--host", "192.0.2.1", "--port", "0")
    assert done.returncode == 4
    assert "Cannot listen on 192.0.2.1" in done.stderr


def test_a_table_that_is_not_there_is_said(tmp_path):
    done = halfmask(tmp_path / "gone.csv", "--port", "0")
    assert done.returncode == 1
    assert "does not exist" in done.stderr
    assert halfmask("--schema", "x.toml", "--port", "0").returncode == 1


def test_listening_for_others_is_warned_of_and_a_closed_terminal_ends_it(tmp_path):
    with started(tmp_path, "--host", "0.0.0.0") as (_, _, process, place):  # noqa: S104
        process.send_signal(signal.SIGHUP)
        _, err = process.communicate(timeout=PATIENCE)
    assert process.returncode == 0, err
    assert "sees the rows" in err.splitlines()[0]
    assert err.splitlines()[-1] == "Stopped; what was sent or made is removed."
    assert list(place.iterdir()) == []


def test_the_browser_is_opened_through_a_private_file(tmp_path, monkeypatch):
    import webbrowser

    from halfmask.cli import serve

    seen = []
    monkeypatch.setattr(webbrowser, "open", seen.append)
    serve._open("http://127.0.0.1:1/#token=secret", tmp_path)
    assert "secret" not in seen[0]
    assert "secret" in Path(urlsplit(seen[0]).path).read_text()


def test_without_the_packages_the_command_to_install_them_is_said(monkeypatch, capsys):
    from halfmask.cli.main import run

    monkeypatch.setitem(sys.modules, "halfmask.service.app", None)
    with pytest.raises(SystemExit) as stop:
        run(["serve"])
    assert stop.value.code == 4
    assert "pip install 'halfmask[serve]'" in capsys.readouterr().err


def test_a_ledger_in_a_folder_that_is_not_there_is_told_before_any_work(capsys):
    from halfmask.cli.main import run

    with pytest.raises(SystemExit) as ended:
        run(["serve", "--answers", "nowhere/answers.json", "--no-open"])
    assert ended.value.code == 1
    assert "no folder for answers.json" in capsys.readouterr().err
