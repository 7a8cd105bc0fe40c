"""Puts the row expressions of one query into a form that cannot fail, or refuses them."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa
from sqlglot import exp

from halfmask.engines.request import kind_of
from halfmask.query.planning.refusals import fail
from halfmask.query.safe import logic, numbers, texts
from halfmask.query.safe.typed import MOST_WHOLE, NUMBERS, Typed, double, ready

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from halfmask.query.planning.scope import Scope


class SafeRows:
    """What may be computed from the rows of a query's table.

    Args:
        scope: the table and its names.
    """

    def __init__(self, scope: Scope) -> None:
        self.scope = scope
        self._columns = scope.tables[scope.main].columns

    def __call__(self, node: exp.Expr) -> exp.Expr:
        """The safe form of an expression of any kind.

        Raises:
            UnsupportedQueryError: it could fail on some row.
        """
        return self.of(node).node

    def of(self, node: exp.Expr) -> Typed:
        """An expression with what is known of its values."""
        rule = _RULES.get(type(node))
        if rule is None:
            self.refuse(node)
        return rule(self, node)

    def boolean(self, node: exp.Expr) -> Typed:
        """A condition."""
        return self.want(node, ("boolean",), "a condition")

    def number(self, node: exp.Expr) -> Typed:
        """A number that is ready for arithmetic."""
        return ready(self.want(node, NUMBERS, "a number"))

    def want(self, node: exp.Expr, kinds: Sequence[str], words: str) -> Typed:
        """An expression of one of these kinds; nothing is converted into them."""
        found = self.of(node)
        if found.kind not in (*kinds, "null"):
            self._mixed(node, f"{words} is needed here, and this is of the type {found.kind}")
        return found

    def alike(
        self, node: exp.Expr, parts: Sequence[exp.Expr], *, chosen: bool = False
    ) -> tuple[str, list[Typed]]:
        """Expressions that are compared, or of which one is chosen, in one kind."""
        found = [self.of(part) for part in parts]
        if chosen:  # arithmetic may follow
            found = [ready(one) if one.kind in NUMBERS else one for one in found]
        kinds = {one.kind for one in found} - {"null"}
        if len(kinds) <= 1 and not kinds & {"decimal", "other"}:
            return next(iter(kinds), "null"), found
        if kinds <= set(NUMBERS):
            return "float", [replace(one, node=double(one.node)) for one in found]
        for kind, written in (("date", ("text",)), ("timestamp", ("text", "date"))):
            others = [one for one in found if one.kind not in (kind, "null")]
            if kind in kinds and all(one.constant and one.kind in written for one in others):
                return kind, [
                    replace(one, node=exp.cast(one.node, kind)) if one.kind in written else one
                    for one in found
                ]
        return self._mixed(node, f"values of the types {' and '.join(sorted(kinds))} meet here")

    def refuse(self, node: exp.Expr) -> NoReturn:
        """Refuse what has no value for some rows."""
        fail(
            self.scope.text,
            node,
            f"{node.key.upper()} is refused under EPSILON: it fails on some values, and a failure "
            "would tell about a row. Prepare the column beforehand.",
        )

    def _mixed(self, node: exp.Expr, what: str) -> NoReturn:
        fail(
            self.scope.text,
            node,
            f"{what}: a conversion fails on some values, and a failure would tell about a row. "
            "Write values of one type, or prepare the column beforehand.",
        )


def _column(safe: SafeRows, node: exp.Expr) -> Typed:
    data_type = safe._columns[node.name]  # noqa: SLF001 - a rule of this class
    kind: str = kind_of(data_type)
    if kind == "temporal":
        moment = "timestamp" if pa.types.is_timestamp(data_type) else "other"
        kind = "date" if pa.types.is_date(data_type) else moment
    small = pa.types.is_integer(data_type) and data_type.bit_width <= 32
    return Typed(node.copy(), kind, most=1 << 32 if small else MOST_WHOLE, raw=True)


def _plain(kind: str) -> Callable[[SafeRows, exp.Expr], Typed]:
    return lambda _, node: Typed(node.copy(), kind, constant=True)


def _inside(safe: SafeRows, node: exp.Expr) -> Typed:
    return safe.of(node.this)


# fmt: off
_GROUPS: tuple[tuple[Callable[[SafeRows, exp.Expr], Typed], str], ...] = (
    (_column, "Column"), (_inside, "Paren"), (_plain("boolean"), "Boolean"),
    (_plain("null"), "Null"), (numbers.literal, "Literal"), (texts.constant, "Cast TryCast"),
    (numbers.arithmetic, "Add Sub Mul"), (numbers.negative, "Neg"),
    (numbers.division, "Div IntDiv Mod"), (numbers.of_one_number, "Abs Sign Floor Ceil Round"),
    (logic.compare, "EQ NEQ GT GTE LT LTE NullSafeEQ NullSafeNEQ Between In"),
    (logic.choice, "Coalesce Nullif Greatest Least"), (logic.case, "Case If"),
    (logic.logic, "And Or Not"), (logic.test_of, "Is"),
    (texts.of_text, "Like ILike Upper Lower Trim Length Left Right Substring Replace StrPosition"),
    (texts.joined, "Concat DPipe"), (texts.truncated, "DateTrunc TimestampTrunc"),
    (texts.part_of_date, "Extract Year Month Day Quarter Week WeekOfYear DayOfWeek DayOfYear"),
    (texts.part_of_date, "DayOfMonth"), (texts.day, "Date TsOrDsToDate"),
    (texts.apart, "DateDiff TimestampDiff"),
)
# fmt: on
_RULES = {getattr(exp, name): rule for rule, names in _GROUPS for name in names.split()}
