"""The second look at m-confidentiality: what the cuts of a release tell of who holds what.

The tree is made again from quasi-identifiers. Then everything else is counted by Arrow and Python
from the values of the rows that leave: every class is a node, no node above a class holds a value
too often, and of each class that could have been cut further the chance of every link is computed
from the very counts of its values.
"""

from __future__ import annotations

import math
from collections import Counter
from fractions import Fraction
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.errors import InternalError
from halfmask.metrics.space import space_of
from halfmask.models.m_confidentiality import grow, node_limits
from halfmask.release.labels import encode_labels
from halfmask.release.partition import RowPartition
from halfmask.table.tuples import all_ones

if TYPE_CHECKING:
    from collections.abc import Sequence

    from numpy.typing import NDArray

    from halfmask.models.m_confidentiality import Limits, QuasiTree
    from halfmask.models.verdict import Model
    from halfmask.release.candidate import Candidate
    from halfmask.table.table import Table

    Values = Counter[object]


def require_blind_cuts(candidate: Candidate) -> None:
    """Demand that classes were chosen as m-confidentiality says, where it is promised.

    Raises:
        InternalError: they were not, or a link is likelier than promised; nothing leaves.
    """
    promises = [model for model in candidate.models if model.blind]
    if not promises:
        return
    table, step = candidate.table, candidate.step
    if len(promises) > 1 or not isinstance(candidate.recoding, RowPartition) or table.found:
        raise InternalError("Classes were not cut blindly; nothing was released.")
    if (step < 0).any() or not all_ones(candidate.counts):
        raise InternalError("Rows were left out of blind cuts; nothing was released.")
    m, column = int(promises[0].to_dict()["m"]), promises[0].columns[0]
    tree = grow(space_of(table).places, _least_rows(table, candidate.models))
    nodes = _nodes(tree, step)
    values = _values(table, column, step)
    everybody = sum(values.values(), Counter())
    limits = node_limits(tree, m, max(everybody.values()))
    _require_limits(tree, limits, nodes, values)
    worst = max(_credibility(tree, limits, node, values[name]) for name, node in nodes.items())
    if worst > Fraction(1, m):
        raise InternalError(
            "Somebody could be linked to a value more surely than promised; nothing was released."
        )


def _least_rows(table: Table, models: Sequence[Model]) -> NDArray[np.int64]:
    """Per row, how many rows its class must hold."""
    need = np.ones(len(table), dtype=np.int64)
    for model in models:
        demand = model.kernel_demand(table)
        if demand is not None:
            need = np.maximum(need, np.ceil(demand.rows).astype(np.int64))
    return need


def _nodes(tree: QuasiTree, step: NDArray[np.int32]) -> dict[int, int]:
    """Per class, the node that it is."""
    out = {}
    for name in np.unique(step).tolist():
        leaves = tree.leaf[step == name]
        node = int(leaves[0])
        while tree.rows[node] < len(leaves) and node:
            node = int(tree.parent[node])
        inside = (node <= leaves) & (leaves < tree.end[node])
        if tree.rows[node] != len(leaves) or not inside.all():
            raise InternalError("A class is none that blind cuts make; nothing was released.")
        out[name] = node
    return out


def _values(table: Table, column: str, step: NDArray[np.int32]) -> dict[int, Values]:
    """Per class, how many of its rows hold each value."""
    cells = encode_labels(table.arrow[column])
    found = pa.table({"class": step, "value": cells}).group_by(["class", "value"])
    counted = found.aggregate([([], "count_all")]).to_pydict()
    out: dict[int, Values] = {}
    for name, value, rows in zip(
        counted["class"], counted["value"], counted["count_all"], strict=True
    ):
        out.setdefault(name, Counter())[value] += rows
    return out


def _require_limits(
    tree: QuasiTree, limits: Limits, nodes: dict[int, int], values: dict[int, Values]
) -> None:
    """Demand that a node is a class or cut where it may be, into parts within their limits."""
    held: dict[int, Values] = {}
    for name, node in nodes.items():
        at = node
        while at >= 0:
            held.setdefault(at, Counter()).update(values[name])
            at = int(tree.parent[at])
    classes = set(nodes.values())
    for node, some in held.items():
        if max(some.values()) > limits.most[node]:
            raise InternalError("A part holds a value too often to be cut off; nothing left.")
        if node not in classes and not limits.cut[node]:
            raise InternalError("A class was cut that may not be; nothing was released.")


def _credibility(tree: QuasiTree, limits: Limits, node: int, values: Values) -> Fraction:
    """At most, the chance of any link of somebody in a class to a value."""
    rows = int(tree.rows[node])
    share = Fraction(max(values.values()), rows)
    if not limits.cut[node]:
        return share
    shut = 0.0
    for part in tree.parts[node].tolist():
        limit = int(limits.most[part])
        often = Counter(count for count in values.values() if count > limit)
        shut += sum(
            many * _chance_of_more(rows, count, int(tree.rows[part]), limit)
            for count, many in often.items()
        )
    # Upwards, since logarithms are rounded.
    worst = min(Fraction(shut * (1 + 1e-6)), share)
    stop = limits.stop(rows)
    return (stop * share + (1 - stop) * worst) / (stop + (1 - stop) * worst)


def _chance_of_more(rows: int, marked: int, drawn: int, limit: int) -> float:
    """The chance that more than ``limit`` of ``marked`` rows are among ``drawn`` ones."""
    high = min(marked, drawn)
    low = max(limit + 1, drawn - (rows - marked))
    if low > high:
        return 0.0
    whole = _ways(rows, drawn)
    logs = [
        _ways(marked, one) + _ways(rows - marked, drawn - one) - whole
        for one in range(low, high + 1)
    ]
    return min(1.0, math.fsum(math.exp(one) for one in logs))


def _ways(rows: int, some: int) -> float:
    """The logarithm of how many ways there are to choose some of so many rows."""
    return math.lgamma(rows + 1) - math.lgamma(some + 1) - math.lgamma(rows - some + 1)
