"""Groups of people with their exact statistics: all that is known of the rows from here on.

An engine gives one row per level and group: each person contributes at the finest level they
accept. A group is moved by naming a coarser level: its key there follows from the key it has. So a
result is one target level per group, -1 where it is left out.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

import numpy as np

from halfmask.engines.generalization import lower_edge
from halfmask.engines.request import REFUSED, WITHOUT_POLICY, Climb, Interval
from halfmask.engines.sql import comparable
from halfmask.errors import InternalError, QueryError
from halfmask.table.table import encode_column

if TYPE_CHECKING:
    from collections.abc import Sequence

    import pyarrow as pa
    from numpy.typing import NDArray
    from sqlglot import exp

    from halfmask.engines.request import AggregateState, Engine, Key, Request
    from halfmask.query.planning.guarantee import GuaranteePlan
    from halfmask.query.planning.plan import PlannedKey

DROPPED = -1


@dataclass(frozen=True, slots=True, eq=False)
class KeyColumn:
    """One grouping column over all groups.

    Attributes:
        codes: per group, which of the distinct values it holds.
        values: the distinct values as the engine gave them.
        maps: per depth, the label code of each distinct value.
        labels: per depth, what is shown for each label code.
        depths: per level, the depth of this column.
    """

    codes: NDArray[np.int64]
    values: pa.Array
    maps: tuple[NDArray[np.int64], ...]
    labels: tuple[list[object], ...]
    depths: tuple[int, ...]

    def at(self, level: int, groups: NDArray[np.int64]) -> NDArray[np.int64]:
        """The label codes of ``groups`` at ``level``."""
        picked: NDArray[np.int64] = self.maps[self.depths[level]][self.codes[groups]]
        return picked

    def size(self, level: int) -> int:
        """How many labels there are at ``level``."""
        return len(self.labels[self.depths[level]])


@dataclass(frozen=True, slots=True, eq=False)
class Distinct:
    """The distinct values of each group, listed only where there are fewer than ``cap``.

    Attributes:
        counts: per group, how many; exact.
        starts: where each group's list begins (full groups have an empty one).
        values: the listed values as codes.
        domain: how many different codes there are.
        cap: from so many on, no threshold can fail.
    """

    counts: NDArray[np.int64]
    starts: NDArray[np.int64]
    values: NDArray[np.int64]
    domain: int
    cap: int


@dataclass(frozen=True, slots=True, eq=False)
class Groups:
    """The groups before filtering.

    Attributes:
        level: per group, the level its people contribute at.
        people: how many people stand in it.
        keys: the grouping columns.
        counts: per requirement, numbers that add up or distinct values that unite.
        thresholds: (levels, requirements) what must be reached.
        demand: per group, the largest k and l that a contributor asked for; None: nobody asks.
        states: the mergeable parts of the aggregates.
        refused: people whom no level satisfies.
        without_policy: people without a policy who are left out.
        largest_refused: the largest k that one of the refused asks for.
        separate: whether no two groups share level and key.
    """

    level: NDArray[np.int64]
    people: NDArray[np.int64]
    keys: tuple[KeyColumn, ...]
    counts: tuple[NDArray[np.int64] | Distinct, ...]
    thresholds: NDArray[np.int64]
    states: pa.Table
    demand: tuple[NDArray[np.int64], NDArray[np.int64]] | None = None
    refused: int = 0
    without_policy: int = 0
    largest_refused: int = 0
    separate: bool = True

    def __len__(self) -> int:
        return len(self.level)

    @property
    def top(self) -> int:
        """The coarsest level."""
        return len(self.thresholds) - 1

    def nodes(
        self, level: int, groups: NDArray[np.int64]
    ) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
        """Number the groups by their key at ``level``; also the first group of each number."""
        ids = np.zeros(len(groups), dtype=np.int64)
        size = 1
        for key in self.keys:
            width = key.size(level)
            if size * width > 2**62:
                _, ids = np.unique(ids, return_inverse=True)
                size = int(ids.max(initial=0)) + 1
            ids = ids * width + key.at(level, groups)
            size *= max(1, width)
        _, first, ids = np.unique(ids, return_index=True, return_inverse=True)
        return ids.astype(np.int64), first.astype(np.int64)

    def passes(
        self, level: int, groups: NDArray[np.int64], ids: NDArray[np.int64], n: int
    ) -> NDArray[np.bool_]:
        """Tell for each of ``n`` nodes at ``level`` whether its groups meet the guarantee."""
        holds = np.ones(n, dtype=bool)
        for count, needed in zip(self.counts, self.thresholds[level], strict=True):
            if isinstance(count, Distinct):
                holds &= _reach(count, groups, ids, n, int(needed))
            else:
                holds &= add(ids, count[groups], n) >= needed
        return holds

    def alone(self, level: int, groups: NDArray[np.int64]) -> NDArray[np.bool_]:
        """Tell for each group whether it meets the guarantee of ``level`` by itself."""
        holds = np.ones(len(groups), dtype=bool)
        for count, needed in zip(self.counts, self.thresholds[level], strict=True):
            holds &= (count.counts if isinstance(count, Distinct) else count)[groups] >= needed
        return holds


def add(ids: NDArray[np.int64], numbers: NDArray[np.int64], n: int) -> NDArray[np.int64]:
    """Add up whole numbers per id, exactly."""
    total = np.zeros(n, dtype=np.int64)
    np.add.at(total, ids, numbers)
    return total


def _reach(
    count: Distinct, groups: NDArray[np.int64], ids: NDArray[np.int64], n: int, needed: int
) -> NDArray[np.bool_]:
    holds = np.zeros(n, dtype=bool)
    holds[ids[count.counts[groups] >= needed]] = True
    rest = ~holds[ids]
    if not rest.any():
        return holds
    owners, nodes = groups[rest], ids[rest]
    lengths = count.starts[owners + 1] - count.starts[owners]
    offsets = np.repeat(
        count.starts[owners] - np.concatenate(([0], np.cumsum(lengths)[:-1])), lengths
    )
    values = count.values[offsets + np.arange(lengths.sum())]
    pairs = np.unique(np.repeat(nodes, lengths) * max(1, count.domain) + values)
    sizes = np.bincount(pairs // max(1, count.domain), minlength=n)
    return holds | (sizes >= needed)


def collect(plan: GuaranteePlan, engine: Engine) -> Groups:
    """Have the engine aggregate the rows, and read the groups."""
    groups = groups_of(plan, engine.collect(plan.request))
    said = max(1, plan.request.guarantees[-1][0], groups.largest_refused)
    if groups.refused < said or plan.request.demands is None:
        return groups  # how many are left out is not said: fewer than the least that may be
    return replace(groups, largest_refused=_largest_demand(plan.request, engine))


def _largest_demand(request: Request, engine: Engine) -> int:
    """The largest number that anybody asks for of all who state any, wherever the asker looks.

    How many are left out is said only where it reaches this: else the number itself would tell
    whether somebody who asks for more is among them. So everything that states demands is looked at
    by itself and whole: who meets WHERE, or stands in the table in FROM, is no matter.
    """
    from sqlglot import exp

    assert request.demands is not None  # noqa: S101 - the caller looked
    source = request.source
    first = source.args.get("from_") or source.args["from"]
    nodes = [first.this, *(join.this for join in source.args.get("joins") or [])]
    places = {node.alias_or_name: node for node in nodes}
    main = nodes[0].alias_or_name
    stating = {c.table for d in request.demands for c in d.find_all(exp.Column)}
    largest = 0
    for alias in [name for name in places if name in (stating or {main})]:
        asked = exp.Select().from_(places[alias].copy())
        for name, demand in zip(("k", "l"), request.demands, strict=True):
            asked = asked.select(exp.alias_(exp.Max(this=_demand_of_table(demand, alias)), name))
        found = engine.run(asked)
        largest = max(largest, *(int(_ceiling(found, n).max(initial=0)) for n in ("k", "l")))
    return largest


def _demand_of_table(demand: exp.Expr, alias: str) -> exp.Expr:
    """What one table says of a demand, as if the others said nothing."""
    from sqlglot import exp

    alone = exp.Paren(this=demand.copy())
    if isinstance(alone.this, exp.Case):  # who says nothing of some column is asked all the same
        whens = [
            when for when in alone.this.args["ifs"] if not isinstance(when.args["true"], exp.Null)
        ]
        if whens:
            alone.this.set("ifs", whens)
        else:
            alone.set("this", alone.this.args["default"])
    for column in list(alone.find_all(exp.Column)):
        if column.table != alias:
            column.replace(exp.cast(exp.null(), "double"))
    found: exp.Expr = alone.this
    return found


def groups_of(plan: GuaranteePlan, rows: pa.Table) -> Groups:
    """Read the groups that an engine returned."""
    import pyarrow as pa

    rows = _plain_keys(plan, rows)
    if plan.semantics != "selective" or any(_is_rounded(s) for s in plan.request.states):
        rows = _order_groups(plan, rows)
    level = rows["level"].to_numpy().astype(np.int64)
    people = _people(plan, rows)
    kept = level >= 0
    inside = rows if kept.all() else rows.filter(pa.array(kept))
    keys = tuple(
        _key_column(key, planned, inside[f"g{i}"])
        for i, (key, planned) in enumerate(zip(plan.request.keys, plan.keys, strict=True))
    )
    counts = tuple(
        _distinct(inside, r.test, plan.request.tests[r.test].cap)
        if r.test is not None
        else _numbers(inside, "rows" if r.state is None else f"s{r.state}")
        for r in plan.requirements
    )
    thresholds = np.array(
        [[r.threshold(k, l) for r in plan.requirements] for k, l in plan.request.guarantees],
        dtype=np.int64,
    )
    demand = None
    if plan.request.demands is not None:
        demand = (_ceiling(inside, "k"), _ceiling(inside, "l"))
    return Groups(
        level[kept],
        people[kept],
        keys,
        counts,
        thresholds,
        inside,
        demand,
        int(people[level == REFUSED].sum()),
        int(people[level == WITHOUT_POLICY].sum()),
        _largest_refused(rows, level),
    )


def _plain_keys(plan: GuaranteePlan, rows: pa.Table) -> pa.Table:
    """Keys in which equal values are the same, whichever the engine picked of them."""
    import pyarrow as pa

    for i, key in enumerate(plan.request.keys):
        name = f"g{i}"
        if key.kind == "float":
            chunks = [comparable(c) for c in rows[name].chunks]
            column = pa.chunked_array(chunks, rows[name].type)
            rows = rows.set_column(rows.column_names.index(name), name, column)
    return rows


def _order_groups(plan: GuaranteePlan, rows: pa.Table) -> pa.Table:
    """Groups in the order of their levels and labels, so that ties are broken in one order.

    It is the order of what can be published, whoever gave the groups and whoever is left out.
    """
    import pyarrow as pa

    level = rows["level"].to_numpy()
    depth = np.maximum(level, 0)
    keys = []
    for i, (key, planned) in enumerate(zip(plan.request.keys, plan.keys, strict=True)):
        column = _key_column(key, planned, rows[f"g{i}"])
        labels = np.array([m[column.codes] for m in column.maps])
        keys.append(labels[np.array(column.depths)[depth], np.arange(len(level))])
    return rows.take(pa.array(np.lexsort([*reversed(keys), level])))


def _is_rounded(state: AggregateState) -> bool:
    """Whether the last digit of a merged state depends on the order in which groups are merged."""
    return state.kind == "moments" or (state.kind == "sum" and state.of == "float")


def _largest_refused(rows: pa.Table, level: NDArray[np.int64]) -> int:
    refused = level == REFUSED
    if "k" not in rows.column_names or not refused.any():
        return 0
    return int(_ceiling(rows, "k")[refused].max(initial=0))


def _people(plan: GuaranteePlan, rows: pa.Table) -> NDArray[np.int64]:
    first = plan.requirements[0]
    if first.test is not None:
        return _numbers(rows, f"t{first.test}_n")
    return _numbers(rows, "rows" if first.state is None else f"s{first.state}")


def _numbers(rows: pa.Table, name: str) -> NDArray[np.int64]:
    found: NDArray[np.int64] = rows[name].fill_null(0).to_numpy().astype(np.int64)
    return found


def _ceiling(rows: pa.Table, name: str) -> NDArray[np.int64]:
    import pyarrow as pa

    values = rows[name].cast(pa.float64(), safe=False).fill_null(0).to_numpy()
    whole = np.minimum(np.ceil(np.nan_to_num(values, nan=2.0**62)), 2.0**62)
    found: NDArray[np.int64] = whole.astype(np.int64)
    return found


def _distinct(rows: pa.Table, test: int, cap: int) -> Distinct:
    import pyarrow as pa
    import pyarrow.compute as pc

    counts = _numbers(rows, f"t{test}_n")
    column = rows[f"t{test}_values"].combine_chunks()
    if isinstance(column, pa.ChunkedArray):
        column = pa.concat_arrays(column.chunks) if column.num_chunks else pa.array([], column.type)
    open_groups = np.flatnonzero((counts < cap) & (counts > 0))
    lists = column.take(pa.array(open_groups))
    flat = comparable(pc.list_flatten(lists)) if pa.types.is_list(lists.type) else lists
    if (
        not pa.types.is_list(lists.type)
        or pa.types.is_nested(flat.type)
        or pa.types.is_interval(flat.type)
    ):
        # Equal ones may look different: a month is thirty days.
        raise QueryError(
            "distinct values are counted of numbers, texts and dates, not of intervals, lists or "
            "types of the database's own: CAST the column, or aggregate another one."
        )
    codes = flat.dictionary_encode()
    lengths = np.zeros(len(counts), dtype=np.int64)
    lengths[open_groups] = counts[open_groups]
    starts = np.concatenate(([0], np.cumsum(lengths)))
    return Distinct(
        counts,
        starts,
        codes.indices.to_numpy(zero_copy_only=False).astype(np.int64),
        len(codes.dictionary),
        cap,
    )


def _key_column(key: Key, planned: PlannedKey, column: pa.ChunkedArray) -> KeyColumn:
    encoded = encode_column(column)
    values = encoded.values
    plain: list[object] = values.to_pylist()
    maps: list[NDArray[np.int64]] = [np.arange(len(plain), dtype=np.int64)]
    labels: list[list[object]] = [plain]
    for depth, rule in enumerate(key.rules, start=1):
        if isinstance(rule, Interval):
            found = [lower_edge(value, rule.width) for value in plain]
            shown: list[object] = [None if e is None else f"[{e}, {e + rule.width})" for e in found]
        elif isinstance(rule, Climb):
            shown = _climb(plain, planned, depth)
        else:
            shown = ["*"] * len(plain)
        ranked = list(dict.fromkeys(shown))  # intervals ascend with their values
        if isinstance(rule, Climb):
            ranked.sort(key=str)
        ranked.sort(key=lambda label: label is None)
        index = {label: code for code, label in enumerate(ranked)}
        maps.append(np.array([index[label] for label in shown], dtype=np.int64))
        labels.append(ranked)
    codes_of = encoded.codes.astype(np.int64)
    return KeyColumn(codes_of, values, tuple(maps), tuple(labels), key.depths)


def _climb(values: Sequence[object], planned: PlannedKey, depth: int) -> list[object]:
    hierarchy = planned.hierarchy
    assert hierarchy is not None  # noqa: S101 - only keys with a hierarchy climb
    labels = hierarchy.labels[depth]
    if len(labels) == 1:
        return [labels[0]] * len(values)
    at = {
        v: labels[c]
        for v, c in zip(hierarchy.labels[0], hierarchy.maps[depth].tolist(), strict=True)
    }
    if any(v is not None and v not in at for v in values):
        raise InternalError("A value stands outside its hierarchy.")
    return [None if v is None else at[v] for v in values]
