"""One answer of several groups of cells: rows with the same key and level are added up.

Each group of cells has checked its guarantees by itself, and what is done here reads nothing but
the released rows. So every row that comes out stands for at least the people that its guarantee
names. People who would reach a guarantee only together with those of another group stay out:
nobody holds the key to both.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Mapping

    import pyarrow as pa

    from halfmask.protocol.answering import Received
    from halfmask.protocol.blueprint import Blueprint

_ADDED = {"count": "sum", "sum": "sum", "min": "min", "max": "max"}


def apart(made: Blueprint) -> str | None:
    """Why the answers of groups of cells cannot be put together; None where they can."""
    final = made.plan.final
    if any(final.args.get(clause) is not None for clause in ("where", "limit", "offset")):
        return "HAVING and LIMIT choose rows within each group of cells"
    ways = _ways(made)
    names = [name for name in made.plan.names if name not in ways]
    if names:
        return f"{', '.join(names)} cannot be added up: select COUNT, SUM, MIN or MAX"
    return None


def together(made: Blueprint, answers: Mapping[int, Received]) -> pa.Table | None:
    """The rows of all groups of cells as one table; None where ``apart`` tells why not."""
    import pyarrow as pa

    if apart(made) is not None:
        return None
    tables = [received.rows for received in answers.values()]
    whole = pa.concat_tables([t.cast(tables[0].schema) for t in tables])
    ways = _ways(made)
    keys = [name for name in whole.column_names if ways.get(name) is None]
    added = [(name, way) for name, way in ways.items() if way is not None]
    found = whole.group_by(keys).aggregate(added)
    columns = [n if ways.get(n) is None else f"{n}_{ways[n]}" for n in whole.column_names]
    return found.select(columns).rename_columns(whole.column_names)


def _ways(made: Blueprint) -> dict[str, str | None]:
    """Per selected column how it is added up; None for grouping columns."""
    from sqlglot import exp

    found: dict[str, str | None] = {}
    for item in made.plan.final.expressions:
        node = item.unalias()
        if not isinstance(node, exp.Column) or item.alias not in made.plan.names:
            continue
        kind, number = node.name[0], node.name[1:]
        if kind == "k":
            found[item.alias] = None
        elif (way := _ADDED.get(made.plan.aggregates[int(number)].kind)) is not None:
            found[item.alias] = way
    return found
