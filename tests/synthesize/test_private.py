from __future__ import annotations

import inspect
import json

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.dp.accountant import Accountant
from halfmask.dp.budget import Approximate, Pure
from halfmask.errors import BudgetExceededError, ParameterError, PrivacyError, SchemaError
from halfmask.release.release import SealedGuarantee
from halfmask.table.schema import Schema
from halfmask.table.table import Table


def test_a_missing_domain_is_an_error_that_says_how_to_give_it(people) -> None:
    with pytest.raises(SchemaError) as caught:
        hm.synthesize(people, epsilon=1, domains={"sex": ["f", "m"]})
    assert "'job', 'age', 'ill'" in str(caught.value)
    assert "without looking at the rows" in str(caught.value)


@pytest.mark.parametrize("method", ["auto", "marginals", "histogram", "privbayes"])
def test_a_release_carries_its_receipt_and_the_attackers_bound(method, people, domains) -> None:
    made = hm.synthesize(people, method, epsilon=1, delta="1e-6", domains=domains)
    assert isinstance(made, hm.PrivateRelease)
    assert made.receipt.promise == Approximate(1, "1e-6")
    assert made.receipt.secure
    assert [bound.column for bound in made.bounds] == ["(in the table?)", *domains]
    document = made.to_dict()
    assert document["privacy"]["promise"]["epsilon"] == "1"
    assert document["attacker"][0]["after"] > 0.5
    assert "epsilon = 1" in document["outcome"]
    assert made.to_arrow().schema.field("age").type == pa.int64()
    assert set(made.to_arrow()["sex"].unique().to_pylist()) <= {"f", "m"}


def test_the_number_of_rows_is_noisy_unless_stated(people, domains) -> None:
    sizes = {
        len(hm.synthesize(people, "histogram", epsilon="0.05", domains=domains)) for _ in range(6)
    }
    assert len(sizes) > 1
    assert len(hm.synthesize(people, "histogram", epsilon=1, domains=domains, rows=77)) == 77


def test_releases_share_one_budget(people, domains, tmp_path) -> None:
    ledger = hm.BudgetLedger.create(tmp_path / "people.ledger", Pure(1))
    accountant = hm.Accountant.of(ledger)
    hm.synthesize(people, "histogram", epsilon="0.7", domains=domains, accountant=accountant)
    with pytest.raises(BudgetExceededError) as caught:
        hm.synthesize(people, "histogram", epsilon="0.7", domains=domains, accountant=accountant)
    assert caught.value.remaining == Pure("0.3")
    (line,) = ledger.history()
    assert line.purpose == "synthesize (histogram)"


def test_spent_even_if_the_method_fails(people, domains, monkeypatch) -> None:
    """The budget is spent before the rows are touched: a failure after it gives nothing back."""
    from halfmask.synthesize import private

    def learn(views, *, ordered=()):
        views.count((), views.limit)
        raise ParameterError("rows", len(ordered), "other ones")

    monkeypatch.setitem(private.PRIVATE, "broken", learn)
    accountant = hm.Accountant(Pure(1))
    with pytest.raises(ParameterError):
        hm.synthesize(people, "broken", epsilon=1, domains=domains, accountant=accountant)
    assert accountant.remaining == Pure(0)


def test_auto_picks_by_public_size_alone(people, domains) -> None:
    small = Table(people.arrow.select(["sex", "ill"]), Schema())
    two = {name: domains[name] for name in ("sex", "ill")}
    assert hm.synthesize(small, epsilon=1, domains=two).method == "histogram"
    assert hm.synthesize(people, epsilon=1, domains=domains).method == "marginals"


def test_identifiers_people_and_policies_do_not_leave(people, domains) -> None:
    arrow = people.arrow.append_column("who", pa.array(range(4000))).append_column(
        "name", pa.array([f"n{i}" for i in range(4000)])
    )
    schema = Schema({"name": "identifier"}, person="who")
    made = hm.synthesize(Table(arrow, schema), epsilon=1, domains=domains)
    assert made.to_arrow().column_names == list(domains)


def test_a_declared_order_is_a_public_domain() -> None:
    rows = pa.table({"grade": ["low", "high"] * 50, "sex": ["f", "m"] * 50})
    schema = Schema.from_dict(
        {
            "columns": {
                "grade": {"role": "quasi", "kind": "ordinal", "order": ["low", "high"]},
                "sex": "quasi",
            }
        }
    )
    made = hm.synthesize(Table(rows, schema), epsilon=1, domains={"sex": ["f", "m"]})
    assert set(made.to_arrow()["grade"].unique().to_pylist()) <= {"low", "high"}


def test_there_is_no_seed() -> None:
    assert "seed" not in inspect.signature(hm.synthesize).parameters
    assert "sampler" not in inspect.signature(hm.synthesize).parameters


def test_impossible_wishes_are_refused(people, domains) -> None:
    for options in ({"epsilon": 0}, {"epsilon": 1, "rows": 0}, {"epsilon": 1, "delta": 1}):
        with pytest.raises(ParameterError):
            hm.synthesize(people, domains=domains, **options)
    with pytest.raises(ParameterError, match="marginals"):
        hm.synthesize(people, "magic", epsilon=1, domains=domains)


def test_no_value_of_the_table_in_errors_or_repr(domains) -> None:
    canary = "canary-7f3a"
    table = Table(pa.table({"sex": [canary] * 10}), Schema())
    with pytest.raises(SchemaError) as caught:
        hm.synthesize(table, epsilon=1)
    assert canary not in str(caught.value)
    made = hm.synthesize(table, epsilon=1, domains={"sex": ["f", "m"]})
    assert canary not in repr(made) + json.dumps(made.to_dict())
    assert canary not in made.to_arrow()["sex"].to_pylist()


def test_files_and_reports(people, domains, tmp_path) -> None:
    made = hm.synthesize(people, epsilon=1, domains=domains)
    made.write(tmp_path / "people.parquet")
    made.report(tmp_path / "people.json")
    made.report(tmp_path / "people.html")
    page = (tmp_path / "people.html").read_text(encoding="utf-8")
    assert "epsilon = 1" in page
    assert "(in the table?)" in page
    assert "<script" not in page
    assert json.loads((tmp_path / "people.json").read_text())["format"] == "halfmask.private/1"
    with pytest.raises(ValueError, match="json"):
        made.report(tmp_path / "people.txt")
    assert len(made.to_pandas()) == len(made.to_polars()) == len(made)
    assert made.native() is made.to_arrow()


def test_nobody_else_makes_a_private_release() -> None:
    with pytest.raises(PrivacyError):
        hm.PrivateRelease(guarantee=SealedGuarantee(), method="x", _arrow=None, door=object())


@pytest.mark.parametrize(
    ("method", "options"),
    [
        ("privbayes", {"preset": "best"}),
        ("privbayes", {"theta": -1.0}),
        ("dp-cocluster", {"first": 2}),
        ("dpcocgen", {"blocks": 0}),
        ("marginals", {"colour": 1}),
    ],
    ids=str,
)
def test_what_a_method_refuses_costs_nothing(people, domains, method, options) -> None:
    accountant = Accountant(Pure(3))
    with pytest.raises(ParameterError):
        hm.synthesize(people, method, epsilon=1, domains=domains, accountant=accountant, **options)
    assert accountant.remaining == Pure(3)


def test_a_setting_of_noise_without_epsilon_asks_for_it() -> None:
    rows = hm.read({"sex": ["f", "m"]})
    with pytest.raises(ParameterError, match="rows_per_person belongs to noise"):
        hm.synthesize(rows, "cocluster", rows_per_person=2)
