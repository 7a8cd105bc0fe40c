from __future__ import annotations

from collections import Counter
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from effort import THOROUGH, examples
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import halfmask as hm
from halfmask.anonymize import optimal
from halfmask.anonymize.local import _all, _block, _part
from halfmask.anonymize.optimal import greedy
from halfmask.anonymize.problem import RecodingProblem
from halfmask.metrics.cost import METRICS
from halfmask.models.requirements import statistics
from halfmask.table.tuples import Tuples

VALUES = [f"v{i}" for i in range(8)]
TREE = {"a": {"c": VALUES[:2], "d": VALUES[2:4]}, "b": {"e": VALUES[4:6], "f": VALUES[6:]}}


def table_of(rows, *, top=True):
    tree = hm.hierarchies.Tree(TREE, top=top)
    columns = {q: {"role": "quasi", "hierarchy": tree} for q in ("x", "y", "z")}
    data = {name: [row[i] for row in rows] for i, name in enumerate(("x", "y", "z", "s"))}
    return hm.read(pa.table(data), schema={"columns": {**columns, "s": "sensitive"}})


ROWS = st.lists(
    st.tuples(*[st.sampled_from(VALUES)] * 3, st.sampled_from("pqr")), min_size=6, max_size=60
)
RELAXED = settings(
    max_examples=examples(40), deadline=None, suppress_health_check=[HealthCheck.too_slow]
)


def published(release):
    frame = release.to_arrow().to_pylist()
    return Counter((r["x"], r["y"], r["z"]) for r in frame), frame


@RELAXED
@given(rows=ROWS, k=st.integers(2, 4), suppression=st.sampled_from([0.0, 0.1, 0.5]))
def test_every_class_keeps_k_and_no_more_rows_go_than_allowed(rows, k, suppression):
    release = hm.anonymize(
        table_of(rows), hm.KAnonymity(k), method="local", suppression=suppression
    )
    sizes, frame = published(release)
    assert min(sizes.values()) >= k
    assert len(frame) + release.suppressed == len(rows)
    assert release.suppressed <= Fraction(str(suppression)) * len(rows)


@RELAXED
@given(rows=ROWS, suppression=st.sampled_from([0.0, 0.2]))
def test_local_never_loses_more_than_the_full_domain_optimum(rows, suppression):
    table = table_of(rows)
    models = (hm.KAnonymity(2), hm.LDiversity(2, "s"))
    try:
        best = hm.anonymize(table, *models, method="optimal", suppression=suppression)
    except hm.errors.UnsatisfiableError:
        with pytest.raises(hm.errors.UnsatisfiableError):
            hm.anonymize(table, *models, method="local", suppression=suppression)
        return
    local = hm.anonymize(table, *models, method="local", suppression=suppression)
    assert local.loss <= best.loss + 1e-12
    groups: dict[tuple[str, ...], set[str]] = {}
    for row in local.to_arrow().to_pylist():
        groups.setdefault((row["x"], row["y"], row["z"]), set()).add(row["s"])
    assert min(len(g) for g in groups.values()) >= 2


@RELAXED
@given(rows=ROWS)
def test_t_closeness_holds_on_the_rows_that_leave(rows):
    release = hm.anonymize(table_of(rows), hm.TCloseness(0.3, "s"), method="local", suppression=0.3)
    _, frame = published(release)
    everything = Counter(r["s"] for r in frame)
    groups: dict[tuple[str, ...], list[str]] = {}
    for row in frame:
        groups.setdefault((row["x"], row["y"], row["z"]), []).append(row["s"])
    for members in groups.values():
        here = Counter(members)
        distance = sum(
            abs(Fraction(here[v], len(members)) - Fraction(everything[v], len(frame)))
            for v in everything
        )
        assert distance / 2 <= Fraction(3, 10)


def repeated_full_domain(table, k):
    """What local recoding has to beat: the optimum on the leftovers, again and again."""
    models = (hm.KAnonymity(k),)
    tuples, _ = statistics(Tuples.of(table), models)
    hierarchies = [table.hierarchy(name) for name in table.schema.quasi]
    problem = RecodingProblem(tuples, hierarchies, models, METRICS["loss"], suppression=1.0)
    left, paid = _all(problem), [0.0] * len(hierarchies)
    while len(left):
        part = _part(problem, problem.models, left, suppression=1.0)
        best = optimal.search_lattice(part).best
        if best is None:
            break
        block = _block(part, best, left)
        for c, level in enumerate(best.levels):
            codes = problem.layout.codes(tuples.keys[block.tuples], c)
            lost = (hierarchies[c].leaves[level] - 1) / (hierarchies[c].size - 1)
            paid[c] += float(tuples.rows[block.tuples] @ lost[hierarchies[c].maps[level][codes]])
        left = np.setdiff1d(left, block.tuples)
    rest = int(tuples.rows[left].sum()) if len(left) else 0
    return problem.combined([(p + rest) / problem.rows for p in paid])


def test_local_loses_less_than_repeated_full_domain_recoding_on_adult(adult_table):
    rows = adult_table.arrow if THOROUGH else adult_table.arrow.slice(0, 6000)
    some = hm.Table(rows, adult_table.schema)
    release = hm.anonymize(some, hm.KAnonymity(5), method="local", suppression=0.05)
    assert release.loss < 0.5 * repeated_full_domain(some, 5)


def test_cells_are_suppressed_where_hierarchies_have_no_common_label():
    rows = [("v0", "v0", "v0", "p")] * 3 + [("v7", "v0", "v0", "p")]
    release = hm.anonymize(table_of(rows, top=False), hm.KAnonymity(2), method="local")
    assert release.suppressed == 0
    assert min(published(release)[0].values()) >= 2
    assert {r["x"] for r in release.to_arrow().to_pylist()} == {"*"}


def test_the_recoding_of_a_local_release_leads_each_row_to_its_class_again():
    rows = [(VALUES[i % 8], VALUES[(i * i) % 8], VALUES[i % 3], "p") for i in range(200)]
    table = table_of(rows)
    release = hm.anonymize(table, hm.KAnonymity(4), method="local")
    again = release.recoding.apply(table, hm.KAnonymity(4))
    assert published(again)[0] == published(release)[0]


@pytest.mark.parametrize("metric", ["discernibility", "kl"])
def test_metrics_of_whole_classes_are_refused(metric):
    with pytest.raises(hm.errors.ParameterError, match="mean-loss"):
        hm.anonymize(
            table_of([("v0", "v0", "v0", "p")] * 4), hm.KAnonymity(2), method="local", metric=metric
        )


def test_greedy_is_feasible_when_the_top_is():
    table = table_of([("v0", "v1", "v2", "p")] * 5)
    models = (hm.KAnonymity(5),)
    tuples, _ = statistics(Tuples.of(table), models)
    problem = RecodingProblem(tuples, [table.hierarchy(q) for q in "xyz"], models, METRICS["loss"])
    assert greedy(problem).levels == (0, 0, 0)


def test_a_promise_that_follows_from_another_changes_nothing():
    rows = [(VALUES[i % 8], VALUES[(i * i) % 8], VALUES[i % 3], "p") for i in range(200)]
    plain = hm.anonymize(table_of(rows), hm.KAnonymity(4), method="local")
    models = (hm.KAnonymity(4), hm.SampleUniques(0.5))
    both = hm.anonymize(table_of(rows), *models, method="local")
    assert (both.suppressed, both.loss) == (plain.suppressed, plain.loss)


def test_an_average_bears_as_many_splits_as_it_allows():
    rows = [(VALUES[i % 8], VALUES[(i * i) % 8], VALUES[i % 3], "p") for i in range(400)]
    optimal_ = hm.anonymize(table_of(rows), hm.AverageRisk(0.05), method="optimal")
    local = hm.anonymize(table_of(rows), hm.AverageRisk(0.05), method="local")
    assert local.loss < optimal_.loss
    sizes, _ = published(local)
    assert len(sizes) <= 0.05 * 400
