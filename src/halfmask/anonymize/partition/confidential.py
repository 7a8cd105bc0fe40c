"""Classes that give away nothing by how they were chosen: cut blindly, and partly by chance.

Where rows are cut is decided by quasi-identifiers alone (``QuasiTree`` of
``halfmask.models.m_confidentiality``, which says why that keeps the promise). From everybody
downwards, a node is cut where no value stands in either part more often than the limits allow, and
the coin allows it; else it is a class.
Source: the promise is that of Wong, Fu, Wang and Pei, "Minimality attack in privacy preserving data
publishing", 2007. Their method (MASK) makes values false where a class is not safe; this one
publishes true values in a wider class.
"""

from __future__ import annotations

from secrets import randbelow
from typing import TYPE_CHECKING

import numpy as np

from halfmask.anonymize.partition.task import require_feasible, task_of
from halfmask.anonymize.partition.widths import kinds_of
from halfmask.errors import InputError, ParameterError, PrivacyError
from halfmask.models.k_anonymity import KAnonymity
from halfmask.models.m_confidentiality import STOP, grow, node_limits
from halfmask.models.personal import PersonalKAnonymity
from halfmask.release.candidate import Candidate
from halfmask.release.labels import required_sharing
from halfmask.release.partition import RowPartition, column_loss, table_loss

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence
    from fractions import Fraction
    from typing import Any

    from numpy.typing import NDArray

    from halfmask.models.m_confidentiality import Limits, QuasiTree
    from halfmask.models.verdict import Model
    from halfmask.table.table import Table

METHOD = "confidential"
OPTIONS = ("labels", "on_infeasible")


def divide_blindly(table: Table, models: Sequence[Model], options: Mapping[str, Any]) -> Candidate:
    """The candidate of a prepared table.

    Raises:
        InputError: another promise would have to look at sensitive values.
        UnsatisfiableError: all rows in one class break a promise.
    """
    m, column = _promise_of(models)
    unknown = [name for name in options if name not in OPTIONS]
    if unknown:
        raise ParameterError(unknown[0], options[unknown[0]], f"only {', '.join(OPTIONS)}")
    if table.found:
        raise PrivacyError(
            f"The hierarchy of column {min(table.found)!r} is found from all columns together: "
            "declare one, so that labels tell nothing of sensitive values."
        )
    task = task_of(table, models, options=dict(options))
    require_feasible(task)
    tree = grow(task.space.places, task.demands.k)
    values = table.encode(column).codes
    often = most_frequent(tree, values)
    limits = node_limits(tree, m, int(often[0]))
    ids = draw_classes(tree, limits, often, toss)
    kinds = kinds_of(task)
    partition = RowPartition.of(
        table,
        ids,
        {name: kind == "range" for name, kind in kinds.items()},
        required_sharing(table, models),
        sets="set" in kinds.values(),
    )
    losses = {name: column_loss(partition, table, ids, name) for name in table.schema.quasi}
    weights = {name: table.schema.columns[name].weight for name in losses}
    return Candidate(
        table=table,
        models=models,
        recoding=partition,
        step=ids,
        method=METHOD,
        parameters={
            "weights": weights,
            "models": [model.to_dict() for model in models],
            "value": table_loss(losses, weights),
            "left_out": 0,
            "suppression": 0.0,
            **options,
        },
        notes=(
            "Where classes may end was decided without a look at sensitive values, and some cuts "
            f"that could be made (up to {STOP}) were left out by chance: another run gives other "
            "classes. Publish one of them only.",
        ),
    )


def _promise_of(models: Sequence[Model]) -> tuple[int, str]:
    """The m and the column of the promise; others beside it may only ask for numbers of rows."""
    ours = [one for one in models if one.blind]
    if len(ours) != 1:
        raise InputError(
            "m-confidentiality speaks of one column of a release, whose rows are dealt as a whole: "
            "name it once."
        )
    for one in models:
        if one is not ours[0] and not isinstance(one, KAnonymity | PersonalKAnonymity):
            raise ParameterError(
                "models", one.name, "k alone, also people's own, beside m-confidentiality: any "
                "other promise would have classes chosen by sensitive values",
            )  # fmt: skip
    return int(ours[0].m), ours[0].columns[0]  # type: ignore[attr-defined]  # of the one blind model


def toss(chance: Fraction) -> bool:
    """True with ``chance``; from the system's secure source, never from a seed."""
    return randbelow(chance.denominator) < chance.numerator


def most_frequent(tree: QuasiTree, values: NDArray[np.int32]) -> NDArray[np.int64]:
    """Per node, how many of its rows hold its most frequent value."""
    depth = np.zeros(len(tree), dtype=np.int64)
    # A node stands behind its parent.
    for one in range(1, len(tree)):
        depth[one] = depth[tree.parent[one]] + 1
    often = np.zeros(len(tree), dtype=np.int64)
    domain, node = int(values.max(initial=0)) + 1, tree.leaf.copy()
    for level in range(int(depth.max()), -1, -1):
        here = np.flatnonzero(depth[node] == level)
        pairs, counts = np.unique(node[here] * domain + values[here], return_counts=True)
        np.maximum.at(often, pairs // domain, counts)
        node[here] = np.maximum(tree.parent[node[here]], 0)
    return often


def draw_classes(
    tree: QuasiTree, limits: Limits, often: NDArray[np.int64], coin: Callable[[Fraction], bool]
) -> NDArray[np.int32]:
    """The class of each row."""
    class_of = np.zeros(len(tree), dtype=np.int32)
    waiting, classes = [0], 0
    while waiting:
        node = waiting.pop()
        parts = tree.parts[node]
        able = limits.cut[node] and (often[parts] <= limits.most[parts]).all()
        # Minimality attack: if every cut that can be made were made, a class that was left whole
        # would tell that the promise fails in one of its parts.
        if able and not coin(limits.stop(int(tree.rows[node]))):
            waiting += parts.tolist()
        else:
            class_of[node : tree.end[node]] = classes
            classes += 1
    return class_of[tree.leaf]
