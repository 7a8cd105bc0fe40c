"""A page in the browser: it draws its plots, says nothing, asks for nothing, and fits."""

from __future__ import annotations

WIDTHS = (390, 1100)  # of a phone and a desk


def assert_drawn_quietly(browser, path, plots=()):
    """Open a page on a phone, wait for ``plots`` (default: all it has), and check the rest.

    Opening takes seconds of the processor: for the desk the same page is made wider.
    """
    page = browser.new_page(viewport={"width": WIDTHS[0], "height": 900})
    said: list[str] = []
    asked: list[str] = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.on("dialog", lambda dialog: said.append(dialog.message))
    page.on("request", lambda asking: asked.append(asking.url))
    page.goto(path.as_uri())
    for plot in plots or [one.get_attribute("id") for one in page.query_selector_all(".plot")]:
        page.wait_for_selector(f"#{plot} svg path", state="attached")
    assert said == []
    assert asked == [path.as_uri()]
    for width in WIDTHS:
        page.set_viewport_size({"width": width, "height": 900})
        assert page.evaluate("document.documentElement.scrollWidth") <= width
    assert said == []
    page.close()
