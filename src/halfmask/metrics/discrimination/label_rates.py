"""Discrimination rates of single published labels: which of them give most away."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.metrics.discrimination.columns import CodedColumn, code_column, group_rows
from halfmask.metrics.discrimination.rate import group_rates
from halfmask.metrics.discrimination.release_rates import (
    AttackKind,
    meaning_of,
    released_column,
    released_labels,
)
from halfmask.table.document import Result
from halfmask.table.hierarchy import canonical
from halfmask.table.table import encode_column

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from halfmask.metrics.sides import Sides
    from halfmask.table.tuples import Counts

_MOST = 1000  # labels of a column that are listed, those of most rows


@dataclass(frozen=True, slots=True)
class LabelRate(Result):
    """One published label of one quasi-identifier, under one attack.

    Attributes:
        attack: identity, homogeneity or similarity.
        column: the quasi-identifier; ``label`` what it publishes.
        target: what is to be learned.
        rate: 1 - p(y) H(X | y) / H(X); mostly driven by how rare the label is.
        unweighted: 1 - H(X | y) / H(X), what the label says, however rare; may be negative.
        rows: how many rows have it; ``share`` is p(y).
        top: the largest share of one outcome among these rows.
    """

    attack: AttackKind
    column: str
    label: str
    target: str
    rate: float
    unweighted: float
    rows: int
    share: float
    top: float


def label_rates(
    both: Sides, partitions: Mapping[str, object], *, same_order: bool = False
) -> tuple[LabelRate, ...]:
    """Score each published label of each quasi-identifier.

    Definition: for identity, the original column given its label, on the rows that the assessor can
    pair; for homogeneity, each sensitive column given the label; for similarity, its blocks of
    values that mean the same. The rate of a label y is 1 - p(y) H(X | y) / H(X), so that the gaps
    to 1 add up to that of the column.
    Source: Sondeck, "Privacy and utility assessment within statistical data bases", 2017, tables
    4.5 to 4.7 and 5.6 to 5.8.

    A target that never varies has no rates. Of columns with many labels, the thousand are listed
    that most rows have.
    """
    own = released_labels(both, same_order=same_order)
    out: list[LabelRate] = []
    for place, column in enumerate(both.quasi):
        texts = _texts(both, column.name)
        if own is not None:
            x, y = code_column(both.original, column.name), own.labels(place)
            told = (x, y, both.original_counts)
            out += _rates("identity", column.name, column.name, texts, *told)
        y, _ = released_column(both, column.name)
        for secret in (one.name for one in both.sensitive):
            x, _ = released_column(both, secret)
            told = (x, y, both.released_counts)
            out += _rates("homogeneity", column.name, secret, texts, *told)
            meaning = meaning_of(both.original, secret, partitions.get(secret))
            if meaning is not None:
                x, _ = released_column(both, secret, meaning)
                told = (x, y, both.released_counts)
                out += _rates("similarity", column.name, secret, texts, *told)
    return tuple(out)


def _texts(both: Sides, name: str) -> list[str]:
    values = encode_column(both.rows[name]).values.to_pylist()
    return ["missing" if one is None else canonical(one) for one in values]


def _rates(
    attack: AttackKind,
    column: str,
    target: str,
    texts: list[str],
    x: CodedColumn,
    y: CodedColumn,
    counts: Counts,
) -> Iterator[LabelRate]:
    groups, count = group_rows([y])
    found = group_rates(x.codes, x.size, groups, count, counts)
    if found.entropy == 0.0:
        return
    label = np.zeros(count, dtype=np.int64)
    label[groups] = y.codes
    total = int(found.sizes.sum())
    listed = np.flatnonzero(label < len(texts))  # rows that were left out have a label of their own
    for one in listed[np.argsort(-found.sizes[listed], kind="stable")][:_MOST].tolist():
        rows, gain = int(found.sizes[one]), float(found.inside[one]) / found.entropy
        yield LabelRate(
            attack, column, texts[label[one]], target, 1.0 - rows / total * gain, 1.0 - gain, rows,
            rows / total, float(found.top[one]) / rows,
        )  # fmt: skip
