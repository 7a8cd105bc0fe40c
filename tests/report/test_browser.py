"""The page in a real browser: it draws, it is quiet, and it asks the network for nothing."""

from __future__ import annotations

import pytest
from drawing import assert_drawn_quietly

from halfmask.report import render


@pytest.mark.parametrize("kind", ["document", "local"])
def test_the_page_draws_its_plots_and_is_quiet(browser, request, tmp_path, kind):
    path = tmp_path / "report.html"
    path.write_text(render(request.getfixturevalue(kind)), encoding="utf-8")
    assert_drawn_quietly(browser, path, ("plot-classes", "plot-levels", "plot-loss"))


def test_the_page_prints_with_its_tables_open(browser, document, tmp_path):
    path = tmp_path / "report.html"
    path.write_text(render(document), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    page.wait_for_selector("#plot-loss svg path", state="attached")
    assert page.pdf().startswith(b"%PDF")
    assert page.evaluate("[...document.querySelectorAll('details')].every(one => one.open)")
    page.close()
