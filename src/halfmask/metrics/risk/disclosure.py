"""What a release discloses by its classes, its copies and the way it was made."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.estimate import Estimate, exact_estimate, failed_estimate
from halfmask.metrics.sides import tightest_class
from halfmask.metrics.space import rooted_height
from halfmask.metrics.weighted import entropy_of, joint
from halfmask.table.document import Result
from halfmask.table.tuples import tally

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from halfmask.metrics.sides import Sides
    from halfmask.table.classes import Classes, Histogram


@dataclass(frozen=True, slots=True)
class Attribution(Result):
    """What released rows have in common with the original ones.

    Attributes:
        ratio: the attribution ratio; small is risky.
        copies: the share of released rows that equal an original row in every shared column.
        unique_copies: the share of people alone in the original whose row was reproduced.
    """

    ratio: float
    copies: float
    unique_copies: float


def attribution(sides: Sides, size: int | None = None) -> Attribution:
    """Compare all rows as multisets; only the first ``size`` entries of the original are people.

    Definition: the attacker knows every original row but one and takes away each released row that
    these explain; the ratio is the share of released rows left, which the hidden row may have
    caused, averaged over the hidden rows. 1/n: a copy of the table; 1: nothing in common.
    Source: Benkhelif, "Publication de donnees personnelles respectueuse de la vie privee", 2018,
    section 3.5.1.4.
    """
    held = len(sides.original) if size is None else size
    counts = sides.original_counts[:held]
    people = int(counts.sum())
    both = []
    for column in sides.columns.values():
        single = np.where(column.sizes == 1, column.covered[column.starts[:-1]], -1)
        # A label that covers several values equals no value: it gets a code of its own.
        codes = np.where(single >= 0, single, column.leaves + np.arange(column.labels))
        rows = np.concatenate([column.before[:held], codes[column.after]])
        both.append((rows.astype(np.int32), column.leaves + column.labels))
    ids, count = joint(both)
    own = tally(ids[:held], count, counts)
    released = tally(ids[held:], count, sides.released_counts)
    left = int(np.maximum(released - own, 0).sum())
    caused = int(own[released >= own].sum())
    alone = own == 1
    return Attribution(
        ratio=(left * people + caused) / (people * sides.after),
        copies=float(released[own > 0].sum()) / sides.after,
        unique_copies=float((alone & (released > 0)).sum()) / max(int(alone.sum()), 1),
    )


@dataclass(frozen=True, slots=True)
class Disclosure(Result):
    """What an attacker who knows the quasi-identifiers learns about one sensitive column.

    Attributes:
        column: the sensitive column.
        homogeneity: the share of rows whose value is certain.
        background: the share of rows whose value is certain once one value is ruled out.
        skewness: the largest gain in the probability of a value, class against table.
        mean_shift: the mean over rows of the distance between class and table, 0 to 1.
        similarity: the share of rows whose values differ but mean the same; None where nothing
            says which values are alike.
        discrimination: the discrimination rate of all quasi-identifiers together.
        external: 1 - that, the share of information an attacker must bring along.
        best_guess: how often guessing the likeliest value of a class is right.
        prior_guess: how often guessing the likeliest value of the table is right.
    """

    column: str
    homogeneity: float
    background: float
    skewness: float
    mean_shift: float
    similarity: float | None
    discrimination: float | None
    external: float | None
    best_guess: float
    prior_guess: float


def disclosure(
    classes: Classes, column: str, blocks: NDArray[np.int32] | None = None
) -> Disclosure:
    """Measure the attacks on ``column`` in classes that carry its histogram.

    Definition: homogeneity: rows with a known value whose class holds no other known one.
    Background knowledge: such rows whose class holds two at most, so that ruling one out is enough.
    Skewness: how far the likeliest value
    of a class exceeds its share in the table. Similarity: rows whose class holds several values,
    all of one block of those that mean the same; ``halfmask.metrics.discrimination.release_rates``
    says which do.
    Source: Machanavajjhala et al., "l-diversity: privacy beyond k-anonymity", 2007; Li et al.,
    "t-closeness: privacy beyond k-anonymity and l-diversity", 2007.

    Args:
        classes: the classes.
        column: a sensitive column.
        blocks: per value of it, by code, the block of values that mean the same.
    """
    held = classes.histograms[column]
    rows = classes.rows
    total = int(rows.sum())
    known = held.drop_missing()
    kinds, of_known = np.diff(known.starts), known.owners
    told = np.bincount(of_known, weights=known.counts, minlength=len(rows))
    owner = held.owners
    shares = held.counts / rows[owner]
    totals = held.totals()
    prior = totals / total
    gain = shares - prior[held.values]
    # What two distributions share; 1 minus it is their total variation.
    inside = np.bincount(owner, weights=np.minimum(shares, prior[held.values]), minlength=len(rows))
    entropy = entropy_of(totals)
    own = np.bincount(owner, weights=-shares * np.log2(shares), minlength=len(rows))
    residual = float(rows @ own) / total
    rate = None if entropy == 0 else max(0.0, 1.0 - residual / entropy)
    top = np.maximum.reduceat(held.counts, held.starts[:-1])
    return Disclosure(
        column,
        float(told[kinds == 1].sum()) / total,
        float(told[kinds <= 2].sum()) / total,
        float(gain.max()),
        float(rows @ (1.0 - inside)) / total,
        None if blocks is None else float(rows[_similar(held, blocks)].sum()) / total,
        rate,
        None if rate is None else 1.0 - rate,
        float(top.sum()) / total,
        float(prior.max()),
    )


def _similar(held: Histogram, blocks: NDArray[np.int32]) -> NDArray[np.bool_]:
    """The classes with several values that all stand in one block."""
    meaning, begins = blocks[held.values], held.starts[:-1]
    same = np.minimum.reduceat(meaning, begins) == np.maximum.reduceat(meaning, begins)
    return np.asarray(same & (np.diff(held.starts) > 1))


def minimality(sides: Sides) -> Estimate:
    """The share of rows in classes that were generalized further than their size demands.

    Definition: the share of rows in classes that could be published one level finer in some column
    with every part still as large as the smallest class; an attacker who knows that the search
    loses as little as it can learns that the finer parts broke another promise.
    Source: Wong et al., "Minimality attack in privacy preserving data publishing", 2007.
    """
    columns = sides.quasi
    if any(c.foreign or len(np.unique(c.level)) > 1 for c in columns):
        return failed_estimate("It speaks of releases with one level per column.", sides.before)
    levels = [int(c.level[0]) for c in columns]
    labels = [c.only_label()[c.before] for c in columns]
    present = tightest_class(columns) >= 0  # classes of rows that were left out are not published
    if not present.any():
        return failed_estimate("No original row lies under a released class.", sides.before)
    coarse = [(held[present], c.labels) for c, held in zip(columns, labels, strict=True)]
    counts = sides.original_counts[present]
    ids, classes = joint(coarse)
    sizes = tally(ids, classes, counts)
    smallest = int(sizes.min())
    splits = np.zeros(classes, dtype=bool)
    for place, (column, level) in enumerate(zip(columns, levels, strict=True)):
        hierarchy = sides.original.hierarchy(column.name)
        if level == 0:
            continue
        # A published * may be the top label of the hierarchy or stand above it.
        step = min(level, rooted_height(hierarchy)) - 1
        finer = hierarchy.maps[step][column.before[present]]
        parts, count = joint(
            [*coarse[:place], (finer.astype(np.int32), int(finer.max()) + 1), *coarse[place + 1 :]]
        )
        part_sizes = tally(parts, count, counts)
        # A class could be split if its smallest part is large enough; a part as large as the class
        # is no split.
        least = np.full(classes, np.iinfo(np.int64).max)
        np.minimum.at(least, ids, part_sizes[parts])
        splits |= (least >= smallest) & (least < sizes)
    rows = int(sizes.sum())
    return exact_estimate(int(sizes[splits].sum()) / rows, rows)
