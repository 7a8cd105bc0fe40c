"""What models claim of themselves: monotone, absorbing; a claim not made has a counter-example."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from halfmask.models import (
    AlphaKAnonymity,
    AverageRisk,
    BetaLikeness,
    DeltaDisclosure,
    DeltaPresence,
    KAnonymity,
    KMap,
    LDiversity,
    Model,
    PersonalKAnonymity,
    SampleUniques,
    TCloseness,
)
from halfmask.models.requirements import prepare, statistics
from halfmask.table.columns import Column
from halfmask.table.hierarchy import TOP, from_levels
from halfmask.table.schema import Schema
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples


class Tree:
    def build(self, column, values):
        leaves = values.to_pylist()
        levels = [leaves, [v // 2 for v in leaves], [TOP] * len(leaves)]
        return from_levels(levels, other_leaves=[[]] * 3)

    def to_dict(self):
        return {}


SCHEMA = Schema(
    {"q": Column("quasi"), "s": Column("sensitive", hierarchy=Tree())},
    person="person",
    policy={"k": "k"},
)
QUASI = Schema({"q": Column("quasi")})
POPULATION = Table(pa.table({"q": list("aaaabbbbbcc")}), QUASI)

MODELS = [
    KAnonymity(2),
    PersonalKAnonymity(),
    LDiversity(2, "s"),
    LDiversity(1.5, "s", "entropy"),
    LDiversity(2, "s", "entropy"),
    LDiversity(2, "s", "recursive", c=2),
    AlphaKAnonymity(0.5, 2, "s"),
    AlphaKAnonymity(0.5, 2, "s", value=1),
    TCloseness(0.4, "s"),
    TCloseness(0.3, "s", "ordered"),
    TCloseness(0.3, "s", "hierarchical"),
    DeltaDisclosure(0.7, "s"),
    DeltaDisclosure(0.7, "s", absent="ignored"),
    BetaLikeness(0.5, "s"),
    BetaLikeness(0.9, "s", kind="enhanced"),
    DeltaPresence(0.1, 0.6, POPULATION),
    KMap(3, POPULATION),
    AverageRisk(0.5),
    SampleUniques(0.3),
]


def named(model):
    return f"{model.name} {model.to_dict()}"


def tabulate(data):
    q, s, k, person = (list(column) for column in zip(*data, strict=True))
    return Table(pa.table({"q": q, "s": s, "k": k, "person": person}), SCHEMA)


def judged(data, model):
    """The classes, and per class value whether it passes."""
    table = prepare(tabulate(data), [model])
    classes, _ = statistics(Tuples.of(table), [model])
    names = table.encode("q").values.to_pylist()
    codes = classes.layout.codes(classes.keys, 0)
    found = dict(zip([names[c] for c in codes], model.passes(classes).tolist(), strict=True))
    return table, classes, found


def of_one_mind(data):
    """A person demands the same in all rows."""
    first = {}
    return [(q, s, first.setdefault(person, k), person) for q, s, k, person in data]


def data_of(people):
    def of(values):
        value = st.integers(0, values)
        row = st.tuples(st.sampled_from("abc"), value, st.integers(1, 3), st.integers(0, people))
        return st.lists(row, min_size=4, max_size=20).map(of_one_mind)

    return st.one_of(of(1), of(3))


data = st.one_of(data_of(8), data_of(10**6))


@pytest.mark.parametrize("model", MODELS, ids=named)
def test_keeps_the_protocol(model):
    assert isinstance(model, Model)
    assert model.to_dict()["model"]
    flags = (model.monotone, model.absorbing, model.whole, model.relative)
    assert all(isinstance(flag, bool) for flag in flags)


@pytest.mark.parametrize("model", [m for m in MODELS if m.monotone and not m.whole], ids=named)
@given(data=data)
@settings(suppress_health_check=[HealthCheck.filter_too_much])
def test_merging_classes_that_pass_gives_one_that_passes(model, data):
    assume(getattr(model, "value", None) is None or any(s == 1 for _, s, _, _ in data))
    _, before, _ = judged(data, model)
    codes = before.layout.codes(before.keys, 0)[model.passes(before)]
    assume(len(codes) > 1)
    after, merged = judged_merged(before, model, sorted(codes.tolist()))
    assert len(after) == len(before) - 1
    assert merged


def judged_merged(before, model, codes=(0, 1)):
    """Merge the classes of the first two codes; tell whether the merged class passes."""
    recode = np.arange(int(before.layout.masks[0]) + 1, dtype=np.int32)
    recode[codes[1]] = codes[0]
    after = before.coarsen([0], [recode])
    place = int(np.flatnonzero(after.layout.codes(after.keys, 0) == codes[0])[0])
    return after, bool(model.passes(after)[place])


@pytest.mark.parametrize("model", [m for m in MODELS if m.whole], ids=named)
@given(data=data)
def test_merging_never_breaks_a_bound_on_the_whole_table(model, data):
    _, before, _ = judged(data, model)
    assume(len(before) > 1 and model.check(before).holds)
    after, _ = judged_merged(before, model)
    assert model.check(after).holds


@pytest.mark.parametrize("model", [m for m in MODELS if m.absorbing], ids=named)
@given(data=data, more=data)
def test_a_class_that_passes_absorbs_any_rows(model, data, more):
    _, _, before = judged(data, model)
    held = {q for q, *_ in data}
    _, _, after = judged(data + more, model)
    for name in held:
        assert after[name] or not before[name]


def test_only_three_models_absorb_rows():
    assert {m.name for m in MODELS if m.absorbing} == {
        "k-anonymity",
        "distinct l-diversity",
        "k-map",
    }


def rows(text):
    """Rows from ``class value demand`` triples, one person each."""
    out = []
    for i, (q, s, k) in enumerate(text.split()):
        out.append((q, int(s), int(k), i))
    return out


MANY = "a01 a01 a01 a01"

# Each: rows where class a passes, and rows that then break it.
BROKEN = [
    (PersonalKAnonymity(), "a01 a01", "a09"),
    (LDiversity(2, "s", "entropy"), "a01 a11", "a01"),
    (LDiversity(2, "s", "recursive", c=2), "a01 a11", "a01 a01"),
    (AlphaKAnonymity(0.5, 2, "s"), "a01 a11", "a01"),
    (TCloseness(0.2, "s"), "a01 a11" + " b01 b11" * 8, MANY),
    (TCloseness(0.2, "s", "ordered"), "a01 a11" + " b01 b11" * 8, MANY),
    (TCloseness(0.2, "s", "hierarchical"), "a01 a31" + " b01 b31" * 8, MANY),
    (DeltaDisclosure(0.3, "s"), "a01 a11" + " b01 b11" * 8, MANY),
    (DeltaDisclosure(0.3, "s", absent="ignored"), "a01 a11" + " b01 b11" * 8, MANY),
    (BetaLikeness(0.1, "s"), "a01 a11" + " b01 b11" * 8, MANY),
    (BetaLikeness(0.1, "s", kind="enhanced"), "a01 a11" + " b01 b11" * 8, MANY),
    (DeltaPresence(0.0, 0.6, POPULATION), "a01 a11", "a01"),
]


@pytest.mark.parametrize(("model", "first", "more"), BROKEN, ids=lambda x: getattr(x, "name", x))
def test_other_models_can_be_broken_by_added_rows(model, first, more):
    assert not model.absorbing
    assert judged(rows(first), model)[2]["a"]
    assert not judged(rows(first + " " + more), model)[2]["a"]


@pytest.mark.parametrize("model", [AverageRisk(0.5), SampleUniques(0.3)], ids=named)
def test_a_row_of_its_own_breaks_bounds_on_the_whole_table(model):
    assert model.check(judged(rows("a01 a01"), model)[1]).holds
    assert not model.check(judged(rows("a01 a01 b01"), model)[1]).holds


def test_relaxed_delta_disclosure_is_not_monotone():
    # Value 1 stands in a (1 of 4) and c (6 of 12), not in b (of 8); in all rows 7 of 24.
    # a and b together: 1 of 12, and ln(24 / (7 * 12)) = -1.25.
    text = "a01 a01 a01 a11" + " b01" * 8 + " c01" * 6 + " c11" * 6
    model = DeltaDisclosure(0.6, "s", absent="ignored")
    _, before, passing = judged(rows(text), model)
    assert not model.monotone
    assert passing == {"a": True, "b": True, "c": True}
    assert not judged_merged(before, model)[1]


def test_monotone_is_claimed_by_all_but_the_relaxed_one():
    assert [m.name for m in MODELS if not m.monotone] == ["relaxed delta-disclosure"]


def test_average_risk_removes_the_smallest_classes_only():
    # Sizes 1, 1, 2, 4: risk 4/8; without one single it is 3/7, without both 2/6.
    model = AverageRisk(Fraction(3, 7))
    _, classes, passing = judged(rows("a01 b01 c01 c01 d01 d01 d01 d01"), model)
    assert sorted(passing.values()) == [False, True, True, True]
    assert classes.rows[~model.passes(classes)].tolist() == [1]


BOUNDED = [m for m in MODELS if hasattr(m, "unavoidable") and not m.relative]


@pytest.mark.parametrize("model", BOUNDED, ids=named)
@given(data=data)
def test_rows_called_unavoidable_fail_in_every_finer_grouping(model, data):
    assume(getattr(model, "value", None) is None or any(s == 1 for _, s, _, _ in data))
    _, fine, _ = judged(data, model)
    lost = int(fine.rows[~model.passes(fine)].sum())
    assume(len(fine) > 1)
    coarse, _ = judged_merged(fine, model)
    assert model.unavoidable(fine, 0).sum() <= lost
    assert model.unavoidable(coarse, 0).sum() <= lost
    assert (model.unavoidable(coarse, 0) <= np.where(model.passes(coarse), 0, coarse.rows)).all()


def test_rows_called_unavoidable_are_as_many_as_can_be_told():
    demands = rows("a01 a01 a03 b09 b01")
    assert PersonalKAnonymity().unavoidable(judged(demands, PersonalKAnonymity())[1], 0).sum() == 1
    few = LDiversity(2, "s", "recursive", c=1)
    assert few.unavoidable(judged(rows("a01 a01 b01 b11"), few)[1], 0).sum() == 2
    rare = AlphaKAnonymity(0.5, 2, "s")
    # a: 4 of 5 must shrink to x of 2 x: three rows go; b is too small.
    assert rare.unavoidable(judged(rows("a01 a01 a01 a01 a11 b01"), rare)[1], 0).sum() == 4


@pytest.mark.parametrize("name", ["equal", "ordered", "hierarchical"])
@given(data=data, t=st.sampled_from([0.1, 0.2, 0.3]))
def test_rows_that_t_closeness_calls_unavoidable_do_leave(name, data, t):
    model = TCloseness(t, "s", name)
    _, fine, _ = judged(data, model)
    assume(len(fine) > 1)
    coarse, _ = judged_merged(fine, model)
    total = int(fine.rows.sum())
    # Every set of fine classes that passes on its own has lost at least what the bound says.
    for bits in range(1, 2 ** len(fine)):
        mask = np.array([bool(bits >> i & 1) for i in range(len(fine))])
        lost = total - int(fine.rows[mask].sum())
        if model.passes(fine.select(mask)).all():
            assert model.unavoidable(coarse, lost).sum() <= lost


RELATIVE = [
    DeltaDisclosure(0.7, "s"),
    DeltaDisclosure(0.7, "s", absent="ignored"),
    DeltaDisclosure(2, "s", base=2),
    BetaLikeness(0.5, "s"),
    BetaLikeness(0.9, "s", kind="enhanced"),
]


@pytest.mark.parametrize("model", RELATIVE, ids=named)
@given(data=data)
def test_rows_that_likeness_calls_unavoidable_do_leave(model, data):
    _, fine, _ = judged(data, model)
    assume(len(fine) > 1)
    coarse, _ = judged_merged(fine, model)
    total = int(fine.rows.sum())
    for bits in range(1, 2 ** len(fine)):
        mask = np.array([bool(bits >> i & 1) for i in range(len(fine))])
        lost = total - int(fine.rows[mask].sum())
        if model.passes(fine.select(mask)).all():
            assert model.unavoidable(fine, lost).sum() <= lost
            assert model.unavoidable(coarse, lost).sum() <= lost
            # Class by class too: what a class must lose is no more than what it lost.
            assert (model.unavoidable(fine, lost) <= np.where(mask, 0, fine.rows)).all()


@pytest.mark.parametrize(
    "model",
    [*RELATIVE, *(TCloseness(0.2, "s", way) for way in ("equal", "ordered", "hierarchical"))],
    ids=named,
)
@given(data=data)
def test_survivors_are_those_of_leaving_and_comparing_again(model, data):
    _, classes, _ = judged(data, model)
    kept = np.ones(len(classes), dtype=bool)
    while kept.any():
        passing = model.passes(classes.select(kept))
        if passing.all():
            break
        kept[kept] = passing
    found = model.survivors(classes, np.ones(len(classes), dtype=bool))
    assert found is None or found.tolist() == kept.tolist()


def test_average_risk_takes_one_more_where_part_of_a_class_would_do():
    # Sizes 1, 1, 1, 5: risk 4/8; without one 3/7 = 0.43, without two 2/6 = 0.33.
    model = AverageRisk(0.4)
    _, classes, _ = judged(rows("a01 b01 c01" + " d01" * 5), model)
    assert classes.rows[~model.passes(classes)].tolist() == [1, 1]
