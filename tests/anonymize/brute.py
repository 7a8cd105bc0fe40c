"""An exhaustive reference: plain Python over rows and all combinations of levels."""

from __future__ import annotations

import itertools
import math
from collections import Counter, defaultdict


def generalize(hierarchy, level, value):
    """``hierarchy`` maps a value to its labels, level 0 first."""
    return hierarchy[value][level]


def groups(rows, quasi, hierarchies, levels):
    out = defaultdict(list)
    for row in rows:
        out[
            tuple(hierarchies[q][row[q]][level] for q, level in zip(quasi, levels, strict=True))
        ].append(row)
    return out


def leaves(hierarchy, level, label):
    return sum(1 for labels in hierarchy.values() if labels[level] == label)


def survivors(classes, alone, compared=lambda _members, _everything: True):
    """Remove classes that fail alone, then those that fail against what is left."""
    kept = {key: members for key, members in classes.items() if alone(members)}
    while kept:
        everything = [row for members in kept.values() for row in members]
        bad = [key for key, members in kept.items() if not compared(members, everything)]
        if not bad:
            break
        for key in bad:
            del kept[key]
    return kept


def loss(rows, quasi, hierarchies, levels, kept, weights=None, *, geometric=True):
    n = len(rows)
    released = sum(len(m) for m in kept.values())
    scores = []
    for c, q in enumerate(quasi):
        size = len(hierarchies[q])
        share = (n - released) * 1.0
        for key, members in kept.items():
            share += len(members) * leaves(hierarchies[q], levels[c], key[c]) / size
        mean = share / n
        scores.append(0.0 if size == 1 else (mean - 1 / size) / (1 - 1 / size))
    weights = weights or [1.0] * len(quasi)
    total = sum(weights)
    if geometric:
        return math.prod((1 + s) ** (w / total) for s, w in zip(scores, weights, strict=True)) - 1
    return sum(s * w / total for s, w in zip(scores, weights, strict=True))


def precision(rows, quasi, hierarchies, levels, kept):
    n = len(rows)
    gone = n - sum(len(m) for m in kept.values())
    out = 0.0
    for c, q in enumerate(quasi):
        height = len(next(iter(hierarchies[q].values()))) - 1
        relative = levels[c] / height if height else 0.0
        out += ((n - gone) * relative + gone) / n
    return out / len(quasi)


def height(rows, quasi, hierarchies, levels, kept):
    return sum(levels) / len(levels)


def entropy(rows, quasi, hierarchies, levels, kept):
    n, out = len(rows), 0.0
    kept_rows = {id(row) for members in kept.values() for row in members}
    for c, q in enumerate(quasi):
        values = Counter(row[q] for row in rows)
        labels = Counter(hierarchies[q][row[q]][levels[c]] for row in rows)
        hidden = sum(
            math.log2(
                (labels[hierarchies[q][row[q]][levels[c]]] if id(row) in kept_rows else n)
                / values[row[q]]
            )
            for row in rows
        )
        most = sum(math.log2(n / values[row[q]]) for row in rows)
        out += hidden / most if most else 0.0
    return out / len(quasi)


def discernibility(rows, quasi, hierarchies, levels, kept):
    n = len(rows)
    gone = n - sum(len(m) for m in kept.values())
    return (sum(len(m) ** 2 for m in kept.values()) + gone * n) / n**2


def average_class_size(rows, quasi, hierarchies, levels, kept):
    gone = len(rows) - sum(len(m) for m in kept.values())
    return len(rows) / (len(kept) + (gone > 0))


def ambiguity(rows, quasi, hierarchies, levels, kept):
    everything = math.prod(len(hierarchies[q]) for q in quasi)
    gone = len(rows) - sum(len(m) for m in kept.values())
    out = gone * everything
    for key, members in kept.items():
        covered = math.prod(leaves(hierarchies[q], levels[c], key[c]) for c, q in enumerate(quasi))
        out += len(members) * covered
    return out / len(rows) / everything


def kl(rows, quasi, hierarchies, levels, kept):
    n = len(rows)
    everything = math.prod(len(hierarchies[q]) for q in quasi)
    gone = n - sum(len(m) for m in kept.values())
    where = {id(row): key for key, members in kept.items() for row in members}
    tuples = Counter(tuple(row[q] for q in quasi) for row in rows)
    out = 0.0
    for row in rows:
        original = tuples[tuple(row[q] for q in quasi)] / n
        if id(row) in where:
            key = where[id(row)]
            covered = math.prod(
                leaves(hierarchies[q], levels[c], key[c]) for c, q in enumerate(quasi)
            )
            guess = len(kept[key]) / n / covered
        else:
            guess = gone / n / everything
        out += math.log2(original / guess) / n
    return out


METRICS = {
    "loss": loss,
    "mean-loss": lambda *a: loss(*a, geometric=False),
    "precision": precision,
    "height": height,
    "entropy": entropy,
    "discernibility": discernibility,
    "average-class-size": average_class_size,
    "ambiguity": ambiguity,
    "kl": kl,
}


def best(rows, quasi, hierarchies, tests, *, limit, metric="loss"):
    """The least metric, then fewest suppressed rows, lowest sum of levels, column order."""
    found = []
    heights = [len(next(iter(hierarchies[q].values()))) for q in quasi]
    for levels in itertools.product(*(range(h) for h in heights)):
        kept = survivors(groups(rows, quasi, hierarchies, levels), *tests)
        gone = len(rows) - sum(len(m) for m in kept.values())
        if kept and gone <= limit:
            value = METRICS[metric](rows, quasi, hierarchies, levels, kept)
            found.append((round(value, 10), gone, sum(levels), levels, value))
    return min(found, default=None)
