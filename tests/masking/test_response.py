"""Randomized response: chances by formula, shares by hand, what the door and people demand."""

from __future__ import annotations

import json
import math
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.dp.mechanisms import RandomizedResponse
from halfmask.dp.sampling import Sampler
from halfmask.errors import InputError, InternalError, ParameterError, PrivacyError, SchemaError
from halfmask.masking import run
from halfmask.masking.methods.response import read_responses
from halfmask.masking.step import Rows
from halfmask.release.doors.responses import ResponseClaim, estimate_answers
from halfmask.report.plots import half_width

M = hm.masks
LN3 = math.log(3)


def town(size: int = 400, *, policy=None, person=False, role="sensitive", more=None) -> hm.Table:
    columns = {"smokes": ["yes" if i % 4 == 0 else "no" for i in range(size)]}
    schema = {"smokes": {"role": role, "domain": ["yes", "no"]}}
    columns["age"] = [20 + i % 3 for i in range(size)]
    schema["age"] = "quasi"
    columns |= more or {}
    written: dict = {"columns": schema}
    if person:
        columns["id"] = [f"p{i // 2}" for i in range(size)]
        written["table"] = {"person": "id"}
    if policy:
        written["policy"] = policy
    return hm.read(pa.table(columns), schema=written)


def alone(own=None, size: int = 300) -> hm.Table:
    """One column that leaves, and what people demand."""
    columns = {"smokes": ["yes", "no", "no"] * (size // 3)}
    schema: dict = {"columns": {"smokes": {"role": "quasi", "domain": ["yes", "no"]}}}
    if own is not None:
        columns["own"] = [own] * size
        schema["policy"] = {"epsilon": "own"}
    return hm.read(pa.table(columns), schema=schema)


@pytest.mark.parametrize("values", [2, 3, 7])
@pytest.mark.parametrize("epsilon", ["0.1", "1", "4.5"])
def test_two_answers_differ_by_a_factor_of_e_to_epsilon_and_no_more(epsilon, values):
    domain = [f"v{i}" for i in range(values)]
    people = hm.read(
        {"a": ["v0", "v1"] * 50},
        schema={"columns": {"a": {"role": "quasi", "domain": domain}}},
    )
    (receipt,) = hm.randomize(people, "a", epsilon=float(epsilon)).statement["randomized"]
    power = math.exp(float(epsilon))
    assert receipt["truth"] == pytest.approx(power / (power + values - 1), rel=1e-12)
    assert receipt["other"] == pytest.approx(1 / (power + values - 1), rel=1e-12)
    assert receipt["bound"] == pytest.approx(receipt["truth"], rel=1e-9)  # Theorem 22 is reached
    exact = RandomizedResponse(Fraction(epsilon), values)
    assert float(exact.truth / exact.other) <= power * (1 + 1e-15)


def test_fair_coins_are_the_worked_example():
    (receipt,) = hm.randomize(town(), "smokes", epsilon=LN3).statement["randomized"]
    assert receipt["truth"] == pytest.approx(0.75)
    assert receipt["bound"] == pytest.approx(0.75)
    # x = 2 x_obs - n / 2: of 100 answers 60 say yes.
    yes, no = estimate_answers([60, 40], 0.75)
    assert (yes["share"], no["share"]) == (pytest.approx(0.7), pytest.approx(0.3))


def test_shares_have_no_bias_over_seeds():
    """100 of 400 smoke; with fair coins the estimate has variance (3/16) / 400 / (1/2)^2."""
    seeds, people, step = 300, town(), M.Randomize("smokes", epsilon=LN3)
    shares, held = [], []
    for seed in range(seeds):
        random = np.random.default_rng(seed)
        rows = Rows(people, random, people, Sampler(random.bytes))
        told = step.apply(rows).columns["smokes"].to_pylist()
        yes, no = estimate_answers([told.count("yes"), told.count("no")], 0.75)
        assert yes["share"] + no["share"] == pytest.approx(1)
        shares.append(yes["share"])
        held.append(yes["low"] <= 0.25 <= yes["high"])
    deviation = math.sqrt(3 / 16 / 400 / 0.25)
    assert abs(np.mean(shares) - 0.25) < 4 * deviation / math.sqrt(seeds)
    assert np.std(shares) == pytest.approx(deviation, rel=0.2)
    assert np.mean(held) > 0.93


def test_a_lie_is_any_other_answer_alike():
    people = hm.read(
        {"a": ["x"] * 9000}, schema={"columns": {"a": {"role": "quasi", "domain": list("xyzw")}}}
    )
    random = np.random.default_rng(1)
    rows = Rows(people, random, people, Sampler(random.bytes))
    told = M.Randomize("a", epsilon=1).apply(rows).columns["a"].to_pylist()
    other = 1 / (math.e + 3)
    for value in "yzw":
        assert abs(told.count(value) / 9000 - other) < 4 * math.sqrt(other * (1 - other) / 9000)


def test_answers_come_from_the_declaration_and_never_from_rows():
    wide = ["yes", "no", "never asked"]
    columns = {"smokes": {"role": "quasi", "domain": wide}}
    people = hm.read({"smokes": ["yes", "pipe", None] * 60}, schema={"columns": columns})
    release = hm.mask(people, M.Randomize("smokes", epsilon=0.5), seed=2)
    assert set(release.to_arrow()["smokes"].to_pylist()) == set(wide)
    assert release.to_arrow()["smokes"].null_count == 0
    named = {**columns, "smokes": {"role": "quasi", "domain": {"values": wide, "other": "no"}}}
    people = hm.read({"smokes": ["pipe"] * 200}, schema={"columns": named})
    _, no, _ = hm.estimate_shares(hm.mask(people, M.Randomize("smokes", epsilon=3), seed=2))
    assert no.low < 1 == no.high


@pytest.mark.parametrize(
    "domain", [None, ["yes"], {"low": 0, "high": 9, "bins": 3}, [str(i) for i in range(1001)]]
)
def test_a_column_without_listed_answers_is_refused(domain):
    declared = {"role": "quasi"} | ({} if domain is None else {"domain": domain})
    people = hm.read({"smokes": ["yes", "no"]}, schema={"columns": {"smokes": declared}})
    with pytest.raises(SchemaError, match="answers"):
        hm.randomize(people, "smokes", epsilon=1)


def test_bad_epsilons_columns_and_orders_are_refused():
    for epsilon in (0, -1, 21, math.nan, math.inf, "1"):
        with pytest.raises(ParameterError):
            hm.randomize(town(), "smokes", epsilon=epsilon)
    with pytest.raises(InputError, match="No column"):
        hm.randomize(town(), epsilon=1)
    with pytest.raises(SchemaError, match="not in the table"):
        hm.randomize(town(), "drinks", epsilon=1)
    step = M.Randomize("smokes", epsilon=1)
    with pytest.raises(InputError, match="comes first"):
        hm.mask(town(), M.Round("age", base=2), step)
    with pytest.raises(InputError, match="once"):
        hm.mask(town(), step, step)
    with pytest.raises(PrivacyError, match="later step changes"):
        hm.mask(town(), step, M.Pram("smokes", keep=0.5))
    with pytest.raises(PrivacyError, match="takes out"):
        hm.mask(town(), step, M.Suppress("smokes"))
    with pytest.raises(PrivacyError, match="whose answers are randomized"):
        hm.mask(town(), step, models=[hm.LDiversity(2, "smokes")])


def test_what_is_promised_is_told_with_its_column_and_what_is_not():
    release = hm.randomize(town(), "smokes", epsilon=1)
    document = release.to_dict()
    assert (
        "local differential privacy of each row's 'smokes'" in document["statement"]["claimed"][0]
    )
    assert document["statement"]["not_claimed"][0] == "differential privacy of 'age'"
    assert "local differential privacy" in document["outcome"]
    seeded = hm.mask(town(), M.Randomize("smokes", epsilon=1), seed=1).to_dict()
    assert seeded["statement"]["randomized"][0]["secure_noise"] is False
    assert "nothing" in seeded["statement"]["claimed"][0]
    assert "no formal promise" in seeded["outcome"]


def test_an_own_epsilon_is_kept_or_the_table_refused():
    assert len(hm.randomize(alone(own=1.0), "smokes", epsilon=1)) == 300
    with pytest.raises(PrivacyError, match="300 people state an own epsilon below"):
        hm.randomize(alone(own=0.5), "smokes", epsilon=1)
    aside = hm.randomize(alone(own=0.5), "smokes", epsilon=1, demands="ignore")
    assert "set aside" in aside.notes[0]
    with pytest.raises(PrivacyError, match="own epsilon"):  # a seed promises nothing
        hm.mask(alone(own=1.0), M.Randomize("smokes", epsilon=1), seed=1)
    with pytest.raises(PrivacyError, match="own epsilon"):
        hm.randomize(alone(), "smokes", epsilon=1, policies={"epsilon": 0.9})


def test_an_own_epsilon_alone_is_not_kept_where_another_column_has_no_noise():
    with pytest.raises(PrivacyError, match="400 people state an own epsilon and no k"):
        hm.randomize(town(policy={"epsilon": 5}), "smokes", epsilon=1)
    both = town(policy={"epsilon": 5, "k": 2})
    release = hm.randomize(both, "smokes", epsilon=1)
    assert any("own epsilon is kept for 'smokes'" in note for note in release.notes)
    with pytest.raises(PrivacyError, match="below what their randomized answers cost"):
        hm.randomize(town(policy={"epsilon": 0.5, "k": 2}), "smokes", epsilon=1)


def test_every_row_of_a_person_costs():
    policy = {"epsilon": 1.9, "k": 2}
    with pytest.raises(PrivacyError, match="200 people"):
        hm.randomize(town(policy=policy, person=True), "smokes", epsilon=1)
    assert hm.randomize(town(policy=policy, person=True), "smokes", epsilon=0.95)


def test_later_steps_see_told_answers_only():
    seen = []

    class Look(M.Round):
        __slots__ = ()

        def apply(self, rows):
            seen.append((rows.table.arrow["smokes"], rows.original.arrow["smokes"]))
            return super().apply(rows)

    look = Look("age", base=2)
    hm.mask(town(), M.Randomize("smokes", epsilon=0.1), look)
    ((table, original),) = seen
    assert table.to_pylist() == original.to_pylist()
    assert original.to_pylist() != town().arrow["smokes"].to_pylist()


@pytest.mark.parametrize("fault", ["untold", "changed", "weak", "order"])
def test_the_door_finds_a_false_claim(monkeypatch, fault):
    """A step that lies about what it told is found by the door's own look."""
    sealed = run.seal

    def forge(candidate):
        (claim,) = candidate.claims
        table = candidate.table
        if fault == "untold":
            claim = replace(claim, told=table.arrow["smokes"].combine_chunks().cast(pa.string()))
            arrow = candidate.rows.arrow.set_column(
                candidate.rows.arrow.column_names.index("smokes"), "smokes", claim.told
            )
            candidate = replace(candidate, rows=table.with_schema(table.schema, arrow))
        if fault == "changed":
            candidate = replace(candidate, rows=table)
        if fault == "weak":
            claim = replace(claim, epsilon=claim.epsilon / 2)
        if fault == "order":
            candidate = replace(candidate, steps=[{"mask": "round", "changes": []}])
        return sealed(replace(candidate, claims=[claim]))

    monkeypatch.setattr(run, "seal", forge)
    with pytest.raises((InternalError, PrivacyError)):
        hm.randomize(town(800), "smokes", epsilon=1)


def test_rows_of_a_release_are_estimated_by_their_report(tmp_path):
    release = hm.randomize(town(), "smokes", epsilon=1)
    release.report(tmp_path / "out.json")
    release.write(tmp_path / "out.csv")
    (told,) = read_responses(tmp_path / "out.json")
    rows = hm.read(tmp_path / "out.csv", schema={"smokes": "sensitive", "age": "quasi"})
    again = hm.estimate_shares(rows, "smokes", epsilon=told["epsilon"], values=told["values"])
    assert again == hm.estimate_shares(release)
    release.report(tmp_path / "out.html")
    page = (tmp_path / "out.html").read_text(encoding="utf-8")
    assert "Theorem 22" in page
    assert "plot-bound-0" in page and "plot-error-0" in page  # noqa: PT018
    with pytest.raises(InputError, match="could not be told"):
        hm.estimate_shares(rows, "smokes", epsilon=1, values=["yes", "maybe"])
    with pytest.raises(ParameterError):
        hm.estimate_shares(rows, "smokes", values=["yes", "no"])
    with pytest.raises(InputError, match="Name a column"):
        hm.estimate_shares(rows, "drinks", epsilon=1)
    (tmp_path / "other.json").write_text(json.dumps({"statement": {}}))
    with pytest.raises(InputError, match="no report of a release with randomized"):
        read_responses(tmp_path / "other.json")


def test_no_rows_say_nothing_and_the_plot_follows_the_formula():
    assert estimate_answers([0, 0], 0.75)[0] == {"told": 0, "share": None, "low": 0.0, "high": 1.0}
    # Fair coins, half yes: 1.96 * sqrt(1/4 / n) / (1/2).
    assert half_width(LN3, 2, 2500) == pytest.approx(1.959964 * 0.5 / 50 / 0.5, rel=1e-6)
    # Three answers at ln 4: p = 4/6, q = 1/6, sqrt(2/9 / 200) / (1/2).
    assert half_width(math.log(4), 3, 200) == pytest.approx(1.959964 * math.sqrt(2 / 9 / 200) * 2)


def test_a_claim_speaks_of_its_column():
    claim = ResponseClaim("a", Fraction(1), Fraction(7, 10), pa.array(["x"]), secure=True)
    assert "'a'" in claim.words


def test_no_quasi_identifier_is_asked_for_where_only_answers_leave():
    only = hm.read(
        {"smokes": ["yes", "no", "no"] * 100, "id": list(range(300))},
        schema={"table": {"person": "id"}, "columns": {
            "smokes": {"role": "sensitive", "domain": ["yes", "no"]}}},
    )  # fmt: skip
    release = hm.randomize(only, "smokes", epsilon=1)
    assert release.to_arrow().column_names == ["smokes"]
    assert release.statement["not_claimed"] == ["that a cell is as it was, where a step changed "
                                                "its column"]  # fmt: skip
    assert release.measured["linked"]["value"] is None
    with pytest.raises(SchemaError, match="quasi"):  # a second column leaves as it is
        hm.randomize(
            hm.read(
                {"smokes": ["yes", "no"] * 50, "pay": list(range(100))},
                schema={"columns": {"smokes": {"role": "sensitive", "domain": ["yes", "no"]},
                                    "pay": "sensitive"}},
            ), "smokes", epsilon=1,
        )  # fmt: skip


def test_a_k_that_somebody_demands_still_needs_a_quasi_identifier():
    people = hm.read(
        {"smokes": ["yes", "no", "no"] * 10},
        schema={"policy": {"k": 5}, "columns": {
            "smokes": {"role": "sensitive", "domain": ["yes", "no"]}}},
    )  # fmt: skip
    with pytest.raises(SchemaError, match="quasi"):
        hm.randomize(people, "smokes", epsilon=1)
