"""Who may ask: tokens, hosts, origins, sizes, and the headers of every reply."""

from __future__ import annotations

import logging

import pytest
from serving import PORT, SECRET

from halfmask.service.app import _STATIC
from halfmask.service.guard import TOKEN, RequestRules

ROUTES = [
    ("GET", "/api/state"),
    ("GET", "/api/schema"),
    ("PUT", "/api/schema"),
    ("POST", "/api/table"),
    ("POST", "/api/population"),
    ("POST", "/api/sample"),
    ("POST", "/api/assess"),
    ("POST", "/api/anonymize"),
    ("POST", "/api/frontier"),
    ("POST", "/api/compare"),
    ("GET", "/api/budget"),
    ("PUT", "/api/budget"),
    ("POST", "/api/query"),
    ("POST", "/api/synthesize"),
    ("POST", "/api/links"),
    ("GET", "/api/jobs/1"),
    ("DELETE", "/api/jobs/1"),
    ("GET", "/api/results/assess"),
    ("GET", "/api/nothing"),
]


@pytest.mark.parametrize(("method", "path"), ROUTES, ids=lambda value: value)
@pytest.mark.parametrize("token", [None, "", SECRET[:-1], SECRET + "x", "é"], ids=repr)
def test_without_the_token_nothing_is_answered(guarded, method, path, token):
    headers = {} if token is None else {TOKEN: token.encode("latin-1")}
    reply = guarded.client.request(method, path, headers=headers)
    assert reply.status_code == 403
    assert reply.json()["code"] == "service.refused"
    assert SECRET not in reply.text


@pytest.mark.parametrize(
    "path", ["//api/state", "/api", "/./api/state", "/API/state", "/%61pi/state", "/x", "/static"]
)
def test_another_way_to_write_an_address_needs_the_token_too(guarded, path):
    assert guarded.client.get(path).status_code == 403


def test_the_token_in_an_address_or_a_cookie_is_no_token(service):
    service.client.cookies.set(TOKEN, SECRET)
    reply = service.client.get("/api/state", params={"token": SECRET, TOKEN: SECRET})
    assert reply.status_code == 403


@pytest.mark.parametrize(
    "host",
    ["evil.example", f"evil.example:{PORT}", "127.0.0.1", "127.0.0.1:1", f"127.0.0.2:{PORT}", ""],
)
@pytest.mark.parametrize("path", ["/", "/static/page.js", "/api/state"])
def test_other_hosts_are_refused_even_with_the_token(guarded, host, path):
    assert guarded.call("GET", path, headers={"Host": host}).status_code == 403


@pytest.mark.parametrize("host", [f"127.0.0.1:{PORT}", f"localhost:{PORT}"])
def test_its_own_hosts_are_taken(service, host):
    assert service.call("GET", "/api/state", headers={"Host": host}).status_code == 200


@pytest.mark.parametrize(
    ("names", "host", "taken"),
    [
        (("0.0.0.0",), "192.0.2.7:1", True),  # noqa: S104 - what a user may give
        (("0.0.0.0",), "[::1]:1", True),  # noqa: S104
        (("0.0.0.0",), "evil.example:1", False),  # noqa: S104
        (("[::]",), "evil.example:1", False),
        (("[::]",), "192.0.2.7:1", True),
        (("192.0.2.7",), "192.0.2.8:1", False),
        (("192.0.2.7", "desk.example"), "desk.example:1", True),
    ],
)
def test_on_all_addresses_numbers_are_taken_and_names_are_not(names, host, taken):
    assert RequestRules("t", names, 1, 1, 1)._is_ours(host) is taken


@pytest.mark.parametrize(
    "headers",
    [
        {"Origin": "http://evil.example"},
        {"Origin": "null"},
        {"Origin": f"https://127.0.0.1:{PORT}"},
        {"Origin": "http://127.0.0.1:9999"},
        {"Origin": f"http://localhost:{PORT}"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
def test_other_origins_are_refused_even_with_the_token(guarded, headers):
    assert guarded.call("GET", "/api/state", headers=headers).status_code == 403
    assert guarded.call("POST", "/api/assess", json={}, headers=headers).status_code == 403
    url = guarded.call("POST", "/api/links", json={"file": "schema.toml"}).json()["url"]
    assert guarded.client.get(url, headers=headers).status_code == 403


def test_its_own_origin_is_taken(service):
    headers = {"Origin": f"http://127.0.0.1:{PORT}", "Sec-Fetch-Site": "same-origin"}
    assert service.call("GET", "/api/state", headers=headers).status_code == 200


@pytest.mark.parametrize("path", ["/", "/static/page.js", "/api/state", "/nothing"])
def test_every_reply_forbids_what_the_page_does_not_need(service, path):
    headers = service.call("GET", path).headers
    policy = headers["content-security-policy"]
    assert "default-src 'none'" in policy
    assert "unsafe" not in policy
    assert headers["cache-control"] == "no-store"
    assert headers["x-content-type-options"] == "nosniff"
    assert headers["referrer-policy"] == "no-referrer"
    assert headers["x-frame-options"] == "DENY"
    assert "access-control-allow-origin" not in headers
    assert "set-cookie" not in headers


def test_a_preflight_of_another_site_gets_no_permission(service):
    headers = {"Origin": "http://evil.example", "Access-Control-Request-Method": "POST"}
    reply = service.client.options("/api/assess", headers=headers)
    assert reply.status_code == 403
    assert not [name for name in reply.headers if name.startswith("access-control")]


def test_requests_have_a_size(service):
    assert service.call("POST", "/api/query", content=b"x" * (1 << 20 | 1)).status_code == 413
    reply = service.call("POST", "/api/table", content=b"x" * 100_001)
    assert reply.status_code == 413
    assert reply.json()["code"] == "service.too_large"
    assert list(service.space.folder.iterdir()) == []
    assert service.jobs.current is None


def test_a_size_that_is_not_told_is_refused(service):
    def pieces():
        yield b"age\n1\n"

    assert service.call("POST", "/api/table", content=pieces()).status_code == 413


def test_the_page_asks_nobody_else(service):
    for name in ("", *(f"static/{name}" for name in _STATIC)):
        reply = service.client.get(f"/{name}")
        assert reply.status_code == 200
        assert "//" not in reply.text.replace("// ", "").replace('"//"', "").replace("://127", "")
        assert "innerHTML" not in reply.text


def test_there_is_no_description_of_the_api_from_elsewhere(service):
    for path in ("/docs", "/redoc", "/openapi.json"):
        assert service.call("GET", path).status_code == 404


def test_nothing_is_sent_to_collectors_whatever_the_environment_says(
    monkeypatch, caplog, service, tmp_path
):
    from serving import TestClient

    from halfmask.service.app import make_app

    monkeypatch.setenv("FASTAPI_OTEL_AUTO_CONFIGURE", "true")
    monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", "http://127.0.0.1:9/")
    rules = RequestRules(SECRET, ("127.0.0.1",), PORT, 1, 1)
    app = make_app(service.runner, rules)
    with caplog.at_level(logging.DEBUG), TestClient(app, base_url=f"http://127.0.0.1:{PORT}"):
        pass
    assert app.app._native_telemetry.enabled() is False
    assert [one for one in caplog.records if "telemetry" in one.getMessage()] == []


def test_a_size_that_is_not_told_is_not_called_too_many_bytes(service):
    reply = service.call("POST", "/api/table", content=iter([b"age\n1\n"]))
    assert "Content-Length" in reply.json()["message"]


@pytest.mark.parametrize(
    ("host", "taken"),
    [
        ("127.0.0.1", True),
        ("127.0.0.1:80", True),
        ("[::1]", True),
        ("[::1]:80", True),
        ("127.0.0.1:8080", False),
        ("evil.example", False),
        ("", False),
    ],
)
def test_on_port_80_browsers_leave_the_port_out(host, taken):
    assert RequestRules("t", ("127.0.0.1", "[::1]"), 80, 1, 1)._is_ours(host) is taken


@pytest.mark.parametrize("body", [b"[" * 200_000, b"\xff", b'{"k": '], ids=["deep", "text", "cut"])
def test_a_body_that_is_no_json_is_told_as_that(opened, body):
    headers = {"Content-Type": "application/json"}
    reply = opened.call("POST", "/api/anonymize", content=body, headers=headers)
    assert reply.status_code == 400
    assert reply.json()["message"].startswith("The request is not understood: its body")
