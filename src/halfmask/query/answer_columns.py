"""The asker's columns as a query over the published rows: select list, HAVING, ORDER BY, LIMIT.

Which figures of a published row may be shown: the others are null there.

A conditional figure (``query.planning.aggregates``) is shown where every part that its conditions
split the row into reaches the k and l of the row. A part that is empty here but too small in
another row counts as too small here as well: else the rows in which the figure is shown would tell
where the few people of that part are.

A sum, an average or a variance is shown where nobody makes up too much of it, if the controller
asks for that.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from halfmask.query.aggregate import places
from halfmask.query.total_form.conversions import MOST_CHARACTERS, NUMBERS
from halfmask.query.total_form.rows import TotalRows
from halfmask.query.vocabulary import fail
from halfmask.release.candidate import LargestShares

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    import pyarrow as pa
    from numpy.typing import NDArray
    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.query.groups import Groups
    from halfmask.query.planning.aggregates import PlannedAggregate
    from halfmask.query.planning.guarantee import GuaranteePlan
    from halfmask.query.planning.plan import PlannedKey
    from halfmask.query.semantics import PublishedRows

    Rule = Mapping[str, float]


class AnswerColumns:
    """Rewrites what speaks of rows to what speaks of published rows (k0..., a0..., level)."""

    def __init__(self, text: str, select: exp.Select, found: list[exp.Expr]) -> None:
        self.text, self.select, self.found = text, select, found

    def query(
        self, keys: list[tuple[str, exp.Expr]], planned: Sequence[PlannedKey]
    ) -> tuple[exp.Select, list[str]]:
        """The asker's columns as a query over the published rows (k0..., a0..., level)."""
        from sqlglot import exp

        names: list[str] = []
        final = exp.select().from_("published")
        aliases: dict[str, exp.Expr] = {}
        for item in self.select.expressions:
            if isinstance(item, exp.Alias):
                aliases.setdefault(item.alias.lower(), item.this)
        for item in self.select.expressions:
            name = item.alias or (
                item.name
                if isinstance(item, exp.Column)
                else item.sql(dialect="duckdb").replace('"', "")
            )
            if isinstance(item, (exp.Column,)) is False and not item.alias:
                name = self._bare_text(item)
            while name.lower() in (n.lower() for n in (*names, "level", "guarantee")):
                name += "_"
            names.append(name)
            node = self._over_published(item.unalias(), keys, planned, bare=True)
            final = final.select(exp.alias_(_try(node), name, quoted=True), copy=False)
        final = final.select(exp.column("level"), exp.column("hm_row"), copy=False)
        having = self.select.args.get("having")
        if having is not None:
            condition = self._over_published(_expand_aliases(having.this, aliases), keys, planned)
            final = final.where(_try(condition), copy=False)
        order = self.select.args.get("order")
        parts = []
        for part in order.expressions if order is not None else []:
            part = part.copy()
            part.set("this", _try(self._order_term(part.this, aliases, keys, planned)))
            parts.append(part)
        # Ties, and rows without ORDER BY, stand in an order that is known from the rows alone.
        final = final.order_by(*parts, exp.column("hm_order"), copy=False)
        for name in ("limit", "offset"):
            clause = self.select.args.get(name)
            if clause is not None:
                number = clause.args.get("expression")
                if not isinstance(number, exp.Literal) or number.is_string:
                    fail(self.text, clause, f"{name.upper()} takes a number.")
                final.set(name, clause.copy())
        return final, names

    def _bare_text(self, item: exp.Expr) -> str:
        from sqlglot import exp

        item = item.copy()
        for column in item.find_all(exp.Column):
            column.set("table", None)
            column.this.args["quoted"] = False
        return item.sql(dialect="duckdb")

    def _order_term(
        self,
        node: exp.Expr,
        aliases: dict[str, exp.Expr],
        keys: list[tuple[str, exp.Expr]],
        planned: Sequence[PlannedKey],
    ) -> exp.Expr:
        from sqlglot import exp

        if isinstance(node, exp.Literal) and not node.is_string:
            items = self.select.expressions
            if not node.name.isdigit() or not 1 <= int(node.name) <= len(items):
                fail(self.text, node, "there is no such column in the select list.")
            node = items[int(node.name) - 1].unalias()
        return self._over_published(_expand_aliases(node, aliases), keys, planned, bare=True)

    def _over_published(
        self,
        node: exp.Expr,
        keys: list[tuple[str, exp.Expr]],
        planned: Sequence[PlannedKey],
        *,
        bare: bool = False,
    ) -> exp.Expr:
        """Rewrite an expression over rows to one over published rows."""
        from sqlglot import exp

        def rewritten(part: exp.Expr, *, whole: bool) -> exp.Expr:
            for i, call in enumerate(self.found):
                if part == call:
                    return exp.column(f"a{i}")
            for i, (name, expression) in enumerate(keys):
                if part == expression:
                    if planned[i].generalized and not (bare and whole):
                        fail(
                            self.text,
                            part,
                            f"{name} is generalized in this query: it can be "
                            "shown and ordered by, but not computed with.",
                        )
                    return exp.column(f"k{i}")
            if isinstance(part, exp.Column):
                fail(self.text, part, f"{part.name} is neither grouped by nor aggregated.")
            part = part.copy() if whole else part
            for name, value in list(part.args.items()):
                if isinstance(value, exp.Expr):
                    part.set(name, rewritten(value.copy(), whole=False))
                elif isinstance(value, list):
                    part.set(
                        name,
                        [
                            rewritten(v.copy(), whole=False) if isinstance(v, exp.Expr) else v
                            for v in value
                        ],
                    )
            return part

        return rewritten(node, whole=True)


def _try(node: exp.Expr) -> exp.Expr:
    """What is computed of published figures: null where it fails, and cut where a text grows.

    A failure would come before earlier answers are looked at, and tell about figures that these
    forbid.
    """
    from sqlglot import exp

    if isinstance(node, exp.Column | exp.Literal):
        return node
    top = exp.paren(node)
    for division in reversed(list(top.find_all(exp.Div, exp.IntDiv, exp.Mod))):
        below = exp.Nullif(this=division.expression.copy(), expression=exp.Literal.number(0))
        division.set("expression", below)
    for text in reversed(list(top.find_all(exp.Replace, exp.Concat, exp.DPipe))):
        cut = exp.Left(this=exp.null(), expression=exp.Literal.number(MOST_CHARACTERS))
        text.replace(cut)
        cut.set("this", text)
    return exp.Anonymous(this="TRY", expressions=[top.this])


def _expand_aliases(node: exp.Expr, aliases: dict[str, exp.Expr]) -> exp.Expr:
    from sqlglot import exp

    def replaced(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and not part.table and part.name.lower() in aliases:
            return aliases[part.name.lower()].copy()
        return part

    return node.copy().transform(replaced)


@dataclass(frozen=True, slots=True, eq=False)
class Figures:
    """The published rows without what must not be shown, and what decided it.

    Attributes:
        rows: per published row its figures, null where they are hidden.
        parts: the people of each part that conditional figures split rows into.
        shares: what those bring who bring most to each sum.
    """

    rows: pa.Table
    parts: pa.Table | None = None
    shares: LargestShares | None = None


def hide_figures(
    plan: GuaranteePlan,
    groups: Groups,
    published: PublishedRows,
    rows: pa.Table,
    engine: Engine,
    dominance: Sequence[Rule] = (),
) -> Figures:
    """The figures of published rows, of which some are hidden."""
    if not len(published):
        return Figures(rows)
    parts = None
    if plan.conditional:
        parts = _parts(plan, groups, published, engine)
        rows = _without(rows, plan.conditional, ~_large_enough(plan, published, parts))
    shares = _shares(plan, groups, published, engine, dominance)
    if shares is not None:
        for i, name in enumerate(shares.figures):
            rows = _without(rows, [name], shares.dominated_places(i))
    return Figures(rows, parts, shares)


def _shares(
    plan: GuaranteePlan,
    groups: Groups,
    published: PublishedRows,
    engine: Engine,
    rules: Sequence[Rule],
) -> LargestShares | None:
    """What those bring who bring most to each sum, average and variance of each row."""
    summed = {
        f"a{i}": a
        for i, a in enumerate(plan.aggregates)
        if a.kind.startswith(("sum", "avg", "var", "stddev"))
    }
    if not rules or not summed:
        return None
    amounts = [(name, amount) for name, a in summed.items() for amount in _amounts(plan, a)]
    most = max(int(rule.get("n", 2)) for rule in rules)
    table = places(plan, groups, published)
    found = engine.shares(plan.request, table, tuple(x for _, x in amounts), most).sort_by("place")
    return LargestShares(tuple(name for name, _ in amounts), tuple(rules), most, found)


def _amounts(plan: GuaranteePlan, aggregate: PlannedAggregate) -> list[exp.Expr]:
    """What a person brings: the argument, the same without constants, and each number in it.

    With SUM(salary + 1000000) all would bring about the same, and the sum of salaries is known.
    """
    from sqlglot import exp

    argument = plan.request.states[aggregate.states[0]].expression
    amount = exp.cast(argument, "int") if aggregate.of == "boolean" else argument
    if isinstance(argument.unnest(), exp.Column) or aggregate.of == "boolean":
        return [amount]
    total = TotalRows(plan.scope)
    known = exp.paren(argument.copy()).is_(exp.null()).not_()
    numbers = [
        exp.Case().when(known.copy(), total.number(column).node)
        for column in dict.fromkeys(argument.find_all(exp.Column))
        if total.of(column).kind in NUMBERS
    ]
    return list(dict.fromkeys([amount, _without_constants(argument), *numbers]))


def _without_constants(argument: exp.Expr) -> exp.Expr:
    """The argument in which nothing is added that does not stand in the row."""
    from sqlglot import exp

    def bare(node: exp.Expr) -> exp.Expr:
        if isinstance(node, exp.Add | exp.Sub):
            sides = [side for side in (node.this, node.expression) if side.find(exp.Column)]
            return bare(sides[0].copy()) if len(sides) == 1 else node
        if isinstance(node, exp.Case):
            for branch in node.args["ifs"]:
                if not branch.args["true"].find(exp.Column):
                    branch.set("true", exp.Literal.number(0))
            other = node.args.get("default")
            if other is not None and not other.find(exp.Column):
                node.set("default", exp.Literal.number(0))
        return node

    return argument.copy().transform(bare)


def _parts(
    plan: GuaranteePlan, groups: Groups, published: PublishedRows, engine: Engine
) -> pa.Table:
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
        "met": pa.array(_number_rows(found.select([f"c{i}" for i in range(len(plan.splits))]))),
        "people": found["d0" if counted else "rows"],
    }
    for i in range(len(plan.split_values)):
        columns[f"l{i}"] = found[f"d{i + len(counted)}"]
    return pa.table(columns)


def _number_rows(conditions: pa.Table) -> NDArray[np.int64]:
    """The same number for rows that meet the same conditions."""
    import pyarrow as pa

    numbers = np.zeros(conditions.num_rows, dtype=np.int64)
    if conditions.num_columns:
        names = conditions.column_names
        at = pa.array(np.arange(conditions.num_rows))
        grouped = conditions.append_column("at", at).group_by(names, use_threads=False)
        found = grouped.aggregate([("at", "list")])
        lists = pa.concat_arrays(found["at_list"].chunks)
        lengths = np.diff(lists.offsets.to_numpy())
        numbers[lists.flatten().to_numpy()] = np.repeat(np.arange(len(lists)), lengths)
    return numbers


def _large_enough(
    plan: GuaranteePlan, published: PublishedRows, parts: pa.Table
) -> NDArray[np.bool_]:
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
