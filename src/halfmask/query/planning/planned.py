"""What planning decides: keys, aggregates, what must hold, and the request for the engine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

if TYPE_CHECKING:
    from sqlglot import exp

    from halfmask.engines.request import Kind, Measure, Request
    from halfmask.query.parsing.chain import Chain, Semantics
    from halfmask.query.parsing.parse import Statement
    from halfmask.query.planning.scope import Scope
    from halfmask.table.hierarchy import Hierarchy


@dataclass(frozen=True, slots=True, eq=False)
class PlannedKey:
    """A grouping column as the asker sees it.

    Attributes:
        name: its name in the answer.
        labels: per depth, the label of each value (where it climbs a hierarchy).
        generalized: whether any level changes it; its values leave as text then.
    """

    name: str
    generalized: bool
    hierarchy: Hierarchy | None = None


@dataclass(frozen=True, slots=True, eq=False)
class PlannedAggregate:
    """One aggregate: the states (or the measure) it is made of.

    Attributes:
        kind: count, sum, avg ...
        states: positions of its states in the request, or (-1,) for the number of rows.
        measure: position of its measure, where it does not merge.
        of: what its argument is.
        conditional: whether it depends on who meets a condition: it may be null in a row.
    """

    kind: str
    states: tuple[int, ...] = ()
    measure: int | None = None
    of: Kind = "other"
    conditional: bool = False


@dataclass(frozen=True, slots=True)
class Requirement:
    """A number that must reach a threshold at every level.

    Attributes:
        what: people, contributors (people with a value to aggregate), or diversity.
        column: the column or expression it speaks of.
        test: the position of its test (distinct values), or None where counts simply add up.
        state: the position of the count that adds up; None: the number of rows.
    """

    what: Literal["people", "contributors", "diversity"]
    column: str
    test: int | None = None
    state: int | None = None

    def threshold(self, k: int, l: int) -> int:
        """What must be reached under the guarantee (k, l)."""
        return l if self.what == "diversity" else k


@dataclass(frozen=True, slots=True, eq=False)
class Plan:
    """Everything that is decided before rows are read.

    Attributes:
        queried: every column that influences what is seen, in any clause.
        splits: what the conditional aggregates split the people of a row by.
        missing: where their values are missing, which splits people further.
        split_values: the columns that l counts in each part of such a row.
    """

    statement: Statement
    scope: Scope
    request: Request
    keys: tuple[PlannedKey, ...]
    aggregates: tuple[PlannedAggregate, ...]
    measures: tuple[Measure, ...]
    requirements: tuple[Requirement, ...]
    queried: tuple[str, ...]
    final: exp.Select
    names: tuple[str, ...]
    notes: tuple[str, ...] = ()
    repeat: bool = False
    splits: tuple[exp.Expr, ...] = ()
    missing: tuple[exp.Expr, ...] = ()
    split_values: tuple[exp.Expr, ...] = ()

    @property
    def chain(self) -> Chain:
        """The guarantees."""
        return self.statement.chain

    @property
    def conditional(self) -> tuple[str, ...]:
        """The columns of the published rows that hold conditional figures."""
        return tuple(f"a{i}" for i, a in enumerate(self.aggregates) if a.conditional)

    @property
    def semantics(self) -> Semantics:
        """What may move."""
        return self.statement.semantics
