"""Which figures of a published row may be shown: the others are null there.

A conditional figure (``query.planning.conditions``) is shown where every part that its conditions
split the row into reaches the k and l of the row. A part that is empty here but too small in
another row counts as too small here as well: else the rows in which the figure is shown would tell
where the few people of that part are.

A sum or an average is shown where nobody makes up too much of it, if the controller asks for that.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from halfmask.query.aggregate import places
from halfmask.release.answer_candidate import Shares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray

    from halfmask.engines.request import Engine
    from halfmask.query.filter import Published
    from halfmask.query.groups import Groups
    from halfmask.query.planning.planned import Plan

    Rule = Mapping[str, float]


def shown(
    plan: Plan,
    groups: Groups,
    published: Published,
    rows: pa.Table,
    engine: Engine,
    dominance: Sequence[Rule] = (),
) -> tuple[pa.Table, pa.Table | None, Shares | None]:
    """The published rows without what must not be shown, and what decided it."""
    if not len(published):
        return rows, None, None
    parts = None
    if plan.conditional:
        parts = _parts(plan, groups, published, engine)
        rows = _without(rows, plan.conditional, ~_large_enough(plan, published, parts))
    shares = _shares(plan, groups, published, engine, dominance)
    if shares is not None:
        for i, name in enumerate(shares.figures):
            rows = _without(rows, [name], shares.dominated(i))
    return rows, parts, shares


def _shares(
    plan: Plan, groups: Groups, published: Published, engine: Engine, rules: Sequence[Rule]
) -> Shares | None:
    """What those bring who bring most to each sum and average of each row."""
    from sqlglot import exp

    summed = {f"a{i}": a for i, a in enumerate(plan.aggregates) if a.kind in ("sum", "avg")}
    if not rules or not summed:
        return None
    amounts = []
    for aggregate in summed.values():
        amount = plan.request.states[aggregate.states[0]].expression
        amounts.append(exp.cast(amount, "int") if aggregate.of == "boolean" else amount)
    most = max(int(rule.get("n", 2)) for rule in rules)
    table = places(plan, groups, published)
    found = engine.shares(plan.request, table, tuple(amounts), most).sort_by("place")
    return Shares(tuple(summed), tuple(rules), most, found)


def _parts(plan: Plan, groups: Groups, published: Published, engine: Engine) -> pa.Table:
    """Per place and part: ``met`` (which conditions are met), ``people``, ``l0`` ..."""
    import pyarrow as pa

    person = plan.request.person
    counted = [person] if plan.repeat and person is not None else []
    table = places(plan, groups, published)
    k, l = np.array(plan.request.guarantees, dtype=np.int64)[
        published.level[table["place"].to_numpy()]
    ].T
    table = table.append_column("needed", pa.array(k))
    for i in range(len(counted) + len(plan.split_values)):
        table = table.append_column(f"need{i}", pa.array(k if i < len(counted) else l))
    splits = (*plan.splits, *plan.missing)
    found = engine.parts(plan.request, table, splits, (*counted, *plan.split_values))
    columns = {
        "place": found["place"],
        "met": pa.array(_numbered(found.select([f"c{i}" for i in range(len(plan.splits))]))),
        "people": found["d0" if counted else "rows"],
    }
    for i in range(len(plan.split_values)):
        columns[f"l{i}"] = found[f"d{i + len(counted)}"]
    return pa.table(columns)


def _numbered(conditions: pa.Table) -> NDArray[np.int64]:
    """The same number for rows that meet the same conditions."""
    import pyarrow as pa

    numbers = np.zeros(conditions.num_rows, dtype=np.int64)
    if conditions.num_columns:
        names = conditions.column_names
        at = pa.array(np.arange(conditions.num_rows))
        found = conditions.append_column("at", at).group_by(names).aggregate([("at", "list")])
        lists = pa.concat_arrays(found["at_list"].chunks)
        lengths = np.diff(lists.offsets.to_numpy())
        numbers[lists.flatten().to_numpy()] = np.repeat(np.arange(len(lists)), lengths)
    return numbers


def _large_enough(plan: Plan, published: Published, parts: pa.Table) -> NDArray[np.bool_]:
    """Per place, whether all its parts reach its guarantee, and it lacks none that is scarce."""
    at = parts["place"].to_numpy().astype(np.int64)
    met = parts["met"].to_numpy()
    needed = np.array(plan.request.guarantees, dtype=np.int64)[published.level[at]]
    small = parts["people"].to_numpy() < needed[:, 0]
    for i in range(len(plan.split_values)):
        values = parts[f"l{i}"].to_numpy()
        small |= (values > 0) & (values < needed[:, 1])
    holds: NDArray[np.bool_] = np.ones(len(published), dtype=bool)
    holds[at[small]] = False
    scarce = np.unique(met[small])
    width = int(met.max(initial=0)) + 1
    pairs = np.unique((at * width + met)[np.isin(met, scarce)])
    holds[np.bincount(pairs // width, minlength=len(published)) < len(scarce)] = False
    return holds


def _without(rows: pa.Table, names: Sequence[str], hidden: NDArray[np.bool_]) -> pa.Table:
    import pyarrow as pa
    import pyarrow.compute as pc

    mask = pa.array(hidden)
    for name in names:
        at = rows.column_names.index(name)
        rows = rows.set_column(at, name, pc.if_else(mask, None, rows[name]))
    return rows
