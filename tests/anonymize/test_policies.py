"""What personal demands gain, on tables small enough to divide by hand."""

from __future__ import annotations

import math

import pyarrow as pa
import pytest

import halfmask as hm
from halfmask.anonymize import policies
from halfmask.anonymize.policies import Gain
from halfmask.errors import ParameterError


def line(xs: list[int], ks: list[int]) -> hm.Table:
    schema = hm.Schema({"x": hm.Column("quasi", weight=max(xs))}, policy={"k": "k_i"})
    return hm.Table(pa.table({"x": xs, "k_i": ks}), schema)


def test_stated_demands_are_set_against_one_k_and_deleting():
    # Own demands: {0, 1} and {10, 11, 12, 13} cost 2 * 1 + 4 * 3; the stated k are 2, 3 and 4.
    table = line([0, 1, 10, 11, 12, 13], [2, 2, 2, 3, 3, 4])
    found = hm.compare_policies(table, method="exact", seeds=[0]).gains[0]
    assert (found.concern, found.k, found.people) == ("as stated", (2, 3, 4), (3, 2, 1))
    assert found.personal == pytest.approx(14 / 6)
    assert found.over_moderate.mean == pytest.approx((3 * 10 + 3 * 2) / 14)
    assert found.over_uniform.mean == pytest.approx(6 * 13 / 14)
    # Without 13, which costs the whole column, three of the five others cannot be kept apart.
    assert found.over_deleting.mean == pytest.approx((13 + 5 * 12) / 14)


def test_one_k_for_all_is_divided_once_for_all_populations(monkeypatch):
    seen, kept = [], policies._Runs.loss

    def watched(self, task):
        seen.append(set(task.demands.k.tolist()))
        return kept(self, task)

    monkeypatch.setattr(policies._Runs, "loss", watched)
    table = hm.Table(pa.table({"x": list(range(40))}), hm.Schema({"x": "quasi"}))
    hm.compare_policies(table, ["general", "online"], k=(2, 3, 4), method="mondrian", seeds=[0, 1])
    whole = [k for k in seen if k == {4}]
    assert len(whole) == 1


def test_runs_that_agree_have_no_interval():
    assert Gain.of([1.1, 1.1, 1.1]) == Gain(1.1, 1.1, 1.1)
    wide = Gain.of([1.0, 2.0])
    assert (wide.mean, wide.high) == (
        1.5,
        pytest.approx(1.5 + 12.706 * math.sqrt(0.5) / math.sqrt(2)),
    )


@pytest.mark.parametrize(
    ("wrong", "match"),
    [
        pytest.param({"k": (2, 3, 9)}, "8 rows", id="more than the table holds"),
        pytest.param({"k": (3, 2, 4)}, "do not fall", id="falling demands"),
        pytest.param({"method": "nosuch"}, "nosuch", id="an unknown method"),
        pytest.param({"seeds": []}, "at least one", id="no seed"),
    ],
)
def test_what_cannot_be_compared_is_refused(wrong, match):
    table = hm.Table(pa.table({"x": list(range(8))}), hm.Schema({"x": "quasi"}))
    with pytest.raises(ParameterError, match=match):
        hm.compare_policies(table, ["personal"], **wrong)
