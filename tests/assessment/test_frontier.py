"""The frontier agrees with the releases that anonymize would make."""

from __future__ import annotations

import pytest

import halfmask as hm
from halfmask.errors import ParameterError
from halfmask.sample import write


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    return hm.read(write(tmp_path_factory.mktemp("frontier"), 400))


@pytest.mark.parametrize("method", ["optimal", "local"])
def test_points_are_what_anonymize_gives(people, method):
    found = hm.frontier(
        people, [hm.KAnonymity(k) for k in (2, 5)], suppression=[0.0, 0.05], methods=[method]
    )
    assert len(found.points) == 4
    for point in found.points:
        (model,) = point.models
        release = hm.anonymize(
            people, hm.KAnonymity(model["k"]), method=method, suppression=point.suppression
        )
        assert point.loss == pytest.approx(release.loss, abs=1e-9)
        assert point.suppressed == pytest.approx(release.suppressed / 400)
        assert point.classes == release.classes.count
        assert point.highest_risk == pytest.approx(1 / release.classes.smallest)
        assert point.risk == pytest.approx(release.classes.count / 400)
        if method == "optimal":  # classes of a local recoding overlap in the values they cover
            compared = hm.compare(people, release, learn=False)
            assert point.risk == pytest.approx(compared.finding.found, abs=1e-3)


def test_no_marked_point_is_beaten(people):
    found = hm.frontier(people, [hm.KAnonymity(k) for k in (2, 3, 5, 10)], suppression=[0, 0.05])
    for point in found.points:
        beaten = any(
            o.risk <= point.risk
            and o.loss <= point.loss
            and (o.risk, o.loss) != (point.risk, point.loss)
            for o in found.points
        )
        assert point.best == (not beaten)
    assert found.best


def test_lists_are_alternatives_and_what_cannot_be_is_told(people):
    found = hm.frontier(
        people,
        [hm.KAnonymity(2), hm.KAnonymity(401)],
        [hm.LDiversity(2, "disease"), hm.LDiversity(3, "disease")],
        suppression=[0.0],
    )
    assert len(found.points) == 2
    assert len(found.impossible) == 2
    assert all(point.inference is not None for point in found.points)


def test_finished_tables_stand_beside(people, tmp_path):
    release = hm.anonymize(people, hm.KAnonymity(5), suppression=0.05)
    found = hm.frontier(
        people, hm.KAnonymity(5), suppression=[0.05], releases={"the same as a file": release}
    )
    given, made = sorted(found.points, key=lambda p: p.method)
    assert given.name == "the same as a file"
    assert given.loss == pytest.approx(made.loss, abs=1e-9)
    assert given.distance == pytest.approx(made.distance, abs=0.05)
    found.report(tmp_path / "frontier.html")
    assert "plot-frontier" in (tmp_path / "frontier.html").read_text()


def test_settings_that_are_none_are_refused(people):
    with pytest.raises(ParameterError):
        hm.frontier(people)
    with pytest.raises(ParameterError):
        hm.frontier(people, hm.KAnonymity(2), methods=["magic"])


@pytest.mark.parametrize("method", ["mondrian", "mdav", "k-member", "personal"])
def test_divisions_are_what_anonymize_gives(people, method):
    found = hm.frontier(people, [hm.KAnonymity(k) for k in (3, 6)], methods=[method])
    assert len(found.points) == 2
    for point in found.points:
        (model,) = point.models
        release = hm.anonymize(people, hm.KAnonymity(model["k"]), method=method, seed=0)
        assert point.loss == pytest.approx(release.loss, abs=1e-9)
        assert point.classes == release.classes.count
        assert point.highest_risk == pytest.approx(1 / release.classes.smallest)
        assert point.risk == pytest.approx(release.classes.count / 400)


def test_methods_and_budgets_stand_in_one_frontier(tmp_path):
    import numpy as np
    import pyarrow as pa

    random = np.random.default_rng(0)
    rows = {"a": random.integers(0, 6, 300), "b": random.choice(list("xyz"), 300),
            "s": random.choice(list("pq"), 300)}  # fmt: skip
    table = hm.read(pa.table(rows), schema={"a": "quasi", "b": "quasi", "s": "sensitive"})
    domains = {"a": list(range(6)), "b": list("xyz"), "s": list("pq")}
    found = hm.frontier(
        table, hm.KAnonymity(5), methods=["optimal", "mondrian"], suppression=[0.0],
        epsilons=[0.5, 4], domains=domains,
    )  # fmt: skip
    assert len(found.points) == 4
    private = [point for point in found.points if point.epsilon is not None]
    assert sorted(point.epsilon for point in private) == [0.5, 4]
    # Their rows stand for nobody: a loss of labels says nothing, so that distances decide.
    assert all(point.loss is None for point in private)
    assert any(point.best for point in found.points)
    found.report(tmp_path / "frontier.html")
    assert "epsilon = 4" in (tmp_path / "frontier.html").read_text()
