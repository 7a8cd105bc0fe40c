"""How a question under differential privacy is answered: groups, figures, and the engine's part.

Everything is decided from the query, the schema and column types; no row is read here. A question
speaks of one table, and of nothing that identifies people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.dp.budget import bounds_of, declared_domains
from halfmask.dp.domain import Bins, Domain, Values, declared_column, domain_of, require_fitting
from halfmask.dp.personal import BY_PERSON, keyed_demands
from halfmask.engines.levels import BoundedTally
from halfmask.engines.request import kind_of
from halfmask.errors import ParameterError, SchemaError
from halfmask.query.final import Final
from halfmask.query.planning.aggregates import Aggregates
from halfmask.query.planning.elements import PlannedKey
from halfmask.query.planning.scope import (
    QueryScope,
    grouping_of,
    refuse_hidden,
    scope_of,
    source_of,
)
from halfmask.query.planning.stated import type_faults
from halfmask.query.private import parts
from halfmask.query.private.parts import bin_number
from halfmask.query.total.rows import TotalRows
from halfmask.query.vocabulary import fail
from halfmask.table.demands import sources, with_policies
from halfmask.table.policies import Policies, read_policies
from halfmask.table.schema import Schema

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.dp.views import Question
    from halfmask.engines.request import Engine
    from halfmask.query.collect import AskedTable, Catalog
    from halfmask.query.parse import NoiseStatement
    from halfmask.query.planning.scope import QueryScope


def private_scope(statement: NoiseStatement, catalog: Catalog) -> tuple[QueryScope, exp.Select]:
    """Resolve the names of a question.

    Raises:
        QueryError: with line, column and a caret.
    """
    from sqlglot import exp

    text, select = statement.text, statement.select.copy()
    for join in select.args.get("joins") or []:
        fail(
            text,
            join,
            "a join is refused under EPSILON: one person's row could reach many others. Join "
            "beforehand, into one table with a person column.",
        )
    for node in select.find_all(exp.Select, exp.Subquery, exp.CTE):
        if node is not select:
            fail(text, node, "subqueries are refused under EPSILON: ask one table.")
    _quantiles(text, select)
    scope, select = scope_of(text, select, catalog)
    refuse_hidden(scope, select)
    return scope, select


def _quantiles(text: str, select: exp.Select) -> None:
    """Write every way to ask for a quantile as a median with a share beside it."""
    from sqlglot import exp

    names = ("PercentileCont", "PercentileDisc", "Quantile", "ApproxQuantile")
    kinds = tuple(getattr(exp, name) for name in names if hasattr(exp, name))
    for node in list(select.find_all(*kinds)):
        within = node.parent if isinstance(node.parent, exp.WithinGroup) else None
        if within is not None:
            ordered = within.expression.expressions[0]
            value, share, falls = ordered.this, node.this, bool(ordered.args.get("desc"))
        else:
            share = node.args.get("quantile") or node.args.get("expression")
            value, falls = node.this, False
        if not isinstance(share, exp.Literal) or share.is_string or not float(share.name) <= 1:
            fail(text, node, "a quantile needs one share from 0 to 1, such as 0.9.")
        at = 1 - float(share.name) if falls else float(share.name)
        whole = within or node
        median = exp.Median(this=value.copy(), share=exp.Literal.number(str(at)))
        if whole is select:
            return
        whole.replace(median)


MOST_GROUPS = 1 << 20


@dataclass(frozen=True, eq=False)
class NoiseKey:
    """A grouping column.

    Attributes:
        name: what the answer calls it.
        domain: its public values; None where groups must show themselves.
        kind: the type of its values.
    """

    name: str
    domain: Domain | None
    kind: pa.DataType


@dataclass(frozen=True, eq=False)
class NoisePlan:
    """Everything that is decided before rows are read.

    Attributes:
        scope: the table and its names.
        keys: what is grouped by.
        questions: one per aggregate of the query, in the order of their first use.
        tally: what the engine adds up; its parts are those of ``labels``.
        labels: per part, what its vectors are called.
        trees: per column of a quantile, the interval that a value falls into.
        final: the select list, HAVING, ORDER BY and LIMIT over noisy rows.
        names: the columns of the answer.
        bare: per column of the answer, the aggregate that it shows as it is; None for others.
        sizes: per column that the query reads, how many public values it has.
        parts: per column that WHERE compares with listed values, the values that it keeps.
    """

    scope: QueryScope
    keys: tuple[NoiseKey, ...]
    questions: tuple[Question, ...]
    tally: BoundedTally
    labels: tuple[str, ...]
    trees: Mapping[str, exp.Expr]
    final: exp.Select
    names: tuple[str, ...]
    bare: tuple[int | None, ...]
    sizes: Mapping[str, int]
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def public(self) -> bool:
        """Whether all groups are known beforehand."""
        return all(key.domain is not None for key in self.keys)


def plan_private(
    statement: NoiseStatement,
    catalog: Catalog,
    engine: Engine,
    *,
    domains: Mapping[str, object],
    rows_per_person: int,
    policies: object = None,
) -> NoisePlan:
    """Decide how a question is answered.

    Raises:
        QueryError: with line, column and a caret, for what noise cannot answer.
    """
    scope, select = private_scope(statement, catalog)
    source = scope.tables[scope.main] = _with_policies(scope.tables[scope.main], policies)
    declared = {**(declared_domains(source.schema) if source.schema else {}), **domains}
    source = _as_declared(scope, select, declared, engine)
    keys = grouping_of(scope.text, select)
    calls = Aggregates(scope.text, scope, select).calls()
    if not calls:
        fail(scope.text, select, "nothing is aggregated: ask for COUNT, SUM, AVG ...")
    total = TotalRows(scope)
    asked = parts.NoiseAggregates(scope, declared, total)
    for call in calls:
        asked.add(call)
    rows = total.source(source_of(select))
    expressions = [total(expression) for _, expression in keys]
    types = _types(engine, rows, expressions, asked)
    grouped = [
        _key(scope, name, expression, declared, kind)
        for (name, expression), kind in zip(keys, types, strict=True)
    ]
    _require_few(grouped)
    planned = [PlannedKey(key.name, isinstance(key.domain, Bins)) for key in grouped]
    final, names = Final(scope.text, select, calls).query(keys, planned)
    return NoisePlan(
        scope=scope,
        keys=tuple(grouped),
        questions=asked.questions(),
        tally=BoundedTally(
            rows,
            tuple(
                bin_number(expression, key.domain) if isinstance(key.domain, Bins) else expression
                for expression, key in zip(expressions, grouped, strict=True)
            ),
            asked.parts(),
            scope.person,
            rows_per_person,
        ),
        labels=asked.labels(),
        trees=asked.trees(),
        final=final,
        names=tuple(names),
        bare=tuple(_place(item.unalias(), calls) for item in select.expressions),
        sizes=_sizes(scope, select, declared),
        parts=_parts(select, declared),
    )


def _as_declared(
    scope: QueryScope, select: exp.Select, declared: Mapping[str, object], engine: Engine
) -> AskedTable:
    """The table that is asked, its columns of the types that their public domains have.

    The type that a file's column was read as depends on its rows: one ``unknown`` among numbers
    would change what is released, or have the question refused. A database states its types.
    """
    from sqlglot import exp

    source = scope.tables[scope.main]
    touched = dict.fromkeys(column.name for column in select.find_all(exp.Column))
    known = {name: domain for name in touched if (domain := _domain(name, declared)) is not None}
    keyed = source.table is not None and _is_keyed(source.schema)
    if source.table is None or not (known or keyed):
        return source
    require_fitting(known)
    rows = source.table.arrow
    if keyed:
        rows = rows.append_column(BY_PERSON, keyed_demands(source.table))
    for name, domain in known.items():
        place = rows.column_names.index(name)
        rows = rows.set_column(place, name, declared_column(source.table, name, domain))
    text = repr(
        (source.name, keyed, sorted(known.items()))
    )  # one name for one question, for EXPLAIN
    name = f"hm_declared_{sha256(text.encode()).hexdigest()[:12]}"
    engine.add(name, rows)
    found = replace(source, name=name, columns=engine.columns(name) or {})
    scope.tables[scope.main] = found
    for table in select.find_all(exp.Table):
        table.set("this", exp.to_identifier(name, quoted=True))
    return found


def _with_policies(source: AskedTable, policies: object) -> AskedTable:
    """The table whose people also demand what ``policies`` say."""
    found = read_policies(policies)
    if found is None or not found.stated:
        return source
    if source.table is not None:
        table = with_policies(source.table, found)
        return replace(source, table=table, schema=table.schema)
    faults = found.unknown(list(source.columns)) + type_faults(found, source.columns)
    if faults:
        raise SchemaError(*faults)
    schema = source.schema or Schema()
    return replace(source, schema=replace(schema, policies=(*schema.policies, found)))


def _is_keyed(schema: Schema | None) -> bool:
    """Whether policies keyed by person state an epsilon."""
    own = () if schema is None else sources(schema)
    return any(one.people is not None and Policies(people=one.people).states("epsilon")
               for one in own)  # fmt: skip


def _domain(name: str, declared: Mapping[str, object]) -> Domain | None:
    """The public domain of a column; of bounds alone, that of one interval."""
    stated = declared.get(name)
    if isinstance(stated, Mapping) and {"low", "high"} <= set(stated):
        stated = {"bins": 1, **stated}
    try:
        return None if stated is None else domain_of(name, stated)
    except (SchemaError, ParameterError):  # said where the column is used
        return None


def _place(item: exp.Expr, calls: list[exp.Expr]) -> int | None:
    return calls.index(item) if item in calls else None


def _parts(select: exp.Select, declared: Mapping[str, object]) -> dict[str, tuple[str, ...]]:
    """Which people WHERE can let through, per column whose public values are listed.

    Read off ``column = value`` and ``column IN (values)`` that must hold together, with listed
    values only. Values that some engine could take for the same are the same part.
    """
    from sqlglot import exp

    where = select.args.get("where")
    found: dict[str, tuple[str, ...]] = {}
    terms = [] if where is None else [where.this]
    if terms and isinstance(terms[0], exp.And):
        terms = list(terms[0].flatten())
    for term in terms:
        bare = term.unnest()
        if isinstance(bare, exp.EQ):
            column, values = bare.this, [bare.expression]
        elif isinstance(bare, exp.In):
            column, values = bare.this, bare.expressions
        else:
            continue
        listed = declared.get(column.name) if isinstance(column, exp.Column) else None
        literal = bool(values) and all(isinstance(value, exp.Literal) for value in values)
        if not literal or not isinstance(listed, list | tuple) or column.name in found:
            continue
        named = {_same(v.name if v.is_string else float(v.name)) for v in values}
        if named <= {_same(value) for value in listed}:
            found[column.name] = tuple(sorted(named))
    return found


def _same(value: object) -> str:
    """One text for values that an engine may hold equal: numbers, case, blanks at the end."""
    if isinstance(value, int | float) and not isinstance(value, bool):
        return repr(float(value))
    return str(value).strip().casefold()


def _types(
    engine: Engine, rows: exp.Select, keys: list[exp.Expr], asked: parts.NoiseAggregates
) -> list[pa.DataType]:
    """Ask the engine for types without a row; refuses sums of what is no number."""
    from sqlglot import exp

    wanted = [*keys, *asked.arguments()]
    probe = rows.copy()
    for i, expression in enumerate(wanted or [exp.Literal.number(1)]):
        probe = probe.select(exp.alias_(expression.copy(), f"x{i}", quoted=True))
    found = [field.type for field in engine.run(probe.limit(0)).schema]
    asked.require_numbers(found[len(keys) : len(wanted)])
    return found[: len(keys)]


def _key(
    scope: QueryScope,
    name: str,
    expression: exp.Expr,
    declared: Mapping[str, object],
    kind: pa.DataType,
) -> NoiseKey:
    """A grouping column with its public domain, where one is declared."""
    from sqlglot import exp

    column = expression.name if isinstance(expression, exp.Column) else name
    stated = declared.get(column, declared.get(name))
    if stated is None:
        return NoiseKey(name, None, kind)
    try:
        domain = domain_of(column, stated)
        bare = isinstance(expression, exp.Column)
        if bare and scope.tables[scope.main].table is not None and isinstance(domain, Values):
            return NoiseKey(name, domain, pa.array(domain.values).type)
        _require_fit(domain, kind)
        return NoiseKey(name, domain, kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        fail(
            scope.text,
            expression,
            f"the domain of {column} does not fit its type {kind}: list values of that type, or "
            "give bounds and bins for numbers only.",
        )
    except (SchemaError, ParameterError):
        fail(
            scope.text,
            expression,
            f"{column} has bounds but no bins, so it cannot be grouped by: declare "
            "domain = { low = ..., high = ..., bins = ... }, or a list of values.",
        )


def _require_fit(domain: Domain, kind: pa.DataType) -> None:
    """Refuse a domain that the column's type cannot hold, before anything is spent."""
    if isinstance(domain, Bins):
        if kind_of(kind) not in ("integer", "decimal", "float"):
            raise pa.ArrowInvalid
        return
    domain.decode(np.arange(len(domain)), np.random.default_rng(0), kind)


def _require_few(keys: list[NoiseKey]) -> None:
    from math import prod

    groups = prod(len(key.domain) for key in keys if key.domain is not None)
    if groups > MOST_GROUPS:
        raise ParameterError("groups", groups, f"at most {MOST_GROUPS:,}; group by less")


def _sizes(scope: QueryScope, select: exp.Select, declared: Mapping[str, object]) -> dict[str, int]:
    """How many public values each column has that the query reads; 2 where nobody says."""
    from sqlglot import exp

    found: dict[str, int] = {}
    for column in select.find_all(exp.Column):
        if not column.table or scope.is_hidden(column):
            continue
        found.setdefault(column.name, _size(column.name, declared.get(column.name)))
    return found


def _size(name: str, stated: object) -> int:
    if stated is None:
        return 2
    try:
        return max(2, len(domain_of(name, stated)))
    except (SchemaError, ParameterError):
        low, high = bounds_of(stated) or (0.0, 1.0)
        return max(2, int(high - low) + 1)
