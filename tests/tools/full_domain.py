"""Full-domain recoding in a few lines, as the theses did it: an oracle without our search."""

from __future__ import annotations

import numpy as np
import pyarrow as pa

import halfmask as hm


def recoded(rows, keys, levels, keeps, target, star="*"):
    """The keys at ``levels``, starred where a class fails; how many rows that are; classes kept."""
    columns = {}
    for name, level in zip(keys, levels, strict=True):
        hierarchy = rows.hierarchy(name)
        labels = np.array([str(label) for label in hierarchy.labels[level]], dtype=object)
        columns[name] = labels[hierarchy.maps[level][rows.encode(name).codes]]
    tuples = np.array(["|".join(one) for one in zip(*columns.values(), strict=True)])
    place = np.unique(tuples, return_inverse=True)[1].reshape(-1)
    outcome = rows.encode(target)
    held = np.zeros((place.max() + 1, len(outcome.values)))
    np.add.at(held, (place, outcome.codes), 1)
    whole = held.sum(axis=0) / held.sum()
    kept = np.array([bool(keeps(one, whole)) for one in held])
    gone = ~kept[place]
    starred = {name: np.where(gone, star, values).tolist() for name, values in columns.items()}
    starred[target] = rows.arrow[target].to_pylist()
    return hm.read(pa.table(starred), schema={}), int(gone.sum()), int(kept.sum())


def identity(original, released, column, **options):
    """How far a released column gives the original one away; rows stand in the same order."""
    both = pa.table({"own": original.arrow[column], "label": released.arrow[column]})
    return hm.discrimination_rate(hm.read(both, schema={}), "own", "label", **options)
