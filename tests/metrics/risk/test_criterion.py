"""Intervals of attacks cover the truth, and attacks do what plain Python does."""

from __future__ import annotations

from collections import Counter
from itertools import combinations

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.metrics.estimate import Estimate, exact_estimate, excess, mean_estimate, proportion
from halfmask.metrics.risk.attack import decide, judge_attack, targets
from halfmask.metrics.risk.inference import inference, membership
from halfmask.metrics.risk.linkability import linkability
from halfmask.metrics.risk.singling_out import singling_out


@pytest.mark.parametrize(
    ("attack", "control"), [(0.3, 0.1), (0.5, 0.5), (0.9, 0.2), (0.06, 0.05), (0.12, 0.02)]
)
def test_the_interval_of_the_risk_covers_the_truth(attack, control):
    random = np.random.default_rng(7)
    truth = (attack - control) / (1 - control)
    covered = 0
    for _ in range(2000):
        one = proportion(int(random.binomial(500, attack)), 500)
        two = proportion(int(random.binomial(500, control)), 500)
        found = excess(one, two)
        assert found.low <= found.value <= found.high
        covered += found.low <= truth <= found.high
    assert covered / 2000 >= 0.94


def test_the_risk_by_hand():
    found = excess(exact_estimate(0.4, 10), exact_estimate(0.2, 10))
    assert (found.value, found.low, found.high) == pytest.approx((0.25, 0.25, 0.25))
    # Square and add: 0.3 - hypot(0.1, 0.05) and 0.3 + hypot(0.2, 0.1), divided by 0.8.
    one, two = Estimate(0.5, 0.4, 0.7, 10), Estimate(0.2, 0.1, 0.25, 10)
    found = excess(one, two)
    assert found.low == pytest.approx((0.3 - np.hypot(0.1, 0.05)) / 0.8)
    assert found.high == pytest.approx((0.3 + np.hypot(0.2, 0.1)) / 0.8)
    assert excess(exact_estimate(0.1, 10), exact_estimate(0.2, 10)).value == 0


def test_means_have_the_interval_of_student():
    values = [1.0, 2.0, 4.0, 9.0]
    found = mean_estimate(values)
    half = 3.182446305284263 * np.std(values, ddof=1) / 2  # 97.5 %, three degrees of freedom
    assert (found.value, found.high - found.value) == pytest.approx((4.0, half))
    assert found.value - found.low == pytest.approx(half)


@pytest.mark.parametrize(
    ("low", "high", "outcome"),
    [(0.0, 0.09, "met"), (0.0, 0.0901, "undecided"), (0.09, 0.5, "undecided"),
     (0.0901, 0.5, "not met")],
)  # fmt: skip
def test_a_criterion_is_decided_by_its_whole_interval(low, high, outcome):
    assert decide(Estimate(low, low, high, 100), 0.09) == outcome
    assert decide(Estimate(low, low, high, 100, trusted=False), 0.09) == "undecided"


def test_a_control_takes_the_place_of_guessing():
    found = judge_attack(
        "x", "y", exact_estimate(0.5, 9), exact_estimate(0.4, 9), exact_estimate(0.0, 9)
    )
    assert found.risk.value == pytest.approx(0.1 / 0.6)
    assert (
        judge_attack("x", "y", exact_estimate(0.5, 9), None, exact_estimate(0.0, 9)).risk.value
        == 0.5
    )


SCHEMA = {"a": "quasi", "b": "quasi", "c": "quasi", "s": "sensitive"}


def people(seed, rows=60):
    random = np.random.default_rng(seed)
    columns = {
        "a": random.random(rows).round(4) * 10,
        "b": random.choice(list("uvw"), rows),
        "c": random.random(rows).round(4),
        "s": random.choice(list("pqr"), rows),
    }
    return hm.read(pa.table(columns), schema=SCHEMA)


def listed(table):
    return list(zip(*(table.arrow[name].to_pylist() for name in "abcs"), strict=True))


def nearest(row, rows, spans, places):
    def far(other):
        out = 0.0
        for place in places:
            one, two = row[place], other[place]
            out += (one != two) if place == 1 else abs(one - two) / spans[place]
        return out

    return min(range(len(rows)), key=lambda j: far(rows[j]))


def scene():
    """Half of the release are copies; the attacked people are all of both tables."""
    original, control = people(1), people(2)
    made = pa.concat_tables([original.arrow.slice(0, 30), people(3).arrow.slice(0, 30)])
    whom = targets(original, hm.read(made, schema=SCHEMA), control, attacks=10**6)
    assert (len(whom.members), len(whom.control)) == (60, 60)
    rows, outside, released = listed(original), listed(control), listed(hm.read(made, schema={}))
    # The range is that of everybody who is compared, people of the control included.
    spans = [0, 0, 0]
    for place in (0, 2):
        held = [row[place] for row in rows + outside]
        spans[place] = max(held) - min(held)
    return whom, rows, outside, released, spans


def test_inference_takes_the_value_of_the_nearest_row():
    whom, rows, outside, released, spans = scene()
    found = inference(whom, "s")

    def right(group):
        hits = [released[nearest(r, released, spans, (0, 1, 2))][3] == r[3] for r in group]
        return sum(hits) / len(hits)

    assert found.attack.value == pytest.approx(right(rows))
    assert found.control.value == pytest.approx(right(outside))
    a, c = found.attack.value, found.control.value
    assert found.risk.value == pytest.approx((a - c) / (1 - c))
    share = Counter(row[3] for row in released)
    blind = sum(share[row[3]] / 60 for row in rows) / 60
    assert found.baseline.low <= blind <= found.baseline.high


def test_numbers_are_inferred_within_a_twentieth():
    whom, rows, _, released, spans = scene()
    found = inference(whom, "a", ["b", "c"])
    hits = []
    for row in rows:
        guess = released[nearest(row, released, spans, (1, 2))][0]
        hits.append(abs(guess - row[0]) <= 0.05 * abs(row[0]))
    assert found.attack.value == pytest.approx(sum(hits) / 60)


def test_linkability_joins_two_parts_in_one_row():
    whom, rows, outside, released, spans = scene()
    found = linkability(whom, (["a", "b"], ["c"]))

    def met(group):
        hits = [
            nearest(r, released, spans, (0, 1)) == nearest(r, released, spans, (2,)) for r in group
        ]
        return sum(hits) / len(hits)

    assert found.attack.value == pytest.approx(met(rows))
    assert found.control.value == pytest.approx(met(outside))


def test_membership_is_the_area_of_scikit_learn_and_its_gap():
    metrics = pytest.importorskip("sklearn.metrics")
    whom, rows, outside, released, spans = scene()
    found = membership(whom)

    def far(row, other):
        texts = (row[1] != other[1]) + (row[3] != other[3])
        return texts + sum(abs(row[p] - other[p]) / spans[p] for p in (0, 2))

    def near(row):
        return min(far(row, other) for other in released)

    scores = [-near(row) for row in rows + outside]
    truth = [1] * 60 + [0] * 60
    assert found.area.value == pytest.approx(metrics.roc_auc_score(truth, scores), abs=1e-6)
    false, true, _ = metrics.roc_curve(truth, scores, drop_intermediate=False)
    assert found.advantage.value == pytest.approx(max(true - false), abs=1e-6)
    a = found.area.value
    one, two = a / (2 - a), 2 * a * a / (1 + a)
    variance = (a * (1 - a) + 59 * (one - a * a) + 59 * (two - a * a)) / 3600
    assert found.area.high == pytest.approx(min(1, a + 1.96 * variance**0.5))


def test_singling_out_succeeds_as_often_as_all_conditions_together():
    random = np.random.default_rng(4)
    rows = {name: random.integers(0, 5, 80).astype(str) for name in "abcd"}
    schema = {"columns": dict.fromkeys("abcd", "quasi")}
    original = hm.read(pa.table(rows), schema=schema)
    other = {name: random.integers(0, 5, 80).astype(str) for name in "abcd"}
    made = {name: np.concatenate([rows[name][:40], other[name][:40]]) for name in "abcd"}
    whom = targets(original, hm.read(pa.table(made), schema=schema), attacks=10**6)
    before = list(zip(*rows.values(), strict=True))
    after = list(zip(*made.values(), strict=True))
    shares, blind = [], []
    for places in combinations(range(4), 3):
        own = Counter(tuple(row[p] for p in places) for row in before)
        keys = [tuple(row[p] for p in places) for row in after]
        held = Counter(keys)
        alone = [key for key in keys if held[key] == 1]
        shares.append(sum(own[key] == 1 for key in alone) / len(alone))
        marks = [Counter(row[p] for row in after) for p in places]
        blind.append(
            sum(
                marks[0][a] * marks[1][b] * marks[2][c] / 80**3
                for a, b, c in own
                if own[a, b, c] == 1
            )
        )
    # By any column: conditions on three only. The generator goes on.
    found = [singling_out(whom, known=False) for _ in range(20)]
    assert np.mean([one.attack.value for one in found]) == pytest.approx(np.mean(shares), abs=0.05)
    assert np.mean([one.baseline.value for one in found]) == pytest.approx(np.mean(blind), abs=0.05)


def test_the_interval_of_singling_out_holds_the_share_of_all_conditions():
    """Column sets differ: half of them single out everybody, half nobody."""
    random = np.random.default_rng(5)
    alone = {f"u{i}": random.permutation(200).astype(str) for i in range(2)}
    alike = {f"v{i}": ["x", "y"] * 100 for i in range(4)}
    names = [*alone, *alike]
    schema = {"columns": dict.fromkeys(names, "sensitive") | {"v0": "quasi"}}
    table = hm.read(pa.table({**alone, **alike}), schema=schema)
    sets = list(combinations(names, 3))
    truth = sum("u0" in one or "u1" in one for one in sets) / len(sets)  # 16 of 20
    whom = targets(table, table, attacks=200)
    found = [singling_out(whom, known=False).attack for _ in range(40)]
    assert sum(one.low <= truth <= one.high for one in found) >= 33


def test_presence_that_nothing_tells_has_an_area_of_one_half():
    schema = {"columns": {"a": {"role": "quasi", "kind": "nominal"}}}
    same = hm.read(pa.table({"a": ["u"] * 20}), schema=schema)
    found = membership(targets(same, same, same, attacks=20))
    assert (found.area.value, found.advantage.value) == (0.5, 0)


def test_who_stands_twice_in_the_release_is_no_guess():
    schema = {"columns": {"a": {"role": "quasi", "kind": "nominal"}}}
    original = hm.read(pa.table({"a": [str(i) for i in range(30)]}), schema=schema)
    twice = hm.read(pa.concat_tables([original.arrow] * 2), schema=schema)
    assert singling_out(targets(original, twice)).attack.value == 0
    assert singling_out(targets(original, original)).attack.value == 1


def test_only_an_attack_that_is_surely_worse_than_guessing_is_called_so():
    # None of 300 matches is what guessing one row of 30,000 gives.
    few = judge_attack("a", "b", proportion(0, 300), None, exact_estimate(1 / 30_000, 300))
    assert not any("worse than guessing" in note for note in few.notes)
    many = judge_attack("a", "b", proportion(3, 300), None, proportion(60, 300))
    assert any("worse than guessing" in note for note in many.notes)
