"""The private side of ``halfmask synthesize``."""

from __future__ import annotations

import pytest

from halfmask.dp.budget import Pure
from halfmask.dp.ledger import BudgetLedger


@pytest.fixture
def files(tmp_path):
    table = tmp_path / "people.csv"
    table.write_text("sex,age\n" + "f,31\nm,52\n" * 200, encoding="utf-8")
    domains = tmp_path / "domains.toml"
    domains.write_text(
        'sex = ["f", "m"]\nage = { low = 0, high = 100, bins = 10 }\n', encoding="utf-8"
    )
    return table, domains, tmp_path


def test_a_private_table_with_its_receipt(halfmask, files):
    table, domains, folder = files
    out, report = folder / "out.csv", folder / "out.json"
    done = halfmask(
        "synthesize", table, "--epsilon", "1", "--domains", domains, "-o", out, "--report", report
    )
    assert done.code == 0, done.err
    assert "epsilon = 1" in done.out
    assert "best chance" in done.out
    assert out.read_text(encoding="utf-8").startswith('"sex","age"')
    assert "halfmask.private/1" in report.read_text(encoding="utf-8")
    document = halfmask(
        "synthesize", table, "--epsilon", "1", "--domains", domains, "--json"
    ).json()
    assert document["privacy"]["promise"] == {"kind": "pure", "epsilon": "1"}


def test_bounds_are_bought_in_one_line(halfmask, files):
    table, domains, _ = files
    domains.write_text('sex = ["f", "m"]\nage = { bins = 10, integer = true }\n')
    call = ("synthesize", table, "--epsilon", "2", "--domains", domains, "--json")
    document = halfmask(*call, "--bounds", "0.5").json()
    views = {one["view"]: one["cost"] for one in document["privacy"]["views"]}
    assert views["bounds of age"] == {"kind": "pure", "epsilon": "1"}
    refused = halfmask(*call)
    assert refused.code == 1
    assert halfmask("synthesize", table, "--bounds", "0.5").code == 1


def test_an_empty_budget_is_exit_code_3(halfmask, files):
    table, domains, folder = files
    ledger = folder / "people.ledger"
    BudgetLedger.create(ledger, Pure("0.5"))
    call = ("synthesize", table, "--domains", domains, "--ledger", ledger, "--epsilon")
    assert halfmask(*call, "0.4").code == 0
    refused = halfmask(*call, "0.4", "--json")
    assert refused.code == 3
    details = refused.json()["details"]
    assert details["remaining"] == {"kind": "pure", "epsilon": "1/10"}
    assert details["missing"] == {"kind": "pure", "epsilon": "3/10"}


def test_a_missing_domain_is_told(halfmask, files):
    table, domains, _ = files
    domains.write_text('sex = ["f", "m"]\n', encoding="utf-8")
    refused = halfmask("synthesize", table, "--epsilon", "1", "--domains", domains)
    assert refused.code == 1
    assert "'age' has no public domain" in refused.err
    domains.write_text("not toml", encoding="utf-8")
    assert halfmask("synthesize", table, "--epsilon", "1", "--domains", domains).code == 1


def test_private_methods_take_no_seed(halfmask, files):
    table, domains, _ = files
    refused = halfmask("synthesize", table, "--epsilon", "1", "--domains", domains, "--seed", "1")
    assert refused.code == 1
    assert "seed" in refused.err
