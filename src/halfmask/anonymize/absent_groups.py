"""Who was left out, for the certificate: the groups that lose more rows than all others.

The rows that were left out are in no class, so that what is told of them must hide them by itself.
A group is named only if ``FEWEST`` rows or more of it were left out and as many outside of it (more
where people have several rows or promises count more people), and its share is told in whole
percent: nobody learns of a person that all who were left out are alike, or of few people anything.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
import pyarrow.compute as pc

from halfmask.errors import HalfmaskError
from halfmask.metrics.utility.summary import FEWEST
from halfmask.release.candidate import GroupShare
from halfmask.release.partition import label_texts
from halfmask.table.tuples import tally

if TYPE_CHECKING:
    from collections.abc import Iterator

    from numpy.typing import NDArray

    from halfmask.release.candidate import Candidate
    from halfmask.table.table import Table
    from halfmask.table.tuples import Tuples

_GROUPS = 12  # of a column; finer levels of its hierarchy are not told


def absent_groups(rows: Tuples, found: Candidate, most: int = 10) -> tuple[GroupShare, ...]:
    """The groups of quasi-identifiers and sensitive columns that lose most, the worst first.

    Args:
        rows: entries that stand for all rows but those of people whom nothing can serve.
        found: the candidate made of them, or of some of them.
        most: how many are named.
    """
    everybody = rows.rows
    left = found.entries.keep(found.step >= 0)
    gone = everybody - left.rows
    fewest = FEWEST * _rows_per_person(rows)
    for model in found.models:
        size = getattr(model, "k", None)
        fewest = max(fewest, size if isinstance(size, int) else 0)
    if gone < 2 * fewest:
        return ()
    schema, named = rows.table.schema, []
    held = set(rows.table.arrow.column_names) & set(left.table.arrow.column_names)
    for name in (*schema.quasi, *schema.sensitive):
        if name not in held:
            continue
        for label, before, lost in _groups(rows, left, name):
            told = fewest <= lost <= gone - fewest
            if told and lost * everybody > gone * before:
                named.append((lost / before, GroupShare(name, label, round(lost / before, 2))))
    named.sort(key=lambda one: (-one[0], one[1].column, one[1].group))
    return tuple(one for _, one in named[:most])


def _rows_per_person(rows: Tuples) -> int:
    person = rows.table.schema.person
    if person is None or person not in rows.table.arrow.column_names:
        return 1
    codes = rows.table.encode(person).codes
    return int(max(tally(codes, int(codes.max(initial=0)) + 1, rows.counts), default=1))


def _groups(rows: Tuples, left: Tuples, name: str) -> Iterator[tuple[str, int, int]]:
    """Per group of a column its label, all its rows, and those that were left out."""
    whole, part = rows.table.encode(name), left.table.encode(name)
    values = whole.values
    place = pc.index_in(part.values, value_set=values).to_numpy().astype(np.int64)
    group, labels = _label_map(rows.table, name)
    size = len(labels)
    before = tally(group[whole.codes], size, rows.counts)
    after = tally(group[place[part.codes]], size, left.counts)
    for label, most, still in zip(labels, before, after, strict=True):
        if most:
            yield "missing" if label is None else label, int(most), int(most) - int(still)


def _label_map(table: Table, name: str) -> tuple[NDArray[np.int32], list[str | None]]:
    """Per value its group: the label of the finest level that has few of them."""
    try:
        hierarchy = table.hierarchy(name)
    except HalfmaskError:  # automatic: found from the rows that leave
        return _values(table, name)
    for level in range(hierarchy.height + 1):
        if 2 <= len(hierarchy.labels[level]) <= _GROUPS:
            return label_texts(table, name, level)
    return label_texts(table, name, max(hierarchy.height - 1, 0))


def _values(table: Table, name: str) -> tuple[NDArray[np.int32], list[str | None]]:
    """Every value as a group of its own."""
    values = table.encode(name).values
    texts = [None if one is None else str(one) for one in values.to_pylist()]
    return np.arange(len(values), dtype=np.int32), texts
