"""Every figure of a point, counted again in plain Python on the rows that anonymize gives."""

from __future__ import annotations

from collections import Counter, defaultdict

import numpy as np
import pyarrow as pa
import pytest
from effort import THOROUGH, turn

import halfmask as hm
from halfmask.metrics.cost import METRICS
from halfmask.sample import write

QUASI = ("age", "sex", "zip")


def table(seed: int = 0, rows: int = 150, *, weight: float = 1.0, person: bool = False) -> hm.Table:
    random = np.random.default_rng(seed)
    data = {
        "age": random.integers(18, 88, rows),
        "sex": random.choice(["f", "m", None], rows, p=[0.5, 0.45, 0.05]),
        "zip": random.choice(["1010", "1011", "1020", "2010", "2011"], rows),
        "ill": random.choice(["a", "b", "c", "d"], rows, p=[0.4, 0.3, 0.2, 0.1]),
        "job": random.choice(["x", "y", "z"], rows),
        "who": random.integers(0, rows * 2 // 3 if person else 10**9, rows),
    }
    schema = {
        "columns": {
            "age": {"role": "quasi", "hierarchy": {"intervals": [5, 10, 20, 40]}, "weight": weight},
            "sex": {"role": "quasi"},
            "zip": {"role": "quasi", "hierarchy": {"mask": 4}},
            "ill": {"role": "sensitive"},
            "job": {"role": "sensitive"},
            "who": {"role": "identifier"},
        }
    }
    if person:
        schema["table"] = {"person": "who"}
    return hm.read(pa.table(data), schema=hm.Schema.from_dict(schema))


def counted(original: hm.Table, release) -> dict[str, float]:
    """The figures of a release by loops over its rows; every row another person."""
    rows = release.to_arrow().to_pylist()
    classes = defaultdict(list)
    for row in rows:
        classes[tuple(row[name] for name in QUASI)].append(row)
    gains = []
    for name in ("ill", "job"):
        right = sum(max(Counter(r[name] for r in held).values()) for held in classes.values())
        prior = max(Counter(row[name] for row in rows).values())
        gains.append((right / len(rows) - prior / len(rows)) / (1 - prior / len(rows)))
    found = sum(1 / len(held) for held in classes.values() for _ in held)
    return {
        "risk": found / len(original),
        "highest_risk": max(1 / len(held) for held in classes.values()),
        "inference": max(gains),
        "suppressed": 1 - len(rows) / len(original),
        "classes": len(classes),
        "loss": release.loss,
    }


@pytest.mark.parametrize(
    ("method", "weight"),
    [
        (method, weight)
        for i, method in enumerate(["optimal", "local", "mondrian", "mdav", "k-member", "personal"])
        for weight in turn([1.0, 5.0], i)
    ],
)
def test_figures_are_those_of_the_released_rows(method, weight):
    people = table(weight=weight)
    found = hm.frontier(
        people, [hm.KAnonymity(3), hm.KAnonymity(7)], methods=[method], suppression=[0.1]
    )
    assert len(found.points) == 2
    for point in found.points:
        release = hm.anonymize(
            people, hm.KAnonymity(point.models[0]["k"]), method=method, seed=0,
            suppression=point.suppression,
        )  # fmt: skip
        compared = hm.compare(people, release, learn=False)
        distances = [d.hellinger for d in compared.distances if d.role == "quasi"]
        assert point.distance == pytest.approx(np.mean(distances), abs=1e-9)
        expected = counted(people, release)
        got = {name: getattr(point, name) for name in expected}
        assert got == pytest.approx(expected, abs=1e-9)
        assert point.risk == pytest.approx(compared.after.marketer * (1 - point.suppressed))
        if weight == 1.0:
            assert point.loss == pytest.approx(compared.utility.loss)


def test_where_cells_are_false_people_are_looked_for_as_comparisons_do(tmp_path):
    people = hm.read(write(tmp_path, 250))
    plain = {"demands": "ignore"}  # larger classes would hold no false cell
    found = hm.frontier(
        people, hm.KAnonymity(5), methods=["cocluster"], suppression=[0.0, 0.05], **plain
    )
    assert [point.suppression for point in found.points]
    for point in found.points:
        release = hm.anonymize(
            people,
            hm.KAnonymity(5),
            method="cocluster",
            seed=0,
            suppression=point.suppression,
            **plain,
        )
        compared = hm.compare(people, release, learn=False)
        assert point.loss is None
        assert point.risk == pytest.approx(compared.finding.found)
        assert point.highest_risk == pytest.approx(compared.finding.highest)


def test_inference_is_what_assess_says_of_the_release(tmp_path):
    people = table()
    found = hm.frontier(people, hm.KAnonymity(4), methods=["optimal"], suppression=[0.1])
    release = hm.anonymize(people, hm.KAnonymity(4), method="optimal", suppression=0.1)
    roles = dict.fromkeys(QUASI, "quasi") | {"ill": "sensitive", "job": "sensitive"}
    said = hm.assess(hm.read(release.to_arrow(), schema=roles))
    risks = [one.risk.value for one in said.criteria if one.name == "inference, by classes"]
    assert found.points[0].inference == pytest.approx(max(risks))
    assert found.points[0].highest_risk == said.highest_risk


@pytest.mark.parametrize("metric", METRICS)
def test_loss_is_the_loss_whatever_was_minimized(metric):
    people = table(rows=80)
    found = hm.frontier(
        people, hm.KAnonymity(4), methods=["optimal"], suppression=[0.05], metric=metric
    )
    release = hm.anonymize(
        people, hm.KAnonymity(4), method="optimal", suppression=0.05, metric=metric
    )
    assert found.points[0].loss == pytest.approx(release.loss)
    assert found.points[0].classes == release.classes.count


@pytest.mark.parametrize("method", ["optimal", "mondrian"])
def test_people_with_several_rows_count_once_in_a_class(method):
    people = table(person=True)
    found = hm.frontier(people, hm.KAnonymity(3), methods=[method], suppression=[0.1])
    release = hm.anonymize(
        people, hm.KAnonymity(3), method=method, seed=0, suppression=found.points[0].suppression
    )
    assert found.points[0].highest_risk == pytest.approx(1 / release.classes.smallest)
    assert found.points[0].risk > release.classes.count / len(people)  # rows outnumber people


@pytest.mark.parametrize("seed", range(6 if THOROUGH else 1))
def test_what_settings_share_changes_nothing(seed):
    people = table(seed, rows=90)
    ks = [hm.KAnonymity(k) for k in (9, 2, 3, 5)]
    others = [hm.LDiversity(2, "ill"), hm.LDiversity(3, "ill"), hm.TCloseness(0.4, "ill", "equal"),
              hm.TCloseness(0.2, "ill", "equal"), hm.AverageRisk(0.2)]  # fmt: skip
    found = hm.frontier(people, ks, others, methods=["optimal"], suppression=[0.0, 0.03, 0.2])
    seen = {(p.models[0]["k"], str(p.models[1]), p.suppression): p for p in found.points}
    for k in ks:
        for other in others:
            for share in (0.0, 0.03, 0.2):
                point = seen.get((k.k, str(other.to_dict()), share))
                try:
                    release = hm.anonymize(people, k, other, method="optimal", suppression=share)
                except hm.errors.UnsatisfiableError:
                    assert point is None
                    continue
                assert point is not None
                assert point.loss == pytest.approx(release.loss, abs=1e-12)
                assert point.classes == release.classes.count
                assert round(point.suppressed * 90) == release.suppressed
                assert point.gap == 0.0
    assert len(found.points) + len(found.impossible) == 60


def test_a_made_up_table_is_attacked_through_the_rows_that_fit():
    original = hm.read(
        {"q": ["a", "a", "b", "c"], "s": ["x", "y", "x", "y"]},
        schema={"q": "quasi", "s": "sensitive"},
    )
    made = hm.read({"q": ["a", "a", "a", "b"], "s": ["x", "x", "y", "x"]})
    (point,) = hm.frontier(original, releases={"drawn": made}).points
    # Three rows fit each a, one fits b, none fits c, who is guessed as everybody: x.
    assert point.risk == pytest.approx((1 / 3 + 1 / 3 + 1 + 0) / 4)
    assert point.highest_risk == 1.0
    assert point.inference == 0.0  # x, x, x, x: right twice, as without the rows
    assert point.loss is None
    assert point.distance == pytest.approx(np.sqrt(1 - (np.sqrt(0.5 * 0.75) + 0.25)))


@pytest.mark.parametrize("method", ["optimal", "local", "mondrian"])
def test_a_release_given_as_a_table_is_the_same_point(method):
    people = table()
    release = hm.anonymize(people, hm.KAnonymity(4), method=method, seed=0)
    found = hm.frontier(
        people, hm.KAnonymity(4), methods=[method], suppression=[0.0], releases={"given": release}
    )
    one, other = found.points
    for name in ("risk", "highest_risk", "inference", "loss", "distance", "suppressed", "classes"):
        assert getattr(one, name) == pytest.approx(getattr(other, name), abs=1e-9), name
    assert one.best
    assert other.best


def test_guesses_through_a_made_up_table_are_held_against_true_values():
    original = hm.read(
        {"q": list("aaabcc"), "s": list("yyxxxz")}, schema={"q": "quasi", "s": "sensitive"}
    )
    made = hm.read({"q": list("aaabb"), "s": list("yyxxx")})
    (point,) = hm.frontier(original, releases={"drawn": made}).points
    # a is guessed y (2 of 3), b x (1 of 1), c as everybody x (1 of 2); x for all is right 3 times.
    assert point.inference == pytest.approx((4 - 3) / (6 - 3))
    assert point.risk == pytest.approx((3 * 1 / 3 + 1 / 2 + 0) / 6)
    assert point.suppressed == pytest.approx(1 / 6)


def test_a_seed_is_that_of_the_release():
    people, losses = table(rows=80), []
    for seed in (0, 7):
        found = hm.frontier(people, hm.KAnonymity(3), methods=["k-member"], seed=seed)
        release = hm.anonymize(people, hm.KAnonymity(3), method="k-member", seed=seed)
        assert found.points[0].loss == pytest.approx(release.loss)
        losses.append(release.loss)
    assert losses[0] != losses[1]
