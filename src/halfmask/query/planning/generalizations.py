"""The steps of a chain bound to the columns they generalize."""

from __future__ import annotations

from typing import TYPE_CHECKING, NoReturn

import pyarrow as pa

from halfmask.engines.request import Climb, Delete, Interval, Key, Kind, Rule
from halfmask.engines.sql import table_node as named
from halfmask.errors import HierarchyError, QueryError
from halfmask.query.clauses import fold_name
from halfmask.query.planning.elements import PlannedKey
from halfmask.table.hierarchies.builders import Auto
from halfmask.table.hierarchies.ladder import Mask, Ordered
from halfmask.table.hierarchy import TOP, from_levels
from halfmask.table.table import encode_column

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.engines.request import Engine
    from halfmask.query.clauses import Chain, Generalization
    from halfmask.query.collect import AskedTable, Catalog
    from halfmask.query.planning.scope import QueryScope
    from halfmask.table.hierarchy import Hierarchy, HierarchyBuilder


class Generalizations:
    """Walks the chain; ``notes`` says what changes nothing."""

    def __init__(self, text: str, scope: QueryScope, catalog: Catalog, engine: Engine) -> None:
        self.text, self.scope, self.catalog, self.engine = text, scope, catalog, engine
        self.notes: list[str] = []

    def bind(
        self, chain: Chain, keys: list[tuple[str, exp.Expr]], types: dict[str, Kind]
    ) -> tuple[list[PlannedKey], list[Key]]:
        """The keys as shown and as requested, with their rules per depth."""
        depth = [0] * len(keys)
        depths: list[list[int]] = [[] for _ in keys]
        rules: list[list[Rule]] = [[] for _ in keys]
        hierarchies: list[Hierarchy | None] = [None] * len(keys)
        for level in chain.levels:
            if level.step is not None:
                at = self._key_of(level.step, keys)
                kind = types[keys[at][1].sql()]
                rule, hierarchies[at] = self._rule(
                    level.step, keys[at], kind, rules[at], hierarchies[at]
                )
                if rules[at] and rules[at][-1] == rule and isinstance(rule, Interval):
                    self.notes.append(
                        f"{level.step} changes nothing: {keys[at][0]} has that width already."
                    )
                else:
                    rules[at].append(rule)
                    depth[at] += 1
            for i, d in enumerate(depth):
                depths[i].append(d)
        planned = [
            PlannedKey(name, bool(rules[i]), hierarchies[i]) for i, (name, _) in enumerate(keys)
        ]
        requests = [
            Key(e, types[e.sql()], tuple(depths[i]), tuple(rules[i]))
            for i, (_, e) in enumerate(keys)
        ]
        return planned, requests

    def _key_of(self, step: Generalization, keys: list[tuple[str, exp.Expr]]) -> int:
        from sqlglot import exp

        for i, (name, expression) in enumerate(keys):
            names = {fold_name(name)}
            if isinstance(expression, exp.Column):
                names.add(fold_name(expression.name))
            if fold_name(step.column) in names:
                return i
        raise QueryError(
            f"{step.column} is not grouped by; grouped by: {', '.join(n for n, _ in keys)}.",
            text=self.text,
            start=step.place.start,
            length=step.place.length,
        )

    def _rule(
        self,
        step: Generalization,
        key: tuple[str, exp.Expr],
        kind: Kind,
        before: list[Rule],
        hierarchy: Hierarchy | None,
    ) -> tuple[Rule, Hierarchy | None]:
        last = before[-1] if before else None
        if isinstance(last, Delete):
            self._step_error(step, f"{step.column} has been taken away already")
        if step.operation == "delete":
            return Delete(), hierarchy
        if step.operation == "interval":
            if kind not in ("integer", "decimal", "float"):
                self._step_error(
                    step, f"{step.column} holds no numbers, so it has no intervals; use up or del"
                )
            if isinstance(last, Climb):
                self._step_error(step, f"{step.column} climbs its hierarchy already")
            if isinstance(last, Interval) and step.width % last.width:
                self._step_error(
                    step,
                    f"intervals of {step.width} do not nest in those of "
                    f"{last.width}: use a multiple",
                )
            return Interval(step.width), hierarchy
        if isinstance(last, Interval):
            self._step_error(step, f"{step.column} is in intervals already; widen them or use del")
        if kind == "float":
            self._step_error(step, f"{step.column} holds fractions; use intervals or del")
        hierarchy = hierarchy or self._hierarchy(step, key[1])
        height = len(before) + 1
        if height > hierarchy.height:
            self._step_error(step, f"{step.column} is at the top of its hierarchy already")
        return climb(hierarchy, height), hierarchy

    def _hierarchy(self, step: Generalization, expression: exp.Expr) -> Hierarchy:
        from sqlglot import exp

        if not isinstance(expression, exp.Column):
            self._step_error(step, f"{step.column} is an expression and has no hierarchy; use del")
        source = self.scope.tables[expression.table]
        at = (source.name, expression.name)
        if at not in self.catalog.hierarchies:
            declared = source.schema.columns.get(expression.name) if source.schema else None
            if declared is None or declared.hierarchy is None:
                self._step_error(
                    step, f"{step.column} has no hierarchy: declare one in the schema, or use del"
                )
            self._refuse_found(step, declared.hierarchy)
            self.catalog.hierarchies[at] = fit_hierarchy(
                declared.hierarchy, expression.name, self._values(source, expression.name)
            )
        return self.catalog.hierarchies[at]

    def _values(self, source: AskedTable, name: str) -> pa.Array:
        """The distinct values of a column."""
        from sqlglot import exp

        if source.table is not None:
            return encode_column(source.table.arrow[name]).values
        query = exp.select(exp.column(name, quoted=True)).distinct().from_(named(source.name))
        return encode_column(self.engine.run(query).column(0)).values

    def _refuse_found(self, step: Generalization, builder: HierarchyBuilder) -> None:
        """Refuse hierarchies that follow from the rows: a label would tell of others' values."""
        what = None
        if isinstance(builder, Auto):
            what = "is found from the rows: write it out (halfmask describe --hierarchies auto)"
        elif isinstance(builder, Mask) and builder.length is None:
            what = "is as long as the longest value: give the mask a length"
        elif isinstance(builder, Ordered) and not builder.order:
            what = "groups the values that are there: give their order"
        if what is not None:
            self._step_error(step, f"the hierarchy of {step.column} {what}; or use del")

    def _step_error(self, step: Generalization, message: str) -> NoReturn:
        raise QueryError(
            f"{message}.", text=self.text, start=step.place.start, length=step.place.length
        )


def fit_hierarchy(builder: HierarchyBuilder, name: str, values: pa.Array) -> Hierarchy:
    """The declared hierarchy of ``values``; one that it has no place for stands under the top.

    Whether somebody has such a value must not show, so it cannot be an error here.

    Raises:
        HierarchyError: the hierarchy itself is at fault.
    """
    fits = _fitting(builder, name, values)
    if all(fits):
        return builder.build(name, values)
    built = builder.build(name, values.filter(pa.array(fits, pa.bool_())))
    top = built.labels[-1][0] if len(built.labels[-1]) == 1 else TOP
    inside = dict(zip(built.labels[0], built.maps.T.tolist(), strict=True))
    levels: list[list[object]] = [values.to_pylist()]
    for height in range(1, built.height + 1):
        levels.append(
            [built.labels[height][inside[v][height]] if v in inside else top for v in levels[0]]
        )
    return from_levels(levels, other_leaves=[[] for _ in levels])


def _fitting(builder: HierarchyBuilder, name: str, values: pa.Array) -> list[bool]:
    """Per value, whether the hierarchy has a place for it; halved until it is known."""
    try:
        builder.build(name, values)
    except HierarchyError:
        if len(values) <= 1:
            builder.build(name, values.slice(0, 0))
            return [False] * len(values)
        half = len(values) // 2
        return [
            *_fitting(builder, name, values.slice(0, half)),
            *_fitting(builder, name, values.slice(half)),
        ]
    return [True] * len(values)


def climb(hierarchy: Hierarchy, height: int) -> Climb:
    """The rule that goes up to one level of a hierarchy."""
    values = hierarchy.labels[0]
    codes = hierarchy.maps[height]
    if len(hierarchy.labels[height]) == 1:
        return Climb(dict.fromkeys(values))
    first: dict[int, object] = {}
    for value, code in zip(values, codes.tolist(), strict=True):
        if value is not None:
            first.setdefault(code, value)
    return Climb(
        {v: None if v is None else first[c] for v, c in zip(values, codes.tolist(), strict=True)}
    )
