"""Synthetic tables in which every person keeps an own epsilon, read from the schema's policy."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from effort import THOROUGH
from noise import least_epsilon, repeatable

import halfmask as hm
from halfmask.dp import Pure
from halfmask.dp.personal import PersonalPlan, PersonalSample, levels_of
from halfmask.errors import PrivacyError, SchemaError

DOMAINS = {"job": ["a", "b", "c", "d"], "ill": ["no", "yes"]}
SCHEMA = {"columns": {"job": "quasi", "ill": "sensitive"}, "policy": {"epsilon": "own"}}


def people(rows: int, own: list[float | None], **policy) -> hm.Table:
    random = np.random.default_rng(2)
    job = random.integers(0, 4, rows)
    table = pa.table(
        {
            "job": np.array(DOMAINS["job"])[job],
            "ill": np.where(random.random(rows) < job / 5, "yes", "no"),
            "own": pa.array([own[i % len(own)] for i in range(rows)], pa.float64()),
        }
    )
    return hm.read(table, {**SCHEMA, "policy": {"epsilon": "own", **policy}})


def distance(release, table: hm.Table) -> float:
    """The total variation between the joint tables of job and illness."""

    def shares(arrow: pa.Table) -> dict:
        pairs = list(zip(arrow["job"].to_pylist(), arrow["ill"].to_pylist(), strict=True))
        return {p: pairs.count(p) / len(pairs) for p in set(pairs)}

    a, b = shares(release.to_arrow()), shares(table.arrow)
    return sum(abs(a.get(p, 0) - b.get(p, 0)) for p in {*a, *b}) / 2


LEVELS = {"epsilon": [0.01, 0.5, 1]}
THIRDS = {"epsilon": [1 / 3, 1 / 3, 1 / 3]}


@pytest.mark.parametrize("shares", [{}, {"shares": THIRDS}], ids=["counted", "declared"])
def test_better_than_the_smallest_epsilon_for_all(shares) -> None:
    table = people(3000, [0.01, 0.5, 1.0], levels=LEVELS, **shares)
    personal, smallest = [], []
    for _ in range(8):
        made = hm.synthesize(table, "histogram", epsilon="personal", domains=DOMAINS)
        personal.append(distance(made, table))
        least = hm.synthesize(table, "histogram", epsilon=0.01, domains=DOMAINS, demands="ignore")
        smallest.append(distance(least, table))
    assert np.mean(personal) < np.mean(smallest) / 2
    if shares:
        assert len(made) == pytest.approx(3000, rel=0.15)
    assert made.receipt.promise == Pure(1)
    assert made.parameters["personal"]["costs"] == [0.01, 0.5, 1.0]
    made.receipt.verify()


def test_nothing_exact_about_people_is_told() -> None:
    """Two tables that differ by one person tell the same but for what has noise in it."""
    told = []
    for rows in (300, 301):
        table = people(rows, [0.01, 0.5, 1.0], levels=LEVELS)
        made = hm.synthesize(table, "histogram", epsilon="personal", domains=DOMAINS, rows=50)
        document = made.to_dict()
        for noisy in ("unit", "views"):  # the threshold follows from noisy counts
            document["privacy"].pop(noisy)
        told.append(document)
    assert told[0] == told[1]


def test_the_policy_column_never_leaves() -> None:
    made = hm.synthesize(people(500, [0.5]), "histogram", epsilon="personal", domains=DOMAINS)
    assert made.to_arrow().column_names == ["job", "ill"]


def test_people_without_a_demand_are_left_out_of_personal_tables_only() -> None:
    table = people(900, [1.0, None, 1.0], levels=LEVELS, shares=THIRDS)
    sample = PersonalSample.of(table, PersonalPlan.of(levels_of(table.schema), Fraction(1), None))
    assert len(sample.draw(Fraction(1), repeatable(1))) == 600
    made = hm.synthesize(table, "histogram", epsilon=1, domains=DOMAINS)
    assert len(made) == pytest.approx(900, abs=60)


def test_one_epsilon_for_all_leaves_out_whoever_allows_less(tmp_path) -> None:
    ledger = hm.BudgetLedger.create(tmp_path / "x", Pure(3))
    keeper = hm.Accountant.of(ledger)
    table = people(3000, [0.01, 0.5, 1.0], levels=LEVELS)
    sizes = []
    for _ in range(2):
        made = hm.synthesize(table, "histogram", epsilon="0.5", domains=DOMAINS, accountant=keeper)
        sizes.append(len(made))
    assert sizes == [pytest.approx(2000, abs=100), pytest.approx(1000, abs=100)]
    assert "those at the levels 0.01 and 0.5" in made.notes[0]
    with pytest.raises(PrivacyError, match="No public level"):
        hm.synthesize(table, "histogram", epsilon="0.5", domains=DOMAINS, accountant=keeper)
    made = hm.synthesize(
        table, "histogram", epsilon="0.5", domains=DOMAINS, accountant=keeper, demands="ignore"
    )
    assert made.to_dict()["outcome"].startswith("People's own demands")


def test_all_rows_of_a_person_stay_or_go_together() -> None:
    table = hm.read(
        pa.table({"id": ["x", "x", "y", "y"], "own": [0.2, 0.2, 1.0, 1.0], "v": [1, 2, 3, 4]}),
        {
            "table": {"person": "id"},
            "columns": {"id": "identifier", "v": "other"},
            "policy": {"epsilon": "own", "levels": {"epsilon": [0.2, 1]}},
        },
    )
    plan = PersonalPlan(levels_of(table.schema), (Fraction(1, 5), Fraction(1)), counted=False)
    sample = PersonalSample.of(table, plan)
    sampler = repeatable(3)
    seen = [tuple(sample.draw(Fraction(1), sampler).arrow["v"].to_pylist()) for _ in range(2000)]
    assert set(seen) == {(1, 2, 3, 4), (3, 4)}
    # (e^0.2 - 1) / (e - 1) = 0.1289
    assert np.mean([len(s) == 4 for s in seen]) == pytest.approx(0.1289, abs=0.03)


def test_without_a_declared_column_it_says_how() -> None:
    with pytest.raises(SchemaError, match=r"\[policy\] epsilon"):
        hm.synthesize(
            hm.read(pa.table({"job": ["a"]}), {"columns": {"job": "quasi"}}),
            epsilon="personal",
            domains={"job": ["a", "b"]},
        )


def _audit(make_views, own: float, *, broken: bool) -> float:
    """One person with an own epsilon joins others with 2; the histogram runs at 2."""
    from halfmask.synthesize import histogram

    def run(with_person: bool, times: int) -> np.ndarray:
        jobs, demands = ["a"] * 4 + ["b"] * with_person, [2.0] * 4 + [own] * with_person
        table = hm.read(
            pa.table({"job": jobs, "own": demands}),
            {
                "columns": {"job": "quasi"},
                "policy": {"epsilon": "own", "levels": {"epsilon": [own, 2]}},
            },
        )
        costs = (Fraction(str(own)), Fraction(2))
        plan = PersonalPlan(levels_of(table.schema), costs, counted=False)
        sample = PersonalSample.of(table, plan)
        sampler, found = repeatable(5 + with_person), []
        for _ in range(times):
            rows = table if broken else sample.draw(Fraction(2), sampler)
            plain = hm.Table(rows.arrow.select(["job"]), hm.Schema())
            model = histogram.learn(
                make_views(plain, {"job": ["a", "b"]}, 2, 0, sampler), ordered=[]
            )
            drawn = model.draw(model.rows, np.random.default_rng(0))
            found.append(float((drawn["job"] == 1).sum()))
        return np.array(found)

    return least_epsilon(run, 900 if THOROUGH else 600)  # a false alarm once in 10**5


def test_audit_of_a_cautious_person_in_a_synthetic_table(make_views) -> None:
    assert _audit(make_views, 0.5, broken=False) <= 0.5


def test_audit_fails_where_everybody_is_kept(make_views) -> None:
    assert _audit(make_views, 0.5, broken=True) > 0.5
