"""``hm.query``: aggregate SQL under guarantees, in which every person keeps an own one.

At the end the door gets the rows as asked for, and all that is needed to check them.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Literal, cast

from halfmask.engines.request import GroupMeasure
from halfmask.errors import ParameterError, QueryError, SchemaError
from halfmask.query.catalog import open_catalog
from halfmask.query.semantics import EFFORT
from halfmask.release.candidate import AnswerCandidate, LargestShares, Promise
from halfmask.release.release import REPEATED
from halfmask.table.schema import FLOOR

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa

    from halfmask.dp.accountant import Accountant
    from halfmask.dp.budget import Number
    from halfmask.dp.ledger import BudgetLedger
    from halfmask.engines.request import Engine
    from halfmask.query.answer_columns import Figures
    from halfmask.query.groups import Groups
    from halfmask.query.history.ledger import Ledger
    from halfmask.query.parse import Statement
    from halfmask.query.planning.guarantee import GuaranteePlan
    from halfmask.query.semantics import LevelChoice, PublishedRows
    from halfmask.release.doors.answer import DemandWatch
    from halfmask.release.release import Answer, PrivateRelease
    from halfmask.table.policies import Policies
    from halfmask.table.schema import QueryRules


CONDITIONAL = (
    "A figure that depends on a condition is empty where those who meet it, or those who do not, "
    "are fewer people, or have fewer values, than the row's guarantee asks for."
)
DOMINATED = "A sum, average or variance is empty where few people make up too much of it."


def candidate_of(
    plan: GuaranteePlan,
    groups: Groups,
    choice: LevelChoice,
    published: PublishedRows,
    figures: Figures,
    engine: Engine,
    *,
    second_look: bool,
) -> AnswerCandidate:
    """Apply the select list, HAVING, ORDER BY and LIMIT to the published rows; gather the rest."""
    import pyarrow as pa

    from halfmask.engines.duckdb.engine import finish
    from halfmask.query.aggregate import MEASURED

    rows, shares = figures.rows, figures.shares
    return AnswerCandidate(
        rows=finish(rows, plan.final),
        groups=groups.states.append_column("place", pa.array(published.ids)),
        places=published.level,
        request=plan.request,
        promises=promises(plan),
        steps=level_steps(plan),
        first=plan.chain.first,
        refused=(groups.refused, groups.largest_refused),
        without_policy=groups.without_policy,
        semantics=plan.semantics,
        gap=choice.gap,
        engine=engine.name,
        sql=plan.statement.text,
        notes=_notes(plan, published, shares),
        below=_below(plan, groups, published, engine) if plan.repeat else None,
        counted=_second_look(plan, groups, published, engine) if second_look else None,
        figures=rows.select(
            list(dict.fromkeys(["hm_row", *plan.conditional, *(shares.figures if shares else ())]))
        ),
        conditional=len(plan.conditional),
        parts=figures.parts,
        shares=shares,
        measured=rows[MEASURED] if MEASURED in rows.column_names else None,
    )


def promises(plan: GuaranteePlan) -> tuple[Promise, ...]:
    """What every published row must reach."""
    found = []
    for r in plan.requirements:
        thresholds = tuple(r.threshold(k, l) for k, l in plan.request.guarantees)
        if r.test is None:
            column = "rows" if r.state is None else f"s{r.state}"
            found.append(Promise(r.what, r.column, thresholds, column))
        else:
            found.append(
                Promise(
                    r.what,
                    r.column,
                    thresholds,
                    f"t{r.test}_n",
                    f"t{r.test}_values",
                    plan.request.tests[r.test].cap,
                )
            )
    return tuple(found)


def level_steps(plan: GuaranteePlan) -> tuple[str, ...]:
    """Per level, what was generalized to get there."""
    return tuple("as grouped" if x.step is None else str(x.step) for x in plan.chain.levels)


def _notes(
    plan: GuaranteePlan, published: PublishedRows, shares: LargestShares | None
) -> tuple[str, ...]:
    notes = list(plan.notes)
    if not len(published):
        notes.append("No group meets its guarantee: nothing could be published.")
    if plan.conditional:
        notes.append(CONDITIONAL)
    if shares is not None:
        notes.append(DOMINATED)
    if plan.repeat:
        notes.append(REPEATED)
    return tuple(notes)


def _below(plan: GuaranteePlan, groups: Groups, published: PublishedRows, engine: Engine) -> int:
    """How many people have rows below the guarantee, each once however many groups there are."""
    import numpy as np

    from halfmask.query.aggregate import places

    left = published.ids < 0
    person = plan.request.person
    if person is None or not left.any():
        return 0
    one = replace(published, ids=np.where(left, 0, -1))
    found = engine.measure(
        plan.request, places(plan, groups, one), (GroupMeasure("distinct", person),)
    )
    return int(found["m0"][0].as_py())


def _second_look(
    plan: GuaranteePlan, groups: Groups, published: PublishedRows, engine: Engine
) -> pa.Table | None:
    """Count every promise once more, from the rows."""
    from sqlglot import exp

    from halfmask.query.aggregate import places

    if not len(published):
        return None
    measures = []
    for r in plan.requirements:
        if r.test is not None:
            measures.append(GroupMeasure("distinct", plan.request.tests[r.test].expression))
        else:
            counted = (
                exp.Literal.number(1)
                if r.state is None
                else (plan.request.states[r.state].expression)
            )
            measures.append(GroupMeasure("rows", counted))
    if plan.request.demands is not None:
        measures += [GroupMeasure("max", d) for d in plan.request.demands]
    return engine.measure(plan.request, places(plan, groups, published), tuple(measures))


def query(
    table: object,
    sql: str,
    policies: object = None,
    engine: Any = None,
    *,
    schema: object = None,
    ledger: Ledger | BudgetLedger | Accountant | None = None,
    effort: float | None = EFFORT,
    recheck: Literal["groups", "rows"] = "groups",
    epsilon: Number | Literal["personal"] | None = None,
    floor: int | None = None,
    tables: Sequence[str] | None = None,
    **private: Any,
) -> Answer | PrivateRelease:
    """Answer a query so that every published row keeps its level's guarantee and every person's.

    With ``WITH EPSILON ...`` behind it, or ``epsilon``, the answer is under differential privacy.

    Args:
        table: a Table (asked where its rows are), a frame or a file, several of them by name, a
            ``postgres://`` address or a ``.duckdb`` file (the query names its table), a Spark
            session or frame, or an engine.
        sql: SQL with a GUARANTEE clause, or the papers' GB / OP / MD notation.
        policies: more demands of people, beside those of the schema, of which the strictest hold: a
            Policies, a mapping, a TOML, CSV or Parquet file, or rows keyed by person.
        engine: ``"duckdb"``, ``"spark"`` or ``"reference"`` for tables in memory; None: DuckDB.
        schema: what the columns are, where ``table`` does not say; by table name for several.
        ledger: what was answered before; refuses what together with it would isolate people.
        effort: how much counted work the exact ``complete`` semantics may take, where 1 is usual;
            then the best found is taken and its proven gap stated. None: until it is proven best.
            No clock decides: the same question has the same answer.
        recheck: what the final check recounts from: the engine's groups, or the rows once more.
        epsilon: the privacy budget to spend, where the query does not say ``WITH EPSILON``;
            ``"personal"``: everybody's own, from the schema's policy.
        floor: the least k of an answer, where the schema's ``[query]`` states none (or less);
            guarantees below it are raised. Unless stated, 3.
        tables: the tables of a database that may be asked, where the schema does not list them.
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
    from halfmask.query.parse import parse

    with Session(table, engine=engine, schema=schema, floor=floor, tables=tables) as session:
        statement = parse(sql, noisy=epsilon is not None)
        if statement.noisy:
            from halfmask.query.private.answer import NoiseTerms, answer_with_noise

            terms = NoiseTerms(epsilon=epsilon, policies=policies, **private)
            return answer_with_noise(session, statement, terms, ledger)
        if "time_limit" in private:
            raise ParameterError(
                "time_limit", "(given)", "no answer to depend on a clock: give 'effort' instead"
            )
        if "demands" in private:
            told = "nothing with a GUARANTEE: everybody's demand is kept; it is for noise"
            raise ParameterError("demands", str(private["demands"]), told)
        if private:
            raise ParameterError(sorted(private)[0], "(given)", "epsilon too: it is for noise only")
        work = session.prepare(statement, policies)
        if ledger is not None and not hasattr(ledger, "note"):
            told = "an hm.Ledger of answers; budgets are for WITH EPSILON"
            raise ParameterError("ledger", type(ledger).__name__, told)
        kept = cast("Ledger | None", ledger)
        return session.answer(work, ledger=kept, effort=effort, recheck=recheck)


MOST_P = 1e12  # whose own p is more, or no number, lets no sum leave


@dataclass(frozen=True, eq=False)
class PreparedQuery:
    """A query on its way.

    Attributes:
        plan: what was asked and how it is planned.
        policies: those that were given beside the tables' own.
        watch: what the door has counted to see for itself that demands are met.
    """

    plan: GuaranteePlan
    policies: Policies | None
    watch: DemandWatch | None = None


class Session:
    """Tables and the engine that reads them, for one query or several.

    Attributes:
        floor: the least k that an answer promises.
        dominance: the rules by which a sum is not shown that few people make up.
    """

    def __init__(
        self,
        table: object,
        *,
        engine: Any = None,
        schema: object = None,
        floor: int | None = None,
        tables: Sequence[str] | None = None,
    ) -> None:
        from halfmask.models.verdict import require_whole

        if floor is not None:
            require_whole("floor", floor, 1)
        self.engine, self.catalog, self._close = open_catalog(table, engine, schema, tables)
        rules = self.catalog.rules
        stated = [k for k in (floor, *(rule.k for rule in rules)) if k is not None]
        self.floor = max(stated, default=FLOOR)
        found = (self._dominance(rule, tables) for rule in rules if rule.dominance)
        self.dominance = tuple(rule for rule in found if rule)

    def __enter__(self) -> Session:
        return self

    def _dominance(self, rule: QueryRules, listed: Sequence[str] | None) -> Mapping[str, float]:
        """A rule in numbers: of people's own p the largest of the table, whatever is asked."""
        from sqlglot import exp

        from halfmask.engines.request import kind_of
        from halfmask.engines.sql import table_node
        from halfmask.query.total_form.conversions import bounded_numeric

        name = rule.own_p
        if name is None:
            return cast("Mapping[str, float]", rule.dominance)
        places = [n for n, one in self.catalog.declared.items() if one.query == rule]
        stated: list[float] = []
        for place in places or rule.tables or listed or ():
            found = self.catalog.find(place)
            kind = None if found is None or name not in found.columns else found.columns[name]
            if (
                found is None
                or kind is None
                or kind_of(kind) not in ("integer", "decimal", "float")
            ):
                continue
            column = exp.column(name, quoted=True)
            exact = kind_of(kind) == "decimal"  # PostgreSQL's may be beyond all doubles
            asked = exp.Max(this=bounded_numeric(column) if exact else exp.cast(column, "double"))
            rows = exp.Select().select(exp.alias_(asked, "p")).from_(table_node(found.name))
            stated += self.engine.run(rows)["p"].to_pylist()
            break
        else:
            raise SchemaError(
                f"[query] dominance: no column {name!r} of numbers is in the table; it holds "
                "people's own p in percent."
            )
        own = [MOST_P if not p <= MOST_P else max(p, 0.0) for p in stated if p is not None]
        return {"p": max(own)} if own else {}

    def __exit__(self, *_: object) -> None:
        self._close()

    def prepare(self, sql: str | Statement, policies: object = None) -> PreparedQuery:
        """Plan a query and join the policies to it."""
        from halfmask.query.parse import Statement, parse, raise_to_floor
        from halfmask.query.planning.demands import join_demands, require_known_people
        from halfmask.query.planning.guarantee import plan_guarantee
        from halfmask.release.doors.answer import watch_demands
        from halfmask.table.policies import read_policies

        statement = sql if isinstance(sql, Statement) else parse(sql)
        planned = plan_guarantee(raise_to_floor(statement, self.floor), self.catalog, self.engine)
        stated = read_policies(policies)
        require_known_people(stated, self.catalog, self.engine)
        planned = join_demands(planned, stated, self.engine)
        tables = {
            alias: (source.name, source.columns, source.schema)
            for alias, source in planned.scope.tables.items()
        }
        request, watch = watch_demands(
            planned.request,
            tables,
            stated,
            planned.queried,
            self.engine,
            repeat=planned.repeat,
            uncounted=tuple((c.table, c.name) for c in planned.uncounted),
        )
        return PreparedQuery(replace(planned, request=request), stated, watch)

    def answer(
        self,
        work: PreparedQuery,
        *,
        ledger: Ledger | None = None,
        effort: float | None = EFFORT,
        recheck: Literal["groups", "rows"] = "groups",
    ) -> Answer:
        """Run the stages: collect, filter, aggregate, check, seal."""
        from halfmask.models.verdict import require_number
        from halfmask.query.aggregate import aggregate
        from halfmask.query.answer_columns import hide_figures
        from halfmask.query.groups import collect
        from halfmask.query.history.support import support_of
        from halfmask.query.semantics import choose_levels, publish_groups
        from halfmask.release.seal import seal

        if effort is not None:
            require_number("effort", effort, 0, open_low=True)
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
        choice = choose_levels(groups, plan.semantics, effort=effort)
        published = publish_groups(groups, choice)
        rows = aggregate(plan, groups, published, self.engine)
        figures = hide_figures(plan, groups, published, rows, self.engine, self.dominance)
        candidate = candidate_of(
            plan,
            groups,
            choice,
            published,
            figures,
            self.engine,
            second_look=recheck == "rows",
        )
        candidate = replace(candidate, watch=work.watch)
        answer = seal(candidate)
        if ledger is None:
            return answer
        told = support_of(plan, groups, published, answer.withheld, plan.splits)
        warned = ledger.note(self, work, told)
        return seal(replace(candidate, notes=(*candidate.notes, *warned)))
