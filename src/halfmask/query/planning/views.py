"""Views that may be asked: those whose rows come out of their tables without being computed.

What a view computes, the engine computes for the rows that a question leaves, before people are
left out: a CAST in it that fails for one row finds this person's salary in 13 questions. So a view
may take columns as they are, compare, choose and count them; a view of anything else is refused by
its definition and the types of its columns alone, before a row is read.
"""

from __future__ import annotations

import datetime as dt
import re
from typing import TYPE_CHECKING

from sqlglot import exp, parse_one
from sqlglot.errors import SqlglotError

from halfmask.errors import QueryError

if TYPE_CHECKING:
    from collections.abc import Mapping

    from halfmask.engines.request import Engine, RowOrigin

# Values of one family are compared, and chosen from, without a cast that could fail.
_FAMILIES = {
    "whole": ("tinyint", "smallint", "integer", "int", "bigint"),
    "float": ("float", "real", "double", "double precision"),
    "text": ("varchar", "text", "character varying", "string"),
    "date": ("date",),
    "timestamp": ("timestamp", "timestamp without time zone"),
    "boolean": ("boolean",),
}
_FAMILY = {name: family for family, names in _FAMILIES.items() for name in names}
_CLAUSES = {"expressions", "from", "from_", "joins", "where", "group", "distinct"}
_COMPARED = (exp.EQ, exp.NEQ, exp.GT, exp.GTE, exp.LT, exp.LTE)
_LOGIC = (exp.And, exp.Or, exp.Not)
_MOST = 2**63  # of a written number
MOST_DEEP = 20  # views of views


class _ComputedError(Exception):
    """A view computes; its text says what."""


def require_plain_rows(engine: Engine, table: str, *, called: str | None = None) -> None:
    """Refuse a table or view whose rows are computed when they are asked.

    Args:
        engine: has the tables.
        table: what it calls the table.
        called: what the asker calls it, if anything else.

    Raises:
        QueryError: says what is computed, and what to do.
    """
    found = engine.row_origin(table)
    if found is None:
        return  # rows in memory
    try:
        _look(engine, found, "", 0)
    except _ComputedError as computed:
        name = called or table
        raise QueryError(
            f"{name} computes {computed} when it is asked, which may fail for one row, and a "
            "failure would tell about that row: make a table of it (CREATE TABLE ... AS ...) and "
            "ask that. A view may take columns as they are, compare and count them, and join on "
            "equal columns of one type."
        ) from None


def _look(engine: Engine, found: RowOrigin, home: str, depth: int) -> None:
    if found.computes:
        raise _ComputedError(found.computes)
    if found.definition is None:
        return
    if depth == MOST_DEEP:
        raise _ComputedError("views of views")
    # A view names its tables as PostgreSQL sees them from here, as others do from where it stands.
    _Definition(engine, found.definition, "" if engine.name == "postgres" else home, depth).check()


class _Definition:
    """The definition of one view."""

    def __init__(self, engine: Engine, definition: str, home: str, depth: int) -> None:
        try:
            parsed = parse_one(definition, read=engine.dialect)
        except SqlglotError:
            raise _ComputedError("what is not read here") from None
        query = parsed.expression if isinstance(parsed, exp.Create) else parsed
        nested = [n for n in query.find_all(exp.Select, exp.SetOperation) if n is not query]
        if not isinstance(query, exp.Select) or nested:
            raise _ComputedError("queries in a query")
        self.engine, self.query, self.home, self.depth = engine, query, home, depth
        self.tables: dict[str, Mapping[str, str]] = {}

    def check(self) -> None:
        """Refuse whatever may fail for a row."""
        used = {name for name, value in self.query.args.items() if value}
        distinct = self.query.args.get("distinct")
        if used - _CLAUSES or (distinct is not None and distinct.args.get("on")):
            raise _ComputedError(", ".join(sorted(used - _CLAUSES)).upper() or "DISTINCT ON")
        for table in self.query.find_all(exp.Table):
            self._table(table)
        for join in self.query.find_all(exp.Join):
            self._join(join)
        where, group = self.query.args.get("where"), self.query.args.get("group")
        if where is not None:
            self._want(where.this, "boolean")
        if group is not None:
            if any(value for name, value in group.args.items() if name != "expressions"):
                raise _ComputedError("several groupings")
            for key in group.expressions:
                self._family(key)
        for item in self.query.expressions:
            self._item(item.unalias())

    def _table(self, table: exp.Table) -> None:
        alias = table.args.get("alias")
        odd = {name for name, value in table.args.items() if value}
        if odd - {"this", "db", "alias", "joins"} or (alias and alias.args.get("columns")):
            raise _ComputedError("more than the rows of its tables")
        name, types = table.name, {}
        # Parquet has types of its own: nothing is read into them.
        if not isinstance(table.this, exp.ReadParquet) and not name.endswith(".parquet"):
            known = isinstance(table.this, exp.Identifier)
            homes = [table.text("db")] if table.text("db") else [self.home, ""]
            behind = ((self.engine.row_origin(name, home), home) for home in homes if known)
            found, home = next((one for one in behind if one[0] is not None), (None, ""))
            if found is None:
                raise _ComputedError("the rows of something that is no table")
            _look(self.engine, found, home, self.depth + 1)
            types = {column.casefold(): kind for column, kind in found.types.items()}
        self.tables[(table.alias or name).casefold()] = types

    def _join(self, join: exp.Join) -> None:
        if join.args.get("method"):
            raise _ComputedError("a join that names no columns")
        if join.args.get("on") is not None:
            self._want(join.args["on"], "boolean")
        for name in join.args.get("using") or []:
            kinds = {types.get(name.name.casefold()) for types in self.tables.values()} - {None}
            if len({_FAMILY.get(kind or "") for kind in kinds} | {None}) != 2:
                raise _ComputedError(f"a join on {name.name}, of several types")

    def _item(self, item: exp.Expr) -> None:
        if item.is_star:
            star = item.find(exp.Star)
            if star is None or any(star.args.values()):
                raise _ComputedError("* with exceptions")
        elif isinstance(item, exp.Anonymous) and item.name.upper() == "COUNT_STAR":
            pass  # how DuckDB writes COUNT(*)
        elif isinstance(item, exp.Count):
            counted = item.this.expressions if isinstance(item.this, exp.Distinct) else [item.this]
            for one in counted:
                if not isinstance(one, exp.Star):
                    self._family(one)
        elif isinstance(item, exp.Min | exp.Max):
            if item.expressions:
                raise _ComputedError(item.key.upper())
            self._family(item.this)
        elif isinstance(item, exp.Sum | exp.Avg):
            self._want(item.this, "whole")
            if self.engine.name == "spark":  # which keeps to 64 bits
                raise _ComputedError(item.key.upper())
        else:
            self._family(item)

    def _want(self, node: exp.Expr, *families: str) -> None:
        if self._family(node) not in (*families, "null"):
            raise _ComputedError(_words(node))

    def _family(self, node: exp.Expr) -> str:
        """What kind of values an expression has, none of which it fails to give."""
        if isinstance(node, exp.Paren):
            return self._family(node.this)
        if isinstance(node, exp.Column):
            return self._column(node)
        if isinstance(node, exp.Literal):
            return _literal(node)
        if isinstance(node, exp.Null | exp.Boolean):
            return "null" if isinstance(node, exp.Null) else "boolean"
        if isinstance(node, exp.Cast) and not isinstance(node, exp.TryCast):
            return self._cast(node)
        if isinstance(node, _COMPARED):
            self._alike(node, [node.this, node.expression])
            return "boolean"
        if isinstance(node, exp.Between):
            self._alike(node, [node.this, node.args["low"], node.args["high"]])
            return "boolean"
        if isinstance(node, exp.In) and node.expressions:
            self._alike(node, [node.this, *node.expressions])
            return "boolean"
        if isinstance(node, _LOGIC):
            for part in (node.this, node.args.get("expression")):
                if part is not None:
                    self._want(part, "boolean")
            return "boolean"
        if isinstance(node, exp.Is) and isinstance(node.expression, exp.Null | exp.Boolean):
            self._family(node.this)
            return "boolean"
        if isinstance(node, exp.Coalesce):
            return self._alike(node, [node.this, *node.expressions])
        if isinstance(node, exp.Case):
            return self._case(node)
        raise _ComputedError(_words(node))

    def _column(self, node: exp.Column) -> str:
        named = [self.tables.get(node.table.casefold(), {})] if node.table else self.tables.values()
        kinds = {types.get(node.name.casefold(), "") for types in named} - {""}
        kind = kinds.pop() if len(kinds) == 1 else ""
        return _FAMILY.get(kind, f"other {kind}")

    def _cast(self, node: exp.Cast) -> str:
        """Casts that every value survives; PostgreSQL writes those that it adds."""
        to = node.to
        inner = node.this.unnest()
        target = next((f for f, names in _TARGETS.items() if to.is_type(*names)), None)
        if target is None or to.expressions or node.args.get("format"):
            raise _ComputedError(_words(node))
        own = self._family(inner)
        written = isinstance(inner, exp.Literal)
        if own in (target, "null") and target != "float" and target != "whole":
            return target
        if target == "float" and own in ("float", "whole"):
            return target
        if target == "text" and own == "whole":
            return target
        if written and target in _MOMENT and _is_moment(inner, target):
            return target
        if written and target == "whole" and own == "whole":
            return target
        raise _ComputedError(_words(node))

    def _alike(self, node: exp.Expr, parts: list[exp.Expr]) -> str:
        found = [(part.unnest(), self._family(part)) for part in parts]
        families = {family for _, family in found} - {"null"}
        moments = families & set(_MOMENT)
        if len(moments) == 1:
            (kind,) = moments
            if all(_is_moment(part, kind) for part, family in found if family == "text"):
                families -= {"text"}
        if families == {"whole", "float"}:
            wide = [p for p, f in found if f == "float" and isinstance(p, exp.Literal)]
            families = {"float"} if not wide else families
        if len(families) > 1 or any(f.startswith("other") for f in families):
            raise _ComputedError(_words(node))
        return next(iter(families), "null")

    def _case(self, node: exp.Case) -> str:
        tests = [branch.this for branch in node.args["ifs"]]
        if node.this is not None:
            self._alike(node, [node.this, *tests])
        else:
            for test in tests:
                self._want(test, "boolean")
        values = [branch.args["true"] for branch in node.args["ifs"]]
        other = node.args.get("default")
        return self._alike(node, [*values, *([] if other is None else [other])])


_TARGETS = {
    "text": ("text", "varchar"),
    "float": ("double",),
    "whole": ("bigint",),
    "date": ("date",),
    "timestamp": ("timestamp", "timestampntz"),
    "boolean": ("boolean",),
}
_DAY = r"\d{4}-\d\d-\d\d"
_MOMENT = {"date": _DAY, "timestamp": _DAY + r"( \d\d:\d\d(:\d\d(\.\d{1,6})?)?)?"}


def _literal(node: exp.Literal) -> str:
    if node.is_string:
        return "text"
    if node.name.isdigit():
        return "whole" if int(node.name) < _MOST else "other number"
    return "float"


def _is_moment(node: exp.Expr, kind: str) -> bool:
    """Whether a written text is a date or a moment, as every engine reads it."""
    if not isinstance(node, exp.Literal) or not node.is_string:
        return False
    try:
        dt.datetime.fromisoformat(node.name)
    except ValueError:
        return False
    return re.fullmatch(_MOMENT[kind], node.name) is not None


def _words(node: exp.Expr) -> str:
    """What a node is called; nothing that is written in it."""
    if isinstance(node, exp.Anonymous):
        return node.name.upper()
    if isinstance(node, (*_COMPARED, exp.Between, exp.In)):
        return "a comparison of different types"
    return {"column": "a column of a type of its own"}.get(node.key, node.key.upper())
