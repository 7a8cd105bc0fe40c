"""``hm.query``: aggregate SQL under guarantees, in which every person keeps an own one."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from halfmask.errors import ParameterError, QueryError

if TYPE_CHECKING:
    from halfmask.dp.accountant import Accountant
    from halfmask.dp.budget import Number
    from halfmask.dp.ledger import BudgetLedger
    from halfmask.engines.request import Engine
    from halfmask.query.catalog import Catalog
    from halfmask.query.history.ledger import Ledger
    from halfmask.query.planning.planned import Plan
    from halfmask.query.policies import Policies
    from halfmask.release.answer import Answer
    from halfmask.release.private import PrivateRelease

THE_TABLE = "the_table"
TIME_LIMIT = 10.0


def query(
    table: object,
    sql: str,
    policies: object = None,
    engine: Any = None,
    *,
    schema: object = None,
    ledger: Ledger | BudgetLedger | Accountant | None = None,
    time_limit: float | None = TIME_LIMIT,
    recheck: Literal["groups", "rows"] = "groups",
    epsilon: Number | Literal["personal"] | None = None,
    **private: Any,
) -> Answer | PrivateRelease:
    """Answer a query so that every published row keeps its level's guarantee and every person's.

    With ``WITH EPSILON ...`` behind it, or ``epsilon``, the answer is under differential privacy.

    Args:
        table: a Table, a frame or a file, several of them by name, a ``postgres://`` address or a
            ``.duckdb`` file (the query names its table), a Spark session or frame, or an engine.
        sql: SQL with a GUARANTEE clause, or the papers' GB / OP / MD notation.
        policies: people's demands: None (the schema's policy columns), a Policies, a mapping, a
            TOML, CSV or Parquet file, or rows keyed by person.
        engine: ``"duckdb"``, ``"spark"`` or ``"reference"`` for tables in memory; None: DuckDB.
        schema: what the columns are, where ``table`` does not say; by table name for several.
        ledger: what was answered before; refuses what together with it would isolate people.
        time_limit: seconds for the exact ``complete`` semantics; then the best found is taken and
            its proven gap stated. None: until it is proven best.
        recheck: what the final check recounts from: the engine's groups, or the rows once more.
        epsilon: the privacy budget to spend, where the query does not say ``WITH EPSILON``;
            ``"personal"``: everybody's own, from the schema's policy.
        private: under differential privacy ``delta``, ``domains``, ``rows_per_person``, ``share``,
            ``confidence``, and for a controller ``demands="ignore"`` and ``insist``; ``ledger`` is
            then a ``BudgetLedger`` or an ``Accountant``. See ``docs/dp.md``.

    Returns:
        The answer: the selected columns, ``level`` and ``guarantee`` per row, who was withheld;
        under differential privacy noisy figures, each with its interval, and the receipt.

    Raises:
        QueryError: the query cannot be answered; says where and why.
        LedgerError: an earlier answer forbids this one.

    Example:
        >>> import halfmask as hm
        >>> import pyarrow as pa
        >>> people = pa.table({"city": ["Bourges"] * 6, "salary": [1, 2, 3, 4, 5, 6]})
        >>> answer = hm.query(people, "SELECT city, AVG(salary) AS mean FROM people GROUP BY city "
        ...                           "GUARANTEE k = 5, l = 3")
        >>> answer.to_arrow().to_pylist()
        [{'city': 'Bourges', 'mean': 3.5, 'level': 0, 'guarantee': 'k>=5, l>=3'}]
    """
    from halfmask.query.private.clause import is_private

    with Session(table, engine=engine, schema=schema) as session:
        if epsilon is not None or is_private(sql):
            from halfmask.query.private.answer import answer_privately

            if policies is not None:
                told = "none with noise: [policy] epsilon of the schema says what people allow"
                raise ParameterError("policies", "(given)", told)
            return answer_privately(session, sql, epsilon=epsilon, ledger=ledger, **private)
        if private:
            raise ParameterError(sorted(private)[0], "(given)", "epsilon too: it is for noise only")
        work = session.prepare(sql, policies)
        kept = cast("Ledger | None", ledger)
        return session.answer(work, ledger=kept, time_limit=time_limit, recheck=recheck)


@dataclass(frozen=True, eq=False)
class Work:
    """A query on its way: what was asked, how it is planned, and with which policies."""

    plan: Plan
    policies: Policies


class Session:
    """Tables and the engine that reads them, for one query or several."""

    def __init__(self, table: object, *, engine: Any = None, schema: object = None) -> None:
        self.engine, self.catalog, self._own = _open(table, engine, schema)

    def __enter__(self) -> Session:
        return self

    def __exit__(self, *_: object) -> None:
        if self._own:
            self.engine.close()

    def prepare(self, sql: str, policies: object = None) -> Work:
        """Parse and plan a query and join the policies to it."""
        from halfmask.query.parsing.parse import parse
        from halfmask.query.planning.demands import with_demands
        from halfmask.query.planning.plan import plan
        from halfmask.query.policies import policies_of

        if not isinstance(sql, str) or not sql.strip():
            raise QueryError("there is no query.")
        planned = plan(parse(sql), self.catalog, self.engine)
        declared = planned.scope.tables[planned.scope.main].schema
        stated = policies_of(policies, declared.policy if declared else {})
        return Work(with_demands(planned, stated, self.engine), stated)

    def answer(
        self,
        work: Work,
        *,
        ledger: Ledger | None = None,
        time_limit: float | None = TIME_LIMIT,
        recheck: Literal["groups", "rows"] = "groups",
    ) -> Answer:
        """Run the stages: collect, filter, aggregate, check, seal."""
        from halfmask.models.exact import require_number
        from halfmask.query.aggregate import aggregate
        from halfmask.query.collect import collect
        from halfmask.query.filter import choose, publish
        from halfmask.query.history.told import told
        from halfmask.query.sealing import candidate_of
        from halfmask.release.seal_answer import seal_answer

        if time_limit is not None:
            require_number("time_limit", time_limit, 0, open_low=True)
        if recheck not in ("groups", "rows"):
            raise ParameterError("recheck", recheck, "'groups' or 'rows'")
        plan = work.plan
        if plan.statement.explain:
            raise QueryError(
                "EXPLAIN asks for the plan only: use --explain or hm.explain.",
                text=plan.statement.text,
                start=0,
                length=7,
            )
        groups = collect(plan, self.engine)
        choice = choose(groups, plan.semantics, time_limit=time_limit)
        published = publish(groups, choice)
        rows = aggregate(plan, groups, published, self.engine)
        candidate = candidate_of(
            plan, groups, choice, published, rows, self.engine, second_look=recheck == "rows"
        )
        answer = seal_answer(candidate)
        if ledger is None:
            return answer
        new = told(plan, groups, published, answer.withheld)
        warned = ledger.check(self, work, new)
        ledger.enter(self, plan, new)
        return seal_answer(replace(candidate, notes=(*candidate.notes, *warned)))


def _open(table: object, engine: Any, schema: object) -> tuple[Engine, Catalog, bool]:
    from halfmask.engines import open as engines

    if hasattr(engine, "collect"):
        return engine, _listed(engine, table, schema), False
    if hasattr(table, "collect") and hasattr(table, "dialect"):
        given = cast("Engine", table)
        return given, _asked(given, schema), False
    if engines.is_address(table):
        opened = engines.open_address(str(table))
        return opened, _asked(opened, schema), True
    if engines.is_spark(table):
        from halfmask.engines.spark import Spark

        spark = Spark(table)
        return spark, _asked(spark, schema), True
    return _in_memory(table, engine, schema)


def _in_memory(table: object, engine: str | None, schema: object) -> tuple[Engine, Catalog, bool]:
    from halfmask.engines.open import open_tables
    from halfmask.query.catalog import Catalog, Source
    from halfmask.table.read import read

    several = isinstance(table, Mapping)
    given = table if isinstance(table, Mapping) else {THE_TABLE: table}
    tables = {
        name: read(
            t,
            schema.get(name)
            if several and isinstance(schema, Mapping)  # type: ignore[arg-type]
            else schema,
        )
        for name, t in given.items()
    }
    opened = open_tables({name: t.arrow for name, t in tables.items()}, engine)
    sources = {}
    for name, read_table in tables.items():
        columns = opened.columns(name) or {}
        person = read_table.schema.person
        repeats = None
        if person is not None:
            repeats = len(read_table.encode(person).values) != len(read_table) or (
                read_table.arrow[person].null_count > 0
            )
        sources[name] = Source(name, columns, read_table.schema, read_table, repeats)
    return opened, Catalog(sources, None if several else THE_TABLE), True


def _asked(engine: Engine, schema: object) -> Catalog:
    """A catalog that asks the engine for tables as queries name them."""
    from halfmask.query.catalog import Catalog, Source

    def lookup(name: str) -> Source | None:
        columns = engine.columns(name)
        return None if columns is None else Source(name, columns, _schema_of(schema, name))

    return Catalog({}, None, lookup)


def _listed(engine: Engine, table: object, schema: object) -> Catalog:
    """A given engine, and the name of the table in it."""
    catalog = _asked(engine, schema)
    if isinstance(table, str):
        catalog.find(table)
    return catalog


def _schema_of(schema: object, name: str) -> Any:
    from halfmask.table.read import as_schema

    if isinstance(schema, Mapping) and "columns" not in schema and name in schema:
        schema = schema[name]
    return None if schema is None else as_schema(schema)
