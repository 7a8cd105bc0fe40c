"""Every model against a plain reading of its definition, in fractions, on random small tables."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from decimal import Decimal, localcontext
from fractions import Fraction as F  # noqa: N817 - half of the oracle is fractions

import pyarrow as pa
import pytest
from effort import examples
from hypothesis import given, settings
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
    PersonalKAnonymity,
    SampleUniques,
    TCloseness,
)
from halfmask.models.check import check
from halfmask.models.requirements import prepare, statistics
from halfmask.table.columns import Column
from halfmask.table.hierarchy import TOP, from_levels
from halfmask.table.schema import Schema
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples

GROUPS = {0: "low", 1: "low", 2: "mid", 3: "high", 4: "high", None: "none"}
HALVES = {"low": "left", "mid": "left", "high": "right", "none": "none"}


class Tree:
    """Values 0 to 4 under three labels, two labels, and the top."""

    def build(self, column, values):
        leaves = values.to_pylist()
        one = [GROUPS[v] for v in leaves]
        levels = [leaves, one, [HALVES[v] for v in one], [TOP] * len(leaves)]
        return from_levels(levels, other_leaves=[[]] * 4)

    def to_dict(self):
        return {}


row = st.tuples(
    st.sampled_from("abcd"),
    st.sampled_from([0, 1, 2, 3, 4, None]),
    st.integers(1, 4),
    st.integers(0, 9),
)
rows = st.lists(row, min_size=1, max_size=24)
share = st.fractions(min_value=F(1, 20), max_value=1, max_denominator=20)


def tabulate(data, *, people=False):
    q, s, k, person = (list(column) for column in zip(*data, strict=True))
    columns = {
        "q": Column("quasi"),
        "s": Column("sensitive", hierarchy=Tree()),
    }
    schema = Schema(columns, person="person" if people else None, policy={"k": "k"})
    arrow = pa.table({"q": q, "s": pa.array(s, pa.int64()), "k": k, "person": person})
    return Table(arrow, schema)


def grouped(data):
    out = defaultdict(list)
    for one in data:
        out[one[0]].append(one)
    return dict(out)


def shares(values):
    return {v: F(c, len(values)) for v, c in Counter(values).items()}


def agree(verdict, failing, groups, achieved=None):
    assert verdict.failing_classes == len(failing)
    assert verdict.failing_rows == sum(len(groups[name]) for name in failing)
    assert verdict.holds == (not failing)
    assert (verdict.classes, verdict.rows) == (len(groups), sum(map(len, groups.values())))
    if achieved is not None:
        assert verdict.achieved == pytest.approx(float(achieved), rel=1e-12)


def per_class(data, model, passes, achieved=None, *, people=False):
    groups = grouped(data)
    verdict, *_ = check(tabulate(data, people=people), model)
    agree(verdict, [g for g, inside in groups.items() if not passes(inside)], groups, achieved)
    return verdict


def sensitive(inside, missing="value"):
    return [s for _, s, _, _ in inside if s is not None or missing == "value"]


missing_values = st.sampled_from(["unknown", "value"])


@given(rows, st.integers(2, 5), st.booleans())
def test_k_anonymity_counts_people(data, k, people):
    def size(inside):
        return len({p for *_, p in inside}) if people else len(inside)

    smallest = min(size(inside) for inside in grouped(data).values())
    per_class(data, KAnonymity(k), lambda x: size(x) >= k, smallest, people=people)


@given(rows, st.booleans())
def test_personal_k_meets_the_highest_demand_of_each_class(data, people):
    def size(inside):
        return len({p for *_, p in inside}) if people else len(inside)

    if people:  # who demand the same in all their rows
        first = {}
        data = [(q, s, first.setdefault(person, k), person) for q, s, k, person in data]
    verdict = per_class(
        data,
        PersonalKAnonymity(),
        lambda x: size(x) >= max(k for _, _, k, _ in x),
        people=people,
    )
    assert verdict.required == max(k for _, _, k, _ in data)
    assert verdict.holds == (verdict.achieved >= verdict.required)


@given(rows, st.integers(2, 4), missing_values)
def test_distinct_l_counts_the_missing_value_only_where_that_is_said(data, least, missing):
    def count(x):
        return len(set(sensitive(x, missing)))

    fewest = min(count(x) for x in grouped(data).values())
    model = LDiversity(least, "s", missing=missing)
    per_class(data, model, lambda x: count(x) >= least, fewest)


def entropy_holds(values, least):
    if not values:
        return False
    n, counts = len(values), Counter(values).values()
    left = (n * least.denominator) ** n
    return left >= least.numerator**n * math.prod(c**c for c in counts)


@given(rows, st.sampled_from([F(2), F(3), F(4), F(3, 2), F("1.4"), F("2.5")]), missing_values)
def test_entropy_l_is_decided_by_integers(data, least, missing):
    def effective(values):
        spread = -sum(float(p) * math.log(p) for p in shares(values).values())
        return math.exp(spread) if values else 0

    per_class(
        data,
        LDiversity(least, "s", "entropy", missing=missing),
        lambda x: entropy_holds(sensitive(x, missing), least),
        min(effective(sensitive(x, missing)) for x in grouped(data).values()),
    )


@given(rows, st.integers(2, 4), st.sampled_from([F(1, 2), F(1), F(3, 2), F(3)]), missing_values)
def test_recursive_l(data, least, c, missing):
    def holds(x, least):
        counts = sorted(Counter(sensitive(x, missing)).values(), reverse=True) or [0]
        return counts[0] < c * sum(counts[least - 1 :])

    groups = grouped(data).values()
    best = max((n for n in range(1, 8) if all(holds(x, n) for x in groups)), default=0)
    model = LDiversity(least, "s", "recursive", c=c, missing=missing)
    per_class(data, model, lambda x: holds(x, least), best)


@given(rows, share, st.integers(2, 4), st.sampled_from([None, 1, "1"]), missing_values)
def test_alpha_k_bounds_one_or_every_value(data, alpha, k, value, missing):
    def most(x):
        found = shares(sensitive(x, missing))
        if not found:
            return 1
        return max(found.values()) if value is None else found.get(1, F(0))

    if value is not None and 1 not in sensitive(data):
        return
    groups = grouped(data)
    per_class(
        data,
        AlphaKAnonymity(alpha, k, "s", value=value, missing=missing),
        lambda x: most(x) <= alpha and len(x) >= k,
        max(most(x) for x in groups.values()),
    )


def equal(values, everything):
    p, q = shares(values), shares(everything)
    return sum(abs(p.get(v, F(0)) - q[v]) for v in q) / 2


def ordered(values, everything):
    order = sorted(set(everything), key=lambda v: (v is None, v))
    p, q = shares(values), shares(everything)
    running, total = F(0), F(0)
    for v in order:
        running += p.get(v, F(0)) - q[v]
        total += abs(running)
    return total / max(len(order) - 1, 1)


def hierarchical(values, everything):
    """Li's recursion, label by label."""
    p, q = shares(values), shares(everything)
    paths = {v: (v, GROUPS[v], HALVES[GROUPS[v]], TOP) for v in q}
    total = F(0)
    for height in (1, 2, 3):
        children = defaultdict(lambda: defaultdict(F))
        for v, path in paths.items():
            children[path[height]][path[height - 1]] += p.get(v, F(0)) - q[v]
        for parts in children.values():
            surplus = sum((e for e in parts.values() if e > 0), F(0))
            lack = -sum((e for e in parts.values() if e < 0), F(0))
            total += F(height, 3) * min(surplus, lack)
    return total


@pytest.mark.parametrize("distance", [equal, ordered, hierarchical])
@given(data=rows, t=share, tie=st.booleans(), missing=missing_values)
def test_t_closeness_is_exact_even_on_the_threshold(distance, data, t, tie, missing):
    everything = sensitive(data, missing)

    def away(x):
        values = sensitive(x, missing)
        return distance(values, everything) if values else 1

    farthest = max(away(x) for x in grouped(data).values())
    t = farthest if tie else t
    model = TCloseness(t, "s", distance.__name__, missing)
    per_class(data, model, lambda x: away(x) <= t, farthest)


@given(rows, st.sampled_from([ordered, hierarchical]))
@settings(max_examples=examples(25))
def test_distances_are_the_cheapest_transport(data, distance):
    from scipy.optimize import linprog

    everything = sensitive(data)
    values = sorted(set(everything), key=lambda v: (v is None, v))
    p, q = shares(sensitive(grouped(data)[data[0][0]])), shares(everything)

    def cost(a, b):
        if distance is ordered:
            return abs(values.index(a) - values.index(b)) / max(len(values) - 1, 1)
        paths = [(v, GROUPS[v], HALVES[GROUPS[v]], TOP) for v in (a, b)]
        return next(h for h in range(4) if paths[0][h] == paths[1][h]) / 3

    pairs = list(itertools.product(values, values))
    matrix = [[float(a == v) for a, _ in pairs] for v in values]
    matrix += [[float(b == v) for _, b in pairs] for v in values]
    amounts = [float(p.get(v, 0)) for v in values] + [float(q[v]) for v in values]
    best = linprog([cost(a, b) for a, b in pairs], A_eq=matrix, b_eq=amounts)
    inside = sensitive(grouped(data)[data[0][0]])
    assert float(distance(inside, everything)) == pytest.approx(best.fun, abs=1e-9)


@given(
    rows,
    st.sampled_from(["0.2", "0.5", "1", "1.5"]),
    st.sampled_from([None, 2, 10]),
    st.sampled_from(["fails", "ignored"]),
)
def test_delta_disclosure_in_both_definitions(data, delta, base, absent):
    everything = shares(sensitive(data))

    def logs(x):
        inside = shares(sensitive(x))
        for v, p in everything.items():
            if v not in inside:
                if absent == "fails":
                    yield Decimal("Infinity")
                continue
            r = inside[v] / p
            with localcontext() as context:
                context.prec = 120
                found = (Decimal(r.numerator) / Decimal(r.denominator)).ln()
                yield abs(found if base is None else found / Decimal(base).ln())

    def holds(x):
        # Exactly on the threshold 120 digits still round: closer than 1e-100 is a tie, which fails.
        return all(one < Decimal(delta) - Decimal("1e-100") for one in logs(x))

    widest = max(one for x in grouped(data).values() for one in logs(x))
    model = DeltaDisclosure(F(delta), "s", base=base, absent=absent)
    verdict = per_class(data, model, holds)
    assert verdict.achieved == pytest.approx(float(widest), rel=1e-9, abs=1e-12)


@given(rows, share, st.booleans(), st.sampled_from(["basic", "enhanced"]))
def test_beta_likeness_in_both_kinds(data, beta, tie, kind):
    everything = shares(sensitive(data))

    def gains(x):
        return {v: q / everything[v] - 1 for v, q in shares(sensitive(x)).items()}

    def capped(x):
        if kind == "basic":
            return False
        return any(
            gain > 0 and float(gain) > -math.log(everything[v]) for v, gain in gains(x).items()
        )

    groups = grouped(data)
    largest = max(max(gains(x).values()) for x in groups.values())
    beta = largest if tie and largest > 0 else beta
    verdict = per_class(
        data,
        BetaLikeness(beta, "s", kind=kind),
        lambda x: max(gains(x).values()) <= beta and not capped(x),
    )
    if any(capped(x) for x in groups.values()):
        assert verdict.achieved == math.inf
    else:
        assert verdict.achieved == pytest.approx(float(max(largest, 0)))


def removable(data, holds, people):
    """The fewest rows in a set of classes without which the promise holds."""
    groups = list(grouped(data).values())
    best = None
    for keep in itertools.product([True, False], repeat=len(groups)):
        left = [x for x, k in zip(groups, keep, strict=True) if k]
        if not left or holds(left, people):
            gone = sum(len(x) for x, k in zip(groups, keep, strict=True) if not k)
            best = gone if best is None else min(best, gone)
    return best


def size(inside, people):
    return len({p for *_, p in inside}) if people else len(inside)


def risk(groups, people):
    total = sum(F(len(x), size(x, people)) for x in groups)
    return total / sum(map(len, groups))


def unique_share(groups, people):
    alone = sum(len(x) for x in groups if size(x, people) == 1)
    return F(alone, sum(map(len, groups)))


@pytest.mark.parametrize(("model", "figure"), [(AverageRisk, risk), (SampleUniques, unique_share)])
@given(data=rows, limit=share, tie=st.booleans(), people=st.booleans())
def test_bounds_on_the_whole_table(model, figure, data, limit, tie, people):
    groups = list(grouped(data).values())
    found = figure(groups, people)
    limit = found if tie and found > 0 else limit
    promise = model(limit)
    verdict, *_ = check(tabulate(data, people=people), promise)
    assert verdict.holds == (found <= limit)
    assert verdict.achieved == float(found)
    fewest = removable(data, lambda left, people: figure(left, people) <= limit, people)
    if not people:
        assert verdict.failing_rows == fewest
    assert verdict.failing_rows >= fewest
    classes, _ = statistics(Tuples.of(tabulate(data, people=people)), [promise])
    left = classes.select(promise.passes(classes))
    assert len(left) == 0 or promise.check(left).holds


population = st.lists(st.sampled_from(["a", "b", "c", "d", "e", None]), min_size=1, max_size=30)


@given(rows, population, st.integers(2, 4), share, share)
def test_population_models(data, everybody, k, one, other):
    other_table = Table(pa.table({"q": everybody}), Schema({"q": Column("quasi")}))
    lower, upper = min(one, other) - F(1, 20), max(one, other)
    table = tabulate(data)
    many, groups = Counter(everybody), grouped(data)
    mapped, present, *_ = check(
        table, KMap(k, other_table), DeltaPresence(lower, upper, population=other_table)
    )
    agree(mapped, [g for g in groups if many[g] < k], groups, min(many[g] for g in groups))
    places = set(groups) | set(many)
    failing = [
        g for g in places if not (lower * many[g] <= len(groups.get(g, [])) <= upper * many[g])
    ]
    assert present.failing_classes == len(failing)
    assert present.holds == (not failing)
    assert present.failing_rows == sum(len(groups.get(g, [])) for g in failing)


def test_prepared_table_gives_statistics_of_both():
    table = tabulate([("a", 0, 1, 0), ("b", 1, 1, 1)])
    other = Table(pa.table({"q": ["0", "a", "c", None]}), Schema({"q": Column("quasi")}))
    model = KMap(2, other)
    ready = prepare(table, [model])
    classes, ids = statistics(Tuples.of(ready), [model])
    names = ready.encode("q").values.to_pylist()
    assert names == ["0", "a", "b", "c", None]
    assert classes.layout is not None
    found = {
        names[code]: (int(classes.rows[i]), int(classes.population[i]))
        for i, code in enumerate(classes.layout.codes(classes.keys, 0))
    }
    assert found == {"a": (1, 1), "b": (1, 0), "0": (0, 1), "c": (0, 1), None: (0, 1)}
    assert len(ids) == 2
    assert ready.hierarchy("q").maps.shape == (2, 5)
    top = classes.coarsen([0], [ready.hierarchy("q").maps[1]])
    assert top.rows.tolist() == [2]
    assert top.population.tolist() == [4]
