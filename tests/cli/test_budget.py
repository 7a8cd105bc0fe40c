"""The verb of budgets: granted, shown, raised, bound, and never by accident."""

from __future__ import annotations

import pytest

ROWS = "id,city,pay,own\n" + "".join(
    f"{i},{('Lille', 'Nice')[i % 2]},{i % 90},{(0.05, 1)[i % 2]}\n" for i in range(400)
)
SCHEMA = """
[table]
person = "id"
[policy]
epsilon = "own"
levels = { epsilon = [0.05, 1] }
[columns.city]
role = "quasi"
domain = ["Lille", "Nice"]
[columns.pay]
role = "sensitive"
domain = { low = 0, high = 100 }
"""
COUNT = "SELECT COUNT(*) AS n FROM people"


@pytest.fixture
def people(tmp_path):
    (tmp_path / "people.csv").write_text(ROWS)
    (tmp_path / "people.toml").write_text(SCHEMA)
    return tmp_path / "people.csv"


def test_a_budget_is_created_shown_and_raised(halfmask, tmp_path, people):
    ledger = tmp_path / "people.ledger"
    made = halfmask("budget", "create", ledger, "--grant", "1", "--name", "people", "--json").json()
    assert (made["verb"], made["granted"], made["name"]) == ("budget", "epsilon = 1", "people")
    asked = ("query", people, f"{COUNT} WITH EPSILON 0.75", "--ledger", ledger)
    assert halfmask(*asked).code == 0
    failed = halfmask(*asked, "--ignore-demands")
    assert failed.code == 3
    assert "`halfmask budget raise people.ledger --to EPSILON --reason ...`" in failed.err
    shown = halfmask("budget", "show", ledger)
    assert "epsilon = 0.75" in shown.out
    more = halfmask(
        "budget", "raise", ledger, "--to", "2", "--reason", "the board agreed", "--json"
    ).json()
    assert more["left"] == "epsilon = 1.25"
    assert [one["reason"] for one in more["grants"]] == ["", "the board agreed"]
    assert more["levels"] == [{"epsilon": 0.05, "left": 0.05}, {"epsilon": 1.0, "left": 0.25}]
    assert halfmask("budget", "raise", ledger, "--to", "1", "--reason", "less").code == 1


def test_a_level_that_is_spent_is_left_out_and_the_controller_can_set_it_aside(
    halfmask, tmp_path, people
):
    ledger = tmp_path / "x"
    halfmask("budget", "create", ledger, "--grant", "9")
    asked = ("query", people, f"{COUNT} WITH EPSILON 1", "--ledger", ledger, "--json")
    first = halfmask(*asked).json()
    assert first["data"][0]["n"] == pytest.approx(200, abs=20)
    refused = halfmask(*asked)
    assert refused.code == 2
    assert "No public level of epsilon allows this" in refused.err
    aside = halfmask(*asked, "--ignore-demands").json()
    assert aside["answer"]["outcome"].startswith("People's own demands")
    assert aside["data"][0]["n"] == pytest.approx(400, abs=20)


def test_personal_epsilons_are_spent_by_shares(halfmask, tmp_path, people):
    ledger = tmp_path / "x"
    halfmask("budget", "create", ledger, "--grant", "9")
    asked = ("query", people, COUNT, "--epsilon", "personal", "--share", "0.5", "--json")
    told = halfmask(*asked, "--ledger", ledger).json()
    assert told["answer"]["parameters"]["personal"]["costs"] == [0.025, 0.5]
    assert halfmask(*asked, "--ledger", ledger).code == 0
    assert halfmask(*asked, "--ledger", ledger).code == 2


def test_disjoint_cities_cost_once(halfmask, tmp_path, people):
    ledger = tmp_path / "x"
    halfmask("budget", "create", ledger, "--grant", "1", "--partition", "city")
    for city in ("Lille", "Nice"):
        sql = f"{COUNT} WHERE city = '{city}' AND pay > 3 WITH EPSILON 1"
        assert halfmask("query", people, sql, "--ledger", ledger).code == 0
    shown = halfmask("budget", "show", ledger, "--json").json()
    assert shown["spent"] == "epsilon = 1"
    assert [one["part"] for one in shown["spendings"]] == [["lille"], ["nice"]]
    for where in ("city = 'Lille' OR pay > 3", "city <> 'Lille'", "city IN ('Lille', 'Pau')"):
        sql = f"{COUNT} WHERE {where} WITH EPSILON 0.5"
        assert halfmask("query", people, sql, "--ledger", ledger, "--ignore-demands").code == 3


def test_a_ledger_of_another_table_is_refused_until_it_is_bound(halfmask, tmp_path, people):
    ledger = tmp_path / "x"
    halfmask("budget", "create", ledger, "--grant", "9")
    asked = f"{COUNT} WITH EPSILON 0.05"
    assert halfmask("query", people, asked, "--ledger", ledger).code == 0
    (tmp_path / "other.csv").write_text("a\n1\n2\n")
    refused = halfmask("query", tmp_path / "other.csv", asked, "--ledger", ledger)
    assert refused.code == 2
    assert "keeps the budget of another table" in refused.err
    done = halfmask("budget", "bind", ledger, tmp_path / "other.csv", "--reason", "renamed")
    assert done.code == 0
    assert halfmask("query", tmp_path / "other.csv", asked, "--ledger", ledger).code == 0


def test_a_keyed_ledger_needs_its_key(halfmask, tmp_path, people):
    ledger, key = tmp_path / "x", tmp_path / "key"
    key.write_bytes(b"sixteen bytes or more")
    halfmask("budget", "create", ledger, "--grant", "9", "--key", key)
    asked = ("query", people, f"{COUNT} WITH EPSILON 0.05", "--ledger", ledger)
    assert "another key" in halfmask(*asked).err
    assert halfmask(*asked, "--ledger-key", key).code == 0
    assert halfmask("budget", "show", ledger, "--key", key).code == 0


@pytest.mark.parametrize("clause", ["EPSILON 21", "EPSILON 1 DELTA 0.001"])
def test_what_promises_next_to_nothing_needs_insistence(halfmask, people, clause):
    asked = ("query", people, f"{COUNT} WITH {clause}", "--ignore-demands")
    refused = halfmask(*asked)
    assert refused.code == 2
    assert "--insist" in refused.err
    assert halfmask(*asked, "--insist").code == 0


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (("create", "L", "--grant", "2"), "`halfmask budget raise L --to EPSILON --reason ...`"),
        (("create", "gone/L", "--grant", "2"), "cannot be made here"),
        (("create", "M", "--grant", "abc"), "such as 3 or 3,1e-6"),
        (("create", "M", "--grant", "1,2,3"), "such as 3 or 3,1e-6"),
        (("create", "M", "--grant", "1,1e-6", "--rho"), "one number, the rho"),
        (("create", "M", "--grant", "0", "--rho"), "more than 0"),
        (("show", "N"), "`halfmask budget create N --grant EPSILON`"),
        (("show", "people.csv"), "is not a ledger: name one"),
        (("raise", "L", "--to", "2,1e-6", "--reason", "more"), "an epsilon alone"),
        (("raise", "L", "--to", "x", "--reason", "more"), "such as 3 or 3,1e-6"),
        (("raise", "L", "--to", "2", "--reason", " "), "why, in a few words"),
        (("show", "L", "--key", "nokey"), "key of the ledger cannot be read"),
    ],
    ids=" ".join,
)
def test_a_newcomers_mistake_is_input_and_says_what_to_do(
    halfmask, tmp_path, people, monkeypatch, arguments, told
):
    monkeypatch.chdir(tmp_path)
    halfmask("budget", "create", "L", "--grant", "1")
    failed = halfmask("budget", *arguments)
    assert failed.code == 1
    assert told in failed.err
    assert halfmask("budget", "show", "L", "--json").json()["granted"] == "epsilon = 1"


def test_show_says_whether_a_table_is_bound(halfmask, tmp_path, people):
    ledger = tmp_path / "L"
    assert "no table yet" in halfmask("budget", "create", ledger, "--grant", "1").out
    bound = halfmask("budget", "bind", ledger, people, "--reason", "this one")
    assert "by its columns" in bound.out


def test_a_missing_file_of_domains_is_said_to_be_missing(halfmask, people):
    failed = halfmask("query", people, f"{COUNT} WITH EPSILON 1", "--domains", "nosuch.toml")
    assert failed.code == 1
    assert "There is no file 'nosuch.toml' of domains" in failed.err


def test_the_words_of_personal_epsilons_in_the_wrong_order_are_set_right(halfmask, people):
    failed = halfmask("query", people, f"{COUNT} WITH EPSILON PERSONAL")
    assert failed.code == 1
    assert "for everybody's own, write WITH PERSONAL EPSILON" in failed.err


def test_what_was_set_aside_is_said_first_by_every_noisy_verb(halfmask, tmp_path, people):
    said = (
        "People's own demands of epsilon were set aside by the controller: the epsilon alone is "
        "promised to them. How many people state one is not told under noise."
    )
    report = tmp_path / "r.html"
    ask = ("query", people, f"{COUNT} WITH EPSILON 0.5", "--ignore-demands")
    domains = tmp_path / "d.toml"
    domains.write_text("pay = { low = 0, high = 100, bins = 4 }")
    make = ("synthesize", people, "--epsilon", "0.5", "--domains", domains, "--ignore-demands")
    for verb in (ask, make):
        told = halfmask(*verb, "--report", report)
        assert told.err.splitlines()[0] == said
        assert told.err.count(said) == 1
        assert report.read_text().index("were set aside") < report.read_text().index("rows may")
        found = halfmask(*verb, "--json").json()
        found = found.get("answer", found)
        assert found["demands"] == {"kept": False, "of": ["epsilon"]}
        assert list(found).index("demands") < list(found).index("outcome")
        kept = halfmask(*(one for one in verb if one != "--ignore-demands"), "--json").json()
        assert kept.get("answer", kept)["demands"] == {"kept": True}


def test_what_was_set_aside_is_said_first_by_frontier(halfmask, tmp_path):
    rows = "age,k\n" + "".join(f"{20 + i % 10},{3}\n" for i in range(60))
    (tmp_path / "p.csv").write_text(rows)
    (tmp_path / "p.toml").write_text('[policy]\nk = "k"\n[columns.age]\nrole = "quasi"\n')
    verb = ("frontier", tmp_path / "p.csv", "--k", "2", "--ignore-demands")
    said = "The own demands of 60 people were set aside"
    report = tmp_path / "f.html"
    told = halfmask(*verb, "-o", report)
    assert told.err.startswith(said)
    assert told.err.count(said) == 1
    page = report.read_text()
    assert page.index(said) < page.index("tried")
    found = halfmask(*verb, "--json").json()
    assert found["demands"] == {"kept": False, "people": 60}
    assert list(found).index("demands") < list(found).index("points")
