"""The page in a real browser: it draws, it is quiet, and it asks the network for nothing."""

from __future__ import annotations

import os
import shutil

import pytest

from halfmask.report import render

QUIET = [
    "--no-sandbox",
    "--disable-gpu",
    "--disable-background-networking",
    "--disable-component-update",
    "--disable-sync",
    "--no-first-run",
]


@pytest.fixture(scope="module")
def browser():
    chromium = os.environ.get("CHROMIUM") or shutil.which("chromium")
    if chromium is None:
        pytest.skip("chromium is not installed")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as engine:
        started = engine.chromium.launch(executable_path=chromium, args=QUIET)
        yield started
        started.close()


@pytest.mark.parametrize("width", [390, 1100], ids=["on a phone", "on a desk"])
@pytest.mark.parametrize("kind", ["document", "local"])
def test_the_page_draws_its_plots_and_is_quiet(browser, request, tmp_path, kind, width):
    path = tmp_path / "report.html"
    path.write_text(render(request.getfixturevalue(kind)), encoding="utf-8")
    page = browser.new_page(viewport={"width": width, "height": 900})
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda asking: asked.append(asking.url))
    page.goto(path.as_uri())
    for plot in ("plot-classes", "plot-levels", "plot-loss"):
        page.wait_for_selector(f"#{plot} svg path", state="attached")
    assert said == []
    assert asked == [path.as_uri()]
    assert page.evaluate("document.documentElement.scrollWidth") <= width
    page.close()


def test_the_page_prints_with_its_tables_open(browser, document, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(render(document), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("#plot-loss svg path", state="attached")
    assert page.pdf().startswith(b"%PDF")
    assert page.evaluate("[...document.querySelectorAll('details')].every(one => one.open)")
    page.close()
