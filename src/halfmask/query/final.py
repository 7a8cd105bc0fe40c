"""The asker's columns as a query over the published rows: select list, HAVING, ORDER BY, LIMIT."""

from __future__ import annotations

from typing import TYPE_CHECKING

from halfmask.query.planning.refusals import fail
from halfmask.query.total.conversions import MOST_CHARACTERS

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.query.planning.planned import PlannedKey


class Final:
    """Rewrites what speaks of rows to what speaks of published rows (k0..., a0..., level)."""

    def __init__(self, text: str, select: exp.Select, found: list[exp.Expr]) -> None:
        self.text, self.select, self.found = text, select, found

    def query(
        self, keys: list[tuple[str, exp.Expr]], planned: list[PlannedKey]
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
                name = self._unqualified(item)
            while name.lower() in (n.lower() for n in (*names, "level", "guarantee")):
                name += "_"
            names.append(name)
            node = self._over_published(item.unalias(), keys, planned, bare=True)
            final = final.select(exp.alias_(_tried(node), name, quoted=True), copy=False)
        final = final.select(exp.column("level"), exp.column("hm_row"), copy=False)
        having = self.select.args.get("having")
        if having is not None:
            condition = self._over_published(_unaliased(having.this, aliases), keys, planned)
            final = final.where(_tried(condition), copy=False)
        order = self.select.args.get("order")
        parts = []
        for part in order.expressions if order is not None else []:
            part = part.copy()
            part.set("this", _tried(self._ordered(part.this, aliases, keys, planned)))
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

    def _unqualified(self, item: exp.Expr) -> str:
        from sqlglot import exp

        item = item.copy()
        for column in item.find_all(exp.Column):
            column.set("table", None)
            column.this.args["quoted"] = False
        return item.sql(dialect="duckdb")

    def _ordered(
        self,
        node: exp.Expr,
        aliases: dict[str, exp.Expr],
        keys: list[tuple[str, exp.Expr]],
        planned: list[PlannedKey],
    ) -> exp.Expr:
        from sqlglot import exp

        if isinstance(node, exp.Literal) and not node.is_string:
            items = self.select.expressions
            if not node.name.isdigit() or not 1 <= int(node.name) <= len(items):
                fail(self.text, node, "there is no such column in the select list.")
            node = items[int(node.name) - 1].unalias()
        return self._over_published(_unaliased(node, aliases), keys, planned, bare=True)

    def _over_published(
        self,
        node: exp.Expr,
        keys: list[tuple[str, exp.Expr]],
        planned: list[PlannedKey],
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


def _tried(node: exp.Expr) -> exp.Expr:
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


def _unaliased(node: exp.Expr, aliases: dict[str, exp.Expr]) -> exp.Expr:
    from sqlglot import exp

    def replaced(part: exp.Expr) -> exp.Expr:
        if isinstance(part, exp.Column) and not part.table and part.name.lower() in aliases:
            return aliases[part.name.lower()].copy()
        return part

    return node.copy().transform(replaced)
