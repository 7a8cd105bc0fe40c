"""The plan of a query under differential privacy: groups, figures, and the engine's part.

Everything is decided from the query, the schema and column types; no row is read here. A query
speaks of one table, and of nothing that identifies people.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from hashlib import sha256
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from halfmask.dp.domain import (
    Bins,
    Domain,
    Values,
    bounds_of,
    declared_column,
    declared_domains,
    domain_of,
    require_fitting,
)
from halfmask.dp.personal import BY_PERSON, keyed_demands
from halfmask.engines.request import kind_of
from halfmask.engines.tallies import BoundedTally
from halfmask.errors import ParameterError, SchemaError
from halfmask.query.answer_columns import AnswerColumns
from halfmask.query.planning.aggregates import Aggregates
from halfmask.query.planning.demands import type_faults
from halfmask.query.planning.noise_aggregates import NoiseAggregates, bin_number
from halfmask.query.planning.plan import Plan, PlannedKey, resolve_query
from halfmask.query.total_form.rows import TotalRows
from halfmask.query.vocabulary import fail
from halfmask.table.demands import sources, with_policies
from halfmask.table.policies import Policies, read_policies
from halfmask.table.schema import Schema
from halfmask.table.weights import unweighted_notes

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.dp.views import Question
    from halfmask.engines.request import Engine
    from halfmask.query.catalog import AskedTable, Catalog
    from halfmask.query.parse import Statement
    from halfmask.query.planning.plan import ResolvedQuery
    from halfmask.query.planning.scope import QueryScope


MOST_GROUPS = 1 << 20


@dataclass(frozen=True, eq=False, kw_only=True)
class NoiseKey(PlannedKey):
    """A grouping column; an interval leaves as text.

    Attributes:
        domain: its public values; None where groups must show themselves.
        kind: the type of its values.
    """

    domain: Domain | None
    kind: pa.DataType


@dataclass(frozen=True, eq=False, kw_only=True)
class NoisePlan(Plan):
    """The plan of a query that is answered with noise.

    Attributes:
        questions: one per aggregate of the query, in the order of their first use.
        tally: what the engine adds up; its parts are those of ``labels``.
        labels: per part, what its vectors are called.
        trees: per column of a quantile, the interval that a value falls into.
        bare: per column of the answer, the aggregate that it shows as it is; None for others.
        sizes: per column that the query reads, how many public values it has.
        parts: per column that WHERE compares with listed values, the values that it keeps.
    """

    keys: tuple[NoiseKey, ...]
    questions: tuple[Question, ...]
    tally: BoundedTally
    labels: tuple[str, ...]
    trees: Mapping[str, exp.Expr]
    bare: tuple[int | None, ...]
    sizes: Mapping[str, int]
    parts: Mapping[str, tuple[str, ...]] = field(default_factory=dict)

    @property
    def public(self) -> bool:
        """Whether all groups are known beforehand."""
        return all(key.domain is not None for key in self.keys)


def plan_noise(
    statement: Statement,
    catalog: Catalog,
    engine: Engine,
    *,
    domains: Mapping[str, object],
    rows_per_person: int,
    policies: object = None,
) -> NoisePlan:
    """Decide how a query is answered with noise; reads column types, no rows.

    Raises:
        QueryError: with line, column and a caret, for what noise cannot answer.
    """
    query = resolve_query(statement, catalog, engine)
    text, scope, select = query.text, query.scope, query.select
    source = scope.tables[scope.main] = _with_policies(scope.tables[scope.main], policies)
    declared = {**(declared_domains(source.schema) if source.schema else {}), **domains}
    source = _as_declared(scope, select, declared, engine)
    query = replace(query, total=TotalRows(scope))  # of the types that are declared
    total, named = query.total, query.keys
    calls = Aggregates(text, scope, select).calls()
    if not calls:
        fail(text, select, "nothing is aggregated: ask for COUNT, SUM, AVG ...")
    asked = NoiseAggregates(scope, declared, total)
    for call in calls:
        asked.add(call)
    rows = query.rows
    expressions = [total(expression) for _, expression in named]
    types = _types(engine, rows, expressions, asked)
    keys = [
        _key(scope, name, expression, declared, kind)
        for (name, expression), kind in zip(named, types, strict=True)
    ]
    _require_few(keys)
    final, names = AnswerColumns(text, select, calls).query(named, keys)
    places = tuple(
        bin_number(expression, key.domain) if isinstance(key.domain, Bins) else expression
        for expression, key in zip(expressions, keys, strict=True)
    )
    queried = tuple(dict.fromkeys(column.name for column in query.columns))
    return NoisePlan(
        statement=statement,
        scope=scope,
        keys=tuple(keys),
        queried=queried,
        final=final,
        names=tuple(names),
        notes=(*statement.notes, *unweighted_notes(source.schema, queried)),
        questions=asked.questions(),
        tally=BoundedTally(rows, places, asked.parts(), scope.person, rows_per_person),
        labels=asked.labels(),
        trees=asked.trees(),
        bare=tuple(_place(item.unalias(), calls) for item in select.expressions),
        sizes=_sizes(query, declared),
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
    # Under OR or NOT a term keeps nobody out: only terms that must hold together count.
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
    engine: Engine, rows: exp.Select, keys: list[exp.Expr], asked: NoiseAggregates
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
        return NoiseKey(name=name, generalized=False, domain=None, kind=kind)
    try:
        domain = domain_of(column, stated)
        bare = isinstance(expression, exp.Column)
        if bare and scope.tables[scope.main].table is not None and isinstance(domain, Values):
            of_domain = pa.array(domain.values).type
            return NoiseKey(name=name, generalized=False, domain=domain, kind=of_domain)
        _require_fit(domain, kind)
        binned = isinstance(domain, Bins)
        return NoiseKey(name=name, generalized=binned, domain=domain, kind=kind)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        fail(
            scope.text,
            expression,
            f"the domain of {column} does not fit its type {kind}: list values of that type, or "
            "give bounds and bins for numbers only.",
        )
    except (SchemaError, ParameterError) as error:
        told = set(stated) if isinstance(stated, Mapping) else set()
        if not {"low", "high"} <= told or "bins" in told:
            fail(scope.text, expression, str(error))
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

    # A public group gets its noise whether or not anybody is in it: all of them are held.
    groups = prod(len(key.domain) for key in keys if key.domain is not None)
    if groups > MOST_GROUPS:
        raise ParameterError("groups", groups, f"at most {MOST_GROUPS:,}; group by less")


def _sizes(query: ResolvedQuery, declared: Mapping[str, object]) -> dict[str, int]:
    """How many public values each column has that the query reads; 2 where nobody says."""
    shown = [column.name for column in query.columns if not query.scope.is_hidden(column)]
    return {name: _size(name, declared.get(name)) for name in dict.fromkeys(shown)}


def _size(name: str, stated: object) -> int:
    if stated is None:
        return 2
    try:
        return max(2, len(domain_of(name, stated)))
    except (SchemaError, ParameterError):
        low, high = bounds_of(stated) or (0.0, 1.0)
        return max(2, int(high - low) + 1)
