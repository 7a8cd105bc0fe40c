"""A release of rows from cells: one row a person, in classes that keep everybody's own k and l.

Every cell sends its row once, with its person's demands, sealed like any contribution. Equal rows
with equal demands are merged on the way; the last cell divides all of them into classes, recodes
them, and passes them through the door that every release of a table passes. What leaves is sealed
for the asker: rows in an order that follows from what they show, and the verdicts.
Source: Michel 2019, chapter 8: cells build the classes of k_i-anonymity (chapter 5), so that the
server between them learns nothing.
"""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa

from halfmask.errors import InputError, ParameterError, PrivacyError, UnsupportedQueryError
from halfmask.protocol.records.layout import KeyField
from halfmask.table.columns import quote_names

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from numpy.typing import NDArray

    from halfmask.protocol.cell_plan import CellPlan
    from halfmask.protocol.common_schema import CommonSchema
    from halfmask.protocol.records.layout import Records
    from halfmask.release.document import ColumnChange
    from halfmask.release.record import FileRecord
    from halfmask.table.table import Table

COUNTED = "hm_people"
NOBODY = "Too few people took part to keep what they and the asker demand: no row leaves."
_DEMAND = KeyField(pa.int64(), "number", 8)
_K, _L = "hm_k", "hm_l"
# What the asker is told of a release. A controller's document says more: how many people demand
# what, and how many rows there were before.
_VERDICT = ("model", "column", "holds", "required", "achieved")
_COLUMN = ("name", "role", "action")


def release_text(
    commons: CommonSchema,
    columns: Sequence[str],
    *,
    table: str | None = None,
    where: str | None = None,
    k: int | None = None,
    l: int = 1,  # noqa: E741
) -> str:
    """The question by which cells are asked for their rows.

    Args:
        commons: the common schema.
        columns: what is to be shown of a row.
        table: the common table; needed where there are several.
        where: which rows, as a condition of SQL.
        k: the least number of people in a class, whatever they demand, 2 or more; by default the
            least that the common schema allows.
        l: the least number of values of every sensitive column in a class.

    Raises:
        ParameterError: a name is none of the common schema, or nothing can be kept that is asked.
        InputError: no k is stated, and the common schema asks for none above 1.

    Example:
        >>> from halfmask.protocol.common_schema import commons_from
        >>> people = {"columns": {"age": {"type": "integer", "role": "quasi"}}}
        >>> print(release_text(commons_from({"tables": {"people": people}}), ["age"], k=5))
        SELECT "age", COUNT(*) AS hm_people FROM "people" GROUP BY "age" GUARANTEE k = 5
    """
    names = list(commons.tables)
    chosen = names[0] if table is None and len(names) == 1 else table
    if chosen is None or chosen not in commons.tables:
        raise ParameterError("table", table, f"one of {quote_names(names)}")
    known = commons.tables[chosen].arrow.names
    for name in columns:
        if name not in known:
            raise ParameterError("column", name, f"one of {quote_names(known)}")
    sensitive = [name for name in columns if name in commons.tables[chosen].schema.sensitive]
    if l > 1 and not sensitive:
        raise ParameterError("l", l, "1 where no sensitive column is shown")
    if k is None and commons.floor < 2:
        raise InputError(
            "A release of rows promises k = 2 or more, and the common schema asks for k = 1 only: "
            "state a larger k (--k)."
        )
    quoted = [_quote(name) for name in dict.fromkeys(columns)]
    of = f", l = {l} OF ({', '.join(map(_quote, sensitive))})" if l > 1 else ""
    condition = f" WHERE {where}" if where else ""
    return (
        f"SELECT {', '.join([*quoted, f'COUNT(*) AS {COUNTED}'])} FROM {_quote(chosen)}{condition} "  # noqa: S608
        f"GROUP BY {', '.join(quoted)} GUARANTEE k = {commons.floor if k is None else k}{of}"
    )


def _quote(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def plan_release(commons: CommonSchema, made: CellPlan) -> CellPlan:
    """A question made ready for a release: whose rows are shown, with demands in every record.

    Raises:
        UnsupportedQueryError: it is none of which rows could be released.
    """
    from sqlglot import exp

    plan = made.plan
    tables = {source.name for source in plan.scope.tables.values()}
    bare = all(isinstance(key.expression, exp.Column) for key in plan.request.keys)
    clauses = ("where", "limit", "offset")
    if (
        len(tables) != 1
        or len(plan.scope.tables) != 1
        or not bare
        or not plan.request.keys
        or len(plan.chain.levels) > 1
        or any(a.states != (-1,) for a in plan.aggregates)
        or any(plan.final.args.get(clause) is not None for clause in clauses)
    ):
        raise UnsupportedQueryError(
            "Cells release rows of one table: name its columns, and a condition of WHERE.",
            text=plan.statement.text,
            start=0,
        )
    shown = commons.tables[tables.pop()]
    if not set(made.names) <= set(shown.arrow.names):
        raise UnsupportedQueryError(
            "Name the columns of a release as the common schema writes them.",
            text=plan.statement.text,
            start=0,
        )
    if not set(made.names) & set(shown.schema.quasi):
        raise UnsupportedQueryError(
            "A release shows at least one column by which people can be found (role 'quasi').",
            text=plan.statement.text,
            start=0,
        )
    if plan.request.guarantees[0][0] < 2:  # a class of one is a row as it is
        raise UnsupportedQueryError(
            "A release of rows promises k = 2 or more, and k = 1 is stated: give a larger k (--k).",
            text=plan.statement.text,
            start=0,
        )
    layout = replace(made.layout, keys=(*made.layout.keys, _DEMAND, _DEMAND))
    return replace(made, layout=layout, shown=shown)


def sent_demands(made: CellPlan, records: Records) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The k and l that rows were sent with."""
    decoded = made.layout.decode(records, (), ())
    first = len(made.layout.keys) - 2
    k, l = (decoded[f"g{first + i}"].to_numpy() for i in (0, 1))  # noqa: E741
    return np.maximum(k, records["k"]), np.maximum(l, records["l"])


def release_rows(made: CellPlan, found: Records) -> tuple[pa.Table, dict[str, Any]]:
    """Divide rows into classes, pass them through the door, and say what was kept.

    Where nothing can be kept no row leaves, and nobody but the asker learns of it. Whom nothing can
    serve is taken out before anything is made: the asker learns not even that somebody was.
    """
    from halfmask.anonymize.run import anonymize
    from halfmask.models.requirements import leave_out_unmet, with_demanded_models

    names = made.names
    document = {"format": "halfmask.release/1", "method": made.terms.release}
    try:
        promises = _promises(made)
        table = _pool_rows(made, found)
        table, _ = leave_out_unmet(table, with_demanded_models(table, promises), len(table), "")
        release = anonymize(
            table,
            *promises,
            method=made.terms.release,
            # Nothing by chance: done twice, by two cells, it gives the same.
            seed=0,
            on_infeasible="suppress",
        )
    except (PrivacyError, InputError):
        # Why is not told: it would hang on what people hold.
        nothing = pa.table({name: pa.array([], pa.string()) for name in names})
        told = {"rows": {"published": 0}, "verdicts": [], "columns": [], "notes": [NOBODY]}
        return nothing, document | told
    rows = sort_rows(release.to_arrow().select(names))
    whole = release.to_dict()
    return rows, document | {
        "rows": {"published": rows.num_rows},
        "verdicts": [{key: one[key] for key in _VERDICT} for one in whole["verdicts"]],
        "columns": [
            {key: one[key] for key in _COLUMN} for one in whole["columns"] if one["name"] in names
        ],
        "notes": [],
    }


def sort_rows(rows: pa.Table) -> pa.Table:
    """Rows in the order of what they show: any other could tell what they showed before."""
    return rows.sort_by([(name, "ascending") for name in rows.column_names])


def join_rows(tables: Sequence[pa.Table]) -> pa.Table:
    """The releases of several groups of cells as one; classes only grow by that."""
    # A release without rows has no types, by which those of the others would become texts.
    tables = [table for table in tables if table.num_rows] or tables
    whole = []
    for table in tables:
        differs = [
            field.name
            for field in table.schema
            if any(other.schema.field(field.name).type != field.type for other in tables)
        ]
        for name in differs:
            at = table.column_names.index(name)
            table = table.set_column(at, name, table[name].cast(pa.string()))
        whole.append(table)
    return sort_rows(pa.concat_tables(whole))


def release_record(
    made: CellPlan, rows: pa.Table, documents: Sequence[Mapping[str, Any]]
) -> FileRecord:
    """What the file of a release says of itself, as that of every release of a table.

    What the asker promises is counted again on the joined rows: a cell that divided them may be
    broken. Of people's own demands the documents of the cells tell.

    Raises:
        PrivacyError: no row leaves, or the rows do not keep what was asked for.
    """
    from halfmask.metrics.risk.reidentification import reidentification
    from halfmask.models.check import check
    from halfmask.release.document import risk_figures, versions
    from halfmask.release.record import FileRecord, count_groups, released_schema
    from halfmask.table.table import Table

    assert made.shown is not None  # noqa: S101 - the caller looked
    documents = [one for one in documents if one["verdicts"]]
    if not rows.num_rows or not documents:
        raise PrivacyError(NOBODY)
    declared = made.shown.schema
    changes = [_column_change(name, declared.columns[name].role, documents) for name in made.names]
    origin = Table(made.shown.arrow.empty_table().select(made.names), declared)
    kinds = dict(zip(origin.arrow.column_names, origin.arrow.schema.types, strict=True))
    schema = released_schema(origin.schema, changes, kinds)
    promises = _promises(made)
    broken = [one for one in check(Table(rows, schema), *promises) if not one.holds]
    if broken:
        raise PrivacyError(
            f"The rows that cells sent do not keep {broken[0].model}: a cell that divided them is "
            "broken; nothing was written."
        )
    _, sizes = count_groups(rows, schema.quasi)
    facts = {
        "made_with": f"halfmask {versions()['halfmask']}",
        "method": made.terms.release,
        "rows": rows.num_rows,
        **risk_figures(reidentification(sizes, sizes)),
    }
    record = FileRecord.of(schema, promises, changes, facts)
    stated = [m["model"] for m in record.facts["promises"]]
    own = [
        {"model": model["model"]}
        for model in documents[0]["verdicts"]
        if model["model"] not in stated
        and all(any(m["model"] == model["model"] for m in one["verdicts"]) for one in documents)
    ]
    return replace(record, facts={**record.facts, "promises": [*record.facts["promises"], *own]})


def _column_change(name: str, role: str, documents: Sequence[Mapping[str, Any]]) -> ColumnChange:
    """What was done to a column, by any group of cells."""
    from halfmask.release.document import AS_IT_WAS, ColumnChange

    done = [c["action"] for one in documents for c in one["columns"] if c["name"] == name]
    action = next((one for one in done if one != AS_IT_WAS), AS_IT_WAS)
    return ColumnChange(name, role, action, published=True)


def _pool_rows(made: CellPlan, found: Records) -> Table:
    """Everybody's row and demands, as a table that the last cell holds for a moment."""
    from halfmask.engines.read import read
    from halfmask.table.schema import Schema

    assert made.shown is not None  # noqa: S101 - the caller looked
    layout = made.layout
    # One order, however cells merged: the same rows give the same release.
    found = found[np.argsort(found["key"], kind="stable")]
    decoded = layout.decode(found, (), ())
    columns = {name: decoded[f"g{i}"] for i, name in enumerate(made.names)}
    k, l = sent_demands(made, found)  # noqa: E741
    columns |= {_K: pa.array(k), _L: pa.array(l)}
    rows = pa.table(columns).take(pa.array(np.repeat(np.arange(len(found)), layout.people(found))))
    declared = made.shown.schema.columns
    policy: Mapping[str, str] = {"k": _K, "l": _L} if made.diverse else {"k": _K}
    schema = Schema({name: declared[name] for name in made.names}, policy=policy)
    return read(rows if made.diverse else rows.drop_columns([_L]), schema)


def _promises(made: CellPlan) -> list[Any]:
    """What the asker promises everybody, beside what people demand for themselves."""
    from halfmask.models import KAnonymity, LDiversity

    k, l = made.plan.request.guarantees[0]  # noqa: E741
    return [KAnonymity(k), *(LDiversity(l, name) for name in made.diverse if l > 1)]
