"""The main job in a real browser: sample, roles, assess, anonymize, compare, ask, take away."""

from __future__ import annotations

import signal
from itertools import pairwise

import pytest
from patience import PATIENCE
from serving import started

# Selectors, not functions: the page's own policy forbids to evaluate text.
IDLE = "#working:empty"


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with started(tmp_path_factory.mktemp("service")) as (parts, _, process, _):
        yield parts
        process.send_signal(signal.SIGINT)


@pytest.fixture
def page(browser, address):
    """The page of a running service, its address, what it said, and what it asked for."""
    context = browser.new_context(viewport={"width": 1100, "height": 900})
    shown = context.new_page()
    shown.set_default_timeout(1000 * PATIENCE)
    said: list[str] = []
    asked: list[str] = []
    shown.on("console", lambda message: said.append(message.text))
    shown.on("pageerror", lambda error: said.append(str(error)))
    context.on("request", lambda asking: asked.append(asking.url))
    context.route("**/api/sample", lambda route: route.continue_(post_data='{"rows": 200}'))
    shown.goto(address.geturl())
    yield shown, f"http://{address.netloc}/", said, asked
    context.close()


def press(page, form):
    page.click(f"#{form}-form button[type=submit]")
    page.wait_for_selector(IDLE, state="attached")


def opened(page):
    """Open the sample and wait until all is drawn."""
    page.wait_for_selector("#version:not(:empty)")
    page.wait_for_selector(IDLE, state="attached")
    page.click("#sample")
    page.wait_for_selector("#columns select")
    page.wait_for_selector(IDLE, state="attached")


def test_the_main_job(page, tmp_path):
    shown, home, said, asked = page
    shown.wait_for_selector("#version:not(:empty)")
    assert shown.url == home  # the token is out of sight
    assert shown.is_hidden("#assess-form")
    opened(shown)
    shown.select_option("[aria-label='Role of visit']", "other")
    shown.fill("[aria-label='Levels of age']", "10, 50")
    press(shown, "anonymize")
    assert "not in use yet" in shown.inner_text("#anonymize-alert")
    assert shown.inner_text("#anonymize-result") == ""
    press(shown, "schema")
    press(shown, "assess")
    assert "rows alone in their class" in shown.inner_text("#assess-result")
    press(shown, "anonymize")
    result = shown.inner_text("#anonymize-result")
    assert "may leave" in result
    assert "✓ yes" in result
    press(shown, "compare")
    assert "highest risk" in shown.inner_text("#compare-result")
    press(shown, "query")
    assert "Levels" in shown.inner_text("#query-result")
    with shown.context.expect_page() as popup:
        shown.click("text=Open the report")
    popup.value.wait_for_selector("#plot-loss svg path", state="attached")
    assert popup.value.evaluate("self.origin") == "null"  # a stranger to the service
    with shown.expect_download() as saved:
        shown.click("text=Save the release as CSV")
    assert saved.value.suggested_filename == "release.csv"
    saved.value.save_as(tmp_path / "release.csv")
    assert "visit" in (tmp_path / "release.csv").read_text().splitlines()[0]
    shown.reload()
    shown.wait_for_selector("#query-result table")
    assert "✓ yes" in shown.inner_text("#anonymize-result")
    assert said == []
    assert all(url.startswith(home) for url in asked)


def test_errors_stand_below_their_form(page):
    shown, _, said, _ = page
    opened(shown)
    shown.fill("#promises-k", "9999")
    press(shown, "anonymize")
    assert "privacy." in shown.inner_text("#anonymize-alert")
    assert "achieved at best" in shown.inner_text("#anonymize-alert")
    shown.fill("#sql", "SELECT nonsense")
    press(shown, "query")
    assert "line 1" in shown.inner_text("#query-alert")
    shown.fill("#promises-k", "2")
    press(shown, "anonymize")
    assert shown.inner_text("#anonymize-alert") == ""
    assert said == []


def test_a_step_is_cancelled_and_started_again(page):
    shown, _, said, _ = page
    opened(shown)
    shown.fill("#anonymize-time-limit", "600")
    shown.select_option("#anonymize-method", "exact")  # more rows than it can prove in a day
    shown.evaluate("document.querySelector('#anonymize-demands').checked = true")
    shown.evaluate("document.querySelector('#promises-personal-k').checked = false")
    shown.fill("#promises-k", "3")
    shown.click("#anonymize-form button[type=submit]")
    shown.click("#cancel")
    shown.wait_for_selector(IDLE, state="attached")
    assert "cancelled" in shown.inner_text("#anonymize-alert")
    assert shown.inner_text("#anonymize-result") == ""
    shown.select_option("#anonymize-method", "")
    press(shown, "anonymize")
    assert "may leave" in shown.inner_text("#anonymize-result")
    assert said == []


def test_a_budget_is_granted_spent_and_shown(page, tmp_path):
    shown, _, said, _ = page
    rows = "\n".join(f"{20 + i},{'ab'[i % 2]},{i % 3}" for i in range(40))
    (tmp_path / "people.csv").write_text(f"age,sex,children\n{rows}\n")
    shown.wait_for_selector("#version:not(:empty)")
    shown.set_input_files("#file", tmp_path / "people.csv")
    press(shown, "table")
    shown.select_option("#role-0", "quasi")
    shown.select_option("#role-1", "quasi")
    shown.select_option("#role-2", "quasi")
    press(shown, "schema")
    assert "No budget is granted yet" in shown.inner_text("#budget-result")
    shown.fill("#synthesize-epsilon", "1")
    assert shown.is_hidden("#synthesize-k")
    press(shown, "synthesize")
    assert "Grant a privacy budget" in shown.inner_text("#synthesize-alert")
    shown.fill("#budget-epsilon", "1.5")
    shown.press("#budget-epsilon", "Enter")
    shown.wait_for_selector("#budget-result dl")
    assert shown.is_hidden("#budget-form")
    press(shown, "synthesize")
    assert "Write the public values" in shown.inner_text("#synthesize-alert")
    shown.fill("#domain-0", "0 to 100, in 4 parts")
    shown.fill("#domain-1", "a, b")
    shown.fill("#domain-2", "0, 1, 2")
    shown.click("#synthesize-form summary")
    shown.fill("#synthesize-given", "sex=a, age>=50")
    press(shown, "synthesize")
    assert "how many rows to draw" in shown.inner_text("#synthesize-alert")
    shown.fill("#synthesize-rows", "25")
    press(shown, "synthesize")
    assert "rows that leave" in shown.inner_text("#synthesize-result")
    assert "drawn given sex = a and age from 50" in shown.inner_text("#synthesize-result")
    assert "epsilon = 0.5" in shown.inner_text("#budget-result")
    press(shown, "synthesize")
    assert "does not suffice" in shown.inner_text("#synthesize-alert")
    shown.reload()
    shown.wait_for_selector("#budget-result dl")
    assert "epsilon = 0.5" in shown.inner_text("#budget-result")
    assert said == []


def test_a_table_is_masked_step_by_step(page, tmp_path):
    shown, _, said, _ = page
    rows = "\n".join(f"{20 + i},{'ab'[i % 2]},{i % 3}" for i in range(40))
    (tmp_path / "people.csv").write_text(f"age,sex,children\n{rows}\n")
    shown.wait_for_selector("#version:not(:empty)")
    shown.set_input_files("#file", tmp_path / "people.csv")
    press(shown, "table")
    for place in range(3):
        shown.select_option(f"#role-{place}", "quasi")
    press(shown, "schema")
    assert shown.get_attribute("#mask-steps", "placeholder") == "such as top-code age share=0.01"
    shown.click("#mask-form summary")
    assert "rank-swap COLUMN..." in shown.inner_text("#mask-words")
    shown.fill("#mask-steps", "round age base=20\n\nlocal-suppression k=3")
    shown.fill("#mask-k", "3")
    press(shown, "mask")
    assert "40 rows may leave after 2 steps" in shown.inner_text("#mask-result")
    assert "smallest class, people" in shown.inner_text("#mask-result")
    shown.fill("#mask-steps", "round sex base=20")
    press(shown, "mask")
    assert "sex" in shown.inner_text("#mask-alert")
    assert said == []


def test_promises_and_settings_beyond_the_common_ones(page):
    shown, _, said, _ = page
    opened(shown)
    shown.click("text=More promises")
    shown.fill("#promises-l-0", "2")
    shown.select_option("#promises-l-0-how", "entropy")
    shown.fill("#risks-sample-uniques", "0")
    assert shown.is_hidden("#risks-k-map")
    press(shown, "anonymize")
    told = shown.inner_text("#anonymize-result")
    assert "entropy l-diversity" in told
    assert "sample uniques" in told
    shown.click("#frontier > summary")
    shown.fill("#frontier-k", "2, 3")
    shown.fill("#frontier-suppression", "0")
    press(shown, "frontier")
    assert "✓ best" in shown.inner_text("#frontier-result")
    shown.click("#suggest")
    shown.wait_for_selector("#query-result pre")
    assert "GUARANTEE" in shown.inner_text("#query-result")
    assert said == []


def test_names_and_values_of_a_file_are_never_read_as_html(page, tmp_path):
    shown, _, said, _ = page
    hostile = "<img src=x onerror=alert(1)>"
    rows = "\n".join(f"{30 + i},{hostile}" for i in range(6))
    (tmp_path / "people.csv").write_text(f"age,{hostile}\n{rows}\n")
    shown.on("dialog", lambda dialog: said.append(dialog.message))
    shown.set_input_files("#file", tmp_path / "people.csv")
    press(shown, "table")
    assert "6 rows, 2 columns" in shown.inner_text("#headline")
    shown.select_option("#role-0", "quasi")
    shown.select_option("#role-1", "quasi")
    press(shown, "schema")
    press(shown, "assess")
    sql = 'SELECT "X", COUNT(*) AS n FROM people GROUP BY "X" GUARANTEE k = 2, l = 1'
    shown.fill("#sql", sql.replace("X", hostile))
    press(shown, "query")
    assert hostile in shown.inner_text("#query-result")
    assert shown.query_selector("main img") is None
    assert said == []


def test_without_the_token_the_page_says_what_to_do(page):
    shown, home, _, _ = page
    other = shown.context.browser.new_context().new_page()
    other.goto(home)
    other.wait_for_selector("#table-alert .alert")
    assert "open the address that halfmask serve printed" in other.inner_text("#table-alert")
    other.context.close()


def test_every_field_has_a_name_and_nothing_is_wider_than_the_screen(page):
    """On a phone, and then on a desk."""
    shown = page[0]
    shown.set_viewport_size({"width": 390, "height": 844})
    opened(shown)
    press(shown, "anonymize")
    for width in (390, 1100):
        shown.set_viewport_size({"width": width, "height": 844})
        assert shown.evaluate("document.documentElement.scrollWidth") <= width
        nameless = shown.evaluate(
            "[...document.querySelectorAll('input, select, textarea')]"
            ".filter(one => !one.labels?.length && !one.ariaLabel).map(one => one.id)"
        )
        assert nameless == []
        levels = shown.evaluate(
            "[...document.querySelectorAll('h1, h2, h3')].map(one => Number(one.tagName[1]))"
        )
        assert levels[0] == 1
        assert all(later - former <= 1 for former, later in pairwise(levels))


def test_a_table_that_another_tab_has_changed_is_not_worked_on(page, address):
    shown, _, _, _ = page
    opened(shown)
    assert shown.locator("#sample").evaluate("one => one === document.activeElement")
    other = shown.context.new_page()
    other.goto(address.geturl())
    other.wait_for_selector("#columns select")
    other.wait_for_selector(IDLE, state="attached")
    other.select_option("[aria-label='Role of visit']", "other")
    press(other, "schema")
    press(shown, "anonymize")
    assert "another tab" in shown.inner_text("#anonymize-alert")
    assert shown.inner_text("#anonymize-result") == ""
    shown.reload()
    shown.wait_for_selector("#version:not(:empty)")
    shown.wait_for_selector(IDLE, state="attached")
    press(shown, "assess")
    assert "rows alone in their class" in shown.inner_text("#assess-result")


def test_roles_that_are_not_in_use_are_not_lost_unasked(page):
    shown, _, _, _ = page
    opened(shown)
    shown.select_option("[aria-label='Role of visit']", "identifier")
    asked = []
    shown.on("dialog", lambda dialog: (asked.append(dialog.type), dialog.dismiss()))
    shown.close(run_before_unload=True)
    for _ in range(10 * PATIENCE):
        if asked:
            break
        shown.wait_for_timeout(100)
    assert asked == ["beforeunload"]
