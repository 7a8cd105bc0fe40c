"""Proven optima against exhaustive search and the worked examples."""

from __future__ import annotations

import importlib.util
from collections import Counter
from fractions import Fraction
from itertools import combinations, product
from pathlib import Path

import numpy as np
import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.anonymize.partition import exact, optimum
from halfmask.anonymize.partition.exact import instance_of
from halfmask.anonymize.partition.links import linked_division
from halfmask.anonymize.partition.run import DIVISIONS
from halfmask.anonymize.partition.task import task_of
from halfmask.errors import HalfmaskError, PrivacyError, UnsatisfiableError
from halfmask.kernels.partition import pricing
from halfmask.models.requirements import with_demanded_models

spec = importlib.util.spec_from_file_location("brute", Path(__file__).with_name("brute.py"))
brute = importlib.util.module_from_spec(spec)
spec.loader.exec_module(brute)
best, line, value = brute.best, brute.line, brute.value
partitions, valid = brute.partitions, brute.valid

OWN = hm.PersonalKAnonymity()
CASES = {
    "first": ([0, 1, 2, 10, 11, 12, 20, 30], [2, 2, 3, 2, 2, 2, 3, 2], (62, 41, 18, 8)),
    "second": ([1, 2, 4, 7, 11, 16, 22, 29], [2, 2, 2, 3, 2, 2, 3, 2], (62, 41, 13, 5)),
    "third": ([0, 1, 5, 6, 20], [2, 2, 2, 2, 3], (47, 31, 15, 4)),
}


def solved(table: hm.Table, metric: str, **options: object) -> hm.Release:
    return hm.anonymize(table, OWN, method="exact", metric=metric, **options)


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("metric", DIVISIONS["exact"].metrics)
def test_worked_examples(case, metric):
    xs, ks, wanted = CASES[case]
    release = solved(line(xs, ks), metric)
    found = dict(zip(("dbil", "wcsd", "diameter", "split"), wanted, strict=True))[metric]
    assert release.parameters["value"] == pytest.approx(found)
    assert release.gap == 0.0


def test_the_most_classes_are_not_the_least_loss():
    release = solved(line([0, 0, 0, 100, 100, 100], [2] * 6), "dbil")
    assert release.parameters["value"] == 0
    assert release.classes.count == 2


def test_the_case_that_the_printed_bound_cuts_off():
    xs, ys = [0, 4, 1, 5], [3, 1, 1, 0]
    rows = pa.table({"x": xs, "y": ys, "k_i": [3, 2, 3, 2]})
    schema = hm.Schema(
        {"x": hm.Column("quasi", weight=5.0), "y": hm.Column("quasi", weight=3.0)},
        policy={"k": "k_i"},
    )
    release = solved(hm.Table(rows, schema), "dbil")
    assert release.parameters["value"] == pytest.approx(32)
    assert release.gap == 0.0


@pytest.mark.parametrize("metric", DIVISIONS["exact"].metrics)
@given(
    rows=st.lists(st.tuples(st.integers(0, 20), st.integers(1, 4)), min_size=4, max_size=7),
)
@settings(max_examples=examples(40))
def test_the_optimum_is_that_of_exhaustive_search(metric, rows):
    xs, ks = [x for x, _ in rows] + [21], [k for _, k in rows] + [2]
    far = np.abs(np.subtract.outer(xs, xs)).astype(float)
    release = solved(line(xs, ks), metric)
    assert release.parameters["value"] == pytest.approx(best(far, ks, metric))
    assert release.gap == 0.0


@pytest.mark.parametrize("steps", [5, 10])
@pytest.mark.parametrize("metric", ["dbil", "wcsd"])
def test_a_search_without_patience_proves_nothing_false(metric, steps, monkeypatch):
    """Prices of rows that a search cut short left behind rule out no class."""
    monkeypatch.setattr(optimum, "_STEPS", steps)
    kind, proven = {"dbil": pricing.DBIL, "wcsd": pricing.WCSD}[metric], 0
    for seed in range(30):
        rng = np.random.default_rng(seed)
        places, ks = rng.random((7, 2)), rng.integers(1, 4, 7)
        far = np.abs(places[:, None] - places).sum(axis=2)
        instance = optimum.Instance(far, pricing.Rules.of_sizes(ks))
        found = optimum.smallest_sum(instance, kind, [np.zeros(7, np.int64)])
        least = best(far, ks.tolist(), metric)
        assert found.bound <= least + 1e-7
        assert value(far, found.ids.tolist(), metric) == pytest.approx(found.value)
        if found.gap == 0:
            proven += 1
            assert found.value == pytest.approx(least)
    assert proven  # and some are proven all the same


def test_the_brute_force_lists_every_partition_once():
    listed = [tuple(ids) for ids in partitions(6) if valid(ids, [2] * 6)]
    assert len(listed) == len(set(listed)) == 41
    assert value(np.ones((6, 6)), list(listed[0]), "dbil") == 6


def test_forty_adults_are_proven(thesis_adult):
    rng = np.random.default_rng(3)
    rows = rng.choice(len(thesis_adult), 40, replace=False)
    part = hm.Table(thesis_adult.arrow.take(pa.array(rows)), thesis_adult.schema)
    table = hm.policies.generate(part, (0, 20, 80), k=(2, 3, 3), seed=0)
    release = solved(table, "dbil", time_limit=60)
    assert release.gap == 0.0
    greedy = hm.anonymize(table, OWN, method="k-member", metric="dbil", seed=0)
    assert release.parameters["value"] <= greedy.parameters["value"] + 1e-9


def test_a_larger_table_is_cut_first_and_says_so(thesis_adult):
    rng = np.random.default_rng(4)
    rows = rng.choice(len(thesis_adult), 150, replace=False)
    part = hm.Table(thesis_adult.arrow.take(pa.array(rows)), thesis_adult.schema)
    table = hm.policies.generate(part, (0, 20, 80), k=(2, 3, 3), seed=0)
    release = solved(table, "dbil", block=20, time_limit=60)
    assert release.gap is None
    assert any("blocks" in note for note in release.notes)
    heuristic = hm.anonymize(table, OWN, method="personal", metric="dbil")
    assert release.parameters["value"] < heuristic.parameters["value"]


@given(
    ids=st.lists(st.integers(0, 12), min_size=41, max_size=60),
    first=st.sampled_from([10, 20]),
)
@settings(max_examples=examples(30))
def test_blocks_hold_whole_classes(ids, first):
    from halfmask.anonymize.partition.exact import _blocks
    from halfmask.anonymize.partition.methods import number_classes
    from halfmask.anonymize.partition.task import task_of

    given_ids = number_classes(np.array(ids))
    task = task_of(line(list(range(len(ids))), [2] * len(ids)), [OWN])
    blocks = _blocks(task, given_ids, 20, first)
    assert sorted(np.concatenate(blocks).tolist()) == list(range(len(ids)))
    homes = [set(given_ids[rows].tolist()) for rows in blocks]
    assert sum(map(len, homes)) == len(np.unique(given_ids))
    assert all(len(rows) <= 20 or len(home) == 1 for rows, home in zip(blocks, homes, strict=True))


def test_time_is_up_at_once_and_the_gap_is_honest(thesis_adult):
    part = hm.Table(thesis_adult.arrow.slice(0, 100), thesis_adult.schema)
    table = hm.policies.generate(part, "online", k=(4, 6, 8), seed=0)
    release = solved(table, "dbil", time_limit=0.01)
    assert release.gap > 0
    assert any("may be lower" in note for note in release.notes)


def test_at_least_so_many_classes_can_be_asked_for_with_the_split():
    table = line([0, 1, 2, 10, 11, 12, 20, 30], [2, 2, 3, 2, 2, 2, 3, 2])
    assert solved(table, "split").classes.count >= 2
    three = solved(table, "split", classes=3)
    assert three.classes.count == 3
    assert three.parameters["value"] == pytest.approx(1)


SUMS = [metric for metric in DIVISIONS["exact"].metrics if metric != "split"]


def ruled(rows, links=None):
    """A line of numbers with a sensitive value, own k, l and t, and columns that link rows."""
    xs, ks, ss, ls, ts = (list(one) for one in zip(*rows, strict=True))
    columns = {"x": xs, "k_i": ks, "s": ss, "l_i": ls, "t_i": ts}
    roles = {"x": hm.Column("quasi", weight=float(max(xs) - min(xs)) or 1.0), "s": "sensitive"}
    for name, values in (links or {}).items():
        columns[name], roles[name] = pa.array(values, pa.string()), "identifier"
    schema = hm.Schema(roles, policy={"k": "k_i", "l": "l_i", "t": "t_i"})
    return hm.Table(pa.table(columns), schema)


def keeps(ids, rows, links):
    """Whether a division gives everybody k rows, l values and a distance of t, and keeps links."""
    total = Counter(row[2] for row in rows)
    for i, (_, k, _, l_, t) in enumerate(rows):
        inside = [rows[j][2] for j in range(len(rows)) if ids[j] == ids[i]]
        held = Counter(inside)
        apart = sum(
            abs(Fraction(held[s], len(inside)) - Fraction(total[s], len(rows))) for s in total
        )
        if len(inside) < k or len(held) < l_ or apart / 2 > Fraction(str(t)):
            return False
    for name, values in links.items():
        for i, j in combinations(range(len(rows)), 2):
            linked = values[i] is not None and values[i] == values[j]
            if linked and (ids[i] == ids[j]) != (name == "must"):
                return False
    return True


def least(rows, metric, links):
    xs = [row[0] for row in rows]
    far = np.abs(np.subtract.outer(xs, xs)).astype(float)
    listed = (ids for ids in partitions(len(rows)) if keeps(ids, rows, links))
    return min((value(far, ids, metric) for ids in listed), default=None)


one_row = st.tuples(
    st.integers(0, 3),
    st.integers(1, 3),
    st.sampled_from("uuvw"),
    st.sampled_from([1, 1, 2]),
    st.sampled_from([1.0, 1.0, 0.5]),
)


@st.composite
def linked_rows(draw):
    """Rows on a line, none on another's place, some of them linked."""
    rows = draw(st.lists(one_row, min_size=4, max_size=7))
    rows = [(4 * i + step, *rest) for i, (step, *rest) in enumerate(rows)]
    column = st.lists(
        st.sampled_from([None, None, None, "a", "b"]), min_size=len(rows), max_size=len(rows)
    )
    return rows, {"must": draw(column), "cannot": draw(column)}


@pytest.mark.parametrize("metric", SUMS)
@given(given=linked_rows(), both=st.booleans())
@settings(max_examples=examples(25))
def test_the_optimum_with_values_and_links_is_that_of_exhaustive_search(metric, given, both):
    rows, links = given
    links = links if both else {}
    wanted = least(rows, metric, links)
    others = [{r[2] for j, r in enumerate(rows) if j != i} for i in range(len(rows))]
    if any(row[3] > len(values) for row, values in zip(rows, others, strict=True)):
        wanted = None  # what only its holder's own value could meet is refused
    table = ruled(rows, links)
    options = {f"{name}_link": name for name in links}
    if wanted is None:
        with pytest.raises(PrivacyError):
            hm.anonymize(table, OWN, method="exact", metric=metric, **options)
        return
    release = hm.anonymize(table, OWN, method="exact", metric=metric, **options)
    assert release.parameters["value"] == pytest.approx(wanted)
    assert release.gap == 0.0


@pytest.mark.parametrize("metric", SUMS)
@given(given=linked_rows())
@settings(max_examples=examples(15))
def test_a_search_that_is_stopped_claims_no_more_than_the_optimum(metric, given):
    rows, links = given
    wanted = least(rows, metric, links)
    options = {f"{name}_link": name for name in links}
    try:
        release = hm.anonymize(
            ruled(rows, links), OWN, method="exact", metric=metric, time_limit=0.001, **options
        )
    except PrivacyError:  # no time to find one, or there is none
        return
    assert release.parameters["value"] >= wanted - 1e-9
    assert release.parameters["value"] - release.gap <= wanted + 1e-9


@given(given=linked_rows())
@settings(max_examples=examples(60))
def test_a_division_that_is_built_keeps_demands_and_links(given):
    rows, links = given
    table = ruled(rows, links)
    options = {f"{name}_link": name for name in links}
    task = task_of(table, with_demanded_models(table, (OWN,)), options=options)
    found = linked_division(instance_of(task, np.inf), 1)
    assert found is None or keeps(found.tolist(), rows, links)
    if not any(links["cannot"]) and keeps([0] * len(rows), rows, links):
        assert found is not None


def linked_people(count):
    """People of whom a fifth stand together in pairs and three tenths apart by threes."""
    draw = np.random.default_rng(1)
    must, cannot = ([None] * count for _ in range(2))
    for column, size, order in ((must, 2, draw.permutation(count)),
                                (cannot, 3, draw.permutation(count))):  # fmt: skip
        for place, row in enumerate(order[: size * (count // 10)].tolist()):
            column[row] = f"{size}-{place // size}"
    people = {
        "age": draw.integers(20, 80, count),
        "zip": draw.integers(0, 50, count),
        "s": draw.choice(list("uvwx"), count, p=[0.4, 0.3, 0.2, 0.1]),
        "must": pa.array(must, pa.string()),
        "cannot": pa.array(cannot, pa.string()),
        "who": np.arange(count),
    }
    roles = {"age": "quasi", "zip": "quasi", "s": "sensitive", "who": "other"}
    roles |= {"must": "identifier", "cannot": "identifier"}
    return hm.Table(pa.table(people), hm.Schema(roles)), must, cannot


@pytest.mark.parametrize("metric", [*SUMS, "diameter"])
@pytest.mark.parametrize(
    "more", [(), (hm.LDiversity(2, "s"),), (hm.TCloseness(0.5, "s"),)], ids=["k", "l", "t"]
)
def test_links_are_kept_for_sixty_people(metric, more):
    table, must, cannot = linked_people(60)
    # Whatever the time, a first division is built; how far it is from the optimum is told.
    release = hm.anonymize(
        table, hm.KAnonymity(2), *more, method="exact", metric=metric, time_limit=0.5, seed=1,
        must_link="must", cannot_link="cannot",
    )  # fmt: skip
    rows = release.to_arrow().to_pylist()
    label = {row["who"]: (row["age"], row["zip"]) for row in rows}
    for i, j in combinations(range(60), 2):
        if must[i] is not None and must[i] == must[j]:
            assert label[i] == label[j]
        if cannot[i] is not None and cannot[i] == cannot[j]:
            assert label[i] != label[j]
    assert 0 <= release.gap <= release.parameters["value"]


@pytest.mark.parametrize("metric", [*SUMS, "diameter"])
def test_rows_that_stand_apart_alone_have_a_first_division_too(metric):
    table, _, cannot = linked_people(60)
    models = with_demanded_models(table, (hm.KAnonymity(5),))
    task = task_of(table, models, options={"cannot_link": "cannot"})
    found = exact.optimum(task, metric, 0.0).ids  # no time for a search, only for a first division
    assert np.bincount(found).min() >= 5
    for i, j in combinations(range(60), 2):
        if cannot[i] is not None and cannot[i] == cannot[j]:
            assert found[i] != found[j]


def test_the_worked_example_with_a_link_loses_more():
    xs, ks, (free, *_) = CASES["first"]
    rows = [(x, k, "u", 1, 1.0) for x, k in zip(xs, ks, strict=True)]
    apart = [None, None, None, "a", "a", None, None, None]  # 10 and 11
    release = hm.anonymize(
        ruled(rows, {"cannot": apart}), OWN, method="exact", metric="dbil", cannot_link="cannot"
    )
    assert release.parameters["value"] == pytest.approx(least(rows, "dbil", {"cannot": apart}))
    assert release.parameters["value"] >= free
    assert release.gap == 0.0
    assert release.parameters["cannot_link"] == "cannot"


def test_links_that_contradict_or_are_seen_as_one_class_are_refused():
    rows = [(x, 2, "u", 1, 1.0) for x in (0, 0, 9, 9)]
    same = ["a", "a", None, None]
    table = ruled(rows, {"must": same, "cannot": same})
    both = {"must_link": "must", "cannot_link": "cannot"}
    with pytest.raises(UnsatisfiableError, match="must and cannot contradict"):
        hm.anonymize(table, OWN, method="exact", **both)
    rows = [(0, 1, "u", 1, 1.0)] * 2
    table = ruled(rows, {"cannot": ["a", "a"]})
    with pytest.raises(UnsatisfiableError, match=r"No division keeps .* publish the same labels"):
        hm.anonymize(table, OWN, method="exact", cannot_link="cannot")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"metric": "split", "must_link": "must"}, "dbil, wcsd or diameter"),
        ({"must_link": "none"}, "Unknown columns: 'none'"),
        ({"must_link": 3}, "the name of a column"),
        ({"must_link": "must", "block": 3}, "none above 3 rows"),
        ({"must_link": "must", "method": "auto"}, "must_link"),
        ({"must_link": "must", "method": "mdav"}, "only labels"),
    ],
)
def test_links_that_cannot_be_kept_are_refused(options, words):
    rows = [(x, 2, "u", 1, 1.0) for x in (0, 1, 8, 9)]
    table = ruled(rows, {"must": ["a", None, None, "a"]})
    with pytest.raises(HalfmaskError, match=words):
        hm.anonymize(table, OWN, **{"method": "exact", **options})


@pytest.mark.parametrize("metric", SUMS)
def test_a_promise_of_t_is_proven_for_forty_people(metric):
    draw = np.random.default_rng(1)
    people = {
        "age": draw.integers(20, 80, 40),
        "zip": draw.integers(0, 50, 40),
        "s": draw.choice(list("uvwx"), 40, p=[0.4, 0.3, 0.2, 0.1]),
    }
    table = hm.read(people, schema={"age": "quasi", "zip": "quasi", "s": "sensitive"})
    promises = (hm.KAnonymity(2), hm.TCloseness(0.5, "s"))
    release = hm.anonymize(table, *promises, method="exact", metric=metric, time_limit=600)
    assert release.gap == 0.0
    freer = hm.anonymize(table, promises[0], method="exact", metric=metric, time_limit=600)
    assert freer.parameters["value"] <= release.parameters["value"]
    rough = hm.anonymize(table, *promises, method="mondrian", metric="dbil")
    if metric == "dbil":
        assert release.parameters["value"] < rough.parameters["value"]


@given(
    counts=st.lists(st.integers(1, 4), min_size=1, max_size=4),
    t=st.sampled_from([0.1, 0.25, 0.3, 0.5, 0.7]),
    own=st.integers(-1, 3),
)
@settings(max_examples=examples(60))
def test_the_fewest_rows_within_t_are_those_of_all_counts(counts, t, own):
    from halfmask.anonymize.partition.exact import _least_near

    total, own = sum(counts), min(own, len(counts) - 1)
    shares = [Fraction(count, total) for count in counts]

    def reached(size):
        for held in product(range(size + 1), repeat=len(counts)):
            if sum(held) == size and (own < 0 or held[own] > 0):
                over = sum(max(Fraction(h, size) - p, 0) for h, p in zip(held, shares, strict=True))
                if over <= Fraction(str(t)):
                    return True
        return False

    fewest = next(size for size in range(1, total + 1) if reached(size))
    found = _least_near(np.array([float(p) for p in shares]), own, t + 1e-9, total)
    assert found == fewest


def test_larger_tables_with_values_are_divided_in_blocks_and_keep_them():
    rng = np.random.default_rng(3)
    rows = [(int(x), 2, "uvw"[int(x) % 3], 2, 1.0) for x in rng.integers(0, 200, 60)]
    release = hm.anonymize(ruled(rows), OWN, method="exact", block=12, time_limit=5)
    assert release.gap is None
    assert all(verdict.holds for verdict in release.verdicts)
    held = release.to_arrow().group_by("x").aggregate([("s", "count_distinct")])
    assert min(held["s_count_distinct"].to_pylist()) >= 2
