"""The default: every method that can keep the promises, and what loses least of them."""

from __future__ import annotations

import json

import numpy as np
import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.anonymize import auto
from halfmask.anonymize.partition import widths
from halfmask.errors import InfeasibleDemandsError, ParameterError
from halfmask.kernels.partition import label_loss as kernels

JOBS = {"office": ["clerk", "boss"], "yard": ["smith", "mason", "guard"]}
TRIED = ("optimal", "local", "personal", "mondrian", "k-member")


def people(rows: int = 120, **more: object) -> hm.Table:
    rng = np.random.default_rng(0)
    jobs = [job for held in JOBS.values() for job in held]
    columns = {
        "age": rng.integers(20, 60, rows),
        "job": rng.choice(jobs, rows),
        "ill": rng.choice(["flu", "gout", "none"], rows),
        **{name: np.asarray(values) for name, values in more.items()},
    }
    schema = {
        "age": {"role": "quasi", "kind": "numeric", "hierarchy": {"intervals": [5, 10, 40]}},
        "job": {"role": "quasi", "hierarchy": {"tree": JOBS}},
        "ill": "sensitive",
    }
    policy = {"policy": {"k": "k_i"}} if "k_i" in more else {}
    return hm.read(pa.table(columns), schema={**policy, "columns": schema})


def test_what_loses_least_is_released_and_all_that_was_tried_is_told():
    table = people()
    release = hm.anonymize(table, hm.KAnonymity(4))
    assert tuple(one.method for one in release.tried) == TRIED
    least = min(release.tried, key=lambda one: one.loss)
    assert (release.method, release.loss) == (least.method, pytest.approx(least.loss))
    for name in TRIED:  # by itself each loses what was told
        (told,) = (one.loss for one in release.tried if one.method == name)
        alone = hm.anonymize(table, hm.KAnonymity(4), method=name, seed=0)
        assert alone.loss == pytest.approx(told)


def test_a_document_tells_no_time_and_no_loss_of_rows_that_do_not_leave():
    rare = people(61, job=[*["clerk"] * 30, *["smith"] * 30, "boss"])
    release = hm.anonymize(rare, hm.KAnonymity(5), suppression=0.05)
    told = release.to_dict()["tried"]
    assert "seconds" not in json.dumps(told)
    for one, attempt in zip(told, release.tried, strict=True):
        assert (one["loss"] is not None) == attempt.same_rows
    shown = [one["loss"] for one in told if one["loss"] is not None]
    assert shown
    assert all(loss == float(f"{loss:.3g}") for loss in shown)


def test_promises_metrics_and_size_decide_what_is_tried(monkeypatch):
    table = people()
    assert auto.suitable_methods(table, [hm.AverageRisk(0.2)], "loss") == ["optimal", "local"]
    assert auto.suitable_methods(table, [hm.KAnonymity(2)], "discernibility") == ["optimal"]
    assert auto.suitable_methods(table, [hm.KAnonymity(2)], "dbil") == list(TRIED[2:])
    monkeypatch.setattr(
        auto, "CONTENDERS", tuple(auto.Contender(n, recodes=False, cells=100) for n in TRIED[2:3])
    )
    assert auto.suitable_methods(table, [hm.KAnonymity(2)], "loss") == []
    with pytest.raises(ParameterError, match="one of loss, mean-loss"):
        hm.anonymize(table, hm.KAnonymity(2), metric="nonsense")


def test_own_demands_are_kept_and_a_refusal_counts_whom_nobody_can_serve():
    table = people(k_i=[3] * 119 + [5])
    assert hm.anonymize(table).verdicts[0].holds
    with pytest.raises(InfeasibleDemandsError, match="1 "):
        hm.anonymize(people(k_i=[3] * 119 + [500]))


def test_points_of_the_frontier_can_be_released_as_they_are():
    table = people()
    found = hm.frontier(table, [hm.KAnonymity(3), hm.KAnonymity(6)], suppression=[0.0, 0.05])
    assert len(found.points) >= 2
    for point in found.points:
        assert point.release(table).loss == pytest.approx(point.loss)
    alone = hm.anonymize(table, hm.KAnonymity(6), seed=0)
    assert min(p.loss for p in found.points if "k = 6" in p.name) <= alone.loss + 1e-9


@pytest.mark.parametrize("labels", ["tight", "sets"])
def test_no_bound_and_no_member_is_a_value_that_too_few_hold(labels):
    table, k = people(200), 5
    release = hm.anonymize(table, hm.KAnonymity(k), method="personal", labels=labels)
    for name, sign in (("age", "-"), ("job", " | ")):
        held = {str(v): n for v, n in _counts(table.arrow[name].to_pylist()).items()}
        for label in set(map(str, release.to_arrow()[name].to_pylist())) - set(held):
            for piece in label.replace(" to ", "-").split(sign):
                assert held.get(piece, k) >= k


def test_a_set_says_what_the_class_holds_and_hides_who_is_alone():
    jobs = ["clerk"] * 4 + ["smith"] * 4 + ["boss"]
    table = people(9, job=jobs, age=[30] * 4 + [50] * 5)
    release = hm.anonymize(table, hm.KAnonymity(4), method="personal", labels="sets")
    # One boss: he stands inside the label of the office, which covers the clerks too.
    assert set(release.to_arrow()["job"].to_pylist()) == {"clerk", "office | smith"}
    compared = hm.compare(table, release, learn=False)
    assert compared.to_dict()["format"].startswith("halfmask.")


@pytest.mark.parametrize(("step", "label"), [(None, "20-29"), (25, "0-49")])
def test_a_declared_step_rounds_bounds(step, label):
    ages = [21, 22, 23, 24, 26, 27, 28, 29] * 2
    schema = {
        "age": {"role": "quasi", "kind": "numeric", **({} if step is None else {"step": step})}
    }
    table = hm.read(pa.table({"age": [*ages, 20, 29]}), schema={"columns": schema})
    release = hm.anonymize(table, hm.KAnonymity(18), method="mondrian")
    (found,) = set(release.to_arrow()["age"].to_pylist())
    low, high = map(int, found.split("-"))
    if step:
        assert found == label
    assert low <= 20
    assert high >= 29


def test_searches_stop_within_the_work_between_two_looks_at_the_clock(monkeypatch):
    """Counted, not timed: after time is up no kernel is called again."""
    calls = {"cut": 0, "late": 0}
    cut = kernels.cut_classes

    def count(*arguments):
        calls["cut"] += 1
        return cut(*arguments)

    def late(task):  # time is up after the first piece
        calls["late"] += 1
        return calls["late"] > 1

    monkeypatch.setattr(kernels, "cut_classes", count)
    monkeypatch.setattr(widths, "is_late", late)
    monkeypatch.setattr(widths, "_PIECE", 1)
    release = hm.anonymize(people(), hm.KAnonymity(3), method="mondrian", time_limit=1000)
    assert calls["cut"] == 1
    assert release.verdicts[0].holds


def test_t_closeness_of_numbers_is_ordered_by_itself():
    table = hm.read(
        pa.table({"sex": ["f", "f", "m", "m"], "pay": [1, 2, 3, 4]}),
        schema={"sex": "quasi", "pay": "sensitive"},
    )
    (verdict,) = hm.check(table, hm.TCloseness(0.9, "pay"))
    assert verdict.model == "t-closeness (ordered distance)"
    # Halves of four values, in their order: |0.25| + |0.5| + |0.25| over three gaps.
    assert verdict.achieved == pytest.approx(1 / 3)


def _counts(values: list[object]) -> dict[object, int]:
    return {value: values.count(value) for value in set(values)}
