"""The optimum under every family of promises, against their definitions written out row by row.

Beside ``test_optimum_oracle.py``: distances over orders and hierarchies, the original table as the
reference, promises about the whole release, households, sampling weights, people's own l and t,
weights of columns; and the search of lattices that are too large to list. Nothing here calls the
code under test but to ask for the optimum.
"""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict
from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest
from effort import THOROUGH
from written_hierarchy import WrittenHierarchy

import halfmask as hm
from halfmask.anonymize import optimal
from halfmask.anonymize.problem import RecodingProblem
from halfmask.metrics.cost import METRICS
from halfmask.models.requirements import prepare, statistics
from halfmask.table.columns import Column
from halfmask.table.schema import Schema
from halfmask.table.table import Table
from halfmask.table.tuples import Tuples

TABLES = 400 if THOROUGH else 35
SHARES = (0.0, 0.1, 0.2, 0.35, 0.6, 1.0)
ORDER = (1, 2, 3, 4, 5, 6)
TINY = 1e-12


def random_tree(rng, names, *, top):
    """Nested groups of values; without ``top`` perhaps several remain at the end."""
    labels, parts = {v: [v] for v in names}, [[v] for v in names]
    for level in range(1, int(rng.integers(1, 4))):
        merged = defaultdict(list)
        for part in parts:
            merged[int(rng.integers(0, len(parts) // 2 + 1))] += part
        parts = list(merged.values())
        for number, part in enumerate(parts):
            for v in part:
                labels[v].append(f"{level}:{number}")
    if top or len(labels[names[0]]) == 1:
        for own in labels.values():
            own.append("*")
    return {v: tuple(own) for v, own in labels.items()}


class World:
    """Rows, their hierarchies, and whose they are."""

    def __init__(self, rng, *, several):
        self.quasi = [f"q{i}" for i in range(rng.integers(1, 5))]
        self.trees = {}
        for q in self.quasi:
            names = [f"{q}v{i}" for i in range(rng.integers(2, 6))]
            names += [None] * int(rng.random() < 0.25)
            self.trees[q] = random_tree(rng, names, top=rng.random() < 0.85)
        kinds = ["a", "b", "c", "d", "e"][: int(rng.integers(2, 6))]
        self.tree = random_tree(rng, kinds, top=rng.random() < 0.7)
        self.several = several and rng.random() < 0.5
        skew, self.rows = rng.uniform(0.3, 2), []
        for number in range(int(rng.integers(4, 32))):
            row = {}
            for q, tree in self.trees.items():
                leaves = list(tree)
                often = (1 + np.arange(len(leaves))) ** -skew
                row[q] = leaves[rng.choice(len(leaves), p=often / often.sum())]
            row["s"] = None if rng.random() < 0.1 else "abcde"[min(rng.geometric(0.45) - 1, 4)]
            row["f"] = "abcd"[min(rng.geometric(0.5) - 1, 3)]
            row["o"] = None if rng.random() < 0.1 else int(rng.integers(1, 6))
            row["h"] = kinds[rng.integers(len(kinds))]
            row["who"] = f"p{rng.integers(0, 12) if self.several else number}"
            self.rows.append(row)
        facts = {row["who"]: self._person(rng) for row in self.rows}
        for row in self.rows:
            row.update(facts[row["who"]])

    @staticmethod
    def _person(rng):
        return {
            "k_i": None if rng.random() < 0.2 else int(rng.integers(1, 5)),
            "l_i": None if rng.random() < 0.3 else int(rng.integers(1, 4)),
            "t_i": None if rng.random() < 0.4 else float(rng.choice([0.2, 0.4, 0.7, 1.0])),
            "w": int(rng.integers(1, 6)),
            "house": None if rng.random() < 0.15 else f"h{rng.integers(0, 8)}",
        }

    def table(self):
        types = {"t_i": pa.float64()} | dict.fromkeys(("o", "k_i", "l_i", "w"), pa.int64())
        names = [*self.quasi, *"sfoh", "k_i", "l_i", "t_i", "w", "house"]
        names += ["who"] * self.several
        columns = {
            q: Column("quasi", hierarchy=WrittenHierarchy(self.trees[q])) for q in self.quasi
        }
        columns |= {name: Column("sensitive") for name in "sfo"}
        columns["h"] = Column("sensitive", hierarchy=WrittenHierarchy(self.tree))
        policy = {"k": "k_i", "l": "l_i", "t": "t_i"}
        schema = Schema(
            columns, "who" if self.several else None, policy=policy, household="house", weight="w"
        )
        arrays = {n: pa.array([r[n] for r in self.rows], types.get(n, pa.string())) for n in names}
        return Table(pa.table(arrays), schema)

    def groups(self, levels):
        found = defaultdict(list)
        for row in self.rows:
            pairs = zip(self.quasi, levels, strict=True)
            found[tuple(self.trees[q][row[q]][level] for q, level in pairs)].append(row)
        return found


# What is asked: of a class "alone", against all rows that stay ("release"), against all rows that
# there were ("original"), or of all classes together ("whole").


def people(members):
    return len({row["who"] for row in members})


def known(members, column):
    return [row[column] for row in members if row[column] is not None]


def shares(values):
    return defaultdict(Fraction, {v: Fraction(n, len(values)) for v, n in Counter(values).items()})


def exact(number):
    return Fraction(str(number))


def apart(world, members, everybody, column, way):
    """The earth mover's distance, by its definition."""
    if not known(members, column):
        return Fraction(1)
    p, q = shares(known(members, column)), shares(known(everybody, column))
    if way == "equal":
        return sum(abs(p[v] - q[v]) for v in {*p, *q}) / 2
    if way == "ordered":
        places = [v for v in ORDER if q[v] > 0]
        moved = [abs(s) for s in itertools.accumulate(p[v] - q[v] for v in places)]
        return sum(moved, Fraction(0)) / max(len(places) - 1, 1)
    # Each label N costs height(N) / H * min(surplus, lack) of its children.
    one_root = len({own[-1] for own in world.tree.values()}) == 1
    labels = {v: own if one_root else (*own, "root") for v, own in world.tree.items()}
    height = len(next(iter(labels.values()))) - 1
    total = Fraction(0)
    for level in range(1, height + 1):
        nodes = defaultdict(lambda: defaultdict(Fraction))
        for v, own in labels.items():
            nodes[own[level]][own[level - 1]] += p[v] - q[v]
        for children in nodes.values():
            surplus = sum(x for x in children.values() if x > 0)
            lack = -sum(x for x in children.values() if x < 0)
            total += Fraction(level, height) * min(surplus, lack)
    return total


def stood_for(members):
    return sum({row["who"]: row["w"] for row in members}.values())


def households(rng, world):
    least = int(rng.integers(2, 4))
    return hm.HouseholdKAnonymity(least), "alone", lambda m: len(set(known(m, "house"))) >= least


def people_or_own(rng, world):
    if rng.random() < 0.5:
        return (
            hm.PersonalKAnonymity(),
            "alone",
            lambda m: people(m) >= max(row["k_i"] or 1 for row in m),
        )
    k = int(rng.integers(2, 6))
    return hm.KAnonymity(k), "alone", lambda m: people(m) >= k


def stood_for_by_weights(rng, world):
    k = int(rng.integers(3, 12))
    return hm.KMap(k), "alone", lambda m: stood_for(m) >= k


def diverse(rng, world):
    kind = ("distinct", "entropy", "recursive", "own", "alpha")[rng.integers(5)]
    least, low, c = int(rng.integers(2, 4)), float(rng.choice([1.5, 2.2, 2.9])), 1.5

    def distinct(m):
        return len(set(known(m, "s"))) >= least

    def entropy(m):
        parts = [float(x) for x in shares(known(m, "s")).values()]
        return bool(parts) and -sum(x * math.log(x) for x in parts) >= math.log(low) - TINY

    def recursive(m):
        often = sorted(Counter(known(m, "s")).values(), reverse=True)
        return len(often) >= least and often[0] < exact(c) * sum(often[least - 1 :])

    def own(m):
        asked = max(row["l_i"] or 1 for row in m)
        return asked <= 1 or len(set(known(m, "s"))) >= asked

    def alpha(m):
        held = shares(known(m, "s"))
        return people(m) >= least and bool(held) and max(held.values()) <= exact(0.6)

    model, holds = {
        "distinct": (hm.LDiversity(least, "s"), distinct),
        "entropy": (hm.LDiversity(low, "s", kind="entropy"), entropy),
        "recursive": (hm.LDiversity(least, "s", kind="recursive", c=c), recursive),
        "own": (hm.PersonalLDiversity("s"), own),
        "alpha": (hm.AlphaKAnonymity(0.6, least, "s"), alpha),
    }[kind]
    return model, "alone", holds


def near(rng, world):
    way = ("equal", "ordered", "hierarchical")[rng.integers(3)]
    column = {"equal": "s", "ordered": "o", "hierarchical": "h"}[way]
    if rng.random() < 0.35:

        def own(m, everybody):
            asked = [row["t_i"] for row in m if (row["t_i"] or 1) < 1]
            return not asked or apart(world, m, everybody, column, way) <= exact(min(asked))

        return hm.PersonalTCloseness(column, distance=way), "release", own
    t, against = (
        float(rng.choice([0.15, 0.25, 0.35, 0.5])),
        ("release", "original")[rng.integers(2)],
    )
    model = hm.TCloseness(t, column, distance=way, reference=against)
    return model, against, lambda m, a: apart(world, m, a, column, way) <= exact(t)


def alike(rng, world):
    against = ("release", "original")[rng.integers(2)]
    if rng.random() < 0.5:
        beta = float(rng.choice([0.5, 1.0, 1.5, 2.5]))
        kind = ("basic", "enhanced")[rng.integers(2)]

        def likely(m, everybody):
            p, q = shares([r["f"] for r in everybody]), shares([r["f"] for r in m])
            gains = {v: q[v] / p[v] - 1 for v in p if q[v] > p[v]}
            capped = kind == "basic" or all(
                float(gain) <= -math.log(p[v]) + TINY for v, gain in gains.items()
            )
            return capped and all(gain <= exact(beta) for gain in gains.values())

        return hm.BetaLikeness(beta, "f", kind=kind, reference=against), against, likely
    delta, base = float(rng.choice([0.7, 1.0, 1.6])), (None, 3)[rng.integers(2)]
    absent = ("fails", "ignored")[rng.integers(2)]

    def disclosed(m, everybody):
        p, q = shares([r["f"] for r in everybody]), shares([r["f"] for r in m])
        if absent == "fails" and any(q[v] == 0 for v in p):
            return False
        wide = [abs(math.log(q[v] / p[v]) / math.log(base or math.e)) for v in p if q[v]]
        return max(wide) < delta - TINY

    model = hm.DeltaDisclosure(delta, "f", base=base, absent=absent, reference=against)
    return model, against, disclosed


def averages(rng, world):
    kind, limit = int(rng.integers(3)), float(rng.choice([0.1, 0.2, 0.3, 0.5]))

    def within(one, classes):
        return sum(one(m) for m in classes) <= exact(limit) * sum(map(len, classes))

    if kind == 0:
        return (
            hm.AverageRisk(limit),
            "whole",
            lambda cs: within(lambda m: Fraction(len(m), people(m)), cs),
        )
    if kind == 1:
        return (
            hm.SampleUniques(limit),
            "whole",
            lambda cs: within(lambda m: len(m) * (people(m) == 1), cs),
        )
    return (
        hm.PopulationRisk(limit),
        "whole",
        lambda cs: within(lambda m: Fraction(len(m), max(stood_for(m), people(m))), cs),
    )


def survivors(world, levels, asked):
    """Classes that fail alone go first, then those that fail against what is left, and again."""
    tests = defaultdict(list)
    for _, how, holds in asked:
        tests[how].append(holds)
    kept = {
        key: members
        for key, members in world.groups(levels).items()
        if all(holds(members) for holds in tests["alone"])
        and all(holds(members, world.rows) for holds in tests["original"])
    }
    while kept:
        left = [row for members in kept.values() for row in members]
        bad = [
            key for key, m in kept.items() if not all(holds(m, left) for holds in tests["release"])
        ]
        # Where the whole release fails, its smallest class goes; which of equals tells no metric.
        if not bad and not all(holds(list(kept.values())) for holds in tests["whole"]):
            bad = [min(kept, key=lambda key: people(kept[key]))]
        if not bad:
            break
        for key in bad:
            del kept[key]
    return kept


def value(world, metric, levels, kept, weights):
    """What a release costs, cell by cell; columns count as ``weights`` say."""
    rows, quasi, trees = world.rows, world.quasi, world.trees
    n, gone = len(rows), len(rows) - sum(map(len, kept.values()))
    leaves = [
        Counter(own[level] for own in trees[q].values())
        for q, level in zip(quasi, levels, strict=True)
    ]
    sizes = [len(trees[q]) for q in quasi]
    everything = math.prod(sizes)
    covered = {key: math.prod(leaves[c][label] for c, label in enumerate(key)) for key in kept}
    if metric == "discernibility":
        return (sum(len(m) ** 2 for m in kept.values()) + gone * n) / n**2
    if metric == "average-class-size":
        return n / (len(kept) + (gone > 0))
    if metric == "ambiguity":
        wide = sum(len(m) * covered[key] for key, m in kept.items())
        return (wide + gone * everything) / n / everything
    where = {id(row): key for key, members in kept.items() for row in members}
    if metric == "kl":
        often = Counter(tuple(row[q] for q in quasi) for row in rows)
        bits = 0.0
        for row in rows:
            key = where.get(id(row))
            share = gone / everything if key is None else len(kept[key]) / covered[key]
            bits += math.log2(often[tuple(row[q] for q in quasi)] / share) / n
        return max(bits, 0.0)
    scores = []
    for c, q in enumerate(quasi):
        height = len(next(iter(trees[q].values()))) - 1
        if metric == "height":
            score = levels[c]
        elif metric == "precision":
            score = ((n - gone) * levels[c] / height + gone) / n
        elif metric == "entropy":
            often = Counter(row[q] for row in rows)
            wide = Counter(trees[q][row[q]][levels[c]] for row in rows)
            most = sum(math.log2(n / often[row[q]]) for row in rows)
            hidden = [
                (wide[trees[q][row[q]][levels[c]]] if id(row) in where else n) / often[row[q]]
                for row in rows
            ]
            score = sum(map(math.log2, hidden)) / most if most else 0.0
        else:
            share = gone + sum(len(m) * leaves[c][key[c]] / sizes[c] for key, m in kept.items())
            score = (share / n - 1 / sizes[c]) / (1 - 1 / sizes[c]) if sizes[c] > 1 else 0.0
        scores.append(score)
    if metric == "loss":
        return math.prod((1 + x) ** w for x, w in zip(scores, weights, strict=True)) - 1
    return sum(x * w for x, w in zip(scores, weights, strict=True))


def best_of_all(world, asked, limit, metric, weights):
    """The least metric, then fewest suppressed rows, lowest sum of levels, column order."""
    found = []
    heights = [len(next(iter(world.trees[q].values()))) for q in world.quasi]
    for levels in itertools.product(*map(range, heights)):
        kept = survivors(world, levels, asked)
        gone = len(world.rows) - sum(map(len, kept.values()))
        if kept and gone <= limit:
            cost = value(world, metric, levels, kept, weights)
            found.append((round(cost, 10), gone, sum(levels), levels, cost))
    return min(found, default=None)


ALONE = (households, people_or_own, stood_for_by_weights, diverse)
CASES = {
    "alone": (ALONE, True),
    "near all": ((near,), True),
    "like all": ((alike,), True),
    "on average": ((averages,), False),
}


@pytest.mark.parametrize("case", CASES)
def test_the_optimum_is_that_of_the_definitions(case):
    families, several = CASES[case]
    metrics = itertools.cycle(METRICS)
    for number in range(TABLES):
        rng = np.random.default_rng([number, list(CASES).index(case), 7])
        world = World(rng, several=several)
        asked = [families[rng.integers(len(families))](rng, world)]
        if rng.random() < 0.5:
            more = ALONE[rng.integers(len(ALONE))](rng, world)
            asked += [more] if type(more[0]) is not type(asked[0][0]) else []
        metric, share = next(metrics), SHARES[rng.integers(len(SHARES))]
        if case == "on average" and (
            len(asked) > 1
            or isinstance(asked[0][0], hm.PopulationRisk)
            or metric not in ("height", "discernibility", "average-class-size")
        ):
            share = 0.0  # which classes go is the model's own choice: only its size is told
        weights = rng.integers(0, 4, len(world.quasi)) + (rng.random() < 0.6)
        weights = weights / weights.sum() if weights.sum() else np.full(len(weights), 1.0)
        weights = (weights / weights.sum()).tolist()
        limit = int(exact(share) * len(world.rows))
        wanted = best_of_all(world, asked, limit, metric, weights)
        models = [model for model, _, _ in asked]
        table = prepare(world.table(), models)
        tuples, _ = statistics(Tuples.of(table), models)
        hierarchies = [table.hierarchy(q) for q in world.quasi]
        for search in (optimal.scan, optimal.branch):
            problem = RecodingProblem(
                tuples, hierarchies, models, METRICS[metric], suppression=share, weights=weights
            )
            found, told = search(problem).best, (case, number, metric, share, models, search)
            assert (found is None) == (wanted is None), told
            if wanted is not None:
                assert found.value == pytest.approx(wanted[4], abs=1e-9), told
                assert (found.suppressed, found.levels) == (wanted[1], wanted[3]), told
