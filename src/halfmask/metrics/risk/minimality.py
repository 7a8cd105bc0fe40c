"""Minimality: what the way a release was made gives away.

Definition: the share of rows in classes that could be published one level finer in some column with
every part still as large as the smallest class; an attacker who knows that the search loses as
little as it can learns that the finer parts broke another promise.
Source: Wong et al., "Minimality attack in privacy preserving data publishing", 2007.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.codes import joint
from halfmask.metrics.covering import tightest_class
from halfmask.metrics.estimate import Estimate, exact, failed
from halfmask.metrics.space import rooted_height
from halfmask.metrics.weighted import tally

if TYPE_CHECKING:
    from halfmask.metrics.sides import Sides


def minimality(sides: Sides) -> Estimate:
    """The share of rows in classes that were generalized further than their size demands."""
    columns = sides.quasi
    if any(c.foreign or len(np.unique(c.level)) > 1 for c in columns):
        return failed("It speaks of releases with one level per column.", sides.before)
    levels = [int(c.level[0]) for c in columns]
    labels = [c.only_label()[c.before] for c in columns]
    present = tightest_class(columns) >= 0  # classes of rows that were left out are not published
    if not present.any():
        return failed("No original row lies under a released class.", sides.before)
    coarse = [(held[present], c.labels) for c, held in zip(columns, labels, strict=True)]
    counts = None if sides.original_counts is None else sides.original_counts[present]
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
        least = np.full(classes, np.iinfo(np.int64).max)
        np.minimum.at(least, ids, part_sizes[parts])
        splits |= (least >= smallest) & (least < sizes)
    rows = int(sizes.sum())
    return exact(int(sizes[splits].sum()) / rows, rows)
