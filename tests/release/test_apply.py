from __future__ import annotations

import random

import pyarrow as pa
import pytest

from halfmask.errors import HierarchyError, ParameterError, PrivacyError, UnsatisfiableError
from halfmask.models.k_anonymity import KAnonymity
from halfmask.models.l_diversity import LDiversity
from halfmask.models.t_closeness import TCloseness
from halfmask.release import Recoding, RecodingStep, seal
from halfmask.release.recoding import _failing as failing
from halfmask.table import hierarchies
from halfmask.table.columns import Column
from halfmask.table.schema import Schema
from halfmask.table.table import Table


def new_rows(lab, ages, zips):
    count = len(ages)
    rows = {
        "name": ["n"] * count,
        "age": ages,
        "zip": zips,
        "disease": [f"d{i}" for i in range(count)],
        "weight": [1.0] * count,
    }
    return Table(pa.table(rows), lab.schema())


def test_new_rows_are_recoded_and_failing_classes_suppressed(lab):
    recoding = seal(lab.candidate()).recoding
    new = new_rows(lab, [33, 36, 71, 74, 12], ["35510", "35510", "9", "9", "9"])
    release = recoding.apply(new, KAnonymity(2), suppression=0.2)
    assert sorted(release.to_arrow()["age"].to_pylist()) == ["30-39", "30-39", "70-79", "70-79"]
    assert release.suppressed == 1
    assert release.method == "recoding"
    assert release.recoding.steps[0].classes == (("30-39", "35510"), ("70-79", "9"))


def test_more_suppression_than_allowed_is_refused_with_the_verdicts(lab):
    recoding = seal(lab.candidate()).recoding
    new = new_rows(lab, [33, 36, 12], ["35510", "35510", lab.CANARY])
    with pytest.raises(UnsatisfiableError) as caught:
        recoding.apply(new, KAnonymity(2), suppression=0.3)
    assert caught.value.suppressed == 1
    assert caught.value.levels == {"age": 1, "zip": 0}
    assert caught.value.verdicts[0].achieved == 1
    assert lab.CANARY not in str(caught.value)
    assert recoding.apply(new, KAnonymity(2), suppression=0.34).rows == 2


def test_everybody_suppressed_is_no_release(lab):
    recoding = seal(lab.candidate()).recoding
    new = new_rows(lab, [33, 56], ["35510", "1"])
    with pytest.raises(UnsatisfiableError):
        recoding.apply(new, KAnonymity(2), suppression=1)


def test_a_failing_class_falls_to_a_later_step(lab):
    table = lab.people()
    steps = [
        RecodingStep({"age": 1, "zip": 0}, (("30-39", "35510"), ("50-59", "35521"))),
        RecodingStep({"age": 3, "zip": 5}, (("*", "*"),)),
    ]
    recoding = Recoding.of(table, steps)
    new = new_rows(lab, [33, 52, 55, 99], ["35510", "35521", "35521", "7"])
    release = recoding.apply(new, KAnonymity(2))
    assert lab.row_set(release.to_arrow().select(["age", "zip"])) == [
        ("*", "*"),
        ("*", "*"),
        ("50-59", "35521"),
        ("50-59", "35521"),
    ]


def test_suppression_goes_on_until_moving_references_settle(lab, monkeypatch):
    # Each suppressed class moves the distribution that the others are compared with.
    rounds = []
    monkeypatch.setattr(
        "halfmask.release.recoding._failing", lambda *given: rounds.append(1) or failing(*given)
    )
    longest = 0
    for seed in range(12):
        pick = random.Random(seed)
        ages = [pick.choice([5, 15, 25, 35, 45, 55, 65, 75]) for _ in range(60)]
        new = new_rows(lab, ages, ["1"] * 60)
        disease = pa.array([pick.choice("abc") for _ in ages])
        new = Table(new.arrow.set_column(3, "disease", disease), new.schema)
        rounds.clear()
        recoding = Recoding.of(new, [{"age": 1, "zip": 0}])
        try:
            release = recoding.apply(new, TCloseness(0.2, "disease"), suppression=1)
        except UnsatisfiableError:
            continue
        longest = max(longest, len(rounds))
        assert release.verdicts[0].holds
        assert release.rows + release.suppressed == 60
    assert longest > 2


def test_values_the_hierarchy_lacks_are_refused(lab):
    tree = hierarchies.Tree({"north": ["a"], "south": ["b"]})
    table = Table(
        pa.table({"p": ["a", "b", "a", "b"]}), Schema({"p": Column("quasi", hierarchy=tree)})
    )
    recoding = Recoding.of(table, [{"p": 1}])
    new = Table(pa.table({"p": ["a", lab.CANARY]}), table.schema)
    with pytest.raises(HierarchyError, match="'p'") as caught:
        recoding.apply(new, KAnonymity(2))
    assert lab.CANARY not in str(caught.value)


def test_rows_of_unpublished_classes_are_suppressed_by_a_local_recoding(lab):
    steps = [
        RecodingStep({"age": 1, "zip": 0}, (("30-39", "35510"),)),
        RecodingStep({"age": 2, "zip": 0}, ()),
    ]
    recoding = Recoding.of(lab.people(), steps)
    new = new_rows(lab, [71, 72], ["1", "1"])
    with pytest.raises(UnsatisfiableError) as caught:
        recoding.apply(new, KAnonymity(2), suppression=1)
    assert caught.value.verdicts == ()
    assert caught.value.suppressed == 2


def test_parameters_are_checked(lab):
    recoding = seal(lab.candidate()).recoding
    with pytest.raises(ParameterError, match="suppression"):
        recoding.apply(lab.people(), KAnonymity(2), suppression=1.5)
    with pytest.raises(PrivacyError, match="model"):
        recoding.apply(lab.people())


def test_several_models_hold_together(lab):
    recoding = seal(lab.candidate()).recoding
    diverse = LDiversity(2, "disease", missing="value")
    release = recoding.apply(lab.people(), KAnonymity(2), diverse, suppression=0.2)
    assert [v.holds for v in release.verdicts] == [True, True]
