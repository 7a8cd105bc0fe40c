"""The frontier agrees with the releases that anonymize would make."""

from __future__ import annotations

from dataclasses import replace

import pytest

import halfmask as hm
from halfmask.assessment.frontier_points import Frontier, Point, mark_best, utility_of
from halfmask.assessment.frontier_settings import Setting, at_least
from halfmask.errors import InputError
from halfmask.sample import write


@pytest.fixture(scope="module")
def people(tmp_path_factory):
    return hm.read(write(tmp_path_factory.mktemp("frontier"), 150))


def test_no_marked_point_is_beaten(people):
    found = hm.frontier(
        people,
        [hm.KAnonymity(k) for k in (2, 3, 5, 10)],
        methods=["optimal", "mondrian"],
        suppression=[0, 0.05],
    )
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
    release = hm.anonymize(people, hm.KAnonymity(5), method="optimal", suppression=0.05)
    found = hm.frontier(
        people,
        hm.KAnonymity(5),
        methods=["optimal"],
        suppression=[0.05],
        releases={"the same as a file": release},
    )
    given, made = sorted(found.points, key=lambda p: p.method)
    assert given.name == "the same as a file"
    assert given.loss == pytest.approx(made.loss, abs=1e-9)
    assert given.distance == pytest.approx(made.distance, abs=1e-9)
    found.report(tmp_path / "frontier.html")
    assert "plot-frontier" in (tmp_path / "frontier.html").read_text()


@pytest.mark.parametrize(
    ("given", "options", "said"),
    [
        ((), {}, "at least one model"),
        ([[]], {}, "at least one model"),
        ([hm.KAnonymity], {}, "its parameters"),
        (["k"], {}, "models, such as"),
        ([hm.KAnonymity(2)], {"methods": ["magic"]}, "one of auto"),
        ([hm.KAnonymity(2)], {"methods": "optimal"}, "a list of methods"),
        ([hm.KAnonymity(2)], {"methods": []}, "a list of methods"),
        ([hm.KAnonymity(2)], {"suppression": []}, "a list of shares"),
        ([hm.KAnonymity(2)], {"suppression": 0.1}, "a list of shares"),
        ([hm.KAnonymity(2)], {"suppression": [1.5]}, "from 0 to 1"),
        ([hm.KAnonymity(2)], {"suppression": [float("nan")]}, "from 0 to 1"),
        ([hm.KAnonymity(2)], {"metric": "magic"}, "one of loss"),
        ([hm.KAnonymity(2)], {"risk": "magic"}, "one of mean, highest, inference"),
        ([hm.KAnonymity(2)], {"utility": "magic"}, "loss, distance"),
        ([hm.KAnonymity(2)], {"time_limit": 0}, "above 0"),
        ([hm.KAnonymity(2)], {"seed": -1}, "at least 0"),
        ([hm.KAnonymity(2)], {"epsilons": [0]}, "above 0"),
        ([hm.KAnonymity(2)], {"epsilons": 1.0}, "a list of budgets"),
        ([hm.KAnonymity(2)], {"epsilons": [1.0], "draws": 1}, "at least 2"),
        ([hm.KAnonymity(2)], {"releases": {"a": None}}, "table"),
        ([hm.KAnonymity(2)], {"releases": ["a"]}, "by name"),
        ([hm.LDiversity(2, "nosuch")], {}, "is not in the table"),
        ([hm.LDiversity(2, "age")], {}, "is a quasi-identifier"),
    ],
)
def test_what_cannot_be_is_refused_in_one_message(people, given, options, said):
    with pytest.raises(InputError, match=said):
        hm.frontier(people, *given, **options)


def test_tables_that_cannot_be_compared_are_refused():
    plain = hm.read({"a": [1, 2]}, schema={"a": "quasi"})
    with pytest.raises(InputError, match="needs a sensitive column"):
        hm.frontier(plain, hm.KAnonymity(2), risk="inference")
    with pytest.raises(InputError, match="quasi-identifier"):
        hm.frontier(hm.read({"a": [1, 2]}), hm.KAnonymity(2))
    with pytest.raises(InputError, match="no rows"):
        hm.frontier(hm.Table(plain.arrow.slice(0, 0), plain.schema), hm.KAnonymity(2))
    with pytest.raises(InputError, match="'a'"):
        hm.frontier(plain, releases={"lacks a": hm.read({"b": [1]})})


def test_the_same_setting_is_tried_once_and_named_in_full(people):
    found = hm.frontier(
        people,
        [hm.KAnonymity(3), hm.KAnonymity(3)],
        [hm.LDiversity(2, "disease"), hm.LDiversity(1.5, "disease", kind="entropy")],
        suppression=[0.05, 0.05, 0.0],
        methods=["optimal", "optimal"],
    )
    assert sorted(point.name for point in found.points) == [
        "k = 3, entropy l = 1.5 (disease), own demands; optimal, none suppressed",
        "k = 3, entropy l = 1.5 (disease), own demands; optimal, up to 5% suppressed",
        "k = 3, l = 2 (disease), own demands; optimal, none suppressed",
        "k = 3, l = 2 (disease), own demands; optimal, up to 5% suppressed",
    ]


def test_a_population_is_counted_and_sensitive_columns_stay_measured():
    schema = {"a": "quasi", "s": "sensitive"}
    rows = {"a": [1, 1, 2, 2, 3, 3], "s": list("xyxyxx")}
    everybody = hm.read({"a": [1, 1, 1, 2, 2, 2, 2, 3, 3, 4]}, schema={"a": "quasi"})
    found = hm.frontier(
        hm.read(rows, schema=schema), [hm.KMap(3, everybody), hm.KMap(4, everybody)],
        suppression=[0.0, 0.4],
    )  # fmt: skip
    figures = {point.name: (point.classes, point.suppressed) for point in found.points}
    # Three people of the population have 1, four have 2, two have 3.
    assert figures["k-map k = 3; optimal, up to 40% suppressed"] == (2, pytest.approx(1 / 3))
    assert figures["k-map k = 3; optimal, none suppressed"] == (1, 0.0)
    assert all(point.inference is not None for point in found.points)


def test_progress_is_told_setting_by_setting(people):
    seen = []
    hm.frontier(
        people, [hm.KAnonymity(2), hm.KAnonymity(500)], suppression=[0.0],
        methods=["optimal", "mondrian"], progress=lambda done, total: seen.append((done, total)),
    )  # fmt: skip
    assert seen == [(n, 4) for n in range(5)]


def test_time_that_is_up_is_no_proof(people, monkeypatch):
    from halfmask.anonymize import optimal

    up = {"suppression": [0.0], "time_limit": 1e-9, "methods": ["optimal"]}
    found = hm.frontier(people, [hm.KAnonymity(2)], **up)
    assert found.points[0].gap > 0
    assert any("time limit" in note for note in found.notes)
    monkeypatch.setattr(optimal.Incumbent, "see", lambda self, outcome: None)
    ks = [hm.KAnonymity(2), hm.KAnonymity(3)]
    found = hm.frontier(people, ks, **up)
    assert len(found.undecided) == 2
    assert not found.impossible


def test_what_cannot_be_rules_out_only_what_asks_for_more():
    rows = {"a": [1, 1, 2, 2, 3, 3], "s": list("xyxyxy")}
    table = hm.read(rows, schema={"a": "quasi", "s": "sensitive"})
    promises = [hm.AlphaKAnonymity(0.3, 2, "s"), hm.AlphaKAnonymity(0.9, 3, "s"),
                hm.AlphaKAnonymity(0.2, 3, "s")]  # fmt: skip
    found = hm.frontier(table, promises, suppression=[0.0])
    # One of two values is always held by half of the rows; at most nine tenths is no matter.
    assert [(p.models[0]["alpha"], p.models[0]["k"]) for p in found.points] == [(0.9, 3)]
    assert len(found.impossible) == 2


@pytest.mark.parametrize(
    ("strong", "weak", "holds"),
    [
        ((0.0, hm.KAnonymity(5)), (0.1, hm.KAnonymity(2)), True),
        ((0.1, hm.KAnonymity(5)), (0.0, hm.KAnonymity(2)), False),
        ((0.0, hm.KAnonymity(2)), (0.0, hm.KAnonymity(5)), False),
        ((0.0, hm.TCloseness(0.1, "s")), (0.0, hm.TCloseness(0.2, "s")), True),
        ((0.0, hm.TCloseness(0.2, "s")), (0.0, hm.TCloseness(0.1, "s")), False),
        ((0.0, hm.LDiversity(3, "s")), (0.0, hm.LDiversity(2, "s")), True),
        ((0.0, hm.LDiversity(3, "s")), (0.0, hm.LDiversity(2, "r")), False),
        ((0.0, hm.AlphaKAnonymity(0.9, 5, "s")), (0.0, hm.AlphaKAnonymity(0.5, 2, "s")), False),
    ],
)
def test_a_setting_implies_another_only_if_it_promises_as_much(strong, weak, holds):
    one, two = (Setting("optimal", share, (model,)) for share, model in (strong, weak))
    assert at_least(one, two) == holds


def point(risk=0.1, loss=0.1, highest=0.5, distance=0.1, inference=None, name="p"):
    return Point(name, "optimal", 0.0, (), risk, highest, inference, loss, distance, 0.0, 1)


def best(points, **axes):
    return [p.name for p in mark_best(points, **axes) if p.best]


def test_ties_are_all_best_and_better_in_one_figure_beats():
    a, b = point(name="a"), point(name="b", loss=0.1 + 1e-15)
    worse, other = point(name="worse", loss=0.2), point(name="other", risk=0.05, loss=0.3)
    assert best([a, b, worse, other], risk="mean", utility="loss") == ["other", "a", "b"]


def test_points_are_compared_by_the_figures_that_were_asked_for():
    safe = point(0.1, 0.3, 0.1, 0.2, 0.5, "safe")
    kept = point(0.2, 0.2, 0.5, 0.1, 0.1, "kept")
    assert best([safe, kept], risk="mean", utility="loss") == ["safe", "kept"]
    assert best([safe, kept], risk="inference", utility="loss") == ["kept"]
    assert best([safe, kept], risk="highest", utility="distance") == ["safe", "kept"]


def test_points_without_the_figure_are_shown_and_not_compared():
    unknown, known = point(loss=None, risk=0.0, name="unknown"), point(name="known")
    assert utility_of([unknown, known]) == "distance"
    assert best([unknown, known], risk="mean", utility="loss") == ["known"]
    assert [p.name for p in mark_best([unknown, known], "mean", "loss")] == ["known", "unknown"]


def test_settings_with_the_same_figures_are_one_result_named_by_the_strongest():
    def of(name, k, share, **figures):
        made = point(name=name, **figures)
        return replace(made, suppression=share, models=({"model": "k-anonymity", "k": k},))

    points = [
        of("k = 2, 5 %", 2, 0.05), of("k = 5, 5 %", 5, 0.05), of("k = 5, none", 5, 0.0),
        of("k = 3", 3, 0.0, distance=0.2), of("worse", 2, 0.0, loss=0.2), of("worse too", 9, 0.0,
        loss=0.2 + 1e-15),
    ]  # fmt: skip
    found = Frontier(9, tuple(mark_best(points, "mean", "loss")))
    same = {one.name: one.same_as for one in found.points}
    assert same == {
        "k = 5, none": None, "k = 2, 5 %": "k = 5, none", "k = 5, 5 %": "k = 5, none",
        "k = 3": None,  # the same risk and loss, and another distance
        "worse too": None, "worse": "worse too",
    }  # fmt: skip
    assert [one.name for one in found.best] == ["k = 3", "k = 5, none"]
    assert [one.best for one in found.points] == [True] * 4 + [False] * 2
    assert "6 settings, 3 different results, 2 not dominated" in repr(found)


def drawn(risk, distance, name):
    """A private table whose figures are means: risk and distance with their upper ends."""
    ends = {"risk": (0.0, risk[1]), "distance": (0.0, distance[1])}
    made = point(risk[0], None, distance=distance[0], name=name)
    return replace(made, epsilon=1.0, draws=5, intervals=ends)


def test_a_lucky_draw_is_not_better():
    sure = point(0.2, None, distance=0.2, name="sure")
    # Better by its means, not by the upper ends: it neither stands nor strikes out.
    lucky = drawn((0.1, 0.3), (0.1, 0.3), "lucky")
    assert best([sure, lucky], risk="mean", utility="distance") == ["sure"]
    safer = drawn((0.1, 0.15), (0.1, 0.3), "safer")
    assert best([sure, safer], risk="mean", utility="distance") == ["safer", "sure"]
    clear = drawn((0.1, 0.15), (0.1, 0.19), "clear")
    assert best([sure, clear], risk="mean", utility="distance") == ["clear"]
    # Figures without an interval are compared as they are.
    assert best([sure, lucky], risk="highest", utility="distance") == ["sure"]


def test_a_loss_of_nothing_is_less_than_any_other():
    none, some = point(loss=0.0, name="none"), point(loss=0.05, distance=0.0, name="some")
    assert [p.name for p in mark_best([some, none], "mean", "loss")] == ["none", "some"]


def test_the_axes_stand_in_the_document(people, tmp_path):
    found = hm.frontier(
        people,
        [hm.KAnonymity(2), hm.KAnonymity(5)],
        methods=["optimal", "mondrian"],
        risk="highest",
        utility="distance",
    )
    document = found.to_dict()
    assert (document["risk"], document["utility"]) == ("highest", "distance")
    assert set(document["points"][0]) == {
        "name", "method", "suppression", "models", "risk", "highest_risk", "inference", "loss",
        "distance", "suppressed", "classes", "epsilon", "gap", "best", "same_as", "draws",
        "intervals",
    }  # fmt: skip
    table = found.to_arrow()
    assert table["name"].to_pylist() == [one.name for one in found.points]
    assert table["highest_risk"].to_pylist() == [one.highest_risk for one in found.points]
    assert table["same_as"].to_pylist() == [one.same_as for one in found.points]
    assert found.to_pandas()["best"].tolist() == [one.best for one in found.points]
    for one in found.points:
        beaten = any(
            o.highest_risk <= one.highest_risk
            and o.distance <= one.distance
            and (o.highest_risk, o.distance) != (one.highest_risk, one.distance)
            for o in found.points
        )
        assert one.best == (not beaten)


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
    assert all(point.suppressed == 0.0 for point in private)
    assert any(point.best for point in found.points)
    for point in private:
        assert (point.draws, point.same_as) == (5, None)
        for name in ("risk", "highest_risk", "distance", "inference"):
            low, high = point.intervals[name]
            assert low <= getattr(point, name) <= high
    assert any("drawn several times" in note for note in found.notes)
    found.report(tmp_path / "frontier.html")
    text = (tmp_path / "frontier.html").read_text()
    assert "epsilon = 4" in text
    assert "Bars are the intervals of private tables" in text


def test_figures_of_private_tables_are_means_over_draws(monkeypatch):
    from halfmask.assessment import frontier
    from halfmask.assessment.frontier_points import PointFigures

    seen = iter([(0.1, 0.5, None), (0.2, 0.5, -0.2), (0.6, 0.5, 0.4)])

    def figures(table, made, made_up):
        risk, highest, inference = next(seen)
        return PointFigures(risk, highest, inference, None, 0.25, 0.0, 4)

    monkeypatch.setattr(frontier, "finished_figures", figures)
    table = hm.read({"a": ["x", "y"] * 20}, schema={"a": "quasi"})
    found = frontier.private_point(table, 1, "histogram", {"a": ["x", "y"]}, 3)
    assert (found.risk, found.highest_risk, found.distance) == pytest.approx((0.3, 0.5, 0.25))
    assert found.inference == pytest.approx(0.1)
    assert found.intervals["highest_risk"] == (0.5, 0.5)
    # 0.3 +- 4.3027 (Student, two degrees) * 0.26458 / sqrt(3), and no risk is below 0.
    assert found.intervals["risk"] == pytest.approx((0.0, 0.3 + 4.302653 * 0.2645751 / 3**0.5))
    # 0.1 +- 12.7062 * 0.42426 / sqrt(2): a guess can be worse than none.
    assert found.intervals["inference"] == pytest.approx((0.1 - 12.7062047 * 0.3, 1.0))
